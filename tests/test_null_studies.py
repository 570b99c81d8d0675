"""Claims of studies in which nothing is there, simulated from a real one: `null_studies.py` has more of them."""

import math

import numpy as np
import pandas as pd
import pytest

from null_studies import SAME, SCORES, Evening, false, simulated

ABOVE = (0.0, math.inf)


@pytest.fixture(scope="module")
def evening():
    return Evening(pd.read_parquet(SCORES))


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


@pytest.mark.parametrize(
    ("verdict", "bounds", "truth", "wrong"),
    [
        ("supported", ABOVE, 0.0, True), ("contradicted", ABOVE, 0.0, True), ("negligible", ABOVE, 0.0, False),
        ("negligible", ABOVE, -0.03, True), ("contradicted", ABOVE, -0.06, False), ("supported", ABOVE, 0.01, False),
        ("supported", (-math.inf, 0.0), 0.01, True), ("supported", (-0.02, 0.02), 0.0, False),
        ("contradicted", (-0.02, 0.02), 0.0, True), ("inconclusive", ABOVE, 0.0, False),
    ],
)  # fmt: skip
def test_what_is_false(verdict, bounds, truth, wrong):
    assert false(verdict, truth, bounds, 0.02) == wrong


def test_false_verdicts_of_the_study_at_most_at_the_stated_level(evening):
    """Of 39 claims on accuracy in ten studies; the interval of each is about 0 or what else is true in 19 of 20."""
    found = simulated(evening, "accuracy", 10)
    assert found["claim"].nunique() > 35 and found["decided"].mean() > 0.5
    assert found["false"].mean() <= 0.05
    assert found["beside"].mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 10)  # claims of one study are not independent
