"""States that can be trusted: whatever happens to a file, what is loaded is what was saved, or nothing."""

import errno
import os

import numpy as np
import pytest
import torch
from safetensors import SafetensorError

from masklab.jobs import saved
from masklab.jobs.lacking import lacking

MADE_OF = {"config": {"model": {"lr": 0.1}}, "inputs": {"tokens": "1f"}}


@pytest.fixture
def path(tmp_path):
    """Two states, of steps 10 and 20."""
    path = tmp_path / "state.safetensors"
    for step in (10, 20):
        saved.save(path, {"w": torch.full((50,), float(step)), "n": torch.tensor(step)}, MADE_OF, step=step)
    return path


def step_of(found):
    if found is None:
        return None
    assert set(found.tensors) == {"w", "n"} and found.tensors["n"] == found.facts["step"]
    assert (found.tensors["w"] == found.facts["step"]).all()
    return found.facts["step"]


def test_the_newest_state_and_the_one_before(path, caplog):
    assert step_of(saved.load(path, MADE_OF)) == 20 and not caplog.messages
    path.unlink()
    assert step_of(saved.load(path, MADE_OF)) == 10
    saved.previous(path).unlink()
    assert saved.load(path, MADE_OF) is None and not caplog.messages


@pytest.mark.parametrize("size", [0, 1, 7, 8, 100, -1])
def test_a_state_cut_short(path, caplog, size):
    os.truncate(path, size if size >= 0 else path.stat().st_size - 1)
    assert step_of(saved.load(path, MADE_OF)) == 10
    (line,) = caplog.messages
    assert str(path) in line and line.endswith("going on from the state before it")


def test_any_flipped_bit_is_noticed(path, caplog):
    data, rng = path.read_bytes(), np.random.default_rng(1)
    for bit in rng.choice(8 * len(data), 300, replace=False):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert step_of(saved.load(path, MADE_OF)) in (10, 20)
    assert len(caplog.messages) > 280  # spaces behind the header mean nothing


def test_two_broken_states_are_one_line(path, caplog):
    path.write_bytes(b"")
    saved.previous(path).write_bytes(b"\xff" * 200)
    assert saved.load(path, MADE_OF) is None
    (line,) = caplog.messages
    assert line.endswith("; beginning anew") and str(path) in line and str(saved.previous(path)) in line


LATER = [
    RuntimeError("unable to mmap 240000216 bytes from file <state.safetensors>: Cannot allocate memory (12)"),
    OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
    OSError(errno.ESTALE, os.strerror(errno.ESTALE)),
    SafetensorError(f"Error while reading: {os.strerror(errno.EACCES)} (os error 13)"),
]


@pytest.mark.parametrize("error", LATER, ids=lambda error: type(error).__name__ + str(error)[-20:])
def test_a_state_that_the_machine_cannot_read_now_is_not_passed_over(path, monkeypatch, error):
    """The job would begin anew, and what it has would be thrown away."""

    def fails(*arguments):
        raise error

    monkeypatch.setattr("safetensors.safe_open", fails)
    with pytest.raises(type(error)) as caught:
        saved.load(path, MADE_OF)
    assert lacking(caught.value)
    error = OSError(errno.EIO, os.strerror(errno.EIO))  # a disk that cannot read it: the one before it may be whole
    assert saved.load(path, MADE_OF) is None


def test_another_config_is_named(path, caplog):
    other = {"config": {"model": {"lr": 0.2}}, "inputs": {"tokens": "1f"}}
    assert saved.load(path, other) is None
    assert "another config or input (config.model.lr: 0.1 before, 0.2 now)" in caplog.text


def test_what_cannot_be_gone_on_from(path):
    found = saved.load(path, MADE_OF, lambda facts: "gone" if facts["step"] == 20 else None)
    assert step_of(found) == 10


def test_a_full_disk_leaves_what_was_there(path, caplog, monkeypatch):
    from safetensors import SafetensorError
    from safetensors import torch as safetensors_torch

    def full(*_):
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(safetensors_torch, "save_file", full)
    assert not saved.attempt(path, {"w": torch.ones(2)}, MADE_OF, step=30)
    assert "could not be written" in caplog.text and step_of(saved.load(path, MADE_OF)) == 20
    assert sorted(file.name for file in path.parent.iterdir()) == ["state.previous.safetensors", "state.safetensors"]


def test_both_names_are_there_all_the_while(path, monkeypatch):
    seen, replace = [], os.replace

    def watched(source, target):
        seen.append(path.exists())
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    saved.save(path, {"w": torch.ones(2)}, MADE_OF, step=30)
    assert seen == [True, True]


def test_records(tmp_path, caplog):
    path = tmp_path / "a.json"
    assert saved.kept(path) is None and not caplog.messages
    saved.keep('{"rows": [1]}\n', path)
    assert saved.kept(path) == '{"rows": [1]}\n'
    data = path.read_bytes()
    for damaged in (b"", data[:70], data[:-1], data.replace(b"1]", b"3]"), b"\xff" + data[1:]):
        path.write_bytes(damaged)
        assert saved.kept(path) is None
    assert all("that part is done again" in line for line in caplog.messages) and len(caplog.messages) == 5
