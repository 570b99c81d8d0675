"""What artifacts say they were made from, and the records of jobs."""

import os

import pandas as pd
import pytest

from masklab.files import read_json, stamp, write_json, write_parquet
from masklab.jobs.provenance import Record, code_fingerprint, embed, made_from, stamped


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


def test_attempts_add_up_until_the_config_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clock = iter([0.0, 7.0, 100.0, 105.0, 200.0, 201.0])
    monkeypatch.setattr("masklab.jobs.provenance.time.time", lambda: next(clock))
    log = "results/logs/models/m.log"
    Record("pretrain", {"model": "m"}, {"lr": 1}, log).stopped()
    found = read_json("results/made/models/m.json")
    assert (found["finished"], found["seconds"], found["attempts"]) == (False, 7.0, 1)
    source = tmp_path / "code.py"
    source.write_text("a = 1\n")
    Record("pretrain", {"model": "m"}, {"lr": 1}, log).finished([source])
    found = read_json("results/made/models/m.json")
    assert (found["finished"], found["seconds"], found["attempts"]) == (True, 12.0, 2)
    assert found["code"] == code_fingerprint([source]) and found["versions"]["torch"]
    Record("pretrain", {"model": "m"}, {"lr": 2}, log).stopped()
    assert read_json("results/made/models/m.json")["seconds"] == 1.0


def test_code_is_known_by_content_alone(tmp_path):
    for folder, text in (("a", "x = 1\n"), ("b", "x = 1\n"), ("c", "x = 2\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "m.py").write_text(text)
    a, b, c = (code_fingerprint([tmp_path / folder / "m.py"]) for folder in "abc")
    assert a == b != c
    os.utime(tmp_path / "a/m.py", (1, 1))
    assert code_fingerprint([tmp_path / "a/m.py"]) == a
