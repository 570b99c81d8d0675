"""The real workflow from text over a causal model of the pipeline to its corpus, a model, and tasks of that corpus."""

import copy

import numpy as np
import pandas as pd
import pytest
import running
from running import messages

from masklab.files import read_json
from masklab.symbols import read_header

CONFIG = {
    "corpora": {
        "text": {"kind": "english", "sentences": 400, "valid": 40, "test": 40},
        "drawn": {"kind": "causal", "causal": "lm", "vocabulary": 80, "length": 8, "sequences": 200, "valid": 30,
                  "test": 30},
    },
    "tokenizers": {"text": {"corpus": "text", "vocab_size": 300, "max_length": 40},
                   "drawn": {"kind": "symbols", "corpus": "drawn", "max_length": 10}},
    "causal_models": {"lm": {"corpus": "text", "tokenizer": "text", "layers": 1, "hidden": 32, "steps": 20}},
    "encoders": {"tiny": {"positions": "absolute", "layers": 1, "hidden": 32, "heads": 2, "max_positions": 16}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {"m": {"corpus": "drawn", "tokenizer": "drawn", "encoder": "tiny", "objective": "mlm", "steps": 5,
                     "batch_size": 16, "masking": {"count": "one"}}},
    "tasks": {"sentiment": {"kind": "english-labels", "recipe": "sentiment", "train": 40, "valid": 20, "test": 20},
              "restricted": {"kind": "restricted-labels", "task": "sentiment", "corpus": "drawn"},
              "expected": {"kind": "next-word", "corpus": "drawn", "position": 3, "train": 60, "valid": 5, "test": 30}},
    "probes": {"loss": {"kind": "loss", "masks": "one", "positions": "one", "sequences": 30},
               "linear": {"kind": "linear_probe", "tasks": ["expected"], "epochs": 3, "max_length": 10}},
    "studies": {"s": {"panels": {"all": ["m"]}, "probes": {"loss": "all", "linear": "all"}}},
}  # fmt: skip
TARGETS = ["results/scores.parquet", "results/tasks/restricted/task.json"]

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("causal")
    running.snakemake(folder, CONFIG, *TARGETS)
    return folder


def test_a_model_of_drawn_sentences_is_measured_against_their_law(done):
    scores = pd.read_parquet(done / "results/scores.parquet").query("probe == 'loss'").set_index("metric")["value"]
    assert scores["gap"] > 4 * scores["gap_se"] and 0 < scores["floor"] < np.log(80)
    facts = read_header(done / "results/corpora/drawn/train.parquet")
    assert facts["law"]["model"] == "causal_models/lm/model"
    assert read_json(done / "results/tasks/restricted/task.json")["kept"]["train"] > 0.1
    assert not list((done / "results/state").rglob("*.npz"))


def test_a_model_is_asked_for_the_word_that_the_causal_model_expects(done):
    scores = pd.read_parquet(done / "results/scores.parquet").query("probe == 'linear' and split == 'test'")
    assert set(scores["task"]) == {"expected"} and {"accuracy", "majority"} <= set(scores["metric"])
    facts = read_json(done / "results/tasks/expected/task.json")
    majority = scores.loc[scores["metric"] == "majority", "value"].iloc[0]
    assert facts["rows"]["test"] == 30 and majority == pytest.approx(facts["majority"]["test"])


def test_each_replicate_may_have_a_causal_model_of_its_own(done):
    changed = copy.deepcopy(CONFIG)
    changed["causal_models"]["lm"]["redraw"] = True
    changed["studies"]["s"]["replicates"] = 2
    asked = messages(running.snakemake(done, changed, "results/scores.parquet", "--dry-run"))
    own = {f"{what}/r{k}" for what in ("causal model lm", "corpus drawn", "tokenizer drawn") for k in (1, 2)}
    assert own | {"task expected/r1", "task expected/r2"} <= asked and not asked & {"corpus text", "tokenizer text"}


def test_a_change_of_the_causal_model_re_runs_what_is_drawn_from_it(done):
    changed = copy.deepcopy(CONFIG)
    changed["causal_models"]["lm"]["steps"] = 21
    below = messages(running.snakemake(done, changed, *TARGETS, "--dry-run"))
    assert {"causal model lm", "corpus drawn", "tokenizer drawn", "task restricted", "task expected"} <= below
    assert not below & {"corpus text", "tokenizer text", "task sentiment"}
