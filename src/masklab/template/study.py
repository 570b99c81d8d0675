"""What this study adds to MaskLab: a probe, and a claim about what it finds. docs/your-own-study.md has the rest."""

import itertools

from masklab import own


class Guess(own.Entity):
    """How probable hidden words are to a model, one hidden in each sentence: the mean logarithm, in nats."""

    nulls: own.ClassVar = ("untrained",)  # what such a number is worth: that of initial weights stands beside it
    sentences: own.Count = 300


@own.probe("guess", Guess)
def measure(context):
    """Rows of one checkpoint of one replicate; what is heavy is imported here."""
    import numpy as np
    import torch

    from masklab.models.checkpoint import load_checkpoint
    from masklab.tokenizers import MASK
    from masklab.tokens import TokenStore

    model, store = load_checkpoint(context.checkpoint).eval(), TokenStore(context.tokens, "test")
    ids, lengths = store.batch(np.arange(min(context.probe.sentences, len(store))))
    # the same words for every model of a replicate: all randomness comes from its seed
    column = torch.from_numpy(np.random.default_rng(context.seed).integers(1, lengths.numpy() - 1))
    at = torch.arange(len(ids)) * ids.shape[1] + column
    hidden = ids.flatten().index_fill(0, at, MASK).view_as(ids)
    with torch.inference_mode():
        log_probabilities = model(hidden, lengths, at=at).logits.double().log_softmax(-1)
    value = float(log_probabilities[torch.arange(len(ids)), ids.flatten()[at]].mean())
    return [{"task": context.corpus, "split": "test", "metric": "log_probability", "value": value, "n": len(ids)}]


@own.claims("mine")
def claims(view):
    """The sentence that is tested. Recipes are found by their facts, never by their names."""
    label = {recipe: label for label, recipe in view.labelled().items()}
    reading = {name: own.Reading(name, "log_probability", probe="guess") for name in view.members}
    measured = [name for name in view.members if reading[name].measured(view)]  # none in a study of something else
    found = []
    for short, long in itertools.permutations(measured, 2):  # those that differ in their length alone
        longer = view.fact(long, "steps") > view.fact(short, "steps")
        if longer and view.differing(short, long) <= {"steps", "checkpoints"}:
            said = f"longer training guesses hidden words better ({label[long]}, {label[short]})"
            effect = own.difference(reading[long], reading[short])
            found.append(own.Claim(f"{long}-over-{short}", "length of training", "", said, effect))
    return found
