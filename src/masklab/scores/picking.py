"""Which rows of a study's scores a reading picks, and which part of its mean each of them belongs to."""

import numpy as np
import pandas as pd

from masklab.config.inherit import choices
from masklab.errors import MaskLabError
from masklab.scores.facts import base
from masklab.scores.reading import CONVERGED, Reading
from masklab.scores.view import View

TEST = ("test", "matched")  # splits that a reading without splits reads
# Metrics of another split, which a reading without splits reads then.
OTHER = dict.fromkeys(("seconds", "tokens", "flops"), ("train",)) | {"valid_loss": ("valid",)}
CELL = ["task", "split", "train_size", "layer", "at", "step"]


class Rows:
    """The rows of a frame of scores, numbered from 0.

    columns: name -> its values [N], and `kind` of the probe and `base` of the task; converged: (recipe) -> the
    checkpoint at which its loss has converged, infinity for none.
    """

    def __init__(self, view: View, scores: pd.DataFrame, converged):
        self.view, self.scores, self._converged = view, scores, converged
        columns = {name: scores[name].to_numpy() for name in scores}
        columns = {k: v.astype(str) if v.dtype.kind not in "if" else v for k, v in columns.items()}
        kinds = {name: facts["kind"] for name, facts in view.probes.items()}
        columns["kind"] = np.array([kinds.get(name, "") for name in columns["probe"]], str)
        columns["base"] = np.array([base(name) for name in columns["task"]], str)
        self.columns = columns
        self._codes = {name: np.unique(columns[name], return_inverse=True)[1] for name in CELL}
        groups = scores.groupby(["recipe", "metric"], sort=False).indices
        self._where = {key: np.sort(rows) for key, rows in groups.items()}

    def picked(self, reading: Reading) -> np.ndarray:
        """Numbers of the rows that it picks, before anything is averaged."""
        if not reading.tasks:
            parts = [self._of_metric(reading, reading.metric, None)]
        else:
            metrics: dict[str, list] = {}
            for task in reading.tasks:
                metrics.setdefault(reading.metric or self.view.tasks[base(task)]["metric"], []).append(task)
            parts = [self._of_metric(reading, metric, tasks) for metric, tasks in metrics.items()]
        rows = np.concatenate(parts)
        if len(rows):  # first and last are those of all tasks
            kept = np.split(self._steps(rows, reading.step), np.cumsum([len(part) for part in parts])[:-1])
            parts = [part[own] for part, own in zip(parts, kept, strict=True)]
        for pick, which in ((self._sizes, reading.sizes), (self._layers, reading.layers)):
            parts = [part[pick(part, which)] if len(part) else part for part in parts]
        return np.concatenate(parts)

    def _of_metric(self, reading, metric, tasks) -> np.ndarray:
        """Of every step, size and layer."""
        rows = self._where.get((reading.recipe, metric), np.empty(0, np.int64))
        kept = np.isin(self.columns["kind"][rows], kinds) if (kinds := reading.kinds()) else np.full(len(rows), True)
        if reading.named is not None:
            kept = kept & (self.columns["probe"][rows] == reading.named)
        if tasks is not None:
            kept = kept & (np.isin(self.columns["task"][rows], tasks) | np.isin(self.columns["base"][rows], tasks))
        splits = reading.splits or OTHER.get(metric, TEST)
        return rows[kept & np.isin(self.columns["split"][rows], splits)]

    def _steps(self, rows, which):
        steps = self.columns["step"][rows]
        if which in CONVERGED:
            first = self._converged(self.columns["recipe"][rows[0]])
            return steps == first if which == "converged" else steps >= first
        if which not in ("first", "last"):
            return np.full(len(rows), True) if which == "all" else steps == which
        return steps == (steps.min() if which == "first" else steps.max())  # the recipe's, of all replicates

    def _sizes(self, rows, which):
        sizes = self.columns["train_size"][rows]
        if isinstance(which, int):
            return sizes == which
        distinct = np.unique(sizes)
        half = -(-len(distinct) // 2)
        return np.isin(
            sizes,
            {"all": distinct, "small": distinct[:half], "large": distinct[half:], "largest": distinct[-1:]}[which],
        )

    def _layers(self, rows, which):
        layers = self.columns["layer"][rows]
        if which is None or isinstance(which, int):
            return np.full(len(rows), True) if which is None else layers == which
        top = int(layers.max())
        kept = {
            "first": [0],
            "last": [top],
            "all": range(1, top + 1),
            "shallow": range(1, top // 2 + 1),
            "deep": range(top - top // 2 + 1, top + 1),
        }[which]
        return np.isin(layers, list(kept))

    def cells(self, reading: Reading, rows) -> np.ndarray:
        """Which of the parts that a reading is the mean of each row belongs to, [N]."""
        ends = reading.step in ("first", "last")
        cell = [name for name in CELL if name != reading.over and not (name == "step" and ends)]
        _, cells = np.unique(np.stack([self._codes[name][rows] for name in cell], 1), axis=0, return_inverse=True)
        return cells.ravel()

    def weights(self, reading: Reading, rows, cells) -> np.ndarray:
        """What each of the parts counts in the mean, [parts]; they add up to 1.

        Every task counts once, whatever it has more of: phenomena, splits or sizes. Only in a mean of minimal pairs
        alone do parts count alike, so that a benchmark in several files is the mean over all its phenomena.
        """
        count = cells.max() + 1
        if len(reading.tasks) < 2 or set(self.columns["kind"][rows]) == {"minimal_pairs"}:
            return np.full(count, 1 / count)
        own, whole = self.columns["task"][rows], self.columns["base"][rows]
        of_row = np.where(np.isin(own, reading.tasks), own, whole)
        tasks, numbers = np.unique(of_row, return_inverse=True)
        of_part = np.zeros(count, int)
        of_part[cells] = numbers
        return 1 / np.bincount(of_part)[of_part] / len(tasks)

    def check_unique(self, rows, at) -> None:
        """MaskLabError if two of the rows have the same place `at` in what a reading is made of."""
        values, counts = np.unique(at, return_counts=True)
        if (counts > 1).any():
            row = self.scores.iloc[rows[np.flatnonzero(at == values[counts > 1][0])[0]]]
            raise MaskLabError(
                f"scores: two probes measured {row['recipe']} at step {row['step']} on {row['task']} ({row['metric']});"
                " a reading must say which kind of probe, or which by its name (`named`), or the study keep one"
            )

    def lack(self, reading: Reading, rows) -> bool:
        """Whether a task or a split that the reading names has no row at all."""
        named = {*self.columns["task"][rows], *self.columns["base"][rows]}
        return not (set(reading.tasks) <= named and set(reading.splits) <= set(self.columns["split"][rows]))

    def parts_instead(self, reading: Reading) -> str:
        """Of the first part of a task that has no row, which parts of it have: the end of a message; "" without one."""
        there = set(self.columns["task"])
        lacking = next((task for task in reading.tasks if "/" in task and task not in there), None)
        if lacking is None:
            return ""
        measured = sorted(task for task in there if task.startswith(f"{base(lacking)}/"))
        return choices(lacking, measured, f"measured of {base(lacking)}")

    def parts(self, rows) -> list[tuple]:
        """(task, split, training size) of each row."""
        return list(zip(*(self.columns[name][rows].tolist() for name in ("task", "split", "train_size")), strict=True))
