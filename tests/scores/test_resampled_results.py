"""Readings of resampled items: each value's columns are those of its own test set, computed when asked for."""

import numpy as np
import pytest

from masklab.scores import items
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View
from of_items import of_items


def test_values_hold_the_resamplings_of_their_items():
    rng, rows, records = np.random.default_rng(1), [], []
    targets = rng.integers(0, 3, 40)
    answers = {}
    for recipe in ("a", "b"):
        for replicate in (1, 2):
            at = {"recipe": recipe, "replicate": replicate, "step": 4, "probe": "p", "task": "t", "split": "test"}
            answers[recipe, replicate] = np.where(rng.random(40) < 0.6, targets, rng.integers(0, 3, 40))
            found = {m: of_items(m, targets, answers[recipe, replicate]) for m in ("accuracy", "f1", "majority")}
            rows += [at | {"metric": m, "value": value, "n": 40} for m, value in found.items()]
            records.append(at | {"metrics": list(found), "targets": targets, "predictions": answers[recipe, replicate]})
    view = View(
        "s", recipes={"a": {}, "b": {}}, replicates={"a": 2, "b": 2}, nulls={"b": {"majority": None}},
        tasks={"t": {"metric": "accuracy", "redrawn": False}},
        probes={"p": {"kind": "linear_probe", "tasks": ["t"], "recipes": ["a", "b"]}},
    )  # fmt: skip
    results = Results(view, rows_to_frame(rows), items.records_to_table(records), draws=20)
    counts = results.resampling.counts("t", "test", 40)
    for metric in ("accuracy", "f1"):
        for recipe in ("a", "b"):
            own = results.values(Reading(recipe, metric, ("t",))).scalar
            for row, replicate in zip(own, (1, 2), strict=True):
                given = [np.repeat(np.arange(40), count) for count in counts]
                drawn = [of_items(metric, targets[g], answers[recipe, replicate][g]) for g in given]
                np.testing.assert_allclose(row[1:], drawn)
    majority = results.null(Reading("b", "accuracy", ("t",)), "majority").scalar
    np.testing.assert_allclose(majority[0], majority[1])
    expected = [np.bincount(np.repeat(targets, count)).max() / 40 for count in counts]
    np.testing.assert_allclose(majority[0, 1:], expected)


@pytest.mark.parametrize(("kind", "together"), [("paraphrased", True), ("finetune", False)])
def test_splits_that_are_of_the_same_items_are_drawn_together(kind, together):
    """What differs between them is within items: of two alike answers nothing is left to be uncertain of."""
    rng = np.random.default_rng(2)
    targets, given = rng.random(60), rng.random(60)
    at = {"recipe": "a", "replicate": 1, "step": 4, "probe": "p", "task": "t", "train_size": 5, "seed": 1}
    rows, records = [], []
    for split in ("word", "word, other"):
        rows.append(at | {"split": split, "metric": "pearson", "value": of_items("pearson", targets, given), "n": 60})
        records.append(at | {"split": split, "metrics": ["pearson"], "targets": targets, "predictions": given})
    view = View(
        "s", recipes={"a": {}}, replicates={"a": 1}, tasks={"t": {"metric": "accuracy", "redrawn": False}},
        probes={"p": {"kind": kind, "tasks": ["t"], "recipes": ["a"], "sizes": [5]}},
    )  # fmt: skip
    results = Results(view, rows_to_frame(rows), items.records_to_table(records), draws=30)
    one, other = (
        results.values(Reading("a", "pearson", ("t",), probe=kind, splits=(split,))).scalar[0]
        for split in ("word", "word, other")
    )
    assert one[0] == other[0] and one[1:].std() > 0.01
    assert np.array_equal(one, other) == together


def test_a_test_set_that_one_model_alone_answered():
    """And one that belongs to no task of the config: its items are the same in all replicates unless a fact says no."""
    targets = np.array([0, 1, 1, 0, 1, 1, 1])
    given = np.array([0, 1, 0, 0, 1, 0, 1])
    at = {"recipe": "a", "replicate": 1, "step": 4, "probe": "p", "task": "t", "split": "test"}
    value = of_items("accuracy", targets, given)
    rows = rows_to_frame([at | {"metric": "accuracy", "value": value, "n": 7}])
    table = items.records_to_table([at | {"metrics": ["accuracy"], "targets": targets, "predictions": given}])
    probes = {"p": {"kind": "linear_probe", "tasks": ["t"], "recipes": ["a"]}}
    reading = Reading("a", "accuracy", ("t",))
    for recipe, drawn in (({}, True), ({"corpus.redrawn": False}, True), ({"corpus.redrawn": True}, False)):
        found = Results(View("s", recipes={"a": recipe}, probes=probes), rows, table, draws=5)
        row = found.values(reading).scalar[0]
        counts = found.resampling.counts("t", "test", 7)
        wanted = [(targets == given) @ count / 7 for count in counts] if drawn else [value] * 5
        np.testing.assert_allclose(row, [value, *wanted])
        assert counts.shape == (5, 7) and (counts.sum(1) == 7).all()
    known = View("s", recipes={"a": {}}, probes=probes, tasks={"t": {"metric": "accuracy", "redrawn": True}})
    assert len(set(Results(known, rows, table, draws=5).values(reading).scalar[0])) == 1
    assert Results(known, rows, None, draws=5).values(reading).scalar.shape == (1, 1)
    assert Results(known, rows, table).values(reading).scalar.shape == (1, 1)


@pytest.mark.parametrize("redrawn", [True, False])
def test_the_items_of_a_corpus_are_its_own_though_a_task_has_its_name(redrawn):
    targets = np.full(7, items.OUTCOME)
    at = {"recipe": "a", "replicate": 1, "step": 4, "probe": "p", "task": "t", "split": "test"}
    losses = np.arange(7.0)
    rows = rows_to_frame([at | {"metric": "loss", "value": 3.0, "n": 7}])
    table = items.records_to_table([at | {"metrics": ["loss"], "targets": targets, "predictions": losses}])
    view = View(
        "s", recipes={"a": {"corpus": "t", "corpus.redrawn": redrawn}},
        tasks={"t": {"metric": "accuracy", "redrawn": not redrawn}},
        probes={"p": {"kind": "loss", "tasks": [], "recipes": ["a"]}},
    )  # fmt: skip
    found = Results(view, rows, table, draws=9).values(Reading("a", "loss")).scalar[0]
    assert (len(set(found)) == 1) == redrawn
