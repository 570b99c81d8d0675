"""Panels of scores show the majority and the best null, over a range that is no look at noise."""

import math

import numpy as np
import pandas as pd
import pytest
from test_rows import results, table

from masklab.report import compare, levels, marks, style
from masklab.report.cells import NULL
from masklab.report.levels import Levels
from masklab.report.notes import amount, interval
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View


def frame(values, half=0.0):
    values = np.asarray(values, float)
    return pd.DataFrame({"value": values, "low": values - half, "high": values + half})


@pytest.mark.parametrize("values", [[0.49, 0.51], [0.5, 0.5], [0.999, 1.0], [0.0, 0.001]])
def test_no_axis_is_a_look_at_noise(values):
    axes = style.new_figure(3, 2).subplots()
    marks.limits(axes, [frame(values)], [Levels(majority=0.5)], least=-0.02, most=1.02, span=marks.SPAN)
    low, high = axes.get_ylim()
    assert high - low >= marks.SPAN - 1e-9 >= 0.2 - 1e-9
    assert -0.02 <= low <= min(*values, 0.5) and max(*values, 0.5) <= high <= 1.02


def test_an_axis_includes_chance_and_the_null():
    axes = style.new_figure(3, 2).subplots()
    marks.limits(axes, [frame([0.9, 0.95], 0.02)], [Levels(0.5, "chance", 0.3, "untrained")], span=marks.SPAN)
    assert axes.get_ylim()[0] < 0.3 and axes.get_ylim()[1] > 0.97


def test_the_majority_is_drawn_beside_the_best_null_whether_or_not_it_is_asked_for():
    values = {"a": [0.8, 0.81, 0.82]}
    readings = {"A": Reading("a", tasks=("rte",), step="all", over="step")}
    for nulls, expected in (({}, {"majority"}), ({"shuffled": [0.75] * 3}, {"majority", "best null (shuffled)"})):
        axes = style.new_figure(3, 2).subplots()
        data, own = marks.curves(axes, results(values, nulls=nulls), readings, style.looks(readings))
        drawn = {line.get_ydata()[0] for line in axes.get_lines() if line.get_label() == "_level"}
        assert drawn == set(own.shown()) == ({0.68, 0.75} if nulls else {0.68})
        assert data["majority"].tolist() == [0.68] and (data["null"].tolist() == [0.75] if nulls else True)
        assert set(levels.keys([own])) == expected


def test_levels_of_several_are_the_best_of_each():
    both = levels.together([Levels(0.5, "chance", 0.6, "untrained"), Levels(0.7), Levels()])
    assert (both.majority, both.null, both.kind) == (0.7, 0.6, "untrained")
    losses = [Levels(null=value, kind=kind, sign=-1) for value, kind in ((4.1, "shuffled"), (3.2, "untrained"))]
    assert levels.together(losses) == losses[1]
    assert levels.together([]).shown() == [] and levels.keys([Levels()]) == {}


@pytest.mark.parametrize(("count", "steps", "kind"), [(2, 3, "band"), (2, 2, "bar"), (2, 1, "bar"), (5, 3, "bar")])
def test_intervals_are_seen_and_named_in_the_legend(count, steps, kind):
    """A band over one checkpoint has no width, and one over two says nothing of what is between them."""
    values = {name: [0.8, 0.82, 0.84] for name in "abcde"[:count]}
    readings = {name: Reading(name, tasks=("rte",), step="all", over="step") for name in values}
    axes = style.new_figure(3, 2).subplots()
    found = results(values, steps=tuple(range(1, steps + 1)))
    data, _ = marks.curves(axes, found, readings, style.looks(readings))
    for drawn in axes.collections:
        box = drawn.get_paths()[0].get_extents()
        assert box.height == pytest.approx((data["high"] - data["low"])[0]) and (box.width > 0) == (kind == "band")
    assert marks.kind_of(found, [readings.values()]) == kind and list(marks.interval_key([data], kind)) == [
        "95 % interval"
    ]
    assert len(axes.collections) == count  # one band, or one set of bars, each
    assert marks.interval_key([data.assign(low=math.nan)], kind) == {}
    assert marks.note([data]) == "mean with its 95 % interval over 3 replicates; n = 100 test items"
    assert marks.note([data.assign(replicates=1)], "") == "one replicate, no interval"
    assert marks.note([data], beside=True).endswith("test items; marks at one x are drawn side by side")


