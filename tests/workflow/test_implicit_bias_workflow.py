"""The `implicit-bias` study through the real workflow at the smallest scale, and what its presets plan."""

import pandas as pd
import pytest
import running
from running import jobs

pytestmark = pytest.mark.workflow

MODELS = ["ib-pcfg-s", "ib-pcfg-adversarial", "ib-pcfg-lookup"]


def small() -> dict:
    """config.yaml with one size of the grammar's models, the adversary and the lookup table; a few updates."""
    config = running.default_config("implicit-bias")
    study = config["studies"]["implicit-bias"]
    models = {name: config["models"][name] for name in MODELS}
    models["ib-pcfg-s"].update(steps=6, checkpoints=[2, 4, 6], batch_size=8)
    models["ib-pcfg-adversarial"].update(steps=6, checkpoints=[6], batch_size=8, encoder="ib-s")
    study["panels"] = {
        "pcfg": {"s": "ib-pcfg-s"},
        "pcfg-algorithms": dict(zip(("AdamW", "adversarial", "lookup table"), MODELS, strict=True)),
    }
    study["probes"] = {"ib-loss": "all", "ib-pcfg": MODELS}
    study["sets"] = {name: study["sets"][name] for name in ("pcfg-a", "pcfg-b")}
    study |= {"figures": ["figure2", "figure7"], "tables": ["table1"]}
    study["claims"] = ["rises-pcfg-b", "larger-pcfg-b", "adversarial-loss", "lookup-worst"]
    config["corpora"]["ib-pcfg"].update(sentences=200, valid=10, test=40)
    objective = config["objectives"]["ib-adversarial"]
    objective["adversary"] |= {"support": 20, "query": 10}
    probes = {name: config["probes"][name] for name in study["probes"]}
    probes["ib-loss"]["sequences"] = 20
    probes["ib-pcfg"].update(tasks=["ib-pcfg-a", "ib-pcfg-b"], epochs=2)
    tasks = {
        name: config["tasks"][name] | {"train": 60, "valid": 10, "test": 40} for name in ("ib-pcfg-a", "ib-pcfg-b")
    }
    return {
        **{key: config[key] for key in ("run", "seed", "threads", "grammars")},
        "device": "cpu",
        "corpora": {"ib-pcfg": config["corpora"]["ib-pcfg"]},
        "tokenizers": {"ib-pcfg": config["tokenizers"]["ib-pcfg"]},
        "encoders": {name: entry for name, entry in config["encoders"].items() if name.startswith("ib-")},
        "objectives": {"mlm": {"mlm": 1}, "ib-adversarial": objective},
        "models": models,
        "tasks": tasks,
        "probes": probes,
        "studies": {"implicit-bias": study},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("implicit-bias")


def test_figure7_needs_a_corpus_only(folder):
    counts = jobs(running.snakemake(folder, small(), "--dry-run", "implicit-bias_figure7"))
    assert counts == {"corpus": 1, "figure": 1, "implicit-bias_figure7": 1}


def test_everything_is_made(folder):
    running.snakemake(folder, small(), "implicit-bias")
    results = folder / "results"
    for name in ("figure2", "figure7"):
        for suffix in ("pdf", "png", "parquet", "csv"):
            assert (results / f"figures/implicit-bias/{name}.{suffix}").stat().st_size > 0
    drawn = pd.read_parquet(results / "figures/implicit-bias/figure2.parquet")
    assert set(drawn["step"]) == {6} and (drawn["parameters"] > 1000).all()
    table = pd.read_parquet(results / "tables/implicit-bias/table1.parquet").set_index(["label", "row"])["value"]
    entropy = drawn["floor"].dropna().unique()
    assert entropy.size == 1 and table["lookup table", "Loss"] == pytest.approx(entropy[0])
    assert table["AdamW", "Loss"] > entropy[0] and table["adversarial", "Loss"] > entropy[0]
    claims = pd.read_parquet(results / "claims/implicit-bias.parquet").set_index("claim")
    assert list(claims.index) == small()["studies"]["implicit-bias"]["claims"]
    assert claims.loc["lookup-worst", "seeds"] == 5 and claims.loc["adversarial-loss", "interval"] == "items"


@pytest.mark.parametrize(("preset", "models"), [("evening", 17), ("gpu", 17), ("paper", 24)])
def test_presets_dry_run(preset, models):
    counts = jobs(running.dry_run_of_preset(preset, "implicit-bias"))
    assert (counts["pretrain"], counts["figure"], counts["table"], counts["study_claims"]) == (models, 12, 3, 1)
