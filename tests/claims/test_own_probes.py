"""Claims on what a probe of a user's kind measures: its nulls count, in the direction of its metric."""

from dataclasses import replace

import pytest

from masklab.claims.claim import Claim
from masklab.claims.effects import Sum, difference
from masklab.claims.verdict import test_claims as verdicts
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View

FACTS = {"steps": 9, "corpus": "c", "corpus.redrawn": False}
RECIPES = ["a", "b", "null"]


def view(tasks=(), lower=(), kind="guess", nulls=True, **more):
    own = {"kind": kind, "tasks": list(tasks), "recipes": RECIPES, "lower": list(lower)}
    ours = {"kind": "loss", "tasks": [], "recipes": RECIPES}
    return View(
        "s",
        panels={"one": {"A": "a", "B": "b"}},
        recipes=dict.fromkeys(RECIPES, FACTS),
        nulls={name: {"untrained": "null"} for name in "ab"} if nulls else {},
        replicates=dict.fromkeys(RECIPES, 3),
        tasks={task: {"metric": "error", "redrawn": False} for task in tasks},
        probes={"p": own, "l": ours},
        **more,
    )


def judged(values, metric="error", tasks=(), region="above 0", learned=True, **more):
    """The row of a claim that A is above B; values: recipe -> its number, from replicate to replicate .001 more."""
    seen = view(tasks, **more)
    at = {"step": 9, "split": "test", "n": 50, "metric": metric}
    rows = [
        at | {"recipe": recipe, "replicate": r, "probe": probe, "task": task, "value": value + 0.001 * r}
        for recipe, value in values.items()
        for r in (1, 2, 3)
        for probe, task in (("l" if metric == "loss" else "p", (*tasks, "c")[0]),)
    ]
    a, b = (Reading(name, metric, tasks, probe=None if metric == "loss" else seen.probes["p"]["kind"]) for name in "ab")
    claim = Claim("c", "", "", "a is above b", difference(a, b), region, learned=learned)
    return verdicts([claim], Results(seen, rows_to_frame(rows))).iloc[0]


@pytest.mark.parametrize("tasks", [(), ("t",)])
def test_a_recipe_that_errs_less_than_its_null_has_learned(tasks):
    """.05 against .50 of initial weights: much was learned; .60: nothing, whatever the other recipe does."""
    values = {"a": 0.05, "b": 0.2, "null": 0.5}
    found = judged(values, tasks=tasks, region="below 0", lower=["error"])
    assert found["verdict"] == "supported" and found["value"] == pytest.approx(-0.15)
    worse = judged({"a": 0.6, "b": 0.7, "null": 0.5}, tasks=tasks, region="below 0", lower=["error"])
    assert worse["verdict"] == "untested" and worse["why"].startswith("no recipe does better than its nulls (best: A, ")
    assert worse["why"].endswith(": -0.100 [-0.100, -0.100] below untrained)")
    undeclared = judged(values, tasks=tasks, region="below 0")
    assert undeclared["verdict"] == "untested" and "above untrained" in undeclared["why"]


def test_nulls_count_without_tasks_too():
    assert judged({"a": -3.0, "b": -4.0, "null": -5.0}, "log_probability")["verdict"] == "supported"
    worse = {"a": -6.0, "b": -7.0, "null": -5.0}
    found = judged(worse, "log_probability")
    assert found["verdict"] == "untested" and found["why"].endswith("above untrained)")
    assert judged(worse, "log_probability", learned=False)["verdict"] == "supported"
    assert judged(worse, "log_probability", nulls=False)["verdict"] == "supported"
    assert judged({"a": -3.0, "b": -4.0, "null": -3.1}, "log_probability", gain=0.5)["verdict"] == "supported"


def test_our_own_metrics_without_tasks_have_other_premises():
    """A loss above that of initial weights is judged as it was: `unlearned_language` is about it."""
    assert judged({"a": 7.0, "b": 6.0, "null": 5.0}, "loss")["verdict"] == "supported"
    assert judged({"a": 7.0, "b": 6.0, "null": 5.0}, "rank", kind="rank")["verdict"] == "supported"


def test_what_must_be_learned_may_be_another_metric_or_other_tasks():
    read, seen = Reading("a", "error", probe="guess"), view(("t",))
    claim = Claim("c", "", "", "a is above b", Sum(((1.0, read),)), learned_metric="filled", learned_by=("b",))
    assert claim.to_learn(seen) == [read.of(name, metric="filled") for name in "ab"]
    assert Claim("c", "", "", "a", read, learned_tasks=("t",)).to_learn(seen) == []
    curve = Reading("a", "error", probe="guess", step="all", over="step")
    slope = replace(curve, reduce="slope")
    assert Claim("c", "", "", "a", slope).to_learn(seen) == [read]
    assert ("p", "null") in Claim("c", "", "", "a", read).needs(seen)
