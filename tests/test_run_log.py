"""The log of a run: what it says of jobs that begin, end and fail, and what is left."""

import errno
import fcntl
import functools
import io
import json
import logging
import os
import random
import subprocess
import sys
import time

import pytest

from masklab.jobs import locks, provenance, remaining, run_log, underway
from masklab.jobs.code import Code
from masklab.jobs.progress import Progress
from masklab.jobs.run_log import RunLog
from masklab.jobs.status import status, table


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A run of three jobs in an empty folder: (its log, its stream)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(remaining, "JOBS", {1: "pretrain", 2: "probe", 3: "probe"})
    monkeypatch.setattr(remaining, "EXPECTED", {})
    stream = io.StringIO()
    run = RunLog(stream, terminal=False, pid=1)
    run.starts({"pretrain": 1, "probe": 2, "all": 1, "total": 4})
    yield run, stream
    run.over.set()


def lines(stream) -> list[str]:
    """What was said, without times of day."""
    return [line[10:] if line[2:3] == ":" else line for line in stream.getvalue().splitlines()]


def test_a_job_that_ends_is_a_line_and_mere_targets_are_none(begun):
    run, stream = begun
    run.begins(1, "pre-training a r1", "pretrain", "results/logs/models/a/r1.log")
    run.ends(1)
    run.begins(4, "all", "all", None)
    run.ends(4)
    for number in (2, 3):
        run.begins(number, f"probe {number}", "probe", f"results/logs/scores/{number}.log")
        run.ends(number)
    run.closes()
    said = lines(stream)
    assert (
        said[0] == "3 jobs to do"
        and said[1].startswith("1/3  pre-training a r1: 0.")
        and said[-1].startswith("3 of 3 jobs done in 0:00:0")
    )
    assert len(said) == 5


def test_what_a_job_notes_for_a_person_is_said_when_it_has_ended(begun, caplog):
    """And not what an earlier attempt has noted."""
    run, stream = begun
    job_log = "results/logs/tokenizers/t.log"
    for number in (1, 2):
        run.begins(number, "tokenizer t", "tokenizer", job_log)
        if number == 1:
            record = provenance.Record("tokenizer", {}, {}, Code.of({}), job_log)
            logging.getLogger("masklab").warning("tokenizer: gives %d pieces", 3, extra={"note": True})
            logging.getLogger("masklab").warning("of no interest")
            record.finished([])
            logging.getLogger("masklab").removeHandler(record.notes)
        else:
            run.running[number].began += 5
        run.ends(number)
    assert [line for line in lines(stream) if "note" in line] == ["note: tokenizer t: gives 3 pieces"]
    assert "of no interest" not in stream.getvalue()


def test_a_failure_is_told_last_whole_and_once(begun, tmp_path):
    """In the job's own words; a job that is killed has none, and the end of its log stands for them."""
    run, stream = begun
    long = "Traceback (most recent call last):\n  File x\nValueError: no"
    for number in (1, 2, 3):
        log = f"results/logs/scores/{number}.log"
        run.begins(number, f"probe {number}", "probe", log)
        (tmp_path / log).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / log).write_text("first\nlast words\n")
        if number < 3:
            job = underway.Underway("probe", {}, log)
            job.failed(long)
            job.file.close()
        told = "SLURM-job '7' failed, SLURM status is: 'NODE_FAIL'. More\n    sbatch call:\n        sbatch very long\n"
        run.fails(number, told, [log])
    run.closes()
    said = stream.getvalue()
    assert said.count("ValueError: no") == 2, "one line when it happened, and whole at the end"
    assert "very long" not in said
    first = said.index("3 of 3 jobs failed, 0 are done")
    whole = said[first:]
    assert "probe 1 (rule probe) and 1 more that say the same\n  Traceback" in whole
    assert "  log: results/logs/scores/1.log" in whole
    last = "    | the end of results/logs/scores/3.log:\n    | first\n    | last words\n"
    assert f"probe 3 (rule probe)\n  Slurm says: NODE_FAIL\n{last}" in whole


