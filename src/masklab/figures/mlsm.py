"""Figures 1-6 of Berend (BabyLM 2023), for whatever models the study lists.

Each function reads score rows and returns (figure, data): `data` holds exactly what is drawn.
"""

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator
from matplotlib.transforms import ScaledTranslation

from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.figures import FIGURE1, FIGURE2, style
from masklab.figures.place import place_labels
from masklab.figures.spec import panel_with, versus
from masklab.tables.cells import average, control_names, last_steps, per_task, select, task_names, tasks_of

# --- Figure 1 --------------------------------------------------------------


@style.paper
def figure1(scores, study: Study, labels, metrics, starts=None):
    """What MLM predicts for one masked word (tokens) and what MLSM predicts (latent properties): bars."""
    _, models = panel_with(study, labels, *FIGURE1)
    splits = ("vocabulary", "atoms")
    data = []
    for model, split in zip(models, splits, strict=True):
        rows = scores[(scores["model"] == model) & (scores["split"] == split)]
        if rows.empty:
            raise MaskLabError(f"scores: no prediction rows of {model} over the {split}")
        rows = rows[rows["step"] == rows["step"].max()]
        first = next(probe for probe in study.probes if probe in set(rows["probe"]))
        data.append(rows[rows["probe"] == first].sort_values("n"))
    data = pd.concat(data, ignore_index=True).rename(columns={"metric": "entry", "value": "probability", "n": "rank"})
    data["label"] = data["model"].map(labels)
    data = data[["model", "label", "step", "task", "split", "rank", "entry", "probability"]]

    figure = style.new_figure(style.FULL, 0.9 + 0.21 * data["rank"].max())
    looks = style.styles(data["label"])
    names = ("vocabulary", "latent properties")
    for index, (axes, split) in enumerate(zip(figure.subplots(1, 2), splits, strict=True)):
        rows = data[data["split"] == split]
        label = rows["label"].iloc[0]
        bars = axes.barh(range(len(rows)), rows["probability"], height=0.72, color=looks[label]["color"])
        axes.bar_label(bars, [_short(value) for value in rows["probability"]], padding=2, fontsize=7)
        axes.set_yticks(range(len(rows)), [_cut(entry) for entry in rows["entry"]], parse_math=False)
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlim(0, rows["probability"].max() * 1.18)
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axes.set_xlabel(f"Probability (all others: {_short(max(0.0, 1 - rows['probability'].sum()))})")
        style.panel_title(axes, f"{label}: {names[index]}", index)
    figure.suptitle(f"“{data['task'].iloc[0]}”", fontsize=9, parse_math=False)
    return figure, data


def _short(value):
    """Two significant digits below .1, two decimals above, never "0.00"."""
    return "< 0.001" if 0 < value < 0.001 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _cut(entry, width=38):
    return entry if len(entry) <= width else entry[: width - 1].rstrip(" ,") + "…"


# --- Figure 2 --------------------------------------------------------------


