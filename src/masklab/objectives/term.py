"""A term of an objective: what it does, hook by hook. Every hook has a default. Light: torch is imported on use."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from masklab.config.schema import Encoder
    from masklab.objectives.batch import Batch

READING = ("maskable", "corrupt", "arrange", "forward")  # hooks that at most one term of an objective brings


@dataclass(frozen=True)
class Setup:
    """What a term can prepare itself from. Folders: of the model's token arrays, its tokenizer, the terms' tasks."""

    encoder: Encoder
    vocab_size: int
    tokens: Path
    tokenizer: Path
    tasks: dict[str, Path] = field(default_factory=dict)
    device: object = "cpu"


class Term:
    """A term of an objective. As it stands: hide tokens as `masking` says, and predict them.

    settings: those of the objective, an instance of the class that the term was registered with.
    name: the term's name in objectives; its column in metrics.parquet.
    maximised: whether what `per_update` gives is to grow instead of to fall.
    full_precision: whether `per_update` computes in float32 in runs of any precision.

    A term has a loss for each masked token (`loss`), or it is added once per update (`per_update`). It may say how
    sequences are hidden and read (`maskable`, `corrupt`, `arrange`, `forward`), for all terms of its objective:
    training and validation do so then. Its settings say so, too (`reads`).
    """

    name = ""
    maximised = False
    full_precision = False

    def __init__(self, settings=None):
        self.settings = settings

    def prepare(self, setup: Setup) -> None:
        """Called once, before anything else: read what the term needs. Bad input is a MaskLabError."""

    # --- how sequences are hidden and read ------------------------------------------

    def maskable(self, lengths: np.ndarray, masking) -> np.ndarray:
        """Sequences of which batches are made, [n] bool; lengths [n] count special tokens."""
        from masklab.masking import maskable

        return maskable(lengths, masking)

    def corrupt(
        self, ids: np.ndarray, lengths: np.ndarray, masking, vocab_size: int, rng: np.random.Generator, part=None
    ):
        """What a batch of sequences is shown as, and which tokens have a loss. All randomness comes from `rng`.

        A term that overrides this may leave `part` out: each process then hides the tokens of the whole batch, and
        takes its rows. On a GPU a thread of its own calls this, ahead of the update.

        Args:
            ids: [B, T] tokens, padded on the right, not to be changed.
            lengths: [B] tokens of each row, special tokens included.
            masking: the model's `config.schema.Masking`.
            part: None, or the rows [P] of the batch, in ascending order, that are asked for and that `ids` [P, T]
                holds; `lengths` are those of all. What is returned is theirs, and what it would be without `part`.

        Returns:
            (corrupted [B, T], rows [N], columns [N]), the tokens with a loss in row-major order; or a fourth too, a
            mapping of names to (rows [M], columns [M]) of further tokens: the flat positions of those that lie in a
            micro-batch are then `batch.extra[name]`. With `part` a fifth: how many tokens of the whole batch have a
            loss.
        """
        from masklab.masking import hide

        hidden = hide(lengths, int(lengths.max()), masking, vocab_size, rng, part)
        found = hidden.corrupt(ids), hidden.rows, hidden.columns
        return found if part is None else (*found, {}, len(hidden.all_rows))

    def arrange(self, batch: Batch) -> None:
        """Called on each micro-batch while it is on the CPU: may add to `batch.extra` what `forward` wants to know."""

    def forward(self, model, batch: Batch):
        """The model's `Output` at the tokens with a loss: `logits` [N, V] and, for sparse codes, `latent` [N, K]."""
        return model(batch.ids, batch.lengths, at=batch.at)

    # --- what is made small ----------------------------------------------------------

    def loss(self, batch: Batch, output, teacher) -> Tensor:
        """Loss of each masked token in nats, [N].

        teacher: a `masklab.objectives.teacher.Teacher` where a term needs the teacher or codes, else None.
        """
        from masklab.objectives.cross_entropy import token_cross_entropy

        return token_cross_entropy(output.logits, batch.targets)

    def uniform(self, vocab_size: int, atoms: int) -> float:
        """The largest `loss` of a model that predicts uniform distributions; `atoms` of the dictionary, or 0."""
        return math.log(vocab_size)

    def per_update(self, model, step: int, rng: np.random.Generator) -> Tensor | None:
        """A scalar that is added once to the loss of update `step` (0-based); None: not to this one.

        It must leave the model in training mode. `rng` is the term's own stream of this update. Its value is no part of
        the losses that a run is watched by.
        """
        return None


def brings(term: Term, hook: str) -> bool:
    """Whether a term has its own form of a hook."""
    return getattr(type(term), hook) is not getattr(Term, hook)
