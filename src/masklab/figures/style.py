"""How every figure looks: sizes of a two-column paper, one colour, marker and dash per objective.

Colours are Okabe and Ito's (2008), distinct under the common colour-vision deficiencies;
markers and dashes keep curves apart in grey.
"""

import functools
import itertools

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from masklab.figures.spec import objective_of

COLUMN, FULL = 3.3, 6.5  # widths in inches: one column, the whole page
GREY = "0.55"

RC = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.labelsize": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "axes.unicode_minus": True,
    # Text is measured at this resolution when labels are placed.
    "figure.dpi": 200,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
}

OBJECTIVES = {
    "MLM": {"color": "#000000", "marker": "o", "linestyle": "-"},
    "KD": {"color": "#E69F00", "marker": "v", "linestyle": (0, (1, 1.2))},
    "KD+MLM": {"color": "#D55E00", "marker": "^", "linestyle": (0, (5, 1.5))},
    "MLSM": {"color": "#56B4E9", "marker": "D", "linestyle": (0, (4, 1.2, 1, 1.2))},
    "MLSM+MLM": {"color": "#0072B2", "marker": "s", "linestyle": "-"},
}
# Anything else takes the next of these, in order of appearance.
_COLORS = ("#009E73", "#CC79A7", "#7F7F7F", "#8C510A")
_MARKERS = ("P", "X", "*", "<", ">", "h")
_DASHES = ((0, (3, 1)), (0, (6, 1, 1, 1, 1, 1)), (0, (2, 2)), "-")
CONTROL = {"color": "#009E73", "marker": "s"}
AMBIGUOUS = {"color": "#CC79A7", "marker": "o"}


def styles(labels) -> dict[str, dict]:
    """Label -> colour, marker, line style: the objective's for its first label, the next spare one for any other."""
    spare = zip(itertools.cycle(_COLORS), itertools.cycle(_MARKERS), itertools.cycle(_DASHES), strict=False)
    known, chosen = dict(OBJECTIVES), {}
    for label in dict.fromkeys(labels):
        look = known.pop(objective_of(label), None)
        chosen[label] = look or dict(zip(("color", "marker", "linestyle"), next(spare), strict=True))
    return chosen


def paper(draw):
    """Decorator: run `draw` under the paper's rc settings, leaving the caller's alone."""

    @functools.wraps(draw)
    def drawn(*args, **kwargs):
        with matplotlib.rc_context(RC):
            return draw(*args, **kwargs)

    return drawn


def new_figure(width: float, height: float) -> Figure:
    """Empty figure of a size in inches on the Agg canvas, with constrained layout and no global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.05, h_pad=0.05, wspace=0.03, hspace=0.04)
    return figure


def panel_title(axes, title: str, index: int | None = None) -> None:
    """Title at the left above the axes, "(a) title" with a bold letter if the panel has an `index`."""
    letter = "" if index is None else rf"$\bf{{({chr(97 + index)})}}$ "
    axes.set_title(letter + title)


def legend_below(figure, handles, texts, **options) -> None:
    """Legend under the axes, in as many columns as fit; the figure grows by its height."""
    width, height = figure.get_size_inches()
    entry = (max(map(len, texts)) * 0.6 + options.get("handlelength", 1) + 2.5) * RC["legend.fontsize"] / 72
    columns = max(1, min(len(texts), int((width - 0.2) / entry)))
    figure.set_size_inches(width, height + 0.17 * -(-len(texts) // columns) + 0.1)
    figure.legend(handles, texts, loc="outside lower center", ncols=columns, columnspacing=1.2, **options)
