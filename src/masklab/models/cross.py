"""Attention to the encoder's states: the decoder layers of MAE-LM's ablations (Meng et al. 2024, section 4.3).

B batch, T length, T' tokens that the encoder saw, M queries per row, n heads, d width of a head, D = n d
"""

import torch
from torch import nn
from torch.nn import functional as F

from masklab.config.schema import Encoder
from masklab.models.attention import Attention, Batch, Queries
from masklab.models.linear import Linear


class CausalAttention(Attention):
    """Self-attention to the same position and those before it."""

    def position_scores(self, q, k, batch, slots, relative):
        key = torch.arange(batch.length, device=q.device)
        query = key[None] if slots is None else slots.remainder(batch.length)  # [1 or B, M]
        ahead = key > query[..., None]
        return [q.new_zeros(ahead.shape).masked_fill_(ahead, torch.finfo(torch.float32).min / 2)[None]]


class CrossAttention(nn.Module):
    """Multi-head attention of states [B M, D] to the encoder's [B T', H], up to the output projection; no dropout."""

    def __init__(self, hidden: int, heads: int, memory: int):
        super().__init__()
        self.core = Attention(hidden, heads, 0.0)
        del self.core.in_proj
        self.query, self.key_value = Linear(hidden, hidden), Linear(memory, 2 * hidden)

    def forward(self, x, memory, keys: Batch) -> torch.Tensor:
        n, d = self.core.heads, self.core.width
        q = self.query(x).view(keys.size, -1, n, d).permute(2, 0, 1, 3)
        kv = self.key_value(memory).view(keys.size, keys.length, n, 2 * d).permute(2, 0, 1, 3)
        k, v = kv.contiguous().chunk(2, dim=-1)
        context = self.core.attend(q.contiguous(), k, v, [], keys.mask)
        return context.permute(1, 2, 0, 3).reshape(-1, n * d)


class CrossBlock(nn.Module):
    """Self-attention (unless `cross` alone), attention to the encoder's states, feed-forward; each with a residual.

    Layer norm follows each sum, or precedes each sublayer, as in the encoder's blocks. No dropout.

    Args:
        stack: sizes (`Encoder.decoder_stack`).
        kind: `self+cross`, `causal+cross` or `cross`.
        memory: H, the encoder's width.
    """

    def __init__(self, stack: Encoder, kind: str, memory: int):
        super().__init__()
        self.pre = stack.norm == "pre"
        self.attention = None
        if kind != "cross":
            make = CausalAttention if kind == "causal+cross" else Attention
            self.attention = make(stack.hidden, stack.heads, 0.0)
            self.out = Linear(stack.hidden, stack.hidden)
            self.attention_norm = nn.LayerNorm(stack.hidden, stack.eps)
        self.cross = CrossAttention(stack.hidden, stack.heads, memory)
        self.cross_out = Linear(stack.hidden, stack.hidden)
        self.cross_norm = nn.LayerNorm(stack.hidden, stack.eps)
        self.ffn_in = Linear(stack.hidden, stack.ffn)
        self.ffn_out = Linear(stack.ffn, stack.hidden)
        self.ffn_norm = nn.LayerNorm(stack.hidden, stack.eps)

    def forward(self, x, batch: Batch, memory, keys: Batch, queries: Queries | None = None) -> torch.Tensor:
        """x [B T, D] -> [B T, D], or [B M, D] at the slots of `queries`; without self-attention x is [B M, D]."""
        if self.attention is not None:
            context = self.attention(self.attention_norm(x) if self.pre else x, batch, queries)
            x = self._sum(x if queries is None else x.index_select(0, queries.at), self.out(context), "attention_norm")
        x = self._sum(x, self.cross_out(self.cross(self.cross_norm(x) if self.pre else x, memory, keys)), "cross_norm")
        return self._sum(x, self.ffn_out(F.gelu(self.ffn_in(self.ffn_norm(x) if self.pre else x))), "ffn_norm")

    def _sum(self, x, update, norm):
        x = x + update
        return x if self.pre else getattr(self, norm)(x)
