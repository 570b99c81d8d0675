"""Figures 2, 3, 5, 6 and 7: accuracy after fine-tuning against training examples. Figure 1: `walks`.

One row per mix of fine-tuning data, one colour per test domain: hue tells the vocabulary (A cool, B warm), lightness
the chain (D1 dark, D2 light); dashes and hollow markers tell the starting points, so that it can be read in grey.
Unlike the paper's, whose points are single runs, curves are means over replicates with intervals; a column of nulls
(shuffled weights, a bag of words) stands beside them. Curves are drawn side by side so that their intervals can be
told apart.
"""

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from masklab.errors import MaskLabError
from masklab.report import style
from masklab.report.levels import Levels
from masklab.report.marks import SPAN, aside, examples_axis, interval_key, limits, note, write_note
from masklab.report.rows import mean_of
from masklab.studies.dh.select import (
    AD1,
    AD2,
    BAG,
    BD1,
    BD2,
    CBOW,
    DOMAINS,
    SCRATCH,
    SHUFFLED,
    WITH,
    WITHOUT,
    spelling_in_words,
)

LOOKS = {
    AD1: {"color": "#0072B2", "marker": "o"},
    BD1: {"color": "#D55E00", "marker": "s"},
    AD2: {"color": "#56B4E9", "marker": "^"},
    BD2: {"color": "#E69F00", "marker": "D"},
}
LINES = {
    WITH: {"linestyle": "-", "fillstyle": "full"},
    WITHOUT: {"linestyle": (0, (4, 1.6)), "fillstyle": "none"},
    CBOW: {"linestyle": (0, (6, 1.4, 1, 1.4)), "fillstyle": "full"},
    SCRATCH: {"linestyle": (0, (1, 1.2)), "fillstyle": "none"},
    SHUFFLED: {"linestyle": "-", "fillstyle": "full"},
    BAG: {"linestyle": (0, (4, 1.6)), "fillstyle": "none"},
}
COLUMNS = {"MLMs": (WITH, WITHOUT), "CBOW and scratch": (CBOW, SCRATCH), "nulls": (SHUFFLED, BAG)}
APART = 2.5  # points between the intervals of two curves at one size
SAID = "A, B: forms of a synset; D1, D2: chains; DH: both forms have the same contexts"
CHANCE = {"D1": (0, (1, 2.5)), "D2": (0, (5, 2.5))}


def mix_words(mix: float) -> str:
    """A share of B-D2 in words: "90 % A-D1, 10 % B-D2"."""
    percent = round(100 * mix, 1)
    return f"{100 - percent:g} % A-D1, {percent:g} % B-D2" if percent else "100 % A-D1"


def frames(results, chosen) -> pd.DataFrame:
    """Every point: spelling, mix, start, domain, x (examples), value, low, high, replicates, items, n, majority."""
    parts = []
    for (spelling, share), starts in chosen.items():
        for start, curves in starts.items():
            for domain, reading in curves.items():
                if not results.values(reading).replicates:
                    continue
                frame = results.summary(reading)
                parts.append(_described(results, reading, frame, spelling, share, start, domain))
        for domain, reading in next(iter(starts.values())).items():
            bag = results.view.nulls.get(reading.recipe, {}).get("bag-of-words")
            if bag is not None and results.values(reading.of(bag)).replicates:
                frame = results.summary(reading.of(bag))
                parts.append(_described(results, reading, frame, spelling, share, BAG, domain))
    if not parts:
        raise MaskLabError("scores: none of the starting points was fine-tuned")
    return pd.concat(parts, ignore_index=True)


def _described(results, reading, frame, spelling, share, start, domain):
    (task,) = reading.tasks
    chance = results.majority(reading)
    level = np.nan if chance is None else mean_of(chance)
    facts = {"spelling": spelling, "share": share, "mix": results.view.tasks[task]["mix"], "start": start}
    return frame.assign(**facts, recipe=reading.recipe, task=task, domain=domain, majority=level)


