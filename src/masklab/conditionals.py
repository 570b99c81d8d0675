"""Exact conditionals Pr(x_t | x_-t) of sequences of a corpus, computed once and read by memory map.

Every model and checkpoint of a study is measured against the same ones: they depend on the corpus and its tokens, on
how many sequences are asked and at which positions, and on nothing else. A folder holds N pairs of a sequence and
one of its tokens, the sequences sorted by length: `rows.npy` [N] the sequence's number in the test split,
`columns.npy` [N] the token's place in it ([CLS] is 0), `probabilities.npy` [N, V] float32 over the V symbols, and
`entropies.npy` [N] float64, in nats, of these very numbers; `conditionals.json`, written last, holds their hashes.
"""

from pathlib import Path

import numpy as np

from masklab.corpora.laws import law_of, shared
from masklab.errors import MaskLabError
from masklab.files import atomic, read_json, sha256, write_json
from masklab.rng import generator
from masklab.symbols import FIRST
from masklab.tokens import TokenStore

CHUNK = 1 << 23  # probabilities computed together, in numbers
SPLIT = "test"
PARTS = ("rows", "columns", "entropies", "probabilities")


class Conditionals:
    """The folder written by `write_conditionals`: `rows`, `columns`, `entropies` and `probabilities`, memory maps."""

    def __init__(self, folder):
        for part in PARTS:
            path = Path(folder) / f"{part}.npy"
            if not path.is_file():
                raise MaskLabError(f"{path}: no such file")
            setattr(self, part, np.load(path, mmap_mode="r"))
        self.symbols = self.probabilities.shape[1]

    def __len__(self):
        return len(self.rows)

    def distributions(self, pairs) -> np.ndarray:
        """Probabilities of `pairs` (a slice or numbers), [n, V] float64; they sum to 1 up to its rounding."""
        return normalised(self.probabilities[pairs])


def normalised(stored) -> np.ndarray:
    """float32 rows [n, V] as float64 that sum to 1."""
    rows = np.asarray(stored, np.float64)
    return rows / rows.sum(-1, keepdims=True)


def entropy(distributions) -> np.ndarray:
    """-sum p log p over the last axis, in nats."""
    logs = np.log(distributions, out=np.zeros_like(distributions), where=distributions > 0)
    return -np.einsum("...v,...v->...", distributions, logs)


def known_law(tokens):
    """The law of the corpus whose tokens lie in the folder `tokens`; MaskLabError if it gives no conditionals."""
    meta = read_json(Path(tokens) / "meta.json")
    law = law_of(meta.get("corpus"))
    if not hasattr(law, "conditionals"):
        raise MaskLabError(f"{tokens}: the exact conditionals of this corpus are not known")
    return law


def chosen(store: TokenStore, sequences: int, positions: str, rng) -> tuple[np.ndarray, np.ndarray]:
    """(rows, columns) [N] of up to `sequences` sequences from all over the split, sorted by length.

    positions: `all` their tokens, or `one` of each, drawn uniformly.
    """
    eligible = np.flatnonzero(store.lengths > 2)
    rows = eligible[np.linspace(0, len(eligible) - 1, min(len(eligible), sequences)).astype(int)]
    counts = store.lengths[rows] - 2
    draws = rng.random(len(rows))
    order = np.argsort(counts, kind="stable")
    rows, counts, draws = rows[order], counts[order], draws[order]
    if positions == "one":
        return rows, 1 + np.floor(draws * counts).astype(np.int64)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(rows, counts), 1 + np.arange(counts.sum()) - starts


def write_conditionals(
    tokens, folder, sequences: int, positions: str, seed: int, progress=None, threads: int = 1
) -> None:
    """Write the conditionals of up to `sequences` test sequences of a corpus with a law; see the module.

    tokens: folder of its token arrays. Memory is that of `CHUNK` probabilities; `progress(done, total)` counts pairs.
    threads: how many may share the sums, which do not depend on it.

    Raises:
        MaskLabError: the law is not known, or sequences were cut to the tokenizer's max_length.
    """
    tokens, folder = Path(tokens), Path(folder)
    law, store = known_law(tokens), TokenStore(tokens, SPLIT)
    meta = read_json(tokens / "meta.json")
    if cut := meta["splits"][SPLIT]["truncated"]:
        raise MaskLabError(
            f"{tokens}: {cut} test sequences are cut to max_length {meta['max_length']}: exact conditionals are"
            " those of whole sequences; raise the tokenizer's max_length"
        )
    rows, columns = chosen(store, sequences, positions, generator(seed, "conditionals", positions))
    begins = np.flatnonzero(np.diff(rows, prepend=-1))  # of each sequence's pairs
    ends = np.append(begins[1:], len(rows))
    longest = int(store.lengths[rows].max(initial=2))
    step = max(1, CHUNK // (longest * law.symbols))
    entropies, among = np.empty(len(rows)), shared(law, threads)
    with atomic(folder / "probabilities.npy") as temporary:
        shape = (len(rows), law.symbols)
        out = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float32, shape=shape)
        for start in range(0, len(begins), step):
            part = slice(begins[start], ends[min(start + step, len(begins)) - 1])
            ids, lengths = (t.numpy() for t in store.batch(rows[begins[start : start + step]]))
            symbols = np.maximum(ids[:, 1:-1] - FIRST, 0)  # padding and [SEP] read as symbol 0
            at = np.repeat(np.arange(len(ids)), (ends - begins)[start : start + step])
            if hasattr(law, "conditionals_at"):  # those of all words would cost many times that of one
                out[part] = law.conditionals_at(symbols, lengths - 2, at, columns[part] - 1, **among)
            else:
                out[part] = law.conditionals(symbols, lengths - 2, **among)[at, columns[part] - 1]
            entropies[part] = entropy(normalised(out[part]))
            if progress:
                progress(part.stop, len(rows))
        out.flush()
        del out
    for name, values in (("rows", rows), ("columns", columns), ("entropies", entropies)):
        with atomic(folder / f"{name}.npy") as temporary, open(temporary, "wb") as file:
            np.save(file, values)
    write_json({"sha256": {part: sha256(folder / f"{part}.npy") for part in PARTS}}, folder / "conditionals.json")
