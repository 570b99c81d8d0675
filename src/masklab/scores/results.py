"""Scores of a study beside its facts: what readings say.

A value is found within a replicate first (the mean or median over a probe's seeds, then the mean over splits and sizes
of each task and over tasks), and only then summed up over replicates. Where items are resampled, every value has B
columns more: the same number computed on resampled test sets, equal ones for all recipes and replicates.
"""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd

from masklab.errors import MaskLabError
from masklab.scores import majority as majorities
from masklab.scores.estimate import FISHER, PLAIN, Estimate, estimate
from masklab.scores.per_replicate import NOTHING, Values, at_same, difference, in_all, reduced
from masklab.scores.picking import Rows
from masklab.scores.reading import CORRELATIONS, WHOLE, Reading
from masklab.scores.resampling import Resampling
from masklab.scores.schema import LIMITS
from masklab.scores.view import View


def _gaps_of(recipe: str) -> Reading:
    """Of all checkpoints of a recipe, as shares of the floor."""
    return Reading(recipe, "gap", form="share of the floor", step="all", over="step")


class Results:
    """Scores, items and facts of one study.

    scores: frame of score rows. items: table of `masklab.scores.items`, resampled `draws` times (0: never). models:
    (recipe, replicate) -> the facts of its manifest. seed: of the resampling.
    index: which rows a reading picks; resampling: what they are when items are resampled.
    """

    def __init__(self, view: View, scores: pd.DataFrame, items=None, models=None, draws: int = 0, seed=1):
        self.view, self.models = view, models or {}
        self.scores = scores.reset_index(drop=True)
        self.index = Rows(view, self.scores, self._converged)
        self.resampling = Resampling(view, self.scores, items, draws, seed)
        self._known: dict[Reading, Values] = {}
        self._drawn: dict[str, set[tuple[str, str]]] = {}  # of given recipes: what differs between replicates

    # --- values ------------------------------------------------------------------------

    def values(self, reading: Reading) -> Values:
        """What a reading says; of no replicates if it was not measured."""
        if reading not in self._known:
            self._known[reading] = self._values(reading)
        return self._known[reading]

    def estimated(self, values, reading: Reading) -> Estimate:
        """Mean and interval of values [R, 1 + B] of what a reading measures; `MISSING` of no values.

        The mean is over replicates as they are. The interval of a correlation with ratings is made on Fisher's scale;
        that of any other metric with limits is cut to them. (So is Matthews's, a correlation too: small test sets give
        it a value of 1, which Fisher's scale does not have.)
        """
        made = self.uncut(values, reading)
        return made.within(*self.limits(reading)) if made.replicates else made

    def uncut(self, values, reading: Reading, parts: int = 1) -> Estimate:
        """`estimated` with its interval as it is made, as claims test it. parts: as `estimate` takes them."""
        metrics = reading.metrics(self.view) if reading.form == "value" and reading.reduce is None else set()
        correlations = bool(metrics) and metrics <= CORRELATIONS
        made = estimate(values, self.rounding(reading), FISHER if correlations else PLAIN, parts=parts)
        return made.around(float(values[:, 0].mean())) if correlations and made.replicates else made

    def rounding(self, reading: Reading) -> float:
        """Standard deviation of what rounding does to a reading of whole numbers; 0 of others.

        Of a mean over n layers, splits, tasks, sizes or seeds that count alike it is 1 / sqrt(12 n), each being rounded
        for itself.
        """
        rows = self.index.picked(reading) if reading.metric in WHOLE and reading.form == "value" else ()
        if not len(rows) or reading.reduce == "roughness":
            return 0.0
        weights = self.index.weights(reading, rows, self.index.cells(reading, rows))
        seeds = len(np.unique(self.index.columns["seed"][rows])) if reading.seeds == "mean" else 1
        variance = float((weights**2).sum()) / (12 * seeds)
        if reading.reduce == "slope":
            x = np.unique(self.index.columns[reading.over][rows])
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
        ranges = {
            metric: ends for facts in self.view.probes.values() for metric, ends in facts.get("ranges", {}).items()
        }
        known = [LIMITS.get(metric) or ranges.get(metric, (-math.inf, math.inf)) for metric in metrics]
        return min(low for low, _ in known), max(high for _, high in known)

    def shared(self, readings) -> list[int] | None:
        """The replicates that all readings have, of those that were measured; None if there is none."""
        measured = [values for reading in readings if (values := self.values(reading)).replicates]
        return in_all(measured) or None if measured else None

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
        measured = measured.at(replicates) if measured.replicates and replicates is not None else measured
        measured, rows = measured.evidence, []
        for point in range(measured.data.shape[1]) if len(measured.replicates) else ():
            mean = self.estimated(measured.data[:, point], reading)
            if math.isfinite(mean.value):
                x = math.nan if measured.x is None else measured.x[point]
                rows.append((x, mean.value, mean.low, mean.high, mean.spread, mean.replicates, mean.items))
        if not rows:
            parts = self.index.parts_instead(reading)
            raise MaskLabError(f"scores: nothing was measured of {reading.words(self.view)}{parts}")
        frame = pd.DataFrame(rows, columns=["x", "value", "low", "high", "spread", "replicates", "items"])
        return frame.assign(n=self.items_behind(reading, replicates))

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

    def gain(self, reading: Reading, own: Values, null: Values) -> Estimate | None:
        """How much better values of a reading are than a null's, within replicates that both have; None without any.

        The difference, of a metric of which less is better with the other sign.
        """
        return difference(null, own) if reading.less_is_better(self.view) else difference(own, null)

    def cells(self, reading: Reading) -> frozenset:
        """(task, split, training size) that a reading is the mean of, or that its curve is over."""
        return frozenset(self.index.parts(self.index.picked(reading)))

    def sizes(self, reading: Reading) -> list[int]:
        """Training sizes that a reading is the mean over, in order; none where each of its tasks has but one."""
        of_task: dict[str, set[int]] = {}
        for task, _, size in self.cells(reading) if reading.over != "train_size" else ():
            of_task.setdefault(task, set()).add(int(size))
        return sorted({size for sizes in of_task.values() if len(sizes) > 1 for size in sizes})

    def are_alike(self, readings) -> bool:
        """Whether all readings of some that were measured are of the same tasks, splits and training sizes."""
        return len({cells for reading in readings if (cells := self.cells(reading))}) < 2

    def items_behind(self, reading: Reading, replicates=None) -> int:
        """Test items behind a value of a replicate, all its tasks together; 0 where nothing was measured.

        Where replicates differ (in how many tokens they masked, say), those of the one with the fewest. replicates: of
        these alone.
        """
        rows, columns = self.index.picked(reading), self.index.columns
        counts: dict[int, dict] = {}
        for row in rows:
            replicate, part = int(columns["replicate"][row]), (columns["task"][row], columns["split"][row])
            counts.setdefault(replicate, {})[part] = int(columns["n"][row])
        kept = counts if replicates is None else {r: own for r, own in counts.items() if r in replicates}
        return min((sum(own.values()) for own in kept.values()), default=0)

    def majority(self, reading: Reading) -> Values | None:
        """What always giving one answer scores; None of what is no score of a task."""
        return majorities.majority(self, reading)

    def of_pairs(self, reading: Reading) -> bool:
        """Whether it is of minimal pairs alone, of which chance takes the majority's place."""
        return majorities.of_pairs(self, reading)

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

    def _converged(self, recipe: str) -> float:
        """The first checkpoint whose loss is within the study's saturation of the lowest; infinity for none."""
        return min(self.saturated(self.gaps(recipe)), default=math.inf)

    def saturated(self, gaps: dict) -> list:
        """Keys of gaps that lie within the study's saturation of the lowest: checkpoints, or recipes."""
        return [key for key, gap in gaps.items() if gap <= min(gaps.values()) + self.view.saturation]

    def at_equal_loss(self, recipes, steps=None) -> list[str]:
        """Those of some recipes whose last loss is within the study's saturation of the lowest of all, in order.

        Means are over the replicates that all have: each may have a language of its own. steps: recipe -> the
        checkpoint whose loss counts, in place of the last.
        """
        shared = self.shared(map(_gaps_of, recipes))
        steps, last = steps or {}, {}
        for recipe in recipes:
            if gaps := self.gaps(recipe, shared):
                last[recipe] = gaps.get(steps.get(recipe), gaps[max(gaps)])
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
        return self.scores.iloc[self.index.picked(reading)]

    # --- from rows to values -----------------------------------------------------------

    def _values(self, reading) -> Values:
        return self._of_rows(reading, self.index.picked(reading))

    def _values_at(self, reading, cells) -> Values:
        """Of the `cells` of another reading alone: a null may be measured at more sizes."""
        if self.cells(reading) == cells:
            return self.values(reading)
        rows = self.index.picked(reading if isinstance(reading.sizes, int) else replace(reading, sizes="all"))
        return self._of_rows(reading, rows[np.array([part in cells for part in self.index.parts(rows)], bool)])

    def _of_rows(self, reading, rows) -> Values:
        if not len(rows) or self.index.lack(reading, rows):
            return NOTHING
        measured = self._gathered(rows, reading)
        if reading.form == "log":
            with np.errstate(invalid="ignore", divide="ignore"):
                measured = replace(measured, data=np.log(measured.data))
        elif reading.form == "share of the floor":
            plain = {"metric": "floor", "form": "value", "probe": "loss", "named": None, "tasks": (), "reduce": None}
            floor = self.values(reading.of(reading.recipe, **plain))
            both = [r for r in measured.replicates if r in floor.replicates]
            measured, floor = at_same(measured.at(both), floor.at(both))
            measured = replace(measured, data=measured.data / floor.data)
        return measured if reading.reduce is None else replace(measured, data=reduced(measured, reading), x=None)

    def _gathered(self, rows, reading) -> Values:
        """Rows as [replicates, points, cells, seeds], averaged over seeds, then cells; where one is missing, NaN.

        Cells count as `Rows.weights` says.
        """
        axis, c = reading.over, self.index.cells(reading, rows)
        replicates, r = np.unique(self.index.columns["replicate"][rows], return_inverse=True)
        x, p = np.unique(self.index.columns[axis][rows], return_inverse=True) if axis else (np.zeros(1), 0 * r)
        _, s = np.unique(self.index.columns["seed"][rows], return_inverse=True)
        shape = len(replicates), len(x), c.max() + 1, s.max() + 1
        at = np.ravel_multi_index((r, p, c, s), shape)
        self.index.check_unique(rows, at)
        data = np.full((*shape, 1 + self.resampling.count), np.nan)
        flat = data.reshape(-1, 1 + self.resampling.count)
        flat[at] = self.index.columns["value"][rows][:, None]
        for place, row in zip(at, rows.tolist(), strict=True):
            if (drawn := self.resampling.draws(row)) is not None:
                flat[place, 1:] = drawn
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a cell that no seed has
            inner = (np.nanmedian if reading.seeds == "median" else np.nanmean)(data, 3)
        weights = self.index.weights(reading, rows, c)
        alike = np.ptp(weights) < 1e-12  # as a rule: the plain mean, to the last bit
        mean = inner.mean(2) if alike else np.einsum("c,rpcb->rpb", weights, inner)
        given = self._nothing_drawn(reading.recipe, rows)
        return Values(tuple(int(value) for value in replicates), mean, x if axis else None, given)

    def _nothing_drawn(self, recipe, rows) -> bool:
        """Whether nothing was drawn for a recipe, nor by what measured these rows of it.

        All that a probe says of a task is then the same in every replicate. One number may be so by chance, or since
        it can be no other: what a bag of words scores on words that it never saw, in a language of each replicate.
        """
        if not self.view.is_given(recipe):
            return False
        if recipe not in self._drawn:
            own = self.index.columns["recipe"] == recipe
            frame = self.scores[own].assign(base=self.index.columns["base"][own])
            same = [name for name in frame if name not in ("replicate", "value", "n")]
            varies = frame.groupby(same, dropna=False)["value"].transform("nunique") > 1
            self._drawn[recipe] = set(zip(frame["probe"][varies], frame["base"][varies], strict=True))
        columns = self.index.columns
        return self._drawn[recipe].isdisjoint(zip(columns["probe"][rows], columns["base"][rows], strict=True))
