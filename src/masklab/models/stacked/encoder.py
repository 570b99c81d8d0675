"""Stacked encoder: embeddings and blocks, with hand-written gradients.

S copies, B rows, T length, N = B T, H width
"""

import torch
from torch.nn import functional as F

from masklab.models.stacked.attention import Attention, FirstAttention

LOWEST = torch.finfo(torch.float32).min / 2
EPS = 1e-12  # of layer norms, BERT's


class StackedEncoder:
    """`MaskedLM.encode` of every copy, at the first position of each row (`first`) or at all.

    parameters: `StackedParameters` that hold the encoder's, named as in `MaskedLM` after `prefix`; the token
    embeddings are the first of all.
    """

    def __init__(self, parameters, config, first: bool, prefix: str = "encoder."):
        self.parameters, self.prefix, self.layers = parameters, prefix, config.layers
        self.norm = Norm(parameters, f"{prefix}embeddings.norm")
        kinds = [Attention] * (config.layers - first) + [FirstAttention] * first
        self.blocks = [Block(parameters, f"{prefix}blocks.{i}", config, kind) for i, kind in enumerate(kinds)]

    def forward(self, ids, lengths, keep=None):
        """ids [S, B, T] padded on the right, lengths [S, B] -> [S, B, H] or [S, N, H].

        keep: dropout masks in the order of `dropout.sites`; None: no dropout.
        """
        copies, size, length = ids.shape
        keep = iter(keep or [None] * (1 + 3 * self.layers))
        values, width = self.parameters.values, self.parameters.width
        first_rows = torch.arange(copies, device=ids.device) * (values.shape[1] // width)
        self.rows = (ids + first_rows[:, None, None]).flatten()
        places = self.parameters[f"{self.prefix}embeddings.position"][:, :length]
        places = places + self.parameters[f"{self.prefix}embeddings.segment"]
        x = values.view(-1, width).index_select(0, self.rows).view(copies, size, length, width)
        x = self.norm.forward(x.add_(places[:, None]).view(copies, -1, width))
        self.kept = _rows(next(keep))
        x = x if self.kept is None else x * self.kept
        padding = torch.arange(length, device=ids.device) >= lengths[..., None]
        mask = torch.zeros(padding.shape, device=ids.device).masked_fill_(padding, LOWEST) if padding.any() else None
        self.shape = ids.shape
        for block in self.blocks:
            x = block.forward(x, self.shape, mask, keep)
        return x

    def backward(self, g) -> None:
        """Write the gradients of all parameters, given that of the result."""
        for block in reversed(self.blocks):
            g = block.backward(g)
        g = self.norm.backward(g if self.kept is None else g.mul_(self.kept))
        copies, size, length = self.shape
        word, position, segment = (
            self.parameters.gradient_of(f"{self.prefix}embeddings.{name}") for name in ("word", "position", "segment")
        )
        torch.sum(g.view(copies, size, length, -1), 1, out=position[:, :length])
        position[:, length:].zero_()
        torch.sum(position, 1, keepdim=True, out=segment)
        word.zero_()
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

    def __init__(self, parameters, name: str):
        self.weight, self.bias = parameters.pair(name)
        self.gradients = parameters.gradient_pair(name)

    def forward(self, x):
        width, alone = x.shape[-1:], len(x) == 1  # one copy: torch's kernel applies weight and bias as well
        given = (self.weight[0], self.bias[0]) if alone else (None, None)
        y, mean, scale = torch.native_layer_norm(x, width, *given, EPS)
        self.saved = x, y, mean, scale
        return y if alone else torch.addcmul(self.bias[:, None], y, self.weight[:, None])

    def backward(self, g):
        x, y, mean, scale = self.saved
        width = x.shape[-1:]
        weight_gradient, bias_gradient = self.gradients
        if len(x) == 1:
            given = (self.weight[0], self.bias[0], [True, True, True])
            found, weight, bias = torch.ops.aten.native_layer_norm_backward(g, x, width, mean, scale, *given)
            weight_gradient.copy_(weight)
            bias_gradient.copy_(bias)
            return found
        torch.sum(g * y, 1, out=weight_gradient)
        torch.sum(g, 1, out=bias_gradient)
        given = (None, None, [True, False, False])
        return torch.ops.aten.native_layer_norm_backward(g * self.weight[:, None], x, width, mean, scale, *given)[0]


class Block:
    """One encoder block; `Attending` is `Attention`, or `FirstAttention` where only the first positions go on."""

    def __init__(self, parameters, name: str, config, attending):
        self.parameters, self.name = parameters, name
        self.attention = attending(parameters, f"{name}.attention.in_proj", config)
        self.attention_norm = Norm(parameters, f"{name}.attention_norm")
        self.ffn_norm = Norm(parameters, f"{name}.ffn_norm")

    def forward(self, x, shape, mask, keep):
        """x [S, N, H] -> [S, N or B, H]; keep: an iterator over the dropout masks of attention, output, ffn."""
        copies, size, length = shape
        context = self.attention.forward(x, shape, mask, next(keep))
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
