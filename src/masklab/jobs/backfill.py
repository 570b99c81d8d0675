"""Putting finished artifacts of a results folder into the store: those made without one, or for another.

Their records say what they were made from. An artifact enters under the key that this gives if its inputs are still
what they were, and its own files were not written since.
"""

import time
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs import store
from masklab.jobs.code import Code
from masklab.jobs.provenance import input_mark, records

SLACK = 60.0  # seconds that clocks of two hosts, or of a host and a file server, may differ


def backfill(results: Path) -> tuple[int, dict[str, int]]:
    """Add what lies in a folder of results, or in runs below it, to the store.

    Returns how many artifacts entered, and why others did not -> how many. OSError: the store cannot be written.
    """
    added, refused = 0, {}
    for root in _roots(results):
        for file in records(root / "made"):
            try:
                found = _found(root, file)
            except OSError:  # another person's file, say
                found = "cannot be read"
            reason = found if isinstance(found, str) else _added(*found)
            if reason is None:
                added += 1
            elif reason:
                refused[reason] = refused.get(reason, 0) + 1
    return added, refused


def _roots(results: Path) -> list[Path]:
    """The folders of runs, which are known by the records of their jobs: `results` itself, and those in it."""
    return [path.parent for path in (results / "made", *sorted(results.glob("*/made"))) if path.is_dir()]


def _found(root, file) -> tuple[store.Entry, Path, list[Path]] | str:
    """(entry, folder, files) of the artifact of a record; or why it is not added ("": it never would be)."""
    try:
        record = read_json(file)
        rule, names = record["rule"], record["wildcards"]
        finished, then = record["finished"], record.get("vouched", record)
        versions = record["versions"] if finished else {}
        made = then.get("time", record["ended"])
        config, code, inputs = then["config"], Code.of(then["code"]), then["inputs"] if finished else {}
    except (MaskLabError, KeyError, TypeError, AttributeError):
        return "no record of this version"
    if rule not in store.RULES:
        return ""
    if not finished:
        return "not finished"
    place = root / file.relative_to(root / "made").with_suffix("")
    outputs = store.declared(rule, place)
    folder, files = store.files_of(rule, outputs)
    if not any(path.is_file() for path in files):
        return "no longer there"
    if not all(path.is_file() for path in outputs):
        return "no longer whole"
    if any(path.stat().st_mtime > made + SLACK for path in files):
        return "written to since it was made"
    if not all(Path(path).exists() and input_mark(path) == mark for path, mark in inputs.items()):
        return "made from something else than lies there now"
    entry = store.entry(rule, names, config, code, list(inputs), versions)
    if entry is None or entry.there:
        return ""
    if not _has_weights(rule, folder):
        return "no longer whole"
    return entry, folder, files


def _added(entry, folder, files) -> str | None:
    """Add an artifact; why it is not, or None if it was added."""
    entry.add(folder, files)
    return None if entry.there else "trained otherwise from a resumption on, as its manifest says"


def _has_weights(rule, folder) -> bool:
    """Whether a model has all weights whose hashes its manifest holds; true of anything else."""
    known = {}
    try:
        if rule == "pretrain":
            known = {f"step-{step}": mark for step, mark in read_json(folder / "manifest.json")["steps"].items()}
        elif rule == "causal_model":
            known = {"model": read_json(folder / "manifest.json")["weights"]}
    except (MaskLabError, KeyError):
        return False
    files = {name: filter(Path.is_file, (folder / name).glob("*")) for name in known}
    return all(mark in map(store.contents, files[name]) for name, mark in known.items())


def described(added: int, refused: dict[str, int], seconds: float) -> str:
    """The outcome in words."""
    lines = [f"{added:,} artifacts added in {seconds:.0f} s"]
    return "\n".join([*lines, *(f"  {count:,} left out: {reason}" for reason, count in sorted(refused.items()))])


def add(results: Path) -> str:
    """`backfill`, with the outcome in words."""
    began = time.monotonic()
    if store.folder() is None:
        raise MaskLabError("there is no store (MASKLAB_STORE=off)")
    if not results.is_dir():
        raise MaskLabError(f"{results}: no such folder")
    if not _roots(results):
        raise MaskLabError(f"{results}: holds no results: no records of jobs (made/), by which artifacts are known")
    try:
        return described(*backfill(results), time.monotonic() - began)
    except OSError as error:
        raise MaskLabError(f"{error.filename or store.folder()}: {error.strerror or error}") from None
