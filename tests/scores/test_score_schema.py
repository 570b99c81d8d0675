"""The score schema: defaults, checks, gathering."""

import math

import numpy as np
import pandas as pd
import pytest

from masklab.errors import MaskLabError
from masklab.scores.schema import COLUMNS, GATHERED, check, gather, rows_to_frame, rows_to_table


def row(**changes):
    return {
        "recipe": "a",
        "replicate": 1,
        "step": 100,
        "probe": "pll",
        "task": "blimp/binding",
        "split": "test",
        "metric": "accuracy",
        "value": 0.5,
        "n": 10,
    } | changes


def test_defaults_types_and_order_do_not_depend_on_the_order_of_rows():
    rows = [row(step=200), row(), row(recipe="Z", seed=3, train_size=9, layer=2, at=0.25), row(metric="f1")]
    frame = rows_to_frame(rows)
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == COLUMNS
    assert list(frame["recipe"]) == ["Z", "a", "a", "a"]
    assert list(frame["step"]) == [100, 100, 100, 200]
    plain = frame.iloc[1]
    assert (plain["train_size"], plain["layer"], plain["seed"]) == (0, -1, 0)
    assert math.isnan(plain["at"])
    pd.testing.assert_frame_equal(frame, rows_to_frame(rows[::-1]))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 3}, "row 1: unknown column 'steps'"),
        ({"step": 1.0}, "row 1: step: must be an integer"),
        ({"seed": True}, "row 1: seed: must be an integer"),
        ({"value": np.True_}, "row 1: value: must be a number"),
        ({"value": "0.5"}, "row 1: value: must be a number"),
        ({"recipe": None}, "row 1: recipe: must be a string"),
        ({"study": "mlsm"}, "row 1: unknown column 'study'"),
        ({"mix": 0.5}, "row 1: unknown column 'mix'"),
        ({"replicate": 0}, r"row 1 \(a/r0 step 300, .*\): replicate must be at least 1"),
        ({"value": math.nan}, "value must be a finite number"),
        ({"value": 1.2}, r"accuracy must lie in \[0, 1\] \(got 1.2"),
        ({"metric": "mcc", "value": -1.5}, r"mcc must lie in \[-1, 1\]"),
        ({"metric": "spearman", "value": 1.1}, r"spearman must lie in \[-1, 1\]"),
        ({"n": -1}, "n must be at least 0"),
        ({"task": ""}, "task is empty"),
        ({"step": 100}, "value and that of row 0 are of the same measurement"),
    ],
)
def test_bad_rows_are_refused_in_one_line(changes, said):
    good = row()
    bad = row(step=300) | changes
    with pytest.raises(MaskLabError, match=said) as caught:
        rows_to_frame([good, bad])
    assert "\n" not in str(caught.value)


def test_missing_columns_are_named():
    short = row()
    del short["n"]
    with pytest.raises(MaskLabError, match="no column 'n'"):
        rows_to_frame([short])
    with pytest.raises(MaskLabError, match="somewhere: column 'n' is unknown or missing"):
        check(rows_to_table([row()]).drop_columns("n"), "somewhere")
    with pytest.raises(MaskLabError, match="column 'step': must be int64"):
        table = rows_to_table([row()])
        check(table.set_column(2, "step", table["step"].cast("float64")), "somewhere")


def test_numbers_of_numpy_are_numbers_and_no_coordinate_comes_first():
    frame = rows_to_frame([row(at=0.0, value=np.float32(0.25), n=np.int64(3)), row()])
    assert list(frame["value"]) == [0.5, 0.25] and math.isnan(frame["at"][0]) and list(frame["n"]) == [10, 3]


def test_gather_reads_what_was_written_and_refuses_doubles(tmp_path):
    first, second = rows_to_frame([row(recipe="b")]), rows_to_frame([row(), row(step=7)])
    first.to_parquet(tmp_path / "1.parquet")
    second.to_parquet(tmp_path / "2.parquet")
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    together = gather(paths)
    assert [(r.recipe, r.step) for r in together.itertuples()] == [("a", 7), ("a", 100), ("b", 100)]
    assert {name: str(dtype) for name, dtype in together.dtypes.items()} == COLUMNS
    pd.testing.assert_frame_equal(together, gather(paths[::-1]))
    with pytest.raises(MaskLabError, match="are of the same measurement"):
        gather([paths[0], paths[0]])
    with pytest.raises(MaskLabError, match="no such file"):
        gather([tmp_path / "3.parquet"])
    (tmp_path / "4.parquet").write_text("text")
    with pytest.raises(MaskLabError, match=r"4\.parquet: not a Parquet file"):
        gather([tmp_path / "4.parquet"])
    assert gather([]).empty and list(gather([]).columns) == list(COLUMNS)


def test_gather_by_study_adds_a_column_and_a_file_may_serve_two(tmp_path):
    rows_to_frame([row(), row(replicate=2)]).to_parquet(tmp_path / "1.parquet")
    rows_to_frame([row(recipe="b")]).to_parquet(tmp_path / "2.parquet")
    one, two = tmp_path / "1.parquet", tmp_path / "2.parquet"
    frame = gather({"second": [one], "first": [two, one], "none": []})
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == GATHERED and next(iter(GATHERED)) == "study"
    found = list(zip(frame["study"], frame["recipe"], frame["replicate"], strict=True))
    assert found == [("second", "a", 1), ("second", "a", 2), ("first", "a", 1), ("first", "a", 2), ("first", "b", 1)]
    pd.testing.assert_frame_equal(gather({"s": [one]}), rows_to_frame([row(), row(replicate=2)], study="s"))
    empty = gather({"none": []})
    assert empty.empty and {name: str(dtype) for name, dtype in empty.dtypes.items()} == GATHERED
    assert list(gather({}).columns) == list(GATHERED)
    with pytest.raises(MaskLabError, match="are of the same measurement"):
        gather({"s": [one, one]})
