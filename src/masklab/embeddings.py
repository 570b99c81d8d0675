"""Continuous bag of words with negative sampling (Mikolov et al. 2013), as word2vec.c and gensim train it.

A token is predicted from the mean of its context's vectors; the context reaches 1 to `window` tokens to each side,
drawn per token; `negative` tokens drawn in proportion to count ** exponent are told from it. The learning rate falls
linearly over all tokens of all epochs. Updates follow one another token by token, so that results do not depend on
the machine's cores. Special tokens keep zero vectors: they are no part of the token arrays.
"""

import logging

import numba
import numpy as np

from masklab.errors import MaskLabError
from masklab.jobs.midway import Midway
from masklab.rng import generator
from masklab.tokenizers import CLS, SEP

log = logging.getLogger("masklab")

MULTIPLIER, INCREMENT = np.uint64(25214903917), np.uint64(11)  # word2vec.c's linear congruential generator
BLOCK = 1 << 18  # tokens between two looks at the clock
SMALLEST = 1e-300  # keeps the reported loss finite


def train(store, vocab_size: int, config, name: str, seed: int, midway=None) -> tuple[np.ndarray, dict]:
    """Vectors [vocab_size, config.size] float32 of the tokens of a `TokenStore`, and facts about the run.

    All vectors of tokens that occur, taken together, have standard deviation `config.std` (released code: .03);
    rows of others are 0. `config` is a `config.schema.Embeddings`. midway: a `jobs.midway.Midway` that is told how far
    it is, and keeps its state. MaskLabError if there are no tokens.
    """
    tokens = len(store.ids)
    if not tokens:
        raise MaskLabError(f"embeddings.{name}: the corpus has no tokens")
    counts = store.counts(vocab_size)
    counts[[CLS, SEP]] = 0  # they frame sequences and are no part of them
    rng = generator(seed, "embeddings", name, config.seed)
    vectors = ((rng.random((vocab_size, config.size)) - 0.5) / config.size).astype(np.float32)
    outputs = np.zeros_like(vectors)
    # tokens that do not occur are never drawn, although 0 to a negative power is infinite
    accept, alias = alias_table(np.where(counts > 0, np.maximum(counts, 1) ** config.exponent, 0.0))
    state, losses, loss, done = np.uint64(rng.integers(1 << 62)), [], 0.0, 0

    def kept():
        import torch  # takes a second, which most embeddings do not

        tensors = {"vectors": torch.from_numpy(vectors), "outputs": torch.from_numpy(outputs)}
        return tensors, {"state": int(state), "losses": losses, "loss": loss}

    midway = midway or Midway()
    if (found := midway.begun()) is not None:
        vectors, outputs = found.tensors["vectors"].numpy(), found.tensors["outputs"].numpy()
        state, losses, loss = np.uint64(found.facts["state"]), found.facts["losses"], found.facts["loss"]
        done = found.facts["updates"]
    for epoch in range(config.epochs):
        rates = [config.lr + (config.lr_end - config.lr) * at / config.epochs for at in (epoch, epoch + 1)]
        for begin, ids, offsets in store.blocks(BLOCK):
            if epoch * tokens + begin < done:
                continue
            block = (ids.astype(np.int32), offsets - begin, begin, tokens, vectors, outputs, accept, alias)
            loss, state = _epoch(*block, config.window, config.negative, *rates, np.uint64(state), loss)
            if begin + len(ids) == tokens:
                losses.append(loss / tokens)
                log.info("%s epoch %d/%d loss %.4f", name, epoch + 1, config.epochs, losses[-1])
                loss = 0.0
            midway.after(epoch * tokens + begin + len(ids), config.epochs * tokens, kept)
    used = counts > 0
    vectors[~used] = 0
    vectors[used] *= config.std / vectors[used].std()
    if config.layout == "scrambled":  # released code: stacked as columns, then reshaped to rows
        vectors[used] = vectors[used].T.reshape(used.sum(), -1)
    return vectors, {"config": config.model_dump(mode="json"), "tokens": tokens, "losses": losses}


def alias_table(weights) -> tuple[np.ndarray, np.ndarray]:
    """Walker's alias method: weights [V] -> (accept [V], alias [V]).

    A draw takes a slot v uniformly and gives v with probability accept[v], else alias[v].
    """
    scaled = np.asarray(weights, float) * len(weights) / np.sum(weights)
    accept, alias = np.ones(len(scaled)), np.arange(len(scaled), dtype=np.int32)
    small, large = (list(np.flatnonzero(part)) for part in (scaled < 1, scaled >= 1))
    while small and large:
        low, high = small.pop(), large.pop()
        accept[low], alias[low] = scaled[low], high
        scaled[high] -= 1 - scaled[low]
        (small if scaled[high] < 1 else large).append(high)
    return accept, alias


@numba.njit(cache=True, nogil=True)
def _next(state):
    return state * MULTIPLIER + INCREMENT


@numba.njit(cache=True, nogil=True)
def _below(state, limit):
    """A number below `limit` from the state's high bits (the low ones of such generators repeat early)."""
    return np.int64((state >> np.uint64(16)) & np.uint64(0xFFFFFFFF)) * limit >> 32


@numba.njit(cache=True, nogil=True, fastmath=True)
def _epoch(
    ids, offsets, before, tokens, vectors, outputs, accept, alias,
    window, negative, first_rate, last_rate, state, total,
):  # fmt: skip
    """One pass over a part of the corpus, `before` of whose `tokens` come first; changes vectors and outputs.

    Returns (`total` plus the negative-sampling loss, the generator's state).
    """
    size = vectors.shape[1]
    mean, change = np.empty(size, np.float32), np.empty(size, np.float32)
    for row in range(len(offsets) - 1):
        begin, end = offsets[row], offsets[row + 1]
        for at in range(begin, end):
            state = _next(state)
            reach = 1 + _below(state, window)
            left, right = max(begin, at - reach), min(end, at + reach + 1)
            if right - left < 2:
                continue
            rate = np.float32(first_rate + (last_rate - first_rate) * (before + at) / tokens)
            mean[:] = 0
            change[:] = 0
            for other in range(left, right):
                if other != at:
                    vector = vectors[ids[other]]
                    for i in range(size):
                        mean[i] += vector[i]
            scale = np.float32(1 / (right - left - 1))
            for i in range(size):
                mean[i] *= scale
            right_guess = 1.0  # probability that the token and its samples are told apart
            for sample in range(negative + 1):
                token = ids[at]
                if sample:
                    state = _next(state)
                    token = _below(state, len(accept))
                    state = _next(state)
                    if _below(state, 1 << 31) >= accept[token] * (1 << 31):
                        token = alias[token]
                    if token == ids[at]:
                        continue
                output = outputs[token]
                score = np.float32(0)
                for i in range(size):
                    score += mean[i] * output[i]
                positive = np.float32(1) / (np.float32(1) + np.exp(-score))
                right_guess *= np.float32(1) - positive if sample else positive
                gradient = -rate * positive if sample else rate * (np.float32(1) - positive)
                for i in range(size):
                    change[i] += gradient * output[i]
                    output[i] += gradient * mean[i]
            total -= np.log(max(right_guess, SMALLEST))
            for other in range(left, right):
                if other != at:
                    vector = vectors[ids[other]]
                    for i in range(size):
                        vector[i] += change[i]
    return total, state
