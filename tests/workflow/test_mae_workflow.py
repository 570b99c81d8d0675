"""The `mae` study through the real workflow at the smallest scale, and what its presets plan."""

import pandas as pd
import pytest
from running import assert_drawn, default_config, dry_run_of_preset, jobs, laid, snakemake, unlearned

from masklab.config import overlay

pytestmark = pytest.mark.workflow

RECIPES = {"MLM": "mae-mlm", "MAE-LM": "mae-mae", "all stay": "mae-kept"}
TASKS = ["mae-entailment", "mae-answers"]
TINY = {
    "corpora": {"mae": {"sentences": 400, "valid": 40, "test": 40}},
    "tokenizers": {"mae": {"vocab_size": 300}},
    "encoders": {"mae-{decoder}": {"for": {"decoder": ["plain", "decoder"]}, "layers": 2, "hidden": 16}},
    "models": {"mae-{recipe}": {"for": {"recipe": ["mlm", "mae", "kept"]}, "steps": 6, "checkpoints": [3, 6],
                                "batch_size": 16}},
    "tasks": {"mae-{task}": {"for": {"task": ["entailment", "answers"]}, "train": 40, "valid": 20, "test": 30}},
    "probes": {"mae-rank": {"sequences": 40},
               "mae-finetune": {"tasks": TASKS, "max_steps": 2, "evaluate_every": 2},
               "mae-curve": {"steps": [3], "max_steps": 2, "evaluate_every": 2}},
}  # fmt: skip


def small() -> dict:
    """MLM, the masked autoencoder and one ablation of the study `mae`, once, where nothing is learned."""
    config = laid(default_config("mae"), TINY)
    config["studies"]["mae"] |= {
        "replicates": 1,
        "panels": {"English": RECIPES},
        "probes": {"mae-rank": ["mae-mlm", "mae-mae"], "mae-cost": ["mae-mlm", "mae-mae"], "mae-finetune": "all",
                   "mae-curve": ["mae-mlm", "mae-mae"]},
    }  # fmt: skip
    return unlearned(config) | {"device": "cpu"}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mae")
    snakemake(folder, small())
    return folder


def test_ranks_of_both_objectives_and_of_their_nulls(done):
    results = done / "results"
    data = pd.read_parquet(results / "figures/mae/figure1a.parquet")
    assert set(data["panel"]) == {"English"} and set(data["label"]) == {"MLM", "MAE-LM"}
    assert set(data["layer"]) == {0, 1, 2} and set(data["null"]) == {"", "untrained", "shuffled"}
    outside = pd.read_parquet(results / "figures/mae/figure_outside.parquet")
    own = outside[(outside["split"] == "hidden-words") & (outside["null"] == "")]
    assert set(own["layer"]) == {0, 1, 2} and own["value"].between(0.005, 0.03).all()  # .01 up to sampling
    assert (results / "models/mae-mae/r1/step-6/model.safetensors").exists()
    assert not (results / "models/mae-mae/r1/step-6/decoder.safetensors").exists()


def test_everything_is_made_and_of_models_that_have_learned_nothing_no_claim_is_decided(done):
    results = done / "results"
    assert_drawn(results, "mae", small()["studies"]["mae"])
    claims = pd.read_parquet(results / "claims/mae.parquet").set_index("claim")
    assert {"deficient-mlm", "better-answers", "equal-seconds", "decoder-alone-sentences", "rank",
            "faster-flops", "delta-ends-answers"} <= set(claims.index)  # fmt: skip
    assert set(claims["verdict"]) == {"untested"} and (claims["why"] != "").all()


def test_a_setting_of_one_objective_re_runs_the_models_that_have_it_and_below(done):
    changed = overlay(small(), {"objectives": {"mae-kept": {"mae": {"delta": 0.9}}}})
    output = snakemake(done, changed, "results/scores.parquet", "--dry-run")
    assert jobs(output) == {"pretrain": 2, "probe": 2, "scores": 1}  # the recipe, and its weights shuffled


@pytest.mark.parametrize(
    ("preset", "replicates", "recipes", "figures"),
    [("evening", 5, 9 + 7, 6), ("gpu", 3, 5 + 10, 6), ("paper", 1, 18, 6)],
)
def test_presets_dry_run(preset, replicates, recipes, figures):
    """Recipes and their nulls, each in so many replicates."""
    counts = jobs(dry_run_of_preset(preset, "mae"))
    assert counts["pretrain"] == replicates * recipes
    assert counts["figure"] == figures and counts["table"] == 4 and counts["study_claims"] == 1


def test_the_text_preset_dry_runs():
    """Three replicates of two recipes, untrained, trained and shuffled."""
    counts = jobs(dry_run_of_preset("text", "mae-text"))
    assert counts["pretrain"] == 3 * 2 * 3 and counts["figure"] == 5 and counts["study_claims"] == 1


def test_the_text_preset_with_tasks_of_glue_dry_runs():
    """The same models; they and bags of words are fine-tuned on both tasks."""
    text, more = (jobs(dry_run_of_preset(preset, "mae-text")) for preset in ("text", "text-glue"))
    assert more["task"] == 2 and more["table"] == text["table"] + 1
    assert more["probe"] - text["probe"] == more["pretrain"] == text["pretrain"] + 3


LAW = {
    "hmms": {".mae-chain": {"symbols": 20, "states": 20}},
    "corpora": {"mae-rank-{rank}": {"for": {"rank": [3, 23]}, "sequences": 400, "valid": 40, "test": 60}},
    "models": {"mae-rank-{rank}-mlm": {"for": {"rank": [3, 23]}, "steps": 6, "checkpoints": [6], "batch_size": 16}},
}


def test_the_rank_of_a_law_is_measured_and_drawn(tmp_path):
    """Laws of rank 8 and 18 of 20 words, counted on their exact conditionals; of unlearned models no claim."""
    config = laid(default_config("mae-law"), LAW | {"hmms": {**LAW["hmms"], "mae-rank-23": {"log_rank": 8}}})
    config["studies"]["mae-law"] |= {"replicates": 1}
    snakemake(tmp_path, unlearned(config) | {"device": "cpu"})
    results = tmp_path / "results"
    assert_drawn(results, "mae-law", config["studies"]["mae-law"])
    data = pd.read_parquet(results / "figures/mae-law/figure_law.parquet")
    assert set(data["x"]) == {8, 18} and {"law", "initial", "masks", "gap", "hidden-words"} <= set(data["what"])
    scores = pd.read_parquet(results / "scores.parquet").query("split == 'law' and metric == 'rank_counted'")
    assert scores.groupby("recipe")["value"].unique().map(list).to_dict() == {
        "mae-rank-3-mlm": [8.0], "untrained.mae-rank-3-mlm": [8.0],
        "mae-rank-23-mlm": [18.0], "untrained.mae-rank-23-mlm": [18.0],
    }  # fmt: skip
    claims = pd.read_parquet(results / "claims/mae-law.parquet").set_index("claim")
    assert {"dose-lemma", "rank 8: theorem"} <= set(claims.index) and set(claims["verdict"]) == {"untested"}
