"""Stacked encoder: embeddings and blocks, with hand-written gradients.

S copies, B rows, T length, N = B T, H width
"""

import itertools

import torch
from torch.nn import functional as F

from masklab.models.stacked.attention import AbsoluteAttention, FirstAbsoluteAttention
from masklab.models.stacked.disentangled import DisentangledAttention, FirstDisentangledAttention, Relative

LOWEST = torch.finfo(torch.float32).min / 2
ATTENTION = {  # from every position, from the first
    "absolute": (AbsoluteAttention, FirstAbsoluteAttention),
    "disentangled": (DisentangledAttention, FirstDisentangledAttention),
}


class StackedEncoder:
    """`MaskedLM.encode` of every copy, at the first position of each row (`first`) or at all.

    parameters: `StackedParameters` that hold the encoder's, named as in `MaskedLM` after `prefix`; the token
    embeddings are its table.
    """

    def __init__(self, parameters, config, first: bool, prefix: str = "encoder."):
        self.parameters, self.prefix, self.config = parameters, prefix, config
        self.norm = Norm(parameters, f"{prefix}embeddings.norm", config.eps)
        everywhere, from_first = ATTENTION[config.positions]
        kinds = [everywhere] * (config.layers - first) + [from_first] * first
        self.blocks = [Block(parameters, f"{prefix}blocks.{i}", config, kind) for i, kind in enumerate(kinds)]

    def forward(self, ids, lengths, keep=None):
        """ids [S, B, T] padded on the right, lengths [S, B] -> [S, B, H] or [S, N, H].

        keep: dropout masks in the order of `dropout.sites`; None: no dropout.
        """
        copies, size, length = self.shape = ids.shape
        keep = itertools.repeat(None) if keep is None else iter(keep)
        values, width = self.parameters.values, self.parameters.width
        first_rows = torch.arange(copies, device=ids.device) * (values.shape[1] // width)
        self.rows = (ids + first_rows[:, None, None]).flatten()
        x = values.view(-1, width).index_select(0, self.rows).view(copies, size, length, width)
        self.relative = None
        if self.config.positions == "absolute":
            places = self.parameters[f"{self.prefix}embeddings.position"][:, :length]
            x.add_((places + self.parameters[f"{self.prefix}embeddings.segment"])[:, None])
        else:
            self.relative = Relative(self.parameters, f"{self.prefix}relative", length, self.config.max_positions)
        x = self.norm.forward(x.view(copies, -1, width))
        self.kept = _rows(next(keep))
        x = x if self.kept is None else x * self.kept
        padding = torch.arange(length, device=ids.device) >= lengths[..., None]
        mask = torch.zeros(padding.shape, device=ids.device).masked_fill_(padding, LOWEST) if padding.any() else None
        for block in self.blocks:
            x = block.forward(x, self.shape, mask, keep, self.relative)
        return x

    def backward(self, g) -> None:
        """Write the gradients of all parameters, given that of the result."""
        for block in reversed(self.blocks):
            g = block.backward(g)
        g = self.norm.backward(g if self.kept is None else g.mul_(self.kept))
        copies, size, length = self.shape
        if self.relative is not None:
            self.relative.write()
        else:
            position = self.parameters.gradient_of(f"{self.prefix}embeddings.position")
            torch.sum(g.view(copies, size, length, -1), 1, out=position[:, :length])
            position[:, length:].zero_()
            torch.sum(position, 1, keepdim=True, out=self.parameters.gradient_of(f"{self.prefix}embeddings.segment"))
        self.parameters.gradient_of(f"{self.prefix}embeddings.word").zero_()
        self.parameters.gradient.view(-1, self.parameters.width).index_add_(0, self.rows, g.flatten(0, 1))


def affine(x, weight, bias):
    """x [S, N, K], weight [S, M, K], bias [S, M] -> [S, N, M]."""
    return torch.baddbmm(bias[:, None], x, weight.mT)


def affine_gradients(g, x, weight_gradient, bias_gradient) -> None:
    """Write the gradients of `affine`'s parameters, from g [S, N, M], that of its result."""
    torch.bmm(g.mT, x, out=weight_gradient)
    torch.sum(g, 1, out=bias_gradient)


class Norm:
    """Layer norm of x [S, N, H] with weight and bias [S, H]; remembers what its gradient needs."""

    def __init__(self, parameters, name: str, eps: float):
        self.eps = eps
        self.weight, self.bias = parameters.pair(name)
        self.gradients = parameters.gradient_pair(name)

    def forward(self, x):
        width, alone = x.shape[-1:], len(x) == 1  # one copy: torch's kernel applies weight and bias as well
        given = (self.weight[0], self.bias[0]) if alone else (None, None)
        y, mean, scale = torch.native_layer_norm(x, width, *given, self.eps)
        self.saved = x, y, mean, scale
        return y if alone else torch.addcmul(self.bias[:, None], y, self.weight[:, None])

    def backward(self, g):
        x, y, mean, scale = self.saved
        width = x.shape[-1:]
        weight_gradient, bias_gradient = self.gradients
        if len(x) == 1:
            given = (self.weight[0], self.bias[0], [True, True, True])
            input_gradient, weight, bias = torch.ops.aten.native_layer_norm_backward(g, x, width, mean, scale, *given)
            weight_gradient.copy_(weight)
            bias_gradient.copy_(bias)
            return input_gradient
        torch.sum(g * y, 1, out=weight_gradient)
        torch.sum(g, 1, out=bias_gradient)
        given = (None, None, [True, False, False])
        return torch.ops.aten.native_layer_norm_backward(g * self.weight[:, None], x, width, mean, scale, *given)[0]


class Block:
    """One encoder block; `attending` is one of `ATTENTION`."""

    def __init__(self, parameters, name: str, config, attending):
        self.parameters, self.name = parameters, name
        self.attention = attending(parameters, f"{name}.attention", config)
        self.attention_norm = Norm(parameters, f"{name}.attention_norm", config.eps)
        self.ffn_norm = Norm(parameters, f"{name}.ffn_norm", config.eps)

    def forward(self, x, shape, mask, keep, relative=None):
        """x [S, N, H] -> [S, N or B, H]; keep: an iterator over the dropout masks of attention, output, ffn."""
        copies, size, length = shape
        context = self.attention.forward(x, shape, mask, keep, relative)
        residual = x if context.shape == x.shape else x.view(copies, size, length, -1)[:, :, 0]
        kept = _rows(next(keep))
        y = affine(context, *self.parameters.pair(f"{self.name}.out"))
        y = self.attention_norm.forward(dropped(residual, y, kept))
        inner = affine(y, *self.parameters.pair(f"{self.name}.ffn_in"))
        active = F.gelu(inner)
        kept_ffn = _rows(next(keep))
        z = affine(active, *self.parameters.pair(f"{self.name}.ffn_out"))
        self.saved = x.shape, context, kept, y, inner, active, kept_ffn, shape
        return self.ffn_norm.forward(dropped(y, z, kept_ffn))

    def backward(self, g):
        """Gradient of x, given that of the result."""
        whole, context, kept, y, inner, active, kept_ffn, (copies, size, length) = self.saved
        pair, gradients = self.parameters.pair, self.parameters.gradient_pair
        g = self.ffn_norm.backward(g)
        dz = g if kept_ffn is None else g * kept_ffn
        affine_gradients(dz, active, *gradients(f"{self.name}.ffn_out"))
        dinner = torch.bmm(dz, pair(f"{self.name}.ffn_out")[0])
        torch.ops.aten.gelu_backward.grad_input(dinner, inner, grad_input=dinner)
        affine_gradients(dinner, y, *gradients(f"{self.name}.ffn_in"))
        g = self.attention_norm.backward(g.baddbmm_(dinner, pair(f"{self.name}.ffn_in")[0]))
        dy = g if kept is None else g * kept
        affine_gradients(dy, context, *gradients(f"{self.name}.out"))
        dcontext = torch.bmm(dy, pair(f"{self.name}.out")[0])
        if g.shape != whole:
            first, g = g, g.new_zeros(whole)
            g.view(copies, size, length, -1)[:, :, 0] = first
        self.attention.backward(dcontext, g)
        return g


def dropped(residual, x, keep):
    """residual + keep x, keep None being 1."""
    return residual + x if keep is None else torch.addcmul(residual, x, keep)


def _rows(keep):
    """Masks [S, B, queries, H] -> [S, B queries, H]."""
    return None if keep is None else keep.flatten(1, 2)
