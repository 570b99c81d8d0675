"""What a probe of paraphrases lacks on this machine: one line with file, line and key."""

import json
from pathlib import Path

import pytest
import yaml

import small_wordnet
from masklab.config import check_phrases
from masklab.config.sources import below
from masklab.errors import MaskLabError
from masklab.plan.graph import opened

PARSE = "(ROOT (S (NP (DT The) (NN cat)) (VP (VBZ runs))))\n"


@pytest.fixture
def said(tmp_path, monkeypatch):
    """said(**keys): what is said of a probe with these keys; parses, a WordNet and a model are in the folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    small_wordnet.write(tmp_path / "nltk", [("n", "cat puss")])
    Path("parses.txt").write_text(PARSE)
    Path("text.txt").write_text("The cat runs.\n")
    Path("model").mkdir()
    Path("model/config.json").write_text("{}")

    def say(**keys):
        probe = {"kind": "paraphrased", "tasks": ["acceptability"], "parses": ["parses.txt"], **keys}
        Path("my.yaml").write_text(yaml.safe_dump({"probes": {"mine": probe}}, sort_keys=False))
        try:
            notes = [note for note in opened(["my.yaml"]).notices if "probes.mine" in note]
        except MaskLabError as error:
            return str(error)
        return "\n".join(notes) or None

    return say


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"wordnet": "nowhere"}, "my.yaml:8: probes.mine.wordnet: nowhere: no WordNet database there; it must hold"),
        ({"wordnet": "nltk", "parses": ["*.tree"]}, "my.yaml:6: probes.mine.parses: no file matches *.tree"),
        ({"wordnet": "nltk", "parses": ["text.txt"]}, "my.yaml:6: probes.mine.parses: text.txt: begins with no '('"),
        ({"there": "nobody/nothing", "back": "model"}, "my.yaml:8: probes.mine.there: 'nobody/nothing' is no folder"),
        ({"there": "model", "back": "nltk"}, "my.yaml:9: probes.mine.back: 'nltk' holds no config.json"),
        ({"there": "model"}, "my.yaml:2: probes.mine.back: a phrase is translated there and back"),
        (
            {"there": "model", "back": "model", "drawn": True},
            "my.yaml:10: probes.mine.drawn: words are replaced by synonyms of WordNet; name its folder under `wordnet`",
        ),
        ({}, "my.yaml:2: probes.mine.wordnet: nothing to replace features by; name a WordNet, or models"),
    ],
)
def test_what_is_missing_is_one_line(said, keys, message):
    found = said(**keys)
    assert found and "\n" not in found and found.startswith(message), found


@pytest.mark.parametrize(("kind", "package"), [("fsmt", "sacremoses"), ("marian", "sentencepiece")])
def test_a_package_that_a_tokenizer_needs_is_asked_for_before_any_job(said, monkeypatch, kind, package):
    """The paper's own translation models, facebook/wmt19-en-de and -de-en, are of FSMT."""
    Path("model/config.json").write_text(json.dumps({"model_type": kind}))
    monkeypatch.setattr(check_phrases, "find_spec", lambda name: None if name == package else True)
    found = said(there="model", back="model")
    assert found == (
        f"my.yaml:8: probes.mine.there: model: its tokenizer needs {package}, which is not installed;"
        f" pip install {package}"
    )
    monkeypatch.setattr(check_phrases, "find_spec", lambda name: True)
    assert said(there="model", back="model") is None
    Path("model/config.json").write_text("[" * 200_000)
    assert said(there="model", back="model") is None, "the probe says what is wrong with it"


def test_what_is_there_is_read(said, tmp_path):
    assert said(wordnet="nltk", there="model", back="model") is None
    config = opened(["my.yaml"]).config.model_copy(update={"data": str(tmp_path)})
    probe = below(config).probes["mine"]
    assert probe.parses == [f"{tmp_path}/parses.txt"] and probe.wordnet == f"{tmp_path}/nltk"
    assert probe.there == f"{tmp_path}/model"
    named = config.probes["mine"].model_copy(update={"there": "facebook/wmt19-en-de"})
    assert below(config.model_copy(update={"probes": {"mine": named}})).probes["mine"].there == "facebook/wmt19-en-de"