def test_of_a_message_of_several_lines_the_first_is_said():
    """The last one of CUDA's is advice, the same for every fault; of a chain of errors it is the last one's."""
    frame = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\n    ^^^\n'
    cuda = "RuntimeError: CUDA error: device-side assert triggered\n"
    advice = "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA`.\n"
    assert run_log.in_a_line(f"{frame}{cuda}{advice}") == cuda.strip()
    chain = f"{frame}KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
    assert run_log.in_a_line(f"{chain}{frame}{cuda}\n  {advice}") == cuda.strip()
    syntax = '  File "b.py", line 2\n    a b\n      ^\nSyntaxError: invalid syntax\n'
    assert run_log.in_a_line(f"{frame}{syntax}") == "SyntaxError: invalid syntax"
    assert run_log.in_a_line("error: no room\nand more") == "error: no room"


def test_a_job_that_was_told_to_stop_has_not_failed(begun):
    run, stream = begun
    for number, why in (
        (1, "a: stopped by signal 2 at step 7; its state is saved, run again to resume"),
        (2, "broken"),
    ):
        run.begins(number, f"pre-training {number}", "pretrain", f"results/logs/{number}.log")
        run.fails(number, why, [])
    assert "0% 1 failed 1 interrupted" in run.far()
    run.closes()
    said = stream.getvalue()
    assert "1 of 3 jobs failed, 1 of 3 jobs interrupted, 0 are done" in said
    assert "interrupted: pre-training 1: a: stopped by signal 2" in said


def test_a_failure_that_ends_the_run_is_said_once(begun):
    run, stream = begun
    run.begins(1, "pre-training a r1", "pretrain", "results/logs/models/a/r1.log")
    run.fails(1, "the loss exploded", [])
    run.closes()
    assert stream.getvalue().count("the loss exploded") == 1
    assert "\npre-training a r1 (rule pretrain)\n  the loss exploded\n" in stream.getvalue()


def test_a_failure_beside_jobs_that_go_on_is_said_soon(begun, monkeypatch):
    monkeypatch.setattr(run_log, "SOON", 0.0)
    run, stream = begun
    for number in (1, 2):
        run.begins(number, f"probe {number}", "probe", f"results/logs/scores/{number}.log")
    run.fails(1, "no place to write", [])
    until = time.monotonic() + 20
    while "failed: probe 1: no place to write" not in stream.getvalue() and time.monotonic() < until:
        time.sleep(0.05)
    assert lines(stream) == ["3 jobs to do", "failed: probe 1: no place to write"], "and no line of a job that runs"


def test_a_job_that_is_tried_again_has_not_failed(begun):
    run, stream = begun
    for _ in range(3):
        run.begins(1, "pre-training a r1", "pretrain", "results/logs/models/a/r1.log")
        run.fails(1, "sbatch: error: too much memory\n    sbatch call:\n x", [])
        run.again(1)
    run.begins(1, "pre-training a r1", "pretrain", "results/logs/models/a/r1.log")
    run.ends(1)
    run.closes()
    said = lines(stream)
    assert [line for line in said if "failed" in line] == ["failed: pre-training a r1: sbatch: error: too much memory"]
    assert sum("tried again" in line for line in said) == 1 and said[-1].startswith("stopped after")


def test_status_reads_what_the_run_and_its_jobs_leave(begun, tmp_path):
    run, _ = begun
    log = "results/logs/corpora/c.log"
    run.begins(1, "corpus c", "corpus", log)
    job = underway.Underway("corpus", {"corpus": "c"}, log)
    run.begins(2, "probe p", "probe", "results/logs/scores/p.log")
    run.fails(2, "no place to write", [])
    run.pid = 2**22 + 1  # no process has this number
    run._leave()
    said = status(tmp_path / "results")
    rows = {row["job"]: row["is"] for row in said["jobs"]}
    assert rows == {"corpora/c": "running", "scores/p": "failed"}
    assert said["runs"][0]["lives"] is False and said["runs"][0]["waiting"] == {"pretrain": 1, "probe": 1}
    shown = table(tmp_path / "results")
    assert "0 of 3 jobs done, 1 failed; the run was killed" in shown
    assert "scores/p failed: no place to write\n  log: results/logs/scores/p.log" in shown
    job.file.close()
    assert status(tmp_path / "results")["jobs"][0]["is"] == "interrupted"
    job = underway.Underway("corpus", {"corpus": "c"}, log)
    job.ended()
    assert [row["job"] for row in status(tmp_path / "results")["jobs"]] == ["scores/p"]


