"""Which recipes are trained with gradients written by hand, and whose replicates train side by side, as one stacked
model. Light: asked while a workflow is planned."""

from masklab.models.stacked import WIDEST, supports_masked


def by_hand(model, encoder, objective) -> bool:
    """Whether a recipe is trained by the stacked code where it is trained on a CPU, be it as a stack of one.

    model, encoder, objective: `config.schema.Model`, `Encoder` and `Objective`. An objective that reads sequences in
    its own way is not, but for the masked autoencoder, nor is a model that takes several processes.
    """
    plain = model.processes == 1 and not model.compile
    reading = [name for name, term in objective.terms.items() if term.reads]
    known = reading == ["mae"] or not (reading or encoder.decoder)
    return model.stack and model.steps > 0 and plain and known and supports_masked(encoder, model.precision)


def stacks(model, encoder, objective) -> bool:
    """Whether the replicates of a recipe train side by side: wider layers keep a core busy by themselves.

    A precision that is left to each run may come out otherwise in one that is resumed elsewhere. In bf16, sums over
    distances add pairs of rows that differ with the longest row of all: there disentangled attention is alone.
    """
    steady = model.precision == "fp32" or (model.precision == "bf16" and encoder.positions != "disentangled")
    narrow = model.stack is True and steady and encoder.hidden <= WIDEST
    return narrow and by_hand(model, encoder, objective)
