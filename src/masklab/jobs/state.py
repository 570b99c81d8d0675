"""State that survives kill -9: locked, fingerprinted, written atomically, removed on success.

Random numbers have addresses, so a state is weights, optimiser and step alone. A folder of state belongs to the code
that began it (`begin`).
"""

import contextlib
import fcntl
import json
import logging
import os
import shutil
import time
from pathlib import Path

from masklab.errors import Passing
from masklab.files import atomic

log = logging.getLogger("masklab")
LOCK, CODE = "lock", "code"  # files of a folder that outlive its state


@contextlib.contextmanager
def locked(folder):
    """Hold `folder` against a second writer (a job re-submitted while the first still runs)."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "w") as file:
        for attempt in range(3):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if attempt == 2:
                    raise Passing(f"{folder}: another process is writing here; wait for it or stop it") from None
                time.sleep(0.1)  # it may be `masklab status` looking whether the lock is held
        file.write(str(os.getpid()))
        file.flush()
        yield folder


def begin(folder, code: str) -> None:
    """Forget what other code left in a state folder: a job is resumed by the code that began it, or begins anew."""
    with locked(folder) as folder:
        path = folder / CODE
        if not path.is_file() or path.read_text() != code:
            clear(folder)
            with atomic(path) as temporary:
                temporary.write_text(code)


def save(path, tensors: dict, **facts) -> None:
    """Tensors by name as safetensors, with `facts` (JSON-able) as the file's metadata."""
    from safetensors.torch import save_file

    with atomic(path) as temporary:
        save_file(
            {name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, {"facts": json.dumps(facts)}
        )


def facts(path, fingerprint: str) -> dict | None:
    """Facts of a saved state that belongs to `fingerprint`; None if there is none or it is another's."""
    if not Path(path).exists():
        return None
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()["facts"])
    return facts if facts["fingerprint"] == fingerprint else None


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
