"""All that the workflow knows of Snakemake's inside, which no interface promises: a guard, and what is done without.

`PARTS` names for each thing that we have Snakemake do what that needs. Where a version lacks some of it, `able` says so
in one line and the run goes on without. A test holds `PARTS` against the versions that pyproject.toml allows. (How its
log is written stands apart, in `snakemake_logger_plugin_masklab`, which is asked for before any checkout is known.)
"""

import contextlib
import os
import subprocess
import sys

# What we do -> (what is done without it, {place of a class: names of its that are used}).
PARTS = {
    "take": (
        "jobs take from the store one by one as they begin",
        {
            "workflow": ("_build_dag", "_rules", "get_rule", "default_target", "dag_settings", "executor_plugin",
                         "touch", "dryrun", "is_main_process", "persistence"),
        },
    ),
    "unlock": (
        "after a kill of Snakemake itself `snakemake --unlock` has to be run by hand",
        {"workflow": ("persistence", "local_exec", "dryrun", "executor_plugin")},
    ),
    "locks": (
        "a run that ends takes away the locks of others in its folder, too",
        {"persistence": ("_delete_locks", "_lockfile", "_lockdir")},
    ),
    "beside": (
        "replicates train one by one",
        {"workflow": ("cores", "dag", "scheduler"), "scheduler": ("job_selector", "running", "failed"),
         "dag": ("finished",)},
    ),
    "scripts": ("every job starts a Python of its own", {"script": ("execute_script",)}),
    "calm": (
        "the scheduler is as busy as it is by itself",
        {"workflow": ("scheduler", "scheduling_settings"), "scheduler": ("job_rate_limiter",)},
    ),
    "watch": (
        "the queue is looked at as often as the slurm executor does by itself",
        {"workflow": ("scheduler",), "scheduler": ("_executor",)},
    ),
    "slurm": (
        "the queue is looked at as often as the slurm executor does by itself",
        {"executor": ("check_active_jobs", "report_job_error", "report_job_success", "sleep",
                      "next_seconds_between_status_checks")},
    ),
    "register": (
        "Snakemake is told nothing of what was taken from the store",
        {"dag": ("update_needrun", "jobs"), "persistence": ("finished",)},
    ),
}  # fmt: skip


def able(part: str, **objects) -> bool:
    """Whether `objects`, by their names in `PARTS`, have what a part needs; if not, one line says what is done then."""
    without, needed = PARTS[part]
    missing = [
        f"{type(objects[kind]).__name__}.{name}"
        for kind, names in needed.items()
        if kind in objects
        for name in names
        if not (hasattr(type(objects[kind]), name) or hasattr(objects[kind], name))  # some may not be asked for yet
    ]
    if missing:
        print(f"masklab: warning: this version of Snakemake has no {', '.join(missing)}: {without}", file=sys.stderr)
    return not missing


def rules(workflow) -> list[str]:
    """Names of the rules."""
    return list(getattr(workflow, "_rules", ()))


def keep_locks_of_others(workflow) -> None:
    """Have Snakemake take away, as it ends, its own locks and not the folder with those of runs that live."""
    persistence = workflow.persistence
    if not able("locks", persistence=persistence):
        return

    def delete_own():
        for file in persistence._lockfile.values():
            with contextlib.suppress(FileNotFoundError):
                os.remove(file)
        persistence._lockfile.clear()
        with contextlib.suppress(OSError):  # others' are in it
            os.rmdir(persistence._lockdir)

    persistence._delete_locks = delete_own


def before_graph(workflow, look, otherwise) -> None:
    """Have `look()` called just before the graph of jobs is built; `otherwise()` if it cannot be built."""
    from snakemake.exceptions import InputFunctionException, MissingRuleException

    build = workflow._build_dag

    def look_and_build():
        look()
        try:
            build()
        except (InputFunctionException, MissingRuleException):
            otherwise()
            raise

    workflow._build_dag = look_and_build


def before_deciding(workflow, files: set[str], then) -> None:
    """Have Snakemake note for jobs whose outputs are all in `files` what it notes of jobs that it has run.

    That is done before it decides which jobs have to run; then(): after that, before it decides. What `then` returns is
    called with its jobs when it has decided.
    """
    dag, persistence = workflow.dag, workflow.persistence
    if not able("register", dag=dag, persistence=persistence):
        return
    decide = dag.update_needrun

    async def note_and_decide(*arguments, **named):
        dag.update_needrun = decide
        for job in list(dag.jobs):
            if job.output and all(str(file) in files for file in job.output):
                await persistence.finished(job)
        after = then()
        decided = await decide(*arguments, **named)
        after(dag.jobs)
        return decided

    dag.update_needrun = note_and_decide


def select_jobs(workflow, selector) -> None:
    """Have `selector(choose)(jobs)` choose those to start of the jobs that are ready; choose: Snakemake's own way."""
    workflow.scheduler.job_selector = selector(workflow.scheduler.job_selector)


def calm(workflow) -> None:
    """Take away Snakemake's limit of 100 jobs a second, its default; one that somebody asked for stays.

    It asks for another round of scheduling a second after each round, and every job that ends begins such a chain:
    after 200 jobs 200 rounds a second, each looking at every input of every ready job, which keeps a core busy.
    """
    if able("calm", workflow=workflow, scheduler=workflow.scheduler):
        limit = workflow.scheduling_settings.max_jobs_per_timespan
        if limit is None or limit.max_jobs >= 100 * limit.timespan:
            workflow.scheduler.job_rate_limiter = None


def run_scripts(run) -> None:
    """Have `run(file, threads, variables)` run Python scripts from now on: an exit status, or None: Snakemake shall.

    variables: what Snakemake sets in a script's environment besides its number of threads.
    """
    from snakemake.script import PythonScript

    elsewhere = ("conda_env", "container_img", "env_modules", "bench_record", "shadow_dir")  # not as this process
    execute = getattr(PythonScript, "execute_script", None)
    if not able("scripts", script=PythonScript) or getattr(execute, "ours", False):
        return

    def execute_script(self, fname, edit=False):
        status = None
        if not edit and not any(getattr(self, name, None) for name in elsewhere):
            folder = self.resources.get("tmpdir")
            variables = dict.fromkeys(("TMPDIR", "TMP", "TEMPDIR", "TEMP"), folder) if folder else {}
            status = run(fname, self.threads, variables)
        if status is None:
            execute(self, fname, edit)
        elif status:
            raise subprocess.CalledProcessError(status, f"{sys.executable} {fname}")

    execute_script.ours = True
    PythonScript.execute_script = execute_script


def executor(workflow):
    """What submits jobs, or None where it is not known."""
    return workflow.scheduler._executor if able("watch", workflow=workflow, scheduler=workflow.scheduler) else None


def give_up(job) -> None:
    """Keep from further attempts at a job; the setter of `attempt` would ask for other resources."""
    job._attempt = job.restart_times + 1
