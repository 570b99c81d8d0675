"""Progress of long jobs: lines in a log, a bar in a terminal (tqdm's), a status file beside a state.

A log file gets a line now and then, since a bar would write thousands. `masklab status` and the log of a run
(`run_log`) gather the status files. Where a run has such a log, all that its jobs write goes to their files alone.
"""

import contextlib
import logging
import math
import os
import sys
import time
from pathlib import Path

from masklab.files import write_json

log = logging.getLogger("masklab")
_stderr: int | None = None  # where `configure` has taken it away
REDRAW = 0.2  # seconds
REFRESH = 2.0  # seconds between writings of a status file
STATUS = "status.json"
BAR = "{l_bar}{bar}| {n:.0f}/{total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"  # tqdm's own, without fractions
QUIET = "MASKLAB_QUIET"  # in the environment of a run whose log is `run_log`'s: the Slurm job that it runs in, or ""


def configure(file=None, mode: str = "w") -> None:
    """Send our log records and others' warnings to stderr and, if given, to a file. `mode`: `w` anew, `a` add to it.

    In a job of a run with a log of its own stdout and stderr become that file, whoever writes to them.
    """
    handlers = [Terminal()]
    if file and os.environ.get(QUIET) == os.environ.get("SLURM_JOB_ID", ""):
        global _stderr
        with open(file, mode):  # made anew
            pass
        _stderr = os.dup(2)
        with open(file, "a") as opened:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
                os.dup2(opened.fileno(), stream.fileno())
    elif file:
        handlers.append(logging.FileHandler(file, mode=mode))
    logging.raiseExceptions = False  # a log on a full disk is no reason for a traceback at each line
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", level=logging.WARNING, handlers=handlers)
    log.setLevel(logging.INFO)


def cry(line: str) -> None:
    """Write a line to the stderr that this process began with: for what cannot be written to its log."""
    with contextlib.suppress(OSError):
        os.write(2 if _stderr is None else _stderr, f"{line}\n".encode())


class Terminal(logging.StreamHandler):
    """Log lines on stderr, between which a progress bar may stand: a terminal gets no progress lines."""

    def emit(self, record):
        if not self.stream.isatty():
            return super().emit(record)
        if getattr(record, "progress", False):
            return None
        from tqdm import tqdm

        with tqdm.external_write_mode(self.stream):  # bars make room and are drawn again below
            return super().emit(record)


def duration(seconds: float) -> str:
    """`h:mm:ss` of a number of seconds."""
    minutes, second = divmod(max(0, round(seconds)), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"


class Rate:
    """Items per second, averaged over about the last 15 seconds."""

    def __init__(self):
        self.last = time.monotonic()
        self.items = self.seconds = 0.0

    def add(self, items: float, now: float) -> None:
        """Count `items` done between the last call and the time `now` (of `time.monotonic`)."""
        passed, self.last = now - self.last, now
        keep = math.exp(-passed / 15.0)
        self.items, self.seconds = keep * self.items + items, keep * self.seconds + passed

    @property
    def value(self) -> float:
        return self.items / self.seconds if self.seconds else 0.0


class Mean:
    """A running mean in which the last 50 values count most; of fewer, their plain mean."""

    def __init__(self):
        self.count, self.value = 0, 0.0

    def add(self, value: float) -> float:
        """Count a value; returns the mean."""
        self.count += 1
        self.value += (value - self.value) / min(self.count, 50)
        return self.value


class Progress:
    """Callable `progress(done, total)` that tells how far a job is, at little cost per call.

    A line is logged at most every `every` seconds; stderr shows a bar if it is a terminal.

    start: work already done when a resumed job begins, so that the ETA counts only what this process did.
    folder: where `status.json` is kept meanwhile, None: nowhere. silent: say nothing (a process that is not the first).
    """

    def __init__(self, label, unit="items", every=10.0, start: int = 0, folder=None, silent: bool = False):
        self.label, self.unit, self.every, self.start, self.silent = label, unit, every, start, silent
        self.path, self.loss = None if folder is None else Path(folder) / STATUS, Mean()
        self.began = self.logged = self.written = time.monotonic()
        self.terminal = sys.stderr.isatty() and not silent
        self.bar, self.drawn = None, 0.0

    def begin(self, total: int) -> None:
        """Say that the job runs, before its first result."""
        if not self.silent:
            self._status(self.start, total, None, {})

    def __call__(self, done: int, total: int, note: str = "", **facts) -> bool:
        """Report `done` of `total` units; returns whether a line was due (every `every` seconds, and at the end).

        done: with a fraction where a unit takes long. facts: `loss`, `tokens_per_second`, for those jobs that have
        them; `note`: words for the line. What is shown is the mean loss of the last calls: a batch holds sequences of
        about one length, and its own loss says as much about their length as about the model.
        """
        if "loss" in facts:
            facts["loss"] = self.loss.add(facts["loss"])
        now = time.monotonic()
        due = now - self.logged >= self.every or done >= total
        write = due or (self.path is not None and now - self.written >= REFRESH)
        if self.silent or not (write or (self.terminal and now - self.drawn >= REDRAW)):
            return False
        rate = (done - self.start) / max(now - self.began, 1e-9)
        eta = (total - done) / rate if rate > 0 else None
        notes = [note, f"loss {facts['loss']:.4f}" if "loss" in facts else ""]
        if "tokens_per_second" in facts:
            notes.append(f"{facts['tokens_per_second']:,.0f} tokens/s")
        notes = [part for part in notes if part]
        if self.terminal:
            self._draw(done, total, ", ".join(notes))
            self.drawn = now
        if due:
            if "tokens_per_second" not in facts:
                notes.append(f"{rate:,.1f}/s")
            share, left = 100 * done / max(total, 1), "?" if eta is None else duration(eta)
            line = [self.label, f"{int(done):,}/{total:,} {self.unit} ({share:.0f}%)", *notes, f"ETA {left}"]
            log.info("%s", " ".join(line), extra={"progress": True})
            self.logged = now
        if write:
            self._status(done, total, eta, {"rate": rate, **facts})
            self.written = now
        return due

    def _draw(self, done, total, notes):
        if self.bar is None:
            from tqdm import tqdm

            self.bar = tqdm(
                desc=self.label, unit=f" {self.unit}", total=total, initial=self.start, file=sys.stderr,
                dynamic_ncols=True, mininterval=0, smoothing=0, bar_format=BAR,
            )  # fmt: skip
        self.bar.set_postfix_str(notes, refresh=False)
        self.bar.update(done - self.bar.n)
        if done >= total:
            self.bar.close()
            self.bar = None

    def _status(self, done, total, eta, facts):
        if self.path is None:
            return
        said = {"name": self.label, "unit": self.unit, "done": done, "total": total, "eta_seconds": eta, **facts}
        with contextlib.suppress(OSError):  # a full disk: the work goes on
            if done >= total:
                self.path.unlink(missing_ok=True)
            else:
                write_json(said | {"pid": os.getpid(), "time": time.time()}, self.path, lasting=False)
