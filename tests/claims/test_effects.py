"""Effects as numbers and in words, against numpy; and the rounding that is believed of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from masklab.claims.effects import (
    Correlation,
    Crossing,
    Growth,
    Least,
    Matched,
    Median,
    Mediated,
    Ratio,
    Slope,
    Sum,
    Within,
    difference,
)
from masklab.claims.values import (
    _FORMS,
    _mediated,
    _within,
    at_equal_loss,
    effect_estimate,
    first_reached,
    points,
    rounding,
    values,
)
from masklab.scores.estimate import FISHER, PLAIN, estimate
from masklab.scores.per_replicate import Values
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

RECIPES, STEPS, TASK = "abcd", (10, 20, 30, 40), "t"
A, B, C, D = (Reading(name, "accuracy", (TASK,)) for name in RECIPES)
VIEW = View(
    "s",
    panels={"all": {name.upper(): name for name in RECIPES}},
    recipes={name: {} for name in RECIPES},
    tasks={TASK: {"metric": "accuracy", "redrawn": False}},
    probes={
        "p": {"kind": "finetune", "tasks": [TASK], "recipes": list(RECIPES)},
        "l": {"kind": "loss", "tasks": [], "recipes": list(RECIPES)},
        "k": {"kind": "cost", "tasks": [], "recipes": list(RECIPES)},
    },
    saturation=0.05,
)
ACCURACY = np.random.default_rng(5).random((4, 3, 4)).cumsum(2) / 4  # of recipe, replicate, step; rising
GAP = {"a": 0.4, "b": 0.18, "c": 0.12, "d": 0.1}


@pytest.fixture(scope="module")
def found():
    rows = []
    for i, recipe in enumerate(RECIPES):
        for r in range(3):
            for s, step in enumerate(STEPS):
                at = {"recipe": recipe, "replicate": r + 1, "step": step, "split": "test", "n": 9, "task": "c"}
                rows.append(at | {"probe": "p", "task": TASK, "metric": "accuracy", "value": ACCURACY[i, r, s]})
                rows.append(at | {"probe": "l", "metric": "gap", "value": GAP[recipe]})
                rows.append(at | {"probe": "l", "metric": "floor", "value": 2.0})
                cost = (i + 1) * (r + 1) * step**1.5
                rows.append(at | {"probe": "k", "split": "train", "metric": "seconds", "value": cost})
    return Results(VIEW, rows_to_frame(rows))


def lower_end(y):
    return stats.ttest_1samp(y, 0).confidence_interval(0.95).low


def is_(effect, found, expected):
    np.testing.assert_allclose(values(effect, found).scalar[:, 0], expected, rtol=1e-9)


def test_numbers(found):
    a, b, c, d = ACCURACY[:, :, -1]
    is_(Sum(((2.0, A), (-0.5, B), (1.0, C)), 0.1), found, 2 * a - 0.5 * b + c - 0.1)
    is_(difference(A, B, 0.2), found, a - b - 0.2)
    is_(difference(A, B), found, a - b)
    is_(Ratio(A, B, 0.3), found, a / b - 1 - 0.3)
    is_(Ratio(A, B), found, a / b - 1)
    is_(Least((A, B, C)), found, min((a, b, c), key=lower_end))
    is_(Median((A, B, C, D)), found, np.median([a, b, c, d], 0))
    xs = (0.0, 1.0, 4.0, 5.0)
    is_(Slope((A, B, C, D), xs, "x"), found, [np.polyfit(xs, y, 1)[0] for y in np.stack([a, b, c, d], 1)])
    is_(Growth((A, D)), found, d - a)
    assert np.isnan(values(Growth((D,)), found).scalar).all()
    at = (1.0, 2.0, 4.0, 8.0)
    fitted = np.array([np.polyfit(at, replicate, 1)[0] * 7 for replicate in np.transpose([a, b, c, d])])
    is_(Growth((A, B, C, D), at), found, fitted)
    is_(Growth((A, D), (1.0, 8.0)), found, d - a)


def test_correlations_are_over_all_points_of_a_replicate(found):
    curves = [part.of(part.recipe, step="all", over="step") for part in (A, B, C, D)]
    effect = Correlation(tuple(curves[:2]), tuple(curves[2:]))
    y, x = ACCURACY[:2].transpose(1, 0, 2).reshape(3, 8), ACCURACY[2:].transpose(1, 0, 2).reshape(3, 8)
    r = np.array([np.corrcoef(x[i], y[i])[0, 1] for i in range(3)])
    assert points(effect, found) == 8
    is_(effect, found, r)
    is_(Correlation(tuple(curves[:2]), tuple(curves[2:]), "R2", 0.4), found, r**2 - 0.4)
    is_(Correlation(tuple(curves[:2]), tuple(curves[2:]), "R2"), found, r**2)


def dummies_slope(y, *xs):
    """The slope in the first of `xs` by least squares with an intercept for each recipe and for each replicate.

    All [recipes, replicates].
    """
    recipes, replicates = np.repeat(np.eye(len(y)), y.shape[1], 0), np.tile(np.eye(y.shape[1]), (len(y), 1))
    design = np.column_stack([*(x.ravel() for x in xs), recipes, replicates])
    return np.linalg.lstsq(design, y.ravel(), rcond=None)[0][0]


def residual_correlation(y, x, *givens):
    recipes, replicates = np.repeat(np.eye(len(y)), y.shape[1], 0), np.tile(np.eye(y.shape[1]), (len(y), 1))
    design = np.column_stack([*(z.ravel() for z in givens), recipes, replicates])
    left = [each.ravel() - design @ np.linalg.lstsq(design, each.ravel(), rcond=None)[0] for each in (y, x)]
    return np.corrcoef(*left)[0, 1]


def pieces(sides):
    """The sides, [recipe, replicate] each, with all replicates, and with each left out."""
    return [sides, *([np.delete(side, r, 1) for side in sides] for r in range(sides[0].shape[1]))]


@pytest.mark.parametrize("given", [False, True])
def test_slopes_within_recipes(found, given):
    """Of four recipes over their three replicates, by regression with dummies, one replicate left out at a time."""
    every = (A, B, C, D)
    early = tuple(part.of(part.recipe, step=20) for part in every)
    givens = tuple(part.of(part.recipe, step=10) for part in every) if given else ()
    effect = Within(every, early, givens)
    sides = [ACCURACY[:, :, step] for step in ((3, 1, 0) if given else (3, 1))]
    whole = dummies_slope(*sides)
    left = np.array([dummies_slope(*(np.delete(side, r, 1) for side in sides)) for r in range(3)])
    is_(effect, found, 3 * whole - 2 * left)
    # two replicates of four recipes, less four means of recipes and one more of a replicate
    assert points(effect, found) == 8 - 5 - (2 if given else 1)
    # the correlation of what recipes, replicates and givens leave of both
    whole, *left = (residual_correlation(*parts) for parts in pieces(sides))
    partial = Within(every, early, givens, statistic="partial correlation")
    is_(partial, found, np.tanh(3 * np.arctanh(whole) - 2 * np.arctanh(left)))
    made = effect_estimate(partial, found)
    assert made.scale is FISHER and -1 < made.low < made.value < made.high < 1
    same = tuple(part.of(part.recipe, metric="gap", tasks=(), probe="loss") for part in every)  # in all replicates
    one = Results(found.view, found.scores[found.scores["replicate"] == 1])
    assert values(partial, one).scalar.shape == (1, 1) and np.isnan(values(partial, one).scalar).all()
    constant = Within(same, early, givens, statistic="partial correlation")
    assert np.isnan(values(constant, found).scalar).all()
    assert points(Within((A,), (A,)), found) == 0
    gaps = tuple(part.of(part.recipe, metric="gap", tasks=(), probe="loss") for part in every)
    assert np.isnan(values(Within(every, gaps), found).scalar).all()  # one gap in all replicates


def test_what_is_mediated(found):
    """A difference in x times the slope of y on x, of all replicates and with each left out."""
    every, early = (A, B, C, D), tuple(part.of(part.recipe, step=20) for part in (A, B, C, D))
    y, x = ACCURACY[:, :, 3], ACCURACY[:, :, 1]

    def product(y, x):
        return (x[0] - x[2]).mean() * dummies_slope(y, x)

    left = np.array([product(*(np.delete(side, r, 1) for side in (y, x))) for r in range(3)])
    effect = Mediated(early[0], early[2], Within(every, early))
    is_(effect, found, 3 * product(y, x) - 2 * left)
    assert points(effect, found) == points(effect.within, found) == 8 - 5 - 1


@pytest.mark.parametrize(("recipes", "replicates"), [(4, 5), (4, 8), (3, 5)])
@pytest.mark.parametrize("truth", [0.0, 0.5])
@pytest.mark.parametrize("statistic", ["slope", "partial correlation"])
def test_intervals_of_slopes_within_recipes_cover(statistic, truth, recipes, replicates):
    """2,000 times: the jackknife's 95 % interval has the truth in 91 to 99 % of them.

    A number is given whose correlation with x is .8, of which y holds as much as of x. What the recipes of a replicate
    share moves both. Given that number, x has a standard deviation of .6 left, and y of 1 beside `truth` times that.
    """
    rng, hits, places = np.random.default_rng(1), 0, np.arange(recipes)[:, None]
    readings = (A, B, C, D)[:recipes]
    for _ in range(2000):
        given = rng.normal(size=(recipes, replicates))
        shared = 2 * rng.normal(size=replicates)  # a language that all recipes of a replicate find easy
        x = 0.8 * given + 0.6 * rng.normal(size=given.shape) + places + shared
        y = truth * x + given + rng.normal(size=given.shape) - 3 * places + shared
        parts = [Values(tuple(range(replicates)), row[:, None, None]) for row in (*y, *x, *given)]
        pseudo = _within(Within(readings, readings, readings, statistic=statistic), parts)[:, 0]
        partial = 0.6 * truth / (1 + (0.6 * truth) ** 2) ** 0.5
        known, scale = (truth, PLAIN) if statistic == "slope" else (partial, FISHER)
        made = estimate(pseudo, scale=scale)
        hits += made.low < known < made.high
    assert 0.91 < hits / 2000 < 0.99, hits


@pytest.mark.parametrize("replicates", [5, 8])
@pytest.mark.parametrize(("share", "noise"), [(0.9, (0.3, 1.0)), (0.9, (1.0, 0.3)), (0.5, (1.0, 1.0))])
def test_intervals_of_what_is_matched_cover(share, noise, replicates):
    """2,000 times: the 95 % interval has the truth in 92 to 98 % of them, wherever between its ends the course is read.

    The ends of the course read 1 and 2 at losses of 1 and 0, with noise of their own; the other reads 0.
    """
    rng, hits = np.random.default_rng(1), 0
    effect = Matched(((A, A), (B, B)), ((C, C),), matched=True)
    for _ in range(2000):
        means, losses = np.array([[1.0], [2.0], [0.0]]), np.array([[1.0], [0.0], [1 - share]])
        reads = means + np.array([[*noise, 0.5]]).T * rng.normal(size=(3, replicates))
        losses = losses + 0.1 * rng.normal(size=(3, replicates))
        parts = [Values(tuple(range(replicates)), row[:, None, None]) for row in (*reads, *losses)]
        made = estimate(_FORMS[Matched](effect, parts)[:, 0])
        hits += made.low < 1 + share < made.high
    assert 0.92 < hits / 2000 < 0.98, hits


@pytest.mark.parametrize(("slope", "apart"), [(0.0, 0.0), (0.0, 3.0), (0.5, 1.0), (2.0, 3.0)])
def test_intervals_of_what_is_mediated_cover(slope, apart):
    """2,000 times: the 95 % interval has the product in 91 to 99 % of them; where both factors are 0 it is too wide."""
    rng, hits, replicates, readings = np.random.default_rng(1), 0, 5, (A, B, C, D)
    effect = Mediated(A, B, Within(readings, readings))
    for _ in range(2000):
        shared = 2 * rng.normal(size=replicates)
        x = rng.normal(size=(4, replicates)) + shared
        x[0] += apart
        y = slope * x + rng.normal(size=x.shape) - 3 * np.arange(4)[:, None] + shared
        parts = [Values(tuple(range(replicates)), row[:, None, None]) for row in (*y, *x, x[0], x[1])]
        pseudo = _mediated(effect, parts)[:, 0]
        made = estimate(pseudo)
        hits += made.low < slope * apart < made.high
    assert 0.91 < hits / 2000 < 0.99, hits


def test_the_least_is_that_whose_interval_ends_lowest():
    """A part of a lower mean and hardly any spread stands above one that spreads far."""
    parts = [Values((1, 2, 3), np.array(values)[:, None, None]) for values in ([0.2, 0.21, 0.22], [0.0, 0.3, 0.6])]
    assert _FORMS[Least](None, parts)[:, 0].tolist() == [0.0, 0.3, 0.6]


def crossed(x, y, level):
    """By interpolation on a grid: where the curve first is at the level; its end where it never is."""
    grid = np.linspace(x[0], x[-1], 200001)
    above = np.interp(grid, x, y) >= level
    return grid[above.argmax()] if above.any() else x[-1]


def test_crossings(found):
    curve, level = A.of("a", step="all", over="step"), B.of("b", step=20)
    seconds = {r: np.array([(RECIPES.index(r) + 1) * (n + 1) * np.array(STEPS) ** 1.5 for n in range(3)]) for r in "ab"}
    costs, whole = (Reading("a", "seconds", step="all", over="step"), Reading("b", "seconds"))
    truth = [crossed(seconds["a"][r], ACCURACY[0, r], ACCURACY[1, r, 1]) / seconds["b"][r, -1] for r in range(3)]
    np.testing.assert_allclose(values(Crossing(curve, costs, level, whole), found).scalar[:, 0], truth, atol=1e-4)
    some = Reading("a", "seconds", step="since converged", over="step")  # costs of all steps: it has converged at once
    np.testing.assert_allclose(values(Crossing(curve, some, level, whole, 0.25), found).scalar[:, 0],
                               np.array(truth) - 0.25, atol=1e-4)  # fmt: skip
    updates = [crossed(STEPS, ACCURACY[0, r], ACCURACY[1, r, 1]) / 80 - 0.5 for r in range(3)]
    np.testing.assert_allclose(values(Crossing(curve, None, level, 80, 0.5), found).scalar[:, 0], updates, atol=1e-4)
    start = D.of("d", step=10)
    curves = [np.concatenate([ACCURACY[3, r, :1], ACCURACY[0, r]]) for r in range(3)]
    updates = [crossed([0, *STEPS], curves[r], ACCURACY[1, r, 1]) / 80 for r in range(3)]
    begun = Crossing(curve, None, level, 80, start=start)
    np.testing.assert_allclose(values(begun, found).scalar[:, 0], updates, atol=1e-4)
    assert start in begun.readings() and begun.words(VIEW) == Crossing(curve, None, level, 80).words(VIEW)


def test_where_a_curve_first_reaches_a_level():
    costs, curve = np.array([2.0, 4.0, 8.0, 9.0]), np.array([0.1, 0.5, 0.3, 0.9])
    assert first_reached(costs, curve, 0.5) == 4 and first_reached(costs, curve, 0.1) == 2
    assert first_reached(costs, curve, 0.05) == 2 and math.isnan(first_reached(costs, curve, 0.91))
    assert first_reached(costs, curve, 0.4) == pytest.approx(3.5)
    assert first_reached(costs, curve, 0.7) == pytest.approx(8 + 2 / 3)


def test_only_recipes_at_the_lowest_loss_of_all(found):
    assert found.at_equal_loss(RECIPES) == ["b", "c", "d"]  # .09, .06 and .05 of the floor
    assert at_equal_loss(Growth((A, B, C, D)), found) == Growth((B, D))
    assert at_equal_loss(Growth((A, D)), found) == Growth((D,)) and at_equal_loss(A, found) is A
    placed = Growth((A, B, C, D), (1.0, 2.0, 3.0, 5.0))
    assert at_equal_loss(placed, found) == Growth((B, C, D), (2.0, 3.0, 5.0))
    assert at_equal_loss(Growth((A, D), (1.0, 5.0)), found) == Growth((D,), (5.0,))
    within = at_equal_loss(Within((A, B, C, D), (D, C, B, A), (A, A, B, C), equal_loss=True), found)
    assert (within.ys, within.xs, within.givens) == ((B, C, D), (C, B, A), (A, B, C))
    unmeasured = Results(VIEW, found.scores[found.scores["metric"] == "accuracy"])
    assert at_equal_loss(Growth((A, B, C)), unmeasured) == Growth((C,))
    both = Correlation((A, B, C), (B, C, D), equal_loss=True)
    kept = at_equal_loss(both, found)
    assert (kept.ys, kept.xs) == ((B, C), (C, D))
    free = Correlation((A, B), (B, C))
    assert at_equal_loss(free, found) is free and not free.equal_loss


def test_an_effect_has_the_replicates_that_all_its_parts_have(found):
    scores = found.scores
    kept = Results(VIEW, scores[~((scores["recipe"] == "b") & (scores["replicate"] == 2))])
    assert values(difference(A, B), kept).replicates == (1, 3)
    np.testing.assert_allclose(values(difference(A, B), kept).scalar[:, 0], (ACCURACY[0] - ACCURACY[1])[[0, 2], -1])
    assert values(difference(A, B.of("nobody")), found).replicates == ()


LAYERED = View("s", panels={"p": {"m": "m", "o": "o"}}, recipes={"m": {}, "o": {}},
               probes={"r": {"kind": "rank", "tasks": [], "recipes": ["m", "o"]}})  # fmt: skip


def layered(value) -> Results:
    """Results of ranks of layers 0 to 4, value(replicate, layer) for recipe m, twice that for o."""
    at = {"step": 1, "probe": "r", "task": "c", "split": "test", "n": 9}
    rows = [
        at | {"recipe": recipe, "replicate": r, "layer": layer, "metric": metric, "value": times * value(r, layer)}
        for recipe, times in (("m", 1.0), ("o", 2.0)) for r in (1, 2, 3) for layer in range(5)
        for metric in ("rank", "rank_centred", "rank_interpolated")
    ]  # fmt: skip
    return Results(LAYERED, rows_to_frame(rows))


def test_rounding_is_that_of_uniform_errors_in_every_cell():
    """Against whole numbers minus what they are rounded from, uniform ones, drawn 20,000 times."""
    found, rng = layered(lambda r, layer: 5 + layer), np.random.default_rng(2)
    errors = rng.uniform(-0.5, 0.5, (20_000, 2, 5))  # of two recipes, five layers
    m, x = Reading("m", "rank"), np.arange(5) - 2.0
    one = {layers: m.of("m", layers=layers) for layers in ("first", "last", "all", "deep", "shallow")}
    mean = {"first": [0], "last": [4], "all": [1, 2, 3, 4], "deep": [3, 4], "shallow": [1, 2]}
    drawn = {each: errors[:, 0, layers].mean(1) for each, layers in mean.items()}
    for layers, reading in one.items():
        assert rounding(reading, found) == pytest.approx(drawn[layers].std(), rel=0.03), layers
    for effect, truth in (
        (Sum(((1.0, one["last"]), (-2.0, one["first"]))), drawn["last"] - 2 * drawn["first"]),
        (difference(one["deep"], one["shallow"]), drawn["deep"] - drawn["shallow"]),
        (Sum(((2.0, one["last"]), (-3.0, one["last"]))), -drawn["last"]),
        (difference(one["all"], one["all"].of("o")), drawn["all"] - errors[:, 1, 1:].mean(1)),
        (m.of("m", over="layer", reduce="slope"), errors[:, 0] @ x / (x @ x)),
        (Slope((one["last"], one["last"].of("o")), (0.0, 4.0), "x"), (errors[:, 1, 4] - errors[:, 0, 4]) / 4),
        (Ratio(one["last"], one["first"].of("o")), (9 + errors[:, 0, 4]) / (10 + errors[:, 1, 0])),
        (Least((one["all"], one["last"])), drawn["last"]),
    ):
        assert rounding(effect, found) == pytest.approx(truth.std(), rel=0.03), effect
    assert rounding(m.of("m", metric="rank_centred", layers="all"), found) == rounding(one["all"], found)
    assert rounding(m.of("m", metric="rank_interpolated", layers="last"), found) == 0
    assert rounding(Correlation((one["all"],), (one["last"],)), found) == 0


def test_words():
    assert difference(A, B, 0.1).words(VIEW) == "A - B - 0.1: accuracy on t"
    assert Sum(((-2.0, A),)).words(VIEW) == "- 2 × A, accuracy on t"
    assert Sum(((1.0, A), (0.5, B), (-1.0, C))).words(VIEW) == "A + 0.5 × B - C: accuracy on t"
    assert Sum(((0.0, A), (-1.0, B))).words(VIEW) == "0 × A - B: accuracy on t"
    assert Ratio(A, B, 0.25).words(VIEW) == "A / B - 1 - 0.25: accuracy on t"
    free = replace(VIEW, panels={"all": {"MLM - small: 2 layers": A.recipe, "MLM": B.recipe}})
    assert Ratio(A, B).words(free) == "MLM - small: 2 layers / MLM - 1: accuracy on t"
    both = Ratio(difference(A, B), B).words(VIEW)
    assert both == "(A - B: accuracy on t) / (B: accuracy on t) - 1"
    nested = Sum(((1.0, Slope((A, B), (0, 1), "x")), (-1.0, Slope((C, D), (0, 1), "x"))), 0.5)
    assert nested.words(VIEW) == "(slope in x of accuracy on t) - (slope in x of accuracy on t) - 0.5"
    assert difference(A, A.of("a", step=10)).words(VIEW) == "last checkpoint - step 10: A, accuracy on t"
    assert difference(A, A.of("a", splits=("away",))).words(VIEW) == "it - away: A, accuracy on t"
    assert Growth((A, C, B)).words(VIEW) == "B - A: accuracy on t"
    assert Growth((A, C, B), (0, 1, 2)).words(VIEW) == "B - A: accuracy on t (by a line through 3)"
    assert Growth((A,)).words(VIEW) == "A: accuracy on t, less that of the smallest at its loss"
    assert Median((A, B)).words(VIEW) == "median of (A: accuracy on t), (B: accuracy on t)"
    assert Least((A, B, C)).words(VIEW).count("(") == 3
    assert Median((A, B, C, D)).words(VIEW) == "median of 4: (A: accuracy on t), ..., (D: accuracy on t)"
    assert Correlation((A,), (A.of("a", step=10),), "R2", 0.5).words(VIEW) == (
        "R2 of A, accuracy on t with A, accuracy on t, step 10 - 0.5"
    )
    assert Ratio(A, B, -0.2).words(VIEW).startswith("A / B - 1 + 0.2")
    both = Correlation((A, B), (difference(A, B), B))
    assert both.words(VIEW) == "correlation of accuracy on t with A - B: accuracy on t, B: accuracy on t"
    seconds = Reading("a", "seconds", step="all", over="step")
    crossing = Crossing(A.of("a", step="all", over="step"), seconds, B, Reading("b", "seconds"), 0.5)
    assert crossing.words(VIEW) == "share of B's seconds after which A reaches B's accuracy on t - 0.5"
    assert (
        Crossing(replace(A, over="step"), None, B, 80).words(VIEW)
        == "share of 80 updates after which A reaches B's accuracy on t"
    )


def test_units():
    units = {Sum(((1.0, A),)): "accuracy", Ratio(A, B): "share", Least((A,)): "accuracy", Growth((A,)): "accuracy",
             Slope((A,), (0,), "x"): "accuracy per x", Correlation((A,), (B,)): "correlation",
             Correlation((A,), (B,), "R2"): "R2", Crossing(replace(A, over="step"), None, B, 80): "share"}  # fmt: skip
    assert {effect: effect.unit(VIEW) for effect in units} == units
