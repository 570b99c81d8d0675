"""docs/real-text.md, block by block, on files of a few lines in the same formats."""

import re
import sys
from pathlib import Path

import pytest

from masklab.cli import main
from masklab.config import kinds, read
from masklab.tasks import build

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests/workflow"))
from small_data import lay_down  # noqa: E402

PAGE = (ROOT / "docs/real-text.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.S | re.M)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page's configs as files: the first as mine.yaml, what follows laid over it."""
    monkeypatch.chdir(tmp_path)
    names = ["mine.yaml"]
    Path("mine.yaml").write_text(lay_down(BLOCKS[0], tmp_path))
    for number, block in enumerate(BLOCKS[1:], 2):
        names.append(f"block{number}.yaml")
        Path(names[-1]).write_text(f"extends: {names[-2]}\n{lay_down(block, tmp_path)}")
    return names


def test_every_block_is_a_config(page, capsys):
    assert len(BLOCKS) >= 2
    for name in page:
        assert main(["check", name]) == 0, capsys.readouterr().err
        said = capsys.readouterr()
        assert "no file matches" not in said.err and f"results/{read(name).run}/" in said.out


def test_what_its_entries_say_can_be_read(page):
    """Corpus and tasks are made as jobs make them."""
    config = read(page[-1])
    splits = kinds.find("corpora", "text").function()(config.corpora["strict"], "strict", 1)
    assert {split: len(table) for split, table in splits.items()} == {"train": 304, "valid": 1000, "test": 1000}
    rows = {}
    for name, task in config.tasks.items():
        if task.kind in ("pair-files", "label-files", "babylm-pairs", "babylm-labels", "glue", "squad"):
            made, facts = build(task, name, 1)
            rows[name] = facts["kind"], len(made["test"])
    assert rows == {
        "blimp": ("pairs", 8), "cola": ("labels", 8), "rte": ("labels", 8), "wsc": ("labels", 8),
        "mnli": ("labels", 16), "squad": ("spans", 8), "blimp-2023": ("pairs", 8), "cola-2023": ("labels", 8),
        "main_verb_lexical_content_the": ("labels", 8),
    }  # fmt: skip


def test_its_plan_reads_the_files(page, capsys):
    assert main(["plan", "mlsm", "--configfile", "mine.yaml", "--device", "cpu"]) == 0
    said = capsys.readouterr()
    assert "| mlsm |" in said.out and "whose files are not there" not in said.out
