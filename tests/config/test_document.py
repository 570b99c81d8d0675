"""docs/config.md is in step with the schema and its examples work; a config in print."""

import re
from pathlib import Path
from typing import get_args

import pytest
import yaml

from masklab.cli import main
from masklab.config import kinds, layered, plain, read
from masklab.config.document import READING, keys
from masklab.config.schema import KINDED, SECTIONS, Encoder
from masklab.corpora.english.labelled_tasks import RECIPES
from masklab.studies.listing import names

ROOT = Path(__file__).parents[2]


def test_the_page_is_in_step():
    written = (ROOT / "docs/config.md").read_text(encoding="utf-8")
    default = read(ROOT / "config.yaml")
    assert written == keys() + names(default), "run `masklab schema` to write it again"
    for study in default.studies.values():
        assert all(f"`{name}`" in written for name in (*study.figures, *study.tables))
    assert len(READING.splitlines()) < 90 and "Literal" not in written and "typing" not in written
    for section in KINDED:
        for kind in kinds.OURS[section]:
            assert f"`{section}.<name>` of kind `{kind}`" in written


@pytest.mark.parametrize("key", ["norm", "positions"])
def test_the_page_says_what_an_lstm_takes(key):
    field, other = Encoder.model_fields[key], {"norm": "pre", "positions": "none"}
    values = get_args(field.annotation)
    taken = [value for value in values if not Encoder(kind="lstm", **other | {key: value}).problem()]
    assert "An LSTM takes " + " or ".join(f"`{value}`" for value in taken) in field.description
    assert f"`{key}: {taken[0]}`" in Encoder.model_fields["kind"].description


def test_the_page_does_not_ask_for_what_follows_from_a_release():
    """`babylm-labels` with a task and a folder is whole: `train`, `metric` and the like come from the release."""
    for kind, task, given in (("babylm-pairs", "ewok", 2025), ("babylm-labels", "cola", 2023)):
        table = keys().partition(f"of kind `{kind}`")[2].partition("\n### ")[0]
        rows = [[cell.strip() for cell in line.split(" | ")] for line in table.splitlines() if line.startswith("| `")]
        required = {row[0].strip("| `") for row in rows if row[2] == "required"}
        entity = kinds.OURS["tasks"][kind].entity()
        entry = entity(kind=kind, task=task, folder="x", release=given)
        assert required == {"kind", "task", "folder"}
        own = {row[0].strip("| `") for row in rows if row[2] not in ("required", "the release's")}
        assert all(getattr(entry, key) == entity.model_fields[key].default for key in own - {"release"})


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """The page's examples, each in the file that its first line names."""
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"```\w+\n# (\S+)\n(.*?)```", READING, re.S):
        Path(name).write_text(text)
    yield tmp_path
    kinds.load([])


def test_its_examples_do_what_it_says(examples):
    default, mine = read(), read("my.yaml")
    assert mine.run == "mine" and mine.models["strict-mlm"].batch_size == 16
    assert set(default.studies) - set(mine.studies) == {"implicit-bias"}
    assert set(default.studies["mlsm"].panels) - set(mine.studies["mlsm"].panels) == {"strict-small"}
    sizes = read("sizes.yaml")
    new = [name for name in sizes.models if name not in default.models]
    assert new == ["small-tiny-16", "small-tiny-32", "small-wide-16", "small-wide-32"]
    assert sizes.studies["sizes"].panels == {"all": new}
    wide = sizes.models["small-wide-32"]
    assert (wide.encoder, wide.batch_size, wide.init, wide.optimiser.lr, wide.optimiser.warmup) == (
        "wide", 32, None, 5e-4, default.models["strict-mlm"].optimiser.warmup)  # fmt: skip
    assert sizes.encoders["wide"].layers == default.encoders["tiny"].layers
    for file in ("my.yaml", "sizes.yaml", "words.yaml"):
        assert main(["check", file]) == 0
    words = read("words.yaml")
    assert words.corpora["strict"].model_dump() == {"redraw": False, "kind": "repeated", "word": "masks"}


@pytest.mark.parametrize("file", ["config.yaml", "presets/paper.yaml"])
def test_a_config_in_print_reads_back(file, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["config", file]) == 0
    config, printed = read(file), yaml.safe_load(capsys.readouterr().out)
    dumped = {key: value for key, value in config.model_dump(mode="json").items() if value or key not in SECTIONS}
    assert printed == dumped


def test_where_each_key_comes_from(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text("models:\n  strict-mlm:\n    optimiser: {lr: 0.5}\n")
    assert main(["config", "my.yaml", "models.strict-mlm", "--config", "models={'strict-mlm': {'steps': 820}}"]) == 0
    said = {line.split(":")[0].strip(): line.split("# ")[1] for line in capsys.readouterr().out.splitlines()[1:]}
    assert said["lr"] == "my.yaml:3" and said["steps"] == "--config" and said["shuffle"] == "default"
    assert re.fullmatch(r".*src/masklab/studies/mlsm/default.yaml:\d+", said["batch_size"])
    assert main(["config", "models.strict-mln"]) == 1
    assert capsys.readouterr().err == "masklab: models.strict-mln: not declared; did you mean 'strict-mlm'?\n"
    assert main(["config", "modles"]) == 1 and "did you mean 'models'?" in capsys.readouterr().err
    assert main(["config", "--names", "models"]) == 0
    assert capsys.readouterr().out.split()[:2] == ["strict-phase1", "strict-small-phase1"]
    assert main(["config", "--names", "modles"]) == 1 and "did you mean 'models'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "file", ["config.yaml", *sorted(f"presets/{p.name}" for p in (ROOT / "presets").glob("*.yaml"))]
)
def test_check_passes_what_we_ship(file, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["check", file]) == 0
    said, config = capsys.readouterr().out, read(file)
    lines = said.splitlines()
    assert len(lines) < 30 and f"results  results/{config.run}".rstrip("/") + "/" in lines
    assert [line.split()[1] for line in lines if line.startswith("study")] == list(config.studies)
    own = [name for name, model in config.models.items() if name in config.raw["models"]]
    assert f"models {len(own)}, " in said and len(own) < len(config.models), "nulls are not entries of the file"
    counted = [re.search(r"x (\d+) replicates, \d+ nulls, ", line) for line in lines if line.startswith("study")]
    assert max(int(found[1]) for found in counted if found) >= 3


def test_the_default_is_short_and_its_parts_stand_alone():
    assert len((ROOT / "config.yaml").read_text().splitlines()) < 60
    for path in sorted((ROOT / "src/masklab/studies").glob("*/*.yaml")):
        assert read(path).studies and plain(layered([path]))


def test_the_names_of_tasks_stand_in_a_column_of_their_own(capsys):
    assert main(["tasks"]) == 0
    recipes = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    assert {line.split()[0] for line in recipes} == set(RECIPES)
