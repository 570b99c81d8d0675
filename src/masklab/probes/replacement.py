"""What probes of replaced features share: classifiers in the course of fine-tuning and at their best, correlations."""

import numpy as np

from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.phrases.distances import correlation_over_features
from masklab.probes.goals import goal_of
from masklab.probes.outcomes import of_ratings
from masklab.probes.recipe import Course
from masklab.probes.single import OneByOne


def classifiers(context, name, facts, splits, size, seed):
    """Fine-tune on the first `size` rows and yield (updates, classifier): at its best (None), then at `updates`.

    Each is valid until the next is asked for.
    """
    probe, (train, valid) = context.probe, splits
    if facts["kind"] != "labels":
        raise MaskLabError(f"probes.{context.name}.tasks: {name!r} holds {facts['kind']}; features need labels")
    goal = goal_of(facts, probe)
    trainer = OneByOne(load_checkpoint(context.checkpoint, context.device), goal, probe, context.device)
    course = Course(probe, context.seed, context.name, name, size, seed, train.lengths[:size])
    kept = {}

    def watch(updates):
        if updates in probe.updates:
            kept[updates] = trainer.flat.values.clone()

    trainer.finetune([course], train, valid, valid, watch)
    trainer.model.eval()
    yield None, trainer.model
    for updates, weights in kept.items():
        trainer.flat.values.copy_(weights)
        yield updates, trainer.model


def correlated(before, after, address, **columns) -> list[dict]:
    """Rows on [N] distances before fine-tuning and changes after it: `pearson` and `spearman` with their items, their
    means `tv_pretrained` and `tv_finetuned`, and the 95 % bootstrap interval of `pearson` over features alone,
    `pearson_low` and `pearson_high`.

    Differences below the sixth decimal are the arithmetic's, and no distance.
    """
    before, after = (np.round(np.asarray(values, np.float64), 6).astype(np.float32) for values in (before, after))
    _, low, high = correlation_over_features(before, after, *address)
    means = {"tv_pretrained": np.mean(before), "tv_finetuned": np.mean(after), "pearson_low": low, "pearson_high": high}
    rows = [{**columns, "metric": metric, "value": float(value), "n": len(before)} for metric, value in means.items()]
    return of_ratings(before, after, **columns) + rows
