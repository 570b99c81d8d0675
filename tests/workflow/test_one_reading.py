"""`masklab check`, `config`, `plan`, `why` and the workflow read a config alike, and refuse it in the same words."""

import subprocess
from pathlib import Path

import pytest
import yaml
from running import COMMAND, ROOT

from masklab.cli import main

pytestmark = pytest.mark.workflow
SHIPPED = ["config.yaml", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("presets/*.yaml"))]
SHIPPED += sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("src/masklab/studies/*/*.yaml"))
CASES = (ROOT / "tests/config/bad.txt").read_text(encoding="utf-8").rstrip("\n").split("\n\n")
TEXT = {"corpora": {"mine": {"kind": "text", "files": ["a.txt"]}}}


def parsed(folder, file):
    """The workflow as far as it is parsed, which is where it checks its config."""
    command = [*COMMAND, "--list-rules", "--directory", str(folder), "--configfile", str(file)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


@pytest.mark.parametrize("file", SHIPPED)
def test_what_is_shipped_is_accepted_by_all(file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = str(ROOT / file)
    assert main(["check", path]) == 0 and main(["config", path, "models"]) == 0
    said = capsys.readouterr()
    assert "masklab: " not in said.err.replace("masklab: note: ", "")
    done = parsed(tmp_path, path)
    assert done.returncode == 0 and "pretrain" in done.stdout, done.stderr


def test_most_shipped_files_stand_alone():
    assert len(SHIPPED) >= 19


@pytest.mark.parametrize("case", [*CASES[::24], TEXT], ids=lambda case: "data" if case is TEXT else None)
def test_what_is_wrong_is_refused_by_all_in_the_same_words(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("too few words\n")
    config = yaml.safe_dump(case) if case is TEXT else case.partition("\n=> ")[0] + "\n"
    Path("my.yaml").write_text(config, encoding="utf-8")
    errors = []
    for command in (
        ["check", "my.yaml"],
        ["config", "my.yaml"],
        ["plan", "--configfile", "my.yaml"],
        ["why", "mlsm_figure3", "--configfile", "my.yaml"],
    ):
        assert main(command) == 1
        said = capsys.readouterr()
        assert not said.out
        errors.append(said.err)
    done = parsed(tmp_path, "my.yaml")
    assert done.returncode == 1
    if "Config file" in done.stderr:  # Snakemake has read the file before, and says itself what is no YAML mapping
        return
    lines = [line for line in done.stderr.splitlines(keepends=True) if line.startswith("masklab: ")]
    assert errors == ["".join(lines)] * 4 and "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != ".snakemake") == ["a.txt", "my.yaml"]
