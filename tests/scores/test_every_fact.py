"""Facts of a run are those of what its studies use."""

import copy

from masklab.config import layered, load, overlay, plain
from masklab.config.nulls import null_recipes
from masklab.scores.every_fact import every

RAW = plain(layered())


def facts_of(**studies):
    config = load(overlay(copy.deepcopy(RAW), {"extends": []}) | {"studies": studies})
    return every(config), config


def test_only_what_the_studies_use_is_stated():
    """The config of the default run lies below every user's, whose run has nothing of its other recipes."""
    study = {"panels": {"p": ["strict-mlm"]}, "nulls": ["untrained"], "sets": {"more": ["sentiment"]},
             "probes": {"minimal-pairs": "all"}}  # fmt: skip
    found, config = facts_of(mine=study)
    nulls = {name for own in null_recipes(config, "mine").values() for name in own.values()}
    assert nulls and found["recipe"].keys() == {"strict-mlm", "strict-phase1"} | nulls, "what it starts from is of it"
    assert found["recipe"].keys() < config.models.keys()
    assert found["task"].keys() == {"blimp", "sentiment"} and found["probe"].keys() == {"minimal-pairs"}
    assert found["corpus"].keys() == {config.models["strict-mlm"].corpus}
    assert all(not entries for entries in facts_of()[0].values())
