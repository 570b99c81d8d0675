"""Blocks of fp32 numbers in a processor's first caches: read, written, transposed, multiplied.

Addresses are whole numbers; *_row says how many numbers lie between neighbouring rows.
"""

import numba
import numpy as np

from masklab.kernels.vectors import (
    LANES,
    add_product,
    filled,
    load,
    load_low,
    number,
    number_low,
    put,
    put_low,
    store,
    store_low,
    transpose,
)

compiled = numba.njit(error_model="numpy", nogil=True)
ZERO = np.float32(0)


def wide(length: int) -> int:
    """`length` up to the next multiple of LANES."""
    return -(-length // LANES) * LANES


wide_of = numba.njit(wide, inline="always")


@compiled
def product(a, a_row, a_column, b, b_row, c, c_row, rows, columns, depth):
    """Write the product of a [rows, depth] and b [depth, columns], columns being a multiple of LANES, to c.

    a_column: how many numbers lie between neighbours in a row of a. Blocks of c have enough sums for a processor to be
    busy while it waits for one; where rows are left, the last block begins early and makes some once more.
    """
    for j in range(0, columns, 2 * LANES):
        i, broad = 0, columns - j > LANES
        block = 4 if broad or rows < 8 else 8
        while i < rows:
            at, of, to = a + 4 * i * a_row, b + 4 * j, c + 4 * (i * c_row + j)
            if block == 8:
                _eight_rows(at, a_row, a_column, of, b_row, to, c_row, depth)
            elif broad:
                _four_broad_rows(at, a_row, a_column, of, b_row, to, c_row, depth, rows - 1)
            else:
                _four_rows(at, a_row, a_column, of, b_row, to, c_row, depth, rows - 1)
            i += block
            if i < rows and i + block > rows:
                i = rows - block


@compiled
def _four_broad_rows(a, a_row, a_column, b, b_row, c, c_row, depth, last):
    """Rows 0 to 3 of 2 LANES columns; those behind the `last` are that one."""
    s, t, u, v = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
    w, x, y, z = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
    one, two, three = min(1, last), min(2, last), min(3, last)
    a1, a2, a3 = one * a_row, two * a_row, three * a_row
    for p in range(depth):
        left, right, at = load(b, p * b_row), load(b, p * b_row + LANES), p * a_column
        n0, n1, n2, n3 = number(a, at), number(a, at + a1), number(a, at + a2), number(a, at + a3)
        s, w = add_product(s, n0, left), add_product(w, n0, right)
        t, x = add_product(t, n1, left), add_product(x, n1, right)
        u, y = add_product(u, n2, left), add_product(y, n2, right)
        v, z = add_product(v, n3, left), add_product(z, n3, right)
    _put_four(s, t, u, v, c, one * c_row, two * c_row, three * c_row)
    _put_four(w, x, y, z, c + 4 * LANES, one * c_row, two * c_row, three * c_row)


@compiled
def _four_rows(a, a_row, a_column, b, b_row, c, c_row, depth, last):
    """The same of LANES columns."""
    s, t, u, v = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
    one, two, three = min(1, last), min(2, last), min(3, last)
    a1, a2, a3 = one * a_row, two * a_row, three * a_row
    for p in range(depth):
        own, at = load(b, p * b_row), p * a_column
        s, t = add_product(s, number(a, at), own), add_product(t, number(a, at + a1), own)
        u, v = add_product(u, number(a, at + a2), own), add_product(v, number(a, at + a3), own)
    _put_four(s, t, u, v, c, one * c_row, two * c_row, three * c_row)


@compiled
def _eight_rows(a, a_row, a_column, b, b_row, c, c_row, depth):
    """Rows 0 to 7 of LANES columns."""
    s, t, u, v = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
    w, x, y, z = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
    lower = a + 16 * a_row
    for p in range(depth):
        own, at = load(b, p * b_row), p * a_column
        s, t = add_product(s, number(a, at), own), add_product(t, number(a, at + a_row), own)
        u, v = add_product(u, number(a, at + 2 * a_row), own), add_product(v, number(a, at + 3 * a_row), own)
        w, x = add_product(w, number(lower, at), own), add_product(x, number(lower, at + a_row), own)
        y, z = add_product(y, number(lower, at + 2 * a_row), own), add_product(z, number(lower, at + 3 * a_row), own)
    _put_four(s, t, u, v, c, c_row, 2 * c_row, 3 * c_row)
    _put_four(w, x, y, z, c + 16 * c_row, c_row, 2 * c_row, 3 * c_row)


@compiled
def _put_four(s, t, u, v, c, one, two, three):
    store(c, 0, s)
    store(c, one, t)
    store(c, two, u)
    store(c, three, v)


@compiled
def read(source, row, low, target, rows, width):
    """Copy `rows` x `width` numbers, fp32 or bf16 (`low`), whose rows lie `row` numbers apart, to one fp32 block, whose
    rows end with zeros up to a multiple of LANES."""
    high, even = wide_of(width), width - width % LANES
    for i in range(rows):
        for j in range(0, even, LANES):
            value = load_low(source, i * row + j) if low else load(source, i * row + j)
            store(target, i * high + j, value)
        if even < width:
            store(target, i * high + even, filled(ZERO))
            for j in range(even, width):
                value = number_low(source, i * row + j) if low else number(source, i * row + j)
                put(target, i * high + j, value)


@compiled
def write(source, low, target, row, rows, width):
    """The other way round."""
    high, even = wide_of(width), width - width % LANES
    for i in range(rows):
        for j in range(0, even, LANES):
            value = load(source, i * high + j)
            if low:
                store_low(target, i * row + j, value)
            else:
                store(target, i * row + j, value)
        for j in range(even, width):
            if low:
                put_low(target, i * row + j, number(source, i * high + j))
            else:
                put(target, i * row + j, number(source, i * high + j))


@compiled
def turned(source, target, rows, high_width):
    """The transpose [high_width, rows'] of a block [rows', high_width] that is given zeros behind `rows`."""
    high = wide_of(rows)
    for i in range(rows, high):
        for j in range(0, high_width, LANES):
            store(source, i * high_width + j, filled(ZERO))
    for i in range(0, high, LANES):
        for j in range(0, high_width, LANES):
            transpose(source + 4 * (i * high_width + j), high_width, target + 4 * (j * high + i), high)
