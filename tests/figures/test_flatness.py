"""Figure 4 shows slices as measured, Figure 6 the two solutions and the paper's theorem beside its correction."""

import numpy as np
import pandas as pd
import pytest

from masklab.errors import MaskLabError
from masklab.figures.flatness import figure4, figure6


def slices():
    """Loss = 1.3 + trace / 2 mix^2, a tenth more for each further direction."""
    measured = (("own", "big", 250, 40), ("own", "big", 4000, 20), ("grown", "small", 4000, 30))
    return pd.DataFrame(
        {"probe": probe, "model": model, "step": step, "layer": layer, "mix": mix, "metric": "loss", "split": "test",
         "value": 1.3 + trace * (1 + 0.1 * layer) * mix**2 / 2}
        for probe, model, step, trace in measured
        for layer in range(4)
        for mix in np.linspace(-0.5, 0.5, 5)
    )  # fmt: skip


def test_figure4_shows_random_directions_and_their_mean():
    figure, data = figure4(slices(), None, {"big": "128 x 2"}, {}, grown={"own": False, "grown": True})
    for axes, traces in zip(figure.axes, ((40, 20), (30, 20)), strict=True):
        means = [line for line in axes.get_lines() if line.get_label() != "_direction"]
        assert len(axes.get_lines()) == 2 * (3 + 1)  # directions 1 to 3 and their mean; 0 is not a random one
        for line, trace in zip(means, traces, strict=True):
            expected = trace * 1.2 * np.linspace(-0.5, 0.5, 5) ** 2 / 2
            np.testing.assert_allclose(line.get_ydata(), expected, atol=1e-12)
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert legend == ["small, grown to 128 x 2", "128 x 2 as trained"] and set(data["direction"]) == {1, 2, 3}
    with pytest.raises(MaskLabError, match="needs two checkpoints of a model"):
        figure4(slices().query("step == 4000"), None, {}, {}, grown={"own": False, "grown": True})


def test_figure6_in_numbers():
    figure, data = figure6(None, None, {}, {})
    terms = data[data["part"] == "contributions"]
    first, second = (terms[terms["solution"] == number] for number in (1, 2))
    assert (
        np.allclose(first["positive"] * first["negative"], 0) and (second["positive"] * -second["negative"] > 1).all()
    )
    flat = data[data["part"] == "solutions"].set_index(["length", "solution"])
    for length in (6, 8):
        found = flat.squared_gradient_balanced[length, 1], flat.squared_gradient_balanced[length, 2]
        assert found[0] == pytest.approx(2 / np.sqrt(length), abs=1e-6) and found[1] > 4 * found[0]
    transfer = data[data["part"] == "transfer"]
    assert (abs(transfer["measured"] - transfer["corrected"]) < 4 * transfer["error"]).all()
    assert len(figure.axes) == 4
