"""Errors of means of grouped values, by their formula and SciPy's."""

import numpy as np
import pytest
from scipy import stats

from masklab.intervals import mean_and_error


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
