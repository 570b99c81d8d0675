"""Linear maps that are fast on CPUs: by the faster library, in fp32 or bf16, gradients added where they are read.

A product x W' and its two gradients are three shapes; each is made by the library that is ahead on this processor
(`products`), from the tensors as they lie: nothing is transposed in memory. oneDNN compiles a kernel for every number
of rows that it meets, which costs as much as the product of a small model; so it is given multiples of `ROWS` only,
and the few rows that remain go to MKL.

Under bf16 (`optim.low`) x is rounded, weights are read from their bf16 copy where they have one, and every sum of
products is formed in fp32; the gradient of a weight is rounded once, and added to an fp32 one.
"""

import torch
from torch import nn
from torch.nn import functional as F

from masklab.inside_torch import has_onednn_linear, onednn_linear
from masklab.models import products
from masklab.optim import direct, low

ROWS = 32


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x [N, K], weight [M, K], bias [M] -> x weight' + bias [N, M]: `torch.nn.functional.linear`."""
    plain = x.dim() == 2 and x.device.type == "cpu" and x.numel() > 0 and weight.dtype == torch.float32
    if not plain or torch.compiler.is_compiling():
        return F.linear(x, weight, bias)
    if torch.is_autocast_enabled("cpu"):
        copy = low.copy_of(weight)
        return F.linear(x, weight, bias) if copy is None else LowLinear.apply(x, weight, bias, copy)
    if x.dtype != torch.float32:
        return F.linear(x, weight, bias)
    if not products.prefers_onednn() and not direct.is_direct(weight):
        return F.linear(x, weight, bias)
    return CpuLinear.apply(x, weight, bias)


def _product(x, weight, bias):
    if not products.prefers_onednn():
        return F.linear(x, weight, bias)
    rows, rest = len(x), len(x) % ROWS
    if rest and len(weight) > x.shape[1]:  # x is the narrower one: copy it
        return onednn_linear(F.pad(x, (0, 0, 0, ROWS - rest)), weight, bias)[:rows]
    if rest:
        parts = [F.linear(x[rows - rest :], weight, bias)]
        return torch.cat([onednn_linear(x[: rows - rest], weight, bias), *parts] if rows > rest else parts)
    return onednn_linear(x, weight, bias)


def _back(gradient, weight):
    """gradient [N, M] weight [M, K]: the gradient of the input, [N, K]."""
    many = len(gradient) // ROWS * ROWS
    if not many or not products.prefers_onednn():
        return gradient @ weight
    back = gradient.new_empty(len(gradient), weight.shape[1])
    with products.onednn():
        torch.mm(gradient[:many], weight, out=back[:many])
    if many < len(gradient):
        torch.mm(gradient[many:], weight, out=back[many:])
    return back


def _add_weight_gradient(into, gradient, x) -> None:
    """into [M, K] += gradient' [M, N] x [N, K]."""
    many = len(x) // ROWS * ROWS if products.prefers_onednn() else 0
    if many:
        with products.onednn():
            into.addmm_(gradient[:many].t(), x[:many])
    if many < len(x):
        into.addmm_(gradient[many:].t(), x[many:])


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
            back = gradient @ weight if again else _back(gradient, weight)
        if for_weight and again:
            weight_gradient = gradient.t() @ x
        elif for_weight:
            into = direct.target(weight)
            if into is None:
                into = weight_gradient = torch.zeros_like(weight)
            _add_weight_gradient(into, gradient, x)
        return back, weight_gradient, gradient.sum(0) if ctx.biased and for_bias else None


class LowLinear(torch.autograd.Function):
    """`linear` of a marked weight whose bf16 copy is given: products and result are bf16, twice differentiable."""

    @staticmethod
    def forward(ctx, x, weight, bias, copy):
        rows, x = len(x), _whole(x.to(copy.dtype))
        ctx.rows, ctx.copy = rows, copy
        ctx.save_for_backward(x, weight, bias)
        bias = None if bias is None else low.of(bias)
        if has_onednn_linear():
            return onednn_linear(x, copy, bias)[:rows]
        return F.linear(x, copy, bias)[:rows]

    @staticmethod
    def backward(ctx, gradient):
        x, weight, bias = ctx.saved_tensors
        for_x, for_weight, for_bias, _ = ctx.needs_input_grad
        into = direct.target(weight)
        if torch.is_grad_enabled() or (for_weight and into is None):
            fine = gradient.float()
            gradients = fine @ weight, fine.t() @ x[: ctx.rows].float(), fine.sum(0)
            return *(g if wanted else None for g, wanted in zip(gradients, ctx.needs_input_grad, strict=False)), None
        bias_gradient = gradient.sum(0) if for_bias else None
        if for_bias and (target := direct.target(bias)) is not None:
            target.add_(bias_gradient)
            bias_gradient = None
        gradient = _whole(gradient)
        if for_weight:
            into.add_(gradient.t() @ x)
        return (gradient @ ctx.copy)[: ctx.rows] if for_x else None, None, bias_gradient, None


def _whole(x):
    """x [N, K] with rows of zeros up to a multiple of `ROWS`."""
    rest = len(x) % ROWS
    return F.pad(x, (0, 0, 0, ROWS - rest)) if rest else x


class Linear(nn.Linear):
    """A linear layer that is initialised by the model that owns it."""

    def reset_parameters(self) -> None:
        pass

    def forward(self, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """x W' + b; `bias` stands in for a layer's own."""
        return linear(x, self.weight, self.bias if bias is None else bias)
