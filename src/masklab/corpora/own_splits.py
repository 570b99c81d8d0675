"""The tables of a corpus of a user's own, looked at when they are made and not by the jobs that read them.

A module of its own, so that no other job's code is this.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from masklab.config import kinds
from masklab.symbols import COLUMN, rows, with_header

[_HEADER] = with_header(pa.table({}), []).schema.metadata


def checked(kind: str, made: dict) -> dict:
    """What a corpus of that kind is made of; of a user's each table has rows, and symbols what tokenizers read of them.

    Texts that are categories are written out, as tokenizers read them.

    Raises:
        MaskLabError: with the user's file and the split.
    """
    own = kinds.find("corpora", kind)
    for split, table in made.items() if own.file else ():
        if isinstance(table, pa.Table) and not len(table):
            raise own.refused("at least one row in each of its tables", 0, f"rows of {split}")
        if "text" in table.schema.names:
            continue
        said, type_ = "`masklab.symbols.column` and `with_header`", table.schema.field(COLUMN).type
        if not (pa.types.is_list(type_) and type_.value_type == pa.uint16()):
            raise own.refused(f"symbols as {said} make them, lists of uint16", str(type_), f"{split}: symbols")
        if _HEADER not in (table.schema.metadata or {}):
            raise own.refused(f"symbols with their names, by {said}", "none", f"{split}: names")
        if isinstance(table, pa.Table):
            _check_symbols(own, table, split)
    coded = {split: _written_out(table) for split, table in made.items() if own.file and _is_coded(table)}
    return made | coded if coded else made


def _check_symbols(own, table, split) -> None:
    """MaskLabError, naming the row, where a symbol is missing or has no name: it would be read as some other token."""
    column, names = table[COLUMN], len(json.loads(table.schema.metadata[_HEADER])["names"])
    lengths, wanted = pc.list_value_length(column), f"symbols that have a name, 0 to {names - 1}"
    if lengths.null_count or pc.list_flatten(column).null_count:
        bad = next(row for row, symbols in enumerate(column.to_pylist()) if symbols is None or None in symbols)
        raise own.refused(wanted, None, f"{split}: row {bad + 1}")
    values, counts = rows(column)
    if len(strange := np.flatnonzero(values >= names)):
        row = int(np.searchsorted(np.cumsum(counts), strange[0], "right"))
        raise own.refused(wanted, int(values[strange[0]]), f"{split}: row {row + 1}")


def _is_coded(table) -> bool:
    return "text" in table.schema.names and pa.types.is_dictionary(table.schema.field("text").type)


def _written_out(table):
    at = table.schema.get_field_index("text")
    return table.cast(table.schema.set(at, pa.field("text", table.schema.field(at).type.value_type)))
