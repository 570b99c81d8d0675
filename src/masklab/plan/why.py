"""Why an artifact would be made again: how today differs from the record of its job, and of those of its inputs."""

import contextlib
import json
import os
import time
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs.changes import changes, shown
from masklab.jobs.progress import duration
from masklab.jobs.provenance import input_mark, versions
from masklab.plan.graph import Job, instead, named

CAUSES = 6  # jobs whose differences are told
NAMED = 4  # differences of one kind that are named
# Keys of a record that are asked for here.
ASKED = {"finished", "config", "code", "ended", "host", "seconds", "attempts"}
OF_FINISHED = {"inputs", "versions"}
KNOWN_BY = ("manifest.json", "task.json", "meta.json")  # what folders of results are known by


def why(paths, asked: str) -> str:
    """The answer in words, at most a page; `asked`: a file or folder of the results, or a target by its name.

    Raises:
        MaskLabError: no rule makes it, the config does not declare what it is made from, or another run made it.
    """
    if not asked:
        raise MaskLabError("why: no file is named; give one of the results, or a target such as mlsm_figure3")
    targets = named(paths)
    said, files = (asked, targets[asked]) if asked in targets else _files(paths, asked, targets)
    records = _Records(paths)
    try:
        first = {records.maker(file).key: file for file in reversed(files)}  # job -> its first file
        made = [*reversed(first.values())]
        return _answer(made[0] if len(made) == 1 else said, made, records)
    except KeyError as error:
        raise MaskLabError(f"{said}: {error.args[0]!r} is not declared in this config") from None


def _files(paths, asked, targets) -> tuple[str, list[str]]:
    """A file or folder as it is called in results, and the file that it is known by."""
    path = _from_here(asked)
    if "/" not in path and not Path(path).exists():
        raise MaskLabError(f"{asked}: no rule makes it{instead(paths, asked, targets)}")
    _check_run(paths, path)
    path = _inside(path) if Path(path).is_dir() else path
    return path, [path]


def _from_here(asked) -> str:
    """A path as rules have it, from the current folder; a link may lead to that folder, and `results` may be one."""
    path = os.path.relpath(asked)
    if path.startswith(os.pardir):
        whole = Path(asked).absolute()
        for above in (whole, *whole.parents):
            for here in (Path(), Path("results")):
                with contextlib.suppress(OSError):  # one of them is not there
                    if above.samefile(here):
                        return str(here / whole.relative_to(above))
    return path


def _check_run(paths, path) -> None:
    """MaskLabError for a file of another run than the config's."""
    root, *below = Path(path).parts
    if root != "results" or (paths.config.run and below[:1] == [paths.config.run]):
        return
    run = below[0] if len(below) > 1 and Path(root, below[0], "made").is_dir() else ""
    if run != paths.config.run:
        other = f"results/{run}" if run else "results/ itself"
        raise MaskLabError(f"{path}: another run made it, that of {other}; name its config: --configfile <its files>")


def _inside(folder) -> str:
    """The file that a folder of results is known by; of another, such as a checkpoint's, any file in it."""
    listed = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    there = [name for name in (*KNOWN_BY, *listed) if Path(folder, name).is_file()]
    return f"{folder}/{(there or KNOWN_BY)[0]}"


def _answer(asked, files, records):
    stale = [file for file in files if records.is_stale(file)]
    if not stale:
        return "\n".join([f"{asked}: made from this very input, nothing to do", *_of_one(files, records)])
    changed, unmade = _causes(stale, records)
    lines = [f"{asked}: {_how(stale, files, records)}"]
    for file, users in changed[:CAUSES]:
        lines += ["", records.made_when(records.maker(file))]
        lines += [f"  {kind:9}{text}" for kind, text in records.differences(file)]
        if users:
            lines.append(f"  {'needed by':9} {', '.join(users)}")
    lines += _more(changed, CAUSES, "jobs below it were made from something else")
    if unmade:
        lines += ["", f"never made: {'; '.join(unmade[:NAMED])}", *_more(unmade, NAMED, "jobs")]
    return "\n".join(lines)


def _of_one(files, records):
    """When the one artifact that is asked for was made, and by what versions; of several nothing."""
    if len(files) > 1:
        return []
    versions = [f"  {kind:9}{text}" for kind, text in records.differences(files[0])]
    return [f"  {records.made_when(records.maker(files[0]))}", *versions]


def _how(stale, files, records) -> str:
    """How it stands with artifacts of which some, or the one, are to be made."""
    if len(files) > 1:
        return f"{len(stale)} of {len(files)} artifacts to be made, or made again"
    there = Path(stale[0]).exists()
    return "to be made again" if there else "not there" if records.record(records.maker(stale[0])) else "never made"


