"""On a real Slurm: pre-training that is taken away, configs that change while jobs wait, the workflow through `sbatch`.

One file, since tests of two files may run at once, and there is one Slurm.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from cluster_runs import job_of, manifest, slurm_says, wait_for
from taking_away import cancel, lose_node, near_limit, preempt, restart_controller, running

from masklab.cli import main
from masklab.jobs.provenance import made_from

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(1800)]  # the first one installs and starts a Slurm
LONG = {"steps": 32000, "checkpoints": [6000, 32000], "save_minutes": 0.02, "log_every": 1000}


def submitted(folder) -> dict[str, list[dict]]:
    """Rule -> what Slurm knows of its jobs."""
    found = {}
    for line in slurm_says("squeue", "-h", "-t", "all", "-o", "%i|%Z|%k").splitlines():
        number, where, comment = line.split("|", 2)
        if where == str(folder.path):
            shown = slurm_says("scontrol", "show", "job", number, "--oneliner")
            rule = re.match(r"rule_([a-z]+)", comment)[1]
            found.setdefault(rule, []).append(dict(part.split("=", 1) for part in shown.split() if "=" in part))
    return found


def test_training_that_is_taken_away_five_times_ends_with_the_weights_of_an_undisturbed_run(slurm, prepared, capsys):
    """scancel, the warning before a time limit, preemption, a lost node, a controller's restart; bit for bit."""

    def tell(text):  # in the log of the test run, whatever is captured; a worker of xdist has no stdout
        with capsys.disabled():
            print(text, file=sys.stderr, flush=True)

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


def test_every_rule_of_a_figure_goes_through_sbatch(whole):
    """15 jobs with the requests of the config; two stand-in GPUs to a node."""
    folder, process = whole
    assert process.wait() == 0, folder.output
    assert (folder.path / "results/figures/mlsm/figure2.pdf").stat().st_size > 0
    jobs = submitted(folder)
    assert {rule: len(found) for rule, found in jobs.items()} == {
        "corpus": 1, "tokenizer": 1, "tokens": 1, "task": 1, "pretrain": 5, "dictionary": 1, "codes": 1, "probe": 4,
    }  # fmt: skip
    for rule, found in jobs.items():
        on_gpu = rule in ("pretrain", "dictionary", "codes", "probe")
        for job in found:
            assert job["JobState"] == "COMPLETED" and job["Requeue"] == "1"
            assert job["Partition"] == ("gpu" if on_gpu else "cpu")
            assert job.get("TresPerJob") == ("gres:gpu:1" if on_gpu else None)
    assert {job["TimeLimit"] for job in jobs["pretrain"]} == {"1-00:00:00"}
    # 5.5 GB with the context of a GPU; the least for a model without a network
    assert {job["MinMemoryNode"] for job in jobs["probe"]} == {"2000M", "5500M"}
    assert {job["MinMemoryNode"] for job in jobs["corpus"]} == {"2000M"}


def test_artifacts_hold_the_config_they_were_made_from(whole):
    folder, process = whole
    assert process.wait() == 0, folder.output
    results, strict = folder.path / "results", folder.config["corpora"]["strict"]
    assert made_from(results / "corpora/strict/train.parquet")["corpus"]["sentences"] == strict["sentences"]
    assert made_from(results / "tokenizers/strict/tokenizer_config.json")["tokenizer"]["vocab_size"] == 2000
    assert made_from(results / "tokens/strict/strict/meta.json") == {"max_length": 40}
    assert made_from(results / "models/strict-phase1/r1/manifest.json")["model"]["steps"] == 40
    assert made_from(results / "dictionaries/strict/r1/dictionary.json")["atoms"] == 32
    assert made_from(results / "codes/strict/r1/codes.json")["atoms"] == 32
    assert made_from(results / "tasks/blimp/task.json")["task"]["pairs"] == 4
    for name in ("all.parquet", "all.items.parquet"):
        assert made_from(results / "scores/minimal-pairs/strict-mlsm/r1" / name)["probe"]["tasks"] == ["blimp"]
    drawn = made_from(results / "figures/mlsm/figure2.parquet")
    assert drawn["wing"] == "mlsm" and drawn["view"]["recipes"]["strict-mlsm"]["steps"] == 20
    shown = folder.config["studies"]["mlsm"]["panels"]["strict"].items()
    assert drawn["view"]["panels"] == {"strict": {label: n for label, n in shown if n in drawn["view"]["recipes"]}}


def test_planned_and_used_seconds_stand_side_by_side(whole, monkeypatch, capsys):
    """`masklab plan --actual` finds the record of every job that went through Slurm."""
    folder, process = whole
    assert process.wait() == 0, folder.output
    monkeypatch.chdir(folder.path)
    assert main(["plan", "mlsm", "--device", "cpu", "--actual"]) == 0
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.splitlines()[2:]]
    counts = {rule: int(count) for rule, count, *_ in rows}
    assert counts == {"corpus": 1, "tokenizer": 1, "tokens": 1, "task": 1, "pretrain": 5, "dictionary": 1, "codes": 1,
                      "probe": 4, "figure": 1, "all": 16}  # fmt: skip
    assert all(float(ratio) > 0 for *_, ratio in rows)


def test_a_job_that_the_controller_forgot_is_submitted_again(whole, slurm, prepared):
    """slurmctld dies before it has written down what it was given: what `squeue` then shows is the state before."""
    assert whole[1].wait() == 0, whole[0].output
    folder, kept = prepared.beside("forgotten"), slurm / "before"
    slurm_says("scontrol", "update", "partition=gpu", "state=down")
    time.sleep(6)  # it writes every 5 s
    shutil.copytree(slurm / "ctld", kept)
    snakemake = folder.start(manifest("one"), slurm=True)
    job = wait_for(lambda: job_of(folder, "one"), "submission")
    os.kill(int((slurm / "slurmctld.pid").read_text()), signal.SIGKILL)
    time.sleep(15)  # meanwhile looks at the queue fail, and the executor by itself would forget its jobs
    shutil.rmtree(slurm / "ctld")
    kept.rename(slurm / "ctld")
    subprocess.run(["slurmctld"], check=True)
    wait_for(lambda: slurm_says("sinfo", "-h", "-o", "%R"), "controller")
    assert job_of(folder, "one") is None
    slurm_says("scontrol", "update", "partition=gpu", "state=up")
    assert snakemake.wait() == 0, folder.output
    assert f"Slurm no longer knows job {job['id']}." in folder.output
    assert (folder.path / manifest("one")).exists()
