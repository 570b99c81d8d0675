"""Where something is missing, or was measured otherwise than what stands beside it, nothing is decided by it."""

import math

import numpy as np
import pytest

from masklab.claims.claim import Claim, loss_of
from masklab.claims.effects import (
    Correlation,
    Crossing,
    Growth,
    Least,
    Lowest,
    Median,
    Ratio,
    Reach,
    Slope,
    Sum,
    difference,
)
from masklab.claims.premises import unlike
from masklab.claims.values import effect_estimate, values
from masklab.claims.verdict import test_claims as verdicts
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

MANY = 5


def results(numbers, metrics=None, **of_view):
    """numbers: (recipe, step, size) or (recipe, step, size, task) -> values, None where missing."""
    numbers = {key if len(key) == 4 else (*key, "t"): own for key, own in numbers.items()}
    names, tasks = (list(dict.fromkeys(key[at] for key in numbers)) for at in (0, 3))
    metrics = metrics or {}
    view = View(
        "s",
        panels={"all": {name.upper(): name for name in names if name != "null"}},
        recipes={name: {"steps": 400, "corpus": "c"} for name in names},
        tasks={
            task: {"metric": metrics.get(task, "accuracy"), "kind": "label-files", "redrawn": True} for task in tasks
        },
        probes={"p": {"kind": "finetune", "tasks": tasks, "recipes": names}},
        **of_view,
    )
    shared = {"probe": "p", "split": "test", "n": 50}
    rows = [
        {"recipe": recipe, "replicate": k, "step": step, "task": task, "train_size": size, "value": float(value)}
        | {"metric": metrics.get(task, "accuracy")}
        | shared
        for (recipe, step, size, task), own in numbers.items()
        for k, value in enumerate(own, 1)
        if value is not None
    ]
    return Results(view, rows_to_frame(rows))


def read(recipe, **more):
    return Reading(recipe, "accuracy", ("t",), **more)


def said_of(effect, found, **more):
    return verdicts([Claim("c", "1", "F", "t", effect, **{"learned": False} | more)], found).iloc[0]


def around(mean, count=MANY, spread=0.004):
    return (mean + spread * np.linspace(-1, 1, count)).tolist()


def test_two_curves_that_end_at_the_level_are_no_doubling_apart():
    ends = {"a": (0.7505, 0.7506, 0.7507), "b": (0.7495, 0.7494, 0.7496)}
    found = results({(name, 400, size): [0.5] * 3 for name in ends for size in (10, 40)} | {
        (name, 400, 160): list(last) for name, last in ends.items()
    })  # fmt: skip
    effect = difference(*(Reach(read(name, over="train_size"), 0.75) for name in "ab"))
    assert abs(values(effect, found).scalar).max() < 0.01


def test_what_was_not_measured_is_not_what_was_never_reached():
    numbers = {("a", 400, size): [value] * 3 for size, value in ((10, 0.5), (40, 0.6), (160, 0.8))}
    numbers["a", 400, 40] = [0.6, 0.6, None]
    reached = values(Reach(read("a", over="train_size"), 0.7), results(numbers)).scalar[:, 0]
    assert np.isfinite(reached[:2]).all() and np.isnan(reached[2])
    steps = {("a", step, 10): [0.1 * step] * 3 for step in (1, 2, 4)} | {("a", 2, 10): [0.2, 0.2, None]}
    curve = read("a", step="all", over="step")
    crossed = values(Crossing(curve, None, read("a", step=4), 4), results(steps)).scalar[:, 0]
    assert crossed[:2].tolist() == [1, 1] and np.isnan(crossed[2])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("count", [1, 2])
def test_a_part_of_too_few_replicates_decides_nothing(order, count):
    found = results({("a", 400, 10): around(0.9), ("b", 400, 10): around(0.7, count) + [None] * (MANY - count)})
    parts = [Sum(((1.0, read(name)),)) for name in "ab"]
    made = effect_estimate(Least(tuple(parts[at] for at in order)), found)
    assert made.replicates == count and math.isnan(made.low) == (count == 1)
    said = said_of(Least(tuple(parts[at] for at in order)), found)
    assert said["verdict"] == "inconclusive" and math.isnan(said["p"]) and "nothing is decided" in said["why"]


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_part_that_is_no_number_is_the_least_wherever_it_stands(order):
    numbers = {("a", 400, size): around(0.6 + 0.01 * size) for size in (1, 2, 4)}
    numbers |= {("b", 400, size): around(0.5) for size in (1, 2, 4)} | {("b", 400, 2): [None, *around(0.5, 4)]}
    parts = {name: read(name, over="train_size", reduce="slope") for name in "ab"}
    effect = Sum(((1.0, Least(tuple(parts[name] for name in order))),))
    assert said_of(effect, results(numbers))["verdict"] == "untested"


def test_one_replicate_does_not_show_what_a_claim_of_five_presupposes():
    numbers = {("a", 400, 10): around(0.9), ("b", 400, 10): around(0.7), ("x", 400, 10): [0.8] + [None] * 4}
    effect, given = difference(read("a"), read("b")), (difference(read("x"), read("b")),)
    assert said_of(effect, results(numbers))["verdict"] == "supported"
    assert "presupposes" in said_of(effect, results(numbers), given=given)["why"]
    numbers["x", 400, 10] = around(0.8)
    assert said_of(effect, results(numbers), given=given)["verdict"] == "supported"
    null = {("null", 400, 10): [0.6] + [None] * 4}
    nulls = {"a": {"untrained": "null"}, "b": {"untrained": "null"}}
    assert said_of(effect, results(numbers | null, nulls=nulls), learned=True)["verdict"] == "untested"
    null = {("null", 400, 10): around(0.6)}
    assert said_of(effect, results(numbers | null, nulls=nulls), learned=True)["verdict"] == "supported"


