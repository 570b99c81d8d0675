"""A run killed at any moment, and a run resumed late, is the run that was never interrupted."""

import json
import struct
import time

import numpy as np
import pandas as pd
import pytest
import torch
from runs import make_run, start

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.training.loop import Trainer, train
from masklab.training.run import write_run

LATE = 1_000_000


def saved_step(path) -> int:
    """Step of a state file, 0 if there is none."""
    try:
        with open(path, "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            return json.loads(json.loads(file.read(size))["__metadata__"]["facts"])["step"]
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_ten_kills_and_the_same_weights(precision, english, tiny_encoder, tmp_path):
    """SIGKILL at 10 random moments: two while a process starts, eight after random steps and fractions of a step."""
    keys = {"steps": 120, "checkpoints": [30, 75, 120], "save_minutes": 1e-6, "validate_every": 50}
    keys["precision"] = precision
    whole, torn = (make_run(english, tiny_encoder, tmp_path / name, **keys) for name in ("whole", "torn"))
    rng = np.random.default_rng(5)
    early, late = np.array_split(np.sort(rng.choice(np.arange(2, 105), 8, replace=False)), 2)
    targets = [0, *early.tolist(), 0, *late.tolist()]
    path, errors = tmp_path / "run.json", tmp_path / "errors"
    write_run(torn, path)
    state, reached = torn.state / "state.safetensors", []
    for target in targets:
        process = start(path, errors)
        while target and process.is_alive() and saved_step(state) < target:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01 if target else 0.3))
        assert process.is_alive(), errors.read_text()
        process.kill()
        process.join()
        reached.append(saved_step(state))
        assert not (torn.output / "manifest.json").exists()
    assert reached == sorted(reached) and reached[-1] >= targets[-1]
    for run in (torn, whole):
        write_run(run, path)
        process = start(path, errors)
        process.join()
        assert process.exitcode == 0, errors.read_text()
    manifests = [read_json(run.output / "manifest.json") for run in (whole, torn)]
    assert {manifest["facts"]["arithmetic"]["precision"] for manifest in manifests} == {precision}
    manifests = [manifest["steps"] for manifest in manifests]
    assert manifests[0] == manifests[1] and len(manifests[0]) == 3
    frames = [pd.read_parquet(run.output / "metrics.parquet").drop(columns="seconds") for run in (whole, torn)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)


def test_resuming_at_a_million_steps_costs_no_more_than_starting(english, tiny_encoder, tmp_path):
    """From construction to the first new update: at most 2 s more than from scratch; 20,000 rows of metrics."""
    keys = {"steps": 2 * LATE, "log_every": 50, "validate_every": None}

    def first_update(run):
        began = time.perf_counter()
        trainer = Trainer(run)
        step = trainer.resume()
        trainer.update(step)
        return trainer, step, time.perf_counter() - began

    run = make_run(english, tiny_encoder, tmp_path, **keys)
    trainer, step, scratch = first_update(run)
    assert step == 0
    for done in range(50, LATE + 50, 50):
        row = {"step": done, "lr": 1e-4, "tokens": 900, "masked": 100, "loss": 1 / done, "mlm": 1 / done}
        trainer.record.metrics.append(row | {"grad_norm": 1.0, "seconds": float(done), "valid_loss": float("nan")})
    trainer.record.save(LATE, trainer.learner.flat, trainer.guard)
    rows = 8 * 8 * len(trainer.record.metrics)  # of as many columns, 8 bytes each
    assert (run.state / "state.safetensors").stat().st_size < 4 * trainer.learner.flat.values.nbytes + rows + 20_000
    late, step, resumed = first_update(run)
    assert step == LATE and len(late.record.metrics) == 1 + LATE / 50
    assert resumed <= scratch + 2
    assert torch.isfinite(late.learner.flat.values).all()


def test_rows_beyond_the_state_are_dropped(english, tiny_encoder, tmp_path):
    run = make_run(english, tiny_encoder, tmp_path, steps=30, log_every=1)
    trainer = Trainer(run)
    trainer.resume()
    for step in range(10):
        if step == 6:
            trainer.record.save(6, trainer.learner.flat, trainer.guard)
        trainer.update(step)
    trainer.record.metrics.write()
    assert len(pd.read_parquet(run.state / "metrics.parquet")) == 10
    again = Trainer(run)
    assert again.resume() == 6 and len(again.record.metrics) == 6


def test_metrics_grow_while_a_run_goes(english, tiny_encoder, tmp_path, monkeypatch):
    """Every report leaves all rows so far in the state folder; a run stopped by a signal says what it saved."""
    import masklab.training.loop as loop
    import masklab.training.pace as pace

    run = make_run(english, tiny_encoder, tmp_path, steps=40, log_every=1)
    seen = []

    class Eager(pace.Progress):
        def __init__(self, *arguments, **keys):
            super().__init__(*arguments, **(keys | {"every": 0.0}))

    class Watched(Trainer):
        def update(self, step):
            path = run.state / "metrics.parquet"
            seen.append(len(pd.read_parquet(path)) if path.exists() else 0)
            if step == 30:
                self.interruption.receive(15)
            return super().update(step)

    monkeypatch.setattr(pace, "Progress", Eager)
    monkeypatch.setattr(loop, "Trainer", Watched)
    with pytest.raises(MaskLabError, match=r"stopped by signal 15 at step 30; the state of step 30 is saved"):
        train(run)
    assert seen[0] == 0 and len(set(seen)) > 2 and seen == sorted(seen)
    assert len(pd.read_parquet(run.state / "metrics.parquet")) == 30
