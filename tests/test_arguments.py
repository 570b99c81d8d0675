"""Arguments of commands that cannot be meant: one line, before any work."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from masklab.cli import main
from masklab.plan import read_assumptions

RANK = ["rank", "folder", "--text", "text.txt"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["plan", "--at-once", "0"], "--at-once: 0: must be at least 1"),
        (["plan", "--at-once", "-2"], "--at-once: -2: must be at least 1"),
        ([*RANK, "--lines", "-1"], "--lines: -1: must be at least 1: else there is no text"),
        ([*RANK, "--length", "1"], "--length: 1: must be at least 3: [CLS], a token and [SEP]"),
        ([*RANK, "--output", "none/x.csv"], "--output: none/x.csv: there is no folder none"),
        ([*RANK, "--plot", "none/x.png"], "--plot: none/x.png: there is no folder none"),
        ([*RANK, "--output", "."], "--output: .: is a folder; name a file"),
        (["rank", "models", "--text", "text.txt"], "models: no checkpoint: no config.json; it has step-20"),
        (["dictionary", "models", "--text", "text.txt"], "models: no checkpoint: no config.json; it has step-20"),
        (["dictionary", "folder", "--text", "text.txt", "--output", "file/x"], "file/x: {} is a file, not a folder"),
        (["grow", "folder", "--output", "file/x/y"], "file/x/y: {} is a file, not a folder"),
        (["export", "m", "file/x"], "file/x: {} is a file, not a folder"),
        (["new", "file/x"], "file/x: {} is a file, not a folder"),
        (["compare", "one", "two", "--output", "file"], "file/config.csv: {} is a file, not a folder"),
        (
            ["store", "--add", "models"],
            "models: holds no results: no records of jobs (made/), by which artifacts are known",
        ),
        (["corpus", "models"], "models: is a folder; name a split of a corpus in it, such as models/test.parquet"),
        (["corpus", "task.parquet"], "task.parquet: no corpus of symbols"),
        (["dictionary", "folder", "--text", "t", "--penalty", "nan"], "--penalty: nan: must be above 0"),
        (["dictionary", "folder", "--text", "t", "--penalty", "inf"], "--penalty: inf: must be below 1e+30"),
        (["dictionary", "folder", "--text", "t", "--atoms", "1", "--tokens", "1"], "--tokens: 1: must be at least 2"),
        (["schema", "--root", "models"], "--root: models: no checkout: there is no models/workflow"),
        (["plan", "--assume", "mixed.yaml"], "mixed.yaml: ['1', 'foo']: allowed are {}"),
        (["plan", "--assume", "none.yaml"], "none.yaml: No such file or directory"),
        (["why", ""], "why: no file is named; give one of the results, or a target such as mlsm_figure3"),
        (["new", "x" * 300], f"{'x' * 300}: File name too long"),
    ],
)
def test_what_cannot_be_meant_is_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models/step-20").mkdir(parents=True)
    (tmp_path / "file").touch()
    pq.write_table(pa.table({"symbols": [[1, 2]]}), tmp_path / "task.parquet")  # of a task, without how it was drawn
    (tmp_path / "mixed.yaml").write_text("1: 2\nfoo: 3\n")
    assert main(words) == 1
    place = ", ".join(read_assumptions()) if words[0] == "plan" else tmp_path / "file"
    assert capsys.readouterr().err == f"masklab: {said.format(place)}\n"


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1", "soon"])
def test_a_screen_is_shown_again_after_so_many_seconds(seconds, capsys):
    with pytest.raises(SystemExit):
        main(["status", "--watch", seconds])
    said = "argument -w/--watch: must be a number of seconds above 0 (got "
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"{said}{seconds!r})")
