"""A config that changes while jobs wait."""

import sys

import pytest
import yaml
from running import ROOT, snakemake
from test_symbolic import CONFIG

from masklab.config import load, overlay
from masklab.jobs.code import Code

sys.path.insert(0, str(ROOT / "workflow"))
from paths import Paths
from submitted import CODE, VARIABLE, change, recall, recall_code, remember, remember_code

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


def test_the_code_travels_too_and_what_changed_is_named(monkeypatch):
    monkeypatch.setenv(CODE, "")
    code = Paths(load(RAW)).code("corpus", corpus="strict")
    remember_code([code])
    assert recall_code() == code.modules
    assert Paths(load(RAW), submitted_code=recall_code()).code("corpus", corpus="strict").changed == []
    other = recall_code() | {"masklab.rng": "0"}
    assert Paths(load(RAW), submitted_code=other).code("corpus", corpus="strict").changed == ["masklab.rng"]


@pytest.mark.workflow
def test_a_job_of_other_code_than_was_submitted_stops_in_one_line(tmp_path, monkeypatch):
    """As a cluster's job starts: a Snakemake of its own, in the environment of the one that submitted it."""
    code = Paths(load(CONFIG)).code("corpus", corpus="dh")
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv(CODE, "")
    remember(CONFIG)
    remember_code([Code.of(code.modules | {"masklab.rng": "0"})])
    how = ("--mode", "remote", "--target-jobs", "corpus:corpus=dh", "--allowed-rules", "corpus", "--force")
    done = snakemake(tmp_path, CONFIG, *how, "--no-hooks", "--nolock", "--executor", "local", check=False)
    assert done.returncode == 1 and not list(tmp_path.glob("results/corpora/dh/*"))
    said = (tmp_path / "results/logs/corpora/dh.log").read_text().partition(" ")[2]
    assert (
        said
        == "error: the code changed while this job waited: masklab.rng; nothing was made; run the same command again\n"
    )
