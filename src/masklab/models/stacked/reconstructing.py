"""Stacked masked autoencoder (MAE-LM): an encoder that [MASK]s have left, a decoder of self-attention, and the head.

S copies, B rows, T length, P tokens of a copy that stay in the encoder, H its width, D that of the decoder
"""

import itertools

import torch

from masklab.kernels.embed import embed, embed_backward
from masklab.models.decoder import drop
from masklab.models.stacked import WORD
from masklab.models.stacked.bias import Bias
from masklab.models.stacked.chosen import Masked
from masklab.models.stacked.dropout import keeps, sites
from masklab.models.stacked.encoder import Blocks, Norm, StackedEncoder
from masklab.models.stacked.head import StackedHead
from masklab.models.stacked.masked import beside
from masklab.models.stacked.products import affine, affine_gradients, input_gradient
from masklab.models.stacked.ragged import Ragged
from masklab.tokenizers import MASK


class StackedDecoder:
    """`decoder.Decoder` of every copy at its masked tokens, and [MASK] in the places of those that left."""

    def __init__(self, parameters, config):
        self.parameters, self.config = parameters, config.decoder_stack
        self.norm = Norm(parameters, "decoder.norm", config.eps)
        self.blocks = Blocks(parameters, self.config, "decoder.")
        self.resizes = "decoder.resize.weight" in parameters.shapes

    def forward(self, states, of, source, ragged, masked):
        """states [S, P, H] of tokens that lie as `of`, a `Ragged`, says -> [S, K, D] at the tokens of `masked`.

        source [S, B, T]: which of its row's states a token has, -1: none, it is [MASK].
        """
        copies, size, length = ragged
        mask = self.parameters[WORD][:, MASK, None].to(states.dtype)
        table = torch.cat([mask, states], 1)  # of each copy [MASK] first
        self.read, self.counts = table, None if of.counts is None else [1 + count for count in of.counts]
        if self.resizes:
            weight, bias = self.parameters.read("decoder.resize.weight"), self.parameters["decoder.resize.bias"]
            table = affine(table, weight, bias, self.counts)
        inside = of.starts.view(copies, size, 1) - states.shape[1] * torch.arange(copies).view(-1, 1, 1)
        rows = torch.where(source < 0, 0, 1 + inside + source)
        self.rows, self.columns = ragged.rows(rows, torch.arange(copies) * table.shape[1]), ragged.columns
        places, self.ragged = self.parameters["decoder.position"], table.shape
        if length > places.shape[1]:
            raise IndexError(f"rows have {length} tokens, positions end at {places.shape[1]}")
        x = embed(table.float().flatten(0, 1), self.rows, places, self.columns, copies)
        named = "decoder.relative" in self.parameters.shapes
        self.relative = Bias(self.parameters, "decoder.relative", length, self.config) if named else None
        x = self.norm.forward(x, counts=ragged.counts)
        return self.blocks.forward(x, ragged, itertools.repeat(None), self.relative, masked)

    def backward(self, g):
        """Gradients of the states and of the embedding of [MASK] [S, H], given that of the result."""
        g, kind = self.norm.backward(self.blocks.backward(g))[0], self.read.dtype
        if self.relative is not None:
            self.relative.write()
        table, position = torch.zeros(self.ragged), self.parameters.gradient_of("decoder.position")
        embed_backward(g.contiguous(), table.flatten(0, 1), self.rows, position, self.columns)
        if self.resizes:
            g = table.to(kind)
            affine_gradients(g, self.read, *self.parameters.gradient_pair("decoder.resize"), self.counts)
            table = input_gradient(g, self.parameters.read("decoder.resize.weight"), self.counts)
        self.read = None  # memory for what comes next
        return table[:, 1:].to(kind).contiguous(), table[:, 0]


class StackedAutoencoder:
    """`MaskedLM.reconstruct` of every copy as the term `mae` asks for it.

    parameters: as of a `StackedMaskedLM`; aligned: as in `MaskedLM.reconstruct`.
    """

    def __init__(self, parameters, config, aligned: bool):
        self.parameters, self.config, self.aligned = parameters, config, aligned
        self.encoder = StackedEncoder(parameters, config, first=False, prefix="")
        self.decoder, self.head = StackedDecoder(parameters, config), StackedHead(parameters, config)

    def forward(self, batches, seeds=None):
        """As `StackedMaskedLM.forward`, of batches that `objectives.mae.Mae` has arranged."""
        shown = [each.extra for each in batches]
        kept = [drop(b.ids, b.lengths, own["dropped"], own["width"]) for b, own in zip(batches, shown, strict=True)]
        widths = [own.ids.shape[1] for own in kept]
        of = Ragged.of(torch.stack([own.lengths for own in kept]), max(widths), apart=True)
        ids, size, keep = beside([own.ids for own in kept], max(widths)), of[1], None
        if seeds is not None and self.config.dropout:
            keep = keeps(seeds, [sites(self.config, size, width, False) for width in widths], self.config.dropout)
        positions = beside([own.positions for own in kept], max(widths)) if self.aligned else None
        states = self.encoder.forward(ids, of, keep, positions=positions, packed=True)

        longest = [batch.ids.shape[1] for batch in batches]
        lengths = torch.stack([batch.lengths for batch in batches])
        ragged = Ragged.of(lengths, max(longest), apart=True)
        masked = Masked([batch.at.numpy() for batch in batches], longest, ragged)
        source = beside([_source(*each) for each in zip(batches, kept, strict=True)], max(longest))
        return self.head.forward(self.decoder.forward(states, of, source, ragged, masked), masked)

    def backward(self, g, g_latent=None) -> None:
        """Write the gradients of all parameters, given those of the logits: zero behind a copy's own tokens."""
        g, of_mask = self.decoder.backward(self.head.backward(g, g_latent))
        self.encoder.backward(g, add=self.head.table == WORD)
        self.parameters.gradient_of(WORD)[:, MASK] += of_mask


def _source(batch, kept):
    """Which of its row's states each token of a batch has, [B, T]; -1: none."""
    size, width = kept.ids.shape
    source = kept.source.view(size, -1) - width * torch.arange(size)[:, None]
    source[kept.source.view(size, -1) == size * width] = -1
    if batch.extra.get("reset") is not None:
        source.view(-1)[batch.extra["reset"]] = -1
    return source
