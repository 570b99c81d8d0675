"""The claims of the `dh` study: all can be tested, and curves of the paper's shape support the main ones."""

import pandas as pd
import pytest

from masklab.claims.dh import CLAIMS, FIGURES
from masklab.claims.spec import claims_of
from masklab.claims.verdict import COLUMNS, test_claims
from masklab.claims.write import gather, write_claims
from masklab.curves import DOMAINS
from masklab.errors import MaskLabError
from masklab.figures import FIGURES as DRAWN


@pytest.fixture(scope="module")
def found(dh):
    scores = dh.dh_scores(dh.plausible, noise=0.003)
    return test_claims(CLAIMS, scores, dh.STUDY, "dh")


def test_every_claim_has_an_effect_and_an_interval(found):
    assert list(found.columns) == list(COLUMNS)
    assert found.claim.is_unique and len(found) == len(CLAIMS)
    assert set(found.verdict) == {"supported", "contradicted", "inconclusive"}
    rough = found.unit == "roughness"
    assert found.loc[~rough, ["effect", "low", "high"]].notna().all(axis=None)
    assert (found.seeds == 5).all() and (found.low <= found.effect).all() and (found.effect <= found.high).all()


def test_verdicts_follow_the_curves(found):
    verdicts = found.set_index("claim").verdict
    for name in ("faster-A-D1", "faster-B-D2", "better-B-D1", "cbow-better", "shuffled-similar-50", "semantic-with-0",
                 "no-transfer-without-B-D1", "transfer-helped-B-D1", "transfer-10-remains-B-D1"):  # fmt: skip
        assert verdicts[name] == "supported", name
    for name in ("transfer-diminishes-B-D1", "semantic-not-dh-0", "multi-shared", "cbow-transfer-B-D1"):
        assert verdicts[name] == "contradicted", name


def test_nothing_learned_supports_nothing(dh):
    flat = dh.dh_scores(lambda *_: 0.51, noise=1e-4)  # the majority of A-D1 is 0.52
    found = test_claims(CLAIMS, flat, dh.STUDY, "dh")
    absent = found[found.region.isin(["equal", "no more", "no less"])]
    assert (
        len(absent) > 10
        and not absent.premise.any()
        and found.premise[~found.index.isin(absent.index)].all()
        and (absent.verdict == "inconclusive").all()
    )
    # the intervals themselves lie inside the regions
    assert (absent[absent.region == "equal"][["low", "high"]].abs() < 0.02).all(axis=None)


def test_claims_speak_of_what_is_drawn():
    for claim in CLAIMS:
        assert claim.text and claim.section[0] in "5A"
        for figure in claim.figure.split(", "):
            assert f"figure{figure}" in DRAWN["dh"]
        for weight, curve in claim.effect.terms:
            assert weight and curve.set in FIGURES and set(curve.domains) <= set(DOMAINS)
        # A contrast: equal curves give an effect of 0.
        assert sum(weight for weight, _ in claim.effect.terms) == pytest.approx(0)


def test_a_study_declares_its_claims(dh):
    study = dh.STUDY
    assert claims_of("dh", study) == CLAIMS
    some = study.model_copy(update={"claims": ["cbow-better", "faster-A-D1"]})
    assert [claim.name for claim in claims_of("dh-small", some)] == ["cbow-better", "faster-A-D1"]
    assert claims_of("dh", study.model_copy(update={"claims": []})) == []
    single = study.model_copy(update={"sets": {"single-50": ["t"]}})
    assert {name for claim in claims_of("dh", single) for name in claim.effect.sets} == {"single-50"}
    bad = study.model_copy(update={"claims": ["faster"]})
    with pytest.raises(MaskLabError, match=r"config: studies.dh.claims: no claim 'faster'; allowed: faster-A-D1"):
        claims_of("dh", bad)
    unlabelled = study.model_copy(update={"claims": ["cbow-better"], "panels": {"single": ["a", "b"]}})
    with pytest.raises(MaskLabError, match=r"cbow-better: needs a panel 'single' that maps labels to models"):
        claims_of("dh", unlabelled)
    with pytest.raises(MaskLabError, match=r"studies.mlsm: no claims of that name; there are some for .*dh"):
        claims_of("mlsm", study)
    with pytest.raises(MaskLabError, match=r"no claim can be tested: needs a set 'single-50'"):
        claims_of("dh", study.model_copy(update={"sets": {}}))


def test_files(found, tmp_path):
    write_claims(found, tmp_path / "dh")
    again = gather([tmp_path / "dh.parquet"])
    pd.testing.assert_frame_equal(again, found)
    text = (tmp_path / "dh.md").read_text()
    counts = found.verdict.value_counts()
    assert f"# Claims of `dh`: {counts['supported']} supported" in text
    assert text.count("\n| ") == len(found) + 2 * found.section.nunique() - 0
    assert len(pd.read_csv(tmp_path / "dh.csv")) == len(found)
    found[["claim"]].to_parquet(tmp_path / "other.parquet")
    with pytest.raises(MaskLabError, match=r"other.parquet: not a file of claims"):
        gather([tmp_path / "other.parquet"])
