"""Effects as numbers: [R, 1 + B], a value per replicate and under each resampling of items."""

import numpy as np

from masklab.claims.effects import Correlation, Crossing, Least, Median, Ratio, Slope, Sum
from masklab.scores.reading import Reading, leaves
from masklab.scores.results import NOTHING, Results, Values


def values(effect, results: Results) -> Values:
    """An effect's value in every replicate that all its readings have; of none if one was not measured."""
    if isinstance(effect, Reading):
        return results.values(effect)
    own = [values(part, results) for part in effect.readings()]
    replicates = [r for r in own[0].replicates if all(r in part.replicates for part in own)]
    if not replicates:
        return NOTHING
    own = [part.at(replicates) for part in own]
    with np.errstate(all="ignore"):
        data = _FORMS[type(effect)](effect, own)
    return Values(tuple(replicates), data[:, None])


def points(effect: Correlation, results: Results) -> int:
    """How many points a correlation is over."""
    return sum(results.values(part).data.shape[1] for part in effect.ys)


def _sum(effect, parts):
    return sum(weight * part.scalar for (weight, _), part in zip(effect.terms, parts, strict=True)) - effect.threshold


def _ratio(effect, parts):
    top, bottom = parts
    return top.scalar / bottom.scalar - 1 - effect.threshold


def _least(effect, parts):
    return np.min([part.scalar for part in parts], 0)


def _median(effect, parts):
    return np.median([part.scalar for part in parts], 0)


def _slope(effect, parts):
    x = np.asarray(effect.xs, float) - np.mean(effect.xs)
    return np.einsum("p,prb->rb", x, np.stack([part.scalar for part in parts])) / (x @ x)


def _correlation(effect, parts):
    half = len(effect.ys)
    y, x = (np.concatenate([part.data for part in own], 1) for own in (parts[:half], parts[half:]))
    y, x = y - y.mean(1, keepdims=True), x - x.mean(1, keepdims=True)
    r = (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))
    return r if effect.statistic == "correlation" else r**2 - effect.threshold


def _crossing(effect, parts):
    curve, level, *paid = parts
    rows, columns = level.scalar.shape
    if paid:
        cost, whole = paid[0], paid[1].scalar[:, 0]
        steps = [step for step in curve.x if step in cost.x]
        y = curve.data[:, [list(curve.x).index(step) for step in steps]]
        x = cost.data[:, [list(cost.x).index(step) for step in steps], 0]
    else:
        x, y, whole = np.tile(curve.x, (rows, 1)), curve.data, np.full(rows, effect.whole)
    found = np.empty((rows, columns))
    for r in range(rows):
        for b in range(columns):
            reached = first_reached(x[r], y[r, :, b], level.scalar[r, b])
            found[r, b] = (x[r, -1] if np.isnan(reached) else reached) / whole[r] - effect.threshold
    return found


def first_reached(costs, curve, level: float) -> float:
    """The cost at which a curve [P] first reaches `level`, on straight lines between its points; NaN if it never does.

    costs [P] rise; before the first point there is nothing: a level it has costs what it cost.
    """
    above = np.flatnonzero(curve >= level)
    if not len(above):
        return np.nan
    at = above[0]
    if at == 0:
        return float(costs[0])
    share = (level - curve[at - 1]) / (curve[at] - curve[at - 1])
    return float(costs[at - 1] + share * (costs[at] - costs[at - 1]))


_FORMS = {Sum: _sum, Ratio: _ratio, Least: _least, Median: _median, Slope: _slope, Correlation: _correlation,
          Crossing: _crossing}  # fmt: skip


def rounding(effect) -> float:
    """Least standard deviation of an effect on effective ranks, which are whole numbers: 1/12 is rounding's variance.

    Replicates whose ranks agree would else have an interval of no width. A mean over layers is rounded less: this is
    the most.
    """
    if isinstance(effect, Reading):
        return float(np.sqrt(1 / 12)) if effect.metric in ("rank", "rank_centred") else 0.0
    weights = [weight for weight, _ in effect.terms] if isinstance(effect, Sum) else [1.0] * len(leaves(effect))
    if not isinstance(effect, Sum):
        return 0.0
    return float(np.sqrt(sum((w * rounding(part)) ** 2 for w, (_, part) in zip(weights, effect.terms, strict=True))))
