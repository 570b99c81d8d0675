"""Checkpoints and recipes at equal loss: what `converged` reads, and claims about recipes that the scores choose."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from masklab.claims.claim import Claim
from masklab.claims.effects import Correlation, Growth, Matched, difference
from masklab.claims.premises import friedman
from masklab.claims.summary import in_general
from masklab.claims.values import at_equal_loss, values
from masklab.claims.verdict import test_claims
from masklab.scores.reading import Reading, needs
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

FLOOR, STEPS = 2.0, (10, 20, 40, 80)
# Recipe -> its gap at each checkpoint; replicates lie .002 above and below it.
GAPS = {"small": (0.5, 0.2, 0.1, 0.1), "medium": (0.5, 0.03, 0.012, 0.01), "large": (0.3, 0.02, 0.004, 0.006)}


def accuracy(recipe, step):
    return 0.5 + 0.1 * list(GAPS).index(recipe) + 0.01 * STEPS.index(step)


def made(gaps=GAPS, saturation=0.01, accuracy=accuracy) -> Results:
    rows = []
    for recipe, own in gaps.items():
        for (step, gap), replicate in ((at, r) for at in zip(STEPS, own, strict=True) for r in (1, 2, 3)):
            at = {"recipe": recipe, "replicate": replicate, "step": step, "split": "test", "n": 100}
            off = 0.002 * (replicate - 2)
            values = {"gap": gap + off, "floor": FLOOR, "loss": FLOOR + gap + off}
            rows += [at | {"probe": "loss", "task": "c", "metric": m, "value": v} for m, v in values.items()]
            value = accuracy(recipe, step) + off / 4
            rows.append(at | {"probe": "linear", "task": "t", "metric": "accuracy", "value": value})
    recipes = list(gaps)
    probes = {
        "loss": {"kind": "loss", "tasks": [], "recipes": recipes},
        "linear": {"kind": "linear_probe", "tasks": ["t"], "recipes": recipes},
    }
    view = View(
        "s", panels={"p": {name: name for name in recipes}}, recipes={name: {"steps": 80} for name in recipes},
        replicates=dict.fromkeys(recipes, 3), tasks={"t": {"metric": "accuracy", "redrawn": False}}, probes=probes,
        saturation=saturation,
    )  # fmt: skip
    return Results(view, rows_to_frame(rows))


def read(recipe, **more):
    return Reading(recipe, "accuracy", ("t",), **more)


def without_losses(results, drop) -> Results:
    """The same without the losses of some of its rows of scores; drop: (recipe, replicate) -> whether."""
    scores = results.scores
    lost = [drop(name, replicate) for name, replicate in zip(scores["recipe"], scores["replicate"], strict=True)]
    return Results(results.view, scores[~(np.array(lost) & (scores["probe"] == "loss"))])


def test_losses_of_different_replicates_are_not_equal():
    """As of two runs together, of which each has measured one recipe's losses."""
    found = without_losses(made(), lambda name, replicate: (name == "large") == (replicate > 1))
    claim = Claim("c", "", "", "t", difference(read("large"), read("medium")), equal_loss=True, learned=False)
    row = test_claims([claim], found).iloc[0]
    assert row["verdict"] == "untested" and row["why"] == "no replicate has the losses of both medium and large"


def test_a_single_replicate_chooses_no_recipe_for_a_claim_that_more_decide():
    """Where losses were measured of fewer of them than scores; of a single one in all it may, as premises have it."""
    names = ("medium", "large")
    effect = Correlation(*2 * (tuple(map(read, names)),), points=2, equal_loss=True)
    results = made()
    assert at_equal_loss(effect, results) == effect
    few = without_losses(results, lambda name, replicate: replicate > 1)
    assert len(at_equal_loss(effect, few).ys) == 1
    assert test_claims([Claim("c", "", "", "t", effect, learned=False)], few).iloc[0]["verdict"] == "untested"
    single = Results(results.view, results.scores[results.scores["replicate"] == 1])
    assert at_equal_loss(effect, single) == effect


