"""Products of stacked matrices, by whichever library is faster.

S copies, N rows, K inner width, M outer width
"""

import torch

from masklab.models.linear import ROWS, prefers_onednn

ENOUGH = 2**21  # N K M from which oneDNN is ahead of MKL on AMD's processors, kernel by kernel


def affine(x, weight, bias=None):
    """x [S, N, K], weight [S, M, K], bias [S, M] or None -> [S, N, M]."""
    if not _by_onednn(x, len(weight[0])):
        return torch.bmm(x, weight.mT) if bias is None else torch.baddbmm(bias[:, None], x, weight.mT)
    bias = [None] * len(x) if bias is None else bias
    return _each(zip(x, weight, bias, strict=True), len(x))


def input_gradient(g, weight):
    """g [S, N, M], weight [S, M, K] -> gradient of `affine`'s x, [S, N, K]."""
    if not _by_onednn(g, weight.shape[2]):
        return torch.bmm(g, weight)
    return _each(((one, own.t(), None) for one, own in zip(g, weight, strict=True)), len(g))


def affine_gradients(g, x, weight_gradient, bias_gradient) -> None:
    """Write the gradients of `affine`'s parameters, from g [S, N, M], that of its result."""
    torch.bmm(g.mT, x, out=weight_gradient)
    torch.sum(g, 1, out=bias_gradient)


def _by_onednn(x, outer: int) -> bool:
    """oneDNN compiles a kernel for every number of rows: it is given multiples of `ROWS` only."""
    rows, inner = x.shape[1:]
    return rows * inner * outer >= ENOUGH and rows % ROWS == 0 and x.dtype == torch.float32 and prefers_onednn()


def _each(factors, copies):
    products = [torch.ops.mkldnn._linear_pointwise(*each, "none", [], "") for each in factors]
    return products[0][None] if copies == 1 else torch.stack(products)
