"""What curves and points of all figures share: bands, bars, nulls, axes of sizes and steps."""

import math
import textwrap
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from masklab.report import style
from masklab.report.cells import NAMES
from masklab.scores.results import Results

SPAN = 0.1  # least range of an axis of scores: less is a look at noise


@dataclass(frozen=True)
class Null:
    """What nothing learned gives: kind of null, its mean over replicates, and the recipe that it is a null of."""

    kind: str
    value: float
    recipe: str


def best_null(results: Results, readings) -> Null | None:
    """The highest of the nulls of several readings, each the mean over replicates and the points of its curve."""
    nulls = []
    for reading in readings:
        for kind, values in results.nulls(reading).items():
            value = float(values.data[:, :, 0].mean())
            if math.isfinite(value):
                nulls.append(Null(kind, value, reading.recipe))
    return max(nulls, key=lambda null: null.value, default=None)


def null_line(axes, null: Null | None):
    """A dashed line at a null, to be named in the legend; None where there is none."""
    if null is None:
        return None
    return axes.axhline(null.value, zorder=1, label=f"_null {null.kind}", **style.NULL)


def null_key(nulls) -> dict[str, Line2D]:
    """Legend entry of the dashed lines of a figure: which nulls they are."""
    kinds = list(dict.fromkeys(null.kind for null in nulls if null is not None))
    return {f"best null ({', '.join(kinds)})": Line2D([], [], **style.NULL)} if kinds else {}


def band(axes, frame, look, name=None, x="x"):
    """A curve of `Results.summary` with its interval as a band; returns the line."""
    frame = frame.sort_values(x)
    (line,) = axes.plot(frame[x], frame["value"], label=name, **look)
    known = frame.dropna(subset=["low"])
    if len(known):
        axes.fill_between(known[x], known["low"], known["high"], color=look["color"], alpha=0.15, linewidth=0)
    return line


def curves(axes, results: Results, readings: dict, looks: dict) -> tuple[pd.DataFrame, Null | None]:
    """Curves by label with bands, the best null as a line, room for all of it; returns (the data drawn, that null).

    readings: label -> curve; looks: label -> style.
    """
    frames = []
    for label, reading in readings.items():
        frame = results.summary(reading)
        band(axes, frame, looks[label], label)
        frames.append(frame.assign(label=label, recipe=reading.recipe))
    null = best_null(results, readings.values())
    null_line(axes, null)
    score_limits(axes, results, readings.values(), frames, [null])
    return pd.concat(frames, ignore_index=True).assign(null=math.nan if null is None else null.value), null


def aside(axes, points: float):
    """Where data lie, moved to the right by so many points: for intervals that would lie on each other."""
    return axes.transData + ScaledTranslation(points / 72, 0, axes.figure.dpi_scale_trans)


def bars(axes, x, frame, aside_by: float = 0.0, **look):
    """Points joined by a line, with their intervals as bars where they have any; returns the line.

    aside_by: by how many points all of it is moved to the right.
    """
    where = {"transform": aside(axes, aside_by)} if aside_by else {}
    (line,) = axes.plot(x, frame["value"], **look, **where)
    known = frame["low"].notna().to_numpy()
    if known.any():
        low, high = frame["low"].to_numpy()[known], frame["high"].to_numpy()[known]
        axes.vlines(np.asarray(x)[known], low, high, color=look.get("color"), linewidth=0.9, zorder=2, **where)
    if aside_by:  # of what is moved, matplotlib does not know
        for part in ("value", "low", "high"):
            axes.update_datalim(np.column_stack([x, frame[part].fillna(frame["value"])]))
        axes.autoscale_view()
    return line


def hollow(axes, x, y, look) -> None:
    """White faces over points that do not count as the others do."""
    axes.plot(x, y, linestyle="", marker=look["marker"], color=look["color"], markerfacecolor="white", zorder=4,
              label="_hollow")  # fmt: skip


def note(frames) -> str:
    """How many replicates stand behind what is drawn, and what the intervals are: "mean of 5 replicates, ..."."""
    counts = sorted({int(count) for frame in frames for count in frame["replicates"]})
    if counts == [1]:
        return "one replicate, no interval"
    how_many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    items = any(frame["items"].any() for frame in frames)
    return f"mean of {how_many} replicates, 95 % interval over replicates{' and test items' if items else ''}"


