"""What `masklab export`, and other commands, say of folders that are no checkpoint of a network."""

import numpy as np
import pytest

from masklab.cli import main
from masklab.errors import MaskLabError
from masklab.export import export
from masklab.models.lookup import save_lookup
from masklab.models.words import Words, save_words


@pytest.mark.parametrize(
    ("folder", "has"),
    [
        ("m", "r1/step-20, r1/step-100, r2/step-20, r10/step-20"),
        ("m/r1", "step-20, step-100"),
    ],
)
def test_of_a_folder_of_a_recipe_the_checkpoints_in_it_are_named(folder, has, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for step in ("r1/step-100", "r1/step-20", "r10/step-20", "r2/step-20"):
        (tmp_path / "results/models/m" / step).mkdir(parents=True)
    (tmp_path / "results/models/notes.txt").touch()
    with pytest.raises(MaskLabError) as caught:
        export(f"results/models/{folder}", "out")
    assert str(caught.value) == f"results/models/{folder}: no checkpoint: no config.json; it has {has}"
    with pytest.raises(MaskLabError, match=r"n: no finished model in results/models/n/r1; recipes there: m$"):
        export("n", "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["words", "lookup"])
@pytest.mark.parametrize(
    "command",
    [["rank", "--text", "lines.txt"], ["dictionary", "--text", "lines.txt"], ["grow", "--output", "out"], ["export"]],
    ids=lambda command: command[0],
)
def test_a_model_without_a_network_is_said_to_be_one(kind, command, english, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text("the cat sees a dog\n")
    tokenizer = {"tokenizer_folder": english / "tokenizer", "metadata": {"model": "m", "step": 0, "config": {}}}
    if kind == "words":
        save_words("m", Words(np.full(500, 1 / 500), False, 40), **tokenizer)
    else:
        save_lookup("m", {}, **tokenizer)
    name, *options = command
    assert main([name, "m", *options, *(["out"] if name == "export" else [])]) == 1
    said = "masklab: m: holds no weights; a model without a network cannot be loaded\n"
    assert capsys.readouterr().err == said and not (tmp_path / "out").exists()
