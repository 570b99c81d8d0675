"""Claims about tasks that the best models fail, about most of several tasks, and about updates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from masklab.claims.claim import Claim
from masklab.claims.effects import Crossing, Least, Lowest, Median, Reach, difference
from masklab.claims.values import values
from masklab.claims.verdict import test_claims as verdicts
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

TASKS = ("control", "hard", "other")
FACTS = {"steps": 400, "corpus": "c"}
PROBE = {"kind": "finetune", "tasks": list(TASKS), "recipes": ["a", "b", "null"]}


def view():
    return View(
        "s",
        panels={"one": {"A": "a", "B": "b"}},
        recipes={"a": FACTS, "b": FACTS, "null": FACTS | {"steps": 0}},
        nulls={"a": {"untrained": "null"}, "b": {"untrained": "null"}},
        replicates=dict.fromkeys(("a", "b", "null"), 3),
        tasks={task: {"metric": "mcc", "redrawn": False} for task in TASKS},
        probes={"p": PROBE},
    )


def results(values, steps=(100, 200, 400)):
    """values: (recipe, task) -> the values at these steps; replicate r has .001 r more."""
    rows = [
        {"recipe": recipe, "replicate": r, "step": step, "probe": "p", "task": task, "split": "test"}
        | {"metric": "mcc", "value": value + 0.001 * r, "n": 50}
        for (recipe, task), curve in values.items()
        for step, value in zip(steps, curve, strict=True)
        for r in (1, 2, 3)
    ]
    return Results(view(), rows_to_frame(rows))


def flat(**values):
    """Values at all three steps of each recipe on control, hard, other."""
    cells = {recipe: zip(TASKS, own, strict=True) for recipe, own in values.items()}
    return {(recipe, task): [value] * 3 for recipe, own in cells.items() for task, value in own}


def claim(effect, **more):
    return Claim("c", "1", "1", "a is better", effect, **more)


def row(effect, found, **more):
    return verdicts([claim(effect, **more)], found).iloc[0]


def gap(task):
    return difference(Reading("a", tasks=(task,)), Reading("b", tasks=(task,)))


def test_a_task_below_its_null_counts_if_its_control_was_learned():
    found = results(flat(a=(0.9, -0.3, 0), b=(0.8, -0.6, 0), null=(0.1, 0.0, 0)))
    assert row(gap("hard"), found)["verdict"] == "untested"
    with_control = row(gap("hard"), found, learned_tasks=("control",))
    assert with_control[["verdict", "value"]].tolist() == ["supported", pytest.approx(0.3)]
    unlearned = results(flat(a=(0.1, -0.3, 0), b=(0.1, -0.6, 0), null=(0.1, 0.0, 0)))
    said = row(gap("hard"), unlearned, learned_tasks=("control",))
    assert said["verdict"] == "untested" and "on control" in said["why"]
    assert claim(gap("hard"), learned_tasks=("control",)).needs(view()) == [("p", "a"), ("p", "null"), ("p", "b")]
    assert claim(gap("hard"), learned=False, learned_tasks=("control",)).to_learn(view()) == []


def test_either_of_two_curves_may_be_the_sooner():
    """The level is the lower of both ends: A ends with it; B, which is above A all along, has it after 150 updates."""
    curves = {("a", "control"): [0.2, 0.3, 0.5], ("b", "control"): [0.4, 0.6, 0.7], ("null", "control"): [0.0] * 3}
    last = Lowest(tuple(Reading(name, tasks=("control",)) for name in "ab"))
    reaches = (Crossing(Reading(name, tasks=("control",), step="all", over="step"), None, last, 400) for name in "ab")
    said = row(difference(*reaches), results(curves), region="below 0")
    assert said["value"] == pytest.approx(1 - 150 / 400) and said["verdict"] == "contradicted"
    assert "A reaches A's or B's, the lower, mcc on control" in said["comparison"]


def test_that_a_model_fails_is_tested_where_another_learned_the_task():
    """A is below its nulls, which is what the claim says; B, which it does not read, is above them."""
    found = results(flat(a=(0.05, 0, 0), b=(0.9, 0, 0), null=(0.1, 0, 0)))
    reads = Reading("a", "mcc", ("control",), step=100)
    effect = difference(replace(reads, step="last"), reads, 0.02)
    assert row(effect, found, region="below 0")["verdict"] == "untested"
    said = row(effect, found, region="below 0", learned_by=("b",))
    assert said["verdict"] == "supported" and said["value"] == pytest.approx(-0.02)
    assert claim(effect, learned_by=("b",)).needs(view()) == [("p", "a"), ("p", "null"), ("p", "b")]


def test_a_median_is_above_0_if_most_parts_are():
    found = results(flat(a=(0.9, 0.4, 0.5), b=(0.8, 0.2, 0.9), null=(0, 0, 0)))
    effect = Median(tuple(gap(task) for task in TASKS))
    said = row(effect, found)
    assert said["value"] == pytest.approx(0.1) and said["verdict"] == "supported"
    assert said["comparison"].startswith("median of (A - B: mcc on control), (A - B: mcc on hard)")


@pytest.mark.parametrize(("level", "share"), [(0.5, 0.375), (0.2, 0.25), (0.95, 1.0)])
def test_updates_are_what_a_crossing_costs_unless_another_cost_is_said(level, share):
    values = flat(a=(0, 0, 0), b=(level,) * 3, null=(0, 0, 0)) | {("a", "control"): [0.4, 0.6, 0.9]}
    curve = Reading("a", tasks=("control",), step="all", over="step")
    effect = Crossing(curve, None, Reading("b", tasks=("control",)), 400)
    said = row(effect, results(values))
    assert said["value"] == pytest.approx(share)  # halfway from 100 to 200 updates; at the first; never
    assert said["comparison"] == "share of 400 updates after which A reaches B's mcc on control"
    assert np.isclose(said["high"], said["low"])


@pytest.mark.parametrize(
    ("sizes", "spread", "verdict", "least"),
    [
        ("all", 0.003, "negligible", 0.005),  # .02 in four doublings
        ("all", 0.005, "inconclusive", None),
        ("small", 0.003, "negligible", 0.005),  # of the two from 10 to 40 examples: as many as the curve has
    ],
)
def test_a_slope_counts_if_it_comes_to_the_margin_over_all_sizes(sizes, spread, verdict, least):
    """Slopes whose interval over replicates has the half width of `spread`, to both sides of 0."""
    error = spread / stats.t.ppf(0.975, 2) * 3**0.5
    rows = [
        {"recipe": name, "replicate": r, "step": 400, "probe": "p", "task": "control", "split": "test"}
        | {"metric": "mcc", "value": 0.5 + (name == "a") * error * (r - 2) * np.log2(size / 10), "n": 50}
        | {"train_size": size}
        for name in "ab"
        for size in (10, 40, 160)
        for r in (1, 2, 3)
    ]
    slopes = [Reading(name, "mcc", ("control",), sizes=sizes, over="train_size", reduce="slope") for name in "ab"]
    found = Results(view(), rows_to_frame(rows))
    said = verdicts([Claim("faster", "1", "F", "grows faster", difference(*slopes), learned=False)], found).iloc[0]
    assert said["verdict"] == verdict and said["high"] == pytest.approx(spread)
    if least is not None:
        assert said["why"] == f"shown to be less than {least:g}" and said["unit"] == "mcc per doubling"
    falls = Claim("persists", "1", "F", "does not fall", difference(*slopes), "no less", learned=False)
    for given in (found.view, replace(found.view, margin=0.4, margins={"mcc": 0.02})):
        said = verdicts([falls], Results(given, rows_to_frame(rows)))
        assert said["margin"].tolist() == [pytest.approx(0.005)]


@pytest.mark.parametrize(
    "curve,level,examples",
    [
        ((0.5, 0.6, 0.8), 0.7, 10 * 4**1.5),  # half way between 40 and 160, on a log axis
        ((0.5, 0.6, 0.8), 0.6, 40),
        ((0.75, 0.8, 0.9), 0.7, 10),  # at the first size already: an upper bound
        ((0.5, 0.6, 0.65), 0.7, 160),  # never: the last, a lower bound
    ],
)
def test_examples_until_a_level_is_reached(curve, level, examples):
    rows = [
        {"recipe": "a", "replicate": r, "step": 400, "probe": "p", "task": "control", "split": "test"}
        | {"metric": "mcc", "value": value, "n": 50, "train_size": size}
        for size, value in zip((10, 40, 160), curve, strict=True)
        for r in (1, 2, 3)
    ]
    found = Results(view(), rows_to_frame(rows))
    effect = Reach(Reading("a", "mcc", ("control",), over="train_size"), level)
    assert 2 ** values(effect, found).scalar[:, 0] == pytest.approx(examples)
    assert effect.unit(view()) == "doublings" and f"is {level:g}" in effect.words(view())


def test_each_part_of_a_least_needs_a_recipe_that_has_learned():
    """At first none is above the null: that A is better all along is not shown; that it is not may be shown later."""

    def found(a, b):
        curves = {("a", "control"): a, ("b", "control"): b, ("null", "control"): [0.4] * 3}
        return results(curves)

    first, last = (
        difference(*(Reading(name, tasks=("control",), step=step) for name in "ab")) for step in (100, "last")
    )
    both, learns = Least((last, Least((first, last)))), found([0.3, 0.5, 0.9], [0.2, 0.5, 0.8])
    said = row(both, learns)
    assert said["verdict"] == "untested" and "step 100" in said["why"]
    assert row(Median((first, last)), learns)["verdict"] == "supported", "of most of them it is enough"
    assert row(both, found([0.6, 0.7, 0.9], [0.5, 0.6, 0.8]))["verdict"] == "supported"
    assert row(both, found([0.3, 0.5, 0.7], [0.2, 0.5, 0.8]))["verdict"] == "contradicted", "at the last, learned"
    assert row(both, found([0.1, 0.5, 0.9], [0.2, 0.5, 0.8]))["verdict"] == "untested", "where nothing was learned"
