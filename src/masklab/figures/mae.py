"""Figures 1a, 1b, 3 and 4 of Meng et al. (2024) from scores.

Each function reads score rows and returns (figure, data): `data` holds exactly what is drawn. A curve is the mean over
runs with different seeds of pre-training, its band the 95 % t interval (none for a single run). Figure 1a is drawn with
the rank of the states, as the paper's formula says, and of the centred states, as its words ("variance") say.
"""

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.figures import style
from masklab.figures.recipes import COMPARED, CORRUPTED, MAE, MLM, deltas, present
from masklab.intervals import mean_interval
from masklab.replicates import Replicates

LOOKS = {
    MLM: {"color": "#000000", "marker": "o", "linestyle": "-"},
    MAE: {"color": "#0072B2", "marker": "s", "linestyle": "-"},
    CORRUPTED: {"color": "#D55E00", "marker": "^", "linestyle": (0, (5, 1.5))},
}
INPUTS = {
    "masked": ("with [MASK]", {"color": "#D55E00", "marker": "s", "linestyle": "-"}),
    "unmasked": ("without [MASK]", {"color": "#0072B2", "marker": "o", "linestyle": (0, (5, 1.5))}),
}
FORMS = {"rank": "effective rank", "rank_centred": "effective rank, centred"}


@style.paper
def figure1a(scores, study: Study, labels, metrics, starts=None):
    """Effective rank by layer for inputs with and without [MASK]."""
    return _with_and_without(scores, study, metrics, "rank")


@style.paper
def figure1a_centred(scores, study: Study, labels, metrics, starts=None):
    """Figure 1a of the states without their mean."""
    return _with_and_without(scores, study, metrics, "rank_centred")


def _with_and_without(scores, study, metrics, metric):
    titles, read = present(study, COMPARED), Replicates(scores, study, metrics)
    figure = style.new_figure({1: style.COLUMN, 2: 5.0}.get(len(titles), style.FULL), 2.1)
    grid = figure.subplots(1, len(titles), squeeze=False, sharey=True)[0]
    data = []
    for index, (axes, title) in enumerate(zip(grid, titles, strict=True)):
        for split, (name, look) in INPUTS.items():
            frame = _summary(read.ranks(title, split, metric), "layer")
            _band(axes, frame["layer"], frame, look, name)
            data.append(frame.assign(panel=title, split=split, metric=metric))
        _layers(axes)
        style.panel_title(axes, title, index if len(titles) > 1 else None)
    grid[0].set_ylabel(f".9-{FORMS[metric]}")
    style.legend_below(figure, *grid[0].get_legend_handles_labels(), handlelength=3)
    return figure, pd.concat(data, ignore_index=True)


@style.paper
def figure1b(scores, study: Study, labels, metrics, starts=None):
    """Effective rank of [MASK]s alone by layer, plain and centred."""
    titles, read = present(study, COMPARED), Replicates(scores, study, metrics)
    figure = style.new_figure(5.0, 2.1)
    grid, data = figure.subplots(1, 2), []
    for index, (axes, (metric, name)) in enumerate(zip(grid, FORMS.items(), strict=True)):
        for title in titles:
            frame = _summary(read.ranks(title, "mask-positions", metric), "layer")
            _band(axes, frame["layer"], frame, LOOKS[title], title)
            data.append(frame.assign(panel=title, split="mask-positions", metric=metric))
        _layers(axes)
        style.panel_title(axes, f".9-{name}", index)
    grid[0].set_ylabel("Rank of [MASK]s alone")
    style.legend_below(figure, *grid[0].get_legend_handles_labels(), handlelength=3)
    return figure, pd.concat(data, ignore_index=True)


