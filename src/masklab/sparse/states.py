"""Hidden states of a corpus: samples for dictionary learning, and the codes of every token."""

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from masklab import rng
from masklab.errors import MaskLabError
from masklab.jobs import saved
from masklab.sparse.codes import write_codes
from masklab.sparse.lasso import lasso, prepare, unit_rows
from masklab.sparse.targets import Codes

BATCH_TOKENS = {"cpu": 4096, "cuda": 16384}  # of a pass; larger ones leave the caches of a CPU
CHUNK_TOKENS = 65536


@torch.no_grad()
def hidden_states(model, store, rows, layer: int, device="cpu", only=None) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Hidden states of `layer` at all tokens but [CLS] and [SEP] of the sequences `rows`, unmasked.

    Yields (positions [n] in `store.ids`, unit vectors [n, d] float32 on `device`), shortest sequences first, in
    batches of at most `BATCH_TOKENS` tokens (at least one sequence). `model` is a MaskedLM on `device`, put in eval
    mode; `store` a TokenStore. only: tokens that are asked for, [tokens] bool; batches without any are left out, and
    the others stay as they are, since the rounding of a state depends on the batch that it is in.
    """
    batch_tokens = BATCH_TOKENS[torch.device(device).type]
    model.eval()
    rows = np.asarray(rows)
    rows = rows[np.argsort(store.lengths[rows], kind="stable")]
    rows = rows[store.lengths[rows] > 2]
    start = 0
    while start < len(rows):
        widths = store.lengths[rows[start : start + batch_tokens]]
        fits = int(np.searchsorted(widths * np.arange(1, len(widths) + 1), batch_tokens, "right"))
        batch = rows[start : start + max(1, fits)]
        ids, lengths = store.batch(batch)
        columns = torch.arange(ids.shape[1])
        at = ((columns > 0) & (columns < lengths[:, None] - 1)).flatten().nonzero()[:, 0]
        positions = store.flat(batch, (at // ids.shape[1]).numpy(), (at % ids.shape[1]).numpy())
        start += len(batch)
        if only is not None and not only[positions].any():
            continue
        states = model.encode(ids.to(device), lengths.to(device), layer=layer, at=at.to(device))
        yield positions, unit_rows(states.float())


def sample_states(
    model, store, layer: int, tokens: int, draw: str = "random", seed: int = 1, device="cpu", progress=None
) -> Tensor:
    """Unit hidden states of `tokens` tokens (all, if the corpus has fewer): [n, d] float32 on the CPU.

    draw: `random`: whole sequences in random order until there are enough tokens (the stream is addressed by
    `seed`); `first`: the first tokens of the corpus, as the released code. progress: is told (tokens done, all).
    """
    if draw not in ("random", "first"):
        raise MaskLabError(f"draw {draw!r}: allowed are random, first")
    rows = np.arange(len(store))
    if draw == "random":
        rows = rng.generator(seed, "dictionary", "sample").permutation(rows)
    ends = np.cumsum(store.lengths[rows] - 2)
    rows = rows[: int(np.searchsorted(ends, tokens)) + 1]
    n = min(tokens, int(ends[-1]) if len(ends) else 0)
    # where the first token of each sequence goes; tokens keep the order of the drawn sequences
    begin = np.zeros(len(store), np.int64)
    begin[rows] = ends[: len(rows)] - (store.lengths[rows] - 2)
    result, done = None, 0
    for positions, states in hidden_states(model, store, rows, layer, device):
        row = np.searchsorted(store.offsets, positions, "right") - 1
        slots = torch.from_numpy(begin[row] + positions - store.offsets[row])
        if result is None:
            result = torch.empty(n, states.shape[1])
        kept = slots < n
        result[slots[kept]] = states.cpu()[kept]
        done += int(kept.sum())
        if progress:
            progress(done, n)
    if result is None:
        raise MaskLabError("sample: the corpus has no tokens")
    return result


def code_corpus(
    model,
    store,
    dictionary: Tensor,
    layer: int,
    penalty: float,
    solver: str,
    folder,
    split: str,
    device="cpu",
    progress=None,
    *,
    chunk_tokens: int = CHUNK_TOKENS,
    state_folder=None,
    fingerprint: dict | None = None,
    only: np.ndarray | None = None,
) -> dict:
    """Write the code of every token of `store`, in order, with `masklab.sparse.codes.write_codes`.

    only: tokens to code, [tokens] bool; the others have none, and the file `<split>.positions.npy` says which have one.
    With the solver `exact` on a CPU each code is, to the last bit, what it is where all are computed.

    Sequences are coded in contiguous chunks of about `chunk_tokens` tokens, which bounds the memory. With
    `state_folder`, finished chunks are kept there, until the caller removes them, and reused where `fingerprint` (and
    the sizes) agree. progress(done, total) counts tokens. Returns the counts {"rows", "entries"}.
    """
    dictionary = prepare(dictionary.to(device))
    state = None if state_folder is None else Path(state_folder)
    made_of = {"tokens": len(store.ids), "chunk": chunk_tokens, "shape": list(dictionary.matrix.shape)}
    made_of |= {"layer": layer, "penalty": penalty, "solver": solver, **(fingerprint or {})}
    if only is not None:
        made_of["only"] = hashlib.sha256(np.packbits(only).tobytes()).hexdigest()

    def blocks():
        bounds = _chunks(store.offsets, chunk_tokens)
        for number, (first, last) in enumerate(pairwise(bounds)):
            path = None if state is None else state / f"{split}.{number}.safetensors"
            found = None if path is None else saved.load(path, made_of)
            codes = found and Codes(*(found.tensors[key] for key in ("indptr", "indices", "values")))
            if codes is None:
                begin, end = int(store.offsets[first]), int(store.offsets[last])
                states = torch.zeros(end - begin, len(dictionary.matrix), device=device)
                rows = np.arange(first, last)
                for positions, part in hidden_states(model, store, rows, layer, device, only):
                    states[torch.from_numpy(positions - begin).to(device)] = part
                wanted = None if only is None else torch.from_numpy(only[begin:end]).to(device)
                codes = lasso(states, dictionary, penalty, solver, only=wanted)
                if path is not None:
                    parts = {key: getattr(codes, key) for key in ("indptr", "indices", "values")}
                    saved.attempt(path, parts, made_of, before=False)
            yield codes
            if progress:
                progress(int(store.offsets[last]), len(store.ids))

    positions = None if only is None else np.flatnonzero(only)
    return write_codes(folder, split, blocks(), dictionary.matrix.shape[1], positions)


def _chunks(offsets: np.ndarray, tokens: int) -> list[int]:
    """Sequence numbers 0 = c0 < c1 < ... = n that cut the corpus into chunks of about `tokens` tokens."""
    bounds, n = [0], len(offsets) - 1
    while bounds[-1] < n:
        reach = int(np.searchsorted(offsets, offsets[bounds[-1]] + tokens, "right")) - 1
        bounds.append(min(n, max(bounds[-1] + 1, reach)))
    return bounds
