"""Disentangled scores (He et al. 2021, eq. 4) of the queries and keys of a row and a head, and their gradients.

S copies, n heads, d width of a head, L positions; tables: embeddings of distances 1 - L, ..., L - 1 of key and query,
projected to keys and to queries

What a table adds for a query and all keys lies in one piece, wherever the query stands, so nothing is shifted or picked
out: rows of a table are read as they are.
"""

import torch
from torch.nn import functional as F

from masklab.kernels.kernel import launch, number_of
from masklab.kernels.panels import ZERO, compiled, wide
from masklab.kernels.tiles import sum_tiles
from masklab.kernels.vectors import LANES, add, add_product, filled, load, number, store

BLOCK = 4  # queries at once
GROUP, GROUPS = 8, 16  # rows of a batch whose gradients of tables one thread adds, at least; such groups, at most


@compiled
def column_of(columns, query):
    """Where a query stands in its row."""
    return number_of(columns, query) if columns else query


@compiled
def scores(q, q_row, keys, k_row, depth, of_keys, of_queries, row, columns, asked, into):
    """Write q_i . k_j + q_i . K[j - i] + k_j . Q[j - i], [asked, k_row].

    q [asked, d]; keys [d, k_row]: k; of_keys, of_queries: addresses of distance 0 in K and Q, [d, row].
    """
    for i in range(0, asked, BLOCK):
        i1, i2, i3 = min(i + 1, asked - 1), min(i + 2, asked - 1), min(i + 3, asked - 1)  # of few some once more
        q0, q1, q2, q3 = (q + 4 * q_row * i, q + 4 * q_row * i1, q + 4 * q_row * i2, q + 4 * q_row * i3)
        c0, c1 = column_of(columns, i), column_of(columns, i1)
        c2, c3 = column_of(columns, i2), column_of(columns, i3)
        for j in range(0, k_row, LANES):
            r, s, t, u = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
            v, w, x, y = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
            for k in range(depth):
                key, at = load(keys, k * k_row + j), k * row + j
                r = add_product(r, number(q0, k), add(key, load(of_keys, at - c0)))
                s = add_product(s, number(q1, k), add(key, load(of_keys, at - c1)))
                t = add_product(t, number(q2, k), add(key, load(of_keys, at - c2)))
                u = add_product(u, number(q3, k), add(key, load(of_keys, at - c3)))
                v = add_product(v, key, load(of_queries, at - c0))
                w = add_product(w, key, load(of_queries, at - c1))
                x = add_product(x, key, load(of_queries, at - c2))
                y = add_product(y, key, load(of_queries, at - c3))
            store(into, i * k_row + j, add(r, v))
            store(into, i1 * k_row + j, add(s, w))
            store(into, i2 * k_row + j, add(t, x))
            store(into, i3 * k_row + j, add(u, y))


