"""Choosing and hiding tokens, vectorised over the batch."""

import numpy as np

from masklab.tokenizers import MASK

FIRST_PIECE = 5  # ids below are special tokens


def masked_count(lengths, masking, spare=0.0):
    """Tokens hidden per sequence under a `count` that fixes them, [n] int64; one token at least stays visible.

    `floor`: floor(rate x length), specials counted (Berend 2023, released code); `one`: 1; `rounded`:
    floor(rate x length + spare), spare [n] drawn from [0, 1) (Meng et al. 2024, released code).
    """
    lengths = np.asarray(lengths)
    most = lengths - (1 if masking.specials else 2)
    if masking.count == "one":
        return np.minimum(1, most).astype(np.int64)
    return np.minimum(np.floor(masking.rate * lengths + (spare if masking.count == "rounded" else 1e-9)), most).astype(
        np.int64
    )


def maskable(lengths, masking):
    """Rows in which a token can be hidden, [n] bool. Under `floor` a line under 7 tokens has none."""
    if masking.count in ("bernoulli", "rounded"):
        return np.asarray(lengths) > 2
    return masked_count(lengths, masking) > 0


def mask_batch(ids: np.ndarray, lengths: np.ndarray, masking, vocab_size: int, rng):
    """Hide tokens of a padded batch.

    ids: [B, T] with [CLS] first and [SEP] at lengths - 1. Returns (corrupted ids [B, T],
    row [N], column [N] of the hidden tokens, in row-major order).
    """
    batch, width = ids.shape
    column = np.arange(width)
    inner = column < lengths[:, None]
    if not masking.specials:
        inner &= (column >= 1) & (column < lengths[:, None] - 1)
    draw = rng.random((batch, width))
    if masking.count != "bernoulli":
        # The n smallest draws of a row are a uniform choice without replacement.
        rank = np.argsort(np.argsort(np.where(inner, draw, 2.0), axis=1), axis=1)
        spare = rng.random(batch) if masking.count == "rounded" else 0.0
        hidden = inner & (rank < masked_count(lengths, masking, spare)[:, None])
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


def leaving(shown, rows, delta: float, rng):
    """Which masked tokens a masked autoencoder's encoder does not see, [N] bool (Meng et al. 2024, section 4.3).

    shown, rows [N]: what stands at each masked token, and its sequence, in row-major order. Of the m [MASK]s of a
    sequence floor(delta m + U[0, 1)) stay, so that a share delta of them stays on average; any choice is as likely.
    What is not shown as [MASK] stays.
    """
    masks = np.flatnonzero(shown == MASK)
    row = rows[masks]
    order = np.lexsort((rng.random(len(masks)), row))  # a random order within each row
    _, first, count = np.unique(row, return_index=True, return_counts=True)
    stay = np.floor(delta * count + rng.random(len(count)))
    rank = np.arange(len(masks)) - np.repeat(first, count)
    left = np.zeros(len(rows), bool)
    left[masks[order[rank >= np.repeat(stay, count)]]] = True
    return left
