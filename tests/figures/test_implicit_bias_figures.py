"""Figures of `implicit-bias` show the scores they are given, and say what is at equal loss."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import synthetic_ib as ib
from masklab.errors import MaskLabError
from masklab.figures import FIGURES
from masklab.figures.saturation import columns
from masklab.figures.sizes import count
from masklab.measured import last, points

NAMES = [name for name, spec in FIGURES["implicit-bias"].items() if "implicit_bias:" in spec.make]


@pytest.fixture(scope="module")
def scores():
    made = ib.ib_scores()
    return pd.concat([made, made[made.metric == "trace"].assign(metric="trace_embedded")], ignore_index=True)


def draw(name, scores, study=ib.STUDY):
    return FIGURES["implicit-bias"][name].function()(scores, study, {}, {})


def lines(axes):
    return [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]


def test_points_are_means_with_intervals(scores):
    frame = points(scores, ib.STUDY, "pcfg", "accuracy", "pcfg-b")
    assert len(frame) == 4 * 5 and list(dict.fromkeys(frame.label)) == list(ib.SIZES)
    row = frame[(frame.label == "m") & (frame.step == 400)].iloc[0]
    at = (scores.model == "pcfg-m") & (scores.step == 400) & (scores.task == "pcfg-b") & (scores.metric == "accuracy")
    values = scores[at].value
    expected = stats.t.interval(0.95, 4, values.mean(), stats.sem(values))
    assert (row.value, row.low, row.high) == pytest.approx((values.mean(), *expected), rel=1e-9)
    assert (row.parameters, row.seeds, row.n, row["std"]) == (1e5, 5, 500, pytest.approx(values.std()))
    # .2 exp(-100 / 60) is far from, .2 exp(-200 / 60) within 1 % of the lowest loss.
    assert frame[frame.label == "m"].converged.tolist() == [False, True, True, True, True]
    assert dict(zip(frame.label, frame.equal, strict=True)) == {"xs": False, "s": True, "m": True, "l": True}
    loss = last(points(scores, ib.STUDY, "pcfg", "loss")).set_index("label").loc["xs"]
    assert (loss.value, loss.high - loss.value) == pytest.approx((3.2 * 1.05, 1.96 * 0.001), rel=1e-3)
    with pytest.raises(MaskLabError, match="no rank rows of pcfg-xs, pcfg-s"):
        points(scores, ib.STUDY, "pcfg", "rank")
    with pytest.raises(MaskLabError, match="no panel 'text'"):
        points(scores, ib.STUDY, "text", "loss")
    twice = pd.concat([scores, scores[at].assign(probe="again")])
    with pytest.raises(MaskLabError, match="pcfg-m step 400 was measured twice on pcfg-b"):
        points(twice, ib.STUDY, "pcfg", "accuracy", "pcfg-b")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_overlaps(name, scores):
    figure, data = draw(name, scores)
    assert len(data)
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    boxes = [axes.get_tightbbox(renderer) for axes in figure.axes]
    for i, box in enumerate(boxes):
        assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1
        assert not any(box.overlaps(other) for other in boxes[i + 1 :]), name


def test_figure1_follows_every_size(scores):
    figure, data = draw("figure1", scores)
    for index, panel in enumerate(("pcfg", "causal")):
        above, below = figure.axes[index], figure.axes[2 + index]
        for axes, metric in ((above, "gap"), (below, "accuracy")):
            part = data[(data.panel == panel) & (data.metric == metric)]
            for line, (_, curve) in zip(lines(axes), part.groupby("label", sort=False), strict=True):
                np.testing.assert_array_equal(line.get_xydata(), curve[["step", "value"]])
    hollow = [line for line in figure.axes[2].get_lines() if line.get_label() == "_hollow"]
    assert [len(line.get_xdata()) for line in hollow] == [1, 1, 1, 1]  # step 100 of each


def test_figure2_marks_saturation_and_entropy(scores):
    figure, data = draw("figure2", scores)
    for index, panel in enumerate(("pcfg", "hmm", "causal")):
        axes = figure.axes[index]
        special = {line.get_label(): line for line in axes.get_lines()}
        assert special["_floor"].get_ydata()[0] == ib.FLOOR[panel]
        assert special["_saturated"].get_xdata()[0] == 1e4  # model s, the smallest at equal loss
        part = data[(data.panel == panel) & (data.metric == "loss")]
        np.testing.assert_array_equal(axes.get_lines()[1].get_xydata(), part[["parameters", "value"]])


def test_figure5_regresses_over_equal_losses(scores):
    _, data = draw("figure5", scores)
    part = data[data.panel == "hmm"]
    equal = part[part.label != "xs"]
    expected = stats.linregress(equal.value_trace, equal.value)
    row = part.iloc[0]
    assert (row.slope, row.intercept, row.r2) == pytest.approx(
        (expected.slope, expected.intercept, expected.rvalue**2), rel=1e-9
    )
    few = ib.STUDY.model_copy(update={"saturation": 0.001})
    assert draw("figure5", scores, few)[1].r2.isna().all()  # only the largest is left: no regression


def test_figures_show_what_the_study_has(scores):
    study = ib.STUDY.model_copy(update={"panels": {"pcfg": ib.PANELS["pcfg"]}})
    figure, data = draw("figure2", scores, study)
    assert len(figure.axes) == 2 and set(data.panel) == {"pcfg"}
    with pytest.raises(MaskLabError, match="needs a panel 'pcfg-sgd' with a set 'pcfg-c' or a panel 'hmm-sgd'"):
        draw("figure3", scores, study)
    assert columns(study, {"hmm": ("hmm-10",), "pcfg": ("pcfg-a",)}) == [("pcfg", "pcfg-a")]


def test_counts():
    assert [count(n) for n in (12, 999, 1000, 41_234, 999_999, 2.08e6, 235.46e6, 1.2e9)] == [
        "12", "999", "1K", "41.2K", "1M", "2.08M", "235M", "1.2B",
    ]  # fmt: skip
