"""Effects as numbers: [R, 1 + B], a value per replicate and under each resampling of items; and as estimates."""

import itertools
from dataclasses import replace

import numpy as np

from masklab.claims.claim import loss_of
from masklab.claims.effects import (
    Correlation,
    Crossing,
    Growth,
    Least,
    Lowest,
    Matched,
    Median,
    Mediated,
    Ratio,
    Reach,
    Slope,
    Sum,
    Within,
)
from masklab.scores.estimate import FISHER, MISSING, PLAIN, Estimate, estimate, fisher_z, least, squared
from masklab.scores.per_replicate import NOTHING, Values, at_same, in_all
from masklab.scores.reading import FEWEST, Reading
from masklab.scores.results import Results


def values(effect, results: Results) -> Values:
    """An effect's value in every replicate that all its readings have; of none if one was not measured."""
    if isinstance(effect, Reading):
        return results.values(effect)
    parts = [values(part, results) for part in effect.readings()]
    replicates = in_all(parts)
    if not replicates:
        return NOTHING
    parts = [part.at(replicates) for part in parts]
    with np.errstate(all="ignore"):
        data = _FORMS[type(effect)](effect, parts)
    return Values(tuple(replicates), data[:, None], given=all(part.is_one for part in parts))


def effect_estimate(effect, results: Results, parts: int = 1, replicates=None) -> Estimate:
    """Mean and interval of an effect; `MISSING` where no replicate has all of it.

    parts: of how many effects it is one, of which the least is asked for. replicates: over these alone.
    """
    if isinstance(effect, Least) and not isinstance(effect, Median):
        return least([effect_estimate(part, results, parts * len(effect.parts), replicates) for part in effect.parts])
    measured = values(effect, results)
    if not measured.replicates:
        return MISSING
    measured = (measured if replicates is None else measured.at(replicates)).evidence
    if isinstance(effect, Reading):  # one number, here and in tables and figures
        return results.uncut(measured.scalar, effect, parts)
    return estimate(measured.scalar, rounding(effect, results), _scale(effect), parts=parts)


def _scale(effect):
    """Where an interval is made: of correlations Fisher's scale."""
    if isinstance(effect, Correlation | Within) and effect.statistic != "slope":
        return squared(effect.threshold) if effect.statistic == "R2" else FISHER
    return PLAIN


def at_equal_loss(effect, results: Results):
    """An effect that is about recipes at equal loss alone, without the others; any other effect as it is.

    Of the recipes whose mean losses are equal those count that are also shown to be so; of a growth where there is none
    the first of the former, so that the claim can say what failed.
    """
    if isinstance(effect, Growth):
        return _equal_growth(effect, results)
    if isinstance(effect, Matched):
        return _with_neighbours(effect, results)
    if isinstance(effect, Correlation | Within) and effect.equal_loss:
        return _of_recipes(effect, _shown_lowest([y.recipe for y in effect.ys], effect, results))
    return effect


def _shown_lowest(recipes, effect, results) -> list[str]:
    """Recipes of an effect's `ys` whose mean loss is the lowest, and those that are shown to have it."""
    kept = results.at_equal_loss(recipes)
    own = {y.recipe: y for y in effect.ys if y.recipe in kept}
    losses = {name: loss_of(y) for name, y in own.items()}
    means = dict(zip(losses, results.means(losses.values()), strict=True))
    lowest = min(means, key=means.get, default=None)

    def equal(name):
        return results.shown_equal(losses[name], losses[lowest], _few((own[name], own[lowest]), results))

    return [name for name in losses if name == lowest or equal(name)]


def _few(parts, results) -> bool:
    """Whether a single replicate may show that losses are equal: where no more decide about these readings."""
    shared = results.shared(parts) or []
    return len(shared) < FEWEST or all(results.values(part).at(shared).is_one for part in parts)


def _of_recipes(effect, kept):
    """A `Correlation` or `Within` of these recipes alone; of none left it stays as it is."""
    own = [y.recipe for y in effect.ys]
    fields = {"xs", "ys"} | ({"givens"} if isinstance(effect, Within) else set())
    if not kept:
        return effect
    return replace(
        effect,
        **{
            field: tuple(part for at, part in enumerate(getattr(effect, field)) if own[at % len(own)] in kept)
            for field in fields
        },
    )


def _equal_growth(effect, results):
    last, kept = len(effect.parts) - 1, results.at_equal_loss([part.recipe for part in effect.parts])
    near = [place for place, part in enumerate(effect.parts[:-1]) if part.recipe in kept]
    gaps = [loss_of(part) for part in effect.parts]
    if not effect.at:
        equal = [place for place in near if results.shown_equal(gaps[place], gaps[last])]
        return effect.chosen([*(equal or near)[:1], last])
    means = results.means(gaps)
    lowest = min([*near, last], key=lambda place: means[place])
    equal = [at for at in (*near, last) if at == lowest or results.shown_equal(gaps[at], gaps[lowest])]
    return effect.chosen(equal if last in equal and len(equal) > 1 else [*near[:1], last])


