"""Scores of runs of one recipe with several seeds of pre-training: a panel of a study lists them, in order of seed.

Values are per pre-training run; what differs between fine-tunings of one run is summed up by its median, as in the
paper of MAE-LM (Meng et al. 2024, section 4.1). Runs of two panels at one place share their seed and are compared in
pairs.
"""

import numpy as np
import pandas as pd

from masklab.config.schema import Study
from masklab.errors import MaskLabError


class Replicates:
    """Reads the scores of a study. metrics: task -> the metric it reports."""

    def __init__(self, scores: pd.DataFrame, study: Study, metrics: dict[str, str]):
        self.study, self.metrics = study, metrics
        own = scores["task"].map(metrics)
        test = scores["split"].isin(["test", "matched"])
        self._tuned = scores[(scores["metric"] == own) & test]
        self._majority = scores[(scores["metric"] == "majority") & test]
        ranks = scores["metric"].isin(["rank", "rank_centred"])
        self._ranks = scores[ranks & ~scores["task"].isin(metrics)]
        self._after = scores[ranks & scores["task"].isin(metrics)]
        self._costs = scores[scores["metric"].isin(["seconds", "tokens", "flops"]) & (scores["split"] == "train")]

    def members(self, panel: str) -> list[str]:
        found = self.study.members.get(panel)
        if not found:
            raise MaskLabError(f"the study has no panel {panel!r}; it has {', '.join(self.study.panels)}")
        return found

    def last_step(self, model: str) -> int:
        """The last checkpoint of a model that was fine-tuned; 0 if none was."""
        steps = self._tuned.loc[self._tuned["model"] == model, "step"]
        return int(steps.max()) if len(steps) else 0

    def scores(self, panel: str, tasks: list[str]) -> pd.DataFrame:
        """Mean over `tasks` of the median over fine-tunings: index step, one column per run; NaN where one lacks."""
        columns = []
        for model in self.members(panel):
            rows = self._tuned[(self._tuned["model"] == model) & self._tuned["task"].isin(tasks)]
            grid = rows.pivot_table(index="step", columns="task", values="value", aggfunc="median")
            columns.append(grid.reindex(columns=tasks).mean(axis=1, skipna=False))
        return pd.concat(columns, axis=1, keys=range(len(columns))) if columns else pd.DataFrame()

    def last(self, panel: str, tasks: list[str]) -> np.ndarray:
        """`scores` at the last checkpoint that each run was measured at, [runs]."""
        frame = self.scores(panel, tasks)
        return np.array([_last(frame[run]) for run in frame], float)

    def guess(self, tasks: list[str]) -> float:
        """Mean over `tasks` of what always giving one answer scores: the majority's share of an accuracy, else 0."""
        plain = [task for task in tasks if self.metrics[task] in ("accuracy", "exact", "f1")]
        shares = self._majority[self._majority["task"].isin(plain)].groupby("task")["value"].median()
        return float(shares.reindex(tasks).fillna(0).mean())

    def ranks(self, panel: str, split: str, metric: str = "rank_centred") -> pd.DataFrame:
        """Effective rank at the last checkpoint: index layer, one column per run."""
        columns = []
        for model in self.members(panel):
            rows = self._ranks[
                (self._ranks["model"] == model) & (self._ranks["split"] == split) & (self._ranks["metric"] == metric)
            ]
            rows = rows[rows["step"] == rows["step"].max()]
            columns.append(rows.groupby("layer")["value"].mean())
        return pd.concat(columns, axis=1, keys=range(len(columns)))

    def ranks_after(self, panel: str, tasks: list[str], metric: str = "rank_centred") -> np.ndarray:
        """Mean over `tasks` of the median over fine-tunings of the last layer's rank after them, [runs]."""
        found = []
        for model in self.members(panel):
            rows = self._after[
                (self._after["model"] == model) & self._after["task"].isin(tasks) & (self._after["metric"] == metric)
            ]
            rows = rows[rows["step"] == rows["step"].max()]
            medians = rows.groupby("task")["value"].median().reindex(tasks)
            found.append(medians.mean(skipna=False))
        return np.array(found, float)

    def costs(self, panel: str, metric: str) -> pd.DataFrame:
        """seconds, tokens or flops: index step, one column per run."""
        columns = []
        for model in self.members(panel):
            rows = self._costs[(self._costs["model"] == model) & (self._costs["metric"] == metric)]
            columns.append(rows.groupby("step")["value"].mean())
        return pd.concat(columns, axis=1, keys=range(len(columns)))

    def final_cost(self, panel: str, metric: str) -> np.ndarray:
        """What the whole of each run cost, [runs]."""
        frame = self.costs(panel, metric)
        return np.array([_last(frame[run]) for run in frame], float)


def _last(series: pd.Series) -> float:
    known = series.dropna()
    return float(known.iloc[-1]) if len(known) else np.nan


def reached(costs, values, level: float) -> float:
    """The cost at which a curve first reaches `level`, on straight lines between its points; NaN if it never does.

    costs, values: [points], by rising cost; below the first point there is nothing: a level it has costs what it cost.
    """
    costs, values = np.asarray(costs, float), np.asarray(values, float)
    above = np.flatnonzero(values >= level)
    if not len(above):
        return np.nan
    at = above[0]
    if at == 0:
        return float(costs[0])
    share = (level - values[at - 1]) / (values[at] - values[at - 1])
    return float(costs[at - 1] + share * (costs[at] - costs[at - 1]))
