"""Self-attention between its projections, a row and a head at a time: scores, softmax, dropout, context.

S copies, B rows each, n heads, d width of a head, R rows of queries and R' of keys and values among all copies

Queries, keys, values, context and their gradients are read and written where the projections have them; nothing is
laid out head by head, and what comes in between stays in the processor's first caches. The weights before dropout are
kept for the backward pass; dropout is read from the same bits again. No padding is looked at.
"""

from dataclasses import dataclass

import numpy as np
import torch

from masklab.kernels.bits import NOTHING
from masklab.kernels.distance_tables import gradients as distant_backward
from masklab.kernels.distance_tables import scores as distant
from masklab.kernels.kernel import TILES, kernel, launch, next_tile, number_of, real, whole
from masklab.kernels.panels import compiled, product, read, turned, wide, wide_of, write
from masklab.kernels.tiles import blank_, sum_tiles
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
    multiply,
    store,
    subtract,
    total,
)

ZERO, LOW = np.float32(0), np.float32(-1e30)


@compiled
def row_bits(bits, strides, copy, head, row):
    """Address of the bits of a row and a head; rows that a copy has not have those of its first."""
    if not bits:
        return 0
    own = row if row < number_of(strides, 4 * copy + 3) else 0
    behind = head * number_of(strides, 4 * copy) + own * number_of(strides, 4 * copy + 1)
    return number_of(bits, copy) + 2 * behind


@kernel
def forward(p):
    """What `attend` asks for, with the arguments of `_arguments`."""
    heads, size, width, high, queries = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5), whole(p, 6)
    q, q_row, q_head = whole(p, 7), whole(p, 8), whole(p, 9)
    k, k_row, k_head, v = whole(p, 10), whole(p, 11), whole(p, 12), whole(p, 13)
    q_starts, q_counts, k_starts, k_counts = whole(p, 14), whole(p, 15), whole(p, 16), whole(p, 17)
    scale, low, weights = real(p, 18), whole(p, 19), whole(p, 20)
    bits, slots, dropped, worth = whole(p, 21), whole(p, 22), whole(p, 23), real(p, 24)
    strides, every = whole(p, 25), whole(p, 26)
    bias, bias_copy, bias_head, columns = whole(p, 27), whole(p, 28), whole(p, 29), whole(p, 30)
    of_keys, of_queries, of_head, of_row, context = whole(p, 31), whole(p, 32), whole(p, 33), whole(p, 34), whole(p, 35)
    bytes_of, inside = 2 if low else 4, wide_of(width)
    room = np.empty(inside * (2 * queries + 3 * high) + queries * high, np.float32)
    own_q = room.ctypes.data
    found = own_q + 4 * queries * inside
    own_k = found + 4 * queries * inside
    own_v = own_k + 4 * high * inside
    keys = own_v + 4 * high * inside
    scores = keys + 4 * high * inside
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        row, head = tile // heads, tile % heads
        asked, count = number_of(q_counts, row), number_of(k_counts, row)
        if not asked or not count:
            continue
        copy, within, inner = row // size, row % size, wide_of(count)
        from_q, from_k = number_of(q_starts, row), number_of(k_starts, row)
        of_k = from_k * k_row + head * k_head
        read(q + bytes_of * (from_q * q_row + head * q_head), q_row, low, own_q, asked, width)
        read(k + bytes_of * of_k, k_row, low, own_k, count, width)
        read(v + bytes_of * of_k, k_row, low, own_v, count, width)
        turned(own_k, keys, count, inside)
        if of_keys:
            at, own_columns = 4 * (copy * heads + head) * of_head, columns + 8 * from_q if columns else 0
            tables = of_keys + at, of_queries + at
            distant(own_q, inside, keys, inner, width, *tables, of_row, own_columns, asked, scores)
        else:
            product(own_q, inside, 1, keys, inner, scores, inner, asked, inner, inside)
        first_bits = row_bits(bits, strides, copy, head, within)
        for i in range(asked):
            to, of = i * inner, ((from_q + i) * heads + head) * high
            own_bias = bias + 4 * of
            if bias and not every:
                column = number_of(columns, from_q + i) if columns else i
                own_bias = bias + 4 * (copy * bias_copy + head * bias_head - column)
            most = filled(LOW)
            for j in range(0, inner, LANES):
                value = multiply(load(scores, to + j), scale)
                if bias:
                    value = add(value, load(own_bias, j))
                value = first(value, count - j, LOW)
                store(scores, to + j, value)
                most = larger(most, value)
            top, sums = largest(most), filled(ZERO)
            for j in range(0, inner, LANES):
                value = first(exp(subtract(load(scores, to + j), top)), count - j, ZERO)
                store(scores, to + j, value)
                sums = add(sums, value)
            share = np.float32(1) / total(sums)
            if bits:
                slot = number_of(slots, from_q + i) if slots else i
                own_bits = first_bits + 2 * slot * number_of(strides, 4 * copy + 2)
            for j in range(0, inner, LANES):
                value = multiply(load(scores, to + j), share)
                store(weights, of + j, value)
                if bits:
                    value = multiply(value, kept(own_bits, j, dropped, worth))
                store(scores, to + j, value)
        product(scores, inner, 1, own_v, inside, found, inside, asked, inside, count)
        write(found, low, context + bytes_of * (from_q * heads + head) * width, heads * width, asked, width)
    room[0] = ZERO  # numba lets go of an array after its last use, not of its address


