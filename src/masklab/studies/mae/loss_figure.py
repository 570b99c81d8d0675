"""Gaps of ranks and shares outside real tokens' subspace against the loss, checkpoint by checkpoint."""

import numpy as np
import pandas as pd

from masklab.report import style
from masklab.report.marks import bars, interval_key, key, limits, note, write_note
from masklab.scores.estimate import estimate
from masklab.scores.reading import leaves
from masklab.studies.mae.figures import COUNTED

TITLES = {
    "gap": "Masked − unmasked",
    "own": "[MASK]s themselves",
    "outside": "Above hidden words",
}
HEIGHT = 2.1


def figure_loss(results, chosen):
    """What is measured against the validation loss in nats, a curve per recipe over its checkpoints.

    Curves of a panel are over the replicates that all its recipes have: each may have a language of its own.
    """
    figure, grid = style.grid(len(chosen), len(TITLES), HEIGHT * len(chosen))
    looks = style.looks(dict.fromkeys(label for own in chosen.values() for by in own.values() for label in by))
    data, letters = [], iter(range(grid.size))
    for row, (title, own) in zip(grid, chosen.items(), strict=True):
        shared = results.shared(leaves(own))
        for axes, (what, effects) in zip(row, own.items(), strict=True):
            frames = [_curve(results, effect, shared).assign(panel=title, label=label, what=what)
                      for label, effect in effects.items()]  # fmt: skip
            for frame in frames:
                bars(axes, frame["loss"], frame, **looks[frame["label"].iloc[0]])
            axes.axhline(0, color="0.6", linewidth=0.8, zorder=0, label="_nothing")
            limits(axes, frames)
            axes.set_xlabel("Validation loss (nats)")
            unit = "share outside" if what == "outside" else "rank, centred"
            axes.set_ylabel(unit.capitalize())
            said = TITLES[what] if len(chosen) == 1 else f"{title}:\n{TITLES[what]}"
            style.panel_title(axes, said, next(letters))
            data += frames
    handles = dict(key(label, **look) for label, look in looks.items())
    style.legend_of(figure, handles, interval_key(data, "bar"), handlelength=3)
    write_note(figure, note(data, COUNTED.format("")))
    return figure, pd.concat(data, ignore_index=True)


def _curve(results, effect, shared) -> pd.DataFrame:
    """A sum of curves over checkpoints: step, loss, value, low, high, ... of each, losses falling.

    shared: over these replicates alone; None: over those that all its terms have.
    """
    shared = shared or results.shared(effect.readings())
    parts = [(weight, results.values(reading).at(shared)) for weight, reading in effect.terms]
    recipe, first = effect.terms[0][1].recipe, parts[0][1]
    total = sum(weight * part.data[:, :, 0] for weight, part in parts)
    losses = [results.models[recipe, r]["valid_loss"] for r in first.replicates]
    rows = []
    for point, step in enumerate(first.x):
        made = estimate(total[:, point])
        loss = float(np.mean([own[str(int(step))] for own in losses]))
        rows.append((int(step), loss, made.value, made.low, made.high, made.replicates, made.items))
    frame = pd.DataFrame(rows, columns=["step", "loss", "value", "low", "high", "replicates", "items"])
    n = results.items_behind(effect.terms[0][1], shared)
    return frame.sort_values("loss", ascending=False).assign(recipe=recipe, n=n)
