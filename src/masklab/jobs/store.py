"""The store: whatever two runs have in common is made once.

It lies in `.masklab/store` beside `results/`; MASKLAB_STORE=<folder> names another, which people and checkouts can
share, MASKLAB_STORE=off none. An artifact enters when its job is done and leaves before any job starts (`plan.reuse`),
or when a job with its key would begin. The key is a fingerprint of the rule, the names of its instances and its
resolved config, the code it is made by (`masklab.jobs.code`), the versions of the packages that do the work, and the
content of its inputs with their names (a user's file may be read by its name); so other code or another config never
finds it.

Files enter and leave as hard links, or as copies where links cannot be made. Small ones leave as copies: somebody may
write into a table. They are not made read-only, since Snakemake refuses to make a write-protected output again; the
listing of an entry has its hashes instead. Snakemake's own between-workflow cache would not do: it holds declared
outputs only, and a model's checkpoints must not be declared (Snakemake removes those of a stopped job before it
resumes).
"""

import contextlib
import functools
import logging
import math
import os
import re
import shutil
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import fingerprint, read_json, settle, sha256, temporary_name, write_json
from masklab.jobs.provenance import SMALL, versions

log = logging.getLogger("masklab")
VARIABLE, DEFAULT, OFF = "MASKLAB_STORE", ".masklab/store", "off"
ANEW = "MASKLAB_ANEW"  # set where somebody asks for work to be done again (snakemake --forcerun): nothing is taken
ARRAYS = tuple(f"{split}.{kind}.npy" for split in ("train", "valid", "test") for kind in ("ids", "offsets"))
CODES = ("codes.json", "train.indptr.npy", "train.indices.npy", "train.values.npy")
# Rules whose artifact is all that lies in a folder, with the files of it that they declare, and rules whose artifact is
# a few files of one. What gathers a whole run in one table is quick to make and the same in no two runs.
FOLDERS = {
    "corpus": ("train.parquet", "valid.parquet", "test.parquet"),
    "tokenizer": ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    "tokens": ("meta.json", *ARRAYS),
    "embeddings": ("embeddings.json", "vectors.npy"),
    "pretrain": ("manifest.json", "metrics.parquet"),
    "dictionary": ("dictionary.json", "dictionary.safetensors"),
    "codes": CODES,
    "masked_codes": (*CODES, "train.positions.npy"),
    "task": ("task.json", "test.parquet"),
    "causal_model": ("manifest.json",),
    "conditionals": ("conditionals.json", "rows.npy", "columns.npy", "entropies.npy", "probabilities.npy"),
}
WRITTEN = (".csv", ".parquet", ".md", ".html")
FILES = {"probe": (".parquet", ".items.parquet"), "figure": (".pdf", ".png", ".parquet", ".csv"),
         "table": WRITTEN, "study_claims": WRITTEN}  # fmt: skip
RULES = (*FOLDERS, *FILES)
REPLICATE = re.compile(r"r\d+")  # a folder beside what all replicates share: an artifact of its own
LISTING, ASIDE = "entry.json", ".aside"
CHANGED = "changed_under_way"  # in the manifest of a model: how it was trained, and how from a resumption on
COPIED = 1 << 16  # bytes below which a file leaves as a copy


def folder() -> Path | None:
    """The store's folder, or None where MASKLAB_STORE turns it off."""
    named = os.environ.get(VARIABLE) or DEFAULT
    return None if named == OFF else Path(named)


def contents(file) -> str:
    """Hash of an input: of its bytes, and so of the files that it stands for, whose hashes it holds."""
    return _digest(os.path.abspath(file), *_age(file))


def _age(file):
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns


@functools.lru_cache(maxsize=100_000)
def _digest(path: str, size: int, time_ns: int) -> str:
    """SHA-256 of a file of this size and time of change, read once."""
    return sha256(path)


def entry(rule: str, names: dict, config, code: str, inputs, packages=None, hashed=contents) -> "Entry | None":
    """Entry of the store for a job; None where there is no store or its rule has none.

    inputs: the files that it reads, in any order; packages: versions of those that made it, today's by default;
    hashed: file -> its content's hash. OSError: an input is gone.
    """
    place = folder()
    if place is None or rule not in RULES:
        return None
    key = fingerprint(
        {
            "rule": rule,
            "wildcards": names,
            "config": config,
            "code": str(code),
            "versions": versions() if packages is None else packages,
            "inputs": [[Path(file).name, hashed(file)] for file in sorted({str(file) for file in inputs})],
        }
    )
    return Entry(place / rule / key)