@style.paper
def figure2(scores, study: Study, labels, metrics, starts=None):
    """BLiMP accuracy per phenomenon: MLSM+MLM (y) against MLSM (x) at the end of pre-training."""
    title, (below, above) = panel_with(study, labels, *FIGURE2)
    cells = per_task(last_steps(select(scores, [below, above], tasks_of(study, "blimp"), metrics)))
    data = _paired(cells, below, above)
    data.insert(0, "row", data["task"].map(task_names(data["task"])))
    data.insert(0, "panel", title)
    data = data.sort_values("row", ignore_index=True)[["panel", "row", "task", "x_model", "y_model", "x", "y", "n"]]

    figure = style.new_figure(5.2, 5.0)
    axes = figure.subplots()
    low = np.floor(min(data["x"].min(), data["y"].min(), 0.45) * 10 - 0.5) / 10
    limits = (max(low, 0) - 0.01, 1.04)  # room for labels above the best phenomena
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    _diagonal(axes, limits)
    axes.axhline(0.5, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    axes.axvline(0.5, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    axes.plot(data["x"], data["y"], linestyle="", marker="o", markersize=4.5, color="#0072B2", zorder=3)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(0.1))
    axes.set_xlabel(f"Accuracy of {labels[below]}")
    axes.set_ylabel(f"Accuracy of {labels[above]}")
    higher = int((data["y"] > data["x"]).sum())
    axes.set_title(f"{title}: {higher} of {len(data)} phenomena above the diagonal")
    axes.annotate("chance", (limits[1], 0.5), (-1, 2), textcoords="offset points", ha="right", fontsize=7, color="0.4")
    ends = ((limits[0], limits[0]), (limits[1], limits[1]))
    chance = (((limits[0], 0.5), (limits[1], 0.5)), ((0.5, limits[0]), (0.5, limits[1])))
    place_labels(figure, axes, data["x"], data["y"], data["row"], marker=5.5, lines=(ends, *chance))
    return figure, data


def _paired(cells, x_model, y_model):
    """Tasks that both models were measured on: task, base, x_model, y_model, x, y, x_std, y_std, seeds, n."""
    keep = ["task", "base", "step", "value", "std", "seeds", "n"]
    x = cells.loc[cells["model"] == x_model, keep]
    y = cells.loc[cells["model"] == y_model, keep]
    both = x.merge(y, on=["task", "base"], suffixes=("_x", "_y"))
    if both.empty:
        raise MaskLabError(f"scores: {x_model} and {y_model} were measured on no common task")
    return pd.DataFrame(
        {
            "task": both["task"],
            "base": both["base"],
            "x_model": x_model,
            "y_model": y_model,
            "x": both["value_x"],
            "y": both["value_y"],
            "x_std": both["std_x"],
            "y_std": both["std_y"],
            "seeds": both[["seeds_x", "seeds_y"]].min(axis=1),
            "n": both["n_y"],
        }
    )


def _diagonal(axes, limits):
    axes.plot(limits, limits, color=style.GREY, linewidth=0.8, zorder=1, label="_diagonal")


# --- Figures 3, 4 and 5 ----------------------------------------------------


@style.paper
def figure3(scores, study: Study, labels, metrics, starts=None):
    """Mean BLiMP accuracy against the updates of phase 2."""
    return _curves(scores, study, labels, metrics, starts, tasks_of(study, "blimp"), "accuracy", "phenomena")


@style.paper
def figure4(scores, study: Study, labels, metrics, starts=None):
    """Mean (Super)GLUE score against the updates of phase 2, with the standard deviation over fine-tuning seeds."""
    return _curves(scores, study, labels, metrics, starts, tasks_of(study, "glue"), "score", "tasks")


@style.paper
def figure5(scores, study: Study, labels, metrics, starts=None):
    """Mean MSGS Matthews correlation against the updates of phase 2, with the deviation over fine-tuning seeds."""
    tasks = tasks_of(study, "msgs-control", "msgs-ambiguous")
    return _curves(scores, study, labels, metrics, starts, tasks, "MCC", "tasks")


def _curves(scores, study, labels, metrics, starts, tasks, quantity, unit):
    """`starts`: panel -> "model@step" of phase 1, drawn as a dotted line from x = 0 where it was measured."""
    rows = select(scores, list(labels), tasks, metrics)
    means = average(rows)
    parts = []
    for title, members in study.members.items():
        start, _, step = (starts or {}).get(title, "").rpartition("@")
        first = means[(means["model"] == start) & (means["step"] == int(step or 0))]
        parts.append(first.assign(panel=title, label="start (phase 1)", updates=0))
        for name in members:
            parts.append(means[means["model"] == name].assign(panel=title, label=labels[name], updates=means["step"]))
    data = pd.concat(parts, ignore_index=True).dropna(subset=["value"])
    if data.empty:
        raise MaskLabError(f"scores: no checkpoint of any panel was measured on all of {', '.join(tasks)}")
    columns = ["panel", "label", "model", "step", "updates", "value", "std", "low", "high", "seeds", "n", "tasks"]
    data = data[columns].astype({"updates": "int64"})

    titles = [title for title in study.panels if title in set(data["panel"])]
    across = min(len(titles), 2)
    down = -(-len(titles) // across)
    figure = style.new_figure(style.FULL if across == 2 else style.COLUMN, 2.3 * down)
    grid = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    looks = style.styles(labels[name] for members in study.members.values() for name in members)
    handles = {}
    for index, (axes, title) in enumerate(zip(grid, titles, strict=False)):
        part = data[data["panel"] == title]
        handles |= _draw_curves(figure, axes, part, looks)
        style.panel_title(axes, title, index if len(titles) > 1 else None)
        axes.set_xlabel("Additional updates in phase 2")
    for axes in grid[len(titles) :]:
        axes.remove()
    interval = "\n(± std over seeds)" if data["low"].notna().any() else ""
    low, high = data[["value", "low"]].min(axis=None), data[["value", "high"]].max(axis=None)
    room = 0.06 * (high - low) or 0.05
    grid[0].set_ylim(low - room, high + room)
    for axes in grid[: len(titles) : across]:
        axes.set_ylabel(f"Mean {quantity}, {data['tasks'].max()} {unit}{interval}")
    ordered = [label for label in [*looks, "start (phase 1)"] if label in handles]
    style.legend_below(figure, [handles[label] for label in ordered], ordered, handlelength=3)
    return figure, data


def _draw_curves(figure, axes, part, looks):
    """Draw one panel; returns label -> legend handle."""
    handles = {}
    curves = [(label, rows) for label, rows in part.groupby("label", sort=False) if label in looks]
    bars = part["low"].notna().any()
    for index, (label, rows) in enumerate(curves):
        # Bars at the same step are set side by side, in points, so that the data stay exact.
        shift = 2.2 * (index - (len(curves) - 1) / 2) / 72 if bars else 0.0
        moved = axes.transData + ScaledTranslation(shift, 0, figure.dpi_scale_trans)
        rows = rows.sort_values("updates")
        if rows["low"].notna().any():
            error = np.array([rows["value"] - rows["low"], rows["high"] - rows["value"]])
            axes.errorbar(
                rows["updates"],
                rows["value"],
                np.nan_to_num(error),
                fmt="none",
                ecolor=looks[label]["color"],
                elinewidth=0.8,
                transform=moved,
            )
        (handles[label],) = axes.plot(rows["updates"], rows["value"], transform=moved, label=label, **looks[label])
    for row in part[part["label"] == "start (phase 1)"].itertuples():
        axes.axhline(row.value, color="0.4", linestyle=(0, (1, 2)), linewidth=1, zorder=1)
        (handles[row.label],) = axes.plot(
            [0], [row.value], color="0.4", marker="*", markersize=7, linestyle=(0, (1, 2)), linewidth=1, label=row.label
        )
    steps = sorted(part["updates"].unique())
    axes.set_xlim(-0.04 * steps[-1], 1.06 * steps[-1])
    if len(steps) <= 7:
        axes.set_xticks(sorted({0, *steps}))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _thousands(x)))
    axes.yaxis.set_major_locator(MaxNLocator(6))
    return handles


