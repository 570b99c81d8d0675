"""Whether replicates of a recipe train side by side, as one stacked model. Light: asked while a workflow is planned."""

from masklab.models.stacked import supports_masked


def stacks(model, encoder, objective) -> bool:
    """Whether the replicates of a recipe train side by side where they train on a CPU.

    model, encoder, objective: `config.schema.Model`, `Encoder` and `Objective`. An objective that reads sequences in
    its own way does not stack, nor does a model that takes several processes or micro-batches.
    """
    one_pass = model.processes == 1 and model.micro >= model.batch_size
    plain = model.precision == "fp32" and not model.compile
    own_way = any(term.reads for term in objective.terms.values())
    return model.stack and model.steps > 0 and one_pass and plain and not own_way and supports_masked(encoder)
