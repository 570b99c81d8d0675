import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from masklab.files import write_json
from masklab.jobs.progress import Progress, Rate
from masklab.jobs.state import locked
from masklab.jobs.status import table
from masklab.jobs.underway import Underway

LONG = "strict-small-mlsm+mlm-with-a-name-longer-than-any-column-used-to-be"


def test_every_job_that_has_begun_and_not_ended_is_a_line(tmp_path, monkeypatch):
    """A running model, an interrupted probe of another run, codes; a job that ended leaves no line."""
    folders = {
        name: tmp_path / name
        for name in (f"state/models/{LONG}", "state/codes/d", "evening/state/scores/s/p/m/all", "state/models/ended")
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))  # where Slurm is installed and not set up, squeue ponders for seconds
    model, codes, probe, ended = folders.values()
    Progress("m", "steps", every=0, folder=model)(600, 1200, loss=3.25, tokens_per_second=12345.6)
    Progress("c", "tokens", every=0, folder=codes).begin(9_000_000)
    Progress("p", "parts", every=0, folder=probe)(3, 12)
    done = Progress("e", "steps", every=0, folder=ended)
    assert done(1, 2) and done(2, 2)
    with locked(model), locked(codes):
        lines = table(tmp_path).splitlines()
    assert len(lines) == 4
    found = {line.split()[0]: line for line in lines}
    said = " ".join(found[f"models/{LONG}"].split()[1:])
    assert said == "running 600/1,200 steps 50% 3.2500 12,346 0:00:00 0:00:00 ago"
    assert found["codes/d"].split()[1:] == ["running", "0/9,000,000", "tokens", "0%", "-", "-", "-", "0:00:00", "ago"]
    assert found["evening/scores/s/p/m/all"].split()[1:4] == ["interrupted", "3/12", "parts"]
    assert len({line.index("running") for line in lines if "running" in line}) == 1, "columns are aligned"
    assert len({len(line) for line in lines[1:]}) == 1
    assert table(tmp_path / "empty") == "no job is under way"


