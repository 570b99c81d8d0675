"""How the tokens of a stacked batch lie: in a grid of rows padded to the longest, or packed, without padding.

S copies, B rows, T length, N = B T places of the grid, P places where tokens are packed

Rows of any lengths are 1.6 to 2.2 times as long as their mean, and all that works on one token at a time (products with
weights, norms, dropout, activations) works on packed ones; attention alone needs the grid.
"""

import torch

from masklab.models.linear import ROWS

WORTH = 0.85  # P / N from which on copying from one to the other costs more than it saves


class Grid(tuple):
    """(S, B, T), with `pack` and `unpack`, which do nothing where tokens are not packed."""

    places = None  # P
    lengths = None  # [S B]

    @classmethod
    def of(cls, shape, lengths, pack: bool = False):
        """Of rows of `lengths` [S, B]; pack: packed if that pays.

        P is a multiple of `ROWS`, as one library asks for; every copy has at least one place without a token, the last.
        """
        grid = cls(shape)
        copies, size, length = shape
        grid.lengths = lengths.flatten().contiguous()
        if not pack:
            return grid
        counts = lengths.sum(1)
        places = -(-(int(counts.max()) + 1) // ROWS) * ROWS
        if places > WORTH * size * length:
            return grid
        grid.places = places
        within = (torch.arange(length) < lengths[..., None]).flatten(1)  # [S, N]
        start = torch.arange(copies)[:, None]
        packed = torch.where(within, within.cumsum(1) - 1, places - 1) + start * places
        grid._of_grid = packed.flatten()  # which place each of the grid has; padding has the last one
        grid._of_packed = torch.zeros(copies * places, dtype=torch.int64)
        grid._of_packed[packed[within]] = within.flatten().nonzero().flatten()
        grid._empty = (torch.arange(places) >= counts[:, None]).flatten().nonzero().flatten()
        return grid

    @property
    def starts(self):
        """The first place of each row among those of all copies, [S B]."""
        copies, size, length = self
        if self.places is None:
            return torch.arange(0, copies * size * length, length)
        return self._of_grid.view(copies * size, length)[:, 0].contiguous()

    def pack(self, x):
        """x [S, N, c] -> [S, P, c], zeros where there is no token."""
        if self.places is None:
            return x
        found = x.flatten(0, 1).index_select(0, self._of_packed).index_fill_(0, self._empty, 0)
        return found.view(len(x), self.places, -1)

    def unpack(self, x):
        """x [S, P, c] -> [S, N, c]; padding has what stands in the last place, where there is no token."""
        if self.places is None:
            return x
        return x.flatten(0, 1).index_select(0, self._of_grid).view(len(x), self[1] * self[2], -1)

    def tokens(self, ids):
        """Of numbers [S, B, T] those of the tokens, [S P]; any where there is none."""
        return ids.flatten() if self.places is None else ids.flatten()[self._of_packed]
