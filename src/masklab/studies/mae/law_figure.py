"""Ranks of states, gaps of ranks and shares outside real tokens' subspace against the known rank of a law."""

import pandas as pd

from masklab.claims.values import effect_estimate
from masklab.report import style
from masklab.report.marks import APART, LOG, bars, interval_key, key, limits, note, plain_log, write_note
from masklab.scores.reading import Reading, leaves
from masklab.studies.mae.figures import COUNTED

HEIGHT = 2.1
ROOM = 1.2  # beyond the lowest and the highest rank of T, as a factor
COLUMNS = {
    "Rank, centred": ("masks", "real", "initial", "law"),
    "Gap of ranks, centred": ("gap", "own"),
    "Share outside": ("mask-positions", "random-words", "hidden-words"),
}
LOOKS = {
    "masks": ("[MASK]s", {"color": "#D55E00", "marker": "s", "linestyle": "-"}),
    "real": ("real tokens", {"color": "#0072B2", "marker": "o", "linestyle": (0, (5, 1.5))}),
    "initial": ("[MASK]s at initial weights", {"color": "0.35", "marker": "x", "linestyle": (0, (1, 1.2))}),
    "law": ("T itself", {"color": "0.45", "marker": "", "linestyle": "-", "linewidth": 0.9}),
    "gap": ("masked − unmasked", {"color": "#000000", "marker": "D", "linestyle": "-"}),
    "own": ("of it [MASK]s themselves", {"color": "#CC79A7", "marker": "v", "linestyle": (0, (4, 1.2, 1, 1.2))}),
    "random-words": ("random words", {"color": "#009E73", "marker": "^", "linestyle": (0, (1, 1.2))}),
}
WIDTH = {"color": "0.75", "linestyle": "-", "linewidth": 2.5}
LOOKS |= {"mask-positions": LOOKS["masks"], "hidden-words": ("the words they hide", LOOKS["real"][1])}


def figure_law(results, chosen):
    """A row per way of pre-training: ranks in the last layer, gaps, and shares outside, against the rank of T.

    A row is over the replicates that its models of all laws have.
    """
    figure, grid = style.grid(len(chosen), len(COLUMNS), HEIGHT * len(chosen), sharex=True)
    data, shown, letters = [], {}, iter(range(grid.size))
    for row, (label, own) in zip(grid, chosen.items(), strict=True):
        shared = results.shared(leaves(own))
        width = results.view.fact(next(iter(own["masks"].values())).recipe, "encoder.hidden")
        for axes, (title, whats) in zip(row, COLUMNS.items(), strict=True):
            frames = [_points(results, own[what], shared).assign(label=label, what=what) for what in whats]
            frames = [frame for frame in frames if len(frame)]
            axes.set_xscale("log")
            for number, frame in enumerate(frames):
                name, look = LOOKS[frame["what"].iloc[0]]
                bars(axes, frame["x"], frame, (number - (len(frames) - 1) / 2) * APART, **look)
                shown[name] = look
            limits(axes, frames, least=0.0 if title != "Gap of ranks, centred" else None)
            axes.axvline(width, zorder=0, **WIDTH)
            at = sorted({x for frame in frames for x in frame["x"]})
            axes.set_xlim(at[0] / ROOM, at[-1] * ROOM)
            plain_log(axes.xaxis)
            axes.set_xticks(at)
            axes.set_xlabel(f"Rank of T{LOG}")
            style.panel_title(axes, title if len(chosen) == 1 else f"{label}: {title}", next(letters))
            data += frames
    shown["width of the encoder"] = WIDTH
    handles = dict(key(name, **look) for name, look in shown.items()) | interval_key(data, "bar")
    style.legend_below(figure, list(handles.values()), list(handles), handlelength=3)
    write_note(figure, note(data, COUNTED.format(""), beside=True))
    return figure, pd.concat(data, ignore_index=True)


def _points(results, by_rank, shared) -> pd.DataFrame:
    """x, value, low, high, ... of effects or readings by rank of T; without those that were not measured."""
    rows = []
    for x, effect in by_rank.items():
        made = effect_estimate(effect, results, replicates=shared)
        if made.replicates:
            reading = effect if isinstance(effect, Reading) else leaves(effect)[0]
            rows.append((x, made.value, made.low, made.high, made.replicates, made.items, reading.recipe,
                         results.items_behind(reading, shared)))  # fmt: skip
    return pd.DataFrame(rows, columns=["x", "value", "low", "high", "replicates", "items", "recipe", "n"])
