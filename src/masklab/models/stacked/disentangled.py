"""Stacked disentangled attention (He et al. 2021, eq. 4) with a hand-written gradient.

S copies, B rows, T length, N = B T, n heads, d width of a head, H = n d, R = 2 T - 1 distances T - 1, ..., 1 - T
"""

import math

import torch

from masklab.models.positions import shift
from masklab.models.stacked.attention import GridAttention, faster, product, softmax
from masklab.models.stacked.dropout import mask as dropout_mask


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


class DisentangledAttention(GridAttention):
    """Scores scale (q_i . k_j + q_i . K_r[i - j] + k_j . Q_r[i - j]), from every position."""

    def __init__(self, parameters, name: str, config):
        super().__init__(parameters, name, config)
        self.scale = 1 / math.sqrt(3 * self.width)
        self.q_bias, self.v_bias = (parameters.with_gradient(f"{name}.{part}") for part in ("q_bias", "v_bias"))
        self.keys = parameters.with_gradient(f"{name}.pos_proj.weight")
        self.queries = parameters.pair(f"{name}.pos_q_proj"), parameters.gradient_pair(f"{name}.pos_q_proj")
        self.bias = torch.zeros(*self.weight.shape[:3])
        self.bias_gradient = torch.empty_like(self.bias)

    def forward(self, x, shape, mask, keep, relative, chosen=None):
        """mask [S, B, T] or None; keep: iterator, next those of [R, H] and of [n, B, M, >= T], or None."""
        copies, size, length = shape
        q_bias, _, v_bias = self.bias.chunk(3, -1)
        q_bias.copy_(self.q_bias[0].view_as(q_bias))
        v_bias.copy_(self.v_bias[0].view_as(v_bias))
        keep_relative = dropout_mask(next(keep), tuple(relative.rows.shape[1:]))
        rows = relative.rows if keep_relative is None else relative.rows * keep_relative
        keys = self._by_head(torch.bmm(rows, self.keys[0].mT))  # [S n, R, d]
        (weight, bias), _ = self.queries
        queries = self._by_head(torch.baddbmm(bias[:, None], rows, weight.mT).flip(1))
        q, k, v = self.project(x, shape, chosen)
        q, self.chosen = self.asked(q), chosen
        with faster(q, k, copies):
            scores = product(q, k.mT, self.scale).add_(self.terms(q, k, keys, queries, length))
        scores = scores.view(copies, self.heads, size, -1, length)
        weights = softmax(scores, None if mask is None else mask[:, None, :, None]).flatten(0, 2)
        keep = dropout_mask(next(keep), (self.heads, size, q.shape[1], max(length, 16)))
        kept = weights if keep is None else weights * keep[..., :length].reshape(weights.shape)
        self.saved = x, q, k, v, keys, queries, rows, keep_relative, relative, weights, kept, keep, shape, chosen
        with faster(q, k, copies):
            context = self.heads_last(torch.bmm(kept, v), shape)
        return context if chosen is None else chosen.spread(context)

    def backward(self, g, dx):
        """Add to dx [S, N, H] the gradient of x, given that of the context, and to `relative.gradient` its own."""
        x, q, k, v, keys, queries, rows, keep_relative, relative, weights, kept, keep, shape, chosen = self.saved
        self.saved = None  # memory for what comes next
        g = self.heads_first(g if chosen is None else chosen.gather(g), shape)
        with faster(q, k, shape[0]):
            dscores, dq, dk, dv = self.scores_backward(g, q, k, v, weights, kept, keep)
            dkeys, dqueries = self.terms_backward(dscores, q, k, keys, queries, dq, dk)
        self.project_backward(self.everywhere(dq, shape), dk, dv, x, dx, shape, chosen)
        dq_bias, _, dv_bias = self.bias_gradient.chunk(3, -1)
        self.q_bias[1].view_as(dq_bias).copy_(dq_bias)
        self.v_bias[1].view_as(dv_bias).copy_(dv_bias)
        dkeys, dqueries = self._all_heads(dkeys, shape[0]), self._all_heads(dqueries, shape[0]).flip(1)
        torch.bmm(dkeys.mT, rows, out=self.keys[1])
        (weight, _), (weight_gradient, bias_gradient) = self.queries
        torch.bmm(dqueries.mT, rows, out=weight_gradient)
        torch.sum(dqueries, 1, out=bias_gradient)
        drows = torch.bmm(dkeys, self.keys[0]).baddbmm_(dqueries, weight)
        relative.gradient.add_(drows if keep_relative is None else drows.mul_(keep_relative))

    def asked(self, q):
        """Queries of the positions that are asked for, [S n B, M, d]."""
        return q

    def everywhere(self, dq, shape):
        """Gradient of all queries, given that of those asked for."""
        return dq

    def terms(self, q, k, keys, queries, length):
        """Position terms [S n B, M, T]; keys and queries [S n, R, d], scaled, the latter from distance 1 - T up."""
        groups = len(keys)
        c2p = torch.bmm(q.reshape(groups, -1, self.width), keys.mT).view(-1, q.shape[1], 2 * length - 1)
        p2c = torch.bmm(k.reshape(groups, -1, self.width), queries.mT).view(-1, length, 2 * length - 1)
        if self.chosen is None:
            return shift(c2p) + shift(p2c).mT
        c2p_index, p2c_index = self._indices(length)
        return c2p.gather(-1, c2p_index).add_(p2c.flatten(1).gather(-1, p2c_index).view_as(c2p_index))

    def _indices(self, length):
        """Where the terms [S n B, M, T] of the chosen queries lie in rows of distances, and in all T rows of keys."""
        j, width = torch.arange(length), self.chosen.width
        offset = length - 1 - self.chosen.column[..., None] + j
        both = offset, j * (2 * length - 1) + 2 * length - 2 - offset
        each = [part[:, None].expand(-1, self.heads, -1, -1, -1).reshape(-1, width, length) for part in both]
        return each[0], each[1].flatten(1)

    def terms_backward(self, dscores, q, k, keys, queries, dq, dk):
        """Add to dq and dk; gradients of keys and queries."""
        groups, length = len(keys), k.shape[1]
        full_c2p = dscores.new_zeros(*q.shape[:2], 2 * length - 1)
        full_p2c = dscores.new_zeros(len(k), length, 2 * length - 1)
        if self.chosen is None:
            shift(full_c2p).copy_(dscores)
            shift(full_p2c).copy_(dscores.mT)
        else:
            c2p_index, p2c_index = self._indices(length)
            full_c2p.scatter_(-1, c2p_index, dscores)
            full_p2c.flatten(1).scatter_add_(-1, p2c_index, dscores.flatten(1))
        gradients = []
        for full, content, dcontent, position in ((full_c2p, q, dq, keys), (full_p2c, k, dk, queries)):
            full = full.view(groups, -1, 2 * length - 1)
            dcontent.view(groups, -1, self.width).baddbmm_(full, position)
            gradients.append(torch.bmm(full.mT, content.reshape(groups, -1, self.width)))
        return gradients

    def _by_head(self, rows):
        """[S, R, H] -> scaled [S n, R, d]."""
        return (
            rows.mul_(self.scale).unflatten(2, (self.heads, -1)).transpose(1, 2).reshape(-1, rows.shape[1], self.width)
        )

    def _all_heads(self, rows, copies):
        """Gradient of `_by_head`."""
        rows = rows.view(copies, self.heads, -1, self.width).transpose(1, 2)
        return rows.reshape(copies, rows.shape[1], -1).mul_(self.scale)


