"""Jobs on one machine spread over its GPUs; without any, by the function that chooses."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from masklab.jobs import gpus, queued

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow/scripts"))

HOLD = """
import sys, time
from pathlib import Path
from masklab.jobs.gpus import least_used
held = least_used(["0", "1", "2"], 1, Path(sys.argv[1]))
print(held[1][0], flush=True)
time.sleep(600)
"""


def test_slots_are_filled_in_turn_and_free_ones_are_used_again(tmp_path):
    names = ["3", "GPU-a", "5"]
    held = [gpus.least_used(names, 1, tmp_path) for _ in range(7)]
    assert [chosen for _, chosen in held] == [["3"], ["GPU-a"], ["5"]] * 2 + [["3"]]
    for (file,), _ in (held[1], held[2]):
        file.close()
    files, chosen = gpus.least_used(names, 2, tmp_path)
    assert chosen == ["GPU-a", "5"] and len(files) == 2
    assert gpus.least_used(names, 3, tmp_path)[1] == names, "all of them, whoever else is there"


def test_a_job_that_is_killed_frees_its_gpu(tmp_path):
    """Six processes at once: two on each of three GPUs."""
    jobs = [
        subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    try:
        places = [job.stdout.readline().strip() for job in jobs]
        assert sorted(places) == ["0", "0", "1", "1", "2", "2"]
        for job, place in zip(jobs, places, strict=True):
            if place == "1":
                job.kill()
                job.wait()
        assert [gpus.least_used(["0", "1", "2"], 1, tmp_path)[1] for _ in range(1)] == [["1"]]
    finally:
        for job in jobs:
            job.kill()
            job.wait()
            job.stdout.close()


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with four GPUs."""
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\nprintf '0\\n1\\n2\\n3\\n'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in (gpus.VISIBLE, "SLURM_JOB_ID", queued.WITHIN):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(gpus, "_held", [])
    monkeypatch.setattr(gpus, "_folder", lambda: tmp_path / "locks")
    return monkeypatch


def again():
    """As another job would; what the last one held is kept."""
    gpus._held, before = [], gpus._held
    return before


def test_a_job_sees_the_gpus_that_it_took_of_those_it_was_given(machine):
    gpus.take(2)
    assert os.environ[gpus.VISIBLE] == "0,1"
    gpus.take()
    assert os.environ[gpus.VISIBLE] == "0,1", "once is enough"
    kept = again()
    machine.setenv(gpus.VISIBLE, "1, 3")
    gpus.take()
    assert os.environ[gpus.VISIBLE] == "3" and len(kept) == 2


@pytest.mark.parametrize(("name", "value", "count"), [
    ("SLURM_JOB_ID", "7", 1), (gpus.VISIBLE, "", 1), (gpus.VISIBLE, "2", 1), (gpus.VISIBLE, "1,2", 3)
])  # fmt: skip
def test_nothing_is_chosen_where_there_is_no_choice(name, value, count, machine, tmp_path):
    machine.setenv(name, value)
    gpus.take(count)
    assert os.environ.get(gpus.VISIBLE) == (value if name == gpus.VISIBLE else None)
    assert not (tmp_path / "locks").exists()


def test_jobs_of_a_snakemake_within_an_allocation_share_what_slurm_gave_it(machine):
    import _job

    given = {gpus.VISIBLE: "0,1,2,3", "SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "16", queued.WITHIN: "7"}
    for name, value in given.items():
        machine.setenv(name, value)
    gpus.take()
    first, kept = os.environ[gpus.VISIBLE], again()
    machine.setenv(gpus.VISIBLE, given[gpus.VISIBLE])
    gpus.take()
    assert (first, os.environ[gpus.VISIBLE]) == ("0", "1") and len(kept) == 1
    assert _job.threads(1) == 1
    most = _job.threads(16)
    machine.setenv(queued.WITHIN, "")  # submitted from outside
    assert _job.threads(1) == most


def test_hidden_gpus_are_seen_by_nobody(machine):
    """`device: cpu` of a run: the law of a causal corpus looks for a GPU by itself (`corpora.causal.law.of_header`)."""
    gpus.hide()
    gpus.take()
    assert gpus.visible() == [] and os.environ[gpus.VISIBLE] == "" and not gpus._held


def test_a_machine_without_gpus(machine):
    machine.setenv("PATH", "/nowhere")
    began = time.monotonic()
    gpus.take()
    assert gpus.visible() == [] and gpus.VISIBLE not in os.environ and time.monotonic() - began < 1


def test_a_gpu_that_torch_cannot_use_is_named(machine, caplog):
    """A build of torch for CPUs would else train for days where hours were expected."""
    import _job

    machine.setattr("torch.cuda.is_available", lambda: False)
    assert _job.device("auto") == "cpu" and "cannot use the GPU of this machine" in caplog.text
    caplog.clear()
    machine.setenv(gpus.VISIBLE, "")  # hidden on purpose
    assert _job.device("auto") == "cpu" and _job.device("cpu") == "cpu" and not caplog.text
    machine.setattr("torch.cuda.is_available", lambda: True)
    machine.setenv(gpus.VISIBLE, "1")
    assert _job.device("auto") == "cuda" and not caplog.text
