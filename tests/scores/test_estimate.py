"""Intervals over replicates, and over replicates and items."""

import numpy as np
import pytest
from scipy import stats

from masklab.scores.estimate import FISHER, estimate, fisher_z, shared_rounding, squared, two_sided


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
    found = estimate([7.0, 7.0, 7.0], rounding=np.sqrt(1 / 12))
    assert found.half == pytest.approx(stats.norm.ppf(0.975) * np.sqrt(1 / 12), rel=0.001) and not found.items


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


@pytest.mark.parametrize("over", [(0.03, 0.15, 0.3), (0.0, 0.0, 0.3)])
@pytest.mark.parametrize("replicates", [3, 5, 10])
def test_coverage_over_replicates_and_items(replicates, over):
    """Of 1,000 experiments the interval misses the truth in 5 % (and three standard errors), items included.

    Also where items do all that they do in each replicate for itself: that part must not be counted twice (.01).
    """
    rng = np.random.default_rng(replicates)
    missed = 0
    for _ in range(1000):
        found = estimate(crossed(rng, replicates, 60, over, draws=100)[0])
        missed += not found.low < 0 < found.high
    assert abs(missed / 1000 - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 1000)


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


def by_hand(values, level=0.95, rounding=0.0):
    """(mean, half, error, dof) from the formulas, number by number (Satterthwaite 1946, equation 17)."""
    rows, columns = len(values), values.shape[1] - 1
    mean = sum(values[:, 0]) / rows
    spread = (sum((v - mean) ** 2 for v in values[:, 0]) / (rows - 1)) ** 0.5
    variance, below = spread**2 / rows, (spread**2 / rows) ** 2 / (rows - 1)
    if columns > 1:
        drawn = [sum(values[:, b]) / rows for b in range(1, columns + 1)]
        over = sum((d - sum(drawn) / columns) ** 2 for d in drawn) / (columns - 1)
        own = sum(sum((d - sum(v[1:]) / columns) ** 2 for d in v[1:]) / (columns - 1) for v in values) / rows
        over = max(over - (own - over) / (rows - 1), 0)
        variance, below = variance + over, below + over**2 / (columns - 1)
    variance += shared_rounding(spread, rounding)  # known, so that it is of any degrees of freedom
    dof, error = variance**2 / below, variance**0.5
    alone = stats.t.ppf((1 + level) / 2, rows - 1) * spread / rows**0.5
    return mean, max(stats.t.ppf((1 + level) / 2, dof) * error, alone), error, dof


@pytest.mark.parametrize("columns", [0, 1, 2, 3, 40])
@pytest.mark.parametrize("rows", [2, 3, 6])
@pytest.mark.parametrize("over_items", [0.01, 0.3, 3.0])
def test_an_interval_by_hand(rows, columns, over_items):
    rng = np.random.default_rng(rows)
    values = 5 + 0.3 * rng.normal(size=(rows, 1)) + over_items * rng.normal(size=(1, 1 + columns))
    values = values + 0.5 * over_items * rng.normal(size=values.shape)  # what items do in each replicate for itself
    for level, rounding in ((0.95, 0.0), (0.8, 0.0), (0.95, 1.0)):
        mean, half, error, dof = by_hand(values, level, rounding)
        found = estimate(values, rounding, level=level)
        assert (found.value, found.half, found.error) == pytest.approx((mean, half, error), rel=1e-9)
        assert (found.low, found.high) == pytest.approx((mean - half, mean + half), rel=1e-9)
        assert found.dof == pytest.approx(dof, rel=1e-9) and found.replicates == rows
        assert found.items == (columns > 1) and found.spread == pytest.approx(values[:, 0].std(ddof=1))


