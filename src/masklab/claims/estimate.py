"""Effects as numbers with intervals, and how a region and an interval give a verdict."""

import math
from dataclasses import dataclass

from masklab.intervals import mean_interval

NORMAL = 1.959963984540054  # half width of a 95 % interval in standard errors, for means of many items


@dataclass(frozen=True)
class Estimate:
    """An effect with its 95 % interval; NaN where it cannot be computed.

    seeds: independent values behind it; None: the interval is over test items, not seeds.
    premise: False where what the claim presupposes does not hold; such a claim is inconclusive.
    """

    effect: float
    low: float
    high: float
    seeds: int | None
    premise: bool = True


def of_seeds(values, premise: bool = True, least: float = 0.0) -> Estimate:
    """Mean of one value per seed with its t interval; least: as of `mean_interval`."""
    mean, low, high = mean_interval(values, least=least)
    return Estimate(mean, low, high, len(values), premise)


def of_error(value: float, error: float, premise: bool = True) -> Estimate:
    """A value with its standard error over many test items: the normal interval."""
    return Estimate(value, value - NORMAL * error, value + NORMAL * error, None, premise)


MISSING = Estimate(math.nan, math.nan, math.nan, 0)


def bounds(region: str, margin: float) -> tuple[float, float]:
    """The open interval that a region stands for."""
    return {
        "above 0": (0.0, math.inf),
        "below 0": (-math.inf, 0.0),
        "equal": (-margin, margin),
        "no more": (-math.inf, margin),
        "no less": (-margin, math.inf),
    }[region]


def verdict(estimate: Estimate, region: tuple[float, float], fewest: int) -> str:
    """supported, contradicted or inconclusive, from an estimate and an open region."""
    few = estimate.seeds is not None and estimate.seeds < fewest
    if few or math.isnan(estimate.low) or not estimate.premise:
        return "inconclusive"
    if estimate.low > region[0] and estimate.high < region[1]:
        return "supported"
    if estimate.high < region[0] or estimate.low > region[1]:
        return "contradicted"
    return "inconclusive"
