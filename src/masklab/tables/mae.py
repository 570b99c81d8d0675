"""Tables 1 to 3 of Meng et al. (2024) from scores.

A value is the mean over runs with different seeds of pre-training of the median over fine-tunings; the deviation is
that over runs.
"""

import numpy as np
import pandas as pd

from masklab.config.schema import Study
from masklab.figures.recipes import COMPARED, GROUPS, present
from masklab.measured import Measured
from masklab.replicates import Replicates
from masklab.tables.cells import TIDY


def table1(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """Every task of the sets `glue` and `squad` for plain MLM and MAE-LM; of answer spans exact match and F1."""
    read, rows = Replicates(scores, study, metrics), []
    words = Replicates(scores, study, metrics | dict.fromkeys(study.sets["squad"], "f1"))
    for title in present(study, COMPARED):
        for task in study.sets["glue"]:
            rows.append(_row(read, "Fine-tuning", title, task, metrics[task], read.last(title, [task])))
        average = read.last(title, study.sets["glue"])
        rows.append(_row(read, "Fine-tuning", title, "Average", "mean", average))
        for task in study.sets["squad"]:
            rows.append(_row(read, "Fine-tuning", title, f"{task} (EM)", "exact", read.last(title, [task])))
            rows.append(_row(read, "Fine-tuning", title, f"{task} (F1)", "f1", words.last(title, [task])))
    return _tidy(rows)


def table2(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """Ablations in the paper's groups: means over the tasks of `glue`, and of `squad`."""
    read, rows = Replicates(scores, study, metrics), []
    for group, titles in GROUPS.items():
        found = [title for title in titles if study.panels.get(title)]
        for title in found if len(found) > 1 else ():
            for said, key in (("Average", "glue"), ("Answer extraction", "squad")):
                values = read.last(title, study.sets[key])
                rows.append(_row(read, group, title, said, "mean" if key == "glue" else "exact", values))
    return _tidy(rows)


def table3(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """Effective rank of the last layer for real tokens: after pre-training, and after fine-tuning."""
    read, rows = Replicates(scores, study, metrics), []
    for metric, said in (("rank", "Effective rank"), ("rank_centred", "Effective rank, centred")):
        for title in present(study, COMPARED):
            layers = read.ranks(title, "unmasked", metric)
            rows.append(_row(read, said, title, "Pretrained", metric, layers.iloc[-1].to_numpy()))
            for key in ("mnli", "squad"):
                values = read.ranks_after(title, study.sets[key], metric)
                rows.append(_row(read, said, title, " and ".join(study.sets[key]), metric, values))
    return _tidy(rows)


def losses(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """Pre-training loss beside its exact floor, and how far above it is, nats per masked token."""
    rows, measured = [], Measured(scores)
    read = Replicates(scores, study, metrics)
    for title in present(study, COMPARED):
        models = study.members[title]
        steps = [int(scores.loc[scores["model"] == model, "step"].max()) for model in models]
        for metric in ("loss", "floor", "gap"):
            values = [measured.item(model, step, metric)[0] for model, step in zip(models, steps, strict=True)]
            row = _row(read, "Loss", title, metric, metric, values)
            rows.append(row | {"step": steps[0]})
    return _tidy(rows)


def _row(read, panel, title, said, metric, values) -> dict:
    values = np.asarray(values, float)
    known = values[np.isfinite(values)]
    std = float(known.std(ddof=1)) if len(known) > 1 else np.nan
    value = float(known.mean()) if len(known) else np.nan
    members = read.members(title)
    found = {"panel": panel, "row": said, "model": ", ".join(members), "label": title, "metric": metric}
    found["step"] = read.last_step(members[0])
    return found | {"value": value, "std": std, "seeds": len(known), "n": len(known)}


def _tidy(rows) -> pd.DataFrame:
    return pd.DataFrame(rows)[TIDY].astype({"value": "float64", "step": "int64", "seeds": "int64", "n": "int64"})
