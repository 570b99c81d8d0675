"""Finished artifacts that enter the store by their records, under the very keys that their jobs would have."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from masklab.cli import main
from masklab.files import read_json, sha256, write_json
from masklab.jobs import store
from masklab.jobs.backfill import backfill
from masklab.jobs.code import Code
from masklab.jobs.provenance import Record, input_mark

CORPUS, RECORD = "results/corpora/c/train.parquet", "results/made/tokens/c/t.json"
CODE = Code.of({"workflow/scripts/tokens.py": "12ab"})


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(store.VARIABLE, raising=False)
    for root in ("results", "results/run"):
        files = ["corpora/c/train.parquet", *(f"tokens/c/t/{name}" for name in store.FOLDERS["tokens"])]
        for file in (*files, "scores/p/m/r1/a.parquet", "scores/p/m/r1/a.items.parquet", "scores/p/m/r1/ab.parquet"):
            path = tmp_path / root / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{root} {file}")
    record("tokens", "results", "tokens/c/t")
    record("probe", "results/run", "scores/p/m/r1/a")
    return tmp_path / "results"


def record(rule, root, place, **facts):
    made = Record(rule, {"name": place}, {"size": 4}, CODE, f"{root}/logs/{place}.log")
    made.finished([f"{root}/corpora/c/train.parquet"], **facts)


def test_what_its_record_still_describes_enters_under_its_jobs_key(results):
    assert backfill(results) == (2, {})
    for rule, root, place, names in (
        ("tokens", "results", "tokens/c/t", set(store.FOLDERS["tokens"])),
        ("probe", "results/run", "scores/p/m/r1/a", {"a.parquet", "a.items.parquet"}),
    ):
        entry = store.entry(rule, {"name": place}, {"size": 4}, CODE, [f"{root}/corpora/c/train.parquet"])
        assert set(entry.listing()) == names
    assert backfill(results) == (0, {}), "a second time there is nothing to add"


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda: Path(CORPUS).write_text("x"), "made from something else than lies there now"),
        (lambda: os.utime("results/tokens/c/t/meta.json", (4e9, 4e9)), "written to since it was made"),
        (lambda: shutil.rmtree("results/tokens/c/t"), "no longer there"),
        (lambda: os.remove("results/tokens/c/t/train.ids.npy"), "no longer whole"),
        (lambda: _edit(finished=False), "not finished"),
        (lambda: _edit(versions=None), "no record of this version"),
        (lambda: _edit(code=None), "no record of this version"),
        (lambda: write_json([1], RECORD), "no record of this version"),
    ],
)  # fmt: skip
def test_what_is_not_as_its_record_says_stays_out(results, harm, reason):
    harm()
    assert backfill(results) == (1, {reason: 1})


def test_what_cannot_be_read_stays_out_and_the_rest_enters(results, monkeypatch):
    """Another person's file, say; it is no fault of the store. A folder may be called as records are."""
    record("tokens", "results", "tokens/x.json/t")

    def denied(path):
        if "results/run/" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return input_mark(path)

    monkeypatch.setattr("masklab.jobs.backfill.input_mark", denied)
    assert backfill(results) == (1, {"cannot be read": 1, "no longer there": 1})


def test_a_model_without_one_of_its_checkpoints_stays_out(results):
    folder, steps = results / "models/m/r1", {}
    for step in ("100", "200"):
        weights = folder / f"step-{step}/model.safetensors"
        weights.parent.mkdir(parents=True)
        weights.write_text(f"weights {step}")
        steps[step] = sha256(weights)
    (folder / "metrics.parquet").write_text("losses")
    write_json({"steps": steps}, folder / "manifest.json")
    record("pretrain", "results", "models/m/r1")
    weights.unlink()
    assert backfill(results) == (2, {"no longer whole": 1})
    weights.write_text("weights 200")
    assert backfill(results) == (1, {})


def test_a_checkpoint_behind_a_link_enters_with_its_model(results, tmp_path):
    """On a larger disk, say."""
    folder = results / "models/m/r1"
    for place in (folder, tmp_path / "disk/step-100"):
        place.mkdir(parents=True)
    (folder / "step-100").symlink_to(tmp_path / "disk/step-100")
    weights = folder / "step-100/model.safetensors"
    weights.write_text("weights 100")
    (folder / "metrics.parquet").write_text("losses")
    write_json({"steps": {"100": sha256(weights)}}, folder / "manifest.json")
    record("pretrain", "results", "models/m/r1")
    assert backfill(results) == (3, {})
    train = ["results/corpora/c/train.parquet"]
    entry = store.entry("pretrain", {"name": "models/m/r1"}, {"size": 4}, CODE, train)
    assert set(entry.listing()) == {"manifest.json", "metrics.parquet", "step-100/model.safetensors"}


def _edit(**facts):
    write_json({key: value for key, value in (read_json(RECORD) | facts).items() if value is not None}, RECORD)


def test_an_artifact_of_other_versions_keeps_their_key(results):
    _edit(versions={"torch": "1.0"})
    assert backfill(results)[0] == 2
    names = {"name": "tokens/c/t"}
    arguments = "tokens", names, {"size": 4}, CODE, ["results/corpora/c/train.parquet"]
    assert not store.entry(*arguments).there and store.entry(*arguments, {"torch": "1.0"}).there


def test_the_command(results, capsys):
    assert main(["store", "--add"]) == 0 and "2 artifacts added" in capsys.readouterr().out
    assert main(["store"]) == 0 and "2 artifacts" in capsys.readouterr().out
    assert main(["store", "--empty"]) == 0 and "2 artifacts removed" in capsys.readouterr().out
    assert main(["store"]) == 0 and capsys.readouterr().out.endswith("empty\n")
    assert main(["store", "--add", "nowhere"]) == 1 and "nowhere: no such folder" in capsys.readouterr().err


def test_a_model_whose_training_changed_under_way_is_not_said_to_be_added(results):
    folder = results / "models/m/r1"
    folder.mkdir(parents=True)
    (folder / "metrics.parquet").write_text("losses")
    write_json({"steps": {}, store.CHANGED: [{"processes": 1}, {"processes": 2}]}, folder / "manifest.json")
    record("pretrain", "results", "models/m/r1")
    why = "trained otherwise from a resumption on, as its manifest says"
    assert [backfill(results) for _ in range(2)] == [(2, {why: 1}), (0, {why: 1})]