class Entry:
    """One artifact of the store: `files/` below `path`, and a listing of them with sizes, times and hashes."""

    def __init__(self, path: Path):
        self.path = path.absolute()

    def listing(self) -> dict[str, dict] | None:
        """File -> {"size", "time", "sha256"}; None if there is no such entry."""
        try:
            return read_json(self.path / LISTING)["files"]
        except (MaskLabError, OSError, KeyError, TypeError):
            return None

    @property
    def there(self) -> bool:
        return os.path.isfile(self.path / LISTING)  # Path.is_file raises where a store cannot be read

    def add(self, folder: Path, files) -> None:
        """Keep `files`, which lie in `folder`, all or none; an entry that exists stays. OSError: it could not be.

        A model whose training changed under way is not what others would get from its config and does not enter.
        """
        if self.there or _changed_under_way(folder / "manifest.json"):
            return
        temporary = aside(self.path)
        try:
            listed = {}
            for file in sorted(files):
                inside = file.relative_to(folder).as_posix()
                share(file.resolve(), temporary / "files" / inside)
                status = os.stat(temporary / "files" / inside)
                marks = {"size": status.st_size, "time": status.st_mtime_ns}
                listed[inside] = marks | {"sha256": sha256(temporary / "files" / inside)}
            write_json({"files": listed}, temporary / LISTING)
            if self.path.exists():  # its listing is gone
                shutil.rmtree(self.path, ignore_errors=True)
            with contextlib.suppress(OSError):  # someone else was faster
                os.rename(temporary, self.path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def fetch(self, folder: Path, newest_input: float = 0.0) -> list[Path]:
        """Link the entry's files into `folder`; the files there, none if the entry is not whole or gone.

        Files beside are left alone but for checkpoints and shards of another config. newest_input: time of the newest
        input that Snakemake knows by its time; a file above all folders that is older is copied and so becomes newer.
        """
        listed = self.listing()
        if not listed or not self._whole(listed):
            return []
        inside = {name.partition("/")[0] for name in listed}
        for old in folder.glob("step-*"):
            if old.is_dir() and "manifest.json" in inside:
                shutil.rmtree(old)
        for old in folder.glob("*.npy") if self.path.parent.name == "tokens" else ():
            if old.name not in inside:
                old.unlink()  # a shard more than there are now would be read as one of them
        for name in sorted(listed, key=lambda name: (name.count("/") == 0, name.endswith(".json"), name)):
            marks = listed[name]
            too_old = "/" not in name and marks["time"] < newest_input * 1e9
            share(self.path / "files" / name, folder / name, marks["size"] < COPIED or too_old, keep_time=not too_old)
        with contextlib.suppress(OSError):
            os.utime(self.path / LISTING)  # when it was last of use
        return [folder / name for name in listed]

    def _whole(self, listed) -> bool:
        """Whether the files are those that entered; one that somebody wrote into takes the entry down."""
        try:
            for name, marks in listed.items():
                file = self.path / "files" / name
                size, changed = _age(file)
                if size != marks["size"] or (changed != marks["time"] and sha256(file) != marks["sha256"]):
                    log.warning("%s: changed since it entered the store; it is made anew", file)
                    shutil.rmtree(self.path, ignore_errors=True)
                    return False
        except OSError:  # being removed just now
            return False
        return True


def aside(path: Path) -> Path:
    """Where an entry lies that is just entering or leaving: a folder beside all entries of its rule.

    Whoever asks for a temporary name has the folder searched for what others left, and of entries there are thousands.
    """
    folder = path.parent / ASIDE
    folder.mkdir(parents=True, exist_ok=True)
    return temporary_name(folder / path.name)


def _changed_under_way(manifest) -> bool:
    try:
        return CHANGED in read_json(manifest)
    except MaskLabError:  # there is none: it is no model
        return False


def files_of(rule: str, outputs) -> tuple[Path, list[Path]]:
    """(folder, files) of a finished job's artifact: its outputs, and what else lies there where the folder is its own.

    Hidden files and folders are half-written, and replicates are artifacts of their own.
    """
    outputs = [Path(file) for file in outputs]
    place = outputs[0].parent
    if rule in FILES:
        return place, outputs
    files, found = [], list(place.rglob("*"))
    found += [file for link in found if link.is_symlink() and link.is_dir() for file in link.rglob("*")]
    for file in sorted(found):
        parts = file.relative_to(place).parts
        hidden = any(part.startswith(".") for part in parts)
        if file.is_file() and not hidden and not (len(parts) > 1 and REPLICATE.fullmatch(parts[0])):
            files.append(file)
    return place, files


def declared(rule: str, place) -> list[Path]:
    """Files that a rule of the store declares of the artifact at a place."""
    if rule in FOLDERS:
        return [Path(place, name) for name in FOLDERS[rule]]
    return [Path(f"{place}{end}") for end in FILES[rule]]


def newest(inputs) -> float:
    """Time of the newest of those inputs that are too large for Snakemake to compare by content, 0 if there is none."""
    large = [os.stat(file) for file in inputs]
    return max((status.st_mtime for status in large if status.st_size >= SMALL), default=0.0)


def publish(entry: Entry | None, rule: str, outputs) -> None:
    """Keep the artifact of a finished job. What goes wrong is a warning: the artifact itself lies in its place."""
    if entry is None:
        return
    try:
        entry.add(*files_of(rule, outputs))
    except Exception as error:  # full, read-only, gone: the work is done all the same
        log.warning("%s: not kept in the store (%s)", entry.path, _reason(error))


def take(entry: Entry | None, outputs, inputs, again: bool = False) -> list[Path]:
    """Put an artifact of the store in its place, instead of making it; its files, none where it is not there, whole.

    again: whether there was one here before, perhaps of other content: what was made from that must see newer files.
    What goes wrong with the store is a warning.
    """
    if entry is None or not entry.there or os.environ.get(ANEW):
        return []
    try:
        fetched = entry.fetch(Path(outputs[0]).parent, math.inf if again else newest(inputs))
        settle(*fetched, *{file.parent for file in fetched})
    except Exception as error:
        log.warning("%s: could not be taken from the store (%s)", entry.path, _reason(error))
        return []
    return fetched if all(map(os.path.isfile, outputs)) else []


def _reason(error) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def share(file: Path, place: Path, copy: bool = False, keep_time: bool = True):
    """Make `place` a link to `file`, or a copy where asked or on another file system, in one step."""
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(place)
    try:
        if copy or not _linked(file, temporary):
            shutil.copyfile(file, temporary)
            if keep_time:
                status = os.stat(file)
                os.utime(temporary, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.replace(temporary, place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _linked(file, place) -> bool:
    with contextlib.suppress(OSError):  # another file system, or another person's file
        os.link(file, place)
        return True
    return False
