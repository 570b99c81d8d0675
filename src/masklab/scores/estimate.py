"""From one value per replicate to a mean with its interval.

The unit of evidence is a replicate of the whole procedure, so an interval is a t interval over replicates (few, as a
rule). Where items are kept and are the same in every replicate (a test set), their choice is part of what was drawn at
random: the Multi-Bootstrap of Sellam et al. (2022) resamples replicates and items together. With three or five
replicates a bootstrap over them is far too narrow, so the parts are taken apart here: the variance of the mean over
replicates from their spread, that over items by resampling items alone, in all replicates alike, less what items do in
each replicate for itself, which is in the spread already; their sum has the degrees of freedom of Welch and
Satterthwaite. Of few replicates those degrees of freedom can grow faster than the
variance; an interval is therefore never narrower, and a level never lower, than over replicates alone. With many
replicates it is the Multi-Bootstrap's interval (tested).

Correlations, and their squares, have their intervals on Fisher's scale (`FISHER`, `squared`), so that these lie within
what a correlation can be. A replicate gives one correlation, over its points (model sizes, checkpoints, test items),
and only replicates count as independent: the sizes of a replicate share its language and its batches, and checkpoints
lie on one trajectory, so that the variance of 1 / (n - 3) that Fisher's z has over n independent points would make the
interval too narrow. Where the points are independent, both agree (tested).

Values that are made of whole numbers are rounded. Where replicates differ by one or more, their roundings are as good
as independent and part of their spread. Where they agree, all are rounded alike, and no number of replicates makes up
for it: the mean then has an error of a variance that is known, 1/12 of a whole number, of any degrees of freedom
(`shared_rounding`; the coverage of intervals is tested).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr, stdtrit

LEVEL = 0.95  # of every interval in figures, tables and claims
LARGEST_Z = 8.0  # of a correlation of 1


def fisher_z(r):
    """arctanh of correlations, finite at 1."""
    return np.clip(np.arctanh(np.clip(r, -1 + 1e-15, 1 - 1e-15)), -LARGEST_Z, LARGEST_Z)


@dataclass(frozen=True)
class Scale:
    """Where an interval is made: `to` a scale on which errors are about normal, and `back` to what is shown."""

    to: Callable = np.asarray
    back: Callable = float


PLAIN, FISHER = Scale(), Scale(fisher_z, math.tanh)


def squared(threshold: float = 0.0) -> Scale:
    """Of the square of a correlation, less `threshold`: Fisher's z of its size."""
    return Scale(
        lambda share: fisher_z(np.sqrt(np.clip(np.asarray(share, float) + threshold, 0, 1))),
        lambda z: math.tanh(max(z, 0.0)) ** 2 - threshold,
    )


@dataclass(frozen=True)
class Estimate:
    """A mean over replicates with its interval.

    value, low, high: on the scale that is shown; NaN bounds for one replicate. error: standard error of the mean, with
    dof degrees of freedom; spread: standard deviation of a replicate. replicates: how many; items: whether the error
    covers the choice of items too. scale: where error and spread are measured. half: half the width of the interval,
    before it is cut to what a value can be. parts: of how many numbers this is the one that was found to be the least.
    of: of the least of several numbers, the estimates of all. middle: the mean on the scale of the error, where `value`
    is not that mean shown back.
    """

    value: float
    low: float
    high: float
    error: float = math.nan
    dof: float = math.nan
    spread: float = math.nan
    replicates: int = 0
    items: bool = False
    scale: Scale = PLAIN
    half: float = math.nan
    parts: int = 1
    of: tuple["Estimate", ...] = ()
    middle: float = math.nan

    def centre(self) -> float:
        """The mean on the scale of the error."""
        return float(self.scale.to(self.value)) if math.isnan(self.middle) else self.middle

    def around(self, mean: float) -> "Estimate":
        """The same with the mean of the values as they are as its value, which its interval holds at least."""
        return replace(self, value=mean, low=min(self.low, mean), high=max(self.high, mean), middle=self.centre())

    def within(self, low: float, high: float) -> "Estimate":
        """The same with its interval cut to what a value can be."""
        return replace(self, low=max(self.low, low), high=min(self.high, high))


MISSING = Estimate(math.nan, math.nan, math.nan)


def _rounded() -> tuple[np.ndarray, np.ndarray]:
    """(variance, covariance of two) of numbers that are rounded to whole ones, as they spread more and more.

    Two numbers that are normal about one place with standard deviation s have errors of rounding whose covariance, over
    all places, is sum_k exp(-4 pi^2 k^2 s^2) / (2 pi^2 k^2), by the Fourier series of what rounding takes away: 1/12 at
    s = 0, 2 % of that at .3. Of the 1/12 that an error varies by, the rest adds to the spread that is seen.
    """
    spread, k = np.linspace(0, 1, 401)[:, None], np.arange(1, 400)
    shared = (np.exp(-((2 * np.pi * k * spread) ** 2)) / (2 * (np.pi * k) ** 2)).sum(1)
    shared *= 1 / 12 / shared[0]
    return spread[:, 0] ** 2 + 1 / 12 - shared, shared


