"""Folders that live as long as the process that made them; what processes that were killed left is removed.

Each holds a file that its process keeps locked, so that the next process to make such a folder knows which of the
others nobody will remove any more.
"""

import atexit
import shutil
import tempfile
from pathlib import Path

from masklab.jobs.locks import holder_ended, lock

PREFIX = "masklab-"
HELD = "held"  # the file; it is locked before it gets this name
_held = []  # this process's own, open


def folder(purpose: str) -> Path:
    """Make a folder, readable by its owner alone, which is removed when this process ends."""
    _sweep()
    made = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    file = open(made / ".held", "w")  # noqa: SIM115 - locked as long as this process runs
    _held.append(file)
    if lock(file):  # where there are no locks, a folder that is left stays
        (made / ".held").rename(made / HELD)
    return made


def _sweep() -> None:
    """Remove the folders of processes that have ended without doing so."""
    for file in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{HELD}"):
        if holder_ended(file):  # and is not another user's
            shutil.rmtree(file.parent, ignore_errors=True)
