"""Cross-entropy over the vocabulary, with a gradient that passes over the logits once instead of four times."""

import torch
from torch.nn import functional as F

TINY = 1e-30


def token_cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """-log softmax(logits)[target] of each row: logits [N, V], targets [N] -> [N], computed in fp32 at least.

    Equals `torch.nn.functional.cross_entropy(..., reduction="none")`, whose gradient first fills a matrix with zeros.
    """
    if logits.device.type != "cpu" or torch.compiler.is_compiling():
        logits = logits if logits.dtype == torch.float64 else logits.float()
        return F.cross_entropy(logits, targets, reduction="none")
    return TokenCrossEntropy.apply(logits, targets)


class TokenCrossEntropy(torch.autograd.Function):
    """`token_cross_entropy` on CPUs; differentiable once, backwards once (the gradient takes the place of softmax)."""

    @staticmethod
    def forward(ctx, logits, targets):
        ctx.dtype = logits.dtype
        logits = logits if logits.dtype == torch.float64 else logits.float()
        p = torch.softmax(logits, -1)
        ctx.save_for_backward(p, targets)
        chosen = p.gather(1, targets[:, None])[:, 0]
        loss = chosen.log().neg_()
        tiny = (chosen < TINY).nonzero()[:, 0]  # too small for all its digits
        if len(tiny):
            exact = torch.log_softmax(logits[tiny], -1).gather(1, targets[tiny, None])[:, 0]
            loss[tiny] = -exact
        return loss

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        p, targets = ctx.saved_tensors
        for_logits = p.mul_(gradient[:, None])
        rows = torch.arange(len(targets))
        for_logits[rows, targets] -= gradient
        return for_logits.to(ctx.dtype), None
