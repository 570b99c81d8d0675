"""Rows of tables: what is bold, what is no result, and what the note says of it."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from masklab.markdown import html
from masklab.report.cells import TIDY, markdown, wide, write_table
from masklab.report.rows import differences, table_of
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

TASKS = {"mrpc": "f1", "cola": "mcc", "stsb": "spearman", "rte": "accuracy"}
SHARES = {"majority": 0.68, "majority_f1": 0.81}


def results(values: dict, task="rte", nulls=None, kind="finetune", steps=(9,), given=()) -> Results:
    """Scores of recipes on one task: name -> value by replicate; nulls: kind -> the same, for every recipe.

    steps: the checkpoints, at all of which a recipe scores the same. given: recipes that were made elsewhere.
    """
    nulls, metric = nulls or {}, TASKS[task]
    rows = []
    for recipe, own in {**values, **nulls}.items():
        for replicate, value in enumerate(own, 1):
            shared = {"recipe": recipe, "replicate": replicate, "probe": "p", "task": task, "split": "test", "n": 100}
            told = {metric: value} | (SHARES if kind == "finetune" else {})
            rows += [
                {**shared, "step": step, "metric": name, "value": share}
                for step in (steps if recipe in values else steps[-1:])
                for name, share in told.items()
            ]
    facts = {"steps": 9, "corpus": "c", "corpus.redrawn": False}
    view = View(
        "s",
        panels={"all": {name.upper(): name for name in values}},
        recipes={name: facts | ({"encoder.kind": "folder"} if name in given else {}) for name in (*values, *nulls)},
        nulls={name: {kind: kind for kind in nulls} for name in values},
        tasks={
            task: {"metric": metric, "kind": "label-files" if kind == "finetune" else "pair-files", "redrawn": False}
        },
        probes={"p": {"kind": kind, "tasks": [task], "recipes": [*values, *nulls]}},
    )
    return Results(view, rows_to_frame(rows))


def table(values, task="rte", **more):
    found = results(values, task, **more)
    readings = {name.upper(): Reading(name, tasks=(task,)) for name in values}
    return table_of(found, {"panel": {"row": readings}})


def marks(*args, **more):
    return table(*args, **more).set_index("label")["mark"].to_dict()


def test_the_f1_of_always_saying_yes_is_no_result():
    """Whether or not the study asks for the majority."""
    found = table({"a": [0.81, 0.81, 0.81], "b": [0.7, 0.72, 0.71], "c": [0.9, 0.91, 0.92]}, "mrpc")
    own = found.set_index("label")
    assert own["mark"][["A", "B", "C"]].tolist() == ["= majority", "< majority", "best"]
    assert own["majority"][["A", "B", "C"]].tolist() == [0.81] * 3 and own["value"]["null: majority"] == 0.81
    text = markdown(found)
    assert "| 0.810 ± 0.000 (= majority) | 0.710 ± 0.025 (< majority) | **0.910** ± 0.025 | 0.810 |" in text
    assert "(= majority): what always giving one answer scores, in every replicate." in text
    assert "the class that F1 looks for" in text


@pytest.mark.parametrize(
    ("task", "kind", "level", "said"),
    [("rte", "finetune", 0.68, "majority"), ("cola", "finetune", 0.0, "majority"),
     ("stsb", "finetune", 0.0, "majority"), ("rte", "minimal_pairs", 0.5, "chance")],
)  # fmt: skip
def test_what_always_giving_one_answer_scores(task, kind, level, said):
    found = table({"a": [level] * 3, "b": [level - 0.1] * 3}, task, kind=kind).set_index("label")
    assert found["mark"].tolist() == [f"= {said}", f"< {said}", ""]
    assert found["value"][f"null: {said}"] == level and math.isnan(found["half"][f"null: {said}"])


def test_nothing_is_bold_where_paired_intervals_overlap():
    apart = {"a": [0.90, 0.80, 0.85], "b": [0.88, 0.79, 0.83]}  # noisy, but a is above b in every replicate alike
    assert marks(apart)["A"] == "best"
    crossed = {"a": [0.90, 0.80, 0.85], "b": [0.79, 0.83, 0.82]}
    assert set(marks(crossed).values()) == {""}
    assert marks(apart | {"c": [0.89, 0.81, 0.80]})["A"] == ""  # better than one is not enough
    assert marks(apart, nulls={"shuffled": [0.9, 0.81, 0.86]})["A"] != "best"


def test_a_row_is_over_the_replicates_that_all_its_cells_have():
    """Others are of languages of their own: harder ones would make a better model look worse."""
    values = {"a": [0.75, 0.74, 0.76], "b": [0.70, 0.69, 0.70, 0.95, 0.96]}
    found = table(values, nulls={"untrained": [0.69, 0.69, 0.69, 0.9, 0.9]}).set_index("label")
    assert found["mark"]["A"] == "best" and found["value"]["B"] == pytest.approx(np.mean(values["b"][:3]))
    assert found["replicates"][["A", "B"]].tolist() == [3, 3]
    assert found["value"]["null: untrained"] == pytest.approx(0.69)


def test_a_difference_is_over_the_replicates_of_its_row():
    """C has three, in which B is .1 below A; in the other five of A and B it is above it."""
    values = {"a": [0.7] * 3 + [0.9] * 5, "b": [0.6] * 3 + [0.95] * 5, "c": [0.5] * 3}
    readings = {name.upper(): Reading(name, tasks=("rte",)) for name in values}
    cells = differences(results(values), readings, "panel", "row")
    assert [cell["label"] for cell in cells] == ["B − A", "C − A"] and {cell["replicates"] for cell in cells} == {3}
    assert [cell["value"] for cell in cells] == pytest.approx([-0.1, -0.2])
    own = table(values).set_index("label")["value"]
    assert [own[label] - own["A"] for label in "BC"] == pytest.approx([-0.1, -0.2])


def lines_of(text, start):
    """Lines of a table that begin so."""
    return [line for line in text.splitlines() if line.startswith(start)]


def test_rows_over_unlike_numbers_of_replicates_say_over_how_many():
    many = table({"a": [0.90, 0.92, 0.91, 0.93, 0.90], "b": [0.80, 0.82, 0.81, 0.83, 0.80]})
    few = table({"a": [0.90, 0.92, 0.91], "b": [0.80, 0.82, 0.81, 0.83, 0.80]}).assign(row="other")
    text = markdown(pd.concat([many, few], ignore_index=True))
    assert lines_of(text, "|  |")[0].startswith("|  | replicates | n | A | B |") and "over 3 to 5 replicates" in text
    assert lines_of(text, "| row |")[0].startswith("| row | 5 | 100 | ")
    assert lines_of(text, "| other |")[0].startswith("| other | 3 | 100 | ")
    known = table({"a": [0.75] * 5}, given="a").assign(row="known")  # nothing is drawn: no interval over replicates
    text = markdown(pd.concat([many, few, known], ignore_index=True))
    assert lines_of(text, "| known |")[0].startswith("| known | – | 100 | ")


def test_panels_over_unlike_numbers_of_replicates_say_so_above_them():
    many = table({"a": [0.90, 0.92, 0.91, 0.93, 0.90], "b": [0.80, 0.82, 0.81, 0.83, 0.80]})
    few = table({"a": [0.90, 0.92, 0.91], "b": [0.80, 0.82, 0.81]}).assign(panel="few")
    known = table({"a": [0.75] * 5}, given="a").assign(panel="known")
    text = markdown(pd.concat([many, few, known], ignore_index=True))
    titles = lines_of(text, "**(")
    assert titles == ["**(a) panel**, after 9 updates, over 5 replicates",
                      "**(b) few**, after 9 updates, over 3 replicates", "**(c) known**, after 9 updates"]  # fmt: skip
    assert "| replicates |" not in text


def test_where_all_rows_are_over_as_many_replicates_none_says_so():
    values = {"a": [0.90, 0.92, 0.91], "b": [0.80, 0.82, 0.81]}
    one = table(values, nulls={"bag-of-words": [0.7]})
    alike = pd.concat([one, table({"a": [0.75] * 3}, given="a").assign(row="known")], ignore_index=True)
    text = markdown(alike)
    assert text.count("replicate") == markdown(one).count("replicate") and "updates, over" not in text
    assert "| replicates |" not in text


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_replicates_make_nothing_bold(count):
    found = table({"a": [0.90, 0.91][:count], "b": [0.70, 0.71][:count]})
    text = markdown(found)
    assert "best" not in set(found["mark"]) and "Nothing is bold with fewer than 3 replicates." in text
    assert ("One replicate, no interval." in text) == (count == 1) and ("±" in text) == (count == 2)


def test_models_in_which_nothing_is_drawn_are_one_replicate():
    """However often they are measured: no interval, nothing bold; beside a model that is trained, a known number."""
    values = {"a": [0.75] * 3, "b": [0.70] * 3}
    found = table(values, given="ab")
    assert found.set_index("label")["replicates"][["A", "B"]].tolist() == [1, 1] and "best" not in set(found["mark"])
    text = markdown(found)
    assert "| 0.750 | 0.700 |" in text and "One replicate, no interval." in text and "±" not in text
    assert table(values).set_index("label")["mark"]["A"] == "best"  # of models that were trained
    found = table(values | {"a": [0.75, 0.76, 0.75]}, given="b")
    assert found.set_index("label")["mark"]["A"] == "best" and "| 0.700 |" in (text := markdown(found))
    assert "over 3 replicates" in text
    beside = table({"a": [0.75] * 3, "b": [0.6] * 3}, given="ab", nulls={"untrained": [0.69, 0.70, 0.71]})
    text = markdown(beside)  # the nulls alone have intervals, of which the notes do not speak
    assert text.count("±") == 1 and "One replicate, no interval." in text and "Nothing is bold with fewer" in text
    assert "(< majority): below what always giving one answer scores." in text and "that interval" not in text
    drawn = table({"a": [0.75, 0.77, 0.75], "b": [0.70, 0.71, 0.70]}, given="ab").set_index("label")
    assert drawn["replicates"]["A"] == 3 and drawn["mark"]["A"] == "best"  # by the probe, for each replicate


def test_one_replicate_is_said_to_show_nothing():
    text = markdown(table({"a": [0.60], "b": [0.90]}))
    assert "(< majority): below what always giving one answer scores." in text and "interval too" not in text
    text = markdown(table({"a": [0.70], "b": [0.90]}, nulls={"bag-of-words": [0.74]}))
    assert "†: no better than some null of its row." in text and "not shown" not in text


def test_a_cell_that_is_not_shown_to_be_above_a_null_says_so():
    values = {"a": [0.75, 0.90, 0.71], "b": [0.80, 0.81, 0.80]}
    found = marks(values, nulls={"bag-of-words": [0.74, 0.75, 0.75]})
    assert found == {"A": "unlearned", "B": "", "null: bag-of-words": "", "null: majority": ""}
    text = markdown(table(values, nulls={"bag-of-words": [0.74, 0.75, 0.75]}))
    assert (
        "| 0.787 [0.538, 1.000] † | 0.803 ± 0.014 |" in text
        and "†: not shown to be better than every null of its row" in text
    )


def test_where_less_is_better_the_least_is_best():
    """Of a metric that a probe of one's own declares as such."""
    errors = {"a": [0.10, 0.12, 0.11], "b": [0.30, 0.31, 0.33], "c": [0.61, 0.63, 0.62]}
    found = results(errors, nulls={"untrained": [0.5, 0.5, 0.5], "shuffled": [0.55, 0.55, 0.55]}, kind="asked")
    scores = found.scores[found.scores["metric"] == "accuracy"].assign(metric="error")
    probe = found.view.probes["p"] | {"lower": ["error"]}
    tasks = {"rte": found.view.tasks["rte"] | {"metric": "error"}}
    turned = Results(replace(found.view, probes={"p": probe}, tasks=tasks), scores)
    readings = {name.upper(): Reading(name, tasks=("rte",), probe="asked") for name in errors}
    own = table_of(turned, {"panel": {"row": readings}}).set_index("label")
    assert own["mark"][["A", "B", "C"]].tolist() == ["best", "", "unlearned"]


