"""Stacked self-attention with a hand-written gradient.

S copies, B rows, T length, N = B T, n heads, d width of a head, H = n d; shape: the `grid.Grid` of a batch, by which
x [S, N, H] may be packed, [S, P, H]; K tokens that are asked for
"""

import math

import torch

from masklab.inside_torch import softmax_backward
from masklab.kernels.attend import attend, attend_backward
from masklab.models.attention import short_softmax
from masklab.models.batched import library
from masklab.models.stacked.products import affine, affine_gradients, input_gradient


class Attention:
    """Self-attention from every position, up to the output projection: x [S, N, H] -> [S, N, H]."""

    def __init__(self, parameters, name: str, config):
        self.heads, self.width = config.heads, config.hidden // config.heads
        self.scale = 1 / math.sqrt(self.width)
        # rows [n, 3 d]: query, key and value of a head
        self.weight, self.weight_gradient = (
            part.unflatten(1, (self.heads, -1)) for part in parameters.with_gradient(f"{name}.in_proj.weight")
        )
        self.read = parameters.read(f"{name}.in_proj.weight").unflatten(1, (self.heads, -1))

    def place_bias(self, parameters, name):
        """Views of the projection's bias and its gradient, [S, n, 3 d]."""
        self.bias, self.bias_gradient = (
            part.unflatten(1, (self.heads, -1)) for part in parameters.with_gradient(f"{name}.in_proj.bias")
        )

    def part_of(self, part):
        """Rows `part` of every head's weights and biases, [S, c, H] and [S, c]."""
        return self.read[:, :, part].flatten(1, 2), self.bias[:, :, part].flatten(1, 2)

    def part_backward(self, g, part, x, rows=None, into=None):
        """Gradient of x, added to `into` where that is given, from that of its product with the rows `part`, [S, N, c];
        writes those of the rows."""
        weight = self.read[:, :, part].flatten(1, 2)
        whole = part == slice(None)
        weight_gradient = self.weight_gradient.flatten(1, 2) if whole else torch.empty(weight.shape)
        bias_gradient = self.bias_gradient.flatten(1, 2) if whole else torch.empty(weight.shape[:2])
        affine_gradients(g, x, weight_gradient, bias_gradient, rows)
        if not whole:
            self.weight_gradient[:, :, part] = weight_gradient.unflatten(1, (self.heads, -1))
            self.bias_gradient[:, :, part] = bias_gradient.unflatten(1, (self.heads, -1))
        return input_gradient(g, weight, rows, into)


class AbsoluteAttention(Attention):
    """Scores scale q . k, and a bias by distance, from every position or from those that `chosen` says; compiled."""

    def __init__(self, parameters, name: str, config):
        super().__init__(parameters, name, config)
        self.place_bias(parameters, name)

    def forward(self, x, shape, mask, keep, relative=None, chosen=None):
        """x [S, N, H] -> [S, N, H] or [S, K, H]; keep: iterator, next that of [n, B, M, >= T] weights, or None."""
        keep, layout = next(keep), shape.layout
        parts = [(slice(None), x, shape.counts)]
        if chosen is not None:
            parts = [(slice(self.width), chosen.take(x), chosen.own), (slice(self.width, None), x, shape.counts)]
            layout = chosen.layout
        read = [affine(own, *self.part_of(part), rows) for part, own, rows in parts]
        bias = None if relative is None else relative.values
        context, weights = attend(read[0], read[-1], layout, self.heads, self.scale, keep, bias)
        self.saved = parts, read, weights, layout, keep, relative, chosen
        return context

    def backward(self, g, dx):
        """Add to dx [S, N, H] the gradient of x, given that of the context."""
        (parts, read, weights, layout, keep, relative, chosen), self.saved = self.saved, None  # memory for what comes
        bias = (None, None) if relative is None else (relative.values, relative.gradient)
        how = weights, layout, self.heads, self.scale, keep, *bias
        gradients = attend_backward(g, read[0], read[-1], *how)
        part, own, rows = parts[-1]
        self.part_backward(gradients[-1], part, own, rows, dx)
        if chosen is not None:
            part, own, rows = parts[0]
            chosen.add(dx, self.part_backward(gradients[0], part, own, rows))


