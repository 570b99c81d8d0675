"""Pre-training that the cluster takes away, on several nodes, and with a config that changes while it waits."""

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cluster_runs import job_of, manifest, processes, slurm_says, wait_for

pytestmark = pytest.mark.workflow
LONG = {"steps": 16000, "checkpoints": [6000, 16000], "save_minutes": 0.02, "log_every": 1000}


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
    """slurmctld dies and comes back; the job does not notice."""
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


def test_training_that_is_taken_away_five_times_ends_with_the_weights_of_an_undisturbed_run(slurm, prepared, capsys):
    """scancel, the warning before a time limit, preemption, a lost node, a controller's restart; bit for bit."""

    def tell(text):  # in the log of the test run, whatever is captured
        with capsys.disabled():
            print(text, flush=True)

    calm, folder = prepared.beside("calm", {"long": LONG}), prepared.beside("disturbed", {"long": LONG})
    reference = calm.start(manifest("long"))
    snakemake = folder.start(manifest("long"), slurm=True)
    for disturb, resumes in ((cancel, True), (near_limit, True), (preempt, True), (lose_node, True),
                             (restart_controller, False)):  # fmt: skip
        job = running(folder, "long")
        disturb(slurm, job)
        if resumes:
            wait_for(lambda: job_of(folder, "long")["state"] != "RUNNING", f"the job's end by {disturb.__name__}")
        step = folder.saved("long")
        assert 0 < step < LONG["steps"]
        tell(f"{disturb.__name__}: job {job['id']} on {job['node']}, state of step {step} of {LONG['steps']} saved")
    assert snakemake.wait() == 0, folder.output
    assert reference.wait() == 0, calm.output
    wanted, found = calm.read(manifest("long"))["steps"], folder.read(manifest("long"))["steps"]
    tell(f"undisturbed {wanted}\ndisturbed   {found}")
    assert found == wanted
    assert "resuming at step" in folder.log("long") and "resuming at step" not in calm.log("long")
    columns = ["step", "loss", "tokens", "valid_loss"]
    ours, theirs = (pd.read_parquet(f.path / "results/models/long/r1/metrics.parquet")[columns] for f in (folder, calm))
    pd.testing.assert_frame_equal(ours, theirs)
    record = folder.read("results/made/models/long/r1.json")
    assert record["finished"] and record["attempts"] > 1 and record["slurm_job"]


def test_edits_while_jobs_wait_and_two_nodes(slurm, prepared):
    """Of two jobs that wait the one whose model is edited stops with one line; the other, on two nodes, trains the same
    model as one process does, up to rounding."""
    share = {"batch_size": 16, "micro_batch": 4, "log_every": 5}
    alone = prepared.beside("alone", {"two": share})
    reference = alone.start(manifest("two"))
    keys = {"two": share | {"processes": 2, "nodes": 2}, "one": {}, "other": {}}
    folder = prepared.beside("edited", keys)
    slurm_says("scontrol", "update", "partition=gpu", "state=down")
    snakemake = folder.start(*map(manifest, keys), slurm=True)
    try:
        for model in keys:
            wait_for(lambda model=model: job_of(folder, model), f"submission of {model}")
        folder.config["models"]["one"] = folder.config["models"]["one"] | {"steps": 7, "checkpoints": [7]}
        folder.write()
    finally:
        slurm_says("scontrol", "update", "partition=gpu", "state=up")
    assert snakemake.wait() == 1, folder.output
    line = "error: the config changed while this job waited: model.steps: 40 when submitted, 7 now"
    said = "".join(path.read_text() for path in folder.path.glob(".snakemake/slurm_logs/**/*.log"))
    assert line in said, said
    attempts = (
        slurm_says("squeue", "-h", "-t", "all", "-o", "%Z|%k")
        .splitlines()
        .count(f"{folder.path}|rule_pretrain_wildcards_one_1")
    )
    assert attempts == 1, "it would fail again"
    assert not (folder.path / manifest("one")).exists() and (folder.path / manifest("other")).exists()
    assert folder.read(manifest("other"))["config"]["model"]["steps"] == 40
    assert reference.wait() == 0, alone.output
    one, two = (pd.read_parquet(f.path / "results/models/two/r1/metrics.parquet") for f in (alone, folder))
    assert one["step"].equals(two["step"]) and one["tokens"].equals(two["tokens"])
    for column in ("loss", "valid_loss"):
        np.testing.assert_allclose(one[column], two[column], atol=1e-5, rtol=0)
    assert folder.read(manifest("two"))["config"]["model"]["nodes"] == 2