class Full(io.StringIO):
    """A log on a disk that is `full`, or a terminal that is gone."""

    full = False

    def write(self, text):
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_log_that_cannot_be_written_for_a_while_goes_on(terminal, begun, monkeypatch):
    """What the run leaves for `masklab status` does too."""
    monkeypatch.setattr(run_log, "EVERY", 0.5)
    run, stream = begun[0], Full()
    run.stream, run.terminal, stream.full = stream, terminal, True
    run.begins(1, "corpus c", "corpus", "results/logs/corpora/c.log")
    time.sleep(1.5)
    assert run.clock.is_alive()
    run.ends(1)
    run.begins(2, "probe p", "probe", "results/logs/scores/p.log")
    stream.full = False
    run.ends(2)
    said = [line for line in lines(stream) if "probe p" in line and "/" in line]
    assert len(said) == 1 and said[0].startswith("2/3  probe p: ")


def test_a_run_of_another_person_or_machine_lives_as_far_as_it_speaks(begun, tmp_path, monkeypatch):
    run, _ = begun
    run.begins(1, "corpus c", "corpus", "results/logs/corpora/c.log")
    file = tmp_path / "results/state/run.json"

    def lives(**said):
        run._leave()
        file.write_text(json.dumps(json.loads(file.read_text()) | said))
        return status(tmp_path / "results")["runs"][0]["lives"]

    def kill(*_):
        raise PermissionError(errno.EPERM, "not yours")

    monkeypatch.setattr("masklab.jobs.status.os.kill", kill)
    assert lives(), "another person's process is there"
    assert lives(host="elsewhere"), "it spoke just now"
    assert not lives(host="elsewhere", time=time.time() - 3600), "killed, or copied from there since"
    assert "the run was killed 1:00:00 ago" in table(tmp_path / "results")


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="where the kernel says when a process began")
def test_a_run_that_was_killed_does_not_live_in_another_process_of_its_number(begun, tmp_path):
    """Numbers are given anew, after a reboot from the lowest on."""
    run, _ = begun
    run.begins(1, "corpus c", "corpus", "results/logs/corpora/c.log")
    run.pid = os.getpid()
    run._leave()
    assert status(tmp_path / "results")["runs"][0]["lives"]
    file = tmp_path / "results/state/run.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"time": time.time() - 86400}))
    assert not status(tmp_path / "results")["runs"][0]["lives"]
    assert "the run was killed 24:00:00 ago" in table(tmp_path / "results")


def test_how_far_a_job_is_may_be_unreadable_for_a_moment(begun, tmp_path, monkeypatch):
    """On NFS a file that is being replaced from another host gives ESTALE; the thread that draws lives on."""
    run, _ = begun
    own = tmp_path / "results/state/models/state/r1"
    own.mkdir(parents=True)
    run.begins(1, "pre-training state r1", "pretrain", "results/logs/models/state/r1.log")
    Progress("p", every=0.0, folder=own)(1, 4, loss=1.5)
    assert "25%" in run.far()
    assert [row["job"] for row in status(tmp_path / "results")["jobs"]] == ["models/state/r1"]

    def stale(path):
        raise OSError(errno.ESTALE, "Stale file handle", str(path))

    for module in ("run_log", "status"):
        monkeypatch.setattr(f"masklab.jobs.{module}.read_json", stale)
    assert run.far().endswith("| pre-training state r1")
    assert status(tmp_path / "results") == {"runs": [], "jobs": []}
    run.ends(1)


