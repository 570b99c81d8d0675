"""From one value per replicate to a mean with its interval.

The unit of evidence is a replicate of the whole procedure, so an interval is a t interval over replicates (few, as a
rule). Where items are kept and are the same in every replicate (a test set), their choice is part of what was drawn at
random: the Multi-Bootstrap of Sellam et al. (2022) resamples replicates and items together. With three or five
replicates a bootstrap over them is far too narrow, so the two parts are taken apart here: the variance of the mean over
replicates from their spread, that over items by resampling items alone, in all replicates alike; their sum has the
degrees of freedom of Welch and Satterthwaite. Of few replicates those degrees of freedom can grow faster than the
variance; an interval is therefore never narrower, and a level never lower, than over replicates alone. With many
replicates it is the Multi-Bootstrap's interval (tested).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

LEVEL = 0.95  # of every interval in figures, tables and claims
LARGEST_Z = 8.0  # of a correlation of 1


@dataclass(frozen=True)
class Estimate:
    """A mean over replicates with its interval.

    value, low, high: on the scale that is shown; NaN bounds for one replicate. error: standard error of the mean, with
    dof degrees of freedom; spread: standard deviation of a replicate. replicates: how many; items: whether the error
    covers the choice of items too. fisher: error and spread are those of Fisher's z of a correlation.
    """

    value: float
    low: float
    high: float
    error: float = math.nan
    dof: float = math.nan
    spread: float = math.nan
    replicates: int = 0
    items: bool = False
    fisher: bool = False

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def centre(self) -> float:
        """The mean on the scale of the error."""
        return fisher_z(self.value) if self.fisher else self.value


MISSING = Estimate(math.nan, math.nan, math.nan)


def fisher_z(r):
    """arctanh of correlations, finite at 1."""
    return np.clip(np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15)), -LARGEST_Z, LARGEST_Z)


def estimate(values, least: float = 0.0, fisher: bool = False, level: float = LEVEL) -> Estimate:
    """Mean of values [R] or [R, 1 + B] over replicates R, the B last columns being values under resampled items.

    least: the least standard deviation of a replicate that is believed: whole numbers that agree are not exact.
    fisher: the values are correlations, averaged as Fisher's z. Values that are not finite give `MISSING`.
    """
    values = np.asarray(values, float)
    values = values[:, None] if values.ndim == 1 else values
    if not len(values) or not np.isfinite(values).all():
        return MISSING
    values = fisher_z(values) if fisher else values
    back = math.tanh if fisher else float
    count, mean = len(values), float(values[:, 0].mean())
    if count < 2:
        return Estimate(back(mean), math.nan, math.nan, replicates=1, fisher=fisher)
    spread = max(float(values[:, 0].std(ddof=1)), least)
    parts = [(spread**2 / count, count - 1)]
    draws = values.shape[1] - 1
    over_items = float(values[:, 1:].mean(0).var(ddof=1)) if draws > 1 else 0.0
    if over_items > 1e-24 * max(1.0, mean * mean):  # more than the rounding of equal numbers
        parts.append((over_items, draws - 1))
    variance = sum(part for part, _ in parts)
    below = sum(part**2 / dof for part, dof in parts)
    dof = variance**2 / below if below else math.inf
    error = math.sqrt(variance)
    half = error * float(stdtrit(dof, (1 + level) / 2)) if error else 0.0
    half = max(half, spread / math.sqrt(count) * float(stdtrit(count - 1, (1 + level) / 2)))
    return Estimate(back(mean), back(mean - half), back(mean + half), error, dof, spread, count, len(parts) > 1, fisher)


def two_sided(estimated: Estimate, bound: float) -> tuple[float, float]:
    """(p, q): the least levels alpha at which the interval of confidence 1 - alpha lies above, and below, `bound`."""
    bound = float(fisher_z(bound)) if estimated.fisher else bound
    distance = estimated.centre() - bound
    if estimated.error == 0 or math.isnan(estimated.error):
        above = 0.0 if distance > 0 else 1.0
        return (above, 0.0 if distance < 0 else 1.0) if estimated.error == 0 else (1.0, 1.0)
    alone = estimated.spread / math.sqrt(estimated.replicates)  # the error over replicates alone
    errors = [(estimated.error, estimated.dof)] + ([(alone, estimated.replicates - 1)] if alone else [])
    above, below = (max(2 * float(stdtr(dof, -sign * distance / error)) for error, dof in errors) for sign in (1, -1))
    return min(1.0, above), min(1.0, below)
