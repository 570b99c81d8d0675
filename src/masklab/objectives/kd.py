"""Knowledge distillation (Berend 2023, section 2.2)."""

from torch.nn import functional as F

from masklab.objectives.term import Term


class Kd(Term):
    """KL(teacher || student) over the vocabulary; the teacher sees the unmasked sequence."""

    def loss(self, batch, output, teacher):
        temperature = self.settings.temperature
        target = F.log_softmax(teacher.logits(batch).float() / temperature, -1)
        student = F.log_softmax(output.logits.float() / temperature, -1)
        return F.kl_div(student, target, reduction="none", log_target=True).sum(-1)
