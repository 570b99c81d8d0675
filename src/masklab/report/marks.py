"""What curves and points of all figures share: bands, bars, nulls, axes of sizes and steps."""

import math
import textwrap
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from masklab.report import levels, notes, style
from masklab.report.cells import named
from masklab.scores.results import Results

SPAN = 0.2  # least range of an axis of scores: less is a look at noise
BANDS = 3  # curves of which each still has a band; more of them have bars side by side
POINTS = 3  # of a curve that has a band: between two there is nothing to see, and of one a band has no width
APART = 2.2  # points between the bars of two curves at one place
CROWD = 6  # curves of a panel; the bars of more of them lie closer, in the room of as many
LOG = " (log scale)"
BESIDE = "marks at one x are drawn side by side"


def band(axes, frame, look, name=None, x="x", aside_by: float = 0.0):
    """A curve of `Results.summary` with its interval as a band, one of few points with bars; returns the line.

    aside_by: by how many points bars are moved to the right.
    """
    frame, look = frame.sort_values(x), {"label": name} | look
    if len(frame) < POINTS:
        return bars(axes, frame[x], frame, aside_by, **look)
    (line,) = axes.plot(frame[x], frame["value"], **look)
    known = frame.dropna(subset=["low"])
    if len(known):
        axes.fill_between(known[x], known["low"], known["high"], color=look["color"], alpha=0.15, linewidth=0)
    return line


def kind_of(results: Results, panels) -> str:
    """How intervals of a figure are drawn whose panels have these curves: "band", or "bar" of many or of short ones.

    Points count that are drawn: a set of tasks may be measured whole at few of the steps at which some of it is.
    """
    panels = [list(readings) for readings in panels]
    points = [_points(results, reading, results.shared(each)) for each in panels for reading in each]
    return "band" if max(map(len, panels)) <= BANDS and min(points) >= POINTS else "bar"


def _points(results, reading, shared) -> int:
    """How many points a curve has over these replicates, of those that it has (None: all)."""
    measured = results.values(reading)
    there = [each for each in measured.replicates if shared is None or each in shared]
    return int(np.isfinite(measured.at(there).data[:, :, 0]).all(0).sum()) if there else 0


def curves(
    axes, results: Results, readings: dict, looks: dict, kind=None, shared=None
) -> tuple[pd.DataFrame, levels.Levels]:
    """Curves by label with their intervals, the majority and the best null as lines, room for all of it.

    Of curves over training sizes the best null is one at each size, and the line is bent.

    All are over the replicates that all readings have, where there are such: each may have a language of its own.
    Returns (the data drawn, those levels). readings: label -> curve; looks: label -> style; kind: how intervals are
    drawn, "band" or "bar", those of one place side by side; None: as `kind_of` says. shared: over these replicates, of
    those that all readings have.
    """
    shared, how = shared or results.shared(readings.values()), kind or kind_of(results, [readings.values()])
    frames = [
        results.summary(reading, shared).assign(label=label, recipe=reading.recipe)
        for label, reading in readings.items()
    ]
    own = levels.levels(results, readings.values(), shared)
    data = pd.concat(frames, ignore_index=True).assign(**own.columns())
    count = len(frames) if meet(data) else 1
    for number, (label, frame) in enumerate(zip(readings, frames, strict=True)):
        curve(axes, frame, looks[label] | {"label": label}, how, (number if count > 1 else 0, count))
    if nulls := levels.by_size(results, readings.values(), shared):
        own = replace(own, kind=", ".join(dict.fromkeys(each.kind for each in nulls.values())))
        for column in ("null", "null_kind"):
            data[column] = [nulls[x].columns()[column] if x in nulls else data[column][0] for x in data["x"]]
        axes.plot(list(nulls), [each.null for each in nulls.values()], zorder=1, label="_level", **style.NULL)
    levels.draw(axes, replace(own, null=math.nan) if nulls else own)
    score_limits(axes, results, readings.values(), frames, [own, *nulls.values()])
    return data, own