def _with_neighbours(effect, results):
    """A `Matched` of the first other whose loss the course passes, and of the two neighbours between which it does."""
    for other in effect.others:
        for left, right in itertools.pairwise(effect.course):
            before, after, level = results.means([left[1], right[1], other[1]])
            if before > level >= after:
                return Matched((left, right), (other,), matched=True)
    return effect


def points(effect: Correlation | Within | Mediated, results: Results) -> int:
    """Points of a correlation, in each replicate; of a slope over replicates what is left to the errors of each fit.

    That is, with a replicate left out: the numbers less a mean for each recipe and for each replicate, and the slopes.
    """
    effect = effect.within if isinstance(effect, Mediated) else effect
    if isinstance(effect, Within) and len(effect.ys) < 2:
        return 0
    if isinstance(effect, Within):
        left = len(values(effect, results).replicates) - 2
        return (len(effect.ys) - 1) * left - 1 - len(effect.givens) // len(effect.ys)
    pairs = ((values(part, results) for part in pair) for pair in zip(effect.ys, effect.xs, strict=True))
    return sum(y.data.shape[1] for y, _ in itertools.starmap(at_same, pairs))


def _sum(effect, parts):
    return sum(weight * part.scalar for (weight, _), part in zip(effect.terms, parts, strict=True)) - effect.threshold


def _ratio(effect, parts):
    top, bottom = parts
    return top.scalar / bottom.scalar - 1 - effect.threshold


def _least(effect, parts):
    # one part for all replicates: the least in each of them would be below all parts by chance alone
    missing = next((part.scalar for part in parts if np.isnan(part.scalar[:, 0]).any()), None)
    return min((part.scalar for part in parts), key=_lower_end) if missing is None else missing


def _lowest(effect, parts):
    return np.min([part.scalar for part in parts], 0)


def _lower_end(values) -> float:
    """Of its 95 % interval; of one replicate its value. If the least of these is above 0, all are."""
    made = estimate(values)
    return made.low if made.replicates > 1 else made.value


def _growth(effect, parts):
    if len(parts) < 2:
        return np.full_like(parts[0].scalar, np.nan)
    # less the first: weights that add up to 0 but for rounding would make something of what does not grow
    first = parts[0].scalar
    return sum(weight * (part.scalar - first) for weight, part in zip(effect.weights(), parts, strict=True))


def _matched(effect, parts):
    if not effect.matched:
        return np.full_like(parts[0].scalar, np.nan)
    left, right, other, before, after, level = (part.scalar for part in parts)
    # one slope for all replicates: within one of them two neighbours may be as good as equal
    way = (after - before).mean(0)
    slope, share = (right - left).mean(0) / way, (level - before).mean(0) / way
    # the last term is 0 on average: the slope's own error, to first order (delta method)
    return left + slope * (level - before) - other + share * (right - left - slope * (after - before))


def _median(effect, parts):
    return np.median([part.scalar for part in parts], 0)


def _slope(effect, parts):
    x, y = np.asarray(effect.xs, float) - np.mean(effect.xs), np.stack([part.scalar for part in parts])
    return np.einsum("p,prb->rb", x, y - y[:1]) / (x @ x)  # less the first, as in `_growth`


def _correlation(effect, parts):
    half = len(effect.ys)
    pairs = [at_same(*pair) for pair in zip(parts[:half], parts[half:], strict=True)]
    y, x = (np.concatenate([part.data for part in side], 1) for side in zip(*pairs, strict=True))
    sizes = [np.abs(each).max(1) for each in (y, x)]
    y, x = y - y.mean(1, keepdims=True), x - x.mean(1, keepdims=True)
    varies = [np.abs(each).max(1) > 1e-12 * size for each, size in zip((y, x), sizes, strict=True)]
    r = effect.sign * (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1))
    r = np.where(np.logical_and(*varies), r, np.nan)
    return r if effect.statistic == "correlation" else r**2 - effect.threshold


def _within(effect, parts):
    if effect.statistic == "slope":
        return _pseudo_values(lambda numbers: _over_replicates(_by_recipe(effect, numbers)), parts)
    # on Fisher's scale, where its errors are about normal and no interval leaves what a correlation can be
    z = _pseudo_values(lambda numbers: fisher_z(_over_replicates(_by_recipe(effect, numbers), "correlation")), parts)
    return np.tanh(z)


def _mediated(effect, parts):
    def product(numbers):
        *within, left, right = numbers
        return (left - right).mean(0) * _over_replicates(_by_recipe(effect.within, np.stack(within)))

    return _pseudo_values(product, parts)


def _by_recipe(effect, numbers):
    """[y, x and givens, recipe, replicate, resampling] of a `Within`, from its readings [readings, replicate, ..]."""
    return numbers.reshape(-1, len(effect.ys), *numbers.shape[1:])


def _pseudo_values(number, parts):
    """Tukey's pseudo-value of each replicate, [replicates, resamplings], of a number of all replicates' parts."""
    numbers = np.stack([part.scalar for part in parts])  # [parts, replicates, resamplings]
    count = numbers.shape[1]
    if count < 2:  # nothing is left
        return np.full((count, numbers.shape[2]), np.nan)
    whole = number(numbers)
    left = (number(np.delete(numbers, replicate, 1)) for replicate in range(count))
    return np.stack([count * whole - (count - 1) * each for each in left])


