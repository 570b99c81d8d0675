"""What is done to every row of hidden states: bias, dropout, residual and layer norm; bias and gelu.

S copies, N rows of each, W width; counts [S]: how many first rows of each copy count, the others become 0, or are left
alone where a result goes in place of what it is made of

Rows come in tiles (`tiles.py`). All is computed in fp32; states are read and written in fp32 or bf16. Sums along a row
are of vectors, made as written: a loop that the compiler turns into vectors or not, as arrays lie in memory, would
round otherwise from call to call.
"""

import numba
import numpy as np
import torch

from masklab.kernels.bits import NOTHING, Keep
from masklab.kernels.kernel import FAST, TILES, kernel, launch, next_tile, number_of, real, whole
from masklab.kernels.panels import ZERO, wide_of
from masklab.kernels.panels import read as block
from masklab.kernels.panels import write as unblock
from masklab.kernels.scalars import array_at, erf, exp, read, single, written
from masklab.kernels.tiles import COUNT, LOW, WHOLE, address_of, blank_tile, bounds, row_of, shape_of, sum_to
from masklab.kernels.vectors import (
    LANES,
    add,
    add_product,
    filled,
    first,
    kept,
    load,
    load_low,
    multiply,
    number,
    number_low,
    put,
    put_low,
    rounded,
    store,
    store_low,
    subtract,
    total,
)

compiled = numba.njit(error_model="numpy", fastmath=FAST, nogil=True)
inlined = numba.njit(error_model="numpy", fastmath=FAST, nogil=True, forceinline=True)
BITS = np.int16(0)


@compiled
def bits_at(addresses, places, copy, row, rows, width):
    """Address of the bits of a row among the rows of all copies."""
    own = number_of(places, row) if places else row - copy * rows
    return number_of(addresses, copy) + 2 * own * width


@compiled
def _readable(row, width, low, spare):
    """Address of a row that can be read by vectors: its own, or that of a copy with zeros behind it."""
    if width % LANES == 0:
        return row
    for c in range(width):
        if low:
            put_low(spare, c, number_low(row, c))
        else:
            put(spare, c, number(row, c))
    for c in range(width, wide_of(width)):
        if low:
            put_low(spare, c, ZERO)
        else:
            put(spare, c, ZERO)
    return spare


@compiled
def _write_back(given, row, width, low):
    """Write what was made in place of a row to it, if it was not made there."""
    if given != row:
        for c in range(width):
            if low:
                put_low(row, c, number_low(given, c))
            else:
                put(row, c, number(given, c))


@compiled
def _get(row, c, low):
    return load_low(row, c) if low else load(row, c)


@compiled
def _set(row, c, value, low):
    if low:
        store_low(row, c, value)
    else:
        store(row, c, value)


