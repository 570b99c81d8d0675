"""Folders of processes in the temporary directory: kept while they run, removed by the next one after a kill."""

import os
import signal
import subprocess
import sys

import pytest

from masklab.jobs import temporary

MAKE = "from masklab.jobs import temporary; print(temporary.folder('x'), flush=True); input()"


@pytest.fixture
def begin(tmp_path):
    """A function that starts a process with a folder: (process, folder)."""
    begun = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", MAKE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(tmp_path)},
        )
        begun.append(process)
        return process, tmp_path / os.path.basename(process.stdout.readline().strip())

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def test_what_a_killed_process_left_goes_with_the_next_one(begin, tmp_path):
    (killed, left), (_, in_use) = begin(), begin()
    (foreign := tmp_path / "masklab-of-others").mkdir()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert left.is_dir() and in_use.is_dir()
    _, new = begin()
    assert not left.exists()
    assert in_use.is_dir() and new.is_dir() and foreign.is_dir()
    assert new.stat().st_mode & 0o077 == 0 and temporary.HELD in os.listdir(new)


def test_a_process_removes_its_own_when_it_ends(begin, tmp_path):
    process, own = begin()
    assert own.is_dir()
    process.communicate("\n")
    assert process.returncode == 0 and os.listdir(tmp_path) == []
