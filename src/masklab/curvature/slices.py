"""Slices of the loss: its values along directions through a model's parameters."""

import contextlib

import torch
from torch.nn import functional as F

from masklab.curvature.per_example import along, counted
from masklab.curvature.trace import sign_scores


def random_direction(model, scale: str, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Standard normal numbers for every parameter of the masked-token loss, drawn on the CPU.

    scale: `gaussian`, as they are: E over directions of the second derivative is the trace of the Hessian; `filter`:
    each row of a matrix as long as the row of the parameter, zero for parameters of one axis (Li et al. 2018).
    """
    direction = {}
    for name, parameter in counted(model).items():
        drawn = torch.randn(parameter.shape, generator=generator).to(parameter)
        if scale == "filter":
            lengths = [x.detach().flatten(1).norm(dim=1, keepdim=True) for x in (parameter, drawn) if x.dim() > 1]
            drawn = drawn * (lengths[0] / lengths[1]) if lengths else torch.zeros_like(drawn)
        direction[name] = drawn
    return direction


def top_direction(model, batches) -> dict[str, torch.Tensor]:
    """Unit vector along which gradients vary most: the first principal direction of sums of sentences' gradients.

    batches: of (ids, lengths, at, signs), a sum each, as in `trace.summed_norms`. Keeps all of them: parameters x
    batches numbers. Its largest entry is positive.
    """
    parameters = counted(model)
    rows = []
    for ids, lengths, at, signs in batches:
        logits = model(ids, lengths, at=at).logits
        score = along(logits, sign_scores(logits.detach(), signs))
        gradients = torch.autograd.grad(score, parameters.values(), allow_unused=True, materialize_grads=True)
        rows.append(torch.cat([gradient.flatten() for gradient in gradients]))
    rows = torch.stack(rows)
    _, vectors = torch.linalg.eigh(rows @ rows.T)  # ascending
    top = vectors[:, -1] @ rows
    top = top / top.norm() * top[top.abs().argmax()].sign()
    parts = top.split([parameter.numel() for parameter in parameters.values()])
    return {name: part.view_as(parameter) for (name, parameter), part in zip(parameters.items(), parts, strict=True)}


@contextlib.contextmanager
def moved(model, direction: dict[str, torch.Tensor], offset: float):
    """The model with `offset` x `direction` added to its parameters, meanwhile."""
    parameters = dict(model.named_parameters())
    before = {name: parameters[name].detach().clone() for name in direction}
    with torch.no_grad():
        for name, step in direction.items():
            parameters[name].add_(step, alpha=offset)
    try:
        yield
    finally:
        with torch.no_grad():
            for name, value in before.items():
                parameters[name].copy_(value)


@torch.no_grad()
def mean_loss(model, batches) -> float:
    """Mean cross-entropy in nats over batches of (ids, lengths, at, labels [B])."""
    total = sum(
        float(F.cross_entropy(model(ids, lengths, at=at).logits.double(), labels, reduction="sum"))
        for ids, lengths, at, labels in batches
    )
    return total / sum(len(labels) for *_, labels in batches)


def slice_loss(model, direction, offsets, batches) -> list[float]:
    """`mean_loss` at each offset along a direction; the model ends where it was."""
    losses = []
    for offset in offsets:
        with moved(model, direction, float(offset)):
            losses.append(mean_loss(model, batches))
    return losses