def test_a_failure_is_over_when_what_failed_is_there(begun, tmp_path):
    """Taken from the store by a run that has no job to do and so says nothing of itself."""
    run, _ = begun
    log = "results/logs/scores/p/m/r1/all.log"
    run.begins(2, "probe p on m", "probe", log)
    job = underway.Underway("probe", {}, log)
    job.failed("error: no such task")
    job.file.close()
    run.fails(2, "exit 1", [])
    run.closes()
    place = tmp_path / "results/scores/p/m/r1"
    place.mkdir(parents=True)
    (place / "all.parquet").touch()
    shown = table(tmp_path / "results")
    assert "1 failed" in shown and "scores/p/m/r1/all failed: error: no such task" in shown, "half of it is there"
    (place / "all.items.parquet").touch()
    shown = table(tmp_path / "results")
    assert "failed" not in shown and "no job is under way" in shown
    again = underway.Underway("probe", {}, log)
    assert "running" in table(tmp_path / "results")
    underway.forget(log)
    assert again.path.exists(), "it runs"
    again.file.close()
    underway.forget(log)
    underway.forget(log)
    assert not again.path.exists()


def test_how_far_replicates_are_that_one_job_trains(begun, tmp_path):
    """Their progress lies beside their common state; it is that of the job that trains them."""
    run, _ = begun
    log = "results/logs/models/m/r1.log"
    run.begins(1, "pre-training m r1", "pretrain", log)
    job = underway.Underway("pretrain", {"recipe": "m", "replicate": "1"}, log)
    progress = Progress("m", "steps", every=0.0, folder=tmp_path / "results/state/models/m/together")
    progress.path.parent.mkdir(parents=True)
    progress.begin(100)
    progress(40, 100, loss=1.5)
    (row,) = status(tmp_path / "results")["jobs"]
    assert (row["job"], row["is"], row["done"], row["total"]) == ("models/m/r1", "running", 40, 100)
    assert run.running[1].progress()["done"] == 40
    job.file.close()
    (row,) = status(tmp_path / "results")["jobs"]
    assert (row["job"], row["is"], row["done"]) == ("models/m/r1", "interrupted", 40)


def test_what_another_process_left_of_several_replicates_is_not_that_of_a_job(begun, tmp_path):
    """A stack that was killed, after which a replicate trains alone."""
    run, _ = begun
    folder, log = tmp_path / "results/state/models/m", "results/logs/models/m/r2.log"
    for own, done in (("together", 10), ("r2", 70)):
        progress = Progress("m", "steps", every=0.0, folder=folder / own)
        progress.path.parent.mkdir(parents=True)
        progress.begin(100)
        progress(done, 100, loss=1.5)
    left = folder / "together" / "status.json"
    left.write_text(left.read_text().replace(f'"pid": {os.getpid()}', '"pid": 1'))
    run.begins(1, "pre-training m r2", "pretrain", log)
    job = underway.Underway("pretrain", {"recipe": "m", "replicate": "2"}, log)
    rows = {row["job"]: (row["is"], row["done"]) for row in status(tmp_path / "results")["jobs"]}
    assert rows == {"models/m/r2": ("running", 70), "models/m/together": ("interrupted", 10)}
    assert run.running[1].progress()["done"] == 70
    (folder / "r2" / "status.json").unlink()
    assert run.running[1].progress() == {}
    job.ended()


def test_a_file_of_a_job_that_was_killed_is_that_of_an_interrupted_one(tmp_path):
    """The lock is the kernel's: kill -9 lets it go."""
    log = str(tmp_path / "results/logs/corpora/c.log")
    body = f"from masklab.jobs import underway\njob = underway.Underway('corpus', {{}}, {log!r})\nprint(1, flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{body}\ninput()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    assert underway.read(underway.path_of(log))["active"]
    process.kill()
    process.wait()
    assert not underway.read(underway.path_of(log))["active"]


