"""Products of stacked matrices with weights, by whichever library is faster on this processor.

S copies, N rows, K inner width, M outer width

What a copy gets depends on its own numbers alone, not on the copies beside it: copies that have fewer rows than others
(`rows`) have products of their own, and which library makes a product is decided by the size of one copy's.
"""

import contextlib

import torch

from masklab.models.linear import ROWS
from masklab.models.products import onednn, prefers_onednn

SMALLEST = 2**12  # multiplications above which torch lets oneDNN have a product


def affine(x, weight, bias=None, rows=None):
    """x [S, N, K], weight [S, M, K], bias [S, M] or None -> [S, N, M].

    rows: how many first rows of each copy count; the others become zeros. None: all.
    """
    if _alike(rows, x):
        return _affine(x, weight, bias)
    y = x.new_zeros(*x.shape[:2], weight.shape[1])
    for copy, count in _each(rows):
        y[copy, :count] = _affine(x[copy, :count], weight[copy], None if bias is None else bias[copy])
    return y


def input_gradient(g, weight, rows=None):
    """g [S, N, M], weight [S, M, K] -> gradient of `affine`'s x, [S, N, K]."""
    if _alike(rows, g):
        return _product(g, weight)
    y = g.new_zeros(*g.shape[:2], weight.shape[2])
    for copy, count in _each(rows):
        y[copy, :count] = _product(g[copy, :count], weight[copy])
    return y


def affine_gradients(g, x, weight_gradient, bias_gradient, rows=None) -> None:
    """Write the gradients of `affine`'s parameters, from g [S, N, M], that of its result."""
    parts = [(slice(None), None)] if _alike(rows, x) else _each(rows)
    for copy, count in parts:
        with _library(x[copy, :count], g.shape[2]):
            torch.bmm(g[copy, :count].mT, x[copy, :count], out=weight_gradient[copy])
        torch.sum(g[copy, :count], 1, out=bias_gradient[copy])


def _affine(x, weight, bias):
    with _library(x, weight.shape[1]):
        return torch.bmm(x, weight.mT) if bias is None else torch.baddbmm(bias[:, None], x, weight.mT)


def _product(g, weight):
    with _library(g, weight.shape[2]):
        return torch.bmm(g, weight)


def _alike(rows, x) -> bool:
    return rows is None or all(count == x.shape[1] for count in rows)


def _each(rows):
    return [(slice(copy, copy + 1), count) for copy, count in enumerate(rows)]


def _library(x, outer: int):
    """oneDNN compiles a kernel for every number of rows: it is given multiples of `ROWS` only."""
    fits = x.shape[1] % ROWS == 0 and x.shape[1] * x.shape[2] * outer > SMALLEST
    return onednn() if fits and prefers_onednn() else contextlib.nullcontext()
