"""Intervals against SciPy."""

import numpy as np
import pytest
from scipy import stats

from masklab.intervals import mean_interval


def test_interval_is_scipys():
    values = np.random.default_rng(0).normal(size=7)
    mean, low, high = mean_interval(values)
    expected = stats.t.interval(0.95, 6, values.mean(), stats.sem(values))
    assert (low, high) == pytest.approx(expected, rel=1e-9) and mean == pytest.approx(values.mean())


def test_one_value_has_no_interval():
    mean, low, high = mean_interval([0.5])
    assert mean == 0.5 and np.isnan(low) and np.isnan(high)
    assert np.isnan(mean_interval([])).all()
