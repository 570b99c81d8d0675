"""Products of stacked matrices with weights, by whichever library is faster on this processor.

S copies, N rows, K inner width, M outer width
"""

import contextlib

import torch

from masklab.models.linear import ROWS
from masklab.models.products import onednn, prefers_onednn


def affine(x, weight, bias=None):
    """x [S, N, K], weight [S, M, K], bias [S, M] or None -> [S, N, M]."""
    with _library(x):
        return torch.bmm(x, weight.mT) if bias is None else torch.baddbmm(bias[:, None], x, weight.mT)


def input_gradient(g, weight):
    """g [S, N, M], weight [S, M, K] -> gradient of `affine`'s x, [S, N, K]."""
    with _library(g):
        return torch.bmm(g, weight)


def affine_gradients(g, x, weight_gradient, bias_gradient) -> None:
    """Write the gradients of `affine`'s parameters, from g [S, N, M], that of its result."""
    with _library(x):
        torch.bmm(g.mT, x, out=weight_gradient)
    torch.sum(g, 1, out=bias_gradient)


def _library(x):
    """oneDNN compiles a kernel for every number of rows: it is given multiples of `ROWS` only."""
    return onednn() if x.shape[1] % ROWS == 0 and prefers_onednn() else contextlib.nullcontext()
