"""Figures 1, 2, 9 and 11, and what they share with 3, 5 and 10: `traces`. Figures 4, 6: `flatness`; 7, 8: `samples`.

Where the paper shows one model, Figure 1 shows every size. Losses are drawn as what they lie above the exact entropy,
since that is what is left once they look flat. Filled marks are at equal loss: checkpoints with the lowest of their
recipe, sizes with the lowest of all (`Results.saturated`).
"""

import itertools
import math
import textwrap

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from masklab.report import levels, style
from masklab.report.levels import Levels
from masklab.report.marks import (
    LOG,
    SPAN,
    band,
    bars,
    count,
    hollow,
    interval_key,
    key,
    limits,
    note,
    plain_log,
    size_axis,
    step_axis,
    write_note,
)
from masklab.studies.implicit_bias.select import CORPORA, PCFG, places, said, tasks

ABOVE = "Loss above the entropy (nats)"
ACCURACY = "Linear-probe accuracy"
SCORES = {"least": -0.02, "most": 1.02, "span": SPAN}  # limits of an axis of accuracies: a mark at 1 is drawn whole
COLORS = dict(zip(CORPORA, ("#0072B2", "#D55E00", "#009E73"), strict=True))
THIN = {"color": "0.35", "linewidth": 0.9}
DASHED, SATURATED = (0, (6, 1.2, 1, 1.2)), (0, (3, 1.2, 1, 1.2, 1, 1.2))


def points(results, members, what, together=False, beside=()) -> pd.DataFrame:
    """A row per recipe and checkpoint of what `members` (recipe -> what -> reading) read of a metric or a task.

    Recipes from small to large. converged: the loss of the checkpoint equals the lowest of its recipe, or of all
    members `together`; equal: the last loss of the recipe, or that of the one checkpoint that is read, equals the
    lowest such loss of all; majority, null and null_kind: the recipe's `Levels` on the task. All are means over the
    replicates that all members have, and all of `beside`, other members in the same axes: each replicate may have a
    language of its own.
    """
    shared = results.shared(readings[what] for every in (members, *beside) for readings in every.values())
    members = {name: members[name] for name in sorted(members, key=lambda name: results.fact(name, "parameters") or 0)}
    gaps = {
        (recipe, step): gap
        for recipe, readings in members.items()
        for step, gap in results.gaps(recipe, shared).items()
        if readings[what].step in ("all", "last", step)
    }
    groups = [gaps] if together else [{at: gap for at, gap in gaps.items() if at[0] == recipe} for recipe in members]
    near = [at for group in groups for at in results.saturated(group)]
    read = {recipe: readings[what].step for recipe, readings in members.items()}  # a checkpoint, or all, or the last
    same, frames = results.at_equal_loss(members, read), []
    for recipe, readings in members.items():
        reading = readings[what]
        frame = results.summary(reading, shared)
        steps = frame["x"].fillna(max(step for name, step in gaps if name == recipe)).astype("int64")
        level = levels.levels(results, [reading], shared) if reading.tasks else Levels()
        facts = {"corpus": results.view.fact(recipe, "corpus.kind"), "recipe": recipe,
                 "label": results.view.label(recipe), "parameters": results.fact(recipe, "parameters"),
                 "metric": reading.metric, "task": " ".join(reading.tasks), "step": steps}  # fmt: skip
        frames.append(
            frame.drop(columns="x").assign(
                **facts,
                converged=[(recipe, step) in near for step in steps],
                equal=recipe in same,
                **level.columns(),
            )
        )
    return pd.concat(frames, ignore_index=True)


def columns_of(results, chosen, place) -> list[tuple[str, str, str]]:
    """(kind of corpus, task, title) of every column."""
    view = results.view
    return [
        (kind, task, f"{CORPORA[kind]}, {said(view, task)}") for kind in chosen for task in places(view, kind)[place]
    ]


def title_of(axes, title, index, across) -> None:
    """The title of a column, with a letter where there are several."""
    style.panel_title(axes, title, index if across > 1 else None)


def ticks(axis, count=5) -> None:
    """Round numbers on an axis."""
    axis.set_major_locator(MaxNLocator(count, steps=[1, 2, 2.5, 5, 10]))


