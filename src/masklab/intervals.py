"""The error of a mean of values that depend on each other in groups."""

import numpy as np


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
