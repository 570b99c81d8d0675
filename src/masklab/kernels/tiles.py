"""Rows of hidden states in tiles of TILE, each of one copy: which of them count, and sums over them.

S copies, N rows of each, W width; counts [S]: how many first rows of each copy count

What is summed over rows is summed within tiles first and then over these, in their order: the same sums whatever the
number of threads or of copies.
"""

import functools

import numba
import numpy as np
import torch

from masklab.kernels.kernel import FAST, TILES, kernel, launch, next_tile, whole
from masklab.kernels.scalars import array_at, single

TILE = 32
compiled = numba.njit(error_model="numpy", fastmath=FAST, nogil=True)
LOW, WHOLE, COUNT = np.uint16(0), np.float32(0), np.int64(0)


@compiled
def bounds(tile, per_copy, rows, counts):
    """(copy, first row, end) of a tile among the rows of all copies."""
    copy = tile // per_copy
    start = (tile - copy * per_copy) * TILE
    end = min(counts[copy, 0], start + TILE)
    return copy, copy * rows + start, copy * rows + end


@compiled
def blank_tile(tile, per_copy, rows, counts, address, row):
    """Write zeros to the rows of a tile that do not count; row: bytes of one."""
    copy = tile // per_copy
    start = (tile - copy * per_copy) * TILE
    first = copy * rows + max(counts[copy, 0], start)
    for r in range(first, copy * rows + min(rows, start + TILE)):
        blank = array_at(address + r * row, LOW, 1, row // 2)[0]
        blank[:] = LOW


@kernel
def sum_tiles(p):
    """Write what parts of tiles [S, tiles, K W] come to, to K addresses: one tile of work for each copy."""
    tiles, kinds, width = whole(p, 2), whole(p, 3), whole(p, 4)
    parts = array_at(whole(p, 5), WHOLE, whole(p, TILES) * tiles, kinds * width)
    while True:
        copy = next_tile(p)
        if copy >= whole(p, TILES):
            break
        for kind in range(kinds):
            at, step = whole(p, 6 + 2 * kind), whole(p, 7 + 2 * kind)
            if not at:
                continue
            into = array_at(at + 4 * copy * step, WHOLE, 1, width)[0]
            into[:] = single(0)
            for tile in range(copy * tiles, (copy + 1) * tiles):
                part = parts[tile, kind * width : (kind + 1) * width]
                for c in range(width):
                    into[c] += part[c]


@kernel
def blank(p):
    """Write zeros to the rows of each copy that do not count."""
    copies, rows, row, counts = whole(p, 2), whole(p, 3), whole(p, 4), array_at(whole(p, 5), COUNT, whole(p, 2), 1)
    while True:
        copy = next_tile(p)
        if copy >= copies:
            break
        for r in range(copy * rows + counts[copy, 0], (copy + 1) * rows):
            own = array_at(whole(p, 6) + r * row, LOW, 1, row // 2)[0]
            own[:] = LOW


def sum_to(sums, copies: int, into) -> None:
    targets = [part for each in into for part in row_of(each)]
    tiles, width = len(sums) // copies, sums.shape[1] // len(into)
    launch(sum_tiles, copies, tiles, len(into), width, sums.data_ptr(), *targets)


def shape_of(x, counts):
    """Tiles of work, and what kernels are told of x [S, N, W]."""
    copies, rows, width = x.shape
    per_copy = -(-rows // TILE)
    return copies * per_copy, (copies, rows, width, per_copy, counted(copies, rows, counts).data_ptr())


def blank_(x, counts) -> None:
    """Write zeros to the rows of x [S, N, W], fp32 or bf16, behind the `counts` of each copy."""
    copies, rows, width = x.shape
    ends = counted(copies, rows, counts)
    launch(blank, copies, copies, rows, width * x.element_size(), ends.data_ptr(), x.data_ptr())


def counted(copies: int, rows: int, counts=None) -> torch.Tensor:
    """How many first rows of each copy count, [S]; counts None: all."""
    return _every(copies, rows) if counts is None else _these(tuple(counts))


# Those of a few updates are kept: thousands, each among the large tensors of its update, would break up free memory.
@functools.lru_cache(64)
def _every(copies: int, rows: int) -> torch.Tensor:
    return torch.full((copies,), rows, device="cpu")


@functools.lru_cache(64)
def _these(counts) -> torch.Tensor:
    return torch.tensor(counts, device="cpu")


def address_of(x) -> int:
    return 0 if x is None else x.data_ptr()


def row_of(x) -> tuple[int, int]:
    """Address of the first row of x [S, W], and how far apart two are."""
    return (0, 0) if x is None else (x.data_ptr(), x.stride(0))
