"""Intervals of correlations: Fisher's z over replicates, against SciPy's, and how often they hold the truth."""

import numpy as np
import pytest
from scipy import stats

from masklab.claims.power import Given, needed
from masklab.scores.estimate import FISHER, estimate, squared, two_sided


def correlations(rng, replicates, points, rho, size=()):
    """[..., R] correlations of normal pairs, `points` of them in each replicate."""
    x = rng.normal(size=(*size, replicates, points))
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=x.shape)
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


def test_over_many_replicates_of_independent_points_the_spread_is_scipys():
    """The half width that `pearsonr` gives one replicate is what the replicates' z spread by: within 5 %."""
    rng, points = np.random.default_rng(0), 20
    x = rng.normal(size=points)
    found = stats.pearsonr(x, 0.6 * x + 0.8 * rng.normal(size=points)).confidence_interval(0.95)
    scipys = (np.arctanh(found.high) - np.arctanh(found.low)) / 2 / stats.norm.ppf(0.975)
    ours = estimate(correlations(rng, 4000, points, 0.6), scale=FISHER)
    assert ours.spread == pytest.approx(scipys, rel=0.05) and scipys == pytest.approx(1 / np.sqrt(points - 3))


def test_it_is_students_interval_of_the_zs():
    values = np.array([-0.95, -0.80, -0.99, -0.90])
    found, z = estimate(values, scale=FISHER), np.arctanh(values)
    low, high = np.tanh(stats.t.interval(0.95, 3, z.mean(), stats.sem(z)))
    assert (found.value, found.low, found.high) == pytest.approx((np.tanh(z.mean()), low, high))
    assert two_sided(found, 0.0)[1] == pytest.approx(stats.ttest_1samp(z, 0).pvalue)


@pytest.mark.parametrize("rho", [0.0, -0.6, -0.9])
@pytest.mark.parametrize("replicates", [3, 5, 10])
def test_coverage(rho, replicates):
    """8 points a replicate, 2,000 experiments: never an end beyond 1, and within 2 points of 95 % of what a replicate
    of so many points shows on average; that is rho but for rho / 14 on Fisher's scale, which costs 5 points at most."""
    rng = np.random.default_rng(replicates)
    found = [estimate(own, scale=FISHER) for own in correlations(rng, replicates, 8, rho, (2000,))]
    average = np.tanh(np.arctanh(correlations(rng, 100_000, 8, rho)).mean())
    assert np.arctanh(average) == pytest.approx(np.arctanh(rho) + rho / 14, abs=0.02)
    assert np.mean([each.low < average < each.high for each in found]) == pytest.approx(0.95, abs=0.02)
    assert np.mean([each.low < rho < each.high for each in found]) > 0.9
    assert all(-1 <= each.low <= each.value <= each.high <= 1 for each in found)


def test_shared_noise_leaves_points_dependent():
    """Points that share a shift by replicate: an interval over points misses far more often than 5 %, ours does not."""
    rng, rho, missed = np.random.default_rng(2), 0.0, {"points": 0, "replicates": 0}
    for _ in range(400):
        shifts = 2 * rng.normal(size=(5, 1, 2)) * np.array([-1, 1, -1, 1, -1, 1, -1, 1])[:, None]
        points = rng.normal(size=(5, 8, 2)) + shifts  # sizes of a replicate move together
        own = [stats.pearsonr(*each.T) for each in points]
        interval = own[0].confidence_interval(0.95)
        missed["points"] += not interval.low < rho < interval.high
        found = estimate([each.statistic for each in own], scale=FISHER)
        missed["replicates"] += not found.low < rho < found.high
    assert missed["points"] / 400 > 0.3 and missed["replicates"] / 400 < 0.08


def test_the_share_of_variance_lies_within_what_it_can_be():
    """R2 less .5 on the scale of |r|: the interval of the square is the square of the interval."""
    r = np.array([-0.95, -0.99, -0.90])
    found, plain = estimate(r**2 - 0.5, scale=squared(0.5)), estimate(-r, scale=FISHER)
    assert (found.value, found.low, found.high) == pytest.approx(
        (plain.value**2 - 0.5, plain.low**2 - 0.5, plain.high**2 - 0.5)
    )
    assert found.high <= 0.5 and two_sided(found, 0.0)[0] == pytest.approx(two_sided(plain, np.sqrt(0.5))[0])
    low = estimate(np.array([0.3, 0.95, 0.8]) - 0.5, scale=squared(0.5))
    assert -0.5 <= low.low < low.value < low.high <= 0.5
    bounds = float(low.scale.to(0.0)), np.inf
    assert bounds[0] == pytest.approx(np.arctanh(np.sqrt(0.5)))
    assert needed([Given(low.centre(), low.spread, bounds)]) > 3
