"""What a job under way leaves for others to see: a small file, locked while it runs, removed when it has succeeded.

Of the job with the log `results/logs/<place>.log` it is `results/state/jobs/<place>.json`, with `~` for each `/` of the
place; of a long place a fingerprint. A file without a lock is of a job that failed (`failed` says why) or that was
killed without a word.
"""

import errno
import json
import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from masklab.files import fingerprint
from masklab.jobs import queued
from masklab.jobs.locks import lock

FOLDER = "state/jobs"
SAID = {"rule", "log", "began", "pid", "host", "slurm_job"}  # at the least
SLACK = 60.0  # seconds by which the clock may have been set since a process spoke
LONGEST = 200  # bytes of such a name; file systems allow 255


def split_log(log) -> tuple[Path, str]:
    """(folder of results, place) of the job with this log."""
    parts = Path(log).with_suffix("").parts
    at = parts.index("logs")
    return Path(*parts[:at]), "/".join(parts[at + 1 :])


def path_of(log) -> Path:
    """The file that the job with this log leaves while it is under way."""
    results, place = split_log(log)
    name = place.replace("/", "~")
    return results / FOLDER / f"{name if len(name.encode()) <= LONGEST else fingerprint(place)}.json"


def read(path) -> dict | None:
    """What a job says of itself; None where there is nothing, or what another version says; `active`: does it run."""
    try:
        with _opened(path) as file:
            said = json.loads(file.read())
            if not isinstance(said, dict) or not said.keys() >= SAID:
                return None
            try:
                active = not lock(file) and _lives(said)
            except OSError:
                active = True
    except (OSError, ValueError):  # it has just ended, or just begun
        return None
    return said | {"active": active}


def _opened(path):
    """For writing, without which NFS locks nothing, or for reading where that is all that one may."""
    try:
        return open(path, "r+", encoding="utf-8")
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
    return open(path, encoding="utf-8")


def _lives(said) -> bool:
    """Whether the process of a job is there, as far as can be known from here: where there are no locks."""
    if "failed" in said:
        return False
    return said["host"] != socket.gethostname() or is_there(said["pid"], said["began"])


def is_there(process: int, spoke: float) -> bool:
    """Whether the process of this host that spoke at a time is there, and no later one that was given its number."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another person's
        pass
    with suppress(OSError, AttributeError, ValueError, IndexError):  # as far as the kernel says when it began
        ticks = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
        booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return booted + ticks / os.sysconf("SC_CLK_TCK") <= spoke + SLACK
    return True


def forget(log) -> None:
    """Remove what is left of a job that failed or was killed: what it was to make is there."""
    path = path_of(log)
    with suppress(OSError), open(path, "r+", encoding="utf-8") as file:
        if lock(file):  # where there are no locks nobody knows whether it runs
            path.unlink(missing_ok=True)


class Underway:
    """The file of this process's job. rule, wildcards: as Snakemake names them; log: the job's."""

    def __init__(self, rule: str, wildcards: dict, log: str):
        self.path = path_of(log)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # to be read too, without which NFS gives no shared lock; locked as long as this process runs
        self.file = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115
        lock(self.file, shared=True, wait=True)  # two of one job may run for a moment, and `state.locked` decides
        self.said = {
            "rule": rule, "wildcards": wildcards, "log": str(log), "began": time.time(), "pid": os.getpid(),
            "host": socket.gethostname(), "slurm_job": queued.own(),
        }  # fmt: skip
        self._write()

    def _write(self):
        self.file.truncate(0)
        self.file.write(json.dumps(self.said))
        self.file.flush()

    def failed(self, why: str, recurs: bool = False) -> None:
        """The job has failed; why: one line, or a traceback; recurs: another attempt would fail in the same way."""
        self.said |= {"failed": why, "recurs": recurs, "ended": time.time()}
        self._write()

    def ended(self) -> None:
        """The job has succeeded."""
        self.path.unlink(missing_ok=True)
        self.file.close()
