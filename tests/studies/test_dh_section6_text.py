"""Section 6 on text: its figure, its table and its claims from scores."""

from dataclasses import replace

import numpy as np
import pytest

import synthetic
from drawn import all_is_in_view, nothing_overlaps
from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.phrases import (
    COURSE,
    DRAWN_WORD,
    EXAMPLE,
    LEVELS,
    LONG,
    SHORT,
    TOLD,
    WORD,
    fresh,
    held_fixed,
    in_text,
    is_untaught,
    split,
)
from masklab.report.cells import TIDY
from masklab.scores.results import Results
from masklab.scores.view import View
from masklab.studies import claims_of, find
from masklab.studies.dh import section6_text

RAW = plain(layered(["presets/phrases.yaml"]))
STUDY = "dh-text"
MODELS = {"there": "en-de", "back": "de-en", "verbalisers": ["terrible", "great"]}
ALL = (WORD, DRAWN_WORD, *LEVELS[1:])
R = {level: 0.02 + 0.04 * number for number, level in enumerate(LEVELS)}  # .02 of words, .22 of examples
R[DRAWN_WORD] = R[WORD]


def config_of(**changes):
    raw = overlay(RAW, {"extends": [], "probes": {"dh-phrases": MODELS | changes}})
    return load(raw | {"studies": {STUDY: raw["studies"][STUDY]}})


@pytest.fixture(scope="module")
def config():
    return config_of()


def measured(cell):
    level = next((level for level in LEVELS if cell["split"].startswith(level)), None)
    if cell["metric"] == "pearson":
        at, nothing = cell["split"], cell["null"] or cell["split"].endswith(fresh(""))
        return 0.0 if nothing or is_untaught(at.removesuffix(split("", COURSE))) else R[level]
    return {"accuracy": 0.5 if cell["null"] else 0.8, "majority": 0.5}.get(cell["metric"])


@pytest.fixture(scope="module")
def results(config):
    return synthetic.results(config, STUDY, measured)


def test_the_figure_has_a_curve_for_every_level(config, results):
    figure, data = find(STUDY, config.studies[STUDY], "figures", "figure_phrases").draw(results)
    probe = config.probes["dh-phrases"]
    assert set(data["level"]) == set(ALL) and len(figure.axes) == 2
    assert set(data.loc[data["axis"] == "training examples", "x"]) == set(probe.sizes)
    assert set(data.loc[data["axis"] == "updates of fine-tuning", "x"]) == set(probe.updates)
    for level in ALL:
        of_level = data[data["level"] == level].groupby("label")["value"]
        assert of_level.apply(lambda value, r=R[level]: np.allclose(value, r, atol=0.01)).to_dict() == {
            "pre-trained": True, "pre-trained, initial weights": False, "pre-trained, never pre-trained": False,
        }  # fmt: skip
        for null in ("initial weights", "never pre-trained"):
            assert np.allclose(of_level.get_group(f"pre-trained, {null}"), 0, atol=0.01)
    null = data[data["label"] == "pre-trained, never pre-trained"]
    assert set(null["x"]) == {max(probe.sizes)} and set(null["recipe"]) == {*results.view.members}
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "Updates of fine-tuning (log scale)", "Training examples (log scale)",
    ]  # fmt: skip
    drawn = [line for axes in figure.axes for line in axes.get_lines() if not line.get_label().startswith("_")]
    assert len(drawn) == 2 * 2 * len(ALL) + len(ALL)  # two axes, initial weights beside the recipe; the null in one
    assert figure.axes[0].get_ylabel().startswith("Correlation")  # of the one recipe on the one task
    assert "updates: on the largest set" in figure.legends[-1].get_title().get_text().replace("\n", " ")
    nothing_overlaps(figure)
    all_is_in_view(figure)


def on_two_tasks(label="pre-trained"):
    """A config in which a second task is measured at its end alone, with a row of axes for each, and its results."""
    second = {"like": "dh-phrases", "tasks": ["dh-cola"], "updates": []}
    cola = {"kind": "glue", "task": "cola", "folder": "data/glue/CoLA"}
    more = {"probes": {"dh-phrases": MODELS, "dh-second": second}, "tasks": {"dh-cola": cola}}
    raw = overlay(RAW, {"extends": []} | more)
    (panel,) = raw["studies"][STUDY]["panels"].values()
    own = {"probes": {"dh-phrases": "all", "dh-second": "all"}, "panels": {"text": {label: next(iter(panel.values()))}}}
    raw["studies"] = {STUDY: raw["studies"][STUDY] | own}
    config = load(raw)
    return config, synthetic.results(config, STUDY, measured)


@pytest.mark.parametrize("said", [r"$\frac$", "$5 to $6"])
def test_a_label_is_no_formula(said, tmp_path):
    config, results = on_two_tasks(said)
    figure, _ = find(STUDY, config.studies[STUDY], "figures", "figure_phrases").draw(results)
    figure.savefig(tmp_path / "figure.pdf")
    assert figure.axes[0].get_ylabel().startswith(said.replace("$", r"\$"))


