"""The micro-batches of one update."""

from dataclasses import dataclass

import numpy as np
import torch

from masklab.masking import leaving, mask_batch
from masklab.objectives import Batch


@dataclass
class Step:
    """One update's micro-batches, in order, with what they hold all together."""

    micro: list[Batch]
    masked: int  # tokens that have a loss
    tokens: int  # specials counted


@dataclass(frozen=True)
class Reading:
    """How a masked batch is read.

    delta: share of [MASK]s that the encoder sees; None: all, and nothing else sees them (no autoencoder).
    reset: masked positions that stay are [MASK] in the decoder's input again.
    whole: every token has a loss, as a causal decoder predicts them all; else the masked ones have.
    """

    delta: float | None = None
    reset: bool = False
    whole: bool = False

    @classmethod
    def of(cls, objective, encoder) -> "Reading":
        """That of an objective (`config.schema.Objective`) with an encoder (`config.schema.Encoder`)."""
        if not objective.mae or encoder.decoder is None:
            return cls()
        how = objective.autoencoder
        return cls(how.delta, how.reset, encoder.decoder.attention == "causal+cross")


def masked_step(store, rows, rng, masking, vocab_size: int, size: int, reading: Reading = Reading()) -> Step:
    """Mask the sequences `rows` of a `TokenStore` and cut them into micro-batches of `size`.

    Masks are drawn for all rows together, so that they do not depend on `size`. Padding is cut to each
    micro-batch's longest sequence.
    """
    ids, lengths = store.batch(rows)
    corrupted, row, column = mask_batch(ids.numpy(), lengths.numpy(), masking, vocab_size, rng)
    leaves = None if reading.delta is None else leaving(corrupted[row, column], row, reading.delta, rng)
    corrupted = torch.from_numpy(corrupted)
    positions = store.flat(rows, row, column)
    lost = row, column
    if reading.whole:
        row, column = (np.arange(ids.shape[1]) < lengths.numpy()[:, None]).nonzero()
        positions = np.zeros(len(row), np.int64)  # specials are not in the store
    micro = []
    for start in range(0, len(rows), size):
        stop = min(start + size, len(rows))
        inside = (row >= start) & (row < stop)
        width = int(lengths[start:stop].max())
        at = torch.from_numpy((row[inside] - start) * width + column[inside])
        original = ids[start:stop, :width]
        targets = original.reshape(-1)[at]
        batch = Batch(corrupted[start:stop, :width], original, lengths[start:stop], at, targets, positions[inside])
        if leaves is not None:
            _show(batch, *lost, leaves, start, stop, reading)
        micro.append(batch)
    return Step(micro, len(row), int(lengths.sum()))


def _show(batch, row, column, leaves, start, stop, reading):
    """Set what the encoder and the decoder are shown of masked tokens (row, column, leaves) [N] in rows start..stop."""
    inside = (row >= start) & (row < stop)
    at = torch.from_numpy((row[inside] - start) * batch.ids.shape[1] + column[inside])
    gone = torch.from_numpy(leaves[inside])
    batch.dropped = at[gone]
    batch.reset = at[~gone] if reading.reset else None
    fewer = np.bincount(row[inside][leaves[inside]] - start, minlength=stop - start)
    batch.width = max(1, int((batch.lengths.numpy() - fewer).max()))
