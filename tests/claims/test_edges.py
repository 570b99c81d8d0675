"""What rounding, unequal curves and unequal replicates must not decide; and the least of several numbers."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from masklab.claims.claim import Claim
from masklab.claims.effect_words import with_interval
from masklab.claims.effects import Correlation, Crossing, Growth, Least, Ratio, Reach, Slope, Sum, Within, difference
from masklab.claims.premises import friedman
from masklab.claims.values import effect_estimate, points, values
from masklab.claims.verdict import test_claims as verdicts
from masklab.scores.estimate import estimate, least, two_sided
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

SIZES = [(100, 400), (100, 200, 400), (250, 1000, 4000, 16000), tuple(range(10000, 110000, 10000))]


def results(numbers, **more):
    """numbers: (recipe, step, train_size) -> accuracy by replicate, of one task."""
    names = dict.fromkeys(recipe for recipe, _, _ in numbers)
    view = View(
        "s",
        panels={"all": {name.upper(): name for name in names if name != "null"}},
        recipes={name: {"steps": 400, "corpus": "c", "checkpoints": [100, 400]} for name in names},
        tasks={"t": {"metric": "accuracy", "kind": "label-files", "redrawn": True}},
        probes={"p": {"kind": "finetune", "tasks": ["t"], "recipes": list(names), "steps": "all"}},
        margin=0.05,
        **more,
    )
    rows = [
        {"recipe": recipe, "replicate": r, "step": step, "probe": "p", "task": "t", "split": "test"}
        | {"metric": "accuracy", "value": value, "n": 50, "train_size": size}
        for (recipe, step, size), own in numbers.items()
        for r, value in enumerate(own, 1)
        if value is not None
    ]
    return Results(view, rows_to_frame(rows))


def one(effect, found, region="above 0"):
    return verdicts([Claim("c", "1", "F", "t", effect, region, learned=False)], found).iloc[0]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("region", ["above 0", "below 0"])
def test_a_level_curve_has_no_slope(sizes, region):
    """Whatever a mean of logarithms is rounded to: 0, shown to be less than what counts."""
    found = results({("a", 400, size): [0.7, 1.0, 0.84] for size in sizes})
    slope = Reading("a", "accuracy", ("t",), over="train_size", reduce="slope")
    assert (values(slope, found).scalar == 0).all()
    assert one(slope, found, region)["verdict"] == "negligible"


@pytest.mark.parametrize("xs", [(0, 0.25, 0.5, 0.75, 1), (0.1, 0.2, 0.7)])
def test_equal_numbers_do_not_grow(xs):
    names = "abcde"[: len(xs)]
    found = results({(name, 400, 100): [0.7, 1.0, 0.84] for name in names})
    readings = tuple(Reading(name, "accuracy", ("t",)) for name in names)
    for effect in (Slope(readings, xs, "share"), Growth(readings, xs), Growth(readings)):
        assert (values(effect, found).scalar == 0).all() and one(effect, found)["verdict"] != "supported"


def test_exactly_0_is_negligible_where_a_little_is():
    found = results({(name, 400, 100): [0.5] * 4 for name in "ab"})
    gap = difference(*(Reading(name, "accuracy", ("t",)) for name in "ab"))
    assert one(gap, found)["verdict"] == "negligible" and one(gap, found)["needed"] == 0


def test_the_least_of_several_is_below_0_if_one_is():
    """The first is; the second reaches further down, and further up."""
    numbers = {"a": [0.470, 0.468, 0.472, 0.469, 0.471], "b": [0.45, 0.75, 0.50, 0.62, 0.43], "c": [0.5] * 5}
    found = results({(name, 400, 100): own for name, own in numbers.items()})
    gaps = [difference(Reading(name, "accuracy", ("t",)), Reading("c", "accuracy", ("t",))) for name in "ab"]
    alone = [effect_estimate(gap, found) for gap in gaps]
    assert alone[1].low < alone[0].low and alone[1].high > 0 > alone[0].high
    said = one(Least(tuple(gaps)), found)
    assert said["verdict"] == "contradicted" and said["value"] == pytest.approx(-0.03)
    assert said["low"] == pytest.approx(alone[1].low) and alone[0].high < said["high"] < 0
    assert two_sided(least([estimate(v, parts=2) for v in ([0.1, 0.2, 0.3], [0.2, 0.3, 0.5])]), 0.0)[
        0
    ] == pytest.approx(two_sided(estimate([0.1, 0.2, 0.3]), 0.0)[0])


@pytest.mark.parametrize("truth", [(0.0, 0.0, 0.0), (0.0, 0.5, 3.0)])
def test_intervals_of_the_least_cover(truth):
    """The least of three means, of which none or one is apart: in 95 % of 2,000 draws at least (three errors: .935)."""
    rng, hits, count = np.random.default_rng(3), 0, 2000
    for _ in range(count):
        made = least([estimate(mean + rng.normal(size=5), parts=len(truth)) for mean in truth])
        hits += made.low <= min(truth) <= made.high
    assert hits / count > 0.95 - 3 * (0.05 * 0.95 / count) ** 0.5


def test_correlations_pair_what_curves_have_at_the_same_place():
    """Accuracy at 1 to 6, the other at 2 to 7: at the five that both have they are equal."""
    rng = np.random.default_rng(4)
    course = rng.random(8)
    numbers = {("a", step, 100): [course[step]] * 3 for step in range(1, 7)}
    numbers |= {("b", step, 100): [course[step]] * 3 for step in range(2, 8)}
    found = results(numbers)
    curves = [Reading(name, "accuracy", ("t",), step="all", over="step") for name in "ab"]
    effect = Correlation((curves[0],), (curves[1],), points=5)
    assert points(effect, found) == 5 and values(effect, found).scalar == pytest.approx(1.0)
    level = results(
        {("a", step, 100): [0.7] * 3 for step in range(2, 8)} | {k: v for k, v in numbers.items() if k[0] == "b"}
    )
    assert np.isnan(values(effect, level).scalar).all()


def test_differences_correlate_as_readings_do():
    """Of each of six models its gain over a seventh, with what it reads itself: the numbers less one number."""
    rng = np.random.default_rng(5)
    numbers = {(name, 400, 100): rng.random(4) for name in "abcdefz"}
    found = results(numbers)
    *readings, last = (Reading(name, "accuracy", ("t",)) for name in "abcdefz")
    gains = tuple(difference(reading, last) for reading in readings)
    y, z = np.array([numbers[name, 400, 100] for name in "abcdef"]), numbers["z", 400, 100]
    wanted = [stats.pearsonr(y[:, r] - z[r], y[:, r]).statistic for r in range(4)]
    effect = Correlation(gains, tuple(readings), points=6)
    assert points(effect, found) == 6
    assert values(effect, found).scalar[:, 0] == pytest.approx(wanted) and one(effect, found)["verdict"] == "supported"
    said = one(Correlation(tuple(readings), gains, points=6, varied=True), found)["why"]
    assert re.fullmatch(r"A - Z.* is not shown to differ between the points \(Friedman's test: p = .*\)", said)


def test_a_curve_whose_cost_was_measured_elsewhere_crosses_nothing():
    """At other checkpoints than the curve."""
    steps = {("a", step, 100): [0.5, 0.6, 0.7] for step in (100, 400)}
    found = results(steps | {("b", step, 100): [0.1, 0.2, 0.3] for step in (200, 300)})
    curve, cost = (Reading(name, "accuracy", ("t",), step="all", over="step") for name in "ab")
    whole = Reading("b", "accuracy", ("t",))
    assert np.isnan(values(Crossing(curve, cost, Reading("a", "accuracy", ("t",)), whole), found).scalar).all()


def test_friedmans_test_of_two_columns_and_of_one():
    """By its formula, with the correction for ties (Hollander and Wolfe), where scipy asks for three columns."""
    rng = np.random.default_rng(1)
    for count in (3, 5, 20):
        numbers = rng.integers(0, 3, (count, 2)) + np.array([0.0, 0.6]) * rng.integers(0, 2)
        ranks = np.array([stats.rankdata(row) for row in numbers])
        ties = sum(row[0] == row[1] for row in numbers)
        chi = 12 / (count * 2 * 3) * (ranks.sum(0) ** 2).sum() - 3 * count * 3
        chi = chi / (1 - ties / count) if ties < count else 0.0
        assert friedman(numbers) == pytest.approx(stats.chi2.sf(chi, 1))
    assert friedman(np.arange(4.0)[:, None]) == 1.0


def test_a_replicate_without_the_last_checkpoint_is_left_out():
    found = results({("a", 100, 100): [0.5, 0.5, 0.55, 0.5], ("a", 400, 100): [0.9, 0.91, None, 0.92]})
    last = Reading("a", "accuracy", ("t",))
    assert values(last, found).replicates == (1, 2, 4) and values(last, found).scalar.min() == 0.9


def test_nulls_of_other_replicates_show_nothing():
    """Two recipes in replicates 1 to 3, their null in the fourth alone."""
    numbers = {("a", 400, 100): [0.9, 0.91, 0.92], ("b", 400, 100): [0.8, 0.81, 0.83]}
    numbers[("null", 400, 100)] = [None, None, None, 0.5]
    found = results(numbers, nulls={name: {"untrained": "null"} for name in "ab"})
    gap = difference(*(Reading(name, "accuracy", ("t",)) for name in "ab"))
    said = verdicts([Claim("c", "1", "F", "t", gap)], found).iloc[0]
    assert said["verdict"] == "untested" and said["why"].startswith(
        "no replicate has both it and its nulls: A: accuracy"
    )


def test_nulls_that_were_not_measured_whole_show_nothing():
    """Their gain is no number, of which no reader could make anything."""
    numbers = {("a", 400, size): [0.9, 0.91, 0.92] for size in (100, 200)}
    numbers |= {("b", 400, size): [0.8, 0.81, 0.83] for size in (100, 200)}
    numbers |= {("null", 400, 100): [0.5, 0.51, 0.5], ("null", 400, 200): [None, None, None, 0.5]}
    found = results(numbers, nulls={name: {"untrained": "null"} for name in "ab"})
    gap = difference(*(Reading(name, "accuracy", ("t",)) for name in "ab"))
    said = verdicts([Claim("c", "1", "F", "t", gap)], found).iloc[0]
    assert said["verdict"] == "untested" and "nan" not in said["why"]
    assert said["why"].startswith("no replicate has both it and its nulls: A: accuracy")


M = Reading("m", "accuracy")
EFFECT = "an effect must be a reading or made of some (own.Reading, own.difference(...), own.Sum, ..."


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"region": "over 0"}, "region must be one of above 0, below 0, equal, no more, no less (got 'over 0')"),
        ({"margin": "0.1"}, "margin must be a number above 0, or None for the study's (got '0.1')"),
        ({"margin": -1}, "margin must be a number above 0, or None for the study's (got -1)"),
        ({"section": None}, "section must be text (got None)"),
        ({"effect": 3}, f"{EFFECT}; got 3)"),
        ({"given": (3,)}, f"{EFFECT}; got 3)"),
        ({"learned_on": "test"}, "learned_on must be a tuple of names (got 'test')"),
        ({"learned_tasks": ["t"]}, "learned_tasks must be a tuple of names (got ['t'])"),
        ({"learned_by": "b"}, "learned_by must be a tuple of names (got 'b')"),
        ({"effect": Sum([(1.0, M)])}, f"an effect must be made of tuples, not of lists (got {Sum([(1.0, M)])!r})"),
        ({"effect": Sum(())}, f"an effect must be made of at least one reading (got {Sum(())!r})"),
        ({"given": (Ratio(M, Least(())),)}, "an effect must be made of at least one reading (got Ratio(top="),
    ],
)
def test_what_cannot_be_claimed_is_refused_when_it_is_said(wrong, said):
    fields = {"name": "c", "section": "1", "figure": "", "text": "t", "effect": Reading("m", "accuracy")} | wrong
    with pytest.raises(ValueError, match=re.escape(f"claim 'c': {said}")):
        Claim(**fields)


CURVE = Reading("a", "accuracy", ("t",), step="all", over="step")
NUMBER = Reading("b", "accuracy", ("t",))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: replace(CURVE, reduce="mean"), "reduce must be one of slope, roughness, or None (got 'mean')"),
        (lambda: replace(NUMBER, reduce="slope"), "a slope is one of a curve; say what it is over"),
        (lambda: replace(NUMBER, seeds="max"), "seeds must be one of mean, median (got 'max')"),
        (lambda: replace(NUMBER, form="logit"), "form must be one of value, log, share of the floor (got 'logit')"),
        (
            lambda: replace(NUMBER, sizes="smal"),
            "must be a whole number, or one of all, small, large, largest (got",
        ),
        (lambda: replace(NUMBER, step="lats"), "since converged (got 'lats')"),
        (lambda: replace(NUMBER, layers=True), "shallow, or None (got True)"),
        (lambda: Correlation((CURVE,), (CURVE,), "rho"), "statistic must be one of correlation, R2 (got 'rho')"),
        (lambda: Within((NUMBER,), (NUMBER,), statistic="r"), "one of slope, partial correlation (got 'r')"),
        (lambda: difference(CURVE, NUMBER), "of numbers or of curves, not of both"),
        (lambda: Ratio(NUMBER, CURVE), "of numbers or of curves, not of both"),
        (lambda: Correlation((difference(CURVE, CURVE),), (CURVE,)), "a correlation is of numbers or of readings"),
        (lambda: Crossing(difference(CURVE, CURVE), None, NUMBER, 80), "crossing: curve must be a reading over steps"),
        (lambda: Slope((Ratio(CURVE, CURVE),), (1.0,), "x"), "a slope is made of numbers"),
        (lambda: Least((CURVE, CURVE)), "the least or the median of several is made of numbers"),
        (lambda: Correlation((NUMBER, NUMBER), (NUMBER,)), "an x for each of its ys (got 1 for 2)"),
        (lambda: Correlation((NUMBER, CURVE), (NUMBER, NUMBER)), "of curves with curves over the same column"),
        (lambda: Correlation((CURVE,), (replace(CURVE, over="train_size"),)), "with curves over the same column"),
        (lambda: Correlation((CURVE,), (CURVE,), "R2", "0.5"), "of a correlation must be a number (got '0.5')"),
        (lambda: difference(NUMBER, NUMBER, "0.02"), "threshold of a sum or difference must be a number (got '0.02')"),
        (lambda: Sum((("1", NUMBER),)), "a weight of a sum or difference must be a number (got '1')"),
        (lambda: Ratio(NUMBER, NUMBER, None), "the threshold of a ratio must be a number (got None)"),
        (lambda: Slope((NUMBER, NUMBER), (1.0, math.nan), "x"), "an x of a slope must be a number (got nan)"),
        (
            lambda: Crossing(CURVE, None, NUMBER, 80, "half"),
            "the threshold of a crossing must be a number (got 'half')",
        ),
        (
            lambda: Correlation((difference(NUMBER, NUMBER),), (NUMBER,), equal_loss=True),
            "a correlation at equal loss is one of readings, each of one recipe",
        ),
        (lambda: Slope((NUMBER, NUMBER), (1.0,), "x"), "a number for each of its ys (got 1 for 2)"),
        (lambda: Slope((CURVE,), (1.0,), "x"), "made of numbers"),
        (lambda: Crossing(NUMBER, None, NUMBER, 80), "crossing: curve must be a reading over steps (got Reading"),
        (lambda: Crossing(CURVE, NUMBER, NUMBER, NUMBER), "crossing: cost must be a reading over steps (got Reading"),
        (lambda: Crossing(CURVE, None, NUMBER, NUMBER), "whole must be a number of updates"),
        (lambda: Crossing(CURVE, CURVE, NUMBER, 80), "whole must be a reading (got 80)"),
        (lambda: Crossing(CURVE, None, CURVE, 80), "the level of a crossing is made of numbers"),
        (lambda: Reach(CURVE, 0.5), "reach: curve must be a reading over training sizes"),
        (lambda: Reach(difference(CURVE, CURVE), 0.5), "reach: curve must be a reading over training sizes"),
        (lambda: Claim("c", "", "", "it", CURVE), "claim 'c': an effect must be a number, and this is a curve"),
        (lambda: Claim("c", "", "", "it", difference(CURVE, CURVE)), "claim 'c': an effect must be a number"),
        (lambda: Claim("c", "", "", "it", NUMBER, given=NUMBER), "claim 'c': given must be a tuple of effects (got Re"),
    ],
)
def test_what_no_number_can_be_made_of_is_refused_where_it_is_written(made, said):
    """A misspelt word would else pass for another, and the rest would end in a traceback once all is measured."""
    with pytest.raises(ValueError) as error:
        made()
    assert said in str(error.value) and "\n" not in str(error.value)


def test_a_small_number_is_written_with_the_digits_that_tell_it_from_none():
    assert with_interval(0.0124, -0.003, 0.0278) == "+0.012 [-0.003, +0.028]"
    assert with_interval(-6.7e-05, -0.00025, 0.0001) == "-0.00007 [-0.00025, +0.00010]"
    assert with_interval(0.5, 0.4, 0.6, items=True) == "+0.500 [+0.400, +0.600] (i)"
    assert with_interval(0.5, items=True) == "+0.500"
    assert with_interval(0.0) == "+0.000" and with_interval(-3e-7) == "-0.00000030"