def test_a_long_label_lies_in_lines_beside_its_axis():
    config, results = on_two_tasks("English, with a label so long that it needs several lines beside an axis")
    figure, _ = find(STUDY, config.studies[STUDY], "figures", "figure_phrases").draw(results)
    nothing_overlaps(figure)


def test_a_task_that_is_not_measured_in_the_course_of_fine_tuning_leaves_its_axes_empty():
    config, results = on_two_tasks()
    figure, data = find(STUDY, config.studies[STUDY], "figures", "figure_phrases").draw(results)
    assert set(data.loc[data["task"] == "dh-cola", "axis"]) == {"training examples"} and len(figure.axes) == 4
    assert [axes.get_ylabel().partition("\n")[0].rpartition(", ")[2] for axes in figure.axes[::2]] == ["sst2", "cola"]


def test_curves_of_a_panel_are_over_the_replicates_that_all_of_them_have(config, results):
    """Of words the last replicate has none: no synonym was found for any."""
    scores, last = results.scores, results.scores["replicate"].max()
    fewer = scores[~(scores["split"].str.startswith(WORD) & (scores["replicate"] == last))]
    assert last > 1
    _, data = find(STUDY, config.studies[STUDY], "figures", "figure_phrases").draw(Results(results.view, fewer))
    assert set(data["replicates"]) == {last - 1} and set(data["level"]) == set(ALL)


def test_the_table_has_correlations_with_intervals_and_distances(config, results):
    item = find(STUDY, config.studies[STUDY], "tables", "phrases")
    table = item.function()(results, item.choose(results.view))
    assert list(table.columns) == TIDY and len(set(table["row"])) == 6 * len(ALL) + 2
    values = table[table["label"] == "pre-trained"].set_index("row")["value"]
    assert values[f"{WORD}: correlation"] == pytest.approx(0.02, abs=0.01)
    assert values["accuracy"] == pytest.approx(0.8, abs=0.01)
    assert values[f"{WORD}: {section6_text.FRESH}"] == pytest.approx(0, abs=0.01)
    assert [f"untrained.{name}" for name in results.view.members] == sorted(
        {recipe for _, recipe in item.needs(results.view)} - {*results.view.members}
    )


def test_a_null_is_never_the_best_of_its_row(config):
    """Nor where it has no other beside it that is as good."""
    results = synthetic.results(config, STUDY, lambda cell: 0.4 if cell["metric"] == "pearson" else measured(cell))
    item = find(STUDY, config.studies[STUDY], "tables", "phrases")
    table = item.function()(results, item.choose(results.view)).set_index("row")
    assert table.loc["accuracy", "mark"].tolist()[0] == "best"
    nulls = table[table.index.str.contains("never pre-trained")]
    assert len(set(nulls.index)) == len(ALL) + 1 and not (nulls["mark"] == "best").any()


def test_the_paper_s_sentences(config, results):
    found = synthetic.claims(STUDY, config, results)
    verdict = found["verdict"]
    assert verdict["low-word"] == verdict["low-long-phrase"] == "supported" and verdict["low-example"] == "contradicted"
    assert verdict["remains-word"] == verdict["remains-word-pretrained"] == verdict["higher"] == "supported"
    assert found["value"]["remains-word-pretrained"] == pytest.approx(R[WORD], abs=0.01)
    alike = synthetic.results(
        config, STUDY, lambda cell: measured(cell | {"split": cell["split"].removesuffix(fresh(""))})
    )
    found_alike = synthetic.claims(STUDY, config, alike)["verdict"]
    assert found_alike["remains-word"] == "supported" and found_alike["remains-word-pretrained"] != "supported"
    assert found["value"]["higher"] == pytest.approx(R[EXAMPLE] - R[WORD], abs=0.01)
    chance = synthetic.results(config, STUDY, lambda cell: 0.5 if cell["metric"] == "accuracy" else measured(cell))
    untested = synthetic.claims(STUDY, config, chance)
    assert set(untested["verdict"]) == {"untested"}


