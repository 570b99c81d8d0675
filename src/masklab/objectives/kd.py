"""Knowledge distillation (Berend 2023, section 2.2)."""

from torch.nn import functional as F

from masklab.objectives.term import Term


class Kd(Term):
    """KL(teacher || student) over the student's vocabulary; the teacher sees the unmasked sequence.

    A model made elsewhere may have rows behind those of its tokenizer's tokens, which predict nothing.
    """

    def loss(self, batch, output, teacher):
        temperature = self.settings.temperature
        given = teacher.logits(batch).float()[:, : output.logits.shape[1]]
        target = F.log_softmax(given / temperature, -1)
        student = F.log_softmax(output.logits.float() / temperature, -1)
        return F.kl_div(student, target, reduction="none", log_target=True).sum(-1)
