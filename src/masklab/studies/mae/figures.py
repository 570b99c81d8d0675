"""Figures 1a, 1b, 3 and 4, and the share of [MASK]s that real tokens do not span.

Curves are means over replicates, with what nothing learned gives beside them: all of a panel of the study are over the
replicates that all of them have, since each may have a language of its own.

Figure 1a is drawn with the rank of the states, as the paper's formula says, and of the centred states, as its words
("variance") say.
"""

import pandas as pd
from matplotlib.ticker import MaxNLocator

from masklab.report import levels, style
from masklab.report.marks import (
    band,
    bars,
    cost_axis,
    curve,
    interval_key,
    key,
    kind_of,
    limits,
    measured,
    note,
    score_limits,
    unit,
    write_note,
)
from masklab.scores.reading import leaves, nulls_of
from masklab.studies.mae.select import COSTS, DELTA

MASKS = "mask-positions"
INPUTS = {
    "masked": ("with [MASK]", {"color": "#D55E00", "marker": "s", "linestyle": "-"}),
    "unmasked": ("without [MASK]", {"color": "#0072B2", "marker": "o", "linestyle": (0, (5, 1.5))}),
}
IN_PLACE = {
    MASKS: ("[MASK]s", {"color": "#D55E00", "marker": "s", "linestyle": "-"}),
    "random-words": ("random words in their places", {"color": "#009E73", "marker": "^", "linestyle": (0, (1, 1.2))}),
    "hidden-words": ("the words they hide", {"color": "#0072B2", "marker": "o", "linestyle": (0, (5, 1.5))}),
}
FORMS = {"rank": "effective rank", "rank_centred": "effective rank, centred"}
NULLS = {"untrained": {"color": "0.35", "marker": "x"}, "shuffled": {"color": "0.6", "marker": "+"}}
THIN = {"linewidth": 0.8, "markersize": 4, "zorder": 1}
COUNTED = "tokens{} of the replicate that has the fewest"  # what `n` counts
HEIGHT = 2.1  # of a row of axes, in inches
AXES = {"seconds": "Time (s)", "flops": "FLOPs", "tokens": "Tokens"}
TITLES = {"sentences": "Mean over sentence tasks", "answers": "Answer extraction"}
AUTOENCODER = {"color": "#0072B2", "marker": "s"}
LAST = {"color": "#000000", "linestyle": (0, (7, 1.5, 1, 1.5)), "linewidth": 1.0}  # MLM's last score


def _titled(axes, chosen, title, said, letters):
    """A title, with that of the panel where there are several."""
    style.panel_title(axes, said if len(chosen) == 1 else f"{title}: {said}" if said else title, next(letters))


def _finished(figure, data, handles, rest, *kinds, what="test items", beside=False, said=""):
    """Legend of curves and of the rest, and small print, which `said` begins; the figure and all that is drawn."""
    style.legend_of(figure, handles, rest | interval_key(data, *kinds), handlelength=3)
    write_note(figure, said + note(data, what, beside))
    return figure, pd.concat(data, ignore_index=True)


def _setting(results, chosen, key) -> str:
    """What the probes of ranks behind some readings say of a key that is a share: ".9", or ".9 or .95" of two."""
    view = results.view
    probes = {name for reading in leaves(chosen) for name in view.measured_by(reading.recipe, ["rank"])}
    shares = {view.probes[name][key] for name in probes} - {None}
    return " or ".join(f"{share:g}".lstrip("0") for share in sorted(shares))


def _nulls(results, reading):
    """Kind -> reading of the nulls of a reading that are drawn."""
    return {kind: null for kind, null in nulls_of(reading, results.view).items() if kind in NULLS}


def _shared(results, chosen, beside=None):
    """The replicates that all of a panel's readings have; of what `beside` holds (None: of all) their nulls, too."""
    nulls = [_nulls(results, reading).values() for reading in leaves(chosen if beside is None else beside)]
    return results.shared(leaves([chosen, nulls]))


def _by_layer(axes, results, reading, look, shared, nulls=True, **about):
    """The curve of a reading over layers, and its nulls in grey; frames of what is drawn, over `shared` replicates."""
    drawn = {"": (reading, look)}
    for kind, null in _nulls(results, reading).items() if nulls else ():
        drawn[kind] = (null, NULLS[kind] | THIN | {"linestyle": look["linestyle"]})
    frames = []
    for kind, (own, its) in drawn.items():
        frame = results.summary(own, shared)
        band(axes, frame, its)
        frames.append(frame.assign(**about, recipe=own.recipe, null=kind).rename(columns={"x": "layer"}))
    axes.set_xlabel("Layer")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], integer=True))
    return frames


