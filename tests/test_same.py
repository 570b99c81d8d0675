"""`tests/same.py` notices a changed score, weight or figure, and forgives a changed second."""

import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file


def run(folder, value=0.5, seconds=1.0, weight=1.0, drawn=b"one"):
    scores = pd.DataFrame({"metric": ["accuracy", "seconds"], "value": [value, seconds], "seconds": [seconds, seconds]})
    folder.mkdir()
    for name in ("scores", "figure"):
        scores.to_parquet(folder / f"{name}.parquet")
    save_file({"weight": torch.full((3,), weight)}, folder / "model.safetensors")
    (folder / "figure.png").write_bytes(drawn)
    return folder


@pytest.fixture
def said(monkeypatch, capsys):
    """said(folders): status and output of the command, in this process, which has its libraries already."""

    def said(folders):
        file = str(Path(__file__).with_name("same.py"))
        monkeypatch.setattr(sys, "argv", [file, *map(str, folders)])
        with pytest.raises(SystemExit) as ending:
            runpy.run_path(file, run_name="__main__")
        return int(ending.value.code), capsys.readouterr().out

    return said


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({}, []),
        ({"seconds": 2.0, "drawn": b"two"}, []),
        ({"value": 0.6}, ["figure.parquet", "scores.parquet"]),
        ({"weight": 1.1}, ["model.safetensors"]),
        ({"drawn": b"two"}, ["figure.png"]),
    ],
)
def test_what_is_noticed(change, differs, tmp_path, said):
    folders = [run(tmp_path / "one"), run(tmp_path / "two", **change)]
    status, output = said(folders)
    assert status == bool(differs)
    assert [line.strip() for line in output.splitlines() if line.startswith("  ")] == differs


def test_a_file_that_one_has_alone(tmp_path, said):
    folders = [run(tmp_path / "one"), run(tmp_path / "two")]
    (folders[1] / "more.png").write_bytes(b"more")
    assert "  more.png\n" in said(folders)[1]
