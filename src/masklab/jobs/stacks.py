"""What the job that trains several replicates side by side is told of its siblings, by the Snakemake that starts it.

A file per such job in a folder that lives as long as that Snakemake; jobs find it by `VARIABLE`. It is written just
before the job starts, so it names siblings that this very run needs and whose inputs are ready, and nothing else.
"""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from masklab.files import read_json, write_json

VARIABLE = "MASKLAB_STACKS"
TOGETHER = "together"  # folder beside those of the replicates: what one of their jobs makes of all of them


def begin() -> None:
    """Make the folder of this Snakemake."""
    folder = tempfile.mkdtemp(prefix="masklab-stacks-")  # readable by its owner alone
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ[VARIABLE] = folder


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
