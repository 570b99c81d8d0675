"""How much of an effect's spread between replicates is due to the seeds of its probes.

A replicate's fine-tuning counts as the mean over a probe's seeds. Where these differ much, replicates do too, however
alike their pre-training: then more seeds decide a claim as more replicates would, and cost no pre-training.
"""

import math

import numpy as np
import pandas as pd

from masklab.claims.effects import every_part
from masklab.claims.values import effect_estimate, values, weights
from masklab.scores.results import Results


class SeedShares:
    """Of the effects on `results`; which scores are left without a seed is found out once for all of them."""

    def __init__(self, results: Results):
        self.results = results
        self._without: dict[str, list[Results]] | None = None

    def share(self, effect) -> float:
        """Share of the variance between replicates, 0 to 1: the mean over replicates of the variance of a replicate's
        value by seeds, a jackknife's that leaves out one seed of a probe at a time for all recipes alike, divided by
        the variance of its values; of the least of several parts that of the lowest.

        For sums of readings alone, for which it is exact on average (of two seeds or more, and of independent ones);
        NaN of other effects, and where no probe of it has several seeds or replicates do not differ.
        """
        if len(parts := every_part(effect)) > 1:
            effect = min(parts, key=lambda part: effect_estimate(part, self.results).low)
        if not (own := weights(effect)) or any(reading.seeds != "mean" for reading in own):
            return math.nan
        whole = values(effect, self.results)
        if len(whole.replicates) < 2:
            return math.nan
        variance = np.zeros(len(whole.replicates))
        rows = np.concatenate([self.results.index.picked(reading) for reading in own])
        probes = {*self.results.scores["probe"].iloc[rows]}
        for left in (left for probe, left in self.without().items() if probe in probes):
            found = [values(effect, results) for results in left]
            if any(each.replicates != whole.replicates for each in found):
                return math.nan
            each = np.stack([part.scalar[:, 0] for part in found])  # [seeds, replicates]
            variance += (len(left) - 1) * each.var(0)
        between = whole.scalar[:, 0].var(ddof=1)
        if not variance.any() or not between > 0:
            return math.nan
        return float(min(variance.mean() / between, 1.0))

    def without(self) -> dict[str, list[Results]]:
        """Probe -> the results without each of its seeds, of probes of which a recipe has several."""
        if self._without is None:
            scores, of = self.results.scores, self.results
            counts = scores.groupby(["probe", "recipe"])["seed"].transform("nunique")
            self._without = {
                probe: [Results(of.view, scores.drop(index=rows), None, of.models) for rows in seeds.values()]
                for probe, seeds in _several(scores[counts > 1]).items()
            }
        return self._without


def _several(scores: pd.DataFrame) -> dict[str, dict[int, pd.Index]]:
    """Probe -> seed -> its rows."""
    groups: dict[str, dict[int, pd.Index]] = {}
    for (probe, seed), rows in scores.groupby(["probe", "seed"]):
        groups.setdefault(probe, {})[seed] = rows.index
    return groups
