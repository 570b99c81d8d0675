"""A run whose state is not what was saved, or whose keys changed under way: the same weights, and a line about it."""

import logging
import os
import shutil

import pytest
import torch
from runs import make_run, start

from masklab import own
from masklab.config import kinds
from masklab.config.schema import Objective
from masklab.files import read_json, write_json
from masklab.jobs import saved, state, store
from masklab.training.loop import Trainer, train
from masklab.training.record import Record
from masklab.training.run import write_run

KEYS = {"steps": 30, "checkpoints": [12, 30], "log_every": 5}


class Stopped(Trainer):
    """Saves its state at steps 8 and 16 and is gone at step 20."""

    def update(self, step):
        if step in (8, 16):
            self.record.save(step, self.learner.flat, self.guard)
        if step == 20:
            raise InterruptedError
        return super().update(step)


def stopped(run):
    with pytest.raises(InterruptedError):
        Stopped(run).run_all()
    return run


def outcome(run):
    """(hash of each checkpoint, metrics without seconds) of a finished run."""
    import pandas as pd

    metrics = pd.read_parquet(run.output / "metrics.parquet").drop(columns="seconds")
    return read_json(run.output / "manifest.json")["steps"], metrics


@pytest.fixture(scope="module")
def whole(english, tiny_encoder, tmp_path_factory):
    run = make_run(english, tiny_encoder, tmp_path_factory.mktemp("whole"), **KEYS)
    train(run)
    return outcome(run)


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


