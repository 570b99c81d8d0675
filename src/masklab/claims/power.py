"""How likely an experiment decides, and how many replicates it takes: exact for a t interval of normal values."""

import math

import numpy as np
from scipy import stats
from scipy.special import ndtr, stdtrit

from masklab.scores.estimate import LEVEL

POWER = 0.8  # that an undecided claim is given replicates for
MOST = 1000  # replicates beyond which none are promised
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def power(
    count: int,
    effect: float,
    spread: float,
    bounds: tuple[float, float],
    items: float = 0.0,
    least: float = 0.0,
    parts: int = 1,
) -> float:
    """Probability that `count` replicates decide whether a mean lies in the open interval `bounds`, either way.

    effect: the true mean; spread: the standard deviation of a replicate; items: the standard error that the choice of
    test items adds, whatever the number of replicates; least: the difference that counts, of bounds of which one is 0
    and the other infinite; parts: of how many numbers the mean was the least. Decided: the interval lies inside, or
    wholly outside, or nearer to 0 than `least`.
    """
    if count < 2:
        return 0.0
    if spread <= 0:
        return float((effect != bounds[0] and effect != bounds[1]) or abs(effect) < least)
    dof = count - 1
    # quantiles of the estimated spread, by Gauss-Legendre over their probabilities
    s = spread * np.sqrt(stats.chi2.ppf((_NODES + 1) / 2, dof) / dof)
    error = np.sqrt(s**2 / count + items**2)
    below = (s**2 / count) ** 2 / dof
    each_dof = error**4 / np.maximum(below, 1e-300)

    def width(level):  # as `estimate` has it
        return np.maximum(stdtrit(each_dof, level) * error, stdtrit(dof, level) * s / math.sqrt(count))

    half, above = width((1 + LEVEL) / 2), width(1 - (1 - LEVEL) / 2 / parts)
    true = math.sqrt(spread**2 / count + items**2)
    low, high = bounds
    inside = np.maximum(_below(high - above, effect, true) - _below(low + half, effect, true), 0)
    outside = _below(low - above, effect, true) + 1 - _below(high + half, effect, true)
    upper, lower = np.minimum(least - above, half), np.maximum(half - least, -above)  # of those that hold 0
    between = np.maximum(_below(upper, effect, true) - _below(lower, effect, true), 0) if least else 0.0
    return float(np.clip((inside + outside + between) @ _WEIGHTS / 2, 0, 1))


def _below(bound, effect, error):
    return ndtr((bound - effect) / error)


def needed(
    effect: float,
    spread: float,
    bounds: tuple[float, float],
    items: float = 0.0,
    fewest: int = 3,
    least: float = 0.0,
    parts: int = 1,
) -> int | None:
    """Replicates that decide with probability `POWER` if the truth is as measured; None: more than `MOST`."""

    def enough(count):
        return power(count, effect, spread, bounds, items, least, parts) >= POWER

    if not enough(MOST):
        return None
    low, high = fewest - 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
