"""Linear maps that are fast on CPUs: in fp32 or bf16, gradients added where they are read.

A product x W' and its two gradients are made by `kernels.matmul` where that is ahead, else by torch's library, from the
tensors as they lie: none is transposed as a whole.

Under bf16 (`optim.low`) x is rounded, weights are read from their bf16 copy where they have one, and every sum of
products is formed in fp32; the gradient of a weight is rounded once, and added to an fp32 one. oneDNN, which makes
these products, compiles a kernel for every number of rows that it meets, which costs as much as the product of a small
model; so it is given multiples of `ROWS` only.
"""

import torch
from torch import nn
from torch.nn import functional as F

from masklab.inside_torch import has_onednn_linear, onednn_linear
from masklab.kernels.processor import faster_compiled
from masklab.optim import direct, low

ROWS = 32


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """x [N, K], weight [M, K], bias [M] -> x weight' + bias [N, M]: `torch.nn.functional.linear`."""
    if torch.compiler.is_compiling() or not _is_plain(x, weight, bias):
        return F.linear(x, weight, bias)
    if torch.is_autocast_enabled("cpu"):
        copy = low.copy_of(weight)
        return F.linear(x, weight, bias) if copy is None else LowLinear.apply(x, weight, bias, copy)
    if x.dtype != torch.float32 or not (_compiled(x, weight, bias) or direct.is_direct(weight)):
        return F.linear(x, weight, bias)
    return CpuLinear.apply(x, weight, bias)


def _is_plain(x, weight, bias) -> bool:
    """Whether these are a product of fp32 weights on a CPU; torch has its own word for what does not fit together."""
    given = [each for each in (x, weight, bias) if each is not None]
    fits = x.dim() == weight.dim() == 2 and x.shape[1] == weight.shape[1] and x.numel() > 0 and weight.numel() > 0
    fits = fits and (bias is None or (bias.shape == weight.shape[:1] and bias.dtype == torch.float32))
    return fits and weight.dtype == torch.float32 and all(each.device.type == "cpu" for each in given)


def _compiled(*given) -> bool:
    """Whether `kernels.matmul` makes products of these: not of tensors that stand for others, such as fake ones."""
    return faster_compiled(torch.float32) and all(
        each is None or (type(each) in (torch.Tensor, nn.Parameter) and not each.is_neg()) for each in given
    )


def _times(x, weight, turned: bool, bias=None):
    """x [N, K] times weight, [M, K] (`turned`) or [K, M], + bias."""
    from masklab.kernels import matmul  # numba, which it is compiled by, takes half a second
    from masklab.kernels.tiles import counted

    x, weight = (each if each.stride(1) == 1 else each.contiguous() for each in (x, weight))
    y = x.new_empty(len(x), weight.shape[0 if turned else 1])
    bias = None if bias is None else bias.contiguous()[None]
    matmul.times(x[None], weight[None], y[None], counted(1, len(x)), turned, bias)
    return y


def _product(x, weight, bias):
    return _times(x, weight, True, bias) if _compiled(x, weight) else F.linear(x, weight, bias)


def _back(gradient, weight):
    """gradient [N, M] weight [M, K]: the gradient of the input, [N, K]."""
    return _times(gradient, weight, False) if _compiled(gradient, weight) else gradient @ weight


def _add_weight_gradient(into, gradient, x) -> None:
    """into [M, K] += gradient' [M, N] x [N, K]."""
    if not _compiled(gradient, x):
        into.addmm_(gradient.t(), x)
        return
    from masklab.kernels import matmul
    from masklab.kernels.tiles import counted

    gradient, x = (each if each.stride(1) == 1 else each.contiguous() for each in (gradient, x))
    matmul.gradient(gradient[None], x[None], into[None], counted(1, len(x)), more=True)


class CpuLinear(torch.autograd.Function):
    """`linear` by whatever is fastest; twice differentiable. Gradients of marked weights go where `direct` says."""

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
                into = weight_gradient = weight.new_zeros(weight.shape)
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
