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