def test_words_that_are_asked_in_their_own_text():
    """Levels of their own, in a row of their own; what tells no synonyms from other words decides nothing."""
    config = config_of(in_text=True)
    levels = {WORD, DRAWN_WORD, SHORT, LONG}

    def known(cell, templates=0.5):
        if cell["metric"] == TOLD:
            return 0.5 if cell["null"] else 0.6 if in_text("") in cell["split"] else templates
        return measured(cell)

    results = synthetic.results(config, STUDY, known)
    figure, data = find(STUDY, config.studies[STUDY], "figures", "figure_phrases").draw(results)
    fixed = {held_fixed(way) for level in (WORD, DRAWN_WORD) for way in (level, in_text(level))}
    assert set(data["level"]) == {*ALL, *map(in_text, levels), *fixed} and len(figure.axes) == 8
    assert [axes.get_ylabel().partition("\n")[2] for axes in figure.axes[::2]] == [
        "", "form held fixed", "in its text", "in its text, form held fixed",
    ]  # fmt: skip
    counts = [len([line for line in axes.get_lines() if line.get_label()[0] != "_"]) for axes in figure.axes[::2]]
    assert counts == [2 * len(ALL), 2 * 2, 2 * len(levels), 2 * 2]
    lows = [sum(line.get_label() == "_low" for line in axes.get_lines()) for axes in figure.axes]
    assert lows == [1, 1, 0, 0, 0, 0, 0, 0]  # the paper's measure alone
    nothing_overlaps(figure)
    all_is_in_view(figure)
    item = find(STUDY, config.studies[STUDY], "tables", "phrases")
    table = item.function()(results, item.choose(results.view))
    told = table[(table["metric"] == TOLD) & (table["label"] == "pre-trained")].set_index("row")["value"]
    assert {row: round(value, 1) for row, value in told.items()} == {
        f"{level}: {section6_text.NEARER}": share
        for level, share in ((WORD, 0.5), (DRAWN_WORD, 0.5), (in_text(WORD), 0.6), (in_text(DRAWN_WORD), 0.6))
    }
    distances = {row for row in table["row"] if row.endswith("fine-tuning")}
    assert len(distances) == 2 * len({*ALL, *map(in_text, levels)}) and not any(
        "held fixed" in row for row in distances
    )
    verdict = synthetic.claims(STUDY, config, results)["verdict"]
    assert verdict["told-word-in-its-text"] == "supported" and verdict["told-word"] != "supported"
    asked, rest = "-in-its-text", "-in-its-text-form-held-fixed"
    for name, there in (("low-word{}", asked), ("low-word-drawn{}", asked), ("remains-word{}", rest)):
        assert verdict[name.format("")] == "untested", name
        assert verdict[name.format(there)] not in ("untested", "contradicted"), name
    assert verdict["remains-word-form-held-fixed"] == "untested"
    assert verdict[f"remains-word{rest}-pretrained"] == "supported"

    def any_classifier(cell):
        """One that was never pre-trained goes with the model's D_f0 as much."""
        return known(cell | {"split": cell["split"].removesuffix(fresh(""))})

    of_any = synthetic.claims(STUDY, config, synthetic.results(config, STUDY, any_classifier))["verdict"]
    assert of_any[f"remains-word{rest}"] == "supported" != of_any[f"remains-word{rest}-pretrained"]
    left = f"remains-word{asked}", f"remains-word{asked}-pretrained", f"low-word{rest}", f"told-word{rest}"
    assert not {*left} & {*verdict.index}
    assert verdict["low-short-phrase"] == "supported"  # whose paraphrases are compared with no others
    alone = config.model_copy(update={"studies": {STUDY: config.studies[STUDY].model_copy(update={"nulls": []})}})
    by_guess = synthetic.claims(STUDY, alone, guessed := synthetic.results(alone, STUDY, known))
    figure, _ = find(STUDY, alone.studies[STUDY], "figures", "figure_phrases").draw(guessed)
    said = [text.get_text().replace("\n", " ") for text in figure.legends[0].get_texts()]
    assert "initial weights, D_f0 of the pre-trained" in said and "initial weights, own D_f0" not in said
    assert by_guess["value"]["told-word-in-its-text"] == pytest.approx(0.1, abs=0.01)  # .6 less a guess's .5
    assert "than by a guess" in by_guess["text"]["told-word-in-its-text"]
    guesses = synthetic.results(config, STUDY, lambda cell: 0.5 if cell["metric"] == "accuracy" else known(cell))
    verdict = synthetic.claims(STUDY, config, guesses)["verdict"]
    assert verdict["told-word-in-its-text"] == "supported"  # before any fine-tuning
    assert verdict["low-word-in-its-text"] == "untested"
    both = synthetic.claims(STUDY, config, synthetic.results(config, STUDY, lambda cell: known(cell, 0.6)))["verdict"]
    assert both["low-word"] == both["remains-word-pretrained"] == "supported"


def test_levels_are_those_that_the_probe_has(config):
    words = View.of(config_of(there=None, back=None), STUDY)
    names = {claim.name for claim in claims_of(STUDY, config.studies[STUDY], words)}
    drawn = {"low-word-drawn", "remains-word-drawn", "remains-word-drawn-pretrained"}
    assert names == {"low-word", "remains-word", "remains-word-pretrained"} | drawn
    few = View.of(config_of(there=None, back=None, drawn=False), STUDY)
    assert {claim.name for claim in claims_of(STUDY, config.studies[STUDY], few)} == names - drawn
    study = config.studies[STUDY].model_copy(update={"probes": {}})
    bare = View.of(config.model_copy(update={"studies": {STUDY: study}}), STUDY)
    with pytest.raises(MaskLabError, match="needs a `paraphrased` probe"):
        find(STUDY, study, "figures", "figure_phrases").needs(bare)


def test_recipes_that_two_panels_call_alike_have_a_column_each(results):
    view = results.view
    probes = {name: facts | {"recipes": [*facts["recipes"], "other"]} for name, facts in view.probes.items()}
    panels = {"x": {"one": view.members[0]}, "y": {"one": "other"}}
    for rows in section6_text.numbers(replace(view, panels=panels, probes=probes)).values():
        for row in rows.values():
            assert {label: reading.recipe for label, reading in row.items()} == {
                "one (x)": view.members[0],
                "one (y)": "other",
            }
