"""Runs and checkouts that share work: what two of them have in common is made once, and nothing stale is taken."""

import copy
import os
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
import running
import yaml
from running import ROOT, jobs
from test_symbolic import CONFIG

from masklab.files import read_json

pytestmark = pytest.mark.workflow
SCORES = "results/scores.parquet"


def made(folder, root="results") -> dict[str, str]:
    """Each artifact with a record -> `made` or `taken`."""
    records = folder / root / "made"
    files = {str(file.relative_to(records).with_suffix("")): read_json(file) for file in records.rglob("*.json")}
    return {name: "taken" if "taken_from" in record else "made" for name, record in files.items()}


def ran(folder, config, target) -> dict[str, int]:
    """Run the workflow; jobs per rule, by Snakemake's own log of it."""
    running.snakemake(folder, config, target)
    return jobs(max((folder / ".snakemake/log").glob("*.log"), key=lambda path: path.stat().st_mtime).read_text())


def named(run: str, weight: float = 0.1) -> dict:
    config = copy.deepcopy(CONFIG) | {"run": run}
    config["objectives"]["foe"]["adversarial"]["weight"] = weight
    return config


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    running.snakemake(folder, CONFIG, SCORES)
    return folder


def state_of(folder) -> dict:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_second_run_makes_what_differs_and_no_more(done):
    target, changed = "results/two/scores.parquet", named("two", 0.3)
    before = state_of(done / "results")
    said = running.snakemake(done, changed, target, "--dry-run")
    assert "12 artifacts are in the store and will be linked" in said and "leaves 3 of the jobs" in said
    assert state_of(done / "results") == before, "a dry run writes nothing"
    assert ran(done, changed, target) == {"pretrain": 1, "probe": 1, "scores": 1}
    how = made(done, "results/two")
    assert {name for name, way in how.items() if way == "made"} == {
        "models/foe/r1", "scores/exact/foe/r1/all", "scores"}  # fmt: skip
    first, second = (pd.read_parquet(done / path) for path in (SCORES, target))
    pd.testing.assert_frame_equal(first[first["recipe"] != "foe"], second[second["recipe"] != "foe"])
    assert not first.equals(second)
    large = "corpora/dh/train.parquet", "models/dh/r1/step-10/model.safetensors"
    shared = [name for name in large if (done / "results" / name).samefile(done / "results/two" / name)]
    assert shared == [name for name in large if (done / "results" / name).stat().st_size >= 1 << 16]
    assert "Nothing to be done" in running.snakemake(done, changed, target, "--dry-run")

    # back again: what was made for the first run is linked over what this one has, and what reads it is made anew
    assert ran(done, named("two"), target) == {"scores": 1}
    assert pd.read_parquet(done / target).equals(first)
    # what was linked is known to Snakemake: a change is noticed as ever, also where the store has no answer
    shutil.rmtree(done / "results/two")
    shutil.copytree(done / "results", done / "kept", symlinks=True)
    running.snakemake(done, named("two"), target)
    assert jobs(running.snakemake(done, named("two", 0.7), target, "-n")) == {"pretrain": 1, "probe": 1, "scores": 1}


def test_without_its_inputs_a_job_is_not_asked_for(done):
    """All of a run is linked in, from the corpus on, so that it is whole without the run that made it."""
    running.snakemake(done, named("three"), "results/three/scores/loss/dh/r1/all.parquet")
    assert set(made(done, "results/three").values()) == {"taken"}
    assert (done / "results/three/corpora/dh/train.parquet").exists()


def test_asked_to_do_it_again_the_store_is_left_alone(done):
    target = "results/four/corpora/dh/train.parquet"
    running.snakemake(done, named("four"), target)
    assert made(done, "results/four") == {"corpora/dh": "taken"}
    running.snakemake(done, named("four"), target, "--forceall")
    assert made(done, "results/four") == {"corpora/dh": "made"}


def test_stopped_between_linking_and_noting_it_links_again(done):
    target, pending = "results/five/corpora/dh/train.parquet", done / ".masklab/linking"
    (done / "results/five/corpora/dh").mkdir(parents=True)
    (done / target).write_text("linked for another config, and nobody noted it")
    pending.write_text(f"{target}\n")
    running.snakemake(done, named("five"), target)
    assert made(done, "results/five") == {"corpora/dh": "taken"} and not pending.exists()
    assert (done / target).read_bytes() == (done / "results/corpora/dh/train.parquet").read_bytes()


def test_a_read_only_store_fails_nothing(tmp_path):
    """Training that is finished stays, with a warning."""
    place = tmp_path / "a-file"
    place.write_text("no folder")
    environment = {"MASKLAB_STORE": str(place)}
    target = "results/models/dh/r1/manifest.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MASKLAB_STORE", environment["MASKLAB_STORE"])
        running.snakemake(tmp_path, CONFIG, target)
    assert "not kept in the store" in (tmp_path / "results/logs/models/dh/r1.log").read_text()
    assert (tmp_path / "results/models/dh/r1/step-10/model.safetensors").exists()


def run(checkout, folder, store, config=CONFIG) -> dict[str, str]:
    """Make a model with all it needs by the code of a checkout; how each artifact came about."""
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({"extends": []} | config))
    command = [sys.executable, "-m", "snakemake", "results/models/shuffled/r1/manifest.json", "--cores", "2",
               "--snakefile", str(checkout / "Snakefile"), "--directory", str(folder),
               "--configfile", str(folder / "config.yaml")]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "MASKLAB_STORE": str(store)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return made(folder)


def test_checkouts_share_what_the_same_code_makes(tmp_path):
    other = tmp_path / "checkout"
    other.mkdir()
    for name in ("Snakefile", "src", "workflow", "profiles", "config.yaml"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, other / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, other / name)
    store, first, second = tmp_path / "store", tmp_path / "first", tmp_path / "second"
    before = run(ROOT, first, store)
    assert set(before.values()) == {"made"} and {"models/dh/r1", "models/shuffled/r1", "tokens/dh/symbols"} <= set(
        before
    )
    assert run(other, second, store) == dict.fromkeys(before, "taken")
    for name in ("dh/r1/step-10", "shuffled/r1/step-0"):
        file = f"results/models/{name}/model.safetensors"
        assert (second / file).read_bytes() == (first / file).read_bytes()

    # other code in the training loop: corpus and tokens are still shared, models are not
    validation = other / "src/masklab/training/validation.py"
    text, edits = re.subn(r"^ROWS = 512$", "ROWS = 511", validation.read_text(), flags=re.M)
    validation.write_text(text)
    assert edits == 1
    third = run(other, tmp_path / "third", store)
    assert {name for name, how in third.items() if how == "made"} == {"models/dh/r1", "models/shuffled/r1"}
