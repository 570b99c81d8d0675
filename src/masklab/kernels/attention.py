"""Self-attention between its projections, a row and a head at a time: scores, softmax, dropout, context.

S copies, B rows, M queries per row, T length, n heads, d width of a head, a multiple of LANES

Queries, keys, values, context and their gradients are read and written where the projections have them; nothing is
laid out head by head, and what comes in between stays in the processor's first caches. The weights before dropout are
kept for the backward pass, [S, n, B, M, T'] with T' the next multiple of LANES; dropout is drawn from the same bits
again. Padding is not looked at: keys behind a row's length have no weight, and a gradient of zero.
"""

from dataclasses import dataclass

import numba
import numpy as np
import torch

from masklab.kernels.launch import TILES, kernel, launch, next_tile, number_of, real, whole
from masklab.kernels.vectors import (
    LANES,
    add,
    add_product,
    exp,
    filled,
    first,
    kept,
    larger,
    largest,
    load,
    load_low,
    multiply,
    number,
    store,
    store_low,
    subtract,
    total,
    transpose,
)

compiled = numba.njit(error_model="numpy", nogil=True)
ZERO, LOW = np.float32(0), np.float32(-1e30)


def wide(length: int) -> int:
    """`length` up to the next multiple of LANES."""
    return -(-length // LANES) * LANES


_wide = numba.njit(wide, inline="always")


@compiled
def product(a, a_row, a_column, b, b_row, c, c_row, rows, columns, depth):
    """Write the product of a [rows, depth] and b [depth, columns], columns being a multiple of LANES, to c.

    a, b, c: addresses; *_row, a_column: how many numbers lie between neighbours.
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
    """Copy `rows` x `width` numbers, fp32 or bf16 (`low`), that lie `row` numbers apart, to one fp32 block."""
    for i in range(rows):
        for j in range(0, width, LANES):
            value = load_low(source, i * row + j) if low else load(source, i * row + j)
            store(target, i * width + j, value)


@compiled
def write(source, low, target, row, rows, filling, width):
    """The other way round; rows from `rows` to `filling` become zeros."""
    for i in range(filling):
        for j in range(0, width, LANES):
            value = load(source, i * width + j) if i < rows else filled(ZERO)
            if low:
                store_low(target, i * row + j, value)
            else:
                store(target, i * row + j, value)


@compiled
def turned(source, target, rows, width):
    """The transpose [width, rows'] of a block [rows', width] of zeros behind `rows`."""
    high = _wide(rows)
    for i in range(rows, high):
        for j in range(0, width, LANES):
            store(source, i * width + j, filled(ZERO))
    for i in range(0, high, LANES):
        for j in range(0, width, LANES):
            transpose(source + 4 * (i * width + j), width, target + 4 * (j * high + i), high)


@kernel
def forward(p):
    heads, size, queries, length, width = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5), whole(p, 6)
    q, q_row, q_head = whole(p, 7), whole(p, 8), whole(p, 9)
    k, k_row, k_head, v = whole(p, 10), whole(p, 11), whole(p, 12), whole(p, 13)
    lengths, scale, low = whole(p, 14), real(p, 15), whole(p, 16)
    bits, bits_row, dropped, worth = whole(p, 17), whole(p, 18), whole(p, 19), real(p, 20)
    bits_copy = whole(p, 29)
    weights, context = whole(p, 21), whole(p, 22)
    q_starts, k_starts, own = whole(p, 23), whole(p, 24), whole(p, 25)
    bytes_of = 2 if low else 4
    high = _wide(length)
    room = np.empty(width * (queries + 3 * high) + queries * (high + width), np.float32)
    own_q = room.ctypes.data
    own_k = own_q + 4 * queries * width
    own_v = own_k + 4 * high * width
    keys = own_v + 4 * high * width
    scores = keys + 4 * high * width
    found = scores + 4 * queries * high
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        row, head = tile // heads, tile % heads
        count = min(max(number_of(lengths, row), 1), length)
        inner, asked, from_q = _wide(count), count if own else queries, number_of(q_starts, row)
        read(q + bytes_of * (from_q * q_row + head * q_head), q_row, low, own_q, asked, width)
        at = number_of(k_starts, row) * k_row + head * k_head
        read(k + bytes_of * at, k_row, low, own_k, count, width)
        read(v + bytes_of * at, k_row, low, own_v, count, width)
        turned(own_k, keys, count, width)
        product(own_q, width, 1, keys, inner, scores, inner, asked, inner, width)
        copy, within = row // size, row % size
        block = (head * size + within) * queries
        of_bits, block = copy * bits_copy + block * bits_row, copy * heads * size * queries + block
        for i in range(asked):
            most = filled(LOW)
            for j in range(0, inner, LANES):
                value = first(multiply(load(scores, i * inner + j), scale), count - j, LOW)
                store(scores, i * inner + j, value)
                most = larger(most, value)
            top, sums = largest(most), filled(ZERO)
            for j in range(0, inner, LANES):
                value = first(exp(subtract(load(scores, i * inner + j), top)), count - j, ZERO)
                store(scores, i * inner + j, value)
                sums = add(sums, value)
            share = np.float32(1) / total(sums)
            for j in range(0, inner, LANES):
                value = multiply(load(scores, i * inner + j), share)
                store(weights, (block + i) * high + j, value)
                if bits:
                    value = multiply(value, kept(bits, of_bits + i * bits_row + j, dropped, worth))
                store(scores, i * inner + j, value)
        to = (from_q * heads + head) * width
        if low:
            product(scores, inner, 1, own_v, width, found, width, asked, width, count)
            write(found, low, context + bytes_of * to, heads * width, asked, asked, width)
        else:
            product(scores, inner, 1, own_v, width, context + 4 * to, heads * width, asked, width, count)


@kernel
def backward(p):
    heads, size, queries, length, width = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5), whole(p, 6)
    q, q_row, q_head = whole(p, 7), whole(p, 8), whole(p, 9)
    k, k_row, k_head, v = whole(p, 10), whole(p, 11), whole(p, 12), whole(p, 13)
    lengths, scale, low = whole(p, 14), real(p, 15), whole(p, 16)
    bits, bits_row, dropped, worth = whole(p, 17), whole(p, 18), whole(p, 19), real(p, 20)
    bits_copy = whole(p, 29)
    weights, gradient = whole(p, 21), whole(p, 22)
    q_starts, k_starts, own = whole(p, 23), whole(p, 24), whole(p, 25)
    dq, dk, dv = whole(p, 26), whole(p, 27), whole(p, 28)
    bytes_of = 2 if low else 4
    high = _wide(length)
    room = np.empty(2 * width * (queries + 2 * high) + 2 * queries * high, np.float32)
    own_q = room.ctypes.data
    own_g = own_q + 4 * queries * width
    own_k = own_g + 4 * queries * width
    own_v = own_k + 4 * high * width
    values = own_v + 4 * high * width
    found = values + 4 * high * width
    shares = found + 4 * high * width
    dscores = shares + 4 * queries * high
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        row, head = tile // heads, tile % heads
        count = min(max(number_of(lengths, row), 1), length)
        inner, asked, from_q = _wide(count), count if own else queries, number_of(q_starts, row)
        rest = count if own else length  # keys behind the row's own, which have no gradient
        of_q, of_k = from_q * q_row + head * q_head, number_of(k_starts, row) * k_row + head * k_head
        of_g = (from_q * heads + head) * width
        read(q + bytes_of * of_q, q_row, low, own_q, asked, width)
        read(gradient + bytes_of * of_g, heads * width, low, own_g, asked, width)
        read(k + bytes_of * of_k, k_row, low, own_k, count, width)
        read(v + bytes_of * of_k, k_row, low, own_v, count, width)
        turned(own_v, values, count, width)
        product(own_g, width, 1, values, inner, dscores, inner, asked, inner, width)
        copy, within = row // size, row % size
        block = (head * size + within) * queries
        of_bits, block = copy * bits_copy + block * bits_row, copy * heads * size * queries + block
        for i in range(asked):
            sums = filled(ZERO)
            for j in range(0, inner, LANES):
                weight = load(weights, (block + i) * high + j)
                given = load(dscores, i * inner + j)
                share = weight
                if bits:
                    keep = kept(bits, of_bits + i * bits_row + j, dropped, worth)
                    share = multiply(weight, keep)
                    given = multiply(given, keep)
                    store(dscores, i * inner + j, given)
                store(shares, i * inner + j, share)
                sums = add_product(sums, weight, given)
            mean = total(sums)
            for j in range(0, inner, LANES):
                weight = multiply(load(weights, (block + i) * high + j), scale)
                store(dscores, i * inner + j, multiply(weight, subtract(load(dscores, i * inner + j), mean)))
        product(shares, 1, inner, own_g, width, found, width, count, width, asked)
        write(found, low, dv + bytes_of * of_k, k_row, count, rest, width)
        product(dscores, 1, inner, own_q, width, found, width, count, width, asked)
        write(found, low, dk + bytes_of * of_k, k_row, count, rest, width)
        product(dscores, inner, 1, own_k, width, own_g, width, asked, width, count)
        write(own_g, low, dq + bytes_of * of_q, q_row, asked, asked, width)


@dataclass
class Layout:
    """Where the rows of a batch of S copies lie, and how they are looked at.

    size B, queries M, length T: of the grid of weights [S, n, B, M, T'] and of dropout [S, n, B, M, max(T, LANES)];
    lengths [S B]: keys of each row; q_starts, k_starts [S B]: where its queries and its keys begin, in rows of all
    copies; own: it has as many queries as keys, not M.
    """

    copies: int
    size: int
    queries: int
    length: int
    lengths: torch.Tensor
    q_starts: torch.Tensor
    k_starts: torch.Tensor
    own: bool = False


def attend(q, kv, layout: Layout, heads: int, scale: float, keep=None):
    """Context, and the weights before dropout, [S, n, B, M, T'].

    q [..., R, H] queries and kv [..., R', 2 H] keys and values, [n, d] and [n, 2, d] in every row, or one tensor
    [..., R, 3 H] for both, [n, 3, d] in every row; fp32 or bf16. keep: `bits.Keep` of the weights. The context,
    [..., R, H], is 0 in rows where no query is.
    """
    width = q.shape[-1] // (heads * _parts(q, kv)[0])
    high = wide(layout.length)
    weights = torch.empty(layout.copies, heads, layout.size, layout.queries, high)
    context = (q.new_zeros if layout.own else q.new_empty)(*q.shape[:-1], heads * width)
    arguments = _arguments(q, kv, layout, heads, width, scale, keep, weights)
    rest = context.data_ptr(), *_starts(layout), 0, 0, 0, _step(keep)
    launch(forward, layout.copies * layout.size * heads, *arguments, *rest)
    return context, weights


def attend_backward(g, q, kv, weights, layout: Layout, heads: int, scale: float, keep=None):
    """Gradients of q and kv, one tensor where they are one, given that of the context [..., R, H]."""
    width, g = g.shape[-1] // heads, g.contiguous()
    dq = (torch.zeros_like if layout.own else torch.empty_like)(q)
    dkv = dq if kv is q else (torch.zeros_like if layout.own else torch.empty_like)(kv)
    arguments = _arguments(q, kv, layout, heads, width, scale, keep, weights)
    first, bytes_of = dkv.data_ptr() + width * (kv is q) * q.element_size(), q.element_size()
    targets = dq.data_ptr(), first, first + width * bytes_of
    tiles = layout.copies * layout.size * heads
    launch(backward, tiles, *arguments, g.data_ptr(), *_starts(layout), *targets, _step(keep))
    return dq, dkv


def _step(keep):
    return 0 if keep is None else keep.bits.stride(0)


def _parts(q, kv):
    return (3, 3) if kv is q else (1, 2)


def _starts(layout):
    return layout.q_starts.data_ptr(), layout.k_starts.data_ptr(), int(layout.own)


def _arguments(q, kv, layout, heads, width, scale, keep, weights):
    (q_parts, k_parts), bytes_of = _parts(q, kv), q.element_size()
    keys = kv.data_ptr() + (bytes_of * width if kv is q else 0)
    places = (
        q.data_ptr(), q_parts * heads * width, q_parts * width,
        keys, k_parts * heads * width, k_parts * width, keys + bytes_of * width,
    )  # fmt: skip
    dropped = (0, 0, 0, 1.0) if keep is None else (keep.bits.data_ptr(), keep.bits.shape[-1], keep.dropped, keep.worth)
    shape = heads, layout.size, layout.queries, layout.length, width
    return *shape, *places, layout.lengths.data_ptr(), scale, int(bytes_of == 2), *dropped, weights.data_ptr()
