"""Effective ranks are whole numbers: replicates that agree are not exact, in claims, figures and tables alike."""

import numpy as np
import pytest
from scipy import stats

from masklab.claims.effects import difference
from masklab.claims.verdict import effect_estimate
from masklab.report.cells import cell
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


def test_ranks_that_agree_have_an_interval(results):
    half = stats.t.ppf(0.975, 2) * np.sqrt(1 / 12 / 3)
    first, last = Reading("m", "rank", layers="first"), Reading("m", "rank", layers="last")
    curve = results.summary(Reading("m", "rank", over="layer"))
    assert curve["x"].tolist() == [0, 1] and (curve["high"] - curve["value"]).tolist() == pytest.approx([half] * 2)
    assert cell(results, last, "p", "row", "m", "rank")["low"] == pytest.approx(7 - half)
    assert effect_estimate(difference(last, first), results).half == pytest.approx(half * np.sqrt(2))


def test_many_tasks_are_counted(results):
    names = [Reading("m", "mcc", tasks=tuple("abcd"[:k]), probe="finetune").parts(results.view)["what"] for k in (3, 4)]
    assert names == ["mcc on a + b + c", "mcc on 4 tasks"]
