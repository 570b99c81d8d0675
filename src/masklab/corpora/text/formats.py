"""Texts of a file of any format in blocks, and where each block ends, so that reading can go on from there."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from masklab.errors import MaskLabError, in_one_line, listed
from masklab.lines import (
    BLOCK,
    COMPRESSED,
    LONGEST,
    READ_ERRORS,
    Place,
    format_of,
    json_object,
    open_bytes,
    read_blocks,
)
from masklab.texts import rows_together


def blocks(file, column: str, place: Place) -> Iterator[list[str]]:
    """Lines of a file from `place` on, which is moved on before each block; a JSON or Parquet text may be several."""
    kind = format_of(file)
    if kind == ".parquet":
        yield from _parquet(file, column, place)
    elif kind in (".jsonl", ".json"):
        first = place.line
        for lines in read_blocks(file, place):
            yield [text for number, line in enumerate(lines, first + 1) for text in _json(file, number, line, column)]
            first = place.line
    else:
        yield from read_blocks(file, place)


def _json(file, number, line, column) -> list[str]:
    if not line.strip():
        return []
    row = json_object(file, number, line)
    if column not in row:
        raise MaskLabError(f"{file}: line {number}: no field {column!r}; fields: {listed(row)}")
    return _texts(file, f"line {number}", row[column], column)


def _texts(file, where, text, column) -> list[str]:
    if not isinstance(text, str):
        raise MaskLabError(f"{file}: {where}: {column!r} must be a string")
    if len(text) > LONGEST:
        raise MaskLabError(f"{file}: {where}: longer than {LONGEST:,} characters")
    return text.split("\n")


def _parquet(file, column, place):
    """As `blocks`; `place.position` counts batches, `place.line` rows."""
    try:
        size, packed = os.path.getsize(file), Path(file).suffix.lower() in COMPRESSED
        with (
            open_bytes(file) if packed else nullcontext(file) as opened,
            pq.ParquetFile(opened, pre_buffer=False, buffer_size=1 << 20) as source,
        ):
            names = source.schema_arrow.names
            if column not in names:
                raise MaskLabError(f"{file}: no column {column!r}; columns: {listed(names)}")
            done = place.position
            for number, batch in enumerate(_batches(source, column)):
                if number < done:
                    continue
                texts, before = batch.column(0).to_pylist(), place.line
                place.position, place.line = number + 1, before + len(texts)
                place.read = size * place.line // source.metadata.num_rows
                rows = enumerate(texts, before + 1)
                yield [line for row, text in rows for line in _texts(file, f"row {row}", text, column)]
    except (*READ_ERRORS, ValueError, pa.ArrowException) as error:
        raise MaskLabError(f"{file}: cannot be read as Parquet ({in_one_line(error)})") from None


def _batches(source, column):
    """Record batches of about `BLOCK` bytes, none over the bounds of a row group."""
    for group in range(source.num_row_groups):
        rows = rows_together(source, group, column, BLOCK)
        yield from source.iter_batches(rows, row_groups=[group], columns=[column])
