"""Products of stacked matrices with weights, by what is fastest on this processor, in fp32 or bf16: compiled here
(`kernels.matmul`), or by torch's library.

S copies, N rows, K inner width, M outer width

What a copy gets depends on its own numbers alone, not on the copies beside it. Of a library, which sums in an order
that the shape decides, copies that have fewer rows than others (`rows`) ask for products of their own.

Of bf16 factors, a model's states and the bf16 copies of its weights, products are bf16, and gradients of weights fp32.
Inside `low` both factors, fp32 otherwise, are rounded to bf16 and sums are formed in fp32, which libraries round once.
What comes out is fp32 again, and so is all between the products: norms, softmax, loss, gradients that are added up.
"""

import contextlib

import torch
from torch.nn import functional as F

from masklab.kernels import matmul
from masklab.kernels.processor import faster_compiled
from masklab.kernels.tiles import counted
from masklab.models.linear import ROWS
from masklab.optim.low import DTYPE

_inside_low = False


@contextlib.contextmanager
def low(wanted: bool = True):
    """Products that this module makes are of bf16 numbers, if `wanted`. Gradients must be computed inside too.

    Those that others make stay fp32: of attention.
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
    y = x.new_empty(*x.shape[:2], weight.shape[1])
    if compiled(x):
        x, weight = _factors(x, weight)
        if x.dtype == DTYPE and x.shape[2] % 2:  # pairs are multiplied
            x, weight = F.pad(x, (0, 1)), F.pad(weight, (0, 1))
        matmul.times(x, weight, y, counted(*x.shape[:2], rows), True, bias)
        return y
    for copies, count in _runs(rows, x):
        _affine(_of(x, copies, count), weight[copies], None if bias is None else bias[copies], _of(y, copies, count))
    return _ended(y, rows)


def input_gradient(g, weight, rows=None, into=None):
    """g [S, N, M], weight [S, M, K] -> gradient of `affine`'s x, [S, N, K], or `into` with it added."""
    y = g.new_empty(*g.shape[:2], weight.shape[2]) if into is None or not compiled(g) else into
    if compiled(g):
        g, weight = _factors(g, weight)
        if g.dtype == DTYPE and g.shape[2] % 2:
            g, weight = F.pad(g, (0, 1)), F.pad(weight, (0, 0, 0, 1))
        matmul.times(g, weight, y, counted(*g.shape[:2], rows), False, more=into is not None)
        return y
    for copies, count in _runs(rows, g):
        _product(_of(g, copies, count), weight[copies], _of(y, copies, count))
    y = _ended(y, rows)
    return y if into is None else into.add_(y)


def row_count(count: int) -> int:
    """Rows that products have for `count` rows: libraries are given multiples of `ROWS`."""
    return count if faster_compiled(torch.float32) else -(-count // ROWS) * ROWS


def compiled(x) -> bool:
    """Whether products of x are made by `kernels.matmul`: of all copies at once, each as if it were alone."""
    return faster_compiled(DTYPE if _inside_low else x.dtype)


def _factors(*factors):
    """Factors as they are multiplied, each of whose rows lies in one piece."""
    kind = DTYPE if _inside_low else factors[0].dtype
    return [each if each.dtype == kind and each.stride(-1) == 1 else _factor(each, kind) for each in factors]


def _factor(x, kind):
    x = x.to(kind)
    return x if x.stride(-1) == 1 else x.contiguous()


def _runs(rows, x):
    """(copies, how many of their rows count): all at once where they have as many."""
    if rows is None or all(count == x.shape[1] for count in rows):
        return [(slice(None), x.shape[1])]
    return [(slice(copy, copy + 1), count) for copy, count in enumerate(rows) if count]


def _of(x, copies: slice, count: int):
    """The first rows of some copies; of one with the strides of a copy alone: oneDNN looks at them too."""
    return x[copies.start, :count][None] if copies.stop else x


def _ended(y, rows):
    for own, count in zip(y, rows or (), strict=False):
        if count < y.shape[1]:
            own[count:].zero_()
    return y


def affine_gradients(g, x, weight_gradient, bias_gradient, rows=None) -> None:
    """Write the gradients of `affine`'s parameters (bias_gradient None: of the weight alone), from g [S, N, M], that of
    its result."""
    if compiled(g):
        counts, rounds = counted(*x.shape[:2], rows), _inside_low and g.dtype != DTYPE
        matmul.gradient(*_factors(g, x), weight_gradient, counts, None if rounds else bias_gradient)
        if rounds and bias_gradient is not None:  # of what is not rounded
            matmul.column_sums(g if g.stride(-1) == 1 else g.contiguous(), bias_gradient, counts)
        return
    for copies, count in _runs(rows, x):
        into = (None if each is None else each[copies] for each in (weight_gradient, bias_gradient))
        _gradients(_of(g, copies, count), _of(x, copies, count), *into)
    for copy, count in enumerate(rows or ()):
        if not count:
            for each in (weight_gradient, bias_gradient):
                if each is not None:
                    each[copy].zero_()


def _gradients(g, x, weight_gradient, bias_gradient):
    if x.dtype == DTYPE:
        for into, own, read in zip(weight_gradient, g, x, strict=True):
            into.copy_(own.t() @ read)
    elif _inside_low:
        for into, own, read in zip(weight_gradient, _rounded(g), _rounded(x), strict=True):
            into.copy_(own.t() @ read)
    else:
        torch.bmm(g.mT, x, out=weight_gradient)
    if bias_gradient is not None:
        torch.sum(g, 1, dtype=bias_gradient.dtype, out=bias_gradient)


def _affine(x, weight, bias, y):
    if x.dtype == DTYPE:
        for copy, own in enumerate(x):
            if bias is None:
                torch.mm(own, weight[copy].t(), out=y[copy])
            else:
                torch.addmm(bias[copy].to(DTYPE), own, weight[copy].t(), out=y[copy])
        return
    if _inside_low:
        _low_product(x, weight.mT, y)
        if bias is not None:
            y.add_(bias[:, None])
        return
    if bias is None:
        torch.bmm(x, weight.mT, out=y)
    else:
        torch.baddbmm(bias[:, None], x, weight.mT, out=y)


def _product(g, weight, y):
    if g.dtype == DTYPE:
        for into, own, other in zip(y, g, weight, strict=True):
            torch.mm(own, other, out=into)
        return
    if _inside_low:
        _low_product(g, weight, y)
        return
    torch.bmm(g, weight, out=y)


def _low_product(x, weight, y):
    """x [S, N, K], weight [S, K, M] -> their products in y [S, N, M]; each copy's is one of its own."""
    for into, own, other in zip(y, _rounded(x), weight.to(DTYPE), strict=True):
        into.copy_((own @ other)[: len(into)])


def _rounded(x):
    """x [S, N, K] in bf16, with rows of zeros up to a multiple of `ROWS`: oneDNN compiles a kernel for every number."""
    copies, rows, width = x.shape
    y = x.new_empty(copies, -(-rows // ROWS) * ROWS, width, dtype=DTYPE)
    y[:, :rows] = x
    y[:, rows:] = 0
    return y
