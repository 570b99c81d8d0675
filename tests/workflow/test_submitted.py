"""A config that changes while jobs wait."""

import sys

import pytest
from running import ROOT, laid

from masklab.config import layered, load, overlay, plain

sys.path.insert(0, str(ROOT / "workflow"))
from paths import Paths
from submitted import VARIABLE, change, recall, remember

RAW = plain(layered())


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
    tracks = {"track": ["strict"], "objective": ["kd", "kd+mlm", "mlm", "mlsm", "mlsm+mlm"]}
    edited = laid(RAW, {"models": {"strict-phase1": {"steps": 7, "checkpoints": [7]},
                                   "{track}-{objective}": {"for": tracks, "init": "{track}-phase1@7"}},
                        "dictionaries": {"strict": {"model": "strict-phase1@7"}}})  # fmt: skip
    paths = Paths(load(edited), Paths(load(RAW)))
    assert paths.model("strict-phase1") == {"changed": "model.steps: 1200 when submitted, 7 now"}
    assert paths.model("strict-mlm")["changed"].startswith("model.init: 'strict-phase1@1200' when submitted")
    assert "changed" not in paths.model("dh-single-with") and "changed" not in paths.entity("corpora", "strict")
    named = overlay(RAW, {"corpora": {"extra": RAW["corpora"]["strict"]}})
    assert Paths(load(named), Paths(load(RAW))).entity("corpora", "extra") == {
        "changed": "corpora.extra: not declared when submitted"
    }
