"""Labels beside points without overlaps."""

import numpy as np

# All lengths are points (1/72 inch).
_REACH = 48  # farthest that a label may move away
_STEP = 3.0  # grid of places tried
_LEADER = 6.5  # a label farther off than this gets a leader line


def place_labels(figure, axes, x, y, texts, fontsize=7.0, marker=5.0, lines=(), color="0.15") -> list:
    """Write `texts[i]` beside data point (x[i], y[i]); returns the annotations.

    Labels avoid each other, the markers (`marker` points wide), each other's leader lines, the edge of the axes
    and the data-coordinate segments `lines` ((x0, y0), (x1, y1)). The layout of the figure is computed and
    frozen, so call this last. Deterministic: greedy from the most crowded point, then each label in turn takes
    its best place until nothing moves.
    """
    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    scale = 72 / figure.dpi
    points = axes.transData.transform(np.column_stack([x, y])) * scale
    edge = axes.get_window_extent().extents * scale + np.array([4, 2, 0, 0])
    segments = [axes.transData.transform(np.asarray(line, float)) * scale for line in lines]
    on_lines = np.concatenate([_along(a, b) for a, b in segments]) if segments else np.empty((0, 2))
    notes = [
        axes.annotate(text, point, xytext=(0, 0), textcoords="offset points", fontsize=fontsize, color=color, zorder=5)
        for text, point in zip(texts, zip(x, y, strict=True), strict=True)
    ]
    renderer = figure.canvas.get_renderer()
    sizes = [np.array(note.get_window_extent(renderer).size) * scale for note in notes]
    options = [_options(point, size, marker) for point, size in zip(points, sizes, strict=True)]
    costs = [_own_cost(option, points, i, marker, edge, on_lines) for i, option in enumerate(options)]
    for i, box in _choose(options, costs, points).items():
        notes[i].set_position(box[:2] - points[i])
        notes[i].set_verticalalignment("bottom")
        tip = np.clip(points[i], box[:2], box[2:])
        gap = np.linalg.norm(tip - points[i])
        if gap - marker / 2 > _LEADER:
            start = points[i] + (tip - points[i]) * marker / 2 / gap
            ends = axes.transData.inverted().transform(np.array([start, tip]) / scale)
            axes.plot(*ends.T, color="0.6", linewidth=0.5, zorder=1.5, scalex=False, scaley=False, label="_leader")
    return notes


def _along(a, b, step=2.0):
    count = max(int(np.linalg.norm(b - a) / step), 2)
    return a + (b - a) * np.linspace(0, 1, count)[:, None]


def _options(point, size, marker):
    """Places to try: boxes [c, 4] (left, bottom, right, top) that do not touch the marker at `point`."""
    across = np.arange(0, _REACH + size[0] / 2, _STEP)
    up = np.arange(0, _REACH + size[1] / 2, _STEP)
    # The flush positions right, left, above and below must be on the grid.
    flush = marker / 2 + 2.5 + size / 2
    across, up = np.union1d(across, flush[0]), np.union1d(up, flush[1])
    dx, dy = np.meshgrid(np.union1d(across, -across), np.union1d(up, -up))
    centres = point + np.column_stack([dx.ravel(), dy.ravel()])
    boxes = np.hstack([centres - size / 2, centres + size / 2])
    gap = _gaps(boxes, point[None])[:, 0]
    return boxes[(gap > marker / 2 + 2) & (gap < _REACH)]


def _gaps(boxes, points):
    """[c, p] distances between boxes and points; 0 inside."""
    off = np.maximum(boxes[:, None, :2] - points[None], 0) + np.maximum(points[None] - boxes[:, None, 2:], 0)
    return np.hypot(off[..., 0], off[..., 1])


def _overlaps(boxes, others):
    """[c, o] overlapping areas."""
    sides = np.minimum(boxes[:, None, 2:], others[None, :, 2:]) - np.maximum(boxes[:, None, :2], others[None, :, :2])
    return np.clip(sides, 0, None).prod(axis=-1)


