"""Intervals against SciPy."""

import numpy as np
import pytest
from scipy import stats

from masklab.intervals import mean_and_error, mean_interval


def test_interval_is_scipys():
    values = np.random.default_rng(0).normal(size=7)
    mean, low, high = mean_interval(values)
    expected = stats.t.interval(0.95, 6, values.mean(), stats.sem(values))
    assert (low, high) == pytest.approx(expected, rel=1e-9) and mean == pytest.approx(values.mean())


def test_one_value_has_no_interval():
    mean, low, high = mean_interval([0.5])
    assert mean == 0.5 and np.isnan(low) and np.isnan(high)
    assert np.isnan(mean_interval([])).all()


def test_two_values_have_an_interval():
    """t with one degree of freedom, 12.706 standard errors to each side."""
    mean, low, high = mean_interval([1.0, 3.0])
    assert (
        mean == 2 and high - mean == pytest.approx(stats.t.ppf(0.975, 1)) and mean - low == pytest.approx(high - mean)
    )


def test_a_spread_that_is_too_small_to_be_believed():
    mean, _, high = mean_interval([2.0, 2.0, 2.0], least=0.3)
    assert high - mean == pytest.approx(stats.t.ppf(0.975, 2) * 0.3 / np.sqrt(3))


def test_the_error_of_grouped_values_is_the_ratio_estimates():
    """By its formula (Cochran 1977, 2.37), group by group; of groups of one value it is that of the mean."""
    values, groups = np.array([1.0, 2.0, 4.0, 8.0, 3.0]), np.array(["a", "a", "b", "b", "c"])
    mean, error = mean_and_error(values, groups)
    residues = [3.0 - 2 * mean, 12.0 - 2 * mean, 3.0 - mean]
    assert mean == pytest.approx(3.6)
    assert error == pytest.approx(np.sqrt(3 / 2 * sum(residue**2 for residue in residues)) / 5)
    values = np.random.default_rng(3).normal(size=9)
    assert mean_and_error(values, range(9)) == pytest.approx((values.mean(), stats.sem(values)))


def test_two_groups_have_an_error_and_one_has_none():
    assert mean_and_error([1.0, 3.0], [0, 1]) == pytest.approx((2.0, 1.0))
    mean, error = mean_and_error([1.0, 3.0], [0, 0])
    assert mean == 2 and np.isnan(error)
    assert np.isnan(mean_and_error([1.0] + [0.0] * 48, [0] * 49)[1])  # 49 times 1/49 is not 1: not infinite either
