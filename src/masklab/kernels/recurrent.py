"""The steps of LSTMs that read each row of tokens ahead and behind, between their products with the tokens.

S copies, B rows each, P places of packed tokens in a copy, h width of a direction; a gate's numbers lie side by side,
gates in torch's order: input, forget, cell, output

A tile is GROUP rows of a copy in one direction, which take a step together, so that a matrix that is read serves all of
them. Those that have ended wait. No number of a row depends on the others.
"""

import numpy as np

from masklab.kernels.kernel import TILES, kernel, launch, next_tile, number_of, whole
from masklab.kernels.panels import compiled, product, read, turned, wide_of, write
from masklab.kernels.tiles import blank_
from masklab.kernels.vectors import (
    LANES,
    add,
    add_product,
    at_least,
    divide,
    exp,
    filled,
    load,
    multiply,
    store,
    subtract,
)

GROUP = 8
ZERO, ONE, TWO, LOWEST = np.float32(0), np.float32(1), np.float32(2), np.float32(-80)


@compiled
def _sigmoid(x):
    return divide(filled(ONE), add(exp(subtract(ZERO, at_least(x, LOWEST))), ONE))


@compiled
def _tanh(x):
    return subtract(multiply(_sigmoid(multiply(x, TWO)), TWO), ONE)


@compiled
def _begin(weights, width, laid, counts, first, last, room, numbers):
    """Lay out weights [4 h, h], `high` rows for each gate, make `numbers` numbers of `room` zeros, and return how many
    steps the longest of some rows has."""
    high, longest = wide_of(width), 0
    for k in range(4):
        read(weights + 4 * k * width * width, width, False, laid + 4 * k * high * high, width, width)
    for j in range(0, numbers, LANES):
        store(room, j, filled(ZERO))
    for row in range(first, last):
        longest = max(longest, number_of(counts, row))
    return longest


@compiled
def _place(start, count, t, behind):
    """Where the token of step t of a row lies."""
    return start + (count - 1 - t if behind else t)


@kernel
def forward(p):
    """What `lstm` asks for."""
    size, groups, width = whole(p, 2), whole(p, 3), whole(p, 4)
    starts, counts = whole(p, 5), whole(p, 6)
    hidden, before, cells, squashed = whole(p, 11), whole(p, 12), whole(p, 13), whole(p, 14)
    high = wide_of(width)
    room = np.zeros(high * (8 * high + 7 * GROUP + 4), np.float32)
    turned_weights = room.ctypes.data  # [h, 4 high]
    laid = turned_weights + 16 * high * high  # [4 high, high]
    sums = laid + 16 * high * high  # [GROUP, 4 high]
    own = sums + 16 * GROUP * high  # [4, high]
    states = own + 16 * high  # [GROUP, high]
    memory = states + 4 * GROUP * high
    tops = memory + 4 * GROUP * high
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        behind, copy, group = tile % 2, tile // 2 // groups, tile // 2 % groups
        gates, weights, step = whole(p, 7 + behind), whole(p, 9 + behind), whole(p, 15 + behind)
        first, last = copy * size + group * GROUP, copy * size + min(size, (group + 1) * GROUP)
        longest = _begin(weights + 4 * copy * step, width, laid, counts, first, last, states, 2 * GROUP * high)
        turned(laid, turned_weights, 4 * high, high)
        for t in range(longest):
            product(states, high, 1, turned_weights, 4 * high, sums, 4 * high, last - first, 4 * high, width)
            for row in range(first, last):
                count = number_of(counts, row)
                if t >= count:
                    continue
                place, at = _place(number_of(starts, row), count, t, behind), 4 * (row - first) * high
                to, from_sums = 4 * (2 * place + behind) * width, sums + 4 * at
                read(gates + 16 * place * width, width, False, own, 4, width)
                write(states + at, False, before + to, width, 1, width)
                for j in range(0, high, LANES):
                    into = _sigmoid(add(load(own, j), load(from_sums, j)))
                    kept = _sigmoid(add(load(own, high + j), load(from_sums, high + j)))
                    new = _tanh(add(load(own, 2 * high + j), load(from_sums, 2 * high + j)))
                    shown = _sigmoid(add(load(own, 3 * high + j), load(from_sums, 3 * high + j)))
                    cell = add_product(multiply(into, new), kept, load(memory + at, j))
                    top = _tanh(cell)
                    store(own, j, into)
                    store(own, high + j, kept)
                    store(own, 2 * high + j, new)
                    store(own, 3 * high + j, shown)
                    store(memory + at, j, cell)
                    store(tops + at, j, top)
                    store(states + at, j, multiply(shown, top))
                write(own, False, gates + 16 * place * width, width, 4, width)
                write(memory + at, False, cells + to, width, 1, width)
                write(tops + at, False, squashed + to, width, 1, width)
                write(states + at, False, hidden + to, width, 1, width)
    room[0] = ZERO  # numba lets go of an array after its last use, not of its address


