"""Cross-entropy over the vocabulary, by compiled loops on CPUs: one for the losses, and one for their gradient."""

import torch
from torch.nn import functional as F

COMPILED = torch.float32, torch.bfloat16


def token_cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """-log softmax(logits)[target] of each row: logits [N, V], targets [N] -> [N], computed in fp32 at least."""
    ours = logits.device.type == "cpu" and logits.dtype in COMPILED and targets.dtype == torch.int64
    if not ours or torch.compiler.is_compiling():
        logits = logits if logits.dtype == torch.float64 else logits.float()
        return F.cross_entropy(logits, targets, reduction="none")
    return TokenCrossEntropy.apply(logits, targets)


class TokenCrossEntropy(torch.autograd.Function):
    """`token_cross_entropy` on CPUs; twice differentiable."""

    @staticmethod
    def forward(ctx, logits, targets):
        logits, targets = logits.contiguous(), targets.contiguous()
        if len(targets) and not 0 <= int(targets.min()) <= int(targets.max()) < logits.shape[1]:
            raise IndexError(f"targets must lie in 0 .. {logits.shape[1] - 1}")
        from masklab.kernels.token_loss import cross_entropy  # numba takes half a second

        losses, logs = cross_entropy(logits, targets)
        ctx.save_for_backward(logits, targets, logs)
        return losses

    @staticmethod
    def backward(ctx, gradient):
        logits, targets, logs = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of the gradient will be asked for
            chosen = F.one_hot(targets, logits.shape[1])
            return ((torch.softmax(logits.float(), -1) - chosen) * gradient[:, None]).to(logits.dtype), None
        from masklab.kernels.token_loss import cross_entropy_backward

        return cross_entropy_backward(gradient.float().contiguous(), logits, targets, logs), None
