"""The three readings of Pr(s | first words) against every derivation, one by one."""

import numpy as np
import pytest
from derivations import derivations

from masklab.config.schema import Grammar
from masklab.corpora.pcfg.law import Law
from masklab.corpora.pcfg.read import parse_rules
from masklab.corpora.pcfg.rules import draw_rules
from masklab.corpora.pcfg.sample import sample
from masklab.corpora.pcfg.span_scores import left_prior, span_scores

READINGS = ("marginal", "inside", "outside")
SMALL = Grammar(levels=[2, 2, 3], words=4, start_rules=2, rules=3, emissions=3, stop=0.4, stop_words=2)
DEEP = Grammar(levels=[2, 2, 2, 2], words=2, start_rules=1, rules=1, emissions=1, stop=0.5)


def enumerated(rules, words, span, reading, longest):
    """The score of each symbol over the first min(span, T) of `words`, by its definition."""
    width, found = min(span, len(words)), np.zeros(len(rules))
    first, whole = tuple(words[:width]), len(words) <= span
    if reading == "inside":
        for p, sentence, nodes in derivations(rules, width, np.ones(len(rules))):
            found[nodes[0][0]] += p * (sentence == first)
        return found
    # a proper beginning may be one of any sentence, or of this one
    anything = reading == "marginal" and not whole
    lengths = range(width + 1, longest + 1) if anything else [len(words)]
    for length in lengths:
        for p, sentence, nodes in derivations(rules, length):
            if sentence[:width] == first and (reading == "marginal" or sentence == tuple(words)):
                for symbol, start, wide in nodes:
                    found[symbol] += p * (start == 0 and wide == width)
    return found


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(
    "grammar,longest,spans", [(SMALL, 4, (1, 2, 3, 4)), (DEEP, 8, (2, 4, 8))], ids=["small", "deep"]
)
def test_scores_are_proportional_to_enumeration(grammar, longest, spans, reading):
    law = Law(draw_rules(grammar, 1))
    assert law.rules.longest() == longest
    words, lengths = sample(law.rules, 15, 1, "spans", min_length=3)
    proper = labelled = 0
    for span in spans:
        scores = span_scores(law, words, lengths, span, reading)
        for row, length, found in zip(words.tolist(), lengths, scores, strict=True):
            wanted = enumerated(law.rules, row[:length], span, reading, longest)
            assert (found > 0).any() == (wanted > 0).any()
            if wanted.any():
                assert np.abs(found / found.sum() - wanted / wanted.sum()).max() < 1e-10
                labelled += 1
                proper += span < length
    assert labelled > 15 and proper > 3


def test_the_prior_of_a_left_recursive_grammar_counts_nodes():
    """Expected nodes on the left edge: S1 -> S1 A with .6 gives .6 + .6^2 + ... = 1.5 of S1, and A by S1 -> A A."""
    rules = parse_rules("S S1 1\nS1 S1 A .6\nS1 A A .4\nA a 1\n", "test")
    assert dict(zip(rules.names, left_prior(rules), strict=True)) == pytest.approx({"S1": 1.5, "A": 1.0})


def test_readings_differ():
    law = Law(draw_rules(Grammar(), 1))
    words, lengths = sample(law.rules, 500, 1, "readings", min_length=12)
    labels = {reading: span_scores(law, words, lengths, 8, reading) for reading in READINGS}
    known = np.all([scores.any(1) for scores in labels.values()], axis=0)
    labels = {reading: scores[known].argmax(1) for reading, scores in labels.items()}
    assert known.sum() > 100
    assert all((labels["marginal"] != labels[other]).mean() > 0.05 for other in ("inside", "outside"))
    whole = {reading: span_scores(law, words, lengths, 32, reading).argmax(1) for reading in READINGS}
    assert (whole["marginal"] == whole["outside"]).all() and (whole["marginal"] != whole["inside"]).any()