FILE, BEFORE = "state.safetensors", "state.previous.safetensors"
DAMAGE = {
    "nothing": (lambda run: None, 16, ""),
    "cut short": (lambda run: os.truncate(run.state / FILE, 5000), 8, "going on from the state before it"),
    "empty": (lambda run: os.truncate(run.state / FILE, 0), 8, "going on from the state before it"),
    "a flipped bit": (lambda run: flip(run.state / FILE), 8, "its checksum is wrong; going on from the state before"),
    "gone": (lambda run: (run.state / FILE).unlink(), 8, ""),
    "both broken": (lambda run: [flip(run.state / FILE), flip(run.state / BEFORE)], 0, "beginning anew"),
    "no metrics": (lambda run: (run.state / "metrics.parquet").unlink(), 16, ""),
    "broken metrics": (lambda run: (run.state / "metrics.parquet").write_bytes(b"PAR1"), 16, ""),
    "a look into the checkpoints on a Mac": (
        lambda run: [(folder / ".DS_Store").touch() for folder in run.output.glob("step-*")],
        16,
        "",
    ),
    "no model": (lambda run: shutil.rmtree(run.output), 8, "is not what the run had written; going on from"),
    "a checkpoint cut short": (lambda run: os.truncate(run.output / "step-12/model.safetensors", 99), 8, "step-12"),
    "a tokenizer gone": (lambda run: (run.output / "step-12/tokenizer.json").unlink(), 8, "step-12"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_run_goes_on_by_itself_to_the_same_weights(english, tiny_encoder, tmp_path, caplog, whole, damage):
    run = stopped(make_run(english, tiny_encoder, tmp_path, **KEYS))
    harm, step, said = DAMAGE[damage]
    (run.state / "metrics.parquet").touch()
    harm(run)
    caplog.clear()
    with caplog.at_level(logging.INFO, "masklab"):
        train(run)
    assert (f"resuming at step {step} of 30" if step else "m: starting") in caplog.text
    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    warnings = [line for line in warnings if "word frequencies" not in line]
    assert len(warnings) == bool(said) and (not said or said in warnings[0])
    steps, metrics = outcome(run)
    assert steps == whole[0] and metrics.equals(whole[1])
    assert sorted(path.name for path in run.state.iterdir()) == ["lock"]


@pytest.mark.parametrize("key", [{"save_minutes": 7.0}, {"log_every": 2}, {"validate_every": 3}, {"processes": 2}])
def test_how_a_run_goes_may_change_under_way(english, tiny_encoder, tmp_path, caplog, whole, key):
    run = stopped(make_run(english, tiny_encoder, tmp_path, **KEYS, micro_batch=32))
    again = make_run(english, tiny_encoder, tmp_path, **(KEYS | key), micro_batch=32)
    trainer = Trainer(again)  # of several processes: this one of them, which reads the state
    assert trainer.resume() == 16
    ((name, value),) = key.items()
    assert f"{name}: {getattr(run.model, name)!r} before, {value!r} now" in caplog.text
    if name == "processes":
        assert "weights may differ in their last bits" in caplog.text
        return
    train(again)
    assert outcome(again)[0] == whole[0]
    assert len(read_json(again.output / "manifest.json")[store.CHANGED]) == 2
    entry = store.Entry(tmp_path / "store/pretrain/1f")
    entry.add(*store.files_of("pretrain", [again.output / "manifest.json"]))
    assert not entry.there  # other checkouts would not get this from the same config


@pytest.mark.parametrize(("key", "said"), [({"optimiser": {"lr": 1e-3}}, "config.model.optimiser.lr"),
                                           ({"micro_batch": 16}, "config.model.micro_batch: 32 before, 16 now"),
                                           ({"checkpoints": [5, 30]}, "config.model.checkpoints")])  # fmt: skip
def test_what_counts_begins_anew_and_says_what_it_was(english, tiny_encoder, tmp_path, caplog, key, said):
    stopped(make_run(english, tiny_encoder, tmp_path, **KEYS))
    trainer = Trainer(make_run(english, tiny_encoder, tmp_path, **(KEYS | key)))
    assert trainer.resume() == 0 and said in caplog.text and "beginning anew" in caplog.text
    assert not list(trainer.run.output.glob("step-*"))


class Listed(own.Weight):
    """Settings of a term that reads a file of the user's."""

    file: str


def test_a_file_that_a_term_of_ones_own_reads_counts_by_its_content(english, tiny_encoder, tmp_path, caplog):
    kinds.term("listed", Listed)(own.Term)
    try:
        file = tmp_path / "words.txt"
        file.write_text("a")
        objective = Objective({"mlm": 1, "listed": {"weight": 1, "file": str(file)}})
        run = stopped(make_run(english, tiny_encoder, tmp_path, objective=objective, **KEYS))
        assert Trainer(run).resume() == 16
        file.write_text("b")
        assert Trainer(run).resume() == 0 and "inputs.objective.listed" in caplog.text
    finally:
        del kinds._yours["terms"]["listed"]


def test_the_number_of_processes_counts_where_micro_batches_follow_from_it(english, tiny_encoder, tmp_path):
    def made_of(**keys):
        return Record(make_run(english, tiny_encoder, tmp_path, **keys)).what()

    assert made_of(micro_batch=8) == made_of(micro_batch=8, processes=2, nodes=2)
    assert made_of() != made_of(processes=2) == made_of(micro_batch=16)


def test_inputs_count_by_their_content(english, tiny_encoder, tmp_path):
    run = make_run(english, tiny_encoder, tmp_path)
    before = Record(run).what()
    for name, file in (("tokens", "meta.json"), ("tokenizer", "tokenizer.json")):
        folder = tmp_path / name
        shutil.copytree(english / name, folder)
        other = make_run(english, tiny_encoder, tmp_path)
        object.__setattr__(other, name, folder)
        assert Record(other).what() == before
        write_json(read_json(folder / file) | {"another": 1}, folder / file)
        assert Record(other).what()["inputs"] != before["inputs"]


def test_the_decoder_and_the_latent_head_of_init_count(english, tiny_encoder, tmp_path):
    """Phase 2 begins with them where they lie beside the weights (`keep_decoder`), which are the same without."""
    run = make_run(english, tiny_encoder, tmp_path)
    init = tmp_path / "init"
    init.mkdir()
    (init / "model.safetensors").write_bytes(b"weights")
    object.__setattr__(run, "init", init)
    before = Record(run).what()["inputs"]
    for part in ("decoder", "latent"):
        (init / f"{part}.safetensors").write_bytes(b"more")
        assert {*Record(run).what()["inputs"]} - {*before} == {f"init.{part}"}
        (init / f"{part}.safetensors").unlink()
    assert Record(run).what()["inputs"] == before


def test_a_run_of_other_code_begins_anew_by_hand_too(english, tiny_encoder, tmp_path, whole):
    """`python -m masklab.training run.json`: the state was saved by a step of training that is another today."""
    run = stopped(make_run(english, tiny_encoder, tmp_path, **KEYS))
    flat = Trainer(run).learner.flat
    mixed = saved.load(run.state / FILE, Record(run).what())
    saved.save(run.state / FILE, mixed.tensors | {"values": torch.zeros_like(flat.values)}, Record(run).what(),
               **{key: value for key, value in mixed.facts.items() if key != "made_of"})  # fmt: skip
    note = {"code": {"masklab.training.step": "1f"}, "versions": state.versions()}
    write_json(note, run.state / "code")
    write_run(run, tmp_path / "run.json")
    process = start(tmp_path / "run.json", tmp_path / "errors")
    process.join()
    said = (tmp_path / "errors").read_text()
    assert process.exitcode == 0, said
    assert said.count("is not resumed, since the code changed (masklab.training.step)") == 1
    assert outcome(run)[0] == whole[0]


def test_a_full_disk_while_the_state_is_saved_is_a_warning(english, tiny_encoder, tmp_path, caplog, whole, monkeypatch):
    import errno

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    run = make_run(english, tiny_encoder, tmp_path, **KEYS, save_minutes=1e-9)
    monkeypatch.setattr(saved, "save", full)
    train(run)
    assert "the state could not be written" in caplog.text and outcome(run)[0] == whole[0]
