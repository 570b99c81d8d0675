"""Labels beside points: all are written, also where there is no room for them."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from masklab.report.point_labels import place_labels


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
