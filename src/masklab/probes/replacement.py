"""What probes of replaced features share: classifiers in the course of fine-tuning and at their best, correlations."""

import numpy as np

from masklab.errors import MaskLabError
from masklab.jobs.midway import Midway
from masklab.models.checkpoint import load_checkpoint
from masklab.phrases.distances import correlation_over_features
from masklab.probes.goals import goal_of
from masklab.probes.outcomes import of_ratings, record_of
from masklab.probes.recipe import Course
from masklab.probes.single import OneByOne


def classifiers(context, name, facts, splits, seed, tell):
    """Fine-tune on the first rows, for the largest size first, and yield (size, updates, classifier): at its best
    (None), then after each of the probe's `updates`.

    Each is valid until the next is asked for. tell: called with the share of all updates that are made, 0 to 1.
    """
    probe, (train, valid) = context.probe, splits
    if facts["kind"] != "labels":
        raise MaskLabError(f"probes.{context.name}.tasks: {name!r} holds {facts['kind']}; features need labels")
    goal = goal_of(facts, probe)
    sizes, done = sorted(context.training_sizes(name), reverse=True), 0
    for size in sizes:
        trainer = OneByOne(load_checkpoint(context.checkpoint, context.device), goal, probe, context.device)
        course = Course(probe, context.seed, context.name, name, size, seed, train.lengths[:size])
        file = None
        if context.state_folder is not None:
            file = record_of(context, name, facts, seed, "midway", size).with_suffix(".safetensors")

        def told(share, done=done, size=size):
            tell((done + share * size) / sum(sizes))

        midway = Midway(f"fine-tuning on {size} rows of {name}", told, file)
        trainer.course(course, train, valid, valid, midway, probe.updates)
        done += size
        trainer.model.eval()
        yield size, None, trainer.model
        for updates, weights in sorted(trainer.snapshots.items()):
            trainer.flat.values.copy_(weights)
            yield size, updates, trainer.model


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
