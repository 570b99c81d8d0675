"""Stacked self-attention with a hand-written gradient.

S copies, P places of packed tokens in each, n heads, d width of a head, H = n d; K tokens that are asked for; ragged:
the `ragged.Ragged` of a batch, as which x [S, P, H] is packed
"""

import math

import torch

from masklab.kernels.attend import attend, attend_backward
from masklab.models.stacked.products import affine, affine_gradients, input_gradient


class Attention:
    """Self-attention up to the output projection, from every position or from those that `chosen` says: x [S, P, H] ->
    [S, P, H] or [S, K, H]. Scores are scale q . k, and a bias by distance, if there is one."""

    def __init__(self, parameters, name: str, config):
        self.heads, self.width = config.heads, config.hidden // config.heads
        self.scale = 1 / math.sqrt(self.width)
        # rows [n, 3 d]: query, key and value of a head
        self.weight_gradient = parameters.gradient_of(f"{name}.in_proj.weight").unflatten(1, (self.heads, -1))
        self.read = parameters.read(f"{name}.in_proj.weight").unflatten(1, (self.heads, -1))
        self.bias, self.bias_gradient = (part.unflatten(1, (self.heads, -1)) for part in self._biases(parameters, name))
        self.whole = self.read.flatten(1, 2), self.bias.flatten(1, 2)
        self.whole_gradient = self.weight_gradient.flatten(1, 2), self.bias_gradient.flatten(1, 2)

    def _biases(self, parameters, name):
        """The projection's bias and where its gradient goes, [S, 3 H]."""
        return parameters.with_gradient(f"{name}.in_proj.bias")

    def forward(self, x, ragged, keep, relative=None, chosen=None):
        """keep: iterator, next that of [n, B, M, >= T] weights, or None; relative: a `bias.Bias`."""
        bias = (None, None) if relative is None else (relative.values, relative.gradient)
        return self.attend(x, ragged, next(keep), chosen, bias)

    def attend(self, x, ragged, keep, chosen, bias=(None, None), tables=None):
        """The context. bias: with its gradient, which the backward pass adds to; tables: as of `kernels.attend`."""
        parts, layout = [(slice(None), x, ragged.counts)], ragged.layout
        if chosen is not None:
            parts = [(slice(self.width), chosen.take(x), chosen.own), (slice(self.width, None), x, ragged.counts)]
            layout = chosen.layout
        read = [affine(own, *self._part_of(part), rows) for part, own, rows in parts]
        context, weights = attend(read[0], read[-1], layout, self.heads, self.scale, keep, bias[0], tables)
        self.saved = parts, read, weights, layout, keep, bias, tables, chosen
        return context

    def backward(self, g, dx):
        """Add to dx [S, P, H] the gradient of x, given that of the context."""
        parts, read, weights, layout, keep, bias, tables, chosen = self.saved
        self.saved = None  # memory for what comes next
        how = weights, layout, self.heads, self.scale, keep, *bias, tables
        gradients = attend_backward(g, read[0], read[-1], *how)
        part, own, rows = parts[-1]
        self._part_backward(gradients[-1], part, own, rows, dx)
        if chosen is not None:
            part, own, rows = parts[0]
            chosen.add(dx, self._part_backward(gradients[0], part, own, rows))

    def _part_of(self, part):
        """Rows `part` of every head's weights and biases, [S, c, H] and [S, c]."""
        if part == slice(None):
            return self.whole
        return self.read[:, :, part].flatten(1, 2), self.bias[:, :, part].flatten(1, 2)

    def _part_backward(self, g, part, x, rows=None, into=None):
        """Gradient of x, added to `into` where that is given, from that of its product with the rows `part`, [S, N, c];
        writes those of the rows."""
        if part == slice(None):
            affine_gradients(g, x, *self.whole_gradient, rows)
            return input_gradient(g, self.whole[0], rows, into)
        weight = self.read[:, :, part].flatten(1, 2)
        weight_gradient, bias_gradient = torch.empty(weight.shape), torch.empty(weight.shape[:2])
        affine_gradients(g, x, weight_gradient, bias_gradient, rows)
        self.weight_gradient[:, :, part] = weight_gradient.unflatten(1, (self.heads, -1))
        self.bias_gradient[:, :, part] = bias_gradient.unflatten(1, (self.heads, -1))
        return input_gradient(g, weight, rows, into)
