"""Tables 1-3 from scores: the paper's own columns, and cells computed by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.scores.schema import rows_to_frame
from masklab.tables.mlsm import table1, table1_full_width, table2, table3
from masklab.tables.write import markdown, wide, write_table

PUBLISHED = pd.read_csv(Path(__file__).parent / "published.csv")  # Tables 1-3 of Berend (BabyLM 2023), as printed


def published(table, task_of, metric):
    """Score rows, study and labels of one published table."""
    printed = PUBLISHED[PUBLISHED["table"] == table]
    names = printed["panel"] + "-" + printed["label"].str.lower()
    rows = [
        {"study": "mlsm", "model": name, "step": 80000, "probe": "p", "task": task_of(r.row), "split": "test"}
        | {"metric": metric, "value": r.value, "n": 100}
        for name, r in zip(names, printed.itertuples(), strict=True)
    ]
    panels = {title: list(dict.fromkeys(names[part.index])) for title, part in printed.groupby("panel", sort=False)}
    return rows_to_frame(rows), panels, dict(zip(names, printed["label"], strict=True))


def column(frame, row, digits=4):
    return list(frame.loc[frame["row"] == row, "value"].round(digits))


def test_table1_gives_the_published_means():
    scores, panels, labels = published("table1", lambda row: "blimp/" + row.replace(" ", "_"), "accuracy")
    study = Study(panels=panels, probes={}, sets={"blimp": ["blimp"]})
    frame = table1(scores, study, labels, {"blimp": "accuracy"})
    # Computed from the printed cells; the paper prints .736 .770 .772 .640 .762 / .730 .716 .724.
    assert column(frame, "Average") == [0.7365, 0.7699, 0.7723, 0.6396, 0.7619, 0.7301, 0.7161, 0.7234]
    assert list(frame["label"][frame["row"] == "Average"])[:5] == ["KD", "KD+MLM", "MLM", "MLSM", "MLSM+MLM"]
    assert set(frame["n"][frame["row"] == "Average"]) == {1700}
    assert frame["row"].nunique() == 18
    cell = frame[(frame["row"] == "island effects") & (frame["panel"] == "strict-small") & (frame["label"] == "MLM")]
    assert list(cell["value"]) == [0.650]


def test_table3_gives_the_published_means():
    scores, panels, labels = published("table3", lambda row: row.replace(" (control)", "-c"), "mcc")
    tasks = sorted(scores["task"].unique())
    control = [task for task in tasks if task.endswith("-c")]
    sets = {"msgs-control": control, "msgs-ambiguous": [task for task in tasks if task not in control]}
    study = Study(panels=panels, probes={}, sets=sets)
    frame = table3(scores, study, labels, dict.fromkeys(tasks, "mcc"))
    assert column(frame, "Average") == [0.1431, 0.1808, 0.1094, 0.1240, 0.1289, 0.1354, 0.0709, 0.1504]
    assert column(frame, "Average (control)", 3)[:3] == [0.841, 0.883, 0.896]
    assert column(frame, "Average (ambiguous)", 3)[-3:] == [-0.444, -0.595, -0.460]
    assert list(frame["row"].unique())[:2] == ["CR-c (control)", "LC-c (control)"]


def finetuned(values, **changes):
    """{(model, task): values of seeds 1, 2, ...} -> score rows."""
    return [
        {"study": "s", "model": model, "step": 10, "probe": "f", "task": task, "split": "test", "seed": seed}
        | {"metric": "mcc" if task == "cola" else "accuracy", "value": value, "n": 50 if task == "cola" else 30}
        | changes
        for (model, task), seeds in values.items()
        for seed, value in enumerate(seeds, start=1)
    ]


STUDY = Study(panels={"one": ["a", "b"]}, probes={}, sets={"glue": ["rte", "cola"]})
LABELS = {"a": "MLM", "b": "MLSM"}
METRICS = {"rte": "accuracy", "cola": "mcc"}
VALUES = {("a", "rte"): [0.5, 0.7], ("a", "cola"): [0.1, 0.3], ("b", "rte"): [0.6, 0.6], ("b", "cola"): [0.4, -0.2]}


def test_table2_means_standard_deviations_and_averages_by_hand():
    rows = finetuned(VALUES)
    # Other metrics, splits and earlier steps must not leak in.
    rows += finetuned(VALUES, metric="f1", value=0.9)
    rows += finetuned(VALUES, split="valid", value=0.9)
    rows += finetuned(VALUES, step=5, value=0.9)
    frame = table2(rows_to_frame(rows), STUDY, LABELS, METRICS)
    cells = frame.set_index(["row", "label"])
    assert list(frame["row"].unique()) == ["rte", "cola", "Average"]
    assert cells.loc[("rte", "MLM"), "value"] == pytest.approx(0.6)
    assert cells.loc[("rte", "MLM"), "std"] == pytest.approx(0.2 / np.sqrt(2))
    assert cells.loc[("cola", "MLSM"), "value"] == pytest.approx(0.1)
    # Per-seed means of a: .3 and .5; of b: .5 and .2.
    assert cells.loc[("Average", "MLM"), ["value", "std"]].tolist() == pytest.approx([0.4, 0.2 / np.sqrt(2)])
    assert cells.loc[("Average", "MLSM"), ["value", "std"]].tolist() == pytest.approx([0.35, 0.3 / np.sqrt(2)])
    assert cells.loc[("Average", "MLM"), ["seeds", "n", "metric"]].tolist() == [2, 80, "mean"]


def test_single_seeds_have_no_deviation_and_incomplete_columns_no_average():
    values = {key: seeds[:1] for key, seeds in VALUES.items() if key != ("b", "cola")}
    frame = table2(rows_to_frame(finetuned(values)), STUDY, LABELS, METRICS).set_index(["row", "label"])
    assert frame["std"].isna().all()
    assert frame.loc[("Average", "MLM"), "value"] == pytest.approx(0.3)
    assert np.isnan(frame.loc[("Average", "MLSM"), "value"])
    text = markdown(frame.reset_index())
    assert "±" not in text
    assert "| Average | mean | 80 | **0.300** | – |" in text


def test_full_width_reads_its_own_metric():
    rows = [
        {"study": "s", "model": "a", "step": 1, "probe": "p", "task": "blimp/x", "split": "test"}
        | {"metric": metric, "value": value, "n": 5}
        for metric, value in (("accuracy", 0.75), ("accuracy_full_width", 0.25))
    ]
    study = Study(panels={"one": ["a"]}, probes={}, sets={"blimp": ["blimp"]})
    for make, value in ((table1, 0.75), (table1_full_width, 0.25)):
        assert list(make(rows_to_frame(rows), study, {"a": "MLM"}, {})["value"]) == [value, value]


def test_missing_sets_scores_and_double_measurements_are_named():
    scores = rows_to_frame(finetuned(VALUES))
    with pytest.raises(MaskLabError, match="no set 'msgs-control'"):
        table3(scores, STUDY, LABELS, METRICS)
    with pytest.raises(MaskLabError, match="no accuracy, mcc rows on the test split of rte, cola"):
        table2(scores[:0], STUDY, LABELS, METRICS)
    twice = rows_to_frame(finetuned(VALUES) + finetuned(VALUES, probe="again"))
    with pytest.raises(MaskLabError, match="two probes or studies measured a step 10 on"):
        table2(twice, STUDY, LABELS, METRICS)


def test_files_are_wide_bold_and_reproducible(tmp_path):
    frame = table2(rows_to_frame(finetuned(VALUES)), STUDY, LABELS, METRICS)
    for name in ("first", "second"):
        write_table(frame, tmp_path / name / "table2")
    for kind in ("parquet", "csv", "md"):
        first, second = ((tmp_path / name / f"table2.{kind}").read_bytes() for name in ("first", "second"))
        assert first == second
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "first" / "table2.parquet"), frame)
    assert list(wide(frame).columns) == ["row", "metric", "n", "one: MLM", "one: MLSM"]
    assert (tmp_path / "first" / "table2.md").read_text(encoding="utf-8").splitlines() == [
        "**(a) one**, after 10 updates",
        "",
        "|  | metric | n | MLM | MLSM |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| rte | accuracy | 30 | **0.600** ± 0.141 | **0.600** ± 0.000 |",
        "| cola | MCC | 50 | **0.200** ± 0.141 | 0.100 ± 0.424 |",
        "| Average | mean | 80 | **0.400** ± 0.141 | 0.350 ± 0.212 |",
    ]
