"""The one score schema: every probe of every study writes these rows, tables and figures read nothing else."""

from numbers import Integral, Real
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from masklab.errors import MaskLabError

COLUMNS = {
    "study": "str",
    "model": "str",
    "step": "int64",
    "probe": "str",
    "task": "str",
    "split": "str",
    "train_size": "int64",
    "mix": "float64",
    "layer": "int64",
    "seed": "int64",
    "metric": "str",
    "value": "float64",
    "n": "int64",
}
NOT_APPLICABLE = {"train_size": 0, "mix": float("nan"), "layer": -1, "seed": 0}
LIMITS = {"accuracy": (0, 1), "accuracy_full_width": (0, 1), "f1": (0, 1), "mcc": (-1, 1)}

# Two rows may differ in `value` only if they are two measurements of the same thing, which is an error.
KEY = [name for name in COLUMNS if name != "value"]
_TYPES = {"str": (str, "a string"), "int64": (Integral, "an integer"), "float64": (Real, "a number")}
# Room for the last bit of a sum of rounded numbers.
_SLACK = 1e-9


def rows_to_frame(rows: list[dict]) -> pd.DataFrame:
    """Score rows -> checked frame in the schema's column order, sorted.

    `train_size`, `mix`, `layer` and `seed` may be left out (not applicable: 0, NaN, -1, 0);
    any other missing or unknown column, and any value of the wrong type, raises MaskLabError.
    """
    for index, row in enumerate(rows):
        unknown = [name for name in row if name not in COLUMNS]
        missing = [name for name in COLUMNS if name not in row and name not in NOT_APPLICABLE]
        if unknown or missing:
            said = f"unknown column {unknown[0]!r}" if unknown else f"no column {missing[0]!r}"
            raise MaskLabError(f"scores: row {index}: {said}; the columns are {', '.join(COLUMNS)}")
        for name, value in row.items():
            type_, said = _TYPES[COLUMNS[name]]
            if not isinstance(value, type_) or isinstance(value, bool | np.bool_):
                raise MaskLabError(f"scores: row {index}: {name}: must be {said} (got {value!r})")
    full = [NOT_APPLICABLE | row for row in rows]
    frame = pd.DataFrame({name: pd.Series([row[name] for row in full], dtype=dtype) for name, dtype in COLUMNS.items()})
    check(frame, "scores")
    return _sorted(frame)


def check(frame: pd.DataFrame, where) -> None:
    """Raise MaskLabError, starting with `where`, at the first column or row that breaks the schema."""
    if list(frame.columns) != list(COLUMNS):
        wrong = [name for name in frame.columns if name not in COLUMNS]
        wrong += [name for name in COLUMNS if name not in frame.columns]
        said = f"column {wrong[0]!r} is unknown or missing" if wrong else "columns are out of order"
        raise MaskLabError(f"{where}: {said}; the columns are {', '.join(COLUMNS)}")
    for name, dtype in COLUMNS.items():
        column = frame[name]
        fits = pd.api.types.is_string_dtype(column) if dtype == "str" else column.dtype == dtype
        if not fits and len(frame):
            raise MaskLabError(f"{where}: column {name!r}: must be {dtype} (got {column.dtype})")
        if name != "mix":
            empty = ~np.isfinite(column.to_numpy()) if dtype == "float64" else column.isna().to_numpy()
            _refuse(frame, empty, where, name, "must be a finite number" if dtype == "float64" else "is empty")
    for name in ("study", "model", "probe", "task", "split", "metric"):
        _refuse(frame, (frame[name] == "").to_numpy(), where, name, "is empty")
    _refuse(frame, (frame["n"] < 0).to_numpy(), where, "n", "must be at least 0")
    for metric, (low, high) in LIMITS.items():
        outside = ~frame["value"].between(low - _SLACK, high + _SLACK)
        bad = ((frame["metric"] == metric) & outside & ~frame["split"].isin(["vocabulary", "atoms"])).to_numpy()
        _refuse(frame, bad, where, "value", f"{metric} must lie in [{low}, {high}]")
    twice = frame.duplicated(KEY).to_numpy()
    _refuse(frame, twice, where, "metric", "is a second row for the same measurement")


def gather(paths) -> pd.DataFrame:
    """All score files in one checked, sorted frame; a bad file raises MaskLabError naming it."""
    frames = [_read(path) for path in paths]
    if not frames:
        return rows_to_frame([])
    frame = pd.concat(frames, ignore_index=True)
    check(frame, f"the {len(frames)} score files together")
    return _sorted(frame)


def _read(path):
    try:
        frame = pd.read_parquet(path)
    except FileNotFoundError:
        raise MaskLabError(f"{path}: no such file") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise MaskLabError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None
    check(frame, Path(path))
    return frame.astype(COLUMNS)


def _refuse(frame, bad, where, name, said):
    if bad.any():
        index = int(np.flatnonzero(bad)[0])
        row = frame.iloc[index]
        value = row[name].item() if isinstance(row[name], np.generic) else row[name]
        raise MaskLabError(
            f"{where}: row {index} ({row['model']} step {row['step']}, {row['task']}, {row['metric']}):"
            f" {name} {said} (got {value!r})"
        )


def _sorted(frame):
    return frame.sort_values(KEY, kind="stable", na_position="first", ignore_index=True)
