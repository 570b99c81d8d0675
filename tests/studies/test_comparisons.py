"""Claims of a study that has neither a wing nor claims of its own: recipes of a panel against the first one."""

import copy

import pytest

import synthetic
from masklab.claims.claim_files import markdown
from masklab.claims.verdict import test_claims
from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.scores.view import View
from masklab.studies import claims_of

RAW = plain(layered())
STUDY = {
    "replicates": 3,
    "nulls": ["untrained", "majority"],
    "panels": {"English": {"MLM": "strict-mlm", "both": "strict-mlsm+mlm"}},
    "probes": {"minimal-pairs": "all", "finetune": "all"},
    "sets": {"BLiMP": ["blimp"], "GLUE": ["acceptability", "sentiment"]},
    "claims": "all",
}


def config_of(**changes):
    raw = overlay(copy.deepcopy(RAW), {"extends": []})
    return load(raw | {"studies": {"mine": STUDY | changes}})


def judged(level, **changes):
    config = config_of(**changes)
    study = config.studies["mine"]
    results = synthetic.results(config, "mine", level)
    return test_claims(claims_of("mine", study, results.view), results).set_index("claim")


def scored(both, mlm):
    """Levels of the two recipes; nulls are at chance."""
    own = {"strict-mlsm+mlm": both, "strict-mlm": mlm}
    return lambda cell: None if cell["metric"].startswith("majority") else own.get(cell["recipe"], 0.5)


def test_a_study_without_a_wing_gets_a_verdict_on_each_set():
    found = judged(scored(0.8, 0.7))
    names = ["strict-mlsm+mlm-over-strict-mlm-on-BLiMP", "strict-mlsm+mlm-over-strict-mlm-on-GLUE"]
    assert (
        list(found.index) == names and set(found["verdict"]) == {"supported"} and set(found["section"]) == {"English"}
    )
    assert found["text"][names[0]] == "both does better than MLM on BLiMP"
    assert found["value"].tolist() == pytest.approx([0.1, 0.1], abs=0.02)
    assert set(judged(scored(0.7, 0.8))["verdict"]) == {"contradicted"}
    assert set(judged(scored(0.75, 0.75))["verdict"]) == {"negligible"}


def test_one_that_learned_nothing_is_compared_and_two_are_not():
    assert set(judged(scored(0.8, 0.5))["verdict"]) == {"supported"}
    assert set(judged(scored(0.5, 0.8))["verdict"]) == {"contradicted"}
    none = judged(scored(0.5, 0.5))
    assert (
        set(none["verdict"]) == {"untested"}
        and none["why"].str.startswith("no recipe does better than its nulls").all()
    )


def test_they_can_be_asked_for_by_name_and_a_wing_has_its_own():
    one = judged(scored(0.8, 0.7), claims=["strict-mlsm+mlm-over-strict-mlm-on-GLUE"])
    assert len(one) == 1
    config = load(RAW)
    names = {claim.name for claim in claims_of("mlsm", config.studies["mlsm"], View.of(config, "mlsm"))}
    assert names and not any("-over-" in name and "-on-" in name for name in names)
    with pytest.raises(MaskLabError, match="no panel has two recipes that one probe measures on the same tasks"):
        config = config_of(panels={"English": {"MLM": "strict-mlm"}})
        claims_of("mine", config.studies["mine"], View.of(config, "mine"))


def test_their_table_has_no_empty_column_and_says_headlines_once():
    found = judged(scored(0.8, 0.7)).reset_index()[list_of_columns()]
    text = markdown(found)
    assert "shown in" not in text and "| verdict | the sentence | tested |" in text
    headed = markdown(found.assign(headline=[True, False], figure="Figure 2"))
    assert headed.count("| supported | both does better than MLM on BLiMP | Figure 2 |") == 1 and "shown in" in headed


def list_of_columns():
    from masklab.claims.verdict import COLUMNS

    return list(COLUMNS)
