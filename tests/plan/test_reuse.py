"""What a run takes from the store before anything runs, on artifacts and records written as jobs write them."""

import copy
import re
from collections import Counter
from pathlib import Path

import pytest
from test_plan import RAW

from masklab.config import load
from masklab.files import read_json
from masklab.jobs import state, store, underway
from masklab.jobs.provenance import Record
from masklab.plan.graph import checkout_paths, graph, opened
from masklab.plan.reuse import reuse


def paths_of(run="", **sections):
    raw = copy.deepcopy(RAW) | {"run": run}
    for section, entries in sections.items():
        for name, keys in entries.items():
            raw[section][name] |= keys
    return checkout_paths(load(raw))


def target(paths):
    return [paths.result("scores.parquet")]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder in which every job of the config has run, and its store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(store.VARIABLE, raising=False)
    paths = paths_of()
    make(paths, target(paths))
    return paths


def make(paths, targets):
    """Every job that targets need, as if it had run, in the folder and in its store."""
    for job in graph(paths, targets).values():
        for file in job.files:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(f"{job.key}")
        settings, code = paths.settings(job.rule, **job.names), paths.code(job.rule, **job.names)
        Record(job.rule, job.names, settings, code, paths.of_job("logs", job.rule, ".log", **job.names)).finished(
            job.reads
        )
        entry = store.entry(job.rule, job.names, settings, code, job.reads)
        store.publish(entry, job.rule, job.files)


def rules(jobs):
    return {job.rule for job in jobs}


def test_what_is_as_it_should_be_is_left_alone(made):
    found = reuse(made, target(made))
    assert found.taken == found.left == found.files == []


def test_another_run_takes_all_but_what_gathers_it(made):
    paths = paths_of("two")
    dry = reuse(paths, target(paths), dry=True)
    assert not Path("results/two").exists() and rules(dry.left) == {"scores"}
    noted = []
    found = reuse(paths, target(paths), note=noted.extend)
    assert [job.key for job in found.taken] == [job.key for job in dry.taken] and rules(found.left) == {"scores"}
    assert set(noted) <= set(found.files) and all(Path(file).exists() for file in found.files)
    record = read_json(paths.record("corpus", corpus="c"))
    assert record["finished"] and record["taken_from"].endswith(Path(record["taken_from"]).name)
    assert reuse(paths, target(paths)).taken == []


def test_a_change_leaves_what_hangs_below_it(made):
    paths = paths_of("two", chains={"words": {"main": 0.8}})
    found = reuse(paths, target(paths))
    assert {"corpus", "tokens", "pretrain", "probe"} <= rules(found.left)
    assert not rules(found.taken) & {"corpus", "tokens", "pretrain"}


def test_a_change_that_is_taken_back_is_found_again(made):
    changed = paths_of(chains={"words": {"main": 0.8}})
    corpus = "results/corpora/c/train.parquet"
    for name in ("train", "valid", "test"):  # made again by the changed config
        Path(f"results/corpora/c/{name}.parquet").unlink()
        Path(f"results/corpora/c/{name}.parquet").write_text("other")
    settings, code = changed.settings("corpus", corpus="c"), changed.code("corpus", corpus="c")
    Record("corpus", {"corpus": "c"}, settings, code, "results/logs/corpora/c.log").finished([])
    before = Path(corpus).stat().st_mtime_ns
    found = reuse(made, [corpus])
    assert [job.rule for job in found.taken] == ["corpus"] and "('corpus', 'c')" in Path(corpus).read_text()
    assert Path(corpus).stat().st_mtime_ns >= before, "what was made from the other one must see a newer file"


def test_a_job_that_somebody_is_doing_is_left_to_them(made):
    paths = paths_of("two")
    key = next(job for job in graph(paths, target(paths)).values() if job.rule == "pretrain")
    with state.locked(paths.of_job("state", "pretrain", **key.names)):
        found = reuse(paths, key.files)
    assert key.key in [job.key for job in found.left] and rules(found.taken) >= {"corpus", "tokens"}


def test_a_stopped_job_s_state_is_forgotten_where_its_artifact_is_taken(made):
    paths = paths_of("two")
    key = next(job for job in graph(paths, target(paths)).values() if job.rule == "pretrain")
    left = Path(paths.of_job("state", "pretrain", **key.names))
    left.mkdir(parents=True)
    (left / "state.safetensors").touch()
    reuse(paths, key.files)
    assert not list(left.glob("*.safetensors"))


def test_a_failure_is_forgotten_where_what_failed_is_there(made):
    """Taken from the store, or as it should be already; a dry walk removes nothing."""
    for run in ("two", ""):
        paths = paths_of(run)
        log = paths.log("corpus", corpus="c")
        job = underway.Underway("corpus", {"corpus": "c"}, log)
        job.failed("error: no room")
        job.file.close()
        reuse(paths, target(paths), dry=True)
        assert job.path.exists()
        reuse(paths, target(paths))
        assert not job.path.exists()


def test_one_figure_after_one_change_of_the_default_run(tmp_path, monkeypatch):
    """Another penalty of a dictionary: Figure 1, which shows one replicate, needs one job of a kind and no more."""
    files = [str(Path(__file__).parents[2] / "config.yaml")]
    before, after = opened(files), opened(files, ["run=penalty", "dictionaries={strict: {penalty: 0.1}}"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(store.VARIABLE, raising=False)
    make(before, before.items("mlsm")["figure1"])
    found = reuse(after, after.items("mlsm")["figure1"], dry=True)
    assert [job.rule for job in found.left] == ["dictionary", "codes", "pretrain", "probe", "figure"]
    assert all(job.names.get("replicate", "1") == "1" for job in [*found.left, *found.taken])
    every = [job for job in graph(after, after.everything()).values() if job.rule == "probe"]
    shown = {(job.names["recipe"], job.names["replicate"]) for job in every if job.names["probe"] == "figure1"}
    assert shown == {("strict-mlm", "1"), ("strict-mlsm", "1")}


def test_a_whole_study_after_one_change_of_the_default_run():
    """docs/made-again.md has the numbers: what depends on the penalty, by way of params or of inputs, and how often."""
    files, penalty = [str(Path(__file__).parents[2] / "config.yaml")], "dictionaries={strict: {penalty: 0.1}}"
    for study, replicates, made_again in (([], 5, 54), (["studies={mlsm: {replicates: 1}}"], 1, 22)):
        before, after = opened(files, study), opened(files, [*study, penalty])
        changed: Counter = Counter()
        keys = set()
        for key, job in graph(after, after.target("mlsm")).items():
            same = before.settings(job.rule, **job.names) == after.settings(job.rule, **job.names)
            if not same or keys & set(job.needs):
                keys.add(key)
                changed[job.rule] += 1
        drawn = {"figure": 8, "table": 4, "study_claims": 1}
        each = {"dictionary": 1, "codes": 1, "pretrain": 2, "probe": 4}
        by_replicate = {rule: count * replicates for rule, count in each.items()}
        by_replicate["probe"] += 1  # of Figure 1
        assert changed == drawn | by_replicate and sum(changed.values()) == made_again
        page = Path(__file__).parents[2].joinpath("docs/made-again.md").read_text(encoding="utf-8")
        assert re.search(rf"\sleaves\s{made_again}\b", page)
