"""KL divergence of a student's distribution over the vocabulary from its teacher's, by compiled loops on CPUs."""

import torch
from torch.nn import functional as F


def token_divergence(given: torch.Tensor, logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """KL(softmax(given / temperature) || softmax(logits / temperature)) of each row: both [N, V] -> [N].

    Computed in fp32 at least. No gradient of `given` is asked for.
    """
    given, logits = (each if each.dtype == torch.float64 else each.float() for each in (given, logits))
    ours = logits.device.type == given.device.type == "cpu" and logits.dtype == given.dtype == torch.float32
    if not ours or torch.compiler.is_compiling():
        return _by_torch(given, logits, temperature)
    return TokenDivergence.apply(given, logits, temperature)


class TokenDivergence(torch.autograd.Function):
    """`token_divergence` on CPUs; twice differentiable."""

    @staticmethod
    def forward(ctx, given, logits, temperature):
        from masklab.kernels.token_divergence import divergence  # numba takes half a second

        given, logits, ctx.temperature = given.contiguous(), logits.contiguous(), temperature
        losses, logs = divergence(given, logits, 1 / temperature)
        ctx.save_for_backward(given, logits, logs)
        return losses

    @staticmethod
    def backward(ctx, gradient):
        given, logits, logs = ctx.saved_tensors
        if torch.is_grad_enabled():  # a gradient of the gradient will be asked for
            apart = F.softmax(logits / ctx.temperature, -1) - F.softmax(given / ctx.temperature, -1)
            return None, apart * (gradient[:, None] / ctx.temperature), None
        from masklab.kernels.token_divergence import divergence_backward

        found = divergence_backward(gradient.contiguous(), given, logits, logs, 1 / ctx.temperature)
        return None, found, None


def _by_torch(given, logits, temperature):
    target, student = (F.log_softmax(each / temperature, -1) for each in (given, logits))
    return F.kl_div(student, target, reduction="none", log_target=True).sum(-1)