def test_notes():
    assert interval([3, 5], items=True).endswith("over 3 to 5 replicates and test items")
    assert amount([1200, 0, 300], "items") == "300 to 1,200 items" and amount([0], "items") == ""


def test_a_table_and_a_figure_show_one_majority():
    found = table({"a": [0.8, 0.81, 0.82]}).set_index("label")
    own = levels.levels(results({"a": [0.8, 0.81, 0.82]}), [Reading("a", tasks=("rte",))])
    assert found["value"][f"{NULL}majority"] == own.majority == found["majority"]["A"]


OWN = {"A": Reading("a", "filled", probe="fill", step="all", over="step")}


def of_ones_own(trained, untrained, **more) -> Results:
    """Scores of a probe of one's own: of a recipe and its null, which lie .01 apart from replicate to replicate.

    more: facts of the probe, and of a null `shuffled` its score.
    """
    others = {"shuffled.a": more.pop("shuffled")} if "shuffled" in more else {}
    rows = [
        {"recipe": recipe, "replicate": replicate, "step": 9, "probe": "p", "task": "c", "split": "test", "n": 100,
         "metric": "filled", "value": value + replicate / 100}
        for recipe, value in {"a": trained, "untrained.a": untrained, **others}.items() for replicate in (1, 2, 3)
    ]  # fmt: skip
    recipes = {name: {"steps": 9, "corpus": "c", "corpus.redrawn": False} for name in ("a", "untrained.a", *others)}
    probes = {"p": {"kind": "fill", "tasks": [], "recipes": list(recipes), **more}}
    nulls = {"a": {name.partition(".")[0]: name for name in recipes if name != "a"}}
    view = View("s", panels={"all": {"A": "a"}}, recipes=recipes, nulls=nulls, probes=probes)
    return Results(view, rows_to_frame(rows))


def test_a_metric_of_ones_own_has_a_null_and_no_majority():
    """A reading of no task: the untrained null is drawn, and a cell's mark is for scores of tasks alone."""
    axes = style.new_figure(3, 2).subplots()
    data, own = marks.curves(axes, of_ones_own(0.6, 0.1), OWN, style.looks(OWN))
    assert own.kind == "untrained" and own.null == pytest.approx(0.12) and math.isnan(own.majority)
    assert data["value"].tolist() == pytest.approx([0.62]) and data["majority"].isna().all()
    assert set(levels.keys([own])) == {"best null (untrained)"}


@pytest.mark.parametrize(("lower", "best"), [([], "untrained"), (["filled"], "shuffled")])
def test_the_best_null_is_the_lowest_where_less_is_better(lower, best):
    found = of_ones_own(0.1, 0.6, shuffled=0.4, lower=lower)
    own = levels.levels(found, [OWN["A"]])
    assert own.kind == best and own.null == pytest.approx({"untrained": 0.62, "shuffled": 0.42}[best])
    assert set(levels.keys([levels.together([own])])) == {f"best null ({best})"}


def test_the_best_null_of_a_loss_is_the_lowest():
    at = {"step": 9, "probe": "l", "task": "c", "split": "test", "n": 100, "metric": "loss"}
    losses = {"a": 3.0, "untrained": 9.0, "shuffled": 7.0}
    rows = [at | {"recipe": name, "replicate": r, "value": loss} for name, loss in losses.items() for r in (1, 2)]
    nulls = {"a": {name: name for name in ("untrained", "shuffled")}}
    probes = {"l": {"kind": "loss", "tasks": [], "recipes": list(losses)}}
    view = View("s", panels={"all": {"A": "a"}}, recipes={name: {} for name in losses}, nulls=nulls, probes=probes)
    own = levels.levels(Results(view, rows_to_frame(rows)), [Reading("a", "loss")])
    assert (own.kind, own.null) == ("shuffled", 7.0)


def test_a_metric_that_has_no_limits_is_within_its_axes():
    """Log probabilities, say: far below what a score can be."""
    axes = style.new_figure(3, 2).subplots()
    data, own = marks.curves(axes, of_ones_own(-3.5, -4.2), OWN, style.looks(OWN))
    low, high = axes.get_ylim()
    assert low < own.null < data["low"][0] < data["high"][0] < high < -3 and own.null == pytest.approx(-4.18)


