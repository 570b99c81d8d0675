"""Minimal pairs: in and out of the language, and different exactly where the phenomenon says."""

from collections import Counter

import pytest
from recogniser import read, recognises

from masklab.corpora.english.lexicon import FORMS, LEXICON
from masklab.corpora.english.pairs import PHENOMENA, minimal_pairs
from masklab.errors import MaskLabError

BLIMP_2023 = {
    "anaphor_agreement", "argument_structure", "binding", "control_raising", "determiner_noun_agreement", "ellipsis",
    "filler_gap", "irregular_forms", "island_effects", "npi_licensing", "quantifiers", "subject_verb_agreement",
}  # fmt: skip
SAME_WORDS = {
    "adjunct_island", "coordinate_structure_constraint_object_extraction", "left_branch_island_simple_question",
    "ellipsis_n_bar_1", "ellipsis_n_bar_2", "only_npi_scope", "sentential_negation_npi_scope", "subject_aux_inversion",
    "matrix_question_npi_licensor_present",
}  # fmt: skip


@pytest.fixture(scope="module")
def pairs():
    return minimal_pairs(90, seed=3)


def _changes(row) -> list[tuple[str, str]]:
    """(good word, bad word) at the positions where the members differ, which have one length."""
    good, bad = read(row.good), read(row.bad)
    return [(a, b) for a, b in zip(good, bad, strict=True) if a != b]


def _of(pairs, *paradigms: str):
    """Pairs of these paradigms, of each of which there must be some: a loop over none would assert nothing."""
    chosen = pairs[pairs.paradigm.isin(paradigms)]
    assert set(chosen.paradigm) == set(paradigms)
    return chosen


def _words(*prefixes: str) -> set[str]:
    return {word for category, entries in LEXICON.items() if category.startswith(prefixes) for word in entries}


def _aligned(family: str, one: str, other: str) -> set[tuple[str, str]]:
    """(form one, form other) of every lemma, from the aligned categories, in both directions."""
    found = set()
    for category, entries in LEXICON.items():
        name, _, arguments = category.rstrip(")").partition("(")
        if name == family and one in arguments.split(","):
            twin = LEXICON[f"{name}({','.join(other if a == one else a for a in arguments.split(','))})"]
            found |= set(zip(entries, twin, strict=True)) | set(zip(twin, entries, strict=True))
    return found


def test_phenomena_and_counts(pairs):
    assert BLIMP_2023 | {"subject_aux_inversion"} == set(PHENOMENA)
    assert (pairs.groupby("phenomenon").size() == 90).all()
    assert set(pairs.phenomenon) == set(PHENOMENA)
    spread = pairs.groupby(["phenomenon", "paradigm"]).size().groupby("phenomenon").agg(["min", "max"])
    assert (spread["max"] - spread["min"] <= 1).all()


def test_members_are_distinct(pairs):
    assert pairs.duplicated(["good", "bad"]).sum() == 0
    for _, chosen in pairs.groupby("phenomenon"):
        members = [*chosen.good, *chosen.bad]
        assert len(set(members)) == len(members)


def test_good_is_in_the_language_and_bad_is_not(pairs):
    assert pairs.good[~pairs.good.map(recognises)].tolist() == []
    assert pairs.bad[pairs.bad.map(recognises)].tolist() == []


def test_same_words_in_another_order(pairs):
    for row in _of(pairs, *SAME_WORDS).itertuples():
        good, bad = Counter(read(row.good)), Counter(read(row.bad))
        for mark in ".?":  # a question against a statement
            good.pop(mark, None)
            bad.pop(mark, None)
        assert good == bad, row


def test_anaphors_change_only_the_anaphor(pairs):
    reflexives = {"himself", "herself", "themselves"}
    for row in pairs[pairs.phenomenon == "anaphor_agreement"].itertuples():
        ((good, bad),) = _changes(row)
        assert {good, bad} < reflexives
        assert ("themselves" in (good, bad)) == (row.paradigm == "anaphor_number_agreement")


def test_binding_changes_only_the_pronoun(pairs):
    pronouns = {"himself", "herself", "him", "her", "he", "she"}
    for row in pairs[pairs.phenomenon == "binding"].itertuples():
        ((good, bad),) = _changes(row)
        assert {good, bad} < pronouns


def test_subject_verb_agreement_changes_the_number_of_one_word(pairs):
    verbs = _aligned("V", "s", "base") | {("is", "are"), ("are", "is"), ("was", "were"), ("were", "was")}
    verbs |= {("has", "have"), ("have", "has")}
    for row in pairs[pairs.phenomenon == "subject_verb_agreement"].itertuples():
        (change,) = _changes(row)
        noun = row.paradigm.endswith("_2")
        assert change in (_aligned("NL", "sg", "pl") if noun else verbs), row
        if "regular_plural" in row.paradigm and noun:
            assert (change in _aligned("NI", "sg", "pl")) == row.paradigm.startswith("irregular")