def highest_levels(frame) -> Levels:
    """The highest levels of all recipes of a frame."""
    told = zip(frame["majority"], frame["null"], frame["null_kind"], strict=True)
    return levels.together(Levels(majority, null=null, kind=kind) for majority, null, kind in told)


def finish(figure, results, data, handles, drawn, filled, kind="bar"):
    """Legend and small print; the figure and all that is drawn.

    drawn: the levels of its panels; filled: what filled marks are near to; kind: how intervals are drawn.
    """
    handles = handles | interval_key(data, kind) | levels.keys(drawn)
    if handles:
        style.legend_below(figure, list(handles.values()), list(handles), handlelength=2.4)
    write_note(figure, f"filled: within {100 * results.view.saturation:g} % of {filled}; {_note(results.view, data)}")
    return figure, pd.concat(data, ignore_index=True)


def _note(view, data, beside: bool = False) -> str:
    """How many replicates and test items, those of losses and traces not counted; and what else intervals hold.

    beside: whether marks were moved aside.
    """
    counted = [frame.assign(n=frame["n"].where(frame["task"] != "", 0)) for frame in data]
    varied = {name for frame in data for name in frame.loc[frame["low"].notna(), "recipe"]}
    drawn = {name for name in varied if view.recipes[name].get("corpus.redrawn")}
    return note(counted, beside=beside) + (
        "; each replicate has a language of its own: intervals include how these differ" if drawn else ""
    )


# --- loss and accuracy -------------------------------------------------------------------


def figure1(results, chosen):
    """Loss and accuracy against the updates of pre-training, every size: loss flat, accuracy rising."""
    columns = columns_of(results, chosen, "steps")
    figure, grid = style.grid(2, len(columns), 4.2)
    data, drawn = [], []
    for index, (kind, task, title) in enumerate(columns):
        frames = [points(results, chosen[kind], what) for what in ("gap", task)]
        shades = _shades(frames[0]["recipe"])
        for axes, frame in zip(grid[:, index], frames, strict=True):
            for recipe, curve in frame.groupby("recipe", sort=False):
                band(axes, curve, shades[recipe], name_of(curve.iloc[0]), x="step")
                before = curve[~curve["converged"]]
                hollow(axes, before["step"], before["value"], shades[recipe])
            step_axis(axes, frame["step"], log=True)
        above, below = grid[:, index]
        above.set_yscale("log")
        plain_log(above.yaxis)
        above.set_xlabel("")
        drawn.append(highest_levels(frames[1]))
        levels.draw(below, drawn[-1])
        limits(below, frames[1:], drawn[-1:], **SCORES)
        title_of(above, title, index, len(columns))
        across = math.ceil(len(shades) / math.ceil(len(shades) / 3))
        below.legend(title="parameters", loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=across, columnspacing=1)
        data += frames
    grid[0, 0].set_ylabel(textwrap.fill(ABOVE + LOG, 24))
    grid[1, 0].set_ylabel(ACCURACY)
    return finish(figure, results, data, {}, drawn, "the recipe's lowest loss", "band")


def _shades(recipes):
    """Recipe -> colour and marker, dark to light from small to large (viridis without its palest end)."""
    recipes = list(dict.fromkeys(recipes))
    shades = matplotlib.colormaps["viridis"](np.linspace(0, 0.85, len(recipes)))
    marks = itertools.cycle(style.MARKERS)
    return {name: {"color": shade, "marker": next(marks)} for name, shade in zip(recipes, shades, strict=True)}


def name_of(row):
    """A recipe where it is drawn: its parameters, or its label where they are not known."""
    return count(row["parameters"]) if row["parameters"] else row["label"]


def size_of(results, recipe) -> str:
    """A recipe by its label and its parameters: "l (107K parameters)"."""
    parameters = results.fact(recipe, "parameters")
    return results.view.label(recipe) + (f" ({count(parameters)} parameters)" if parameters else "")


def figure2(results, chosen):
    """Loss and accuracy at the end of pre-training against model size, and the size at which the loss saturates."""
    return _against_size(results, chosen, "sizes", loss=True)


def figure9(results, chosen):
    """Accuracy on the other tasks against model size."""
    return _against_size(results, chosen, "more sizes", loss=False)


