"""Dropout that is cheap on a CPU.

torch draws one Bernoulli number per element on CPUs, which costs more than the
layer it regularises in a small encoder. Here one 64-bit draw serves four
elements. GPUs use torch's own kernel.
"""

import torch
from torch.nn import functional as F

LEVELS = 2**16


def keep_mask(shape, p: float, dtype=torch.float32) -> torch.Tensor:
    """CPU tensor of `shape`: 0 with probability p (rounded to a multiple of 2^-16), else 1 / (1 - p).

    Draws from torch's default generator alone.
    """
    shape = torch.Size(shape)
    bits = torch.empty((shape.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    return scaled_keep(bits.view(torch.int16)[: shape.numel()], p, dtype).view(shape)


def scaled_keep(bits: torch.Tensor, p: float, dtype=torch.float32) -> torch.Tensor:
    """Random 16-bit integers, any shape -> 0 for the lowest p of their range, else 1 / (1 - p)."""
    dropped = round(p * LEVELS)
    # writing the comparison as floats is faster than converting booleans
    keep = torch.ge(bits, dropped - LEVELS // 2, out=torch.empty(bits.shape, dtype=dtype))
    return keep.mul_(LEVELS / (LEVELS - dropped))


def dropout(x: torch.Tensor, p: float, training: bool) -> torch.Tensor:
    """Zero each element of `x` with probability `p` and scale the rest by 1 / (1 - p); identity when not training."""
    if not training or p == 0:
        return x
    return x * keep_mask(x.shape, p, x.dtype) if _is_ours(x, p) else F.dropout(x, p)


def dropout_add(residual: torch.Tensor, x: torch.Tensor, p: float, training: bool) -> torch.Tensor:
    """`residual + dropout(x)`, in one pass over memory on CPUs."""
    if training and p and _is_ours(x, p):
        return AddKept.apply(residual, x, keep_mask(x.shape, p, x.dtype))
    return residual + dropout(x, p, training)


class AddKept(torch.autograd.Function):
    """residual + x keep; autograd's own gradient of `addcmul` passes over the mask once more."""

    @staticmethod
    def forward(ctx, residual, x, keep):
        ctx.save_for_backward(keep)
        return torch.addcmul(residual, x, keep)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, gradient * ctx.saved_tensors[0], None


def _is_ours(x: torch.Tensor, p: float) -> bool:
    # random_ would break a compiled graph in two
    return x.device.type == "cpu" and round(p * LEVELS) < LEVELS and not torch.compiler.is_compiling()