def _thousands(x):
    return f"{x / 1000:g}k" if x >= 10_000 else f"{x:g}"


# --- Figure 6 --------------------------------------------------------------


@style.paper
def figure6(scores, study: Study, labels, metrics, starts=None):
    """MSGS per task: MLSM+MLM (y) against others (x); squares control, circles ambiguous, bars std over seeds."""
    pairs = versus(study, labels)
    names = control_names(study)
    models = list(dict.fromkeys(name for _, other, joint in pairs for name in (other, joint)))
    cells = per_task(last_steps(select(scores, models, list(names), metrics)))
    control = set(study.sets["msgs-control"])
    numbers = {task: index for index, task in enumerate(names, start=1)}
    data = pd.concat([_paired(cells, x, y).assign(panel=title) for title, x, y in pairs], ignore_index=True)
    data = data.assign(
        row=data["task"].map(names),
        kind=np.where(data["task"].isin(control), "control", "ambiguous"),
        number=data["task"].map(numbers),
    )
    order = ["panel", "number", "row", "task", "kind", "x_model", "y_model", "x", "y", "x_std", "y_std", "seeds", "n"]
    data = data[order]

    titles = list(dict.fromkeys(title for title, _, _ in pairs))
    columns = [[pair for pair in pairs if pair[0] == title] for title in titles]
    if len(columns) == 1:
        columns = [pairs[0::2], pairs[1::2]] if len(pairs) > 1 else [pairs]
    down, across = max(map(len, columns)), len(columns)
    side = (style.FULL if across > 1 else style.COLUMN) / across
    figure = style.new_figure(side * across, down * (side + 0.03))
    grid = figure.subplots(down, across, squeeze=False)
    drawn = []
    for i, j in np.ndindex(down, across):
        if i < len(columns[j]):
            drawn.append((grid[i, j], *columns[j][i]))
        else:
            grid[i, j].remove()
    for index, (axes, title, x, y) in enumerate(drawn):
        part = data[(data["panel"] == title) & (data["x_model"] == x) & (data["y_model"] == y)]
        _draw_versus(axes, part)
        axes.set_xlabel(f"Matthews correlation of {labels[x]}")
        axes.set_ylabel(f"Matthews correlation of {labels[y]}")
        style.panel_title(axes, title, index if len(drawn) > 1 else None)
    handles = [_marker(task in control) for task in names]
    texts = [f"{numbers[task]}  {name}" for task, name in names.items()]
    style.legend_below(figure, handles, texts, handletextpad=0.3)
    for axes, title, x, y in drawn:
        part = data[(data["panel"] == title) & (data["x_model"] == x) & (data["y_model"] == y)]
        lines = [((_MCC[0], _MCC[0]), (_MCC[1], _MCC[1])), *_bars(part)]
        place_labels(figure, axes, part["x"], part["y"], part["number"].astype(str), marker=5, lines=lines)
    return figure, data


_MCC = (-1.08, 1.08)


def _bars(part):
    """The error bars as segments."""
    part = part.fillna({"x_std": 0.0, "y_std": 0.0})
    for row in part.itertuples():
        yield (row.x - row.x_std, row.y), (row.x + row.x_std, row.y)
        yield (row.x, row.y - row.y_std), (row.x, row.y + row.y_std)


def _marker(control):
    return Line2D([], [], linestyle="", markersize=5, **(style.CONTROL if control else style.AMBIGUOUS))


def _draw_versus(axes, part):
    axes.set(xlim=_MCC, ylim=_MCC, aspect="equal")
    axes.plot(_MCC, _MCC, color=style.GREY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1, label="_diagonal")
    for line in (axes.axhline, axes.axvline):
        line(0, color="0.85", linewidth=0.6, zorder=0)
    for kind, look in (("control", style.CONTROL), ("ambiguous", style.AMBIGUOUS)):
        rows = part[part["kind"] == kind]
        axes.errorbar(
            rows["x"],
            rows["y"],
            xerr=rows["x_std"].fillna(0),
            yerr=rows["y_std"].fillna(0),
            linestyle="",
            markersize=4.5,
            elinewidth=0.7,
            zorder=3,
            label=kind,
            **look,
        )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(0.5))
