"""Distances between positions: windows on diagonals, and buckets."""

import math

import torch

SLACK = 1e-9  # a logarithm that is a whole number but for rounding counts as one, whichever library computes it


def shift(x: torch.Tensor) -> torch.Tensor:
    """[..., T, 2 T - 1] -> [..., T, T] with out[i, j] = x[i, T - 1 - i + j], as a view of a contiguous x."""
    return Shift.apply(x) if x.requires_grad else _diagonal_window(x)


def _diagonal_window(x: torch.Tensor) -> torch.Tensor:
    length, columns = x.shape[-2:]
    if length == 1:
        return x
    # reading the rows of x with a step one shorter than they are moves each row one column back
    flat = x.flatten(-2).narrow(-1, length - 1, length * (columns - 1))
    return flat.unflatten(-1, (length, columns - 1)).narrow(-1, 0, length)


class Shift(torch.autograd.Function):
    """`shift` with a gradient that touches memory once; autograd's own of a strided view is several passes."""

    @staticmethod
    def forward(ctx, x):
        return _diagonal_window(x)

    @staticmethod
    def backward(ctx, gradient):
        length = gradient.shape[-1]
        full = gradient.new_zeros(*gradient.shape[:-1], 2 * length - 1)
        _diagonal_window(full).copy_(gradient)
        return full


def bucket(distance: torch.Tensor, buckets: int, furthest: int) -> torch.Tensor:
    """Row of the bias table for signed distances key - query, any shape -> the same shape, in 0 .. buckets - 2.

    MAE-LM's function (Meng et al., released code), which differs from T5's: signed and rounded up. With
    half = buckets / 2 and exact = half / 2, distances below `exact` have a bucket each, further ones share
    logarithmic buckets, and from about `furthest` on there is one; the sign doubles them.
    """
    half = buckets // 2
    exact = half // 2
    steps = (half - 1 - exact) / math.log((furthest - 1) / exact)
    size = distance.abs()
    far = exact + torch.ceil(torch.log(size.clamp(min=exact).double() / exact) * steps - SLACK).long()
    return torch.where(size < exact, size, far.clamp(max=half - 1)) * distance.sign() + half - 1


def shared_bias(table: torch.Tensor, length: int, furthest: int) -> torch.Tensor:
    """Bias [n, 1, T, T] of queries (rows) on keys from a table [buckets, n], where positions are 0 .. T - 1."""
    distances = torch.arange(1 - length, length, device=table.device)
    values = torch.nn.functional.embedding(bucket(distances, len(table), furthest), table)  # [2 T - 1, n]
    return shift(values.t()[:, None, None].expand(-1, 1, length, -1).contiguous())


def bias_at(table: torch.Tensor, positions: torch.Tensor, furthest: int) -> torch.Tensor:
    """The same for tokens at `positions` [B, T]: [n, B, T, T]."""
    distances = positions[:, None, :] - positions[:, :, None]
    return torch.nn.functional.embedding(bucket(distances, len(table), furthest), table).permute(3, 0, 1, 2)
