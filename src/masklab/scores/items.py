"""Outcomes item by item: what lies in `<unit>.items.parquet` beside the scores of a unit.

A record is one test set answered by one measurement: its columns are those that tell a score row from another (but
`at`), the `metrics` of the rows that these outcomes explain, and `targets` and `predictions`, one number each per
item, in the order of the test set. The value of such a row is its metric of these numbers, of two classes where none
is above 1. Where an item's outcome is a number of its own (an exact match, the loss of a sequence, a minimal pair that
is right), that is the prediction, the target is `OUTCOME`, and every metric is the mean. An item of the test set that
was not measured, such as a text in which there was no word to replace, is NaN in both.

`resampled` gives a metric of test sets drawn again from the items, many at once.
"""

import itertools
from numbers import Integral
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from masklab.errors import MaskLabError
from masklab.files import read_table
from masklab.scores.metrics import CLASSES, Tally, ranks
from masklab.scores.schema import ARROW, check_columns, check_keys
from masklab.scores.schema import COLUMNS as SCORES

KEY = [name for name in SCORES if name not in ("at", "metric", "value", "n")]
LISTS = ("targets", "predictions")
COLUMNS = (*KEY, "metrics", *LISTS)
SCHEMA = pa.schema(
    [(name, ARROW[SCORES[name]]) for name in KEY]
    + [("metrics", pa.list_(pa.string())), *((name, pa.list_(pa.float32())) for name in LISTS)]
)
NOT_APPLICABLE = {"train_size": 0, "layer": -1, "seed": 0}
CHUNK = 1 << 20  # numbers held at a time for each of the arrays that a correlation needs
OUTCOME = -1.0  # target of an item whose prediction is its outcome; no class has this number


# --- metrics -------------------------------------------------------------------


def class_metrics(classes: int, targets, predictions) -> list[str]:
    """Metrics of a classification that its items explain: all, unless they do not show how many classes it has.

    F1 is another number for two classes than for more. Items of a task of more whose labels and answers are 0 and 1
    alone look like those of a task of two, and explain no F1.
    """
    shown = (classes == 2) == _has_two(np.asarray(targets), np.asarray(predictions))
    return [metric for metric in CLASSES if shown or metric not in ("f1", "majority_f1")]


def _are_outcomes(targets) -> bool:
    return bool((np.asarray(targets) == OUTCOME).all())


def _has_two(targets, predictions) -> bool:
    return bool(max(targets.max(), predictions.max()) <= 1)


def resampled(metric: str, targets, predictions, counts) -> np.ndarray:
    """A metric of K answers to one test set, each under B weightings of its items, [K, B] float64.

    Args:
        targets: [m], of the items, NaN where one was not measured; predictions: [K, m], such as those of K replicates.
        counts: [B, m], how often each item was drawn; whole rows of 1 give the metric of the test set itself.

    A property of the test set keeps the value of the whole set: how many classes there are, and for `spearman`
    the ranks, which are weighted and not computed anew from the items drawn.
    """
    targets, predictions, counts = (np.asarray(values, np.float64) for values in (targets, predictions, counts))
    if not (measured := ~np.isnan(targets)).all():
        targets, predictions, counts = targets[measured], predictions[:, measured], counts[:, measured]
        counts[counts.sum(1) == 0] = 1  # of none that was measured, all stand in
    if metric == "accuracy" and not _are_outcomes(targets):
        predictions = (predictions == targets).astype(np.float64)  # a mean, which is fast
    elif metric in CLASSES and not _are_outcomes(targets):
        return _resampled_classes(metric, targets, predictions, counts)
    if metric in ("pearson", "spearman"):
        if metric == "spearman":
            targets, predictions = ranks(targets), np.stack([ranks(each) for each in predictions])
        return _resampled_correlation(targets, predictions, counts)
    return (counts @ predictions.T / counts.sum(1, keepdims=True)).T


