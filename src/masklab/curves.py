"""Fine-tuning curves of score rows: accuracy against training size, per starting point, test domain and seed.

A *set* of a study names the task of one figure, "<panel>-<percent of B-D2>" ("single-50"): the models are
those of the panel, by label, and the task's test splits are the four domains.
"""

import numpy as np
import pandas as pd

from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.figures.spec import panel_of
from masklab.intervals import mean_interval

DOMAINS = ("A-D1", "B-D1", "A-D2", "B-D2")
TRAINED = "A-D1"  # in the training data of every mix
COLUMNS = ["set", "panel", "label", "model", "task", "domain", "train_size", "seed", "accuracy", "majority", "n"]


def curves(scores: pd.DataFrame, study: Study, name: str) -> pd.DataFrame:
    """One row per model, domain, size and seed of the set `name`: `COLUMNS`, in the order of labels and domains.

    majority: share of the larger class in the domain's test set, what always giving one answer scores. Every
    model at its last measured step. MaskLabError where the set is not declared, nothing was measured, two
    probes measured the same thing, or the test sets' majority is unknown.
    """
    title = panel_of(study, name)
    panel = study.panels[title]
    labels = {model: label for label, model in panel.items()}
    if not study.sets.get(name):
        raise MaskLabError(f"the study has no set {name!r} of tasks; it has {', '.join(study.sets) or 'none'}")
    tasks = study.sets[name]
    part = scores[scores["model"].isin(labels) & scores["task"].isin(tasks) & scores["split"].isin(DOMAINS)]
    rows = part[part["metric"] == "accuracy"]
    if rows.empty:
        raise MaskLabError(f"scores: no accuracy on {', '.join(DOMAINS)} of {', '.join(tasks)} for {', '.join(labels)}")
    rows = rows[rows["step"] == rows.groupby("model")["step"].transform("max")]
    twice = rows.duplicated(["model", "task", "split", "train_size", "seed"])
    if twice.any():
        row = rows[twice].iloc[0]
        raise MaskLabError(f"scores: two probes measured {row['model']} on {row['task']}; keep one")
    majority = part[part["metric"] == "majority"].groupby(["task", "split"])["value"].agg(["min", "max"])
    if (majority["min"] != majority["max"]).any():
        raise MaskLabError(f"scores: the test sets of {', '.join(tasks)} differ between models or seeds")
    known = pd.MultiIndex.from_frame(rows[["task", "split"]])
    lacking = known[~known.isin(majority.index)]
    if len(lacking):
        raise MaskLabError(f"scores: no majority of the test set {lacking[0][1]} of {lacking[0][0]}")
    rows = rows.assign(majority=majority["min"].reindex(known).to_numpy(), label=rows["model"].map(labels))
    rows = rows.rename(columns={"split": "domain", "value": "accuracy"}).assign(set=name, panel=title)
    order = {"label": list(panel), "domain": list(DOMAINS)}
    places = {f"{key}_order": rows[key].map(values.index) for key, values in order.items()}
    rows = rows.assign(**places).sort_values([*places, "task", "train_size", "seed"])
    return rows[COLUMNS].reset_index(drop=True)


def averaged(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds of `curves`: value, std (ddof 1), low, high, interval, seeds, n, majority, in the rows' order.

    low and high are the 95 % t interval of the mean from three seeds on (interval "t95"); of two seeds, whose
    t interval says nothing, they are the two values ("range"); of one they are NaN ("none").
    """
    records = []
    keys = ["set", "panel", "label", "model", "task", "domain", "train_size"]
    for key, group in rows.groupby(keys, sort=False):
        values = group["accuracy"].to_numpy()
        mean, low, high = mean_interval(values)
        kind = "none" if len(values) == 1 else "range" if len(values) == 2 else "t95"
        if kind == "range":
            low, high = values.min(), values.max()
        records.append(
            dict(zip(keys, key, strict=True))
            | {
                "value": mean,
                "std": values.std(ddof=1) if len(values) > 1 else np.nan,
                "low": low,
                "high": high,
                "interval": kind,
                "seeds": len(values),
                "n": int(group["n"].max()),
                "majority": group["majority"].iloc[0],
            }
        )
    return pd.DataFrame(records)
