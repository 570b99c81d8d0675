"""docs/your-own-study.md, as it stands: a study in a folder of one's own, and one without any code."""

import re
import subprocess

import pandas as pd
import pytest
import running
import yaml
from running import ROOT, jobs

DOC = (ROOT / "docs/your-own-study.md").read_text()
pytestmark = pytest.mark.workflow


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOC, re.S)


def snakemake(folder, config, *targets):
    command = [*running.COMMAND, *targets, "--configfile", config]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A folder with the study of the page, run."""
    folder = tmp_path_factory.mktemp("spans")
    (folder / "spans.py").write_text("".join(blocks("python")))
    (folder / "study.yaml").write_text(blocks("yaml")[0])
    snakemake(folder, "study.yaml", "spans", "spans_claims")
    return folder


def test_it_is_as_short_as_it_says(mine):
    lines = {name: [line for line in (mine / name).read_text().splitlines() if line.strip()]
             for name in ("spans.py", "study.yaml")}  # fmt: skip
    assert len(lines["spans.py"]) <= 61 and len([line for line in lines["study.yaml"] if line[0] != "#"]) <= 30


def test_its_corpus_objective_probe_figure_and_claim_are_used(mine):
    results = mine / "results/spans"
    corpus = pd.read_parquet(results / "corpora/echo/train.parquet")
    assert len(corpus) == 3000 and all(len(set(text.split())) <= 6 for text in corpus["text"])
    claim = pd.read_parquet(results / "claims/spans.parquet").iloc[0]
    assert (claim["claim"], claim["verdict"], claim["replicates"]) == ("spans-over-tokens", "supported", 3)
    drawn = pd.read_parquet(results / "figures/spans/filling.parquet")
    assert set(drawn["label"]) == {"tokens", "spans"} and list(drawn["x"].unique()) == [100, 200, 300]
    assert (drawn["null"] < 0.1).all() and (results / "figures/spans/filling.pdf").stat().st_size
    metrics = pd.read_parquet(results / "models/spans/r1/metrics.parquet")
    assert "span" in metrics.columns and metrics["span"].iloc[-1] < metrics["span"].iloc[0]


def test_the_page_of_results_says_what_came_of_it(mine):
    """It is no output of a run that asks for one study, and is there nevertheless."""
    readme = (mine / "results/spans/README.md").read_text()
    assert "1 supported" in readme and "spans teach to fill spans" in readme
    assert "snakemake --cores all --snakefile" in readme and " spans_filling --snakefile" in readme
    assert "--configfile study.yaml" in readme
    html = (mine / "results/spans/report.html").read_text()
    assert html.count("<img ") == 1 and html.index("spans_filling") < html.index(
        "Studies that this folder has nothing of"
    )
    (mine / "results/spans/README.md").unlink()
    (mine / "results/spans/figures/spans/filling.pdf").unlink()
    snakemake(mine, "study.yaml", "spans_filling")
    assert (mine / "results/spans/README.md").read_text().count("filling.pdf") == 1


def test_the_report_of_snakemake_holds_figure_and_claims(mine):
    snakemake(mine, "study.yaml", "spans", "--report", "report.html")
    held = (mine / "report.html").read_text()
    assert "figures/spans/filling.png" in held and "claims/spans.html" in held


def test_a_second_run_has_nothing_to_do_and_their_code_counts_as_ours(mine):
    whole = ("study.yaml", "spans", "--dry-run")
    assert "Nothing to be done" in snakemake(mine, *whole)
    source = (mine / "spans.py").read_text()
    (mine / "spans.py").write_text(
        source.replace('"""Hide `length`', '"""Hides `length`').replace("# it says", "# It says")
    )
    assert "Nothing to be done" in snakemake(mine, *whole)
    (mine / "spans.py").write_text(source.replace("length: own.Count = 3", "length: own.Count = 4"))
    again = jobs(snakemake(mine, *whole))
    assert again["pretrain"] == 3 and not {"corpus", "tokenizer"} & again.keys()  # of one recipe, and what is below
    (mine / "spans.py").write_text(source.replace('"Tokens of a span', '"The tokens of a span'))
    again = jobs(snakemake(mine, *whole)).keys() - {"spans"}
    assert again == {"figure"}  # the claim is said to be shown by it, in a string, and does not use it
    (mine / "spans.py").write_text(source.replace("import numpy", "print()\nimport numpy"))
    assert "corpus" in jobs(snakemake(mine, *whole))  # what a file does when it is imported may reach everything
    (mine / "spans.py").write_text(source)
    assert "Nothing to be done" in snakemake(mine, *whole)


def test_a_mistake_is_said_with_the_users_own_line(mine):
    (mine / "bad.yaml").write_text((mine / "study.yaml").read_text().replace("length: 3", "lenght: 3"))
    done = subprocess.run(
        [*running.COMMAND, "spans", "--configfile", "bad.yaml"], capture_output=True, text=True, cwd=mine
    )
    assert done.returncode == 1
    assert "bad.yaml:9: objectives.span.span.lenght: unknown key; did you mean 'length'?" in done.stderr


SMALL = {
    "corpora": {"strict": {"sentences": 1500, "valid": 100, "test": 100}},
    "models": {"narrow": {"steps": 30, "checkpoints": [10, 20, 30]}},
    "tasks": {"blimp": {"pairs": 4}},
}


def test_any_recipes_and_tasks_give_a_table_and_figures(tmp_path):
    (tmp_path / "widths.yaml").write_text(blocks("yaml")[1])
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL | {"extends": "widths.yaml"}))
    snakemake(tmp_path, "small.yaml", "widths")
    results = tmp_path / "results/widths"
    table = pd.read_parquet(results / "tables/widths/comparison.parquet")
    assert set(table["label"]) == {"narrow", "wide", "wide − narrow", "null: untrained", "null: chance"}
    assert set(table["row"]) == {"grammar"}
    claim = pd.read_parquet(results / "claims/widths.parquet").iloc[0]
    assert (claim["claim"], claim["replicates"]) == ("wide-over-narrow-on-grammar", 3)
    assert (table.loc[table["recipe"] != "", "replicates"] == 3).all() and table["low"].notna().any()
    bars = pd.read_parquet(results / "figures/widths/bars.parquet")
    curves = pd.read_parquet(results / "figures/widths/curves.parquet")
    assert set(bars["label"]) == {"narrow", "wide"} and set(curves["step"]) == {10, 20, 30}
    losses = pd.read_parquet(results / "figures/widths/loss_curves.parquet")
    assert set(losses["step"]) == {10, 20, 30} and losses["value"].between(0, 10).all() and losses["floor"].isna().all()
    assert (
        "Mean ± half the width of the 95 % interval over 3 replicates"
        in (results / "tables/widths/comparison.md").read_text()
    )
