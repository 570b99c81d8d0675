"""Figures 1, 2, 3, 5, 9, 10 and 11 of Liu, Xie, Li and Ma (2023) from scores.

Each function reads score rows and returns (figure, data): `data` holds exactly what is drawn. Where the paper shows
one model, Figure 1 shows every size. Losses are drawn as what they lie above the exact entropy, on a log scale, since
that is what is left once they look flat. Full marks: after convergence, or at equal loss (`masklab.saturation`).
"""

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.figures import style
from masklab.figures.place import place_labels
from masklab.figures.saturation import BY_SIZE, BY_SIZE_MORE, BY_STEP, MASKS, SGD, SGD_MORE, columns
from masklab.figures.sizes import COLORS, TRACE, bars, hollow, key, looks, name, plain_log, size_axis, step_axis, title
from masklab.measured import last, points

ABOVE = "Loss above the entropy (nats)"
ACCURACY = "Linear-probe accuracy"
DASHED, DOTTED = (0, (4, 2)), (0, (1, 1.5))


@style.paper
def figure1(scores, study: Study, labels, metrics, starts=None):
    """Loss and accuracy against the updates of pre-training, every size: loss flat, accuracy rising."""
    pairs = columns(study, BY_STEP)
    figure, grid = _grid(2, len(pairs), 2.0)
    data = []
    for index, (panel, tasks) in enumerate(pairs):
        above, below = grid[:, index]
        gaps, accuracies = points(scores, study, panel, "gap"), points(scores, study, panel, "accuracy", tasks)
        data += [gaps, accuracies]
        shades = looks(gaps["label"])
        for axes, frame in ((above, gaps), (below, accuracies)):
            for label, curve in frame[frame["step"] > 0].groupby("label", sort=False):
                bars(axes, curve["step"], curve, **shades[label], label=name(curve.iloc[0]))
                before = curve[~curve["converged"]]
                hollow(axes, before["step"], before["value"], shades[label])
            step_axis(axes, frame["step"])
        above.set_yscale("log")
        plain_log(above.yaxis)
        above.set_xlabel("")
        style.panel_title(above, title(study, panel, tasks), index if len(pairs) > 1 else None)
        below.legend(title="parameters", loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=3, columnspacing=1)
    grid[0, 0].set_ylabel(ABOVE)
    grid[1, 0].set_ylabel(ACCURACY)
    _note(figure, "Filled: at most {:g} % above the lowest loss of the model", study)
    return figure, pd.concat(data, ignore_index=True)


@style.paper
def figure2(scores, study: Study, labels, metrics, starts=None):
    """Loss and accuracy at the end of pre-training against model size; dashed: where the loss saturates."""
    return _against_size(scores, study, BY_SIZE, loss=True)


@style.paper
def figure9(scores, study: Study, labels, metrics, starts=None):
    """Accuracy on the other tasks against model size."""
    return _against_size(scores, study, BY_SIZE_MORE, loss=False)


def _against_size(scores, study, wanted, loss):
    pairs = columns(study, wanted)
    rows = 2 if loss else 1
    figure, grid = _grid(rows, len(pairs), 1.8)
    data = []
    for index, (panel, tasks) in enumerate(pairs):
        accuracies = last(points(scores, study, panel, "accuracy", tasks))
        frames = [accuracies]
        if loss:
            losses = last(points(scores, study, panel, "gap"))  # its error is that of comparing losses
            floor = last(points(scores, study, panel, "floor"))["value"].mean()
            losses[["value", "low", "high"]] += floor
            frames = [losses.assign(metric="loss", floor=floor), accuracies]
            grid[0, index].axhline(floor, color="0.35", linewidth=0.9, linestyle=DASHED, label="_floor", zorder=1)
        look = {"color": COLORS[panel], "marker": "o"}
        for axes, frame in zip(grid[:, index], frames, strict=True):
            frame = _sized(frame)
            bars(axes, frame["parameters"], frame, **look)
            apart = frame[~frame["equal"]]
            hollow(axes, apart["parameters"], apart["value"], look)
            size_axis(axes, frame)
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
            equal = frame.loc[frame["equal"], "parameters"]
            if 1 < len(equal) < len(frame):  # a loss that one model alone has need not be the least possible
                axes.axvline(equal.min(), color="0.35", linewidth=0.9, linestyle=DOTTED, label="_saturated", zorder=1)
        if loss:
            grid[0, index].set_xlabel("")
        style.panel_title(grid[0, index], title(study, panel, tasks), index if len(pairs) > 1 else None)
        data += frames
    if loss:
        grid[0, 0].set_ylabel("Loss (nats per token)")
    grid[-1, 0].set_ylabel(ACCURACY)
    handles = [key("entropy", color="0.35", linestyle=DASHED, linewidth=0.9)] if loss else []
    handles.append(key("loss saturates", color="0.35", linestyle=DOTTED, linewidth=0.9))
    handles.append(key(f"at equal loss (within {100 * study.saturation:g} %)", color="0.3", marker="o", linestyle=""))
    handles.append(key("higher loss", color="0.3", marker="o", markerfacecolor="white", linestyle=""))
    style.legend_below(figure, [handle for _, handle in handles], [text for text, _ in handles])
    return figure, pd.concat(data, ignore_index=True)


