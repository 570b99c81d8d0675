"""Codes of what will be hidden, through the real workflow: fewer codes, the same weights."""

import pandas as pd
import pytest
import running
from running import jobs
from test_replicates_workflow import CONFIG

from masklab.files import read_json

pytestmark = pytest.mark.workflow
MASKED = {"like": "next", "codes": "masked"}
MODELS = {"masked": MASKED, "both": MASKED | {"objective": "both"}, "longer": MASKED | {"steps": 6}}
LAID = {"models": MODELS, "objectives": {"both": {"mlsm": 1, "mlm": 1}}}


def test_codes_of_what_is_hidden_give_the_same_weights(tmp_path):
    config = running.laid(CONFIG, LAID)
    targets = [f"results/models/{name}/r2/manifest.json" for name in ("next", *MODELS)]
    planned = jobs(running.snakemake(tmp_path, config, "--dry-run", *targets))
    assert (planned["codes"], planned["masked_codes"]) == (1, 2)  # two recipes hide the same
    running.snakemake(tmp_path, config, *targets)
    manifests = {name: read_json(tmp_path / f"results/models/{name}/r2/manifest.json") for name in ("next", "masked")}
    assert manifests["next"]["steps"] == manifests["masked"]["steps"]
    (whole,) = (tmp_path / "results/codes/d/r2").glob("codes.json")
    some = sorted((tmp_path / "results/codes/d").glob("masks-*/r2/codes.json"))
    said = [read_json(path) for path in (whole, *some)]
    assert said[0]["coded"] == said[0]["tokens"] and len(some) == 2
    assert all(0 < each["coded"] < 0.3 * each["tokens"] for each in said[1:])
    assert sorted(each["masks"]["steps"] for each in said[1:]) == [4, 6]
    page = "results/dictionaries/d/index.html"
    running.snakemake(tmp_path, config, page)
    table = pd.read_csv(tmp_path / "results/dictionaries/d/properties.csv")
    said = (tmp_path / page).read_text()
    assert len(table) == 8 and "Replicate 1 of 2" in said and "<td>initial weights</td>" in said
    assert running.snakemake(tmp_path, config, "--dry-run", *targets, page).count("Nothing to be done") == 1
