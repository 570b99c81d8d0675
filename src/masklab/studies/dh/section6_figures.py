"""Section 6: how the change after a replacement goes with what was predicted before.

The paper's Figure 4 has the correlation over steps and over data sizes, a curve per level of features, and so has the
figure of text. On the pseudo-language a column says which replacements count: all of them, as in the paper, whose
paraphrases are noisy; true synonyms alone; other features alone. Curves of a panel are over the replicates that all of
them have.
"""

import itertools

import pandas as pd
from matplotlib.lines import Line2D

from masklab.errors import MaskLabError
from masklab.phrases import (
    DRAWN_WORD,
    EXAMPLE,
    HELD,
    IN_TEXT,
    LONG,
    MEANS,
    SHORT,
    WITH,
    WORD,
    is_drawn,
    is_held_fixed,
    is_in_text,
)
from masklab.report import style
from masklab.report.marks import examples_axis, interval_key, note, plain_log, scale_of, write_note
from masklab.report.rows import table_of
from masklab.scores.reading import nulls_of, task_names
from masklab.studies.dh.figures import APART, LOOKS, MAJORITY, STRONG, _side_by_side
from masklab.studies.dh.section6 import LOW, PARTS, STARTS
from masklab.studies.dh.section6_text import FRESH, FRESH_ACCURACY, UNTRAINED

WIDE = 24.0  # points between the first and the last of curves side by side, at most
LETTERS = 26  # of a line beside an axis
AXES = ("updates of fine-tuning", "training examples")
LEVEL_LOOKS = {
    WORD: {"color": "#D55E00", "marker": "o", "linestyle": "-"},
    DRAWN_WORD: {"color": "#CC79A7", "marker": "s", "linestyle": "-"},
    SHORT: {"color": "#E69F00", "marker": "s", "linestyle": "-"},
    LONG: {"color": "#009E73", "marker": "^", "linestyle": "-"},
    WITH: {"color": "#56B4E9", "marker": "v", "linestyle": (0, (4, 1.6))},
    MEANS: {"color": "#0072B2", "marker": "D", "linestyle": (0, (4, 1.6))},
    EXAMPLE: {"color": "0.2", "marker": "P", "linestyle": (0, (1, 1.2))},
}
ENDINGS = ("", HELD, IN_TEXT, IN_TEXT + HELD)  # of levels: a row of axes each
HOLLOW = {"fillstyle": "none", "linestyle": (0, (1, 2)), "alpha": 0.7}  # initial weights, with their own D_f0
CROSSED = {"marker": "x", "linestyle": "", "alpha": 0.9}  # ... with the D_f0 of the recipe
NULL_KEYS = {"initial weights, own D_f0": HOLLOW | {"marker": "o"}, "initial weights, D_f0 of the pre-trained": CROSSED}
ASKED = "in its text: at the words beside the feature, each hidden in turn; else at the paper's queries"
FIXED = (
    "held fixed: numbers of words and of tokens of the text, the word and its synonym, shared spelling, part of speech"
)
OF_TEXT = "D_f0: distance of what is predicted at the queries' masks, before fine-tuning; D_f: change of the prediction"
SAID = "D_f0: distance before fine-tuning, at `a [MASK]` and `b [MASK]`; D_f: change of the prediction, b in place of a"
WHICH = "drawn: the same features for all starting points; else the most salient ones of each classifier"


def replaced(results, chosen):
    """One row of axes per level, drawn features too, one column per kind of replacement, over training examples."""
    data = _frame(results, {(name, PARTS[part]): of for name, parts in chosen.items() for part, of in parts.items()})
    figure, grid = style.grid(len(chosen), len(PARTS), 2.1 * len(chosen), sharey=True, sharex=True)
    for row, name in zip(grid, chosen, strict=True):
        for axes, part in zip(row, PARTS.values(), strict=True):
            cell = data[(data["level"] == name) & (data["part"] == part)]
            _draw(axes, cell)
            examples_axis(axes, sizes := sorted(data["x"].unique()))
            axes.set_title(part[0].upper() + part[1:])
            axes.set_xlabel(f"Examples{scale_of(sizes)}" if name == [*chosen][-1] else "")
        row[0].set_ylabel(f"{name[0].upper()}{name[1:]}\nCorrelation of $D_f$ with $D_{{f_0}}$")
    _finish(figure, grid, data, said=f"{SAID}; {WHICH}" if any(map(is_drawn, chosen)) else SAID)
    return figure, data.rename(columns={"x": "train_size"})


