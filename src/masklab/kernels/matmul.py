"""Products of a model's states with its weights, and their gradients, in fp32 or of bf16 factors.

S copies, N rows, K inner width, M outer width; counts [S]: how many first rows of each copy count

Every sum is formed in fp32, always in one order, whatever the number of threads or of copies: that of its terms, in
parts that are added where there are many.
"""

import functools
import math

import numba
import numpy as np
import torch

from masklab.kernels.kernel import TILES, kernel, launch, next_tile, number_of, whole
from masklab.kernels.panels import read, write
from masklab.kernels.processor import faster_compiled
from masklab.kernels.registers import COLUMNS, ROWS, rows_low, rows_whole
from masklab.kernels.vectors import (
    LANES,
    add,
    filled,
    interleaved,
    load,
    load_low,
    number,
    number_low,
    put,
    put_low,
    put_word,
    store,
    store_low,
    transpose,
    word,
    word_of,
)

compiled = numba.njit(error_model="numpy", nogil=True, fastmath={"contract"})  # sums keep their order
ZERO = np.float32(0)
DEPTH = 1024  # steps of which a panel of columns is laid out at once
HELD = 2**19  # bytes of x that all columns are made from before the next: half a second cache
TOKENS = 256  # steps of a gradient's sums at once
ENOUGH = 4  # parts of a product: threads share them out
FAR = 2**11  # bytes between rows, or a multiple, from which on a first cache has no room for many of them
WIDE = 4 * COLUMNS  # bytes from step to step in a panel


@compiled
def rows_of(low, a, a_row, a_step, b, b_step, depth, c, c_row, rows, start, more):
    """Blocks of `registers`."""
    if low:
        rows_low(a, a_row, a_step, b, b_step, depth, c, c_row, rows, start, more)
    else:
        rows_whole(a, a_row, a_step, b, b_step, depth, c, c_row, rows, start, more)


