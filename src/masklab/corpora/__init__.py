"""Corpora: sequences to pre-train on. A kind is a module with `generate`, registered in `masklab.config.kinds`."""

from masklab.config import kinds


def generate(config, name: str, seed: int, **work) -> dict:
    """Tables `train`, `valid` and `test` of corpus `name`: pyarrow, column `text`, for files also `source`.

    Symbolic corpora have the column `symbols` instead (`corpora.symbols`). `work`: what only some kinds take: the
    folder of a causal model; the `law_seed` that a shared law is drawn under where `seed` is that of one replicate; the
    folder of its state, with which text is not a table, but a reader of record batches, since it may not fit in memory.
    """
    return kinds.find("corpora", config.kind).function()(config, name, seed, **work)
