"""Self-attention; relative.py adds terms that depend on positions.

Everything is laid out head first, [heads, batch, length, width], so that the
content and the relative products are plain batched matrix products over views.

    B batch, T length, M queries per row, n heads, d width of a head, H = n d

Three ways compute the same numbers: `attend_explicitly` (CPU, where dropout or
position terms are at work), `attend_fused` (torch's scaled_dot_product_attention:
everything else), and, for biases by distance compiled on a GPU without attention
dropout, `attend_flex` (FlexAttention: the bias is read by index and never laid out
for every row; MASKLAB_FLEX=0 in the environment turns it off).
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from masklab.models.batched import product, takes
from masklab.models.dropout import dropout
from masklab.models.linear import Linear, linear


@dataclass
class Queries:
    """The positions a block is asked for, N in all.

    at     [N] flat positions b T + t, in the caller's order
    slots  [B, M] flat positions, the same number in every row, or None: attend from every position
    back   [N] index into the B M slots for each of `at`, or None when the slots are `at` themselves
    """

    at: torch.Tensor
    slots: torch.Tensor | None = None
    back: torch.Tensor | None = None


@dataclass
class Batch:
    """Shape of a batch.

    mask       additive key mask [B, 1, T], None: no padding
    lengths    [B] real tokens of each row, None: T
    positions  [B, T] position of each token, below `span`; None: 0 .. T - 1, `span` T
    """

    size: int
    length: int
    mask: torch.Tensor | None = None
    lengths: torch.Tensor | None = None
    positions: torch.Tensor | None = None
    span: int = 0


def plan_queries(at: torch.Tensor, batch: Batch, one_path: bool = False) -> Queries:
    """Lay the positions `at` out as an equal number of queries per row.

    Rows with fewer queries than the longest repeat a position, which is then thrown away. The row
    counts decide shapes, so this is for CPUs; elsewhere, under `one_path`, and where most positions
    are asked for, attention is computed from every position and the rows are gathered after it.
    """
    if one_path or at.device.type != "cpu" or torch.compiler.is_compiling() or len(at) == 0:
        return Queries(at)
    row = torch.div(at, batch.length, rounding_mode="floor")
    counts = torch.bincount(row, minlength=batch.size)
    most = int(counts.max())
    if 2 * most > batch.length:
        return Queries(at)
    order = torch.argsort(row, stable=True)
    first = torch.cumsum(counts, 0) - counts
    slot = torch.empty_like(at)
    slot[order] = torch.arange(len(at)) - first[row[order]]
    back = row * most + slot
    slots = (torch.arange(batch.size) * batch.length)[:, None].expand(-1, most).flatten()
    slots = slots.scatter(0, back, at)
    in_order = len(at) == len(slots) and torch.equal(slots, at)
    return Queries(at, slots.view(batch.size, most), None if in_order else back)


class Attention(nn.Module):
    """Multi-head self-attention up to, not including, the output projection.

    `in_proj` holds query, key and value weights interleaved per head: rows [n, 3, d].
    """

    in_proj_bias = True

    def __init__(self, hidden: int, heads: int, p: float):
        super().__init__()
        self.heads, self.width, self.p = heads, hidden // heads, p
        self.in_proj = Linear(hidden, 3 * hidden, bias=self.in_proj_bias)
        self.scale = 1 / math.sqrt(self.width)

    def forward(self, x, batch: Batch, queries: Queries | None = None, relative=None) -> torch.Tensor:
        """x [B T, H] -> context [B T, H], or [N, H] at the positions of `queries`."""
        slots = None if queries is None else queries.slots
        q, k, v = self.project(x, batch) if slots is None else self.project_at(x, batch, slots)
        if self.flexes(q):
            context = attend_flex(q, k, v, self.score_mod(batch, relative), self.scale)
        else:
            terms = self.position_scores(q, k, batch, slots, relative)
            context = self.attend(q, k, v, terms, batch.mask)
        context = context.permute(1, 2, 0, 3).reshape(-1, self.heads * self.width)
        if queries is None:
            return context
        index = queries.at if slots is None else queries.back
        return context if index is None else context.index_select(0, index)

    def project(self, x, batch: Batch):
        """x [B T, H] -> query, key, value, each [n, B, T, d]."""
        return self.heads_first(self.in_proj(x, self.projection_bias()), batch.size, 3).unbind()

    def project_at(self, x, batch: Batch, slots):
        """The same with queries of the positions `slots` [B, M] alone: [n, B, M, d], [n, B, T, d], [n, B, T, d]."""
        weight, bias = (part.unflatten(0, (self.heads, -1)) for part in (self.in_proj.weight, self.projection_bias()))
        (q_weight, kv_weight), (q_bias, kv_bias) = (p.split([self.width, 2 * self.width], 1) for p in (weight, bias))
        q = linear(x.index_select(0, slots.flatten()), q_weight.flatten(0, 1), q_bias.flatten())
        kv = linear(x, kv_weight.flatten(0, 1), kv_bias.flatten())
        return *self.heads_first(q, batch.size, 1).unbind(), *self.heads_first(kv, batch.size, 2).unbind()

    def heads_first(self, x, size: int, parts: int):
        """[B T, n parts d] -> [parts, n, B, T, d]; each part lies in one piece, as products of bf16 want it."""
        return x.view(size, -1, self.heads, parts, self.width).permute(3, 2, 0, 1, 4).contiguous()

    def projection_bias(self) -> torch.Tensor:
        return self.in_proj.bias

    def position_scores(self, q, k, batch, slots, relative) -> list[torch.Tensor]:
        """Scaled terms [n, B, M, T] to add to the content scores; none where positions are in the input."""
        return []

    def flexes(self, q) -> bool:
        """Whether FlexAttention takes over: it has no dropout, and uncompiled it would lay out every score."""
        return False

    def attend(self, q, k, v, terms, mask):
        """softmax(scale q k' + terms + mask) v with dropout on the weights: [n, B, M, d]."""
        p = self.p if self.training else 0.0
        explicit = q.device.type == "cpu" and (p or terms or self.pays(q, k))
        return (self.attend_explicitly if explicit else self.attend_fused)(q, k, v, terms, mask, p)

    def pays(self, q, k) -> bool:
        """Whether laying out every score is faster than the fused form, in memory of at most 64 MiB."""
        scores = q.shape[:3].numel() * k.shape[2]
        return scores <= 2**24 and takes(q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2))

    def attend_fused(self, q, k, v, terms, mask, p):
        bias = [] if mask is None else [mask.unsqueeze(1).to(q.dtype)]  # [B, 1, 1, T]
        bias = sum(bias + [term.transpose(0, 1) for term in terms]) if bias or terms else None
        q, k, v = (part.transpose(0, 1) for part in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, bias, p, scale=self.scale).transpose(0, 1)

    def attend_explicitly(self, q, k, v, terms, mask, p):
        """The same, faster on CPUs than torch's fallback for dropout or for terms that need gradients."""
        terms = list(terms) if mask is None else [*terms, mask]  # [B, 1, T] aligns with [n, B, M, T]
        shape = (*q.shape[:3], k.shape[2])
        q, k, v = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
        scores = product(q, k.transpose(1, 2), self.scale).view(shape)
        for term in terms:
            scores.add_(term)
        weights = dropout(short_softmax(scores.flatten(0, 1)), p, True)[..., : shape[3]]
        return product(weights, v).view(*shape[:3], -1)


def short_softmax(scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis, which grows to 16 zero-weighted columns where it was shorter.

    torch's CPU kernel handles rows shorter than its vectors element by element: 12 columns cost 5 x 16 columns.
    """
    missing = 16 - scores.shape[-1]
    return torch.softmax(F.pad(scores, (0, missing), value=-torch.inf) if missing > 0 else scores, -1)


def attend_flex(q, k, v, score_mod, scale: float) -> torch.Tensor:
    """softmax(score_mod(scale q k')) v by FlexAttention: q, k, v and the result are [n, B, T, d]."""
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = (part.transpose(0, 1) for part in (q, k, v))
    return flex_attention(q, k, v, score_mod=score_mod, scale=scale).transpose(0, 1)
