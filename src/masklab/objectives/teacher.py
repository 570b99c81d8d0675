"""The frozen teacher, as a rule the phase-1 model, and what phase 2 reads from it."""

import contextlib

import torch

from masklab.errors import MaskLabError
from masklab.sparse.lasso import lasso, unit_rows
from masklab.sparse.targets import targets
from masklab.tokenizers import CLS, SEP


class Teacher:
    """Signals of a frozen model in eval mode on the unmasked sequence.

    model: the phase-1 `MaskedLM`, or None when only stored codes are read.
    dictionary: [d, k] tensor for on-the-fly codes; `store`: a `CodeStore` for stored ones.
    low: whether its logits are computed in bf16, as a GPU does in a run in bf16; codes are of fp32 states.
    beside: the `training.teachers.Teachers` among which it is, where runs are trained as one stacked model.
    """

    low, beside = False, None

    def __init__(self, model=None, dictionary=None, layer=None, penalty=None, solver="exact", store=None):
        self.model = None if model is None else model.eval().requires_grad_(False)
        self.dictionary, self.layer, self.penalty, self.solver = dictionary, layer, penalty, solver
        self.store = store

    def look_up(self, batch) -> None:
        """Read the stored codes of a batch that is still on the CPU, where codes are stored.

        Raises:
            MaskLabError: a term hides [CLS] or [SEP], at whose place in the store the code of a neighbour lies.
        """
        if self.store is not None:
            if bool(((batch.targets == CLS) | (batch.targets == SEP)).any()):
                raise MaskLabError("codes: [CLS] and [SEP] are hidden and have no stored codes; use codes: on-the-fly")
            batch.extra["codes"], batch.extra["code_values"] = self.store.gather(batch.positions)

    @torch.no_grad()
    def logits(self, batch):
        """Vocabulary logits at the masked positions, [N, V]."""
        found = None if self.beside is None else self.beside.logits(batch)
        if found is not None:
            return found
        device = batch.original.device.type
        with torch.autocast(device, torch.bfloat16) if self.low else contextlib.nullcontext():
            return self.model(batch.original, batch.lengths, at=batch.at).logits

    @torch.no_grad()
    def codes(self, batch):
        """L1-normalised sparse codes at the masked positions: (indices [N, m], values [N, m])."""
        if self.store is not None:
            if "codes" not in batch.extra:
                self.look_up(batch)
            return tuple(batch.extra[name].to(batch.ids.device) for name in ("codes", "code_values"))
        states = self.model.encode(batch.original, batch.lengths, layer=self.layer, at=batch.at).float()
        return targets(lasso(unit_rows(states), self.dictionary, self.penalty, solver=self.solver))