class FirstDisentangledAttention(DisentangledAttention):
    """The same from the first position of each row: x [S, N, H] -> [S, B, H]."""

    def forward(self, x, shape, mask, keep, relative, chosen=None):
        return super().forward(x, shape, mask, keep, relative)

    def asked(self, q):
        return q[:, :1].contiguous()

    def everywhere(self, dq, shape):
        full = dq.new_zeros(len(dq), shape[2], self.width)
        full[:, :1] = dq
        return full

    def terms(self, q, k, keys, queries, length):
        groups = len(keys)
        c2p = torch.bmm(q.view(groups, -1, self.width), keys[:, length - 1 :].mT).view(-1, 1, length)
        # the query's distance to j is -j: rows T - 1, ..., 0 of the flipped queries
        reached = queries[:, :length].flip(1)[:, None]
        return c2p.add_((k.view(groups, -1, length, self.width) * reached).sum(-1).view(-1, 1, length))

    def terms_backward(self, dscores, q, k, keys, queries, dq, dk):
        groups, length = len(keys), k.shape[1]
        d = dscores.view(groups, -1, length)  # [S n, B, T]
        dq.view(groups, -1, self.width).baddbmm_(d, keys[:, length - 1 :])
        dk.view(groups, -1, length, self.width).addcmul_(d[..., None], queries[:, :length].flip(1)[:, None])
        dkeys, dqueries = torch.zeros_like(keys), torch.zeros_like(queries)
        dkeys[:, length - 1 :] = torch.bmm(d.mT, q.view(groups, -1, self.width))
        dqueries[:, :length] = (d[..., None] * k.view(groups, -1, length, self.width)).sum(1).flip(1)
        return dkeys, dqueries
