"""What the job that trains several replicates side by side is told of its siblings, by the Snakemake that starts it.

A file per such job in a folder that lives as long as that Snakemake; jobs find it by `VARIABLE`. It is written just
before the job starts, so it names siblings that this very run needs and whose inputs are ready, and nothing else.
"""

import json
import os
from pathlib import Path

from masklab.files import read_json, write_json
from masklab.jobs import saved, temporary

VARIABLE = "MASKLAB_STACKS"
STATE = "state.safetensors"  # in the state folder of a replicate, and in that of several
TOGETHER = "together"  # folder beside those of the replicates: what one of their jobs makes of all of them


def begin() -> None:
    """Make the folder of this Snakemake."""
    os.environ[VARIABLE] = str(temporary.folder("stacks"))


def run() -> str:
    """What tells this run of Snakemake from others; empty outside one."""
    return os.environ.get(VARIABLE, "")


def tell(recipe: str, replicate: int, siblings: list[dict]) -> None:
    """Leave for the job of a replicate what its script is to know of the jobs of its siblings, JSON-able."""
    write_json(siblings, _file(recipe, replicate))


def siblings(recipe: str, replicate: int) -> list[dict]:
    """What `tell` left; empty where nothing was left."""
    file = _file(recipe, replicate) if run() else None
    return read_json(file) if file and file.is_file() else []


def _file(recipe, replicate) -> Path:
    return Path(run()) / recipe / f"r{replicate}.json"


def has_begun(state: Path) -> bool:
    """Whether there is a state at a place, or the one before it."""
    return any(file.is_file() for file in (state, saved.previous(state)))


def replicates(state: Path) -> list[int]:
    """Replicates whose common state lies at a place; none where there is none that can be read."""
    if not has_begun(state):
        return []
    from safetensors import SafetensorError, safe_open

    for file in (state, saved.previous(state)):
        try:
            with safe_open(file, "np") as opened:  # without torch, which would take seconds
                return json.loads(opened.metadata()["facts"])["replicates"]
        except (OSError, SafetensorError, KeyError, TypeError, ValueError):
            continue
    return []


def aside(together: Path, replicate: int) -> Path:
    """Where a replicate's part of a common state is, whose others were gone on with (`masklab.training.apart`)."""
    return Path(together) / "apart" / f"r{replicate}.safetensors"
