"""Gradients added straight to where the optimiser reads them.

autograd gathers what every use of a parameter gives in new tensors, sums those, and adds the sum to the parameter's
`grad`. The token embeddings of a small model, used by its first layer and by its head, are larger than all the rest;
so those detours cost more than the layers' own element-wise work. Parameters marked here (`training.optim` does) have
a `grad` to which `linear` and `lookup` add in place, and autograd is told that there is nothing to do. The sums are
the same. Only `backward()` fills them: `torch.autograd.grad` does not see the gradient of a marked parameter unless
`create_graph` asks for one that can be differentiated again.
"""

import torch
from torch.nn import functional as F


def mark(parameter: torch.nn.Parameter) -> None:
    """Have the gradients of a CPU parameter, which has a `grad`, added to that in place."""
    parameter.is_direct = parameter.device.type == "cpu"


def is_direct(parameter: torch.Tensor) -> bool:
    return getattr(parameter, "is_direct", False) and parameter.grad is not None


def target(parameter: torch.Tensor) -> torch.Tensor | None:
    """Inside a backward pass: the tensor to add the gradient to, None if autograd wants it."""
    return parameter.grad if is_direct(parameter) and not torch.is_grad_enabled() else None


def lookup(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Rows of table [V, H] at ids [...] -> [..., H]: `torch.nn.functional.embedding`."""
    if torch.compiler.is_compiling() or not is_direct(table):
        return F.embedding(ids, table)
    return Lookup.apply(ids, table)


class Lookup(torch.autograd.Function):
    """`lookup` of a marked table."""

    @staticmethod
    def forward(ctx, ids, table):
        ctx.save_for_backward(ids, table)
        return F.embedding(ids, table)

    @staticmethod
    def backward(ctx, gradient):
        ids, table = ctx.saved_tensors
        into = target(table)
        if into is None:
            return None, torch.ops.aten.embedding_dense_backward(gradient, ids, len(table), -1, False)
        into.index_add_(0, ids.flatten(), gradient.flatten(0, -2))
        return None, None
