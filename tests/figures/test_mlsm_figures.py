"""Figures 1-6 from scores: what is drawn is what is said beside it, and the paper's own points."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.figures.mlsm import figure1, figure2, figure3, figure4, figure5, figure6
from masklab.figures.write import write_figure
from masklab.scores.schema import rows_to_frame

PUBLISHED = pd.read_csv(Path(__file__).parents[1] / "tables" / "published.csv")
MODELS = {"kd": "KD+MLM", "m": "MLM", "s": "MLSM", "j": "MLSM+MLM"}
LABELS = MODELS | {"one": "one"}
CONTROL, AMBIGUOUS = ["cr", "lc"], ["cr-lc", "cr-rtp"]
METRICS = {"blimp": "accuracy", "rte": "accuracy"} | dict.fromkeys(CONTROL + AMBIGUOUS, "mcc")
STUDY = Study(
    panels={"big": ["kd", "m", "s", "j"], "small": ["m", "j"]},
    extra=["one"],
    probes={"predict": "all"},
    sets={"blimp": ["blimp"], "glue": ["rte"], "msgs-control": CONTROL, "msgs-ambiguous": AMBIGUOUS},
)
STARTS = {"big": "one@10"}


def base(model, task, value, **changes):
    row = {"study": "mlsm", "model": model, "step": 30, "probe": "p", "task": task, "split": "test"}
    return row | {"metric": METRICS[task.split("/")[0]], "value": value, "n": 40} | changes


def blimp():
    """Three phenomena at steps 10 and 30; the mean of model number i at step t is .5 + i / 20 + t / 1000."""
    rows = [
        base(model, f"blimp/{name}", 0.5 + i / 20 + step / 1000 + shift, step=step)
        for i, model in enumerate(MODELS)
        for step in (10, 30)
        for name, shift in (("x_y", -0.1), ("z", 0.0), ("w", 0.1))
    ]
    return rows + [base("one", f"blimp/{name}", 0.48, step=10) for name in ("x_y", "z", "w")]


def finetuned(tasks, seeds):
    """Seed k of model number i on task number t scores .1 i + .05 t + .02 k."""
    return [
        base(model, task, 0.1 * i + 0.05 * t + 0.02 * seed, step=step, seed=seed)
        for i, model in enumerate(MODELS)
        for t, task in enumerate(tasks)
        for step in (10, 30)
        for seed in seeds
    ]


def lines(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_figure1_draws_tokens_and_atoms_by_rank():
    tokens = [("apple", 0.4), ("$1 or $2", 0.2), ("meal", 0.1)]
    atoms = [("atom 3: bread, soup", 0.6), ("atom 0: red", 0.0001)]
    rows = [
        base(model, "rte", value)
        | {"task": "A [MASK].", "split": split, "probe": "predict", "metric": entry, "n": rank}
        for model, split, entries in (("m", "vocabulary", tokens), ("s", "vocabulary", tokens), ("s", "atoms", atoms))
        for rank, (entry, value) in enumerate(entries, start=1)
    ]
    figure, data = figure1(rows_to_frame(rows), STUDY, LABELS, METRICS)
    assert list(zip(data["entry"], data["probability"], strict=True)) == tokens + atoms
    assert list(data["model"]) == ["m"] * 3 + ["s"] * 2
    for axes, entries in zip(figure.axes, (tokens, atoms), strict=True):
        assert [bar.get_width() for bar in axes.patches] == [value for _, value in entries]
        assert [label.get_text() for label in axes.get_yticklabels()] == [entry for entry, _ in entries]
    assert "0.30" in figure.axes[0].get_xlabel()  # 1 - .4 - .2 - .1
    with pytest.raises(MaskLabError, match="no prediction rows of s over the atoms"):
        figure1(rows_to_frame(rows[:6]), STUDY, LABELS, METRICS)


def test_figure2_of_the_published_table_has_14_of_17_points_above_the_diagonal():
    printed = PUBLISHED[(PUBLISHED["table"] == "table1") & (PUBLISHED["panel"] == "strict")]
    models = {"MLSM": "s", "MLSM+MLM": "j"}
    rows = [base(models[r.label], f"blimp/{r.row}", r.value) for r in printed.itertuples() if r.label in models]
    figure, data = figure2(rows_to_frame(rows), STUDY, LABELS, METRICS)
    assert len(data) == 17
    assert set(data["row"][data["y"] <= data["x"]]) == {"binding", "hypernym", "qa congruence tricky"}
    assert figure.axes[0].get_title(loc="left") == "big: 14 of 17 phenomena above the diagonal"
    drawn = next(line for line in figure.axes[0].get_lines() if line.get_marker() == "o").get_xydata()
    np.testing.assert_array_equal(drawn, data[["x", "y"]])
    # No label touches another or a marker, and all are inside the canvas.
    axes, renderer = figure.axes[0], figure.canvas.get_renderer()
    boxes = {t.get_text(): t.get_window_extent(renderer) for t in axes.texts if t.get_text() != "chance"}
    assert set(boxes) == set(data["row"])
    points = axes.transData.transform(data[["x", "y"]])
    for i, (name, box) in enumerate(boxes.items()):
        assert not any(box.overlaps(other) for other in list(boxes.values())[i + 1 :]), name
        assert not any(box.padded(0.5).contains(*point) for point in points), name
        assert box.x0 > 0 and box.y0 > 0 and box.x1 < figure.bbox.x1 and box.y1 < figure.bbox.y1, name


def test_figure3_draws_means_over_phenomena_and_where_phase_2_starts():
    figure, data = figure3(rows_to_frame(blimp()), STUDY, LABELS, METRICS, starts=STARTS)
    curves = data[data["panel"] == "big"].set_index(["label", "updates"])["value"]
    assert curves["MLM", 30] == pytest.approx(0.58)  # .5 + 1 / 20 + 30 / 1000
    assert curves["start (phase 1)", 0] == pytest.approx(0.48)
    assert set(data["label"][data["panel"] == "small"]) == {"MLM", "MLSM+MLM"}
    low, high = figure.axes[0].get_ylim()
    for axes, (_, panel) in zip(figure.axes, data.groupby("panel", sort=False), strict=True):
        drawn = lines(axes)
        assert set(drawn) == set(panel["label"])
        for label, rows in panel.groupby("label"):
            np.testing.assert_array_equal(drawn[label].get_xydata(), rows[["updates", "value"]])
        assert axes.get_ylim() == (low, high)
        assert panel["value"].between(low, high).all()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*MODELS.values(), "start (phase 1)"]


def test_figure5_bars_are_the_deviation_of_seed_means():
    scores = rows_to_frame(finetuned(CONTROL + AMBIGUOUS, (1, 2, 3)))
    _, data = figure5(scores, STUDY, LABELS, METRICS)
    row = data[(data["panel"] == "big") & (data["label"] == "MLM") & (data["updates"] == 30)].iloc[0]
    # Seed means .195, .215, .235: mean .215, s = .02.
    assert row["value"] == pytest.approx(0.215)
    assert row["high"] - row["value"] == pytest.approx(0.02, rel=1e-6)
    assert row["value"] - row["low"] == pytest.approx(row["high"] - row["value"])
    assert (row["seeds"], row["tasks"]) == (3, 4)


def test_figure4_of_single_seeds_has_no_bars():
    figure, data = figure4(rows_to_frame(finetuned(["rte"], (1,))), STUDY, LABELS, METRICS)
    assert data["low"].isna().all() and data["std"].isna().all()
    assert not figure.axes[0].collections
    assert "std" not in figure.axes[0].get_ylabel()


def test_figure6_pairs_the_joint_model_with_mlm_and_kd():
    scores = rows_to_frame(finetuned(CONTROL + AMBIGUOUS, (1, 2)))
    figure, data = figure6(scores, STUDY, LABELS, METRICS)
    pairs = list(dict.fromkeys(zip(data["panel"], data["x_model"], data["y_model"], strict=True)))
    assert pairs == [("big", "kd", "j"), ("big", "m", "j"), ("small", "m", "j")]
    # Row by row: (a) big against KD+MLM, (b) small against MLM, (c) big against MLM.
    for axes, (panel, x) in zip(figure.axes, (("big", "kd"), ("small", "m"), ("big", "m")), strict=True):
        part = data[(data["panel"] == panel) & (data["x_model"] == x)]
        assert axes.get_xlabel().endswith(LABELS[x])
        for kind, marker in (("control", "s"), ("ambiguous", "o")):
            line = next(c for c in axes.containers if c.get_label() == kind).lines[0]
            assert line.get_marker() == marker
            np.testing.assert_array_equal(line.get_xydata(), part.loc[part["kind"] == kind, ["x", "y"]])
    cell = data[(data["x_model"] == "m") & (data["task"] == "lc")].iloc[0]
    assert cell[["x", "y", "x_std"]].tolist() == pytest.approx([0.18, 0.38, 0.02 / np.sqrt(2)])


def test_redrawing_gives_the_same_bytes_and_the_data_beside(tmp_path):
    scores = rows_to_frame(finetuned(CONTROL + AMBIGUOUS, (1, 2)))
    for name in ("first", "second"):
        figure, data = figure5(scores.sample(frac=1, random_state=len(name)), STUDY, LABELS, METRICS)
        write_figure(figure, data, tmp_path / name / "figure5")
    for kind in ("pdf", "png", "parquet", "csv"):
        first, second = ((tmp_path / name / f"figure5.{kind}").read_bytes() for name in ("first", "second"))
        assert first == second, kind
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "first" / "figure5.parquet"), data)
    pdf = (tmp_path / "first" / "figure5.pdf").read_bytes()
    assert b"CreationDate" not in pdf and pdf.startswith(b"%PDF")


def test_a_missing_objective_or_score_is_one_line():
    study = Study(panels={"big": ["m", "s"]}, probes={}, sets=STUDY.sets)
    with pytest.raises(MaskLabError, match=r"no panel has a model of objective MLSM\+MLM; the panels have MLM, MLSM"):
        figure2(rows_to_frame(blimp()), study, LABELS, METRICS)
    with pytest.raises(MaskLabError, match="no accuracy rows on the test split of blimp"):
        figure3(rows_to_frame(finetuned(CONTROL, (1,))), STUDY, LABELS, METRICS)