@compiled
def turned_panel(b, row, columns, steps, into):
    """Lay out COLUMNS of b' [steps, COLUMNS]: words of b [columns, steps], zeros beyond `columns`."""
    even = steps - steps % LANES
    for j in range(0, COLUMNS, LANES):
        if j + LANES <= columns:
            for k in range(0, even, LANES):
                transpose(b + j * row + 4 * k, row // 4, into + WIDE * k + 4 * j, COLUMNS)
            for k in range(even, steps):
                for i in range(j, j + LANES):
                    put_word(into, COLUMNS * k + i, word(b + i * row, k))
        else:
            for k in range(steps):
                for i in range(j, j + LANES):
                    put_word(into, COLUMNS * k + i, word(b + i * row, k) if i < columns else 0)


@compiled
def panel(b, row, columns, depth, low, into):
    """Lay out COLUMNS of b [depth, columns]: steps [COLUMNS] one after the other, zeros beyond `columns`."""
    if low:
        for k in range(0, depth, 2):
            above, below = b + k * row, b + (k + 1) * row
            to = into + WIDE * (k // 2)
            if columns == COLUMNS and k + 1 < depth:
                interleaved(above, below, to)
                interleaved(above + 2 * LANES, below + 2 * LANES, to + 4 * LANES)
            else:
                for i in range(COLUMNS):
                    put_word(to, i, word_of(above, below, i, k + 1 < depth) if i < columns else 0)
    else:
        for k in range(depth):
            to = into + WIDE * k
            if columns == COLUMNS:
                store(to, 0, load(b + k * row, 0))
                store(to, LANES, load(b + k * row, LANES))
            else:
                for i in range(COLUMNS):
                    put(to, i, number(b + k * row, i) if i < columns else ZERO)


@compiled
def _times(p, low):
    """What `times` asks for."""
    rows, counts, depth, columns = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5)
    x, x_copy, x_row = whole(p, 6), whole(p, 7), whole(p, 8)
    b, b_copy, b_row, turn = whole(p, 9), whole(p, 10), whole(p, 11), whole(p, 12)
    y, y_copy, y_row, y_low = whole(p, 13), whole(p, 14), whole(p, 15), whole(p, 16)
    bias, bias_copy, block, more = whole(p, 17), whole(p, 18), whole(p, 19), whole(p, 20)
    size, y_size, pairs = 2 if low else 4, 2 if y_low else 4, 2 if low else 1
    panels, blocks = -(-columns // COLUMNS), -(-rows // block)
    steps = (depth + pairs - 1) // pairs
    room = np.empty(COLUMNS * (min(steps, DEPTH) + block + 2), np.float32)
    room[: 2 * COLUMNS] = ZERO
    zeros = room.ctypes.data
    own_bias, laid = zeros + WIDE, zeros + 2 * WIDE
    sums = laid + WIDE * min(steps, DEPTH)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, column = tile // (panels * blocks), tile % panels * COLUMNS
        start = tile // panels % blocks * block
        count, stop = min(number_of(counts, copy), start + block) - start, min(rows, start + block) - start
        width = min(COLUMNS, columns - column)
        to = y + copy * y_copy + start * y_row + y_size * column
        straight = width == COLUMNS and not y_low
        c, c_row = (to, y_row) if straight else (sums, WIDE)
        if bias:
            read(bias + copy * bias_copy + 4 * column, 0, False, own_bias, 1, width)
        if count > 0:
            for k in range(0, steps, DEPTH):
                own = min(DEPTH, steps - k)
                if turn:
                    turned_panel(b + copy * b_copy + column * b_row + 4 * k, b_row, width, own, laid)
                else:
                    at = b + copy * b_copy + pairs * k * b_row + size * column
                    panel(at, b_row, width, min(depth - pairs * k, pairs * own), low, laid)
                of, begin = x + copy * x_copy + start * x_row + 4 * k, zeros if k else own_bias
                upon = 1 if k or (straight and more) else 0
                if straight or steps > DEPTH:
                    rows_of(low, of, x_row, 4, laid, WIDE, own, c, c_row, count, begin, upon)
                else:
                    for i in range(0, count, ROWS):
                        few_rows, at = min(ROWS, count - i), to + i * y_row
                        rows_of(low, of + i * x_row, x_row, 4, laid, WIDE, own, sums, WIDE, few_rows, begin, 0)
                        _finish(sums, few_rows, width, at, y_row, y_low, more)
            if not straight and steps > DEPTH:
                _finish(sums, count, width, to, y_row, y_low, more)
        for i in range(stop if more else max(count, 0), stop):
            for j in range(width):
                if y_low:
                    put_low(to + i * y_row, j, ZERO)
                else:
                    put(to + i * y_row, j, ZERO)
    room[0] = ZERO  # numba lets go of an array after its last use, not of its address


@compiled
def _finish(sums, rows, width, to, row, low, more):
    """Write sums [rows, COLUMNS], or add them (`more`)."""
    for i in range(rows):
        of, into = sums + WIDE * i, to + i * row
        if width == COLUMNS:
            for j in range(0, COLUMNS, LANES):
                value = load(of, j)
                if more:
                    value = add(load_low(into, j) if low else load(into, j), value)
                if low:
                    store_low(into, j, value)
                else:
                    store(into, j, value)
        else:
            for j in range(width):
                value = number(of, j)
                if more:
                    value += number_low(into, j) if low else number(into, j)
                if low:
                    put_low(into, j, value)
                else:
                    put(into, j, value)


@compiled
def _gradient(p, low):
    """What `gradient` asks for."""
    counts, depth, columns = whole(p, 2), whole(p, 3), whole(p, 4)  # of the gradient: M, K
    g, g_copy, g_row = whole(p, 5), whole(p, 6), whole(p, 7)
    x, x_copy, x_row = whole(p, 8), whole(p, 9), whole(p, 10)
    y, y_copy, y_row, block = whole(p, 11), whole(p, 12), whole(p, 13), whole(p, 14)
    bias, bias_copy, wide, more = whole(p, 15), whole(p, 16), whole(p, 17), whole(p, 18)
    size, pairs, chunk = 2 if low else 4, 2 if low else 1, TOKENS
    blocks, parts = -(-depth // block), -(-columns // wide)
    far = x_row % FAR == 0
    room = np.empty(chunk * (COLUMNS + block) + COLUMNS * (block + 1), np.float32)
    room[:COLUMNS] = ZERO
    zeros = room.ctypes.data
    laid = zeros + WIDE
    own_g, sums = laid + WIDE * chunk, laid + WIDE * chunk + 4 * chunk * block
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start = tile // (blocks * parts), tile // parts % blocks * block
        from_column = tile % parts * wide
        high, count = min(block, depth - start), number_of(counts, copy)
        to = y + copy * y_copy + start * y_row
        if bias and from_column == 0:
            at = g + copy * g_copy + size * start
            _summed(at, g_row, low, count, high, bias + copy * bias_copy + 4 * start, laid)
        for k in range(0, max(count, 1), pairs * chunk):
            many_rows = min(pairs * chunk, count - k)
            steps = (many_rows + pairs - 1) // pairs
            at = g + copy * g_copy + k * g_row + size * start
            if low:
                _columns(at, g_row, high, many_rows, own_g, 4 * block)
                a, a_step = own_g, 4 * block
            else:
                a, a_step = at, g_row
            for column in range(from_column, min(columns, from_column + wide), COLUMNS):
                width = min(COLUMNS, columns - column)
                of = x + copy * x_copy + k * x_row + size * column
                if low or width < COLUMNS or far:
                    panel(of, x_row, width, many_rows, low, laid)
                    b, b_step = laid, WIDE
                else:
                    b, b_step = of, x_row
                if width == COLUMNS:
                    rows_of(low, a, 4, a_step, b, b_step, steps, to + 4 * column, y_row, high, zeros, k + more)
                else:
                    if k + more:
                        for i in range(high):
                            for j in range(width):
                                put(sums, COLUMNS * i + j, number(to + i * y_row, column + j))
                    rows_of(low, a, 4, a_step, b, b_step, steps, sums, WIDE, high, zeros, k + more)
                    _finish(sums, high, width, to + 4 * column, y_row, False, 0)
    room[0] = ZERO


@compiled
def _summed(g, row, low, rows, width, into, spare):
    """Write the sums of columns of g [rows, width]; all by vectors, which are sums in the order of rows.

    spare: room for LANES numbers.
    """
    for j in range(0, width - width % (4 * LANES), 4 * LANES):
        p, q, r, s = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
        for k in range(rows):
            of = g + k * row
            if low:
                p, q = add(p, load_low(of, j)), add(q, load_low(of, j + LANES))
                r, s = add(r, load_low(of, j + 2 * LANES)), add(s, load_low(of, j + 3 * LANES))
            else:
                p, q = add(p, load(of, j)), add(q, load(of, j + LANES))
                r, s = add(r, load(of, j + 2 * LANES)), add(s, load(of, j + 3 * LANES))
        store(into, j, p)
        store(into, j + LANES, q)
        store(into, j + 2 * LANES, r)
        store(into, j + 3 * LANES, s)
    for j in range(width - width % (4 * LANES), width, LANES):
        p, at = filled(ZERO), min(j, width - LANES)  # once more those of columns before, where few are left
        for k in range(rows):
            if width < LANES:
                read(g + k * row, 0, low, spare, 1, width)
                p = add(p, load(spare, 0))
            else:
                p = add(p, load_low(g + k * row, at) if low else load(g + k * row, at))
        if width < LANES:
            store(spare, 0, p)
            write(spare, False, into, 0, 1, width)
        else:
            store(into, at, p)


@compiled
def _column_sums(p):
    """What `column_sums` asks for."""
    counts, columns, wide = whole(p, 2), whole(p, 3), whole(p, 4)
    g, g_copy, g_row, into, into_copy = whole(p, 5), whole(p, 6), whole(p, 7), whole(p, 8), whole(p, 9)
    parts = -(-columns // wide)
    room = np.empty(LANES, np.float32)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start = tile // parts, 4 * (tile % parts * wide)
        width = min(wide, columns - tile % parts * wide)
        of, to = g + copy * g_copy + start, into + copy * into_copy + start
        _summed(of, g_row, False, number_of(counts, copy), width, to, room.ctypes.data)
    room[0] = ZERO


@compiled
def _columns(g, row, width, rows, into, step):
    """Lay out g [rows, width], bf16: pairs of rows one after the other, zeros behind an odd one."""
    even = width - width % LANES
    for k in range(0, rows, 2):
        above, below, to = g + k * row, g + (k + 1) * row, into + step * (k // 2)
        if k + 1 < rows:
            for j in range(0, even, LANES):
                interleaved(above + 2 * j, below + 2 * j, to + 4 * j)
        for j in range(even if k + 1 < rows else 0, width):
            put_word(to, j, word_of(above, below, j, k + 1 < rows))


@kernel
def columns_kernel(p):
    _column_sums(p)


TIMES, GRADIENT = {}, {}  # by the kind of the factors' numbers: those that this processor has instructions for

if faster_compiled(torch.float32):

    @kernel
    def times_whole(p):
        _times(p, False)

    @kernel
    def gradient_whole(p):
        _gradient(p, False)

    TIMES[torch.float32], GRADIENT[torch.float32] = times_whole, gradient_whole

if faster_compiled(torch.bfloat16):

    @kernel
    def times_low(p):
        _times(p, True)

    @kernel
    def gradient_low(p):
        _gradient(p, True)

    TIMES[torch.bfloat16], GRADIENT[torch.bfloat16] = times_low, gradient_low


def _multiple(number: float, of: int) -> int:
    return of * math.ceil(number / of)


def times(x, weight, y, counts, turned: bool, bias=None, more: bool = False) -> None:
    """Write x [S, N, K] times weight, [S, M, K] (`turned`) or [S, K, M], and bias [S, M] or None, to y [S, N, M]; rows
    behind `counts` become 0. more: add it, and leave those rows as they are."""
    (copies, rows, columns), depth = y.shape, x.shape[2]
    size = x.element_size()
    if size == 2 and (depth % 2 or (turned and weight.stride(1) % 2)):
        raise ValueError("bf16 numbers are multiplied in pairs: depth, and rows of a turned factor, have to be even")
    of_x, of_weight, of_y, large = x.stride(), weight.stride(), y.stride(), y.element_size()
    panels = -(-columns // COLUMNS)
    held = min(size * depth, 4 * DEPTH) * rows  # bytes of x that a panel is multiplied with
    parts = max(-(-held // HELD), -(-ENOUGH // (copies * panels)))
    block = max(ROWS, _multiple(rows / parts, ROWS))
    tiles = copies * -(-rows // block) * panels
    launch(
        TIMES[x.dtype], tiles, rows, counts.data_ptr(), depth, columns,
        x.data_ptr(), size * of_x[0], size * of_x[1],
        weight.data_ptr(), size * of_weight[0], size * of_weight[1], int(turned),
        y.data_ptr(), large * of_y[0], large * of_y[1], int(large == 2),
        0 if bias is None else bias.data_ptr(), 0 if bias is None else 4 * bias.stride(0), block, int(more),
    )  # fmt: skip


@functools.lru_cache(4096)
def _parts(copies: int, depth: int, columns: int, laid_out: bool) -> tuple[int, int]:
    """Rows and columns of a gradient that are made at once. laid_out: x is laid out anew for each part, which costs
    least where parts are nearly square."""
    high, wide = min(depth, 144), min(columns, 512) if laid_out else columns
    while copies * -(-depth // high) * -(-columns // wide) < ENOUGH and max(high, wide) > COLUMNS:
        high, wide = (high, wide / 2) if wide > high else (high / 2, wide)
        high, wide = math.ceil(high), math.ceil(wide)
    # parts begin at whole vectors, so that every sum over rows of g is one lane of a vector whatever the parts
    return _multiple(depth / -(-depth // high), LANES), _multiple(columns / -(-columns // wide), COLUMNS)


def gradient(g, x, into, counts, bias=None, more: bool = False) -> None:
    """Write g' [M, N] x [N, K] of every copy to `into` [S, M, K] (more: add it), and write the sums of g over its
    rows to bias [S, M] or None, fp32; g [S, N, M], x [S, N, K]."""
    copies, depth, columns = into.shape
    size, of_g, of_x, of_into = x.element_size(), g.stride(), x.stride(), into.stride()
    block, wide = _parts(copies, depth, columns, size == 2 or size * of_x[1] % FAR == 0)
    tiles = copies * -(-depth // block) * -(-columns // wide)
    launch(
        GRADIENT[x.dtype], tiles, counts.data_ptr(), depth, columns,
        g.data_ptr(), size * of_g[0], size * of_g[1], x.data_ptr(), size * of_x[0], size * of_x[1],
        into.data_ptr(), 4 * of_into[0], 4 * of_into[1], block,
        0 if bias is None else bias.data_ptr(), 0 if bias is None else 4 * bias.stride(0), wide, int(more),
    )  # fmt: skip


def column_sums(g, into, counts) -> None:
    """Write the sums over the rows of g [S, N, M], fp32, to `into` [S, M]."""
    copies, _, columns = g.shape
    wide = 4 * LANES
    where = g.data_ptr(), 4 * g.stride(0), 4 * g.stride(1), into.data_ptr(), 4 * into.stride(0)
    launch(columns_kernel, copies * -(-columns // wide), counts.data_ptr(), columns, wide, *where)
