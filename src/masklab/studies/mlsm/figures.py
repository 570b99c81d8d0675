"""Figures 1 to 6. Means over replicates with intervals, beside what nothing learned gives; the paper's are single runs.

White faces: tasks on which neither recipe is shown to be above every null of the task, the majority among them.
"""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator, MultipleLocator

from masklab.errors import MaskLabError
from masklab.report import levels, marks, style
from masklab.report.marks import hollow, key, note, write_note
from masklab.report.point_labels import place_labels
from masklab.report.rows import above, best_of_kinds
from masklab.scores.facts import base
from masklab.studies.mlsm.select import CONTROL

START = "start of phase 2"
FROM_THE_START = {"linewidth": 0.6, "alpha": 0.6, "zorder": 1, "label": "_"}
BEGIN = {"color": "0.4", "marker": "*", "markersize": 7, "linestyle": ""}
CONTROLS = {"marker": "s", "color": "#0072B2"}
OTHERS = {"marker": "o", "color": "#D55E00"}
DIAGONAL = {"color": style.GREY, "linewidth": 0.8}
PAIRS = "sets of pairs"  # phenomena, or the paradigms of BLiMP
WIDEST = 24  # letters of a line of such a name
MOST, NAMED = 20, 14  # points of Figure 2 that all have a name beside them; of more of them, so many have
POINT = {"linestyle": "", "markersize": 4.5}
WHITE = "white: neither is shown to be above every null"


def split_up(results, reading) -> list[str]:
    """The tasks of a reading as they were scored, in its order: each phenomenon of pairs by itself, by name."""
    scored = sorted(set(results.rows(reading)["task"]))
    return [task for own in reading.tasks for task in scored if base(task) == own]


def row_names(view, tasks) -> dict[str, str]:
    """Task -> how it is called: "blimp/anaphor_agreement" -> "anaphor agreement"; controls say that they are."""
    short = {task: (task.partition("/")[2] or task).replace("_", " ") for task in tasks}
    twice = {name for name in short.values() if list(short.values()).count(name) > 1}
    controls = view.sets.get(CONTROL, ())
    return {
        task: f"{base(task)}: {name}"
        if name in twice
        else f"{name.removeprefix('control ')} (control)"
        if task in controls
        else name
        for task, name in short.items()
    }


def figure1(results, chosen):
    """What MLM predicts for one masked word (tokens) and what MLSM predicts (latent properties): bars."""
    parts = [_prediction(results, reading) for reading in chosen.values()]
    data = pd.concat(parts, ignore_index=True).rename(columns={"metric": "entry", "value": "probability", "n": "rank"})
    data = data.assign(label=data["recipe"].map(results.view.label))
    data = data[["recipe", "label", "replicate", "step", "task", "split", "rank", "entry", "probability"]]
    figure = style.new_figure(style.FULL, 0.9 + 0.21 * data["rank"].max())
    looks = style.looks(data["label"])
    names = ("vocabulary", "latent properties")
    for index, (axes, split) in enumerate(zip(figure.subplots(1, 2), chosen, strict=True)):
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
    write_note(figure, f"replicate {data['replicate'].iloc[0]} alone, after its last update")
    return figure, data


def _prediction(results, reading) -> pd.DataFrame:
    """Rows of the first replicate's last checkpoint, by the study's first prediction probe, by rank."""
    view, rows = results.view, results.scores
    probes = view.measured_by(reading.recipe, reading.kinds())
    rows = rows[(rows["recipe"] == reading.recipe) & (rows["probe"] == probes[0]) & rows["split"].isin(reading.splits)]
    if rows.empty:
        raise MaskLabError(f"scores: {view.label(reading.recipe)} has no prediction over the {reading.splits[0]}")
    rows = rows[rows["replicate"] == rows["replicate"].min()]
    return rows[rows["step"] == rows["step"].max()].sort_values("n")


def _short(value):
    """Two significant digits below .1, two decimals above, never "0.00"."""
    return "< 0.001" if 0 < value < 0.001 else f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _cut(entry, width=38):
    return entry if len(entry) <= width else entry[: width - 1].rstrip(" ,") + "…"