@pytest.mark.parametrize("file", ["run.json", "models/m/r1/status.json", "jobs/models~m~r1.json"])
@pytest.mark.parametrize("said", [[1], {}, {"pid": 1, "ended": None}])
def test_what_another_version_has_left_is_passed_over(said, file, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    write_json(said, tmp_path / "results/state" / file)
    assert table(tmp_path / "results") == "no job is under way"


def test_a_training_that_stopped_itself_is_at_the_step_that_it_speaks_of(tmp_path, monkeypatch):
    """Its status file is some seconds older, and so is the mean loss in it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    state, log = tmp_path / "results/state/models/m/r1", "results/logs/models/m/r1.log"
    state.mkdir(parents=True)
    Progress("m", "steps", every=0, folder=state)(4, 500, loss=219727.0, tokens_per_second=1.0)
    job = Underway("pretrain", {"recipe": "m"}, log)
    job.failed("error: m: the loss exploded: 1.773e+04 at step 12")
    job.file.close()
    (row,) = [line for line in table(Path("results")).splitlines() if line.startswith("models/m/r1  ")]
    assert row.split()[1:4] == ["failed", "4/500", "steps"], "of a failure of another kind nothing better is known"
    (state / "stopped.json").write_text('{"step": 12}')
    (row,) = [line for line in table(Path("results")).splitlines() if line.startswith("models/m/r1  ")]
    assert row.split()[1:6] == ["failed", "12/500", "steps", "2%", "-"]


def test_jobs_that_wait_in_slurm_are_lines_with_the_reason(tmp_path, monkeypatch):
    """Jobs of this folder alone, by the name of what they make where the run has told it."""
    commands, results = tmp_path / "commands", tmp_path / "results"
    commands.mkdir()
    (results / "state").mkdir(parents=True)
    rows = [f"7|PENDING|PartitionConfig|{tmp_path}|rule_pretrain_wildcards_a_1", "8|PENDING|Priority|/else|rule_probe"]
    rows += [f"9|RUNNING|None|{tmp_path}|rule_corpus_wildcards_c"]
    (commands / "squeue").write_text("#!/bin/sh\n" + "".join(f"echo '{row}'\n" for row in rows))
    (commands / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    begun = [{"rule": "pretrain", "log": "results/logs/models/a/r1.log", "slurm_job": "7", "began": 0, "name": "a r1"}]
    run = {"pid": os.getpid(), "host": os.uname().nodename, "began": time.time(), "time": time.time(), "ended": None,
           "total": 9, "done": 3, "begun": begun, "failed": [], "waiting": {"probe": 4}, "eta_seconds": 60}  # fmt: skip
    (results / "state/run.json").write_text(json.dumps(run))
    monkeypatch.chdir(tmp_path)
    first, _, starting, queued, reason, waiting = table(Path("results")).splitlines()
    assert first == "results: 3 of 9 jobs done, running for 0:00:00, ETA 0:01:00"
    assert starting.split()[:3] == ["corpus", "c", "starting"] and queued.split()[:2] == ["models/a/r1", "queued"]
    assert reason == "models/a/r1 waits in Slurm: PartitionConfig" and waiting == "not begun: 4 probe"


def test_looking_does_not_keep_a_job_from_starting(tmp_path):
    """`status` holds a lock for an instant; a job that begins just then waits for it."""
    import fcntl
    import threading

    with open(tmp_path / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        threading.Timer(0.05, lambda: fcntl.flock(file, fcntl.LOCK_UN)).start()
        with locked(tmp_path):
            pass


def test_watch_repeats_until_ctrl_c(tmp_path):
    command = [sys.executable, "-m", "masklab.cli", "status"]
    once = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (once.returncode, once.stdout) == (0, "no job is under way\n")
    child = subprocess.Popen(
        [*command, "-w", "0.05"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell has it ignored
    )
    shown = [child.stdout.readline() for _ in range(3)]
    child.send_signal(2)
    assert shown == ["no job is under way\n"] * 3 and child.wait(10) == 0


def test_a_bar_in_a_terminal_and_lines_elsewhere(monkeypatch, caplog):
    import io
    import logging

    import masklab.jobs.progress as module

    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    monkeypatch.setattr(module.sys, "stderr", screen)
    monkeypatch.setattr(module, "REDRAW", 0.0)
    monkeypatch.setenv("COLUMNS", "100")
    handler = module.Terminal(screen)
    logger = logging.getLogger("masklab")
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO):
            progress = Progress("m", "steps", every=0.02)
            for done in range(1, 5):
                if done == 4:
                    logger.info("something else")
                progress(done, 4, loss=1.5, tokens_per_second=99.0)
                time.sleep(0.006)
    finally:
        logger.removeHandler(handler)
    drawn = screen.getvalue()
    assert re.search(r"m: 100%\|[█#]+\| 4/4 \[00:00<00:00, +\d+\.\d+ steps/s, loss 1\.5000, 99 tokens/s\]\n$", drawn)
    assert drawn.count("\n") == 2 and "something else\n" in drawn, "one line drawn over, and one said between"
    lines = [record.getMessage() for record in caplog.records]
    assert lines[-1] == "m 4/4 steps (100%) loss 1.5000 99 tokens/s ETA 0:00:00" and len(lines) <= 4


def test_a_full_disk_stops_no_work(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("masklab.jobs.progress.write_json", full)
    progress = Progress("m", "steps", every=0, folder=tmp_path)
    progress.begin(3)
    assert progress(1, 3) and progress(3, 3)


def test_rate_is_that_of_the_last_seconds():
    rate = Rate()
    now = rate.last
    for second in range(1, 121):
        rate.add(1000 if second <= 60 else 250, now + second)
    assert abs(rate.value - 250) < 25
