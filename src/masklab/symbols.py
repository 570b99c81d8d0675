"""Sequences of symbols instead of text: the column `symbols` (list<uint16>, 0 is the first symbol) and their header.

The header is JSON in the Parquet schema's metadata: `names` (one word per symbol, its token in the vocabulary) and
whatever says how the sequences were drawn. A symbol's token id is the symbol + `FIRST`.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from masklab.errors import MaskLabError, in_one_line
from masklab.tokenizers import SPECIALS

COLUMN = "symbols"
FIRST = len(SPECIALS)  # token id of symbol 0
LIMIT = 1 << 16
UNKNOWN = LIMIT - 1  # of a task: a token that is no symbol; the model reads <unk>
_KEY = b"masklab"


def column(values, counts) -> pa.ListArray:
    """Arrow list<uint16> of rows end to end: values [sum of counts] and the length of each row, counts [n].

    MaskLabError for a value that no symbol can have; 16 bits would make another of it.
    """
    offsets = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int32)
    values = np.asarray(values)
    if values.dtype != np.uint16:
        strange = values[(values < 0) | (values >= LIMIT)]
        if len(strange):
            raise MaskLabError(f"symbol {strange[0]}: symbols are numbered from 0 to {LIMIT - FIRST - 2}")
        values = values.astype(np.uint16)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values.ravel()))


def rows(symbols) -> tuple[np.ndarray, np.ndarray]:
    """(values [sum], counts [n] int64) of an Arrow column of symbols (chunked or not), without copying its numbers."""
    if isinstance(symbols, pa.ChunkedArray):
        symbols = symbols.combine_chunks() if symbols.num_chunks != 1 else symbols.chunk(0)
    offsets = symbols.offsets.to_numpy().astype(np.int64)
    return symbols.values.to_numpy()[offsets[0] : offsets[-1]], np.diff(offsets)


def with_header(table: pa.Table, names: list[str], **header) -> pa.Table:
    """`table` with a header; MaskLabError if there are more symbols than uint16 can number."""
    if len(names) >= LIMIT - FIRST:
        raise MaskLabError(f"{len(names)} symbols; at most {LIMIT - FIRST - 1} can be numbered")
    return table.replace_schema_metadata({_KEY: json.dumps({"names": names, **header})})


def read_header(path) -> dict | None:
    """Facts of a Parquet file of symbols; None if its rows are not symbols, or nobody says how they were drawn."""
    try:
        schema = pq.read_schema(path)
    except FileNotFoundError:
        raise MaskLabError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError) as error:
        raise MaskLabError(f"{path}: not a Parquet file ({in_one_line(error)})") from None
    header = (schema.metadata or {}).get(_KEY)
    return json.loads(header) if header is not None and COLUMN in schema.names else None
