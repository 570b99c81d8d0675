"""Curves of any study over training examples, and of its losses: each beside its null and its floor."""

import copy

import numpy as np
import pytest

import synthetic
from drawn import all_is_in_view, nothing_overlaps
from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.scores.results import Results
from masklab.scores.view import View
from masklab.studies import find

RAW = plain(layered())
SIZES = [50, 100, 400]
OWN, NULL = {50: 0.60, 100: 0.68, 400: 0.80}, {50: 0.52, 100: 0.59, 400: 0.97}  # once above all recipes
FLOORS = {"one": 2.0, "two": 2.1}


def config_of(two=None, **changes):
    """two: what the second recipe has of its own; changes: of the study."""
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    raw["encoders"] |= {"wide": {"like": "tiny", "hidden": 96}}
    raw["probes"] |= {
        "tuned": {"kind": "finetune", "tasks": ["sentiment", "acceptability"], "sizes": SIZES},
        "lost": {"kind": "loss", "steps": "all"},
    }
    raw["models"] |= {"one": {"like": "strict-phase1", "checkpoints": [500, 1000, 1500]}}
    raw["models"] |= {"two": {"like": "one", "optimiser": {"lr": 1.0e-4}} | (two or {})}
    study = {
        "replicates": 3,
        "nulls": ["untrained", "majority"],
        "panels": {"p": {"One": "one", "Two": "two"}},
        "probes": {"tuned": "all", "lost": "all", "minimal-pairs": "all"},
    }
    return load(raw | {"studies": {"mine": study | changes}})


def level(cell):
    if cell["metric"] in ("accuracy", "mcc") and cell["kind"] == "finetune":
        return (NULL if cell["null"] else OWN)[cell["train_size"]]
    return FLOORS.get(cell["recipe"], 2.0) if cell["metric"] == "floor" else None


def drawn(name, config, change=lambda scores: scores, world=level):
    results = synthetic.results(config, "mine", world)
    results = Results(results.view, change(results.scores), models=results.models)
    figure, data = find("mine", config.studies["mine"], "figures", name).draw(results)
    nothing_overlaps(figure)
    all_is_in_view(figure)
    return figure, data


def test_scores_over_training_examples_beside_the_best_null_of_each_number():
    figure, data = drawn("size_curves", config_of())
    assert set(data["set"]) == {"sentiment", "acceptability"}, "minimal pairs have no training examples"
    for (_, label), curve in data.groupby(["set", "label"]):
        assert list(curve["train_size"]) == SIZES and label in ("One", "Two")
        assert np.allclose(curve["value"], [OWN[size] for size in SIZES], atol=0.02)
        assert np.allclose(curve["null"], [NULL[size] for size in SIZES], atol=0.02)
        assert (curve["majority"] == 0.5).all() and set(curve["null_kind"]) == {"untrained"}
    for axes, name in zip(figure.axes, ("sentiment", "acceptability"), strict=True):
        lines = [line for line in axes.get_lines() if line.get_label() == "_level"]
        (bent,) = (line for line in lines if len(set(line.get_ydata())) > 2)
        assert axes.get_ylim()[0] < min(bent.get_ydata()) < max(bent.get_ydata()) < axes.get_ylim()[1]
        assert list(bent.get_xdata()) == SIZES and axes.get_xlabel() == "Training examples (log scale)"
        expected = data[(data["set"] == name) & (data["label"] == "One")]["null"]
        assert np.allclose(bent.get_ydata(), expected)
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "best null (untrained)" in keys and "majority" in keys


