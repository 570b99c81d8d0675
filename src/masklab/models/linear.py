"""Linear maps that are fast on CPUs.

torch multiplies fp32 matrices with MKL, which on AMD's processors is slower than oneDNN, the other library inside
torch, a little for the shapes of an encoder's layers, much for the vocabulary's. So there, and there only, products
with a weight matrix and the gradients of their inputs go to oneDNN, except thin ones, where MKL is ahead, as it is
for the gradients of weights. oneDNN compiles a kernel for every number of rows that it meets, which costs as much as
the product of a small model; so it is given multiples of `ROWS` only (`_by_onednn`). The choice depends on processor
and shape alone: the same machine gives the same numbers.
"""

import functools
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from masklab.optim import direct

# On a Zen 4 EPYC MKL is ahead where the inner width is below THIN and the outer one below WIDE.
THIN, WIDE = 192, 4096
ROWS = 32


@functools.cache
def prefers_onednn() -> bool:
    """Whether this is an AMD processor and torch has the oneDNN product."""
    try:
        amd = "AuthenticAMD" in Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        amd = False
    return amd and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x [N, K], weight [M, K], bias [M] -> x weight' + bias [N, M]: `torch.nn.functional.linear`."""
    plain = x.dim() == 2 and x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu" and x.numel() > 0
    if not plain or torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    if not prefers_onednn() and not direct.is_direct(weight):
        return F.linear(x, weight, bias)
    return CpuLinear.apply(x, weight, bias)


def _product(x, weight, bias=None):
    if not prefers_onednn() or (x.shape[1] < THIN and len(weight) < WIDE):
        return F.linear(x, weight, bias)
    return _by_onednn(x, weight, bias)


def _by_onednn(x, weight, bias):
    """Whichever of x and the result is narrower is copied where the rows are no multiple of `ROWS`."""
    rows, rest = len(x), len(x) % ROWS
    if rest and len(weight) > x.shape[1]:
        return _by_onednn(F.pad(x, (0, 0, 0, ROWS - rest)), weight, bias)[:rows]
    if rest:
        parts = [F.linear(x[rows - rest :], weight, bias)]
        return torch.cat([_by_onednn(x[: rows - rest], weight, bias), *parts] if rows > rest else parts)
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


class CpuLinear(torch.autograd.Function):
    """`linear` by either library; twice differentiable. Gradients of marked weights go where `direct` says."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        ctx.biased = bias is not None
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        for_x, for_weight, for_bias = ctx.needs_input_grad
        again = torch.is_grad_enabled()  # a gradient of the gradient will be asked for
        back = weight_gradient = None
        if for_x:
            back = gradient @ weight if again else _product(gradient, weight.t())
        if for_weight and (into := direct.target(weight)) is not None:
            into.addmm_(gradient.t(), x)
        elif for_weight:
            weight_gradient = gradient.t() @ x
        return back, weight_gradient, gradient.sum(0) if ctx.biased and for_bias else None


class Linear(nn.Linear):
    """A linear layer that is initialised by the model that owns it."""

    def reset_parameters(self) -> None:
        pass

    def forward(self, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """x W' + b; `bias` stands in for a layer's own."""
        return linear(x, self.weight, self.bias if bias is None else bias)
