"""Effects on cells of scores as numbers.

Accuracies are means over probe seeds with a t interval: seed s has the same training rows, projection and batches for
every model. Losses and traces are means over test items, with the standard errors their probes report, added in
quadrature. Neither covers pre-training: there is one run per model.
"""

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from masklab.claims.cells import LARGEST, PICKS, SMALLEST, SMALLEST_EQUAL, WORST, Cell, Cells, Trend
from masklab.claims.estimate import MISSING, Estimate, of_error, of_seeds
from masklab.claims.spec import Claim
from masklab.config.schema import Study
from masklab.measured import Measured
from masklab.saturation import Losses


def estimates(claims: list[Claim], scores: pd.DataFrame, study: Study, metrics=None) -> list[Estimate]:
    """One estimate per claim; NaN where a checkpoint, a model or a seed it needs was not measured."""
    reader = _Reader(scores, study)
    return [(reader.sum if isinstance(claim.effect, Cells) else reader.trend)(claim.effect) for claim in claims]


class _Reader:
    """Values of cells of one study's scores."""

    def __init__(self, scores, study):
        self.study, self.losses = study, Losses(scores, study.saturation)
        self.measured = Measured(scores)

    # --- which model, which checkpoint ---

    def models(self, cell: Cell) -> list[str]:
        """The models a cell stands for: one, or all of the panel for `WORST`; none where there is no such model."""
        if cell.model not in PICKS:
            return [self.study.panels[cell.panel][cell.model]]
        if cell.labelled:
            (model,) = self.models(replace(cell, panel=cell.labelled, labelled=None)) or (None,)
            labels = {name: label for label, name in self.study.panels[cell.labelled].items()}
            found = self.study.panels[cell.panel].get(labels.get(model))
            return [found] if found else []
        members = self.study.members[cell.panel]
        if cell.model == WORST:
            return members
        if cell.model in (SMALLEST, LARGEST):
            return [members[0 if cell.model == SMALLEST else -1]]
        equal = self.losses.equal(members)
        return equal[:1] if cell.model == SMALLEST_EQUAL and len(equal) > 1 else []

    def step(self, model, which) -> int | None:
        steps = self.losses.steps(model)
        if which == "converged":
            found = self.losses.converged(model)
            return found if found != steps[-1] else None  # nothing after it to compare with
        return steps[0 if which == "first" else -1]

    # --- values ---

    def seeds(self, cell: Cell, model: str, step: int) -> pd.Series:
        """Seed -> value of a cell that has seeds; may be empty."""
        values = self.measured.seeds(model, step, cell.metric, self.study.sets[cell.set])
        if cell.form == "log":
            return np.log(values)
        return values / self.losses.floor(model) if cell.form == "share of the entropy" else values

    def item(self, cell: Cell, model: str, step: int) -> tuple[float, float]:
        """(value, standard error) of a cell that has none; NaN where it was not measured."""
        value, error = self.measured.item(model, step, cell.metric)
        if cell.form == "log":
            return (math.log(value), error / value) if value > 0 else (math.nan, math.nan)
        scale = self.losses.floor(model) if cell.form == "share of the entropy" else 1.0
        return value / scale, error / scale

    # --- effects ---

    def sum(self, effect: Cells) -> Estimate:
        terms = []
        for weight, cell in effect.terms:
            places = [(model, self.step(model, cell.step)) for model in self.models(cell)]
            if not places or any(step is None for _, step in places):
                return MISSING
            terms.append((weight, cell, places))
        premise = not effect.equal_loss or self.losses.agree([place for _, _, places in terms for place in places])
        if all(cell.set is None for cell in effect.cells):
            items = [(weight, *self.item(cell, *places[0])) for weight, cell, places in terms]
            value = sum(weight * value for weight, value, _ in items) - effect.threshold
            return of_error(value, math.hypot(*(weight * error for weight, _, error in items)), premise)
        parts = [weight * self._least([self.seeds(cell, *place) for place in places]) for weight, cell, places in terms]
        values = pd.concat(parts, axis=1, join="inner").dropna().sum(axis=1)
        return of_seeds(values.to_numpy() - effect.threshold, premise)

    @staticmethod
    def _least(series):
        """Per seed, the least over models; seeds that a model lacks do not count."""
        return pd.concat(series, axis=1, join="inner").min(axis=1)

    def trend(self, effect: Trend) -> Estimate:
        if effect.along == "models":
            members = self.losses.equal(self.study.members[effect.y.panel])
            places = [(model, self.step(model, "last")) for model in members]
        else:
            (model,) = self.models(effect.y)
            first = self.losses.converged(model)
            places = [(model, step) for step in self.losses.steps(model) if step >= first]
        x = [self.item(effect.cells[1], *place)[0] for place in places]
        known = [index for index, value in enumerate(x) if not math.isnan(value)]
        if len(known) < 3:
            return MISSING
        ys = pd.concat([self.seeds(effect.y, *places[index]) for index in known], axis=1, join="inner")
        correlations = np.array([_correlation(np.array(x)[known], row) for row in ys.to_numpy()])
        values = correlations if effect.statistic == "correlation" else correlations**2
        return of_seeds(values - effect.threshold) if len(values) and np.isfinite(values).all() else MISSING


def _correlation(x, y):
    """Pearson's; NaN where either does not vary."""
    x, y = x - x.mean(), y - y.mean()
    scale = math.sqrt((x @ x) * (y @ y))
    return x @ y / scale if scale > 0 else math.nan
