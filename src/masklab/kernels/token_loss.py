"""Cross-entropy of rows of logits over a vocabulary, and its gradient, each in one pass over them.

N rows, V vocabulary; logits are fp32 or bf16, all is computed in fp32
"""

import numba
import numpy as np
import torch

from masklab.kernels.kernel import FAST, TILES, kernel, launch, next_tile, number_of, whole
from masklab.kernels.scalars import array_at, exp, single
from masklab.kernels.vectors import (
    LANES,
    add,
    filled,
    larger,
    largest,
    load,
    load_low,
    multiply,
    number,
    number_low,
    put,
    put_low,
    store,
    store_low,
    subtract,
    total,
)
from masklab.kernels.vectors import exp as exps

TILE = 8  # rows
compiled = numba.njit(error_model="numpy", fastmath=FAST, nogil=True)
WHOLE = np.float32(0)


@compiled
def top_of(own, width, low):
    """The largest of a row's logits."""
    even, most = width - width % LANES, filled(single(-3e38))
    for c in range(0, even, LANES):
        most = larger(most, load_low(own, c) if low else load(own, c))
    top = largest(most)
    for c in range(even, width):
        value = number_low(own, c) if low else number(own, c)
        top = value if value > top else top
    return top


@compiled
def _forward(p, low):
    rows, width, targets = whole(p, 2), whole(p, 3), whole(p, 5)
    losses, logs = array_at(whole(p, 6), WHOLE, 1, rows)[0], array_at(whole(p, 7), WHOLE, 1, rows)[0]
    step, even = width * (2 if low else 4), width - width % LANES
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        for r in range(tile * TILE, min(rows, (tile + 1) * TILE)):
            own = whole(p, 4) + r * step
            top = top_of(own, width, low)
            sums = filled(single(0))
            for c in range(0, even, LANES):
                sums = add(sums, exps(subtract(load_low(own, c) if low else load(own, c), top)))
            sum_of_all = total(sums)
            for c in range(even, width):
                sum_of_all += exp((number_low(own, c) if low else number(own, c)) - top)
            target = number_of(targets, r)
            logs[r] = top + np.log(sum_of_all)
            losses[r] = logs[r] - (number_low(own, target) if low else number(own, target))


@compiled
def _backward(p, low):
    rows, width, targets = whole(p, 2), whole(p, 3), whole(p, 5)
    given, logs = array_at(whole(p, 6), WHOLE, 1, rows)[0], array_at(whole(p, 7), WHOLE, 1, rows)[0]
    step, even = width * (2 if low else 4), width - width % LANES
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        for r in range(tile * TILE, min(rows, (tile + 1) * TILE)):
            own, to, log, share = whole(p, 4) + r * step, whole(p, 8) + r * step, logs[r], given[r]
            for c in range(0, even, LANES):
                value = multiply(exps(subtract(load_low(own, c) if low else load(own, c), log)), share)
                if low:
                    store_low(to, c, value)
                else:
                    store(to, c, value)
            target = number_of(targets, r)
            for c in range(even, width):
                value = share * exp((number_low(own, c) if low else number(own, c)) - log)
                if low:
                    put_low(to, c, value)
                else:
                    put(to, c, value)
            value = share * (exp((number_low(own, target) if low else number(own, target)) - log) - single(1))
            if low:
                put_low(to, target, value)
            else:
                put(to, target, value)


@numba.njit(error_model="numpy", nogil=True, fastmath={"contract"})
def _in_order(address, count):
    """The sum of fp32 numbers at an address, one after the other: zeros behind them change nothing."""
    value = WHOLE
    for i in range(count):
        value += number(address, i)
    return value


@kernel
def sums(p):
    """Of `rows` losses of each copy."""
    rows, losses, into = whole(p, 2), whole(p, 3), whole(p, 4)
    while True:
        copy = next_tile(p)
        if copy >= whole(p, TILES):
            break
        put(into, copy, _in_order(losses + 4 * copy * rows, rows))


