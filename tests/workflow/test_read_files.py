"""A user's files that a job reads are inputs of it: models and tokenizers in folders, a WordNet."""

import copy
import sys
from pathlib import Path

import pytest
from running import ROOT

import small_wordnet
from masklab.config import load

sys.path.append(str(ROOT / "workflow"))
from paths import Paths, opened

CONFIG = {
    "corpora": {
        "drawn": {"kind": "causal", "causal": "./lm", "vocabulary": 20, "sequences": 100},
        "hub": {"kind": "causal", "causal": "facebook/opt-125m", "vocabulary": 20, "sequences": 100},
        "text": {"kind": "english", "sentences": 100},
    },
    "tokenizers": {"made": {"kind": "folder", "folder": "made", "max_length": 20}},
    "encoders": {"e": {"layers": 1, "hidden": 16, "heads": 2}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {
        "m": {"corpus": "text", "tokenizer": "made", "encoder": "e", "objective": "mlm", "steps": 2,
              "checkpoints": [2], "batch_size": 8},
    },
    "dictionaries": {"d": {"model": "m@2", "layer": 1, "atoms": 5, "sample": 50, "wordnet": "nltk"}},
    "tasks": {"cola": {"kind": "english-labels", "recipe": "acceptability"}},
    "probes": {
        "p": {"kind": "paraphrased", "tasks": ["cola"], "parses": ["parses.txt"], "wordnet": "nltk",
              "there": "there", "back": "facebook/wmt19-de-en"},
    },
    "studies": {"s": {"panels": {"x": ["m"]}, "probes": {"p": "all"}}},
}  # fmt: skip
NAMES = {"probe": "p", "recipe": "m", "replicate": "1", "unit": "all"}


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small_wordnet.write(tmp_path / "nltk", [("n", "cat puss")])
    for name in ("lm/config.json", "lm/pytorch_model.bin", "lm/notes.md", "lm/.hidden.json", "parses.txt",
                 "there/model.safetensors", "there/source.spm", "made/tokenizer.json", "made/tokenizer_config.json",
                 "made/special_tokens_map.json", "made/model.safetensors"):  # fmt: skip
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("{}")
    return Paths(load(CONFIG))


def test_the_folder_of_a_causal_model(paths):
    assert paths.inputs("corpus", corpus="drawn") == {"sources": ["lm/config.json", "lm/pytorch_model.bin"]}
    assert paths.inputs("corpus", corpus="hub") == {"sources": []}
    before = paths.sources("corpus", corpus="drawn")
    Path("lm/pytorch_model.bin").write_text("other weights")
    assert paths.sources("corpus", corpus="drawn") != before


def test_all_that_is_read_of_the_folder_of_a_tokenizer(paths):
    files = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
    assert paths.inputs("tokenizer", tokenizer="made") == {"sources": [f"made/{name}" for name in files]}
    Path("made/config.json").write_text("{}")
    assert paths.inputs("tokenizer", tokenizer="made")["sources"][-1] == "made/config.json"


def test_what_replaces_features(paths, tmp_path):
    found = paths.inputs("probe", **NAMES)["sources"]
    wordnet = tmp_path.resolve() / "nltk/corpora/wordnet"
    models = ("there/model.safetensors", "there/source.spm")
    assert set(found) == {"parses.txt", *models, *map(str, wordnet.iterdir())}
    assert str(wordnet / "data.noun") in found and len(set(found)) == len(found)


def test_the_wordnet_of_a_dictionary_s_page(paths, tmp_path):
    wordnet = tmp_path.resolve() / "nltk/corpora/wordnet"
    assert set(paths.inputs("dictionary_page", dictionary="d")["sources"]) == set(map(str, wordnet.iterdir()))
    before = paths.sources("dictionary_page", dictionary="d")
    (wordnet / "noun.exc").write_text("mice mouse\n")
    assert paths.sources("dictionary_page", dictionary="d") != before
    raw = copy.deepcopy(CONFIG)
    del raw["dictionaries"]["d"]["wordnet"]
    assert "sources" not in Paths(load(raw)).inputs("dictionary_page", dictionary="d")


OWN = """\
from masklab import own

class Asked(own.Entity):
    files: list[str] = []
    parses: int = 3

own.probe("asked", Asked)(len)
"""


def test_the_files_of_a_probe_of_one_s_own(paths):
    """By the keys that corpora and tasks name theirs by; any other value of such a key is no file."""
    Path("asked.py").write_text(OWN)
    Path("my.yaml").write_text(
        "code: asked.py\nprobes: {asked: {kind: asked, files: ['*.words', gone.txt]}}\n"
        "studies: {'*': null, s: {panels: {p: [strict-phase1]}, probes: {asked: all}}}\n"
    )
    Path("a.words").write_text("a")
    names = NAMES | {"probe": "asked", "recipe": "strict-phase1"}
    found = opened(["my.yaml"])
    assert found.notices == ["my.yaml:2: probes.asked.files: no file matches gone.txt"]
    assert found.inputs("probe", **names)["sources"] == ["a.words"]
    before = found.sources("probe", **names)
    Path("a.words").write_text("another")
    assert found.sources("probe", **names) != before


LISTED = """\
from masklab import own

class Listed(own.Weight):
    file: str

own.term("listed", Listed)(own.Term)
"""


def test_the_files_of_a_term_of_one_s_own(paths):
    Path("listed.py").write_text(LISTED)
    Path("words.txt").write_text("a")
    Path("my.yaml").write_text(
        "code: listed.py\nobjectives: {listed: {mlm: 1, listed: {weight: 1, file: words.txt}}}\n"
        "models: {listed: {like: strict-phase1, objective: listed}}\n"
        "studies: {'*': null, s: {panels: {p: [listed]}, probes: {minimal-pairs: all}}}\n"
    )
    found = opened(["my.yaml"])
    assert found.inputs("pretrain", recipe="listed", replicate="1")["sources"] == ["words.txt"]
    before = found.sources("pretrain", recipe="listed", replicate="1")
    Path("words.txt").write_text("another")
    assert found.sources("pretrain", recipe="listed", replicate="1") != before


HIDING = """\
from masklab import own

class Hidden(own.Weight):
    reads: own.ClassVar = True
    file: str

own.term("hidden", Hidden)(own.Term)
"""
MASKED = """\
code: hidden.py
objectives:
  hidden: {mlsm: 1, hidden: {weight: 1, file: words.txt}}
  plain: {mlsm: 1, listed: {weight: 1, file: words.txt}}
models:
  hidden: {like: strict-mlsm, objective: hidden, codes: masked}
  plain: {like: strict-mlsm, objective: plain, codes: masked}
studies: {'*': null, s: {panels: {p: [hidden, plain]}, probes: {minimal-pairs: all}}}
"""


def test_the_files_of_a_term_that_hides_tokens_are_read_for_the_codes_of_these(paths):
    """Those of a term that hides none decide no mask."""
    Path("hidden.py").write_text(HIDING + LISTED)
    Path("words.txt").write_text("a")
    Path("my.yaml").write_text(MASKED)
    found = opened(["my.yaml"])
    codes = {name: found.inputs("pretrain", recipe=name, replicate="1")["codes"] for name in ("hidden", "plain")}
    jobs = {name: found.job_of(path) for name, path in codes.items()}
    assert {rule for rule, _ in jobs.values()} == {"masked_codes"}
    read = {name: found.inputs(rule, **names).get("sources") for name, (rule, names) in jobs.items()}
    assert read == {"hidden": ["words.txt"], "plain": None}
    before = found.sources("masked_codes", **jobs["hidden"][1])
    Path("words.txt").write_text("another")
    assert found.sources("masked_codes", **jobs["hidden"][1]) != before
