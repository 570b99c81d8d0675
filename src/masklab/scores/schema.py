"""The one score schema: every probe of every study writes these rows, tables and figures read nothing else.

Probes write Arrow tables, which start faster than pandas; what reads scores gets a pandas frame.
"""

import math
from numbers import Integral, Real
from pathlib import Path

import pyarrow as pa

from masklab.errors import MaskLabError
from masklab.files import read_table

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
_PLAIN = {"str": str, "int64": int, "float64": float}
_ARROW = {"str": pa.string(), "int64": pa.int64(), "float64": pa.float64()}
SCHEMA = pa.schema([(name, _ARROW[dtype]) for name, dtype in COLUMNS.items()])
# Room for the last bit of a sum of rounded numbers.
_SLACK = 1e-9


def rows_to_table(rows: list[dict]) -> pa.Table:
    """Score rows -> checked table in the schema's column order, sorted.

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
            if not isinstance(value, type_) or isinstance(value, bool):
                raise MaskLabError(f"scores: row {index}: {name}: must be {said} (got {value!r})")
    full = [NOT_APPLICABLE | row for row in rows]
    plain = {name: [_PLAIN[dtype](row[name]) for row in full] for name, dtype in COLUMNS.items()}
    table = pa.table(plain, SCHEMA)
    check(table, "scores")
    return _sorted(table)


def rows_to_frame(rows: list[dict]):
    """`rows_to_table` as a pandas frame."""
    return _frame(rows_to_table(rows))


def check(table: pa.Table, where) -> None:
    """Raise MaskLabError, starting with `where`, at the first column or row that breaks the schema."""
    if table.column_names != list(COLUMNS):
        wrong = [name for name in table.column_names if name not in COLUMNS]
        wrong += [name for name in COLUMNS if name not in table.column_names]
        said = f"column {wrong[0]!r} is unknown or missing" if wrong else "columns are out of order"
        raise MaskLabError(f"{where}: {said}; the columns are {', '.join(COLUMNS)}")
    for name, dtype in COLUMNS.items():
        kind = table.schema.field(name).type
        fits = kind == _ARROW[dtype] or (dtype == "str" and pa.types.is_large_string(kind))
        if not fits and len(table):
            raise MaskLabError(f"{where}: column {name!r}: must be {dtype} (got {kind})")
    values = table.to_pydict()
    for name, dtype in COLUMNS.items():
        for index, value in enumerate(values[name]):
            if said := _fault(name, dtype, value):
                _refuse(values, index, where, name, said)
    limited = zip(values["metric"], values["value"], values["split"], strict=True)
    for index, (metric, value, split) in enumerate(limited):
        low, high = LIMITS.get(metric, (-math.inf, math.inf))
        if not low - _SLACK <= value <= high + _SLACK and split not in ("vocabulary", "atoms"):
            _refuse(values, index, where, "value", f"{metric} must lie in [{low}, {high}]")
    seen = set()
    for index, key in enumerate(_keys(values)):
        if key in seen:
            _refuse(values, index, where, "metric", "is a second row for the same measurement")
        seen.add(key)


def gather(paths):
    """All score files in one checked, sorted pandas frame; a bad file raises MaskLabError naming it.

    Of {study: files} the frame says the study of each row.
    """
    if isinstance(paths, dict):
        import pandas as pd

        return pd.concat([gather(files).assign(study=study) for study, files in paths.items()], ignore_index=True)
    tables = [_read(path) for path in paths]
    if not tables:
        return rows_to_frame([])
    table = pa.concat_tables(tables)
    check(table, f"the {len(tables)} score files together")
    return _frame(_sorted(table))


def _read(path) -> pa.Table:
    table = read_table(path)
    check(table, Path(path))
    return table.cast(SCHEMA).replace_schema_metadata(None)


def _fault(name, dtype, value) -> str | None:
    """What is wrong with one value, if anything is."""
    if dtype == "float64":
        bad = name != "mix" and (value is None or not math.isfinite(value))
        return "must be a finite number" if bad else None
    if value is None or (value == "" and name in ("study", "model", "probe", "task", "split", "metric")):
        return "is empty"
    return "must be at least 0" if name == "n" and value < 0 else None


def _refuse(values, index, where, name, said):
    row = {column: values[column][index] for column in values}
    raise MaskLabError(
        f"{where}: row {index} ({row['model']} step {row['step']}, {row['task']}, {row['metric']}):"
        f" {name} {said} (got {row[name]!r})"
    )


def _keys(values):
    """What tells one measurement from another, row by row, in sorting order: no mix comes first."""
    mix = [-math.inf if value is None or math.isnan(value) else value for value in values["mix"]]
    return zip(*(mix if name == "mix" else values[name] for name in KEY), strict=True)


def _sorted(table):
    keys = list(_keys(table.to_pydict()))
    return table.take(pa.array(sorted(range(len(keys)), key=keys.__getitem__), pa.int64()))


def _frame(table):
    return table.to_pandas().astype(COLUMNS)