def _crossings(start, tips, a, b):
    """[c] number of segments a[s]-b[s] that each segment start-tips[c] crosses."""

    def side(p, q, r):
        return np.sign(
            (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (r[..., 0] - p[..., 0])
        )

    start, tips, a, b = start[None, None], tips[:, None], a[None], b[None]
    crossed = (side(start, tips, a) * side(start, tips, b) < 0) & (side(a, b, start) * side(a, b, tips) < 0)
    return crossed.sum(axis=1)


def _own_cost(boxes, points, own, marker, edge, on_lines):
    """[c] cost of each place, other labels aside."""
    gap = _gaps(boxes, points[own][None])[:, 0] - marker / 2
    cost = gap + 6 * (gap > _LEADER)
    outside = np.maximum(edge[:2] - boxes[:, :2], 0) + np.maximum(boxes[:, 2:] - edge[2:], 0)
    cost += 100 * outside.sum(axis=1)
    reach = (on_lines > boxes[:, :2].min(axis=0) - 1) & (on_lines < boxes[:, 2:].max(axis=0) + 1)
    cost += 2.5 * (_gaps(boxes, on_lines[reach.all(axis=1)]) < 1).sum(axis=1)
    others = np.delete(points, own, axis=0)
    others = others[np.linalg.norm(others - points[own], axis=1) > 1]
    if len(others):
        away = _gaps(boxes, others) - marker / 2
        cost += (8 * np.clip(2 - away, 0, None) + 3 * np.clip(9 - away, 0, None)).sum(axis=1)
        # A label nearer to another marker than to its own reads as the other's.
        cost += 12 * ((away < gap[:, None]) & (away < 14)).sum(axis=1)
        tips = np.clip(points[own], boxes[:, :2], boxes[:, 2:])
        share = np.linspace(0, 1, 12)[:, None, None]
        path = points[own] + (tips - points[own]) * share
        near = np.linalg.norm(path[:, :, None] - others, axis=-1).min(axis=0) < marker / 2 + 1
        cost += 15 * near.sum(axis=1)
    # Level with the marker or straight above reads best.
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2 - points[own]
    return cost + 0.02 * np.abs(middle).min(axis=1)


def _choose(options, costs, points):
    """Point -> its box, by coordinate descent on the total cost."""
    crowd = np.array([(np.linalg.norm(points - point, axis=1) < 40).sum() for point in points])
    order = [int(i) for i in np.argsort(-crowd, kind="stable")]
    chosen = {}
    for _ in range(20):
        before = {i: tuple(box) for i, box in chosen.items()}
        for i in order:
            cost = costs[i].copy()
            rest = [j for j in chosen if j != i]
            if rest:
                boxes = np.array([chosen[j] for j in rest])
                starts = points[rest]
                ends = np.clip(starts, boxes[:, :2], boxes[:, 2:])
                tips = np.clip(points[i], options[i][:, :2], options[i][:, 2:])
                padded = boxes + np.array([-2, -0.5, 2, 0.5])
                cost += 20 * _overlaps(options[i], padded).sum(axis=1)
                leaders = np.concatenate([_along(a, b) for a, b in zip(starts, ends, strict=True)])
                cost += 8 * (_gaps(options[i], leaders) < 1).sum(axis=1)
                cost += 15 * _crossings(points[i], tips, starts, ends)
                path = points[i] + (tips - points[i]) * np.linspace(0, 1, 12)[:, None, None]
                through = _gaps(padded, path.reshape(-1, 2)).reshape(len(rest), 12, -1) < 0.5
                cost += 8 * through.sum(axis=(0, 1))
            chosen[i] = options[i][int(np.argmin(cost))]
        if {i: tuple(box) for i, box in chosen.items()} == before:
            break
    return chosen
