"""The one score schema: every probe writes these rows, and figures, tables and claims read nothing but these and items.

A row is one number: what `probe` found of the checkpoint `step` of replicate `replicate` of `recipe`. No study is in
it: two studies that ask the same question of the same recipe share the answer. `gather` adds the study.

Probes write Arrow tables, which start faster than pandas; what reads scores gets a pandas frame.
"""

import math
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path

import pyarrow as pa

from masklab.errors import MaskLabError
from masklab.files import read_table

COLUMNS = {
    "recipe": "str",
    "replicate": "int64",
    "step": "int64",
    "probe": "str",
    "task": "str",
    "split": "str",
    "train_size": "int64",
    "at": "float64",  # a coordinate that no other column holds, such as the offset of a slice of the loss
    "layer": "int64",
    "seed": "int64",
    "metric": "str",
    "value": "float64",
    "n": "int64",
}
GATHERED = {"study": "str"} | COLUMNS
NOT_APPLICABLE = {"train_size": 0, "at": float("nan"), "layer": -1, "seed": 0}
SHARES = ("accuracy", "accuracy_full_width", "f1", "exact", "majority", "majority_f1")
SHARES += ("outside", "outside_beside", "mean_share")  # of the squared norm of hidden states
LIMITS = dict.fromkeys(SHARES, (0, 1)) | dict.fromkeys(("mcc", "pearson", "spearman"), (-1, 1))

# Two rows may differ in `value` only if they are two measurements of the same thing, which is an error.
KEY = [name for name in COLUMNS if name != "value"]
_TYPES = {"str": (str, "a string"), "int64": (Integral, "an integer"), "float64": (Real, "a number")}
_PLAIN = {"str": str, "int64": int, "float64": float}
ARROW = {"str": pa.string(), "int64": pa.int64(), "float64": pa.float64()}
SCHEMA = pa.schema([(name, ARROW[dtype]) for name, dtype in COLUMNS.items()])
NAMES = ("recipe", "probe", "task", "split", "metric")  # never empty
# Room for the last bit of a sum of rounded numbers.
SLACK = 1e-9


def rows_to_table(rows: list[dict], where: str = "scores") -> pa.Table:
    """Score rows -> checked table in the schema's column order, sorted.

    `train_size`, `at`, `layer` and `seed` may be left out (not applicable: 0, NaN, -1, 0);
    any other missing or unknown column, and any value of the wrong type, raises MaskLabError, starting with `where`.
    """
    for index, row in enumerate(rows):
        check_keys(row, COLUMNS, NOT_APPLICABLE, f"{where}: row {index}")
        for name, value in row.items():
            type_, wanted = _TYPES[COLUMNS[name]]
            if not isinstance(value, type_) or isinstance(value, bool):
                raise MaskLabError(f"{where}: row {index}: {name}: must be {wanted} (got {value!r})")
    full = [NOT_APPLICABLE | row for row in rows]
    plain = {name: [_PLAIN[dtype](row[name]) for row in full] for name, dtype in COLUMNS.items()}
    table = pa.table(plain, SCHEMA)
    check(table, where)
    return _sorted(table)


def rows_to_frame(rows: list[dict], study: str | None = None):
    """`rows_to_table` as a pandas frame; with `study` as `gather` gives the scores of that study."""
    return _frame(rows_to_table(rows), study)


def check_keys(row: dict, columns, optional, where) -> None:
    """Raise MaskLabError, starting with `where`, if a row has a key that is no column, or lacks one."""
    unknown = [name for name in row if name not in columns]
    missing = [name for name in columns if name not in row and name not in optional]
    if unknown or missing:
        fault = f"unknown column {unknown[0]!r}" if unknown else f"no column {missing[0]!r}"
        raise MaskLabError(f"{where}: {fault}; the columns are {', '.join(columns)}")


