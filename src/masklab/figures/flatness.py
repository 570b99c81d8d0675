"""Figures 4 and 6 of Liu, Xie, Li and Ma (2023): slices of the loss, and the two solutions on brackets.

The paper's are sketches; these are measured. Figure 4 reads the scores of `landscape` probes; Figure 6 is computed by
`masklab.theory` and reads nothing.
"""

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.figures import style

EARLY, LATE = {"color": "#D55E00", "linestyle": (0, (4, 1.6))}, {"color": "#0072B2", "linestyle": "-"}
SOLUTIONS = {1: ("(1) transferable", "#0072B2", "o"), 2: ("(2) memorised", "#D55E00", "s")}


@style.paper
def figure4(scores, study: Study, labels, metrics, starts=None, grown=None):
    """Loss along random directions: an early and a late checkpoint; a small model grown to a large one's size, and it.

    grown: probe -> whether it grows models before it measures them.
    """
    rows = scores[(scores["metric"] == "loss") & scores["probe"].isin(grown) & (scores["layer"] > 0)]
    own, larger = rows[~rows["probe"].map(grown).astype(bool)], rows[rows["probe"].map(grown).astype(bool)]
    labels = labels | {name: label for label, name in _labelled(study)}
    steps = own.groupby("model")["step"].nunique()
    if own.empty or steps.max() < 2:
        raise MaskLabError("scores: Figure 4 needs two checkpoints of a model, measured by one landscape probe")
    model = steps.idxmax()
    of = own[own["model"] == model]
    ends = of["step"].agg(["min", "max"])
    parts = [
        ("checkpoints", f"after {ends['min']:,} updates", EARLY, of[of["step"] == ends["min"]]),
        ("checkpoints", f"after {ends['max']:,} updates", LATE, of[of["step"] == ends["max"]]),
    ]
    if len(larger):
        small = larger[larger["step"] == larger["step"].max()]
        name = labels.get(small["model"].iloc[0], small["model"].iloc[0])
        parts.append(("sizes", f"{name}, grown to {labels.get(model, model)}", EARLY, small))
        parts.append(("sizes", f"{labels.get(model, model)} as trained", LATE, of[of["step"] == ends["max"]]))
    panels = list(dict.fromkeys(part[0] for part in parts))
    figure = style.new_figure(style.FULL if len(panels) == 2 else style.COLUMN, 2.4)
    data = []
    for index, (axes, panel) in enumerate(zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True)):
        for _, said, look, part in (part for part in parts if part[0] == panel):
            slices = _slices(part)
            for _, one in slices.groupby("direction"):
                axes.plot(one["offset"], one["rise"], linewidth=0.6, alpha=0.45, label="_direction", **look)
            mean = slices.groupby("offset")["rise"].mean()
            axes.plot(mean.index, mean, linewidth=1.8, label=said, **look)
            data.append(slices.assign(panel=panel, label=said))
        axes.set_xlabel("Offset along a random direction")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), handlelength=2.6)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        style.panel_title(
            axes, {"checkpoints": f"Checkpoints of {labels.get(model, model)}", "sizes": "Model size"}[panel], index
        )
        if not index:
            axes.set_ylabel("Rise of the loss (nats per token)")
    return figure, pd.concat(data, ignore_index=True)


def _labelled(study):
    """(label, model) of every panel that has labels; the first panel's label of a model stands last."""
    panels = [panel for panel in study.panels.values() if isinstance(panel, dict)] if study else []
    return [pair for panel in reversed(panels) for pair in panel.items()]


def _slices(part):
    """offset, direction, loss and its rise over the loss at offset 0, per direction."""
    part = part.rename(columns={"mix": "offset", "layer": "direction", "value": "loss"})
    start = part[part["offset"] == 0].set_index("direction")["loss"]
    part = part.assign(rise=part["loss"] - part["direction"].map(start))
    return part[["model", "step", "probe", "direction", "offset", "loss", "rise"]].sort_values(["direction", "offset"])