def meet(data) -> bool:
    """Whether two curves have points at one x, so that their bars would lie on each other."""
    return bool((data.groupby("x")["label"].nunique() > 1).any())


def curve(axes, frame, look, kind: str, place: tuple[int, int], x="x"):
    """A curve with its intervals as `kind` says; place: which of how many it is, of which bars lie side by side."""
    number, count = place
    aside_by = (number - (count - 1) / 2) * apart(count)
    if kind == "band":
        return band(axes, frame, look, x=x, aside_by=aside_by)
    frame = frame.sort_values(x)
    return bars(axes, frame[x], frame, aside_by, **look)


def apart(count: int) -> float:
    """Points between the bars of two of so many curves at one place."""
    return APART * min(1, CROWD / count)


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


def note(frames, what: str = "test items", beside: bool = False) -> str:
    """How many replicates and items stand behind what is drawn, and what the intervals are.

    what: what n counts; "": nothing that a reader could count. beside: whether curves were moved aside.
    """
    frames = list(frames)
    counts = {count for frame in frames for count in frame["replicates"]}
    said = notes.interval(counts, any(frame["items"].any() for frame in frames), "mean with its 95 % interval")
    numbers = notes.amount({n for frame in frames if "n" in frame for n in frame["n"]}, what) if what else ""
    said += f"; n = {numbers}" if numbers else ""
    return f"{said}; {BESIDE}" if beside else said


def interval_key(frames, *kinds: str) -> dict:
    """Legend entry of the intervals of a figure, drawn as "band", "bar" or both; {} of single replicates."""
    if not any(frame["low"].notna().any() for frame in frames):
        return {}
    bar = Line2D([], [], color="0.25", linestyle="", marker="|", markersize=8)
    if len(set(kinds)) > 1:
        return {"95 % interval (band or bar)": style.patch("0.5", 0.3)}
    return {"95 % interval": style.patch("0.5", 0.3) if "band" in kinds else bar}


def by_label(lines, labels) -> dict[str, Line2D]:
    """Label -> the first line that has it: what is drawn after the curves, as a level is, may be called like one."""
    found = {}
    for line in lines:
        if (label := line.get_label()) in labels:
            found.setdefault(label, line)
    return found


def explain(figure, results: Results, readings: dict, data, own: levels.Levels, what: str = "test items") -> None:
    """What a figure of `curves` shows, below it: a key to curves, intervals and levels, and how many replicates.

    readings: label -> curve; data, own: what `curves` gave of them; what: what n counts. Call it last.
    """
    kind, lines = kind_of(results, [readings.values()]), [line for axes in figure.axes for line in axes.get_lines()]
    rest = interval_key([data], kind) | levels.keys([own])
    style.legend_of(figure, by_label(lines, readings), rest, handlelength=3)
    write_note(figure, note([data], what, beside=kind == "bar" and meet(data)))


def write_note(figure, text: str) -> None:
    """Small print at the foot, above the legend if there is one; the figure grows by its lines. Call it last."""
    width, height = figure.get_size_inches()
    text = textwrap.fill(text, int(19 * width))  # characters of 7 points
    figure.set_size_inches(width, height + 0.06 + 0.12 * len(text.splitlines()))
    if figure.legends:
        figure.legends[-1].set_title(text, {"size": 7})
    else:
        figure.supxlabel(text, fontsize=7)


def limits(axes, frames, at=(), least: float | None = None, most: float | None = None, span: float = 0.0) -> None:
    """Room for values, intervals and the levels `at`, within `least` and `most`, over a range of at least `span`."""
    values = np.concatenate([frame[["value", "low", "high"]].to_numpy().ravel() for frame in frames])
    values = np.append(values[np.isfinite(values)], levels.known(at))
    low, high = values.min(), values.max()
    room = max(0.06 * (high - low) or 0.05, (span - (high - low)) / 2)
    low, high = low - room, high + room
    low, high = low if least is None else max(low, least), high if most is None else min(high, most)
    if high - low < span:  # against a limit: the room that lacks there is given at the other end
        low, high = (low, low + span) if low == least else (high - span, high)
    axes.set_ylim(low, high)