def transfer(results, chosen):
    """One row of axes per (spelling, share) of `chosen`."""
    data = frames(results, chosen)
    shown = {start: column for column, starts in COLUMNS.items() for start in starts}
    data = data.assign(column=data["start"].map(shown))
    columns = [column for column in COLUMNS if (data["column"] == column).any()]
    height = {1: 2.3, 2: 2.2}.get(len(chosen), 2.05) * len(chosen)
    figure, grid = style.grid(len(chosen), len(columns), height, sharey=True)
    letters = iter(range(grid.size)) if grid.size > 1 else iter([None])
    for row, (spelling, share) in zip(grid, chosen, strict=True):
        part = data[(data["spelling"] == spelling) & (data["share"] == share)]
        title = mix_words(part["mix"].iloc[0])
        if len({spelling for spelling, _ in chosen}) > 1 or spelling != "single":
            title = f"{spelling.capitalize()}, {title}"
        for axes, column in zip(row, columns, strict=True):
            cell = part[part["column"] == column]
            _draw(axes, cell)
            style.panel_title(axes, column, next(letters))
        row[0].set_ylabel(f"{title}\nAccuracy")
    for axes in grid[:-1].ravel():
        axes.set_xlabel("")
    limits(grid[0, 0], [data], [Levels(level) for level in data["majority"]], least=-0.02, most=1.02, span=SPAN)
    grid[0, 0].yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    _legend(figure, data)
    several = [spelling_in_words(spelling) for spelling, _ in chosen if spelling != "single"]
    said = f"features of {several[0]}; " if len(set(several)) == 1 and len(chosen) == len(several) else ""
    write_note(figure, f"{SAID}; {said}{note([data], 'test sequences of a domain', beside=True)}")
    order = ["spelling", "share", "mix", "start", "recipe", "task", "domain", "x", "value", "low", "high", "spread"]
    order += ["replicates", "items", "n", "majority"]
    return figure, data[order].rename(columns={"x": "train_size"})


def _draw(axes, part):
    for domain in ("D1", "D2"):
        for level in part.loc[part["domain"].str.endswith(domain), "majority"].dropna().unique():
            axes.axhline(level, color="0.45", linewidth=0.8, linestyle=CHANCE[domain], zorder=1, label="_chance")
    curves = list(part.groupby(["start", "domain"], sort=False))
    for number, ((start, domain), curve) in enumerate(curves):
        curve = curve.sort_values("x")
        look = LOOKS[domain] | LINES[start]
        drawn = {"transform": aside(axes, (number - (len(curves) - 1) / 2) * APART), "color": look["color"]}
        known = curve.dropna(subset=["low"])
        axes.vlines(known["x"], known["low"], known["high"], linewidth=0.8, alpha=0.6, **drawn)
        points = {"linewidth": 1.2, "markersize": 3.6, "markeredgewidth": 0.8, "zorder": 3}
        axes.plot(curve["x"], curve["value"], label=f"{start}, {domain}", **points, **look | drawn)
        axes.update_datalim(curve[["x", "value"]].to_numpy())  # of what is moved, matplotlib does not know
    axes.margins(x=0.12)
    axes.autoscale_view()
    if len(part):
        examples_axis(axes, sorted(part["x"].unique()))


def _legend(figure, data):
    handles = {d: Line2D([], [], linewidth=1.6, markersize=4, **LOOKS[d]) for d in DOMAINS if d in set(data["domain"])}
    for start, look in LINES.items():
        if start in set(data["start"]):
            handles[start] = Line2D([], [], color="0.2", marker="o", markersize=4, linewidth=1.2, **look)
    handles |= interval_key([data], "bar")
    for chain, dashes in CHANCE.items():
        handles[f"majority, {chain}"] = Line2D([], [], color="0.45", linewidth=0.9, linestyle=dashes)
    style.legend_below(figure, list(handles.values()), list(handles), handlelength=2.9)