def test_converged_is_the_first_checkpoint_near_the_lowest_loss():
    results = made()
    # shares of the floor over the lowest one: large .148, .008, 0, .001; medium .245, .01, .001, 0; small .2, .05, 0, 0
    for recipe, first in (("large", 20), ("medium", 20), ("small", 40)):
        np.testing.assert_allclose(results.values(read(recipe, step="converged")).scalar[1, 0], accuracy(recipe, first))
        curve = results.values(read(recipe, step="since converged", over="step"))
        assert curve.x.tolist() == [step for step in STEPS if step >= first]
    assert results.gaps("large") == pytest.approx(dict(zip(STEPS, (0.15, 0.01, 0.002, 0.003), strict=True)))
    strict = made(saturation=0.001)
    assert strict.values(read("large", step="since converged", over="step")).x.tolist() == [40, 80]
    reading = read("large", step="converged")
    assert needs(reading, results.view) == [("linear", "large"), ("loss", "large")]
    assert reading.parts(results.view)["step"] == "as it converged"
    unmeasured = Results(results.view, results.scores[results.scores["metric"] == "accuracy"])
    assert unmeasured.values(reading).replicates == () and unmeasured.gaps("large") == {}


def test_recipes_at_equal_loss():
    assert made().at_equal_loss(GAPS) == ["medium", "large"]
    assert made(saturation=0.1).at_equal_loss(GAPS) == list(GAPS)
    assert made(saturation=0.001).at_equal_loss(["large", "unknown", "small"]) == ["large"]


def judged(effect, results, **more):
    return test_claims([Claim("c", "1", "1", "text", effect, **more)], results).iloc[0]


def test_growth_is_from_the_smallest_at_equal_loss():
    growth = Growth(tuple(read(recipe) for recipe in GAPS))
    row = judged(growth, made(), equal_loss=True)
    assert (row.verdict, row.value) == ("supported", pytest.approx(0.1))
    assert row.comparison == "large - medium: accuracy on t" and row.unit == "accuracy"
    assert judged(growth, made(saturation=0.1), equal_loss=True).value == pytest.approx(0.2)
    alone = judged(growth, made(saturation=0.001), equal_loss=True)
    assert (alone.verdict, alone.why) == ("untested", "no other recipe is at the loss of large")
    assert np.isnan(alone.value) and alone.comparison == "large: accuracy on t, less that of the smallest at its loss"
    worst = GAPS | {"large": (0.5, 0.5, 0.5, 0.5)}
    assert "losses not shown to be equal" in judged(growth, made(worst), equal_loss=True).why


def test_correlations_leave_out_recipes_at_another_loss():
    parts = tuple(read(recipe) for recipe in GAPS), tuple(read(recipe, form="log") for recipe in GAPS)
    effect = Correlation(*parts, points=2, equal_loss=True)
    assert judged(effect, made(), equal_loss=True).verdict == "supported"
    few = judged(Correlation(*parts, points=3, equal_loss=True), made())
    assert (few.verdict, few.why) == ("untested", "2 points; a correlation needs 3")
    assert judged(Correlation(*parts, points=3), made()).verdict == "supported"
    single = judged(effect, made(saturation=0.001))
    assert (single.verdict, single.why) == ("untested", "1 points; a correlation needs 2") and np.isnan(single.value)


def test_what_does_not_vary_is_not_correlated():
    """Every replicate has the order of these checkpoints in one recipe, each its own in the other.

    It is what others are to correlate with that must vary.
    """
    results = made()
    scores, steps = results.scores.copy(), {step: at for at, step in enumerate(STEPS)}
    own = (scores["recipe"] == "small") & (scores["metric"] == "accuracy")
    turned = [0.5 + 0.1 * ((steps[row.step] * row.replicate + row.replicate) % 4) for row in scores[own].itertuples()]
    scores.loc[own, "value"] = turned
    results = Results(results.view, scores)

    def judge(recipe, varied, turn=1):
        sides = [Reading(recipe, "gap", step="all", over="step"), read(recipe, step="all", over="step")]
        effect = Correlation(*((side,) for side in sides[::turn]), points=4, varied=varied)
        return judged(effect, results, region="below 0")

    assert judge("large", True).verdict == judge("large", False).verdict != "untested"
    assert judge("small", False).verdict == judge("small", True, -1).verdict == "inconclusive"
    why = judge("small", True).why
    assert judge("small", True).verdict == "untested"
    assert why.startswith("accuracy on t is not shown to differ between the points (Friedman's test: p = 0.")


