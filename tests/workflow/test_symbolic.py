"""The real workflow on a symbolic study: chains to scores, starting points, and what a change re-runs."""

import copy

import pandas as pd
import pytest
import running
from running import messages
from safetensors.torch import load_file

START = {"corpus": "dh", "tokenizer": "symbols", "encoder": "tiny", "objective": "mlm", "batch_size": 32}
CONFIG = {
    "chains": {"words": {"synsets": 20}},
    "corpora": {
        "dh": {"kind": "markov", "chains": "words", "distributional": True, "sequences": 200, "valid": 30, "test": 30,
               "length": 24},
    },
    "tokenizers": {"symbols": {"kind": "symbols", "corpus": "dh", "max_length": 26}},
    "embeddings": {"cbow": {"corpus": "dh", "tokenizer": "symbols", "size": 32, "epochs": 2}},
    "encoders": {"tiny": {"positions": "absolute", "layers": 1, "hidden": 32, "heads": 2, "max_positions": 32},
                 "table": {"kind": "lookup"}},
    "objectives": {
        "mlm": {"mlm": 1},
        "foe": {"mlm": 1, "adversarial": {"weight": 0.1, "task": "patterns", "support": 20, "query": 10}},
    },
    "models": {
        "dh": START | {"steps": 10, "checkpoints": [10]},
        "cbow": START | {"steps": 0, "embeddings": "cbow"},
        "shuffled": START | {"steps": 0, "init": "dh@10", "shuffle": True},
        "table": START | {"steps": 0, "encoder": "table"},
        "foe": START | {"steps": 2, "objective": "foe"},
    },
    "tasks": {"patterns": {"kind": "patterns", "chains": "words", "length": 24, "train": 60, "valid": 20, "test": 20,
                           "set_size": 2, "mix": 0.5}},
    "probes": {
        "loss": {"kind": "loss", "sequences": 40},
        "exact": {"kind": "loss", "sequences": 20, "masks": "one"},
        "linear": {"kind": "linear_probe", "tasks": ["patterns"], "epochs": 2, "seeds": [1, 2], "projection": 16},
    },
    "studies": {
        "dh": {"panels": {"all": ["dh", "cbow", "shuffled"]}, "probes": {"loss": ["dh"]}},
        "bias": {"panels": {"all": ["dh", "table", "foe"]}, "probes": {"exact": "all", "linear": ["dh", "table"]}},
    },
}  # fmt: skip
TARGETS = [
    "results/scores.parquet",
    "results/tasks/patterns/task.json",
    "results/models/cbow/r1/manifest.json",
    "results/models/shuffled/r1/manifest.json",
]

pytestmark = pytest.mark.workflow


def snakemake(folder, config, *arguments):
    return running.snakemake(folder, config, *TARGETS, *arguments)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("symbolic")
    snakemake(folder, CONFIG)
    return folder


def test_scores_hold_loss_and_floor(done):
    scores = pd.read_parquet(done / "results/scores.parquet")
    scores = scores[scores["study"] == "dh"]
    table = scores.set_index("metric")["value"]
    assert set(scores["recipe"]) == {"dh"} and set(scores["task"]) == {"dh"}
    assert table["gap"] > 4 * table["gap_se"] and table["floor"] > 0


def test_a_study_without_figures_and_tables_is_its_scores(tmp_path):
    assert running.jobs(running.snakemake(tmp_path, CONFIG, "dh", "-n"))["probe"] == 1


def test_a_lookup_table_is_measured_like_a_model(done):
    scores = pd.read_parquet(done / "results/scores.parquet")
    loss = scores[scores["probe"] == "exact"].pivot(index="recipe", columns="metric", values="value")
    assert loss.at["table", "gap"] == 0 and loss.at["dh", "gap"] > 0
    assert loss.at["table", "floor"] == loss.at["dh", "floor"] and (loss["loss_std"] > 0).all()
    linear = scores[(scores["probe"] == "linear") & (scores["metric"] == "accuracy")]
    assert linear.groupby("recipe")["seed"].nunique().to_dict() == {"dh": 2, "table": 2}
    assert len(list(done.glob("results/conditionals/dh/symbols/20-all/*.npy"))) == 4  # once for both models


def test_starting_points_start_where_they_should(done):
    import numpy as np
    import torch

    words = {
        name: load_file(done / f"results/models/{name}/r1/step-{step}/model.safetensors")[
            "bert.embeddings.word_embeddings.weight"
        ]
        for name, step in (("dh", 10), ("cbow", 0), ("shuffled", 0))
    }
    vectors = np.load(done / "results/embeddings/cbow/r1/vectors.npy")
    assert np.array_equal(words["cbow"][5:], vectors[5:]) and not np.array_equal(words["cbow"][:5], vectors[:5])
    assert torch.equal(words["dh"].flatten().sort().values, words["shuffled"].flatten().sort().values)
    assert not torch.equal(words["dh"], words["shuffled"])


def test_a_change_re_runs_what_hangs_below_it(done):
    trained = {f"pre-training {model} r1" for model in CONFIG["models"]}
    changed = copy.deepcopy(CONFIG)
    changed["embeddings"]["cbow"]["lr"] = 0.05
    below = messages(snakemake(done, changed, "--dry-run"))
    assert {m.split(" (")[0] for m in below} >= {"embeddings cbow r1", "pre-training cbow r1"}
    assert not [m for m in below if "shuffled" in m or "corpus" in m or "task" in m or "dh" in m]
    changed = copy.deepcopy(CONFIG)
    changed["tasks"]["patterns"]["patterns"] = 3
    below = messages(snakemake(done, changed, "--dry-run"))
    assert below & trained == {"pre-training foe r1"}
    changed = copy.deepcopy(CONFIG)
    changed["chains"]["words"]["main"] = 0.8
    below = messages(snakemake(done, changed, "--dry-run"))
    assert {"corpus dh", "task patterns", "embeddings cbow r1", "pre-training dh r1"} <= below
    assert "Nothing to be done" in snakemake(done, CONFIG, "--dry-run")
