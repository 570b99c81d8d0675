"""The micro-batches of one update."""

from dataclasses import dataclass

import torch

from masklab.objectives import Batch
from masklab.training.masking import mask_batch


@dataclass
class Step:
    """One update's micro-batches, in order, with what they hold all together."""

    micro: list[Batch]
    masked: int
    tokens: int  # specials counted


def masked_step(store, rows, rng, masking, vocab_size: int, size: int) -> Step:
    """Mask the sequences `rows` of a `TokenStore` and cut them into micro-batches of `size`.

    Masks are drawn for all rows together, so that they do not depend on `size`. Padding is cut to each
    micro-batch's longest sequence.
    """
    ids, lengths = store.batch(rows)
    corrupted, row, column = mask_batch(ids.numpy(), lengths.numpy(), masking, vocab_size, rng)
    corrupted = torch.from_numpy(corrupted)
    positions = store.flat(rows, row, column)
    micro = []
    for start in range(0, len(rows), size):
        stop = min(start + size, len(rows))
        inside = (row >= start) & (row < stop)
        width = int(lengths[start:stop].max())
        at = torch.from_numpy((row[inside] - start) * width + column[inside])
        original = ids[start:stop, :width]
        targets = original.reshape(-1)[at]
        cut = corrupted[start:stop, :width]
        micro.append(Batch(cut, original, lengths[start:stop], at, targets, positions[inside]))
    return Step(micro, len(row), int(lengths.sum()))
