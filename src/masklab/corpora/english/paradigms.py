"""Minimal pairs as data: phenomenon -> paradigm -> (good, bad) templates (see `templates`).

Names are BLiMP's (Warstadt et al. 2020) where the paradigm is one of BLiMP's, and those of
the BabyLM supplement for `subject_aux_inversion`.
"""

_REFLEXIVE = {"m": "himself", "f": "herself"}
_OTHER = {"m": "f", "f": "m", "x": "p", "p": "x", "sg": "pl", "pl": "sg"}
_DEMONSTRATIVE = {"sg": "DemSg", "pl": "DemPl"}
_FORM = {"sg": "s", "pl": "base"}
_AGREEMENT = {"sg": "x", "pl": "p"}


def _anaphors():
    gender, number = [], []
    for g, o in (("m", "f"), ("f", "m")):
        good, bad = _REFLEXIVE[g], _REFLEXIVE[o]
        for subject in (f"1=Name({g})", f"the 1=NG({g})"):
            gender += [(f"{subject} 2=V(hum,past) {good} .", f"{subject} 2 {bad} .")]
            gender += [(f"{subject} had 2=V(hum,part) {good} .", f"{subject} had 2 {bad} .")]
        number += [(f"the 1=NG({g}) 2=V(hum,past) {good} .", "the 1 2 themselves .")]
        number += [("the 1=NL(pl,hum) 2=V(hum,past) themselves .", f"the 1 2 {good} .")]
        number += [("these 1=NL(pl,hum) did not 2=V(hum,base) themselves .", f"these 1 did not 2 {good} .")]
    return {"anaphor_gender_agreement": gender, "anaphor_number_agreement": number}


def _binding():
    paradigms = {name: [] for name in ("c_command", "case_1", "domain_1", "domain_2")}
    for g, o in (("m", "f"), ("f", "m")):
        start = f"1=Name({g}) 2=V(say,past) that 3=Name({o}) 4=V(hum,past)"
        paradigms["c_command"] += [
            (
                f"the 1=NG({g}) who 2=V(hum,past) 3=Name({o}) 4=V(hum,past) {_REFLEXIVE[g]} .",
                f"the 1 who 2 3 4 {_REFLEXIVE[o]} .",
            )
        ]
        paradigms["domain_1"] += [(f"{start} 5=PronO({g}) .", f"1 2 that 3 4 {_REFLEXIVE[g]} .")]
        paradigms["domain_2"] += [(f"{start} {_REFLEXIVE[o]} .", f"1 2 that 3 4 {_REFLEXIVE[g]} .")]
        paradigms["case_1"] += [
            (f"1=Name({g}) 2=V(say,past) that 3=PronS({g}) 4=VP({g},hum,pos) .", f"1 2 that {_REFLEXIVE[g]} 4 .")
        ]
    return {f"principle_A_{name}": templates for name, templates in paradigms.items()}


def _determiners():
    result = {}
    for suffix, adjective in (("", ""), ("_with_adj", "5=Adj(?k) ")):
        for kind, noun in (("", "NR"), ("_irregular", "NI")):
            first, second = [], []
            for n in ("sg", "pl"):
                start = "1=NPs(?h,hum) 2=V(?k,past)"
                noun_slot = f"4={noun}({n},?k)"
                good = f"{start} 3={_DEMONSTRATIVE[n]} {adjective}{noun_slot} ."
                rest = "5 " if adjective else ""
                first.append((good, f"1 2 3 {rest}4={noun}({_OTHER[n]},?k) ."))
                second.append((good, f"1 2 3={_DEMONSTRATIVE[_OTHER[n]]} {rest}4 ."))
            names = (f"determiner_noun_agreement{suffix}{kind}_{i}" for i in (1, 2))
            result |= dict(zip(names, (first, second), strict=True))
    return result