def _from_zero(axes, frames):
    """Room for ranks and their intervals, and 0."""
    limits(axes, frames)
    axes.set_ylim(bottom=0)


def _greys(data):
    shown = {kind for frame in data for kind in frame["null"]}
    return dict(key(f"null: {kind}", **look | THIN) for kind, look in NULLS.items() if kind in shown)


def figure1a(results, chosen):
    """Effective rank by layer for inputs with and without [MASK], a recipe in each of the axes."""
    figure, grid = style.grid(len(chosen), max(map(len, chosen.values())), HEIGHT * len(chosen), sharey="row")
    data, letters = [], iter(range(grid.size)) if grid.size > 1 else iter([None])
    for row, (title, recipes) in zip(grid, chosen.items(), strict=True):
        first, shared = len(data), _shared(results, recipes)
        for axes, (label, readings) in zip(row, recipes.items(), strict=False):
            for split, reading in readings.items():
                about = {"panel": title, "label": label, "split": split, "metric": reading.metric}
                data += _by_layer(axes, results, reading, INPUTS[split][1], shared, **about)
            _titled(axes, chosen, title, label, letters)
        for axes in row[len(recipes) :]:
            axes.remove()
        _from_zero(row[0], data[first:])
        row[0].set_ylabel(f"{_setting(results, recipes, 'threshold')}-{FORMS[data[-1]['metric'].iloc[0]]}")
    handles = dict(key(name, **look) for name, look in INPUTS.values())
    return _finished(figure, data, handles, _greys(data), "band", what=COUNTED.format(""))


def figure1b(results, chosen):
    """Effective rank of [MASK]s alone by layer, plain and centred; nulls: those of the first recipe."""
    figure, grid = style.grid(len(chosen), 2, HEIGHT * len(chosen), sharey="row")
    looks = style.looks(label for forms in chosen.values() for labels in forms.values() for label in labels)
    data, letters = [], iter(range(grid.size))
    for row, (title, forms) in zip(grid, chosen.items(), strict=True):
        begun = len(data)
        shared = _shared(results, forms, [next(iter(readings.values())) for readings in forms.values()])
        for axes, (metric, readings) in zip(row, forms.items(), strict=True):
            for number, (label, reading) in enumerate(readings.items()):
                about = {"panel": title, "label": label, "split": MASKS, "metric": metric}
                data += _by_layer(axes, results, reading, looks[label], shared, number == 0, **about)
            _titled(axes, chosen, title, f"{_setting(results, readings, 'threshold')}-{FORMS[metric]}", letters)
        _from_zero(row[0], data[begun:])
        row[0].set_ylabel("Rank of [MASK]s alone")
    handles = dict(key(label, **look) for label, look in looks.items())
    return _finished(figure, data, handles, _greys(data), "band", what=COUNTED.format(""))


def figure_outside(results, chosen):
    """Share outside the subspace of real tokens by layer, of three things in one place; a recipe in each axes."""
    figure, grid = style.grid(len(chosen), max(map(len, chosen.values())), HEIGHT * len(chosen), sharey="row")
    data, letters = [], iter(range(grid.size)) if grid.size > 1 else iter([None])
    for row, (title, recipes) in zip(grid, chosen.items(), strict=True):
        first = len(data)
        shared = _shared(results, recipes, [readings[MASKS] for readings in recipes.values()])
        for axes, (label, readings) in zip(row, recipes.items(), strict=False):
            for place, reading in readings.items():
                about = {"panel": title, "label": label, "split": place, "metric": reading.metric}
                data += _by_layer(axes, results, reading, IN_PLACE[place][1], shared, place == MASKS, **about)
            axes.yaxis.set_major_locator(MaxNLocator(5))
            _titled(axes, chosen, title, label, letters)
        for axes in row[len(recipes) :]:
            axes.remove()
        _from_zero(row[0], data[first:])
        row[0].set_ylabel("Share of squared norm outside")
    handles = dict(key(name, **look) for name, look in IN_PLACE.values())
    held = _setting(results, chosen, "subspace")
    said = f"the subspace holds {held} of the squared norm of real tokens; "
    return _finished(
        figure, data, handles, _greys(data), "band", what=COUNTED.format(" in the places of [MASK]s"), said=said
    )


