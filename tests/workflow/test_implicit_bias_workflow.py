"""The `implicit-bias` study through the real workflow at the smallest scale, and what its presets plan."""

import numpy as np
import pandas as pd
import pytest
import running
from running import jobs, laid, unlearned

pytestmark = pytest.mark.workflow

MODELS = {"AdamW": "ib-pcfg-s", "adversarial": "ib-pcfg-adversarial", "lookup table": "ib-pcfg-lookup"}
CLAIMS = ["rises-pcfg-a", "rises-pcfg-b", "adversarial-loss", "adversarial-worse-pcfg-a", "adversarial-worse-pcfg-b",
          "adversarial-worse-6-pcfg-a", "adversarial-worse-6-pcfg-b", "adversarial-below-small",
          "lookup-worst"]  # fmt: skip
FEW = {"steps": 6, "batch_size": 8}
TINY = {
    "corpora": {"ib-pcfg": {"sentences": 200, "valid": 10, "test": 40}},
    "objectives": {"ib-adversarial": {"adversarial": {"support": 20, "query": 10}}},
    "models": {"ib-pcfg-s": FEW | {"checkpoints": [2, 4, 6]},
               "ib-pcfg-adversarial": FEW | {"checkpoints": [6], "encoder": "ib-s", "replicates": 2}},
    "tasks": {"ib-pcfg-{task}": {"for": {"task": ["a", "b"]}, "train": 60, "valid": 10, "test": 40}},
    "probes": {"ib-loss": {"sequences": 20},
               "ib-pcfg": {"tasks": ["ib-pcfg-a", "ib-pcfg-b"], "epochs": 2, "seeds": [1], "sizes": [40]}},
}  # fmt: skip


def small() -> dict:
    """One size of the models of the grammar, the adversary and the lookup table, twice, where nothing is learned."""
    config = laid(running.default_config("implicit-bias"), TINY)
    config["studies"]["implicit-bias"] |= {
        "replicates": 2,
        "panels": {"pcfg": {"s": "ib-pcfg-s"}, "pcfg-algorithms": MODELS},
        "probes": {"ib-loss": "all", "ib-pcfg": [*MODELS.values()]},
        "figures": ["figure2", "figure7"],
        "tables": ["table1"],
        "claims": CLAIMS,
    }
    return unlearned(config) | {"device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("implicit-bias")


def test_figure7_needs_a_corpus_only(folder):
    counts = jobs(running.snakemake(folder, small(), "--dry-run", "implicit-bias_figure7"))
    assert counts == {"corpus": 1, "figure": 1, "implicit-bias_figure7": 1}


def test_everything_is_made(folder):
    """Of models that have learned nothing no claim is decided, and each says why."""
    running.snakemake(folder, small(), "implicit-bias")
    results = folder / "results"
    running.assert_drawn(results, "implicit-bias", small()["studies"]["implicit-bias"])
    drawn = pd.read_parquet(results / "figures/implicit-bias/figure2.parquet")
    assert set(drawn["step"]) == {6} and (drawn["parameters"] > 1000).all() and (drawn["replicates"] == 2).all()
    table = pd.read_parquet(results / "tables/implicit-bias/table1.parquet").set_index(["label", "row"])
    loss, gap = (table["value"].xs(row, level="row") for row in ("Loss", "Gap"))
    entropy = loss["lookup table"]
    assert gap["lookup table"] == pytest.approx(0, abs=1e-9) and 0 < entropy < np.log(12)
    for label in ("plain MLM", "adversarial"):
        assert loss[label] > entropy and gap[label] == pytest.approx(loss[label] - entropy)
    assert {"null: untrained", "null: one-hot", "null: majority"} <= set(table.index.get_level_values("label"))
    claims = pd.read_parquet(results / "claims/implicit-bias.parquet").set_index("claim")
    assert list(claims.index) == CLAIMS and (claims["replicates"].isin([0, 2])).all()
    assert set(claims["verdict"]) == {"untested"} and (claims["why"] != "").all()


@pytest.mark.parametrize(
    ("preset", "trained", "corpora", "shown"),
    [("evening", 756, 35, (16, 4)), ("gpu", 81, 6, (11, 3)), ("paper", 147, 7, (12, 3))],
)
def test_presets_dry_run(preset, trained, corpora, shown):
    """In the evening ten replicates of most recipes and of their nulls, else three; each has corpora of its own.

    In the evening 14 grammars, ten hidden Markov models, ten causal corpora and the English of their models; else 3.
    """
    counts = jobs(running.dry_run_of_preset(preset, "implicit-bias"))
    assert (counts["pretrain"], counts["corpus"]) == (trained, corpora)
    assert (counts["figure"], counts["table"], counts["study_claims"]) == (*shown, 1)