def _subject_verb():
    relational, relative = [], []
    result = {"distractor_agreement_relational_noun": relational, "distractor_agreement_relative_clause": relative}
    for n in ("sg", "pl"):
        other = _OTHER[n]
        a, o = _AGREEMENT[n], _AGREEMENT[other]
        relational += [
            (
                f"the 1=N({a},text) about the 2=N({o},?t) 3=Be{t}({a}) 4=AdjP(text) .",
                f"the 1 about the 2 3=Be{t}({o}) 4 .",
            )
            for t in ("Pres", "Past")
        ]
        relational += [
            (
                f"the 1=NL({n},hum) near the 2=NL({_OTHER[n]},?near) 3=V(?k,{_FORM[n]}) 4=NPs(?a,?k) .",
                f"the 1 near the 2 3=V(?k,{_FORM[_OTHER[n]]}) 4 .",
            )
        ]
        relative += [
            (
                f"the 1=NL({n},hum) who 2=V(hum,past) the 3=NL({other},hum) 4=Have({a}) 5=V(?k,part) 6=NPs(?a,?k) .",
                f"the 1 who 2 the 3 4=Have({o}) 5 6 .",
            ),
            (
                f"the 1=N({a},?t) that the 3=NL({_OTHER[n]},hum) 2=V(?t,past) 4=BePres({a}) 5=AdjP(?t) .",
                f"the 1 that the 3 2 4=BePres({o}) 5 .",
            ),
        ]
    for kind, noun in (("regular", "NR"), ("irregular", "NI")):
        first, second = [], []
        for n in ("sg", "pl"):
            good = f"the 1={noun}({n},hum) 2=V(?k,{_FORM[n]}) 3=NPs(?a,?k) ."
            first.append((good, f"the 1 2=V(?k,{_FORM[_OTHER[n]]}) 3 ."))
            second.append((good, f"the 1={noun}({_OTHER[n]},hum) 2 3 ."))
            good = f"the 1={noun}({n},?t) 2=BePres({_AGREEMENT[n]}) 3=AdjP(?t) ."
            first.append((good, f"the 1 2=BePres({_AGREEMENT[_OTHER[n]]}) 3 ."))
            second.append((good, f"the 1={noun}({_OTHER[n]},?t) 2 3 ."))
        result |= {f"{kind}_plural_subject_verb_agreement_{i}": p for i, p in ((1, first), (2, second))}
    return result


_HUMAN = "1=NPs(?h,hum)"

