"""Grammars in the config: references, what is resolved, the rule file as an input of the workflow."""

import sys
from pathlib import Path

import pytest

from masklab.config import load, overlay, resolved
from masklab.config.references import law_entry
from masklab.config.sources import missing, source_files
from masklab.errors import MaskLabError

sys.path.append(str(Path(__file__).parents[2] / "workflow"))
from paths import Paths

CONFIG = {
    "grammars": {"g": {"words": 100}, "read": {"file": "rules.txt"}},
    "corpora": {"c": {"kind": "pcfg", "grammar": "g"}, "from-file": {"kind": "pcfg", "grammar": "read"}},
    "tokenizers": {"symbols": {"kind": "symbols", "corpus": "c", "max_length": 34}},
    "tasks": {"a": {"kind": "pcfg", "grammar": "g"}, "b": {"kind": "pcfg", "grammar": {"file": "rules.txt"}}},
}


def test_a_resolved_corpus_holds_its_grammar():
    config = load(CONFIG)
    assert resolved(config, config.corpora["c"])["grammar"]["words"] == 100
    assert resolved(config, config.tasks["a"])["grammar"] == resolved(config, config.corpora["c"])["grammar"]
    assert law_entry(config, config.tasks["b"]).file == "rules.txt"


def test_a_rule_file_is_an_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = load(CONFIG)
    assert Paths(config).inputs("corpus", corpus="from-file") == {"sources": []}  # said by the job that reads it
    assert missing(law_entry(config, config.corpora["from-file"])) == ["rules.txt"]
    Path("rules.txt").write_text("S a 1\n")
    wanted = {"sources": ["rules.txt"]}
    assert Paths(config).inputs("corpus", corpus="from-file") == Paths(config).inputs("task", task="b") == wanted
    assert Paths(config).inputs("corpus", corpus="c") == {"sources": []}
    assert source_files(law_entry(config, config.corpora["c"])) == []


@pytest.mark.parametrize(
    "change,said",
    [
        ({"corpora": {"c": {"grammar": "gg"}}}, "corpora.c.grammar: 'gg' is not declared; did you mean 'g'?"),
        ({"grammars": {"g": {"levels": [1]}}}, "grammars.g.levels: needs at least 2 items"),
        ({"grammars": {"g": {"stop": 0.6}}}, "grammars.g.stop: must be at most 0.5 (got 0.6)"),
        (
            {"grammars": {"g": {"emissions": 9}}},
            "grammars.g.emissions: 8 symbols with 9 words each cannot use 100 words",
        ),
        ({"grammars": {"g": {"stop_words": 101}}}, "grammars.g.stop_words: 101 are more than there are words (100)"),
        ({"tasks": {"a": {"reading": "prior"}}}, "reading: must be one of marginal, inside, outside (got 'prior')"),
    ],
)
def test_a_wrong_value_is_one_line(change, said):
    with pytest.raises(MaskLabError) as error:
        load(overlay(CONFIG, change))
    assert said in str(error.value) and "\n" not in str(error.value)
