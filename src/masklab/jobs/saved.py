"""A state that can be trusted: checksummed, written through to the disk, with the one before it kept beside it.

`load` gives the newest state that is whole and made of the same; what it cannot use it says in one line, and then a job
goes on from the state before or begins anew. Nobody has to remove a file.
"""

import hashlib
import json
import logging
import os
from dataclasses import dataclass, field
from pathlib import Path

from masklab.files import atomic, temporary_name
from masklab.jobs.changes import changes, shown
from masklab.jobs.lacking import passes

log = logging.getLogger("masklab")


@dataclass
class Saved:
    """facts: JSON-able; tensors: name -> torch tensor, perhaps a window on the file."""

    facts: dict
    tensors: dict = field(default_factory=dict)


def previous(path) -> Path:
    """Where the state before that at `path` is kept."""
    path = Path(path)
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def save(path, tensors: dict, made_of: dict, before: bool = True, **facts) -> None:
    """Keep tensors by name, with `facts` and what they were `made_of` (both JSON-able), at `path`.

    before: the state that was there is kept as `previous(path)`. OSError: it cannot be written (a full disk); what was
    there is left.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps({"made_of": made_of, **facts})
    try:
        with atomic(path) as temporary:
            save_file(tensors, temporary, {"facts": text, "sha256": _digest(text, tensors)})
            if before and os.path.exists(path):
                _keep_before(path)
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from None


def _keep_before(path):
    """Give the state at `path` its second name; where links can be made it is there all the while."""
    second = temporary_name(previous(path))
    try:
        os.link(path, second)
        os.replace(second, previous(path))
    except OSError:
        os.replace(path, previous(path))


def attempt(path, tensors: dict, made_of: dict, before: bool = True, **facts) -> bool:
    """`save`, where that it cannot be written (a full disk) is a warning and the work goes on; whether it could."""
    try:
        save(path, tensors, made_of, before, **facts)
    except OSError as error:
        log.warning("%s: the state could not be written (%s); the work goes on", path, error)
        return False
    return True


def load(path, made_of: dict, usable=None) -> Saved | None:
    """The newest state at `path` that is whole and was made of the same; None, and a line why, if there is none.

    usable(facts): None, or why a state cannot be gone on from. An error that is the machine's (memory, rights, open
    files) is raised as it is: the state may be whole.
    """
    made_of, faults = json.loads(json.dumps(made_of)), []
    for file in (Path(path), previous(path)):
        if not file.exists():
            continue
        saved, fault = _read(file)
        if saved is not None:
            fault = difference(saved.facts["made_of"], made_of)
            fault = f"another config or input ({fault})" if fault else usable and usable(saved.facts)
        if not fault:
            if faults:
                log.warning("%s; going on from the state before it", "; ".join(faults))
            return saved
        faults.append(f"{file}: {fault}")
    if faults:
        log.warning("%s; beginning anew", "; ".join(faults))
    return None


def _read(path) -> tuple[Saved | None, str]:
    """(the state, "") or (None, what is wrong with the file)."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
        if metadata["sha256"] != _digest(metadata["facts"], tensors):
            return None, "its checksum is wrong"
        return Saved(json.loads(metadata["facts"]), tensors), ""
    except (SafetensorError, OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        if passes(error):  # taken for broken it would be thrown away
            raise
        return None, f"not a whole state ({' '.join(str(error).split()) or type(error).__name__})"


def _digest(text: str, tensors: dict) -> str:
    import torch

    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\0{name} {tensor.dtype} {list(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def difference(then, now) -> str | None:
    """`key: old value before, new value now` of the first difference of two JSON-able values, or None."""
    return next((f"{key}: {shown(old)} before, {shown(new)} now" for key, old, new in changes(then, now)), None)


# --- texts -------------------------------------------------------------------------


def keep(text: str, path) -> None:
    """Keep a text at `path` against kills and losses of power, behind a line with its checksum."""
    with atomic(path) as temporary:
        temporary.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}", encoding="utf-8")


def kept(path) -> str | None:
    """What `keep` wrote, None if nothing is there or, with a line, if it is broken."""
    try:
        data = Path(path).read_bytes()
    except OSError:
        return None
    digest, _, body = data.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        log.warning("%s: not a whole record of finished work; that part is done again", path)
        return None
    return body.decode("utf-8")
