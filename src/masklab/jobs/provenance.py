"""What an artifact was made from: its resolved config inside it, and a record of the job beside it.

Parquet files carry the config as metadata (`masklab.made_from`), JSON files as `made_from` (or `config`). The record of
the job whose log is `results/logs/<...>.log` is `results/made/<...>.json`: rule, config, code, inputs, host, times.
"""

import contextlib
import functools
import json
import logging
import os
import resource
import socket
import time
from importlib import metadata
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json, sha256, stamp, write_json

KEY = "made_from"
SHARED = ("tokenizer.json", "special_tokens_map.json")  # files whose format is others'
# Whose version may change an artifact. Of figures the versions of matplotlib and pandas are not asked.
PACKAGES = ("masklab", "numpy", "scipy", "scikit-learn", "torch", "transformers", "tokenizers", "numba", "spams-bin")
SMALL = 1_000_000  # bytes; Snakemake's `--max-checksum-file-size`


def versions() -> dict[str, str]:
    """Versions of the packages that do the work."""
    return dict(_installed())


@functools.cache  # 4 ms each
def _installed():
    installed = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            installed[name] = metadata.version(name)
    return installed


def input_mark(path) -> str:
    """What an input is known by, as Snakemake knows it: a small file by its content, a large one by size and time."""
    status = Path(path).stat()
    return sha256(path)[:16] if status.st_size < SMALL else f"{status.st_size} bytes, {status.st_mtime_ns}"


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
            content = read_json(path)
            if not {KEY, "config"} & set(content):
                write_json({**content, KEY: config}, path)


def made_from(path):
    """The config that a Parquet or JSON artifact was made from; None if it does not say."""
    path = Path(path)
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        embedded = (pq.read_schema(path).metadata or {}).get(b"masklab.made_from")
        return None if embedded is None else json.loads(embedded)
    content = read_json(path)
    return content.get(KEY, content.get("config"))


def record_path(log) -> Path:
    """The record of the job with this log."""
    parts = list(Path(log).with_suffix(".json").parts)
    parts[parts.index("logs")] = "made"
    return Path(*parts)


def records(made) -> list[Path]:
    """The records of jobs in a folder `made`, in order. An entry may be called `x.json`, and then a folder is, too."""
    return [path for path in sorted(Path(made).rglob("*.json")) if path.is_file()]


def vouch(log, config, code, inputs) -> None:
    """Record that a person vouches for an artifact as one of today's config, code and inputs (`snakemake --touch`).

    What it was really made from stays in the record. Nothing happens where there is no record, or it says the same. An
    input that was removed since, to make room, stays as it is recorded.
    """
    path = record_path(log)
    if path.is_file():
        record = read_json(path)
        then = record.get("vouched", record)
        known, files = then.get("inputs", {}), list(map(str, inputs))
        marks = {file: known[file] for file in files if file in known}
        marks |= _marks(file for file in files if os.path.exists(file))
        now = json.loads(json.dumps({"config": config, "code": code.modules, "inputs": marks}))
        if any(then.get(key) != value for key, value in now.items()):
            write_json({**record, "vouched": {**now, "time": time.time()}}, path, lasting=False)


def peak() -> int:
    """Most memory that this process or one that it started has had, in MB."""
    kilobytes = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(kilobytes) // (1024 if os.uname().sysname == "Linux" else 1024**2)


def _marks(inputs):
    return {str(path): input_mark(path) for path in inputs}


class Notes(logging.Handler):
    """Keeps what a job logs with `extra={"note": True}`: what the person who runs it should see on the screen."""

    def __init__(self):
        super().__init__()
        self.texts = []
        self.addFilter(lambda record: getattr(record, "note", False))

    def emit(self, record):
        self.texts.append(record.getMessage())


class Record:
    """The record of one job. It holds the job's `notes`, if there are any, for the log of the run.

    Attempts that were stopped count: `seconds` is the time of all attempts at one config with one code.

    code: a `masklab.jobs.code.Code`.
    """

    def __init__(self, rule: str, wildcards: dict, config, code, log: str):
        self.path, self.began = record_path(log), time.monotonic()  # it stands still while a laptop is closed
        self.facts = {"rule": rule, "wildcards": wildcards, "config": config, "code": code.modules}
        self.notes = Notes()
        logging.getLogger("masklab").addHandler(self.notes)
        try:
            before = read_json(self.path)
        except (MaskLabError, OSError):
            before = {}
        same = all(before.get(key) == value for key, value in self.facts.items())
        went_on = same and not before.get("finished", True)
        self.before, self.attempts = (before["seconds"], before["attempts"]) if went_on else (0.0, 0)
        self.made_from = before.get("inputs") if same and before.get("finished") else None

    def stopped(self) -> None:
        """The job ends early; another attempt may follow."""
        self._write(finished=False)

    def finished(self, inputs, **facts) -> None:
        """The job is done. inputs: the files that it read; facts: `taken_from`, where a store had the artifact.

        A cluster may start a job again that has just ended. That one finds its own artifact, and the record stays.
        """
        marks = _marks(inputs)
        if "taken_from" not in facts or self.made_from != marks:
            self._write(finished=True, versions=versions(), inputs=marks, **facts)

    def _write(self, **facts):
        seconds = self.before + time.monotonic() - self.began
        where = {"host": socket.gethostname(), "slurm_job": os.environ.get("SLURM_JOB_ID"), "peak_mb": peak()}
        notes = {"notes": self.notes.texts} if self.notes.texts else {}
        times = {"seconds": seconds, "attempts": self.attempts + 1, "ended": time.time()}
        write_json({**self.facts, **facts, **times, **where, **notes}, self.path, lasting=False)
