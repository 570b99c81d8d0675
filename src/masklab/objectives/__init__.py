"""What an encoder is trained to predict.

An objective is a weighted sum of terms. A term is a function
`(batch, output, teacher) -> Tensor [N]`, the loss of each masked token in nats;
it says in `NEEDS` which teacher signal it reads. To add one, write the function,
register it in `TERMS`, and give `config.schema.Objective` a weight of that name.
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional as F

from masklab.objectives.cross_entropy import token_cross_entropy
from masklab.sparse.targets import kl_to_sparse


@dataclass
class Batch:
    """A masked batch. `at` and everything after it have one row per masked token (N)."""

    ids: Tensor  # [B, T] after corruption
    original: Tensor  # [B, T] before
    lengths: Tensor  # [B]
    at: Tensor  # [N] flat positions b*T + t
    targets: Tensor  # [N] the hidden tokens
    positions: object  # numpy [N]: places in the token store, for stored codes
    dropped: Tensor | None = None  # [D] flat positions that leave the encoder; None: the batch is read as it is
    reset: Tensor | None = None  # [R] flat positions that the decoder sees as [MASK] although they stay
    width: int | None = None  # most tokens that a row keeps

    def to(self, device):
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        moved = {k: v.to(device, non_blocking=True) if isinstance(v, Tensor) else v for k, v in found.items()}
        return Batch(**moved)


def mlm(batch, output, teacher) -> Tensor:
    """Cross-entropy of the hidden token over the vocabulary (§2.1)."""
    return token_cross_entropy(output.logits, batch.targets)


def kd(batch, output, teacher) -> Tensor:
    """KL(teacher || student) over the vocabulary; the teacher sees the unmasked sequence (§2.2)."""
    target = F.log_softmax(teacher.logits(batch).float() / teacher.temperature, -1)
    student = F.log_softmax(output.logits.float() / teacher.temperature, -1)
    return F.kl_div(student, target, reduction="none", log_target=True).sum(-1)


def mlsm(batch, output, teacher) -> Tensor:
    """KL(L1-normalised sparse code || student's softmax over the k latent logits) (§2.3)."""
    indices, values = teacher.codes(batch)
    return kl_to_sparse(indices, values, F.log_softmax(output.latent.float(), -1))


# The masked autoencoder's loss is plain MLM's: what differs is what the encoder is shown (`training.step`).
TERMS = {"mlm": mlm, "kd": kd, "mlsm": mlsm, "mae": mlm}


def losses(objective, batch: Batch, output, teacher) -> tuple[Tensor, dict[str, Tensor]]:
    """Sum over the batch's masked tokens of the weighted loss, and of each unweighted term.

    `objective` is a `config.schema.Objective`. Divide by the number of masked
    tokens of the whole update for the mean.
    """
    parts = {name: term(batch, output, teacher).sum() for name, term in TERMS.items() if getattr(objective, name)}
    total = torch.stack([getattr(objective, name) * part for name, part in parts.items()]).sum()
    return total, {name: part.detach() for name, part in parts.items()}
