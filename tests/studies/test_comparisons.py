"""Claims of a study that has neither a wing nor claims of its own: recipes of a panel against the first one."""

import copy
from dataclasses import replace

import pytest

import synthetic
from masklab.claims.claim import Claim
from masklab.claims.claim_files import markdown
from masklab.claims.effects import difference
from masklab.claims.verdict import test_claims
from masklab.config import kinds, layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.scores.reading import Reading
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View
from masklab.studies import claims_of, comparisons, notices

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
    return synthetic.claims("mine", config, synthetic.results(config, "mine", level))


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


OWN = """\
from masklab import own

class Asked(own.Entity):
    nulls: own.ClassVar = ("untrained",)
    tasks: list[str]
    twice: bool = False
    lower: own.ClassVar = ("error",)

own.probe("asked", Asked)(len)
"""


@pytest.fixture
def asked(tmp_path):
    """The file of a probe of a user's kind."""
    (tmp_path / "asked.py").write_text(OWN)
    yield str(tmp_path / "asked.py")
    kinds.load([])


def asked_results(asked, own, levels, metric="accuracy", **changes):
    """Results of a study with probes of a user's kind; levels: (probe, recipe) -> its score on each task."""
    probes = {name: {"kind": "asked"} | own[name] for name in own}
    raw = overlay(copy.deepcopy(RAW), {"extends": [], "code": asked, "probes": probes})
    study = STUDY | {"probes": dict.fromkeys(own, "all"), "sets": {}} | changes
    config = load(raw | {"studies": {"mine": study}})
    view = View.of(config, "mine")
    scores = [
        {"recipe": recipe, "replicate": replicate, "step": config.models[recipe].steps, "probe": probe, "task": task,
         "split": "test", "metric": metric, "value": levels.get((probe, recipe), 0.0) + 0.001 * replicate, "n": 100}
        for probe in own
        for recipe in view.recipes
        for task in config.probes[probe].tasks
        for replicate in (1, 2, 3)
    ]  # fmt: skip
    return config, Results(view, rows_to_frame(scores), models=synthetic.manifests(view))


def verdicts(config, results):
    found = test_claims(claims_of("mine", config.studies["mine"], results.view), results)
    return {
        claim.partition("-on-")[2]: verdict for claim, verdict in zip(found["claim"], found["verdict"], strict=True)
    }


def test_each_probe_of_a_kind_of_one_s_own_is_judged_for_itself(asked):
    on = {"tasks": ["acceptability"]}
    levels = {("one", "strict-mlsm+mlm"): 0.8, ("one", "strict-mlm"): 0.7, ("two", "strict-mlsm+mlm"): 0.3}
    levels |= {("two", "strict-mlm"): 0.5}
    found = verdicts(*asked_results(asked, {"one": on, "two": on | {"twice": True}}, levels))
    assert found == {"acceptability-by-one": "supported", "acceptability-by-two": "contradicted"}
    apart = {"one": on, "two": {"tasks": ["sentiment"]}}
    assert verdicts(*asked_results(asked, apart, levels)) == {
        "acceptability-by-one": "supported",
        "sentiment-by-two": "contradicted",
    }
    assert verdicts(*asked_results(asked, {"one": on}, levels)) == {"acceptability-by-one": "supported"}
    of_another = verdicts(*asked_results(asked, {"one": on}, levels, metric="asked"))
    assert of_another == {"acceptability-by-one": "untested"}


def test_a_recipe_of_less_error_does_better(asked):
    """The metric is declared in the user's file, and what a job gets of the study says so."""
    levels = {("one", "strict-mlsm+mlm"): 0.1, ("one", "strict-mlm"): 0.3}
    on = {"one": {"tasks": ["acceptability"]}}
    nulls = asked_results(asked, on, {})[1].view.recipes.keys() - {"strict-mlm", "strict-mlsm+mlm"}
    _, results = asked_results(asked, on, levels | {("one", null): 0.5 for null in nulls}, metric="error")
    view = View(**results.view.plain())
    assert view.probes["one"]["lower"] == ["error"]
    view = replace(view, tasks={task: facts | {"metric": "error"} for task, facts in view.tasks.items()})
    assert all(Reading(name, tasks=("acceptability",), named="one").less_is_better(view) for name in view.members)
    (claim,) = comparisons.claims(view)
    found = test_claims([claim], Results(view, results.scores, models=results.models)).iloc[0]
    assert found["verdict"] == "supported" and found["value"] == pytest.approx(0.2)
    assert claim.text == "both does better than MLM on acceptability, by one"


