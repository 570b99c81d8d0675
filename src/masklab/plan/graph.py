"""The jobs of a configuration and what each needs, from what artifacts are made from (`workflow/artifacts/`)."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

from masklab.config.inherit import meant
from masklab.errors import MaskLabError

LOCAL = (
    "scores",
    "facts",
    "claims",
    "study_claims",
    "table",
    "figure",
    "pages",
)  # run where Snakemake runs; never submitted


@dataclass
class Job:
    """One job: its rule, the values of its wildcards, and the keys of the jobs whose artifacts it reads.

    reads: the files that it reads, a user's among them; files: those of its own that others read or that are targets.
    """

    rule: str
    names: dict[str, str]
    needs: list[tuple] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    @property
    def key(self) -> tuple:
        return (self.rule, *self.names.values())


def opened(files=(), values=()):
    """`Paths` of config files, checked as the workflow checks them before its first job; prints what it notices."""
    paths = _workflow()
    opened = paths.opened(files, values)
    sys.stderr.write(paths.notices_of(opened))
    return opened


def checkout_paths(config):
    """`Paths` of the checkout that this library lies in, or of the current folder."""
    return _workflow().Paths(config)


def _workflow():
    """The module `paths` of the checkout's workflow."""
    for root in (Path(__file__).parents[3], Path.cwd()):
        if (root / "workflow/paths.py").is_file():
            sys.path.insert(0, str(root / "workflow"))
            import paths

            return paths
    raise MaskLabError("workflow/paths.py not found; run it in a checkout")


def named(paths) -> dict[str, list[str]]:
    """Targets that have a name -> their files: studies, their figures, tables and claims, what a run gathers."""
    studies, claims = paths.config.studies, ["claims"] if paths.inputs("claims")["claims"] else []
    found = {rule: paths.outputs(rule) for rule in (*claims, "scores", "facts", "pages")} | {"all": paths.everything()}
    pages = [paths.outputs("dictionary_page", dictionary=name)[0] for name in paths.config.dictionaries]
    items = {f"{study}_{item}": files for study in studies for item, files in paths.items(study).items()}
    return found | {"dictionaries": pages} | items | {study: paths.target(study) for study in studies}


def instead(paths, name: str, targets) -> str:
    """What may have been meant by the name of no target, or which there are, as the end of a message."""
    studies = ", ".join(paths.config.studies) or "none"
    return meant(name, targets) or f"; studies: {studies}; a figure or table of one is <study>_<name>"


def graph(paths, targets: list[str]) -> dict[tuple, Job]:
    """Every job that the artifacts `targets` need, after those it needs itself."""
    jobs, visiting, makers = {}, set(), {}

    def visit(path):
        if path not in makers:
            makers[path] = Job(*paths.job_of(path))
        job = makers[path]
        if job.key not in jobs:
            if job.key in visiting:
                raise MaskLabError(f"config: {' '.join(job.key)} needs itself")
            visiting.add(job.key)
            sources, artifacts = inputs(paths, job)
            job.needs = list(dict.fromkeys(visit(needed) for needed in artifacts))
            job.reads = [*sources, *artifacts]
            jobs[job.key] = job
        asked = jobs[job.key].files
        if path not in asked:
            asked.append(path)
        return job.key

    for target in targets:
        visit(target)
    return jobs


def inputs(paths, job: Job) -> tuple[list[str], list[str]]:
    """(a user's files, artifacts) that a job reads, in order."""
    files = paths.inputs(job.rule, **job.names)
    return _listed(files.pop("sources", [])), [path for value in files.values() for path in _listed(value)]


def _listed(value):
    return [value] if isinstance(value, str) else list(value)