class GridAttention(Attention):
    """What attention needs whose products are batched ones, of heads and rows of a grid."""

    def project(self, x, shape, chosen=None):
        """Queries [S n B, T or M, d], keys and values [S n B, T, d]; chosen: a `chosen.Masked` that queries are of."""
        if chosen is None:
            return self._products(x, slice(None), shape).chunk(3, -1)
        self.asked_rows = x.flatten(0, 1).index_select(0, chosen.slots).view(len(x), -1, x.shape[2])
        q = self._products(self.asked_rows, slice(self.width), shape)
        return q, *self._products(x, slice(self.width, None), shape).chunk(2, -1)

    def _products(self, x, part, shape):
        """x [S, B L, H], or packed, times the rows `part` of every head's weights -> [S n B, L, c]."""
        y = shape.unpack(affine(x, self.weight[:, :, part].flatten(1, 2), self.bias[:, :, part].flatten(1, 2)))
        y = y.view(*shape[:2], -1, self.heads, y.shape[2] // self.heads).permute(0, 3, 1, 2, 4)
        return y.reshape(-1, *y.shape[3:])

    def project_backward(self, dq, dk, dv, x, dx, shape, chosen=None):
        """Write the projection's gradients and add that of x to dx."""
        if chosen is None:
            self._products_backward((dq, dk, dv), slice(None), x, shape, dx)
            return
        asked = self._products_backward((dq,), slice(self.width), self.asked_rows, shape)
        self._products_backward((dk, dv), slice(self.width, None), x, shape, dx)
        dx.view(-1, dx.shape[2]).index_add_(0, chosen.slots, asked.flatten(0, 1))

    def _products_backward(self, gradients, part, x, shape, into=None):
        """Gradient of x, added to `into` where that is given; gradients: of queries, keys, values, as many as `part`
        has, [S n B, L, d] each."""
        rows = gradients[0].shape[1] * shape[1]
        g = x.new_empty(len(x), rows, self.heads, len(gradients), self.width)
        for number, each in enumerate(gradients):
            g[:, :, :, number] = each.reshape(len(x), self.heads, rows, self.width).transpose(1, 2)
        return self.part_backward(shape.pack(g.flatten(2)), part, x, None, into)

    def scores_backward(self, g, q, k, v, weights, kept, keep):
        """Gradients of the scores, and by way of q . k of queries and keys, and of values, from that of the context."""
        dweights = torch.bmm(g, v.mT)
        if keep is not None:
            dweights.mul_(keep[..., : k.shape[1]].reshape(dweights.shape))
        dscores = softmax_backward(dweights, weights)
        dq = product(dscores, k, self.scale)
        if q.shape[1] == 1:  # sums of one term
            return dscores, dq, (dscores.mT * q).mul_(self.scale), kept.mT * g
        return dscores, dq, product(dscores.mT, q, self.scale), torch.bmm(kept.mT, g)

    def heads_first(self, x, shape):
        """[S, B M, H], or packed, -> [S n B, M, d]."""
        x = shape.unpack(x).view(shape[0], shape[1], -1, self.heads, self.width).permute(0, 3, 1, 2, 4)
        return x.reshape(-1, x.shape[3], self.width)

    def heads_last(self, x, shape):
        """[S n B, M, d] -> [S, B M, H], or packed."""
        x = x.reshape(shape[0], self.heads, -1, self.width).transpose(1, 2)
        return shape.pack(x.reshape(shape[0], -1, self.heads * self.width))


def faster(q, k, copies: int):
    """Context for the products of queries [S n B, M, d] with keys [S n B, T, d]: the size of one copy's decides."""
    return library(q.numel() // copies * k.shape[1])


def product(a, b, scale):
    """scale a b of batched matrices."""
    return torch.baddbmm(a.new_empty(1), a, b, beta=0, alpha=scale)


def softmax(scores, mask):
    """softmax(scores + mask) over the last axis; changes scores."""
    if mask is not None:
        scores.add_(mask)
    length = scores.shape[-1]
    return short_softmax(scores)[..., :length].contiguous()
