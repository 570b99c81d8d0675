"""Snakemake's lock on a folder is taken away where the run that it belongs to was killed, so that the next can begin.

A Snakemake that is killed leaves its lock, which says nothing of whose it is. Here each run holds, for as long as its
process lives, a lock of the kernel on a file of its own. Where a run left such a file and no process holds one, nobody
is at work whom Snakemake's lock could protect: jobs on this machine end with their Snakemake. On a cluster they go on
without it, and the lock stays.
"""

import atexit
import os
import socket
import sys
from pathlib import Path

import inside_snakemake
from masklab.jobs.locks import holder_ended, lock

RUNS = Path(".masklab/runs")  # a file of each run in this folder
CLUSTER = "-cluster"  # ends the name of that of a run whose jobs outlive it
_held = []  # this process's own, open


def let_go(workflow) -> None:
    """Take away Snakemake's lock if killed runs alone can have left it, and hold a file of this run's own."""
    if _held or workflow.executor_plugin is None or not inside_snakemake.able("unlock", workflow=workflow):
        return
    try:
        killed, alive = _others()
        locks = sorted(Path(workflow.persistence.path, "locks").glob("*.lock"))
        outlived = bool(locks) and any(path.name.endswith(CLUSTER) for path in killed)
        if killed and not (alive or outlived or workflow.dryrun):
            for path in [*locks, *killed]:
                path.unlink(missing_ok=True)
            if locks:
                print("masklab: the last run here was killed; its lock on this folder is taken away", file=sys.stderr)
        if not workflow.dryrun:
            inside_snakemake.keep_locks_of_others(workflow)
            _hold("" if workflow.local_exec else CLUSTER)
    except OSError:  # nothing can be written here, as Snakemake will say
        return


def others_live() -> bool:
    """Whether another run is known to be at work in this folder."""
    own = {os.path.realpath(file.name) for file in _held}
    return any(holder_ended(path) is False for path in RUNS.glob("*") if os.path.realpath(path) not in own)


def _others() -> tuple[list[Path], bool]:
    """(files of runs that have ended without removing them, whether another may be at work)."""
    killed, alive = [], False
    for path in RUNS.glob("*"):
        if (ended := holder_ended(path)) is None:  # it has just ended by itself
            continue
        killed += [path] * ended
        alive = alive or not ended
    return killed, alive


def _hold(end: str) -> None:
    """Hold this run's file until the process ends; one that ends by itself removes it."""
    RUNS.mkdir(parents=True, exist_ok=True)
    path = RUNS.resolve() / f"{socket.gethostname()}-{os.getpid()}{end}"
    file = open(path, "w")  # noqa: SIM115 - locked as long as this process runs
    if lock(file):
        _held.append(file)
        atexit.register(path.unlink, missing_ok=True)
    else:
        file.close()
        path.unlink(missing_ok=True)
