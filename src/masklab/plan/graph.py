"""The jobs of a configuration and what each needs, from what artifacts are made from (`workflow/artifacts/`)."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

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
    """One job: its rule, the values of its wildcards, and the keys of the jobs whose artifacts it reads."""

    rule: str
    names: dict[str, str]
    needs: list[tuple] = field(default_factory=list)

    @property
    def key(self) -> tuple:
        return (self.rule, *self.names.values())


def checkout_paths(config):
    """`Paths` of the checkout that this library lies in, or of the current folder."""
    for root in (Path(__file__).parents[3], Path.cwd()):
        if (root / "workflow/paths.py").is_file():
            sys.path.insert(0, str(root / "workflow"))
            from paths import Paths

            return Paths(config)
    raise MaskLabError("workflow/paths.py not found; run it in a checkout")


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
            job.needs = list(dict.fromkeys(visit(needed) for needed in inputs(paths, job)))
            jobs[job.key] = job
        return job.key

    for target in targets:
        visit(target)
    return jobs


def inputs(paths, job: Job) -> list[str]:
    """Artifacts that a job reads; a user's files are none."""
    files = paths.inputs(job.rule, **job.names).items()
    values = [value for name, value in files if name != "sources"]
    return [path for value in values for path in ([value] if isinstance(value, str) else value)]