def curves(results, chosen):
    """Mean scores against the updates of phase 2, from where it starts, with the best null."""
    across = min(len(chosen), 2)
    down = -(-len(chosen) // across)
    figure = style.new_figure(style.FULL if across == 2 else style.COLUMN, 2.3 * down)
    grid = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
    looks = style.looks(label for lines in chosen.values() for label in lines if label is not None)
    data, drawn, handles, begin = [], [], {}, {}
    curves = [[each for label, each in lines.items() if label is not None] for lines in chosen.values()]
    kind = marks.kind_of(results, curves)
    for index, (axes, (panel, lines)) in enumerate(zip(grid, chosen.items(), strict=False)):
        told = {label: reading for label, reading in lines.items() if label is not None}
        shared = results.shared(lines.values())  # with where they start: a line leads from there to curves
        frame, own = marks.curves(axes, results, told, looks, kind, shared)
        data.append(frame.assign(panel=panel))
        drawn.append(own)
        if None in lines:
            start = results.summary(lines[None], shared).assign(x=0.0)
            begin[START] = marks.bars(axes, start["x"], start, label=START, **BEGIN)
            begun = {label for label, reading in told.items() if results.view.fact(reading.recipe, "init")}
            for label, own_frame in frame[frame["label"].isin(begun)].groupby("label"):
                first = own_frame.loc[own_frame["x"].idxmin()]
                ends = (0, first["x"]), (start["value"].iloc[0], first["value"])
                axes.plot(*ends, color=looks[label].get("color"), **FROM_THE_START)
            data.append(start.assign(panel=panel, label=START, recipe=lines[None].recipe, **own.columns()))
        handles |= marks.by_label(axes.get_lines(), told)
        style.panel_title(axes, panel, index if len(chosen) > 1 else None)
        marks.step_axis(axes, [], name="Additional updates in phase 2")
        axes.set_xlim(left=-0.04 * frame["x"].max())
    for axes in grid[len(chosen) :]:
        axes.remove()
    reading = next(iter(next(iter(chosen.values())).values()))
    marks.score_limits(grid[0], results, [reading], data, drawn)
    tasks = split_up(results, reading)
    for axes in grid[: len(chosen) : across]:
        what = PAIRS if any("/" in task for task in tasks) else "tasks"
        unit = marks.unit(results, [reading])
        axes.set_ylabel(f"Mean {unit},{chr(10) if len(unit) > 12 else ' '}{len(tasks)} {what}")
    ordered = {label: handles[label] for label in looks}
    rest = begin | marks.interval_key(data, kind, *(["bar"] if begin else [])) | levels.keys(drawn)
    style.legend_of(figure, ordered, rest, handlelength=3)
    items = "test pairs" if what == PAIRS else "test items"
    beside = kind == "bar" and any(map(marks.meet, data))
    marks.write_note(figure, marks.note(data, items, beside=beside))
    return figure, pd.concat(data, ignore_index=True).rename(columns={"x": "updates"})


def points(results, chosen) -> pd.DataFrame:
    """A row per task and pair of recipes: x, y, their intervals, chance, the best null, whether either is above it.

    All of a row are over the replicates that both recipes have: each may have a language of its own.
    """
    rows = []
    for panel, pairs in chosen.items():
        for pair in pairs:
            tasks = split_up(results, pair[1])
            names = row_names(results.view, tasks)
            for number, task in enumerate(tasks, start=1):
                own = [reading.of(reading.recipe, tasks=(task,)) for reading in pair]
                shared = results.shared(own)
                x, y = (results.summary(reading, shared).iloc[0] for reading in own)
                kinds, level = best_of_kinds(results, own, shared), levels.levels(results, own, shared)
                row = {"panel": panel, "number": number, "row": names[task], "task": task}
                row |= {"control": base(task) in results.view.sets.get(CONTROL, ())}
                for axis, reading, summary in zip("xy", own, (x, y), strict=True):
                    row |= {f"{axis}_recipe": reading.recipe, axis: summary["value"]}
                    row |= {f"{axis}_low": summary["low"], f"{axis}_high": summary["high"]}
                row |= {name: y[name] for name in ("items", "n", "replicates")} | {"x_replicates": x["replicates"]}
                row |= {"called": level.called, **level.columns()}
                gains = [[results.gain(each, results.values(each), null) for null in kinds.values()] for each in own]
                rows.append(row | {"learned": any(all(gain and above(gain) for gain in both) for both in gains)})
    if not rows:
        raise MaskLabError("scores: nothing was measured of the recipes of the figure")
    return pd.DataFrame(rows)


def _scatter(axes, part, limits, results, pair, step):
    """Points of one pair of recipes with their intervals, the diagonal, the majority where it is one for all tasks."""
    axes.set(xlim=limits, ylim=limits, aspect="equal")
    axes.plot(limits, limits, zorder=1, label="_diagonal", **DIAGONAL)
    for level in part["majority"].dropna().unique() if part["majority"].nunique() == 1 else ():
        axes.axhline(level, zorder=1, label="_level", **style.MAJORITY)
        axes.axvline(level, zorder=1, label="_level", **style.MAJORITY)
    for control, look in ((True, CONTROLS), (False, OTHERS)):
        own = part[part["control"] == control]
        bars = {"color": look["color"], "linewidth": 0.8, "alpha": 0.4, "zorder": 2}
        axes.hlines(own["y"], own["x_low"], own["x_high"], **bars)
        axes.vlines(own["x"], own["y_low"], own["y_high"], **bars)
        axes.plot(own["x"], own["y"], label="control" if control else "task", zorder=3, **POINT, **look)
        hollow(axes, *own.loc[~own["learned"], ["x", "y"]].to_numpy().T, look | {"markersize": 4.5})
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(step))
    unit = marks.unit(results, pair)
    x, y = (style.plain(f"{unit} of {results.view.label(reading.recipe)}") for reading in pair)
    axes.set(xlabel=x, ylabel=y)


