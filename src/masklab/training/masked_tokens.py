"""Which tokens of a corpus a run will hide: known before it begins, since batches and masks have an address."""

import numpy as np

from masklab.batches import BatchPlan
from masklab.config import kinds
from masklab.config.schema import Encoder, Masking
from masklab.objectives import Setup, Term
from masklab.objectives.returned import maskable_by
from masklab.rng import generator
from masklab.training.step import masked_step


def masked_tokens(masks: dict, seed: int, store, setup: dict, progress=None) -> np.ndarray:
    """Which tokens of a `TokenStore` have a loss in at least one update, [tokens] bool.

    Args:
        masks: what decides it, as `masklab.config.masks.masks_of` gives it.
        seed: of the replicate.
        setup: what `objectives.Setup` takes beside the encoder, for a term that hides tokens in its own way.
        progress: called with (updates done, all).
    """
    masking, size, term = Masking(**masks["masking"]), masks["batch_size"], _reader(masks["reader"], setup)
    address = seed, f"phase {masks['phase']}"
    plan = BatchPlan(store.lengths, size, *address, eligible=maskable_by(term, store.lengths, masking))
    found = np.zeros(len(store.ids), bool)
    for step in range(masks["steps"]):
        rng = generator(*address, "mask", step)
        for batch in masked_step(store, plan.batch(step), rng, masking, setup["vocab_size"], size, term).micro:
            found[batch.positions] = True
        if progress:
            progress(step + 1, masks["steps"])
    return found


def _reader(said, setup) -> Term:
    """The term that hides tokens, made and prepared as a run's."""
    if said is None:
        return Term()
    kind = kinds.find("terms", said["term"])
    term = kind.function()(kind.entity().model_validate(said["settings"]))
    term.name = said["term"]
    term.prepare(Setup(Encoder(**said["encoder"]), **setup))
    return term
