"""A local run starts no Python for its jobs: Snakemake's scripts run in the warm process."""

import os
import subprocess

import pytest
import running
import yaml

from masklab.jobs import warm

RECORD = """
import os, sys
with open(os.environ["STARTED"], "a") as file:
    file.write(" ".join(sys.orig_argv) + f" within {os.environ.get('MASKLAB_WITHIN')}\\n")
"""
CORPUS = {"kind": "markov", "chains": "words", "distributional": True, "sequences": 40, "valid": 10, "test": 10,
          "length": 20}  # fmt: skip
NAMES = [f"c{number}" for number in range(10)]
CONFIG = {
    "extends": [],
    "seed": 1,
    "device": "cpu",
    "chains": {"words": {"synsets": 20}},
    "corpora": dict.fromkeys(NAMES, CORPUS),
    "studies": {},
}


def started(folder, **environment):
    """Command lines of the Pythons that a run of ten corpora starts."""
    (folder / "sitecustomize.py").write_text(RECORD)
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    record = folder / "started"
    path = os.pathsep.join([str(folder), str(running.ROOT / "src")])
    subprocess.run(
        [*running.COMMAND, *(f"results/corpora/{name}/train.parquet" for name in NAMES), "--directory", str(folder),
         "--configfile", str(folder / "config.yaml")],
        check=True, cwd=folder, env=os.environ | {"PYTHONPATH": path, "STARTED": str(record)} | environment,
    )  # fmt: skip
    assert all((folder / f"results/corpora/{name}/train.parquet").is_file() for name in NAMES)
    return [line for line in record.read_text().splitlines() if ".snakemake/scripts" in line]


@pytest.mark.workflow
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="warm processes are for Linux")
def test_no_python_is_started_for_a_job(tmp_path):
    assert started(tmp_path) == []


@pytest.mark.workflow
def test_jobs_start_cold_where_the_environment_asks_for_it(tmp_path):
    """And know in which job of Slurm's the run that they belong to lies."""
    lines = started(tmp_path, SLURM_JOB_ID="7", **{warm.VARIABLE: "0"})
    assert len(lines) == len(NAMES) and all(line.endswith("within 7") for line in lines)
