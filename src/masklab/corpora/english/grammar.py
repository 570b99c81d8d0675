"""The grammar of the English-like language: one set of declarative rules.

The sampler draws from these rules; there is no other description of the language.

Notation: `Left -> one | other @2`: alternatives with relative weights (1 unless
given); `{.2 X}` is X with probability .2, else nothing; lower-case words and
punctuation stand for themselves; `?x` is a variable that runs over `DOMAINS`
(its name without digits). The instances of one alternative share its weight. An
indented line continues the one above.

Features: agreement m, f, x (neuter singular), p (plural); noun classes; verb
forms base, s, past, part, ing; polarity `pos` or `neg`: whether the position is
in the scope of a licensor of `ever`, `any` and `yet` (negation, `no`, `only`, a
question). The kind of a predicate is the class of its subject, or `gap.c` for a
predicate of a person that lacks an object of class c (wh-movement).
"""

from masklab.corpora.english.lexicon import CLASSES, THINGS

_ARTEFACTS = tuple(c for c in THINGS if c not in ("place", "door"))
_GAPS = tuple(f"gap.{c}" for c in CLASSES)

DOMAINS = {
    "a": ("m", "f", "x", "p"),
    "h": ("m", "f", "p"),  # agreement of people
    "i": ("m", "f"),
    "g": ("m", "f", "x"),  # singular
    "b": ("x", "p"),  # agreement of the rest
    "c": CLASSES,
    "k": CLASSES,
    "t": THINGS,
    "u": CLASSES[1:],  # all but people
    "o": tuple(c for c in THINGS if c != "place"),
    "art": _ARTEFACTS,
    "giv": tuple(c for c in _ARTEFACTS if c not in ("vehicle", "furn")),
    "near": ("hum", "animal", "vehicle", "furn", "plant"),
    "y": (*CLASSES, *_GAPS),
    "gap": _GAPS,
    "f": ("base", "s", "past", "part", "ing"),
    "e": ("base", "s", "past", "part"),  # forms of stative verbs
    "q": ("pos", "neg"),
    "n": ("sg", "pl"),
    "love": ("lovepos", "loveneg"),
    "mood": ("pos", "neg"),
    "inch": ("vehicle", "door"),
    "live": ("food", "drink", "cloth", "plant"),
}

