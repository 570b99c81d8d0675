"""Entries that a recipe with `folder` stands for, from its config.json alone."""

import json
from pathlib import Path

import pytest

from masklab.config import load, plain, read
from masklab.errors import MaskLabError

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 512}


@pytest.fixture
def said(tmp_path, monkeypatch):
    """said(more, config): the config with an adopted recipe and more, or what is said of it; config: config.json."""
    monkeypatch.chdir(tmp_path)

    def of(more="", config=SIZES):
        Path("bert").mkdir(exist_ok=True)
        Path("bert/config.json").write_text(config if isinstance(config, str) else json.dumps(config))
        Path("my.yaml").write_text(f"models: {{bert: {{folder: bert, corpus: strict}}}}\n{more}")
        try:
            return read("my.yaml")
        except MaskLabError as error:
            return str(error)

    return of


def test_its_sequences_may_be_shorter(said):
    """The one key of a derived entry that a config may say; the others follow from the folder."""
    config = said("tokenizers: {adopted.bert: {max_length: 64}}")
    assert config.tokenizers["adopted.bert"].max_length == 64 and config.encoders["adopted.bert"].hidden == 32
    assert load(plain(config.raw)) == config and said().tokenizers["adopted.bert"].max_length == 512
    line = "my.yaml:2: encoders.adopted.bert.hidden: follows from models.bert.folder; leave it out"
    assert said("encoders: {adopted.bert: {hidden: 64}}") == line


def test_what_is_no_folder_of_a_model_is_one_line(said):
    assert said(config=[1]).endswith("/bert/config.json: must be a JSON object")
    assert said(config="[" * 200_000).endswith("/bert/config.json: cannot be read (nested too deeply)")
    for key, value, allowed in (
        ("hidden_size", 0, "a positive integer"),
        ("hidden_dropout_prob", "x", "0 to 1"),
        ("hidden_dropout_prob", 1.5, "0 to 1"),
        ("initializer_range", ["x"], "0 to 100"),
        ("initializer_range", float("inf"), "0 to 100"),
    ):
        assert said(config=SIZES | {key: value}).endswith(f"/bert/config.json: {key} is {value!r}, allowed: {allowed}")
    few = {"model_type": "roberta", "pad_token_id": 600}
    assert said(config=SIZES | few).endswith("config.json: pad_token_id is 600, behind which no position is left")
    assert said("data: 5") == "my.yaml:2: data: must be text; put it in quotes (got 5)"


def test_it_takes_the_place_of_a_recipe_that_is_trained(said):
    """Nothing of what was trained is left over, as where an entry is of another kind."""
    said()
    preset = Path(__file__).parents[2] / "presets/phrases.yaml"
    Path("my.yaml").write_text(f"extends: [{preset}]\nmodels: {{dh-text: {{folder: bert, corpus: dh-text}}}}\n")
    recipe = read("my.yaml").models["dh-text"]
    assert (recipe.encoder, recipe.tokenizer, recipe.steps) == ("adopted.dh-text", "adopted.dh-text", 0)
    Path("my.yaml").write_text("models: {b: {like: strict-mlm, folder: bert}}\n")
    with pytest.raises(MaskLabError, match=r"models.b.encoder: 'tiny' is trained here; .* follows from folder"):
        read("my.yaml")
