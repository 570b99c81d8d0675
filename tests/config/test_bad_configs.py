"""Mistakes in a config, each with the line that is said of it: bad.txt has them."""

from pathlib import Path

import pytest

from masklab.cli import main
from masklab.config import read
from masklab.errors import MaskLabError
from masklab.plan.graph import opened


def cases() -> list:
    """(config, lines): a config, then a line for each mistake after `=> `; one that ends in `...` is a beginning."""
    found = []
    for case in Path(__file__).with_name("bad.txt").read_text(encoding="utf-8").rstrip("\n").split("\n\n"):
        config, *said = case.split("\n=> ")
        found.append(pytest.param(config + "\n", said, id=said[0].partition(": ")[2][:60]))
    return found


def beginning(line: str, message: str) -> bool:
    return message.startswith(line.removesuffix("...")) if line.endswith("...") else message == line


@pytest.mark.parametrize(("config", "said"), cases())
def test_a_mistake_is_one_line_with_file_line_and_key(config, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(config, encoding="utf-8")
    with pytest.raises(MaskLabError) as caught:
        opened(["my.yaml"])
    messages = str(caught.value).split("\n")
    assert len(messages) == len(said) and all(map(beginning, said, messages)), messages
    assert [path.name for path in tmp_path.iterdir()] == ["my.yaml"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            "models:\n  Mine: {like: strict-mlm}\n  other: {like: strict-mlm}\n  mine: {like: strict-mlm}\n",
            "4: models.mine: the same name as the one in line 2, but for its capitals, which file names here ignore",
        ),
        ("run: Models\n", "1: run: 'Models' is a folder of the run without a name; choose another name"),
    ],
)
def test_where_file_names_ignore_capitals_names_may_not_differ_in_them(config, said, tmp_path, monkeypatch):
    """As on most Macs: two recipes of one folder would overwrite each other."""
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text(config)
    read("my.yaml")
    monkeypatch.setattr("masklab.config.tells_case", lambda folder: False)
    with pytest.raises(MaskLabError) as caught:
        read("my.yaml")
    assert str(caught.value) == f"my.yaml:{said}"
    read()


def test_there_are_many():
    assert len(cases()) >= 180


def test_check_says_it_and_exits_with_1(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text("models:\n  strict-mlm:\n    batch_size: 0\n")
    assert main(["check", "my.yaml"]) == 1
    said = capsys.readouterr()
    assert said.err == "masklab: my.yaml:3: models.strict-mlm.batch_size: must be at least 1 (got 0)\n" and not said.out
    assert main(["plan", "--configfile", "my.yaml"]) == 1 and capsys.readouterr().err == said.err


def test_what_a_figure_lacks_is_said_with_file_and_line(tmp_path, monkeypatch, capsys):
    """What the workflow checks besides the config when it starts."""
    monkeypatch.chdir(tmp_path)
    probes = "{figure1: null, figure2: null}"
    study = f"figures: [figure2]\n    panels: {{strict: [strict-mlm]}}\n    claims: []\n    probes: {probes}\n"
    Path("my.yaml").write_text(f"studies:\n  mlsm:\n    {study}")
    assert main(["check", "my.yaml"]) == 1
    assert capsys.readouterr().err.startswith(
        "masklab: my.yaml:3: studies.mlsm.figures: figure2: needs a panel in which"
    )


@pytest.mark.parametrize("name", ["模型", "modèle", "मॉडल", "a_b.c+d-e", "2M"])
def test_names_in_any_script(name, tmp_path):
    path = tmp_path / "my.yaml"
    path.write_text(f"models:\n  {name}: {{like: strict-mlm}}\nrun: {name}\n", encoding="utf-8")
    config = read(path)
    assert config.models[name].steps == 400 and config.run == name


def test_names_that_a_locale_writes_otherwise_than_libraries_do(tmp_path, monkeypatch):
    """Under ISO-8859-1 a corpus of such a name was read and, its parts not being found again, had no sequences."""
    monkeypatch.chdir(tmp_path)
    Path("my.yaml").write_text("models: {größer: {like: strict-mlm}}\n", encoding="utf-8")
    opened(["my.yaml"])
    monkeypatch.setattr("sys.getfilesystemencoding", lambda: "iso8859-1")
    with pytest.raises(
        MaskLabError, match=r"^größer: .* this locale's names of files are iso8859-1; set PYTHONUTF8=1$"
    ):
        opened(["my.yaml"])
    Path("my.yaml").write_text("models: {larger: {like: strict-mlm}}\n")
    opened(["my.yaml"])
