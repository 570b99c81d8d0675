"""Labelled tasks as data: recipe -> cases, each a label and the templates of its text or texts.

`GLUE` holds sentence and pair tasks of GLUE's kinds. `MSGS` follows Warstadt et al. (2020,
"Learning which features matter"): a linguistic and a surface feature per sentence, every
combination in several frames that differ in nothing else.
"""

import itertools
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One kind of row: its label and its template(s); text_b None for single sentences."""

    label: int
    text_a: str
    text_b: str | None = None


# --- GLUE's kinds ------------------------------------------------------------


def _sentiment() -> list[Case]:
    """Evaluative adjectives and verbs; negation reverses them, so no word gives the label away."""
    cases = []
    for (polarity, mood), negated in itertools.product(((1, "pos"), (0, "neg")), (False, True)):
        label = polarity ^ negated
        no = "not " if negated else ""
        cases += [
            Case(label, f"1=NPs(?b,?t) 2=Be(?b) {no}3=Adj({mood}) ."),
            Case(label, f"1=Name(?i) 2=V(say,past) that 3=NPs(?b,?t) 4=BePast(?b) {no}5=Adj({mood}) ."),
            Case(label, f"it 1=Be(x) {no}a 2=Adj({mood}) 3=N(x,?t) ."),
            Case(label, f"1=NPs(?h,hum) 2=Have(?h) {no}3=V(love{mood},part) 4=NPs(?b,?t) ."),
            Case(label, f"the 1=N(?b,?t) that 2=NPs(?h,hum) 3=V(?t,past) 4=BePast(?b) {no}5=Adj({mood}) ."),
        ]
    return cases


def _entailment() -> list[Case]:
    """Does text_a entail text_b? Each text is distributed alike under both labels."""
    cases = [
        # roles in the passive
        Case(1, "the 1=NL(sg,hum) 2=V(hum,past) the 3=NL(sg,hum) .", "the 3 was 2=V(hum,part) by the 1 ."),
        Case(0, "the 1=NL(sg,hum) 2=V(hum,past) the 3=NL(sg,hum) .", "the 1 was 2=V(hum,part) by the 3 ."),
        # a modifier left out, or another object
        Case(1, "1=NPs(?h,hum) 2=V(?t,past) a 3=Adj(?t) 4=N(x,?t) .", "1 2 a 4 ."),
        Case(0, "1=NPs(?h,hum) 2=V(?t,past) a 3=Adj(?t) 4=N(x,?t) .", "1 2 a 5=N(x,?t) ."),
        # whose predicate is it?
        Case(1, "the 1=NL(sg,hum) who 2=V(hum,past) the 3=NL(sg,hum) 4=V(intr,past) .", "the 1 4 ."),
        Case(0, "the 1=NL(sg,hum) who 2=V(hum,past) the 3=NL(sg,hum) 4=V(intr,past) .", "the 3 4 ."),
    ]
    for a_negated, b_negated in itertools.product((False, True), repeat=2):
        label = int(a_negated == b_negated)
        verb = "did not 2=V(?t,base)" if a_negated else "2=V(?t,past)"
        implicative = "failed to" if a_negated else "managed to"
        done = "did not 2" if b_negated else "2=V(?t,past)"
        no = "not " if b_negated else ""
        cases += [
            Case(label, f"1=Name(?i) {verb} the 3=N(x,?t) .", f"the 3 was {no}2=V(?t,part) by 1 ."),
            Case(label, f"1=Name(?i) {implicative} 2=V(?t,base) the 3=N(x,?t) .", f"1 {done} the 3 ."),
        ]
    for up, down in (("CompUp", "CompDown"), ("CompDown", "CompUp")):
        start = f"the 1=NL(sg,hum) was 2={up} than the 3=NL(sg,hum) ."
        cases += [
            Case(1, start, f"the 3 was 2={down} than the 1 ."),
            Case(0, start, f"the 1 was 2={down} than the 3 ."),
        ]
    return cases


def _paraphrase() -> list[Case]:
    """Same roles in another construction, or the roles exchanged."""
    active = "the 1=NL(sg,hum) {had}2=V(hum,{form}) the 3=NL(sg,hum) ."
    plain, perfect = active.format(had="", form="past"), active.format(had="had ", form="part")
    dative = "1=Name(?i) 2=V(dit,past) 3=Name(?i2) 4=NPs(?b,?giv) ."
    thing = "the 1=NL(sg,hum) 2=V(hum,past) the 3=NL(sg,hum) because 4=Name(?i) 5=V(intr,past) ."
    return [
        Case(1, plain, "the 3 was 2=V(hum,part) by the 1 ."),
        Case(0, plain, "the 1 was 2=V(hum,part) by the 3 ."),
        Case(1, perfect, "the 3 had been 2 by the 1 ."),
        Case(0, perfect, "the 1 had been 2 by the 3 ."),
        Case(1, dative, "1 2 4 to 3 ."),
        Case(0, dative, "3 2 4 to 1 ."),
        Case(1, thing, "because 4 5 , the 1 2 the 3 ."),
        Case(0, thing, "because 4 5 , the 3 2 the 1 ."),
    ]


GLUE = {"sentiment": _sentiment(), "entailment": _entailment(), "paraphrase": _paraphrase()}

# --- MSGS --------------------------------------------------------------------

# {A} and {B} are the determiners of the two common nouns, in this order; no frame has another
# `the` or `a`. frame -> (with the linguistic feature, without it)
FRAMES: dict[str, list[tuple[str, str]]] = {
    "main_verb": [  # the main verb is in -ing
        (
            "{A} 1=N(?i,hum) who 2=V(?t,past) {B} 3=N(x,?t) was 4=V(intr,ing) .",
            "{A} 1=N(?i,hum) who was 2=V(?t,ing) {B} 3=N(x,?t) 4=V(intr,past) .",
        ),
        (
            "{A} 1=N(?i,hum) was 2=V(say,ing) that 3=Name(?i2) 4=V(?t,past) {B} 5=N(x,?t) .",
            "{A} 1=N(?i,hum) 2=V(say,past) that 3=Name(?i2) was 4=V(?t,ing) {B} 5=N(x,?t) .",
        ),
        (
            "{A} 1=N(?i,hum) who 2=V(intr,past) was 3=V(?t,ing) {B} 4=N(x,?t) .",
            "{A} 1=N(?i,hum) who was 2=V(intr,ing) 3=V(?t,past) {B} 4=N(x,?t) .",
        ),
    ],
    "control_raising": [  # the verb or adjective over the infinitive is a control predicate
        (
            "{A} 1=N(?i,hum) 2=V(want,past) to 3=V(?t,base) {B} 4=N(x,?t) .",
            "{A} 1=N(?i,hum) 2=V(seem,past) to 3=V(?t,base) {B} 4=N(x,?t) .",
        ),
        (
            "{A} 1=N(?i,hum) was 2=Control to 3=V(?t,base) {B} 4=N(x,?t) .",
            "{A} 1=N(?i,hum) was 2=Raising to 3=V(?t,base) {B} 4=N(x,?t) .",
        ),
        (
            "{A} 1=N(?i,hum) who 5=V(intr,past) 2=V(want,past) to 3=V(?t,base) {B} 4=N(x,?t) .",
            "{A} 1=N(?i,hum) who 5=V(intr,past) 2=V(seem,past) to 3=V(?t,base) {B} 4=N(x,?t) .",
        ),
    ],
    "syntactic_category": [  # the main predicate is an adjective
        (
            "{A} 1=N(?i,hum) who 2=V(?t,past) {B} 3=N(x,?t) was 4=Adj(hum) .",
            "{A} 1=N(?i,hum) who 2=V(?t,past) {B} 3=N(x,?t) was 4=Near 5=Name(?i2) .",
        ),
        (
            "{A} 1=N(x,?o) near {B} 2=N(x,furn) was 3=Adj(?o) .",
            "{A} 1=N(x,?o) near {B} 2=N(x,furn) was 3=Near my 4=N(x,furn) .",
        ),
        (
            "{A} 1=N(?i,hum) near {B} 2=N(x,vehicle) was 3=Adj(hum) .",
            "{A} 1=N(?i,hum) near {B} 2=N(x,vehicle) was 3=Near 4=Name(?i2) .",
        ),
    ],
}

# surface feature -> (determiners with it, determiners without it)
DETERMINERS = {
    "lexical_content": (  # `the` occurs
        (("the", "a"), ("a", "the"), ("the", "this"), ("that", "the")),
        (("a", "a"), ("a", "this"), ("that", "a"), ("this", "that")),
    ),
    "relative_position": ((("the", "a"),), (("a", "the"),)),  # `the` precedes `a`
}


def msgs_cases(linguistic: str, surface: str, label: str, crossed: bool | None) -> list[Case]:
    """Cases of one linguistic and one surface feature.

    `label`: which feature gives the label, "linguistic" or "surface". `crossed`: keep the
    combinations where the features differ (True), agree (False), or all (None).
    """
    cases = []
    for present, surfacing in itertools.product((1, 0), repeat=2):
        if crossed is not None and crossed != (present != surfacing):
            continue
        for frame in FRAMES[linguistic]:
            for first, second in DETERMINERS[surface][1 - surfacing]:
                text = frame[1 - present].replace("{A}", first).replace("{B}", second)
                cases.append(Case(present if label == "linguistic" else surfacing, text))
    return cases
