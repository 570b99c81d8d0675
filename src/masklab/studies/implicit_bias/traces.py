"""Figures 3, 5 and 10: the trace of the Hessian beside losses and accuracies. Marks are as in `figures`."""

import math
import textwrap

import numpy as np
from matplotlib.colors import to_rgba

from masklab.claims.effects import Correlation
from masklab.claims.values import effect_estimate
from masklab.report import levels, style
from masklab.report.marks import band, hollow, key, limits, step_axis
from masklab.report.point_labels import are_apart, place_labels
from masklab.scores.estimate import MISSING, Estimate
from masklab.studies.implicit_bias.figures import (
    ABOVE,
    ACCURACY,
    COLORS,
    SCORES,
    THIN,
    columns_of,
    finish,
    highest_levels,
    name_of,
    points,
    ticks,
    title_of,
)

TRACE = "Trace of the Hessian"
NAMED = 8  # points of a panel that all have their names, if none covers another


def figure3(results, chosen):
    """Trace of the Hessian, loss and accuracy against the updates of SGD."""
    return _against_sgd(results, chosen, "sgd")


def figure10(results, chosen):
    """Figure 3 for the other tasks."""
    return _against_sgd(results, chosen, "more sgd")


def _against_sgd(results, chosen, place):
    columns = columns_of(results, chosen, place)
    figure, grid = style.grid(3, len(columns), 4.1)
    data, drawn = [], []
    for index, (kind, task, title) in enumerate(columns):
        recipe, look = next(iter(chosen[kind])), {"color": COLORS[kind], "marker": "o"}
        for axes, what, name in zip(grid[:, index], ("trace", "gap", task), (TRACE, ABOVE, ACCURACY), strict=True):
            frame = points(results, chosen[kind], what, together=True)
            # what it starts from is at 0 updates of SGD
            frame = frame.assign(step=frame["step"].where(frame["recipe"] == recipe, 0)).sort_values("step")
            band(axes, frame, look, x="step")
            before = frame[~frame["converged"]]
            hollow(axes, before["step"], before["value"], look)
            step_axis(axes, frame["step"], name="Updates of SGD" if what == task else "")
            ticks(axes.yaxis, 4)
            if what == task:
                drawn.append(highest_levels(frame))
                levels.draw(axes, drawn[-1])
                limits(axes, [frame], drawn[-1:], **SCORES)
            else:
                limits(axes, [frame], least=0)
            if index == 0:
                axes.set_ylabel(textwrap.fill(name, 16))
            data.append(frame)
        title_of(grid[0, index], f"{title}\n({name_of(frame.iloc[-1])})", index, len(columns))
    return finish(figure, results, data, {}, drawn, "the lowest loss", "band")


def figure5(results, chosen):
    """Accuracy against the trace of the Hessian, one point per size, with the regression over those at equal loss.

    The correlation is that of the sizes at equal loss within a replicate; its interval is over replicates.
    """
    return _against_trace(results, chosen, "trace", TRACE)


def figure5_embedded(results, chosen):
    """Figure 5 with the traces of the models grown to one width."""
    return _against_trace(results, chosen, "trace_embedded", "Trace, grown to one width")