def test_equal_numbers_have_no_error_whatever_their_size():
    """The mean of equal numbers is not one of them in floating point: that is no choice of items."""
    for number in (0.1, 0.3, 1e6 / 3, 1e9 / 7, -1e9 / 7):
        found = estimate(np.full((3, 1001), number))
        assert not found.items and found.half == pytest.approx(0, abs=1e-6 * abs(number))
    exact = estimate([2.0, 2.0])
    assert (exact.half, exact.error, exact.dof, exact.low, exact.high) == (0, 0, np.inf, 2, 2)
    small = np.column_stack([[0.0] * 2, np.outer([1, 1], [1e-11, -1e-11])])
    assert estimate(small).items  # and what is small is not nothing


def test_the_scale_of_correlations():
    assert fisher_z([0.0, 0.5, -0.5]) == pytest.approx(np.arctanh([0.0, 0.5, -0.5]))
    for one in (1.0, 1 + 2.3e-16, 1 + 1e-9):
        assert (float(fisher_z(one)), float(fisher_z(-one))) == (8, -8)
    assert float(fisher_z(1 - 1e-6)) == pytest.approx(np.arctanh(1 - 1e-6)) and float(fisher_z(np.tanh(7.9))) < 8
    scale = squared(0.25)
    assert float(scale.to(0.5)) == pytest.approx(np.arctanh(0.75**0.5)) and scale.back(scale.to(0.5)) == pytest.approx(
        0.5
    )
    assert float(scale.to(-0.3)) == 0 and scale.back(-1.0) == -0.25 and float(scale.to(0.9)) == 8
    assert squared().back(0.5) == pytest.approx(np.tanh(0.5) ** 2)
    found = estimate([0.3, 0.5, 0.1], scale=squared())
    assert found.half == pytest.approx((found.high - found.low) / 2) and found.centre() == pytest.approx(
        np.arctanh(np.sqrt([0.3, 0.5, 0.1])).mean()
    )


def test_an_interval_is_cut_to_what_can_be():
    found = estimate([0.1, 0.9]).within(0.0, 1.0)
    assert (found.low, found.high) == (0, 1) and found.half > 1
    inner = estimate([0.4, 0.41]).within(0.0, 1.0)
    assert 0 < inner.low < inner.high < 1


@pytest.mark.parametrize("over_items", [0.0, 0.02, 0.5])
@pytest.mark.parametrize("bound", [-0.4, -0.05, 0.0, 0.07, 0.1, 0.5])
def test_levels_are_where_intervals_touch(over_items, bound):
    """The least level alpha at which the interval of confidence 1 - alpha lies on one side, found by bisection."""
    rng = np.random.default_rng(4)
    values = 0.07 + 0.1 * rng.normal(size=(4, 1)) + over_items * rng.normal(size=(1, 30))
    made = estimate(values)

    def level(above):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            there = estimate(values, level=1 - middle)
            inside = there.low > bound if above else there.high < bound
            low, high = (low, middle) if inside else (middle, high)
        return high

    assert two_sided(made, bound) == pytest.approx((level(True), level(False)), abs=1e-9)


def test_what_is_certain_or_unknown():
    certain = estimate([2.0, 2.0, 2.0])
    assert two_sided(certain, 1.0) == (0, 1) and two_sided(certain, 3.0) == (1, 0) and two_sided(certain, 2.0) == (1, 1)
    assert two_sided(estimate([2.0]), 1.0) == (1, 1)
    rho = np.array([0.2, 0.6, 0.4])
    p = stats.ttest_1samp(np.arctanh(rho), np.arctanh(0.1)).pvalue
    assert two_sided(estimate(rho, scale=FISHER), 0.1) == pytest.approx((p, 1.0))
    agreed = np.column_stack([[1.0] * 3, np.outer([1] * 3, [0.8, 1.3, 1.0, 1.1])])  # certain but for the items
    error = np.std([0.8, 1.3, 1.0, 1.1], ddof=1)
    assert two_sided(estimate(agreed), 0.5) == pytest.approx((2 * stats.t.sf(0.5 / error, 3), 1.0))
