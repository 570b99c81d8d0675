"""The log of a whole run: a line for each job that ends, how far the run is, and what failed, last and in full.

The logger plugin of Snakemake (`snakemake_logger_plugin_masklab`) says what happens; this module says it to a person,
and leaves `results/state/run.json` for `masklab status`.
"""

import os
import re
import shutil
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json, write_json
from masklab.jobs import remaining, underway
from masklab.jobs.progress import REFRESH, STATUS, duration
from masklab.jobs.provenance import record_path
from masklab.jobs.stacks import TOGETHER

RUN = "run.json"
EVERY = 60.0  # seconds between lines that say how far the run is, where no line is drawn in place
REDRAW = 0.5
SOON = 5.0  # seconds after which a failure is said where nothing else happens: the end of a run says it whole
TAIL = 15  # lines of a log that stand in for the message of a job that left none
ROOM = 1 << 16  # bytes of free disk below which a job may have had no room for a word
SUBMISSION = re.compile(r"\n\s*sbatch (call|script):.*", re.S)  # a hundred kilobytes
STOPPED = "stopped by signal"  # what a job says that saved its state and left because it was told to
SLURM = re.compile(r"SLURM-job '\d+' failed, SLURM status is: '(\w+)'.*", re.S)


@dataclass
class Job:
    """A job that has begun. name: its `message:`; log: file, None for a mere target; slurm: id of its Slurm job.

    began: by the clock of the day; clock: by the one that stands still while a laptop is closed.
    """

    name: str
    rule: str
    log: str | None
    began: float
    clock: float
    slurm: str | None = None

    def progress(self) -> dict:
        """What the job itself last said of how far it is."""
        if self.log is not None:
            results, place = underway.split_log(self.log)
            own = results / "state" / place
            with suppress(MaskLabError, OSError):  # an OSError: on NFS it is just being replaced from another host
                return read_json(own / STATUS)
            # no file of its own; a job that has just begun says nothing yet
            with suppress(MaskLabError, OSError, TypeError):
                of_all = read_json(own.parent / TOGETHER / STATUS)
                return of_all if of_all["pid"] == underway.read(underway.path_of(self.log))["pid"] else {}
        return {}

    def record(self) -> dict:
        """What it has written down of itself; nothing where that is an earlier attempt's."""
        with suppress(MaskLabError, OSError, TypeError):
            record = read_json(record_path(self.log))
            return record if record.get("ended", 0) >= self.began - 1 else {}
        return {}

    def why(self, told: str, logs: list[str]) -> str:
        """Why it failed: in its own words, else what Snakemake was told and the end of the last of its logs."""
        said = (underway.read(underway.path_of(self.log)) or {}) if self.log else {}
        if said.get("failed") and said["began"] >= self.began - 1:
            return said["failed"].rstrip()
        told = SLURM.sub(r"Slurm says: \1", SUBMISSION.sub("", told)).strip() or _silent(self.log)
        for log in reversed(logs):
            with suppress(OSError):
                written = Path(log).stat().st_mtime >= self.began - 1  # else by an earlier attempt
                if written and (lines := Path(log).read_text(encoding="utf-8", errors="replace").splitlines()):
                    return told + "".join(f"\n  | {line}" for line in [f"the end of {log}:", *lines[-TAIL:]])
        return told