@compiled
def _both(p, low):
    """What `loss_and_gradient_` asks for."""
    rows, width, logits, targets = whole(p, 2), whole(p, 3), whole(p, 4), whole(p, 5)
    losses, shares, per_copy = whole(p, 6), whole(p, 7), whole(p, 8)
    step, even = width * (2 if low else 4), width - width % LANES
    room = np.empty(even + LANES, np.float32)
    powers = room.ctypes.data
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        for r in range(tile * TILE, min(rows, (tile + 1) * TILE)):
            own = logits + r * step
            target, share = number_of(targets, r), number(shares, r // per_copy)
            if target < 0:
                put(losses, r, WHOLE)
                for c in range(0, even, LANES):
                    if low:
                        store_low(own, c, filled(WHOLE))
                    else:
                        store(own, c, filled(WHOLE))
                for c in range(even, width):
                    if low:
                        put_low(own, c, WHOLE)
                    else:
                        put(own, c, WHOLE)
                continue
            top = top_of(own, width, low)
            sums = filled(WHOLE)
            for c in range(0, even, LANES):
                value = exps(subtract(load_low(own, c) if low else load(own, c), top))
                store(powers, c, value)
                sums = add(sums, value)
            sum_of_all = total(sums)
            for c in range(even, width):
                value = exp((number_low(own, c) if low else number(own, c)) - top)
                put(powers, c, value)
                sum_of_all += value
            answer = number_low(own, target) if low else number(own, target)
            put(losses, r, top + np.log(sum_of_all) - answer)
            of_all = share / sum_of_all
            answer = of_all * number(powers, target) - share
            for c in range(0, even, LANES):
                value = multiply(load(powers, c), of_all)
                if low:
                    store_low(own, c, value)
                else:
                    store(own, c, value)
            for c in range(even, width):
                if low:
                    put_low(own, c, of_all * number(powers, c))
                else:
                    put(own, c, of_all * number(powers, c))
            if low:
                put_low(own, target, answer)
            else:
                put(own, target, answer)
    room[0] = WHOLE  # numba lets go of an array after its last use, not of its address


@kernel
def forward_whole(p):
    _forward(p, False)


@kernel
def forward_low(p):
    _forward(p, True)


@kernel
def backward_whole(p):
    _backward(p, False)


@kernel
def backward_low(p):
    _backward(p, True)


@kernel
def both_whole(p):
    _both(p, False)


@kernel
def both_low(p):
    _both(p, True)


BOTH = {torch.float32: both_whole, torch.bfloat16: both_low}
FORWARD = {torch.float32: forward_whole, torch.bfloat16: forward_low}
BACKWARD = {torch.float32: backward_whole, torch.bfloat16: backward_low}


def cross_entropy(logits, targets):
    """-log softmax(logits)[target] of every row [N], and the logarithms of the sums of exponentials [N]."""
    losses, logs = torch.empty(2, len(logits))
    where = logits.data_ptr(), targets.data_ptr(), losses.data_ptr(), logs.data_ptr()
    launch(FORWARD[logits.dtype], -(-len(logits) // TILE), *logits.shape, *where)
    return losses, logs


def log_sums(logits):
    """The logarithms of the sums of exponentials of every row of logits [N, V], [N]."""
    return cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64))[1]


def cross_entropy_backward(given, logits, targets, logs):
    """Gradient of the logits, given that of the losses [N]."""
    found = torch.empty_like(logits)
    where = logits.data_ptr(), targets.data_ptr(), given.data_ptr(), logs.data_ptr(), found.data_ptr()
    launch(BACKWARD[logits.dtype], -(-len(logits) // TILE), *logits.shape, *where)
    return found


def loss_and_gradient_(logits, targets, shares):
    """The sums [S] of the cross-entropies of logits [S, N, V], which become the gradient of shares [S] of them, in one
    go; of rows whose target [S, N] is negative both are 0. Sums are in the order of rows."""
    copies, rows, width = logits.shape
    losses, summed = torch.empty(copies * rows), torch.empty(copies)
    where = logits.data_ptr(), targets.data_ptr(), losses.data_ptr(), shares.data_ptr()
    launch(BOTH[logits.dtype], -(-copies * rows // TILE), copies * rows, width, *where, max(rows, 1))
    launch(sums, copies, rows, losses.data_ptr(), summed.data_ptr())
    return summed
