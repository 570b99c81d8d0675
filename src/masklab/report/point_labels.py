"""Labels beside points without overlaps, placed by textalloc."""

import numpy as np


def place_labels(figure, axes, x, y, texts, fontsize=7.0, lines=(), others=(), color="0.15") -> list:
    """Write `texts[i]` beside data point (x[i], y[i]); returns the texts.

    Labels avoid each other, the points, `others` ((x, y), points without a label), and the segments `lines` ((x0, y0),
    (x1, y1)), all in data coordinates. The layout of the figure is computed and frozen, so call this last. The most
    crowded points are served first.
    """
    import textalloc

    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    x, y = np.asarray(x, float), np.asarray(y, float)
    at = axes.transData.transform(np.column_stack([x, y]))
    crowd = (np.linalg.norm(at[:, None] - at[None], axis=-1) < 40 * figure.dpi / 72).sum(1)
    order = np.argsort(-crowd, kind="stable")
    segments = {
        "x_lines": [[a[0], b[0]] for a, b in lines] or None,
        "y_lines": [[a[1], b[1]] for a, b in lines] or None,
    }
    others = np.reshape(others, (-1, 2))
    taken = {"x_scatter": np.append(x, others[:, 0]), "y_scatter": np.append(y, others[:, 1])}
    _, _, notes, leaders = textalloc.allocate(
        axes, x[order], y[order], [str(texts[i]) for i in order], **taken, **segments,
        textsize=fontsize, textcolor=color, linecolor="0.3", linewidth=0.6, margin=0.006, min_distance=0.012,
        max_distance=0.18, nbr_candidates=600, parse_math=False,
    )  # fmt: skip
    for leader in leaders:
        if leader is not None:  # a label for which there is no room stands at its point
            leader.set_label("_leader")
    return [note for note in notes if note is not None]
