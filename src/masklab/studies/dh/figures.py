"""Figures 2, 3, 5, 6 and 7: accuracy after fine-tuning against training examples, and two of ours. Figure 1: `walks`.

The paper draws a curve per domain and starting point into one panel. Here a panel is a test domain and holds all
starting points, since a sentence compares starting points on a domain: w/ DH and w/o DH in two strong colours, the
nulls (scratch, shuffled weights, a bag of synsets, the majority) in greys behind them. A row is a mix of fine-tuning
data. Curves are means over replicates with intervals where the paper has single runs, drawn side by side so that their
intervals can be told apart. All of a row are over the replicates that all of them have: each has a language of its own.
"""

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from masklab.errors import MaskLabError
from masklab.report import style
from masklab.report.levels import Levels
from masklab.report.marks import (
    SPAN,
    aside,
    examples_axis,
    geometric,
    interval_key,
    limits,
    note,
    plain_log,
    write_note,
)
from masklab.report.rows import mean_of
from masklab.scores.reading import leaves
from masklab.studies.dh.select import (
    BAG,
    BAGS,
    CBOW,
    DOMAINS,
    SCRATCH,
    SHUFFLED,
    UNITS,
    WITH,
    WITHOUT,
    spelling_in_words,
)

LOOKS = {
    WITH: {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    WITHOUT: {"color": "#D55E00", "marker": "s", "linestyle": "-"},
    CBOW: {"color": "#009E73", "marker": "^", "linestyle": (0, (6, 1.4, 1, 1.4))},
    SCRATCH: {"color": "0.35", "marker": "D", "linestyle": (0, (4, 1.6)), "fillstyle": "none"},
    SHUFFLED: {"color": "0.6", "marker": "v", "linestyle": (0, (4, 1.6)), "fillstyle": "none"},
    UNITS: {"color": "0.35", "marker": "", "linestyle": (0, (1, 1.2))},
    BAG: {"color": "0.65", "marker": "", "linestyle": (0, (1, 1.2))},
}
DOMAIN_LOOKS = {
    "A-D1": {"color": "#CC79A7", "marker": "o"},  # not the colours of w/ DH and w/o DH
    "B-D1": {"color": "0.0", "marker": "s"},
    "A-D2": {"color": "#56B4E9", "marker": "^"},
    "B-D2": {"color": "#E69F00", "marker": "D"},
}
STRONG = (WITH, WITHOUT)
APART = 2.2  # points between the intervals of two curves at one size
MARKERS = "v^sD"  # of the sizes that the figure of doses shows: no more than can be told apart
SAID = "A, B: forms of a synset; D1, D2: chains; DH: both forms have the same contexts; bags: no network"
FROM_SCRATCH = {"linewidth": 1.0, "linestyle": (0, (4, 1.6))}
MAJORITY = {"color": "0.45", "linewidth": 0.8, "linestyle": (0, (1, 3))}


def mix_words(mix: float) -> str:
    """A share of B-D2 in words: "90 % A-D1, 10 % B-D2"."""
    percent = round(100 * mix, 1)
    return f"{100 - percent:g} % A-D1, {percent:g} % B-D2" if percent else "100 % A-D1"


def trained_on(mix: float) -> tuple[str, ...]:
    """Domains that fine-tuning examples are of."""
    return ("A-D1",) if mix == 0 else ("B-D2",) if mix == 1 else ("A-D1", "B-D2")


def frames(results, chosen) -> pd.DataFrame:
    """Every point: spelling, mix, start, domain, x (examples), value, low, high, replicates, items, n, majority."""
    parts = []
    for (spelling, share), starts in chosen.items():
        drawn = [
            (start, domain, reading, reading) for start, own in starts.items() for domain, reading in own.items()
        ] + [
            (name, domain, reading, reading.of(bag))
            for domain, reading in next(iter(starts.values())).items()
            for kind, name in BAGS.items()
            if (bag := results.view.nulls.get(reading.recipe, {}).get(kind)) is not None
        ]
        shared = results.shared(curve for *_, curve in drawn)
        for start, domain, reading, curve in drawn:
            if results.values(curve).replicates:
                frame = results.summary(curve, shared)
                parts.append(_described(results, reading, frame, shared, spelling, share, start, domain))
    if not parts:
        raise MaskLabError("scores: none of the starting points was fine-tuned")
    return pd.concat(parts, ignore_index=True)


def _described(results, reading, frame, shared, spelling, share, start, domain):
    """A curve with what it is of; its majority is that of the shared replicates, too."""
    (task,) = reading.tasks
    chance = results.majority(reading)
    if chance is not None and shared is not None:
        chance = chance.at([replicate for replicate in chance.replicates if replicate in shared])
    level = np.nan if chance is None else mean_of(chance)
    facts = {"spelling": spelling, "share": share, "mix": results.view.tasks[task]["mix"], "start": start}
    return frame.assign(**facts, recipe=reading.recipe, task=task, domain=domain, majority=level)


def transfer(results, chosen):
    """One row of axes per (spelling, share) of `chosen`, one column per domain."""
    data = frames(results, chosen)
    height = {1: 2.1, 2: 2.0}.get(len(chosen), 1.8) * len(chosen)
    figure, grid = style.grid(len(chosen), len(DOMAINS), height, sharey=True, sharex=True)
    for row, (spelling, share) in zip(grid, chosen, strict=True):
        part = data[(data["spelling"] == spelling) & (data["share"] == share)]
        mix = part["mix"].iloc[0]
        title = mix_words(mix).replace(", ", ",\n")
        if len({spelling for spelling, _ in chosen}) > 1 or spelling != "single":
            title = f"{spelling.capitalize()}, {title}"
        for axes, domain in zip(row, DOMAINS, strict=True):
            _draw(axes, part[part["domain"] == domain])
            axes.set_title(f"{domain}{' (trained on)' if domain in trained_on(mix) else ''}")
        row[0].set_ylabel(f"{title}\nAccuracy")
    for axes in grid[:-1].ravel():
        axes.set_xlabel("")
    for axes in grid[-1]:
        axes.set_xlabel("Examples")
    limits(grid[0, 0], [data], [Levels(level) for level in data["majority"]], least=-0.02, most=1.02, span=SPAN)
    grid[0, 0].yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    _legend(figure, data)
    several = [spelling_in_words(spelling) for spelling, _ in chosen if spelling != "single"]
    said = f"features of {several[0]}; " if len(set(several)) == 1 and len(chosen) == len(several) else ""
    scale = "; sizes on a log scale" if geometric(sorted(data["x"].unique())) else ""
    write_note(figure, f"{SAID}; {said}{note([data], 'test sequences of a domain', beside=True)}{scale}")
    order = ["spelling", "share", "mix", "start", "recipe", "task", "domain", "x", "value", "low", "high", "spread"]
    order += ["replicates", "items", "n", "majority"]
    return figure, data[order].rename(columns={"x": "train_size"})


def _draw(axes, part):
    for level in part["majority"].dropna().unique()[:1]:
        axes.axhline(level, zorder=1, label="_majority", **MAJORITY)
    curves = [(start, part[part["start"] == start]) for start in reversed(LOOKS) if (part["start"] == start).any()]
    _side_by_side(axes, curves, LOOKS, lambda start: 1.6 if start in STRONG else 1.0)
    if len(part):
        examples_axis(axes, sorted(part["x"].unique()))


def _side_by_side(axes, curves, looks, width, apart=APART):
    """Curves [(label, frame)] with intervals as bars, each `apart` points from the one before, the last on top."""
    for number, (label, curve) in enumerate(curves):
        curve, look = curve.sort_values("x"), looks[label]
        drawn = {"transform": aside(axes, (number - (len(curves) - 1) / 2) * apart), "color": look["color"]}
        known = curve.dropna(subset=["low"])
        axes.vlines(known["x"], known["low"], known["high"], linewidth=0.8, alpha=0.6, **drawn)
        points = {"linewidth": width(label), "markersize": 3.6, "markeredgewidth": 0.8, "zorder": 3}
        axes.plot(curve["x"], curve["value"], label=label, **points, **look | drawn)
        axes.update_datalim(curve[["x", "value"]].to_numpy())  # of what is moved, matplotlib does not know
    axes.margins(x=0.12)
    axes.autoscale_view()


def _legend(figure, data):
    handles = {}
    for start, look in LOOKS.items():
        if start in set(data["start"]):
            handles[start] = Line2D([], [], markersize=4, linewidth=1.6 if start in STRONG else 1.0, **look)
    handles |= interval_key([data], "bar")
    handles["majority"] = Line2D([], [], **MAJORITY)
    style.legend_below(figure, list(handles.values()), list(handles), handlelength=2.9)


# --- of ours -------------------------------------------------------------------------------


def dose(results, chosen):
    """Accuracy on each domain against the share of mixed forms, a curve per size (at most four), a row per mix."""
    parts = []
    for share, domains in chosen.items():
        shared = results.shared(leaves(domains))
        for domain, curves in domains.items():
            for amount, reading in curves.items():
                if results.values(reading).replicates:
                    frame = results.summary(reading, shared).rename(columns={"x": "train_size"})
                    at = np.nan if amount == SCRATCH else amount
                    parts.append(_described(results, reading, frame, shared, "single", share, "", domain).assign(x=at))
    if not parts:
        raise MaskLabError("scores: no model of mixed forms was fine-tuned")
    data = pd.concat(parts, ignore_index=True)
    examples = _spread(sorted(data["train_size"].unique()), len(MARKERS))
    data = data[data["train_size"].isin(examples)]
    shades = [str(round(0.7 - 0.7 * i / max(1, len(examples) - 1), 2)) for i in range(len(examples))]
    names = {size: f"{int(size):,} examples" for size in examples}
    looks = {
        names[size]: {"color": shade, "marker": marker, "linestyle": "-"}
        for size, shade, marker in zip(examples, shades, MARKERS[: len(examples)], strict=True)
    }
    figure, grid = style.grid(len(chosen), len(DOMAINS), 2.0 * len(chosen), sharey=True, sharex=True)
    for row, share in zip(grid, chosen, strict=True):
        part = data[data["share"] == share]
        mix = part["mix"].iloc[0]
        for axes, domain in zip(row, DOMAINS, strict=True):
            cell = part[part["domain"] == domain]
            axes.axhline(cell["majority"].iloc[0], zorder=1, label="_majority", **MAJORITY)
            mixed = cell.dropna(subset=["x"])
            _side_by_side(axes, [(names[n], mixed[mixed["train_size"] == n]) for n in examples], looks, lambda _: 1.2)
            for level in cell[cell["x"].isna()].itertuples():
                color = looks[names[level.train_size]]["color"]
                axes.axhline(level.value, color=color, zorder=1, label="_scratch", **FROM_SCRATCH)
            axes.set_title(f"{domain}{' (trained on)' if domain in trained_on(mix) else ''}")
        row[0].set_ylabel(f"{mix_words(mix)}\nAccuracy".replace(", ", ",\n"))
    for axes in grid[-1]:
        axes.set_xlabel("Share of mixed forms")
        axes.set_xticks(sorted(data["x"].dropna().unique()))
    limits(grid[0, 0], [data], [Levels(level) for level in data["majority"]], least=-0.02, most=1.02, span=SPAN)
    handles = {name: Line2D([], [], linewidth=1.2, markersize=4, **look) for name, look in looks.items()}
    if data["x"].isna().any():
        handles["mean of scratch, of the same shade"] = Line2D([], [], color="0.35", **FROM_SCRATCH)
    handles |= interval_key([data], "bar") | {"majority": Line2D([], [], **MAJORITY)}
    style.legend_below(figure, list(handles.values()), list(handles), handlelength=2.9)
    said = "share 0: w/o DH, every chain keeps to one form; 1: w/ DH, a coin decides each form"
    write_note(figure, f"{said}; {note([data], 'test sequences of a domain', beside=True)}")
    order = ["share", "mix", "domain", "x", "train_size", "recipe", "task", "value", "low", "high", "spread"]
    order += ["replicates", "items", "n", "majority"]
    return figure, data[order].rename(columns={"x": "mixed"})


def _spread(values: list, most: int) -> list:
    """So many of the values at most, the first and the last among them."""
    return [values[at] for at in np.linspace(0, len(values) - 1, min(most, len(values))).round().astype(int)]


def course(results, chosen):
    """Accuracy of w/ DH against the gap of its checkpoints to the floor: a curve per domain, a panel per mix."""
    gap, curves = chosen
    shared = results.shared(leaves(chosen))
    at = results.summary(gap, shared).set_index("x")
    parts = []
    for share, domains in curves.items():
        for domain, reading in domains.items():
            frame = results.summary(reading, shared).rename(columns={"x": "step"})
            frame = frame[frame["step"].isin(at.index)]
            frame = frame.assign(x=at.loc[frame["step"], "value"].to_numpy(), size=reading.sizes)
            parts.append(_described(results, reading, frame, shared, "single", share, WITH, domain))
    data = pd.concat(parts, ignore_index=True)
    figure, grid = style.grid(1, len(curves), 2.3, sharey=True, sharex=True)
    log = (data["x"] > 0).all()  # a gap is an estimate, and one of about 0 may lie below it
    for index, (axes, share) in enumerate(zip(grid[0], curves, strict=True)):
        part = data[data["share"] == share]
        axes.axhline(part["majority"].iloc[0], zorder=1, label="_majority", **MAJORITY)
        _side_by_side(axes, [(d, part[part["domain"] == d]) for d in DOMAINS], DOMAIN_LOOKS, lambda _: 1.2, 0)
        if log:
            axes.set_xscale("log")
            plain_log(axes.xaxis)
        axes.set_xlabel(f"Gap to the floor (nats{', log scale' if log else ''})")
        style.panel_title(axes, f"Fine-tuned on\n{mix_words(part['mix'].iloc[0])}", index if len(curves) > 1 else None)
    grid[0, 0].invert_xaxis()
    grid[0, 0].set_ylabel("Accuracy")
    limits(grid[0, 0], [data], [Levels(level) for level in data["majority"]], least=-0.02, most=1.02, span=SPAN)
    handles = {d: Line2D([], [], linewidth=1.2, markersize=4, **look) for d, look in DOMAIN_LOOKS.items()}
    handles |= interval_key([data], "bar") | {"majority": Line2D([], [], **MAJORITY)}
    style.legend_below(figure, list(handles.values()), list(handles), handlelength=2.9)
    size = " and ".join(f"{size:,}" for size in data["size"].unique()) + " examples"  # in the order of the panels
    said = f"{SAID.partition('; bags')[0]}; checkpoints of w/ DH, later ones to the right; {size}"
    write_note(figure, f"{said}; {note([data], 'test sequences of a domain')}")
    order = ["share", "mix", "domain", "step", "x", "size", "recipe", "task", "value", "low", "high", "spread"]
    order += ["replicates", "items", "n", "majority"]
    return figure, data[order].rename(columns={"x": "gap", "size": "train_size"})
