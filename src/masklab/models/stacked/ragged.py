"""Where the tokens of a stacked batch lie: rows of any lengths, one after the other, without padding.

S copies, B rows, T length of the longest, N = B T places with padding, P places where tokens are packed

The longest of rows of any lengths is 1.6 to 2.2 times as long as their mean, and nothing works on padding.
"""

import torch

from masklab.kernels.attend import Layout
from masklab.models.linear import ROWS
from masklab.models.stacked.products import row_count

STEPS = 16  # places are a multiple of this part of the power of two above them: few numbers, as products are compiled


def rounded(count: int) -> int:
    """Places for so many tokens: as many, or one of few numbers, a multiple of `ROWS`, where a library asks for it."""
    if row_count(1) == 1:
        return count
    step = max(ROWS, (1 << (count - 1).bit_length()) // STEPS)
    return -(-count // step) * step


class Ragged(tuple):
    """(S, B, T), and where tokens lie.

    lengths, starts [S B]: tokens of each row, and the place of its first one among those of all copies; places: P;
    counts: how many first places of each copy its own products have, None: all; ends: tokens of each copy, which lie in
    its first places; columns [S P]: the position of each token in its row, 0 where there is none.
    """

    @classmethod
    def of(cls, lengths, length: int, apart: bool = False):
        """Of rows of `lengths` [S, B], the longest of `length` tokens, or fewer.

        Every copy has at least one place without a token, the last. apart: each copy has as many rows in products as if
        it were alone.
        """
        ragged = cls((*lengths.shape, length))
        copies, size, _ = ragged
        tokens = lengths.sum(1)
        counts = [rounded(count + 1) for count in tokens.tolist()]
        ragged.places = max(counts)
        ragged.counts = counts if apart and min(counts) < ragged.places else None
        ragged.lengths = lengths.flatten().contiguous()
        first = torch.arange(0, copies * ragged.places, ragged.places)[:, None]
        ragged.starts = (lengths.cumsum(1) - lengths + first).flatten()
        total = int(tokens.sum())
        ragged._row = torch.repeat_interleave(torch.arange(copies * size), ragged.lengths, output_size=total)
        ragged._column = torch.arange(total) - (ragged.lengths.cumsum(0) - ragged.lengths)[ragged._row]
        ragged._packed = ragged.starts[ragged._row] + ragged._column  # places of all tokens, in order
        ragged.ends, ragged.columns = tokens.tolist(), ragged._spread(ragged._column)
        return ragged

    def columns_of(self, positions):
        """`columns` where positions [S, B, T] say where tokens stand."""
        return self._spread(positions.flatten()[self._padded])

    def _spread(self, values):
        found = torch.zeros(self[0] * self.places, dtype=torch.int64)
        found[self._packed] = values
        return found

    @property
    def layout(self):
        """Every position of a row looks at all of them."""
        if not hasattr(self, "_layout"):
            tokens, most = (self.starts, self.lengths), max(1, int(self.lengths.max()))
            self._layout = Layout(self[1], *tokens, *tokens, most, most, ends=(self.ends, self.ends))
        return self._layout

    def rows_of(self, keep):
        """The dropout of [B, T, H] of each copy's own batch as that of the places here."""
        if keep is None:
            return None
        if not hasattr(self, "_own"):
            own, copy = torch.tensor([shape[1] for shape in keep.shapes]), self._row // self[1]  # T of each copy
            self._own = self._spread((self._row - copy * self[1]) * own[copy] + self._column)
        return keep.at(self._own)

    def pack(self, x):
        """x [S, N, c] -> [S, P, c], zeros where there is no token."""
        found = x.new_zeros(len(x) * self.places, x.shape[2])
        found[self._packed] = x.flatten(0, 1).index_select(0, self._padded)
        return found.view(len(x), self.places, -1)

    @property
    def _padded(self):
        return self._row * self[2] + self._column

    def unpack(self, x):
        """x [S, P, c] -> [S, N, c], zeros where there is no token."""
        found = x.new_zeros(len(x) * self[1] * self[2], x.shape[2])
        found[self._padded] = x.flatten(0, 1).index_select(0, self._packed)
        return found.view(len(x), self[1] * self[2], -1)

    def rows(self, ids, first):
        """first [S] + ids [S, B, T] of the tokens, [S P]; `first` where there is none."""
        found = first.repeat_interleave(self.places)
        found[self._packed] = (ids + first[:, None, None]).flatten()[self._padded]
        return found
