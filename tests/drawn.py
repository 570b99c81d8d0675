"""What every figure must keep to."""

from weakref import WeakSet

DRAWN = WeakSet()


def lay_out(figure) -> None:
    """Draw a figure as far as its layout goes, once: again only if something of it has changed since."""
    if figure.stale or figure not in DRAWN:
        figure.draw_without_rendering()
        DRAWN.add(figure)


def nothing_overlaps(figure) -> None:
    """Axes with their labels and titles, legends and notes lie within the figure and not on each other."""
    lay_out(figure)
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    boxes += [legend.get_window_extent(renderer) for legend in figure.legends]
    notes = [figure._supxlabel] if figure._supxlabel is not None else []
    boxes += [note.get_window_extent(renderer) for note in notes]
    figure.stale = False  # boxes of axes renew their ticks, which changes nothing that was drawn
    edge = figure.bbox
    for i, box in enumerate(boxes):
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= edge.x1 + 1 and box.y1 <= edge.y1 + 1, "beyond the edge"
        for other in boxes[i + 1 :]:
            width = min(box.x1, other.x1) - max(box.x0, other.x0)
            height = min(box.y1, other.y1) - max(box.y0, other.y0)
            assert width <= 1 or height <= 1, "two parts overlap"


def all_is_in_view(figure) -> None:
    """No point of a curve lies beyond its axes."""
    lay_out(figure)
    for axes in figure.axes:
        box = axes.bbox
        for line in axes.get_lines():
            if str(line.get_label()).startswith("_"):
                continue
            x, y = line.get_transform().transform(line.get_xydata()).T
            assert (x >= box.x0 - 1).all() and (x <= box.x1 + 1).all(), "left or right of the axes"
            assert (y >= box.y0 - 1).all() and (y <= box.y1 + 1).all(), "above or below the axes"
