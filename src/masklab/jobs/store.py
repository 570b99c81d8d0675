"""A folder that checkouts and people share: an artifact with the same config, code, inputs and name is made once.

MASKLAB_STORE=<folder> turns it on. The key of an artifact is a fingerprint of its rule, the names of its instances and
its resolved config, the code it is made by (`masklab.jobs.code`), the versions of the packages that do the work, and
the content of its inputs; so other code or another config never finds it. A file enters as a hard link (a copy, across
file systems), read-only, and leaves as a symbolic link. Snakemake's own between-workflow cache would not do: it holds
declared outputs only, and a model's checkpoints must not be declared (Snakemake removes those of a stopped job before
it resumes).
"""

import contextlib
import os
import re
import shutil
import stat
import uuid
from pathlib import Path

from masklab.files import fingerprint, sha256
from masklab.jobs.provenance import versions

VARIABLE = "MASKLAB_STORE"
# What is worth keeping, each in a folder of its own. Scores, figures and tables are cheap or personal.
RULES = ("corpus", "tokenizer", "tokens", "embeddings", "pretrain", "dictionary", "codes", "task",
         "causal_model", "conditionals")  # fmt: skip
REPLICATE = re.compile(r"r\d+")  # a folder beside what all replicates share: an artifact of its own


def entry(snakemake) -> "Entry | None":
    """Entry of the store for a job; None where no store is set or its rule has none.

    snakemake: with `rule`, `wildcards`, `params` (`config`, `code`), `input`, `output`, as in a script.
    """
    folder = os.environ.get(VARIABLE)
    if not folder or snakemake.rule not in RULES:
        return None
    inputs = dict(snakemake.input.items())
    read = [contents(Path(file), name) for name, files in inputs.items() for file in _listed(files)]
    key = fingerprint(
        {
            "rule": snakemake.rule,
            "wildcards": dict(snakemake.wildcards),
            "config": snakemake.params.config,
            "code": snakemake.params.code,
            "versions": versions(),
            "inputs": sorted(read),
        }
    )
    return Entry(Path(folder) / snakemake.rule / key, Path(snakemake.output[0]).parent)


def _listed(value):
    return [value] if isinstance(value, str) else list(value)


def contents(path: Path, name: str) -> str:
    """Fingerprint of the input `name` of a job.

    A user's file (`sources`) counts by its bytes; a model by its manifest, which holds the hashes of its checkpoints;
    anything else by the whole folder, since an input stands for the files beside it.
    """
    if name == "sources" or path.name == "manifest.json":
        return sha256(path)
    return fingerprint(sorted((file.name, sha256(file)) for file in path.parent.iterdir() if file.is_file()))


class Entry:
    """One artifact of the store: `path` there, `folder` here."""

    def __init__(self, path: Path, folder: Path):
        self.path, self.folder = path.absolute(), folder

    def fetch(self) -> bool:
        """Make `folder` a folder of links to the files in the store, if they are there."""
        if not self.path.is_dir():
            return False
        for old in self.folder.glob("step-*"):  # checkpoints of another config
            shutil.rmtree(old)
        for file in sorted(self.path.rglob("*")):
            if file.is_file():
                place = self.folder / file.relative_to(self.path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.unlink(missing_ok=True)
                place.symlink_to(file)
        return True

    def add(self) -> None:
        """Keep all files of `folder` or none, but not hidden ones or replicates; an entry that exists stays."""
        if self.path.exists():
            return
        temporary = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}")
        try:
            for file in sorted(self.folder.rglob("*")):
                inside = file.relative_to(self.folder)
                if file.is_file() and not file.name.startswith(".") and not REPLICATE.fullmatch(inside.parts[0]):
                    _keep(file.resolve(), temporary / inside)
            with contextlib.suppress(OSError):  # someone else was faster
                os.rename(temporary, self.path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def _keep(file: Path, place: Path):
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, place)
    except OSError:  # another file system, or another's file
        shutil.copy2(file, place)
    os.chmod(place, stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
