"""From score rows to the cells of a table: one row per model, step and task, seeds averaged."""

import numpy as np
import pandas as pd

from masklab.config.schema import Study
from masklab.errors import MaskLabError

TIDY = ["panel", "row", "model", "label", "step", "metric", "value", "std", "seeds", "n"]


def tasks_of(study: Study, *sets: str) -> list[str]:
    """Tasks of the named sets, in order; a missing or empty set raises MaskLabError."""
    for key in sets:
        if not study.sets.get(key):
            raise MaskLabError(f"the study has no set {key!r} of tasks; it has {', '.join(study.sets) or 'none'}")
    return [task for key in sets for task in study.sets[key]]


def select(scores: pd.DataFrame, models: list[str], tasks: list[str], metrics: dict[str, str]) -> pd.DataFrame:
    """Test-split rows of `models` on `tasks` ("blimp" also means every "blimp/<phenomenon>"), each task's own metric.

    Adds the column `base` (the task as configured). MaskLabError where nothing is left, or where two probes
    measured the same thing.
    """
    base = scores["task"].str.split("/", n=1).str[0]
    wanted = scores["model"].isin(models) & base.isin(tasks) & (scores["split"] == "test")
    rows = scores.assign(base=base)[wanted & (scores["metric"] == base.map(metrics))]
    if rows.empty:
        kinds = ", ".join(sorted({metrics[task] for task in tasks}))
        raise MaskLabError(
            f"scores: no {kinds} rows on the test split of {', '.join(tasks)} for {', '.join(models) or 'no models'}"
        )
    twice = rows.duplicated(["model", "step", "task", "seed"])
    if twice.any():
        row = rows[twice].iloc[0]
        raise MaskLabError(
            f"scores: two probes or studies measured {row['model']} step {row['step']} on {row['task']}; keep one"
        )
    return rows


def last_steps(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of each model's last measured step."""
    return rows[rows["step"] == rows.groupby("model")["step"].transform("max")]


def per_task(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds: model, step, task, base, metric, value, std (ddof 1; NaN for one seed), seeds, n (items)."""
    groups = rows.groupby(["model", "step", "task", "base", "metric"], as_index=False, sort=True)
    return groups.agg(value=("value", "mean"), std=("value", "std"), seeds=("seed", "nunique"), n=("n", "max"))


def average(rows: pd.DataFrame) -> pd.DataFrame:
    """Unweighted mean over tasks: model, step, value, std, low, high, seeds, n, tasks.

    `std` (ddof 1) is that of the per-seed means, over the seeds that every task has; `low` and `high` are one of it
    below and above the value. All are NaN for a single seed. A model and step that lacks a task others
    have gets NaN: means over different tasks are not comparable. `n` is the number of items of all tasks.
    """
    tasks = sorted(rows["task"].unique())
    records = []
    for (model, step), group in rows.groupby(["model", "step"], sort=True):
        grid = group.pivot(index="seed", columns="task", values="value").reindex(columns=tasks)
        complete = grid.dropna().mean(axis=1)
        value = grid.mean(axis=0).mean(skipna=False)
        seeds = len(complete)
        std = complete.std(ddof=1) if seeds > 1 else np.nan
        records.append(
            {
                "model": model,
                "step": step,
                "value": value,
                "std": std,
                "low": value - std,
                "high": value + std,
                "seeds": seeds,
                "n": int(group.groupby("task")["n"].max().sum()),
                "tasks": len(tasks),
            }
        )
    return pd.DataFrame(records)


def task_names(tasks) -> dict[str, str]:
    """Task -> row name: "blimp/anaphor_agreement" -> "anaphor agreement" (with "blimp: " where two would collide)."""
    short = {task: task.split("/", 1)[-1].replace("_", " ") if "/" in task else task for task in tasks}
    counts = pd.Series(list(short.values())).value_counts()
    return {task: name if counts[name] == 1 else f"{task.split('/')[0]}: {name}" for task, name in short.items()}


def control_names(study: Study) -> dict[str, str]:
    """MSGS task -> row name, controls marked: "CR (control)"."""
    control, ambiguous = tasks_of(study, "msgs-control"), tasks_of(study, "msgs-ambiguous")
    marked = {task: task if "control" in task.lower() else f"{task} (control)" for task in control}
    return marked | {task: task for task in ambiguous}