def test_the_note_says_what_cells_are(tmp_path):
    found = table({"a": [0.9, 0.8, 0.85], "b": [0.88, 0.79, 0.83]})
    write_table(found, tmp_path / "t")
    text = (tmp_path / "t.md").read_text()
    assert text.startswith("**(a) panel**, after 9 updates\n") and list(found.columns) == TIDY
    assert "Mean ± half the width of the 95 % interval over 3 replicates." in text
    assert "Bold: better than every other score of its row" in text and "test items behind a value" in text
    none = markdown(table({"a": [0.9, 0.8, 0.85], "b": [0.79, 0.83, 0.82]}))
    assert "Bold (here none is): better" in none


def test_the_note_says_what_n_counts():
    """Of losses it is predicted tokens, as the page of columns says."""
    found = table({"a": [0.9, 0.8, 0.85], "b": [0.88, 0.79, 0.83]})
    losses = found.assign(metric="loss", row="loss")
    assert "n: predicted tokens behind a value" in markdown(losses)
    assert "n: test items (of losses: predicted tokens) behind" in markdown(pd.concat([found, losses]))
    assert markdown(found.assign(panel="")).startswith("**(a)**, after")


def test_a_row_of_unlike_items_counts_the_fewest(tmp_path):
    """Two recipes on features of their own, more of them in one replicate than in another."""
    found = table({"a": [0.9, 0.8, 0.85], "b": [0.88, 0.79, 0.83]})
    assert "items behind a value of one replicate." in markdown(found)
    found.loc[found["label"] == "A", "n"] = 90
    write_table(found, tmp_path / "t")
    assert pd.read_csv(tmp_path / "t.csv")["n"].tolist() == [90]
    text = (tmp_path / "t.md").read_text()
    assert "| row | 90 |" in text and "of the cell of a row that has the fewest." in text


