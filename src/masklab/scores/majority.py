"""What always giving one answer scores: the null that every task of labels has."""

from functools import reduce

import numpy as np

from masklab.scores.facts import base
from masklab.scores.per_replicate import Values, in_all
from masklab.scores.reading import Reading

# What always giving one answer scores: another metric of the same rows, or a number.
MAJORITY = {
    "accuracy": "majority",
    "exact": "majority",
    "f1": "majority_f1",
    "mcc": 0.0,
    "pearson": 0.0,
    "spearman": 0.0,
}
PAIRS = 0.5  # of minimal pairs, where items of several options do not say what guessing scores


def majority(results, reading: Reading) -> Values | None:
    """What always giving one answer scores (0 of correlations; of pairs what guessing does), asked for or not.

    None of what is no score of a task.
    """
    if (
        not reading.tasks
        or reading.over not in (None, "train_size", "step")
        or reading.reduce
        or reading.form != "value"
    ):
        return None
    parts = [_of_task(results, reading, task) for task in reading.tasks]
    if any(part is None for part in parts):
        return None
    if parts[0].x is not None:  # tasks may have been measured at other steps
        x = reduce(np.intersect1d, [part.x for part in parts])
        parts = [Values(part.replicates, part.data[:, np.isin(part.x, x)], x) for part in parts]
        if not len(x):
            return None
    shared = in_all(parts)
    of_one = [reading.of(reading.recipe, tasks=(task,)) for task in reading.tasks]
    # of pairs alone a task counts in the score's mean for each of its phenomena, as `Rows.weights` has it
    counts = [len(np.unique(results.index.cells(one, results.index.picked(one)))) for one in of_one]
    kinds = set(results.index.columns["kind"][results.index.picked(reading)])
    weights = counts if kinds == {"minimal_pairs"} else None
    data = np.average([part.at(shared).data for part in parts], 0, weights)
    return Values(tuple(shared), data, parts[0].x, given=True)


def _of_task(results, reading, task) -> Values | None:
    metric = reading.metric or results.view.tasks[base(task)]["metric"]
    measured = results.values(reading.of(reading.recipe, tasks=(task,)))
    if not len(measured.replicates):
        return None
    where = MAJORITY.get(metric)
    if _is_pairs(results, reading, task):
        chance = results.values(reading.of(reading.recipe, tasks=(task,), metric="majority"))
        where = "majority" if len(chance.replicates) else PAIRS
    if where is None:
        return None
    if isinstance(where, float):
        return Values(measured.replicates, np.full_like(measured.data, where), measured.x)
    shares = results.values(reading.of(reading.recipe, tasks=(task,), metric=where))
    return shares if len(shares.replicates) else None


def of_pairs(results, reading: Reading) -> bool:
    """Whether it is of minimal pairs alone, of which chance takes the majority's place."""
    return bool(reading.tasks) and all(_is_pairs(results, reading, task) for task in reading.tasks)


def _is_pairs(results, reading, task):
    if "/" in task or set(reading.kinds()) == {"minimal_pairs"}:
        return True
    rows = results.index.picked(reading.of(reading.recipe, tasks=(task,)))
    return set(results.index.columns["kind"][rows]) == {"minimal_pairs"}