@kernel
def backward(p):
    """What `lstm_backward` asks for."""
    size, groups, width = whole(p, 2), whole(p, 3), whole(p, 4)
    starts, counts = whole(p, 5), whole(p, 6)
    given, cells, squashed = whole(p, 11), whole(p, 12), whole(p, 13)
    high = wide_of(width)
    room = np.zeros(high * (4 * high + 6 * GROUP + 7), np.float32)
    laid = room.ctypes.data  # weights [4 high, high]
    states = laid + 16 * high * high  # gradients of states and cells, [GROUP, high]
    memory = states + 4 * GROUP * high
    slopes = memory + 4 * GROUP * high  # [GROUP, 4 high]
    own = slopes + 16 * GROUP * high  # [4, high]
    g = own + 16 * high
    last_cell, top = g + 4 * high, g + 8 * high
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        behind, copy, group = tile % 2, tile // 2 // groups, tile // 2 % groups
        gates, weights, step = whole(p, 7 + behind), whole(p, 9 + behind), whole(p, 14 + behind)
        first, last = copy * size + group * GROUP, copy * size + min(size, (group + 1) * GROUP)
        longest = _begin(weights + 4 * copy * step, width, laid, counts, first, last, states, 6 * GROUP * high)
        for t in range(longest - 1, -1, -1):
            for row in range(first, last):
                count = number_of(counts, row)
                if t >= count:
                    continue
                place, at = _place(number_of(starts, row), count, t, behind), 4 * (row - first) * high
                earlier = place + 1 if behind else place - 1
                of, own_slopes = 4 * (2 * place + behind) * width, slopes + 4 * at
                read(gates + 16 * place * width, width, False, own, 4, width)
                read(given + of, width, False, g, 1, width)
                read(squashed + of, width, False, top, 1, width)
                if t:
                    read(cells + 4 * (2 * earlier + behind) * width, width, False, last_cell, 1, width)
                for j in range(0, high, LANES):
                    into, kept = load(own, j), load(own, high + j)
                    new, shown = load(own, 2 * high + j), load(own, 3 * high + j)
                    tanh = load(top, j)
                    dh = add(load(g, j), load(states + at, j))
                    inner = multiply(multiply(dh, shown), subtract(ONE, multiply(tanh, tanh)))
                    dc = add(load(memory + at, j), inner)
                    old = load(last_cell, j) if t else filled(ZERO)
                    store(own_slopes, j, multiply(multiply(dc, new), multiply(into, subtract(ONE, into))))
                    store(own_slopes, high + j, multiply(multiply(dc, old), multiply(kept, subtract(ONE, kept))))
                    store(own_slopes, 2 * high + j, multiply(multiply(dc, into), subtract(ONE, multiply(new, new))))
                    of_shown = multiply(multiply(dh, tanh), multiply(shown, subtract(ONE, shown)))
                    store(own_slopes, 3 * high + j, of_shown)
                    store(memory + at, j, multiply(dc, kept))
                write(own_slopes, False, gates + 16 * place * width, width, 4, width)
            product(slopes, 4 * high, 1, laid, high, states, high, last - first, high, 4 * high)
    room[0] = ZERO


def lstm(gates, weights, ragged):
    """Hidden states [S, P, 2 h], those of the step before each, and what `lstm_backward` is given.

    gates: ahead and behind, [S, P, 4 h] each, what tokens and biases add to the gates, which become the gates; weights:
    [S, 4 h, h] each, of the hidden states; ragged: the `Ragged` of the rows.
    """
    copies, places, width = len(gates[0]), gates[0].shape[1], gates[0].shape[2] // 4
    hidden, before, cells, squashed = (gates[0].new_empty(copies, places, 2 * width) for _ in range(4))
    tiles, *shape = _shape(ragged, width)
    made = (each.data_ptr() for each in (hidden, before, cells, squashed))
    launch(forward, tiles, *shape, *_addresses(gates, weights), *made, *(each.stride(0) for each in weights))
    for each in (hidden, before):
        blank_(each, ragged.ends)
    return hidden, before, (gates, weights, cells, squashed)


def lstm_backward(g, saved, ragged):
    """Gradients of what `lstm` was given as gates, [S, P, 4 h] each, in the place of these, given that of the hidden
    states."""
    gates, weights, cells, squashed = saved
    tiles, *shape = _shape(ragged, gates[0].shape[2] // 4)
    g = g.contiguous()
    given = (each.data_ptr() for each in (g, cells, squashed))
    launch(backward, tiles, *shape, *_addresses(gates, weights), *given, *(each.stride(0) for each in weights))
    for each in gates:
        blank_(each, ragged.ends)
    return gates


def _shape(ragged, width):
    copies, size, _ = ragged
    groups = -(-size // GROUP)
    return 2 * copies * groups, size, groups, width, ragged.starts.data_ptr(), ragged.lengths.data_ptr()


def _addresses(gates, weights):
    return *(each.data_ptr() for each in gates), *(each.data_ptr() for each in weights)