def test_recipes_measured_at_other_sizes_are_not_compared():
    numbers = {("a", 400, 1000): around(0.8), ("b", 400, 1000): around(0.85), ("b", 400, 10): around(0.5)}
    said = said_of(difference(read("a"), read("b")), results(numbers))
    assert (
        said["verdict"] == "untested"
        and said["why"] == "A and B were not measured on the same tasks and training sizes"
    )
    a, b = read("a"), read("b")
    curve = read("b", step="all", over="step")
    slope, crossing = Slope((a, b), (1.0, 2.0), "x"), Crossing(curve, None, a, 400)
    for effect in (Ratio(a, b), slope, crossing, Growth((a, b)), difference(a, Lowest((a, b)))):
        claim = Claim("c", "", "", "it", effect)
        assert "not measured on the same tasks" in unlike(claim, results(numbers)), effect
    same = difference(read("a"), read("b", sizes=1000))
    assert said_of(same, results(numbers))["verdict"] == "contradicted"


def test_a_null_counts_where_the_recipe_was_measured():
    numbers = {("a", 400, 1000): around(0.8), ("b", 400, 1000): around(0.7)}
    numbers |= {("null", 0, 1000): around(0.9), ("null", 0, 10): around(0.5)}
    nulls = {name: {"untrained": "null"} for name in "ab"}
    found = results(numbers, nulls=nulls)
    assert found.null(read("a"), "untrained").scalar[:, 0] == pytest.approx(around(0.9))
    assert said_of(difference(read("a"), read("b")), found, learned=True)["verdict"] == "untested"


def test_the_majority_of_several_tasks_weighs_them_as_the_score_does():
    numbers = {("a", 400, size): around(0.6) for size in (10, 40, 160)} | {("a", 400, 10, "other"): around(0.2)}
    found = results(numbers)
    shared = {"recipe": "a", "step": 400, "probe": "p", "split": "test", "metric": "majority", "n": 50}
    rows = [
        shared | {"replicate": k, "task": task, "train_size": size, "value": share}
        for task, sizes, share in (("t", (10, 40, 160), 0.5), ("other", (10,), 0.1))
        for size in sizes
        for k in range(1, MANY + 1)
    ]
    scores = rows_to_frame([*found.scores.to_dict("records"), *rows])
    both = Reading("a", "accuracy", ("t", "other"))
    found = Results(found.view, scores)
    assert found.majority(both).scalar[:, 0] == pytest.approx([0.3] * MANY), (
        "a task counts once, of many sizes or of one"
    )
    assert found.values(both).scalar.mean() == pytest.approx((0.6 + 0.2) / 2)


def test_the_last_checkpoint_is_one_for_all_tasks():
    numbers = {("a", 1000, 10): around(0.8), ("a", 200, 10, "other"): around(0.5)}
    reading = Reading("a", None, ("t", "other"))
    for metrics in ({}, {"other": "mcc"}):
        assert not results(numbers, metrics).values(reading).replicates
    numbers["a", 1000, 10, "other"] = around(0.6)
    found = results(numbers, {"other": "mcc"}).values(reading)
    assert found.scalar[:, 0].mean() == pytest.approx(0.7)


def test_the_loss_of_a_curve_over_sizes_is_that_of_its_checkpoint():
    assert loss_of(read("a", step=100, over="train_size", reduce="slope")).step == 100
    assert loss_of(read("a", step="all", over="step")).step == "last"


@pytest.mark.parametrize("form", [Least, Median])
def test_what_is_measured_from_a_level_is_not_nothing_near_it(form):
    found = results({("a", 400, 10): around(0.5, spread=0.001), ("b", 400, 10): around(0.5, spread=0.001)}, margin=0.02)
    parts = tuple(Sum(((1.0, read(name)),), 0.5) for name in "ab")
    assert said_of(parts[0], found)["verdict"] == said_of(form(parts), found)["verdict"] == "inconclusive"
    plain = tuple(difference(read(left), read(right)) for left, right in ("ab", "ba"))
    assert said_of(form(plain), found)["verdict"] == "negligible"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_units_the_smaller_margin_counts(order):
    numbers = {(name, 400, 10, task): around(0.5, spread=0.01) for name in "ab" for task in ("t", "other")}
    found = results(numbers, {"other": "mcc"}, margin=0.05, margins={"mcc": 0.001})
    parts = [difference(*(Reading(name, None, (task,)) for name in "ab")) for task in ("t", "other")]
    claim = Claim("c", "1", "F", "t", Median(tuple(parts[at] for at in order)), learned=False)
    assert claim.least_in(found) == 0.001


def test_a_correlation_inside_another_effect_needs_points_too():
    numbers = {(name, 400, 10): around(0.5 + at / 10) for at, name in enumerate("abc")}
    both = tuple(map(read, "abc"))
    few = Correlation(both, both)
    for effect in (few, Sum(((1.0, few),)), Least((few,))):
        assert "needs 8" in said_of(effect, results(numbers))["why"]


def test_equal_losses_are_asked_of_whole_effects():
    both = tuple(map(read, "ab"))
    for part in (Growth(both), Correlation(both, both, equal_loss=True)):
        with pytest.raises(ValueError, match="for a whole effect"):
            Claim("c", "1", "F", "t", Sum(((1.0, part),)))
    with pytest.raises(ValueError, match="R2"):
        Correlation(both, both, threshold=0.5)
