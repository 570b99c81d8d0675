"""Stacked disentangled attention (He et al. 2021, eq. 4) with a hand-written gradient.

S copies, P places of packed tokens in each, L length, n heads, d width of a head, H = n d, R = 2 L - 1 distances L - 1,
..., 1 - L of query and key
"""

import math

import torch

from masklab.kernels.distance_tables import Tables
from masklab.models.stacked.attention import Attention
from masklab.models.stacked.dropout import mask as dropout_mask
from masklab.models.stacked.products import affine, affine_gradients, input_gradient
from masklab.optim.low import DTYPE


class Distances:
    """Embeddings of the distances of a batch, [S, R, H], and their gradient, to which every block adds."""

    def __init__(self, parameters, name: str, length: int, config):
        values, gradient = parameters.with_gradient(name)
        zero = config.max_positions
        self.part = slice(zero - length + 1, zero + length)
        self.rows, self.written = values[:, self.part].flip(1), gradient
        self.gradient = torch.zeros_like(self.rows)

    def write(self) -> None:
        """Write the parameter's gradient."""
        self.written.zero_()
        self.written[:, self.part] = self.gradient.flip(1)


class DisentangledAttention(Attention):
    """Scores scale (q_i . k_j + q_i . K_r[i - j] + k_j . Q_r[i - j])."""

    def __init__(self, parameters, name: str, config):
        super().__init__(parameters, name, config)
        self.scale = 1 / math.sqrt(3 * self.width)
        self.own = [parameters.with_gradient(f"{name}.{part}") for part in ("q_bias", "v_bias")]
        keys, queries = f"{name}.pos_proj", f"{name}.pos_q_proj"
        self.weights = [parameters.read(f"{each}.weight") for each in (keys, queries)]
        self.query_bias = parameters[f"{queries}.bias"]
        self.gradients = (parameters.gradient_of(f"{keys}.weight"), None), parameters.gradient_pair(queries)
        self.low = parameters.low is not None

    def _biases(self, parameters, name):
        values = parameters[f"{name}.q_bias"]
        return values.new_zeros(len(values), 3 * values.shape[1]), values.new_empty(len(values), 3 * values.shape[1])

    def forward(self, x, ragged, keep, relative=None, chosen=None):
        """keep: iterator, next those of [R, H] and of [n, B, M, >= T], or None; relative: a `Distances`."""
        for part, (values, _) in zip((0, 2), self.own, strict=True):
            self.bias.chunk(3, -1)[part].copy_(values.unflatten(1, (self.heads, -1)))
        kept, rows = dropout_mask(next(keep), tuple(relative.rows.shape[1:])), relative.rows
        rows = rows if kept is None else rows * kept
        rows = rows.to(DTYPE) if self.low else rows
        keys, queries = (affine(rows, *each) for each in zip(self.weights, (None, self.query_bias), strict=True))
        tables = Tables(keys.float(), queries.float(), self.heads)
        self.distances = relative, rows, kept, tables
        return self.attend(x, ragged, next(keep), chosen, tables=tables)

    def backward(self, g, dx):
        """Add to dx [S, P, H] the gradient of x, given that of the context, and to `relative.gradient` its own."""
        super().backward(g, dx)
        for part, (_, gradient) in zip((0, 2), self.own, strict=True):
            gradient.unflatten(1, (self.heads, -1)).copy_(self.bias_gradient.chunk(3, -1)[part])
        (relative, rows, kept, tables), self.distances = self.distances, None  # memory for what comes next
        drows = None
        for own, weight, into in zip(tables.gradients(), self.weights, self.gradients, strict=True):
            own = own.to(rows.dtype)
            affine_gradients(own, rows, *into)
            drows = input_gradient(own, weight, None, drows)
        relative.gradient.add_(drows if kept is None else drows * kept)
