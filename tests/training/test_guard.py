"""Runs that must stop do, with the last good state on disk; runs that need not are left alone."""

import math

import pandas as pd
import pytest
import torch
from runs import make_run

from masklab.config import kinds
from masklab.config.schema import Objective, Weight
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.objectives import Term
from masklab.training.guard import WINDOW, Guard
from masklab.training.loop import Trainer, train


def judge(losses, limit=2.0, guess=5.0):
    """Index of the loss that stops a run, or None."""
    guard = Guard(limit, guess)
    for number, loss in enumerate(losses):
        if guard.fault(loss):
            return number
        guard.accept(loss)
    return None


def test_explosion_is_more_than_half_of_the_window_high():
    half = WINDOW // 2
    assert judge([5] * 30 + [11] * half + [5] * 30 + [11] * half) is None, "spikes pass"
    assert judge([5] * 30 + [11] * 99) == 30 + half
    assert judge([5] * 30 + [11, 11, 5] * 99) is not None, "most losses high, not all"
    assert judge([5, 1, 9.9] * 99) is None, "above the best, below twice the guess"
    assert judge([30] * 99) is None and judge([30, *[61] * 99]) == half + 1, "a bad start is its own level"
    assert judge([5] * 30 + [1e9] * 99, limit=None) is None
    for value in (math.nan, math.inf, -math.inf):
        assert judge([5, 5, value, 5], limit=None) == 2


def test_an_explosion_is_said_where_uniform_guesses_cost_nothing():
    """As those of a term of one's own may: a distance of distributions."""
    guard = Guard(2.0, 0.0)
    guard.accept(1.0)
    assert guard.fault(3.0, last=True) == "the loss exploded: 3, beside that of uniform guesses (0)"


def test_guard_state_goes_on_where_it_was():
    losses = [5] * 9 + [11] * 8 + [5, 11] * 9
    one, other = Guard(2.0, 5.0), Guard(2.0, 5.0)
    for loss in losses:
        one.accept(loss)
        fresh = Guard(2.0, 5.0)
        fresh.load(other.state())
        fresh.accept(loss)
        other = fresh
    assert other.state() == one.state() and len(one.state()["high"]) == WINDOW


def test_calm_is_far_from_high_and_rarely_was_high():
    guard = Guard(3.0, 5.0)
    guard.accept(4.0)  # the level is that of guesses, 5: high above 15, calm up to 10
    assert guard.level == 5 and guard.calm(10.0) and not guard.calm(10.1)
    assert not guard.calm(math.nan) and not guard.calm(math.inf)
    for _ in range(6):
        assert guard.calm(1.0)
        guard.accept(15.1)
    assert not guard.calm(1.0)  # six of twenty
    free = Guard(None, 5.0)
    free.accept(1e9)
    assert free.calm(1e12) and not free.calm(math.inf) and free.fault(1e12) is None


def test_explosion_in_words_and_after_the_last_update():
    guard = Guard(2.0, 5.0)
    for _ in range(3):
        guard.accept(1.0)
    assert guard.fault(10.0, last=True) is None and guard.fault(10.1) is None
    assert guard.fault(12.5, last=True) == "the loss exploded: 12.5, 2.5 x that of uniform guesses (5)"
    assert guard.fault(math.inf) == "the loss is inf"
    for _ in range(WINDOW):
        guard.accept(10.1)
    assert guard.fault(1.0) and guard.fault(1.0, last=True) and WINDOW == 20
    ended = Guard(2.0, 5.0)
    for loss in [1.0] * 9 + [10.1] * 10:
        ended.accept(loss)
    assert ended.fault(10.0) is None and ended.fault(10.1)  # ten of twenty, eleven of twenty


@pytest.mark.parametrize(
    "optimiser",
    [
        {"lr": 1.0, "warmup_steps": 30},
        {"kind": "sgd", "lr": 400.0, "warmup_steps": 4000, "clip": None, "momentum": 0.9},
    ],
    ids=lambda optimiser: optimiser.get("kind", "adamw"),
)
def test_a_run_that_explodes_stops_and_keeps_a_good_state(english, tiny_encoder, tmp_path, optimiser):
    """A learning rate that grows until the run bursts, states saved at every update."""
    run = make_run(english, tiny_encoder, tmp_path, steps=1000, optimiser=optimiser, save_minutes=1e-6)
    with pytest.raises(MaskLabError) as caught:
        train(run)
    said, report = str(caught.value), read_json(run.state / "stopped.json")
    good = report["last_good_step"]
    assert "\n" not in said and "the loss exploded" in said and f"at step {report['step']} " in said
    assert "the same settings lead there again: lower models.m.optimiser.lr, or raise warmup" in said
    assert said.endswith(f"goes on from the last good state, of step {good}, kept in {run.state / 'state.safetensors'}")
    trainer = Trainer(run)
    assert trainer.learner.plan.batch(report["step"] - 1).tolist() == report["rows"]
    assert str(report["rows"][:4])[1:-1] in said
    # the state on disk is good: its weights are finite and no worse than guessing on the very next batch
    assert trainer.resume() == good > 5
    assert torch.isfinite(trainer.learner.flat.values).all()
    assert trainer.learner.gradients(good)["loss"] < 1.5 * math.log(500)
    assert len(pd.read_parquet(run.state / "metrics.parquet")) >= report["step"] // 10


def test_not_a_number_stops_with_one_line(english, tiny_encoder, tmp_path):
    run = make_run(english, tiny_encoder, tmp_path)
    trainer = Trainer(run)
    trainer.resume()
    trainer.update(0)
    trainer.record.save(1, trainer.learner.flat, trainer.guard)
    with torch.no_grad():
        trainer.learner.model.head.bias[7] = float("nan")
    with pytest.raises(MaskLabError, match=r"^m: the loss is nan at step 4 \(batch of step 3: rows .* of step 1, kept"):
        trainer.update(3)
    assert read_json(run.state / "stopped.json")["rows"] == trainer.learner.plan.batch(3).tolist()


def test_before_any_update_no_learning_rate_is_at_fault(english, tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setitem(kinds._yours["terms"], "odd", kinds.Kind("terms", "odd", Weight, Odd, (), "mine.py"))
    run = make_run(english, tiny_encoder, tmp_path, objective=Objective(mlm=1, odd=1))
    with pytest.raises(MaskLabError, match=r"the loss is nan at step 1 \(.*: no update was made before it") as caught:
        train(run)
    assert "objective (mlm, odd of mine.py);" in str(caught.value) and "optimiser.lr" not in str(caught.value)


class Odd(Term):
    """A term whose loss is no number."""

    def loss(self, *batch):
        return super().loss(*batch) * math.nan


def test_a_gradient_that_is_not_finite_stops_before_anything_is_written(english, tiny_encoder, tmp_path):
    run = make_run(english, tiny_encoder, tmp_path)
    trainer = Trainer(run)
    trainer.resume()
    row = trainer.learner.gradients(0)
    trainer.learner.flat.gradient[3] = float("inf")
    with pytest.raises(MaskLabError, match=r"the gradient's norm is .* at step 1 .* the same command begins anew$"):
        trainer.apply(row)