@compiled
def _norm_forward(p, low):
    """What `add_norm` asks for."""
    copies, rows, width, per_copy = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5)
    counts = array_at(whole(p, 6), COUNT, copies, 1)
    residual, y, bias, bias_step = whole(p, 7), whole(p, 8), whole(p, 9), whole(p, 10)
    bits, places, dropped, worth = whole(p, 11), whole(p, 12), whole(p, 13), real(p, 14)
    weight, shift, step, eps = whole(p, 15), whole(p, 16), whole(p, 17), real(p, 18)
    z, moments = whole(p, 19), whole(p, 20)
    high, size, share = wide_of(width), 2 if low else 4, single(1) / single(width)
    room = np.zeros(6 * high, np.float32)
    own_bias = room.ctypes.data
    own_weight, own_shift = own_bias + 4 * high, own_bias + 8 * high
    spare, other_spare, made_spare = own_bias + 12 * high, own_bias + 16 * high, own_bias + 20 * high
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start, end = bounds(tile, per_copy, rows, counts)
        blank_tile(tile, per_copy, rows, counts, z, size * width)
        if bias:
            block(bias + 4 * copy * bias_step, width, False, own_bias, 1, width)
        block(weight + 4 * copy * step, width, False, own_weight, 1, width)
        block(shift + 4 * copy * step, width, False, own_shift, 1, width)
        for r in range(start, end):
            at, sums, squares, other = size * r * width, filled(ZERO), filled(ZERO), 0
            own = _readable(y + at, width, low, spare)
            if residual:
                other = _readable(residual + at, width, low, other_spare)
            made = z + at if width % LANES == 0 else made_spare
            of_row = bits_at(bits, places, copy, r, rows, width) if bits else 0
            for c in range(0, high, LANES):
                value = add(_get(own, c, low), load(own_bias, c)) if bias else _get(own, c, low)
                if bits:
                    value = multiply(value, kept(of_row, c, dropped, worth))
                value = add(value, _get(other, c, low)) if residual else value
                if c + LANES > width:
                    value = first(value, width - c, ZERO)
                value = rounded(value) if low else value
                _set(own, c, value, low)
                sums = add(sums, value)
            _write_back(own, y + at, width, low)
            mean = total(sums) * share
            for c in range(0, high, LANES):
                apart = subtract(_get(own, c, low), mean)
                if c + LANES > width:
                    apart = first(apart, width - c, ZERO)
                squares = add_product(squares, apart, apart)
            scale = single(1) / np.sqrt(total(squares) * share + eps)
            put(moments, 2 * r, mean)
            put(moments, 2 * r + 1, scale)
            for c in range(0, high, LANES):
                value = multiply(subtract(_get(own, c, low), mean), scale)
                _set(made, c, add_product(load(own_shift, c), value, load(own_weight, c)), low)
            _write_back(made, z + at, width, low)
    room[0] = ZERO  # numba lets go of an array after its last use, not of its address


@inlined  # a process that compiles it would call other machine code than stands in the cache, which rounds otherwise
def _norm_backward(p, low):
    """What `add_norm_backward` asks for."""
    copies, rows, width, per_copy = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5)
    counts = array_at(whole(p, 6), COUNT, copies, 1)
    g, s, moments, weight, step = whole(p, 7), whole(p, 8), whole(p, 9), whole(p, 10), whole(p, 11)
    bits, places, dropped, worth = whole(p, 12), whole(p, 13), whole(p, 14), real(p, 15)
    ds, dy, sums, more, beside = whole(p, 16), whole(p, 17), whole(p, 18), whole(p, 19), whole(p, 20)
    high, size, share = wide_of(width), 2 if low else 4, single(1) / single(width)
    room = np.zeros(10 * high, np.float32)
    own_weight, row = room.ctypes.data, 4 * high
    of_weight, of_shift, of_bias = own_weight + row, own_weight + 2 * row, own_weight + 3 * row
    spare = own_weight + 4 * row
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start, end = bounds(tile, per_copy, rows, counts)
        blank_tile(tile, per_copy, rows, counts, ds, size * width)
        if bits:
            blank_tile(tile, per_copy, rows, counts, dy, size * width)
        block(weight + 4 * copy * step, width, False, own_weight, 1, width)
        for c in range(0, 3 * high, LANES):
            store(of_weight, c, filled(ZERO))
        for r in range(start, end):
            at, mean, scale = size * r * width, number(moments, 2 * r), number(moments, 2 * r + 1)
            own = _readable(s + at, width, low, spare)
            arrived = _readable(g + at, width, low, spare + row)
            of_more = _readable(more + at, width, low, spare + 2 * row) if more else 0
            of_beside = _readable(beside + at, width, low, spare + 3 * row) if beside else 0
            to, dropped_to = (ds + at, dy + at) if width % LANES == 0 else (spare + 4 * row, spare + 5 * row)
            of_row = bits_at(bits, places, copy, r, rows, width) if bits else 0
            one, two = filled(ZERO), filled(ZERO)
            for c in range(0, high, LANES):  # behind a row all is multiplied with 0
                normed = multiply(subtract(_get(own, c, low), mean), scale)
                value = add(_get(arrived, c, low), _get(of_more, c, low)) if more else _get(arrived, c, low)
                store(of_shift, c, add(load(of_shift, c), value))
                store(of_weight, c, add_product(load(of_weight, c), value, normed))
                value = multiply(value, load(own_weight, c))
                one, two = add(one, value), add_product(two, value, normed)
            first_mean, second_mean = total(one) * share, total(two) * share
            for c in range(0, high, LANES):
                normed = multiply(subtract(_get(own, c, low), mean), scale)
                value = add(_get(arrived, c, low), _get(of_more, c, low)) if more else _get(arrived, c, low)
                value = multiply(value, load(own_weight, c))
                value = multiply(subtract(subtract(value, first_mean), multiply(normed, second_mean)), scale)
                value = add(value, _get(of_beside, c, low)) if beside else value
                _set(to, c, value, low)
                if bits:
                    value = multiply(value, kept(of_row, c, dropped, worth))
                    _set(dropped_to, c, value, low)
                store(of_bias, c, add(load(of_bias, c), value))
            _write_back(to, ds + at, width, low)
            if bits:
                _write_back(dropped_to, dy + at, width, low)
        for kind in range(3):
            unblock(of_weight + kind * row, False, sums + 4 * (3 * tile + kind) * width, width, 1, width)
    room[0] = ZERO  # numba lets go of an array after its last use, not of its address