def figure3(results, chosen):
    """Score after fine-tuning against what pre-training cost: time, FLOPs, tokens; a line at MLM's last score."""
    figure, grid = style.grid(len(chosen), len(COSTS), HEIGHT * len(chosen), sharey="row")
    looks = style.looks(label for curves in chosen.values() for label in curves)
    data, drawn, letters, firsts = [], [], iter(range(grid.size)), {}
    kind = kind_of(results, [[own["score"] for own in curves.values()] for curves in chosen.values()])
    for row, (title, curves) in zip(grid, chosen.items(), strict=True):
        readings, shared = [own["score"] for own in curves.values()], results.shared(leaves(curves))
        scores = {label: results.summary(own["score"], shared) for label, own in curves.items()}
        mlm = next(iter(curves))
        firsts[mlm] = None
        last = float(scores[mlm].sort_values("x")["value"].iloc[-1])
        drawn.append(levels.levels(results, readings, shared))
        for axes, cost in zip(row, COSTS, strict=True):
            apart = [] if cost != "tokens" else list(curves)  # recipes of one batch size read as many at a step
            for label, own in curves.items():
                costs = results.summary(own[cost], shared).set_index("x")["value"]
                frame = scores[label].assign(cost=scores[label]["x"].map(costs)).dropna(subset=["cost"])
                place = (apart.index(label), len(apart)) if apart else (0, 1)
                curve(axes, frame, looks[label], kind, place, x="cost")
                about = {"panel": title, "label": label, "recipe": own[cost].recipe, "metric": cost, "last": last}
                data.append(frame.assign(**about, **drawn[-1].columns()).rename(columns={"x": "step"}))
            axes.axhline(last, zorder=1, label="_last", **LAST)
            levels.draw(axes, drawn[-1])
            cost_axis(axes, [cost for frame in data[-len(curves) :] for cost in frame["cost"]], AXES[cost])
            _titled(axes, chosen, title, "", letters)
        score_limits(row[0], results, readings, list(scores.values()), drawn[-1:])
        row[0].set_ylabel(f"{unit(results, readings).capitalize()} after fine-tuning")
    handles = dict(key(label, **look) for label, look in looks.items())
    rest = dict([key(f"{' or '.join(firsts)}, last checkpoint", **LAST)]) | levels.keys(drawn)
    return _finished(figure, data, handles, rest, kind, beside=kind == "bar")


def figure4(results, chosen):
    """Scores after fine-tuning against delta, the share of [MASK]s that stay in the encoder; a line at MLM's."""
    columns = list(dict.fromkeys(what for own in chosen.values() for what in own))
    figure, grid = style.grid(len(chosen), len(columns), HEIGHT * len(chosen))
    data, drawn, handles = [], [], {}
    letters = iter(range(grid.size)) if grid.size > 1 else iter([None])
    for row, (title, own) in zip(grid, chosen.items(), strict=True):
        for axes, what in zip(row, columns, strict=True):
            if what not in own:
                axes.remove()
                continue
            shared = results.shared(own[what])
            frame = pd.concat([_described(results, title, each, shared) for each in own[what]], ignore_index=True)
            frame["delta"] = [results.view.fact(recipe, DELTA) for recipe in frame["recipe"]]
            level, metric = levels.levels(results, own[what], shared), unit(results, own[what])
            shares, mlm = frame.dropna(subset=["delta"]), frame[frame["delta"].isna()]
            handles["masked autoencoder"] = bars(axes, shares["delta"], shares, **AUTOENCODER)
            for each in mlm.itertuples():
                handles[f"{each.label}, no decoder"] = axes.axhline(each.value, zorder=1, label="_mlm", **LAST)
                axes.axhspan(each.low, each.high, color=LAST["color"], alpha=0.08, linewidth=0)
            levels.draw(axes, level)
            score_limits(axes, results, own[what], [frame], [level])
            axes.set_xlim(-0.08, 1.08)
            axes.set_xlabel("δ, share of [MASK]s in the encoder")
            axes.set_ylabel(measured(results, own[what]))
            _titled(axes, chosen, title, TITLES[what], letters)
            data.append(frame.assign(tasks=what, metric=metric, **level.columns()).drop(columns="x"))
            drawn.append(level)
    return _finished(figure, data, handles, levels.keys(drawn), "bar", "band")


def _described(results, title, reading, shared):
    label = results.view.label(reading.recipe, title)
    return results.summary(reading, shared).assign(panel=title, label=label, recipe=reading.recipe)
