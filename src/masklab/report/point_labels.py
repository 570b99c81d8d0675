"""Labels beside points without overlaps, placed by textalloc, so that each is read as that of its own point."""

import numpy as np
from matplotlib.layout_engine import PlaceHolderLayoutEngine

TRIES = 12
MARK = 5.0  # points from side to side of a mark
NEAR = 3.5  # points (1/72 inch) from a mark, within which a leader seems to end at it


def are_apart(figure, axes, x, y) -> bool:
    """Whether no two of the marks at (x[i], y[i]) cover each other, so that each can be told from the others.

    The layout of the figure is computed and frozen, as by `place_labels`.
    """
    at = _pixels(figure, axes, x, y)
    between = np.linalg.norm(at[:, None] - at[None], axis=-1)[~np.eye(len(at), dtype=bool)]
    return bool((between >= MARK * figure.dpi / 72).all())


def _pixels(figure, axes, x, y):
    """Where data points lie on the figure, in pixels [n, 2], with its layout computed and frozen."""
    if not isinstance(figure.get_layout_engine(), PlaceHolderLayoutEngine | None):  # what is left of one once frozen
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    return axes.transData.transform(np.column_stack([np.asarray(x, float), np.asarray(y, float)]))


def place_labels(figure, axes, x, y, texts, lines=(), others=()) -> list:
    """Write `texts[i]` beside data point (x[i], y[i]); returns the texts.

    Labels avoid each other, the points, `others` ((x, y), points without a label), and the segments `lines` ((x0, y0),
    (x1, y1)), all in data coordinates: but they cross lines where else they would seem to be those of other points. The
    layout of the figure is computed and frozen, so call this last. The most crowded points are served first.
    """
    import textalloc

    x, y = np.asarray(x, float), np.asarray(y, float)
    at = _pixels(figure, axes, x, y)
    crowd = (np.linalg.norm(at[:, None] - at[None], axis=-1) < 40 * figure.dpi / 72).sum(1)
    segments = {
        "x_lines": [[a[0], b[0]] for a, b in lines] or None,
        "y_lines": [[a[1], b[1]] for a, b in lines] or None,
    }
    others = np.reshape(others, (-1, 2))
    taken = {"x_scatter": np.append(x, others[:, 0]), "y_scatter": np.append(y, others[:, 1])}
    marks = np.vstack([at, axes.transData.transform(others)])

    def write(order, free):
        _, _, notes, leaders = textalloc.allocate(
            axes, x[order], y[order], [str(texts[i]) for i in order], **taken, **({} if free else segments),
            textsize=7.0, textcolor="0.15", linecolor="0.3", linewidth=0.6, margin=0.006, min_distance=0.012,
            max_distance=0.18, nbr_candidates=600, parse_math=False,
        )  # fmt: skip
        for leader in leaders:
            if leader is not None:  # a label for which there is no room stands at its point
                leader.set_label("_leader")
        return notes, [*notes, *leaders]

    order, tried = np.argsort(-crowd, kind="stable"), []
    while True:
        free = len(tried) >= TRIES / 2
        notes, artists = write(order, free)
        boxes = [None if note is None else note.get_window_extent() for note in notes]
        wrong = [i for i, box in zip(order, boxes, strict=True) if box and _misread(box, i, marks, figure.dpi)]
        tried.append((len(wrong), len(tried), order, free))
        if not wrong or len(tried) == TRIES:
            break
        _remove(artists)
        order = np.array([*wrong, *(i for i in order if i not in wrong)])
    if min(each[0] for each in tried) < len(wrong):
        _remove(artists)
        notes, _ = write(*min(tried, key=lambda each: each[:2])[2:])
    return [note for note in notes if note is not None]


def _remove(artists) -> None:
    for artist in artists:
        if artist is not None:
            artist.remove()


def _misread(box, own: int, marks, dpi: float) -> bool:
    """Whether a label seems to be that of another of the `marks` [n, 2], in pixels, than of its own.

    It does if its leader passes over the other one, or if it is less than half as far from that one.
    """
    ends = np.column_stack([np.clip(marks[:, 0], box.x0, box.x1), np.clip(marks[:, 1], box.y0, box.y1)])
    apart = np.linalg.norm(marks - ends, axis=1)
    start, along = marks[own], ends[own] - marks[own]
    share = np.clip((marks - start) @ along / max(along @ along, 1e-9), 0, 1)[:, None]
    from_leader = np.linalg.norm(marks - start - share * along, axis=1)
    own_place = np.linalg.norm(marks - start, axis=1) < NEAR * dpi / 72  # marks that cover its own
    return bool(((from_leader < NEAR * dpi / 72) | (apart < apart[own] / 2))[~own_place].any())
