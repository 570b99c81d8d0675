"""Replicates through the real workflow: where they lie, what they share, and what adding one makes."""

import copy
from pathlib import Path

import pytest
import running
from running import jobs, messages
from safetensors.torch import load_file

from masklab.config import load
from masklab.files import read_json
from masklab.plan import make_plan
from masklab.rng import replicate_seed

pytestmark = pytest.mark.workflow
MODEL = {"corpus": "c", "tokenizer": "t", "encoder": "tiny", "objective": "mlm", "batch_size": 16, "steps": 4}
CONFIG = {
    "replicates": 2,
    "chains": {"words": {"synsets": 20}},
    "corpora": {"c": {"kind": "markov", "chains": "words", "distributional": True, "sequences": 60, "valid": 10,
                      "test": 10, "length": 12}},
    "tokenizers": {"t": {"kind": "symbols", "corpus": "c", "max_length": 14}},
    "encoders": {"tiny": {"positions": "absolute", "layers": 1, "hidden": 16, "heads": 2, "max_positions": 16}},
    "embeddings": {"cbow": {"corpus": "c", "tokenizer": "t", "size": 16, "epochs": 1}},
    "objectives": {"mlm": {"mlm": 1}, "mlsm": {"mlsm": 1}},
    "models": {
        "base": MODEL | {"checkpoints": [4]},
        "next": MODEL | {"init": "base@4", "dictionary": "d", "objective": "mlsm"},
        "cbow": MODEL | {"embeddings": "cbow", "steps": 0},
    },
    "dictionaries": {"d": {"model": "base@4", "layer": 1, "atoms": 8, "sample": 100, "iterations": 3,
                           "batch_size": 20}},
    "tasks": {"p": {"kind": "patterns", "chains": "words", "length": 12, "train": 30, "valid": 10, "test": 10,
                    "set_size": 2}},
    "probes": {
        "exact": {"kind": "loss", "sequences": 8, "masks": "one"},
        "linear": {"kind": "linear_probe", "tasks": ["p"], "epochs": 1, "seeds": [1], "projection": 8},
    },
    "studies": {"s": {"panels": {"all": ["next", "cbow"]}, "probes": {"exact": "all", "linear": "all"}}},
}  # fmt: skip
PROBED = [("exact", "next"), ("exact", "cbow"), ("linear", "next"), ("linear", "cbow")]


def targets(replicates, *more):
    return [f"results/scores/{p}/{m}/r{k}/all.parquet" for p, m in PROBED for k in replicates] + list(more)


def changed(**sections):
    config = copy.deepcopy(CONFIG)
    for section, entries in sections.items():
        if isinstance(entries, dict):
            for name, keys in entries.items():
                config[section][name] |= keys
        else:
            config[section] = entries
    return config