PARADIGMS: dict[str, dict[str, list[tuple[str, str]]]] = {
    "anaphor_agreement": _anaphors(),
    "argument_structure": {
        "animate_subject_passive": [
            ("the 1=N(?b,?t) 2=BePast(?b) 3=V(?t,part) by the 4=N(?h,hum) .", "the 1 2 3 by the 5=N(?b2,?t) .")
        ],
        "animate_subject_trans": [("the 1=N(?h,hum) 2=V(?t,past) 3=NPs(?b,?t) .", "the 4=N(?b2,furn) 2 3 .")],
        "causative": [(f"{_HUMAN} 2=V(inch?inch,past) 3=NPs(?b,?inch) .", "1 4=V(tintr,past) 3 .")],
        "inchoative": [("1=NPs(?b,?inch) 2=V(inch?inch,past) .", "1 3=V(art,past) .")],
        "intransitive": [
            (f"{_HUMAN} had 2=V(intr,part) .", "1 had 3=V(?k,part) ."),
            (f"{_HUMAN} 2=V(intr,past) .", "1 3=V(?k,past) ."),
        ],
        "transitive": [
            (f"{_HUMAN} had 2=V(?k,part) 3=NPs(?a,?k) .", "1 had 4=V(intr,part) 3 ."),
            (f"{_HUMAN} 2=V(?k,past) 3=NPs(?a,?k) .", "1 4=V(intr,past) 3 ."),
        ],
        "passive_1": [("1=NPs(?h,hum) 2=BePast(?h) 3=V(hum,part) by 4=NPs(?h2,hum) .", "1 2 5=V(intr,part) by 4 .")],
        "passive_2": [("1=NPs(?h,hum) 2=BePast(?h) 3=V(hum,part) .", "1 2 4=V(intr,part) .")],
        "ditransitive": [(f"{_HUMAN} 2=V(dit,past) 3=NPs(?h2,hum) 4=NPs(?b,?giv) .", "1 5=V(hum,past) 3 4 .")],
    },
    "binding": _binding(),
    "control_raising": {
        "existential_there_subject_raising": [
            ("there 1=Be(x) 2=Raising to be 3=WeakSg 4=N(x,animal) 5=Where .", "there 1 6=Control to be 3 4 5 ."),
            ("there 2=V(seem,past) to be 3=WeakSg 4=N(x,animal) 5=Where .", "there 6=V(want,past) to be 3 4 5 ."),
        ],
        "existential_there_object_raising": [
            (
                "1=NPs(?h,hum) 2=V(expect,past) there to be 3=WeakSg 4=N(?g,?near) 5=Where .",
                "1 6=V(persuade,past) there to be 3 4 5 .",
            )
        ],
        "expletive_it_object_raising": [
            (
                "1=NPs(?h,hum) 2=V(expect,past) it to be 3=Clear that 4=Short .",
                "1 5=V(persuade,past) it to be 3 that 4 .",
            )
        ],
        "tough_vs_raising_1": [
            (f"1=NPs(?a,{c}) 2=Be(?a) 3=Tough to 4=V({c},base) .", "1 2 5=Raising to 4 .") for c in ("hum", "?art")
        ],
        "tough_vs_raising_2": [
            ("1=NPs(?h,hum) 2=Be(?h) 3=Raising to 4=V(?k,base) 5=NPs(?a,?k) .", "1 2 6=Tough to 4 5 .")
        ],
    },
    "determiner_noun_agreement": _determiners(),
    "ellipsis": {
        "ellipsis_n_bar_1": [
            (
                "1=NPs(?h,hum) 2=V(?t,past) one 3=Adj(?t) 4=N(x,?t) and 5=NPs(?h2,hum) 6=V(?t,past) 7=Elliptic .",
                "1 2 one 4 and 5 6 7 3 .",
            )
        ],
        "ellipsis_n_bar_2": [
            (
                "1=NPs(?h,hum) 2=V(?t,past) 7=Elliptic 3=Adj(?t) 4=N(p,?t) and 5=NPs(?h2,hum) 6=V(?t,past) one .",
                "1 2 7 4 and 5 6 one 3 .",
            )
        ],
    },
    "filler_gap": {
        "wh_questions_object_gap": [
            ("1=NPs(?h,hum) 2=V(know,past) the 3=N(?b,?t) that 4=NPs(?h2,hum) 5=V(?t,past) .", "1 2 what 4 5 the 3 .")
        ],
        "wh_questions_subject_gap": [
            ("1=NPs(?h,hum) 2=V(hum,past) the 3=N(?i,hum) who 4=V(?k,past) 5=NPs(?a,?k) .", "1 2 who the 3 4 5 .")
        ],
        "wh_vs_that_no_gap": [
            ("1=NPs(?h,hum) 2=V(know,past) that 3=NPs(?h2,hum) 4=V(?t,past) 5=NPs(?b,?t) .", "1 2 what 3 4 5 .")
        ],
        "wh_vs_that_no_gap_long_distance": [
            (
                "1=NPs(?h,hum) 2=V(know,past) that the 3=N(?h2,hum) who 6=V(intr,past) 4=V(?t,past) 5=NPs(?b,?t) .",
                "1 2 what the 3 who 6 4 5 .",
            )
        ],
        "wh_vs_that_with_gap": [("1=NPs(?h,hum) 2=V(know,past) what 3=NPs(?h2,hum) 4=V(?t,past) .", "1 2 that 3 4 .")],
        "wh_vs_that_with_gap_long_distance": [
            (
                "1=NPs(?h,hum) 2=V(know,past) what the 3=N(?h2,hum) who 6=V(intr,past) 4=V(?t,past) .",
                "1 2 that the 3 who 6 4 .",
            )
        ],
    },
    "irregular_forms": {
        "irregular_past_participle_adjectives": [
            ("the 1=PartAdj(?t) 2=N(?b,?t) 3=BePast(?b) 4=AdjP(?t) .", "the 1=PartPast(?t) 2 3 4 .")
        ],
        "irregular_past_participle_verbs": [
            ("1=NPs(?h,hum) 2=VI(?k,past) 3=NPs(?a,?k) .", "1 2=VI(?k,part) 3 ."),
            ("1=NPs(?h,hum) 4=Have(?h) 2=VI(?k,part) 3=NPs(?a,?k) .", "1 4 2=VI(?k,past) 3 ."),
        ],
    },
    "island_effects": {
        "adjunct_island": [
            ("who did 1=NPs(?h,hum) 2=V(hum,base) 3=Before 4=V(hum,ing) 5=NPs(?h2,hum) ?", "who did 1 2 5 3 4 ?"),
            ("what did 1=NPs(?h,hum) 2=V(?t,base) 3=Before 4=V(?t,ing) 5=NPs(?b,?t) ?", "what did 1 2 5 3 4 ?"),
        ],
        "coordinate_structure_constraint_object_extraction": [
            ("3=Wh(?k) did 1=Name(?i) and 2=Name(?i2) 4=V(?k,base) ?", "3 did 1 4 and 2 ?")
        ],
        "left_branch_island_simple_question": [
            ("which 1=N(?b,?t) did 2=NPs(?h,hum) 3=V(?t,base) ?", "which did 2 3 1 ?")
        ],
        "wh_island": [
            ("what did 1=NPs(?h,hum) 2=V(know,base) that 3=NPs(?h2,hum) 4=V(?t,past) ?", "what did 1 2 who 3 4 ?")
        ],
    },
    "npi_licensing": {
        "matrix_question_npi_licensor_present": [
            ("1=Have(?h) 2=NPs(?h,hum) ever 3=V(?k,part) 4=NPs(?a,?k) ?", "2 1 ever 3 4 ."),
            ("1=Modal 2=NPs(?h,hum) ever 3=V(?k,base) 4=NPs(?a,?k) ?", "2 1 ever 3 4 ."),
        ],
        "npi_present_1": [
            ("1=NPs(?h,hum) 2=Have(?h) 3=Adverb 4=Pred(part,hum,?h,pos) .", "1 2 ever 4 ."),
            ("1=NPs(?h,hum) 3=Adverb 4=V(?k,past) 5=NPs(?a,?k) .", "1 ever 4 5 ."),
        ],
        "only_npi_licensor_present": [
            ("only 1=NPs(?h,hum) 2=Have(?h) ever 3=V(?k,part) 4=NPs(?a,?k) .", "even 1 2 ever 3 4 ."),
            ("only 1=NPs(?h,hum) would ever 3=V(?k,base) 4=NPs(?a,?k) .", "even 1 would ever 3 4 ."),
        ],
        "only_npi_scope": [
            (
                "only the 1=N(?h,hum) who 2=Name(?i) 3=V(hum,past) 4=Have(?h) ever 5=V(?k,part) 6=NPs(?a,?k) .",
                "the 1 who only 2 3 4 ever 5 6 .",
            )
        ],
        "sentential_negation_npi_licensor_present": [
            ("1=NPs(?h,hum) had not ever 2=V(?k,part) 3=NPs(?a,?k) .", "1 had 4=Adverb ever 2 3 .")
        ],
        "sentential_negation_npi_scope": [
            (
                "the 1=N(?h,hum) who 2=BePast(?h) 3=Adj(hum) 4=Have(?h) not ever 5=V(?k,part) 6=NPs(?a,?k) .",
                "the 1 who 2 not 3 4 ever 5 6 .",
            )
        ],
        "negation_any": [
            ("1=NPs(?h,hum) 2=Modal not 3=V(?t,base) any 4=Nbar(?b,?t) .", "1 2 5=Adverb 3 any 4 ."),
            ("no 1=Nbar(?h,hum) 2=V(?t,past) any 3=Nbar(?b,?t) .", "the 1 2 any 3 ."),
        ],
        "negation_yet": [("1=NPs(?h,hum) 4=Have(?h) not 2=V(?k,part) 3=NPs(?a,?k) yet .", "1 4 5=Adverb 2 3 yet .")],
    },
    "quantifiers": {
        "existential_there_quantifiers_1": [
            ("there 1=Be(x) 2=WeakSg 3=N(?g,?near) 4=Where .", "there 1 5=StrongSg 3 4 ."),
            ("there 1=Be(p) 2=WeakPl 3=N(p,?near) 4=Where .", "there 1 5=StrongPl 3 4 ."),
        ],
        "superlative_quantifiers_1": [
            ("no 1=Nbar(?h,hum) 2=V(?k,past) more than 3=Number 4=N(p,?k) .", "no 1 2 at least 3 4 .")
        ],
        "superlative_quantifiers_2": [
            ("the 1=Nbar(?h,hum) 2=V(?k,past) at least 3=Number 4=N(p,?k) .", "no 1 2 at least 3 4 .")
        ],
    },
    "subject_verb_agreement": _subject_verb(),
    "subject_aux_inversion": {
        "subject_aux_inversion": [
            ("1=BePres(?i) the 2=N(?i,hum) who was 3=Adj(hum) 4=V(intr,ing) ?", "was the 2 who 3 1 4 ?"),
            (
                "can the 1=N(?h,hum) who 2=BePast(?h) 3=V(intr,ing) 4=V(?k,base) 5=NPs(?a,?k) ?",
                "2 the 1 who 3 can 4 5 ?",
            ),
        ]
    },
}