def course(results, chosen):
    """One panel per level, over the updates of fine-tuning on the largest set."""
    data = _frame(results, {(name, PARTS[None]): of for name, of in chosen.items()})
    figure, grid = style.grid(1, len(chosen), 2.3, sharey=True, sharex=True)
    for index, (axes, name) in enumerate(zip(grid[0], chosen, strict=True)):
        _draw(axes, data[data["level"] == name])
        axes.set_xscale("log")
        plain_log(axes.xaxis)
        axes.set_xlabel("Updates of fine-tuning (log scale)")
        style.panel_title(axes, name, index if len(chosen) > 1 else None)
    grid[0, 0].set_ylabel("Correlation of $D_f$ with $D_{f_0}$")
    _finish(figure, grid, data)
    return figure, data.rename(columns={"x": "updates"})


def _frame(results, readings):
    """Every point: level, part, start, recipe, task, x, value, low, high, spread, replicates, items, n."""
    parts = []
    for (name, part), starts in readings.items():
        shared = results.shared(starts.values())
        for start, reading in starts.items():
            if results.values(reading).replicates:
                said = {"level": name, "part": part, "start": start, "recipe": reading.recipe, "task": reading.tasks[0]}
                parts.append(results.summary(reading, shared).assign(**said))
    if not parts:
        raise MaskLabError("scores: no features were replaced")
    order = ["level", "part", "start", "recipe", "task", "x", "value", "low", "high", "spread", "replicates", "items"]
    return pd.concat(parts, ignore_index=True)[[*order, "n"]]


def _draw(axes, cell, looks=None, low=True):
    axes.axhline(0, zorder=1, label="_none", color="0.8", linewidth=0.8)
    if low:
        axes.axhline(LOW, zorder=1, label="_low", **MAJORITY)
    order = STARTS if looks is None else looks
    curves = [(start, cell[cell["start"] == start]) for start in reversed(order) if (cell["start"] == start).any()]
    apart = min(APART, WIDE / max(1, len(curves)))
    _side_by_side(axes, curves, looks or LOOKS, lambda start: 1.6 if start in STRONG else 1.0, apart)


def _finish(figure, grid, data, looks=None, said=SAID, more=None):
    """Limits, note and legend; more: entries of the legend by name, beside those of curves."""
    low, high = data[["low", "value"]].min(axis=None), data[["high", "value"]].max(axis=None)
    grid[0, 0].set_ylim(max(-1.05, min(low, 0) - 0.05), min(1.05, max(high, LOW) + 0.05))
    there = [start for start in looks or STARTS if start in set(data["start"])]
    there = there if more is None else [start for start in there if start in LEVEL_LOOKS]
    handles = {
        start: Line2D([], [], markersize=4, linewidth=1.6 if start in STRONG else 1.0, **(looks or LOOKS)[start])
        for start in there
    }
    handles |= (more or {}) | interval_key([data], "bar")
    handles[f"{LOW:g}: all of the paper's lie below"] = Line2D([], [], **MAJORITY)
    style.legend_below(figure, list(handles.values()), list(handles), handlelength=2.9)
    write_note(figure, f"{said}; {note([data], 'features', beside=True)}")


def table(results, chosen) -> pd.DataFrame:
    """Correlations, mean distances and accuracies of each starting point, at the largest size."""
    made = table_of(results, chosen)
    nulls = made["row"].str.endswith((FRESH, FRESH_ACCURACY, UNTRAINED))  # none of them is the best of anything
    return made.assign(mark=made["mark"].where(~(nulls & (made["mark"] == "best")), ""))