@compiled
def _gelu_forward(p, like):
    """What `gelu` asks for."""
    copies, rows, width, per_copy = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5)
    counts = array_at(whole(p, 6), COUNT, copies, 1)
    x, y = array_at(whole(p, 7), like, copies * rows, width), array_at(whole(p, 8), like, copies * rows, width)
    bias_at, step = whole(p, 9), whole(p, 10)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start, end = bounds(tile, per_copy, rows, counts)
        blank_tile(tile, per_copy, rows, counts, whole(p, 8), width * x.itemsize)
        bias = array_at(bias_at + 4 * copy * step, WHOLE, 1, width)[0]
        for r in range(start, end):
            own, to = x[r], y[r]
            for c in range(width):
                v = read(own[c]) + bias[c]
                to[c] = written(single(0.5) * v * (single(1) + erf(v * single(0.7071067811865476))), to[c])


@compiled
def _gelu_backward(p, like):
    """What `gelu_backward_` asks for."""
    copies, rows, width, per_copy = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5)
    counts = array_at(whole(p, 6), COUNT, copies, 1)
    g, x = array_at(whole(p, 7), like, copies * rows, width), array_at(whole(p, 8), like, copies * rows, width)
    bias_at, step = whole(p, 9), whole(p, 10)
    sums = array_at(whole(p, 11), WHOLE, copies * per_copy, width)
    row = np.empty(width, np.float32)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start, end = bounds(tile, per_copy, rows, counts)
        bias = array_at(bias_at + 4 * copy * step, WHOLE, 1, width)[0]
        of_bias = sums[tile]
        of_bias[:] = single(0)
        for r in range(start, end):
            own, to = x[r], g[r]
            for c in range(width):
                v = read(own[c]) + bias[c]
                density = exp(single(-0.5) * v * v) * single(0.3989422804014327)
                slope = single(0.5) + single(0.5) * erf(v * single(0.7071067811865476)) + v * density
                row[c] = read(to[c]) * slope
            for c in range(width):
                to[c] = written(row[c], to[c])
                of_bias[c] += row[c]


@kernel
def norm_forward_whole(p):
    _norm_forward(p, False)


@kernel
def norm_forward_low(p):
    _norm_forward(p, True)


@kernel
def norm_backward_whole(p):
    _norm_backward(p, False)


@kernel
def norm_backward_low(p):
    _norm_backward(p, True)


@kernel
def gelu_forward_whole(p):
    _gelu_forward(p, WHOLE)


@kernel
def gelu_forward_low(p):
    _gelu_forward(p, LOW)


@kernel
def gelu_backward_whole(p):
    _gelu_backward(p, WHOLE)


@kernel
def gelu_backward_low(p):
    _gelu_backward(p, LOW)


@kernel
def drop(p):
    """Dropout of x [S, N, W] in place."""
    copies, rows, width, per_copy = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5)
    counts = array_at(whole(p, 6), COUNT, copies, 1)
    x = array_at(whole(p, 7), WHOLE, copies * rows, width)
    addresses, places, dropped, worth = whole(p, 8), whole(p, 9), np.int16(whole(p, 10)), real(p, 11)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start, end = bounds(tile, per_copy, rows, counts)
        for r in range(start, end):
            own, bits = x[r], array_at(bits_at(addresses, places, copy, r, rows, width), BITS, 1, width)[0]
            for c in range(width):
                own[c] = own[c] * worth if bits[c] >= dropped else single(0)


