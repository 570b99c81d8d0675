"""Stacked self-attention with a hand-written gradient.

S copies, B rows, T length, N = B T, n heads, d width of a head, H = n d
"""

import math

import torch

from masklab.models.attention import short_softmax


class Attention:
    """Self-attention from every position, up to the output projection: x [S, N, H] -> [S, N, H]."""

    def __init__(self, parameters, name: str, config):
        self.heads, self.width = config.heads, config.hidden // config.heads
        self.scale = 1 / math.sqrt(self.width)
        (weight, bias), gradients = parameters.pair(name), parameters.gradient_pair(name)
        # rows [n, 3, d]: query, key and value of a head
        self.weight, self.weight_gradient = (w.unflatten(1, (config.heads, -1)) for w in (weight, gradients[0]))
        self.bias, self.bias_gradient = (b.unflatten(1, (config.heads, -1)) for b in (bias, gradients[1]))

    def forward(self, x, shape, mask, keep):
        """mask [S, B, T] or None is added to the scores; keep [S, n, B, T, >= T] or None multiplies the weights."""
        copies, size, length = shape
        spread = x[:, None].expand(-1, self.heads, -1, -1)
        qkv = x.new_empty(copies, self.heads, size * length, 3 * self.width)
        for s in range(copies):  # every head's product reads the same x: no copy, and heads come out first
            torch.baddbmm(self.bias[s, :, None], spread[s], self.weight[s].mT, out=qkv[s])
        q, k, v = qkv.view(-1, length, 3 * self.width).chunk(3, -1)
        scores = product(q, k.mT, self.scale).view(copies, self.heads, size, length, length)
        weights = softmax(scores, None if mask is None else mask[:, None, :, None]).view(-1, length, length)
        kept = weights if keep is None else weights * keep[..., :length].reshape(weights.shape)
        context = torch.bmm(kept, v)
        self.saved = x, q, k, v, weights, kept, keep, shape
        return context.view(copies, self.heads, size * length, -1).transpose(1, 2).reshape(x.shape)

    def backward(self, g, dx):
        """Add to dx [S, N, H] the gradient of x, given that of the context."""
        x, q, k, v, weights, kept, keep, (copies, size, length) = self.saved
        g = g.view(copies, size, length, self.heads, -1).permute(0, 3, 1, 2, 4).reshape(q.shape)
        dv = torch.bmm(kept.mT, g)
        dweights = torch.bmm(g, v.mT)
        if keep is not None:
            dweights.mul_(keep[..., :length].reshape(dweights.shape))
        dscores = torch._softmax_backward_data(dweights, weights, -1, weights.dtype)
        dqkv = torch.cat([product(dscores, k, self.scale), product(dscores.mT, q, self.scale), dv], -1)
        dqkv = dqkv.view(copies, self.heads, size * length, -1)
        torch.sum(dqkv, 2, out=self.bias_gradient)
        for s in range(copies):
            torch.bmm(dqkv[s].mT, x[s].expand(self.heads, -1, -1), out=self.weight_gradient[s])
            for head in range(self.heads):
                dx[s].addmm_(dqkv[s, head], self.weight[s, head])


class FirstAttention(Attention):
    """The same from the first position of each row: x [S, N, H] -> [S, B, H].

    One query's scores are (W_k' q) . x, and its context is W_v sum_t w_t x_t: products of B rows instead of N. The
    key's bias adds the same to every score of a row and drops out.
    """

    def forward(self, x, shape, mask, keep):
        """As above, keep [S, n, B, 1, >= T]."""
        copies, size, length = shape
        x = x.view(copies * size, length, -1)
        first = x[:, 0].reshape(copies, 1, size, -1)
        (wq, wk, wv), (bq, _, bv) = self._parts(self.weight), self._parts(self.bias)
        q = torch.matmul(first, wq.mT).add_(bq[:, :, None])  # [S, n, B, d]
        u = torch.matmul(q, wk).transpose(1, 2).reshape(copies * size, self.heads, -1)
        scores = product(u, x.mT, self.scale).view(copies, size, self.heads, length)
        weights = softmax(scores, None if mask is None else mask[:, :, None]).view(-1, self.heads, length)
        kept = weights
        if keep is not None:
            keep = keep[:, :, :, 0, :length].transpose(1, 2).reshape(weights.shape)
            kept = weights * keep
        total = kept.sum(-1).view(copies, size, self.heads, 1).transpose(1, 2)
        z = torch.bmm(kept, x).view(copies, size, self.heads, -1).transpose(1, 2)  # [S, n, B, H]
        context = torch.matmul(z, wv.mT).addcmul_(total, bv[:, :, None])
        self.saved = x, first, q, u, weights, kept, keep, total, z, shape
        return context.transpose(1, 2).reshape(copies, size, -1)

    def _parts(self, tensor):
        return tensor.unflatten(2, (3, self.width)).unbind(2)

    def backward(self, g, dx):
        """Add to dx [S, N, H] the gradient of x, given that of the context [S, B, H]."""
        x, first, q, u, weights, kept, keep, total, z, (copies, size, _) = self.saved
        (wq, wk, wv), (_, _, bv) = self._parts(self.weight), self._parts(self.bias)
        dwq, dwk, dwv = self._parts(self.weight_gradient)
        dbq, dbk, dbv = self._parts(self.bias_gradient)
        g = g.view(copies, size, self.heads, -1).transpose(1, 2)  # [S, n, B, d]
        dwv.copy_(torch.matmul(g.mT, z))
        torch.sum(g * total, 2, out=dbv)
        dbk.zero_()
        dz = torch.matmul(g, wv).transpose(1, 2).reshape(u.shape)
        dtotal = torch.matmul(g, bv[..., None]).transpose(1, 2).reshape(len(x), self.heads, 1)
        dweights = torch.baddbmm(dtotal, dz, x.mT)
        if keep is not None:
            dweights.mul_(keep)
        dscores = torch._softmax_backward_data(dweights, weights, -1, weights.dtype).mul_(self.scale)
        du = torch.bmm(dscores, x).view(copies, size, self.heads, -1).transpose(1, 2)  # [S, n, B, H]
        dq = torch.matmul(du, wk.mT)
        dwk.copy_(torch.matmul(q.mT, du))
        dwq.copy_(torch.matmul(dq.mT, first))
        torch.sum(dq, 2, out=dbq)
        dx = dx.view(x.shape)
        dx.baddbmm_(torch.cat([kept, dscores], 1).mT, torch.cat([dz, u], 1))
        dx[:, 0] += torch.matmul(dq, wq).sum(1).flatten(0, 1)


def product(a, b, scale):
    """scale a b of batched matrices."""
    return torch.baddbmm(a.new_empty(1), a, b, beta=0, alpha=scale)


def softmax(scores, mask):
    """softmax(scores + mask) over the last axis; changes scores."""
    if mask is not None:
        scores.add_(mask)
    length = scores.shape[-1]
    return short_softmax(scores)[..., :length].contiguous()