def text(results, chosen):
    """Figure 4: a row per recipe and task, over the updates of fine-tuning and over training examples.

    Beside the curve of each level, hollow, stands that of initial weights, fine-tuned alike, and as a cross that of the
    same classifier with the D_f0 of the recipe. What was asked in the text itself has a row of its own, and so has what
    is left of each with the form of words held fixed.
    """
    called = {recipe: label for label, recipe in results.view.labelled().items()}
    asked = {
        (*key, ending): there
        for key, levels in chosen.items()
        for ending in ENDINGS
        if (there := {level: of for level, of in levels.items() if _ending(level) == ending})
    }
    cells = {key: _both(results, *key[:2], called[key[0]], levels) for key, levels in asked.items()}
    if not any(map(len, cells.values())):
        raise MaskLabError("scores: no features were replaced")
    tasks = task_names(task for _, task in chosen)
    looks = LEVEL_LOOKS | {_hollow(name): look | HOLLOW for name, look in LEVEL_LOOKS.items()}
    looks |= {_crossed(name): look | CROSSED for name, look in LEVEL_LOOKS.items()}
    data = pd.concat(cells.values(), ignore_index=True)
    axes_there = [axis for axis in AXES if axis in set(data["axis"])]
    figure, grid = style.grid(len(asked), len(axes_there), 2.2 * len(asked), sharey=True)
    for row, ((recipe, task, ending), cell) in zip(grid, cells.items(), strict=True):
        for axes, axis in zip(row, axes_there, strict=True):
            there = cell[cell["axis"] == axis] if len(cell) else data[:0]
            _draw(axes, there, looks, low=not ending)  # the paper's measure
            examples_axis(axes, sizes := sorted(there["x"].unique()))
            axes.set_xlabel(f"{axis[0].upper()}{axis[1:]}{scale_of(sizes)}")
        named = style.broken(f"{called[recipe]}, {tasks[task]}", LETTERS)
        of = style.plain(named) + "\n" if len(chosen) > 1 else ""
        row[0].set_ylabel(f"{of}Correlation of $D_f$ with $D_{{f_0}}$" + ending.replace(", ", "\n", 1))
    endings = {ending for *_, ending in asked}
    said = [OF_TEXT, *([ASKED] if IN_TEXT in endings else ()), *([FIXED] if HELD in endings else ())]
    said += ["updates: on the largest set"] if AXES[0] in axes_there else []
    drawn = [any(curve(level) in set(data["start"]) for level in LEVEL_LOOKS) for curve in (_hollow, _crossed)]
    looks_of_nulls = itertools.compress(NULL_KEYS.items(), drawn)
    keys = {called: Line2D([], [], color="0.35", markersize=4, **look) for called, look in looks_of_nulls}
    _finish(figure, grid, data, looks, "; ".join(said), keys)
    order = "recipe label task level axis x value low high spread replicates items n"
    return figure, data[order.split()]


def _both(results, recipe, task, label, levels) -> pd.DataFrame:
    """Points of one recipe on one task, and those of its nulls; each over the replicates all its curves have.

    `recipe` and `label` say which of them a point is of, `start` which curve it belongs to.
    """
    own = {(level, axis): of for level, every in levels.items() for axis, of in zip(AXES, every, strict=False) if of}
    initial = {key: nulls_of(reading, results.view).get("untrained") for key, reading in own.items()}
    fresh = {(level, AXES[1]): of for level, (*_, of) in levels.items()}
    parts = []
    for readings, said, curve in (
        (own, label, str),
        (initial, f"{label}, initial weights", _hollow),
        (fresh, f"{label}, never pre-trained", _crossed),
    ):
        there = {key: reading for key, reading in readings.items() if reading is not None}
        shared = results.shared(there.values())
        for (level, axis), reading in there.items():
            if results.values(reading).replicates:
                columns = {"recipe": reading.recipe, "label": said, "task": task, "level": level, "axis": axis}
                start = curve(level.removesuffix(_ending(level)))
                parts.append(results.summary(reading, shared).assign(start=start, **columns))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _ending(level: str) -> str:
    """How a level's name ends that is asked in the text."""
    return "".join(end for end, there in ((IN_TEXT, is_in_text(level)), (HELD, is_held_fixed(level))) if there)


def _hollow(level: str) -> str:
    return f"{level}, initial weights"


def _crossed(level: str) -> str:
    return f"{level}, never pre-trained"
