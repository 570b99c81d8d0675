"""Corpora: sequences to pre-train on. A kind is a module with `generate`, registered in `masklab.config.kinds`."""

from masklab.config import kinds

SPLITS = ("train", "valid", "test")


def generate(config, name: str, seed: int, **work) -> dict:
    """Tables `train`, `valid` and `test` of corpus `name`: pyarrow, column `text`, for files also `source`.

    Symbolic corpora have the column `symbols` instead (`masklab.symbols`). `work`: what only some kinds take: the
    folder of a causal model; the `law_seed` that a shared law is drawn under where `seed` is that of one replicate; the
    folder of its state, with which text is not a table, but a reader of record batches, since it may not fit in memory.
    """
    kind = kinds.find("corpora", config.kind)
    made = kind.function()(config, name, seed, **work)
    if kind.file:
        _check(kind, made)
    return made


def _check(kind, made) -> None:
    """MaskLabError where a user's function does not return the three tables."""
    import pyarrow as pa

    wanted = f"a dictionary of {', '.join(SPLITS)}: Arrow tables with a column text, or symbols"
    if not isinstance(made, dict):
        raise kind.refused(wanted, made)
    if {*made} != {*SPLITS}:
        raise kind.refused(wanted, [*made], "its keys")
    for split, table in made.items():
        if not isinstance(table, pa.Table | pa.RecordBatchReader):
            raise kind.refused(wanted, table, split)
        if not {"text", "symbols"} & {*table.schema.names}:
            raise kind.refused(wanted, table.schema.names, f"columns of {split}")
        if isinstance(table, pa.Table):
            for name in {"text"} & {*table.column_names}:
                check_texts(kind, table[name], name, split)


def check_texts(kind, column, name: str, split: str) -> None:
    """MaskLabError, naming the row, where a column [n] of a user's table has something else than texts."""
    import numpy as np
    import pyarrow as pa

    type_ = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise kind.refused(f"a text in every row of {name}", None, f"{split}: row {row + 1}")
    if len(column) and not (pa.types.is_string(type_) or pa.types.is_large_string(type_)):
        raise kind.refused(f"texts in the column {name}", column[0].as_py(), f"{split}: row 1")
