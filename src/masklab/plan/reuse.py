"""Before anything runs: artifacts that a run lacks and the store holds are put in their places.

The walk goes from what needs nothing to the targets. An artifact that lies here, made from what today's config, code
and inputs say, stays. Otherwise its key is asked for in the store. Where that has none the artifact is left to be made,
and so is everything that depends on it, since nobody knows yet what it will read.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.jobs import state, store, underway
from masklab.jobs.provenance import SMALL, Record, input_mark
from masklab.jobs.status import running
from masklab.plan.graph import Job, graph


@dataclass
class Reused:
    """taken: jobs whose artifacts the store holds; left: those that remain to be done; files: that were linked."""

    taken: list[Job] = field(default_factory=list)
    left: list[Job] = field(default_factory=list)
    files: list[str] = field(default_factory=list)


def reuse(paths, targets: list[str], dry: bool = False, note=None) -> Reused:
    """Put what `targets` need and the store holds in its place, with its record; if `dry`, only look.

    note(files) is called before files are put in their places.
    """
    return _Walk(paths, dry, note).to(targets)


class _Walk:
    def __init__(self, paths, dry, note):
        self.paths, self.dry, self.note, self.found = paths, dry, note, Reused()
        self.coming: dict[str, dict] = {}  # files that a dry walk would link -> size and hash
        self.marks: dict[str, str] = {}

    def to(self, targets) -> Reused:
        ready = {}
        for key, job in graph(self.paths, targets).items():
            ready[key] = all(ready[needed] for needed in job.needs) and self._is_ready(job)
            if not ready[key]:
                self.found.left.append(job)
        return self.found

    def _is_ready(self, job) -> bool:
        """Whether the artifact of a job whose inputs are ready is as it should be, as it lies here or from now on."""
        settings, code = (of(job.rule, **job.names) for of in (self.paths.settings, self.paths.code))
        if all(Path(file).exists() for file in job.files) and not self._differs(job, settings, code):
            if not self.dry:
                underway.forget(self._place(job, "logs", ".log"))
            return True
        if job.rule not in store.RULES or running(Path(self._place(job, "state"))):
            return False
        try:
            entry = store.entry(job.rule, job.names, settings, code, job.reads, hashed=self._hashed)
        except OSError:  # a user's file is gone; the job will say so
            return False
        if entry is None or not entry.there:
            return False
        if self.dry:
            listing = entry.listing() or {}
            folder = Path(job.files[0]).parent
            self.coming |= {str(folder / name): marks for name, marks in listing.items()}
        elif not self._taken(job, entry, settings, code):
            return False
        self.found.taken.append(job)
        return True

    def _taken(self, job, entry, settings, code) -> bool:
        if self.note:
            self.note(job.files)
        before = Path(self._place(job, "made", ".json")).exists()
        fetched = store.take(entry, job.files, job.reads, again=before)
        if not fetched:
            return False
        left, log = Path(self._place(job, "state")), self._place(job, "logs", ".log")
        try:
            if left.is_dir():  # of a job that was stopped
                state.done(left)
            record = Record(job.rule, job.names, settings, code, log)
            record.finished(job.reads, taken_from=str(entry.path))
            underway.forget(log)
        except OSError:
            return False
        self.found.files += [str(file) for file in fetched]
        return True

    def _place(self, job, folder, end=""):
        return self.paths.of_job(folder, job.rule, end, **job.names)

    def _hashed(self, file) -> str:
        return self.coming[file]["sha256"] if file in self.coming else store.contents(file)

    def _differs(self, job, settings, code) -> bool:
        """Whether a record says that the artifact that lies here was made from something else."""
        try:
            record = read_json(self._place(job, "made", ".json"))
        except MaskLabError:
            return False  # made before there were records: Snakemake may know
        then = record.get("vouched", record)
        now = {"config": json.loads(json.dumps(settings)), "code": code.modules}
        if not record.get("finished") or any(then.get(key) != value for key, value in now.items()):
            return True
        return then.get("inputs") != {file: self._mark(file) for file in job.reads}

    def _mark(self, file) -> str:
        """What an input will be known by (`provenance.input_mark`)."""
        if file not in self.marks:
            coming = self.coming.get(file)
            if coming is None:
                self.marks[file] = input_mark(file) if Path(file).exists() else "not there"
            else:
                small = coming["size"] < SMALL
                self.marks[file] = coming["sha256"][:16] if small else f"{coming['size']} bytes, {coming['time']}"
        return self.marks[file]
