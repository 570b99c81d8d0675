"""A first look into a user's files, before any job reads them whole: a little of each, and nothing that takes long."""

import csv
import re
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from masklab.errors import MaskLabError, in_one_line, listed
from masklab.lines import ARCHIVES, COMPRESSED, READ_ERRORS, format_of, open_bytes, parsed

HEAD = 1 << 16  # bytes of a file that are looked at
CHUNK = 1 << 20  # bytes read at a time where lines are counted
MOST = 1 << 24  # bytes that a line may have where lines are counted or must be whole
JSON = (".jsonl", ".json")
DIGITS = 1000  # of a label that is a number, at most

csv.field_size_limit(MOST)  # of itself Python's reader takes 131,072 characters


class Head(NamedTuple):
    """The first lines of a file. whole: they are all that it has."""

    lines: list[str]
    whole: bool


class Table(NamedTuple):
    """The first rows of a file: columns -> values. whole: they are all that it has."""

    columns: list[str]
    rows: list[dict]
    whole: bool


def _open(file: str):
    """Like `lines.open_bytes`, which imports much, but lightly for a file that is not compressed."""
    plain = Path(file).is_file() and not {Path(file).suffix.lower(), format_of(file)} & {*COMPRESSED, *ARCHIVES}
    return open(file, "rb") if plain else open_bytes(file)


def _decoded(data: bytes, file: str, before: int = 0) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = before + data.count(b"\n", 0, error.start) + 1
        raise MaskLabError(f"{file}: line {line}: not valid UTF-8; it must be text in this encoding") from None
    if "\0" in text:
        line = before + text.count("\n", 0, text.index("\0")) + 1
        raise MaskLabError(f"{file}: line {line}: holds a zero byte; this is no text file")
    return text.removeprefix("\ufeff") if not before else text


def head(file: str, least: int = 0) -> Head:
    """The first `HEAD` bytes of a file in whole lines, and more where these hold less than `least` that are not blank.

    MaskLabError: it cannot be read, is no UTF-8 text, is empty, or a line of those that must be whole is too long.
    """
    try:
        with _open(file) as source:
            data, size, most = source.read(HEAD + 1), HEAD, least * (MOST + 2)
            while len(data) > size and size < most and _whole(data) < least:
                size = min(4 * size, most)
                data += source.read(size + 1 - len(data))
    except READ_ERRORS as error:
        raise MaskLabError(f"{file}: cannot be read ({in_one_line(error)})") from None
    whole = len(data) <= size
    if size > HEAD:
        for number, line in enumerate(data.split(b"\n"), 1):
            if len(line) > MOST:
                raise MaskLabError(f"{file}: line {number}: longer than {MOST:,} bytes")
    if not whole:
        cut = data.rfind(b"\n")
        data = data[: cut + 1] if cut >= 0 else data[: HEAD - 4]
    if not data.strip():
        raise MaskLabError(f"{file}: is empty" if whole else f"{file}: begins with nothing but blanks")
    text = _decoded(data, file) if whole or data.endswith(b"\n") else data.decode("utf-8", "ignore")
    return Head(text.split("\n") if whole else text.split("\n")[:-1] or [text], whole)


def _whole(data: bytes) -> int:
    """Whole lines of the beginning of a file that are not blank."""
    return sum(bool(line.strip()) for line in data.split(b"\n")[:-1])


def lines(file: str):
    """Lines of a text file, bit by bit. None in place of a line of more than `MOST` bytes and all that follow."""
    number, rest = 0, b""
    try:
        with _open(file) as source:
            while data := source.read(CHUNK):
                whole, newline, rest = (rest + data).rpartition(b"\n")
                if newline:
                    texts = _decoded(whole, file, number).split("\n")
                    number += len(texts)
                    yield from texts
                if len(rest) > MOST:
                    yield None
                    return
            if rest:
                yield _decoded(rest, file, number)
    except READ_ERRORS as error:
        raise MaskLabError(f"{file}: after line {number}: cannot be read ({in_one_line(error)})") from None


def objects(file: str, texts) -> dict[int, dict]:
    """Number of a line -> its JSON object; blank lines are skipped."""
    rows = {}
    for number, line in enumerate(texts, 1):
        if not line.strip():
            continue
        try:
            row = parsed(line)
        except ValueError:
            hint = "; a file of json lines has one object a line" if line.strip() in ("[", "{") else ""
            raise MaskLabError(f"{file}: line {number}: not valid JSON{hint}") from None
        if not isinstance(row, dict):
            raise MaskLabError(f"{file}: line {number}: must be a JSON object")
        rows[number] = row
    return rows


def table(file: str, columns=None) -> Table:
    """The first rows of json lines, TSV, CSV or Parquet. columns: their names, of TSV and CSV without a header line."""
    kind = format_of(file)
    if kind == ".parquet":
        return _parquet(file)
    # a header line and a row; of a CSV one more, which may be cut
    texts, whole = head(file, 1 if kind in JSON else 2 + (kind == ".csv"))
    if kind in JSON:
        rows = [flat(row) for row in objects(file, texts).values()]
        return Table(list(dict.fromkeys(key for row in rows for key in row)), rows, whole)
    # a TSV quotes nothing, and a lone CR within a line of it is text
    cells = [text.rstrip("\r").split("\t") for text in texts] if kind == ".tsv" else csv_cells(file, texts)
    cells = [row for row in cells if len(row) > 1 or "".join(row).strip(" \t")]  # jobs pass over lines of blanks, too
    if not whole and kind == ".csv":
        cells = cells[:-1]  # may be cut in a quoted text of several lines
    names = columns if columns is not None else cells[0] if cells else []
    cells = cells if columns is not None else cells[1:]
    for number, row in enumerate(cells, 1):
        if len(row) != len(names) and columns is not None:
            raise MaskLabError(f"{file}: {len(row)} columns, but `columns` names {len(names)}: {', '.join(columns)}")
        if len(row) > len(names):
            raise MaskLabError(f"{file}: row {number}: {len(row)} cells under {len(names)} columns")
    return Table([*names], [dict(zip(names, row, strict=False)) for row in cells], whole)


