"""Choosing and hiding tokens, vectorised over the batch."""

import numpy as np

from masklab.tokenizers import MASK

FIRST_PIECE = 5  # ids below are special tokens


def masked_count(lengths, masking):
    """Tokens hidden per sequence under a `count` that fixes them, [n] int64; never more than its inner tokens.

    `floor`: floor(rate x length), specials counted (Berend 2023, released code); `one`: 1.
    """
    if masking.count == "one":
        return np.minimum(1, np.asarray(lengths) - 2).astype(np.int64)
    return np.minimum(np.floor(masking.rate * np.asarray(lengths) + 1e-9), np.asarray(lengths) - 2).astype(np.int64)


def maskable(lengths, masking):
    """Rows in which a token can be hidden, [n] bool. Under `floor` a line under 7 tokens has none."""
    return np.asarray(lengths) > 2 if masking.count == "bernoulli" else masked_count(lengths, masking) > 0


def mask_batch(ids: np.ndarray, lengths: np.ndarray, masking, vocab_size: int, rng):
    """Hide tokens of a padded batch.

    ids: [B, T] with [CLS] first and [SEP] at lengths - 1. Returns (corrupted ids [B, T],
    row [N], column [N] of the hidden tokens, in row-major order).
    """
    batch, width = ids.shape
    column = np.arange(width)
    inner = (column >= 1) & (column < lengths[:, None] - 1)
    draw = rng.random((batch, width))
    if masking.count != "bernoulli":
        # The n smallest draws of a row are a uniform choice without replacement.
        rank = np.argsort(np.argsort(np.where(inner, draw, 2.0), axis=1), axis=1)
        hidden = inner & (rank < masked_count(lengths, masking)[:, None])
    else:
        hidden = inner & (draw < masking.rate)
    rows, columns = np.nonzero(hidden)
    corrupted = ids.copy()
    if masking.mask >= 1:
        corrupted[rows, columns] = MASK
        return corrupted, rows, columns
    fate = rng.random(len(rows))
    shown = np.where(fate < masking.mask, MASK, ids[rows, columns])
    swapped = (fate >= masking.mask) & (fate < masking.mask + masking.random)
    corrupted[rows, columns] = np.where(swapped, rng.integers(FIRST_PIECE, vocab_size, len(rows)), shown)
    return corrupted, rows, columns