def _resampled_classes(metric, targets, predictions, counts):
    function, two = CLASSES[metric], _has_two(targets, predictions)
    names = np.arange(2) if two else np.unique(np.concatenate([targets, predictions.ravel()]))
    labels = targets[:, None] == names
    true = counts @ labels
    asked = predictions[:1] if metric.startswith("majority") else predictions  # which the labels alone decide
    values = np.empty((len(asked), len(counts)))
    for row, answers in zip(values, asked, strict=True):
        hits = labels & (answers == targets)[:, None]
        row[:] = function(Tally(counts @ hits, true, counts @ (answers[:, None] == names), two))
    return np.repeat(values, len(predictions) // len(asked), axis=0)


def _resampled_correlation(x, y, counts):
    """Weighted correlations of x [m] with y [K, m], [K, B]; 0 where what was drawn of one of them is constant."""
    correlations = np.zeros((len(y), len(counts)))
    step = max(1, CHUNK // len(x))
    for start in range(0, len(counts), step):
        part = slice(start, start + step)
        weights = counts[part]
        from_mean = _centred(x, weights)
        weighted = weights * from_mean
        spread, constant = (weighted * from_mean).sum(1), _constant(x, weights)
        for row, values in zip(correlations, y, strict=True):
            other = _centred(values, weights)
            scale = np.sqrt(spread * (weights * other * other).sum(1))
            defined = ~(constant | _constant(values, weights)) & (scale > 0)
            np.divide((weighted * other).sum(1), scale, out=row[part], where=defined)
    return correlations


def _centred(values, weights):
    return values - (weights @ values / weights.sum(1))[:, None]


def _constant(values, counts):
    """Whether all items drawn have one value, [B]."""
    drawn = counts > 0
    return np.where(drawn, values, np.inf).min(1) >= np.where(drawn, values, -np.inf).max(1)


# --- files ---------------------------------------------------------------------


def items_path(scores) -> Path:
    """Where the items of a score file lie: `<stem>.items.parquet` beside it."""
    path = Path(scores)
    return path.with_name(f"{path.stem}.items.parquet")


def records_to_table(records: list[dict], where: str = "items") -> pa.Table:
    """Records -> checked table in the order of COLUMNS, sorted; numbers are kept as float32.

    `train_size`, `layer` and `seed` may be left out (not applicable: 0, -1, 0); any other missing or unknown column,
    and any value of the wrong type, raises MaskLabError, starting with `where`.
    """
    for index, record in enumerate(records):
        check_keys(record, COLUMNS, NOT_APPLICABLE, f"{where}: row {index}")
        for name in KEY:
            kind, wanted = (str, "a string") if SCORES[name] == "str" else (Integral, "an integer")
            value = record.get(name, NOT_APPLICABLE.get(name))
            if not isinstance(value, kind) or isinstance(value, bool):
                raise MaskLabError(f"{where}: row {index}: {name}: must be {wanted} (got {value!r})")
    full = [NOT_APPLICABLE | record for record in records]
    columns = [pa.array([record[name] for record in full], SCHEMA.field(name).type) for name in KEY]
    columns.append(pa.array([list(record["metrics"]) for record in full], SCHEMA.field("metrics").type))
    columns += [_numbers([record[name] for record in full]) for name in LISTS]
    table = pa.table(columns, schema=SCHEMA)
    check(table, where)
    return _sorted(table)


def _numbers(lists) -> pa.ListArray:
    lists = [np.asarray(values, np.float32).ravel() for values in lists]
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    flat = np.concatenate(lists) if lists else np.empty(0, np.float32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))


def check(table: pa.Table, where) -> None:
    """Raise MaskLabError, starting with `where`, at the first column or row that breaks the format."""
    check_columns(table, COLUMNS, where)
    for field in SCHEMA:
        kind = table.schema.field(field.name).type
        if not _fits(kind, field.type) and len(table):
            raise MaskLabError(f"{where}: column {field.name!r}: must be {field.type} (got {kind})")
    for name in COLUMNS:
        if table[name].null_count:
            _refuse(table, int(np.flatnonzero(table[name].is_null())[0]), where, f"{name} is empty")
    plain = {name: table[name].to_pylist() for name in (*KEY, "metrics")}
    for name in KEY:
        for index, value in enumerate(plain[name]):
            if value == "":
                _refuse(table, index, where, f"{name} is empty")
            if name == "replicate" and value < 1:
                _refuse(table, index, where, f"replicate must be at least 1 (got {value})")
    lengths = [pc.list_value_length(table[name]).to_numpy() for name in LISTS]
    for index, (targets, predictions) in enumerate(zip(*lengths, strict=True)):
        if targets != predictions or not targets:
            _refuse(table, index, where, f"{targets} targets and {predictions} predictions; one each per item")
    flat = {name: pc.list_flatten(table[name]).to_numpy().astype(np.float32) for name in LISTS}
    left_out = np.logical_and(*map(np.isnan, flat.values())) if len(table) else np.zeros(0, bool)
    ends = np.cumsum(lengths[0])
    for name, values in flat.items():
        bad = ~np.isfinite(values) & ~left_out  # what is missing has become a NaN
        if bad.any():
            index = int(np.searchsorted(ends, np.flatnonzero(bad)[0], side="right"))
            _refuse(table, index, where, f"{name} must be finite numbers")
    for index, (begin, end) in enumerate(itertools.pairwise([0, *ends])):
        if left_out[begin:end].all():
            _refuse(table, index, where, "no item was measured")
    seen = set()
    for index, (*key, metrics) in enumerate(zip(*plain.values(), strict=True)):
        if not metrics or not all(metrics):
            _refuse(table, index, where, f"metrics must be names (got {metrics})")
        for metric in metrics:
            if (*key, metric) in seen:
                _refuse(table, index, where, f"{metric} is explained a second time for the same measurement")
            seen.add((*key, metric))


def read(path) -> pa.Table:
    """A checked file of items; MaskLabError naming the file and the row if it is none."""
    table = read_table(path)
    check(table, Path(path))
    return table.cast(SCHEMA).replace_schema_metadata(None)


def gather(paths) -> pa.Table:
    """All files of items as one checked, sorted table; a bad file raises MaskLabError naming it."""
    tables = [read(path) for path in paths]
    table = pa.concat_tables([SCHEMA.empty_table(), *tables])
    check(table, f"the {len(tables)} files of items together")
    return _sorted(table)


def _fits(kind, wanted) -> bool:
    if pa.types.is_list(wanted):
        return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _fits(kind.value_type, wanted.value_type)
    return kind == wanted or (pa.types.is_string(wanted) and pa.types.is_large_string(kind))


def _refuse(table, index, where, fault):
    row = {name: table[name][index].as_py() for name in (*KEY, "metrics")}
    metrics = ", ".join(map(str, row["metrics"] or []))
    measured = f"{row['recipe']}/r{row['replicate']} step {row['step']}, {row['task']}, {metrics}"
    raise MaskLabError(f"{where}: row {index} ({measured}): {fault}")


def _sorted(table):
    keys = list(zip(*(table[name].to_pylist() for name in (*KEY, "metrics")), strict=True))
    return table.take(pa.array(sorted(range(len(keys)), key=keys.__getitem__), pa.int64()))
