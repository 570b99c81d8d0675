"""The folder of state of a job: whose code it belongs to, and who holds it."""

import errno
import fcntl
import subprocess
import sys

import pytest

from masklab.errors import MaskLabError
from masklab.jobs import state
from masklab.jobs.code import Code, today

OLD, NEW = (Code.of({"masklab.models.blocks": mark, "pretrain.py": "1f"}) for mark in ("1f", "2f"))


def test_a_job_is_resumed_by_the_code_that_began_it_and_else_begins_anew(tmp_path, caplog):
    folder = tmp_path / "state/models/m/r1"
    state.begin(folder, OLD)
    (folder / "state.safetensors").touch()
    (folder / "parts").mkdir()
    state.begin(folder, OLD)
    assert (folder / "state.safetensors").exists() and not caplog.text
    state.begin(folder, NEW)
    assert not (folder / "state.safetensors").exists() and not (folder / "parts").exists()
    (line,) = caplog.messages
    assert line.endswith("is not resumed, since the code changed (masklab.models.blocks); it begins anew")


def test_other_versions_of_packages_do_not_resume_either(tmp_path, caplog, monkeypatch):
    state.begin(tmp_path, OLD)
    (tmp_path / "state.safetensors").touch()
    monkeypatch.setattr(state, "versions", lambda: {"torch": "3.0"})
    state.begin(tmp_path, OLD)
    assert not (tmp_path / "state.safetensors").exists() and "other versions are installed" in caplog.text


def test_what_other_code_left_between_begin_and_the_work_is_forgotten(tmp_path, monkeypatch):
    """Two jobs of one place, of other code, begin one after the other: the first one does not take the second's."""
    state.begin(tmp_path, OLD)
    first = dict(state._begun)
    state.begin(tmp_path, NEW)
    (tmp_path / "state.safetensors").touch()
    monkeypatch.setattr(state, "_begun", first)
    with state.locked(tmp_path):
        assert not (tmp_path / "state.safetensors").exists()


def test_clearing_on_success_or_for_another_config_keeps_whose_code_it_is(tmp_path):
    state.begin(tmp_path / "s", OLD)
    state.clear(tmp_path / "s")
    (tmp_path / "s/run.json").write_text("{}")
    state.begin(tmp_path / "s", OLD)
    assert (tmp_path / "s/run.json").exists()


@pytest.mark.parametrize("note", [None, "", "[]", '{"code": 1}', "\0"])
def test_what_does_not_say_its_code_is_forgotten(tmp_path, note):
    (tmp_path / "state.safetensors").touch()
    if note is not None:
        (tmp_path / "code").write_text(note)
    state.begin(tmp_path, OLD)
    assert not (tmp_path / "state.safetensors").exists() and state.made_by(tmp_path)["code"] == OLD.modules


def test_the_code_of_today_is_that_of_what_was_noted(tmp_path):
    own = tmp_path / "own.py"
    own.write_text("x = 1\n")
    noted = today({}, [own], "masklab.training.launch")
    assert "masklab.training.loop" in noted and "own.py" in noted and not {"masklab.cli"} & set(noted)
    assert today(noted | {"workflow/scripts/pretrain.py": "1f"}, [own], "") == noted | {
        "workflow/scripts/pretrain.py": "1f"
    }
    own.write_text("x = 2\n")
    now = today(noted | {"masklab.gone": "1f"}, [own], "")
    assert [part for part in noted if now.get(part) != noted[part]] == ["own.py"] and "masklab.gone" not in now


def test_two_writers_are_refused(tmp_path):
    refused = pytest.raises(MaskLabError, match="another process is writing here")
    with state.locked(tmp_path), refused, state.locked(tmp_path):
        pytest.fail("both write")


def test_a_file_system_without_locks_is_said_plainly(tmp_path, caplog, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with state.locked(tmp_path):
        pass
    assert "this file system has no locks (flock): nothing stops a second job here" in caplog.text


def test_it_is_light():
    command = "import sys, masklab.jobs.state, masklab.jobs.saved; print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"
