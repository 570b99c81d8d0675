"""Cross-entropy over the vocabulary, with a gradient that passes over the logits twice instead of four times."""

import torch
from torch.nn import functional as F


def token_cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """-log softmax(logits)[target] of each row: logits [N, V], targets [N] -> [N], computed in fp32 at least.

    Equals `torch.nn.functional.cross_entropy(..., reduction="none")`, whose gradient first fills a matrix with zeros.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    if logits.device.type != "cpu" or torch.compiler.is_compiling():
        return F.cross_entropy(logits, targets, reduction="none")
    return TokenCrossEntropy.apply(logits, targets)


class TokenCrossEntropy(torch.autograd.Function):
    """`token_cross_entropy` on CPUs; once differentiable."""

    @staticmethod
    def forward(ctx, logits, targets):
        log_p = torch.log_softmax(logits, -1)
        ctx.save_for_backward(log_p, targets)
        return -log_p.gather(1, targets[:, None])[:, 0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        log_p, targets = ctx.saved_tensors
        found = log_p.exp().mul_(gradient[:, None])
        found.scatter_add_(1, targets[:, None], -gradient[:, None])
        return found, None
