"""Score rows of models and checkpoints as numbers: values per seed, or values with errors over test items."""

import math

import pandas as pd

from masklab.claims.estimate import Estimate, of_error, of_seeds
from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.saturation import Losses, tested

COLUMNS = ["panel", "label", "model", "parameters", "step", "metric", "set"]
COLUMNS += ["value", "std", "low", "high", "seeds", "n", "converged", "equal"]


class Measured:
    """Values on the test split, by model, step and metric."""

    def __init__(self, scores: pd.DataFrame):
        rows = tested(scores)
        self._rows = {key: part for key, part in rows.groupby(["model", "step", "metric"])}

    def rows(self, model: str, step: int, metric: str) -> pd.DataFrame | None:
        return self._rows.get((model, step, metric))

    def seeds(self, model: str, step: int, metric: str, tasks: list[str]) -> pd.Series:
        """Seed -> mean over `tasks`, over the seeds that all of them have; empty where a task was not measured.

        MaskLabError where one was measured twice (two probes, two training sizes).
        """
        rows = self.rows(model, step, metric)
        rows = None if rows is None else rows[rows["task"].isin(tasks)]
        if rows is None or set(rows["task"]) != set(tasks):
            return pd.Series(dtype="float64")
        if rows.duplicated(["task", "seed"]).any():
            raise MaskLabError(f"scores: {model} step {step} was measured twice on {rows['task'].iloc[0]}; keep one")
        return rows.pivot(index="seed", columns="task", values="value").dropna().mean(axis=1)

    def item(self, model: str, step: int, metric: str) -> tuple[float, float]:
        """(value, standard error) of a metric of the corpus; NaN where it was not measured.

        Of several repeats the mean. Repeats share their items, so that their errors do not average out; without
        errors of their own, the repeats' deviation gives one.
        """
        rows, errors = self.rows(model, step, metric), self.rows(model, step, f"{metric}_se")
        if rows is None:
            return math.nan, math.nan
        value, repeats = float(rows["value"].mean()), len(rows)
        if errors is not None:
            return value, float(errors["value"].mean())
        return value, float(rows["value"].std(ddof=1)) / math.sqrt(repeats) if repeats > 1 else math.nan

    def items(self, model: str, step: int, metric: str) -> int:
        """Test items behind a value; 0 where it was not measured."""
        rows = self.rows(model, step, metric)
        return 0 if rows is None else int(rows["n"].max())


def points(scores: pd.DataFrame, study: Study, panel: str, metric: str, tasks: str | None = None) -> pd.DataFrame:
    """One row of `COLUMNS` per model of `panel` and checkpoint: a metric's value with its 95 % interval.

    tasks: a set of the study whose mean it is, by seed (low, high: t interval; std: over seeds, ddof 1), or None for
    metrics of the corpus (normal interval; std: the standard error; seeds 0). parameters: of the model, NaN where not
    measured. converged: at or after the first checkpoint whose loss equals the model's lowest; equal: the model is one
    of those whose last losses are equal. MaskLabError where nothing was measured.
    """
    if tasks is not None and not study.sets.get(tasks):
        raise MaskLabError(f"the study has no set {tasks!r} of tasks; it has {', '.join(study.sets) or 'none'}")
    members = study.panels.get(panel)
    if not members:
        raise MaskLabError(f"the study has no panel {panel!r}; it has {', '.join(study.panels)}")
    names = members if isinstance(members, dict) else {name: name for name in members}
    measured, losses = Measured(scores), Losses(scores, study.saturation)
    equal = losses.equal(list(names.values()))
    records = []
    for label, model in names.items():
        first, steps = losses.converged(model), losses.steps(model)
        for step in steps:
            estimate, std = _value(measured, model, step, metric, study.sets[tasks] if tasks else None)
            if math.isnan(estimate.effect):
                continue
            records.append(
                {
                    "panel": panel,
                    "label": label,
                    "model": model,
                    "parameters": measured.item(model, steps[-1], "parameters")[0],
                    "step": step,
                    "metric": metric,
                    "set": tasks or "",
                    "value": estimate.effect,
                    "std": std,
                    "low": estimate.low,
                    "high": estimate.high,
                    "seeds": estimate.seeds or 0,
                    "n": measured.items(model, step, metric),
                    "converged": step >= first,
                    "equal": model in equal,
                }
            )
    if not records:
        on = f" on {', '.join(study.sets[tasks])}" if tasks else ""
        raise MaskLabError(f"scores: no {metric} rows{on} of {', '.join(names.values())}")
    return pd.DataFrame(records, columns=COLUMNS)


def last(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of each model's last checkpoint."""
    return frame[frame["step"] == frame.groupby("model")["step"].transform("max")].reset_index(drop=True)


def _value(measured, model, step, metric, tasks) -> tuple[Estimate, float]:
    if tasks is None:
        value, error = measured.item(model, step, metric)
        return of_error(value, error), error
    values = measured.seeds(model, step, metric, tasks)
    return of_seeds(values.to_numpy()), float(values.std(ddof=1)) if len(values) > 1 else math.nan
