"""Scores of a study beside its facts: what readings say.

A value is found within a replicate first (the mean or median over a probe's seeds, then the mean over tasks, splits and
sizes), and only then summed up over replicates. Where items are resampled, every value has B columns more: the same
number computed on resampled test sets, equal ones for all recipes and replicates.
"""

import functools
import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from masklab.errors import MaskLabError
from masklab.rng import generator
from masklab.scores import items as item_files
from masklab.scores.estimate import FISHER, PLAIN, Estimate, estimate
from masklab.scores.reading import CONVERGED, CORRELATIONS, WHOLE, Reading, base
from masklab.scores.schema import LIMITS
from masklab.scores.view import View

TEST = ("test", "matched")  # splits that a reading without splits reads
# Metrics of another split, which a reading without splits reads then.
OTHER = dict.fromkeys(("seconds", "tokens", "flops"), ("train",)) | {"valid_loss": ("valid",)}
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
CELL = ["task", "split", "train_size", "layer", "at", "step"]


@dataclass(frozen=True)
class Values:
    """A reading's values: data [R, P, 1 + B] of R replicates, P points of a curve (one of a number), B resamplings.

    replicates: their numbers; x: [P] what the curve is over, None of a number.
    """

    replicates: tuple[int, ...]
    data: np.ndarray
    x: np.ndarray | None = None

    @property
    def scalar(self) -> np.ndarray:
        """[R, 1 + B] of a number."""
        if self.data.shape[1] != 1:
            raise ValueError("a curve is no number")
        return self.data[:, 0]

    def at(self, replicates) -> "Values":
        """Those of some replicates, in their order."""
        rows = [self.replicates.index(r) for r in replicates]
        return Values(tuple(replicates), self.data[rows], self.x)


NOTHING = Values((), np.empty((0, 1, 1)))


def _gaps_of(recipe: str) -> Reading:
    """Of all checkpoints of a recipe, as shares of the floor."""
    return Reading(recipe, "gap", form="share of the floor", step="all", over="step")


def difference(left: Values, right: Values) -> Estimate | None:
    """Mean and interval of the differences of two numbers within the replicates that both have; None without any."""
    shared = [r for r in left.replicates if r in right.replicates]
    return estimate(left.at(shared).scalar - right.at(shared).scalar) if shared else None


