"""`masklab new`: the study that it lays down runs, from its own folder, by the commands of its own README."""

import re
import shlex
import subprocess
import sys

import pandas as pd
import pytest

from masklab.cli import main


def commands(folder):
    """The commands of the README of a new study, to be run in its folder."""
    block = re.search(r"^```sh\n(.*?)^```", (folder / "README.md").read_text(), re.S | re.M)[1]
    modules = {"snakemake": "snakemake", "masklab": "masklab.cli"}
    for line in block.splitlines():
        program, *arguments = shlex.split(line)
        yield [sys.executable, "-m", modules[program], *arguments]


@pytest.mark.workflow
def test_a_new_study_runs_as_its_readme_says(tmp_path, capsys):
    folder = tmp_path / "mine"
    assert main(["new", str(folder)]) == 0 and "README.md there has the commands" in capsys.readouterr().out
    said = []
    for command in commands(folder):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        said.append(done.stdout + done.stderr)
    check, _, why = said
    assert "study    mine  2 recipes x 3 replicates" in check and "nothing to do" in why
    claim = pd.read_parquet(folder / "results/claims/mine.parquet").iloc[0]
    assert claim["replicates"] == 3 and claim["verdict"] == "supported" and claim["low"] > 0
    scores = pd.read_csv(folder / "results/scores.csv")
    assert set(scores["recipe"]) == {"short", "long", "untrained.short"} and set(scores["metric"]) == {
        "log_probability"
    }


def test_nothing_is_written_over(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["new", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"masklab: {tmp_path}: is not empty; name a new or an empty folder\n"
    assert main(["new", str(tmp_path / "notes.txt")]) == 1 and "is a file" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "empty").mkdir()
    assert main(["new", str(tmp_path / "empty")]) == 0 and (tmp_path / "empty" / "study.py").is_file()
