"""Values of a reading, replicate by replicate: a number or a curve, with what resampled items make of it."""

from dataclasses import dataclass, replace

import numpy as np

from masklab.scores.estimate import Estimate, estimate


@dataclass(frozen=True)
class Values:
    """A reading's values: data [R, P, 1 + B] of R replicates, P points of a curve (one of a number), B resamplings.

    replicates: their numbers; x: [P] what the curve is over, None of a number. given: of models in which nothing is
    drawn, made elsewhere or no network, or of no model.
    """

    replicates: tuple[int, ...]
    data: np.ndarray
    x: np.ndarray | None = None
    given: bool = False

    @property
    def scalar(self) -> np.ndarray:
        """[R, 1 + B] of a number."""
        if self.data.shape[1] != 1:
            raise ValueError("a curve is no number")
        return self.data[:, 0]

    def at(self, replicates) -> "Values":
        """Those of some replicates, in their order."""
        rows = [self.replicates.index(r) for r in replicates]
        return replace(self, replicates=tuple(replicates), data=self.data[rows])

    @property
    def is_one(self) -> bool:
        """Whether all replicates are one: of a given model, for which no probe or task drew anything either."""
        same = np.broadcast_to(self.data[:1], self.data.shape)
        return self.given and np.array_equal(self.data, same, equal_nan=True)

    @property
    def evidence(self) -> "Values":
        """What intervals are made of: a single replicate, where all are one."""
        return self.at(self.replicates[:1]) if self.is_one else self


NOTHING = Values((), np.empty((0, 1, 1)))


def in_all(several) -> list[int]:
    """The replicates that all of several values have, in the order of the first."""
    first, *others = several
    return [r for r in first.replicates if all(r in each.replicates for each in others)]


def at_same(one: Values, other: Values) -> tuple[Values, Values]:
    """Two curves at the points that both have; numbers as they are."""
    if one.x is None or other.x is None or np.array_equal(one.x, other.x):
        return one, other
    shared = np.intersect1d(one.x, other.x)
    return tuple(replace(each, data=each.data[:, np.isin(each.x, shared)], x=shared) for each in (one, other))


def difference(left: Values, right: Values) -> Estimate | None:
    """Mean and interval of the differences of two numbers within the replicates that both have; None without any."""
    shared = in_all((left, right))
    if not shared:
        return None
    left, right = left.at(shared), right.at(shared)
    apart = left.scalar - right.scalar
    return estimate(apart[:1] if left.is_one and right.is_one else apart)


def reduced(curve: Values, reading) -> np.ndarray:
    """[R, 1, 1 + B] from a curve."""
    x = np.log2(curve.x) if reading.over == "train_size" else np.asarray(curve.x, float)
    data = curve.data
    if reading.reduce == "slope":
        if len(x) < 2:
            return np.full((len(data), 1, data.shape[2]), np.nan)
        centred = x - x.mean()
        # less the first: numbers that add up to 0 but for rounding would make a slope of a level curve
        return np.einsum("p,rpb->rb", centred, data - data[:, :1])[:, None] / (centred @ centred)
    if len(x) < 3:
        return np.full((len(data), 1, data.shape[2]), np.nan)
    share = ((x[1:-1] - x[:-2]) / (x[2:] - x[:-2]))[None, :, None]
    between = data[:, :-2] * (1 - share) + data[:, 2:] * share
    return np.abs(data[:, 1:-1] - between).mean(1, keepdims=True)
