"""From which positions the last block of a stacked encoder looks: the first of each row, or the masked ones.

S copies, B rows, T length of the padded batch, P places of packed tokens, H width
"""

import numpy as np
import torch

from masklab.kernels.attend import Layout
from masklab.models.stacked.products import row_count


class First:
    """The first position of each row. ragged: where tokens lie; behind a row without a token there is none with one."""

    own = None  # all rows count

    def __init__(self, ragged):
        self.ragged = ragged

    @property
    def layout(self):
        """What attention is told of these queries, [S B], one after the other."""
        every, count = self.ragged.layout, len(self.ragged.starts)
        # where a row has no token there is a place without one
        keys, ones = (every.k_starts, every.k_counts.clamp(min=1)), torch.ones(count, dtype=torch.int64)
        ends = [self.ragged[1]] * self.ragged[0], self.ragged.ends
        return Layout(every.size, torch.arange(count), ones, *keys, 1, every.keys, ends=ends)

    def rows_of(self, keep):
        """The dropout of [B, 1, H] of each copy's own rows as that of B rows."""
        size = self.ragged[1]
        if keep is None or all(own[0] == size for own in keep.shapes):
            return keep
        return keep.at(torch.cat([torch.arange(size).clamp(max=own[0] - 1) for own in keep.shapes]))

    def take(self, x):
        """x [S, P, H] -> [S, B, H]."""
        return x.flatten(0, 1).index_select(0, self.ragged.starts).view(len(x), -1, x.shape[2])

    def put(self, g):
        """Gradient of x, given that of what `take` took."""
        x = g.new_zeros(len(g), self.ragged.places, g.shape[2])
        self.add(x, g)
        return x

    def add(self, x, g) -> None:
        """Add it to one of x."""
        x.view(-1, x.shape[2]).index_add_(0, self.ragged.starts, g.flatten(0, 1))


class Masked:
    """The positions that tokens are predicted at, in some rows more than in others.

    Copies work on K rows, the most of `own`: what a copy predicts, and more rows where libraries ask for them. What a
    copy lacks repeats a position; nothing may come back from there but zeros. Tokens are in the order of their rows.

    at: per copy, flat positions b T_s + t in its own batch of B rows of T_s tokens; longest: T_s of each copy; ragged:
    where the tokens of all lie. counts: tokens that each copy predicts; queries: M of each copy as a model alone has
    it; order [S, K]: which of its own tokens each one is.
    """

    def __init__(self, at, longest, ragged):
        copies, size, _ = ragged
        self.ragged = ragged
        self.counts = [len(one) for one in at]
        self.plans = [_slots(np.asarray(one), own, size) for one, own in zip(at, longest, strict=True)]
        self.queries = [most for *_, most in self.plans]
        self.own = [row_count(count) for count in self.counts]
        self.most = max(1, *self.own)  # K
        starts = ragged.starts.view(copies, size).numpy()
        self.order, rows, slots, columns = (np.zeros((copies, self.most), np.int64) for _ in range(4))
        asked = np.zeros((copies, size), np.int64)
        for copy, (row, column, slot, _) in enumerate(self.plans):
            order = np.argsort(row, kind="stable")
            count = len(order)
            self.order[copy, :count], self.order[copy, count:] = order, max(0, count - 1)
            rows[copy] = starts[copy, 0]
            rows[copy, :count] = (starts[copy, row] + column)[order]
            slots[copy, :count], columns[copy, :count] = slot[order], column[order]
            asked[copy] = np.bincount(row, minlength=size)
        self.sorted = all(
            (own[:count] == np.arange(count)).all() for own, count in zip(self.order, self.counts, strict=True)
        )
        self.rows = torch.from_numpy(rows.ravel())  # of x [S P, H]
        self._slots, self._columns, self._asked = (torch.from_numpy(each) for each in (slots, columns, asked))

    @property
    def layout(self):
        """What attention is told of these queries, where they lie one after the other, [S K]."""
        first = torch.arange(0, len(self.own) * self.most, self.most)[:, None]
        starts = (self._asked.cumsum(1) - self._asked + first).flatten()
        all_keys = self.ragged.layout
        rows = self._slots.flatten(), self._columns.flatten()
        asked = self._asked.flatten()
        keys = all_keys.k_starts, all_keys.k_counts
        most, ends = (int(asked.max()), all_keys.keys), (self.counts, self.ragged.ends)
        return Layout(all_keys.size, starts, asked, *keys, *most, ends, *rows)

    def rows_of(self, keep):
        """The dropout of [1, tokens, H] as that of the K rows."""
        return None if keep is None else keep.at(torch.from_numpy(self.order.ravel()))

    def take(self, x):
        """x [S, P, H] -> [S, K, H]."""
        return x.flatten(0, 1).index_select(0, self.rows).view(len(x), -1, x.shape[2])

    def put(self, g):
        """Gradient of x, given that of what `take` took."""
        x = g.new_zeros(len(g), self.ragged.places, g.shape[2])
        self.add(x, g)
        return x

    def add(self, x, g) -> None:
        """Add it to one of x."""
        x.view(-1, x.shape[2]).index_add_(0, self.rows, g.flatten(0, 1))

    def in_own_order(self, x):
        """x [S, K, c], its tokens in the order in which each copy asks for them."""
        return x if self.sorted else x.gather(1, torch.from_numpy(np.argsort(self._every(), 1))[..., None].expand_as(x))

    def in_order(self, g):
        """Its gradient, and the other way round."""
        return g if self.sorted else g.gather(1, torch.from_numpy(self._every())[..., None].expand_as(g))

    def _every(self):
        """`order`, and behind each copy's own tokens all other rows as they are, [S, K]."""
        order = np.tile(np.arange(self.most), (len(self.own), 1))
        for own, count, given in zip(order, self.counts, self.order, strict=True):
            own[:count] = given[:count]
        return order


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
