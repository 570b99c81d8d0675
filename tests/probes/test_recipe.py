from types import SimpleNamespace

import numpy as np
import pytest
from transformers import EarlyStoppingCallback, TrainerControl

from masklab.config.schema import FinetuneProbe
from masklab.probes.recipe import Course, EarlyStopping


def course(size=100, seed=1, lengths=None, **changes):
    probe = FinetuneProbe(kind="finetune", tasks=["t"], **({"batch_size": 16, "epochs": 3} | changes))
    return Course(probe, 1, "glue", "t", size, seed, np.arange(100)[:size] % 7 + 3 if lengths is None else lengths)


def test_early_stopping_equals_transformers():
    rng = np.random.default_rng(0)
    for trial in range(200):
        patience, threshold = int(rng.integers(1, 5)), float(rng.choice([0.0, 0.001, 0.02]))
        values = np.round(rng.random(30) * rng.choice([0.01, 0.1, 1]), 3) + np.linspace(0, 0.1, 30) * (trial % 2)
        theirs = EarlyStoppingCallback(patience, threshold)
        arguments = SimpleNamespace(greater_is_better=True, metric_for_best_model="f1")
        state, control = SimpleNamespace(best_metric=None), TrainerControl()
        ours = EarlyStopping(patience, threshold)
        for value in values:
            theirs.on_evaluate(arguments, state, control, {"eval_f1": value})
            # Trainer keeps the best after the callback has looked at it: any strictly greater value.
            better = state.best_metric is None or value > state.best_metric
            if better:
                state.best_metric = value
            assert ours.update(value) == (better, control.should_training_stop)
            if control.should_training_stop:
                break


def test_a_course_visits_every_row_once_per_epoch():
    for found in (course(), course(size=33)):
        batches = list(found.batches())
        assert len(batches) == found.steps == 3 * -(-found.size // 16)
        for epoch in range(3):
            rows = np.concatenate(batches[epoch * found.epoch : (epoch + 1) * found.epoch])
            assert sorted(rows) == list(range(found.size))


def test_max_steps_replaces_epochs():
    longer, shorter = course(max_steps=25), course(max_steps=10)
    assert [len(list(found.batches())) for found in (longer, shorter)] == [25, 10]
    for a, b in zip(course().batches(), longer.batches(), strict=False):  # as far as both go: the same rows
        assert (a == b).all()
    assert longer.rate(0) == longer.probe.lr and longer.rate(24) == pytest.approx(longer.probe.lr / 25)


def test_evaluation_points():
    def points(found):
        return [updates for updates in range(1, found.steps + 1) if found.is_evaluated_after(updates)]

    assert points(course(evaluate_every=5)) == [5, 10, 15, 20, 21]
    assert points(course(evaluate_every="epoch")) == [7, 14, 21]
    assert points(course(evaluate_every="epoch", max_steps=16)) == [7, 14, 16]


def test_patience_counts_from_the_peak_learning_rate():
    found = course(warmup=0.5, max_steps=20)
    rates = [found.rate(step) for step in range(20)]
    (peak,) = np.flatnonzero(np.array(rates) == found.probe.lr)
    counting = [updates for updates in range(1, 21) if found.counts_patience_after(updates)]
    assert counting[0] == peak + 1 == 11  # the peak's update was made
    released = course(warmup=0.5, max_steps=20, stop_after_peak=False)
    assert all(released.counts_patience_after(updates) for updates in range(1, 21))
    assert all(course().counts_patience_after(updates) for updates in range(1, 21))


def test_a_warm_up_in_updates_does_not_depend_on_how_long_a_run_may_last():
    """So that a run that only its patience ends can be given any number of epochs."""
    settings = {"schedule": "constant", "warmup_steps": 10, "evaluate_every": "epoch"}
    short, long = course(epochs=5, **settings), course(epochs=500, **settings)
    assert [short.rate(step) for step in range(35)] == [long.rate(step) for step in range(35)]
    assert long.rate(5) == long.probe.lr / 2 and long.rate(10) == long.rate(3000) == long.probe.lr
    assert [long.counts_patience_after(updates) for updates in (7, 10, 11, 14)] == [False, False, True, True]


def test_waiting_begins_at_the_peak():
    stopping = EarlyStopping(patience=2, threshold=0)
    before = [stopping.update(0.5, False) for _ in range(5)]
    assert before == [(True, False)] + 4 * [(False, False)]
    assert [stopping.update(0.4), stopping.update(0.5)] == [(False, False), (False, True)]


def test_streams_are_equal_across_sizes_and_differ_across_seeds():
    small, large, other = course(size=50), course(), course(seed=2)
    assert small.dropout_seed(3) == large.dropout_seed(3) != large.dropout_seed(4)
    assert small.head_generator().initial_seed() == large.head_generator().initial_seed()
    assert other.head_generator().initial_seed() != large.head_generator().initial_seed()
    assert not all((a == b).all() for a, b in zip(large.batches(), other.batches(), strict=True))


def test_rows_of_a_batch_are_of_like_length_or_any():
    lengths = np.repeat([5, 50], 64)
    spread = {}
    for batches in ("length", "random"):
        drawn = list(course(batches=batches, epochs=2, size=128, lengths=lengths).batches())
        assert sorted(np.concatenate(drawn[:8])) == list(range(128))
        spread[batches] = sum(len(set(lengths[rows])) == 2 for rows in drawn)
    assert spread["length"] <= 2 and spread["random"] == len(drawn)
