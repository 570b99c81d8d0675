"""The folder of state of a job: whose code it belongs to."""

import subprocess
import sys

import torch

from masklab.jobs import state


def test_a_job_is_resumed_by_the_code_that_began_it_and_else_begins_anew(tmp_path):
    folder = tmp_path / "state/models/m/r1"
    state.begin(folder, "1f")
    state.save(folder / "state.safetensors", {"a": torch.ones(2)}, fingerprint="of the config", step=3)
    (folder / "parts").mkdir()
    state.begin(folder, "1f")
    assert state.facts(folder / "state.safetensors", "of the config")["step"] == 3
    state.begin(folder, "2f")
    assert state.facts(folder / "state.safetensors", "of the config") is None and not (folder / "parts").exists()


def test_clearing_on_success_or_for_another_config_keeps_whose_code_it_is(tmp_path):
    state.begin(tmp_path / "s", "1f")
    state.clear(tmp_path / "s")
    (tmp_path / "s/run.json").write_text("{}")
    state.begin(tmp_path / "s", "1f")
    assert (tmp_path / "s/run.json").exists()


def test_what_was_left_before_there_was_a_note_of_the_code_is_forgotten(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    state.begin(tmp_path, "1f")
    assert not (tmp_path / "run.json").exists()


def test_it_is_light():
    command = "import sys, masklab.jobs.state; print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"
