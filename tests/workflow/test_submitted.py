"""A config that changes while jobs wait."""

import sys

import pytest
import yaml
from running import ROOT

from masklab.config import load, overlay

sys.path.insert(0, str(ROOT / "workflow"))
from paths import Paths
from submitted import VARIABLE, change, recall, remember

RAW = yaml.safe_load((ROOT / "config.yaml").read_text())


def test_the_config_travels_in_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, "")
    remember(RAW)
    assert recall() == RAW
    monkeypatch.delenv(VARIABLE)
    assert recall() is None


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ({"a": {"b": 1}}, {"a": {"b": 1}}, None),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "a.b: 1 when submitted, 2 now"),
        ({"a": [1]}, {"a": [1, 2]}, "a: [1] when submitted, [1, 2] now"),
        ({}, {"a": 1}, "a: None when submitted, 1 now"),
    ],
)
def test_the_first_difference_is_named(then, now, said):
    assert change(then, now) == said


def test_only_what_changed_stops():
    edited = overlay(RAW, {"models": {"{track}-phase1": {"steps": 7, "checkpoints": [7]},
                                      "{track}-{objective}": {"init": "{track}-phase1@7"}},
                           "dictionaries": {"{track}": {"model": "{track}-phase1@7"}}})  # fmt: skip
    paths = Paths(load(edited), Paths(load(RAW)))
    assert paths.settings("pretrain", recipe="strict-phase1", replicate="1") == {
        "changed": "model.steps: 1200 when submitted, 7 now"
    }
    assert paths.settings("pretrain", recipe="strict-mlm", replicate="1")["changed"].startswith(
        "model.init: 'strict-phase1@1200' when submitted"
    )
    assert "changed" not in paths.settings("pretrain", recipe="dh-single-with", replicate="1")
    assert "changed" not in paths.settings("corpus", corpus="strict")
    named = overlay(RAW, {"corpora": {"extra": RAW["corpora"]["strict"]}})
    assert Paths(load(named), Paths(load(RAW))).settings("corpus", corpus="extra") == {
        "changed": "corpus extra: not declared when submitted"
    }
