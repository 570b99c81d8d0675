"""A store that two checkouts share: the same config and code make nothing twice, other code makes its own."""

import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from running import ROOT
from test_symbolic import CONFIG

from masklab.files import read_json

pytestmark = pytest.mark.workflow
TARGETS = ["results/models/shuffled/r1/manifest.json"]


def run(checkout, folder, store, config=CONFIG) -> dict[str, str]:
    """Make the targets; name of each job's log -> `made` or `taken`."""
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump({"extends": []} | config))
    command = [sys.executable, "-m", "snakemake", *TARGETS, "--snakefile", str(checkout / "Snakefile"), "--cores", "2",
               "--directory", str(folder), "--configfile", str(folder / "config.yaml")]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(checkout / "src"), "MASKLAB_STORE": str(store)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    logs = folder / "results/logs"
    said = {str(log.relative_to(logs).with_suffix("")): log.read_text() for log in logs.rglob("*.log")}
    return {name: "taken" if "taken from the store" in text else "made" for name, text in said.items()}


def test_the_same_code_makes_nothing_twice_and_other_code_does_not_reuse(tmp_path):
    other = tmp_path / "checkout"
    for name in ("Snakefile", "src", "workflow", "profiles", "config.yaml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, other / name) if other.exists() else (other.mkdir(), copy(ROOT / name, other / name))
    store, first = tmp_path / "store", tmp_path / "first"
    made = run(ROOT, first, store)
    assert set(made.values()) == {"made"} and {
        "models/dh/r1",
        "models/shuffled/r1",
        "corpora/dh",
        "tokens/dh/symbols",
    } <= set(made)
    second = tmp_path / "second"
    assert run(other, second, store) == dict.fromkeys(made, "taken")
    for name in ("dh/r1/step-10", "shuffled/r1/step-0"):
        file = second / f"results/models/{name}/model.safetensors"
        assert (
            file.is_symlink() and file.read_bytes() == (first / f"results/models/{name}/model.safetensors").read_bytes()
        )
    assert read_json(second / "results/made/models/dh/r1.json")["taken_from"].startswith(str(store))

    # other code in the training loop: corpus and tokens are still shared, models are not
    validation = other / "src/masklab/training/validation.py"
    text, edits = re.subn(r"^ROWS = 512$", "ROWS = 511", validation.read_text(), flags=re.M)
    validation.write_text(text)
    assert edits == 1
    third = run(other, tmp_path / "third", store)
    assert {name for name, how in third.items() if how == "made"} == {"models/dh/r1", "models/shuffled/r1"}

    # another config in a folder of links: its files are written, those of the store stay as they are
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    config = CONFIG | {"models": CONFIG["models"] | {"dh": CONFIG["models"]["dh"] | {"optimiser": {"lr": 0.5}}}}
    assert run(ROOT, second, store, config)["models/dh/r1"] == "made"
    assert not (second / "results/models/dh/r1/step-10/model.safetensors").is_symlink()
    assert {path: path.stat().st_mtime_ns for path in before} == before
