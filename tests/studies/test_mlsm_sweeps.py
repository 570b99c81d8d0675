"""The sweeps of docs/mlsm.md: each varies what it says, and nothing else that counts."""

import re
from pathlib import Path

import pytest

from masklab.config import read
from masklab.config.masks import masks_of, name_of
from masklab.scores.facts import recipe_facts

PAGE = (Path(__file__).parents[2] / "docs" / "mlsm.md").read_text()
BLOCKS = {name: text for name, text in re.findall(r"```yaml\n# (\w+)\.yaml\n(.*?)```", PAGE, re.S)}
STARTS = [f"strict-phase1@{step}" for step in (500, 1000, 1500)]
VARIED = {
    "lambda": {"dictionary.penalty": [0.02, 0.05, 0.1, 0.2]},
    "atoms": {"dictionary.atoms": [32, 128, 512]},
    "layer": {"dictionary.layer": [0, 1, 2]},
    "weights": {"objective.mlsm.weight": [0.1, 0.5, 1, 2, 10]},
    "start": {"init": STARTS, "teacher": STARTS, "steps": [1400, 900, 400]},
}
NAMES = ("dictionary", "dictionary.model", "objective", "checkpoints")  # differ as a name does, or with what is varied


@pytest.mark.parametrize("sweep", VARIED)
def test_a_sweep_varies_one_thing(sweep, tmp_path):
    (tmp_path / "c.yaml").write_text(BLOCKS[sweep])
    config = read(str(tmp_path / "c.yaml"))
    facts = [recipe_facts(config, name) for panel in config.studies["sweep"].members.values() for name in panel]
    varied = {key for key in facts[0] if len({str(each[key]) for each in facts}) > 1} - {*NAMES}
    assert varied == set(VARIED[sweep])
    for key, values in VARIED[sweep].items():
        assert [each[key] for each in facts] == values
    assert all(each["codes"] == "masked" for each in facts)
    recipes = [name for panel in config.studies["sweep"].members.values() for name in panel]
    assert len({name_of(masks_of(config, name)) for name in recipes}) == (3 if sweep == "start" else 1)
