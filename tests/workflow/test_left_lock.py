"""A Snakemake that is killed leaves its lock, and the same command goes on; beside a live one it is refused."""

import errno
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from masklab.jobs import locks

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "tests")]

import faults  # noqa: E402
import left_lock  # noqa: E402

TARGET = "results/models/first/r1/manifest.json"
SNAKEMAKES = Path(".snakemake/locks/0.output.lock")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which a run was killed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(left_lock, "_held", [])
    monkeypatch.setattr(left_lock.atexit, "register", lambda *_, **__: None)
    for file in (SNAKEMAKES, left_lock.RUNS / "here-1"):
        file.parent.mkdir(parents=True)
        file.touch()
    return tmp_path


def started(local=True, dry=False):
    persistence = SimpleNamespace(path=".snakemake")
    left_lock.let_go(SimpleNamespace(persistence=persistence, local_exec=local, dryrun=dry, executor_plugin=1))


def test_what_a_killed_run_left_is_taken_away_and_the_next_holds_its_own(folder, capsys):
    started()
    assert not SNAKEMAKES.exists() and "the last run here was killed" in capsys.readouterr().err
    (own,) = left_lock.RUNS.glob("*")
    assert own.name != "here-1"
    SNAKEMAKES.touch()
    left_lock._held.clear()  # this run has been killed too
    started(dry=True)
    assert SNAKEMAKES.exists() and own.exists(), "a dry run changes nothing"


def test_beside_a_run_that_lives_nothing_is_taken_away(folder):
    with open(left_lock.RUNS / "here-2", "w") as other:
        assert left_lock.lock(other)
        started()
    assert SNAKEMAKES.exists()


def test_a_lock_of_which_nobody_knows_stays(folder):
    (left_lock.RUNS / "here-1").unlink()
    started()
    assert SNAKEMAKES.exists(), "of another workflow, or of an earlier version"


def test_jobs_of_a_cluster_outlive_their_run(folder):
    (left_lock.RUNS / "here-1").rename(left_lock.RUNS / f"here-1{left_lock.CLUSTER}")
    started(local=False)
    assert SNAKEMAKES.exists()
    left_lock._held.clear()
    SNAKEMAKES.unlink()  # --unlock
    started()
    assert [path.name.endswith(left_lock.CLUSTER) for path in left_lock.RUNS.glob("*")] == [False]


def test_where_there_are_no_locks_nobody_knows_who_lives(folder, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(locks.fcntl, "flock", none)
    started()
    assert SNAKEMAKES.exists() and [path.name for path in left_lock.RUNS.glob("*")] == ["here-1"]


@pytest.mark.workflow
def test_the_same_command_goes_on_after_a_kill(tmp_path):
    """Of Snakemake alone, while it trains: its job ends with it, and the next run resumes."""
    folder = faults.lay_down(tmp_path / "run")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["models"]["first"] |= {"steps": 3000, "checkpoints": [150, 300, 3000]}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    killed = faults.start(folder, TARGET, output=folder / "output")
    deadline = time.monotonic() + 90
    while not list((folder / "results/state/models/first").rglob("*.safetensors")):
        assert killed.poll() is None and time.monotonic() < deadline, (folder / "output").read_text()
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert list((folder / ".snakemake/locks").glob("*.lock"))
    again = faults.start(folder, TARGET, output=folder / "again")
    assert again.wait() == 0, (folder / "again").read_text()
    assert "the last run here was killed; its lock on this folder is taken away" in (folder / "again").read_text()
    assert "resuming at step" in (folder / "results/logs/models/first/r1.log").read_text()
    assert not list((folder / ".masklab/runs").glob("*")), "one that ends by itself leaves nothing"


@pytest.mark.workflow
def test_another_run_in_the_folder_takes_away_its_own_lock_alone(tmp_path):
    """Two configs of one folder with a `run:` each: the one that ends first leaves the other its lock."""
    folder = faults.lay_down(tmp_path / "run")
    config = yaml.safe_load((folder / "config.yaml").read_text())
    config["models"]["first"] |= {"steps": 30000, "checkpoints": [150, 300, 30000]}

    def begun(run, target, output):
        (folder / f"{run}.yaml").write_text(yaml.safe_dump(config | {"run": run}))
        (folder / "other").write_text(str(folder / f"{run}.yaml"))
        return faults.start(folder, f"results/{run}/{target}", output=folder / output)

    runs = [long := begun("long", "models/first/r1/manifest.json", "output")]
    try:
        deadline = time.monotonic() + 90
        while not (folder / "results/long/logs/models/first/r1.log").exists():
            assert long.poll() is None and time.monotonic() < deadline, (folder / "output").read_text()
            time.sleep(0.1)
        assert begun("short", "corpora/text/train.parquet", "short").wait() == 0, (folder / "short").read_text()
        runs.append(again := begun("long", "models/first/r1/manifest.json", "again"))
        assert again.wait(timeout=60) == 1 and "Directory cannot be locked" in (folder / "again").read_text()
    finally:
        for run in runs:
            faults.kill_all(run)


@pytest.mark.workflow
def test_beside_jobs_that_slurm_still_runs_a_run_on_this_machine_begins_nothing(tmp_path):
    """They outlive a Snakemake that was killed, and `snakemake --unlock` takes away the lock that kept others off."""
    folder, commands = faults.lay_down(tmp_path / "run"), tmp_path / "bin"
    commands.mkdir()
    queue, path = commands / "squeue", {"PATH": f"{commands}:{os.environ['PATH']}"}
    queue.write_text(f"#!/bin/sh\necho '7|RUNNING|None|{folder}|rule_pretrain_wildcards_first_1'\n")
    queue.chmod(0o755)
    run = faults.start(folder, TARGET, output=folder / "output", environment=path)
    assert run.wait() != 0 and not (folder / "results/models").exists()
    assert (
        "masklab: Slurm has jobs of a run here that was killed: 7 (pretrain first_1); wait"
        in (folder / "output").read_text()
    )
    queue.write_text("#!/bin/sh\n")
    again = faults.start(folder, TARGET, output=folder / "again", environment=path)
    assert again.wait() == 0, (folder / "again").read_text()
