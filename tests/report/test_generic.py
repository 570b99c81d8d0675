"""The table and the figures of any study, on the scores of one under a name of its own."""

import copy
import re
from dataclasses import replace

import numpy as np
import pytest

import synthetic
from drawn import all_is_in_view, nothing_overlaps
from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.report import compare, generic, style
from masklab.report.cells import TIDY, filled, markdown, tidy
from masklab.report.notes import letter_of
from masklab.scores.estimate import estimate
from masklab.scores.results import Results
from masklab.scores.view import View
from masklab.studies import comparisons, find, items

RAW = overlay(plain(layered()), {"extends": [], "studies": {"mlsm": {"replicates": 3}}})


@pytest.fixture(scope="module")
def config():
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    study = raw["studies"]["mlsm"] | {"figures": ["bars", "curves"], "tables": ["comparison"], "claims": []}
    return load(raw | {"studies": {"平滑": study}})


@pytest.fixture(scope="module")
def results(config):
    return synthetic.results(config, "平滑")


def test_a_study_without_a_wing_has_the_generic_items():
    assert set(items("figures", None)) == {"bars", "curves", "size_curves", "loss_curves"}
    assert set(items("tables", None)) == {"comparison", "losses"}


@pytest.mark.parametrize("name", ("bars", "curves"))
def test_figures(name, config, results):
    figure, data = find("平滑", config.studies["平滑"], "figures", name).draw(results)
    assert np.isfinite(data[["value", "low", "high", "null"]]).all(axis=None) and (data["replicates"] == 3).all()
    assert set(data["panel"]) == {"strict", "strict-small"}
    values = np.round(data["value"], 9)
    for axes in figure.axes:
        bars = [bar.get_height() for bar in axes.patches]
        lines = [line.get_ydata() for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
        assert bars or lines
        for drawn in (bars, *lines):
            assert np.isin(np.round(drawn, 9), values).all()
    nothing_overlaps(figure)
    all_is_in_view(figure)
    assert name != "bars" or len({axes.get_ylim() for axes in figure.axes}) == 1, "panels of one metric compare"


@pytest.mark.parametrize("name", ("bars", "curves"))
def test_a_figure_is_over_the_replicates_that_all_its_models_have(name, config, results):
    """The third has a language on which all is easy, and one model and its nulls alone have it."""
    scores, nulls = results.scores.copy(), results.view.nulls["strict-mlm"].values()
    third, alone = scores["replicate"] == 3, scores["recipe"].isin(["strict-mlm", *filter(None, nulls)])
    scores.loc[third & (scores["metric"] == "accuracy"), "value"] = 1.0
    item = find("平滑", config.studies["平滑"], "figures", name)
    uneven, even = (
        item.draw(Results(results.view, scores[kept], models=results.models))[1] for kept in (~third | alone, ~third)
    )
    assert set(uneven["replicates"]) == {2} and uneven.equals(even)


def test_comparison(config, results):
    item = find("平滑", config.studies["平滑"], "tables", "comparison")
    table = item.function()(results, item.choose(results.view))
    assert list(table.columns) == TIDY and np.isfinite(table["value"]).all()
    cells = table[table["label"] == "MLM"].set_index(["panel", "row"])["value"]
    assert cells["strict", "mean of glue"] == pytest.approx(cells["strict"][["acceptability", "sentiment"]].mean())
    assert "null: untrained" in set(table["label"])


def test_comparison_says_how_far_recipes_are_from_the_first(config, results):
    """Within replicates, whose intervals are those of differences and not those of the cells."""
    item = find("平滑", config.studies["平滑"], "tables", "comparison")
    chosen = item.choose(results.view)
    small = item.function()(results, {"strict-small": chosen["strict-small"]})
    first, *others = chosen["strict-small"]["sentiment"]
    apart = small[small["mark"] == "difference"]
    assert set(apart["label"]) == {f"{other} − {first}" for other in others} and set(apart["recipe"]) == {""}
    own = [results.values(chosen["strict-small"]["sentiment"][label]).scalar[:, 0] for label in (others[0], first)]
    row = apart[(apart["row"] == "sentiment") & (apart["label"] == f"{others[0]} − {first}")].iloc[0]
    expected = estimate(own[0] - own[1])
    assert [row["value"], row["low"], row["high"]] == pytest.approx([expected.value, expected.low, expected.high])
    text = markdown(small)
    assert (
        f"| {row['value']:+.3f} ± {row['half']:.3f} |" in text and "an interval without 0 tells the two apart" in text
    )
    assert "difference" not in set(item.function()(results, {"strict": chosen["strict"]})["mark"])  # five recipes


def test_a_set_of_one_task_is_a_row_of_its_name_and_bars_say_their_items(config, results):
    study = config.studies["平滑"]
    view = replace(results.view, sets={"Sentiment": ["sentiment"], "others": ["blimp", "acceptability"]})
    assert list(generic.rows(view)) == ["Sentiment", "blimp", "acceptability", "mean of others"]
    twice = {"both": ["blimp", "sentiment"], "grammar": ["blimp"]}
    assert generic.rows(replace(view, sets=twice)) == {
        "sentiment": ("sentiment",), "mean of both": ("blimp", "sentiment"), "grammar": ("blimp",)
    }, "no row stands there twice"  # fmt: skip
    crossed = {"blimp": ["sentiment"], "all": ["blimp", "acceptability"]}
    assert generic.rows(replace(view, sets=crossed)) == {
        "set blimp": ("sentiment",), "blimp": ("blimp",), "acceptability": ("acceptability",),
        "mean of all": ("blimp", "acceptability"),
    }, "a set that is called like another's task does not hide it"  # fmt: skip
    mean = {"mean of all": ["sentiment"], "all": ["blimp", "acceptability"]}
    assert generic.rows(replace(view, sets=mean)) == {
        "set mean of all": ("sentiment",), "blimp": ("blimp",), "acceptability": ("acceptability",),
        "mean of all": ("blimp", "acceptability"),
    }, "nor does one that is called like another's mean"  # fmt: skip
    figure, data = find("平滑", study, "figures", "bars").draw(results)
    ticks = [tick.get_text() for axes in figure.axes for tick in axes.get_xticklabels()]
    counts = data.groupby("row")["n"].max()
    told = dict(re.sub(r" \((accuracy|MCC)\)", "", tick).split(", n = ") for tick in ticks)
    assert counts.nunique() > 1 and told == {row: f"{count:,}" for row, count in counts.items()}


def lacking(**changes):
    """What is said of a study that has nothing to compare."""
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    study = raw["studies"]["mlsm"] | {"figures": [], "tables": [], "claims": [], "headline": [], "nulls": []} | changes
    raw["probes"]["far"] = {"kind": "loss"}
    config = load(raw | {"studies": {"平滑": study}})
    with pytest.raises(MaskLabError) as caught:
        find("平滑", config.studies["平滑"], "tables", "comparison").needs(View.of(config, "平滑"))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nothing_to_compare_is_said_with_what_to_do():
    said = lacking(probes={"far": "all"})
    assert "finetune or linear_probe or minimal_pairs" in said and "the study's probes are: 'far' (loss)" in said
    assert "docs/your-own-study.md" in said
    assert "are: none;" in lacking(probes={})
    said = lacking(probes={"minimal-pairs": ["strict-phase1"]})
    assert (
        "'minimal-pairs' measures strict-phase1: name recipes of the panels" in said and "`minimal-pairs: all`" in said
    )
    said = lacking(probes={"minimal-pairs": "all"}, sets={"glue": ["sentiment"]})
    assert "its sets name sentiment, and its probes measure blimp" in said


def test_sets_may_name_paradigms():
    """A job gets the part of the study that it shows, with these sets."""
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    study = raw["studies"]["mlsm"] | {"figures": [], "tables": ["comparison"], "claims": [], "headline": []}
    sets = {"one": ["blimp/binding"], "two": ["blimp/binding", "blimp/ellipsis", "sentiment"]}
    config = load(raw | {"studies": {"平滑": study | {"sets": sets}}})
    item, results = find("平滑", config.studies["平滑"], "tables", "comparison"), synthetic.results(config, "平滑")
    assert item.part(results.view).sets == sets
    table = item.function()(results, item.choose(item.part(results.view)))
    assert {"one", "blimp/ellipsis", "mean of two"} <= set(table["row"])


@pytest.mark.parametrize("kind", ["finetune", "linear_probe"])
@pytest.mark.parametrize(("section", "name"), [("tables", "comparison"), ("figures", "curves")])
def test_of_two_probes_on_one_task_nobody_says_which_is_meant(kind, section, name):
    """The mean over both would be the score of neither."""
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    raw["probes"] |= {"other": {"kind": kind, "tasks": ["sentiment"]}}
    study = raw["studies"]["mlsm"] | {"claims": [], "headline": [], "figures": [], "tables": []}
    study["probes"] = study["probes"] | {"other": "all"}

    def needed(**changes):
        raw["probes"]["other"] |= changes
        config = load(raw | {"studies": {"平滑": study}})
        return find("平滑", config.studies["平滑"], section, name).needs(View.of(config, "平滑"))

    with pytest.raises(MaskLabError, match="is measured on sentiment by two probes, finetune and other"):
        needed()
    if kind == "finetune":
        assert needed(sizes=[50])  # a score is the mean over training sizes


def test_a_mean_over_training_sizes_is_said_to_be_one():
    """Of the rows that are one, where others are measured at one size; no null and no difference counts as a row."""

    def noted(**probes):
        raw = overlay(copy.deepcopy(RAW), {"extends": []})
        for name, sizes in probes.items():
            raw["probes"][name] = {"kind": "finetune", "tasks": [name], "sizes": sizes}
        study = {
            "panels": {"p": ["strict-phase1", "strict-mlm"]},
            "probes": dict.fromkeys(probes, "all"),
            "replicates": 3,
            "tables": ["comparison"],
            "figures": ["bars", "curves"],
            "claims": "all",
        }
        config = load(raw | {"studies": {"mine": study}})
        results, made = synthetic.results(config, "mine"), {}
        for section, name in (("tables", "comparison"), ("figures", "bars"), ("figures", "curves")):
            item = find("mine", config.studies["mine"], section, name)
            made[name] = item.function()(results, item.choose(results.view))
        told = []
        for figure, data in (made["bars"], made["curves"]):
            foot = " ".join(figure.legends[-1].get_title().get_text().split())
            told.append([part for part in foot.split("; ") if "training size" in part])
            assert set(data["sizes"]) == set(made["comparison"].query("recipe != ''")["sizes"])
        assert told[0] == told[1]
        return markdown(made["comparison"]), told[0], [claim.text for claim in comparisons.claims(results.view)]

    text, told, claims = noted(sentiment=[50, 400])
    assert "Mean over training sizes 50 and 400. " in text
    assert told == ["mean over training sizes 50 and 400"]
    assert [claim.partition("better than ")[2] for claim in claims] == [
        "strict-phase1 on sentiment, the mean over training sizes 50 and 400"
    ]
    text, told, claims = noted(sentiment=[50, 100], acceptability=[50], entailment=[10, 50, 100], paraphrase=None)
    assert (
        "Mean over training sizes 50 and 100 (sentiment). Mean over training sizes 10, 50 and 100 (entailment). "
        in text
    )
    assert told == [
        "mean over training sizes 50 and 100 (sentiment)",
        "mean over training sizes 10, 50 and 100 (entailment)",
    ]
    assert [claim.endswith(" and 100") for claim in claims] == [True, False, True, False]
    text, told, claims = noted(sentiment=[50], acceptability=None)
    assert not any("training size" in said for said in (text, *told, *claims))


def test_recipes_at_unlike_training_sizes_are_not_compared():
    """Neither by a difference nor by bold type; it is said of which recipe a number is at which sizes."""
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    for name, sizes in (("few", [50]), ("many", [50, 400])):
        raw["probes"][name] = {"kind": "finetune", "tasks": ["sentiment"], "sizes": sizes}
    recipes = ["strict-phase1", "strict-mlm", "strict-mlsm"]
    study = {
        "panels": {"p": dict(zip("ABC", recipes, strict=True))},
        "probes": {"few": recipes[:1], "many": recipes[1:]},
        "replicates": 3,
    }
    config = load(raw | {"studies": {"mine": study | {"tables": ["comparison"], "figures": ["bars", "curves"]}}})
    better = {"strict-phase1": 0.6, "strict-mlm": 0.9, "strict-mlsm": 0.8}
    level = lambda cell: better.get(cell["recipe"]) if cell["metric"] == "accuracy" else None  # noqa: E731
    results = synthetic.results(config, "mine", level)
    table = generic.TABLES["comparison"].function()(results, generic.comparison(results.view))
    assert "difference" not in set(table["mark"]) and "best" not in set(table["mark"])
    said = ["at training size 50 (A)", "mean over training sizes 50 and 400 (B and C)"]
    assert "At training size 50 (A). Mean over training sizes 50 and 400 (B and C). " in markdown(table)
    assert "unlike training sizes, they are not compared" in markdown(table)
    for name in ("bars", "curves"):
        figure, data = generic.FIGURES[name].draw(results)
        foot = " ".join(figure.legends[-1].get_title().get_text().split())
        assert [part for part in foot.split("; ") if "training size" in part] == said
        assert dict(zip(data["label"], data["sizes"], strict=True)) == {"A": "50", "B": "50, 400", "C": "50, 400"}


def of_tasks(labels):
    """A study without sets, so that each task has a panel; its recipes have these labels."""
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    raw["models"] |= {f"m{number}": {"like": "strict-mlm"} for number, _ in enumerate(labels)}
    panel = {label: f"m{number}" for number, label in enumerate(labels)}
    study = {"replicates": 3, "panels": {"p": panel}, "probes": {"finetune": "all"}, "figures": ["curves", "bars"]}
    return load(raw | {"studies": {"mine": study}})


def test_long_titles_and_labels_are_broken_into_lines():
    """They ended beyond the figure's edge, or on each other."""
    labels = ["a label of a recipe that nobody reads in one line, " * 2 + "nor in two", "b_" * 60]
    config = of_tasks(labels)
    results = synthetic.results(config, "mine")
    for name in ("curves", "bars"):
        figure, _ = find("mine", config.studies["mine"], "figures", name).draw(results)
        nothing_overlaps(figure)
        told = [text.get_text().replace("\n", "") for text in figure.legends[0].get_texts()]
        assert [text.replace(" ", "") for text in told[:2]] == [label.replace(" ", "") for label in labels]
        titles = [axes.get_title("left") for axes in figure.axes]
        assert name == "bars" or titles[-1] == "$\\bf{(f)}$ syntactic_category_\nlexical_content"
    assert style.broken("a bc-de ffffff", 4) == "a\nbc-\nde\nffff\nff" and style.broken("ab cd", 5) == "ab cd"


@style.paper
def test_a_long_title_may_have_an_inset_beside_it():
    figure, grid = style.grid(1, 2, 2.0)
    figure.add_axes((0.8, 0.8, 0.1, 0.1))  # of no grid, as an inset is
    style.panel_title(grid[0, 0], "a title that is longer than its place by far, " * 3)
    assert "\n" in grid[0, 0].get_title("left")


def test_marks_of_many_recipes_side_by_side_lie_within_the_axes():
    config = of_tasks([f"recipe {number}" for number in range(12)])
    figure, _ = find("mine", config.studies["mine"], "figures", "curves").draw(synthetic.results(config, "mine"))
    all_is_in_view(figure)


def test_bars_of_more_recipes_than_colours_look_different():
    looks = style.looks(f"recipe {n}" for n in range(20))
    drawn = [(look["color"], hatch) for look, hatch in zip(looks.values(), style.hatches(20), strict=True)]
    assert len(set(drawn)) == 20 and style.hatches(8) == list(style.HATCHES)


def test_panels_after_z_have_two_letters():
    """A brace, which follows z, would end in the middle of a formula once all is trained."""
    told = {0: "a", 25: "z", 26: "aa", 51: "az", 52: "ba", 701: "zz", 702: "aaa"}
    assert {index: letter_of(index) for index in told} == told
    figure, axes = style.one_panel()
    style.panel_title(axes, "t", 26)
    figure.draw_without_rendering()


@pytest.mark.parametrize("name", ("bars", "curves"))
@pytest.mark.parametrize("said", [r"$\frac$", "$5 to $6", "_a", "a|b"])
def test_what_a_config_calls_things_stands_in_figures_as_it_is(name, said, tmp_path):
    """No formula, and no label that matplotlib keeps to itself."""
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    panels = {said: {said: "strict-mlm", "other": "strict-mlsm+mlm"}, "second": {"other": "strict-mlsm+mlm"}}
    study = {"replicates": 3, "panels": panels, "probes": {"finetune": "all"}, "sets": {said: ["acceptability"]}}
    config = load(raw | {"studies": {"mine": study | {"figures": [name]}}})
    figure, data = find("mine", config.studies["mine"], "figures", name).draw(synthetic.results(config, "mine"))
    figure.savefig(tmp_path / "figure.pdf")
    (legend,) = figure.legends
    assert [text.get_text().replace(r"\$", "$") for text in legend.get_texts()][:2] == [said, "other"]
    assert set(data["label"]) == {said, "other"} and set(data["panel"]) == {said, "second"}


def test_a_table_of_losses_has_no_rows_of_floors_that_nobody_knows(monkeypatch):
    """Of a panel: in another one, of a corpus with a law, they are known."""
    rows = [
        filled(estimate(np.array(values)), panel, row, "m", "M", row)
        for panel, row, values in [
            ("text", "loss", [3.0, 3.1]), ("text", "floor", []), ("law", "loss", [1.0, 1.2]), ("law", "floor", [0.9])
        ]
    ]  # fmt: skip
    monkeypatch.setattr(compare, "table_of", lambda results, chosen: tidy(rows))
    frame = compare.losses(None, None)
    assert list(zip(frame["panel"], frame["row"], strict=True)) == [("text", "loss"), ("law", "loss"), ("law", "floor")]
