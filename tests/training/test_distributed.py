"""Several processes train the model that one process trains."""

import dataclasses
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from runs import make_run, start_ranks

from masklab.config import kinds
from masklab.config.schema import Objective
from masklab.errors import MaskLabError, Passing
from masklab.files import read_json
from masklab.jobs.lacking import lacking
from masklab.models import products
from masklab.training.distributed import Ranks, joined
from masklab.training.learner import Learner
from masklab.training.loop import Trainer, train
from masklab.training.run import write_run

KEYS = {"steps": 20, "batch_size": 32, "micro_batch": 6, "log_every": 1}  # 6 does not divide 32


def metrics(run):
    return pd.read_parquet(run.output / "metrics.parquet").drop(columns="seconds")


def assert_same_run(one, several):
    """Losses to 1e-5 at every step; counts exactly."""
    for name in ("step", "tokens", "masked", "lr"):
        assert one[name].equals(several[name])
    for name in ("loss", "mlm", "valid_loss"):
        np.testing.assert_allclose(one[name], several[name], atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [2, 3])
def test_the_global_batch_does_not_depend_on_the_number_of_processes(english, tiny_encoder, tmp_path, size):
    """Token ids, masks and targets, exactly; each process has its own part."""
    run = make_run(english, tiny_encoder, tmp_path, **KEYS)
    several = dataclasses.replace(run, model=run.model.model_copy(update={"processes": size}))
    whole = Learner(run)
    parts = [Learner(several, Ranks(rank, size, rank)) for rank in range(size)]
    for step in (0, 7, 123456):
        expected = whole.batches(step)
        shares = [part.batches(step) for part in parts]
        assert [len(share) for share in shares] == [len(expected[rank::size]) for rank in range(size)]
        found = [shares[number % size][number // size] for number in range(len(expected))]
        for ours, theirs in zip(found, expected, strict=True):
            for name in ("ids", "original", "lengths", "at", "targets"):
                assert getattr(ours, name).equal(getattr(theirs, name))
            assert np.array_equal(ours.positions, theirs.positions)


MINE = """
from masklab import own

@own.term("mine", own.Weight)
class Mine(own.Term):
    pass
"""


def test_two_processes_by_torchrun_give_the_losses_of_one(english, tiny_encoder, tmp_path, monkeypatch):
    """20 steps with dropout, gloo on the CPU: losses to 1e-5; started by hand, away from the checkout.

    A term that a user's file registers is known in every process.
    """
    monkeypatch.setattr(kinds, "_yours", {section: {} for section in kinds.SECTIONS})
    monkeypatch.setattr(kinds, "_read", {})
    (tmp_path / "mine.py").write_text(MINE)
    kinds.load([tmp_path / "mine.py"])
    objective = Objective(mlm=1, mine=1)
    one = make_run(english, tiny_encoder, tmp_path / "one", objective=objective, **KEYS)
    train(one)
    two = make_run(english, tiny_encoder, tmp_path / "two", objective=objective, processes=2, **KEYS)
    two = dataclasses.replace(two, code=(tmp_path / "mine.py",))
    write_run(two, tmp_path / "two.json")
    command = [sys.executable, "-m", "masklab.training", "two.json", "two.log"]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "2"}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert_same_run(metrics(one), metrics(two))
    assert (tmp_path / "two.log").read_text().count("done after") == 1, "one process writes"
    assert not list(two.state.glob("s*"))
    manifest = read_json(two.output / "manifest.json")
    assert manifest["config"]["model"]["processes"] == 2 and set(manifest["steps"]) == {"4", "8", "12", "16", "20"}


def test_a_killed_or_stopped_process_ends_the_run_which_then_resumes(english, tiny_encoder, tmp_path):
    """SIGKILL of one process ends the other, SIGTERM to the one that writes nothing saves; nothing is lost."""
    keys = KEYS | {"steps": 40, "save_minutes": 1e-6}
    one = make_run(english, tiny_encoder, tmp_path / "one", **KEYS | {"steps": 40})
    train(one)
    run = make_run(english, tiny_encoder, tmp_path / "two", processes=2, **keys)
    state, errors = run.state / "state.safetensors", tmp_path / "errors"
    for sent in (signal.SIGKILL, signal.SIGTERM, None):
        before = state.stat().st_mtime_ns if state.exists() else 0
        ranks = start_ranks(run, tmp_path / "run.json", errors)
        if sent:
            while all(rank.is_alive() for rank in ranks) and not (state.exists() and state.stat().st_mtime_ns > before):
                time.sleep(0.002)
            os.kill(ranks[1].pid, sent)
        for rank in ranks:
            rank.join(30)
        codes = [rank.exitcode for rank in ranks]
        assert codes == {signal.SIGKILL: [1, -9], signal.SIGTERM: [1, 1], None: [0, 0]}[sent], errors.read_text()
    said = errors.read_text()
    assert "process 0 of 2: lost the others" in said and "Traceback" not in said
    assert said.count("stopped by signal sent to another process at step") == 1
    assert_same_run(metrics(one), metrics(run))


@pytest.mark.parametrize(("rank", "says"), [(0, True), (1, False)])
def test_only_the_process_that_saves_says_that_a_state_is_due(rank, says):
    """The clocks of the others are never set back: once due they would have a GPU wait for the host at every update."""
    asked = []
    trainer = SimpleNamespace(
        learner=SimpleNamespace(gradients=lambda step: {"loss": 1.0}),
        interruption=SimpleNamespace(agree=asked.append, everywhere=False, due=False),
        record=SimpleNamespace(due=True),
        ranks=Ranks(rank, 2, rank),
        late=4,
        apply=lambda row: None,
    )
    Trainer.update(trainer, 7)
    assert asked == [says]


def test_a_process_without_room_for_what_the_others_send_has_not_lost_them(monkeypatch):
    said = "NCCL error: unhandled cuda error\nLast error: Cuda failure 2 'out of memory'"
    with pytest.raises(RuntimeError) as caught:
        _failing(monkeypatch, torch.distributed.DistBackendError(said)).sum_(torch.zeros(1))
    assert lacking(caught.value).startswith("out of memory on the GPU (NCCL error: unhandled cuda error)")


def _failing(monkeypatch, error):
    """A process of two, whose sums fail with this error."""

    def fails(tensor):
        raise error

    monkeypatch.setattr(torch.distributed, "all_reduce", fails)
    return Ranks(0, 2)


GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:9. This may ..."


@pytest.mark.parametrize(
    "error", [RuntimeError(GLOO), torch.distributed.DistNetworkError("Connection closed by peer [10.0.0.2]:9")]
)
def test_another_process_that_is_gone_is_one_line_and_may_be_tried_again(monkeypatch, error):
    with pytest.raises(Passing, match=r"process 0 of 2: lost the others \(Connection closed by peer \[10.0.0.2\]:9\)"):
        _failing(monkeypatch, error).sum_(torch.zeros(1))


def test_a_mistake_in_what_is_summed_is_not_a_lost_process(monkeypatch):
    """It would come again in every attempt: the job must not be started anew for it."""
    with pytest.raises(RuntimeError, match="contiguous"):
        _failing(monkeypatch, RuntimeError("Tensors must be contiguous")).sum_(torch.zeros(1))


def test_all_processes_take_the_precision_of_the_first(english, tiny_encoder, tmp_path, monkeypatch):
    """Of nodes of unlike hardware each would choose its own, and their gradients would not be those of one model."""
    has, told = iter(["bf16", "fp32"]), []
    monkeypatch.setattr(products, "precision", lambda *_: next(has))
    monkeypatch.setattr(Ranks, "tell", lambda self, values: told.append(values) or told[0])
    run = make_run(english, tiny_encoder, tmp_path, precision="auto", processes=2, **KEYS)
    assert [Learner(run, Ranks(rank, 2, rank)).arithmetic["precision"] for rank in (0, 1)] == ["bf16", "bf16"]
    assert told == [["bf16"], ["fp32"]]


def test_processes_that_do_not_fit_are_one_line(monkeypatch):
    for key in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
        monkeypatch.delenv(key, raising=False)
    with pytest.raises(MaskLabError, match=r"processes: 2, but RANK is not set: .* calls torchrun"), joined(2, "cpu"):
        pass
    for key, value in (("RANK", "0"), ("WORLD_SIZE", "4"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(key, value)
    with pytest.raises(MaskLabError, match="made for 2, but 4 were started"), joined(2, "cpu"):
        pass
    with joined(1, "cpu") as ranks:
        assert ranks == Ranks()
