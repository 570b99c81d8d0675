"""Choosing and hiding tokens, vectorised over the batch, or over some of its rows as if all were there."""

from dataclasses import dataclass

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


@dataclass
class Hidden:
    """What is hidden of a batch of B rows, N tokens in row-major order, and of those of its rows that are worked on.

    all_rows [N], masked [N] bool, swapped [N] ids or -1: of each token its row, whether it is shown as [MASK], and as
    which other token (masked and -1: as itself). mine [N] bool, None: all; which tokens lie in the rows worked on;
    rows [n], columns [n]: where they lie, counted from the first of these rows.
    """

    all_rows: np.ndarray
    masked: np.ndarray
    swapped: np.ndarray | None
    mine: np.ndarray | None
    rows: np.ndarray
    columns: np.ndarray

    def of(self, values):
        """Those of `values` [N] that belong to the rows worked on."""
        return values if self.mine is None else values[self.mine]

    def corrupt(self, ids):
        """ids of the rows worked on -> what they are shown as."""
        corrupted = ids.copy()
        if self.swapped is None:
            corrupted[self.rows, self.columns] = MASK
            return corrupted
        swapped = self.of(self.swapped)
        shown = np.where(swapped < 0, ids[self.rows, self.columns], swapped)
        corrupted[self.rows, self.columns] = np.where(self.of(self.masked), MASK, shown)
        return corrupted


def hide(lengths, width: int, masking, vocab_size: int, rng, part=None) -> Hidden:
    """Draw what is hidden of sequences of `lengths` [B] tokens, laid out in `width` columns.

    part: rows [P], ascending, to work on, None: all. They get what they get where all are worked on: numbers are drawn
    for the whole batch or, where there are many, passed over; what costs time is done for these rows alone.
    """
    lengths = np.asarray(lengths)
    batch, own = len(lengths), lengths if part is None else lengths[part]
    bernoulli = masking.count == "bernoulli"  # how many of one row depends on its draws, so all are looked at
    draw = rng.random((batch, width)) if part is None or bernoulli else _draws(rng, batch, width, part)
    if bernoulli:
        hidden = _inner(lengths, width, masking) & (draw < masking.rate)
        counts, hidden = hidden.sum(1), hidden if part is None else hidden[part]
    else:
        # The n smallest draws of a row are a uniform choice without replacement.
        spare = rng.random(batch) if masking.count == "rounded" else 0.0
        counts = masked_count(lengths, masking, spare)
        order = np.argsort(np.where(_inner(own, width, masking), draw, 2.0), axis=1)
        chosen = np.arange(width) < (counts if part is None else counts[part])[:, None]
        hidden = np.zeros(draw.shape, bool)
        np.put_along_axis(hidden, order, chosen, 1)
    rows, columns = np.nonzero(hidden)
    mine = None if part is None else np.repeat(np.isin(np.arange(batch), part), counts)
    all_rows = rows if part is None else np.repeat(np.arange(batch), counts)
    if masking.mask >= 1:
        return Hidden(all_rows, np.ones(len(all_rows), bool), None, mine, rows, columns)
    fate = rng.random(len(all_rows))
    swapped = (fate >= masking.mask) & (fate < masking.mask + masking.random)
    swapped = np.where(swapped, rng.integers(FIRST_PIECE, vocab_size, len(all_rows)), -1)
    return Hidden(all_rows, fate < masking.mask, swapped, mine, rows, columns)


def _inner(lengths, width, masking):
    """Tokens that may be hidden, [B, width] bool."""
    column = np.arange(width)
    if masking.specials:
        return column < lengths[:, None]
    return (column >= 1) & (column < lengths[:, None] - 1)


def _draws(rng, batch, width, part):
    """The rows `part` of rng.random((batch, width)); the generator goes on as if all had been drawn."""
    drawn, at = [np.empty((0, width))], 0
    for run in np.split(part, np.flatnonzero(np.diff(part) > 1) + 1) if len(part) else ():
        rng.bit_generator.advance((int(run[0]) - at) * width)
        drawn.append(rng.random((len(run), width)))
        at = int(run[-1]) + 1
    rng.bit_generator.advance((batch - at) * width)
    return np.concatenate(drawn)


def mask_batch(ids: np.ndarray, lengths: np.ndarray, masking, vocab_size: int, rng):
    """Hide tokens of a padded batch.

    ids: [B, T] with [CLS] first and [SEP] at lengths - 1. Returns (corrupted ids [B, T],
    row [N], column [N] of the hidden tokens, in row-major order).
    """
    hidden = hide(lengths, ids.shape[1], masking, vocab_size, rng)
    return hidden.corrupt(ids), hidden.rows, hidden.columns


def leaving(hidden: Hidden, delta: float, rng):
    """Which masked tokens a masked autoencoder's encoder does not see, [n] bool (Meng et al. 2024, section 4.3).

    Of the m [MASK]s of a sequence floor(delta m + U[0, 1)) stay, so that a share delta of them stays on average; any
    choice is as likely. What is not shown as [MASK] stays.
    """
    masks = np.flatnonzero(hidden.masked)
    key, row = rng.random(len(masks)), hidden.all_rows[masks]
    _, first, count = np.unique(row, return_index=True, return_counts=True)
    stay = np.floor(delta * count + rng.random(len(count)))
    place, stay = np.arange(len(masks)) - np.repeat(first, count), np.repeat(stay, count)
    if hidden.mine is not None:
        mine = hidden.mine[masks]
        masks, key, row, place, stay = (values[mine] for values in (masks, key, row, place, stay))
    order = np.lexsort((key, row))  # a random order within each row
    left = np.zeros(len(hidden.masked), bool)
    left[masks[order[place >= stay]]] = True
    return hidden.of(left)
