"""Self-attention whose scores depend on distances: a bias (T5, MAE-LM) or disentangled (DeBERTa).

B batch, T length, M queries per row, S span of the positions, n heads, d width of a head, H = n d
"""

import math
import os

import torch
from torch import nn

from masklab.models.attention import Attention
from masklab.models.batched import product
from masklab.models.dropout import dropout
from masklab.models.linear import Linear
from masklab.models.positions import shift

FLEX = os.environ.get("MASKLAB_FLEX", "1") != "0"  # MASKLAB_FLEX=0: scaled_dot_product_attention in its place


class BiasedAttention(Attention):
    """Attention with a learned bias by head and distance (MAE-LM; Raffel et al. 2020, section 2.1).

    `relative` [n, 1 or B, T, T] is the bias, the same in every layer.
    """

    def position_scores(self, q, k, batch, slots, relative):
        if slots is None:
            return [relative]
        rows = slots.remainder(batch.length) if relative.shape[1] == 1 else slots
        picked = relative.flatten(1, 2).index_select(1, rows.flatten())
        return [picked.view(self.heads, batch.size, -1, batch.length)]

    def flexes(self, q) -> bool:
        if not FLEX or q.device.type != "cuda" or not torch.compiler.is_compiling():
            return False
        return self.width >= 16 and not (self.training and self.p)

    def score_mod(self, batch, relative):
        """FlexAttention's function (score, b, h, i, j) -> score with the bias and the mask of padding."""
        shared, bias = relative.shape[1] == 1, relative.contiguous()
        mask = None if batch.mask is None else batch.mask[:, 0].contiguous()

        def add(score, b, h, i, j):
            score = score + (bias[h, 0, i, j] if shared else bias[h, b, i, j])
            return score if mask is None else score + mask[b, j]

        return add


class DisentangledAttention(Attention):
    """DeBERTa's attention (He et al. 2021, eq. 4): content-content + content-position + position-content.

    score(i, j) = (q_i . k_j + q_i . K_r[i - j] + k_j . Q_r[i - j]) / sqrt(3 d)

    FlexAttention is not for it: torch 2.11 does not compile a score that reads products by distance.
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
        c2p, p2c = product(q.flatten(1, 2), keys), product(k.flatten(1, 2), queries)
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