def test_determiner_noun_agreement_changes_determiner_or_noun(pairs):
    determiners = {("this", "these"), ("these", "this"), ("that", "those"), ("those", "that")}
    nouns = {False: _aligned("NR", "sg", "pl"), True: _aligned("NI", "sg", "pl")}
    for row in pairs[pairs.phenomenon == "determiner_noun_agreement"].itertuples():
        (change,) = _changes(row)
        if row.paradigm.endswith("_1"):
            assert change in nouns["irregular" in row.paradigm], row
        else:
            assert change in determiners, row


def test_irregular_forms_change_past_and_participle(pairs):
    verbs = _aligned("V", "past", "part")
    for row in pairs[pairs.phenomenon == "irregular_forms"].itertuples():
        (change,) = _changes(row)
        if row.paradigm.endswith("verbs"):
            assert change in verbs, row
        else:
            assert change in {
                pair
                for category, entries in LEXICON.items()
                if category.startswith("PartAdj")
                for pair in zip(entries, LEXICON[category.replace("Adj", "Past")], strict=True)
            }


def test_argument_structure_changes_one_verb_or_one_argument(pairs):
    people, animate = _words("N(m,hum)", "N(f,hum)", "N(p,hum)"), ("animate_subject_passive", "animate_subject_trans")
    _of(pairs, *animate)  # they are there
    for row in pairs[pairs.phenomenon == "argument_structure"].itertuples():
        ((good, bad),) = _changes(row)
        if row.paradigm in animate:
            assert good in people and bad not in people
            continue
        forms = [{form for form in FORMS if word in _words("V(") and word in {
            w for c, entries in LEXICON.items() if c.startswith("V(") and c.endswith(f",{form})") for w in entries
        }} for word in (good, bad)]  # fmt: skip
        assert forms[0] & forms[1], row  # another lemma, the same form


def test_npi_and_quantifiers_change_the_licensor(pairs):
    allowed = {
        "only_npi_licensor_present": ({"only"}, {"even"}),
        "npi_present_1": (_words("Adverb"), {"ever"}),
        "sentential_negation_npi_licensor_present": ({"not"}, _words("Adverb")),
        "negation_yet": ({"not"}, _words("Adverb")),
        "existential_there_quantifiers_1": (_words("Weak"), _words("Strong")),
        "superlative_quantifiers_2": ({"the"}, {"no"}),
    }
    for paradigm, (good_words, bad_words) in allowed.items():
        for row in _of(pairs, paradigm).itertuples():
            ((good, bad),) = _changes(row)
            assert good in good_words and bad in bad_words, row
    for row in _of(pairs, "superlative_quantifiers_1").itertuples():
        assert _changes(row) == [("more", "at"), ("than", "least")]


def test_filler_gap_and_control_change_what_they_name(pairs):
    gaps = [f"wh_vs_that_{gap}{far}" for gap in ("no_gap", "with_gap") for far in ("", "_long_distance")]
    for row in _of(pairs, *gaps).itertuples():
        assert set(_changes(row)) in ({("that", "what")}, {("what", "that")})
    for row in _of(pairs, "wh_island").itertuples():
        assert _changes(row) == [("that", "who")]
    swaps = {"tough_vs_raising_1": ("Tough", "Raising"), "tough_vs_raising_2": ("Raising", "Tough")}
    for paradigm, (one, other) in swaps.items():
        for row in _of(pairs, paradigm).itertuples():
            ((good, bad),) = _changes(row)
            assert good in _words(one) and bad in _words(other)


def test_members_have_one_length(pairs):
    # pseudo-log-likelihoods are not normalised by length, so a shorter member would be favoured
    for row in pairs.itertuples():
        good, bad = len(read(row.good)), len(read(row.bad))
        assert good == bad, row


def test_seeds_and_subsets(pairs):
    assert minimal_pairs(90, seed=3).equals(pairs)
    assert not set(minimal_pairs(20, seed=4).good) <= set(pairs.good)
    subset = minimal_pairs(90, seed=3, phenomena=["binding"])
    assert subset.equals(pairs[pairs.phenomenon == "binding"].reset_index(drop=True))
    with pytest.raises(MaskLabError, match="unknown phenomenon 'bindings'"):
        minimal_pairs(5, seed=1, phenomena=["bindings"])
