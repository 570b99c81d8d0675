"""Labelled tasks from json lines, TSV, CSV or Parquet (GLUE's, SuperGLUE's, MSGS's and CoLA's files as they are)."""

import csv
import io

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from masklab.config.data import classes, flat, is_kept, label_of, mixed, not_text, template_parts
from masklab.errors import MaskLabError, in_one_line, listed
from masklab.lines import COMPRESSED, READ_ERRORS, format_of, open_bytes, read_blocks, read_json_lines
from masklab.rng import generator
from masklab.tasks import label_facts
from masklab.tasks.pair_files import as_released

FORMATS = (".jsonl", ".json", ".tsv", ".csv", ".parquet")


def label_files(config, name, seed):
    """Build a labels task; the training labels become 0..n-1, sorted but for `positive`, which is 1."""
    files = {"train": config.train, "valid": config.valid, "test": config.test or config.valid}
    splits, values, places = {}, {}, {}
    for split, file in files.items():
        rows = kept_rows(read_rows(file, config.columns), config.where.get(split), file)
        values[split] = _labels(rows, config.label, file, f"{split} split of tasks.{name}")
        places[split] = rows.index
        texts = {"text_a": fill(rows, config.text_a, file), "text_b": pd.Series(None, rows.index, object)}
        if config.text_b is not None:
            texts["text_b"] = fill(rows, config.text_b, file)
        splits[split] = pd.DataFrame(texts).reset_index(drop=True).astype("string")
    if wrong := mixed(dict(zip(places["train"] + 1, values["train"], strict=True))):
        raise MaskLabError(f"{files['train']}: {wrong}")
    if len({*values["train"]}) < 2:
        raise MaskLabError(
            f"{files['train']}: every row has the label {values['train'][0]!r}; a task needs at least two"
        )
    try:
        names = classes(values["train"], config.positive)
    except MaskLabError as error:
        raise MaskLabError(f"tasks.{name}.positive: {files['train']}: {error}") from None
    numbers = {value: number for number, value in enumerate(names)}
    for split, frame in splits.items():
        for row, value in zip(places[split], values[split], strict=True):
            if value not in numbers:
                raise MaskLabError(
                    f"{files[split]}: row {row + 1}: label {value!r} does not occur in training ({names})"
                )
        frame["label"] = np.array([numbers[value] for value in values[split]], np.int64)
    for split, limit in (("train", config.limit), *((held, config.limit_held_out) for held in ("valid", "test"))):
        splits[split] = _drawn(splits[split], limit, generator(seed, name, "limit", config.seed))
    return splits, label_facts(splits, names, config.text_b is not None, config.metric)


def _drawn(rows: pd.DataFrame, limit: int | None, rng) -> pd.DataFrame:
    """At most `limit` rows, in their order; of two frames of one length the same, by generators of one address."""
    if limit is None or limit >= len(rows):
        return rows
    return rows.iloc[np.sort(rng.permutation(len(rows))[:limit])].reset_index(drop=True)


def babylm_labels(config, name, seed):
    """A labelled task of a BabyLM release; `as_released` in task.json: whether its files have the release's lines."""
    splits, facts = label_files(config, name, seed)
    return splits, facts | {"as_released": as_released(config, [config.train, config.valid], name)}


def kept_rows(rows: pd.DataFrame, where: dict | None, file) -> pd.DataFrame:
    """The rows that have the values that `where` says, under the numbers that they have in the file."""
    if rows.empty:
        raise MaskLabError(f"{file}: no rows")
    rows = rows.reset_index(drop=True)
    for column in where or ():
        one_column(rows, column, file)
    if where:
        columns = [*where]
        records = rows[columns].to_dict("records")
        rows = rows[[is_kept(record, where) for record in records]]
    if rows.empty:
        raise MaskLabError(f"{file}: no row is kept; where: {where}")
    return rows


