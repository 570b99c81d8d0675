"""Student's t against SciPy."""

import numpy as np
import pytest
from scipy import stats

from masklab.statistics import mean_interval, t_critical, t_probability


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 9, 10, 30, 101])
def test_t_is_scipys(df):
    for t in (0.0, 0.3, 1.7, 12.7):
        assert t_probability(t, df) == pytest.approx(1 - 2 * stats.t.sf(t, df), abs=1e-12)
    for level in (0.5, 0.9, 0.95, 0.999):
        assert t_critical(df, level) == pytest.approx(stats.t.ppf((1 + level) / 2, df), rel=1e-9)


def test_interval_is_scipys():
    values = np.random.default_rng(0).normal(size=7)
    mean, low, high = mean_interval(values)
    expected = stats.t.interval(0.95, 6, values.mean(), stats.sem(values))
    assert (low, high) == pytest.approx(expected, rel=1e-9) and mean == pytest.approx(values.mean())


def test_one_value_has_no_interval():
    mean, low, high = mean_interval([0.5])
    assert mean == 0.5 and np.isnan(low) and np.isnan(high)
    assert np.isnan(mean_interval([])).all()
