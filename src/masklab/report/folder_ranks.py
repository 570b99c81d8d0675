"""The picture of `masklab rank --plot`: ranks by layer, and what of [MASK]s real tokens do not span."""

import pandas as pd

from masklab.report import style

LOOKS = {
    "masked": ("with [MASK]", {"color": "#D55E00", "marker": "s", "linestyle": "-"}),
    "unmasked": ("without [MASK]", {"color": "#0072B2", "marker": "o", "linestyle": (0, (5, 1.5))}),
    "real-positions": ("of the first, the words", {"color": "#CC79A7", "marker": "v", "linestyle": (0, (4, 1.2))}),
    "mask-positions": ("[MASK]s alone", {"color": "#000000", "marker": "D", "linestyle": "-"}),
    "random-words": ("random words in their places", {"color": "#009E73", "marker": "^", "linestyle": (0, (1, 1.2))}),
    "hidden-words": ("the words they hide", {"color": "#E69F00", "marker": "P", "linestyle": (0, (3, 1))}),
}
PANELS = {
    "rank_interpolated": "Effective rank",
    "rank_interpolated_centred": "Effective rank, centred",
    "outside": "Share outside real tokens'",
}


@style.paper
def picture(rows: list[dict]):
    """Figure of the rows of `masklab.probes.folder.folder_ranks`, of the inputs in `LOOKS`."""
    frame = pd.DataFrame(rows)
    frame = frame[frame["split"].isin(LOOKS)]
    panels = {metric: title for metric, title in PANELS.items() if (frame["metric"] == metric).any()}
    figure, (row,) = style.grid(1, len(panels), 2.1)
    shown = {}
    for letter, (axes, (metric, title)) in enumerate(zip(row, panels.items(), strict=True)):
        for split, own in frame[frame["metric"] == metric].groupby("split"):
            name, look = LOOKS[split]
            own = own.sort_values("layer")
            (shown[name],) = axes.plot(own["layer"], own["value"], **look)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("Layer")
        axes.xaxis.get_major_locator().set_params(integer=True)
        style.panel_title(axes, title, letter)
    names = [name for name, _ in LOOKS.values() if name in shown]
    style.legend_below(figure, [shown[name] for name in names], names, handlelength=3)
    return figure