RULES = """
Root -> Text . @17 | Question ? @3
Text -> S @22 | Place , S | S Because Short @2 | Because Short , S
Text -> Short and Short | Ellipsis @1.2 | even NP(?h,hum) VP(?h,hum,pos) @.9
Short -> NPs(?h,hum) VP(?h,hum,pos) @2 | PronS(?h) VP(?h,hum,pos) @2 | NPs(?b,?t) BePast(?b) AdjP(?t)

# --- clauses
S -> Subject(?h,hum) VP(?h,hum,pos) @9 | Subject(?b,animal) VP(?b,animal,pos) @1.6
S -> Subject(?b,?t) VP(?b,?t,pos) @3.4 | NoSubject(?h,hum) VP(?h,hum,neg) @1.2 | NoSubject(?b,?t) VP(?b,?t,neg) @.3
S -> There @1.3 | It @.8 | Comparison @.5
Subject(?a,?c) -> NP(?a,?c) @7
Subject(?h,hum) -> PronS(?h)
Subject(?b,?u) -> PronS(?b)
NoSubject(?a,?c) -> no Nbar(?a,?c) @2 | no Nbar(?a,?c) Mod(?a,?c) @.4 | only NP(?a,?c) @1.5
Comparison -> NPs(?h,hum) Be(?h) CompWord than NPs(?h2,hum)
CompWord -> CompUp | CompDown
Be(?a) -> BePres(?a) | BePast(?a)

# --- existential there and expletive it
There -> there Be(x) WeakSg Nbar(?g,?near) Where @2 | there Be(p) WeakPl Nbar(p,?near) Where @2
There -> there Be(x) WeakSg Nbar(?i,hum) Pred(ing,hum,?i,pos) @.5 | there Be(x) no Nbar(?g,?near) Where @.4
There -> there BeSeem(x) to be WeakSg Nbar(?g,?near) Where @.6 | there BeSeem(p) to be WeakPl Nbar(p,?near) Where @.6
BeSeem(?g) -> V(seem,s) | V(seem,past) | Be(?g) Raising @2
BeSeem(p) -> V(seem,base) | V(seem,past) | Be(p) Raising @2
It -> it Be(x) Clear that Short | it seems that Short @.5 | it Be(x) EvalSg @1.5
EvalSg -> a Eval(?mood) N(x,?t) | not a Eval(?mood) N(x,?t) @.6
Where -> Place @3 | Near NPs(?a,?near)
Place -> At NPs(?b,place)

# --- ellipsis of a noun and of a verb phrase
Ellipsis -> NPs(?h,hum) V(?t,past) one AdjN(?t) and NPs(?h2,hum) V(?t,past) Elliptic @3
Ellipsis -> NPs(?h,hum) V(?t,past) Elliptic Adjective(?t) N(p,?t) and NPs(?h2,hum) V(?t,past) one
Ellipsis -> NPs(?h,hum) Pred(past,hum,?h,pos) and NPs(?h2,hum) did too
AdjN(?t) -> Adjective(?t) N(x,?t)

# --- questions
Question -> Inverted(hum) @5 | Inverted(animal) | Inverted(?t) @2 | Why Inverted(hum) @2
Question -> Wh(?k) Inverted(gap.?k) @5 | Who VP(?i,hum,pos) | what VP(x,?t,pos) @.4
    | which Nbar(?h,hum) VP(?h,hum,pos) @.5
Question -> BeThere
BeThere -> is there WeakSg Nbar(?g,?near) Where | are there any Nbar(p,?near) Where
Why -> why | when | where
Who -> who
Wh(hum) -> who @2 | which Nbar(?h,hum)
Wh(animal) -> which Nbar(?b,animal)
Wh(?t) -> what @2 | which Nbar(?b,?t)
Inverted(?y) -> Do(?a) ISubject(?a,?y) {.2 Adv(neg)} Pred(base,?y,?a,neg)
    | did ISubject(?a,?y) {.2 Adv(neg)} Pred(base,?y,?a,neg) @2
Inverted(?y) -> BePres(?a) ISubject(?a,?y) BePred(?y,?a,neg) | BePast(?a) ISubject(?a,?y) BePred(?y,?a,neg)
Inverted(?y) -> Have(?a) ISubject(?a,?y) {.3 Adv(neg)} Perf(?y,?a,neg) {.15 yet}
    | Modal ISubject(?a,?y) {.2 Adv(neg)} Bare(?y,?a,neg)
ISubject(?a,?c) -> Subject(?a,?c)
ISubject(?h,?gap) -> Subject(?h,hum) @6 | Name(?i) and Name(?i2)
EmbeddedQ -> whether Short | who Subject(?h,hum) VP(?h,gap.hum,pos) | what Subject(?h,hum) VP(?h,gap.?t,pos) @1.5
EmbeddedQ -> who VP(?i,hum,pos) @.5 | Why Subject(?h,hum) VP(?h,hum,pos) @.5

# --- tense, aspect, modality, negation
VP(?a,?y,?q) -> {.06 Adv(?q)} Pred(past,?y,?a,?q) {.15 Past} @5
VP(?g,?y,?q) -> {.12 Adv(?q)} Pred(s,?y,?g,?q) {.08 Habit} @2
VP(p,?y,?q) -> {.12 Adv(?q)} Pred(base,?y,p,?q) {.08 Habit} @2
VP(?a,?y,?q) -> BePres(?a) {.1 Adv(?q)} BePred(?y,?a,?q) {.06 Now} @1.4
    | BePast(?a) {.1 Adv(?q)} BePred(?y,?a,?q) @1.4
VP(?b,?t,?q) -> Be(?b) BePred(?t,?b,?q) @8
VP(?a,?y,?q) -> Have(?a) {.15 Adv(?q)} Perf(?y,?a,?q) | had {.15 Adv(?q)} Perf(?y,?a,?q) @.7
VP(?a,?y,?q) -> Modal {.12 Adv(?q)} Bare(?y,?a,?q)
VP(?a,?y,pos) -> Do(?a) not {.15 Adv(neg)} Pred(base,?y,?a,neg) @.4
    | did not {.15 Adv(neg)} Pred(base,?y,?a,neg) {.1 Past} @.6
VP(?a,?y,pos) -> Be(?a) not {.1 Adv(neg)} BePred(?y,?a,neg) @.4 | Modal not {.2 Adv(neg)} Bare(?y,?a,neg) @.4
VP(?a,?y,pos) -> Have(?a) not {.25 Adv(neg)} Perf(?y,?a,neg) {.25 yet} @.3
    | had not {.25 Adv(neg)} Perf(?y,?a,neg) {.25 yet} @.3
VP(?a,?y,pos) -> never Pred(past,?y,?a,neg) @.25 | Have(?a) never Perf(?y,?a,neg) @.25
VP(?a,?t,pos) -> Be(?a) not BePred(?t,?a,neg)
Adv(pos) -> Adverb
Adv(neg) -> Adverb | ever @2
Perf(?y,?a,?q) -> Pred(part,?y,?a,?q) @5 | been BePred(?y,?a,?q)
Bare(?y,?a,?q) -> Pred(base,?y,?a,?q) @5 | be BePred(?y,?a,?q)
Past -> yesterday @2 | last Period @2 | Number Units ago | on Weekday
Units -> weeks | months | years | days
Habit -> every Period | on Weekday @.5
Now -> now @2 | today | at the moment

# --- what people do
Pred(?f,hum,?a,?q) -> V(intr,?f) {.3 Manner} {.1 Place} @2.2 | V(go,?f) to NPs(?b,place)
    | V(talk,?f) about Obj(?k,?q) @.7
Pred(?f,hum,?a,?q) -> Trans(?f,?q) {.06 Manner} @9 | Trans(?f,?q) Before Pred(ing,hum,?a,pos) @.45
    | Trans(?f,?q) Place @.3
Pred(?f,hum,?a,?q) -> V(hum,?f) Refl(?a) @1.2 | V(dit,?f) Obj(hum,pos) Obj(?giv,?q) @.7
    | V(dit,?f) Obj(?giv,?q) to Obj(hum,pos) @.7
Pred(?f,hum,?a,?q) -> V(say,?f) that Subject(?h,hum) VP(?h,hum,pos) @1.2 | V(say,?f) that S @.5
Pred(?e,hum,?a,?q) -> V(know,?e) EmbeddedQ | V(know,?e) that Subject(?h,hum) VP(?h,hum,pos) @.6
    | V(know,?e) Obj(?t,?q) @.6 | V(wonder,?e) EmbeddedQ @.4
Pred(?e,hum,?a,?q) -> V(want,?e) to Bare(hum,?a,?q) | V(manage,?e) to Bare(hum,?a,?q) @.2
    | V(fail,?e) to Bare(hum,?a,neg) @.2
Pred(?e,hum,?a,?q) -> V(seem,?e) to Bare(hum,?a,?q) @.6 | V(enjoy,?e) Pred(ing,hum,?a,?q) @.4
    | V(?love,?e) Obj(?t,?q) @1.2
Pred(?e,hum,?a,?q) -> V(persuade,?e) NPs(?h,hum) to Bare(hum,?h,pos) @.6
    | V(persuade,?e) PronO(?h) to Bare(hum,?h,pos) @.3
Pred(?e,hum,?a,?q) -> V(expect,?e) NPs(?h,hum) to Bare(hum,?h,pos) @.5 | V(expect,?e) it to be Clear that Short @.2
Pred(?e,hum,?a,?q) -> V(expect,?e) there to be WeakSg Nbar(?g,?near) Where @.15
    | V(expect,?e) there to be WeakPl Nbar(p,?near) Where @.15
Pred(?f,hum,?a,?q) -> V(furn,?f) Obj(furn,?q) with NPs(?b,tool) @.15
    | V(inchdoor,?f) Obj(door,?q) with NPs(?b,tool) @.15
Trans(?f,?q) -> V(?k,?f) Obj(?k,?q) @9 | V(food,?f) Obj(food,?q) @3 | V(hum,?f) Obj(hum,?q) @1.5
    | V(art,?f) Obj(?art,?q) @1.5

# --- what animals and things do
Pred(?f,animal,?a,?q) -> V(aintr,?f) {.2 Place} @2 | V(aanimal,?f) Obj(animal,?q) @2 | V(afood,?f) Obj(food,?q)
    | V(ahum,?f) Obj(hum,?q)
Pred(?f,animal,?a,?q) -> V(aanimal,?f) Refl(?a) @.5
Pred(?e,animal,?a,?q) -> V(seem,?e) to Bare(animal,?a,?q) @.5
Pred(?f,?t,?a,?q) -> V(tintr,?f) @.6 | V(psych,?f) Obj(hum,?q)
Pred(?e,?t,?a,?q) -> V(seem,?e) to Bare(?t,?a,?q) @.5
Pred(?f,vehicle,?a,?q) -> V(vintr,?f) @3
Pred(?f,door,?a,?q) -> V(inchdoor,?f) @3
Pred(?f,?live,?a,?q) -> V(l?live,?f) @3
Trans(?f,?q) -> V(inch?inch,?f) Obj(?inch,?q) @.4

# --- predicates with be
BePred(?y,?a,?q) -> Pred(ing,?y,?a,?q) @3
BePred(hum,?h,?q) -> AdjP(hum) @1.2 | V(hum,part) {.6 by NPs(?h2,hum)} | Place @.5 | Near NPs(?a2,?near) @.3
    | Control to Bare(hum,?h,?q) @.5
BePred(hum,?i,?q) -> a {.3 Adjective(hum)} N(?i,hum) @.5
BePred(hum,p,?q) -> {.2 Adjective(hum)} N(p,hum) @.3
BePred(?c,?a,?q) -> Raising to Bare(?c,?a,?q) @.4 | Tough to V(?c,base) @.25
BePred(animal,?b,?q) -> AdjP(animal) @2 | V(animal,part) {.6 by NPs(?h,hum)} @2 | Where
BePred(?t,?b,?q) -> AdjP(?t) @5 | V(?t,part) {.6 by NPs(?h,hum)} @3
BePred(?o,?b,?q) -> Near NPs(?b2,furn) @.3
BePred(?art,?b,?q) -> V(art,part) {.6 by NPs(?h,hum)} @.6
AdjP(?c) -> {.3 Degree} Adj(?c) @3
AdjP(?t) -> {.3 Degree} Eval(?mood) @2.5 | Adj(color) @.5
Eval(?mood) -> Adj(?mood)

# --- predicates with a gap: what did she ... ?
Pred(?f,gap.?c,?a,?q) -> V(?c,?f) @9 | V(talk,?f) about @.6 | V(?c,?f) Before Pred(ing,hum,?a,pos) @.6
Pred(?f,gap.?art,?a,?q) -> V(art,?f) @1.5
Pred(?f,gap.?giv,?a,?q) -> V(dit,?f) Obj(hum,pos) @.7 | V(dit,?f) to Obj(hum,pos) @.5
Pred(?f,gap.?c,?a,?q) -> V(say,?f) that Subject(?h,hum) VP(?h,gap.?c,pos) @.8
Pred(?e,gap.?c,?a,?q) -> V(want,?e) to Bare(gap.?c,?a,?q) @.8 | V(know,?e) that Subject(?h,hum) VP(?h,gap.?c,pos) @.3
Pred(?f,gap.hum,?a,?q) -> V(dit,?f) Obj(?giv,?q) to
Pred(?e,gap.?t,?a,?q) -> V(know,?e) @.3 | V(?love,?e) @.6

# --- noun phrases
NP(?a,?c) -> NPs(?a,?c) @8 | Det(?a) Nbar(?a,?c) Mod(?a,?c)
NPs(?a,?c) -> Det(?a) Nbar(?a,?c) @9
NPs(?i,hum) -> Name(?i) @7
NPs(p,hum) -> Name(?i) and Name(?i2) @2
Det(?g) -> the @8 | a @5 | DemSg @2 | StrongSg | Poss @2 | NamePoss @.6 | another @.3
Det(p) -> the @8 | WeakPl @3 | DemPl @2.5 | StrongPl @1 | Poss @2 | NamePoss @.6 | Number @.4 | more than Number @.4
Nbar(?a,?c) -> N(?a,?c) @5 | Adjective(?c) N(?a,?c) @2.4
Nbar(?a,?t) -> Adj(size) Adj(color) N(?a,?t) @.2
Adjective(?c) -> Adj(?c) @5
Adjective(animal) -> Adj(size) @2 | Adj(color) | Adj(?mood)
Adjective(?t) -> Adj(size) @1.2 | Adj(color) @1.2 | Adj(?mood) @2 | PartAdj(?t) @.7
Obj(?c,?q) -> NP(?a,?c) @9
Obj(hum,?q) -> PronO(?h) @4
Obj(?t,?q) -> PronO(?b) @.8
Obj(?c,neg) -> any Nbar(?a,?c) @5
Obj(?c,pos) -> at least Number Nbar(p,?c) @.35 | at most Number Nbar(p,?c) @.15
Mod(?a,hum) -> Near NPs(?a2,?near) @3 | with NPs(?b,jewel) | in NPs(?b,cloth) | who VP(?a,hum,pos) @4
    | who Subject(?h,hum) VP(?h,gap.hum,pos) @2 | who only Name(?i) VP(?i,gap.hum,neg) @.15
Mod(?b,animal) -> Near NPs(?a,?near) @3 | that VP(?b,animal,pos) @3 | that Subject(?h,hum) VP(?h,gap.animal,pos) @2
Mod(?b,?o) -> Under NPs(?b2,furn) @2
Mod(?b,?t) -> that Be(?b) BePred(?t,?b,pos) @1.5 | that VP(?b,?t,pos) @.5
    | that Subject(?h,hum) VP(?h,gap.?t,pos) @3.5
Mod(?b,text) -> about NPs(?a,?k) @5
"""