def check_columns(table: pa.Table, columns, where) -> None:
    """Raise MaskLabError, starting with `where`, if a table has other columns, or in another order."""
    if table.column_names != list(columns):
        wrong = [name for name in table.column_names if name not in columns]
        wrong += [name for name in columns if name not in table.column_names]
        fault = f"column {wrong[0]!r} is unknown or missing" if wrong else "columns are out of order"
        raise MaskLabError(f"{where}: {fault}; the columns are {', '.join(columns)}")


def check(table: pa.Table, where) -> None:
    """Raise MaskLabError, starting with `where`, at the first column or row that breaks the schema."""
    check_columns(table, COLUMNS, where)
    for name, dtype in COLUMNS.items():
        kind = table.schema.field(name).type
        fits = kind == ARROW[dtype] or (dtype == "str" and pa.types.is_large_string(kind))
        if not fits and len(table):
            raise MaskLabError(f"{where}: column {name!r}: must be {dtype} (got {kind})")
    values = table.to_pydict()
    for name, dtype in COLUMNS.items():
        for index, value in enumerate(values[name]):
            if fault := _fault(name, dtype, value):
                _refuse(values, index, where, name, fault)
    limited = zip(values["metric"], values["value"], values["split"], strict=True)
    for index, (metric, value, split) in enumerate(limited):
        low, high = LIMITS.get(metric, (-math.inf, math.inf))
        if not low - SLACK <= value <= high + SLACK and split not in ("vocabulary", "atoms"):
            _refuse(values, index, where, "value", f"{metric} must lie in [{low}, {high}]")
    seen = {}
    for index, key in enumerate(_keys(values)):
        if key in seen:
            _refuse(values, index, where, "value", f"and that of row {seen[key]} are of the same measurement")
        seen[key] = index


def gather(files):
    """Score files as one checked, sorted pandas frame; a bad file raises MaskLabError naming it.

    files: paths of score files; or {study: paths}, and the frame begins with a column `study`, in the order given.
    """
    if isinstance(files, Mapping):
        import pandas

        frames = [_frame(_together(paths), study) for study, paths in files.items()]
        filled = [frame for frame in frames if len(frame)]
        return pandas.concat(filled, ignore_index=True) if filled else _frame(rows_to_table([]), "")
    return _frame(_together(files))


def _together(paths) -> pa.Table:
    tables = [_read(path) for path in paths]
    if not tables:
        return rows_to_table([])
    table = pa.concat_tables(tables)
    check(table, f"the {len(tables)} score files together")
    return _sorted(table)


def _read(path) -> pa.Table:
    table = read_table(path)
    check(table, Path(path))
    return table.cast(SCHEMA).replace_schema_metadata(None)


def _fault(name, dtype, value) -> str | None:
    """What is wrong with one value, if anything is."""
    if dtype == "float64":
        bad = name != "at" and (value is None or not math.isfinite(value))
        return "must be a finite number" if bad else None
    if value is None or (value == "" and name in NAMES):
        return "is empty"
    if name == "replicate" and value < 1:
        return "must be at least 1"
    return "must be at least 0" if name == "n" and value < 0 else None


def _refuse(values, index, where, name, fault):
    row = {column: values[column][index] for column in values}
    raise MaskLabError(
        f"{where}: row {index} ({row['recipe']}/r{row['replicate']} step {row['step']}, {row['task']},"
        f" {row['metric']}): {name} {fault} (got {row[name]!r})"
    )


def _keys(values):
    """What tells one measurement from another, row by row, in sorting order: no `at` comes first."""
    at = [-math.inf if value is None or math.isnan(value) else value for value in values["at"]]
    return zip(*(at if name == "at" else values[name] for name in KEY), strict=True)


def _sorted(table):
    keys = list(_keys(table.to_pydict()))
    return table.take(pa.array(sorted(range(len(keys)), key=keys.__getitem__), pa.int64()))


def _frame(table, study=None):
    frame = table.to_pandas().astype(COLUMNS)
    if study is not None:
        frame.insert(0, "study", study)
        frame = frame.astype(GATHERED)
    return frame
