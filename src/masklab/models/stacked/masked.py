"""Stacked masked language model: the encoder at masked tokens, and the head, with hand-written gradients.

S copies, B rows, T length, K tokens to predict (the most of any copy), H width, V vocabulary
"""

import torch
from torch.nn import functional as F

from masklab.models.stacked.chosen import Masked
from masklab.models.stacked.dropout import keep_masks, masked_sites
from masklab.models.stacked.encoder import Norm, StackedEncoder
from masklab.models.stacked.products import affine, affine_gradients, input_gradient

WORD = "embeddings.word"


class StackedMaskedLM:
    """`MaskedLM.forward` of every copy at its own masked tokens.

    parameters: `StackedParameters` of all of its parameters, the token embeddings being the table.
    """

    def __init__(self, parameters, config):
        self.parameters, self.config = parameters, config
        self.encoder = StackedEncoder(parameters, config, first=False, prefix="")
        self.norm = Norm(parameters, "head.norm", config.eps)
        self.table = WORD if config.tied_head else "head.weight"

    def forward(self, batches, seeds=None):
        """Logits [S, K, V] and latent logits [S, K, L] (None without that head) of a batch of each copy.

        batches: S `objectives.batch.Batch`es of B rows; seeds: of each copy's dropout, None: no dropout. Behind a
        copy's own tokens stands what means nothing.
        """
        longest = [batch.ids.shape[1] for batch in batches]
        shape = len(batches), len(batches[0].ids), max(longest)
        ids = torch.zeros(shape, dtype=torch.int64)
        for own, batch in zip(ids, batches, strict=True):
            own[:, : batch.ids.shape[1]] = batch.ids
        lengths = torch.stack([batch.lengths for batch in batches])
        masked = Masked([batch.at.numpy() for batch in batches], longest, shape)
        keep = None
        if seeds is not None and self.config.dropout:
            own = zip(longest, masked.queries, masked.counts, strict=True)
            keep = keep_masks(seeds, [masked_sites(self.config, shape[1], *each) for each in own], self.config.dropout)
            keep[-2:] = (F.pad(mask, (0, 0, 0, masked.most - mask.shape[2])) for mask in keep[-2:])
        states = self.encoder.forward(ids, lengths, keep, masked)
        inner = affine(states, *self.parameters.pair("head.dense"))
        read = self.norm.forward(F.gelu(inner))
        self.saved = states, inner, read
        logits = affine(read, self.parameters[self.table], self.parameters["head.bias"])
        latent = affine(read, *self.parameters.pair("latent")) if "latent.weight" in self.parameters.shapes else None
        return logits, latent

    def backward(self, g, g_latent=None) -> None:
        """Write the gradients of all parameters, given those of the logits: zero behind a copy's own tokens."""
        states, inner, read = self.saved
        self.saved = None  # memory for what comes next
        gradient_of = self.parameters.gradient_of
        affine_gradients(g, read, gradient_of(self.table), gradient_of("head.bias"))
        g = input_gradient(g, self.parameters[self.table])
        if g_latent is not None:
            affine_gradients(g_latent, read, *self.parameters.gradient_pair("latent"))
            g.baddbmm_(g_latent, self.parameters["latent.weight"])
        elif "latent.weight" in self.parameters.shapes:
            for part in self.parameters.gradient_pair("latent"):
                part.zero_()
        g = torch.ops.aten.gelu_backward(self.norm.backward(g), inner)
        affine_gradients(g, states, *self.parameters.gradient_pair("head.dense"))
        self.encoder.backward(input_gradient(g, self.parameters["head.dense.weight"]), add=self.table == WORD)
