"""KL divergence of rows of logits from others over a vocabulary, and its gradient, each in one pass over both.

N rows, V vocabulary; everything is fp32
"""

import numpy as np
import torch

from masklab.kernels.kernel import TILES, kernel, launch, next_tile, real, whole
from masklab.kernels.scalars import exp
from masklab.kernels.token_loss import top_of
from masklab.kernels.vectors import (
    LANES,
    add,
    add_product,
    filled,
    load,
    multiply,
    number,
    put,
    store,
    subtract,
    total,
)
from masklab.kernels.vectors import exp as exps

TILE = 8  # rows
ZERO = np.float32(0)


@kernel
def forward(p):
    """What `divergence` asks for."""
    rows, width, losses, logs, scale = whole(p, 2), whole(p, 3), whole(p, 6), whole(p, 7), real(p, 8)
    even = width - width % LANES
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        for r in range(tile * TILE, min(rows, (tile + 1) * TILE)):
            given, own = whole(p, 4) + 4 * r * width, whole(p, 5) + 4 * r * width
            given_top, own_top = top_of(given, width, False), top_of(own, width, False)
            given_sums = own_sums = differences = filled(ZERO)
            for c in range(0, even, LANES):
                theirs, ours = subtract(load(given, c), given_top), subtract(load(own, c), own_top)
                power = exps(multiply(theirs, scale))
                given_sums, own_sums = add(given_sums, power), add(own_sums, exps(multiply(ours, scale)))
                differences = add_product(differences, power, subtract(theirs, ours))
            given_sum, own_sum, difference = total(given_sums), total(own_sums), total(differences)
            for c in range(even, width):
                theirs, ours = number(given, c) - given_top, number(own, c) - own_top
                power = exp(scale * theirs)
                given_sum, own_sum = given_sum + power, own_sum + exp(scale * ours)
                difference += power * (theirs - ours)
            put(losses, r, scale * difference / given_sum - np.log(given_sum) + np.log(own_sum))
            put(logs, 2 * r, scale * given_top + np.log(given_sum))
            put(logs, 2 * r + 1, scale * own_top + np.log(own_sum))


@kernel
def backward(p):
    """What `divergence_backward` asks for."""
    rows, width, shares, logs, scale = whole(p, 2), whole(p, 3), whole(p, 6), whole(p, 7), real(p, 8)
    even = width - width % LANES
    while True:
        tile = next_tile(p)
        if tile >= whole(p, TILES):
            break
        for r in range(tile * TILE, min(rows, (tile + 1) * TILE)):
            row = 4 * r * width
            given, own, to = whole(p, 4) + row, whole(p, 5) + row, whole(p, 9) + row
            given_log, own_log, share = number(logs, 2 * r), number(logs, 2 * r + 1), scale * number(shares, r)
            for c in range(0, even, LANES):
                theirs = exps(subtract(multiply(load(given, c), scale), given_log))
                ours = exps(subtract(multiply(load(own, c), scale), own_log))
                store(to, c, multiply(subtract(ours, theirs), share))
            for c in range(even, width):
                theirs, ours = exp(scale * number(given, c) - given_log), exp(scale * number(own, c) - own_log)
                put(to, c, share * (ours - theirs))


def divergence(given, logits, scale: float):
    """KL(softmax(scale given) || softmax(scale logits)) of every row [N], and the logarithms of both sums of
    exponentials [N, 2], which `divergence_backward` wants; given, logits [N, V], in one piece."""
    losses, logs = torch.empty(len(logits)), torch.empty(len(logits), 2)
    where = given.data_ptr(), logits.data_ptr(), losses.data_ptr(), logs.data_ptr()
    launch(forward, -(-len(logits) // TILE), *logits.shape, *where, scale)
    return losses, logs


def divergence_backward(shares, given, logits, logs, scale: float):
    """Gradient of the logits, given that of the divergences [N]."""
    found = torch.empty_like(logits)
    where = given.data_ptr(), logits.data_ptr(), shares.data_ptr(), logs.data_ptr()
    launch(backward, -(-len(logits) // TILE), *logits.shape, *where, scale, found.data_ptr())
    return found
