"""How every figure looks: sizes of a two-column paper, one colour, marker and dash per label.

Colours are Okabe and Ito's (2008), distinct under the common colour-vision deficiencies;
markers and dashes keep curves apart in grey.
"""

import functools
import itertools
import math
import re

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
FLOOR = {"color": "0.0", "linestyle": (0, (6, 1.4, 1, 1.4)), "linewidth": 0.8}  # the least that a loss can be
MAJORITY = {"color": "0.25", "linestyle": (0, (1, 1.6)), "linewidth": 1.1}  # what always giving one answer scores


def looks(labels) -> dict[str, dict]:
    """Label -> colour, marker, line style, in order of appearance."""
    given = zip(*map(itertools.cycle, (COLORS, MARKERS, DASHES)), strict=True)
    return {
        label: dict(zip(("color", "marker", "linestyle"), look, strict=True))
        for label, look in zip(dict.fromkeys(labels), given, strict=False)
    }


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
    """Title at the left above the axes, "(a) title" with a bold letter if the panel has an `index`.

    A title too long for its place is broken into lines, by which the figure grows.
    """
    letter = "" if index is None else rf"$\bf{{({notes.letter_of(index)})}}$ "
    shown = axes.set_title(letter + plain(title))
    place = axes.get_subplotspec()
    wide, room = shown.get_window_extent().width, math.inf if place is None else _room(axes, place)
    if wide <= room:
        return
    lines, front = title.splitlines(), 4 if letter else 0  # letters of "(a) "
    most = max(1, int(0.95 * (front + max(map(len, lines))) * room / wide) - front)
    axes.set_title(letter + plain("\n".join(broken(line, most) for line in lines)))
    row = [each for each in axes.figure.axes
           if each is not axes and (its := each.get_subplotspec()) and its.rowspan == place.rowspan]  # fmt: skip
    beside = [each.get_title("left").count("\n") for each in row]
    more = axes.get_title("left").count("\n") - max(len(lines) - 1, *beside, 0)
    width, height = axes.figure.get_size_inches()
    axes.figure.set_size_inches(width, height + 0.14 * max(0, more))


def _room(axes, place) -> float:
    """Pixels from the left of axes to those beside them or, less what stands at their left, to the figure's edge."""
    columns, dpi = place.get_gridspec().ncols, axes.figure.dpi
    pitch = axes.figure.bbox.width / columns
    shared = len(axes.get_shared_y_axes().get_siblings(axes)) > 1
    if not place.is_last_col():  # of columns that share an axis, the first alone has names at its left
        return pitch - shared * 0.6 * dpi / columns
    bare = shared and not place.is_first_col()
    return pitch - (0.15 if bare else 0.6) * dpi


def broken(text: str, most: int) -> str:
    """A text in lines of at most so many letters, which end after a space, `_`, `-` or `/` where they can."""
    lines = [""]
    for part in re.findall(rf"[^ _/-]{{1,{most}}}[ _/-]*|[ _/-]+", text):
        if lines[-1] and len((lines[-1] + part).rstrip()) > most:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def legend_of(figure, curves: dict, rest: dict, **options) -> None:
    """`legend_below` of curves by label and of the rest by name; a label is free text and may be one of these names."""
    legend_below(figure, [*curves.values(), *rest.values()], [*curves, *rest], **options)


def legend_below(figure, handles, texts, **options) -> None:
    """Legend under the axes, in as many columns as fit, long texts in lines; the figure grows by its height."""
    width, height = figure.get_size_inches()
    handle = options.get("handlelength", 1) + 2.5  # with what lies around it, in widths of an m
    most = int(((width - 0.2) * 72 / RC["legend.fontsize"] - handle) / 0.6)
    texts = [broken(text, most) if len(text) > most else text for text in texts]
    tall = [text.count("\n") + 1 for text in texts]

    def parts(columns):
        """Entries of each column: matplotlib fills column after column, the first ones with one entry more."""
        sizes = [len(texts) // columns + (k < len(texts) % columns) for k in range(columns)]
        return [slice(end - size, end) for size, end in zip(sizes, itertools.accumulate(sizes), strict=True)]

    def needed(columns):
        """Width in inches."""
        longest = [max(len(line) for text in texts[part] for line in text.split("\n")) for part in parts(columns)]
        return sum(0.6 * length + handle for length in longest) * RC["legend.fontsize"] / 72

    columns = next((k for k in range(len(texts), 1, -1) if needed(k) <= width - 0.2), 1)
    figure.set_size_inches(width, height + 0.17 * max(sum(tall[part]) for part in parts(columns)) + 0.1)
    figure.legend(
        handles, list(map(plain, texts)), loc="outside lower center", ncols=columns, columnspacing=1.2, **options
    )
