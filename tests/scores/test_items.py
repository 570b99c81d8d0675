"""Items: metrics of items, metrics of resampled items, and the file format."""

import numpy as np
import pyarrow as pa
import pytest

from masklab.errors import MaskLabError
from masklab.files import write_table
from masklab.scores.items import (
    COLUMNS,
    OUTCOME,
    SCHEMA,
    check,
    class_metrics,
    gather,
    items_path,
    read,
    records_to_table,
    resampled,
)
from masklab.scores.metrics import CLASSES, pearson, ranks, tally
from of_items import of_items


def record(**changes):
    return {
        "recipe": "a",
        "replicate": 1,
        "step": 100,
        "probe": "p",
        "task": "t",
        "split": "test",
        "metrics": ["accuracy"],
        "targets": [0, 1, 1],
        "predictions": np.array([0, 1, 0]),
    } | changes


# --- metrics -------------------------------------------------------------------


def test_metrics_by_name():
    targets, predictions = [0, 1, 1, 1], [0, 1, 0, 1]
    wanted = {"accuracy": 0.75, "majority": 0.75, "f1": 0.8, "majority_f1": 6 / 7, "trace": 0.5, "loss": 0.5}
    for metric, value in wanted.items():
        assert of_items(metric, targets, predictions) == pytest.approx(value, abs=1e-12)
    assert of_items("pearson", [1, 2, 3], [2, 4, 6.5]) < of_items("spearman", [1, 2, 3], [2, 4, 6.5]) == 1
    three = [0, 2, 1, 1], [0, 1, 1, 2]
    assert of_items("f1", *three) == CLASSES["f1"](tally(*three, 3))
    # an outcome of its own: the mean, under whatever name
    outcomes = [OUTCOME] * 4, [0.25, 1, 0, 0.5]
    assert {of_items(metric, *outcomes) for metric in ("f1", "accuracy", "exact", "mcc")} == {0.4375}
    assert of_items("accuracy", np.float32([1, 1]), np.float32([1, 0])) == 0.5


def test_items_that_do_not_show_the_classes_explain_no_f1():
    assert class_metrics(2, [0, 1], [0, 0]) == class_metrics(3, [0, 1], [2, 0]) == list(CLASSES)
    assert class_metrics(3, [0, 1], [0, 0]) == ["accuracy", "mcc", "majority"]


@pytest.mark.parametrize("metric", [*CLASSES, "pearson", "spearman", "loss"])
@pytest.mark.parametrize("classes", [2, 5])
def test_resampled_equals_a_loop_over_resampled_items(metric, classes):
    rng = np.random.default_rng(classes)
    m, copies, draws = 40, 3, 25
    if metric in CLASSES:
        targets = rng.integers(0, classes, m)
        predictions = np.where(rng.random((copies, m)) < 0.5, targets, rng.integers(0, classes, (copies, m)))
    else:
        targets = rng.integers(0, 6, m) / 2
        predictions = targets + rng.normal(size=(copies, m)).astype(np.float32)
    drawn = rng.integers(0, m, (draws, m))
    drawn[0] = 7  # one item alone
    drawn[1] = np.where(np.arange(m) % 2, 3, 4)
    counts = np.stack([np.bincount(each, minlength=m) for each in drawn])
    found = resampled(metric, targets, predictions, counts)
    assert found.shape == (copies, draws) and found.dtype == np.float64
    for k in range(copies):
        for b, rows in enumerate(drawn):
            if metric in CLASSES:
                wanted = CLASSES[metric](tally(targets[rows], predictions[k, rows], classes))
            elif metric == "spearman":
                wanted = pearson(ranks(targets)[rows], ranks(predictions[k])[rows])
            else:
                wanted = of_items(metric, targets[rows], predictions[k, rows])
            assert found[k, b] == pytest.approx(wanted, abs=1e-12), (k, b)
    whole = resampled(metric, targets, predictions, np.ones((1, m)))[:, 0]
    assert whole == pytest.approx([of_items(metric, targets, each) for each in predictions], abs=1e-12)


def test_resampled_outcomes_are_weighted_means():
    counts = np.array([[2, 0, 1], [0, 3, 0]])
    found = resampled("f1", [OUTCOME] * 3, [[1, 0.5, 0]], counts)
    assert found == pytest.approx(np.array([[2 / 3, 0.5]]), abs=1e-15)


@pytest.mark.parametrize("metric", ["pearson", "spearman", "accuracy", "told"])
def test_items_that_were_not_measured_are_drawn_and_count_for_nothing(metric):
    """Two answers that measured other items of one test set: each draw takes the same items of both."""
    rng = np.random.default_rng(3)
    m, counts = 30, rng.multinomial(30, np.full(30, 1 / 30), size=50)
    counts[0] = 0
    counts[0, 4] = 30  # one item alone, which the second answer lacks
    for left_out in ([2, 9, 20], [0, 4, 9]):
        targets = np.full(m, OUTCOME) if metric == "told" else rng.integers(0, 2, m).astype(float)
        predictions = rng.integers(0, 2, (2, m)).astype(float)
        there = np.setdiff1d(np.arange(m), left_out)
        wanted = resampled(metric, targets[there], predictions[:, there], counts[1:, there])
        targets[left_out], predictions[:, left_out] = np.nan, np.nan
        found = resampled(metric, targets, predictions, counts)
        assert np.array_equal(found[:, 1:], wanted) and np.isfinite(found).all()


