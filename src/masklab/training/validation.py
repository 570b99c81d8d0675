"""The losses of a run on sequences that it does not train on, and those of word frequencies alone."""

import functools
import logging
from collections.abc import Iterator

import numpy as np
import torch

from masklab.config import kinds
from masklab.errors import MaskLabError
from masklab.objectives import Term
from masklab.objectives.batch import Batch
from masklab.objectives.returned import is_of_user, maskable_by, output_of
from masklab.rng import generator
from masklab.tokens import TokenStore
from masklab.training.manifest import unigram_loss
from masklab.training.step import masked_step

log = logging.getLogger("masklab")
ROWS = 512
BATCH = 64


def valid_batches(run, vocab_size: int, term: Term) -> Iterator[Batch]:
    """Masked batches of up to `ROWS` fixed validation sequences of a `Run`; the same for its whole phase."""
    store, masking = TokenStore(run.tokens, "valid"), run.model.masking
    rows = maskable_rows(store, masking, term)
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), ROWS)).astype(int)]  # all over: files come in order
    rows = rows[np.argsort(store.lengths[rows], kind="stable")]
    size = run.model.micro_batch or BATCH
    for start in range(0, len(rows), BATCH):
        rng, part = generator(*run.address, "valid", start), rows[start : start + BATCH]
        yield from masked_step(store, part, rng, masking, vocab_size, size, term).micro


def maskable_rows(store: TokenStore, masking, term: Term) -> np.ndarray:
    """Sequences of a split in which a token can be hidden."""
    return np.flatnonzero(maskable_by(term, store.lengths, masking))


class Validation:
    """The validation sequences of a `Learner`'s run, hidden and read as in training.

    Raises:
        MaskLabError: there is none that a token can be hidden in, or chance hides none in any of them.
    """

    def __init__(self, learner):
        self.learner, run = learner, learner.run
        if not len(maskable_rows(TokenStore(run.tokens, "valid"), run.model.masking, learner.terms.reader)):
            raise MaskLabError(f"{run.name}: the corpus has no validation sequence with a maskable token")
        if not any(len(batch.at) for batch in self.batches()):
            if is_of_user(learner.terms.reader, "corrupt"):
                term = kinds.term_with_file(learner.terms.reader.name)
                raise MaskLabError(
                    f"{run.name}: objective: {term}: its `corrupt` gives no token of any validation sequence a loss, so"
                    " that there is no validation loss"
                )
            raise MaskLabError(
                f"{run.name}: models.{run.name}.masking: chance hides no token of any validation sequence, so that"
                " there is no validation loss; raise rate, or give the corpus more validation sequences"
            )

    def batches(self) -> Iterator[Batch]:
        """What `loss` reads, on the CPU."""
        return valid_batches(self.learner.run, self.learner.vocab_size, self.learner.terms.reader)

    @torch.no_grad()
    def loss(self) -> float:
        """Mean cross-entropy of the model in nats per token to predict. Of a masked autoencoder it is the decoder's."""
        model, reader = self.learner.model, self.learner.terms.reader
        model.eval()
        total = count = 0
        for batch in self.batches():
            batch = batch.to(self.learner.device)
            logits = output_of(reader, model, batch).logits
            total += float(torch.nn.functional.cross_entropy(logits, batch.targets, reduction="sum"))
            count += len(batch.at)
        model.train()
        return total / count

    @functools.cached_property
    def unigram_loss(self) -> float | None:
        """What `loss` would be of a model that knows how often each token occurs, and nothing else."""
        targets = [batch.targets.numpy() for batch in self.batches()]
        targets = np.concatenate([np.empty(0, np.int64), *targets])
        return unigram_loss(self.learner.train_store, self.learner.vocab_size, targets)

    def warn(self, step: int, loss: float) -> None:
        """Say so where a run that is half done predicts no better than the frequencies of words do."""
        run = self.learner.run
        if 2 * step > run.model.steps and self.unigram_loss is not None and loss >= self.unigram_loss:
            log.warning(
                "%s: at step %d the validation loss, %.4f, is not below that of word frequencies alone, %.4f",
                *(run.name, step, loss, self.unigram_loss),
            )
