"""The figure of the intervention: models trained alike but for a term that lowers or raises the trace of the Hessian.

Where the paper sees trace and accuracy change together with size or updates, here a term that is about the trace alone
changes it. Marks are as in `figures`.
"""

import itertools
import textwrap

import numpy as np

from masklab.report import levels, style
from masklab.report.marks import bars, hollow, limits
from masklab.studies.implicit_bias.figures import ABOVE, ACCURACY, COLORS, SCORES, finish, highest_levels, points, ticks
from masklab.studies.implicit_bias.select import CORPORA, press, said, tasks
from masklab.studies.implicit_bias.traces import TRACE, cross


def figure_pressed(results, chosen):
    """Two rows per kind of corpus: trace and loss by the term's weight; accuracy against the trace, task by task."""
    kinds = {kind: tasks(results.view, kind) for kind in chosen}
    figure, grid = style.grid(2 * len(kinds), max(2, *map(len, kinds.values())), 4.6 * len(kinds))
    data, drawn, letters = [], [], itertools.count()
    for number, (kind, own) in enumerate(kinds.items()):
        look, (above, below) = {"color": COLORS[kind], "marker": "o"}, grid[2 * number : 2 * number + 2]
        frames = {what: _in_order(points(results, chosen[kind], what), chosen[kind]) for what in ("trace", "gap", *own)}
        weights = [press(results.view, name) for name in chosen[kind]]
        for axes, what, name in zip(above, ("trace", "gap"), (TRACE, ABOVE), strict=False):
            _by_weight(axes, weights, frames[what], look)
            axes.set_ylabel(textwrap.fill(name, 20))
            style.panel_title(axes, CORPORA[kind], next(letters))
        for axes, task in zip(below, own, strict=False):
            cross(axes, frames[task], frames["trace"], look)
            drawn.append(highest_levels(frames[task]))
            levels.draw(axes, drawn[-1])
            limits(axes, [frames[task]], drawn[-1:], **SCORES)
            ticks(axes.xaxis, 3)
            ticks(axes.yaxis, 4)
            axes.set_xlabel(TRACE)
            style.panel_title(axes, f"{CORPORA[kind]}, {said(results.view, task)}", next(letters))
        below[0].set_ylabel(ACCURACY)
        for axes in (*above[2:], *below[len(own) :]):
            axes.remove()
        data += [frame.assign(weight=weights) for frame in frames.values()]
    return finish(figure, results, data, {}, drawn, "the lowest loss")


def _by_weight(axes, weights, frame, look):
    """Equally spaced, from the sharpest to the flattest; hollow: off the lowest loss."""
    places, apart = np.arange(len(weights)), ~frame["equal"].to_numpy()
    bars(axes, places, frame, **look)
    hollow(axes, places[apart], frame["value"][apart], look)
    axes.set_xticks(places, [f"{weight:+g}" if weight else "0" for weight in weights])
    axes.set_xlabel("weight on the trace\n(below 0: raised)")
    limits(axes, [frame], least=0)
    ticks(axes.yaxis, 4)


def _in_order(frame, members):
    return frame.set_index("recipe").loc[list(members)].reset_index()
