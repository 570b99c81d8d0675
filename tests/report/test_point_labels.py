"""Labels beside points: all are written, also where there is no room for them."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from masklab.report.point_labels import are_apart, place_labels


@pytest.mark.parametrize("spread", [1.0, 0.0])
def test_every_point_has_its_label(spread):
    figure = Figure(figsize=(2, 2), layout="constrained")
    axes = figure.add_subplot()
    x, y = 0.5 + spread * (np.random.default_rng(1).random((2, 60)) - 0.5)
    axes.scatter(x, y)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    texts = [f"paradigm {number} of many" for number in range(60)]
    notes = place_labels(figure, axes, x, y, texts)
    assert sorted(note.get_text() for note in notes) == sorted(texts)


def test_labels_cover_no_point_without_a_label():
    """A point is put where the label would stand: the label goes elsewhere."""
    figure = Figure(figsize=(4, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(0, 1))

    def placed(others):
        (note,) = place_labels(figure, axes, [0.5], [0.5], ["a name of some length"], others=others)
        return note.get_window_extent()

    box = placed(())
    (middle,) = axes.transData.inverted().transform([((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)])
    assert not placed([middle]).contains(*axes.transData.transform(middle))


CROWDED = {  # points whose labels, kept clear of three lines, would stand at each other's
    "anaphor agreement": (0.49, 0.527), "argument structure": (0.8, 0.917), "binding": (0.537, 0.52),
    "control raising": (0.69, 0.723), "determiner noun agreement": (0.537, 0.627), "ellipsis": (0.99, 1.0),
    "filler gap": (0.417, 0.46), "irregular forms": (0.797, 0.767), "island effects": (0.79, 0.947),
    "npi licensing": (0.553, 0.583), "quantifiers": (0.79, 0.777), "subject aux inversion": (0.883, 0.823),
    "subject verb agreement": (0.503, 0.597),
}  # fmt: skip


def test_no_label_seems_to_be_that_of_another_point():
    """None is twice as near to another point as to its own."""
    figure = Figure(figsize=(5.2, 5.0), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=(0.19, 1.04), ylim=(0.19, 1.04))
    points, names = np.array(list(CROWDED.values())), list(CROWDED)
    lines = [((0.19, 0.19), (1.04, 1.04)), ((0.19, 0.5), (1.04, 0.5)), ((0.5, 0.19), (0.5, 1.04))]
    notes = place_labels(figure, axes, *points.T, names, lines=lines)
    at = axes.transData.transform(points)
    assert len(notes) == len(names) == len(axes.texts)
    for note in notes:
        box, own = note.get_window_extent(), names.index(note.get_text())
        apart = [np.hypot(max(box.x0 - x, 0, x - box.x1), max(box.y0 - y, 0, y - box.y1)) for x, y in at]
        assert min(apart) >= apart[own] / 2, note.get_text()


@pytest.mark.parametrize(("inches", "apart"), [(2, False), (4, True)])
def test_marks_are_apart_if_none_covers_another(inches, apart):
    """Two of three marks are 0.03 of an axis apart: some 4 points in a small figure, 8 in one of twice the size."""
    figure = Figure(figsize=(inches, inches), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    assert are_apart(figure, axes, [0.2, 0.23, 0.9], [0.5, 0.5, 0.5]) is apart
    assert are_apart(figure, axes, [0.2], [0.5])
