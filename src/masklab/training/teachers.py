"""The teachers of runs that are trained as one stacked model, as one stacked model too."""

from dataclasses import replace

import torch

from masklab.models.encoder import MaskedLM
from masklab.models.stacked import WORD, supports_masked
from masklab.models.stacked.parameters import StackedParameters, neighbours


class Teachers:
    """The models of several teachers, of one architecture, which give the logits of all runs of a pass at once.

    Each teacher asks for those of its own batch (`objectives.teacher.Teacher.logits`); nothing is computed for runs
    whose terms do not ask. low: whether products are of bf16 numbers, as those of the runs are.
    """

    def __init__(self, teachers, low: bool):
        models = [teacher.model for teacher in teachers]
        self.config, self.parameters = models[0].config, StackedParameters.of(models, WORD, trained=False)
        if low and supports_masked(self.config, "bf16"):
            self.parameters.lower()
        self._parts, self._batches = {}, []
        for teacher in teachers:
            teacher.beside = self

    @classmethod
    def of(cls, teachers, low: bool = False) -> "Teachers | None":
        """None where there are none, or where one of them is no model that can be stacked."""
        able = all(
            teacher is not None
            and isinstance(teacher.model, MaskedLM)
            and teacher.model.config.decoder is None
            and supports_masked(teacher.model.config)
            for teacher in teachers
        )
        return cls(teachers, low) if able else None

    def expect(self, copies: list[int], batches) -> None:
        """What comes next is a pass of these copies, neighbours or one alone after the other, with a batch each."""
        self._copies, self._batches, self._found = copies, batches, None

    def logits(self, batch) -> torch.Tensor | None:
        """Those of a batch of the pass at its masked positions, [N, V]; None for a batch that is not of it."""
        at = next((at for at, each in enumerate(self._batches) if each is batch), None)
        if at is None:
            return None
        if self._found is None:
            self._found = self._forward()
        return self._found[at]

    @torch.no_grad()
    def _forward(self):
        from masklab.models.stacked.masked import StackedMaskedLM  # numba takes half a second

        asked, found = list(zip(self._copies, self._batches, strict=True)), []
        for together in [asked] if neighbours(self._copies) else [[each] for each in asked]:
            given = [replace(batch, ids=batch.original) for _, batch in together]
            parameters = self._part(together[0][0], together[-1][0] + 1)
            logits, _ = StackedMaskedLM(parameters, self.config).forward(given)  # what it remembers goes with it
            found += [own[: len(batch.at)] for own, batch in zip(logits, given, strict=True)]
        return found

    def _part(self, start: int, stop: int):
        if (start, stop) not in self._parts:
            self._parts[start, stop] = self.parameters.part(start, stop)
        return self._parts[start, stop]