# --- flatness ------------------------------------------------------------------


@style.paper
def figure3(scores, study: Study, labels, metrics, starts=None):
    """Trace of the Hessian and accuracy against the updates of SGD."""
    return _against_sgd(scores, study, SGD)


@style.paper
def figure10(scores, study: Study, labels, metrics, starts=None):
    """Figure 3 for the other tasks."""
    return _against_sgd(scores, study, SGD_MORE)


def _against_sgd(scores, study, wanted):
    pairs = columns(study, wanted, "-sgd")
    figure, grid = _grid(2, len(pairs), 1.7)
    data = []
    for index, (panel, tasks) in enumerate(pairs):
        frames = points(scores, study, panel, "trace"), points(scores, study, panel, "accuracy", tasks)
        look = {"color": COLORS[panel.split("-")[0]], "marker": "o"}
        for axes, frame in zip(grid[:, index], frames, strict=True):
            model = frame["model"].iloc[-1]
            curve = frame[frame["model"] == model]
            bars(axes, curve["step"], curve, **look)
            before = curve[~curve["converged"]]
            hollow(axes, before["step"], before["value"], look)
            step_axis(axes, curve["step"], log=False)
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        grid[0, index].set_xlabel("")
        grid[1, index].set_xlabel("Updates of SGD")
        style.panel_title(
            grid[0, index], f"{title(study, panel, tasks)} ({name(curve.iloc[0])})", index if len(pairs) > 1 else None
        )
        data += [frame[frame["model"] == model] for frame in frames]
    grid[0, 0].set_ylabel(TRACE)
    grid[1, 0].set_ylabel(ACCURACY)
    _note(figure, "Filled: at most {:g} % above the lowest loss; bars: 95 % intervals", study)
    return figure, pd.concat(data, ignore_index=True)


@style.paper
def figure5(scores, study: Study, labels, metrics, starts=None):
    """Accuracy against the trace of the Hessian, one point per size, with the regression over those at equal loss."""
    return _against_trace(scores, study, "trace")


@style.paper
def figure5_embedded(scores, study: Study, labels, metrics, starts=None):
    """Figure 5 with the traces of the models grown to one width."""
    return _against_trace(scores, study, "trace_embedded")


def _against_trace(scores, study, metric):
    pairs = columns(study, BY_SIZE)
    figure, grid = _grid(1, len(pairs), 2.3)
    data, placed = [], []
    for index, (panel, tasks) in enumerate(pairs):
        axes = grid[0, index]
        both = last(points(scores, study, panel, "accuracy", tasks))
        traces = last(points(scores, study, panel, metric))
        both = both.merge(
            traces[["model", "step", "value", "low", "high"]], on=["model", "step"], suffixes=("", "_trace")
        )
        if both.empty:
            raise MaskLabError(f"scores: no model of panel {panel!r} has both accuracy on {tasks} and {metric}")
        look = {"color": COLORS[panel], "marker": "o"}
        axes.errorbar(
            both["value_trace"],
            both["value"],
            xerr=_arms(both, "_trace"),
            yerr=_arms(both, ""),
            linestyle="",
            markersize=5,
            elinewidth=0.9,
            **look,
        )
        apart = both[~both["equal"]]
        hollow(axes, apart["value_trace"], apart["value"], look)
        slope, start, r2 = _regression(both[both["equal"]])
        fitted, lines = np.isfinite(r2), ()
        said = title(study, panel, tasks) + (f": $R^2$ = {r2:.2f}" if fitted else "")
        style.panel_title(axes, said, index if len(pairs) > 1 else None)
        if fitted:
            ends = both.loc[both["equal"], "value_trace"].agg(["min", "max"]).to_numpy()
            axes.plot(ends, start + slope * ends, color="0.35", linewidth=1, zorder=1, label="_regression")
            lines = (tuple((x, start + slope * x) for x in ends),)
        axes.set_xlabel("Trace, grown to one width" if metric.endswith("embedded") else TRACE)
        axes.margins(0.14)
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        names = [name(row) for row in both.itertuples()]
        placed.append((axes, both["value_trace"], both["value"], names, (*lines, *_crosses(both))))
        data.append(both.assign(slope=slope, intercept=start, r2=r2, set=tasks))
    grid[0, 0].set_ylabel(ACCURACY)
    _note(figure, "Filled: at most {:g} % above the lowest loss, in the regression; bars: 95 % intervals", study)
    for axes, x, y, names, lines in placed:
        place_labels(figure, axes, x, y, names, marker=8, lines=lines)
    return figure, pd.concat(data, ignore_index=True)