def score_limits(axes, results: Results, readings, frames, at=()) -> None:
    """Room for scores and the levels `at`, over a range of at least `SPAN` and within what they can be.

    Of a metric without limits, one of your own, room for what is drawn.
    """
    known = [results.limits(reading) for reading in readings]
    least, most = min(low for low, _ in known), max(high for _, high in known)
    ends = {"least": least - 0.02, "most": most + 0.02, "span": SPAN} if math.isfinite(most - least) else {}
    limits(axes, frames, at, **ends)


def measured(results: Results, readings) -> str:
    """What an axis of readings shows: their metric, or of a mean over tasks of several which it is of."""
    metrics = sorted({named(metric.replace("_", " ")) for each in readings for metric in each.metrics(results.view)})
    if unit(results, readings) != "score" or len(metrics) < 2:
        return unit(results, readings)
    metrics = [metric.replace(" ", "\N{NO-BREAK SPACE}") for metric in metrics]
    return textwrap.fill(f"mean of {', '.join(metrics[:-1])} and {metrics[-1]}", 24)


def unit(results: Results, readings) -> str:
    """What readings are measured in, as an axis says it: "score" where that differs."""
    names = {named(reading.unit(results.view)) for reading in readings}
    return names.pop() if len(names) == 1 else "score"


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
    axes.set_xlim(0, 1.06 * max(costs))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 10 ** max(power, 0):g}"))


def size_axis(axes, parameters, marked: float | None = None) -> None:
    """A log axis of parameter counts; ticks at models drawn that lie 0.22 of its span apart, first at `marked`."""
    values = np.unique(np.asarray(parameters, float))
    axes.set_xscale("log")
    axes.set_xlabel(f"Parameters{LOG}")
    span, kept = _apart(values, 0.22, marked)
    axes.set_xticks(kept, [count(value) for value in kept])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlim(values[0] / math.exp(0.06 * span), values[-1] * math.exp(0.06 * span))


def step_axis(axes, steps, log: bool = False, name: str = "Updates") -> None:
    """Updates, on a log axis or a linear one."""
    axes.set_xlabel(name + LOG if log else name)
    if log:
        axes.set_xscale("log")
        _, kept = _apart(np.unique([step for step in steps if step > 0]), 0.14)
        axes.set_xticks(kept)
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}"))


def _apart(values, room, marked=None):
    """(span of the logarithms, values that lie `room` of it apart), the largest always, `marked` before the others."""
    span, kept = math.log(values[-1] / values[0]) or 1.0, [values[-1]]
    for value in ([] if marked is None else [marked]) + list(values[-2::-1]):
        if all(abs(math.log(other / value)) > room * span for other in kept):
            kept.append(value)
    return span, sorted(kept)


def examples_axis(axes, sizes) -> None:
    """Numbers of examples: a log axis where they grow by a factor, a linear one where they grow by an amount."""
    sizes = np.asarray(sizes, float)
    axes.set_xlabel(f"Fine-tuning examples{scale_of(sizes)}")
    if geometric(sizes):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    every = -(-len(sizes) // 6) or 1  # of axes in which nothing was measured
    axes.xaxis.set_major_locator(FixedLocator(sizes[::-1][::every][::-1]))
    short = sizes.max(initial=0) >= 10_000  # all alike: 4k, 16k
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if short and x >= 1000 else f"{x:,.0f}"))


def scale_of(sizes) -> str:
    """What the label of an `examples_axis` ends with."""
    return LOG if geometric(sizes) else ""


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
