"""Batched products of matrices, those of attention, by whichever library is faster on this processor.

oneDNN compiles a kernel for every shape, and batches of text have many, so it is given large products alone: measured
over rows of 10 to 128 tokens and heads of 8 to 64 units (AMD EPYC with AVX-512), it takes 1.1 to .4 of MKL's time from
some million multiplications up, and .6 to .35 of it at 8 million and more.
"""

import torch

from masklab.models.products import onednn, prefers_onednn

LARGE = 2**22  # multiplications


def takes(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether `product` hands these to oneDNN."""
    if torch.compiler.is_compiling() or a.device.type != "cpu" or not a.dtype == b.dtype == torch.float32:
        return False
    return a.numel() * b.shape[2] >= LARGE and not torch.is_autocast_enabled("cpu") and prefers_onednn()


def product(a: torch.Tensor, b: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """scale a b of batched matrices, [B, M, K] and [B, K, N] -> [B, M, N]; twice differentiable."""
    return Product.apply(a, b, scale) if takes(a, b) else _scaled(a, b, scale)


def _scaled(a, b, scale):
    return torch.bmm(a, b) if scale == 1 else torch.baddbmm(a.new_zeros(1), a, b, beta=0, alpha=scale)


class Product(torch.autograd.Function):
    """`product` by oneDNN, its gradients too."""

    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.save_for_backward(a, b)
        ctx.scale = scale
        with onednn():
            return _scaled(a, b, scale)

    @staticmethod
    def backward(ctx, gradient):
        (a, b), (for_a, for_b, _) = ctx.saved_tensors, ctx.needs_input_grad
        # the gradient of a gradient, if one is asked for, is formed by these very products
        of_a = product(gradient, b.transpose(1, 2), ctx.scale) if for_a else None
        return of_a, product(a.transpose(1, 2), gradient, ctx.scale) if for_b else None, None