def _crosses(frame):
    """The bars of every point as segments that labels keep clear of."""
    known = frame.fillna({"low": frame["value"], "high": frame["value"]})
    for row in known.itertuples():
        yield (row.low_trace, row.value), (row.high_trace, row.value)
        yield (row.value_trace, row.low), (row.value_trace, row.high)


def _arms(frame, suffix):
    values = frame[f"value{suffix}"].to_numpy()
    arms = np.stack([values - frame[f"low{suffix}"].to_numpy(), frame[f"high{suffix}"].to_numpy() - values])
    return np.nan_to_num(arms)


def _regression(rows):
    """(slope, intercept, R2) of accuracy on trace; NaN below three models."""
    if len(rows) < 3 or np.ptp(rows["value_trace"]) == 0 or np.ptp(rows["value"]) == 0:
        return np.nan, np.nan, np.nan
    slope, start = np.polyfit(rows["value_trace"], rows["value"], 1)
    return float(slope), float(start), float(np.corrcoef(rows["value_trace"], rows["value"])[0, 1] ** 2)


# --- 15 % masks ----------------------------------------------------------------


@style.paper
def figure11(scores, study: Study, labels, metrics, starts=None):
    """Loss with one mask per sentence, accuracy and trace against size, trained with one mask and with 15 %."""
    pairs = columns(study, MASKS)
    arms = {"one mask": ("pcfg", "#0072B2", "o", "-"), "15 % masks": ("pcfg-15", "#D55E00", "s", DASHED)}
    shown = [("gap", None, ABOVE)] + [("accuracy", tasks, title(study, *pair)) for pair in pairs for tasks in pair[1:]]
    figure, grid = _grid(1, len(shown), 1.9)
    data, handles = [], {}
    for index, (metric, tasks, said) in enumerate(shown):
        axes = grid[0, index]
        for text, (panel, color, marker, dashes) in arms.items():
            frame = _sized(last(points(scores, study, panel, metric, tasks)))
            handles[text] = bars(axes, frame["parameters"], frame, color=color, marker=marker, linestyle=dashes)
            data.append(frame)
        size_axis(axes, pd.concat(data[-2:]), room=0.34)
        if metric == "gap":
            axes.set_yscale("log")
            plain_log(axes.yaxis)
            axes.set_ylabel(ABOVE)
            said = "One-mask loss"
        else:
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        if index == 1:
            axes.set_ylabel(ACCURACY)
        style.panel_title(axes, said, index)
    style.legend_below(figure, list(handles.values()), list(handles), handlelength=3)
    return figure, pd.concat(data, ignore_index=True)


# --- shared --------------------------------------------------------------------


def _grid(rows, across, height):
    width = {1: style.COLUMN, 2: 5.2}.get(across, style.FULL)
    figure = style.new_figure(width, height * rows + 0.2)
    return figure, figure.subplots(rows, across, squeeze=False)


def _sized(frame):
    known = frame[frame["parameters"].notna() & (frame["parameters"] > 0)]
    if known.empty:
        raise MaskLabError(f"scores: no parameters rows of {', '.join(frame['model'].unique())}")
    return known.sort_values("parameters")


def _note(figure, text, study):
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.2)
    figure.supxlabel(text.format(100 * study.saturation), fontsize=7.5)
