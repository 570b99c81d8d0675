"""The text column of a corpus, read from its file a piece at a time."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from masklab.errors import MaskLabError, listed

PIECE = 1 << 23  # bytes of text in a piece, more only where one text is longer
ROWS = 65536  # texts in a piece
COLUMN = "text"
FIRST = 16  # texts of a row group whose size is looked at


class TextFile:
    """Column `text` of a Parquet file, of which memory never holds more than some pieces.

    MaskLabError if there is no such column or file.
    """

    def __init__(self, path):
        self.path = Path(path)
        try:
            self.file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=1 << 20)
        except FileNotFoundError:
            raise MaskLabError(f"{path}: no such file") from None
        except (pa.ArrowException, OSError) as error:
            raise MaskLabError(f"{path}: not a Parquet file ({str(error).splitlines()[0]})") from None
        if COLUMN not in self.file.schema_arrow.names:
            raise MaskLabError(f"{path}: no column {COLUMN!r}; columns: {listed(self.file.schema_arrow.names)}")

    def __len__(self):
        return self.file.metadata.num_rows

    def __iter__(self) -> Iterator[str]:
        for piece in self.pieces():
            yield from piece.to_pylist()

    def pieces(self, start: int = 0) -> Iterator[pa.Array]:
        """The texts from number `start` on, as Arrow arrays."""
        for group in range(self.file.num_row_groups):
            facts = self.file.metadata.row_group(group)
            if start >= facts.num_rows:
                start -= facts.num_rows
                continue
            size = rows_together(self.file, group, COLUMN, PIECE)
            for batch in self.file.iter_batches(size, row_groups=[group], columns=[COLUMN]):
                if start < len(batch):
                    yield from cut(batch.column(0).slice(start))
                start = max(0, start - len(batch))

    def take(self, rows: np.ndarray) -> list[str]:
        """The texts of ascending numbers `rows`."""
        found, passed = [], 0
        for piece in self.pieces():
            low, high = np.searchsorted(rows, [passed, passed + len(piece)])
            found += piece.take(pa.array(rows[low:high] - passed)).to_pylist()
            passed += len(piece)
        return found


def rows_together(file: pq.ParquetFile, group: int, column: str, size: int) -> int:
    """Rows of a row group whose texts take about `size` bytes, `ROWS` at most.

    What the file says of its size counts a text that stands in many rows once, so that the first rows are asked, too.
    """
    facts = file.metadata.row_group(group)
    first = next(file.iter_batches(FIRST, row_groups=[group], columns=[column]), ())
    seen = first.nbytes // len(first) if len(first) else 0
    return max(1, min(ROWS, size // max(1, seen, facts.total_byte_size // max(1, facts.num_rows))))


def pieces(texts: Iterable, start: int = 0) -> Iterator[pa.Array]:
    """Texts from number `start` on, as Arrow arrays of bounded size: of a `TextFile`, an Arrow column or strings."""
    if isinstance(texts, TextFile):
        yield from texts.pieces(start)
    elif isinstance(texts, pa.Array | pa.ChunkedArray):
        for chunk in texts.slice(start).chunks if isinstance(texts, pa.ChunkedArray) else [texts.slice(start)]:
            yield from cut(chunk)
    else:
        some, size = [], 0
        for text in islice(iter(texts), start, None):
            some.append(str(text))
            size += len(some[-1])
            if size >= PIECE or len(some) == ROWS:
                yield from cut(pa.array(some, pa.string()))
                some, size = [], 0
        yield from cut(pa.array(some, pa.string()))


def cut(texts: pa.Array) -> Iterator[pa.Array]:
    """An Arrow array of strings in pieces of at most `PIECE` bytes and `ROWS` texts (one text at least)."""
    ends = np.cumsum(pc.binary_length(texts).fill_null(0).to_numpy(), dtype=np.int64)
    start = before = 0
    while start < len(texts):
        stop = min(start + ROWS, max(start + 1, int(np.searchsorted(ends, before + PIECE, "right"))))
        yield texts.slice(start, stop - start)
        start, before = stop, int(ends[stop - 1])