def test_the_best_null_of_a_size_is_that_of_the_best_recipe_there():
    def better(scores):
        """The null of one recipe is better at 100 examples, that of the other at 400."""
        for null, size, value in (("untrained.one", 100, 0.66), ("untrained.two", 400, 0.99)):
            rows = (scores["recipe"] == null) & (scores["train_size"] == size) & (scores["metric"] != "majority")
            scores = scores.assign(value=scores["value"].where(~rows, value))
        return scores

    config = config_of(two={"encoder": "wide"})
    nulls = View.of(config, "mine").nulls
    assert [nulls[name]["untrained"] for name in ("one", "two")] == ["untrained.one", "untrained.two"]
    _, data = drawn("size_curves", config, better)
    best = {size: set(own.round(9)) for size, own in data.groupby("train_size")["null"]}
    assert best[100] == {0.66} and best[400] == {0.99}


def test_the_majority_is_no_best_null_of_a_size_and_each_null_is_named_once():
    """At each size another null is the best, in each panel others; that of 400 is below the majority."""

    def crossing(cell):
        if cell["metric"] in ("accuracy", "mcc") and cell["null"] and cell["kind"] == "finetune":
            first = cell["task"] == "sentiment"
            best = {50: "untrained", 100: "shuffled", 400: "untrained"}[cell["train_size"]] == cell["null"]
            return 0.48 if cell["train_size"] == 400 else 0.6 if best == first else 0.55
        return level(cell)

    config = config_of(nulls=["untrained", "shuffled", "majority"])
    figure, data = drawn("size_curves", config, world=crossing)
    assert (data[data["train_size"] == 400]["null"] < 0.5).all() and set(data["null_kind"]) == {"untrained", "shuffled"}
    (key,) = (text.get_text() for text in figure.legends[0].get_texts() if "null" in text.get_text())
    assert key in ("best null (untrained, shuffled)", "best null (shuffled, untrained)")


def test_no_probe_with_several_sizes_is_said_before_anything_runs():
    config = config_of(probes={"minimal-pairs": "all"})
    with pytest.raises(MaskLabError, match="at several training sizes; give a probe of kind finetune"):
        find("mine", config.studies["mine"], "figures", "size_curves").needs(View.of(config, "mine"))


def test_losses_over_updates_beside_the_least_possible():
    figure, data = drawn("loss_curves", config_of())
    assert set(data["step"]) == {500, 1000, 1500} and set(data["panel"]) == {"p"}
    floors = data.groupby("recipe")["floor"].unique()
    assert {recipe: list(floor.round(9)) for recipe, floor in floors.items()} == {
        recipe: [pytest.approx(floor, abs=0.01)] for recipe, floor in FLOORS.items()
    }
    (axes,) = figure.axes
    lines = {line.get_ydata()[0]: line.get_color() for line in axes.get_lines() if line.get_label() == "_floor"}
    curves = {line.get_label(): line.get_color() for line in axes.get_lines()}
    assert sorted(lines) == pytest.approx(sorted(data["floor"].unique())), "each in view, in the colour of its curve"
    assert [lines[floor] for floor in sorted(lines)] == [curves["One"], curves["Two"]]
    assert axes.get_ylabel() == "loss (nats per token)" and axes.get_ylim()[0] < min(lines)
    assert "least possible loss" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_one_least_loss_is_one_line_and_one_that_nobody_knows_none():
    def alike(scores):
        return scores.assign(value=scores["value"].where(scores["metric"] != "floor", 2.0))

    figure, _ = drawn("loss_curves", config_of(), alike)
    assert len([line for line in figure.axes[0].get_lines() if line.get_label() == "_floor"]) == 1
    figure, data = drawn("loss_curves", config_of(), lambda scores: scores[~scores["metric"].isin(["floor", "gap"])])
    assert data["floor"].isna().all() and not [x for x in figure.axes[0].get_lines() if x.get_label() == "_floor"]
    assert "least possible loss" not in [text.get_text() for text in figure.legends[0].get_texts()]


def test_no_loss_is_said_before_anything_runs():
    config = config_of(probes={"minimal-pairs": "all"})
    with pytest.raises(MaskLabError, match="no loss probe of the study measures a recipe of its panels"):
        find("mine", config.studies["mine"], "figures", "loss_curves").needs(View.of(config, "mine"))


