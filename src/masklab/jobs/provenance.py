"""What an artifact was made from: its resolved config inside it, and a record of the job beside it.

Parquet files carry the config as metadata (`masklab.made_from`), JSON files as `made_from` (or `config`). The record of
the job whose log is `results/logs/<...>.log` is `results/made/<...>.json`: rule, config, code, host, times.
"""

import contextlib
import json
import os
import socket
import time
from importlib import metadata
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import fingerprint, read_json, sha256, stamp, write_json

KEY = "made_from"
SHARED = ("tokenizer.json", "special_tokens_map.json")  # files whose format is others'
PACKAGES = ("masklab", "numpy", "torch", "tokenizers", "numba")  # whose version may change an artifact


def versions() -> dict[str, str]:
    """Versions of the packages that do the work."""
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def code_fingerprint(files) -> str:
    """Of source files by their content, whatever folder the checkout lies in."""
    return fingerprint(sorted(sha256(file) for file in files))


@contextlib.contextmanager
def stamped(config):
    """Meanwhile every Parquet file that this process writes carries `config`."""
    stamp(config)
    try:
        yield
    finally:
        stamp(None)


def embed(outputs, config) -> None:
    """Add the config to those JSON files of `outputs` that do not hold it."""
    for path in map(Path, outputs):
        if path.suffix == ".json" and path.name not in SHARED:
            found = read_json(path)
            if not {KEY, "config"} & set(found):
                write_json({**found, KEY: config}, path)


def made_from(path):
    """The config that a Parquet or JSON artifact was made from; None if it does not say."""
    path = Path(path)
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        found = (pq.read_schema(path).metadata or {}).get(b"masklab.made_from")
        return None if found is None else json.loads(found)
    found = read_json(path)
    return found.get(KEY, found.get("config"))


class Record:
    """The record of one job. Attempts that were stopped count: `seconds` is the time of all attempts at one config."""

    def __init__(self, rule: str, wildcards: dict, config, log: str):
        parts = list(Path(log).with_suffix(".json").parts)
        parts[parts.index("logs")] = "made"
        self.path, self.began = Path(*parts), time.time()
        self.facts = {"rule": rule, "wildcards": wildcards, "config": config}
        try:
            before = read_json(self.path)
        except MaskLabError:
            before = {}
        same = not before.get("finished", True) and all(before.get(key) == value for key, value in self.facts.items())
        self.before, self.attempts = (before["seconds"], before["attempts"]) if same else (0.0, 0)

    def stopped(self) -> None:
        """The job ends early; another attempt may follow."""
        self._write(finished=False)

    def finished(self, code) -> None:
        """The job is done. code: the source files that it ran."""
        self._write(finished=True, code=code_fingerprint(code), versions=versions())

    def taken(self, path) -> None:
        """The artifact was found in a store."""
        self._write(finished=True, taken_from=str(path))

    def _write(self, **facts):
        now = time.time()
        seconds = self.before + now - self.began
        where = {"host": socket.gethostname(), "slurm_job": os.environ.get("SLURM_JOB_ID")}
        write_json(
            {**self.facts, **facts, "seconds": seconds, "attempts": self.attempts + 1, "ended": now, **where}, self.path
        )
