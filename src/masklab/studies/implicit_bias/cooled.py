"""The figure of a course that is cooled at several of its checkpoints: what training on does once the loss is flat.

While the rate falls to 0 the loss falls too, so that along one run nothing but its end is at the least loss. Each model
here is an end of its own. Marks are as in `figures`.
"""

import textwrap

from masklab.report import levels, style
from masklab.report.marks import band, hollow, limits, step_axis
from masklab.studies.implicit_bias.figures import ABOVE, ACCURACY, COLORS, SCORES, finish, highest_levels, points, ticks
from masklab.studies.implicit_bias.select import CORPORA, said, tasks, updates
from masklab.studies.implicit_bias.traces import TRACE

ACROSS = 3


def figure_cooled(results, chosen):
    """Loss, trace and the accuracies of every task by the updates until the model was cooled."""
    view, panels = results.view, []
    for kind in chosen:
        panels += [(kind, "gap", ABOVE), (kind, "trace", TRACE)]
        panels += [(kind, task, ACCURACY) for task in tasks(view, kind)]
    rows = -(-len(panels) // ACROSS)
    figure, grid = style.grid(rows, ACROSS, 2.3 * rows)
    data, drawn = [], []
    for index, (axes, (kind, what, name)) in enumerate(zip(grid.ravel(), panels, strict=False)):
        frame, look = points(results, chosen[kind], what), {"color": COLORS[kind], "marker": "o"}
        frame = frame.assign(step=[updates(view, branch) for branch in frame["recipe"]]).sort_values("step")
        band(axes, frame, look, x="step")
        apart = frame[~frame["equal"]]
        hollow(axes, apart["step"], apart["value"], look)
        step_axis(axes, frame["step"], log=True)
        own = [highest_levels(frame)] if name == ACCURACY else []
        for level in own:
            levels.draw(axes, level)
        limits(axes, [frame], own, **(SCORES if own else {"least": 0}))
        ticks(axes.yaxis, 4)
        axes.set_ylabel(textwrap.fill(name, 20))
        of = f", {said(view, what)}" if own else ""
        style.panel_title(axes, f"{CORPORA[kind]}{of}", index)
        data.append(frame)
        drawn += own
    for axes in grid.ravel()[len(panels) :]:
        axes.remove()
    return finish(figure, results, data, {}, drawn, "the lowest loss", "band")
