"""The micro-batches of one update."""

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from masklab.objectives import Term
from masklab.objectives.batch import Batch
from masklab.tokenizers import PAD

PLAIN = Term()


@dataclass
class Step:
    """One update's micro-batches, in order, with what they hold all together."""

    micro: list[Batch]
    masked: int  # tokens that have a loss
    tokens: int  # specials counted


def masked_step(store, rows, rng, masking, vocab_size: int, size: int, term: Term = PLAIN) -> Step:
    """Hide tokens of the sequences `rows` of a `TokenStore` and cut them into micro-batches of `size`.

    term: says how tokens are hidden (`Term.corrupt`) and micro-batches arranged. Masks are drawn for all rows
    together, so that they do not depend on `size`. Padding is cut to each micro-batch's longest sequence, or a little
    beyond it (`rounded`).
    """
    ids, lengths = store.batch(rows)
    corrupted, row, column, *more = term.corrupt(ids.numpy(), lengths.numpy(), masking, vocab_size, rng)
    corrupted, extra = torch.from_numpy(corrupted), more[0] if more else {}
    positions = store.flat(rows, row, column)
    micro = []
    for start in range(0, len(rows), size):
        stop = min(start + size, len(rows))
        width = min(rounded(int(lengths[start:stop].max())), store.longest)
        at, inside = _flat(row, column, start, stop, width)
        original, shown = (F.pad(part[start:stop], (0, width - ids.shape[1]), value=PAD) for part in (ids, corrupted))
        targets = original.reshape(-1)[at]
        batch = Batch(shown, original, lengths[start:stop], at, targets, positions[inside])
        batch.extra = {name: _flat(*tokens, start, stop, width)[0] for name, tokens in extra.items()}
        term.arrange(batch)
        micro.append(batch)
    return Step(micro, len(row), int(lengths.sum()))


def rounded(width: int) -> int:
    """`width`, up to the next multiple of an eighth of the power of two below it: 17 to 18, 33 to 36, 65 to 72.

    Products of matrices are compiled for each shape that is met, and kept; so there are few: 32 widths up to 128.
    """
    step = 1 << max(0, (width - 1).bit_length() - 4)
    return -(-width // step) * step


def _flat(row, column, start, stop, width):
    """Flat positions in the micro-batch start..stop of those tokens (row, column) [N] that lie in it, and which do."""
    inside = (row >= start) & (row < stop)
    return torch.from_numpy((row[inside] - start) * width + column[inside]), inside
