"""Which GPU of this machine a job computes on, where nobody has given it one: jobs side by side spread over all.

A job holds a lock on a slot of a GPU until its process ends, however it ends. Slots are filled in turn: nobody shares a
GPU while another one is free. The locks lie in a folder of the machine, so that runs in different folders see each
other's. A job of Slurm's own has its GPUs, and nothing is chosen here.
"""

import contextlib
import os
import tempfile
from pathlib import Path

from masklab.jobs import nvidia
from masklab.jobs.locks import lock
from masklab.jobs.queued import is_own

VISIBLE = "CUDA_VISIBLE_DEVICES"
SLOTS = 64  # jobs on one GPU, at most, that still spread
_held = []  # open files of this process: their locks end with it


def take(count: int = 1) -> None:
    """Have this process, and those that it starts, see `count` GPUs of those that it sees: the least used ones.

    To be called before torch looks for a GPU. Does nothing in a job of Slurm's own, without GPUs, or with fewer than
    `count`.
    """
    if is_own() or _held:
        return
    seen = visible()
    if len(seen) > max(count, 1):
        files, chosen = least_used(seen, count, _folder())
        _held.extend(files)
        os.environ[VISIBLE] = ",".join(chosen)


def hide() -> None:
    """Have this process, and those that it starts, see no GPU: not even a law that nobody tells where to compute."""
    os.environ[VISIBLE] = ""


def visible() -> list[str]:
    """GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; empty without any."""
    given = os.environ.get(VISIBLE)
    if given is not None:
        return [name.strip() for name in given.split(",") if name.strip() and name.strip() != "-1"]
    return nvidia.said("index", timeout=60) or []  # a job that waits for it need not go without


def least_used(gpus: list[str], count: int, folder: Path) -> tuple[list, list[str]]:
    """Lock a slot of each of `count` GPUs: (the open files that hold the locks, the GPUs in the order given).

    Where files cannot be locked, the first `count` of them.
    """
    files, chosen = [], []
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for slot in range(SLOTS):
            for gpu in gpus:
                if gpu not in chosen and len(chosen) < count and (file := _locked(folder / f"{gpu}.{slot}")):
                    files.append(file)
                    chosen.append(gpu)
            if len(chosen) == count:
                break
    chosen += [gpu for gpu in gpus if gpu not in chosen][: count - len(chosen)]
    return files, sorted(chosen, key=gpus.index)


def _locked(path):
    """The file at `path`, open and locked, or None where another process holds it."""
    file = open(path, "a")  # noqa: SIM115 - it stays open as long as the process lives
    try:
        if lock(file):
            return file
    except OSError:
        pass
    file.close()
    return None


def _folder() -> Path:
    """Of this machine's GPUs, or of those of the allocation that a run lies in, which may be numbered anew."""
    parts = "masklab-gpus", str(os.getuid()), os.environ.get("SLURM_JOB_ID")
    return Path(tempfile.gettempdir()) / "-".join(filter(None, parts))
