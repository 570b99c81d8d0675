"""Figures 4 and 6 and that of Theorem 3.3: slices of the loss, two solutions on brackets, the drift of SGD.

The paper's are sketches, or none; these are measured. Figure 4 reads the scores of `landscape` probes; the others are
computed by `masklab.theory` and read nothing.
"""

import numpy as np
import pandas as pd
from matplotlib.ticker import MaxNLocator

from masklab.errors import MaskLabError
from masklab.report import style
from masklab.report.marks import LOG, band, interval_key, note, write_note
from masklab.scores.estimate import estimate
from masklab.studies.implicit_bias.figures import size_of

EARLY, LATE = {"color": "#D55E00", "linestyle": (0, (4, 1.6))}, {"color": "#0072B2", "linestyle": "-"}
DRIFTS = {1: "#0072B2", 4: "#D55E00"}  # batch -> colour
DRIFT_RATES = {0.2: False, 0.05: True}  # rate -> whether its marks are filled
SOLUTIONS = {1: ("(1) transferable", "#0072B2", "o"), 2: ("(2) memorised", "#D55E00", "s")}


def figure4(results, chosen):
    """Mean loss along random directions: an early and a late checkpoint; a small model grown to a large one's, and it.

    A replicate's curve is the mean over its directions.
    """
    recipe = next(recipe for recipe, _ in chosen["own"])
    own = [chosen["own"][recipe, which] for which in ("first", "last")]
    early, late = _rises(results, own)
    if early["step"].iloc[0] == late["step"].iloc[0]:
        raise MaskLabError("scores: Figure 4 needs two checkpoints of a recipe, measured by one landscape probe")
    parts = {
        f"Checkpoints of {size_of(results, recipe)}": {f"after {f['step'].iloc[0]:,} updates": f for f in (early, late)}
    }
    for (small, _), reading in list(chosen["grown"].items())[:1]:
        grown, large = _rises(results, [reading, own[-1]])
        parts["A small model grown to a large one's size"] = {
            f"{size_of(results, small)}, grown": grown,
            f"{size_of(results, recipe)}, as trained": large,
        }
    figure = style.new_figure(style.FULL if len(parts) == 2 else style.COLUMN, 2.4)
    grid, data = figure.subplots(1, len(parts), squeeze=False, sharey=True)[0], []
    for index, (axes, (title, curves)) in enumerate(zip(grid, parts.items(), strict=True)):
        handles = {}
        for look, (said, frame) in zip((EARLY, LATE), curves.items(), strict=True):
            handles[style.plain(said)] = band(axes, frame, look, said, x="offset")
            data.append(frame.assign(panel=title, label=said))
        axes.set_xlabel("Offset along random directions")
        axes.legend(handles.values(), handles, loc="upper center", bbox_to_anchor=(0.5, -0.22), handlelength=2.6)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        style.panel_title(axes, title, index)
    grid[0].set_ylabel("Rise of the loss (nats per token)")
    if intervals := interval_key(data, "band"):
        style.legend_below(figure, list(intervals.values()), list(intervals), handlelength=2.6)
    write_note(figure, f"mean over directions; {note(data)}")
    return figure, pd.concat(data, ignore_index=True)


def _rises(results, readings):
    """`_rise` of each reading, over the replicates that all have: others may be of languages of their own."""
    shared = results.shared(readings)
    return [_rise(results, reading, shared) for reading in readings]


def _rise(results, reading, shared):
    """The loss over offsets less that at offset 0, in each replicate: offset, value, low, high, replicates, items."""
    losses = results.values(reading)
    if not losses.replicates:
        raise MaskLabError(f"scores: nothing was measured of {reading.words(results.view)}")
    losses = losses if shared is None else losses.at(shared)
    rise = losses.data - losses.data[:, losses.x == 0]
    rows = [(x, made.value, made.low, made.high, made.replicates, made.items)
            for x, made in zip(losses.x, map(estimate, rise.swapaxes(0, 1)), strict=True)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["offset", "value", "low", "high", "replicates", "items"])
    return frame.assign(recipe=reading.recipe, step=int(results.rows(reading)["step"].iloc[0]))


def figure6(results, chosen):
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
            places,
            part.sort_values("length")["squared_gradient_balanced"],
            width=0.36,
            color=color,
            hatch=("", "////")[number - 1],
            edgecolor="white",
            linewidth=0,
            label=said,
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
        label="measured, 95 % interval",
    )
    axes.plot(rows["samples"], rows["corrected"], color="0.2", label="exact formula")
    axes.plot(rows["samples"], rows["paper"], color="#D55E00", linestyle=(0, (4, 1.6)), label=r"paper, $2^{-n}$")
    axes.set_yscale("log")
    axes.set(xlabel="Downstream samples n", ylabel=f"Probability of failure{LOG}")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.28), ncols=2, columnspacing=1, handlelength=1.8)


def figure_drift(results, chosen):
    """Theorem 3.3 on a logistic model of two weights: how far SGD is from the flattest minimum, by k lr^2 / B."""
    from masklab.theory.toy import decay_rows, predicted

    rows = pd.DataFrame(decay_rows())
    rows["collapsed"] = rows["time"] / rows["batch"]
    figure = style.new_figure(style.COLUMN, 2.6)
    axes = figure.subplots()
    for (batch, look), marker in zip(DRIFTS.items(), ("o", "s"), strict=True):
        for lr, filled in DRIFT_RATES.items():
            part = rows[(rows["batch"] == batch) & (rows["lr"] == lr)]
            face = look if filled else "none"
            axes.errorbar(
                part["collapsed"], part["measured"], yerr=1.96 * part["error"], linestyle="", color=look, marker=marker,
                markersize=4, markerfacecolor=face, label=f"B = {batch}, lr = {lr:g}",
            )  # fmt: skip
    x = np.linspace(0, rows["collapsed"].max(), 100)
    axes.plot(x, predicted(x, 1), color="0.2", linewidth=1, zorder=1, label="theorem 3.3")
    axes.set(xlabel=r"$k\,\mathrm{lr}^2 / B$ after k updates", ylabel=r"$a^2 - b^2$ (1 at the start)", xlim=(0, None))
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.22), ncols=2, columnspacing=1)
    write_note(figure, "mean and 95 % interval of 4,000 runs; logit a b, P(1) = 0.3; flattest where a = b")
    return figure, rows
