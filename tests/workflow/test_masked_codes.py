"""Codes of what will be hidden, through the real workflow: fewer codes, the same weights."""

import numpy as np
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


OWN = """\
import numpy as np

from masklab import own


class Numbered(own.Weight):
    reads: own.ClassVar = True
    file: str


@own.term("numbered", Numbered)
class Hide(own.Term):
    def corrupt(self, ids, lengths, masking, vocab_size, rng):
        from masklab.tokenizers import MASK

        with open(self.settings.file) as file:
            column = int(file.read())
        rows, columns = np.arange(len(ids)), np.full(len(ids), column)
        shown = ids.copy()
        shown[rows, columns] = MASK
        return shown, rows, columns
"""


def test_a_changed_file_of_a_term_of_one_s_own_makes_the_codes_of_what_it_hides_again(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    objective = {"mlsm": 1, "numbered": {"weight": 1, "file": str(tmp_path / "column.txt")}}
    models = {"next": {"codes": "masked", "objective": "numbered"}}
    config = running.laid(CONFIG, {"code": ["own.py"], "objectives": {"numbered": objective}, "models": models})
    target = "results/models/next/r1/manifest.json"
    coded = []
    for column in ("2", "3"):
        (tmp_path / "column.txt").write_text(column)
        planned = jobs(running.snakemake(tmp_path, config, "--dry-run", target))
        assert planned["masked_codes"] == planned["pretrain"] - (not coded) == 1
        running.snakemake(tmp_path, config, target)
        (positions,) = tmp_path.glob("results/codes/d/masks-*/r1/train.positions.npy")
        coded.append(set(np.load(positions)))
    assert not coded[0] & coded[1]
