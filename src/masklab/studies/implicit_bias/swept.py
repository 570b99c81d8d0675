"""The figure of SGD at several rates and batch sizes: whether they drift alike by the time of Theorem 3.3.

Each point is the end of a run of its own, cooled to a rate of 0, so that all are at the loss at which such a run ends.
Marks are as in `figures`.
"""

import textwrap

from masklab.report import levels, style
from masklab.report.marks import bars, hollow, limits
from masklab.studies.implicit_bias.figures import ABOVE, ACCURACY, COLORS, SCORES, finish, highest_levels, points, ticks
from masklab.studies.implicit_bias.select import CORPORA, drift, said, sgd, tasks
from masklab.studies.implicit_bias.traces import TRACE

ACROSS = 3
TIME = "updates x rate² / batch size"


def figure_swept(results, chosen):
    """Trace by updates, and by k eta^2 / B trace, loss and the accuracies of every task."""
    view, panels = results.view, []
    for kind in chosen:
        panels += [(kind, "trace", TRACE, "updates"), (kind, "trace", TRACE, "drift"), (kind, "gap", ABOVE, "drift")]
        panels += [(kind, task, ACCURACY, "drift") for task in tasks(view, kind)]
    rows = -(-len(panels) // ACROSS)
    figure, grid = style.grid(rows, ACROSS, 2.4 * rows)
    data, drawn = [], []
    for index, (axes, (kind, what, name, over)) in enumerate(zip(grid.ravel(), panels, strict=False)):
        frame = _placed(view, kind, points(results, chosen[kind], what))
        look = {"color": COLORS[kind], "marker": "o", "linestyle": ""}
        bars(axes, frame[over], frame, **look)
        apart = frame[~frame["equal"]]
        hollow(axes, apart[over], apart["value"], look)
        own = [highest_levels(frame)] if name == ACCURACY else []
        for level in own:
            levels.draw(axes, level)
        limits(axes, [frame], own, **(SCORES if own else {"least": 0}))
        ticks(axes.xaxis, 4)
        ticks(axes.yaxis, 4)
        axes.set_xlabel("Updates of SGD" if over == "updates" else TIME)
        axes.set_ylabel(textwrap.fill(name, 20))
        style.panel_title(axes, f"{CORPORA[kind]}{f', {said(view, what)}' if own else ''}", index)
        if over == "drift":
            data.append(frame)
        drawn += own
    for axes in grid.ravel()[len(panels) :]:
        axes.remove()
    return finish(figure, results, data, {}, drawn, "the lowest loss")


def _placed(view, kind, frame):
    """With the rate, batch size, updates and drift of each run; 0 of what they start from."""
    start, facts = sgd(view, kind)[1][0], {"rate": "optimiser.lr", "batch_size": "batch_size", "updates": "steps"}
    begun = frame["recipe"] == start
    for column, fact in facts.items():
        frame[column] = [
            0 if at else view.fact(recipe, fact) for recipe, at in zip(frame["recipe"], begun, strict=True)
        ]
    frame["drift"] = [0.0 if at else drift(view, recipe) for recipe, at in zip(frame["recipe"], begun, strict=True)]
    return frame.sort_values("drift")
