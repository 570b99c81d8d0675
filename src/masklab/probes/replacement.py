"""What probes of replaced features share: classifiers in the course of fine-tuning and at their best, correlations."""

from functools import partial

import numpy as np

from masklab.jobs.midway import Midway
from masklab.models.checkpoint import load_checkpoint
from masklab.models.initial import initial
from masklab.phrases.distances import correlation_over_features
from masklab.probes.goals import goal_of
from masklab.probes.outcomes import of_ratings, record_of, seed_kept
from masklab.probes.recipe import Course
from masklab.probes.single import OneByOne


def of_all_seeds(context, tasks, measured, marks=()) -> list[dict]:
    """What `measured(name, folder, facts, ..., seed, tell)` gives for every seed of every task; what is done of it is
    kept, and told of.

    tasks: name -> (folder, facts, ...). tell: called with the share of one seed that is done, 0 to 1. marks: see
    `seed_kept`.
    """
    rows, done, total = [], 0, len(tasks) * len(context.probe.seeds)
    for name, (folder, facts, *more) in tasks.items():
        for seed in context.probe.seeds:

            def tell(share, done=done, name=name):
                context.progress(done + share, total, name)

            measure = partial(measured, name, folder, facts, *more, seed, tell)
            rows += seed_kept(context, name, facts, seed, measure, marks)
            done += 1
            context.progress(done, total, name)
    return rows


def classifiers(context, name, facts, splits, seed, tell):
    """Fine-tune on the first rows, for the largest size first, and yield (size, updates, classifier): at its best
    (None), then after each of the probe's `updates`.

    Each is valid until the next is asked for. tell: called with the share of all updates that are made, 0 to 1.
    """
    sizes, done = sorted(context.training_sizes(name), reverse=True), 0
    for size in sizes:
        model = load_checkpoint(context.checkpoint, context.device)

        def told(share, done=done, size=size):
            tell((done + share * size) / sum(sizes))

        trainer = _finetuned(context, name, facts, splits, seed, size, model, told, watched=context.probe.updates)
        done += size
        yield size, None, trainer.model
        for updates, weights in sorted(trainer.snapshots.items()):
            trainer.flat.values.copy_(weights)
            yield size, updates, trainer.model


def never_pretrained(context, pretrained, name, facts, splits, seed, tell):
    """(size, classifier at its best): initial weights of a pre-trained model's shape that are fine-tuned on the largest
    size as `classifiers` are, on the same batches from the same head."""
    model, size = initial(pretrained, context.seed), max(context.training_sizes(name))
    return size, _finetuned(context, name, facts, splits, seed, size, model, tell, "initial weights").model


def _finetuned(context, name, facts, splits, seed, size, model, tell, *start, watched=()):
    """What fine-tuned a model on the first rows: its best weights, in reading mode. start: what its state is called by
    beside the size."""
    train, valid = splits
    trainer = OneByOne(model, goal_of(facts, context.probe), context.probe, context.device)
    course = Course(context.probe, context.seed, context.name, name, size, seed, train.lengths[:size])
    file = None
    if context.state_folder is not None:
        file = record_of(context, name, facts, seed, "midway", size, *start).with_suffix(".safetensors")
    midway = Midway(" of ".join((f"fine-tuning on {size} rows of {name}", *start)), tell, file)
    trainer.course(course, train, valid, valid, midway, watched)
    trainer.model.eval()
    return trainer


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
