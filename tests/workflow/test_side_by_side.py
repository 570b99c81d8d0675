"""Replicates that train side by side through the real workflow: a job each, one of which does the work of all."""

import os
import signal
import subprocess
import time

import pytest
import running
import yaml
from running import messages
from test_replicates_workflow import CONFIG, MODEL, changed

from masklab.files import read_json

pytestmark = pytest.mark.workflow
RECIPES = ("base", "next")
BASE = {"steps": 300, "checkpoints": [4, 300], "save_minutes": 1e-6}
LONGER = changed(models={"base": BASE})


def manifests(recipes, replicates):
    return [f"results/models/{recipe}/r{k}/manifest.json" for recipe in recipes for k in replicates]


def made(folder, recipe, k) -> dict:
    return read_json(folder / f"results/models/{recipe}/r{k}/manifest.json")


def test_one_job_trains_all_and_more_replicates_remake_none(tmp_path):
    running.snakemake(tmp_path, CONFIG, *manifests(RECIPES, [1, 2, 3]))
    for recipe in RECIPES:
        taken = (tmp_path / f"results/logs/models/{recipe}/r2.log").read_text()
        assert "was trained side by side with r1, r3" in taken and "starting" not in taken
    before = [made(tmp_path, recipe, k) for recipe in RECIPES for k in (1, 2, 3)]
    said = running.snakemake(tmp_path, CONFIG, "--dry-run", *manifests(RECIPES, [1, 2, 3, 4, 5]))
    assert {line for line in messages(said) if line.startswith("pre-training")} == {
        f"pre-training {recipe} r{k}" for recipe in RECIPES for k in (4, 5)
    }
    running.snakemake(tmp_path, CONFIG, *manifests(RECIPES, [1, 2, 3, 4, 5]))
    assert before == [made(tmp_path, recipe, k) for recipe in RECIPES for k in (1, 2, 3)]
    assert "was trained side by side with r5" in (tmp_path / "results/logs/models/next/r4.log").read_text()
    assert not list(tmp_path.glob("results/state/models/*/together/r*"))
    alone = changed(models={"base": {"stack": False}})
    said = running.snakemake(tmp_path, alone, "--dry-run", *manifests(["base"], [1, 2]))
    assert {"pre-training base r1", "pre-training base r2"} <= set(messages(said))
    running.snakemake(tmp_path, alone, *manifests(["base"], [1, 2]))
    assert not any("side by side" in log.read_text() for log in tmp_path.glob("results/logs/models/base/r[12].log"))


def test_what_is_waited_for_starts_first_and_then_the_longest(tmp_path, monkeypatch):
    monkeypatch.setenv("MASKLAB_STORE", "off")
    recipes = {f"of-{steps}": MODEL | {"steps": steps, "checkpoints": [steps]} for steps in (16, 40, 8, 32, 24)}
    config = CONFIG | {"models": recipes | CONFIG["models"]}
    probed = "results/scores/linear/of-40/r1/all.parquet"
    running.snakemake(tmp_path, config, "--cores", "1", *manifests(recipes, [1, 2]), probed)
    trained = [f"results/models/of-{steps}/r2/manifest.json" for steps in (40, 32, 24, 16, 8)]
    times = [(tmp_path / file).stat().st_mtime_ns for file in ["results/tasks/p/task.json", *trained, probed]]
    assert times == sorted(times)


def test_who_trains_beside_a_replicate_changes_nothing_that_it_leaves(tmp_path, monkeypatch):
    """On one core and on two, and one replicate after the other: the same manifests, byte for byte."""
    monkeypatch.setenv("MASKLAB_STORE", "off")
    found = {}
    for how, runs in {"one core": [[1, 2, 3]], "two cores": [[1, 2, 3]], "raised": [[2], [1, 3]]}.items():
        folder = tmp_path / how
        folder.mkdir()
        for replicates in runs:
            cores = ["--cores", "2" if how == "two cores" else "1"]
            running.snakemake(folder, CONFIG, *cores, *manifests(["base"], replicates))
        found[how] = [(folder / path).read_bytes() for path in manifests(["base"], [1, 2, 3])]
    assert found["one core"] == found["two cores"] == found["raised"]


def test_a_killed_run_goes_on_with_the_same_weights(tmp_path, monkeypatch):
    """SIGKILL of Snakemake and of all its jobs, while one trains three and when it has just ended."""
    monkeypatch.setenv("MASKLAB_STORE", "off")
    folders = [tmp_path / name for name in ("torn", "whole")]
    for folder in folders:
        folder.mkdir()
    torn, _ = folders
    (torn / "config.yaml").write_text(yaml.safe_dump({"extends": []} | LONGER))
    place = torn / "results/state/models/base/together"
    command = [*running.COMMAND, "--directory", str(torn), "--configfile", str(torn / "config.yaml"), "--nolock"]
    for reached in (place / "state.safetensors", place / "r2.json"):
        with open(tmp_path / "said", "w") as said:
            done = subprocess.Popen(
                [*command, *manifests(["base"], [1, 2, 3])], stdout=said, stderr=said, start_new_session=True
            )
            while not reached.exists() and done.poll() is None:
                time.sleep(0.01)
            assert done.poll() is None, (tmp_path / "said").read_text()
            os.killpg(done.pid, signal.SIGKILL)
            done.wait()
        time.sleep(2)  # the warm process, and with it the job, ends with Snakemake
        assert not (torn / "results/models/base/r2/manifest.json").exists()
    for folder in folders:
        running.snakemake(folder, LONGER, "--nolock", *manifests(["base"], [1, 2, 3]))
    for k in (1, 2, 3):
        found, wanted = (made(folder, "base", k) for folder in folders)
        assert found["steps"] == wanted["steps"]
