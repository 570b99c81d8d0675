"""Corpora: sequences to pre-train on. A new kind is one module with `generate` and one entry here."""

from importlib import import_module

GENERATORS = {
    "text": "masklab.corpora.text",
    "english": "masklab.corpora.english",
    "markov": "masklab.corpora.markov",
    "hmm": "masklab.corpora.hmm",
    "pcfg": "masklab.corpora.pcfg",
    "causal": "masklab.corpora.causal",
}


def generate(config, name: str, seed: int, **work) -> dict:
    """Tables `train`, `valid` and `test` of corpus `name`: pyarrow, column `text`, for files also `source`.

    Symbolic corpora have the column `symbols` instead (`corpora.symbols`). `work`: what only some kinds take, such as
    the folder of a causal model.
    """
    return import_module(GENERATORS[config.kind]).generate(config, name, seed, **work)
