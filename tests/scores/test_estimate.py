"""Intervals over replicates, and over replicates and items."""

import numpy as np
import pytest
from scipy import stats

from masklab.scores.estimate import FISHER, estimate, two_sided


def test_the_interval_of_few_replicates_is_students():
    values = np.array([0.71, 0.74, 0.69, 0.77, 0.70])
    found = estimate(values)
    low, high = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (found.value, found.low, found.high) == pytest.approx((values.mean(), low, high))
    assert (found.replicates, found.items, found.dof) == (5, False, pytest.approx(4))


def test_one_replicate_has_no_interval_and_none_has_no_value():
    one, none = estimate([0.7]), estimate([])
    assert one.value == 0.7 and np.isnan([one.low, one.high]).all() and one.replicates == 1
    assert np.isnan(none.value) and none.replicates == 0
    assert np.isnan(estimate([0.7, np.nan, 0.8]).value)


def test_whole_numbers_that_agree_are_not_exact():
    found = estimate([7.0, 7.0, 7.0], least=np.sqrt(1 / 12))
    assert found.half == pytest.approx(stats.t.ppf(0.975, 2) * np.sqrt(1 / 12 / 3))


def test_correlations_stay_between_minus_one_and_one():
    found = estimate([0.99, 0.8, 0.999, 0.5], scale=FISHER)
    assert -1 < found.low < found.value < found.high < 1
    assert found.value == pytest.approx(np.tanh(np.mean(np.arctanh([0.99, 0.8, 0.999, 0.5]))))
    assert np.isfinite([estimate([1.0, 1.0, 0.9], scale=FISHER).value]).all()


def test_p_is_the_level_at_which_the_interval_touches_the_bound():
    values = np.array([0.1, 0.3, 0.25, 0.02])
    p = stats.ttest_1samp(values, 0.05)
    above, below = two_sided(estimate(values), 0.05)
    assert above == pytest.approx(p.pvalue) and below == pytest.approx(1.0)


def crossed(rng, replicates, items, over=(0.03, 0.15, 0.3), draws=400):
    """Values [R, 1 + B] of a mean over items of outcomes with effects of replicates, of items and of both."""
    outcomes = (
        over[0] * rng.normal(size=(replicates, 1))
        + over[1] * rng.normal(size=(1, items))
        + over[2] * rng.normal(size=(replicates, items))
    )
    counts = rng.multinomial(items, np.full(items, 1 / items), size=draws)
    return np.column_stack([outcomes.mean(1), outcomes @ counts.T / items]), outcomes


@pytest.mark.parametrize("replicates", [3, 5, 10])
def test_coverage_over_replicates_and_items(replicates):
    """Of 1,000 experiments the interval misses the truth in at most 5 % (and two standard errors), items included."""
    rng = np.random.default_rng(replicates)
    missed = 0
    for _ in range(1000):
        found = estimate(crossed(rng, replicates, 60, draws=100)[0])
        missed += not found.low < 0 < found.high
    assert missed / 1000 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 1000)


def test_replicates_alone_would_miss_too_often():
    rng = np.random.default_rng(5)
    missed = [estimate(crossed(rng, 5, 60, draws=2)[0][:, :1]) for _ in range(500)]
    assert np.mean([not found.low < 0 < found.high for found in missed]) > 0.1


def test_with_many_replicates_it_is_the_multi_bootstrap():
    """Sellam et al. (2022): replicates and items resampled together; half widths agree within 10 %."""
    rng = np.random.default_rng(1)
    values, outcomes = crossed(rng, 60, 200, draws=2000)
    drawn = []
    for _ in range(4000):
        rows, columns = rng.integers(60, size=60), rng.integers(200, size=200)
        drawn.append(outcomes[rows][:, columns].mean())
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert estimate(values).half == pytest.approx((high - low) / 2, rel=0.1)