def _names(figure, axes, part, texts, limits, others=()):
    """Labels beside points, clear of the diagonal and of chance; intervals are pale, so that text may cross them."""
    diagonal = ((limits[0], limits[0]), (limits[1], limits[1]))
    levels = part["majority"].dropna().unique() if part["majority"].nunique() == 1 else ()
    crossed = [
        line for at in levels for line in (((limits[0], at), (limits[1], at)), ((at, limits[0]), (at, limits[1])))
    ]
    place_labels(figure, axes, part["x"], part["y"], texts, lines=[diagonal, *crossed], others=others)


def _keys(data):
    """Legend entries of what lines and white faces mean, where there are some."""
    keys = marks.interval_key([data.assign(low=data["y_low"])], "bar") | dict([key("equal", **DIAGONAL)])
    if data["majority"].nunique() == 1:
        keys |= dict([key(data["called"].iloc[0], **style.MAJORITY)])
    white = {"color": "0.3", "marker": "o", "markerfacecolor": "white"}
    return keys if data["learned"].all() else keys | dict([key(WHITE, **POINT, **white)])


def _note(data, what="test items"):
    several = "" if data["majority"].nunique() == 1 else "; the majority differs by task and is in the figure's data"
    return note([data, data.assign(replicates=data["x_replicates"])], what) + several


def figure2(results, chosen):
    """BLiMP accuracy by set of pairs: MLSM+MLM (y) against MLSM (x) at the end of pre-training."""
    data = points(results, chosen).sort_values("row", ignore_index=True)
    ((title, (pair,)),) = chosen.items()
    low = np.floor(data[["x_low", "y_low", "x", "y"]].min(axis=None) * 10 - 0.5) / 10
    limits = (max(min(low, 0.4), 0) - 0.01, 1.04)  # room for labels above the best
    figure = style.new_figure(5.2, 5.0)
    axes = figure.subplots()
    _scatter(axes, data, limits, results, pair, 0.1)
    higher = int((data["y"] > data["x"]).sum())
    style.panel_title(axes, f"{title}: {higher} of {len(data)} {PAIRS} above the diagonal")
    keys = _keys(data)
    if keys:
        style.legend_below(figure, list(keys.values()), list(keys), handlelength=3)
    named = data
    if len(data) > MOST:  # BLiMP's 67 paradigms leave no room for 67 names
        named = data.loc[(data["y"] - data["x"]).abs().sort_values(ascending=False, kind="stable").index[:NAMED]]
    apart = "" if named is data else f"; named: the {NAMED} furthest from the diagonal"
    write_note(figure, _note(data, "test pairs") + apart)
    texts = [name if named is data else textwrap.fill(name, WIDEST) for name in named["row"]]
    _names(figure, axes, named, texts, limits, data.loc[~data.index.isin(named.index), ["x", "y"]])
    return figure, data.drop(columns=["number", "control"])


def figure6(results, chosen):
    """MSGS by task: MLSM+MLM (y) against others (x) at the end of pre-training; squares are control tasks."""
    data = points(results, chosen)
    pairs = [(title, pair) for title, own in chosen.items() for pair in own]
    columns = [[each for each in pairs if each[0] == title] for title in chosen]
    if len(columns) == 1:
        columns = [pairs[0::2], pairs[1::2]] if len(pairs) > 1 else [pairs]
    down, across = max(map(len, columns)), len(columns)
    side = (style.FULL if across > 1 else style.COLUMN) / across
    figure = style.new_figure(side * across, down * (side + 0.03))
    grid = figure.subplots(down, across, squeeze=False)
    reached = data[["x", "y", "x_low", "y_low", "majority"]].min(axis=None)  # one replicate has no interval
    limits, drawn = (max(np.floor(2 * reached) / 2, -1) - 0.08, 1.08), []
    for i, j in np.ndindex(down, across):
        if i >= len(columns[j]):
            grid[i, j].remove()
            continue
        title, pair = columns[j][i]
        part = data[(data["panel"] == title) & (data["x_recipe"] == pair[0].recipe)]
        _scatter(grid[i, j], part, limits, results, pair, 0.5)
        style.panel_title(grid[i, j], title, len(drawn) if len(pairs) > 1 else None)
        drawn.append((grid[i, j], part))
    tasks = data.drop_duplicates("number")
    entries = [(f"{row.number}  {row.row}", CONTROLS if row.control else OTHERS) for row in tasks.itertuples()]
    keys = dict(key(text, **POINT, **look) for text, look in entries) | _keys(data)
    style.legend_below(figure, list(keys.values()), list(keys), handletextpad=0.3)
    write_note(figure, _note(data))
    for axes, part in drawn:
        _names(figure, axes, part, list(part["number"]), limits)
    return figure, data
