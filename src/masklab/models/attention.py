"""Self-attention with positions in its input, with a bias by distance, or disentangled.

Everything is laid out head first, [heads, batch, length, width], so that the
content and the relative products are plain batched matrix products over views.

    B batch, T length, M queries per row, n heads, d width of a head, H = n d

Three ways compute the same numbers: `attend_explicitly` (CPU, where dropout or
position terms are at work), `attend_fused` (torch's scaled_dot_product_attention:
everything else), and, compiled on a GPU without attention dropout, `attend_flex`
(FlexAttention: position terms are read by index and never laid out as [T, T]).
FlexAttention was run on CPUs only, uncompiled and without gradients, where it
agrees with the others; its compiled kernels need a GPU and have not been run.
"""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from masklab.models.dropout import dropout
from masklab.models.positions import shift


class Linear(nn.Linear):
    """A linear layer that is initialised by the model that owns it."""

    def reset_parameters(self) -> None:
        pass


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


def plan_queries(at: torch.Tensor, batch: Batch) -> Queries:
    """Lay the positions `at` out as an equal number of queries per row.

    Rows with fewer queries than the longest repeat a position, which is then thrown away. The row
    counts decide shapes, so this is for CPUs; elsewhere, and where most positions are asked for,
    attention is computed from every position and the rows are gathered after it.
    """
    if at.device.type != "cpu" or torch.compiler.is_compiling() or len(at) == 0:
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
        q, k, v = self.project(x, batch)
        slots = None if queries is None else queries.slots
        if slots is not None:
            rows = q.shape[1] * q.shape[2]
            q = q.reshape(self.heads, rows, self.width).index_select(1, slots.flatten())
            q = q.view(self.heads, batch.size, -1, self.width)
        if self.flexes(q):
            context = attend_flex(q, k, v, self.score_mod(q, k, batch, relative), self.scale)
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
        qkv = F.linear(x, self.in_proj.weight, self.projection_bias())
        qkv = qkv.view(batch.size, batch.length, self.heads, 3 * self.width).permute(2, 0, 1, 3).contiguous()
        return qkv.chunk(3, dim=-1)

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
        explicit = q.device.type == "cpu" and (p or terms)
        return (self.attend_explicitly if explicit else self.attend_fused)(q, k, v, terms, mask, p)

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
        first = terms.pop(0).expand(shape).flatten(0, 1) if terms else q.new_zeros(1).expand(len(q), *shape[2:])
        scores = torch.baddbmm(first, q, k.transpose(1, 2), alpha=self.scale).view(shape)
        for term in terms:
            scores.add_(term)
        weights = dropout(short_softmax(scores.flatten(0, 1)), p, True)[..., : shape[3]]
        return torch.bmm(weights, v).view(*shape[:3], -1)


