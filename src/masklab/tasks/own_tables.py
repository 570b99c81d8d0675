"""The tables of a task of a user's own, checked when they are made and not by the probes that read them."""

import math

import pyarrow as pa

from masklab.config.kinds import Kind
from masklab.corpora import check_texts

SPLITS = {"pairs": ("test",)} | dict.fromkeys(("labels", "ratings", "spans"), ("train", "valid", "test"))
TEXTS = {"spans": ("question", "context"), "pairs": ("phenomenon", "paradigm", "good", "bad")}
LISTS = {"spans": ("answers", "starts")}
NUMBERS, TEXT = "whole numbers", "texts"  # what lists can hold
METRICS = {"labels": ("accuracy", "mcc", "f1"), "ratings": ("pearson", "spearman"), "spans": ("exact", "f1")}


def checked(kind: Kind, splits: dict, facts: dict) -> dict:
    """Splits as Arrow tables, with a column text_b of nulls where single sentences have none.

    Raises:
        MaskLabError: naming split, column and row: what a task that holds what `facts` say must have. Of a task that
            holds something of the user's own nothing is known.
    """
    held = facts["kind"]
    if held not in SPLITS:
        return splits
    if not {*SPLITS[held]} <= {*splits}:
        raise kind.refused(f"for {held} the splits {', '.join(SPLITS[held])}", [*splits], "splits")
    metric = facts.get("metric", "accuracy" if held == "labels" else None)
    if held in METRICS and metric not in METRICS[held]:
        raise kind.refused(f"for {held} the fact `metric`, one of {', '.join(METRICS[held])}", metric, "metric")
    numbers = {"labels": ("labels",), "ratings": ("low", "high")}.get(held, ())
    for name in numbers:
        types, said = (int, "a whole number") if held == "labels" else (int | float, "a number")
        value = facts.get(name)
        if not isinstance(value, types) or isinstance(value, bool) or not math.isfinite(value):
            raise kind.refused(f"for {held} the fact `{name}`, {said}", value, name)
    if held == "ratings" and not facts["low"] < facts["high"]:  # by whose distance ratings are divided
        raise kind.refused("for ratings a `low` below `high`", [facts["low"], facts["high"]])
    found = {}
    for split, table in splits.items():
        table = table if isinstance(table, pa.Table) else _arrow(kind, table, split)
        if not len(table):  # nothing can be learned from it, chosen by it, or measured on it
            raise kind.refused(f"for {held} a row or more in every split", 0, f"{split}: rows")
        texts = TEXTS.get(held, () if "symbols" in table.column_names else ("text_a",))
        for name in (*texts, *LISTS.get(held, ()), *(["label"] if numbers else [])):
            if name not in table.column_names:
                raise kind.refused(f"for {held} a column {name}", table.column_names, f"{split}: columns")
        for name in texts:
            check_texts(kind, table[name], name, split)
        if held == "spans":
            _check_lists(kind, table["answers"], TEXT, "answers", split)
            _check_lists(kind, table["starts"], NUMBERS, "starts", split)
            _check_starts(kind, table, split)
        elif held != "pairs" and "symbols" in table.column_names:
            _check_lists(kind, table["symbols"], NUMBERS, "symbols", split)
        if numbers:
            _check_labels(kind, table["label"], facts, split)
        if "text_a" in texts and "text_b" not in table.column_names:
            table = table.append_column("text_b", pa.nulls(len(table), pa.string()))
        found[split] = table
    return found


def _arrow(kind, frame, split) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise kind.refused("columns of one type each", error.args[0], split) from None


def _check_lists(kind, column, of: str, name: str, split) -> None:
    """MaskLabError, naming the row, where a column has something else than lists `of` one kind of thing."""
    fits = {NUMBERS: pa.types.is_integer, TEXT: lambda own: pa.types.is_string(own) or pa.types.is_large_string(own)}
    is_list = hasattr(column.type, "value_type") and not pa.types.is_dictionary(column.type)
    is_right = is_list and fits[of](column.type.value_type)
    for row, value in enumerate(column.to_pylist(), 1):
        if value is None or not is_list or None in value or not (is_right or (value == [] and name != "symbols")):
            raise kind.refused(f"lists of {of} in the column {name}", value, f"{split}: row {row}")


def _check_starts(kind, table, split) -> None:
    """MaskLabError, naming the row, where there are more answers than starts, or fewer."""
    for row, (answers, starts) in enumerate(zip(*(table[name].to_pylist() for name in LISTS["spans"]), strict=True), 1):
        if len(answers) != len(starts):
            raise kind.refused("a start for each answer", [answers, starts], f"{split}: row {row}")


def _check_labels(kind, column, facts, split) -> None:
    """MaskLabError, naming the row, where a label is none of those that the facts name, or a rating out of range."""
    if facts["kind"] == "labels":
        low, high, wanted = 0, facts["labels"] - 1, f"labels that are whole numbers of 0 to {facts['labels'] - 1}"
    else:
        low, high = facts["low"], facts["high"]
        wanted = f"labels that are numbers of {low} to {high}"
    whole = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    fits = whole or (facts["kind"] == "ratings" and pa.types.is_floating(column.type))
    values = column.to_pylist()
    for row, value in enumerate(values, 1):
        if value is None or not fits or not low <= value <= high:
            raise kind.refused(wanted, value, f"{split}: row {row}")
