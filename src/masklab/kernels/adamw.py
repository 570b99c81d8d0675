"""AdamW of several copies of one model in one pass over their numbers, each copy clipped by its own norm.

S copies, n numbers of each, a multiple of LANES

Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019), Algorithm 2, as `torch.optim.AdamW` has it. What is
summed for a norm is summed within tiles first and then over these, in their order: the same sums whatever the number of
threads or of copies.
"""

import math

import numba
import numpy as np

from masklab.kernels.kernel import TILES, kernel, launch, next_tile, real, whole
from masklab.kernels.vectors import (
    LANES,
    add,
    add_product,
    divide,
    filled,
    load,
    multiply,
    number,
    put,
    root,
    store,
    store_low,
    subtract,
    total,
)

TILE = 2**13  # numbers
compiled = numba.njit(error_model="numpy", nogil=True, fastmath={"contract"})  # sums keep their order
ZERO = np.float32(0)


@compiled
def _squares(address, count):
    """The sum of squares of `count` numbers."""
    p, q, r, s = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
    even = count - count % (4 * LANES)
    for c in range(0, even, 4 * LANES):
        a, b = load(address, c), load(address, c + LANES)
        d, e = load(address, c + 2 * LANES), load(address, c + 3 * LANES)
        p, q, r, s = add_product(p, a, a), add_product(q, b, b), add_product(r, d, d), add_product(s, e, e)
    for c in range(even, count, LANES):
        a = load(address, c)
        p = add_product(p, a, a)
    return total(add(add(p, q), add(r, s)))


@compiled
def _summed(address, count):
    """The sum of fp32 numbers, in their order, in double precision."""
    value = 0.0
    for i in range(count):
        value += np.float64(number(address, i))
    return value


@compiled
def _updated(p, at, count, share):
    """One update of `count` numbers, from place `at` among those of all copies on."""
    values, mean, square = whole(p, 4) + 4 * at, whole(p, 5) + 4 * at, whole(p, 6) + 4 * at
    gradient, low = whole(p, 3) + 4 * at, whole(p, 8)
    decay, toward, keep, rest = real(p, 9), real(p, 10), real(p, 11), real(p, 12)
    correction, eps, rate = real(p, 13), real(p, 14), real(p, 15)
    for c in range(0, count, LANES):
        g, m, v = multiply(load(gradient, c), share), load(mean, c), load(values, c)
        m = add_product(m, subtract(g, m), toward)
        s = add_product(multiply(load(square, c), keep), multiply(g, rest), g)
        store(mean, c, m)
        store(square, c, s)
        step = divide(m, add_product(filled(eps), root(s), correction))
        v = add_product(add_product(v, v, decay), step, rate)
        store(values, c, v)
        if low:
            store_low(low + 2 * at, c, v)


@kernel
def norm_parts(p):
    """Sums of squares of the tiles of every copy: one after the other."""
    count, gradient, into = whole(p, 2), whole(p, 3), whole(p, 4)
    per_copy = -(-count // TILE)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start = tile // per_copy, tile % per_copy * TILE
        put(into, tile, _squares(gradient + 4 * (copy * count + start), min(TILE, count - start)))


@kernel
def norms_and_shares(p):
    """Of what `norm_parts` has written: the norm of every copy, and what its gradient is to be multiplied with."""
    per_copy, parts, norms, shares, clip = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5), real(p, 6)
    while True:
        copy = next_tile(p)
        if copy >= whole(p, TILES):
            break
        norm = np.float32(np.sqrt(_summed(parts + 4 * copy * per_copy, per_copy)))
        put(norms, copy, norm)
        share = clip / (norm + np.float32(1e-6))
        put(shares, copy, np.float32(1) if share > np.float32(1) or clip == np.float32(np.inf) else share)


@kernel
def update(p):
    """What `adamw_` asks for."""
    count, shares = whole(p, 2), whole(p, 7)
    per_copy = -(-count // TILE)
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        copy, start = tile // per_copy, tile % per_copy * TILE
        _updated(p, copy * count + start, min(TILE, count - start), number(shares, copy))


def clipped(gradient, clip: float | None):
    """Euclidean norms of the rows of gradient [S, n], and what each is to be multiplied with so that none is longer
    than `clip` (None: however long it is) -> [S], [S]. As `torch.nn.utils.clip_grad_norm_`, with its 1e-6."""
    copies, count = gradient.shape
    per_copy = -(-count // TILE)
    parts, norms, shares = (gradient.new_empty(size) for size in (copies * per_copy, copies, copies))
    launch(norm_parts, copies * per_copy, count, gradient.data_ptr(), parts.data_ptr())
    where = parts.data_ptr(), norms.data_ptr(), shares.data_ptr()
    launch(norms_and_shares, copies, per_copy, *where, math.inf if clip is None else float(clip))
    return norms, shares


def adamw_(values, gradient, mean, square, shares, low, update_number: int, lr, betas, weight_decay, eps) -> None:
    """Update `update_number`, from 1, of values [S, n] with gradient [S, n], each row times its number of shares [S];
    writes mean and square, its moments, too, and to `low`, if it is there, what values are in bf16."""
    copies, count = values.shape
    where = (each.data_ptr() for each in (gradient, values, mean, square, shares))
    first, second = betas
    correction, rate = 1 / math.sqrt(1 - second**update_number), -lr / (1 - first**update_number)
    numbers = -lr * weight_decay, 1 - first, second, 1 - second, correction, eps, rate
    low = 0 if low is None else low.data_ptr()
    launch(update, copies * -(-count // TILE), count, *where, low, *map(float, numbers))
