"""Accuracy after fine-tuning against training size: one row of panels per mix, one colour per test domain.

Hue tells the vocabulary (A cool, B warm), lightness the chain (D1 dark, D2 light); markers tell the domains and
dashes and hollow markers the starting points, so that the figure can be read in grey.
"""

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from masklab.curves import DOMAINS, averaged, curves
from masklab.errors import MaskLabError
from masklab.figures import style

LOOKS = {
    "A-D1": {"color": "#0072B2", "marker": "o"},
    "B-D1": {"color": "#D55E00", "marker": "s"},
    "A-D2": {"color": "#56B4E9", "marker": "^"},
    "B-D2": {"color": "#E69F00", "marker": "D"},
}
STARTS = {
    "w/ DH": {"linestyle": "-", "fillstyle": "full"},
    "w/o DH": {"linestyle": (0, (4, 1.6)), "fillstyle": "none"},
    "CBOW": {"linestyle": (0, (6, 1.4, 1, 1.4)), "fillstyle": "full"},
    "scratch": {"linestyle": (0, (1, 1.2)), "fillstyle": "none"},
}
# Columns as published; shuffled weights are left to the tables ("similar performance as from scratch", footnote 2).
COLUMNS = {"MLMs": ("w/ DH", "w/o DH"), "CBOW and scratch": ("CBOW", "scratch")}
CHANCE = {"D1": (0, (1, 2.5)), "D2": (0, (5, 2.5))}


def mix_title(name: str) -> str:
    """Set "single-10" -> "90 % A-D1, 10 % B-D2"."""
    percent = int(name.rpartition("-")[2])
    return f"{100 - percent} % A-D1, {percent} % B-D2" if percent else "100 % A-D1"


def transfer_figure(scores, study, sets: dict[str, str], height: float = 2.5):
    """Draw the sets (set -> title of its row), each as the columns of `COLUMNS`; returns (figure, data drawn)."""
    data = pd.concat([averaged(curves(scores, study, name)) for name in sets], ignore_index=True)
    shown = {label: column for column, labels in COLUMNS.items() for label in labels}
    data = data[data["label"].isin(shown)].assign(column=data["label"].map(shown)).reset_index(drop=True)
    columns = [column for column in COLUMNS if (data["column"] == column).any()]
    if not columns:
        raise MaskLabError(f"scores: none of {', '.join(shown)} was measured for {', '.join(sets)}")
    width = style.FULL if len(columns) == 2 else style.COLUMN
    figure = style.new_figure(width, height * len(sets))
    grid = figure.subplots(len(sets), len(columns), sharey="row", squeeze=False)
    letters = iter(range(grid.size)) if grid.size > 1 else iter([None])
    for row, (name, title) in zip(grid, sets.items(), strict=True):
        part = data[data["set"] == name]
        for axes, column in zip(row, columns, strict=True):
            _draw(axes, part[part["column"] == column])
            style.panel_title(axes, f"{title}: {column}", next(letters))
        _limits(row, part)
        row[0].set_ylabel("Accuracy")
    for axes in grid[-1]:
        axes.set_xlabel("Fine-tuning examples")
    _legend(figure, data)
    return figure, data


def _draw(axes, part):
    for domain in ("D1", "D2"):
        for level in part.loc[part["domain"].str.endswith(domain), "majority"].unique():
            axes.axhline(level, color="0.45", linewidth=0.8, linestyle=CHANCE[domain], zorder=1, label="_chance")
    for (label, domain), curve in part.groupby(["label", "domain"], sort=False):
        curve = curve.sort_values("train_size")
        look = LOOKS[domain] | STARTS[label]
        if curve["low"].notna().any():
            band = curve[["low", "high"]].clip(0, 1)
            axes.fill_between(
                curve["train_size"], band["low"], band["high"], color=look["color"], alpha=0.13, linewidth=0, zorder=2
            )
        axes.plot(
            curve["train_size"],
            curve["value"],
            linewidth=1.2,
            markersize=3.6,
            markeredgewidth=0.8,
            zorder=3,
            label=f"{label}, {domain}",
            **look,
        )
    size_axis(axes, sorted(part["train_size"].unique()))


def size_axis(axes, sizes) -> None:
    """Ticks at the sizes; a log axis where they grow by a factor, a linear one where they grow by an amount."""
    sizes = np.asarray(sizes, float)
    if geometric(sizes):
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
    every = -(-len(sizes) // 6)
    axes.xaxis.set_major_locator(FixedLocator(sizes[::-1][::every][::-1]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 10_000 else f"{x:,.0f}"))


def geometric(sizes) -> bool:
    """Whether ascending sizes are nearer to a geometric than to an arithmetic sequence, by a factor of 3 or more."""
    sizes = np.asarray(sizes, float)
    if len(sizes) < 2 or sizes[-1] / sizes[0] < 3:
        return False
    if len(sizes) == 2:
        return True
    ratios, steps = np.diff(np.log(sizes)), np.diff(sizes)
    return bool(ratios.std() / ratios.mean() < steps.std() / steps.mean())


def _limits(row, part):
    low = part[["value", "low", "majority"]].min(axis=None)
    high = part[["value", "high", "majority"]].max(axis=None)
    room = 0.05 * (high - low) or 0.05
    row[0].set_ylim(max(low - room, -0.02), min(high + room, 1.02))
    row[0].yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))


def _legend(figure, data):
    handles = {d: Line2D([], [], linewidth=1.6, markersize=4, **LOOKS[d]) for d in DOMAINS if d in set(data["domain"])}
    for label, look in STARTS.items():
        if label in set(data["label"]):
            handles[label] = Line2D([], [], color="0.2", marker="o", markersize=4, linewidth=1.2, **look)
    for chain, dashes in CHANCE.items():
        handles[f"majority, {chain}"] = Line2D([], [], color="0.45", linewidth=0.9, linestyle=dashes)
    kinds = set(data["interval"])
    if kinds != {"none"}:
        said = "95 % t interval" if kinds == {"t95"} else "range of seeds" if "t95" not in kinds else "interval"
        handles[said] = Patch(color="0.5", alpha=0.25, linewidth=0)
    width, height = figure.get_size_inches()
    columns = 6 if width > 4 else 3  # two rows: domains, starting points, the rest
    rows = -(-len(handles) // columns)
    figure.set_size_inches(width, height + 0.17 * rows + 0.3)
    seeds, tests = data["seeds"], data["n"]
    runs = f"{seeds.max()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    items = f"{tests.max():,}" if tests.min() == tests.max() else f"{tests.min():,} to {tests.max():,}"
    note = f"Mean of {runs} seed{'s' if seeds.max() > 1 else ''}; {items} test sequences per domain"
    figure.legend(
        handles.values(),
        handles,
        loc="outside lower center",
        ncols=columns,
        columnspacing=1.1,
        handlelength=2.9,
        title=note,
        title_fontsize=7.5,
    )
