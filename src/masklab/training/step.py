"""The micro-batches of one update."""

import inspect
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.nn import functional as F

from masklab.objectives import Term
from masklab.objectives.batch import Batch
from masklab.objectives.returned import arrange, hidden_by
from masklab.tokenizers import PAD

PLAIN = Term()


@dataclass
class Step:
    """One update's micro-batches, in order, or those that one of several processes works on.

    masked, tokens: of all micro-batches of the update; numbers: which of them these are.
    """

    micro: list[Batch]
    masked: int  # tokens that have a loss
    tokens: int  # specials counted
    numbers: list[int] = field(default_factory=list)

    @property
    def divisor(self) -> int:
        """What sums over masked tokens are divided by: where chance has hidden none, 1, so that the mean is 0."""
        return max(1, self.masked)


def masked_step(
    store, rows, rng, masking, vocab_size: int, size: int, term: Term = PLAIN, share: slice = slice(None)
) -> Step:
    """Hide tokens of the sequences `rows` of a `TokenStore` and cut them into micro-batches of `size`.

    term: says how tokens are hidden (`Term.corrupt`) and micro-batches arranged. Masks are those of all rows drawn
    together, so that they do not depend on `size`. Padding is cut to each micro-batch's longest sequence, or a little
    beyond it (`rounded`). share: which micro-batches are made; only their sequences are read, and hidden where the term
    can do that.
    """
    spans = [(start, min(start + size, len(rows))) for start in range(0, len(rows), size)]
    numbers = list(range(len(spans)))[share]
    lengths = store.lengths[rows].astype(np.int64)
    total, how = int(lengths.sum()), (lengths, masking, vocab_size, rng)
    if len(numbers) < len(spans) and _takes_part(term):
        part = np.concatenate([np.empty(0, np.int64), *(np.arange(*spans[number]) for number in numbers)])
        ids = store.batch(rows[part])[0] if len(part) else torch.empty(0, 0, dtype=torch.long)
        corrupted, row, column, more, count = hidden_by(term, ids.numpy(), *how, part=part)
        rows, lengths = rows[part], lengths[part]
        ends = np.cumsum([stop - start for start, stop in (spans[number] for number in numbers)]).tolist()
        spans = list(zip([0, *ends], ends, strict=False))
    else:
        ids, _ = store.batch(rows)
        corrupted, row, column, *more = hidden_by(term, ids.numpy(), *how)
        more, count, spans = more[0] if more else {}, len(row), [spans[number] for number in numbers]
    corrupted, lengths, positions = (
        torch.from_numpy(corrupted),
        torch.from_numpy(lengths),
        store.flat(rows, row, column),
    )
    micro = []
    for start, stop in spans:
        width = min(rounded(int(lengths[start:stop].max())), store.longest)
        at, inside = _flat(row, column, start, stop, width)
        original, shown = (
            F.pad(values[start:stop], (0, width - ids.shape[1]), value=PAD) for values in (ids, corrupted)
        )
        targets = original.reshape(-1)[at]
        batch = Batch(shown, original, lengths[start:stop], at, targets, positions[inside])
        batch.extra = {name: _flat(*tokens, start, stop, width)[0] for name, tokens in more.items()}
        arrange(term, batch)
        micro.append(batch)
    return Step(micro, count, total, numbers)


def _takes_part(term) -> bool:
    """Whether a term can hide the tokens of some rows of a batch as if all were there."""
    return "part" in inspect.signature(term.corrupt).parameters


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
