"""A pseudo-language from a hidden Markov model with block-diagonal matrices (Liu et al. 2023, section 2.2, A.1).

`model` draws the matrices and samples sentences, `law` knows the exact law. Sentences are drawn at an address without
the corpus's name.
"""

from masklab.rng import generator

CHUNK = 65536  # sentences drawn together
MEASURED = 4096  # test sentences that the entropy in the header is measured on


def generate(config, name: str, seed: int, law_seed: int | None = None) -> dict:
    """Tables of an `HmmCorpus`: the column `symbols` (see `masklab.symbols`).

    The header holds the resolved config and the seed of the matrices (`law_seed`, or `seed`), from which
    `law.of_header` makes the law, and `mlm_entropy`: the mean entropy of a word given all others, in nats, on the
    first test sentences, and its standard error.
    """
    import pyarrow as pa

    from masklab import symbols
    from masklab.corpora.hmm.law import Law
    from masklab.corpora.hmm.model import draw_model

    law_seed = seed if law_seed is None else law_seed
    model = draw_model(config.hmm, law_seed)
    columns = {
        split: [
            symbols.column(words, [config.length] * len(words)) for words in _blocks(config, model, count, split, seed)
        ]
        for split, count in (("train", config.sequences), ("valid", config.valid), ("test", config.test))
    }
    measured = symbols.rows(columns["test"][0])[0].reshape(-1, config.length)[:MEASURED]
    header = {"kind": "hmm", "seed": law_seed, "config": config.model_dump(mode="json")}
    header["mlm_entropy"], header["mlm_entropy_se"] = Law(model).mlm_entropy(measured)
    names = [f"w{symbol}" for symbol in range(config.hmm.symbols)]
    return {
        split: symbols.with_header(pa.table({symbols.COLUMN: pa.chunked_array(parts)}), names, **header)
        for split, parts in columns.items()
    }


def _blocks(config, model, count, split, seed):
    """Yield words [B, L]."""
    rng = generator(seed, "hmm", config.hmm.seed, "corpus", config.seed, split)
    for start in range(0, count, CHUNK):
        yield model.sample(min(CHUNK, count - start), config.length, rng)[0]