@style.paper
def figure3(scores, study: Study, labels, metrics, starts=None):
    """Score after fine-tuning against what pre-training cost: time, FLOPs, tokens; dashed: MLM's final score."""
    read, tasks = Replicates(scores, study, metrics), study.sets["mnli"]
    figure = style.new_figure(style.FULL, 2.2)
    grid, data = figure.subplots(1, 3, sharey=True), []
    for index, (axes, (cost, name)) in enumerate(
        zip(grid, (("seconds", "Time (s)"), ("flops", "FLOPs"), ("tokens", "Tokens")), strict=True)
    ):
        for title in (MLM, MAE):
            costs = read.costs(title, cost).mean(axis=1)
            frame = _summary(read.scores(title, tasks), "step", every=False)
            frame = frame.assign(cost=frame["step"].map(costs)).dropna(subset=["cost"])
            if frame.empty:
                raise MaskLabError(f"scores: no checkpoint of {title} has both a score and its {cost}")
            _band(axes, frame["cost"], frame, LOOKS[title], title)
            if title == MLM:
                final = frame["value"].iloc[-1]
                axes.axhline(final, color="0.35", linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
            data.append(frame.assign(panel=title, metric=cost))
        axes.set_xlabel(name)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        style.panel_title(axes, "", index)
    grid[0].set_ylabel(_said(tasks, metrics))
    style.legend_below(figure, *grid[0].get_legend_handles_labels(), handlelength=3)
    return figure, pd.concat(data, ignore_index=True)


@style.paper
def figure4(scores, study: Study, labels, metrics, starts=None):
    """Scores after fine-tuning against the share of [MASK]s that stay in the encoder; bars: 95 % t intervals.

    Dashed: MLM, in the data the row without a delta.
    """
    read, shares = Replicates(scores, study, metrics), deltas(study)
    figure = style.new_figure(5.0, 2.1)
    grid, data = figure.subplots(1, 2), []
    for index, (axes, (key, name)) in enumerate(
        zip(grid, (("glue", "Mean over sentence tasks"), ("squad", "Answer extraction")), strict=True)
    ):
        tasks = study.sets[key]
        runs = pd.DataFrame({delta: pd.Series(read.last(title, tasks)) for title, delta in shares.items()})
        frame = _summary(runs.T.rename_axis("delta"), "delta", every=False).assign(recipe="delta")
        axes.plot(frame["delta"], frame["value"], **LOOKS[MAE])
        several = frame.dropna(subset=["low"])
        axes.vlines(several["delta"], several["low"], several["high"], color=LOOKS[MAE]["color"], linewidth=1)
        if study.panels.get(MLM):
            values = read.last(MLM, tasks)
            mean, low, high = mean_interval(values)
            axes.axhline(mean, color="0.35", linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
            beside = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points", "va": "center"}
            axes.annotate("MLM", (1, mean), (3, 0), fontsize=7, annotation_clip=False, **beside)
            frame.loc[len(frame)] = [np.nan, mean, low, high, len(values), MLM]
        axes.set_xlim(-0.08, 1.08)
        axes.set_xlabel("δ, share of [MASK]s in the encoder")
        axes.set_ylabel(_said(tasks, metrics))
        style.panel_title(axes, name, index)
        data.append(frame.assign(panel=key, metric=_said(tasks, metrics)))
    return figure, pd.concat(data, ignore_index=True)


# --- shared --------------------------------------------------------------------


def _summary(frame: pd.DataFrame, index: str, every: bool = True) -> pd.DataFrame:
    """Mean and t interval over columns (runs) by row: index, value, low, high, runs.

    Rows that not `every` run has, or else none, are left out.
    """
    rows = frame.dropna(how="any" if every else "all")
    if rows.empty:
        raise MaskLabError(f"scores: no {index} that {'every' if every else 'any'} run was measured at")
    known = [row[np.isfinite(row)] for row in rows.to_numpy()]
    values = pd.DataFrame([mean_interval(row) for row in known], columns=["value", "low", "high"])
    values.insert(0, index, rows.index.to_numpy())
    return values.assign(runs=[len(row) for row in known])


def _band(axes, x, frame, look, name):
    axes.plot(x, frame["value"], label=name, **look)
    if np.isfinite(frame["low"]).all():
        axes.fill_between(x, frame["low"], frame["high"], color=look["color"], alpha=0.15, linewidth=0)


def _layers(axes):
    axes.set_xlabel("Layer")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))


def _said(tasks, metrics) -> str:
    kinds = list(dict.fromkeys(metrics[task] for task in tasks))
    return {"exact": "exact match", "mcc": "MCC", "f1": "F1"}.get(kinds[0], kinds[0]) if len(kinds) == 1 else "score"
