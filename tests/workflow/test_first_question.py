"""docs/first-question.md, as it stands but small, on files made here in the real ones' formats; then the notebook."""

import json
import re
import shlex
import subprocess
import sys

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from running import COMMAND, ROOT

pytestmark = pytest.mark.workflow
PAGE = (ROOT / "docs/first-question.md").read_text()
[CONFIG] = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.S | re.M)
NOUNS = ("cat", "dog", "child", "horse", "teacher", "bird")
VERBS = ("see", "follow", "like", "help", "call", "find")
# What is smaller than presets/first.yaml.
SMALL = {
    "corpora": {"mine": {"valid": 30, "test": 30}},
    "tokenizers": {"mine": {"vocab_size": 120, "rarest_character": 1}},
    "encoders": {".small": {"hidden": 32, "heads": 2}},
    "models": {".mine": {"steps": 30, "batch_size": 16, "checkpoints": [15, 30]}},
    "probes": {"glue": {"max_steps": 10, "evaluate_every": 5}},
}


def lines(count, seed):
    """Sentences of right number, such as `the dogs see a cat today`."""
    rng = np.random.default_rng(seed)
    for noun, other, verb, plural in zip(
        rng.choice(NOUNS, count), rng.choice(NOUNS, count), rng.choice(VERBS, count), rng.integers(2, size=count)
    , strict=True):  # fmt: skip
        yield f"the {noun}s {verb} a {other} today" if plural else f"the {noun} {verb}s a {other} today"


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """A folder with data as the page speaks of it, its ten lines, and their study, run by the page's command."""
    folder = tmp_path_factory.mktemp("first")
    for name in ("text", "blimp", "glue/SST-2"):
        (folder / "data" / name).mkdir(parents=True)
    (folder / "data/text/lines.txt").write_text("\n".join(lines(800, 1)))
    for paradigm, term in (("agreement_1", "subject_verb_agreement"), ("agreement_2", "anaphor_agreement")):
        pairs = [{"sentence_good": good + ".", "sentence_bad": good.replace("the", "the the") + ".", "UID": paradigm,
                  "linguistics_term": term} for good in lines(20, 2)]  # fmt: skip
        (folder / f"data/blimp/{paradigm}.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    for split, seed in (("train", 3), ("dev", 4)):
        rows = [f"{text}\t{int('s today' in text)}" for text in lines(60, seed)]
        (folder / f"data/glue/SST-2/{split}.tsv").write_text("\n".join(["sentence\tlabel", *rows]))
    text = CONFIG.replace("presets/", f"{ROOT}/presets/").replace("/data/", f"{folder}/data/")
    (folder / "first.yaml").write_text(text)
    (folder / "small.yaml").write_text(yaml.safe_dump({"extends": "first.yaml"} | SMALL))
    [command] = [line for line in PAGE.splitlines() if line.startswith("snakemake ")]
    smaller = {"first.yaml": "small.yaml", "all": "2"}
    arguments = [smaller.get(word, word) for word in shlex.split(command)[1:]]
    done = subprocess.run([*COMMAND[:5], *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_it_takes_ten_lines():
    assert len(CONFIG.splitlines()) <= 10


def test_its_files_say_what_the_page_says(mine):
    named = re.findall(r"^\| `(results/first/[\w/.]+)` \|", PAGE, re.M)
    assert len(named) == 5 and all((mine / name).stat().st_size for name in named)
    table = pd.read_parquet(mine / "results/first/tables/first/comparison.parquet")
    nulls = {f"null: {kind}" for kind in ("untrained", "bag-of-words", "chance", "majority")}
    assert set(table["label"]) == {"MLM", "MAE-LM", "MAE-LM − MLM"} | nulls
    assert table.loc[table["label"] == "null: chance", ["row", "value"]].values.tolist() == [["BLiMP", 0.5]]
    recipes = table[table["recipe"].isin(["mlm", "mae"])]
    assert len(recipes) == 4 and (recipes["replicates"] == 3).all() and (recipes["low"] <= recipes["high"]).all()
    assert recipes["low"].notna().all()
    curves = pd.read_parquet(mine / "results/first/figures/first/curves.parquet")
    assert {15, 30} <= set(curves["step"]) and curves["majority"].notna().all()
    claims = pd.read_parquet(mine / "results/first/claims/first.parquet")
    assert claims["text"].tolist() == [f"MAE-LM does better than MLM on {name}" for name in ("BLiMP", "GLUE")]
    assert (claims["replicates"] == 3).all() and claims["value"].notna().all()


def test_every_recipe_that_the_page_names_can_be_asked_for(mine):
    config = yaml.safe_load((mine / "first.yaml").read_text())
    names = re.findall(r"`([\w-]+)`", PAGE.partition("The recipes are those of")[2].partition("a\nrecipe")[0])
    assert set(names) == {"mlm", "mlm-40", "mlm-80-10-10", "mae"}
    config["studies"]["first"]["panels"]["my text"] = names
    config["models"] = {"mine": {"like": "mlm", "batch_size": 64}}
    config["corpora"]["mine"] |= {"valid": 30, "test": 30}  # the text of this test is short
    (mine / "all.yaml").write_text(yaml.safe_dump(config))
    done = subprocess.run(
        [sys.executable, "-m", "masklab.cli", "check", "all.yaml"], cwd=mine, capture_output=True, text=True
    )
    assert done.returncode == 0 and "4 recipes x 3 replicates" in done.stdout, done.stdout + done.stderr


def test_the_notebook_runs_on_it(mine):
    """Its code cells in their order, in one process, beside the results as docs/ lies beside them."""
    notebook = nbformat.read(ROOT / "docs/notebook.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = [cell["source"] for cell in notebook.cells if cell["cell_type"] == "code"]
    assert len(cells) >= 8 and not any(cell.get("outputs") for cell in notebook.cells)
    (mine / "docs").mkdir()
    program = (
        "import json, sys\nfor cell in json.load(sys.stdin):\n    exec(cell, globals())\nprint(sst2, states.shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(cells), cwd=mine / "docs", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "torch.Size([3, " in done.stdout and "accuracy" in done.stdout
