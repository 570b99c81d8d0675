"""Effective ranks are whole numbers: replicates that agree are not exact, in claims, figures and tables alike."""

import numpy as np
import pytest
from scipy import stats

from masklab.claims.effects import difference
from masklab.claims.values import effect_estimate
from masklab.report.cells import cell
from masklab.scores.estimate import estimate, shared_rounding
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View


@pytest.fixture
def results():
    probe = {"kind": "rank", "tasks": [], "recipes": ["m"]}
    view = View("s", panels={"p": {"m": "m"}}, recipes={"m": {}}, replicates={"m": 3}, probes={"rank": probe})
    shared = {"recipe": "m", "step": 1, "probe": "rank", "task": "c", "split": "test", "metric": "rank", "n": 9}
    rows = [shared | {"replicate": r, "layer": layer, "value": 7.0} for r in (1, 2, 3) for layer in (0, 1)]
    return Results(view, rows_to_frame(rows))


def test_ranks_that_agree_have_the_interval_of_rounding(results):
    """Three that agree may all be rounded alike: an error of known variance, 1/12, however many replicates."""
    half = stats.norm.ppf(0.975) * np.sqrt(1 / 12)
    first, last = Reading("m", "rank", layers="first"), Reading("m", "rank", layers="last")
    curve = results.summary(Reading("m", "rank", over="layer"))
    assert curve["x"].tolist() == [0, 1] and (curve["high"] - curve["value"]).tolist() == pytest.approx(
        [half] * 2, rel=0.01
    )
    assert cell(results, last, "p", "row", "m", "rank")["low"] == pytest.approx(7 - half, rel=0.001)
    assert effect_estimate(difference(last, first), results).half == pytest.approx(half * np.sqrt(2), rel=0.01)


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("cells", [1, 4])
@pytest.mark.parametrize("replicates", [3, 9])
def test_intervals_of_rounded_numbers_hold_what_they_were_rounded_from(spread, cells, replicates):
    """95 % of them and more, wherever numbers lie, means of one cell or of four; nowhere wider than they need be.

    With t's two degrees of freedom for rounding, whose variance is known, three that agree would have .717 each way,
    more than rounding can ever do; and nine .222, less than it does.
    """
    rng, hits, halves = np.random.default_rng(1), [], []
    rounding = np.sqrt(1 / 12 / cells)
    for _ in range(600):
        true = rng.uniform(5, 6, cells)
        drawn = np.rint(true + rng.normal(0, spread, (replicates, cells))).mean(1)
        made = estimate(drawn, rounding)
        hits.append(made.low <= true.mean() <= made.high)
        halves.append(made.half)
    assert np.mean(hits) > 0.93
    if spread == 0:
        assert np.max(halves) == pytest.approx(stats.norm.ppf(0.975) * rounding, rel=0.01)


def test_replicates_that_differ_by_whole_numbers_have_their_spread_alone():
    drawn = np.array([7.0, 9.0, 8.0])
    assert estimate(drawn, np.sqrt(1 / 12)).half == pytest.approx(estimate(drawn).half, rel=1e-3)
    assert shared_rounding(0.0, np.sqrt(1 / 12)) == pytest.approx(1 / 12, rel=0.01)
    rng = np.random.default_rng(4)  # the covariance of two roundings about one place, by drawing
    for spread in (0.05, 0.1, 0.2, 0.3):
        place = rng.uniform(0, 1, 400_000)
        first, second = np.rint(place + rng.normal(0, spread, (2, len(place))))
        seen = np.sqrt(((first - second) ** 2).mean() / 2)
        shared = ((first - place) * (second - place)).mean()
        assert shared_rounding(seen, np.sqrt(1 / 12)) == pytest.approx(shared, abs=1e-3)
        assert shared_rounding(seen / 2, np.sqrt(1 / 48)) == pytest.approx(shared / 4, abs=1e-3)


def test_many_tasks_are_counted(results):
    names = [Reading("m", "mcc", tasks=tuple("abcd"[:k]), probe="finetune").parts(results.view)["what"] for k in (3, 4)]
    assert names == ["mcc on a + b + c", "mcc on 4 tasks"]
