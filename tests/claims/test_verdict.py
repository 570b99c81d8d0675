"""Claims on results: verdicts, premises, correction, and how often they err over a thousand studies."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from masklab.claims.claim import Claim
from masklab.claims.claim_files import gather, markdown, write_claims
from masklab.claims.effects import Correlation, Crossing, Least, Ratio, Slope, Sum, difference
from masklab.claims.power import MOST, power
from masklab.claims.verdict import COLUMNS, test_claims
from masklab.claims.verdict import tested as claim_row
from masklab.errors import MaskLabError
from masklab.scores import items
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

TASK, CHANCE = "t", 0.5
FACTS = {"steps": 100, "corpus": "c", "corpus.redrawn": False}
A, B = (Reading(name, "accuracy", (TASK,)) for name in "ab")
BETTER = Claim("better", "1", "F", "a is better", difference(A, B))
SAME = Claim("same", "1", "F", "a is as good", difference(A, B), "equal")


def view(recipes="ab", nulls=("majority",), **more):
    probes = {"p": {"kind": "finetune", "tasks": [TASK], "recipes": [*recipes, "null"]},
              "l": {"kind": "loss", "tasks": [], "recipes": list(recipes)}}  # fmt: skip
    own = {kind: None if kind == "majority" else "null" for kind in nulls}
    return View(
        "s",
        panels={"all": {name.upper(): name for name in recipes}},
        recipes={name: FACTS for name in (*recipes, "null")},
        nulls=dict.fromkeys(recipes, own),
        tasks={TASK: {"metric": "accuracy", "kind": "label-files", "redrawn": False}},
        probes=probes,
        **more,
    )


def row(recipe, replicate, metric, value, **more):
    shared = {"recipe": recipe, "replicate": replicate, "step": 100, "probe": "p", "task": TASK, "split": "test",
              "n": 100}  # fmt: skip
    return {**shared, "metric": metric, "value": float(value)} | more


def results(values: dict, learned=True, draws=0, outcomes=None, **more) -> Results:
    """Results of recipes: name -> accuracy by replicate."""
    rows = []
    for recipe, own in values.items():
        for replicate, value in enumerate(own, 1):
            rows += [row(recipe, replicate, "accuracy", value), row(recipe, replicate, "majority", CHANCE)]
    loss = {"valid_loss": {"50": 3.9, "100": 3.0 if learned else 4.1}, "unigram_loss": 4.0}
    models = {(recipe, r): loss for recipe, own in values.items() for r in range(1, len(own) + 1)}
    return Results(view("".join(set(values) - {"null"}), **more), rows_to_frame(rows), outcomes, models, draws=draws)


def one(claim, found):
    return test_claims([claim], found).iloc[0]


def test_verdicts_follow_the_interval():
    apart = {"a": [0.81, 0.83, 0.82], "b": [0.71, 0.70, 0.72]}
    found = one(BETTER, results(apart))
    assert found["verdict"] == "supported" and found["value"] == pytest.approx(0.11) and found["replicates"] == 3
    assert found["needed"] == 0 and 0 < found["p"] < 0.05
    assert one(SAME, results(apart))["verdict"] == "contradicted"
    other = Claim("worse", "1", "F", "a is worse", difference(A, B), "below 0")
    assert one(other, results(apart))["verdict"] == "contradicted"
    alike = {"a": [0.801, 0.803, 0.802], "b": [0.802, 0.801, 0.803]}
    assert one(SAME, results(alike))["verdict"] == "supported"
    noisy = one(BETTER, results({"a": [0.9, 0.7, 0.8], "b": [0.7, 0.75, 0.8]}))
    assert noisy["verdict"] == "inconclusive" and noisy["why"] == "the interval holds 0" and noisy["needed"] > 3


def test_fewer_than_three_replicates_decide_nothing():
    for count in (1, 2):
        found = one(BETTER, results({"a": [0.81, 0.83][:count], "b": [0.71, 0.70][:count]}))
        assert found["verdict"] == "inconclusive" and "nothing is decided by fewer than 3" in found["why"]
        assert math.isnan(found["p"]) and (found["needed"] > 2) == (count == 2)


def test_models_in_which_nothing_is_drawn_decide_nothing(monkeypatch):
    """Three replicates of models made elsewhere are one; of trained ones that agree by chance they are three."""
    alike, better = {"a": [0.9] * 3, "b": [0.7] * 3}, replace(BETTER, learned=False)
    assert one(better, results(alike))["verdict"] == "supported"
    monkeypatch.setitem(FACTS, "encoder.kind", "folder")
    found = one(better, results(alike))
    assert found["verdict"] == "inconclusive" and found["replicates"] == 1 and np.isnan(found["p"])
    assert found["why"] == "nothing is drawn in its recipes: all replicates are one"
    assert one(BETTER, results(alike))["why"] == found["why"]  # both are above their nulls, as far as one can be
    varied = one(better, results({"a": [0.9, 0.91, 0.9], "b": [0.7, 0.72, 0.7]}))  # by a probe that draws examples
    assert varied["verdict"] == "supported" and varied["replicates"] == 3


def test_recipes_are_compared_on_the_replicates_that_both_have():
    found = one(BETTER, results({"a": [0.8, 0.9, 0.7, 0.1, 0.1], "b": [0.7, 0.8, 0.6]}))
    assert found["replicates"] == 3 and found["value"] == pytest.approx(0.1)


def test_models_that_learned_nothing_decide_nothing():
    flat = {"a": [0.52, 0.49, 0.50, 0.51], "b": [0.48, 0.50, 0.49, 0.5]}
    for claim in (BETTER, SAME):
        found = one(claim, results(flat))
        assert found["verdict"] == "untested" and "no recipe does better than its nulls" in found["why"]
        assert math.isnan(found["p"]) and found["needed"] == 0
    unlearned = one(BETTER, results({"a": [0.81, 0.83, 0.82], "b": [0.71, 0.70, 0.72]}, learned=False))
    assert unlearned["verdict"] == "untested" and "word frequencies" in unlearned["why"]


def test_why_nothing_was_learned_says_over_how_many_sizes():
    flat = {"a": [0.52, 0.49, 0.50, 0.51], "b": [0.48, 0.50, 0.49, 0.5]}
    once = results(flat)
    both = pd.concat([once.scores.assign(train_size=size) for size in (10, 100)])
    assert "training sizes" not in one(BETTER, once)["why"]
    assert "mean over 2 training sizes: +0.005 [" in one(BETTER, Results(once.view, both, models=once.models))["why"]
    two = replace(once.view, tasks=once.view.tasks | {"u": once.view.tasks[TASK]})
    two.probes["p"]["tasks"].append("u")
    apart = pd.concat([once.scores.assign(task=task, train_size=size) for task, size in ((TASK, 10), ("u", 100))])
    both = difference(*(each.of(each.recipe, tasks=(TASK, "u")) for each in (A, B)))
    why = one(replace(BETTER, effect=both), Results(two, apart, models=once.models))["why"]
    assert "no recipe does better than its nulls" in why and "training sizes" not in why, "each task has one size"


def test_the_strongest_null_counts():
    values = {"a": [0.81, 0.83, 0.82], "b": [0.71, 0.70, 0.72], "null": [0.86, 0.87, 0.85]}
    found = one(BETTER, results(values, nulls=("majority", "bag-of-words")))
    assert found["verdict"] == "untested" and found["why"].endswith("above bag-of-words)")


def test_a_gain_over_nulls_must_be_as_large_as_the_study_asks():
    """.82 over a null of .5 is .32 above it: shown, and too little where .4 is asked."""
    values = {"a": [0.81, 0.83, 0.82], "b": [0.71, 0.70, 0.72]}
    assert one(BETTER, results(values, gain=0.3))["verdict"] == "supported"
    found = one(BETTER, results(values, gain=0.4))
    assert found["verdict"] == "untested" and found["why"].startswith("no recipe does better than its nulls by 0.4 (")
    assert "+0.320 [+0.295, +0.345] above majority" in found["why"]


def test_margins_of_what_is_no_score():
    """Ranks that differ by .1 at most: nothing, if the study says that .5 is; else undecided."""
    rows = [
        row(recipe, replicate, "rank_interpolated", 20 + 0.1 * (recipe == "a") * (replicate - 2), task="c", layer=1)
        for recipe in "ab"
        for replicate in (1, 2, 3)
    ]
    probes = {"p": {"kind": "rank", "tasks": [], "recipes": ["a", "b"]}}
    ranks = [Reading(name, "rank_interpolated", layers="last") for name in "ab"]
    claim = Claim("more", "1", "F", "a has more", difference(*ranks))
    for margins, verdict in (({}, "inconclusive"), ({"rank_interpolated": 0.5}, "negligible")):
        given = replace(view(margins=margins), probes=probes)
        found = one(claim, Results(given, rows_to_frame(rows)))
        assert found["verdict"] == verdict and found["unit"] == "rank interpolated"
    claim = replace(claim, effect=difference(*(rank.of(rank.recipe, form="log") for rank in ranks)))
    for margins, verdict in (
        ({"rank_interpolated": 0.5}, "inconclusive"),
        ({"log_rank_interpolated": 0.05}, "negligible"),
    ):
        found = one(claim, Results(replace(view(margins=margins), probes=probes), rows_to_frame(rows)))
        assert found["verdict"] == verdict and found["unit"] == "log rank interpolated"


def test_a_score_may_have_a_margin_of_its_own():
    """A difference of .03 is none by a margin of .05, one of about 0 is undecided by one of .001."""
    larger = {"a": [0.831, 0.829, 0.830], "b": [0.801, 0.800, 0.799]}
    none = {"a": [0.831, 0.829, 0.830], "b": [0.829, 0.831, 0.830]}
    for values, claim, few, wide in (
        (larger, SAME, "contradicted", "supported"),
        (larger, replace(SAME, region="no more"), "contradicted", "supported"),
        (none, replace(SAME, region="no less"), "inconclusive", "supported"),
        (none, BETTER, "inconclusive", "negligible"),
    ):
        for margin, own, verdict in ((0.05, 0.001, few), (0.001, 0.05, wide)):
            assert one(claim, results(values, margin=margin, margins={"accuracy": own}))["verdict"] == verdict
    found = results(larger, margins={"accuracy": 0.05})
    assert one(replace(SAME, margin=0.001), found)["verdict"] == "contradicted"  # the claim's own comes first


def test_learning_on_the_trained_split_is_enough_for_claims_of_absence():
    rows = []
    for replicate in (1, 2, 3):
        for recipe in "ab":
            for split, value in (("home", 0.8), ("away", 0.5 + 0.001 * replicate * (recipe == "a"))):
                rows.append(row(recipe, replicate, "accuracy", value + 0.001 * replicate, split=split))
                rows.append(row(recipe, replicate, "majority", CHANCE + 0.002, split=split))
    found = Results(view(), rows_to_frame(rows), models={})
    away = [reading.of(reading.recipe, splits=("away",)) for reading in (A, B)]
    same = Claim("same", "1", "F", "nothing carries over", difference(*away), "equal")
    at_home = Claim("same", "1", "F", "nothing carries over", difference(*away), "equal", learned_on=("home",))
    assert one(same, found)["verdict"] == "untested" and one(at_home, found)["verdict"] == "supported"


def losses(gaps):
    """Rows of a loss probe: recipe -> gap to a floor of 2, by replicate."""
    rows = []
    for recipe, own in gaps.items():
        for replicate, gap in enumerate(own, 1):
            for metric, value in (("gap", gap), ("floor", 2.0)):
                rows.append(row(recipe, replicate, metric, value, probe="l", task="c"))
    return rows


@pytest.mark.parametrize(("gaps", "verdict"), [((0.2, 0.21), "supported"), ((0.2, 0.3), "untested")])
def test_equal_loss_is_an_equivalence_test(gaps, verdict):
    claim = Claim("better", "1", "F", "at equal loss", difference(A, B), equal_loss=True)
    base = results({"a": [0.81, 0.83, 0.82], "b": [0.71, 0.70, 0.72]})
    rows = losses({name: [gap, gap + 0.001, gap - 0.001] for name, gap in zip("ab", gaps, strict=True)})
    found = Results(view(saturation=0.01), pd.concat([base.scores, rows_to_frame(rows)]), models=base.models)
    row_ = one(claim, found)
    assert row_["verdict"] == verdict and ("not shown to be equal" in row_["why"]) == (verdict == "untested")
    assert one(claim, base)["why"].endswith("was not measured")


def test_what_was_not_measured_is_untested():
    found = one(BETTER, results({"a": [0.8, 0.81, 0.82]}))
    assert found["verdict"] == "untested" and found["why"].startswith("not measured: b: accuracy on t")


# --- effects -------------------------------------------------------------------


def curve(recipe, values, costs):
    rows = []
    for step, value, cost in zip((10, 20, 30), values, costs, strict=True):
        rows.append(row(recipe, 1, "accuracy", value, step=step))
        rows.append(row(recipe, 1, "seconds", cost, step=step, probe="c", task="c", split="train"))
    return rows


def value_of(effect, found):
    return one(Claim("c", "1", "F", "t", effect, learned=False), found)["value"]


def test_effects_are_the_numbers_they_say():
    found = results({"a": [0.8], "b": [0.5], "c": [0.6]})
    c = A.of("c")
    assert value_of(Sum(((1, A), (-2, B)), 0.1), found) == pytest.approx(0.8 - 1.0 - 0.1)
    assert value_of(Ratio(A, B, 0.2), found) == pytest.approx(0.8 / 0.5 - 1 - 0.2)
    assert value_of(difference(Least((A, B, c)), c), found) == pytest.approx(-0.1)
    assert value_of(Slope((B, c, A), (0.0, 0.5, 1.0), "delta"), found) == pytest.approx(0.3)
    r = value_of(Correlation((B, c, A), (B, c, A), points=3), found)
    assert r == pytest.approx(1, abs=1e-6)
    y, x = np.array([0.5, 0.6, 0.8]), np.array([0.8, 0.6, 0.5])
    r2 = Correlation((B, c, A), (A, c, B), "R2", 0.25, points=3)
    assert value_of(r2, found) == pytest.approx(np.corrcoef(y, x)[0, 1] ** 2 - 0.25)


def test_a_crossing_lies_on_the_line_between_checkpoints():
    rows = curve("a", (0.5, 0.7, 0.8), (1.0, 2.0, 4.0)) + curve("b", (0.4, 0.5, 0.6), (2.0, 4.0, 8.0))
    probes = view().probes | {"c": {"kind": "cost", "tasks": [], "recipes": ["a", "b"]}}
    found = Results(View(**(view().plain() | {"probes": probes})), rows_to_frame(rows))
    seconds = {name: Reading(name, "seconds") for name in "ab"}
    at = Crossing(A.of("a", step="all", over="step"), seconds["a"].of("a", step="all", over="step"), B, seconds["b"])
    assert value_of(at, found) == pytest.approx(1.5 / 8)
    never = Crossing(A.of("b", step="all", over="step"), seconds["b"].of("b", step="all", over="step"), A, seconds["a"])
    assert value_of(never, found) == pytest.approx(8 / 4)


def test_a_correlation_of_few_points_is_untested():
    found = results({"a": [0.8] * 3, "b": [0.5] * 3})
    row_ = one(Claim("c", "1", "F", "t", Correlation((A, B), (A, B))), found)
    assert (row_["verdict"], row_["why"]) == ("untested", "2 points; a correlation needs 8")


def test_effects_in_words():
    seen = view()
    assert difference(A, B).words(seen) == "A - B: accuracy on t"
    assert difference(A.of("a", sizes="large"), A.of("a", sizes="small")).words(seen) == (
        "large sizes - small sizes: A, accuracy on t"
    )
    assert Ratio(A, B).words(seen) == "A / B - 1: accuracy on t"
    assert Slope((A, B), (0, 1), "delta").words(seen) == "slope in delta of accuracy on t"
    assert A.words(seen) == "A: accuracy on t" and A.of("a", over="train_size", reduce="slope").unit(seen) == (
        "accuracy per doubling"
    )


# --- correction, duplicates, files -------------------------------------------------


def test_holm_takes_back_what_many_claims_find_by_chance():
    values = {"a": [0.803, 0.802, 0.806, 0.805], "b": [0.801, 0.801, 0.803, 0.801]}
    claims = [Claim(f"c{n}", "1", "F", "t", Sum(((1, A), (-1, B)), threshold=1e-6 * n)) for n in range(20)]
    found = test_claims(claims, results(values))
    assert set(found["verdict"]) == {"supported"} and set(found["corrected"][1:]) == {"inconclusive"}
    assert found["corrected"][0] == "negligible" and found["p"][0] < found["p"][1]  # .0025 of .02 that counts
    assert "| supported † (negligible after it) |" in markdown(found)
    assert one(BETTER, results(values))["corrected"] == "supported"


def test_a_study_may_call_what_is_below_its_margin_negligible():
    values = {"a": [0.803, 0.802, 0.806, 0.805], "b": [0.801, 0.801, 0.803, 0.801]}
    by_sign = one(BETTER, results(values))
    found = one(BETTER, results(values, below_margin="negligible"))
    assert (by_sign["verdict"], found["verdict"], found["corrected"]) == ("supported", "negligible", "negligible")
    assert found["why"] == "shown to be less than 0.02" and found["p"] == by_sign["p"]
    # at the level that each of twenty claims has it is shown to be above 0 alone: the correction only takes away
    values = {"a": [0.8125, 0.8145, 0.8155, 0.8175], "b": [0.8, 0.8, 0.8, 0.8]}
    wide = results(values, below_margin="negligible")
    found = test_claims([replace(BETTER, name=f"c{n}") for n in range(20)], wide)
    assert set(found["verdict"]) == {"negligible"} and found["p"][0] > 0.05 / 20
    assert set(found["corrected"]) == {"inconclusive"}
    by_sign = test_claims([replace(BETTER, name=f"c{n}") for n in range(20)], results(values))
    assert set(by_sign["verdict"]) == set(by_sign["corrected"]) == {"supported"} and by_sign["p"][0] < 0.05 / 20


def test_claims_that_share_an_effect_are_counted():
    found = test_claims([BETTER, SAME], results({"a": [0.81, 0.83, 0.82], "b": [0.71, 0.70, 0.72]}))
    assert list(found["same_effect"]) == ["better", "better"]
    assert "2 claims are about 1 effect: 1 shares its own with another" in markdown(found)


def test_claims_on_disk(tmp_path):
    claims = [Claim("better", "1", "F", "a is better", difference(A, B), headline=True), SAME]
    found = test_claims(claims, results({"a": [0.81, 0.83, 0.82], "b": [0.71, 0.70, 0.72]}))
    write_claims(found, tmp_path / "s")
    again = gather([tmp_path / "s.parquet"])
    pd.testing.assert_frame_equal(again, found)
    text = (tmp_path / "s.md").read_text()
    assert text.startswith("# Claims of `s`: 1 supported, 1 contradicted, 0 negligible, 0 inconclusive, 0 untested")
    assert "## What it stands for" in text and list(COLUMNS) == list(again.columns)
    with pytest.raises(MaskLabError, match="no study tests claims; a study does with `claims: all`"):
        gather([])
    (tmp_path / "bad.parquet").write_bytes(b"")
    with pytest.raises(MaskLabError):
        gather([tmp_path / "bad.parquet"])


# --- a thousand studies ------------------------------------------------------------


def simulated(replicates, items_, effect, seed, count=60, draws=100):
    """A study of two recipes whose accuracies differ by `effect` in truth, and its claim tested.

    Outcomes have an effect of the replicate, shared by both recipes, one of the recipe's replicate, and of the item.
    """
    rng = np.random.default_rng(seed)
    shared, hard = 0.02 * rng.normal(size=replicates), 0.1 * rng.normal(size=count)
    rows, records = [], []
    for recipe, level in (("a", 0.7 + effect), ("b", 0.7)):
        for replicate in range(1, replicates + 1):
            chance = level + shared[replicate - 1] + 0.02 * rng.normal() + hard * (recipe == "a")
            predictions = (rng.random(count) < np.clip(chance, 0, 1)).astype(np.float32)
            rows += [row(recipe, replicate, "accuracy", predictions.mean()), row(recipe, replicate, "majority", CHANCE)]
            key = {"recipe": recipe, "replicate": replicate, "step": 100, "probe": "p", "task": TASK, "split": "test"}
            records.append(key | {"metrics": ["accuracy"], "targets": np.ones(count), "predictions": predictions})
    table = items.records_to_table(records) if items_ else None
    found = Results(view(), rows_to_frame(rows), table, draws=draws, seed=seed)
    return claim_row(BETTER, found)


@pytest.mark.slow
@pytest.mark.parametrize("replicates", [3, 5, 10])
def test_a_thousand_studies_without_an_effect(replicates):
    """False verdicts, either way, at most at the stated level of 5 % (and what chance allows on it)."""
    verdicts = [simulated(replicates, True, 0.0, seed)["verdict"] for seed in range(1000)]
    assert verdicts.count("untested") < 100  # by chance no better than the majority
    assert np.mean([verdict in ("supported", "contradicted") for verdict in verdicts]) <= 0.05 + 2 * math.sqrt(
        0.05 * 0.95 / 1000
    )


def normal(replicates, effect, rng, spread=0.02):
    own = {name: 0.7 + 0.05 * rng.normal(size=replicates) for name in "b"}
    own["a"] = own["b"] + effect + spread * rng.normal(size=replicates)
    return claim_row(BETTER, results({name: np.clip(values, 0.51, 1) for name, values in own.items()}))


@pytest.mark.parametrize("replicates", [3, 5, 10])
def test_the_power_that_the_table_promises(replicates):
    """With a known effect the share of decided studies is the power that `power` gives, within 5 points."""
    rng = np.random.default_rng(replicates)
    found = [normal(replicates, 0.02, rng)["verdict"] for _ in range(600)]
    share = np.mean([verdict in ("supported", "contradicted") for verdict in found])
    assert share == pytest.approx(power(replicates, 0.02, 0.02, (0, math.inf)), abs=0.05)


def test_the_number_it_gives_is_the_number_it_takes():
    rng = np.random.default_rng(4)
    first = normal(4, 0.015, rng)
    while first["verdict"] != "inconclusive":
        first = normal(4, 0.015, rng)
    assert 4 < first["needed"] <= MOST + 1