def csv_cells(file: str, texts):
    """Cells of each row of a CSV; a lone CR within a line is text to the jobs, but not to Python's reader."""
    try:
        yield from csv.reader(text.rstrip("\r").replace("\r", " ") + "\n" for text in texts)
    except csv.Error as error:
        raise MaskLabError(f"{file}: cannot be read ({in_one_line(error)})") from None


def _parquet(file: str, most: int = 1000) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with _open(file) as opened, pq.ParquetFile(opened) as source:
            names, rows = source.schema_arrow.names, []
            for batch in islice(source.iter_batches(batch_size=most), 1):
                rows = batch.to_pylist()
            if not source.metadata.num_rows:
                raise MaskLabError(f"{file}: is empty: it has no rows")
            return Table(names, rows, source.metadata.num_rows <= most)
    except (*READ_ERRORS, ValueError, pa.ArrowException) as error:
        raise MaskLabError(f"{file}: cannot be read as Parquet ({in_one_line(error)})") from None


def row_count(file: str) -> int:
    """Rows of a Parquet file, by its footer."""
    import pyarrow.parquet as pq

    with _open(file) as opened:
        return pq.read_metadata(opened).num_rows


def flat(row: dict, prefix: str = "") -> dict:
    """An object with the fields of nested ones as `outer.inner`."""
    fields = {}
    for key, value in row.items():
        fields |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return fields


def template_parts(template: str) -> list[str]:
    """Text, column, text, column, ..., text of a template with `{column}`s; of a column's name "", column, "".

    MaskLabError for a brace that holds no column: the rest would be taken for text, the same in every row.
    """
    parts = re.split(r"\{([^{}]+)\}", template) if "{" in template else ["", template, ""]
    if any("{" in text for text in parts[::2]):
        raise MaskLabError(f"{template!r}: a brace that holds no column; write {{<column>}}")
    return parts


def not_text(value) -> str | None:
    """What stands in place of a text, in words; None of texts, and of numbers, which are read as texts."""
    kinds = {list: "a list", dict: "an object", bytes: "bytes"}
    return next((words for kind, words in kinds.items() if isinstance(value, kind)), None)


def label_of(value) -> int | str | None:
    """A label as a whole number or a word, exactly; None: it is neither, as .5 is, in a number or in text."""
    if isinstance(value, str):
        text = value.strip()
        if re.fullmatch(r"[-+]?\d*\.\d*[1-9]\d*", text):
            return None
        if text and not re.fullmatch(r"-?\d+(\.0*)?", text):
            return text
        whole = text.partition(".")[0]
        return int(whole) if 0 < len(whole) <= DIGITS else None
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole else None


def mixed(labels: dict) -> str | None:
    """What is wrong with labels (row -> `label_of`) of which some are numbers and others words; None: nothing."""
    first = next(iter(labels), None)
    other = next((row for row, label in labels.items() if type(label) is not type(labels[first])), None)
    if other is None:
        return None
    return f"row {other}: label {labels[other]!r}; row {first} has {labels[first]!r}: all must be numbers, or all words"


def classes(labels, positive=None) -> list:
    """Labels in the order of their classes: sorted; `positive`, if one is named, is the second of two.

    Raises:
        MaskLabError: it is none of the labels, or there are more than two.
    """
    names = sorted(set(labels))
    if positive is None:
        return names
    if len(names) > 2:
        raise MaskLabError(f"F1 looks for one class of two, and there are {len(names)} labels")
    if (wanted := label_of(positive)) not in names:
        quotes = "; write a word in quotes" if isinstance(positive, bool) else ""
        raise MaskLabError(f"no label {positive!r}; labels: {listed(names)}{quotes}")
    return sorted(names, key=lambda name: name == wanted)


def is_kept(row, where: dict) -> bool:
    """Whether a row has the value, or one of the values, that `where` says of each column.

    As texts, so that what a TSV holds equals what json lines hold.
    """
    return all(
        not _spelt([row.get(key)]).isdisjoint(_spelt(value if isinstance(value, list) else [value]))
        for key, value in where.items()
    )


def _spelt(values: list) -> set[str]:
    """How values are written: 1.0, which a column of Parquet may hold for 1, in both ways."""
    spelt = {str(value).lower() if isinstance(value, bool) else str(value) for value in values}
    return spelt | {str(int(value)) for value in values if isinstance(value, float) and value.is_integer()}


def of_pattern(pattern: str, file: str, error: MaskLabError) -> str:
    """What is wrong with a file, beginning with the pattern that stands for it."""
    which = "" if pattern == file else f" ({file})"
    return f"{pattern!r}{which}: {str(error).removeprefix(f'{file}: ')}"