NORM_FORWARD = {torch.float32: norm_forward_whole, torch.bfloat16: norm_forward_low}
NORM_BACKWARD = {torch.float32: norm_backward_whole, torch.bfloat16: norm_backward_low}
GELU_FORWARD = {torch.float32: gelu_forward_whole, torch.bfloat16: gelu_forward_low}
GELU_BACKWARD = {torch.float32: gelu_backward_whole, torch.bfloat16: gelu_backward_low}


def add_norm(y, weight, shift, eps: float, residual=None, bias=None, keep: Keep | None = None, counts=None):
    """z = norm(s) weight + shift of s = residual + dropout(y + bias), which is written to y [S, N, W]; and the moments
    that `add_norm_backward` asks for, [S, N, 2].

    weight, shift, bias: [S, W], fp32; keep: of y.
    """
    z, moments = torch.empty_like(y), y.new_empty(*y.shape[:2], 2, dtype=torch.float32)
    tiles, shape = shape_of(y, counts)
    residual = None if residual is None else residual.contiguous()
    given = address_of(residual), y.data_ptr(), *row_of(bias), *(NOTHING if keep is None else keep.arguments)
    norm = weight.data_ptr(), shift.data_ptr(), weight.stride(0), float(eps)
    launch(NORM_FORWARD[y.dtype], tiles, *shape, *given, *norm, z.data_ptr(), moments.data_ptr())
    return z, moments


def add_norm_backward(g, s, moments, weight, into, keep: Keep | None = None, counts=None, more=None, beside=None):
    """Gradients of the residual and of y of `add_norm`, given that of z; without dropout they are one tensor.

    into: where those of weight, shift and bias are written, [S, W] each, or None. more: is added to g; beside: the
    gradient of s that does not come by way of z.
    """
    g = g.contiguous()
    more, beside = (None if each is None else each.contiguous() for each in (more, beside))
    ds = torch.empty_like(g)
    dy = ds if keep is None else torch.empty_like(g)
    tiles, shape = shape_of(g, counts)
    sums = torch.empty(tiles, 3 * g.shape[2])
    given = (
        g.data_ptr(),
        s.data_ptr(),
        moments.data_ptr(),
        weight.data_ptr(),
        weight.stride(0),
        *(NOTHING if keep is None else keep.arguments),
    )
    made = ds.data_ptr(), dy.data_ptr(), sums.data_ptr()
    launch(NORM_BACKWARD[g.dtype], tiles, *shape, *given, *made, address_of(more), address_of(beside))
    sum_to(sums, len(g), into)
    return ds, dy


def gelu(x, bias, counts=None):
    """gelu(x + bias) of x [S, N, W], bias [S, W]."""
    y, (tiles, shape) = torch.empty_like(x), shape_of(x, counts)
    launch(GELU_FORWARD[x.dtype], tiles, *shape, x.data_ptr(), y.data_ptr(), *row_of(bias))
    return y


def gelu_backward_(g, x, bias, into, counts=None):
    """The gradient of x, in place of that of `gelu`'s result; into: where that of the bias goes, [S, W]."""
    tiles, shape = shape_of(g, counts)
    sums = torch.empty(tiles, g.shape[2])
    launch(GELU_BACKWARD[x.dtype], tiles, *shape, g.data_ptr(), x.data_ptr(), *row_of(bias), sums.data_ptr())
    sum_to(sums, len(g), (into,))
    return g


def drop_(x, keep: Keep, counts=None):
    """Dropout of x [S, N, W], fp32, in place."""
    if x.dtype != torch.float32:
        raise TypeError(f"fp32 states alone (got {x.dtype})")  # any other would be written beyond its end
    tiles, shape = shape_of(x, counts)
    launch(drop, tiles, *shape, x.data_ptr(), *keep.arguments)
    return x
