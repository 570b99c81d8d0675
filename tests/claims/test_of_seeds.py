"""The share of an effect's spread that fine-tuning seeds make, against variances computed by hand."""

import math

import numpy as np
import pytest

from masklab.claims import verdict
from masklab.claims.claim import Claim
from masklab.claims.claim_files import markdown
from masklab.claims.effects import Growth, Least, Median, Ratio, difference
from masklab.claims.of_seeds import SeedShares
from masklab.claims.verdict import test_claims
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

TASKS = {"t": "p", "u": "q", "v": "fixed"}  # the probe of each
FACTS = {"steps": 100, "corpus": "c", "corpus.redrawn": False}
KINDS = {"p": "finetune", "q": "finetune", "fixed": "minimal_pairs"}


def results(values: dict) -> Results:
    """Of task -> recipe -> accuracies [replicates, seeds]."""
    rows = [
        {"recipe": recipe, "replicate": r, "step": 100, "probe": TASKS[task], "task": task, "split": "test"}
        | {"seed": seed, "metric": "accuracy", "value": float(value), "n": 100}
        for task, recipes in values.items()
        for recipe, own in recipes.items()
        for r, seeds in enumerate(own, 1)
        for seed, value in enumerate(seeds)
    ]
    probes = {
        probe: {"kind": KINDS[probe], "tasks": [task], "recipes": ["a", "b"]} for task, probe in TASKS.items()
    }  # fmt: skip
    facts = {task: {"metric": "accuracy", "kind": "label-files", "redrawn": False} for task in TASKS}
    view = View("s", panels={"all": {"A": "a", "B": "b"}}, recipes={"a": FACTS, "b": FACTS}, tasks=facts, probes=probes)
    return Results(view, rows_to_frame(rows))


def drawn(rng, replicates, seeds, between, within):
    return 0.7 + between * rng.standard_normal((replicates, 1)) + within * rng.standard_normal((replicates, seeds))


def of(task):
    return difference(Reading("a", "accuracy", (task,)), Reading("b", "accuracy", (task,)))


def by_hand(*gains) -> float:
    """Of the mean of several tasks, each [replicates, seeds of its own probe]."""
    means = np.mean([gain.mean(1) for gain in gains], 0)
    variance = sum(gain.var(1, ddof=1) / gain.shape[1] for gain in gains) / len(gains) ** 2
    return min(variance.mean() / means.var(ddof=1), 1.0)


def test_it_is_the_variance_of_the_mean_over_seeds_by_that_of_replicates():
    rng = np.random.default_rng(1)
    t, u = ({name: drawn(rng, 6, seeds, 0.03, 0.04) for name in "ab"} for seeds in (3, 5))
    shares = SeedShares(results({"t": t, "u": u}))
    gains = t["a"] - t["b"], u["a"] - u["b"]
    assert 0 < by_hand(gains[0]) < 1
    assert shares.share(of("t")) == pytest.approx(by_hand(gains[0]))
    assert shares.share(of("u")) == pytest.approx(by_hand(gains[1]))
    both = difference(*(Reading(name, "accuracy", ("t", "u")) for name in "ab"))  # two probes, each with its own noise
    assert shares.share(both) == pytest.approx(by_hand(*gains))


def test_of_many_replicates_it_is_the_true_share():
    """Variances of .02 squared between replicates and of .04 squared / 4 by seeds, of each recipe alike, are halves."""
    rng = np.random.default_rng(2)
    many = {name: drawn(rng, 4000, 4, 0.02, 0.04) for name in "ab"}
    assert SeedShares(results({"t": many})).share(of("t")) == pytest.approx(0.5, abs=0.03)


def test_of_a_growth_at_equal_loss_it_is_that_of_the_effect_that_is_tested(monkeypatch):
    """Which recipes count the scores say; the share is of what is left."""
    rng = np.random.default_rng(6)
    noisy = {name: drawn(rng, 6, 3, 0.0, 0.05) for name in "ab"}
    found = results({"t": noisy})
    other = of("t")
    monkeypatch.setattr(verdict, "at_equal_loss", lambda effect, results: other)
    row = verdict.tested(Claim("more", "1", "F", "b is more", Growth((*reversed(other.readings()),))), found)
    assert row["of_seeds"] == pytest.approx(by_hand(noisy["a"] - noisy["b"]))


def test_of_the_least_it_is_that_of_the_lowest():
    rng = np.random.default_rng(3)
    t, u = ({"a": drawn(rng, 6, 3, 0.02, 0.03) + more, "b": drawn(rng, 6, 3, 0.02, 0.03)} for more in (0.1, -0.1))
    shares = SeedShares(results({"t": t, "u": u}))
    assert shares.share(Least((of("t"), of("u")))) == pytest.approx(by_hand(u["a"] - u["b"]))


def test_where_it_cannot_be_known_nothing_is_said():
    rng = np.random.default_rng(4)
    one, fixed = ({name: drawn(rng, 5, 1, 0.02, 0.03) for name in "ab"} for _ in "tv")
    same = {name: np.tile(drawn(rng, 1, 3, 0.0, 0.03), (5, 1)) for name in "ab"}
    several = {name: drawn(rng, 5, 3, 0.02, 0.03) for name in "ab"}
    found = results({"t": one, "u": several, "v": fixed})
    read = [Reading(name, "accuracy", ("u",)) for name in "ab"]
    for effect in (of("t"), of("v"), Ratio(*read), Median((of("u"),)),
                   difference(*(Reading(name, "accuracy", ("u",), seeds="median") for name in "ab"))):  # fmt: skip
        assert math.isnan(SeedShares(found).share(effect))
    assert math.isnan(SeedShares(results({"t": same})).share(of("t"))), "replicates that do not differ"
    assert SeedShares(found).share(of("u")) > 0


def test_an_undecided_claim_says_what_more_seeds_would_do():
    rng = np.random.default_rng(5)
    noisy = {name: drawn(rng, 6, 3, 0.0, 0.05) for name in "ab"}
    claims = [Claim("better", "1", "F", "a is better", of("t")), Claim("worse", "1", "F", "far", of("u"))]
    clear = {"a": drawn(rng, 6, 3, 0.0, 0.01) + 0.2, "b": drawn(rng, 6, 3, 0.0, 0.01)}
    frame = test_claims(claims, results({"t": noisy, "u": clear}))
    assert frame["verdict"].tolist() == ["inconclusive", "supported"]
    share = by_hand(noisy["a"] - noisy["b"])
    assert frame["of_seeds"].iloc[0] == pytest.approx(share) and share > 0.5
    assert math.isnan(frame["of_seeds"].iloc[1]), "it is decided"
    assert f"; seeds make {share:.0%})" in markdown(frame)
