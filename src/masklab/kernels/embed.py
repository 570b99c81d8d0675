"""Token embeddings with those of positions added, and their gradients, for several copies at once.

S copies, N rows of each, W width, T positions; rows [S N]: which row of all copies' tables each one is; columns [S N]:
which position it stands at, None where nothing is added for positions

Gradients are added in the order of rows, whatever the number of threads or of copies.
"""

import numba
import torch

from masklab.kernels.kernel import TILES, kernel, launch, next_tile, number_of, whole
from masklab.kernels.panels import ZERO, write
from masklab.kernels.vectors import LANES, add, load, number, put, store

TILE = 64  # rows
WIDE = 4 * LANES  # columns of a gradient that one thread adds to
compiled = numba.njit(error_model="numpy", nogil=True, fastmath={"contract"})


@compiled
def _add_row(into, row, start, stop):
    """Add the numbers start .. stop - 1 of a row."""
    even = stop - (stop - start) % LANES
    for c in range(start, even, LANES):
        store(into, c, add(load(into, c), load(row, c)))
    for c in range(even, stop):
        put(into, c, number(into, c) + number(row, c))


@kernel
def forward(p):
    """What `embed` asks for."""
    count, width, table, rows = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5)
    places, places_copy, columns, x = whole(p, 6), whole(p, 7), whole(p, 8), whole(p, 9)
    per_copy = -(-count // TILE)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start = tile // per_copy, tile % per_copy * TILE
        for r in range(copy * count + start, copy * count + min(count, start + TILE)):
            own, to = table + 4 * width * number_of(rows, r), x + 4 * width * r
            write(own, False, to, 0, 1, width)
            if places:
                _add_row(to, places + copy * places_copy + 4 * width * number_of(columns, r), 0, width)


@kernel
def backward(p):
    """What `embed_backward` asks for."""
    count, width, table, rows = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5)
    places, places_copy, columns, g, positions = whole(p, 6), whole(p, 7), whole(p, 8), whole(p, 9), whole(p, 10)
    parts = -(-width // WIDE)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start = tile // parts, tile % parts * WIDE
        stop = min(width, start + WIDE)
        own_places = places + copy * places_copy
        if places:
            for position in range(positions):
                row = own_places + 4 * width * position
                for c in range(start, stop):
                    put(row, c, ZERO)
        for r in range(copy * count, (copy + 1) * count):
            own = g + 4 * width * r
            _add_row(table + 4 * width * number_of(rows, r), own, start, stop)
            if places:
                _add_row(own_places + 4 * width * number_of(columns, r), own, start, stop)


def embed(tables, rows, places, columns, copies: int) -> torch.Tensor:
    """x [S, N, W]: tables [R, W] at rows, and places [S, T, W] at columns, or None."""
    count = len(rows) // copies
    x = tables.new_empty(copies, count, tables.shape[1])
    launch(forward, copies * -(-count // TILE), count, *_arguments(tables, rows, places, columns), x.data_ptr())
    return x


def embed_backward(g, tables, rows, places, columns) -> None:
    """Add g [S, N, W] to tables [R, W] at rows; write its sums at each column to places [S, T, W], where they are."""
    copies, count, width = g.shape
    positions = 0 if places is None else places.shape[1]
    where = _arguments(tables, rows, places, columns)
    launch(backward, copies * -(-width // WIDE), count, *where, g.data_ptr(), positions)


def _arguments(tables, rows, places, columns):
    added = (0, 0) if places is None else (places.data_ptr(), 4 * places.stride(0))
    return tables.shape[1], tables.data_ptr(), rows.data_ptr(), *added, 0 if columns is None else columns.data_ptr()