def _causes(stale, records):
    """The jobs at and below stale files that are not as their records say, nearest first.

    Returns [(a file of the job, who needs it, up to the first)] of those that were made, and names of those never made.
    """
    changed, unmade, waiting, seen = [], [], [(file, []) for file in stale], set()
    while waiting:
        file, users = waiting.pop(0)
        job = records.maker(file)
        if job.key in seen:
            continue
        seen.add(job.key)
        if not records.record(job) and not Path(file).exists():
            unmade.append(words(job))
        elif records.differs(file):
            changed.append((file, users))
        waiting += [(other, [words(job), *users]) for other in records.artifacts(job) if records.is_stale(other)]
    return changed, unmade


def words(job) -> str:
    """A job by its rule and names."""
    return " ".join([job.rule, *(f"r{name}" if key == "replicate" else name for key, name in job.names.items())])


def _more(lines, shown, what):
    return [f"  ... and {len(lines) - shown} more {what}".rstrip()] if len(lines) > shown else []


class _Records:
    """What records say of the jobs of one configuration, each looked at once."""

    def __init__(self, paths):
        self.paths, self.stale, self.records, self.makers = paths, {}, {}, {}

    def maker(self, path) -> Job:
        if path not in self.makers:
            self.makers[path] = Job(*self.paths.job_of(path))
        return self.makers[path]

    def record(self, job) -> dict:
        """The record of a job, {} where there is none, or one that lacks something, as that of another version."""
        if job.key not in self.records:
            try:
                record = read_json(self.paths.record(job.rule, **job.names))
            except MaskLabError:
                record = {}
            asked = ASKED | (OF_FINISHED if isinstance(record, dict) and record.get("finished") else set())
            self.records[job.key] = record if isinstance(record, dict) and asked <= record.keys() else {}
        return self.records[job.key]

    def inputs(self, job) -> dict[str, str]:
        """File -> name of the input, a user's files among them."""
        listed = self.paths.inputs(job.rule, **job.names).items()
        return {file: name for name, files in listed for file in ([files] if isinstance(files, str) else files)}

    def artifacts(self, job) -> list[str]:
        return [file for file, name in self.inputs(job).items() if name != "sources"]

    def is_stale(self, path) -> bool:
        """Whether a file would be made (again), for its own sake or that of an input."""
        if path not in self.stale:
            self.stale[path] = False
            below = self.artifacts(self.maker(path))
            self.stale[path] = self.differs(path) or any([self.is_stale(other) for other in below])
        return self.stale[path]

    def differs(self, path) -> bool:
        """Whether a file would be made (again) for its own sake."""
        return any(kind != "versions" for kind, _ in self.differences(path))

    def made_when(self, job) -> str:
        """One line: which job, and when and where it ran."""
        record = self.record(job)
        if not record:
            return words(job)
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(record["ended"]))
        text = f"{words(job)}: {when} on {record['host']}, in {duration(record['seconds'])}"
        if "taken_from" in record:
            text += ", taken from the store"
        if "vouched" in record:
            since = time.strftime("%Y-%m-%d %H:%M", time.localtime(record["vouched"]["time"]))
            text += f"; vouched for on {since} (snakemake --touch)"
        return text

    def differences(self, path) -> list[tuple[str, str]]:
        """(kind, words) of what differs between today and the record of the job that made a file."""
        job = self.maker(path)
        record, differing = self.record(job), []
        if not Path(path).exists():
            differing.append(("output", "not there"))
        if not record:
            return differing or [("record", "none: made before there were records, or elsewhere")]
        if not record["finished"]:
            return [("output", f"stopped before it ended, after {record['attempts']} attempts")]
        then = record.get("vouched", record)
        now = json.loads(json.dumps(self.paths.settings(job.rule, **job.names)))  # as the record keeps it
        edited = changes(then["config"], now)
        differing += _listed("config", [f"{key or 'config'}: {shown(old)} -> {shown(new)}" for key, old, new in edited])
        differing += _listed("code", _changed_names(then["code"], self.paths.code(job.rule, **job.names).modules))
        differing += _listed("input", self._inputs(job, then["inputs"]))
        new = versions()
        moved = [f"{name} {old} -> {new.get(name)}" for name, old in record["versions"].items() if new.get(name) != old]
        return differing + [
            (kind, f"{text} (runs nothing again by itself)") for kind, text in _listed("versions", moved)
        ]

    def _inputs(self, job, before):
        now = self.inputs(job)
        differing = [f"{file}: new" for file in now if file not in before]
        differing += [f"{file}: no longer read" for file in before if file not in now]
        there = [file for file in now if file in before and Path(file).exists()]
        return differing + [f"{file}: another content" for file in there if input_mark(file) != before[file]]


def _listed(kind, texts):
    return [(kind, text) for text in [*texts[:NAMED], *(text.strip() for text in _more(texts, NAMED, ""))]]


def _changed_names(before, now):
    changed = [name for name, mark in now.items() if before.get(name, mark) != mark]
    changed += [f"{name}: new" for name in now if name not in before]
    return changed + [f"{name}: no longer used" for name in before if name not in now]
