"""Scores on resampled test sets: the same resampling for all recipes and replicates that answered a test set."""

import functools

import numpy as np

from masklab.rng import generator
from masklab.scores.facts import base
from masklab.scores.items import KEY, LISTS, resampled
from masklab.scores.view import View

# Kinds of probes all of whose splits are of the same items, in one order: they are drawn together, so that what differs
# between splits has the interval of a difference within items.
OF_SAME_ITEMS = ("paraphrased",)


class Resampling:
    """Values of rows of scores under resampling of their items.

    items: table of `masklab.scores.items`, None: nothing is resampled. count: B, how often; seed: of the choice.
    """

    def __init__(self, view: View, scores, items, count: int, seed: int):
        self.view, self.count, self.seed = view, count if items is not None else 0, seed
        self._sets = self._test_sets(scores, items) if self.count else {}
        self._known: dict[int, np.ndarray] = {}

    def _test_sets(self, scores, table) -> dict[int, tuple]:
        """Row of scores -> the test set and metric that its items are of, with all that answered it."""
        names = [*KEY, "metric"]
        keys = scores[names].itertuples(index=False, name=None)
        rows = dict(zip(keys, scores.index, strict=True))
        groups: dict[tuple, list] = {}
        for *key, metrics, targets, predictions in _records(table):
            record = dict(zip(KEY, key, strict=True))
            if self._is_drawn_anew(record):
                continue
            for metric in metrics:
                if (index := rows.get((*key, metric))) is not None:
                    shape = record["task"], self._items(record), len(predictions), metric
                    groups.setdefault((*shape, targets.tobytes()), []).append((index, targets, predictions))
        return {index: (shape, members) for shape, members in groups.items() for index, _, _ in members}

    def draws(self, row: int) -> np.ndarray | None:
        """A row's value under each resampling of its items, [B]; None where they are not resampled.

        Computed for all answers to a test set at once, when first asked for.
        """
        if row not in self._sets:
            return None
        if row not in self._known:
            (task, which, count, metric, _), members = self._sets[row]
            indices, targets, predictions = zip(*members, strict=True)
            values = resampled(metric, targets[0], np.stack(predictions), self.counts(task, which, count))
            self._known |= dict(zip(indices, values, strict=True))
        return self._known[row]

    @functools.cache  # noqa: B019 - it lives as long as a job
    def counts(self, task: str, which: str, count: int) -> np.ndarray:
        """How often each resampling takes each item of a test set, [B, items]; which: its split, or its probe."""
        rng = generator(self.seed, "items", task, which, count)
        return rng.multinomial(count, np.full(count, 1 / count), size=self.count)

    def _items(self, record) -> str:
        """Which items of a task a record is of: those of its split, or of its probe."""
        probe = record["probe"]
        return probe if self.view.probes.get(probe, {}).get("kind") in OF_SAME_ITEMS else record["split"]

    def _is_drawn_anew(self, record) -> bool:
        """Whether the items differ from replicate to replicate: their choice is then part of the replicates' spread."""
        task = base(record["task"])
        # a probe of no tasks names its corpus there, and a task may have that name too
        of_probe = self.view.probes.get(record["probe"], {}).get("tasks", self.view.tasks)
        if task in of_probe and task in self.view.tasks:
            return self.view.tasks[task]["redrawn"]
        return self.view.recipes.get(record["recipe"], {}).get("corpus.redrawn", False)


def _records(table):
    """Records of a table of items: the values of its key, metrics, and targets and predictions as arrays."""
    columns = [table[name].to_pylist() for name in (*KEY, "metrics")]
    lists = [table[name].combine_chunks() for name in LISTS]
    for row, values in enumerate(zip(*columns, strict=True)):
        yield (*values, *(column[row].values.to_numpy(zero_copy_only=False) for column in lists))
