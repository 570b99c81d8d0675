"""What the workflow uses of Snakemake's inside: there as we know it, and done without where it is not."""

import ast
import inspect
import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.api import Workflow
from snakemake.dag import DAG
from snakemake.persistence.file import FilePersistence as Persistence
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.script import PythonScript
from snakemake.shell import shell
from snakemake_executor_plugin_slurm import Executor

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

import inside_snakemake as inside  # noqa: E402
from watch import watch  # noqa: E402

CLASSES = {
    "workflow": Workflow,
    "scheduler": JobScheduler,
    "dag": DAG,
    "persistence": Persistence,
    "executor": Executor,
    "script": PythonScript,
}
USED = [(kind, name) for _, kinds in inside.PARTS.values() for kind, names in kinds.items() for name in names]


def source(function):
    return inspect.getsource(function)


@pytest.mark.parametrize(("kind", "name"), sorted(set(USED)))
def test_this_version_has_it(kind, name):
    """An upgrade that fails here loses what `PARTS` says: mend `inside_snakemake` before pyproject.toml allows it."""
    there = hasattr(CLASSES[kind], name) or name in getattr(CLASSES[kind], "__dataclass_fields__", {})
    assert there or f"self.{name} = " in source(CLASSES[kind]) or f"self.{name}: " in source(CLASSES[kind])


def test_this_version_asks_as_we_answer():
    """Where we put something of ours in its place: who calls it, and how."""
    assert "self._build_dag()" in source(Workflow.execute)
    assert list(inspect.signature(Workflow._build_dag).parameters) == ["self"]
    assert inspect.iscoroutinefunction(DAG.update_needrun) and "await self.update_needrun(" in source(DAG.init)
    assert inspect.iscoroutinefunction(Persistence.finished)
    assert list(inspect.signature(Persistence.finished).parameters)[:2] == ["self", "job"]
    assert list(inspect.signature(JobScheduler.job_selector).parameters) == ["self", "jobs"]
    assert "run = self.job_selector(needrun)" in source(JobScheduler)
    assert "if self.job_rate_limiter is None" in source(JobScheduler.job_selector)
    assert list(inspect.signature(PythonScript.execute_script).parameters) == ["self", "fname", "edit"]
    assert 'tmpdir_resource = resources.get("tmpdir", None)' in source(shell.__new__)


def test_its_log_is_written_by_its_own_classes():
    import snakemake_logger_plugin_masklab as plugin

    common = SimpleNamespace(nocolor=True, quiet=None, show_failed_logs=False, debug_dag=False, verbose=False,
                             dryrun=False, printshellcmds=False)  # fmt: skip
    assert type(plugin.as_snakemake(common, sys.stderr)).__name__ == "ColorizingTextHandler"


def test_its_log_is_written_without_them(monkeypatch):
    import snakemake.logging

    import snakemake_logger_plugin_masklab as plugin

    monkeypatch.delattr(snakemake.logging, "DefaultFormatter")
    assert type(plugin.as_snakemake(SimpleNamespace(), sys.stderr)) is logging.StreamHandler


@pytest.mark.parametrize("part", inside.PARTS)
def test_what_a_version_lacks_is_said_in_a_line(part, capsys):
    without, needed = inside.PARTS[part]
    whole = {kind: SimpleNamespace(**dict.fromkeys(names)) for kind, names in needed.items()}
    assert inside.able(part, **whole) and not capsys.readouterr().err
    kind, names = next(iter(needed.items()))
    delattr(whole[kind], names[-1])
    assert not inside.able(part, **whole)
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f".{names[-1]}: {without}" in said


def test_without_it_nothing_is_changed():
    inside.calm(SimpleNamespace(scheduler=SimpleNamespace()))
    assert inside.executor(SimpleNamespace(scheduler=SimpleNamespace())) is None
    watch(None)
    assert inside.rules(SimpleNamespace()) == []
    dag = SimpleNamespace(update_needrun=None)
    inside.before_deciding(SimpleNamespace(dag=dag, persistence=SimpleNamespace()), set(), None)
    assert dag.update_needrun is None


def test_the_default_limit_goes_and_one_that_was_asked_for_stays():
    def left(limit):
        scheduler = SimpleNamespace(job_rate_limiter="its own")
        settings = SimpleNamespace(max_jobs_per_timespan=limit)
        inside.calm(SimpleNamespace(scheduler=scheduler, scheduling_settings=settings))
        return scheduler.job_rate_limiter

    assert left(None) is None and left(SimpleNamespace(max_jobs=200, timespan=2)) is None
    assert left(SimpleNamespace(max_jobs=199, timespan=2)) == "its own"


def test_nothing_else_reaches_inside():
    """Underscored names of Snakemake's objects stand in the one module."""
    objects = ("workflow", "scheduler", "dag", "executor", "job", "persistence", "submitted")
    files = [*(ROOT / "workflow").glob("*.py"), *(ROOT / "workflow/artifacts").glob("*.py")]
    found = []
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
            if private and ast.unparse(node.value).split(".")[-1] in objects and path.name != "inside_snakemake.py":
                found.append(f"{path.name}: {ast.unparse(node)}")
    assert not found
    for path in [ROOT / "Snakefile", *(ROOT / "workflow/rules").glob("*.smk")]:
        assert "._" not in path.read_text(encoding="utf-8"), path
