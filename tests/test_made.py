"""What artifacts say they were made from, and the records of jobs."""

import os
from pathlib import Path

import pandas as pd
import pytest

from masklab.files import read_json, stamp, write_json, write_parquet
from masklab.jobs.code import Code
from masklab.jobs.provenance import Record, embed, input_mark, made_from, stamped, vouch


def test_parquet_and_json_carry_the_config(tmp_path):
    config = {"seed": 3, "corpus": {"kind": "markov"}}
    with stamped(config):
        write_parquet(pd.DataFrame({"a": [1]}), tmp_path / "a.parquet")
    write_parquet(pd.DataFrame({"a": [1]}), tmp_path / "b.parquet")
    assert made_from(tmp_path / "a.parquet") == config and made_from(tmp_path / "b.parquet") is None
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "a.parquet"), pd.read_parquet(tmp_path / "b.parquet"))
    write_json({"rows": 3}, tmp_path / "task.json")
    write_json({"config": {"other": 1}}, tmp_path / "manifest.json")
    write_json({"version": "1.0"}, tmp_path / "tokenizer.json")
    embed([tmp_path / name for name in ("task.json", "manifest.json", "tokenizer.json", "a.parquet")], config)
    assert made_from(tmp_path / "task.json") == config and read_json(tmp_path / "task.json")["rows"] == 3
    assert made_from(tmp_path / "manifest.json") == {"other": 1}
    assert read_json(tmp_path / "tokenizer.json") == {"version": "1.0"}


def test_a_stamp_ends_with_its_job(tmp_path):
    with pytest.raises(ValueError), stamped({"a": 1}):
        raise ValueError
    write_parquet(pd.DataFrame({"a": [1]}), tmp_path / "a.parquet")
    assert made_from(tmp_path / "a.parquet") is None
    stamp(None)


def test_attempts_add_up_until_config_or_code_change(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clock = iter([0.0, 7.0, 100.0, 105.0, 200.0, 201.0, 300.0, 302.0])
    monkeypatch.setattr("masklab.jobs.provenance.time.monotonic", lambda: next(clock))
    log, code = "results/logs/models/m/r1.log", Code.of({"masklab.rng": "1f"})
    Record("pretrain", {"recipe": "m"}, {"lr": 1}, code, log).stopped()
    found = read_json("results/made/models/m/r1.json")
    assert (found["finished"], found["seconds"], found["attempts"]) == (False, 7.0, 1)
    (tmp_path / "tokens").write_text("1 2 3")
    Record("pretrain", {"recipe": "m"}, {"lr": 1}, code, log).finished(["tokens"])
    found = read_json("results/made/models/m/r1.json")
    assert (found["finished"], found["seconds"], found["attempts"]) == (True, 12.0, 2)
    assert found["code"] == {"masklab.rng": "1f"} and found["versions"]["torch"]
    assert found["inputs"] == {"tokens": input_mark("tokens")}
    Record("pretrain", {"recipe": "m"}, {"lr": 2}, code, log).stopped()
    assert read_json("results/made/models/m/r1.json")["seconds"] == 1.0
    Record("pretrain", {"recipe": "m"}, {"lr": 2}, Code.of({"masklab.rng": "2f"}), log).stopped()
    assert read_json("results/made/models/m/r1.json")["seconds"] == 2.0


def test_a_job_that_is_started_again_after_its_end_leaves_its_record(tmp_path, monkeypatch):
    """It finds its own artifact in the store; one that differs was made by somebody else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tokens").write_text("1 2 3")
    log, code = "results/logs/models/m/r1.log", Code.of({"masklab.rng": "1f"})
    Record("pretrain", {"recipe": "m"}, {"lr": 1}, code, log).finished(["tokens"])
    first = read_json("results/made/models/m/r1.json")
    Record("pretrain", {"recipe": "m"}, {"lr": 1}, code, log).finished(["tokens"], taken_from="store/1")
    assert read_json("results/made/models/m/r1.json") == first and "taken_from" not in first
    (tmp_path / "tokens").write_text("4 5 6")
    Record("pretrain", {"recipe": "m"}, {"lr": 1}, code, log).finished(["tokens"], taken_from="store/2")
    assert read_json("results/made/models/m/r1.json")["taken_from"] == "store/2"


def test_an_input_is_known_as_snakemake_knows_it(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_text("a")
    large.write_bytes(bytes(1_000_000))
    before = input_mark(small), input_mark(large)
    os.utime(small, (1, 1))
    os.utime(large, (1, 1))
    assert input_mark(small) == before[0] and input_mark(large) != before[1]
    small.write_text("b")
    assert input_mark(small) != before[0]


def test_vouching_does_without_inputs_that_were_removed(tmp_path, monkeypatch):
    """A corpus, say, to make room, once its tokens were made: they are known as they were then."""
    monkeypatch.chdir(tmp_path)
    log, code = "results/logs/tokens/t.log", Code.of({"masklab.rng": "1f"})
    for name in ("gone", "kept"):
        Path(name).write_text(name)
    Record("tokens", {}, {"a": 1}, code, log).finished(["gone", "kept"])
    made = read_json("results/made/tokens/t.json")["inputs"]
    Path("gone").unlink()
    Path("kept").write_text("changed")
    vouch(log, {"a": 2}, code, ["gone", "kept", "new and gone"])
    vouched = read_json("results/made/tokens/t.json")["vouched"]
    assert vouched["config"] == {"a": 2}
    assert vouched["inputs"] == {"gone": made["gone"], "kept": input_mark("kept")} != made


def test_vouching_keeps_what_an_artifact_was_made_from(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log, code = "results/logs/tasks/t.log", Code.of({"masklab.rng": "1f"})
    vouch(log, {}, code, [])
    assert not Path("results/made").exists(), "nothing was made"
    Record("task", {"task": "t"}, {"a": (1,)}, code, log).finished([])
    vouch(log, {"a": (1,)}, code, [])
    assert "vouched" not in read_json("results/made/tasks/t.json"), "nothing differs"
    vouch(log, {"a": (2,)}, Code.of({"masklab.rng": "2f"}), [])
    found = read_json("results/made/tasks/t.json")
    assert found["config"] == {"a": [1]} and found["code"] == {"masklab.rng": "1f"}
    assert found["vouched"]["config"] == {"a": [2]} and found["vouched"]["code"] == {"masklab.rng": "2f"}
    Record("task", {"task": "t"}, {"a": (2,)}, code, log).finished([])
    assert "vouched" not in read_json("results/made/tasks/t.json")