@kernel
def backward(p):
    """What `attend_backward` asks for."""
    heads, size, width, high, queries = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5), whole(p, 6)
    q, q_row, q_head = whole(p, 7), whole(p, 8), whole(p, 9)
    k, k_row, k_head, v = whole(p, 10), whole(p, 11), whole(p, 12), whole(p, 13)
    q_starts, q_counts, k_starts, k_counts = whole(p, 14), whole(p, 15), whole(p, 16), whole(p, 17)
    scale, low, weights = real(p, 18), whole(p, 19), whole(p, 20)
    bits, slots, dropped, worth = whole(p, 21), whole(p, 22), whole(p, 23), real(p, 24)
    strides, every = whole(p, 25), whole(p, 26)
    bias, columns = whole(p, 27), whole(p, 30)
    of_keys, of_queries, of_head, of_row = whole(p, 31), whole(p, 32), whole(p, 33), whole(p, 34)
    gradient, dq, dk, dv = whole(p, 35), whole(p, 36), whole(p, 37), whole(p, 38)
    dbias, dbias_row, middle = whole(p, 39), whole(p, 40), whole(p, 41)
    dkeys, dqueries, several = whole(p, 42), whole(p, 43), whole(p, 44)
    groups = -(-size // several)
    bytes_of, inside = 2 if low else 4, wide_of(width)
    room = np.empty(2 * inside * (queries + 2 * high) + 2 * queries * high + high, np.float32)
    room[-high:] = ZERO
    own_q = room.ctypes.data
    own_g = own_q + 4 * queries * inside
    own_k = own_g + 4 * queries * inside
    own_v = own_k + 4 * high * inside
    values = own_v + 4 * high * inside
    found = values + 4 * high * inside
    shares = found + 4 * high * inside
    dscores = shares + 4 * queries * high
    nothing = dscores + 4 * queries * high
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        group, head = tile // heads, tile % heads
        copy, start = group // groups, group % groups * several
        for within in range(start, min(size, start + several)):
            row = copy * size + within
            asked, count = number_of(q_counts, row), number_of(k_counts, row)
            inner = wide_of(count)
            from_q, from_k = number_of(q_starts, row), number_of(k_starts, row)
            of_q, of_k = from_q * q_row + head * q_head, from_k * k_row + head * k_head
            if not count:
                continue
            read(q + bytes_of * of_q, q_row, low, own_q, asked, width)
            read(gradient + bytes_of * (from_q * heads + head) * width, heads * width, low, own_g, asked, width)
            read(k + bytes_of * of_k, k_row, low, own_k, count, width)
            read(v + bytes_of * of_k, k_row, low, own_v, count, width)
            turned(own_v, values, count, inside)
            product(own_g, inside, 1, values, inner, dscores, inner, asked, inner, inside)
            first_bits = row_bits(bits, strides, copy, head, within)
            for i in range(asked):
                to, of, sums = i * inner, ((from_q + i) * heads + head) * high, filled(ZERO)
                if bits:
                    slot = number_of(slots, from_q + i) if slots else i
                    own_bits = first_bits + 2 * slot * number_of(strides, 4 * copy + 2)
                for j in range(0, inner, LANES):
                    weight, given = load(weights, of + j), load(dscores, to + j)
                    share = weight
                    if bits:
                        keep = kept(own_bits, j, dropped, worth)
                        share, given = multiply(weight, keep), multiply(given, keep)
                        store(dscores, to + j, given)
                    store(shares, to + j, share)
                    sums = add_product(sums, weight, given)
                mean = total(sums)
                own_bias = dbias + 4 * of
                if bias and not every:
                    column = number_of(columns, from_q + i) if columns else i
                    own_bias = dbias + 4 * (tile * dbias_row + middle - column)
                for j in range(0, inner, LANES):
                    value = multiply(load(weights, of + j), subtract(load(dscores, to + j), mean))
                    if bias:
                        store(own_bias, j, add(load(own_bias, j), value))
                    store(dscores, to + j, multiply(value, scale))
            product(shares, 1, inner, own_g, inside, found, inside, count, inside, asked)
            write(found, low, dv + bytes_of * of_k, k_row, count, width)
            if of_keys:
                at, own_columns = 4 * (copy * heads + head) * of_head, columns + 8 * from_q if columns else 0
                tables, to = (of_keys + at, of_queries + at), 4 * tile * of_head
                sums_of, own = (dkeys + to, dqueries + to, own_g, found), (own_q, own_k, of_row)
                distant_backward(dscores, inner, nothing, *own, *tables, own_columns, asked, count, *sums_of)
            else:
                product(dscores, 1, inner, own_q, inside, found, inside, count, inside, asked)
                product(dscores, inner, 1, own_k, inside, own_g, inside, asked, inside, count)
            write(found, low, dk + bytes_of * of_k, k_row, count, width)
            write(own_g, low, dq + bytes_of * of_q, q_row, asked, width)
    room[0] = ZERO


@dataclass
class Layout:
    """Which queries look at which keys, in rows of all copies.

    size: B; q_starts, q_counts, k_starts, k_counts [S B]: where the queries and keys of each row begin, and how many
    there are; queries, keys: the most of them; slots, columns [R], or None: which of its row's queries each query is
    among the bits of dropout, and at which position of its row it stands, None: the first is 0. ends: how many of the
    first rows of queries, and of keys, of each copy are some row's, without a gap.
    """

    size: int
    q_starts: torch.Tensor
    q_counts: torch.Tensor
    k_starts: torch.Tensor
    k_counts: torch.Tensor
    queries: int
    keys: int
    ends: tuple
    slots: torch.Tensor | None = None
    columns: torch.Tensor | None = None


def _room(like, columns: int, ends):
    """Room for [S, R, columns] numbers, of which those behind `ends` are 0."""
    room = like.new_empty(*like.shape[:-1], columns)
    blank_(room, ends)
    return room


def attend(q, kv, layout: Layout, heads: int, scale: float, keep=None, bias=None, tables=None):
    """Context, and the weights before dropout.

    q [S, R, H] queries and kv [S, R', 2 H] keys and values, [n, d] and [n, 2, d] in every row, or one tensor
    [S, R, 3 H] for both, [n, 3, d] in every row; fp32 or bf16. keep: a `bits.Keep` of [n, B, M, T] weights of each
    copy. bias, or None: what is added to scores: [S, n, 2 L - 1 + LANES], at distances 1 - L, ..., L - 1 of key and
    query, and numbers that count for nothing; or [S, R, n, `wide` of the most keys], of each query and key. tables: a
    `distance_tables.Tables`, of which scores are, or None. The context, [S, R, H], is 0 in rows where no query is.
    """
    width = q.shape[-1] // (heads * (3 if kv is q else 1))
    rows = q.shape[:-1].numel()
    weights = torch.empty(rows, heads, wide(layout.keys))
    context = _room(q, heads * width, layout.ends[0])
    arguments = _arguments(q, kv, layout, heads, width, scale, weights, keep, bias)
    distances = (0, 0, 0, 0) if tables is None else tables.forward_arguments()
    launch(forward, len(layout.q_starts) * heads, *arguments, *distances, context.data_ptr())
    return context, weights


def attend_backward(
    g, q, kv, weights, layout: Layout, heads: int, scale: float, keep=None, bias=None, bias_gradient=None, tables=None
):
    """Gradients of q and kv, one tensor where they are one, given that of the context; adds that of the bias. `tables`
    has its own then (`gradients`)."""
    width, g = g.shape[-1] // heads, g.contiguous()
    dq = _room(q, q.shape[-1], layout.ends[0])
    dkv = dq if kv is q else _room(kv, kv.shape[-1], layout.ends[1])
    arguments = _arguments(q, kv, layout, heads, width, scale, weights, keep, bias)
    first, bytes_of = dkv.data_ptr() + width * (kv is q) * q.element_size(), q.element_size()
    targets = g.data_ptr(), dq.data_ptr(), first, first + width * bytes_of
    tiles, dbias, added = len(layout.q_starts) * heads, bias_gradient, (0, 0, 0)
    if bias is not None:
        dbias = bias_gradient if bias.dim() == 4 else torch.zeros(tiles, bias.shape[-1])
        added = dbias.data_ptr(), bias.shape[-1], middle(bias)
    read_by, written = (0, 0, 0, 0), (0, 0, 1)
    if tables is not None:
        read_by, written = tables.backward_arguments(), tables.gradient_arguments(layout.size)
        tiles = tables.parts[0, ..., 0, 0].numel()
    launch(backward, tiles, *arguments, *read_by, *targets, *added, *written)
    if dbias is not bias_gradient:
        bias_gradient.add_(_summed(dbias, bias))
    return dq, dkv


def _summed(parts, bias):
    """Sums of [S B, n, c] over the B rows of each copy, in their order, [S, n, c]."""
    copies, heads, columns = bias.shape
    found = torch.empty(copies, heads, columns)
    rows = len(parts) // (copies * heads)
    launch(sum_tiles, copies, rows, 1, heads * columns, parts.data_ptr(), found.data_ptr(), heads * columns)
    return found


def middle(bias) -> int:
    """Where the bias for distance 0 stands."""
    return (bias.shape[-1] - LANES) // 2


def _arguments(q, kv, layout, heads, width, scale, weights, keep, bias):
    parts, bytes_of = (3, 3) if kv is q else (1, 2), q.element_size()
    keys = kv.data_ptr() + (bytes_of * width if kv is q else 0)
    shape = heads, layout.size, width, wide(layout.keys), max(1, layout.queries)
    places = (
        q.data_ptr(), parts[0] * heads * width, parts[0] * width,
        keys, parts[1] * heads * width, parts[1] * width, keys + bytes_of * width,
        *(each.data_ptr() for each in (layout.q_starts, layout.q_counts, layout.k_starts, layout.k_counts)),
    )  # fmt: skip
    dropout = *NOTHING, 0
    if keep is not None:
        addresses, _, dropped, worth = keep.arguments
        slots = 0 if layout.slots is None else layout.slots.data_ptr()
        dropout = addresses, slots, dropped, worth, keep.strides.data_ptr()
    added = 0, 0, 0, 0
    if bias is not None and bias.dim() == 4:
        added = 1, bias.data_ptr(), 0, 0
    elif bias is not None:
        added = 0, bias.data_ptr() + 4 * middle(bias), bias.stride(0), bias.stride(1)
    columns = 0 if layout.columns is None else layout.columns.data_ptr()
    return *shape, *places, scale, int(bytes_of == 2), weights.data_ptr(), *dropout, *added, columns
