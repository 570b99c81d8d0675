"""A config that changes while jobs wait."""

import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from running import ROOT, laid, snakemake
from test_symbolic import CONFIG

from masklab.config import layered, load, overlay, plain
from masklab.jobs.code import Code

sys.path.insert(0, str(ROOT / "workflow"))
from paths import Paths
from submitted import CODE, VARIABLE, change, recall, recall_code, remember, remember_code

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
    assert paths.settings("pretrain", recipe="strict-phase1", replicate="1") == {
        "changed": "model.steps: 1500 when submitted, 7 now"
    }
    assert paths.settings("pretrain", recipe="strict-mlm", replicate="1")["changed"].startswith(
        "model.init: 'strict-phase1@1500' when submitted"
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


@pytest.mark.workflow
def test_a_job_of_a_cluster_reads_what_was_submitted(tmp_path, monkeypatch):
    """Files that extend others and values of the command line, in the process that a cluster's job starts."""
    (tmp_path / "low.yaml").write_text(
        "extends: []\ncorpora: {'c{n}': {for: {n: [1, 2]}, kind: english, sentences: 50, valid: 5, test: 5}}"
    )
    (tmp_path / "top.yaml").write_text("extends: low.yaml\ncorpora: {c2: {valid: 7}}")
    value = "corpora={'c2': {'sentences': 40}}"
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--mode", "remote",
               "--target-jobs", "corpus:corpus=c2", "--allowed-rules", "corpus", "--cores", "1", "--force", "--nolock",
               "--configfiles", str(tmp_path / "top.yaml"), "--config", value]  # fmt: skip
    for submitted, said in ((value, ""), (value.replace("40", "41"), "sentences: 41 when submitted, 40 now")):
        remember(plain(layered([tmp_path / "top.yaml"], [submitted])))
        monkeypatch.setenv(VARIABLE, os.environ[VARIABLE])  # forgotten after the test
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        log = (tmp_path / "results/logs/corpora/c2.log").read_text()
        assert (done.returncode == 0) == (not said), done.stdout + done.stderr
        assert said in log
        if not said:
            splits = [tmp_path / f"results/corpora/c2/{split}.parquet" for split in ("train", "valid")]
            assert [pq.read_metadata(split).num_rows for split in splits] == [40, 7]
