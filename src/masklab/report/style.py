"""How every figure looks: sizes of a two-column paper, one colour, marker and dash per label.

Colours are Okabe and Ito's (2008), distinct under the common colour-vision deficiencies;
markers and dashes keep curves apart in grey.
"""

import functools
import itertools

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from masklab.report import notes

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

SPARE_FONTS = ("Noto Sans", "Source Han Sans", "WenQuanYi", "PingFang", "Microsoft YaHei", "Arial Unicode", "Unifont")

# One after the other, in order of appearance.
COLORS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#8C510A")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "h")
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1.2)), (0, (4, 1.2, 1, 1.2)), (0, (3, 1)), (0, (6, 1, 1, 1, 1, 1)))
HATCHES = ("", "////", "\\\\\\\\", "....", "xxxx", "----", "||||", "oooo")  # of bars, which have no markers
NULL = {"color": "0.45", "linestyle": (0, (4, 2)), "linewidth": 0.9}  # what nothing learned gives
MAJORITY = {"color": "0.25", "linestyle": (0, (1, 1.6)), "linewidth": 1.1}  # what always giving one answer scores


def looks(labels, known=None) -> dict[str, dict]:
    """Label -> colour, marker, line style: `known` ones as they are, the others in order of appearance."""
    known, chosen = known or {}, {}
    taken = {look["color"] for look in known.values()}
    colors = itertools.cycle([color for color in COLORS if color not in taken] or COLORS)
    spare = zip(colors, itertools.cycle(MARKERS), itertools.cycle(DASHES), strict=False)
    for label in dict.fromkeys(labels):
        chosen[label] = known.get(label) or dict(zip(("color", "marker", "linestyle"), next(spare), strict=True))
    return chosen


def hatches(count: int) -> list[str]:
    """Hatches of so many bars: those of one colour, as `looks` gives them, have different ones as long as there are."""
    return [HATCHES[(at + at // len(COLORS)) % len(HATCHES)] for at in range(count)]


def paper(draw):
    """Decorator: run `draw` under the paper's rc settings, leaving the caller's alone."""

    @functools.wraps(draw)
    def drawn(*args, **kwargs):
        with matplotlib.rc_context(RC | {"font.family": families()}):
            return draw(*args, **kwargs)

    return drawn


@functools.cache
def families() -> list[str]:
    """The font, and what is installed for characters that it lacks (Chinese, Japanese, Korean, Arabic, ...)."""
    from matplotlib.font_manager import fontManager

    names = {entry.name for entry in fontManager.ttflist}
    spare = sorted(name for name in names if name.startswith(SPARE_FONTS))
    return [RC["font.family"], *spare]


def new_figure(width: float, height: float) -> Figure:
    """Empty figure of a size in inches on the Agg canvas, with constrained layout and no global state."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.05, h_pad=0.05, wspace=0.03, hspace=0.04)
    return figure


def grid(rows: int, across: int, height: float, **shared):
    """(figure, its axes [rows, across]): one column wide, or the page where there are several; shared: of subplots."""
    figure = new_figure({1: COLUMN, 2: 5.2}.get(across, FULL), height)
    return figure, figure.subplots(rows, across, squeeze=False, **shared)


def one_panel(width: float = COLUMN, height: float = 2.2):
    """(figure, axes) of a figure of one panel, for figures of your own."""
    figure = new_figure(width, height)
    return figure, figure.subplots()


def patch(color: str, alpha: float = 1.0, hatch: str = "") -> Patch:
    """A legend entry for bars or bands."""
    return Patch(facecolor=color, edgecolor="white", alpha=alpha, linewidth=0, hatch=hatch)


def plain(text: str) -> str:
    """A text of a config as matplotlib writes it as it stands: what lies between two `$` is no formula."""
    return text.replace("$", r"\$")


def panel_title(axes, title: str, index: int | None = None) -> None:
    """Title at the left above the axes, "(a) title" with a bold letter if the panel has an `index`."""
    letter = "" if index is None else rf"$\bf{{({notes.letter_of(index)})}}$ "
    axes.set_title(letter + plain(title))


def legend_below(figure, handles, texts, **options) -> None:
    """Legend under the axes, in as many columns as fit; the figure grows by its height."""
    width, height = figure.get_size_inches()
    handle = options.get("handlelength", 1) + 2.5  # with what lies around it, in widths of an m

    def needed(columns):
        """Width in inches: matplotlib fills column after column, the first ones with one entry more."""
        sizes = [len(texts) // columns + (k < len(texts) % columns) for k in range(columns)]
        starts = list(itertools.accumulate(sizes, initial=0))
        longest = [max(map(len, texts[start : start + size])) for start, size in zip(starts, sizes, strict=False)]
        return sum(0.6 * length + handle for length in longest) * RC["legend.fontsize"] / 72

    columns = next((k for k in range(len(texts), 1, -1) if needed(k) <= width - 0.2), 1)
    figure.set_size_inches(width, height + 0.17 * -(-len(texts) // columns) + 0.1)
    figure.legend(
        handles, list(map(plain, texts)), loc="outside lower center", ncols=columns, columnspacing=1.2, **options
    )
