"""How likely an experiment decides, and how many replicates it takes: exact for a t interval of normal values."""

import math
from dataclasses import dataclass

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
    if spread <= 0 and not items:
        return float((effect != bounds[0] and effect != bounds[1]) or abs(effect) < least)
    half, above, true = _widths(count, spread, items, parts)
    low, high = bounds
    inside = np.maximum(_below(high - above, effect, true) - _below(low + half, effect, true), 0)
    outside = _below(low - above, effect, true) + 1 - _below(high + half, effect, true)
    upper, lower = np.minimum(least - above, half), np.maximum(half - least, -above)  # of those that hold 0
    between = np.maximum(_below(upper, effect, true) - _below(lower, effect, true), 0) if least else 0.0
    return float(np.clip((inside + outside + between) @ _WEIGHTS / 2, 0, 1))


def _widths(count, spread, items, parts):
    """Half of the interval below the mean and above it, for every quantile of the spread; the mean's true error."""
    dof = count - 1
    # quantiles of the estimated spread, by Gauss-Legendre over their probabilities
    s = np.maximum(spread * np.sqrt(stats.chi2.ppf((_NODES + 1) / 2, dof) / dof), 1e-300)
    error = np.sqrt(s**2 / count + items**2)
    below = (s**2 / count) ** 2 / dof
    each_dof = np.minimum(error**4 / np.maximum(below, 1e-300), 1e9)  # more are as good as normal

    def width(level):  # as `estimate` has it
        return np.maximum(stdtrit(each_dof, level) * error, stdtrit(dof, level) * s / math.sqrt(count))

    true = math.sqrt(spread**2 / count + items**2)
    return width((1 + LEVEL) / 2), width(1 - (1 - LEVEL) / 2 / parts), true


def _below(bound, effect, error):
    return ndtr((bound - effect) / error)


@dataclass(frozen=True)
class Given:
    """What `power` takes beside the number of replicates: the truth, and when it counts as decided."""

    effect: float
    spread: float
    bounds: tuple[float, float]
    items: float = 0.0
    least: float = 0.0
    parts: int = 1


def power_of_least(count: int, several: list[Given]) -> float:
    """The same of the least of several numbers, which is above a bound if all are, and below it if one is.

    A lower limit, whatever the parts have to do with each other (Bonferroni); `power` of a single one.
    """
    if len(several) == 1:
        return power(count, **vars(several[0]))
    if count < 2:
        return 0.0
    sides = [_sides(count, one) for one in several]
    (low, high), least = several[0].bounds, several[0].least

    def above(bound):
        return max(0.0, 1 - sum(1 - own[0](bound) for own in sides)) if math.isfinite(bound) else float(bound < 0)

    def below(bound):
        return max(own[1](bound) for own in sides) if math.isfinite(bound) else float(bound > 0)

    apart = max(0.0, above(low) + below(high) - 1) + below(low) + above(high)
    near = above(-least) + below(least) - 1 if least else 0.0
    return min(1.0, max(apart, near))


def _sides(count, one):
    """Two functions of a bound: the probability that the interval of a number lies above it, and below it."""
    if one.spread <= 0 and not one.items:
        return (lambda bound: float(one.effect > bound)), (lambda bound: float(one.effect < bound))
    half, above, true = _widths(count, one.spread, one.items, one.parts)
    return (
        lambda bound: float((1 - _below(bound + half, one.effect, true)) @ _WEIGHTS / 2),
        lambda bound: float(_below(bound - above, one.effect, true) @ _WEIGHTS / 2),
    )


def needed(several: list[Given], fewest: int = 3) -> int | None:
    """Replicates that decide about the least of several numbers with probability `POWER` if the truth is as measured.

    No fewer than it takes (`power_of_least`), and `fewest` at least. None: more than `MOST`.
    """

    def enough(count):
        return power_of_least(count, several) >= POWER

    if not enough(MOST):
        return None
    low, high = fewest - 1, MOST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