@style.paper
def figure6(scores, study: Study, labels, metrics, starts=None):
    """Brackets: an input, what neurons contribute under both solutions, their flatness, and what transfers."""
    from masklab.theory.dyck import contribution_rows, failure_rows, solution_rows

    terms, solutions, transfer = (pd.DataFrame(rows()) for rows in (contribution_rows, solution_rows, failure_rows))
    figure = style.new_figure(style.FULL, 4.3)
    grid = figure.subplots(2, 2).ravel()
    _encodings(grid[0])
    _contributions(grid[1], terms)
    _flatness(grid[2], solutions)
    _transfer(grid[3], transfer)
    for index, axes in enumerate(grid):
        said = ("Input, T = 6: < > - < > <", "Sums over neurons, T = 6", "Flatness", "Theorem 5.1, T = 6")[index]
        style.panel_title(axes, said, index)
    parts = {"contributions": terms, "solutions": solutions, "transfer": transfer}
    return figure, pd.concat([frame.assign(part=name) for name, frame in parts.items()], ignore_index=True)


def _encodings(axes):
    """Tokens of one masked sentence as rows of their 2 T numbers: brackets on the left, the mask on the right."""
    signs, hidden = (1, -1, 0, 1, -1, 1), 2
    values = np.zeros((6, 12))
    for place, sign in enumerate(signs):
        values[place, place + 6 * (place == hidden)] = sign or 1
    axes.imshow(values, cmap="RdBu_r", vmin=-1.6, vmax=1.6, aspect="auto")
    for place, column in zip(*np.nonzero(values), strict=True):
        text = "±1" if place == hidden else f"{values[place, column]:+.0f}"
        axes.text(column, place, text, ha="center", va="center", fontsize=7)
    axes.axvline(5.5, color="0.35", linewidth=0.9)
    axes.set_yticks(range(6), ["<", ">", "mask", "<", ">", "<"], parse_math=False)
    axes.set_xticks(range(12), range(1, 13))
    axes.set_xlabel("Dimension (right half: place of the mask)")
    axes.tick_params(length=0)


def _contributions(axes, terms):
    for number, part in terms.groupby("solution"):
        said, color, marker = SOLUTIONS[number]
        look = {"color": color, "marker": marker, "markersize": 3.5, "markerfacecolor": "none"}
        axes.plot(part["positive"], -part["negative"], linestyle="", label=said, clip_on=False, zorder=3, **look)
    top = max(terms["positive"].max(), -terms["negative"].min()) * 1.05
    axes.set(xlim=(0, top), ylim=(0, top), xlabel="Positive terms", ylabel="Negative terms (sign off)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=2)


def _flatness(axes, solutions):
    lengths = sorted(solutions["length"].unique())
    for number, part in solutions.groupby("solution"):
        said, color, _ = SOLUTIONS[number]
        places = np.arange(len(lengths)) + (number - 1.5) * 0.38
        bars = axes.bar(
            places, part.sort_values("length")["squared_gradient_balanced"], width=0.36, color=color, label=said
        )
        axes.bar_label(bars, fmt="%.2f", fontsize=7, padding=1)
    bounds = solutions.groupby("length")["bound"].first()
    for place, length in enumerate(lengths):
        axes.hlines(bounds[length], place - 0.42, place + 0.42, color="0.2", linestyle=(0, (3, 1.5)), linewidth=1)
    axes.plot([], [], color="0.2", linestyle=(0, (3, 1.5)), linewidth=1, label="least possible")
    axes.set_xticks(range(len(lengths)), [f"T = {length}" for length in lengths])
    axes.set_ylabel(r"$E\,\|\nabla f\|^2$, neurons balanced")
    axes.margins(y=0.14)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3, columnspacing=1, handlelength=1.4)


def _transfer(axes, rows):
    axes.errorbar(
        rows["samples"],
        rows["measured"],
        yerr=1.96 * rows["error"],
        linestyle="",
        color="#0072B2",
        marker="o",
        label="measured",
    )
    axes.plot(rows["samples"], rows["corrected"], color="0.2", label="exact formula")
    axes.plot(rows["samples"], rows["paper"], color="#D55E00", linestyle=(0, (4, 1.6)), label=r"paper, $2^{-n}$")
    axes.set_yscale("log")
    axes.set(xlabel="Downstream samples n", ylabel="Probability of failure")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28), ncols=3, columnspacing=1, handlelength=1.8)
