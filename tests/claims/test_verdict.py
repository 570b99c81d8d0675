"""Claims against SciPy's paired t test and against known effects."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from masklab.claims.curve import MAJORITY, Curve, Curves, minus
from masklab.claims.curve_estimates import chosen, seed_effects
from masklab.claims.estimate import Estimate, bounds, of_error, of_seeds, verdict
from masklab.claims.spec import Claim, difference
from masklab.claims.verdict import test_claims
from masklab.curves import curves

ALL = ("A-D1", "B-D1", "A-D2", "B-D2")


def claim(effect, region="above 0"):
    return Claim("c", "5", "2", "text", Curves(tuple(effect)), region)


@pytest.fixture(scope="module")
def scores(dh):
    """Scores of the set single-50: w/ DH is .05 above w/o DH at 100 and 300, .01 below at 1000; noise of .01."""

    def accuracy(name, label, domain, size):
        lift = {"w/ DH": 0.05 if size < 1000 else -0.01}.get(label, 0.0)
        return 0.6 + lift + (0.02 if domain == "A-D1" else 0)

    return dh.dh_scores(accuracy, seeds=6)


@pytest.fixture(scope="module")
def rows(dh, scores):
    """Their curves by set."""
    return {name: curves(scores, dh.STUDY, name) for name in ("single-50", "single-0")}


def table(rows, label, domains, sizes):
    """Seed -> mean accuracy, the plain way."""
    part = rows[(rows.label == label) & rows.domain.isin(domains) & rows.train_size.isin(sizes)]
    return part.groupby("seed").accuracy.mean().to_numpy()


@pytest.mark.parametrize(("which", "sizes"), [("small", [100, 300]), ("large", [1000]), ("all", [100, 300, 1000])])
def test_a_difference_is_scipys_paired_t_test(dh, scores, rows, which, sizes):
    domains = ("A-D1", "B-D2")
    effect = difference(Curve("single-50", "w/ DH", domains, which), Curve("single-50", "w/o DH", domains, which))
    row = test_claims([claim(effect)], scores, dh.STUDY, "dh").iloc[0]
    pair = [table(rows["single-50"], label, domains, sizes) for label in ("w/ DH", "w/o DH")]
    result = stats.ttest_rel(*pair)
    interval = result.confidence_interval(0.95)
    assert (row.effect, row.low, row.high) == pytest.approx((np.mean(pair[0] - pair[1]), *interval), rel=1e-9)
    assert row.seeds == 6
    # The interval excludes 0 exactly where the two-sided test rejects at 5 %.
    assert (row.verdict != "inconclusive") == (result.pvalue < 0.05)
    assert which != "small" or (row.verdict == "supported" and 0.04 < row.effect < 0.06)


def test_verdicts_of_known_effects(dh, scores):
    at = {"domains": ALL, "set": "single-50"}
    with_, without = Curve(label="w/ DH", sizes="small", **at), Curve(label="w/o DH", sizes="small", **at)
    same = difference(Curve(label="CBOW", **at), Curve(label="scratch", **at))
    cases = [
        (difference(with_, without), "above 0", "supported"),
        (difference(without, with_), "above 0", "contradicted"),
        (difference(without, with_), "below 0", "supported"),
        (difference(with_, without), "equal", "contradicted"),
        (difference(with_, without), "no more", "contradicted"),
        (difference(with_, without), "no less", "supported"),
        (same, "equal", "supported"),
        (same, "no more", "supported"),
    ]
    found = test_claims([claim(effect, region) for effect, region, _ in cases], scores, dh.STUDY, "dh")
    assert list(found.verdict) == [verdict for _, _, verdict in cases]
    assert list(found.margin) == [0, 0, 0, 0.02, 0.02, 0.02, 0.02, 0.02]


def test_majority_trend_and_difference_of_differences(rows):
    domains = ("A-D2", "B-D1")
    chance = difference(Curve("single-50", "CBOW", domains), Curve("single-50", MAJORITY, domains))
    expected = table(rows["single-50"], "CBOW", domains, [100, 300, 1000]) - (0.52 + 0.55) / 2
    np.testing.assert_allclose(seed_effects(Curves(tuple(chance)), rows), expected, rtol=1e-12)
    trend = difference(Curve("single-50", "w/ DH", domains, "large"), Curve("single-50", "w/ DH", domains, "small"))
    expected = table(rows["single-50"], "w/ DH", domains, [1000]) - table(
        rows["single-50"], "w/ DH", domains, [100, 300]
    )
    np.testing.assert_allclose(seed_effects(Curves(tuple(trend)), rows), expected, rtol=1e-12)
    both = minus(chance, difference(Curve("single-0", "CBOW", domains), Curve("single-0", MAJORITY, domains)))
    expected = table(rows["single-50"], "CBOW", domains, [100, 300, 1000]) - table(
        rows["single-0"], "CBOW", domains, [100, 300, 1000]
    )
    np.testing.assert_allclose(seed_effects(Curves(tuple(both)), rows), expected, atol=1e-15)


def test_roughness_is_the_mean_absolute_second_difference():
    values = {"A-D1": [0.5, 0.8, 0.6, 0.7], "B-D1": [0.1, 0.2, 0.3, 0.4]}
    rows = pd.DataFrame(
        {"label": "x", "domain": d, "train_size": s, "seed": 1, "accuracy": v, "majority": 0.5}
        for d, row in values.items()
        for s, v in zip((1, 2, 4, 8), row, strict=True)
    )
    rough = ((1, Curve("s", "x", ("A-D1", "B-D1"), roughness=True)),)
    # A-D1: |.6 - 1.6 + .5| = .5 and |.7 - 1.2 + .8| = .3; B-D1: 0.
    assert seed_effects(Curves(rough), {"s": rows}).tolist() == pytest.approx([0.2])
    assert seed_effects(Curves(rough), {"s": rows[rows.train_size < 4]}).empty


def test_small_runs_are_inconclusive(dh):
    scores = dh.dh_scores(lambda name, label, domain, size: 0.9 if label == "w/ DH" else 0.5, sizes=(100,), seeds=4)
    effect = difference(Curve("single-50", "w/ DH", ALL), Curve("single-50", "w/o DH", ALL))
    trend = difference(Curve("single-50", "w/ DH", ALL, "large"), Curve("single-50", "w/ DH", ALL, "small"))
    found = test_claims([claim(effect), claim(trend, "no less")], scores, dh.STUDY, "dh")
    assert list(found.verdict) == ["inconclusive"] * 2
    assert list(found.seeds) == [4, 0]
    assert found.effect[0] == pytest.approx(0.4, abs=0.02) and np.isnan(found.effect[1])


def test_seeds_that_lack_a_cell_do_not_count(rows):
    cut = rows["single-50"]
    gone = (cut.label == "w/o DH") & (cut.domain == "B-D2") & (cut.train_size == 300) & (cut.seed == 2)
    effect = difference(Curve("single-50", "w/ DH", ("B-D2",)), Curve("single-50", "w/o DH", ("B-D2",)))
    assert list(seed_effects(Curves(tuple(effect)), {"single-50": cut[~gone]}).index) == [1, 3, 4, 5, 6]
    # A size that only one of them has is not compared.
    wide = cut[~((cut.label == "w/o DH") & (cut.train_size == 1000))]
    found = seed_effects(Curves(tuple(effect)), {"single-50": wide})
    pair = [table(cut, label, ("B-D2",), [100, 300]) for label in ("w/ DH", "w/o DH")]
    np.testing.assert_allclose(found, pair[0] - pair[1], rtol=1e-12)


def decided(low, high, region, seeds=5, premise=True):
    return verdict(Estimate((low + high) / 2, low, high, seeds, premise), bounds(region, 0.02), 5)


def test_regions():
    assert decided(0.001, 0.5, "above 0") == "supported"
    assert decided(0.001, 0.5, "above 0", seeds=4) == "inconclusive"
    assert decided(0.001, 0.5, "above 0", seeds=None) == "supported"  # over items
    assert decided(0.001, 0.5, "above 0", premise=False) == "inconclusive"
    assert decided(-0.001, 0.5, "above 0") == "inconclusive"
    assert decided(-0.5, -0.1, "above 0") == "contradicted"
    assert decided(-0.5, -0.1, "below 0") == "supported"
    assert decided(-0.019, 0.019, "equal") == "supported"
    assert decided(-0.021, 0.019, "equal") == "inconclusive"
    assert decided(-0.5, -0.03, "equal") == "contradicted"
    assert decided(-0.5, 0.019, "no more") == "supported"
    assert decided(0.021, 0.5, "no more") == "contradicted"
    assert decided(-0.5, -0.03, "no less") == "contradicted"
    assert decided(np.nan, np.nan, "equal") == "inconclusive"


def test_an_error_over_items_gives_the_normal_interval():
    estimate = of_error(1.0, 0.1)
    assert (estimate.low, estimate.high) == pytest.approx(stats.norm.interval(0.95, 1.0, 0.1))
    assert estimate.seeds is None


def test_halves():
    assert (chosen([1, 2, 3], "small"), chosen([1, 2, 3], "large")) == ([1, 2], [3])
    assert (chosen([1, 2, 3, 4], "small"), chosen([1, 2, 3, 4], "large")) == ([1, 2], [3, 4])
    assert (chosen([1], "small"), chosen([1], "large"), chosen([1], "all")) == ([1], [], [1])


def test_the_level_is_kept_under_the_null():
    """Of 4,000 paired tests without an effect about 5 % are decided: binomial, 4 standard errors."""
    effects = np.random.default_rng(3).normal(size=(4000, 5))
    found = [verdict(of_seeds(row), bounds("above 0", 0.02), 5) for row in effects]
    share = np.mean([name != "inconclusive" for name in found])
    assert abs(share - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 4000)