SEEN, SHARED = _rounded()


def shared_rounding(spread: float, rounding: float) -> float:
    """Variance of the error of rounding that replicates share; spread: standard deviation of values over replicates.

    rounding: standard deviation of the error of one value; sqrt(1/12) of a whole number, less of a mean of several.
    """
    if not rounding:
        return 0.0
    size = 12 * rounding**2
    return size * float(np.interp(spread**2 / size, SEEN, SHARED, right=0.0))


def estimate(values, rounding: float = 0.0, scale: Scale = PLAIN, level: float = LEVEL, parts: int = 1) -> Estimate:
    """Mean of values [R] or [R, 1 + B] over replicates R, the B last columns being values under resampled items.

    rounding: standard deviation of what rounding does to a value, of values made of whole numbers.
    scale: where values are averaged. Values that are not finite give `MISSING`.
    parts: of how many numbers these were found to be the least. That the least is above a bound is tested as of one,
    since then all are; that it is below one was looked for so many times, and has a part of the level (Bonferroni).
    """
    values = np.asarray(values, float)
    values = values[:, None] if values.ndim == 1 else values
    if not len(values) or not np.isfinite(values).all():
        return MISSING
    values, back = scale.to(values), scale.back
    count, mean = len(values), float(values[:, 0].mean())
    if count < 2:
        return Estimate(back(mean), math.nan, math.nan, replicates=1, scale=scale)
    spread = float(values[:, 0].std(ddof=1))
    variances = [(spread**2 / count, count - 1)]
    draws = values.shape[1] - 1
    together = float(values[:, 1:].mean(0).var(ddof=1)) if draws > 1 else 0.0
    items = together > 1e-24 * max(1.0, mean * mean)  # more than the rounding of equal numbers
    if items:
        # (1 - 1 / R) of what items do in each replicate for itself; the mean has 1 / R of that, and so has its spread
        own = float(values[:, 1:].var(1, ddof=1).mean()) - together
        variances.append((max(together - max(own, 0.0) / (count - 1), 0.0), draws - 1))
    variances.append((shared_rounding(spread, rounding), math.inf))
    variance = sum(part for part, _ in variances)
    below = sum(part**2 / dof for part, dof in variances)
    dof = variance**2 / below if below else math.inf
    error = math.sqrt(variance)
    alone = spread / math.sqrt(count)

    def half(level):
        both = error * float(stdtrit(dof, (1 + level) / 2)) if error else 0.0
        return max(both, alone * float(stdtrit(count - 1, (1 + level) / 2)))

    low, high = back(mean - half(level)), back(mean + half(1 - (1 - level) / parts))
    return Estimate(back(mean), low, high, error, dof, spread, count, items, scale, (high - low) / 2, parts)


def least(estimates: list[Estimate]) -> Estimate:
    """The estimate of the least of several numbers, each of them estimated as one of so many `parts`.

    It is above a bound if all are, and below it if one is (Bonferroni); so its interval reaches from the least of the
    lower ends to the least of the upper ones. Error and spread are those of the number with the least mean; replicates
    are those of the one with the fewest, and of one replicate there is no interval.
    """
    if not all(each.replicates for each in estimates):
        return MISSING
    smallest = min(estimates, key=lambda each: each.value)
    low, high = (float(np.min([getattr(each, end) for each in estimates])) for end in ("low", "high"))  # NaN if one is
    fewest = min(each.replicates for each in estimates)
    return replace(smallest, low=low, high=high, half=(high - low) / 2, replicates=fewest, of=tuple(estimates))


def two_sided(estimated: Estimate, bound: float) -> tuple[float, float]:
    """(p, q): the least levels alpha at which the interval of confidence 1 - alpha lies above, and below, `bound`."""
    if estimated.of:
        above, below = zip(*(two_sided(each, bound) for each in estimated.of), strict=True)
        return max(above), min(below)
    bound = float(estimated.scale.to(bound))
    distance = estimated.centre() - bound
    if estimated.error == 0 or math.isnan(estimated.error):
        above = 0.0 if distance > 0 else 1.0
        return (above, 0.0 if distance < 0 else 1.0) if estimated.error == 0 else (1.0, 1.0)
    alone = estimated.spread / math.sqrt(estimated.replicates)  # the error over replicates alone
    errors = [(estimated.error, estimated.dof)] + ([(alone, estimated.replicates - 1)] if alone else [])
    above, below = (max(2 * float(stdtr(dof, -sign * distance / error)) for error, dof in errors) for sign in (1, -1))
    return min(1.0, above), min(1.0, below * estimated.parts)