def crowd(count, beside=2):
    """The figure of curves of so many recipes, of which later ones end higher, beside panels of two; their labels."""
    labels = [f"rate {5 * (number + 1)} %" for number in range(count)]
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    raw["probes"] |= {"pairs": {"kind": "minimal_pairs", "tasks": ["blimp"], "steps": "all"}}
    recipe = {"like": "strict-phase1", "checkpoints": [500, 1000, 1500]}
    raw["models"] |= {f"rate{n}": recipe | {"masking": {"rate": 0.05 * (n + 1)}} for n in range(count)}
    panel = {label: f"rate{number}" for number, label in enumerate(labels)}
    study = {"replicates": 3, "nulls": ["untrained"], "panels": {"p": panel}, "probes": {"pairs": "all"}}
    study["panels"] |= {f"p{number}": dict(list(panel.items())[:2]) for number in range(beside)}

    def better(cell):
        if cell["metric"].startswith("accuracy") and not cell["null"]:
            return 0.6 + 0.02 * int(cell["recipe"].removeprefix("rate")) * cell["step"] / 1500
        return None

    config = load(raw | {"studies": {"mine": study}})
    figure, _ = find("mine", config.studies["mine"], "figures", "curves").draw(
        synthetic.results(config, "mine", better)
    )
    nothing_overlaps(figure)
    all_is_in_view(figure)
    return figure, labels


def look_of(line):
    return line.get_color(), line.get_marker(), line.get_markerfacecolor(), line.get_linestyle()


def test_many_curves_have_thin_lines_that_differ_and_a_key_in_the_order_of_their_ends():
    figure, labels = crowd(12)
    lines = [line for line in figure.axes[0].get_lines() if line.get_label() in labels]
    assert len({look_of(line)[:3] for line in lines}) == 12 and {line.get_linewidth() for line in lines} == {1.0}
    hollow = [line.get_label() for line in lines if line.get_markerfacecolor() == "white"]
    assert hollow == labels[8:], "the colours of the first eight come a second time"
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys[:12] == labels[::-1] and keys[-1] == "best null (untrained)"
    note = " ".join(figure.legends[0].get_title().get_text().split())
    assert "curves are listed from the one that ends highest in (a)" in note
    assert len({axes.get_position().x0.round(3) for axes in figure.axes}) == 2, "wide enough to tell curves apart"
    moved = [line.get_transform().transform((0, 0))[0] for line in lines]
    assert max(moved) - min(moved) < 6 * 2.2 * figure.dpi / 72, "bars of more curves lie closer"


def test_up_to_six_curves_look_as_two_do():
    figure, labels = crowd(6)
    lines = [line for line in figure.axes[0].get_lines() if line.get_label() in labels]
    assert len({axes.get_position().x0.round(3) for axes in figure.axes}) == 3
    assert {line.get_linewidth() for line in lines} == {1.4} and "white" not in {look_of(line)[2] for line in lines}
    assert [text.get_text() for text in figure.legends[0].get_texts()][:6] == labels


@pytest.mark.parametrize("labels", [("_level", "_hollow"), ("majority", "95 % interval"), ("least possible loss", "_")])
@pytest.mark.parametrize("name", ["size_curves", "loss_curves", "bars"])
def test_a_curve_has_its_own_key_whatever_its_label(name, labels):
    """Also where it is called like a level, an interval or what a figure calls such a line by itself."""
    keys = {}
    for one, two in (("One", "Two"), labels):
        figure, _ = drawn(name, config_of(panels={"p": {one: "one", two: "two"}}))
        (legend,) = figure.legends
        color = "get_facecolor" if name == "bars" else "get_color"
        keys[one] = [getattr(handle, color)() for handle in legend.legend_handles[:2]], len(legend.get_texts())
        assert [text.get_text() for text in legend.get_texts()[:2]] == [one, two]
    assert keys["One"] == keys[labels[0]], "the same colours, and no entry less"
