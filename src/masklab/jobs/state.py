"""Folders of state: locked, tied to the code that began them, removed on success. What lies in them: `saved`.

Random numbers have addresses, so a state is weights, optimiser and step alone. A folder belongs to the code and the
versions of packages that began it (`begin`): a job is never resumed by others.
"""

import contextlib
import logging
import os
import shutil
import time
from pathlib import Path

from masklab.errors import MaskLabError, Passing
from masklab.files import read_json, write_json
from masklab.jobs.code import Code
from masklab.jobs.locks import lock
from masklab.jobs.provenance import versions

log = logging.getLogger("masklab")
LOCK, CODE = "lock", "code"  # files of a folder that outlive its state
BOOKS = (LOCK, CODE, "status.json", "run.json", "stopped.json")  # no work is lost with them
NAMED = 3  # parts of the code that a line names
_begun: dict[str, dict] = {}  # folder -> what the job of this process is made by


@contextlib.contextmanager
def locked(folder):
    """Hold `folder` against a second writer (a job re-submitted while the first still runs).

    What other code left there since this job's `begin` is forgotten. A file system without locks gets a warning.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "w") as file:
        for attempt in range(3):
            try:
                if not lock(file):
                    log.warning("%s: this file system has no locks (flock): nothing stops a second job here", folder)
                break
            except OSError:
                if attempt == 2:
                    raise Passing(f"{folder}: another process is writing here; wait for it or stop it") from None
                time.sleep(0.1)  # it may be `masklab status` looking whether the lock is held
        file.write(str(os.getpid()))
        file.flush()
        if made_by := _begun.get(os.path.abspath(folder)):
            _claim(folder, made_by)
        yield folder


def begin(folder, code: Code) -> None:
    """Forget what other code, or other versions of packages, left in a state folder, and say so in a line.

    A job is resumed by what began it, or begins anew.
    """
    _begun[os.path.abspath(folder)] = {"code": code.modules, "versions": versions()}
    with locked(folder):
        pass


def begin_as(folder, other) -> None:
    """`begin` a folder by what began another, where that is known."""
    if now := made_by(other):
        _begun[os.path.abspath(folder)] = now
        with locked(folder):
            pass


def made_by(folder) -> dict | None:
    """What began the work in a state folder, {"code": part -> fingerprint, "versions"}; None if it does not say."""
    try:
        note = read_json(Path(folder) / CODE)
    except (MaskLabError, OSError):
        return None
    whole = isinstance(note, dict) and all(isinstance(note.get(key), dict) for key in ("code", "versions"))
    return note if whole else None


def _claim(folder, now):
    then = made_by(folder)
    if then == now:
        return
    if any(path.name not in BOOKS for path in folder.iterdir()):
        why = "it does not say by which code" if then is None else _changed(then, now)
        log.warning("%s: unfinished work is not resumed, since %s; it begins anew", folder, why)
    clear(folder)
    write_json(now, folder / CODE)


def _changed(then, now):
    for what, said in (("code", "the code changed"), ("versions", "other versions are installed")):
        keys = {*then[what], *now[what]}
        if names := sorted(key for key in keys if then[what].get(key) != now[what].get(key)):
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            return f"{said} ({', '.join(names[:NAMED])}{more})"


def done(folder) -> None:
    """Forget the state of work that is done. What cannot be removed stays, with a warning: the work is not lost."""
    try:
        clear(folder)
    except OSError as error:
        log.warning("%s: the state of finished work could not be removed (%s)", folder, error.strerror or error)


def clear(folder) -> None:
    """Forget a state folder whose state is another's."""
    for path in Path(folder).iterdir():
        if path.name in (LOCK, CODE):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
