"""The terms of an objective at work. Only the modules of the terms that it has are imported."""

import torch
from torch import Tensor

from masklab.config import kinds
from masklab.errors import MaskLabError
from masklab.objectives.batch import Batch
from masklab.objectives.returned import loss_of
from masklab.objectives.term import READING, Setup, Term, brings

COLUMNS = ("step", "loss", "lr", "tokens", "masked", "grad_norm", "seconds", "valid_loss")  # of metrics.parquet
STREAMS = ("init", "shuffle", "order", "mask", "dropout", "valid")  # purposes of a run's random streams


class Terms:
    """The terms of an `Objective`, made and prepared, in its order.

    per_token: those with a loss for each masked token; once: those added once per update; reader: the one that says
    how sequences are hidden and read, a plain `Term` where none does.

    Raises:
        MaskLabError: terms that do not fit together, or what they read is missing or wrong.
    """

    def __init__(self, objective, setup: Setup):
        made = [_made(name, settings) for name, settings in objective.terms.items()]
        self.once = [term for term in made if brings(term, "per_update")]
        self.per_token = [term for term in made if term not in self.once]
        if not self.per_token:
            raise MaskLabError(f"objective: {', '.join(objective.terms)}: no term has a loss for masked tokens")
        for term in self.once:
            if brings(term, "loss"):
                raise MaskLabError(f"objective: {term.name}: a term has `loss` or `per_update`; make two terms of it")
        readers = [term for term in made if any(brings(term, hook) for hook in READING)]
        for term in readers:
            if not term.settings.reads:  # what is planned before terms are made goes by their settings
                raise MaskLabError(
                    f"objective: {term.name}: it hides or reads tokens in a way of its own; say so in its settings, by"
                    " `reads: own.ClassVar = True`"
                )
        self.reader = readers[0] if readers else Term()  # an `Objective` has one that says so at most
        for term in made:
            term.prepare(setup)

    @property
    def names(self) -> list[str]:
        """Names of the terms with a loss for each masked token."""
        return [term.name for term in self.per_token]

    @property
    def plain(self) -> float | None:
        """The weight of the only loss for each masked token, where that is the cross-entropy of the hidden token."""
        alone = len(self.per_token) == 1 and type(self.per_token[0]).loss is Term.loss
        return self.per_token[0].settings.weight if alone else None

    def losses(self, batch: Batch, output, teacher) -> tuple[Tensor, dict[str, Tensor]]:
        """Sum over the batch's masked tokens of the weighted loss, and of each unweighted term.

        Divide by the number of masked tokens of the whole update for the mean.
        """
        parts = {term.name: loss_of(term, batch, output, teacher).sum() for term in self.per_token}
        total = torch.stack([term.settings.weight * parts[term.name] for term in self.per_token]).sum()
        return total, {name: part.detach() for name, part in parts.items()}

    def uniform(self, vocab_size: int, atoms: int) -> float:
        """Largest weighted loss, in nats per masked token, of a model that predicts uniform distributions."""
        return sum(term.settings.weight * term.uniform(vocab_size, atoms) for term in self.per_token)


def _made(name, settings) -> Term:
    if name in (*COLUMNS, *STREAMS):
        raise MaskLabError(
            f"objective: {name}: the name of a column of metrics.parquet or of a random stream; rename the term"
        )
    term = kinds.find("terms", name).function()(settings)
    term.name = name
    return term
