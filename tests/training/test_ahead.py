"""Batches drawn ahead by a thread, and numbers read late: neither changes what a run leaves."""

import dataclasses
import threading

import numpy as np
import pandas as pd
import pytest
import torch
from runs import make_run

from masklab.config.schema import Decoder, Masking, Objective
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.objectives import Term
from masklab.tokenizers import MASK
from masklab.training import ahead, learner, loop, numbers
from masklab.training.ahead import DEPTH, Ahead
from masklab.training.distributed import Ranks
from masklab.training.interruption import Interruption
from masklab.training.learner import Learner
from masklab.training.loop import Trainer, train
from masklab.training.record import Record


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "masklab-ahead"]


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Batches are drawn ahead, and numbers read late, on the CPU too."""
    monkeypatch.setattr(learner, "pays", lambda device: True)
    monkeypatch.setattr(loop, "lateness", lambda device: numbers.LATE)


def left(run):
    """Hashes of the checkpoints and the rows of metrics, without the time."""
    rows = pd.read_parquet(run.output / "metrics.parquet").drop(columns="seconds")
    return read_json(run.output / "manifest.json")["steps"], rows


def assert_same(run, other):
    (steps, rows), (other_steps, other_rows) = left(run), left(other)
    assert steps == other_steps
    pd.testing.assert_frame_equal(rows, other_rows, check_exact=True)


KEYS = {"steps": 26, "log_every": 4, "validate_every": 7, "micro_batch": 12, "checkpoints": [9, 26]}


@pytest.mark.parametrize("objective", [{"mlm": 1}, {"mae": {"reset": True}}], ids=["mlm", "mae"])
def test_weights_and_metrics_are_those_of_a_run_that_draws_and_reads_at_once(
    objective, english, tiny_encoder, tmp_path, monkeypatch
):
    """Stopped on the way and resumed, too."""
    monkeypatch.setattr(learner, "pays", lambda device: False)
    encoder = tiny_encoder.model_copy(update={"decoder": Decoder(layers=1)} if "mae" in objective else {})
    make = {"objective": Objective(**objective), "masking": {"count": "rounded", "mask": 0.8, "random": 0.1}, **KEYS}
    runs = [make_run(english, encoder, tmp_path / name, **make) for name in ("plain", "ahead", "torn")]
    train(runs[0])
    monkeypatch.setattr(learner, "pays", lambda device: True)
    monkeypatch.setattr(loop, "lateness", lambda device: numbers.LATE)
    train(runs[1])

    class Stopped(Trainer):
        def update(self, step):
            assert len(threads()) == 1
            if step == 17:
                self.interruption.receive(15)
            return super().update(step)

    with pytest.raises(MaskLabError, match="stopped by signal 15 at step 17; the state of step 17 is saved"):
        Stopped(runs[2]).run_all()
    assert not threads()
    train(runs[2])
    assert not threads()
    assert_same(runs[0], runs[1])
    assert_same(runs[0], runs[2])


def save_after(trainer, updates, monkeypatch):
    due = property(lambda record: int(trainer.learner.flat.updates) in updates)
    monkeypatch.setattr(Record, "due", due)


def test_numbers_are_read_late_and_all_before_a_state_is_saved(
    english, tiny_encoder, tmp_path, as_on_a_gpu, monkeypatch
):
    unread, saved = [], []

    class Watched(Trainer):
        def update(self, step):
            found = super().update(step)
            unread.append(len(self.unread))
            return found

    run = make_run(english, tiny_encoder, tmp_path, steps=20, log_every=1, checkpoints=[12, 20])
    trainer = Watched(run)
    save_after(trainer, [7], monkeypatch)
    save = trainer.record.save
    trainer.record.save = lambda step, *given: (saved.append((step, len(trainer.unread))), save(step, *given))
    trainer.run_all()
    # the state before update 8 is saved, the weights of updates 12 and 20 are kept
    assert unread == [1, 2, 3, 4, 4, 4, 4, 1, 2, 3, 4, 0, 1, 2, 3, 4, 4, 4, 4, 0] and saved == [(7, 0)]


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_a_fault_that_is_seen_late_is_told_of_its_own_step_and_nothing_is_saved_after_it(
    what, english, tiny_encoder, tmp_path, as_on_a_gpu, monkeypatch
):
    class Broken(Learner):
        def gradients(self, step):
            if step == 9 and what == "loss":
                with torch.no_grad():
                    self.model.head.bias[7] = float("nan")
            found = super().gradients(step)
            if step == 9 and what == "gradient":
                self.flat.gradient[3] = float("inf")
            return found

    kept = [12, 40] if what == "loss" else [40]  # a checkpoint, or a state, is what is due first
    run = make_run(english, tiny_encoder, tmp_path, steps=40, log_every=1, checkpoints=kept, stack=False)
    trainer = Trainer(run)
    trainer.learner.__class__ = Broken
    save_after(trainer, [5, 13], monkeypatch)
    done, save = [], trainer.record.save
    trainer.record.save = lambda step, *given: (done.append(step), save(step, *given))
    fault = "the loss is nan" if what == "loss" else "the gradient's norm is"
    with pytest.raises(MaskLabError, match=rf"^m: {fault}.* at step 10 \(batch of step 9: rows .* of step 5, kept"):
        trainer.run_all()
    assert done == [5] and not list(run.output.glob("step-*")) and not threads()
    assert read_json(run.state / "stopped.json")["rows"] == trainer.learner.plan.batch(9).tolist()
    assert pd.read_parquet(run.state / "metrics.parquet")["step"].tolist() == list(range(1, 10))


def test_an_error_of_the_thread_is_that_of_a_run_without_it(english, tiny_encoder, tmp_path, as_on_a_gpu, monkeypatch):
    """It stops the update that it belongs to, and the thread ends."""
    run = make_run(english, tiny_encoder, tmp_path, steps=20)
    trainer, error = Trainer(run), MaskLabError("train.ids.3.npy: no such file")
    batch = trainer.learner.train_store.batch

    def broken(rows):
        if np.array_equal(rows, trainer.learner.plan.batch(6)):
            raise error
        return batch(rows)

    monkeypatch.setattr(trainer.learner.train_store, "batch", broken)
    with pytest.raises(MaskLabError) as caught:
        trainer.run_all()
    assert caught.value is error and trainer.learner.flat.updates == 6 and not threads()


def test_a_thread_is_a_few_steps_ahead_and_ends_when_it_is_told():
    drawn, allowed = [], threading.Event()

    def draw(step):
        drawn.append(step)
        if len(drawn) == DEPTH:
            allowed.set()
        return -step

    made = Ahead(draw, 5, 5000)
    assert allowed.wait(10)
    assert made.take(5) == made.take(5) == -5 and made.take(6) == -6
    made.close()
    made.close()
    assert drawn == list(range(5, 5 + len(drawn))) and DEPTH <= len(drawn) <= DEPTH + 2 and not threads()
    short = Ahead(draw, 0, 1)
    assert short.take(0) == 0
    short.thread.join(10)
    assert not threads()
    short.close()


def watched(batch, read):
    def counted(rows):
        read.append(len(rows))
        return batch(rows)

    return counted


@pytest.mark.parametrize("encoder", [{}, {"decoder": Decoder(layers=1)}], ids=["mlm", "mae"])
@pytest.mark.parametrize(
    "masking",
    [
        {},
        {"count": "one", "mask": 0.8, "random": 0.1},
        {"count": "rounded", "specials": True, "mask": 0.9, "random": 0.0},
        {"count": "bernoulli", "mask": 0.6, "random": 0.3},
    ],
    ids=lambda masking: masking.get("count", "floor"),
)
def test_a_process_hides_its_own_rows_as_if_all_were_there(encoder, masking, english, tiny_encoder, tmp_path):
    """7 processes for 6 micro-batches: the last has nothing to do."""
    objective = Objective(mae={"reset": True, "delta": 0.4}) if encoder else Objective(mlm=1)
    keys = {"masking": Masking(**masking), "objective": objective, "micro_batch": 6, "batch_size": 32}
    run = make_run(english, tiny_encoder.model_copy(update=encoder), tmp_path, **keys)
    whole = Learner(run).step(3)
    size, read = 7, []
    for rank in range(size):
        part = Learner(run, Ranks(rank, size))
        part.train_store.batch = watched(part.train_store.batch, read)
        step = part.step(3)
        assert (step.masked, step.tokens) == (whole.masked, whole.tokens)
        assert step.numbers == ([rank] if rank < 6 else [])
        for ours, theirs in zip(step.micro, whole.micro[rank : rank + 1], strict=True):
            for each in dataclasses.fields(ours):
                found, wanted = getattr(ours, each.name), getattr(theirs, each.name)
                if each.name == "extra":
                    assert found.keys() == wanted.keys() and all(np.array_equal(found[k], wanted[k]) for k in wanted)
                else:
                    assert found.shape == wanted.shape and (found == wanted).all()
    assert sum(read) == 32


class Last(Term):
    """A term that hides tokens in its own way, and knows nothing of parts."""

    def corrupt(self, ids, lengths, masking, vocab_size, rng):
        columns = lengths - 2 - (rng.random(len(ids)) < 0.5)
        rows, shown = np.arange(len(ids)), ids.copy()
        shown[rows, columns] = MASK
        return shown, rows, columns, {"before": (rows, columns - 1)}


def test_a_term_that_hides_whole_batches_is_given_whole_batches(english, tiny_encoder, tmp_path):
    run = make_run(english, tiny_encoder, tmp_path, micro_batch=6)
    learners = [Learner(run), *(Learner(run, Ranks(rank, 2)) for rank in range(2))]
    for each in learners:
        each.terms.reader = Last()
    whole, *parts = (each.step(3) for each in learners)
    found = [parts[number % 2].micro[number // 2] for number in range(6)]
    assert [step.numbers for step in parts] == [[0, 2, 4], [1, 3, 5]] and {step.masked for step in parts} == {32}
    for ours, theirs in zip(found, whole.micro, strict=True):
        assert all(torch.equal(getattr(ours, name), getattr(theirs, name)) for name in ("ids", "at", "targets"))
        assert torch.equal(ours.extra["before"], theirs.extra["before"])


def test_processes_on_gpus_agree_late_and_at_one_step(monkeypatch):
    """What rank 1 was told, and that rank 0 wants to save, reaches both `LATE` steps later."""
    from masklab.training import interruption

    monkeypatch.setattr(interruption, "lateness", lambda device: 2)
    asked = []

    class Two(Ranks):
        def sum_(self, *tensors):
            asked.append(tensors[0])
            if len(asked) == 3:
                tensors[0][0].add_(15)

    one = Interruption(Two(0, 2), torch.device("cpu"))
    found = []
    for step in range(6):
        one.agree(due=step == 1)
        found.append((one.everywhere, one.due))
    assert found == [(False, False)] * 3 + [(False, True), (True, False), (False, False)]


def test_where_batches_are_drawn_ahead():
    assert ahead.pays(torch.device("cuda")) and numbers.lateness(torch.device("cuda")) == numbers.LATE
    assert numbers.lateness(torch.device("cpu")) == 0
