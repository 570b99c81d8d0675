"""A target is all the files that its rule makes: one that is gone comes back, whichever it is."""

import pandas as pd
import pytest
import running

pytestmark = pytest.mark.workflow
MODEL = {"corpus": "english", "tokenizer": "english", "encoder": "tiny", "objective": "mlm", "batch_size": 16}
CONFIG = {
    "run": "shared",
    "corpora": {"english": {"kind": "english", "sentences": 300, "valid": 20, "test": 20}},
    "tokenizers": {"english": {"corpus": "english", "vocab_size": 150, "max_length": 40}},
    "encoders": {"tiny": {"positions": "absolute", "layers": 1, "hidden": 32, "heads": 2, "max_positions": 64}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {"short": MODEL | {"steps": 2}, "long": MODEL | {"steps": 4}},
    "tasks": {"pairs": {"kind": "english-pairs", "pairs": 2}},
    "probes": {"asked": {"kind": "minimal_pairs", "tasks": ["pairs"]}},
}
STUDY = {"panels": {"all": ["short", "long"]}, "probes": {"asked": "all"}, "tables": ["comparison"],
         "figures": ["bars"], "claims": "all"}  # fmt: skip


def of(*studies):
    return CONFIG | {"studies": dict.fromkeys(studies, STUDY)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    running.snakemake(folder, of("one"))
    return folder


@pytest.mark.parametrize(
    ("target", "name"),
    [("one_bars", "figures/one/bars.png"), ("one", "tables/one/comparison.md"), ("one_claims", "claims/one.html")],
)
def test_a_file_that_is_gone_comes_back(target, name, made):
    (file := made / "results/shared" / name).unlink()
    running.snakemake(made, of("one"), target)
    assert file.stat().st_size


def test_so_do_those_that_are_made_of_the_whole_run(made):
    for name in (names := ("README.md", "claims.md", "facts.csv", "scores.csv", "figures/one/bars.csv")):
        (made / "results/shared" / name).unlink()
    running.snakemake(made, of("one"))
    assert all((made / "results/shared" / name).stat().st_size for name in names)
    assert "Nothing to be done" in running.snakemake(made, of("one"), "all", "-n")


def test_claims_alone_keep_those_of_another_config(tmp_path):
    """Of a config whose scores were never gathered."""
    table = tmp_path / "results/shared/claims.csv"
    running.snakemake(tmp_path, of("one"), "claims")
    first = pd.read_csv(table)
    assert not (tmp_path / "results/shared/scores.parquet").exists() and set(first["study"]) == {"one"}
    said = running.snakemake(tmp_path, of("two"), "claims")
    assert "results/shared also holds study one of another config" in said
    assert "to drop it, remove results/shared/claims/one.parquet" in said
    both = pd.read_csv(table)
    assert both["study"].tolist() == ["two"] * len(first) + ["one"] * len(first)
    assert "Nothing to be done" in running.snakemake(tmp_path, of("two"), "claims", "-n")
    (tmp_path / "results/shared/claims/one.parquet").unlink()
    assert "also holds" not in running.snakemake(tmp_path, of("two"), "claims")
    assert set(pd.read_csv(table)["study"]) == {"two"}