@pytest.mark.parametrize("has_locks", [True, False], ids=["locks", "NFS"])
def test_a_run_of_others_may_only_be_read(has_locks, tmp_path, monkeypatch):
    log = str(tmp_path / "results/logs/corpora/c.log")
    job, file = underway.Underway("corpus", {"corpus": "c"}, log), underway.path_of(log)

    def open_to_read(path, mode="r", **how):
        if mode != "r":
            raise PermissionError(errno.EACCES, "denied", str(path))
        return open(path, mode, **how)

    def flock_of_nfs(*_):
        raise OSError(errno.EBADF, "opened to read alone")

    monkeypatch.setattr(underway, "open", open_to_read, raising=False)
    if not has_locks:
        monkeypatch.setattr("masklab.jobs.locks.fcntl.flock", flock_of_nfs)
    assert underway.read(file)["active"]
    job.failed("it is full")
    job.file.close()
    assert not underway.read(file)["active"]


def test_on_nfs_a_job_that_runs_is_seen_to_run(begun, tmp_path, monkeypatch):
    """NFS makes of flock a lock on the bytes of a file: a shared one needs a file that is open to read, EBADF else."""
    flock = locks.fcntl.flock

    def flock_of_nfs(file, how):
        mode = fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE
        refused = os.O_WRONLY if how & fcntl.LOCK_SH else os.O_RDONLY if how & fcntl.LOCK_EX else None
        if mode == refused:
            raise OSError(errno.EBADF, "not open for that")
        flock(file, how)

    monkeypatch.setattr(locks.fcntl, "flock", flock_of_nfs)
    job = underway.Underway("corpus", {"corpus": "c"}, "results/logs/corpora/c.log")
    assert [row["is"] for row in status(tmp_path / "results")["jobs"]] == ["running"]
    job.failed("it is full")
    job.file.close()
    assert [row["is"] for row in status(tmp_path / "results")["jobs"]] == ["failed"]


def test_names_of_any_length_fit_in_the_name_of_a_file(tmp_path):
    """Names may have 150 bytes, and a score file lies under two of them."""
    logs = [tmp_path / f"results/logs/scores/{'p' * 150}/{end * 150}/r1/all.log" for end in "ab"]
    jobs = [underway.Underway("probe", {}, str(log)) for log in logs]
    assert jobs[0].path != jobs[1].path and underway.read(underway.path_of(logs[1]))["log"] == str(logs[1])


def test_a_laptop_that_was_closed_over_night_is_no_slower_for_it(begun, tmp_path, monkeypatch):
    """Clocks of the day go on meanwhile, and nothing runs."""
    monkeypatch.setattr(remaining, "EXPECTED", {1: 10.0, 2: 10.0, 3: 10.0})
    run, _ = begun
    run.remaining.began -= 20
    run.begins(1, "pre-training m r1", "pretrain", "results/logs/models/m/r1.log")
    run.begins(2, "probe p", "probe", "results/logs/scores/p.log")
    record = provenance.Record("pretrain", {}, {}, Code.of({}), "results/logs/models/m/r1.log")
    morning = time.time() + 8 * 3600
    monkeypatch.setattr(time, "time", lambda: morning)
    record.finished([])
    run.ends(1)
    run._leave()
    assert json.loads((tmp_path / "results/state/run.json").read_text())["eta_seconds"] < 30
    assert json.loads((tmp_path / "results/made/models/m/r1.json").read_text())["seconds"] < 10


def test_what_is_left_follows_the_plan_and_the_pace_so_far(monkeypatch):
    """Two at once, each job twice as long as planned: what is left takes twice the plan."""
    monkeypatch.setattr(remaining, "JOBS", dict.fromkeys(range(200), "probe"))
    monkeypatch.setattr(remaining, "EXPECTED", dict.fromkeys(range(200), 10.0))
    early, late = remaining.Remaining(time.monotonic() - 20), remaining.Remaining(time.monotonic() - 1000)
    assert early.seconds({}) is None
    for number in range(100):
        late.finished(number, 20.0)
    for number in range(2):
        early.finished(number, 20.0)
    assert early.seconds({}) == pytest.approx(198 * (10 + 10) / 2, rel=0.01)
    assert late.seconds({}) == pytest.approx(100 * 20 / 2, rel=0.01)
    assert late.seconds({150: time.monotonic() - 10}) < late.seconds({})
    assert remaining.Remaining(time.monotonic()).seconds({}) is None, "too early to say"
    monkeypatch.setattr(remaining, "EXPECTED", {})
    assert early.seconds({}) is None and late.seconds({}) == pytest.approx(100 * 20 / 2, rel=0.01), "without a plan"