def _over_replicates(numbers, statistic="slope"):
    """Slope in numbers[1] of numbers[0] [B], or their partial correlation, the others given.

    numbers [k, recipes, replicates, B]. NaN where numbers[1] is the same in all replicates of each recipe; of a
    correlation where numbers[0] is, too.
    """
    apart = numbers - numbers.mean(2, keepdims=True)
    if numbers.shape[1] > 1:  # what all recipes of a replicate share: a language that is easy, say
        apart = apart - apart.mean(1, keepdims=True)
    y, x, *givens = (each.reshape(-1, each.shape[-1]).T[:, :, None] for each in apart)  # [B, points, 1]
    varies = np.abs(x).max((1, 2)) > 1e-12 * np.abs(numbers[1]).max((0, 1))
    if statistic != "slope":
        varies &= np.abs(y).max((1, 2)) > 1e-12 * np.abs(numbers[0]).max((0, 1))
    if givens:  # what is left of both (Frisch, Waugh and Lovell)
        z = np.concatenate(givens, -1)
        y, x = (each - z @ (np.linalg.pinv(z) @ each) for each in (y, x))
    together, of_x, of_y = (np.sum(a * b, (1, 2)) for a, b in ((x, y), (x, x), (y, y)))
    return np.where(varies, together / (of_x if statistic == "slope" else np.sqrt(of_x * of_y)), np.nan)


def _crossing(effect, parts):
    curve, level, *more = parts
    rows, columns = level.scalar.shape
    if effect.cost is not None:
        cost, whole = more[0], more[1].scalar[:, 0]
        steps = [step for step in curve.x if step in cost.x]
        y = curve.data[:, [list(curve.x).index(step) for step in steps]]
        x = cost.data[:, [list(cost.x).index(step) for step in steps], 0]
    else:
        x, y, whole = np.tile(curve.x, (rows, 1)), curve.data, np.full(rows, effect.whole)
        if effect.start is not None:
            x, y = np.insert(x, 0, 0, 1), np.concatenate([more[0].scalar[:, None], y], 1)
    crossings = np.empty((rows, columns))
    for r in range(rows):
        for b in range(columns):
            crossings[r, b] = _reached_or_last(x[r], y[r, :, b], level.scalar[r, b]) / whole[r] - effect.threshold
    return crossings


def _reach(effect, parts):
    (curve,) = parts
    x = np.log2(np.asarray(curve.x, float))
    rows, _, columns = curve.data.shape
    return np.array(
        [[_reached_or_last(x, curve.data[r, :, b], effect.level) for b in range(columns)] for r in range(rows)]
    )


def _reached_or_last(costs, curve, level: float) -> float:
    """`first_reached`; the last cost, a lower bound, where a level is never reached; NaN where something is missing."""
    if not (len(curve) and np.isfinite(curve).all() and np.isfinite(level)):
        return np.nan
    reached = first_reached(costs, curve, level)
    return float(costs[-1]) if np.isnan(reached) else reached


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


_FORMS = {Sum: _sum, Ratio: _ratio, Least: _least, Lowest: _lowest, Median: _median, Growth: _growth, Slope: _slope}
_FORMS |= {
    Correlation: _correlation,
    Within: _within,
    Mediated: _mediated,
    Crossing: _crossing,
    Reach: _reach,
    Matched: _matched,
}


def rounding(effect, results: Results) -> float:
    """Standard deviation of what rounding does to an effect of whole numbers (`Results.rounding`).

    Its readings are taken to be rounded each for itself, one that comes twice once. Of the least or the median of
    several it is the most that one has; of a ratio to first order; of what is no sum (correlations, crossings) 0.
    """
    if isinstance(effect, Least):  # and `Median`, which is one
        return max(rounding(part, results) for part in effect.parts)
    if isinstance(effect, Ratio):
        top, bottom = (values(part, results).scalar[:, 0].mean() for part in effect.readings())
        own = [rounding(part, results) for part in effect.readings()]
        return float(np.hypot(own[0] / bottom, own[1] * top / bottom**2)) if any(own) else 0.0
    return float(np.sqrt(sum((w * results.rounding(part)) ** 2 for part, w in weights(effect).items())))


def weights(effect) -> dict[Reading, float]:
    """Reading -> its weight in an effect that is a sum of readings; {} of others."""
    if isinstance(effect, Reading):
        return {effect: 1.0}
    if isinstance(effect, Sum):
        terms = effect.terms
    elif isinstance(effect, Growth):
        terms = zip(effect.weights(), effect.parts, strict=True)
    elif isinstance(effect, Slope):
        x = np.asarray(effect.xs, float) - np.mean(effect.xs)
        terms = zip((x / (x @ x)).tolist(), effect.ys, strict=True)
    else:
        return {}
    total: dict[Reading, float] = {}
    for weight, part in terms:
        for reading, own in weights(part).items():
            total[reading] = total.get(reading, 0.0) + weight * own
    return total