@compiled
def gradients(g, g_row, nothing, q, k, row, of_keys, of_queries, columns, asked, count, dkeys, dqueries, dq, dk):
    """Write dq [asked, row] and dk [count, row], and add to dkeys and dqueries, given g [asked, g_row] of the scores.

    nothing: zeros [count]; of_keys, ..., dqueries: addresses of distance 0, [2 L - 1, row].
    """
    for j in range(0, count * row, LANES):
        store(dk, j, filled(ZERO))
    for i in range(0, asked, BLOCK):
        i1, i2, i3 = min(i + 1, asked - 1), min(i + 2, asked - 1), min(i + 3, asked - 1)
        s0 = g + 4 * g_row * i
        s1 = g + 4 * g_row * i1 if i + 1 < asked else nothing
        s2 = g + 4 * g_row * i2 if i + 2 < asked else nothing
        s3 = g + 4 * g_row * i3 if i + 3 < asked else nothing
        c0, c1 = row * column_of(columns, i), row * column_of(columns, i1)
        c2, c3 = row * column_of(columns, i2), row * column_of(columns, i3)
        for p in range(0, row, LANES):
            q0, q1 = load(q, i * row + p), load(q, i1 * row + p)
            q2, q3 = load(q, i2 * row + p), load(q, i3 * row + p)
            d0, d1, d2, d3 = filled(ZERO), filled(ZERO), filled(ZERO), filled(ZERO)
            for j in range(count):
                at = j * row + p
                key, own = load(k, at), load(dk, at)
                n0, n1, n2, n3 = number(s0, j), number(s1, j), number(s2, j), number(s3, j)
                d0 = add_product(d0, n0, add(key, load(of_keys, at - c0)))
                d1 = add_product(d1, n1, add(key, load(of_keys, at - c1)))
                d2 = add_product(d2, n2, add(key, load(of_keys, at - c2)))
                d3 = add_product(d3, n3, add(key, load(of_keys, at - c3)))
                own = add_product(own, n0, add(q0, load(of_queries, at - c0)))
                own = add_product(own, n1, add(q1, load(of_queries, at - c1)))
                own = add_product(own, n2, add(q2, load(of_queries, at - c2)))
                own = add_product(own, n3, add(q3, load(of_queries, at - c3)))
                store(dk, at, own)
                store(dkeys, at - c0, add_product(load(dkeys, at - c0), n0, q0))
                store(dkeys, at - c1, add_product(load(dkeys, at - c1), n1, q1))
                store(dkeys, at - c2, add_product(load(dkeys, at - c2), n2, q2))
                store(dkeys, at - c3, add_product(load(dkeys, at - c3), n3, q3))
                store(dqueries, at - c0, add_product(load(dqueries, at - c0), n0, key))
                store(dqueries, at - c1, add_product(load(dqueries, at - c1), n1, key))
                store(dqueries, at - c2, add_product(load(dqueries, at - c2), n2, key))
                store(dqueries, at - c3, add_product(load(dqueries, at - c3), n3, key))
            store(dq, i * row + p, d0)
            if i + 1 < asked:
                store(dq, i1 * row + p, d1)
            if i + 2 < asked:
                store(dq, i2 * row + p, d2)
            if i + 3 < asked:
                store(dq, i3 * row + p, d3)


class Tables:
    """Keys and queries of the distances, [S, 2 L - 1, H] each, fp32, and their gradients."""

    def __init__(self, keys, queries, heads: int):
        self.by_head = torch.stack([keys, queries]).unflatten(3, (heads, -1))  # [2, S, 2 L - 1, n, d]
        self.length = (1 + keys.shape[1]) // 2

    def forward_arguments(self):
        """What is read by the scores: [S, n, d, 2 L - 1] and some numbers more."""
        self.turned = F.pad(self.by_head.permute(0, 1, 3, 4, 2), (0, LANES)).contiguous()
        zero, (_, row) = self.length - 1, self.turned.shape[-2:]
        return *(each.data_ptr() + 4 * zero for each in self.turned), self.turned[0, 0, 0].numel(), row

    def backward_arguments(self):
        """What is read by their gradients: [S, n, 2 L - 1, d], d up to a multiple of LANES."""
        width = self.by_head.shape[-1]
        self.straight = F.pad(self.by_head.transpose(2, 3), (0, wide(width) - width)).contiguous()
        return *self._addresses(self.straight), self.straight[0, 0, 0].numel(), self.straight.shape[-1]

    def gradient_arguments(self, size: int):
        """Where the gradients go, and rows of a batch of `size` that one thread works on."""
        _, copies, *shape = self.straight.shape
        rows = max(GROUP, -(-size // GROUPS))
        self.parts = torch.zeros(2, copies, -(-size // rows), *shape)
        return *self._addresses(self.parts), rows

    def gradients(self):
        """Those of keys and queries, [S, 2 L - 1, H] each: sums over groups of rows, in their order."""
        _, copies, groups, heads, rows, wide_row = self.parts.shape
        width = heads * rows * wide_row
        found = self.parts.view(2 * copies, groups, width)
        if groups > 1:
            found = torch.empty(2 * copies, width)
            launch(sum_tiles, 2 * copies, groups, 1, width, self.parts.data_ptr(), found.data_ptr(), width)
        found = found.view(2, copies, heads, rows, wide_row)[..., : self.by_head.shape[-1]]
        self.turned = self.straight = self.parts = None  # memory for what comes next
        return found.transpose(2, 3).flatten(3).unbind()

    def _addresses(self, tables):
        return (each.data_ptr() + 4 * (self.length - 1) * tables.shape[-1] for each in tables)