def test_friedman_against_ranks_by_hand():
    numbers = np.array([[1.0, 2, 3], [1, 3, 2], [1, 2, 3], [2, 1, 3]])
    rank_sums = np.array([5, 8, 11])
    statistic = 12 / (4 * 3 * 4) * (rank_sums**2).sum() - 3 * 4 * 4
    assert friedman(numbers) == pytest.approx(stats.chi2.sf(statistic, 2))
    assert friedman(np.ones((3, 4))) == 1.0


def test_what_follows_convergence_needs_a_later_checkpoint():
    since = difference(read("large"), read("large", step="converged"))
    assert judged(since, made()).value == pytest.approx(0.02)
    row = judged(since, made(GAPS | {"large": (0.5, 0.4, 0.3, 0.1)}))
    assert (row.verdict, row.why) == ("untested", "the loss of large converges at its last checkpoint")
    rising = made(GAPS | {"large": (0.5, 0.004, 0.01, 0.1)})
    assert judged(since, rising, equal_loss=True).why.endswith(
        "(large - large as it converged: +0.048 [+0.048, +0.048])"
    )


def test_what_is_said_of_claims_about_losses_in_general():
    """Without names; that a loss was not measured is no want of recipes at one loss."""
    results = made()
    unmeasured = Results(results.view, results.scores[results.scores["metric"] == "accuracy"])
    lacking = judged(difference(read("large"), read("small")), unmeasured, equal_loss=True).why
    assert lacking == "the loss of large against its floor was not measured"
    alone = judged(Growth(tuple(read(recipe) for recipe in GAPS)), made(saturation=0.001), equal_loss=True).why
    since = difference(read("large"), read("large", step="converged"))
    late = judged(since, made(GAPS | {"large": (0.5, 0.4, 0.3, 0.1)})).why
    assert [in_general(why) for why in (lacking, alone, late)] == [
        "a loss against its floor was not measured",
        "no other recipe is at the same loss",
        "the loss converges at the last checkpoint",
    ]


def test_of_equal_mean_losses_those_count_that_are_shown_to_be_equal():
    """`wide` has the mean loss of `large`, but its replicates lie .02 of the floor apart: its interval is too wide."""
    results = made(
        {"wide": (0.5, 0.5, 0.5, 0.01)} | GAPS,
        accuracy=lambda recipe, step: 0.9 if recipe == "wide" else accuracy(recipe, step),
    )
    scores = results.scores.copy()
    rows = (scores["recipe"] == "wide") & (scores["metric"] == "gap")
    scores.loc[rows, "value"] += 0.02 * FLOOR * (scores.loc[rows, "replicate"] - 2)
    results = Results(results.view, scores)
    assert results.at_equal_loss(["wide", *GAPS]) == ["wide", "medium", "large"]
    parts = tuple(read(recipe) for recipe in ("wide", *GAPS))
    assert judged(Growth(parts), results, equal_loss=True).comparison == "large - medium: accuracy on t"
    alone = judged(Growth((parts[0], parts[-1])), results, equal_loss=True)
    assert alone.verdict == "untested" and "losses not shown to be equal" in alone.why
    effect = Correlation(
        parts, tuple(read(recipe, form="log") for recipe in ("wide", *GAPS)), points=3, equal_loss=True
    )
    assert judged(effect, results, equal_loss=True).why == "2 points; a correlation needs 3"


# Gaps at the last checkpoint of one model that was ended earlier and later.
COURSE = {"early": 0.3, "middle": 0.1, "late": 0.05}


def course(other: float) -> tuple[Matched, Results]:
    gaps = {name: (0.5, 0.5, 0.5, gap) for name, gap in (COURSE | {"other": other, "far": 0.4}).items()}
    accuracies = {"early": 0.5, "middle": 0.6, "late": 0.7, "other": 0.63, "far": 0.2}
    results = made(gaps, accuracy=lambda recipe, step: accuracies[recipe])
    pairs = [[(read(name), Reading(name, "gap")) for name in names] for names in (COURSE, ("far", "other"))]
    return Matched(*map(tuple, pairs)), results