def short_softmax(scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis, which grows to 16 zero-weighted columns where it was shorter.

    torch's CPU kernel handles rows shorter than its vectors element by element: 12 columns cost 5 x 16 columns.
    """
    missing = 16 - scores.shape[-1]
    return torch.softmax(F.pad(scores, (0, missing), value=-torch.inf) if missing > 0 else scores, -1)


class PositionedAttention(Attention):
    """Attention whose scores depend on positions: what FlexAttention is for."""

    def flexes(self, q) -> bool:
        dropped = self.training and self.p
        return q.device.type == "cuda" and torch.compiler.is_compiling() and self.width >= 16 and not dropped

    def score_mod(self, q, k, batch: Batch, relative):
        """FlexAttention's function (score, b, h, i, j) -> score with every term that `attend` adds."""
        raise NotImplementedError


class BiasedAttention(PositionedAttention):
    """Attention with a learned bias by head and distance (MAE-LM; Raffel et al. 2020, section 2.1).

    `relative` [n, 1 or B, T, T] is the bias, the same in every layer.
    """

    def position_scores(self, q, k, batch, slots, relative):
        if slots is None:
            return [relative]
        rows = slots.remainder(batch.length) if relative.shape[1] == 1 else slots
        picked = relative.flatten(1, 2).index_select(1, rows.flatten())
        return [picked.view(self.heads, batch.size, -1, batch.length)]

    def score_mod(self, q, k, batch, relative):
        relative, mask = relative.expand(-1, batch.size, -1, -1), batch.mask

        def add(score, b, h, i, j):
            score = score + relative[h, b, i, j]
            return score if mask is None else score + mask[b, 0, j]

        return add


class DisentangledAttention(PositionedAttention):
    """DeBERTa's attention (He et al. 2021, eq. 4): content-content + content-position + position-content.

    score(i, j) = (q_i . k_j + q_i . K_r[i - j] + k_j . Q_r[i - j]) / sqrt(3 d)
    """

    in_proj_bias = False

    def __init__(self, hidden: int, heads: int, p: float, p_relative: float | None = None):
        super().__init__(hidden, heads, p)
        self.p_relative = p if p_relative is None else p_relative
        self.q_bias = nn.Parameter(torch.empty(hidden))
        self.v_bias = nn.Parameter(torch.empty(hidden))
        self.pos_proj = Linear(hidden, hidden, bias=False)
        self.pos_q_proj = Linear(hidden, hidden)
        self.scale = 1 / math.sqrt(3 * self.width)

    def projection_bias(self) -> torch.Tensor:
        q, v = self.q_bias.view(self.heads, 1, -1), self.v_bias.view(self.heads, 1, -1)
        return torch.cat([q, torch.zeros_like(q), v], dim=1).flatten()

    def products(self, q, k, relative):
        """Scaled products with the embeddings of distances, `relative` [2 S - 1, H] (i - j = S - 1, ..., 1 - S).

        Content to position [n, B, M, 2 S - 1] has columns over j - i, position to content [n, B, T, 2 S - 1]
        over i - j, so that both shift the same way.
        """
        n, size, _, width = k.shape
        relative = dropout(relative, self.p_relative, self.training)
        keys = self.pos_proj(relative).mul(self.scale).view(-1, n, width).permute(1, 2, 0)  # [n, d, 2 S - 1]
        queries = self.pos_q_proj(relative).mul(self.scale).flip(0).view(-1, n, width).permute(1, 2, 0)
        c2p, p2c = torch.bmm(q.flatten(1, 2), keys), torch.bmm(k.flatten(1, 2), queries)
        return c2p.view(n, size, -1, len(relative)), p2c.view(n, size, -1, len(relative))

    def position_scores(self, q, k, batch, slots, relative):
        c2p, p2c = self.products(q, k, relative)
        if slots is None and batch.positions is None:
            return [shift(c2p), shift(p2c).transpose(-1, -2)]
        n, size, length, columns = p2c.shape
        row = torch.arange(length, device=q.device)
        j = row if batch.positions is None else batch.positions[:, None, :]  # [T] or [B, 1, T]
        if slots is None:
            i = batch.positions[:, :, None]  # [B, M, 1]
        else:
            i = (slots.remainder(length) if batch.positions is None else batch.positions.flatten()[slots])[:, :, None]
        offset = columns // 2 - i + j  # [B, M, T]
        c2p_index, p2c_index = offset, row * columns + columns - 1 - offset
        c2p = c2p.gather(-1, c2p_index.expand(n, -1, -1, -1))
        p2c = p2c.view(n, size, -1).gather(-1, p2c_index.flatten(1).expand(n, -1, -1))
        return [c2p, p2c.view_as(c2p)]

    def score_mod(self, q, k, batch, relative):
        c2p, p2c = self.products(q, k, relative)
        middle, mask, positions = c2p.shape[-1] // 2, batch.mask, batch.positions

        def add(score, b, h, i, j):
            distance = i - j if positions is None else positions[b, i] - positions[b, j]
            score = score + c2p[h, b, i, middle - distance] + p2c[h, b, j, middle + distance]
            return score if mask is None else score + mask[b, 0, j]

        return add


def attend_flex(q, k, v, score_mod, scale: float) -> torch.Tensor:
    """softmax(score_mod(scale q k')) v by FlexAttention: q, k, v and the result are [n, B, T, d]."""
    from torch.nn.attention.flex_attention import flex_attention

    q, k, v = (part.transpose(0, 1) for part in (q, k, v))
    return flex_attention(q, k, v, score_mod=score_mod, scale=scale).transpose(0, 1)