def test_a_metric_of_a_kind_of_one_s_own_can_have_a_margin(asked):
    """No one knows its metrics before it has run."""
    known, levels = {"margins": {"mrr": 0.2}, "below_margin": "negligible"}, {("one", "strict-mlsm+mlm"): 0.6}
    config, results = asked_results(asked, {"one": {"tasks": ["acceptability"]}}, levels, metric="mrr")
    study = config.studies["mine"].model_copy(update=known)
    assert claims_of("mine", study, results.view)
    read = [Reading(name, "mrr", named="one") for name in ("strict-mlsm+mlm", "strict-mlm")]
    claim = Claim("c", "", "", "more is better", difference(*read))
    assert claim.least_in(Results(replace(results.view, **known), results.scores)) == 0.2
    declared = {
        name: facts | {"ranges": {"mrr": [0, 1], "accuracy": [0, 1]}} for name, facts in results.view.probes.items()
    }
    view = replace(results.view, probes=declared)
    assert claims_of("mine", study, view)
    slip = study.model_copy(update={"margins": {"mrrr": 0.2}})
    with pytest.raises(MaskLabError, match=r"margins: no metric 'mrrr' \(did you mean 'mrr'\?\); there are mrr, "):
        claims_of("mine", slip, view)
    (said,) = notices(config.model_copy(update={"studies": {"mine": slip}}))
    assert said.startswith("studies.mine.margins.mrrr: counts for nothing unless probes of kind ") and "'mrrr'" in said
    assert not notices(config)
    with pytest.raises(MaskLabError, match=r"studies\.mine\.margins: no metric 'mrr'"):
        judged(scored(0.8, 0.7), margins={"mrr": 0.2})


def test_a_kind_of_one_s_own_is_judged_beside_ours(asked):
    """Unless it says that it gives no metric of the task."""
    probes = {"minimal-pairs": "all", "one": "all"}
    config, _ = asked_results(asked, {"one": {"tasks": ["blimp"]}}, {}, probes=probes)
    view = View.of(config, "mine")
    names = [claim.name for claim in claims_of("mine", config.studies["mine"], view)]
    assert names == [f"strict-mlsm+mlm-over-strict-mlm-on-blimp{by}" for by in ("", "-by-one")]
    for metric, judged_by in (("accuracy", names), ("seconds", names[:1])):
        one = view.probes["one"] | {"ranges": {metric: [0, 1]}}
        there = claims_of("mine", config.studies["mine"], replace(view, probes=view.probes | {"one": one}))
        assert [claim.name for claim in there] == judged_by


def test_a_reading_may_name_its_probe(asked):
    """Of two of one kind, which nothing else tells apart."""
    on, levels = {"tasks": ["acceptability"]}, {("one", "strict-mlm"): 0.7, ("two", "strict-mlm"): 0.5}
    _, results = asked_results(asked, {"one": on, "two": on | {"twice": True}}, levels)
    both = Reading("strict-mlm", tasks=("acceptability",), probe="asked")
    with pytest.raises(MaskLabError, match=r"two probes measured strict-mlm .* or which by its name \(`named`\)"):
        results.values(both)
    one, two = (both.of("strict-mlm", named=name) for name in ("one", "two"))
    assert results.values(one).scalar.mean() == pytest.approx(0.702)
    assert results.values(two).scalar.mean() == pytest.approx(0.502)
    assert two.needs(results.view) == [("two", "strict-mlm")]
    assert difference(one, two).words(results.view) == "by one - by two: MLM, accuracy on acceptability"
    with pytest.raises(MaskLabError, match="no asked probe 'three' of the study measures strict-mlm on acceptability"):
        both.of("strict-mlm", named="three").needs(results.view)
    assert not Reading("strict-mlm", tasks=("acceptability",), named="three").measured(results.view)