def test_intervals_lie_within_what_a_score_can_be():
    """± is half the width of the whole interval; where it would lie beyond them, its ends are written, cut."""
    for task, least in (("rte", 0.0), ("cola", -1.0), ("stsb", -1.0)):
        for sign in (1, -1) if least else (1,):
            own = table({"a": [sign * value for value in (0.999, 0.9, 0.98)], "b": [0.7, 0.7, 0.7]}, task).iloc[0]
            assert least <= own["low"] < own["value"] < own["high"] <= 1
            assert own["value"] == pytest.approx(sign * np.mean([0.999, 0.9, 0.98]))


def test_no_interval_of_a_table_is_wider_than_the_metric():
    """Of two replicates that are far apart, of nulls as of recipes; an interval that is not cut is half a width."""
    values, nulls = {"a": [0.8, 0.4], "b": [0.70, 0.71]}, {"untrained": [0.2, 0.6]}
    text = markdown(table(values, nulls=nulls))
    assert "| 0.600 [0.000, 1.000] † | 0.705 ± 0.064 † | 0.400 [0.000, 1.000] |" in text
    assert "[a, b]: the interval where its ends" in text and "Fisher" not in text
    assert "| 0.400 [-1.000, 1.000] † |" in markdown(table({"a": [0.8, 0.0]}, "cola", nulls=nulls))
    ranked = table({"a": [0.8, 0.4, 0.6]}, "stsb")
    assert "Fisher's scale" in markdown(ranked) and ranked["low"][0] < ranked["value"][0] - ranked["half"][0]
    assert "[a, b]" not in markdown(table({"a": [0.8, 0.81], "b": [0.70, 0.71]}))


