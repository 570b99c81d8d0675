"""The ways in which a cluster takes a job away, each a function of the state of Slurm and the job."""

import os
import signal
import subprocess
import time
from pathlib import Path

from cluster_runs import job_of, processes, slurm_says, wait_for


def running(folder, model):
    """The job that trains `model`, once it has itself saved a state: a signal before it trains would be lost."""

    def runs():
        job = job_of(folder, model)
        return job if job and job["state"] == "RUNNING" else None

    wait_for(runs, f"{model} running")
    before = folder.saved(model)  # by the job before, which may have gone on for a moment after it was stopped
    return wait_for(
        lambda: folder.saved(model) > before and runs(),
        f"{model} running and saved beyond step {before}",
        folder=folder,
    )


def restart_controller(state, job):
    """slurmctld dies and comes back; the job does not notice.

    It has written its jobs down: those that it forgets would wait for ever, as it gives their numbers to others.
    """
    written = state / "ctld/job_state"
    before = written.stat().st_mtime_ns if written.exists() else 0
    slurm_says("scontrol", "update", f"jobid={job['id']}", "admincomment=written")
    wait_for(lambda: written.exists() and written.stat().st_mtime_ns > before, "jobs written down")
    number = int((state / "slurmctld.pid").read_text())
    os.kill(number, signal.SIGKILL)
    time.sleep(1)
    subprocess.run(["slurmctld"], check=True)


def preempt(state, job):
    """A job of a partition of higher priority takes the whole node."""
    subprocess.run(
        ["sbatch", "-p", "urgent", "-o", "/dev/null", "-w", job["node"], "--exclusive", "--wrap", "sleep 2"], check=True
    )


def lose_node(state, job):
    """The node's power fails: nothing on it gets a signal; Slurm learns of it and starts the job elsewhere."""
    node = job["node"]
    lost = [int((state / f"slurmd-{node}.pid").read_text())]
    lost += processes(f"slurmstepd: [{job['id']}.")
    for number in descendants(lost):
        os.kill(number, signal.SIGKILL)
    slurm_says("scontrol", "update", f"nodename={node}", "state=down", "reason=test")
    subprocess.run(["slurmd", "-N", node], check=True)  # power is back, and with ReturnToService=2 so is the node


def cancel(state, job):
    slurm_says("scancel", job["id"])


def near_limit(state, job):
    """Its time limit comes within the two minutes of warning that the profile asks for.

    Slurm looks at time limits every 30 s: training has to last longer.
    """
    slurm_says("scontrol", "update", f"jobid={job['id']}", "timelimit=2")


def descendants(roots):
    """Processes and all that they started."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(parts[1]), []).append(int(path.parent.name))
    found = list(roots)
    for number in found:
        found += children.get(number, [])
    return found
