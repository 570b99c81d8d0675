"""Claims of studies in which nothing is there, simulated from a real one: `null_studies.py` has more of them."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from null_studies import DRAWN, SAME, SCORES, Evening, false, simulated

ABOVE = (0.0, math.inf)


@pytest.fixture(scope="module")
def evening():
    return Evening(pd.read_parquet(SCORES))


@pytest.mark.parametrize("measure", ["accuracy", "trace"])
def test_no_trained_recipe_is_above_another(evening, measure):
    """Over both signs, and so on average over all draws; what replicates differ by keeps its size."""
    made, scores = evening.null(measure, "signs"), evening.scores
    signs = DRAWN["signs"](np.random.default_rng(1), 14)
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


@pytest.mark.parametrize(("count", "share"), [(8, 0.070), (10, 0.021), (14, 0.057)])
def test_what_signs_alone_make_of_a_t_test(count, share):
    """The shares of docs/implicit-bias.md: of differences that are equally large in all replicates."""
    plus = np.arange(1, count)  # of one sign alone the error is 0
    mean = 2 * plus / count - 1
    found = np.abs(mean) / np.sqrt((1 - mean**2) / (count - 1)) > stats.t.ppf(0.975, count - 1)
    errs = stats.binom.pmf(plus, count, 0.5)[found].sum() + 2 * 0.5**count
    assert errs == pytest.approx(share, abs=5e-4)


def test_normal_differences_have_the_variances_and_covariances_that_were_measured(evening):
    """Of 2,000 draws, the first replicate's; a covariance of two normal numbers is then known to 3 % of their sizes."""
    made, scores = evening.null("accuracy"), evening.scores
    rows = scores[(scores["recipe"] == "ib-pcfg-m") & (scores["metric"] == "accuracy") & (scores["seed"] == 1)]
    rows = rows[(rows["task"] == "ib-pcfg-b") & rows["step"].isin([3500, 5000])]
    real = rows.pivot_table(index="replicate", columns="step", values="value")
    first = rows[rows["replicate"] == 1].sort_values("step").index
    rng = np.random.default_rng(1)
    drawn = np.array([made(DRAWN["normal"](rng, 14))[first] for _ in range(2000)])
    size = np.sqrt(np.outer(real.var(), real.var()))
    assert len(real) == 14 and np.allclose(np.cov(drawn.T) / size, real.cov() / size, atol=0.1)


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


@pytest.mark.slow
@pytest.mark.parametrize("drawn", DRAWN)
def test_false_verdicts_of_the_study_at_most_at_the_stated_level(evening, drawn):
    """Of 39 claims on accuracy in ten studies; the interval of each is about 0 or what else is true in 19 of 20."""
    found = simulated(evening, "accuracy", 10, drawn=drawn)
    assert found["claim"].nunique() > 35 and found["decided"].mean() > 0.5
    assert found["false"].mean() <= 0.05
    assert found["beside"].mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 10)  # claims of one study are not independent
