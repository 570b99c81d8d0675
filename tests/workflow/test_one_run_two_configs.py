"""Two configs under one `run`: the tables hold the studies of both, and what is no longer declared is said."""

import copy

import pandas as pd
import pytest
import running
from test_symbolic import CONFIG

pytestmark = pytest.mark.workflow
TARGETS = ["results/shared/scores.parquet", "results/shared/facts.parquet"]


def of(*studies):
    config = copy.deepcopy(CONFIG) | {"run": "shared"}
    return config | {"studies": {name: config["studies"][name] for name in studies}}


def test_the_second_config_loses_nothing_of_the_first(tmp_path):
    running.snakemake(tmp_path, of("dh"), *TARGETS)
    first = pd.read_parquet(tmp_path / TARGETS[0])
    said = running.snakemake(tmp_path, of("bias"), *TARGETS)
    assert "results/shared also holds study dh of another config" in said
    both = pd.read_parquet(tmp_path / TARGETS[0])
    assert both["study"].unique().tolist() == ["bias", "dh"]
    pd.testing.assert_frame_equal(both[both["study"] == "dh"].reset_index(drop=True), first)
    assert (tmp_path / "results/shared/scores.csv").read_text().count("\n") == len(both) + 1
    facts = pd.read_parquet(tmp_path / TARGETS[1])
    assert {"dh", "table", "foe"} <= set(facts[facts["noun"] == "recipe"]["name"])
    assert "Nothing to be done" in running.snakemake(tmp_path, of("bias"), *TARGETS, "-n")

    # claims that a study no longer makes, and a table of old
    claims, table = tmp_path / "results/shared/claims", tmp_path / "results/shared/tables/bias/old.csv"
    for file in (claims / "bias.md", claims / "bias.html", claims.with_suffix(".md"), claims / "dh.md", table):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("of old")
    said = running.snakemake(tmp_path, of("bias"), *TARGETS, "-n")
    gone = ("claims/bias.md", "claims/bias.html", "claims.md")
    assert f"would be removed: {', '.join(f'results/shared/{file}' for file in gone)}" in said
    assert (claims / "bias.md").exists()
    said = running.snakemake(tmp_path, of("bias"), *TARGETS)
    assert "left as they are: results/shared/tables/bias/old.csv" in said and table.exists()
    assert not [file for file in gone if (tmp_path / "results/shared" / file).exists()] and (claims / "dh.md").exists()
    page = " ".join((tmp_path / "results/shared/README.md").read_text().split())
    assert "2 studies" in page and "| [dh](#dh) |" in page and "Nothing was made" not in page

    # a study is dropped by removing what is kept of it
    (tmp_path / "results/shared/made/studies/dh.parquet").unlink()
    assert "also holds study" not in running.snakemake(tmp_path, of("bias"), *TARGETS)
    assert pd.read_parquet(tmp_path / TARGETS[0])["study"].unique().tolist() == ["bias"]
