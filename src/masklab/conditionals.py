"""Exact conditionals Pr(x_t | x_-t) of sequences of a corpus, computed once and read by memory map.

Every model and checkpoint of a study is measured against the same ones: they depend on the corpus and its tokens, on
how many sequences are asked and at which positions, and on nothing else. A folder holds N pairs of a sequence and
one of its tokens, the sequences sorted by length: `rows.npy` [N] the sequence's number in the test split,
`columns.npy` [N] the token's place in it ([CLS] is 0), `probabilities.npy` [N, V] float32 over the V symbols, and
`entropies.npy` [N] float64, in nats, of these very numbers; `conditionals.json`, written last, holds their hashes.
"""

import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from masklab.corpora.laws import law_of, shared
from masklab.errors import MaskLabError
from masklab.files import atomic, fingerprint, read_json, sha256, write_json
from masklab.jobs import saved
from masklab.rng import generator
from masklab.symbols import FIRST
from masklab.tokens import TokenStore

CHUNK = 1 << 23  # probabilities computed together, in numbers
LONG = 1.0  # seconds that a part takes which a killed job must not compute again
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
    tokens, folder, sequences: int, positions: str, seed: int, state_folder, progress=None, threads: int = 1
) -> None:
    """Write the conditionals of up to `sequences` test sequences of a corpus with a law; see the module.

    tokens: folder of its token arrays. state_folder: where what is done is kept, so that a killed job goes on from
    there, until the caller removes it. Memory is that of `CHUNK` probabilities; `progress(done, total)` counts pairs.
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
    begins = np.append(np.flatnonzero(np.diff(rows, prepend=-1)), len(rows))  # of each sequence's pairs, and the end
    lengths, asked = store.lengths[rows[begins[:-1]]].astype(np.int64), np.diff(begins)
    # Without a word of the law: so little that the memory alone cuts them, and in proportion to what is asked.
    work = law.work(lengths - 2, asked) if hasattr(law, "work") else 1e-12 * asked
    shares = np.append(0.0, np.cumsum(work))
    shares /= shares[-1] or 1.0
    entropies, among, state = np.empty(len(rows)), shared(law, threads), Path(state_folder)
    made_of = {"tokens": fingerprint(meta), "sequences": sequences, "positions": positions, "seed": seed}

    def computed(first, last, pairs):
        ids, counts = (t.numpy() for t in store.batch(rows[begins[first:last]]))
        symbols = np.maximum(ids[:, 1:-1] - FIRST, 0)  # padding and [SEP] read as symbol 0
        at = np.repeat(np.arange(last - first), asked[first:last])
        if hasattr(law, "conditionals_at"):  # those of all words would cost many times that of one
            return law.conditionals_at(symbols, counts - 2, at, columns[pairs] - 1, **among)
        return law.conditionals(symbols, counts - 2, **among)[at, columns[pairs] - 1]

    # Written, not mapped: on a disk that fills a memory map ends the process by a signal, without a word.
    with atomic(folder / "probabilities.npy") as temporary, open(temporary, "wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (len(rows), law.symbols)}
        np.lib.format.write_array_header_1_0(file, header)
        for first, last in pairwise(_bounds(lengths, work, law.symbols)):
            pairs = slice(int(begins[first]), int(begins[last]))
            kept = state / f"{first}-{last}.safetensors"
            probabilities, was_kept = _kept(kept, made_of, partial(computed, first, last, pairs))
            file.write(probabilities)
            entropies[pairs] = entropy(normalised(probabilities))
            if progress:
                progress.start += was_kept * len(rows) * (shares[last] - shares[first])
                progress(len(rows) * shares[last], len(rows))
    for name, values in (("rows", rows), ("columns", columns), ("entropies", entropies)):
        with atomic(folder / f"{name}.npy") as temporary, open(temporary, "wb") as file:
            np.save(file, values)
    write_json({"sha256": {part: sha256(folder / f"{part}.npy") for part in PARTS}}, folder / "conditionals.json")


def _kept(path, made_of, compute):
    """Probabilities, and whether they had been kept at `path`; else computed, and kept there if that takes long."""
    if found := saved.load(path, made_of):
        return found.tensors["probabilities"].numpy(), True
    began = time.monotonic()
    probabilities = np.ascontiguousarray(compute(), np.float32)
    if time.monotonic() - began >= LONG:
        import torch

        saved.attempt(path, {"probabilities": torch.from_numpy(probabilities)}, made_of, before=False)
    return probabilities, False


def _bounds(lengths, work, symbols: int) -> list[int]:
    """Numbers 0 = c0 < c1 < ... = n that cut sequences, sorted by length, into parts that are computed together.

    work: of each, in parts; a part holds no more of it than one, and no more than `CHUNK` probabilities.
    """
    bounds = [0]
    while (first := bounds[-1]) < len(lengths):
        window = slice(first, first + max(1, CHUNK // (int(lengths[first]) * symbols)))
        count = np.arange(1, len(lengths[window]) + 1)
        fits = (count * lengths[window] * symbols <= CHUNK) & (np.cumsum(work[window]) <= 1)
        bounds.append(first + max(1, int(fits.sum())))  # none fits after one that does not
    return bounds