class Results:
    """Scores, items and facts of one study.

    scores: frame of score rows. items: table of `masklab.scores.items`, resampled `draws` times (0: never). models:
    (recipe, replicate) -> the facts of its manifest. tasks: name -> its task.json. seed: of the resampling.
    """

    def __init__(self, view: View, scores: pd.DataFrame, items=None, models=None, tasks=None, draws: int = 0, seed=1):
        self.view, self.models, self.task_files = view, models or {}, tasks or {}
        self.scores = scores.reset_index(drop=True)
        self._columns = {name: self.scores[name].to_numpy() for name in self.scores}
        self._columns = {k: v.astype(str) if v.dtype.kind not in "if" else v for k, v in self._columns.items()}
        kinds = {name: facts["kind"] for name, facts in view.probes.items()}
        self._columns["kind"] = np.array([kinds.get(name, "") for name in self._columns["probe"]], str)
        self._columns["base"] = np.array([base(name) for name in self._columns["task"]], str)
        self._codes = {name: np.unique(self._columns[name], return_inverse=True)[1] for name in CELL}
        groups = self.scores.groupby(["recipe", "metric"], sort=False).indices
        self._where = {key: np.sort(rows) for key, rows in groups.items()}
        self.draws, self.seed = (draws if items is not None else 0), seed
        self._sets = self._test_sets(items) if self.draws else {}
        self._resampled, self._known = {}, {}

    # --- values ------------------------------------------------------------------------

    def values(self, reading: Reading) -> Values:
        """What a reading says; of no replicates if it was not measured."""
        if reading not in self._known:
            self._known[reading] = self._values(reading)
        return self._known[reading]

    def estimate(self, reading: Reading) -> Estimate:
        """Mean and interval of a number; `MISSING` if it was not measured.

        The mean is over replicates as they are. The interval of a correlation with ratings is made on Fisher's scale;
        that of any other metric with limits is cut to them. (So is Matthews's, a correlation too: small test sets give
        it a value of 1, which Fisher's scale does not have.)
        """
        return self.estimated(self.values(reading).scalar, reading)

    def estimated(self, values, reading: Reading) -> Estimate:
        """Mean and interval of values [R] or [R, 1 + B] of what a reading measures."""
        metrics = reading.metrics(self.view) if reading.form == "value" and reading.reduce is None else set()
        correlations = bool(metrics) and metrics <= CORRELATIONS
        made = estimate(values, self.rounding(reading), FISHER if correlations else PLAIN)
        if not made.replicates:
            return made
        mean = float(values[:, 0].mean())
        made = replace(made, value=mean, low=min(made.low, mean), high=max(made.high, mean)) if correlations else made
        return made.within(*self.limits(reading))

    def rounding(self, reading: Reading) -> float:
        """Standard deviation of what rounding does to a reading of whole numbers; 0 of others.

        Of a mean over n layers, splits, tasks, sizes or seeds it is 1 / sqrt(12 n), each being rounded for itself.
        """
        rows = self._picked(reading) if reading.metric in WHOLE and reading.form == "value" else ()
        if not len(rows) or reading.reduce == "roughness":
            return 0.0
        cells = len(np.unique(self._cells(reading, rows)))
        seeds = len(np.unique(self._columns["seed"][rows])) if reading.seeds == "mean" else 1
        variance = 1 / (12 * cells * seeds)
        if reading.reduce == "slope":
            x = np.unique(self._columns[reading.over][rows])
            x = np.log2(x) if reading.over == "train_size" else x
            variance /= ((x - x.mean()) ** 2).sum() or math.inf
        return math.sqrt(variance)

    def doublings(self, reading: Reading) -> float:
        """How often the training size doubles from the least to the most that is measured of what it reads."""
        sizes = self.rows(replace(reading, sizes="all"))["train_size"]
        return math.log2(sizes.max() / sizes.min()) if len(sizes) else 0.0

    def limits(self, reading: Reading) -> tuple[float, float]:
        """The least and the most that what a reading measures can be; infinite where nobody knows."""
        metrics = reading.metrics(self.view) if reading.form == "value" and reading.reduce is None else {None}
        known = [LIMITS.get(metric, (-math.inf, math.inf)) for metric in metrics]
        return min(low for low, _ in known), max(high for _, high in known)

    def shared(self, readings) -> list[int] | None:
        """The replicates that all readings have, of those that were measured; None if there is none."""
        measured = [values.replicates for reading in readings if (values := self.values(reading)).replicates]
        return [r for r in measured[0] if all(r in each for each in measured)] or None if measured else None

    def means(self, readings) -> list[float]:
        """Means of numbers over the replicates that all of them have; NaN of what was not measured.

        So recipes of more and fewer replicates are compared: each replicate may have a language of its own.
        """
        readings = list(readings)
        shared, measured = self.shared(readings), [self.values(reading) for reading in readings]
        known = [shared is not None and bool(values.replicates) for values in measured]
        return [
            float(values.at(shared).scalar[:, 0].mean()) if there else math.nan
            for values, there in zip(measured, known, strict=True)
        ]

    def summary(self, reading: Reading, replicates=None) -> pd.DataFrame:
        """One row per point of a curve, or one: x, value, low, high, spread, replicates, items (whether they count), n.

        replicates: of these alone. MaskLabError if nothing was measured. Points that not every replicate has are left
        out.
        """
        measured = self.values(reading)
        measured = measured if replicates is None else measured.at(replicates)
        rows = []
        for point in range(measured.data.shape[1]) if len(measured.replicates) else ():
            mean = self.estimated(measured.data[:, point], reading)
            if math.isfinite(mean.value):
                x = math.nan if measured.x is None else measured.x[point]
                rows.append((x, mean.value, mean.low, mean.high, mean.spread, mean.replicates, mean.items))
        if not rows:
            raise MaskLabError(f"scores: nothing was measured of {reading.words(self.view)}")
        frame = pd.DataFrame(rows, columns=["x", "value", "low", "high", "spread", "replicates", "items"])
        return frame.assign(n=self.items_behind(reading))

    def null(self, reading: Reading, kind: str) -> Values | None:
        """What a null of that kind gives; None where the study has no such null, or this metric none."""
        if kind not in self.view.nulls.get(reading.recipe, {}):
            return None
        if kind == "majority":
            return self.majority(reading)
        values = self._values_at(reading.of(self.view.nulls[reading.recipe][kind], step="last"), self.cells(reading))
        return values if len(values.replicates) else None

    def nulls(self, reading: Reading) -> dict[str, Values]:
        """Every null that was measured as `reading` is."""
        nulls = {kind: self.null(reading, kind) for kind in self.view.nulls.get(reading.recipe, {})}
        return {kind: values for kind, values in nulls.items() if values is not None}

    def cells(self, reading: Reading) -> frozenset:
        """(task, split, training size) that a reading is the mean of, or that its curve is over."""
        names = [self._columns[name][self._picked(reading)] for name in ("task", "split", "train_size")]
        return frozenset(zip(*(name.tolist() for name in names), strict=True))

    def items_behind(self, reading: Reading) -> int:
        """Test items behind a value of a replicate, all its tasks together; 0 where nothing was measured."""
        rows, columns = self._picked(reading), self._columns
        counts = {(columns["task"][row], columns["split"][row]): int(columns["n"][row]) for row in rows}
        return sum(counts.values())

    # --- losses ------------------------------------------------------------------------

    def gaps(self, recipe: str, replicates=None) -> dict[int, float]:
        """Checkpoint -> gap to the floor as a share of it, the mean over replicates, of those that all of them have.

        replicates: over these alone.
        """
        gaps = self.values(_gaps_of(recipe))
        gaps = gaps if replicates is None else gaps.at([r for r in replicates if r in gaps.replicates])
        if not gaps.replicates:
            return {}
        means = gaps.data[:, :, 0].mean(0)
        return {int(step): float(mean) for step, mean in zip(gaps.x, means, strict=True) if math.isfinite(mean)}

    def saturated(self, gaps: dict) -> list:
        """Keys of gaps that lie within the study's saturation of the lowest: checkpoints, or recipes."""
        return [key for key, gap in gaps.items() if gap <= min(gaps.values()) + self.view.saturation]

    def at_equal_loss(self, recipes) -> list[str]:
        """Those of some recipes whose last loss is within the study's saturation of the lowest of all, in order.

        Means are over the replicates that all have: each may have a language of its own.
        """
        shared = self.shared(map(_gaps_of, recipes))
        last = {recipe: gaps[max(gaps)] for recipe in recipes if (gaps := self.gaps(recipe, shared))}
        return self.saturated(last)

    def shown_equal(self, gap: Reading, other: Reading, one: bool = True) -> bool:
        """Whether two losses are equal, by an equivalence test (Schuirmann 1987).

        The interval of the difference of both gaps, as shares of the floor, lies within the study's saturation; of a
        single replicate, if `one` may show it, the difference does.
        """
        apart, limit = difference(self.values(gap), self.values(other)), self.view.saturation
        if apart is None or (apart.replicates < 2 and not one):
            return False
        low, high = (apart.value, apart.value) if apart.replicates < 2 else (apart.low, apart.high)
        return -limit < low <= high < limit

    # --- facts -------------------------------------------------------------------------

    def fact(self, recipe: str, key: str):
        """A fact of a recipe, from the config or, as a mean over replicates, from manifests (parameters, flops)."""
        if key in self.view.recipes[recipe]:
            return self.view.recipes[recipe][key]
        numbers = [facts[key] for (name, _), facts in self.models.items() if name == recipe and key in facts]
        return float(np.mean(numbers)) if numbers else None

    # --- rows --------------------------------------------------------------------------

    def rows(self, reading: Reading) -> pd.DataFrame:
        """The score rows that a reading picks, before anything is averaged."""
        return self.scores.iloc[self._picked(reading)]

    def _picked(self, reading) -> np.ndarray:
        """Row numbers of those."""
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
        columns = self._columns
        kept = np.isin(columns["kind"][rows], reading.kinds())
        if tasks is not None:
            kept = kept & (np.isin(columns["task"][rows], tasks) | np.isin(columns["base"][rows], tasks))
        splits = reading.splits or OTHER.get(metric, TEST)
        return rows[kept & np.isin(columns["split"][rows], splits)]

    def _steps(self, rows, which):
        steps = self._columns["step"][rows]
        if which in CONVERGED:
            first = min(self.saturated(self.gaps(self._columns["recipe"][rows[0]])), default=math.inf)
            return steps == first if which == "converged" else steps >= first
        if which not in ("first", "last"):
            return np.full(len(rows), True) if which == "all" else steps == which
        return steps == (steps.min() if which == "first" else steps.max())  # the recipe's, of all replicates

    def _sizes(self, rows, which):
        sizes = self._columns["train_size"][rows]
        if isinstance(which, int):
            return sizes == which
        distinct = np.unique(sizes)
        half = -(-len(distinct) // 2)
        return np.isin(
            sizes,
            {"all": distinct, "small": distinct[:half], "large": distinct[half:], "largest": distinct[-1:]}[which],
        )

    def _layers(self, rows, which):
        layers = self._columns["layer"][rows]
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

    # --- from rows to values -----------------------------------------------------------

    def _values(self, reading) -> Values:
        return self._of_rows(reading, self._picked(reading))

    def _values_at(self, reading, cells) -> Values:
        """Of the `cells` of another reading alone: a null may be measured at more sizes."""
        if self.cells(reading) == cells:
            return self.values(reading)
        rows = self._picked(reading if isinstance(reading.sizes, int) else replace(reading, sizes="all"))
        names = zip(*(self._columns[name][rows].tolist() for name in ("task", "split", "train_size")), strict=True)
        return self._of_rows(reading, rows[np.array([name in cells for name in names], bool)])

    def _of_rows(self, reading, rows) -> Values:
        if not len(rows) or self._lacks(rows, reading):
            return NOTHING
        measured = self._gathered(rows, reading)
        if reading.form == "log":
            with np.errstate(invalid="ignore", divide="ignore"):
                measured = Values(measured.replicates, np.log(measured.data), measured.x)
        elif reading.form == "share of the floor":
            plain = {"metric": "floor", "form": "value", "probe": "loss", "tasks": (), "reduce": None}
            floor = self.values(reading.of(reading.recipe, **plain))
            both = [r for r in measured.replicates if r in floor.replicates]
            measured = measured.at(both)
            measured = Values(measured.replicates, measured.data / floor.at(both).data, measured.x)
        return measured if reading.reduce is None else Values(measured.replicates, _reduced(measured, reading))

    def _lacks(self, rows, reading) -> bool:
        """Whether a task or a split that the reading names has no row at all."""
        named = {*self._columns["task"][rows], *self._columns["base"][rows]}
        return not (set(reading.tasks) <= named and set(reading.splits) <= set(self._columns["split"][rows]))

    def _gathered(self, rows, reading) -> Values:
        """Rows as [replicates, points, cells, seeds], averaged over seeds, then cells; where one is missing, NaN."""
        axis, c = reading.over, self._cells(reading, rows)
        replicates, r = np.unique(self._columns["replicate"][rows], return_inverse=True)
        x, p = np.unique(self._columns[axis][rows], return_inverse=True) if axis else (np.zeros(1), 0 * r)
        _, s = np.unique(self._columns["seed"][rows], return_inverse=True)
        shape = len(replicates), len(x), c.max() + 1, s.max() + 1
        at = np.ravel_multi_index((r, p, c, s), shape)
        self._check_unique(rows, at)
        data = np.full((*shape, 1 + self.draws), np.nan)
        flat = data.reshape(-1, 1 + self.draws)
        flat[at] = self._columns["value"][rows][:, None]
        for place, row in zip(at, rows.tolist(), strict=True):
            if row in self._sets:
                flat[place, 1:] = self._draws(row)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a cell that no seed has
            inner = (np.nanmedian if reading.seeds == "median" else np.nanmean)(data, 3)
        return Values(tuple(int(value) for value in replicates), inner.mean(2), x if axis else None)

    def _cells(self, reading, rows) -> np.ndarray:
        """Which of the parts that a reading is the mean of each row belongs to, [N]."""
        ends = reading.step in ("first", "last")
        cell = [name for name in CELL if name != reading.over and not (name == "step" and ends)]
        _, cells = np.unique(np.stack([self._codes[name][rows] for name in cell], 1), axis=0, return_inverse=True)
        return cells.ravel()

    def _check_unique(self, rows, at):
        values, counts = np.unique(at, return_counts=True)
        if (counts > 1).any():
            row = self.scores.iloc[rows[np.flatnonzero(at == values[counts > 1][0])[0]]]
            raise MaskLabError(
                f"scores: two probes measured {row['recipe']} at step {row['step']} on {row['task']} ({row['metric']});"
                " a reading must say which kind of probe, or the study keep one"
            )

    # --- nulls -------------------------------------------------------------------------

    def majority(self, reading: Reading) -> Values | None:
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
        parts = [self._majority_of(reading, task) for task in reading.tasks]
        if any(part is None for part in parts):
            return None
        shared = [r for r in parts[0].replicates if all(r in part.replicates for part in parts)]
        of_one = [reading.of(reading.recipe, tasks=(task,)) for task in reading.tasks]
        # a task counts in the score's mean for each of its splits, sizes and phenomena
        weights = [len(np.unique(self._cells(one, self._picked(one)))) for one in of_one]
        data = np.average([part.at(shared).data for part in parts], 0, weights)
        return Values(tuple(shared), data, parts[0].x)

    def _majority_of(self, reading, task) -> Values | None:
        metric = reading.metric or self.view.tasks[base(task)]["metric"]
        measured = self.values(reading.of(reading.recipe, tasks=(task,)))
        if not len(measured.replicates):
            return None
        where = MAJORITY.get(metric)
        if self._is_pairs(reading, task):
            chance = self.values(reading.of(reading.recipe, tasks=(task,), metric="majority"))
            where = "majority" if len(chance.replicates) else PAIRS
        if where is None:
            return None
        if isinstance(where, float):
            return Values(measured.replicates, np.full_like(measured.data, where), measured.x)
        shares = self.values(reading.of(reading.recipe, tasks=(task,), metric=where))
        return shares if len(shares.replicates) else None

    def of_pairs(self, reading: Reading) -> bool:
        """Whether it is of minimal pairs alone, of which chance takes the majority's place."""
        return bool(reading.tasks) and all(self._is_pairs(reading, task) for task in reading.tasks)

    def _is_pairs(self, reading, task):
        if "/" in task or set(reading.kinds()) == {"minimal_pairs"}:
            return True
        rows = self._picked(reading.of(reading.recipe, tasks=(task,)))
        return set(self._columns["kind"][rows]) == {"minimal_pairs"}

    # --- items -------------------------------------------------------------------------

    def _test_sets(self, table) -> dict[int, tuple]:
        """Row of scores -> the test set and metric that its items are of, with all that answered it."""
        names = [*item_files.KEY, "metric"]
        keys = self.scores[names].itertuples(index=False, name=None)
        rows = dict(zip(keys, self.scores.index, strict=True))
        groups: dict[tuple, list] = {}
        for *key, metrics, targets, predictions in _records(table):
            record = dict(zip(item_files.KEY, key, strict=True))
            if self._is_drawn_anew(record["recipe"], record["task"]):
                continue
            for metric in metrics:
                if (index := rows.get((*key, metric))) is not None:
                    shape = record["task"], record["split"], len(predictions), metric
                    groups.setdefault((*shape, targets.tobytes()), []).append((index, targets, predictions))
        return {index: (shape, members) for shape, members in groups.items() for index, _, _ in members}

    def _draws(self, row) -> np.ndarray:
        """A row's value under each resampling of its items, [B]; of all answers to a test set at once, when asked."""
        if row not in self._resampled:
            (task, split, count, metric, _), members = self._sets[row]
            indices, targets, predictions = zip(*members, strict=True)
            resampled = item_files.resampled(
                metric, targets[0], np.stack(predictions), self._counts(task, split, count)
            )
            self._resampled |= dict(zip(indices, resampled, strict=True))
        return self._resampled[row]

    @functools.cache  # noqa: B019 - a Results lives as long as a job
    def _counts(self, task, split, count):
        rng = generator(self.seed, "items", task, split, count)
        return rng.multinomial(count, np.full(count, 1 / count), size=self.draws)

    def _is_drawn_anew(self, recipe, task) -> bool:
        """Whether the items differ from replicate to replicate: their choice is then part of the replicates' spread."""
        facts = self.view.tasks.get(base(task))
        if facts is not None:
            return facts["redrawn"]
        return self.view.recipes.get(recipe, {}).get("corpus.redrawn", False)


def _records(table):
    """Records of a table of items: the values of its key, metrics, and targets and predictions as arrays."""
    columns = [table[name].to_pylist() for name in (*item_files.KEY, "metrics")]
    lists = [table[name].combine_chunks() for name in item_files.LISTS]
    for row, values in enumerate(zip(*columns, strict=True)):
        yield (*values, *(column[row].values.to_numpy(zero_copy_only=False) for column in lists))


def _reduced(curve: Values, reading) -> np.ndarray:
    """[R, 1, 1 + B] from a curve."""
    x = np.log2(curve.x) if reading.over == "train_size" else np.asarray(curve.x, float)
    data = curve.data
    if reading.reduce == "slope":
        if len(x) < 2:
            return np.full((len(data), 1, data.shape[2]), np.nan)
        centred = x - x.mean()
        # less the first: numbers that add up to 0 but for rounding would make a slope of a level curve
        return np.einsum("p,rpb->rb", centred, data - data[:, :1])[:, None] / (centred @ centred)
    if len(x) < 3:
        return np.full((len(data), 1, data.shape[2]), np.nan)
    share = ((x[1:-1] - x[:-2]) / (x[2:] - x[:-2]))[None, :, None]
    between = data[:, :-2] * (1 - share) + data[:, 2:] * share
    return np.abs(data[:, 1:-1] - between).mean(1, keepdims=True)