def read_rows(file, columns=None) -> pd.DataFrame:
    """Rows of a table or json-lines file; fields of nested objects become columns `outer.inner`.

    `columns` names the columns of a TSV or CSV without header line. Text of TSV and CSV stays text, and a whole number
    stays one where other rows have none (pandas' own columns would hold 1.0, which `where: {fold: 1}` does not mean).
    """
    kind = format_of(file)
    if kind in (".jsonl", ".json"):
        return pd.DataFrame([flat(row) for _, row in read_json_lines(file)], dtype=object)
    if kind not in FORMATS:
        raise MaskLabError(
            f"{file}: unknown format; labelled files end in {', '.join(FORMATS)} ({', '.join(COMPRESSED)} on top)"
        )
    with open_bytes(file) if kind == ".parquet" else _text(file) as source:
        try:
            if kind == ".parquet":  # without pandas' own metadata, by which a column of the file may be an index
                return pq.read_table(source).to_pandas(integer_object_nulls=True, ignore_metadata=True)
            # TSV files as GLUE's hold unbalanced quotes that are plain text; a lone CR within a line is text as well.
            style = {"sep": "\t", "quoting": csv.QUOTE_NONE} if kind == ".tsv" else {}
            style |= {"dtype": str, "keep_default_na": False, "lineterminator": "\n"}
            rows = pd.read_csv(source, header=None, **style)
        except (ValueError, *READ_ERRORS) as error:  # pandas' and Arrow's parser errors are ValueErrors
            raise MaskLabError(f"{file}: cannot be read ({in_one_line(error)})") from None
    if columns is None:
        columns, rows = rows.iloc[0].tolist(), rows.iloc[1:].reset_index(drop=True)
    if len(columns) != rows.shape[1]:
        raise MaskLabError(f"{file}: {rows.shape[1]} columns, but `columns` names {len(columns)}: {', '.join(columns)}")
    return rows.set_axis(columns, axis=1)


def _text(file) -> io.StringIO:
    """The text of a file, none of whose lines is endless (`lines.LONGEST`)."""
    return io.StringIO("".join(f"{line}\n" for lines in read_blocks(file) for line in lines))


def fill(rows: pd.DataFrame, template: str, file) -> pd.Series:
    """One text per row: a column's name stands for the column, `{name}` inside a template for its value.

    Spaces at its ends are no part of a text: those of SST-2's training rows would be a token that other rows lack.
    """
    parts = template_parts(template)
    texts = pd.Series([parts[0]] * len(rows), rows.index, dtype=object)
    for column, literal in zip(parts[1::2], parts[2::2], strict=True):
        values = _column(rows, column, file)
        strange = values.map(lambda value: not_text(value.tolist() if isinstance(value, np.ndarray) else value))
        if strange.notna().any():
            row = int(np.flatnonzero(strange.notna())[0])
            raise MaskLabError(f"{file}: row {rows.index[row] + 1}: {column!r} must be text (got {strange.iloc[row]})")
        texts = texts + values.map(str) + literal
    texts = texts.str.strip()
    empty = np.flatnonzero(texts == "")
    if len(empty):
        raise MaskLabError(f"{file}: row {rows.index[empty[0]] + 1}: {template!r} is empty")
    return texts


def one_column(rows: pd.DataFrame, column: str, file) -> pd.Series:
    """A column of a file; MaskLabError naming the file: it has none of that name, or several."""
    if column not in rows.columns:
        raise MaskLabError(f"{file}: no column {column!r}; columns: {listed(rows.columns)}")
    if isinstance(rows[column], pd.DataFrame):
        raise MaskLabError(f"{file}: several columns are called {column!r}; columns: {listed(rows.columns)}")
    return rows[column]


def _column(rows, column, file):
    values = one_column(rows, column, file).astype(object)
    missing = np.flatnonzero(values.isna())
    if len(missing):
        raise MaskLabError(f"{file}: row {rows.index[missing[0]] + 1}: {column!r} is missing")
    return values


def _labels(rows, column, file, split) -> list:
    """Labels as whole numbers or strings; GLUE writes -1 where it withholds them."""
    numbers = [index + 1 for index in rows.index]
    values = [_label(value, file, row) for row, value in zip(numbers, _column(rows, column, file), strict=True)]
    withheld = [row for row, value in zip(numbers, values, strict=True) if value == -1]
    if len(withheld) == len(values):
        raise MaskLabError(f"{file}: {split} has no labels (-1 in every row)")
    if withheld:
        raise MaskLabError(f"{file}: row {withheld[0]}: no label (-1)")
    return values


def _label(value, file, row):
    label = label_of(value.item() if isinstance(value, np.generic) else value)
    if label is None:
        raise MaskLabError(f"{file}: row {row}: label {value!r} is not a class (a word or a whole number)")
    return label
