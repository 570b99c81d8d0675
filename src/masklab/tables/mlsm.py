"""Tables 1-3 of Berend (BabyLM 2023), for whatever models the study lists.

Every table shows each model's last measured checkpoint and ends in unweighted means over its rows.
"""

import pandas as pd

from masklab.config.schema import Study
from masklab.tables.cells import TIDY, average, control_names, last_steps, per_task, select, task_names, tasks_of


def table1(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """BLiMP accuracy per phenomenon, by pseudo-log-likelihood with the softmax over the vocabulary only."""
    return _blimp(scores, study, labels, "accuracy")


def table1_full_width(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """Table 1 as published: the softmax of models with latent logits runs over vocabulary and latent logits."""
    return _blimp(scores, study, labels, "accuracy_full_width")


def table2(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """(Super)GLUE, each task's own metric: mean and standard deviation over fine-tuning seeds."""
    tasks = tasks_of(study, "glue")
    rows = last_steps(select(scores, list(labels), tasks, metrics))
    return _tidy(rows, study, labels, task_names(tasks), {"Average": tasks})


def table3(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """MSGS, Matthews correlation: controls, then ambiguous tasks, and the means of both."""
    groups = {
        "Average (control)": tasks_of(study, "msgs-control"),
        "Average (ambiguous)": tasks_of(study, "msgs-ambiguous"),
        "Average": tasks_of(study, "msgs-control", "msgs-ambiguous"),
    }
    rows = last_steps(select(scores, list(labels), groups["Average"], metrics))
    return _tidy(rows, study, labels, control_names(study), groups)


def _blimp(scores, study, labels, metric):
    tasks = tasks_of(study, "blimp")
    rows = last_steps(select(scores, list(labels), tasks, dict.fromkeys(tasks, metric)))
    names = task_names(rows["task"].unique())
    ordered = dict(sorted(names.items(), key=lambda item: item[1]))
    return _tidy(rows, study, labels, ordered, {"Average": list(ordered)})


def _tidy(rows, study, labels, names, averages):
    """`names`: task -> row name in the order of rows; `averages`: row name -> the tasks it averages."""
    cells = [per_task(rows).assign(row=lambda frame: frame["task"].map(names))]
    order = list(names.values())
    for name, tasks in averages.items():
        part = rows[rows["task"].isin(tasks)]
        kinds = part["metric"].unique()
        cells.append(average(part).assign(row=name, metric=kinds[0] if len(kinds) == 1 else "mean"))
        order.append(name)
    cells = pd.concat(cells, ignore_index=True)
    tables = []
    for title, members in study.members.items():
        grid = pd.MultiIndex.from_product([order, members], names=["row", "model"])
        # A reindexed grid keeps unmeasured models out and the order of rows and columns as declared.
        found = cells.set_index(["row", "model"])
        tables.append(found.loc[grid[grid.isin(found.index)]].reset_index().assign(panel=title))
    tidy = pd.concat(tables, ignore_index=True)
    tidy["label"] = tidy["model"].map(labels)
    return tidy[TIDY].astype({"step": "int64", "seeds": "int64", "n": "int64"})
