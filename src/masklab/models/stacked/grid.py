"""How the tokens of a stacked batch lie: in a grid of rows padded to the longest, or packed, without padding.

S copies, B rows, T length, N = B T places of the grid, P places where tokens are packed

Rows of any lengths are 1.6 to 2.2 times as long as their mean, and all that works on one token at a time (products with
weights, norms, dropout, activations) works on packed ones, and so does compiled attention; other attention needs the
grid.
"""

import torch

from masklab.kernels.attend import Layout
from masklab.models.linear import ROWS
from masklab.models.stacked.products import row_count

STEPS = 16  # places are a multiple of this part of the power of two above them: few numbers, as products are compiled
WORTH = 0.85  # P / N from which on copying from one to the other costs more than it saves


def rounded(count: int) -> int:
    """Places for so many tokens: as many, or one of few numbers, a multiple of `ROWS`, where a library asks for it."""
    if row_count(1) == 1:
        return count
    step = max(ROWS, (1 << (count - 1).bit_length()) // STEPS)
    return -(-count // step) * step


class Grid(tuple):
    """(S, B, T), and where tokens lie.

    lengths, starts [S B]: tokens of each row, and the place of its first one among those of all copies; places: P, None
    where tokens are not packed; counts: how many first places of each copy its own products have, None: all;
    ends: tokens of each copy, which lie in its first places, None where tokens are not packed.
    """

    places = counts = ends = None

    @classmethod
    def of(cls, shape, lengths, pack: bool = False, apart: bool = False, free: bool = False):
        """Of rows of `lengths` [S, B]; pack: packed if that pays. free: packing costs nothing: attention is compiled.

        Every copy has at least one place without a token, the last.
        apart: always, and each copy has as many rows in products as if it were alone.
        """
        grid = cls(shape)
        copies, size, length = shape
        grid.lengths = lengths.flatten().contiguous()
        if pack:
            tokens = lengths.sum(1)
            counts = [rounded(count + 1) for count in tokens.tolist()]
            if apart or max(counts) <= (1 if free else WORTH) * size * length:
                return grid._pack(tokens, counts, apart)
        grid.starts = torch.arange(0, copies * size * length, length)
        return grid

    def _pack(self, tokens, counts, apart):
        copies, size, _ = self
        self.places = places = max(counts)
        self.counts = counts if apart and min(counts) < places else None
        lengths = self.lengths.view(copies, size)
        first = torch.arange(0, copies * places, places)[:, None]
        self.starts = (lengths.cumsum(1) - lengths + first).flatten()
        total = int(tokens.sum())
        row = torch.repeat_interleave(torch.arange(copies * size), self.lengths, output_size=total)
        column = torch.arange(total) - (self.lengths.cumsum(0) - self.lengths)[row]
        self._packed = self.starts[row] + column  # places of all tokens, in order
        self.ends = tokens.tolist()
        self._row, self._column = row, column
        return self

    @property
    def width(self) -> int:
        """Rows of each copy, N or P."""
        return self[1] * self[2] if self.places is None else self.places

    @property
    def columns(self):
        """Of packed tokens: the position of each in its row, 0 where there is no token, [S P]; None in a grid, whose
        positions are those of its places."""
        return None if self.places is None else self._spread(self._column)

    def columns_of(self, positions):
        """The same where positions [S, B, T] say it."""
        return self._spread(positions.flatten()[self._of_grid])

    def _spread(self, values):
        found = torch.zeros(self[0] * self.places, dtype=torch.int64)
        found[self._packed] = values
        return found

    @property
    def layout(self):
        """Every position of a row looks at all of them."""
        if not hasattr(self, "_layout"):
            most = int(self.lengths.max())
            queries = self.lengths if self.places is not None else torch.full_like(self.lengths, self[2])
            most = max(most, 1)
            ends, most_asked = (self.ends, self.ends), max(most, int(queries.max()))
            self._layout = Layout(self[1], self.starts, queries, self.starts, self.lengths, most_asked, most, ends=ends)
        return self._layout

    def rows_of(self, keep):
        """The dropout of [B, T, H] of each copy's own batch as that of the rows here."""
        if keep is None:
            return None
        if not hasattr(self, "_own"):
            _, size, length = self
            own = torch.tensor([shape[:2] for shape in keep.shapes])  # [S, 2]
            if self.places is not None:
                copy = self._row // size
                self._own = self._spread((self._row - copy * size) * own[copy, 1] + self._column)
            elif all(tuple(shape[:2]) == (size, length) for shape in keep.shapes):
                self._own = None
            else:
                row, column = torch.arange(size)[:, None], torch.arange(length)
                each = [row.clamp(max=b - 1) * t + column.clamp(max=t - 1) for b, t in own.tolist()]
                self._own = torch.stack(each).flatten()
        return keep.at(self._own)

    def pack(self, x):
        """x [S, N, c] -> [S, P, c], zeros where there is no token."""
        if self.places is None:
            return x
        found = x.new_zeros(len(x) * self.places, x.shape[2])
        found[self._packed] = x.flatten(0, 1).index_select(0, self._of_grid)
        return found.view(len(x), self.places, -1)

    @property
    def _of_grid(self):
        return self._row * self[2] + self._column

    def unpack(self, x):
        """x [S, P, c] -> [S, N, c], zeros where there is no token."""
        if self.places is None:
            return x
        found = x.new_zeros(len(x) * self[1] * self[2], x.shape[2])
        found[self._of_grid] = x.flatten(0, 1).index_select(0, self._packed)
        return found.view(len(x), self[1] * self[2], -1)

    def rows(self, ids, first):
        """first [S] + ids [S, B, T] of the tokens, [S N] or [S P]; `first` where there is none."""
        whole = ids + first[:, None, None]
        if self.places is None:
            return whole.flatten()
        found = first.repeat_interleave(self.places)
        found[self._packed] = whole.flatten()[self._of_grid]
        return found
