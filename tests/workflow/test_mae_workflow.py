"""The `mae` study through the real workflow at the smallest scale, and what its presets plan."""

import pandas as pd
import pytest
from running import default_config, dry_run_of_preset, jobs, laid, snakemake

from masklab.config import overlay

pytestmark = pytest.mark.workflow

RECIPES = ["mlm", "mae"]
TINY = {
    "corpora": {"mae": {"sentences": 400, "valid": 40, "test": 40}},
    "tokenizers": {"mae": {"vocab_size": 300}},
    "encoders": {"mae-{decoder}": {"for": {"decoder": ["plain", "decoder"]}, "layers": 2, "hidden": 16}},
    "models": {"mae-{recipe}-1": {"for": {"recipe": RECIPES}, "steps": 6, "checkpoints": [6], "batch_size": 16}},
    "probes": {"mae-rank": {"sequences": 40}},
}


def test_ranks_of_both_objectives(tmp_path):
    config = laid(default_config("mae"), TINY)
    kept = [f"mae-{recipe}-1" for recipe in RECIPES]
    config["models"] = {n: model for n, model in config["models"].items() if n in kept or not n.startswith("mae-")}
    study = config["studies"]["mae"]
    config["studies"]["mae"] = study | {
        "figures": ["figure1a"],
        "tables": [],
        "claims": [],
        "probes": {"mae-rank": "all"},
    }
    snakemake(tmp_path, config, "mae")
    results = tmp_path / "results"
    data = pd.read_parquet(results / "figures/mae/figure1a.parquet")
    assert set(data["panel"]) == {"MLM", "MAE-LM"} and set(data["layer"]) == {0, 1, 2}
    assert (results / "models/mae-mae-1/r1/step-6/model.safetensors").exists()
    assert not (results / "models/mae-mae-1/r1/step-6/decoder.safetensors").exists()
    changed = overlay(config, {"objectives": {"mae": {"autoencoder": {"aligned": False}}}})
    counts = jobs(snakemake(tmp_path, changed, "mae", "--dry-run"))
    assert counts["pretrain"] == 1 and counts["probe"] == 1


@pytest.mark.parametrize("preset,models,recipes", [("evening", 26, 16), ("gpu", 15, 5), ("paper", 18, 18)])
def test_presets_dry_run(preset, models, recipes):
    counts = jobs(dry_run_of_preset(preset, "mae"))
    assert counts["pretrain"] == models >= recipes and counts["figure"] == 5 and counts["table"] == 3


def test_the_text_preset_dry_runs():
    counts = jobs(dry_run_of_preset("text", "mae-text"))
    assert counts["pretrain"] == 6 and counts["figure"] == 3 and counts["study_claims"] == 1
