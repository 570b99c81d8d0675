"""Stacked masked language model: the encoder at masked tokens, and the head, with hand-written gradients.

S copies, B rows, T length, M queries per row in the last block, K tokens to predict (the most of any copy), H width,
V vocabulary
"""

import torch

from masklab.kernels.rowwise import gelu, gelu_backward_
from masklab.models.stacked import WORD
from masklab.models.stacked.chosen import Masked, Slots, queries
from masklab.models.stacked.dropout import keeps, masked_sites
from masklab.models.stacked.encoder import Norm, StackedEncoder
from masklab.models.stacked.products import affine, affine_gradients, input_gradient


def laid_out(batch, step: int, longest: int) -> tuple[int, int]:
    """(T, M) of a batch whose attention works on a grid: T is the next multiple of `step`, `longest` at most, so that
    few differ; and what that asks for."""
    own = batch.ids.shape[1]
    length = max(own, min(-(-own // step) * step, longest))
    return length, queries(batch.at.numpy(), own, length)


class StackedMaskedLM:
    """`MaskedLM.forward` of every copy at its own masked tokens.

    parameters: `StackedParameters` of all of its parameters, the token embeddings being the table.
    """

    def __init__(self, parameters, config):
        self.parameters, self.config = parameters, config
        self.encoder = StackedEncoder(parameters, config, first=False, prefix="")
        transform = config.head == "transform"
        self.norm = Norm(parameters, "head.norm", config.eps) if transform else None
        self.table = WORD if config.tied_head else "head.weight"

    def forward(self, batches, layout, seeds=None):
        """Logits [S, K, V] and latent logits [S, K, L] (None without that head) of a batch of each copy.

        batches: S `objectives.batch.Batch`es of B rows; layout: what `laid_out` says of every one of them, None where
        attention needs no grid; seeds: of each copy's dropout, None: no dropout. Behind a copy's own tokens stands what
        means nothing.
        """
        longest = [batch.ids.shape[1] for batch in batches]
        shape = len(batches), len(batches[0].ids), layout[0] if layout else max(longest)
        ids = torch.zeros(shape, dtype=torch.int64)
        for own, batch in zip(ids, batches, strict=True):
            own[:, : batch.ids.shape[1]] = batch.ids
        lengths, free = torch.stack([batch.lengths for batch in batches]), self.encoder.free
        grid = self.encoder.grid(lengths, shape[2], pack=free, apart=free)
        asked = [batch.at.numpy() for batch in batches]
        masked = Masked(asked, longest, grid) if free else Slots(asked, longest, grid, layout[1])
        keep = None
        if seeds is not None and self.config.dropout:
            own = zip(longest, masked.queries, masked.counts, strict=True)
            keep = keeps(seeds, [masked_sites(self.config, shape[1], *each) for each in own], self.config.dropout)
        states = self.encoder.forward(ids, grid, keep, masked)
        rows, read_weight = masked.own, self.parameters.read
        inner, read = None, states
        if self.norm is not None:
            inner = affine(states, read_weight("head.dense.weight"), None, rows)
            read = self.norm.forward(gelu(inner, self.parameters["head.dense.bias"], rows), counts=rows)
        read = masked.in_own_order(read)
        self.saved = states, inner, read, rows, masked
        logits, latent = affine(read, read_weight(self.table), self.parameters["head.bias"], rows), None
        if "latent.weight" in self.parameters.shapes:
            latent = affine(read, read_weight("latent.weight"), self.parameters["latent.bias"], rows)
        return logits, latent

    def backward(self, g, g_latent=None) -> None:
        """Write the gradients of all parameters, given those of the logits: zero behind a copy's own tokens."""
        states, inner, read, rows, masked = self.saved
        self.saved = None  # memory for what comes next
        gradient_of = self.parameters.gradient_of
        affine_gradients(g, read, gradient_of(self.table), gradient_of("head.bias"), rows)
        g = input_gradient(g, self.parameters.read(self.table), rows)
        if g_latent is not None:
            affine_gradients(g_latent, read, *self.parameters.gradient_pair("latent"), rows)
            g = input_gradient(g_latent, self.parameters.read("latent.weight"), rows, g)
        elif "latent.weight" in self.parameters.shapes:
            for part in self.parameters.gradient_pair("latent"):
                part.zero_()
        g = masked.in_order(g)
        if self.norm is not None:
            bias, weight = self.parameters["head.dense.bias"], self.parameters.read("head.dense.weight")
            weight_gradient, bias_gradient = self.parameters.gradient_pair("head.dense")
            g = gelu_backward_(self.norm.backward(g)[0], inner, bias, bias_gradient, rows)
            affine_gradients(g, states, weight_gradient, None, rows)
            g = input_gradient(g, weight, rows)
        self.encoder.backward(g, add=self.table == WORD)
