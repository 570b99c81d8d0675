"""Drawing of the table and figures that suit any study (`masklab.report.generic`)."""

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from masklab.report import levels, notes, style
from masklab.report.cells import averaged, tidy
from masklab.report.levels import Levels
from masklab.report.marks import (
    CROWD,
    apart,
    by_label,
    examples_axis,
    geometric,
    interval_key,
    kind_of,
    measured,
    meet,
    note,
    scale_of,
    score_limits,
    step_axis,
    unit,
    write_note,
)
from masklab.report.marks import curves as marks_curves
from masklab.report.rows import differences, row_cells, table_of

MOST = 3  # differences of a panel that are shown: more columns are no table
EQUAL = 1e-6  # nats up to which least possible losses are one
MARK = 4  # points that a mark needs at either side
HALO = [withStroke(linewidth=2.6, foreground="white")]  # intervals are seen on dark bars too


def comparison(results, chosen) -> pd.DataFrame:
    """Every recipe on every task and set of tasks, its difference to the first one, the best null of each kind."""
    cells = []
    for panel, lines in chosen.items():
        several = len({label for readings in lines.values() for label in readings}) - 1 <= MOST
        for row, readings in lines.items():
            own = row_cells(results, readings, panel, row)
            apart = differences(results, readings, panel, row) if several else []
            cells += [*own[: len(readings)], *apart, *own[len(readings) :]]
    return tidy(cells)


def losses(results, chosen) -> pd.DataFrame:
    """Losses with their floors and gaps, without the rows of a panel in which no floor is known."""
    frame = table_of(results, chosen)
    return frame[frame.groupby(["panel", "row"])["value"].transform("count") > 0].reset_index(drop=True)


def bars(results, chosen):
    """Bars by task, a colour and a hatch per recipe, whiskers for intervals, lines for the majority and the best null.

    Axes begin at 0, or below it where scores do; those of one metric end alike.
    """
    figure = style.new_figure(style.FULL, 2.4 * len(chosen))
    grid = figure.subplots(len(chosen), 1, squeeze=False)[:, 0]
    looks = style.looks(label for lines in chosen.values() for readings in lines.values() for label in readings)
    hatches = dict(zip(looks, style.hatches(len(looks)), strict=True))
    data, drawn, of_metric = [], [], {}
    for index, (axes, (panel, lines)) in enumerate(zip(grid, chosen.items(), strict=True)):
        labels = list(dict.fromkeys(label for readings in lines.values() for label in readings))
        shared = unit(results, [reading for readings in lines.values() for reading in readings.values()])
        counts = {results.items_behind(reading) for readings in lines.values() for reading in readings.values()}
        width, names, tilts = 0.8 / len(labels), [], len(lines) > 3  # second lines would lie on the names beside them
        for place, (row, readings) in enumerate(lines.items()):
            replicates = results.shared(readings.values())
            drawn.append(levels.levels(results, readings.values(), replicates))
            levels.draw(axes, drawn[-1], (place - 0.45, place + 0.45))
            own = unit(results, readings.values())
            name = row if own == shared else f"{row} ({own})"
            items = max(results.items_behind(reading) for reading in readings.values())
            names.append(f"{name}{', ' if tilts else chr(10)}n = {items:,}" if len(counts) > 1 else name)
            for label, reading in readings.items():
                frame = results.summary(reading, replicates)
                x = place + (labels.index(label) - (len(labels) - 1) / 2) * width
                look = {"color": looks[label]["color"], "hatch": hatches[label], "edgecolor": "white", "linewidth": 0}
                axes.bar(x, frame["value"], width=0.92 * width, zorder=2, **look)
                if frame["low"].notna().all():
                    axes.vlines(
                        x, frame["low"], frame["high"], color="0.25", linewidth=1.1, zorder=3, path_effects=HALO
                    )
                about = {"panel": panel, "row": row, "label": label, "recipe": reading.recipe, "metric": own}
                about["sizes"] = averaged(results, reading, readings.values())
                data.append(frame.assign(**about, **drawn[-1].columns()))
        tilted = {"rotation": 20, "ha": "right", "rotation_mode": "anchor"} if tilts else {}
        axes.set_xticks(range(len(lines)), map(style.plain, names), **tilted)
        axes.set_xlim(-0.6, len(lines) - 0.4)
        axes.set_ylabel(style.plain(shared))
        of_metric.setdefault(shared, []).append(axes)
        axes.axhline(0, color="0.3", linewidth=0.6)
        style.panel_title(axes, panel, index if len(chosen) > 1 else None)
    for several in of_metric.values():
        ends = list(zip(*(axes.get_ylim() for axes in several), strict=True))
        for axes in several:
            axes.set_ylim(min(ends[0]), max(ends[1]))
    handles = {label: style.patch(look["color"], hatch=hatches[label]) for label, look in looks.items()}
    style.legend_of(figure, handles, interval_key(data, "bar") | levels.keys(drawn), handlelength=2.4)
    counts = {n for frame in data for n in frame["n"]}
    said = note(data) if len(counts) == 1 else f"{note(data, '')}; n: test items"
    data = pd.concat(data, ignore_index=True)
    write_note(figure, _with_means(said, data, "row"))
    return figure, data


