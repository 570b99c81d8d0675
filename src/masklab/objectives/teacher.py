"""The frozen phase-1 model and what phase 2 reads from it."""

import torch

from masklab.sparse.lasso import lasso, unit_rows
from masklab.sparse.targets import targets


class Teacher:
    """Signals of a frozen model in eval mode on the unmasked sequence.

    model: the phase-1 `MaskedLM`, or None when only stored codes are read.
    dictionary: [d, k] tensor for on-the-fly codes; `store`: a `CodeStore` for stored ones.
    """

    def __init__(self, model=None, dictionary=None, layer=None, penalty=None, solver="exact", store=None):
        self.model = None if model is None else model.eval().requires_grad_(False)
        self.dictionary, self.layer, self.penalty, self.solver = dictionary, layer, penalty, solver
        self.store = store

    @torch.no_grad()
    def logits(self, batch):
        """Vocabulary logits at the masked positions, [N, V]."""
        return self.model(batch.original, batch.lengths, at=batch.at).logits

    @torch.no_grad()
    def codes(self, batch):
        """L1-normalised sparse codes at the masked positions: (indices [N, m], values [N, m])."""
        device = batch.ids.device
        if self.store is not None:
            indices, values = self.store.gather(batch.positions)
        else:
            states = self.model.encode(batch.original, batch.lengths, layer=self.layer, at=batch.at).float()
            indices, values = targets(lasso(unit_rows(states), self.dictionary, self.penalty, solver=self.solver))
        return indices.to(device), values.to(device)
