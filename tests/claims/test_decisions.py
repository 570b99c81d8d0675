"""What an estimate decides, at which level, and how many replicates would: against t tests of SciPy."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from masklab.claims.effects import Correlation, difference
from masklab.claims.power import MOST, Given, needed
from masklab.claims.values import effect_estimate
from masklab.claims.verdict import _corrected, _count, _least_level, _needed, decided
from masklab.scores.estimate import FISHER, Estimate, estimate, squared
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

INF = math.inf


@pytest.mark.parametrize(
    ("interval", "bounds", "verdict", "edge"),
    [
        ((0.1, 0.9), (0.0, 1.0), "supported", ""),
        ((0.0, 0.9), (0.0, 1.0), "inconclusive", "0"),
        ((0.1, 1.0), (0.0, 1.0), "inconclusive", "1"),
        ((-0.1, 1.1), (0.0, 1.0), "inconclusive", "0"),
        ((-0.5, 0.0), (0.0, 1.0), "contradicted", ""),
        ((1.0, 1.5), (0.0, 1.0), "contradicted", ""),
        ((0.1, 9.0), (0.0, INF), "supported", ""),
        ((-9.0, 0.0), (-INF, 0.5), "supported", ""),
        ((-9.0, 0.5), (-INF, 0.5), "inconclusive", "0.5"),
        ((0.4, 0.8), (-INF, 0.5), "inconclusive", "0.5"),
    ],
)
def test_a_region_is_open(interval, bounds, verdict, edge):
    why = f"the interval holds {edge}" if edge else ""
    assert decided(Estimate(sum(interval) / 2, *interval), bounds) == (why, verdict)


@pytest.mark.parametrize(
    ("interval", "bounds", "verdict"),
    [
        ((-0.02, 0.04), (0.0, INF), "negligible"),
        ((-0.04, 0.02), (-INF, 0.0), "negligible"),
        ((0.0, 0.04), (0.0, INF), "negligible"),
        ((-0.02, 0.04), (0.0, 0.05), "negligible"),  # said to be slightly above 0
        ((-0.02, 0.05), (0.0, INF), "inconclusive"),  # as much as what counts
        ((-0.05, 0.02), (0.0, INF), "inconclusive"),
        ((0.01, 0.04), (0.0, INF), "supported"),  # little, but there
        ((-0.04, -0.01), (0.0, INF), "contradicted"),
    ],
)
def test_what_holds_0_and_nothing_that_counts_is_negligible(interval, bounds, verdict):
    made = Estimate(sum(interval) / 2, *interval)
    why = {"negligible": "shown to be less than 0.05", "inconclusive": "the interval holds 0"}.get(verdict, "")
    assert decided(made, bounds, 0.05) == (why, verdict)
    assert decided(made, bounds)[1] == {"negligible": "inconclusive"}.get(verdict, verdict)


@pytest.mark.parametrize(
    ("interval", "bounds", "verdict"),
    [
        ((0.01, 0.04), (0.0, INF), "negligible"),  # there, but less than what counts
        ((-0.04, -0.01), (0.0, INF), "negligible"),
        ((-0.02, 0.04), (0.0, INF), "negligible"),
        ((0.01, 0.05), (0.0, INF), "supported"),
        ((-0.06, -0.01), (0.0, INF), "contradicted"),
        ((-0.02, 0.05), (0.0, INF), "inconclusive"),
    ],
)
def test_where_a_study_says_so_less_than_the_margin_is_negligible_whichever_its_sign(interval, bounds, verdict):
    made = Estimate(sum(interval) / 2, *interval)
    assert decided(made, bounds, 0.05, "negligible")[1] == verdict
    assert decided(made, bounds, 0.0, "negligible") == decided(made, bounds)  # any difference counts


@pytest.mark.parametrize("shift", [-0.06, -0.02, 0.0, 0.013, 0.05])
def test_levels_are_those_of_t_tests(shift):
    values = shift + np.array([0.003, -0.011, 0.008, 0.004])
    made = estimate(values)

    def p(bound, side):
        return stats.ttest_1samp(values, bound, alternative=side).pvalue

    for bound in (0.0, 0.01):
        two = stats.ttest_1samp(values, bound).pvalue
        assert _least_level(made, (bound, INF)) == pytest.approx(two, rel=1e-9)
        assert _least_level(made, (-INF, bound)) == pytest.approx(two, rel=1e-9)
    inside = 2 * max(p(-0.02, "greater"), p(0.02, "less"))
    outside = 2 * min(p(-0.02, "less"), p(0.02, "greater"))
    assert _least_level(made, (-0.02, 0.02)) == pytest.approx(min(inside, outside, 1.0), rel=1e-9)


def test_the_replicates_that_are_needed():
    rng = np.random.default_rng(1)
    values = 0.02 + 0.01 * rng.normal(size=(4, 1)) + 0.004 * rng.normal(size=(1, 50))
    for data, items in ((values[:, :1], 0.0), (values, values[:, 1:].mean(0).std(ddof=1))):
        for bounds in ((0.0, INF), (-0.03, 0.03), (-INF, 0.015)):
            spread = data[:, 0].std(ddof=1)
            wanted = needed([Given(data[:, 0].mean(), spread, bounds, items)])
            assert _needed(estimate(data), bounds) == (wanted or MOST + 1)
    assert _needed(estimate([0.01, -0.01, 0.001, -0.001]), (0.0, INF)) == MOST + 1 == 1001
    r = np.array([0.5, 0.7, 0.3])
    wanted = needed([Given(np.arctanh(r).mean(), np.arctanh(r).std(ddof=1), (np.arctanh(0.2), INF))])
    assert _needed(estimate(r, scale=FISHER), (0.2, INF)) == wanted > 3
    # no difference is too small to count where 0 is no 0 on the scale
    shares = estimate(np.tanh([0.0, 0.4, 0.8]) ** 2 - 0.5, scale=squared(0.5))
    assert _needed(shares, (0.0, INF)) == needed([Given(0.4, 0.4, (math.atanh(0.5**0.5), INF))]) == 8


def test_holms_correction_by_its_definition():
    p = [0.001, 0.02, np.nan, 0.013, 0.2]
    verdicts = ["supported", "contradicted", "untested", "supported", "inconclusive"]
    frame = pd.DataFrame({"p": p, "verdict": verdicts})
    order, kept = np.argsort(p)[:4], set()
    for rank, index in enumerate(order):
        if p[index] > 0.05 / (4 - rank):
            break
        kept.add(index)
    expected = [v if i in kept or v == "untested" else "inconclusive" for i, v in enumerate(verdicts)]
    assert _corrected(frame, [(each, 1.0) for each in p]) == expected
    # at .05 / 4 it is not shown on which side of 0 the fourth lies, but that it is near 0
    near = frame.assign(p=[0.001, 0.02, np.nan, 1e-9, 0.2])
    levels = [(0.001, 1.0), (0.02, 1.0), (np.nan, np.nan), (0.022, 1e-9), (0.2, 1.0)]
    assert _corrected(near, levels) == ["supported", "inconclusive", "untested", "negligible", "inconclusive"]
    # ... and that its difference is 0 may still be true: it goes on to count, until that is shown to be false as well
    levels[3] = (1e-9, 1e-9)
    assert _corrected(near, levels) == ["supported", "contradicted", "untested", "supported", "inconclusive"]
    assert _corrected(frame.iloc[[2]], levels[2:3]) == ["untested"]
    assert (_count(1), _count(2)) == ("one replicate", "2 replicates")


@pytest.mark.parametrize("small", ["sign", "negligible"])
@pytest.mark.parametrize(("truth", "false"), [(0.0, ("supported", "contradicted")), (4.0, ("negligible",))])
def test_of_many_claims_one_is_decided_wrongly_at_the_stated_level(truth, false, small):
    """Thirty claims of a difference that is 0, or just one that counts (4 standard errors), in a thousand studies.

    small: what a difference is called that is shown to be neither (`below_margin`).
    """
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(1000):
        z = truth + rng.standard_normal(30)
        region = 2 * stats.norm.sf(np.abs(z))
        near = 2 * np.maximum(stats.norm.cdf(z - 4), stats.norm.sf(z + 4))
        sided = np.where(z > 0, "supported", "contradicted")
        one, other = (region <= 0.05, sided), (near <= 0.05, "negligible")
        first, second = (other, one) if small == "negligible" else (one, other)
        verdicts = np.where(*first, np.where(*second, "inconclusive"))
        p = np.where(verdicts == "negligible", near, np.minimum(region, near))
        found = _corrected(pd.DataFrame({"p": p, "verdict": verdicts}), list(zip(region, near, strict=True)))
        wrong += any(verdict in false for verdict in found)
    assert wrong <= 50 + 2 * math.sqrt(1000 * 0.05 * 0.95)
    assert wrong > 10 or truth  # what counts is seldom taken for nothing: it is first shown not to be 0


def test_correlations_are_averaged_on_fishers_scale():
    rng, points = np.random.default_rng(2), 9
    y, x = rng.normal(size=(2, 3, points)).cumsum(2)
    rows = [
        {"recipe": recipe, "replicate": r + 1, "step": s, "probe": "r", "task": "c", "split": "test", "n": 9,
         "metric": "rank", "value": values[r, s]}
        for recipe, values in (("a", x), ("b", y)) for r in range(3) for s in range(points)
    ]  # fmt: skip
    probes = {"r": {"kind": "rank", "tasks": [], "recipes": ["a", "b"]}}
    found = Results(View("s", recipes={"a": {}, "b": {}}, probes=probes), rows_to_frame(rows))
    curves = [Reading(name, "rank", step="all", over="step") for name in "ab"]
    r = np.array([np.corrcoef(x[i], y[i])[0, 1] for i in range(3)])
    made = effect_estimate(Correlation((curves[1],), (curves[0],)), found)
    z = np.arctanh(r)
    low, high = np.tanh(stats.t.interval(0.95, 2, z.mean(), stats.sem(z)))
    assert (made.value, made.low, made.high) == pytest.approx((np.tanh(z.mean()), low, high))
    share = effect_estimate(Correlation((curves[1],), (curves[0],), "R2", 0.25), found)
    assert share.value == pytest.approx(np.tanh(np.arctanh(np.abs(r)).mean()) ** 2 - 0.25)
    last = [Reading(name, "rank") for name in "ab"]
    ranks = effect_estimate(difference(last[0], last[1]), found)
    assert ranks.spread == pytest.approx(max((x - y)[:, -1].std(ddof=1), np.sqrt(2 / 12)))
    assert effect_estimate(Reading("nobody", "rank"), found).replicates == 0
