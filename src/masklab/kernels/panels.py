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

    a_column: how many numbers lie between neighbours in a row of a.
    """
    for j in range(0, columns, 2 * LANES):
        both = columns - j > LANES
        second = j + LANES if both else j
        i = 0
        while i + 4 <= rows:
            s, t, u, v = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
            w, x, y, z = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
            at, at1, at2, at3 = i * a_row, (i + 1) * a_row, (i + 2) * a_row, (i + 3) * a_row
            if both:
                for p in range(depth):
                    left, right = load(b, p * b_row + j), load(b, p * b_row + second)
                    n0, n1 = number(a, at + p * a_column), number(a, at1 + p * a_column)
                    n2, n3 = number(a, at2 + p * a_column), number(a, at3 + p * a_column)
                    s, w = add_product(s, n0, left), add_product(w, n0, right)
                    t, x = add_product(t, n1, left), add_product(x, n1, right)
                    u, y = add_product(u, n2, left), add_product(y, n2, right)
                    v, z = add_product(v, n3, left), add_product(z, n3, right)
                store(c, i * c_row + second, w)
                store(c, (i + 1) * c_row + second, x)
                store(c, (i + 2) * c_row + second, y)
                store(c, (i + 3) * c_row + second, z)
            else:
                for p in range(depth):
                    left = load(b, p * b_row + j)
                    s = add_product(s, number(a, at + p * a_column), left)
                    t = add_product(t, number(a, at1 + p * a_column), left)
                    u = add_product(u, number(a, at2 + p * a_column), left)
                    v = add_product(v, number(a, at3 + p * a_column), left)
            store(c, i * c_row + j, s)
            store(c, (i + 1) * c_row + j, t)
            store(c, (i + 2) * c_row + j, u)
            store(c, (i + 3) * c_row + j, v)
            i += 4
        while i < rows:
            s, w = filled(ZERO), filled(ZERO)
            for p in range(depth):
                n0 = number(a, i * a_row + p * a_column)
                s = add_product(s, n0, load(b, p * b_row + j))
                w = add_product(w, n0, load(b, p * b_row + second))
            store(c, i * c_row + j, s)
            store(c, i * c_row + second, w)
            i += 1


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
