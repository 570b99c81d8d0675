"""Stacked masked language model: the encoder at masked tokens, and the head, with hand-written gradients.

S copies, B rows, T length, K tokens to predict (the most of any copy), V vocabulary
"""

import torch

from masklab.models.stacked import WORD
from masklab.models.stacked.chosen import Masked
from masklab.models.stacked.dropout import keeps, masked_sites
from masklab.models.stacked.encoder import StackedEncoder
from masklab.models.stacked.head import StackedHead
from masklab.models.stacked.ragged import Ragged


def beside(tensors, length: int) -> torch.Tensor:
    """Whole numbers [B, T_s] of each copy as [S, B, T], zeros behind them."""
    found = torch.zeros(len(tensors), len(tensors[0]), length, dtype=torch.int64)
    for row, own in zip(found, tensors, strict=True):
        row[:, : own.shape[1]] = own
    return found


class StackedMaskedLM:
    """`MaskedLM.forward` of every copy at its own masked tokens.

    parameters: `StackedParameters` of all of its parameters, the token embeddings being the table.
    """

    def __init__(self, parameters, config):
        self.parameters, self.config = parameters, config
        self.encoder = StackedEncoder(parameters, config, first=False, prefix="")
        self.head = StackedHead(parameters, config)

    def forward(self, batches, seeds=None):
        """Logits [S, K, V] and latent logits [S, K, L] (None without that head) of a batch of each copy.

        batches: S `objectives.batch.Batch`es of B rows; seeds: of each copy's dropout, None: no dropout. Behind a
        copy's own tokens stands what means nothing.
        """
        longest = [batch.ids.shape[1] for batch in batches]
        ids = beside([batch.ids for batch in batches], max(longest))
        ragged = Ragged.of(torch.stack([batch.lengths for batch in batches]), max(longest), apart=True)
        masked, keep = Masked([batch.at.numpy() for batch in batches], longest, ragged), None
        if seeds is not None and self.config.dropout:
            own = zip(longest, masked.queries, masked.counts, strict=True)
            keep = keeps(seeds, [masked_sites(self.config, ids.shape[1], *each) for each in own], self.config.dropout)
        return self.head.forward(self.encoder.forward(ids, ragged, keep, masked), masked)

    def backward(self, g, g_latent=None) -> None:
        """Write the gradients of all parameters, given those of the logits: zero behind a copy's own tokens."""
        self.encoder.backward(self.head.backward(g, g_latent), add=self.head.table == WORD)