def write_note(figure, text: str) -> None:
    """Small print at the foot, above the legend if there is one; the figure grows by its lines. Call it last."""
    width, height = figure.get_size_inches()
    text = textwrap.fill(text, int(21 * width))  # characters of 7 points
    figure.set_size_inches(width, height + 0.06 + 0.12 * len(text.splitlines()))
    if figure.legends:
        figure.legends[-1].set_title(text, {"size": 7})
    else:
        figure.supxlabel(text, fontsize=7)


def limits(axes, frames, nulls=(), least: float | None = None, most: float | None = None, span: float = 0.0) -> None:
    """Room for values, intervals and nulls, within `least` and `most`, over a range of at least `span`."""
    values = np.concatenate([frame[["value", "low", "high"]].to_numpy().ravel() for frame in frames])
    values = np.append(values[np.isfinite(values)], [null.value for null in nulls if null is not None])
    room = max(0.06 * np.ptp(values) or 0.05, (span - np.ptp(values)) / 2)
    low, high = values.min() - room, values.max() + room
    axes.set_ylim(low if least is None else max(low, least), high if most is None else min(high, most))


def score_limits(axes, results: Results, readings, frames, nulls=()) -> None:
    """Room for scores, over a range of at least `SPAN` and within what they can be: intervals may be wider."""
    signed = {reading.unit(results.view) for reading in readings} & {"mcc", "pearson", "spearman", "score"}
    limits(axes, frames, nulls, least=-1.02 if signed else -0.02, most=1.02, span=SPAN)


def unit(results: Results, readings) -> str:
    """What readings are measured in, as an axis says it: "score" where that differs."""
    units = {reading.unit(results.view) for reading in readings}
    names = [NAMES.get(name, name) for name in units]
    return names[0] if len(names) == 1 else "score"


def count(number: float) -> str:
    """A number in three digits at most: 850, 12K, 2.1M, 235M."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if number >= size * 0.9995:
            return f"{number / size:.3g}{unit}"
    return f"{number:g}"


def cost_axis(axes, costs, name: str) -> None:
    """A linear axis of costs from 0, in thousands, millions, ... that its label names."""
    power = 3 * int(math.log10(max(costs)) // 3)
    axes.set_xlabel(f"{name} ($10^{{{power}}}$)" if power > 0 else name)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 10 ** max(power, 0):g}"))


def size_axis(axes, parameters, room: float = 0.22) -> None:
    """A log axis of parameter counts; ticks at the models drawn that lie `room` of its span apart."""
    values = np.unique(np.asarray(parameters, float))
    axes.set_xscale("log")
    axes.set_xlabel("Parameters")
    span, kept = _apart(values, room)
    axes.set_xticks(kept, [count(value) for value in kept])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(values[0] / math.exp(0.06 * span), values[-1] * math.exp(0.06 * span))


def step_axis(axes, steps, log: bool = False, name: str = "Updates") -> None:
    """Updates, on a log axis or a linear one."""
    axes.set_xlabel(name)
    if log:
        axes.set_xscale("log")
        _, kept = _apart(np.unique([step for step in steps if step > 0]), 0.14)
        axes.set_xticks(kept)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}"))


def _apart(values, room):
    """(span of the logarithms, values that lie `room` of it apart), the largest always."""
    span, kept = math.log(values[-1] / values[0]) or 1.0, [values[-1]]
    for value in values[-2::-1]:
        if math.log(kept[-1] / value) > room * span:
            kept.append(value)
    return span, kept[::-1]


def examples_axis(axes, sizes) -> None:
    """Numbers of examples: a log axis where they grow by a factor, a linear one where they grow by an amount."""
    sizes = np.asarray(sizes, float)
    if geometric(sizes):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    every = -(-len(sizes) // 6)
    axes.xaxis.set_major_locator(FixedLocator(sizes[::-1][::every][::-1]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 10_000 else f"{x:,.0f}"))


def geometric(sizes) -> bool:
    """Whether ascending sizes are nearer to a geometric than to an arithmetic sequence, by a factor of 3 or more."""
    if len(sizes) < 2 or sizes[-1] / sizes[0] < 3:
        return False
    if len(sizes) == 2:
        return True
    ratios, steps = np.diff(np.log(sizes)), np.diff(sizes)
    return bool(ratios.std() / ratios.mean() < steps.std() / steps.mean())


def plain_log(axis) -> None:
    """A log axis with plain numbers at 1, 2 and 5 times the powers of ten, at more of them where it is short."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 5 * low else (1, 1.5, 2, 3, 4, 5, 6, 8)))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_locator(NullLocator())


def key(text: str, **look) -> tuple[str, Line2D]:
    """A legend entry."""
    return text, Line2D([], [], **look)
