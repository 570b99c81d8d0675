"""Tables 1 to 3 of Liu, Xie, Li and Ma (2023) from scores.

Tables 1 and 2 compare ways of training one architecture: one column each, losses and traces with their standard
errors, accuracies with the standard deviation over probe seeds, every model at its last checkpoint. Table 3 lists the
shapes of the models.
"""

import pandas as pd

from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.figures.saturation import ALGORITHMS, CORPORA
from masklab.measured import last, points
from masklab.tables.cells import TIDY


def table1(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """Loss and accuracy on tasks A and B."""
    return _compare(scores, study, [("loss", None), ("accuracy", "pcfg-a"), ("accuracy", "pcfg-b")])


def table2(scores, study: Study, labels, metrics, starts=None) -> pd.DataFrame:
    """Loss, accuracy on task C and trace of the Hessian."""
    return _compare(scores, study, [("loss", None), ("accuracy", "pcfg-c"), ("trace", None)])


def _compare(scores, study, wanted):
    parts = []
    for metric, tasks in wanted:
        frame = last(points(scores, study, ALGORITHMS, metric, tasks))
        said = f"Task {tasks.rpartition('-')[2].upper()}" if tasks else metric.capitalize()
        parts.append(frame.assign(row=said))
    return _tidy(pd.concat(parts, ignore_index=True), "PCFG")


def table3(scores, study: Study, labels, metrics, starts=None, shapes=None) -> pd.DataFrame:
    """Parameters, width, heads and layers of every size; `shapes`: model -> those of its encoder."""
    parts = []
    for corpus, said in CORPORA.items():
        if corpus not in study.panels:
            continue
        frame = last(points(scores, study, corpus, "parameters"))
        rows = [frame.assign(row="Parameters", low=float("nan"), std=float("nan"))]
        for name in ("hidden", "heads", "layers", "intermediate"):
            values = [shapes[model].get(name) for model in frame["model"]]
            known = frame.assign(row=name, metric=name, value=values).dropna(subset=["value"])
            rows.append(known.assign(std=float("nan"), n=0))
        parts.append(_tidy(pd.concat(rows, ignore_index=True), said))
    if not parts:
        raise MaskLabError(f"the study has none of the panels {', '.join(CORPORA)}")
    return pd.concat(parts, ignore_index=True)


def _tidy(frame, panel):
    frame = frame.assign(panel=panel)
    return frame[TIDY].astype({"value": "float64", "step": "int64", "seeds": "int64", "n": "int64"})
