"""Claims of studies in which nothing is there, simulated from a real one: `null_studies.py` has more of them."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from null_studies import SAME, SCORES, Evening, false, simulated


@pytest.fixture(scope="module")
def evening():
    return Evening(pd.read_parquet(SCORES / "scores.parquet"))


@pytest.mark.parametrize("measure", ["accuracy", "trace"])
def test_no_trained_recipe_is_above_another(evening, measure):
    """Over both signs, and so on average over all draws; what replicates differ by keeps its size."""
    made, scores = evening.null(measure), evening.scores
    signs = np.random.default_rng(1).choice([-1.0, 1.0], 14)
    both = [made(signs), made(-signs)]
    trained = (scores["metric"] == measure) & ~scores["recipe"].str.contains(".", regex=False)
    kept = ~trained & (scores["metric"] != ("trace_embedded" if measure == "trace" else ""))
    assert np.array_equal(both[0][kept], scores["value"][kept])
    scale = np.log if measure == "trace" else np.asarray
    one, other, real = (pd.Series(scale(np.asarray(each)[trained])) for each in (*both, scores["value"]))
    rows = scores[trained].reset_index(drop=True)
    middle = (one + other) / 2
    assert np.allclose(middle, middle.groupby(rows["task"]).transform("mean"))
    off = real - real.groupby([rows[key].fillna(-1) for key in SAME]).transform("mean")
    assert np.allclose(abs(one - other) / 2, abs(off))


def test_what_is_false():
    def row(verdict, region, margin=0.0):
        return SimpleNamespace(verdict=verdict, region=region, margin=margin)

    assert false(row("supported", "above 0"), 0.0, 0.02) and false(row("contradicted", "above 0"), 0.0, 0.02)
    assert not false(row("negligible", "above 0"), 0.0, 0.02) and false(row("negligible", "above 0"), -0.03, 0.02)
    assert not false(row("contradicted", "above 0"), -0.06, 0.02) and false(row("supported", "below 0"), 0.01, 0.02)
    assert not false(row("supported", "equal", 0.02), 0.0, 0.02) and false(row("contradicted", "equal", 0.02), 0, 0.02)
    assert not false(row("inconclusive", "above 0"), 0.0, 0.02)


def test_false_verdicts_of_the_study_at_most_at_the_stated_level():
    """Of 39 claims on accuracy in ten studies; the interval of each is about 0 or what else is true in 19 of 20."""
    found = simulated("accuracy", 10)
    assert found["claim"].nunique() > 35 and found["decided"].mean() > 0.5
    assert found["false"].mean() <= 0.05
    assert found["beside"].mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 10)  # claims of one study are not independent