def _against_size(results, chosen, place, loss):
    columns = columns_of(results, chosen, place)
    figure, grid = style.grid(2 if loss else 1, len(columns), 3.8 if loss else 2.0)
    data, drawn, handles = [], [], dict([key("entropy", **THIN)] if loss else [])
    for index, (kind, task, title) in enumerate(columns):
        frames = [points(results, chosen[kind], task)]
        if loss:  # drawn with the intervals of the gaps: those of the entropy are shared
            losses, floors = (points(results, chosen[kind], what) for what in ("gap", "floor"))
            floor = floors["value"].mean()
            losses[["value", "low", "high"]] += floor
            frames = [losses.assign(metric="loss", floor=floor), *frames]
            grid[0, index].axhline(floor, label="_floor", zorder=1, **THIN)
        look = {"color": COLORS[kind], "marker": "o"}
        for axes, frame in zip(grid[:, index], frames, strict=True):
            bars(axes, frame["parameters"], frame, **look)
            apart = frame[~frame["equal"]]
            hollow(axes, apart["parameters"], apart["value"], look)
            equal = frame.loc[frame["equal"], "parameters"]
            saturated = 1 < len(equal) < len(frame)  # a loss that one recipe alone has need not be the least possible
            size_axis(axes, frame["parameters"], marked=equal.min() if saturated else None)
            ticks(axes.yaxis)
            if saturated:
                axes.axvline(equal.min(), linestyle=SATURATED, label="_saturated", zorder=1, **THIN)
                handles |= [key("loss saturates", linestyle=SATURATED, **THIN)]
        drawn.append(highest_levels(frame))
        levels.draw(grid[-1, index], drawn[-1])
        limits(grid[-1, index], [frame], drawn[-1:], **SCORES)
        title_of(grid[0, index], title, index, len(columns))
        if loss:
            grid[0, index].set_xlabel("")
        data += frames
    if loss:
        grid[0, 0].set_ylabel("Loss (nats per token)")
    grid[-1, 0].set_ylabel(ACCURACY)
    lowest = "the lowest loss" + ("; bars of losses: of what they lie above the entropy" if loss else "")
    return finish(figure, results, data, handles, drawn, lowest)


# --- 15 % masks ---------------------------------------------------------------------------


def figure11(results, chosen):
    """Loss with one mask per sentence and accuracies against size, trained with one mask and with more."""
    shown = ["gap", *tasks(results.view, PCFG)]
    figure, grid = style.grid(-(-len(shown) // 2), 2, 1.9 * -(-len(shown) // 2))
    grid = grid.ravel()
    data, drawn, handles = [], [], {}
    for index, (axes, what) in enumerate(zip(grid, shown, strict=False)):
        for members, look, points_aside in zip(chosen.values(), ARMS, (-1.5, 1.5), strict=True):
            frame = points(results, members, what, beside=chosen.values())
            text = _masked(results.view, frame["recipe"].iloc[0])
            handles[text] = bars(axes, frame["parameters"], frame, points_aside, **look)
            data.append(frame.assign(masks=text))
        drawn.append(highest_levels(pd.concat(data[-2:])))
        levels.draw(axes, drawn[-1])
        size_axis(axes, pd.concat(data[-2:])["parameters"])
        if index:
            limits(axes, data[-2:], drawn[-1:], **SCORES)
        ticks(axes.yaxis)
        style.panel_title(axes, said(results.view, what).capitalize() if index else "One-mask loss", index)
        axes.set_ylabel(ACCURACY if index else textwrap.fill(ABOVE + LOG, 20))
    grid[0].set_yscale("log")
    plain_log(grid[0].yaxis)
    for axes in grid[len(shown) :]:
        axes.remove()
    handles |= interval_key(data, "bar") | levels.keys(drawn)
    style.legend_below(figure, list(handles.values()), list(handles), handlelength=3)
    write_note(figure, _note(results.view, data, beside=True))
    return figure, pd.concat(data, ignore_index=True)


ARMS = (
    {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    {"color": "#D55E00", "marker": "s", "linestyle": DASHED},
)


def _masked(view, recipe):
    if view.fact(recipe, "masking.count") == "one":
        return "one mask"
    return f"{100 * view.fact(recipe, 'masking.rate'):g} % masks"