REDRAWN = changed(chains={"words": {"redraw": True}})


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A folder with both replicates of everything, on one corpus."""
    folder = tmp_path_factory.mktemp("shared")
    running.snakemake(folder, CONFIG, *targets([1, 2]))
    return folder


@pytest.fixture(scope="module")
def redrawn(tmp_path_factory):
    """The same where each replicate has its own language."""
    folder = tmp_path_factory.mktemp("redrawn")
    running.snakemake(folder, REDRAWN, *targets([1, 2]))
    return folder


def folders(folder, section) -> set[str]:
    """Folders of a section that hold files, below it."""
    root = folder / "results" / section
    return {str(path.parent.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_replicates_lie_beside_each_other_and_share_what_is_not_redrawn(shared):
    assert folders(shared, "corpora") == {"c"} and folders(shared, "tokens") == {"c/t"}
    assert folders(shared, "tasks") == {"p"} and folders(shared, "conditionals") == {"c/t/8-all"}
    assert folders(shared, "codes") == folders(shared, "dictionaries") == {"d/r1", "d/r2"}
    assert folders(shared, "embeddings") == {"cbow/r1", "cbow/r2"}
    assert {name for name in folders(shared, "models") if "step" not in name} == {
        f"{recipe}/r{k}" for recipe in CONFIG["models"] for k in (1, 2)
    }
    assert {path.name for path in (shared / "results/scores/exact/next/r2").iterdir()} == {
        "all.parquet",
        "all.items.parquet",
    }


def test_each_replicate_has_a_seed_of_its_own_and_starts_from_its_own(shared):
    seeds = {k: read_json(shared / f"results/models/base/r{k}/manifest.json")["config"]["seed"] for k in (1, 2)}
    assert seeds == {k: replicate_seed(1, k) for k in (1, 2)}
    files = [shared / f"results/models/base/r{k}/step-4/model.safetensors" for k in (1, 2)]
    one, two = (load_file(file)["bert.embeddings.word_embeddings.weight"] for file in files)
    assert not (one == two).all()
    inputs = read_json(shared / "results/made/models/next/r2.json")["inputs"]
    assert "results/models/base/r2/manifest.json" in inputs and "results/codes/d/r2/codes.json" in inputs
    assert read_json(shared / "results/made/models/next/r2.json")["config"]["phase"] == 1


def test_a_third_replicate_makes_only_the_third(shared):
    output = running.snakemake(shared, changed(replicates=3), *targets([1, 2, 3]), "--dry-run")
    assert jobs(output) == {"embeddings": 1, "pretrain": 3, "dictionary": 1, "codes": 1, "probe": 4}
    assert all(" r3" in message for message in messages(output))
    assert "Nothing to be done" in running.snakemake(shared, changed(replicates=3), *targets([1, 2]), "--dry-run")


def test_replicates_of_one_recipe_or_study_make_only_theirs(shared):
    output = running.snakemake(
        shared, changed(models={"cbow": {"replicates": 3}}), *targets([1, 2]), "results/scores.parquet", "--dry-run"
    )
    assert jobs(output) == {"embeddings": 1, "pretrain": 1, "probe": 2, "scores": 1}
    output = running.snakemake(shared, changed(studies={"s": {"replicates": 3}}), "results/scores.parquet", "--dry-run")
    assert jobs(output) == {"embeddings": 1, "pretrain": 3, "dictionary": 1, "codes": 1, "probe": 4, "scores": 1}


def test_a_study_that_asks_what_another_asked_makes_nothing(shared):
    studies = CONFIG["studies"] | {"again": {"panels": {"x": ["cbow"]}, "probes": {"linear": "all"}}}
    output = running.snakemake(shared, changed(studies=None) | {"studies": studies}, "results/scores.parquet", "-n")
    assert jobs(output) == {"scores": 1}


def test_a_redrawn_law_gives_each_replicate_its_own_language(redrawn):
    assert folders(redrawn, "corpora") == {"c/r1", "c/r2"} and folders(redrawn, "tasks") == {"p/r1", "p/r2"}
    assert folders(redrawn, "tokens") == {"c/r1/t/r1", "c/r2/t/r2"}
    assert folders(redrawn, "conditionals") == {"c/r1/t/r1/8-all", "c/r2/t/r2/8-all"}
    drawn = [(redrawn / f"results/corpora/c/r{k}/train.parquet").read_bytes() for k in (1, 2)]
    assert drawn[0] != drawn[1]
    settings = read_json(redrawn / "results/made/corpora/c/r2.json")["config"]
    assert settings["seed"] == replicate_seed(1, 2) and "law_seed" not in settings
    for name in ("linear/next", "exact/cbow"):
        assert (redrawn / f"results/scores/{name}/r2/all.parquet").is_file()


def test_a_third_replicate_of_a_redrawn_language_makes_only_the_third(redrawn):
    output = running.snakemake(redrawn, REDRAWN | {"replicates": 3}, *targets([1, 2, 3]), "--dry-run")
    assert jobs(output) == {"corpus": 1, "tokenizer": 1, "tokens": 1, "task": 1, "conditionals": 1, "embeddings": 1,
                            "pretrain": 3, "dictionary": 1, "codes": 1, "probe": 4}  # fmt: skip
    assert all("r3" in message for message in messages(output))


def test_a_corpus_drawn_anew_under_a_shared_law_keeps_the_law_s_seed(tmp_path):
    config = changed(corpora={"c": {"redraw": True}})
    running.snakemake(tmp_path, config, "results/corpora/c/r1/test.parquet", "results/corpora/c/r2/test.parquet")
    settings = read_json(tmp_path / "results/made/corpora/c/r2.json")["config"]
    assert settings["seed"] == replicate_seed(1, 2) and settings["law_seed"] == 1
    said = running.snakemake(tmp_path, config, "results/corpora/c/test.parquet", "-n", check=False)
    assert said.returncode != 0, "there is no shared one"
    output = running.snakemake(tmp_path, config, *targets([1]), "--dry-run")
    assert "task p" in messages(output) and "corpus c" not in messages(output)


def test_the_plan_counts_what_snakemake_counts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for config in (CONFIG, REDRAWN):
        output = running.snakemake(tmp_path, config, "--dry-run")
        plan = make_plan(load(config))
        counts = {}
        for job in plan.jobs.values():
            counts[job.rule] = counts.get(job.rule, 0) + 1
        assert counts == jobs(output)
        assert not Path("results").exists()