def test_jobs_that_are_far_shorter_say_nothing_of_long_ones_of_their_rule(monkeypatch):
    """Initial weights, planned to take no time, are made by the rule of pre-training, and took a hundred times that."""
    planned = {number: 0.05 for number in range(5)} | {number: 600.0 for number in range(5, 15)}
    monkeypatch.setattr(remaining, "JOBS", dict.fromkeys(planned, "pretrain"))
    monkeypatch.setattr(remaining, "EXPECTED", planned)
    run = remaining.Remaining(time.monotonic() - 25)
    for number in range(5):
        run.finished(number, 5.0)
    assert run.seconds({}) == pytest.approx(10 * 605, rel=0.01)
    for number in range(5, 8):
        run.finished(number, 1200.0)
    run.began -= 3600
    assert run.seconds({}) == pytest.approx(7 * 1200, rel=0.01), "of jobs as long as these the pace is known"


def test_what_is_left_of_thousands_of_jobs_is_known_at_once(monkeypatch):
    """It is asked for once in a second, while jobs that begin and end wait; the pace is that of a plain sum."""
    count, rng = 6000, random.Random(1)
    planned = {number: rng.choice([0.1, 1.0, 30.0, 500.0]) for number in range(count)}
    monkeypatch.setattr(remaining, "JOBS", {number: ("probe", "pretrain")[number % 2] for number in planned})
    monkeypatch.setattr(remaining, "EXPECTED", planned)
    run = remaining.Remaining(time.monotonic() - 3600)
    for number in range(count // 2):
        run.finished(number, 2 * planned[number] + 1)
    began = time.process_time()
    left = run.seconds({})
    assert time.process_time() - began < 0.5
    monkeypatch.setattr(run, "began", time.monotonic() - sum(run.used.values()))  # one after the other

    @functools.cache
    def pace(first, expected):
        alike = [other for other in range(first, count // 2, 2) if 10 * planned[other] >= expected]
        return sum(run.used[other] for other in alike) / sum(planned[other] for other in alike)

    wanted = sum(pace(number % 2, planned[number]) * planned[number] for number in range(count // 2, count))
    assert left is not None and run.seconds({}) == pytest.approx(wanted, rel=1e-6)


def test_nobody_waits_until_the_plan_is_begun(tmp_path, monkeypatch):
    """Of thousands of jobs the question is longer than a pipe holds, and the process that plans imports torch first."""
    slow = tmp_path / "python"
    slow.write_text("#!/bin/sh\nsleep 3\nexec wc -c\n")
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    for name, value in (("JOBS", {}), ("EXPECTED", {}), ("_asked", None)):
        monkeypatch.setattr(remaining, name, value)
    jobs = {number: ("probe", {"probe": "p", "recipe": f"m{number}"}) for number in range(3000)}
    began = time.monotonic()
    remaining.expect(jobs, {}, "cpu")
    assert time.monotonic() - began < 2
    process, answer = remaining._asked
    process.wait()
    answer.seek(0)
    assert int(answer.read()) == len(json.dumps({"config": {}, "jobs": jobs}))
    answer.close()


def test_another_process_plans_the_jobs():
    from masklab.config import plain, read

    config = plain(read("config.yaml").raw)
    recipe = next(name for name in config["models"] if name == "strict-mlm")
    asked = {"config": config, "jobs": {"7": ("pretrain", {"recipe": recipe, "replicate": "1"})}}
    answer = subprocess.run(
        [sys.executable, "-m", "masklab.plan.seconds", "cpu"],
        input=json.dumps(asked, default=str), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(answer.stdout)["7"] > 0.8
