"""From which positions the last block of a stacked encoder looks: the first of each row, or the masked ones.

S copies, B rows, T length of the padded batch, N = B T, H width
"""

import numpy as np
import torch

from masklab.models.linear import ROWS


class First:
    """The first position of each row. shape: (S, B, T)."""

    def __init__(self, shape):
        self.shape = shape

    def take(self, x):
        """x [S, N, H] -> [S, B, H], a view."""
        return x.view(*self.shape, -1)[:, :, 0]

    def put(self, g):
        """Gradient of x, given that of what `take` took."""
        x = g.new_zeros(*self.shape, g.shape[-1])
        x[:, :, 0] = g
        return x.flatten(1, 2)

    def spread(self, context):
        """What attention gives, [S, B, H], as it is."""
        return context

    gather = spread  # its gradient


class Masked:
    """The positions that tokens are predicted at, in some rows more than in others.

    Attention works on M queries per row, laid out as `models.attention.plan_queries` does for a model alone; all else
    works on K rows per copy, the most of `own`: what a copy predicts, up to the next multiple of `ROWS`. What a row or
    a copy lacks repeats a position; nothing may come back from there but zeros.

    at: per copy, flat positions b T_s + t in its own batch of B rows of T_s tokens; longest: T_s of each copy;
    shape: (S, B, T); width: M. counts: tokens that each copy predicts; queries: M of each copy as a model alone has it.
    """

    def __init__(self, at, longest, shape, width: int):
        copies, size, length = self.shape = shape
        self.width = width
        self.counts = [len(one) for one in at]
        plans = [_slots(np.asarray(one), own, size) for one, own in zip(at, longest, strict=True)]
        self.queries = [most for *_, most in plans]
        slots = np.zeros((copies, size, self.width), np.int64)
        self.own = [-(-count // ROWS) * ROWS for count in self.counts]
        self.most = max(self.own)  # K
        rows, back = (np.zeros((copies, self.most), np.int64) for _ in range(2))
        for copy, (row, column, slot, own) in enumerate(plans):
            if slot is column:  # from everywhere
                slots[copy, :, :own] = np.arange(own)
            slots[copy, row, slot] = column
            rows[copy, : len(row)] = row * length + column
            back[copy, : len(row)] = row * self.width + slot
        self.column = torch.from_numpy(slots.copy())  # [S, B, M]
        start = np.arange(copies)[:, None]
        slots += np.arange(size)[:, None] * length + start[:, :, None] * size * length
        self.slots = torch.from_numpy(slots.ravel())  # of x [S N, H]
        self.rows = torch.from_numpy((rows + start * size * length).ravel())  # of x
        self.back = torch.from_numpy((back + start * size * self.width).ravel())  # of what attention gives, [S B M, H]

    def take(self, x):
        """x [S, N, H] -> [S, K, H]."""
        return self._select(x, self.rows)

    def put(self, g):
        """Gradient of x, given that of what `take` took."""
        return self._add(g, self.rows, self.shape[1] * self.shape[2])

    def spread(self, context):
        """What attention gives for every slot [S, B M, H] -> for every token to predict [S, K, H]."""
        return self._select(context, self.back)

    def gather(self, g):
        """Its gradient."""
        return self._add(g, self.back, self.shape[1] * self.width)

    def _select(self, x, index):
        return x.flatten(0, 1).index_select(0, index).view(len(x), -1, x.shape[2])

    def _add(self, g, index, rows):
        x = g.new_zeros(len(g) * rows, g.shape[2])
        return x.index_add_(0, index, g.flatten(0, 1)).view(len(g), rows, -1)


def queries(at, own: int, length: int) -> int:
    """M in rows of `length` for the tokens at flat positions `at` of rows of `own`: one of few numbers, enough."""
    most = _most(np.bincount(np.asarray(at) // own), own)
    return 1 if most == 1 else length // 2 if most <= length // 2 else length


def _most(counts, length: int) -> int:
    """M as a model alone has it, counts [<= B] tokens of rows of `length`: all positions where that is as fast."""
    most = int(counts.max(initial=0))
    return length if most == 0 or 2 * most > length else most


def _slots(at, length: int, size: int):
    """(row, column, slot, M) of the tokens at flat positions `at` [K]: a slot is one of the M queries of its row."""
    row, column = np.divmod(at, length)
    counts = np.bincount(row, minlength=size)
    most = _most(counts, length)
    if most == length:
        return row, column, column, length
    order = np.argsort(row, kind="stable")
    slot = np.empty(len(row), np.int64)
    slot[order] = np.arange(len(row)) - (np.cumsum(counts) - counts)[row[order]]
    return row, column, slot, most
