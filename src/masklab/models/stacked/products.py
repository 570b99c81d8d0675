"""Products of stacked matrices with weights, by whichever library is faster on this processor, in fp32 or bf16.

S copies, N rows, K inner width, M outer width

What a copy gets depends on its own numbers alone, not on the copies beside it: copies that have fewer rows than others
(`rows`) have products of their own, and which library makes a product is decided by the size of one copy's.

Inside `low` both factors are rounded to bf16, sums are formed in fp32 and rounded once; what comes out is fp32 again,
so that all between the products (norms, softmax, loss, gradients that are added up) is fp32.
"""

import contextlib

import torch

from masklab.models.linear import ROWS
from masklab.models.products import onednn, prefers_onednn
from masklab.optim.low import DTYPE

SMALLEST = 2**12  # multiplications above which torch lets oneDNN have a product
_inside_low = False


@contextlib.contextmanager
def low(wanted: bool = True):
    """Products that this module makes are of bf16 numbers, if `wanted`. Gradients must be computed inside too.

    Those that others make stay fp32: of attention, of its first positions and distances.
    """
    global _inside_low
    before, _inside_low = _inside_low, wanted
    try:
        yield
    finally:
        _inside_low = before


def affine(x, weight, bias=None, rows=None):
    """x [S, N, K], weight [S, M, K], bias [S, M] or None -> [S, N, M].

    rows: how many first rows of each copy count; the others become zeros. None: all.
    """
    if _alike(rows, x):
        return _affine(x, weight, bias)
    y = x.new_zeros(*x.shape[:2], weight.shape[1])
    for copy, count in enumerate(rows):
        only = slice(copy, copy + 1)
        y[copy, :count] = _affine(_first(x, copy, count), weight[only], None if bias is None else bias[only])[0]
    return y


def input_gradient(g, weight, rows=None):
    """g [S, N, M], weight [S, M, K] -> gradient of `affine`'s x, [S, N, K]."""
    if _alike(rows, g):
        return _product(g, weight)
    y = g.new_zeros(*g.shape[:2], weight.shape[2])
    for copy, count in enumerate(rows):
        y[copy, :count] = _product(_first(g, copy, count), weight[copy : copy + 1])[0]
    return y


def affine_gradients(g, x, weight_gradient, bias_gradient, rows=None) -> None:
    """Write the gradients of `affine`'s parameters (bias_gradient None: of the weight alone), from g [S, N, M], that of
    its result."""
    if not _alike(rows, x):
        for copy, count in enumerate(rows):
            into = (None if each is None else each[copy : copy + 1] for each in (weight_gradient, bias_gradient))
            affine_gradients(_first(g, copy, count), _first(x, copy, count), *into)
        return
    if _inside_low:
        for into, own, read in zip(weight_gradient, _rounded(g), _rounded(x), strict=True):
            into.copy_(own.t() @ read)
    else:
        with _library(x, g.shape[2]):
            torch.bmm(g.mT, x, out=weight_gradient)
    if bias_gradient is not None:
        torch.sum(g, 1, out=bias_gradient)


def _affine(x, weight, bias):
    if _inside_low:
        y = _low_product(x, weight.mT)
        return y if bias is None else y.add_(bias[:, None])
    with _library(x, weight.shape[1]):
        return torch.bmm(x, weight.mT) if bias is None else torch.baddbmm(bias[:, None], x, weight.mT)


def _product(g, weight):
    if _inside_low:
        return _low_product(g, weight)
    with _library(g, weight.shape[2]):
        return torch.bmm(g, weight)


def _low_product(x, weight):
    """x [S, N, K], weight [S, K, M] -> their products [S, N, M]; each copy's is one of its own."""
    y = x.new_empty(*x.shape[:2], weight.shape[2])
    for into, own, other in zip(y, _rounded(x), weight.to(DTYPE), strict=True):
        into.copy_((own @ other)[: len(into)])
    return y


def _rounded(x):
    """x [S, N, K] in bf16, with rows of zeros up to a multiple of `ROWS`: oneDNN compiles a kernel for every number."""
    copies, rows, width = x.shape
    y = x.new_empty(copies, -(-rows // ROWS) * ROWS, width, dtype=DTYPE)
    y[:, :rows] = x
    y[:, rows:] = 0
    return y


def _alike(rows, x) -> bool:
    return rows is None or all(count == x.shape[1] for count in rows)


def _first(x, copy: int, count: int):
    """The first rows of one copy, [1, count, ...], with the strides of a copy alone: oneDNN looks at them too."""
    return x[copy, :count][None]


def _library(x, outer: int):
    """oneDNN compiles a kernel for every number of rows: it is given multiples of `ROWS` only."""
    fits = x.shape[1] % ROWS == 0 and x.shape[1] * x.shape[2] * outer > SMALLEST
    return onednn() if fits and prefers_onednn() else contextlib.nullcontext()
