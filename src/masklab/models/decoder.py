"""The shallow decoder of a masked autoencoder for text (MAE-LM: Meng et al. 2024, section 3).

The encoder never sees [MASK]: masked positions leave its input, which shrinks, and
enter again here. The decoder is a stack of the encoder's layers with position
embeddings and an embedding norm of its own, with a bias by distance only where it is
asked for, and without dropout. It is dropped when the encoder is fine-tuned.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

from masklab.config.schema import Encoder
from masklab.models.attention import Batch, Queries, plan_queries
from masklab.models.blocks import Block
from masklab.models.cross import CrossBlock
from masklab.models.linear import Linear
from masklab.models.positions import shared_bias


@dataclass
class Kept:
    """A batch without its dropped positions.

    ids        [B, T'] tokens that stay, in order, padded with what lay in the row
    lengths    [B] how many stay
    positions  [B, T'] where they stood
    source     [B T] flat position of each original token in [B, T'], or B T' where it was dropped
    """

    ids: torch.Tensor
    lengths: torch.Tensor
    positions: torch.Tensor
    source: torch.Tensor


def drop(ids: torch.Tensor, lengths: torch.Tensor, dropped: torch.Tensor, width: int | None = None) -> Kept:
    """Take the positions `dropped` (flat, b T + t) out of ids [B, T] with `lengths` [B].

    `dropped` [D]: T' is the most that any row keeps, at least 1: `width` where it is known, else a number that a
    GPU must be waited for.
    `dropped` [B, d], as many in every row: T' = T - d, known beforehand (torch.compile makes it one graph).
    """
    size, length = ids.shape
    stays = (torch.arange(length, device=ids.device) < lengths[:, None]).flatten()
    stays = stays.index_fill(0, dropped.flatten(), False).view(size, length)
    kept = stays.sum(1)
    if width is None:
        width = length - dropped.shape[1] if dropped.dim() == 2 else max(1, int(kept.max()))
    positions = torch.argsort(stays.logical_not(), dim=1, stable=True)[:, :width]
    rank = stays.cumsum(1) - 1 + torch.arange(size, device=ids.device)[:, None] * width
    source = torch.where(stays, rank, size * width).flatten()
    return Kept(ids.gather(1, positions), kept, positions, source)


class Decoder(nn.Module):
    """From encoder states and the embedding of [MASK] to states that the head reads.

    Args:
        config: the encoder's configuration; its `decoder` gives the sizes.
    """

    def __init__(self, config: Encoder):
        super().__init__()
        stack = config.decoder_stack
        resized = stack.hidden != config.hidden
        self.resize = Linear(config.hidden, stack.hidden) if resized else None
        self.position = nn.Parameter(torch.empty(stack.max_positions, stack.hidden))
        relative = stack.positions == "relative"
        self.relative = nn.Parameter(torch.empty(stack.relative_buckets, stack.heads)) if relative else None
        self.furthest = stack.relative_distance
        self.one_path = False  # as in `MaskedLM`
        self.norm = nn.LayerNorm(stack.hidden, stack.eps)
        self.attention = config.decoder.attention
        cross = self.attention != "self"
        self.blocks = nn.ModuleList(
            CrossBlock(stack, self.attention, config.hidden) if cross else Block(stack) for _ in range(stack.layers)
        )
        self.final_norm = nn.LayerNorm(stack.hidden, stack.eps) if stack.norm == "pre" else None

    def forward(self, inputs: torch.Tensor, batch: Batch, at, memory=None, keys: Batch | None = None) -> torch.Tensor:
        """inputs [B T, H] -> [N, D] at the flat positions `at` [N], or [B T, D].

        memory [B T', H] and keys: the encoder's states and their shape, which cross-attention reads.
        """
        x = inputs if self.resize is None else self.resize(inputs)
        x = x.view(batch.size, batch.length, -1) + self.position[: batch.length]
        x = self.norm(x).flatten(0, 1)
        queries = None if at is None else plan_queries(at, batch, self.one_path)
        x = self._self(x, batch, queries) if self.attention == "self" else self._cross(x, batch, queries, memory, keys)
        return x if self.final_norm is None else self.final_norm(x)

    def _self(self, x, batch, queries):
        relative = None if self.relative is None else shared_bias(self.relative, batch.length, self.furthest)
        for block in self.blocks[:-1]:
            x = block(x, batch, None, relative)
        return self.blocks[-1](x, batch, queries, relative)

    def _cross(self, x, batch, queries, memory, keys):
        """Queries stay as many in every row until the end: attention to the encoder's states needs rows."""
        slots = None if queries is None or queries.slots is None else queries.slots
        last = None if slots is None else Queries(slots.flatten(), slots)
        if last is not None and self.attention == "cross":
            x, last = x.index_select(0, last.at), None
        for block in self.blocks[:-1]:
            x = block(x, batch, memory, keys)
        x = self.blocks[-1](x, batch, memory, keys, last)
        if queries is None:
            return x
        index = queries.at if slots is None else queries.back
        return x if index is None else x.index_select(0, index)


def restore(states: torch.Tensor, kept: Kept, mask: torch.Tensor) -> torch.Tensor:
    """Encoder states [B T', H] put back where they stood, `mask` [H] where there is none: [B T, H]."""
    return F.embedding(kept.source, torch.cat([states, mask[None]]))
