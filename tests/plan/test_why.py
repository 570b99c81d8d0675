"""Why an artifact would be made again, on records written as jobs write them."""

import copy
from pathlib import Path

import pytest
from test_plan import RAW

from masklab.config import load
from masklab.errors import MaskLabError
from masklab.files import read_json, write_json
from masklab.jobs.provenance import Record
from masklab.plan.graph import checkout_paths, graph
from masklab.plan.why import why

SCORES = "results/scores/loss/second/r1/all.parquet"


def paths_of(**sections):
    raw = copy.deepcopy(RAW)
    for section, entries in sections.items():
        for name, keys in entries.items():
            raw[section][name] |= keys
    return checkout_paths(load(raw))


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder in which every job of the config has run: empty files, and their records."""
    monkeypatch.chdir(tmp_path)
    paths = paths_of()
    files = ["results/scores.parquet"]
    for job in graph(paths, files).values():
        found = paths.inputs(job.rule, **job.names).values()
        inputs = [file for value in found for file in ([value] if isinstance(value, str) else value)]
        for file in inputs:
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).touch()
        log = paths.record(job.rule, **job.names).replace("/made/", "/logs/").replace(".json", ".log")
        settings, code = paths.settings(job.rule, **job.names), paths.code(job.rule, **job.names)
        Record(job.rule, job.names, settings, code, log).finished(inputs)
    Path(files[0]).touch()
    return paths


def blocks(said: str) -> dict[str, list[str]]:
    """Job -> what is said of it."""
    found = {}
    for block in said.split("\n\n")[1:]:
        head, *lines = block.splitlines()
        found[head.partition(": ")[0]] = [line.strip() for line in lines]
    return found


def test_what_is_up_to_date_says_so(made):
    for file in (SCORES, "results/models/first/r1", "results/models/first/r1/step-50/config.json"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).touch() if not Path(file).exists() else None
        assert "made from this very input, nothing to do" in why(made, file)
    assert "\n  probe loss second r1 all: 20" in why(made, SCORES)


def test_links_to_the_folder_and_to_its_results_are_followed(made, tmp_path):
    link, elsewhere = tmp_path.parent / "link", tmp_path.parent / "scratch"
    link.symlink_to(tmp_path)
    said = why(made, SCORES)
    assert why(made, str(link / SCORES)) == why(made, str(tmp_path / SCORES)) == said
    Path("results").rename(elsewhere)
    Path("results").symlink_to(elsewhere)
    below = SCORES.partition("/")[2]
    assert why(made, str(elsewhere / below)) == why(made, str(link / SCORES)) == why(made, SCORES) == said
    with pytest.raises(MaskLabError, match="no rule makes it"):
        why(made, str(tmp_path.parent / "other" / SCORES))


def test_what_was_never_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = why(paths_of(), SCORES)
    assert (
        said.startswith(f"{SCORES}: never made\n")
        and "never made: probe loss second r1 all; pretrain second r1" in said
    )


def test_a_key_of_the_config_with_what_hangs_below(made):
    paths = paths_of(chains={"words": {"main": 0.8}})
    said = why(paths, SCORES)
    assert said.startswith(f"{SCORES}: to be made again\n")
    assert blocks(said) == {
        "corpus c": [
            "config   corpus.chains.main: 0.9 -> 0.8",
            "needed by tokens c t, probe loss second r1 all",
        ]
    }
    for decides_nothing in ({"replicates": 3}, {"save_minutes": 7}):
        assert "nothing to do" in why(paths_of(models={"second": decides_nothing}), SCORES)


def test_several_keys_are_cut_short(made):
    keys = {"log_every": 7, "validate_every": 5, "stack": False, "micro_batch": 4, "precision": "bf16"}
    said = blocks(why(paths_of(models={"second": keys}), "results/models/second/r1/manifest.json"))[
        "pretrain second r1"
    ]
    assert said[0] == "config   model.micro_batch: 2 -> 4" and said[-1] == "config   ... and 1 more"


def test_inputs(made):
    Path("results/tokenizers/t/tokenizer.json").write_text("{}")
    said = blocks(why(made, "results/tokens/c/t/meta.json"))
    assert said == {"tokens c t": ["input    results/tokenizers/t/tokenizer.json: another content"]}
    Path("results/tokenizers/t/tokenizer.json").write_text("")
    paths = paths_of(models={"second": {"init": "first@10"}, "first": {"checkpoints": [10]}})
    said = blocks(why(paths, SCORES))
    assert set(said) == {"pretrain second r1", "pretrain first r1"}
    fresh = paths_of(models={"second": {"init": None}})
    said = blocks(why(fresh, SCORES))["pretrain second r1"]
    assert "input    results/models/first/r1/manifest.json: no longer read" in said
    assert "config   model.init: 'first@50' -> None" in said and "config   phase: 1 -> 0" in said


def test_code_and_versions(made):
    record = read_json("results/made/models/first/r1.json")
    record["code"] |= {"masklab.rng": "0", "masklab.gone": "1"}
    record["versions"]["torch"] = "1.0"
    write_json(record, "results/made/models/first/r1.json")
    said = blocks(why(made, "results/models/first/r1/manifest.json"))["pretrain first r1"]
    assert said[:2] == ["code     masklab.rng", "code     masklab.gone: no longer used"]
    assert said[2].startswith("versions torch 1.0 -> ") and said[2].endswith("(runs nothing again by itself)")
    record["code"] = dict(made.code("pretrain", recipe="first", replicate="1").modules)
    write_json(record, "results/made/models/first/r1.json")
    said = why(made, "results/models/first/r1/manifest.json")
    assert "nothing to do" in said and "versions torch" in said


def test_a_stopped_job_and_a_lost_file(made):
    record = read_json("results/made/tasks/p.json")
    write_json(record | {"finished": False, "attempts": 3}, "results/made/tasks/p.json")
    assert "stopped before it ended, after 3 attempts" in why(made, "results/tasks/p/task.json")
    Path("results/tokens/c/t/meta.json").unlink()
    assert blocks(why(made, SCORES))["tokens c t"] == ["output   not there", "needed by probe loss second r1 all"]


@pytest.mark.parametrize("record", [[], {}, {"finished": True}, {"finished": False, "config": {}}], ids=str)
def test_a_record_that_is_none_counts_as_none(made, record):
    """As those of other versions; it had been said that the config does not declare one of its keys."""
    file = next(Path("results/made/scores/loss/second").rglob("*.json"))
    write_json(record, file)
    assert "record   none: made before there were records, or elsewhere" in why(made, SCORES)


def test_what_no_rule_makes_or_the_config_does_not_declare(made):
    with pytest.raises(MaskLabError, match="results/nothing: no rule makes it"):
        why(made, "results/nothing")
    with pytest.raises(MaskLabError, match="'third' is not declared in this config"):
        why(made, "results/models/third/r1/manifest.json")


def test_a_target_of_many_artifacts(made):
    """A study, whose scores these are since it draws nothing, or all of them."""
    assert why(made, "b").startswith("b: made from this very input, nothing to do")
    said = why(paths_of(models={"second": {"log_every": 7}}, tasks={"p": {"test": 6}}), "b")
    assert said.startswith("b: 1 of 2 artifacts to be made, or made again\n") and "task p" in blocks(said)
    assert why(made, "a") == why(made, SCORES) and why(made, "scores") == why(made, "results/scores.parquet")
    assert "never made: facts" in why(made, "all")


def test_what_no_target_is_called(made):
    with pytest.raises(MaskLabError, match="scors: no rule makes it; did you mean 'scores'"):
        why(made, "scors")
    with pytest.raises(MaskLabError, match="c: no rule makes it; studies: a, b; a figure or table of one is <study>_"):
        why(made, "c")


def test_a_file_of_another_run_is_said_to_be_one(made):
    other = checkout_paths(load(copy.deepcopy(RAW) | {"run": "mine"}))
    with pytest.raises(MaskLabError, match="results/models/first/r1: another run made it, that of results/ itself;"):
        why(other, "results/models/first/r1")
    Path("results/mine/made").mkdir(parents=True)
    with pytest.raises(
        MaskLabError, match=r"scores\.parquet: another run made it, that of results/mine; name its config"
    ):
        why(made, "results/mine/scores.parquet")
    assert why(other, "results/mine/scores.parquet").startswith("results/mine/scores.parquet: never made")


def test_a_folder_is_known_by_what_lies_in_it(made):
    """Of a task its task.json, of a checkpoint any file: what is there is not said to be missing."""
    step = Path("results/models/first/r1/step-50/config.json")
    step.parent.mkdir(parents=True, exist_ok=True)
    step.touch()
    for folder in ("results/tasks/p", "results/tokens/c/t", "results/tokenizers/t", step.parent):
        assert "made from this very input, nothing to do" in why(made, str(folder))


def test_what_was_drawn_from_scores_made_again_since_is_outdated(tmp_path, monkeypatch):
    """As after another seed, of which a figure says nothing, where another figure of the same scores was asked for."""
    monkeypatch.chdir(tmp_path)
    raw = copy.deepcopy(RAW)
    raw["studies"]["b"] |= {"figures": ["bars"]}
    paths, names = checkout_paths(load(raw)), {"study": "b", "figure": "bars"}
    inputs = [file for files in paths.inputs("figure", **names).values() for file in files]
    for file in inputs:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).touch()
    settings, code = paths.settings("figure", **names), paths.code("figure", **names)
    Record("figure", names, settings, code, paths.log("figure", **names)).finished(inputs)
    from artifacts.pages import outdated

    assert outdated(paths) == []
    Path(inputs[0]).write_text("made again")
    assert outdated(paths) == ["b_bars"]