def _against_trace(results, chosen, metric, name):
    columns = columns_of(results, chosen, "sizes")
    figure, grid = style.grid(1, len(columns), 2.5)
    data, drawn, placed = [], [], []
    for axes, (kind, task, title) in zip(grid[0], columns, strict=True):
        look = {"color": COLORS[kind], "marker": "o"}
        both = cross(axes, points(results, chosen[kind], task), points(results, chosen[kind], metric), look)
        slope, start = regression(both[both["equal"]])
        r = correlated(results, [chosen[kind][name] for name in both.loc[both["equal"], "recipe"]], task, metric)
        ends = both.loc[both["equal"], "value_trace"].agg(["min", "max"]).to_numpy()
        lines = [tuple((x, start + slope * x) for x in ends)] if np.isfinite(slope) else []
        for line in lines:
            axes.plot(*zip(*line, strict=True), zorder=5, label="_regression", **THIN)  # marks in a crowd would hide it
        title_of(axes, title, len(placed), len(columns))
        drawn.append(highest_levels(both))
        levels.draw(axes, drawn[-1])
        axes.set_xlabel(f"{name}\n{_r(r, both['equal'].sum())}")
        axes.margins(0.14)
        limits(axes, [both], drawn[-1:], **SCORES)
        ticks(axes.xaxis, 4)
        ticks(axes.yaxis)
        level = [tuple((x, each) for x in axes.get_xlim()) for each in drawn[-1].shown()]
        placed.append((axes, both, [*lines, *level, *_crosses(both)]))
        data.append(both.assign(slope=slope, intercept=start, r=r.value, r_low=r.low, r_high=r.high))
    grid[0, 0].set_ylabel(ACCURACY)
    fitted = any(frame["slope"].notna().any() for frame in data)
    handles = dict([key("regression at equal loss", **THIN)]) if fitted else {}
    drawn = finish(figure, results, data, handles, drawn, "the lowest loss, in the regression")
    for axes, both, lines in placed:
        between = both[both["equal"]].iloc[1:-1]
        if len(both) <= NAMED and are_apart(figure, axes, both["value_trace"], both["value"]):
            between = between[:0]  # else their names would lie on each other, or their leaders across marks
        named = both.drop(between.index)
        names, others = [name_of(row) for _, row in named.iterrows()], between[["value_trace", "value"]].to_numpy()
        place_labels(figure, axes, named["value_trace"], named["value"], names, lines=lines, others=others)
    return drawn


def cross(axes, frame, traces, look):
    """Points of accuracies against traces with both intervals, hollow off the lowest loss; the frame of both."""
    traces = traces.set_index("recipe").loc[frame["recipe"]]
    both = frame.assign(**{f"{part}_trace": traces[part].to_numpy() for part in ("value", "low", "high")})
    arms = {f"{axis}err": _arms(both, end) for axis, end in (("x", "_trace"), ("y", ""))}
    pale = {"ecolor": to_rgba(look["color"], 0.45), "elinewidth": 0.9}  # so that text may cross them
    axes.errorbar(both["value_trace"], both["value"], **arms, linestyle="", markersize=5, **pale, **look)
    apart = both[~both["equal"]]
    hollow(axes, apart["value_trace"], apart["value"], look)
    return both


def _crosses(frame):
    """The bars of every point as segments that labels keep clear of."""
    for row in frame.dropna(subset=["low", "low_trace"]).itertuples():
        yield (row.low_trace, row.value), (row.high_trace, row.value)
        yield (row.value_trace, row.low), (row.value_trace, row.high)


def _arms(frame, end):
    values = frame[f"value{end}"]
    return np.nan_to_num(np.stack([values - frame[f"low{end}"], frame[f"high{end}"] - values]))


def regression(rows) -> tuple[float, float]:
    """(slope, intercept) of mean accuracy on mean trace; NaN below three recipes."""
    if len(rows) < 3 or np.ptp(rows["value_trace"]) == 0:
        return math.nan, math.nan
    slope, start = np.polyfit(rows["value_trace"], rows["value"], 1)
    return float(slope), float(start)


def correlated(results, members, task, metric) -> Estimate:
    """Correlation over recipes of their accuracy with their trace, in each replicate; `MISSING` below three recipes."""
    if len(members) < 3:
        return MISSING
    sides = (tuple(own[what] for own in members) for what in (task, metric))
    return effect_estimate(Correlation(*sides), results)


def _r(r, sizes) -> str:
    """A correlation in words."""
    if not r.replicates:
        return "r: too few sizes at equal loss"
    interval = f" [{r.low:.2f}, {r.high:.2f}]" if r.replicates > 1 else ""
    return f"r = {r.value:.2f}{interval}, {sizes} sizes"
