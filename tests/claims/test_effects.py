"""Effects as numbers and in words, against numpy; and the rounding that is believed of them."""

import math

import numpy as np
import pytest
from scipy import stats

from masklab.claims.effects import Correlation, Crossing, Growth, Least, Median, Ratio, Slope, Sum, Within, difference
from masklab.claims.values import _within, at_equal_loss, first_reached, points, rounding, values
from masklab.scores.reading import Reading
from masklab.scores.results import Results, Values
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


def is_(effect, found, expected):
    np.testing.assert_allclose(values(effect, found).scalar[:, 0], expected, rtol=1e-9)


def test_numbers(found):
    a, b, c, d = ACCURACY[:, :, -1]
    is_(Sum(((2.0, A), (-0.5, B), (1.0, C)), 0.1), found, 2 * a - 0.5 * b + c - 0.1)
    is_(difference(A, B, 0.2), found, a - b - 0.2)
    is_(difference(A, B), found, a - b)
    is_(Ratio(A, B, 0.3), found, a / b - 1 - 0.3)
    is_(Ratio(A, B), found, a / b - 1)
    is_(Least((A, B, C)), found, min((a, b, c), key=np.mean))
    is_(Median((A, B, C, D)), found, np.median([a, b, c, d], 0))
    xs = (0.0, 1.0, 4.0, 5.0)
    is_(Slope((A, B, C, D), xs, "x"), found, [np.polyfit(xs, y, 1)[0] for y in np.stack([a, b, c, d], 1)])
    is_(Growth((A, D)), found, d - a)
    assert np.isnan(values(Growth((D,)), found).scalar).all()


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
    """The slope in the first of `xs` by least squares with an intercept for each recipe; all [recipes, replicates]."""
    recipes = np.repeat(np.eye(len(y)), y.shape[1], 0)
    design = np.column_stack([*(x.ravel() for x in xs), recipes])
    return np.linalg.lstsq(design, y.ravel(), rcond=None)[0][0]


@pytest.mark.parametrize("given", [False, True])
def test_slopes_within_recipes(found, given):
    """Of two recipes over their three replicates, by regression with dummies, one replicate left out at a time."""
    early = tuple(part.of(part.recipe, step=20) for part in (A, B))
    givens = tuple(part.of(part.recipe, step=10) for part in (A, B)) if given else ()
    effect = Within((A, B), early, givens)
    sides = [ACCURACY[:2, :, step] for step in ((3, 1, 0) if given else (3, 1))]
    whole = dummies_slope(*sides)
    left = np.array([dummies_slope(*(np.delete(side, r, 1) for side in sides)) for r in range(3)])
    is_(effect, found, 3 * whole - 2 * left)
    assert points(effect, found) == 6
    gaps = tuple(part.of(part.recipe, metric="gap", tasks=(), probe="loss") for part in (A, B))
    assert np.isnan(values(Within((A, B), gaps), found).scalar).all()  # one gap in all replicates


@pytest.mark.parametrize("truth", [0.0, 0.5])
def test_intervals_of_slopes_within_recipes_cover(truth):
    """Of 4 recipes x 5 replicates, 2,000 times: the jackknife's 95 % interval has the truth in 92 to 98 % of them."""
    rng, hits = np.random.default_rng(1), 0
    for _ in range(2000):
        x = rng.normal(size=(4, 5)) + np.arange(4)[:, None]
        y = truth * x + rng.normal(size=(4, 5)) - 3 * np.arange(4)[:, None]
        parts = [Values(tuple(range(5)), row[:, None, None]) for row in (*y, *x)]
        pseudo = _within(Within((A, B, C, D), (A, B, C, D)), parts)[:, 0]
        hits += abs(pseudo.mean() - truth) < stats.t.ppf(0.975, 4) * pseudo.std(ddof=1) / 5**0.5
    assert 0.92 < hits / 2000 < 0.98


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


def test_what_rounding_leaves():
    rank = Reading("a", "rank")
    assert rounding(rank) ** 2 == pytest.approx(1 / 12)
    assert rounding(rank.of("b", metric="rank_centred")) == rounding(rank)
    assert rounding(Sum(((2.0, rank), (-3.0, rank), (1.0, A)))) ** 2 == pytest.approx(13 / 12)
    assert rounding(rank.of("a", over="layer", reduce="slope")) == 0 == rounding(Ratio(rank, rank))


def test_words():
    assert difference(A, B, 0.1).words(VIEW) == "A - B - 0.1: accuracy on t"
    assert Sum(((-2.0, A),)).words(VIEW) == "- 2 × A, accuracy on t"
    assert Sum(((1.0, A), (0.5, B), (-1.0, C))).words(VIEW) == "A + 0.5 × B - C: accuracy on t"
    assert Sum(((0.0, A), (-1.0, B))).words(VIEW) == "0 × A - B: accuracy on t"
    assert Ratio(A, B, 0.25).words(VIEW) == "A / B - 1 - 0.25: accuracy on t"
    nested = Sum(((1.0, Slope((A, B), (0, 1), "x")), (-1.0, Slope((C, D), (0, 1), "x"))), 0.5)
    assert nested.words(VIEW) == "(slope in x of accuracy on t) - (slope in x of accuracy on t) - 0.5"
    assert difference(A, A.of("a", step=10)).words(VIEW) == "last checkpoint - step 10: A, accuracy on t"
    assert difference(A, A.of("a", splits=("away",))).words(VIEW) == "it - away: A, accuracy on t"
    assert Growth((A, C, B)).words(VIEW) == "B - A: accuracy on t"
    assert Growth((A,)).words(VIEW) == "A: accuracy on t, less that of the smallest at its loss"
    assert Median((A, B)).words(VIEW) == "median of (A: accuracy on t), (B: accuracy on t)"
    assert Least((A, B, C)).words(VIEW).count("(") == 3
    assert Median((A, B, C, D)).words(VIEW) == "median of 4: (A: accuracy on t), ..., (D: accuracy on t)"
    assert Correlation((A,), (A.of("a", step=10),), "R2", 0.5).words(VIEW) == (
        "R2 of A, accuracy on t with A, accuracy on t, step 10 - 0.5"
    )
    both = Correlation((A, B), (difference(A, B), B))
    assert both.words(VIEW) == "correlation of accuracy on t with A - B: accuracy on t, B: accuracy on t"
    seconds = Reading("a", "seconds", step="all", over="step")
    crossing = Crossing(A.of("a", step="all", over="step"), seconds, B, Reading("b", "seconds"), 0.5)
    assert crossing.words(VIEW) == "share of B's seconds after which A reaches B's accuracy on t - 0.5"
    assert Crossing(A, None, B, 80).words(VIEW) == "share of 80 updates after which A reaches B's accuracy on t"


def test_units():
    units = {Sum(((1.0, A),)): "accuracy", Ratio(A, B): "share", Least((A,)): "accuracy", Growth((A,)): "accuracy",
             Slope((A,), (0,), "x"): "accuracy per x", Correlation((A,), (B,)): "correlation",
             Correlation((A,), (B,), "R2"): "R2", Crossing(A, None, B, 80): "share"}  # fmt: skip
    assert {effect: effect.unit(VIEW) for effect in units} == units
