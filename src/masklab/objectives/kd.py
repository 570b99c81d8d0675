"""Knowledge distillation (Berend 2023, section 2.2)."""

from masklab.objectives.divergence import token_divergence
from masklab.objectives.term import Term


class Kd(Term):
    """KL(teacher || student) over the student's vocabulary; the teacher sees the unmasked sequence.

    A model made elsewhere may have rows behind those of its tokenizer's tokens, which predict nothing.
    """

    def loss(self, batch, output, teacher):
        given = teacher.logits(batch)[:, : output.logits.shape[1]]
        return token_divergence(given, output.logits, self.settings.temperature)