def test_many_classes_and_a_constant_prediction():
    """Class numbers may be far apart; a replicate that says one thing has no correlation."""
    rng = np.random.default_rng(0)
    targets = rng.choice([3, 900, 10_000], 30)
    predictions = np.stack([targets, np.full(30, 900)])
    counts = rng.integers(0, 3, (8, 30))
    found = resampled("f1", targets, predictions, counts)
    assert (found[0] == 1).all() and (found[1] < 0.5).all()
    assert (resampled("mcc", targets, predictions, counts)[1] == 0).all()
    assert (resampled("pearson", targets, np.full((1, 30), 0.1), counts) == 0).all()


# --- files ---------------------------------------------------------------------


def test_written_and_read_again(tmp_path):
    records = [record(step=200, seed=3), record(), record(metrics=["f1", "mcc"], predictions=[0.1, 1, 2])]
    table = records_to_table(records)
    assert table.schema == SCHEMA and table.column_names == list(COLUMNS)
    assert table["step"].to_pylist() == [100, 100, 200] and table["layer"].to_pylist() == [-1] * 3
    assert table.equals(records_to_table(records[::-1]))
    path = items_path(tmp_path / "step-600.cola.parquet")
    assert path == tmp_path / "step-600.cola.items.parquet"
    write_table(table, path)
    assert read(path).equals(table)
    kept = read(path)["predictions"].to_pylist()[1]
    assert kept == np.float32([0.1, 1, 2]).tolist()
    write_table(records_to_table([]), tmp_path / "empty.items.parquet")
    assert len(read(tmp_path / "empty.items.parquet")) == 0
    other = items_path(tmp_path / "other.parquet")
    write_table(records_to_table([record(replicate=2)]), other)
    assert gather([other, path])["replicate"].to_pylist() == [1, 1, 1, 2]
    assert gather([]).schema == SCHEMA
    with pytest.raises(MaskLabError, match=r"the 2 files of items together: row 1 .*explained a second time"):
        gather([other, other])


def test_items_are_stored_compactly(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 2000)
    records = [record(seed=seed, targets=labels, predictions=rng.integers(0, 2, 2000)) for seed in range(10)]
    write_table(records_to_table(records), tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").stat().st_size < 20_000  # of 40,000 numbers


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"value": 0.5}, "items: row 1: unknown column 'value'"),
        ({"step": 1.0}, "items: row 1: step: must be an integer"),
        ({"recipe": None}, "items: row 1: recipe: must be a string"),
        ({"task": ""}, r"items: row 1 \(a/r1 step 300, , accuracy\): task is empty"),
        ({"replicate": 0}, "row 1 .*: replicate must be at least 1"),
        ({"predictions": [0, 1]}, "row 1 .*: 3 targets and 2 predictions; one each per item"),
        ({"predictions": [], "targets": []}, "row 1 .*: 0 targets and 0 predictions"),
        ({"predictions": [0, np.nan, 1]}, "row 1 .*: predictions must be finite numbers"),
        ({"targets": [0, 1, np.inf]}, "row 1 .*: targets must be finite numbers"),
        ({"targets": [0, np.nan, 1]}, "row 1 .*: targets must be finite numbers"),
        ({"targets": [np.nan] * 3, "predictions": [np.nan] * 3}, "row 1 .*: no item was measured"),
        ({"metrics": []}, r"row 1 .*: metrics must be names \(got \[\]\)"),
        ({"metrics": ["f1", "f1"]}, "row 1 .*: f1 is explained a second time"),
        ({"step": 100}, "row 1 .*: accuracy is explained a second time for the same measurement"),
    ],
)
def test_bad_records_are_refused_in_one_line(changes, said):
    with pytest.raises(MaskLabError, match=said) as caught:
        records_to_table([record(), record(step=300) | changes])
    assert "\n" not in str(caught.value)


def test_bad_files_are_named(tmp_path):
    short = record()
    del short["metrics"]
    with pytest.raises(MaskLabError, match="no column 'metrics'"):
        records_to_table([short])
    table = records_to_table([record(), record(step=7)])
    with pytest.raises(MaskLabError, match="somewhere: column 'targets' is unknown or missing"):
        check(table.drop_columns("targets"), "somewhere")
    at = table.schema.get_field_index("targets")
    with pytest.raises(MaskLabError, match="column 'targets': must be list<item: float>"):
        check(table.set_column(at, "targets", table["targets"].cast(pa.list_(pa.float64()))), "somewhere")
    missing = pa.array([[1.0, None, 0.0], [1.0, 1.0, 1.0]], pa.list_(pa.float32()))
    with pytest.raises(MaskLabError, match=r"row 0 .*: targets must be finite"):
        check(table.set_column(at, "targets", missing), "somewhere")
    nothing = pa.array([[1.0, 1.0, 0.0], None], pa.list_(pa.float32()))
    write_table(table.set_column(at, "targets", nothing), tmp_path / "bad.items.parquet")
    with pytest.raises(MaskLabError, match=r"bad\.items\.parquet: row 1 .*: targets is empty"):
        read(tmp_path / "bad.items.parquet")
    with pytest.raises(MaskLabError, match="no such file"):
        read(tmp_path / "none.parquet")
