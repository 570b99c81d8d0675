"""Means with their uncertainty: intervals over a few seeds, errors of grouped samples."""

import math

import numpy as np
from scipy.special import stdtrit

LEVEL = 0.95  # of every interval in figures and claims


def mean_interval(values, level: float = LEVEL, least: float = 0.0) -> tuple[float, float, float]:
    """(mean, low, high) of independent values: the t interval; low and high are NaN below two values.

    least: the least standard deviation of a value that is believed; whole numbers that agree are not exact.
    """
    values = np.asarray(values, float)
    if len(values) == 0:
        return math.nan, math.nan, math.nan
    mean = float(values.mean())
    if len(values) < 2:
        return mean, math.nan, math.nan
    critical = float(stdtrit(len(values) - 1, (1 + level) / 2))
    half = critical * max(float(values.std(ddof=1)), least) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def mean_and_error(values, groups) -> tuple[float, float]:
    """Mean of values [N] and its standard error when values of one group [N] depend on each other (ratio estimate).

    The error is NaN for fewer than two groups.
    """
    values, (_, group) = np.asarray(values, float), np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(group, values), np.bincount(group)
    mean = sums.sum() / counts.sum()
    n = len(counts)
    spread = np.sqrt((((sums - mean * counts) ** 2).sum()) * n / (n - 1)) if n > 1 else np.nan
    return float(mean), float(spread / counts.sum())
