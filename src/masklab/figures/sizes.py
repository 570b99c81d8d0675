"""What figures about models of several sizes share: which corpora they show, colours, marks, parameter counts."""

import itertools
import math

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from masklab.config.schema import Study
from masklab.figures.saturation import CORPORA

COLORS = {"pcfg": "#0072B2", "hmm": "#D55E00", "causal": "#009E73"}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "h")
TRACE = "Trace of the Hessian"


def title(study: Study, panel: str, tasks: str) -> str:
    """ "pcfg-sgd", "pcfg-b" -> "PCFG, task B"; otherwise by what the tasks are called after their last dash."""
    corpus, _, task = tasks.partition("-")
    names = " and ".join(name.rpartition("-")[2] for name in study.sets[tasks])
    said = {"pcfg": f"task {task.upper()}", "hmm": f"task-{names}"}.get(corpus, names)
    return f"{CORPORA[panel.split('-')[0]]}, {said}"


def count(parameters: float) -> str:
    """Parameters in three digits at most: 850, 12K, 2.1M, 235M."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if parameters >= size * 0.9995:
            return f"{parameters / size:.3g}{unit}"
    return f"{parameters:g}"


def name(row) -> str:
    """A model in a legend: its parameters, or its label where they were not measured."""
    return row.label if math.isnan(row.parameters) or not row.parameters else count(row.parameters)


def looks(labels) -> dict[str, dict]:
    """Label -> colour and marker, dark to light from small to large (viridis without its palest end)."""
    labels = list(dict.fromkeys(labels))
    shades = matplotlib.colormaps["viridis"](np.linspace(0, 0.85, len(labels)))
    marks = itertools.cycle(MARKERS)
    return {label: {"color": shade, "marker": next(marks)} for label, shade in zip(labels, shades, strict=True)}


def size_axis(axes, frame: pd.DataFrame, room: float = 0.22) -> None:
    """A log axis of parameters; counts are ticks at the models drawn that lie `room` of its span apart."""
    values = np.sort(frame["parameters"].dropna().unique())
    axes.set_xscale("log")
    axes.set_xlabel("Parameters")
    span, kept = math.log(values[-1] / values[0]) or 1.0, [values[-1]]
    for value in values[-2::-1]:
        if math.log(kept[-1] / value) > room * span:
            kept.append(value)
    axes.set_xticks(kept[::-1], [count(value) for value in kept[::-1]])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(values[0] / math.exp(0.06 * span), values[-1] * math.exp(0.06 * span))


def step_axis(axes, steps, log: bool = True) -> None:
    """Updates on a log axis, or a linear one."""
    axes.set_xlabel("Updates")
    formatter = FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}")
    if log:
        steps = np.unique([step for step in steps if step > 0])
        axes.set_xscale("log")
        span, kept = math.log(steps[-1] / steps[0]) or 1.0, [steps[-1]]
        for value in steps[-2::-1]:
            if math.log(kept[-1] / value) > 0.14 * span:
                kept.append(value)
        axes.set_xticks(kept[::-1])
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(formatter)


def plain_log(axis) -> None:
    """A log axis with plain numbers at 1, 2 and 5 times the powers of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_locator(NullLocator())


def bars(axes, x, frame: pd.DataFrame, **look):
    """Values against x with their intervals as bars where they have any; returns the line."""
    (line,) = axes.plot(x, frame["value"], **look)
    known = frame["low"].notna().to_numpy()
    if known.any():
        low, high = frame["low"].to_numpy()[known], frame["high"].to_numpy()[known]
        color = look.get("color")
        axes.vlines(np.asarray(x)[known], low, high, color=color, linewidth=0.9, zorder=2)
    return line


def hollow(axes, x, y, look) -> None:
    """Points before convergence, or of models at another loss: the marker with a white face, over the line."""
    axes.plot(
        x,
        y,
        linestyle="",
        marker=look["marker"],
        color=look["color"],
        markerfacecolor="white",
        zorder=4,
        label="_hollow",
    )


def key(text: str, **look) -> tuple[str, Line2D]:
    """A legend entry."""
    return text, Line2D([], [], **look)
