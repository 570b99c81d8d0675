"""A pseudo-language from Markov chains over synsets (Chiang & Yogatama 2023, section 4.1 and appendices A.1, B).

`chains` draws the chains, `features` spells synsets, `law` knows the exact law. Walks are drawn at an address
without the corpus's name: corpora that differ in `distributional` or in the features alone hold the same synsets.
"""

import numpy as np

from masklab.rng import generator

CHUNK = 4096  # sequences per chain drawn together


def generate(config, name: str, seed: int, law_seed: int | None = None) -> dict:
    """Tables of a `MarkovCorpus`: columns `symbols` (see `masklab.symbols`) and `chain` (0 is the first).

    Exactly as many sequences of every chain (released code; the paper draws the chain of each), one after the other
    by turns. The header holds the resolved config and the seed of the chains (`law_seed`, or `seed`), from which
    `law.of_header` makes the law, and the entropy of a sequence.
    """
    import pyarrow as pa

    from masklab import symbols
    from masklab.corpora.markov.chains import draw_chains
    from masklab.corpora.markov.entropy import sequence_entropy
    from masklab.corpora.markov.features import draw_features

    law_seed = seed if law_seed is None else law_seed
    chains, features = draw_chains(config.chains, law_seed), draw_features(config.chains, law_seed)
    entropy = sequence_entropy(chains, config.length, config.distributional)
    header = {
        "kind": "markov",
        "seed": law_seed,
        "config": config.model_dump(mode="json"),
        "entropy": entropy,
        "entropy_per_symbol": entropy / (config.length * float(features.lengths.mean())),
    }
    tables = {}
    for split, count in (("train", config.sequences), ("valid", config.valid), ("test", config.test)):
        columns, which = [], []
        for synsets, forms in _blocks(config, chains, count, split, seed):
            columns.append(symbols.column(*features.spell(synsets, forms)))
            which.append(pa.array(np.arange(len(synsets)) % len(chains), pa.uint8()))
        table = pa.table({symbols.COLUMN: pa.chunked_array(columns), "chain": pa.chunked_array(which)})
        tables[split] = symbols.with_header(table, features.names, **header)
    return tables


def _blocks(config, chains, count, split, seed):
    """Yield (synsets [B, L], forms [B, L]), the chains by turns."""
    from masklab.corpora.markov.chains import walk

    address = ("markov", config.chains.seed, config.seed, split)
    walkers = [generator(seed, *address, "walks", k) for k in range(len(chains))]
    coins = generator(seed, *address, "forms")
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        parts = [walk(chain, size, config.length, rng) for chain, rng in zip(chains, walkers, strict=True)]
        synsets = np.stack(parts, axis=1).reshape(-1, config.length)
        own = (np.arange(len(synsets)) % len(chains) % 2).astype(np.uint8)[:, None]
        # the same coins whatever the share: what one share mixes, a larger one mixes too
        yield synsets, own ^ (coins.random(synsets.shape) < config.distributional / 2)
