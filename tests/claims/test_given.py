"""What a sentence presupposes must be there; and the least of several effects is not contradicted by looking often."""

import numpy as np
import pytest
from scipy import stats

from masklab.claims.claim import Claim
from masklab.claims.effects import Least, Median, Sum, difference
from masklab.claims.summary import in_general
from masklab.claims.values import effect_estimate
from masklab.claims.verdict import tested as judged
from masklab.scores.estimate import estimate, two_sided
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

A, B, C = (Reading(name, "accuracy", ("t",)) for name in "abc")


def results(**accuracies):
    """Results of recipes whose accuracies by replicate are given."""
    names, count = list(accuracies), len(next(iter(accuracies.values())))
    view = View(
        "s",
        panels={"p": {name.upper(): name for name in names}},
        recipes={name: {} for name in names},
        replicates=dict.fromkeys(names, count),
        tasks={"t": {"metric": "accuracy", "redrawn": True}},
        probes={"f": {"kind": "finetune", "tasks": ["t"], "recipes": names}},
    )
    rows = [
        {"recipe": name, "replicate": r, "step": 1, "probe": "f", "task": "t", "split": "test", "n": 9,
         "metric": "accuracy", "value": value}
        for name, own in accuracies.items() for r, value in enumerate(own, 1)
    ]  # fmt: skip
    return Results(view, rows_to_frame(rows))


@pytest.mark.parametrize(
    ("b", "verdict", "why"),
    [
        ([0.70, 0.71, 0.72], "supported", ""),  # b is above a
        ([0.50, 0.52, 0.48], "untested", "what it presupposes was not shown to be above 0"),  # it is not
        ([0.40, 0.41, 0.42], "untested", "what it presupposes was not shown to be above 0"),
        ([0.506, 0.517, 0.496], "untested", "what it presupposes was shown to be less than 0.02"),  # it is next to none
    ],
)
def test_what_a_sentence_presupposes_must_be_shown(b, verdict, why):
    found = results(a=[0.50, 0.51, 0.49], b=b, c=[0.30, 0.31, 0.32])
    claim = Claim("n", "1", "1", "c is below a, where b is above it", difference(C, A), "below 0")
    assert judged(claim, found)["verdict"] == "supported"
    given = Claim(**{**claim.__dict__, "given": (difference(B, A),)})
    row = judged(given, found)
    assert (row["verdict"], row["why"].split(":")[0]) == (verdict, why)
    assert (row["value"], row["low"], row["high"]) == pytest.approx(tuple(judged(claim, found)[k] for k in
                                                                          ("value", "low", "high")))  # fmt: skip
    assert ("f", "b") in given.needs(found.view)
    assert ("f", "b") not in claim.needs(found.view)


def test_what_was_not_measured_is_not_given():
    claim = Claim("n", "1", "1", "", difference(C, A), "below 0", given=(difference(B, A),))
    row = judged(claim, results(a=[0.50, 0.51, 0.49], b=[], c=[0.30, 0.31, 0.32]))
    assert (row["verdict"], row["why"].split(":")[0]) == ("untested", "what it presupposes was not measured")


def test_what_is_said_of_it_in_general_names_no_effect():
    words = ("b - a: t (+0.010 [-0.010, +0.030])", "(lowest of (b: t), (c: t)) - (a: t) (+0.010 [-0.010, +0.030])")
    said = {in_general(f"what it presupposes was not shown to be above 0: {effect}") for effect in words}
    assert said == {"what it presupposes was not shown to be above 0"}


LEAST = Least(tuple(Sum(((1.0, reading),), 0.5) for reading in (A, B, C)))


def test_the_least_of_three_lies_below_a_bound_at_a_third_of_the_level():
    """Its lower end is that of one number, its upper one SciPy's at 1 - .05 / 3."""
    draws = np.random.default_rng(2).normal(0.0, 0.05, (3, 6)) + np.array([[0.0], [-0.1], [0.05]])
    found = results(**dict(zip("abc", 0.5 + draws, strict=True)))
    whole, lowest = effect_estimate(LEAST, found), stats.ttest_1samp(draws[1], 0)
    assert whole.low == pytest.approx(lowest.confidence_interval(0.95).low)
    assert whole.high == pytest.approx(lowest.confidence_interval(1 - 0.05 / 3).high)
    assert two_sided(whole, 0.0)[1] == pytest.approx(3 * lowest.pvalue)
    median = stats.ttest_1samp(np.median(draws, 0), 0).confidence_interval(0.95)
    assert effect_estimate(Median(LEAST.parts), found).high == pytest.approx(median.high)


def test_of_three_effects_that_are_nothing_the_least_is_seldom_contradicted():
    """20,000 draws of five replicates: below 0 in 2.5 % at most; at the level of one number in more of the same."""
    drawn = np.random.default_rng(3).normal(size=(20000, 3, 5))
    lowest = stats.ttest_1samp(drawn, 0, axis=2).confidence_interval(0.95).low.argmin(1)
    below = np.take_along_axis(drawn, lowest[:, None, None], 1)[:, 0]
    one, third = (stats.ttest_1samp(below, 0, axis=1).confidence_interval(level).high for level in (0.95, 1 - 0.05 / 3))
    assert (third < 0).mean() < 0.025 < (one < 0).mean()
    for values, high in zip(below[:50], third, strict=False):  # what `estimate` says
        assert estimate(values, parts=3).high == pytest.approx(high)
