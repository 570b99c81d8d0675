"""Tables of Chiang and Yogatama's study (EMNLP 2023): the numbers behind Figures 2, 3, 5 and 7, and the losses.

One row per test domain and training size, one column per starting point, shuffled weights and the majority
class among them; mean and standard deviation over fine-tuning seeds.
"""

import pandas as pd

from masklab.config.schema import Study
from masklab.curves import averaged, curves
from masklab.errors import MaskLabError
from masklab.figures.transfer import mix_title
from masklab.tables.cells import TIDY

MAJORITY = "majority class"


def _table(said: str, *sets: str):
    """The function that makes the table of the study's `sets`."""

    def make(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
        return _accuracies(scores, study, *sets)

    make.__doc__ = said
    return make


table2 = _table("Figure 2: half A-D1, half B-D2.", "single-50")
table3a = _table("Figure 3a: A-D1 alone.", "single-0")
table3b = _table("Figure 3b: a tenth B-D2.", "single-10")
table5a = _table("Figure 5a: several tokens, shared vocabulary, half B-D2.", "shared-50")
table5b = _table("Figure 5b: several tokens, separate vocabularies, half B-D2.", "separate-50")
table7 = _table(
    "Figure 7: several tokens, all A-D1 and a tenth B-D2.", "separate-0", "separate-10", "shared-0", "shared-10"
)


def _accuracies(scores, study, *names):
    parts = []
    for name in names:
        means = averaged(curves(scores, study, name))
        prefix = f"{name.rpartition('-')[0]} vocabulary, " if len(names) > 1 else ""
        means["panel"] = prefix + mix_title(name)
        means["row"] = [f"{d}, {size:,} examples" for d, size in zip(means["domain"], means["train_size"], strict=True)]
        last = scores.groupby("model")["step"].max()
        means["step"] = means["model"].map(last)
        parts += [means, _majority(means)]
    return pd.concat(parts, ignore_index=True).assign(metric="accuracy")[TIDY].astype({"seeds": "int64", "n": "int64"})


def _majority(means):
    once = means.drop_duplicates("row")
    return once.assign(model=MAJORITY, label=MAJORITY, value=once["majority"], std=float("nan"), seeds=0, step=0)


def losses(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """Masked-token cross-entropy of each pre-trained model in nats, the law's floor, and the gap between them."""
    metric_order = ["loss", "floor", "gap"]
    rows = scores[(scores["metric"].isin(metric_order)) & scores["model"].isin(labels)]
    if rows.empty:
        raise MaskLabError(f"scores: no loss rows of {', '.join(labels)}")
    rows = rows[rows["step"] == rows.groupby("model")["step"].transform("max")]
    parts = []
    for title, members in study.members.items():
        part = rows[rows["model"].isin(members)]
        places = {"a": part["model"].map(members.index), "b": part["metric"].map(metric_order.index)}
        part = part.assign(**places).sort_values(["a", "split", "b"])
        parts.append(part.assign(panel=title, row=_loss_row(part), std=float("nan"), seeds=0))
    tidy = pd.concat(parts, ignore_index=True)
    return tidy.assign(label=tidy["model"].map(labels))[TIDY]


def _loss_row(part):
    """Split and metric where more than one split was measured."""
    return part["metric"] if part["split"].nunique() < 2 else part["split"] + ", " + part["metric"]
