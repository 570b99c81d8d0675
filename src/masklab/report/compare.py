"""Drawing of the table and figures that suit any study (`masklab.report.generic`)."""

import numpy as np
import pandas as pd

from masklab.report import style
from masklab.report.marks import best_null, note, null_key, step_axis, unit, write_note
from masklab.report.marks import curves as marks_curves
from masklab.report.rows import table_of


def comparison(results, chosen) -> pd.DataFrame:
    """Every recipe on every task and set of tasks, with the best null of each kind."""
    return table_of(results, chosen)


def bars(results, chosen):
    """Bars by task, one colour per recipe, whiskers for intervals, a dashed line for the best null of each task."""
    figure = style.new_figure(style.FULL, 2.1 * len(chosen))
    grid = figure.subplots(len(chosen), 1, squeeze=False)[:, 0]
    looks = style.looks(label for lines in chosen.values() for readings in lines.values() for label in readings)
    data, nulls = [], []
    for index, (axes, (panel, lines)) in enumerate(zip(grid, chosen.items(), strict=True)):
        labels = list(dict.fromkeys(label for readings in lines.values() for label in readings))
        width, frames, best_nulls = 0.8 / len(labels), [], []
        for place, (row, readings) in enumerate(lines.items()):
            null = best_null(results, readings.values())
            best_nulls.append(null)
            if null is not None:
                axes.plot([place - 0.45, place + 0.45], [null.value] * 2, zorder=4, label="_null", **style.NULL)
            for label, reading in readings.items():
                frame = results.summary(reading)
                x = place + (labels.index(label) - (len(labels) - 1) / 2) * width
                axes.bar(x, frame["value"], width=0.92 * width, color=looks[label]["color"], zorder=2)
                if frame["low"].notna().all():
                    axes.vlines(x, frame["low"], frame["high"], color="0.25", linewidth=1, zorder=3)
                value = np.nan if null is None else null.value
                frames.append(frame.assign(panel=panel, row=row, label=label, recipe=reading.recipe, null=value))
        axes.set_xticks(
            range(len(lines)),
            list(lines),
            rotation=20 if len(lines) > 3 else 0,
            ha="right" if len(lines) > 3 else "center",
        )
        axes.set_xlim(-0.6, len(lines) - 0.4)
        axes.set_ylabel(unit(results, [reading for readings in lines.values() for reading in readings.values()]))
        axes.axhline(0, color="0.3", linewidth=0.6)
        style.panel_title(axes, panel, index if len(chosen) > 1 else None)
        data += frames
        nulls += best_nulls
    handles = {label: style.patch(look["color"]) for label, look in looks.items()} | null_key(nulls)
    style.legend_below(figure, list(handles.values()), list(handles))
    write_note(figure, note(data))
    return figure, pd.concat(data, ignore_index=True)


def curves(results, chosen):
    """Curves over updates, one panel per panel of the study and set of tasks, bands for intervals, the best null."""
    cells = [(panel, name, readings) for panel, lines in chosen.items() for name, readings in lines.items()]
    across = min(len(cells), 3)
    down = -(-len(cells) // across)
    figure, grid = style.grid(down, across, 2.0 * down)
    grid = grid.ravel()
    looks = style.looks(label for _, _, readings in cells for label in readings)
    data, nulls, handles = [], [], {}
    for index, (axes, (panel, name, readings)) in enumerate(zip(grid, cells, strict=False)):
        frame, null = marks_curves(axes, results, readings, looks)
        handles |= dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
        step_axis(axes, frame["x"])
        axes.set_ylabel(unit(results, readings.values()))
        title = name if len(chosen) == 1 else f"{panel}: {name}"
        style.panel_title(axes, title, index if len(cells) > 1 else None)
        data.append(frame.assign(panel=panel, set=name))
        nulls.append(null)
    for axes in grid[len(cells) :]:
        axes.remove()
    handles |= null_key(nulls)
    style.legend_below(figure, list(handles.values()), list(handles), handlelength=3)
    write_note(figure, note(data))
    return figure, pd.concat(data, ignore_index=True).rename(columns={"x": "step"})
