"""The claims of the `mae` study: all can be tested, and scores of the paper's shape support what it says."""

import numpy as np
import pytest
from scipy import stats

from masklab.claims.mae import CLAIMS
from masklab.claims.runs import Cost, DeltaSlope, Rank, Reached, Runs, Score
from masklab.claims.spec import Claim, claims_of, difference
from masklab.claims.verdict import test_claims
from masklab.replicates import Replicates, reached


def verdicts(mae, scores, claims=CLAIMS):
    return test_claims(claims, scores, mae.STUDY, "mae", mae.METRICS).set_index("claim")


@pytest.fixture(scope="module")
def scores(mae):
    return mae.mae_scores()


def one(mae, scores, effect):
    return verdicts(mae, scores, [Claim("c", "1", "1", "t", effect, fewest=3)]).iloc[0]


def test_every_claim_has_an_effect_and_follows_the_scores(mae, scores):
    found = verdicts(mae, scores)
    assert found.index.is_unique and found[["effect", "low", "high"]].notna().all(axis=None)
    assert (found["seeds"] == 3).all() and (found["low"] <= found["effect"]).all()
    for name in ("deficient-mlm", "deeper-centred", "lemma", "lemma-twice", "theorem", "deficient-80-10-10", "rank",
                 "rank-mnli-centred", "rank-squad", "better-glue", "better-squad", "slightly-seconds",
                 "decoder-alone-glue", "reset-helps-glue", "random-squad", "misaligned-glue", "cross-glue",
                 "more-layers-glue", "delta-glue", "delta-ends-squad"):  # fmt: skip
        assert found["verdict"][name] in ("supported", "inconclusive") and found["effect"][name] != 0, name
    supported = found["verdict"] == "supported"
    assert supported[["deficient-mlm", "lemma", "rank", "better-glue", "delta-glue", "self+cross-glue"]].all()
    # a tenth more time is not "roughly equal" within two percent
    assert found["verdict"]["equal-seconds"] == "contradicted"
    assert {claim.name for claim in claims_of("mae", mae.STUDY)} == set(found.index)


def test_numbers(mae):
    """Without noise every effect is the number it says."""
    scores = mae.mae_scores(noise=0)
    better = Runs(difference(Score("MAE-LM", "glue"), Score("MLM", "glue")))
    assert one(mae, scores, better)["effect"] == pytest.approx(0.009)  # medians: the runaway fine-tuning is no part
    gap = difference(Rank("MLM", "masked", "deep", "rank_centred"), Rank("MLM", "unmasked", "deep", "rank_centred"))
    assert one(mae, scores, Runs(gap))["effect"] == pytest.approx((32 + 42) / 4)
    first = Runs(
        ((1, Rank("MLM", "mask-positions", "last", "rank")), (-2, Rank("MLM", "mask-positions", "first", "rank")))
    )
    assert one(mae, scores, first)["effect"] == pytest.approx(21 - 2 * 1)
    after = Runs(((1, Rank("MLM", metric="rank", set="mnli")),))
    assert one(mae, scores, after)["effect"] == pytest.approx(0.5 * 60 / 2)
    cost = Runs(difference(Cost("MAE-LM", "flops"), Cost("MLM", "flops")), 0.05, relative=True)
    assert one(mae, scores, cost)["effect"] == pytest.approx(0.1 - 0.05)
    # delta 0, .5, 1 with .861, .856, .851
    assert one(mae, scores, DeltaSlope("glue"))["effect"] == pytest.approx(-0.01)
    # MAE-LM is above MLM's last score at its first checkpoint, which costs 55 of 100
    assert one(mae, scores, Reached("MAE-LM", "MLM", "mnli"))["effect"] == pytest.approx(0.55)
    assert one(mae, scores, Reached("MLM", "MAE-LM", "mnli", "seconds", 0.5))["effect"] == pytest.approx(1 / 1.1 - 0.5)


def test_whole_numbers_that_agree_have_an_interval(mae):
    """Ranks are rounded: each with a variance of at least 1/12, so a difference of two with 1/6."""
    gap = difference(Rank("MLM", "masked"), Rank("MLM", "unmasked"))
    found = one(mae, mae.mae_scores(noise=0), Runs(gap))
    half = stats.t.ppf(0.975, 2) * np.sqrt((1 / 12 + 1 / 12) / 3)
    assert found["high"] - found["effect"] == pytest.approx(half) == found["effect"] - found["low"]


def test_nothing_learned_supports_no_equality(mae):
    flat = mae.mae_scores(score=lambda *_: 0.15, noise=1e-5)
    found = verdicts(mae, flat)
    absent = found[found["region"].isin(["equal", "no more"]) & (found["unit"] == "score")]
    assert len(absent) >= 8 and not absent["premise"].any() and (absent["verdict"] == "inconclusive").all()


def test_too_few_runs_decide_nothing(mae, scores):
    few = scores[~scores["model"].isin(["MAE-LM-3"])]
    study = mae.STUDY.model_copy(update={"panels": mae.STUDY.panels | {"MAE-LM": ["MAE-LM-1", "MAE-LM-2"]}})
    claims = [claim for claim in CLAIMS if claim.name in ("better-glue", "rank", "deficient-mlm")]
    found = test_claims(claims, few, study, "mae", mae.METRICS).set_index("claim")
    assert found["seeds"].to_dict() == {"deficient-mlm": 3, "better-glue": 2, "rank": 2}
    assert found["verdict"].to_dict() == {
        "deficient-mlm": "supported",
        "better-glue": "inconclusive",
        "rank": "inconclusive",
    }


def test_what_claims_lack_is_said(mae):
    fewer = mae.STUDY.model_copy(update={"panels": {k: v for k, v in mae.STUDY.panels.items() if k != "kept"}})
    lacking = {claim.name: claim.effect.lacking(fewer) for claim in CLAIMS}
    assert lacking["reset-helps-glue"] == "needs a panel 'kept'" and lacking["better-glue"] is None
    assert lacking["delta-glue"] == "needs three panels of Figure 4; it has 2"
    assert "set 'squad'" in Runs(((1, Score("MLM", "squad")),)).lacking(mae.STUDY.model_copy(update={"sets": {}}))


def test_reached():
    assert reached([1, 2, 4], [0.1, 0.3, 0.7], 0.5) == pytest.approx(3)
    assert reached([1, 2], [0.6, 0.7], 0.5) == 1 and np.isnan(reached([1, 2], [0.1, 0.2], 0.5))


def test_a_missing_score_is_a_missing_mean(mae, scores):
    less = scores[~((scores["model"] == "MLM-2") & (scores["task"] == "stsb"))]
    read = Replicates(less, mae.STUDY, mae.METRICS)
    assert np.isnan(read.last("MLM", mae.SETS["glue"])).tolist() == [False, True, False]
    assert np.isfinite(read.last("MLM", ["mnli"])).all()
    assert read.last_step("MLM-1") == 100 and read.last_step("nobody") == 0
