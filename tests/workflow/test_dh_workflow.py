"""The `dh` study through the real workflow at the smallest scale: every figure, table and claim appears."""

import pandas as pd
import pytest
import running
from running import jobs

pytestmark = pytest.mark.workflow

PANELS = ("single", "shared", "separate")
FEW = ("w/ DH", "w/o DH", "scratch")  # starting points of the multi-token panels


def small() -> dict:
    """config.yaml with the study `dh` alone, a few updates, and fewer starting points for the multi-token panels."""
    config = running.default_config("dh")
    mine = {
        section: {name: entry for name, entry in config[section].items() if name.startswith(("dh", "patterns"))}
        for section in ("chains", "corpora", "tokenizers", "embeddings", "encoders", "models", "tasks", "probes")
    }
    study = config["studies"]["dh"]
    for panel in PANELS[1:]:
        study["panels"][panel] = {label: study["panels"][panel][label] for label in FEW}
    kept = [model for panel in study["panels"].values() for model in panel.values()]
    study["probes"] = {f"dh-{panel}": list(study["panels"][panel].values()) for panel in PANELS}
    study["probes"]["dh-loss"] = ["dh-single-with"]
    for entry in mine["corpora"].values():
        entry.update(sequences=100, valid=10, test=10)
    for name, entry in list(mine["models"].items()):
        if name.endswith(("cbow", "shuffled")) and "single" not in name:
            del mine["models"][name]
        elif name.endswith(("with", "without")):
            entry.update(steps=4, checkpoints=[4])
        entry.update(batch_size=8)
    mine["models"]["dh-single-shuffled"]["init"] = "dh-single-with@4"
    mine["embeddings"] = {"dh-single": mine["embeddings"]["dh-single"] | {"epochs": 1, "size": 16}}
    mine["encoders"]["dh"].update(hidden=16)
    for entry in mine["tasks"].values():
        entry.update(train=40, valid=10, test=20)
    for panel in PANELS:
        mine["probes"][f"dh-{panel}"].update(sizes=[10, 20, 40], seeds=[1, 2, 3, 4, 5], max_steps=2, evaluate_every=2)
    mine["probes"]["dh-loss"].update(sequences=4)
    assert len(kept) == 11
    rest = {"run": "", "seed": 1, "threads": 1, "device": "cpu", "objectives": {"mlm": {"mlm": 1}}}
    return rest | mine | {"studies": {"dh": study}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("dh")


def snakemake(folder, *arguments, config=None):
    return running.snakemake(folder, config or small(), *arguments)


def test_figure1_needs_two_corpora_only(folder):
    assert jobs(snakemake(folder, "--dry-run", "dh_figure1")) == {"corpus": 2, "figure": 1, "dh_figure1": 1}


def test_figure2_needs_the_single_token_panel_only(folder):
    counts = jobs(snakemake(folder, "--dry-run", "dh_figure2"))
    assert counts == {
        "corpus": 2, "tokenizer": 1, "tokens": 2, "embeddings": 1, "pretrain": 5, "task": 3, "probe": 5, "figure": 1,
        "dh_figure2": 1,
    }  # fmt: skip


def test_everything_is_made(folder):
    snakemake(folder)
    results, study = folder / "results", small()["studies"]["dh"]
    for name in study["figures"]:
        for suffix in ("pdf", "png", "parquet", "csv"):
            assert (results / f"figures/dh/{name}.{suffix}").stat().st_size > 0
    for name in study["tables"]:
        for suffix in ("parquet", "csv", "md"):
            assert (results / f"tables/dh/{name}.{suffix}").stat().st_size > 0
    scores = pd.read_parquet(results / "scores.parquet")
    runs = scores[scores["metric"] == "accuracy"]
    assert len(runs) == 11 * 3 * 3 * 5 * 4  # models, mixes, sizes, seeds, domains
    assert set(runs["mix"]) == {0.0, 0.1, 0.5} and set(runs["split"]) == {"A-D1", "B-D1", "A-D2", "B-D2"}
    claims = pd.read_parquet(results / "claims.parquet")
    pd.testing.assert_frame_equal(claims, pd.read_parquet(results / "claims/dh.parquet"))
    assert (claims["seeds"] == 5).all() and len(claims) > 60
    assert "CBOW" not in " ".join(claims.loc[claims["comparison"].str.contains("shared"), "comparison"])
    losses = pd.read_parquet(results / "tables/dh/losses.parquet").set_index("row")["value"]
    assert losses["loss"] > losses["floor"] and losses["gap"] == pytest.approx(losses["loss"] - losses["floor"])


def test_the_margin_re_tests_claims_and_draws_nothing(folder):
    config = small()
    config["studies"]["dh"]["margin"] = 0.05
    assert jobs(snakemake(folder, "--dry-run", config=config)) == {"study_claims": 1, "claims": 1}


@pytest.mark.parametrize("preset", ["evening", "gpu", "paper"])
def test_presets_dry_run(preset):
    counts = jobs(running.dry_run_of_preset(preset, "dh"))
    assert (counts["pretrain"], counts["figure"], counts["study_claims"]) == (15, 8, 1)