def test_below_the_majority_is_said_of_what_an_interval_shows():
    """A mean a little below it is no more than not above it."""
    near, below = [0.679, 0.684, 0.674], [0.60, 0.61, 0.60]
    assert marks({"a": near, "b": below}) == {"A": "unlearned", "B": "< majority", "null: majority": ""}
    assert marks({"a": [0.67], "b": [0.69]}) == {"A": "< majority", "B": "", "null: majority": ""}


def test_tables_of_losses_say_that_they_are_not_compared():
    found = table({"a": [0.9, 0.91, 0.92], "b": [0.7, 0.7, 0.7]})
    assert "losses" not in markdown(found)
    loss = found.assign(row="Loss", metric="loss", majority=math.nan, mark="")
    assert "Only scores of tasks are bold or marked, losses" in markdown(pd.concat([found, loss], ignore_index=True))


def test_labels_are_shown_as_they_are_written():
    """They are free text of a config: a bar in one is no new column."""
    found = table({"a": [0.9, 0.8, 0.85], "b": [0.88, 0.79, 0.83]})
    text = markdown(found.assign(label=found["label"].replace({"A": "80|10|10", "B": "<b>*x*"}), row="r|s"))
    assert "|  | n | 80\\|10\\|10 | &lt;b&gt;\\*x\\* | null: majority |" in text and "| r\\|s | 100 |" in text
    assert '<th style="text-align:right">80|10|10</th>' in html(text)


def test_columns_of_two_panels_are_two_whatever_the_names():
    found = table({"a": [0.9, 0.8, 0.85]})
    found = found[found["label"] == "A"]
    both = pd.concat([found.assign(panel="x: y", label="z"), found.assign(panel="x", label="y: z", value=0.5)])
    shown = wide(both)
    assert list(shown.columns) == ["row", "metric", "n", "x: y: z", "x: y: z*"]
    assert shown["x: y: z"].tolist() == pytest.approx([0.85]) and shown["x: y: z*"].tolist() == [0.5]


def test_every_panel_has_letters_of_its_own():
    found = table({"a": [0.9, 0.8, 0.85]})
    text = markdown(pd.concat([found.assign(panel=f"panel {number}") for number in range(28)], ignore_index=True))
    assert all(f"**({letters}) panel {number}**" in text for number, letters in ((0, "a"), (25, "z"), (27, "ab")))