def matched(other: float):
    return judged(*course(other))


def test_a_course_is_read_at_the_loss_of_another():
    row = matched(0.08)
    assert (row.verdict, row.value) == ("supported", pytest.approx(0.6 + 0.4 * 0.1 - 0.63))
    assert row.comparison == "between middle and late at the loss of other - other: accuracy on t"
    assert matched(0.1).value == pytest.approx(0.6 - 0.63) and matched(0.2).value == pytest.approx(0.55 - 0.63)
    for nowhere in (0.35, 0.05 - 1e-6, 0.04):
        row = matched(nowhere)
        assert (row.verdict, row.why) == (
            "untested",
            "between early and late the loss passes that of far and other nowhere",
        )
        assert row.comparison == "between early and late at the loss of a smaller one - a smaller one: accuracy on t"


def test_the_course_has_one_slope_for_all_replicates():
    """Of mean losses and accuracies, .1 over .05; two ends of one replicate that happen to be close give none."""
    effect, results = course(0.08)
    scores = results.scores.copy()
    close = (scores["recipe"] == "late") & (scores["metric"] == "gap") & (scores["replicate"] == 3)
    scores.loc[close, "value"] = 0.1
    results = Results(results.view, scores)

    def mean(recipe, metric):
        own = scores[(scores["recipe"] == recipe) & (scores["metric"] == metric) & (scores["step"] == 80)]
        return own.set_index("replicate")["value"]

    slope = (mean("late", "accuracy").mean() - mean("middle", "accuracy").mean()) / (
        mean("late", "gap").mean() - mean("middle", "gap").mean()
    )
    way = mean("other", "gap") - mean("middle", "gap")
    expected = mean("middle", "accuracy") + slope * way - mean("other", "accuracy")
    found = values(at_equal_loss(effect, results), results).scalar[:, 0]
    assert found.mean() == pytest.approx(expected.mean())
    # and what the slope's own error adds, which is 0 on average
    of_line = mean("late", "accuracy") - mean("middle", "accuracy")
    of_line -= slope * (mean("late", "gap") - mean("middle", "gap"))
    expected += of_line * way.mean() / (mean("late", "gap") - mean("middle", "gap")).mean()
    np.testing.assert_allclose(found, expected)


def test_a_difference_beyond_a_threshold_is_never_negligible():
    """`large` is .1 above `medium` and as good as `medium` plus .1: only a claim about their difference asks for 0."""
    results = made()
    scores, large = results.scores.copy(), results.scores["recipe"] == "large"
    noisy = large & (scores["metric"] == "accuracy")
    scores.loc[noisy, "value"] += 0.002 * (scores.loc[noisy, "replicate"] - 2)
    results = Results(replace(results.view, margin=0.02), scores)
    beyond = judged(difference(read("large"), read("medium"), 0.1), results)
    assert abs(beyond.value) < 1e-9 and beyond.high < 0.02 and beyond.verdict == "inconclusive"
    scores.loc[noisy, "value"] -= 0.1
    alike = judged(difference(read("large"), read("medium")), Results(results.view, scores))
    assert abs(alike.value) < 1e-9 and alike.high < 0.02 and alike.verdict == "negligible"


def test_losses_are_compared_over_the_replicates_that_all_have():
    """The third replicate has a language that is hard for whoever is trained on it, which is `large` alone."""
    results = made()
    scores, recipes = results.scores.copy(), list(GAPS)
    scores.loc[(scores["replicate"] == 3) & (scores["metric"] == "gap"), "value"] += 0.5
    few = Results(results.view, scores[(scores["replicate"] < 3) | (scores["recipe"] == "large")])
    assert few.shared(map(read, recipes)) == [1, 2] and few.shared([]) is None
    assert few.gaps("large")[80] > few.gaps("large", [1, 2])[80]
    assert few.at_equal_loss(recipes) == results.at_equal_loss(recipes)
    assert few.summary(read("large"), [1, 2])["replicates"].tolist() == [2]
    assert few.summary(read("large"))["replicates"].tolist() == [3]