class RunLog:
    """What a run says on `stream`.

    terminal: the last line is drawn in place. events, progress: whether jobs get lines, whether how far the run is
    gets one (`--quiet`). pid: of Snakemake.
    """

    def __init__(self, stream, terminal: bool, pid: int, events: bool = True, progress: bool = True):
        self.stream, self.terminal, self.pid, self.events, self.progress = stream, terminal, pid, events, progress
        self.began, self.ended = time.time(), None
        self.total = self.done = 0
        self.stats: dict[str, int] = {}
        self.running: dict[int, Job] = {}
        self.failed: dict[int, tuple[Job, str]] = {}
        self.finished: dict[str, int] = {}
        self.said: dict[str, int] = {}
        self.unsaid: list[tuple[float, str]] = []  # failures, each with the time
        self.remaining = remaining.Remaining(time.monotonic())
        self.results = None
        self.lock, self.over = threading.RLock(), threading.Event()
        self.shown, self.left, self.drawn = time.monotonic(), 0.0, False
        self.clock = threading.Thread(target=self._tick, daemon=True)

    # --- what happens ---------------------------------------------------------------

    def starts(self, stats: dict[str, int]) -> None:
        """The run begins; stats: rule -> jobs, mere targets counted."""
        self.stats = {rule: count for rule, count in stats.items() if rule != "total"}

    def begins(self, number: int, name: str, rule: str, log: str | None) -> None:
        with self.lock:
            self._say_failures()
            if not self.clock.is_alive():
                if remaining.JOBS:
                    self.stats = dict(Counter(remaining.JOBS.values()))
                self.total = sum(self.stats.values())
                self.say(f"{self.total:,} jobs to do")
                self.clock.start()
            if log or not remaining.JOBS:
                self.running[number] = Job(name, rule, log, time.time(), time.monotonic())
            if log and self.results is None:
                self.results = underway.split_log(log)[0]

    def submitted(self, number: int, slurm: str) -> None:
        """A job waits in Slurm, as its job `slurm`."""
        with self.lock:
            if number in self.running:
                self.running[number].slurm = slurm

    def ends(self, number: int) -> None:
        with self.lock:
            job = self.running.pop(number, None)
            if job is None:
                return
            self.done += 1
            self.finished[job.rule] = self.finished.get(job.rule, 0) + 1
            seconds = time.monotonic() - job.clock
            self.remaining.finished(number, seconds)
            record = job.record()
            if job.slurm:  # not the time in the queue
                seconds = record.get("seconds", seconds)
            if self.events and job.log:
                width = len(f"{self.total:,}")
                self.say(f"{self.done:>{width},}/{self.total:,}  {job.name}: {_spoken(seconds)}")
            for note in record.get("notes", ()):
                self.say(f"note: {job.name}: {note.removeprefix(f'{job.rule}: ')}")

    def fails(self, number: int, told: str, logs: list[str]) -> None:
        """A job has failed; told: what Snakemake says of it; logs: its own, and where Slurm has written."""
        with self.lock:
            job = self.running.pop(number, None)
            if job is None:
                return
            why = job.why(told, logs)
            self.failed[number] = job, why
            line = in_a_line(why)
            self.said[line] = self.said.get(line, 0) + 1
            if self.said[line] == 1:
                (end,) = ends_of([why])
                self.unsaid.append((time.time(), f"{end}: {job.name}: {line}"))

    def again(self, number: int) -> None:
        """A job that has failed will be tried again."""
        with self.lock:
            self._say_failures()
            job, why = self.failed.pop(number, (None, None))
            if job is not None and self.said[in_a_line(why)] == 1:
                self.say(f"to be tried again: {job.name}")

    def closes(self) -> None:
        """The run is over."""
        self.over.set()
        with self.lock:
            self.ended = time.time()
            self._wipe()
            self._leave()
            took = duration(self.ended - self.began)
            if self.failed:
                ends = ends_of(why for _, why in self.failed.values())
                said = ", ".join(f"{count:,} of {self.total:,} jobs {end}" for end, count in ends.items())
                self._write(f"\n{said}, {self.done:,} are done ({took}):")
                for why, jobs in _by_reason(self.failed.values()).items():
                    first, others = jobs[0], jobs[1:]
                    more = f" and {len(others):,} more that say the same" if others else ""
                    self._write(f"\n{first.name} (rule {first.rule}){more}")
                    self._write("".join(f"  {line}\n" for line in why.splitlines()).rstrip("\n"))
                    if first.log and Path(first.log).exists():
                        self._write(f"  log: {first.log}")
            elif self.done < self.total:
                self._write(f"stopped after {took}: {self.done:,} of {self.total:,} jobs are done")
            else:
                self._write(f"{self.done:,} of {self.total:,} jobs done in {took}")

    # --- how far it is ------------------------------------------------------------------

    def far(self) -> str:
        """How far the run and the jobs that run are, in a line."""
        with self.lock:
            counts = [f"{self.done:,} of {self.total:,} jobs", f"{100 * self.done / max(self.total, 1):.0f}%"]
            ends = ends_of(why for _, why in self.failed.values())
            counts += [f"{count:,} {end}" for end, count in ends.items()]
            left = self.remaining.seconds({number: job.clock for number, job in self.running.items()})
            counts += [f"ETA {duration(left)}"] if left is not None else []
            jobs = sorted((job for job in self.running.values() if job.log), key=lambda job: job.began)
        parts = [" ".join(counts)]
        for job in jobs[:2]:
            said = job.progress()
            share = f" {100 * said['done'] / max(said['total'], 1):.0f}%" if said.get("done") else ""
            loss = f" loss {said['loss']:.3f}" if "loss" in said else ""
            parts.append(f"{job.name}{share}{loss}")
        return " | ".join([*parts, *([f"{len(jobs) - 2} more"] if len(jobs) > 2 else [])])

    def _tick(self):
        while not self.over.wait(REDRAW if self.terminal else 1.0):
            line = self.far() if self.progress else ""
            with self.lock:
                if self.over.is_set():
                    return
                self._say_failures(SOON)
                now = time.monotonic()
                if now - self.left >= REFRESH:
                    self.left = now
                    self._leave()
                if self.terminal:
                    self._wipe()
                    self._put(line[: shutil.get_terminal_size().columns - 1])
                    self.drawn = bool(line)
                elif line and now - self.shown >= EVERY:
                    self.shown = now
                    self.say(line)

    def _say_failures(self, after=0.0):
        """Say those that happened so many seconds ago."""
        while self.unsaid and time.time() - self.unsaid[0][0] >= after:
            self.say(self.unsaid.pop(0)[1])

    def _leave(self):
        """What `masklab status` reads."""
        if self.results is None:
            return
        jobs = [
            {"rule": job.rule, "name": job.name, "log": job.log, "began": job.began, "slurm_job": job.slurm}
            for job in self.running.values() if job.log
        ]  # fmt: skip
        failed = [{"rule": job.rule, "name": job.name, "log": job.log, "why": why} for job, why in self.failed.values()]
        begun = [job.rule for job in self.running.values()] + [job.rule for job, _ in self.failed.values()]
        waiting = {
            rule: left
            for rule, count in self.stats.items()
            if (left := count - self.finished.get(rule, 0) - begun.count(rule)) > 0
        }
        left = self.remaining.seconds({number: job.clock for number, job in self.running.items()})
        said = {
            "pid": self.pid, "host": os.uname().nodename, "began": self.began, "time": time.time(), "ended": self.ended,
            "total": self.total, "done": self.done, "begun": jobs, "failed": failed, "waiting": waiting,
            "eta_seconds": left,
        }  # fmt: skip
        with suppress(OSError):
            write_json(said, self.results / "state" / RUN, lasting=False)

    # --- the stream ------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """A line with the time of day, above the line that is drawn in place."""
        with self.lock:
            self._wipe()
            self._write(f"{time.strftime('%H:%M:%S')}  {text}")

    def _wipe(self):
        if self.drawn:
            self._put("\r\x1b[K")
            self.drawn = False

    def _write(self, text):
        self._put(f"{text}\n")

    def _put(self, text):
        with suppress(OSError, ValueError):  # a full disk, a terminal that is gone: the run and its clock go on
            self.stream.write(text)
            self.stream.flush()


def _silent(log) -> str:
    """What to say of a job that left no word: it was killed, or the disk had no room for any."""
    with suppress(OSError, TypeError):
        disk = os.statvfs(Path(log).parent)
        if disk.f_bavail * disk.f_frsize < ROOM:
            return "it could not say why: the disk of the results is full"
    return "it was killed without a word"


def in_a_line(why: str) -> str:
    """A failure in one line: its message; of one of several lines, as CUDA's are, the first."""
    lines = why.splitlines()
    if why.startswith("Traceback"):
        last = max((number for number, line in enumerate(lines) if line.startswith("  File ")), default=0)
        return next((line for line in lines[last + 1 :] if line and line[0] != " "), lines[-1])
    return lines[0]


def ends_of(reasons) -> dict[str, int]:
    """How many jobs failed, and how many were interrupted, by why each of them ended; neither: not there."""
    return dict(sorted(Counter("interrupted" if STOPPED in why else "failed" for why in reasons).items()))


def _by_reason(failed) -> dict[str, list[Job]]:
    found = {}
    for job, why in failed:
        found.setdefault(why, []).append(job)
    return found


def _spoken(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 100 else duration(seconds)