def of_two_tasks(steps, whole):
    """Recipes a and b: task `one` at these steps, `two` at those of `whole`."""
    rows = [
        {"recipe": recipe, "replicate": k, "step": step, "probe": task, "task": task, "split": "test", "n": 100,
         "metric": "accuracy", "value": 0.7 + 0.01 * k}
        for recipe in "ab" for k in (1, 2, 3) for task, at in (("one", steps), ("two", whole)) for step in at
    ]  # fmt: skip
    view = View(
        "s", panels={"p": {"A": "a", "B": "b"}}, recipes={name: {"steps": 9} for name in "ab"},
        tasks={name: {"metric": "accuracy", "redrawn": False} for name in ("one", "two")},
        probes={name: {"kind": "finetune", "tasks": [name], "recipes": ["a", "b"]} for name in ("one", "two")},
    )  # fmt: skip
    return Results(view, rows_to_frame(rows))


def test_a_set_that_is_whole_at_one_checkpoint_has_bars_side_by_side():
    """It has unmeasured points at the other checkpoints of a part of it; other panels keep their bands."""
    found = of_two_tasks((3, 6, 9), (9,))
    cells = {
        name: {label: Reading(label.lower(), tasks=tasks, step="all", over="step") for label in "AB"}
        for name, tasks in {"part": ("one",), "both": ("one", "two")}.items()
    }
    assert [marks.kind_of(found, [cells[name].values()]) for name in cells] == ["band", "bar"]
    figure, _ = compare.curves(found, {"p": cells})
    for axes, bands in zip(figure.axes, (True, False), strict=True):
        assert bands == all(box.get_paths()[0].get_extents().width > 0 for box in axes.collections)
    lines = [line for line in figure.axes[1].get_lines() if line.get_label() in ("A", "B")]
    at = [line.get_transform().transform(line.get_xydata())[0, 0] for line in lines]
    assert at[1] - at[0] == pytest.approx(marks.APART * figure.dpi / 72)
    assert [text.get_text() for text in figure.legends[0].get_texts()][2] == "95 % interval (band or bar)"


@style.paper
def test_marks_that_share_no_x_are_not_moved_from_where_they_are():
    """Recipes of one checkpoint each, after unlike numbers of updates."""
    for steps, moved in (((3, 6), False), ((3, 3), True)):
        rows = [
            {"recipe": recipe, "replicate": k, "step": step, "probe": "one", "task": "one", "split": "test", "n": 100,
             "metric": "accuracy", "value": 0.7 + 0.01 * k}
            for recipe, step in zip("ab", steps, strict=True) for k in (1, 2, 3)
        ]  # fmt: skip
        found = Results(of_two_tasks((3,), ()).view, rows_to_frame(rows))
        chosen = {label: Reading(label.lower(), tasks=("one",), step="all", over="step") for label in "AB"}
        figure, _ = compare.curves(found, {"p": {"one": chosen}})
        lines = [line for line in figure.axes[0].get_lines() if line.get_label() in ("A", "B")]
        assert [line.get_transform() != figure.axes[0].transData for line in lines] == [moved, moved]
        assert ("side by side" in " ".join(figure.legends[0].get_title().get_text().split())) == moved


def test_short_curves_among_bands_lie_side_by_side():
    axes = style.new_figure(3, 2).subplots()
    short = frame([0.7], 0.1).assign(x=1.0)
    lines = [marks.curve(axes, short, {"color": "k"}, "band", (number, 2)) for number in range(2)]
    at = [line.get_transform().transform(line.get_xydata())[0, 0] for line in lines]
    assert at[1] - at[0] == pytest.approx(marks.APART * axes.figure.dpi / 72)


@style.paper
def test_a_figure_of_one_s_own_says_what_its_lines_are():
    values = {"a": [0.8, 0.82, 0.84], "b": [0.7, 0.72, 0.74]}
    readings = {name.upper(): Reading(name, tasks=("rte",), step="all", over="step") for name in values}
    for steps, beside in (((1, 2, 3), False), ((1, 2), True)):
        found = results(values, nulls={"shuffled": [0.6] * 3}, steps=steps)
        figure, axes = style.one_panel()
        data, own = marks.curves(axes, found, readings, style.looks(readings))
        marks.explain(figure, found, readings, data, own, "sentences")
        told = [text.get_text() for text in figure.legends[0].get_texts()]
        assert told == ["A", "B", "95 % interval", "majority", "best null (shuffled)"]
        said = " ".join(figure.legends[0].get_title().get_text().split())
        assert said.startswith("mean with its 95 % interval over 3 replicates; n = 100 sentences")
        assert said.endswith(marks.BESIDE) == beside