def curves(results, chosen):
    """Curves over updates with intervals, one panel per panel of the study and set of tasks; one y axis per set.

    Each panel has bands or bars as its own curves allow.
    """
    return _panels(results, chosen, "step", _updates)


def size_curves(results, chosen):
    """The same over training examples."""
    return _panels(results, chosen, "train_size", _examples)


def loss_curves(results, chosen):
    """Losses over updates, one panel per panel of the study, with the least possible loss where it is known."""
    losses = {panel: {"loss": lines["loss"]} for panel, lines in chosen.items()}
    return _panels(results, losses, "step", _updates, {panel: lines["floor"] for panel, lines in chosen.items()})


def _panels(results, chosen, x, finish, floors=None):
    """(figure, data) of panel -> name -> label -> curve.

    x: what the data call the axis; finish: (axes, x, share of the axis that marks need at its ends) -> None, what is
    done to that axis; floors: panel -> label -> the least that its losses can be.
    """
    cells = [(panel, name, readings) for panel, lines in chosen.items() for name, readings in lines.items()]
    crowded = max(len(readings) for *_, readings in cells) > CROWD
    across = min(len(cells), 2 if crowded else 3)
    down = -(-len(cells) // across)
    figure, grid = style.grid(down, across, 2.0 * down)
    looks = style.looks(label for _, _, readings in cells for label in readings)
    if crowded:
        figure.set_size_inches(style.FULL if across > 1 else 4.6, 2.9 * down)
        looks = _finer(looks)
    drawn, handles, floor, sets, moved = [], {}, {}, {}, False
    kinds = [kind_of(results, [readings.values()]) for *_, readings in cells]
    wide = 72 * (figure.get_size_inches()[0] / across - 0.6)  # of axes, in points, about
    for index, (axes, kind, (panel, name, readings)) in enumerate(zip(grid.ravel(), kinds, cells, strict=False)):
        frame, own = marks_curves(axes, results, readings, looks, kind)
        moved = moved or (kind == "bar" and meet(frame))
        handles |= by_label(axes.get_lines(), readings)
        finish(axes, frame["x"], min(0.4, (_spread(len(readings)) * (kind == "bar") + MARK) / wide))
        axes.set_ylabel(
            "loss (nats per token)" if floors is not None else style.plain(measured(results, readings.values()))
        )
        title = panel if floors is not None else name if len(chosen) == 1 else f"{panel}: {name}"
        style.panel_title(axes, title, index if len(cells) > 1 else None)
        sizes = {label: averaged(results, reading, readings.values()) for label, reading in readings.items()}
        frame = frame.assign(panel=panel, set=name, sizes=frame["label"].map(sizes))
        at = [own, *map(Levels, frame["null"].unique())]  # one at each training size
        if floors is not None:
            least = _floors(results, readings, floors[panel])
            frame["floor"], at = frame["label"].map(least), [*at, *map(Levels, least.values())]
            floor |= _draw_floors(axes, least, looks)
        drawn.append((frame, own))
        sets.setdefault(name, []).append((axes, readings, frame, at))
    for members in sets.values():
        every = [reading for _, readings, *_ in members for reading in readings.values()]
        for axes, *_ in members:
            at = [each for *_, own in members for each in own]
            score_limits(axes, results, every, [frame for _, _, frame, _ in members], at)
    for axes in grid.ravel()[len(cells) :]:
        axes.remove()
    data = [frame for frame, _ in drawn]
    fullest = _fullest(data)
    handles = dict(sorted(handles.items(), key=_from_above(data[fullest]))) if crowded else handles
    rest = floor | interval_key(data, *kinds) | levels.keys(own for _, own in drawn)
    style.legend_of(figure, handles, rest, handlelength=3)
    what = "test items" if floors is None else "test tokens"
    said, data = note(data, what, beside=moved), pd.concat(data, ignore_index=True)
    if crowded:
        where = f" in ({notes.letter_of(fullest)})" if len(cells) > 1 else ""
        said += f"; curves are listed from the one that ends highest{where}"
    write_note(figure, _with_means(said, data, "set"))
    return figure, data.rename(columns={"x": x})


def _finer(looks) -> dict[str, dict]:
    """The looks of many curves: thin lines and small marks, which are hollow where a colour comes a second time."""
    thin = {"linewidth": 1.0, "markersize": 3.6}
    faces = ({}, {"markerfacecolor": "white", "markeredgewidth": 0.9, "zorder": 3})
    return {
        label: look | thin | faces[number // len(style.COLORS) % 2]
        for number, (label, look) in enumerate(looks.items())
    }


def _spread(count: int) -> float:
    """Points from the middle to the outermost of so many curves whose bars lie side by side."""
    return apart(count) * (count - 1) / 2


def _fullest(frames) -> int:
    """Which of the data of panels has the most curves, the first of several."""
    return max(range(len(frames)), key=lambda index: frames[index]["label"].nunique())


def _from_above(frame):
    """A key that sorts (label, handle) by where curves end in a panel, the highest first, all others after these."""
    ends = frame.sort_values("x").groupby("label")["value"].last()
    return lambda entry: -ends.get(entry[0], -np.inf)


def _updates(axes, steps, share: float) -> None:
    """An axis of updates, from 0."""
    step_axis(axes, steps)
    right = steps.max() * max(1.06, 1 / (1 - share)) or 1
    axes.set_xlim(min(0, steps.min() - share * right), right)


def _examples(axes, sizes, share: float) -> None:
    """Numbers of training examples, with room at both ends."""
    sizes = np.unique(sizes)
    examples_axis(axes, sizes)
    axes.set_xlabel(f"Training examples{scale_of(sizes)}")
    scale = np.log if geometric(sizes) else np.asarray
    low, high = scale(sizes[[0, -1]])
    room = (high - low or 1.0) * max(0.05, share / (1 - 2 * share))
    axes.set_xlim(*(np.exp if geometric(sizes) else np.asarray)([low - room, high + room]))


def _floors(results, losses, floors) -> dict[str, float]:
    """Label -> the least possible loss, if it is known: the mean over the replicates that all losses have."""
    shared = results.shared(losses.values())
    known = {label: results.values(reading) for label, reading in floors.items() if label in losses}
    kept = {label: own.at([r for r in shared or own.replicates if r in own.replicates]) for label, own in known.items()}
    return {label: float(own.scalar[:, 0].mean()) for label, own in kept.items() if own.replicates}


def _draw_floors(axes, floors: dict[str, float], looks) -> dict:
    """A line at the least possible loss, of recipes that have different ones a line each in its colour; the key."""
    if not floors:
        return {}
    one = np.ptp(list(floors.values())) < EQUAL
    for label, level in list(floors.items())[: 1 if one else None]:
        axes.axhline(level, zorder=1, label="_floor", **style.FLOOR | ({} if one else {"color": looks[label]["color"]}))
    return {"least possible loss": Line2D([], [], **style.FLOOR)}


def _with_means(said, data, column) -> str:
    """What is said below a figure, with the training sizes that its values are means over, told by this column."""
    parts = (data[column].map(style.plain), data["label"].map(style.plain), data["sizes"])
    return "; ".join([said, *notes.means_over_sizes(zip(*parts, strict=True))])
