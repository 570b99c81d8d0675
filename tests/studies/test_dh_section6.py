"""Section 6 on the pseudo-language: its figures, its table and its claims from scores."""

import numpy as np
import pandas as pd
import pytest

import synthetic
from drawn import all_is_in_view, nothing_overlaps
from masklab.config import layered, load, plain
from masklab.errors import MaskLabError
from masklab.phrases import LAW, OTHERS, SYNONYMS
from masklab.report.cells import TIDY
from masklab.scores.results import Results
from masklab.scores.view import View
from masklab.studies import claims_of, find
from masklab.studies.dh.section6 import LOW, PARTS, STARTS
from masklab.studies.dh.select import WITH, WITHOUT, start_of

RAW = plain(layered(["presets/evening.yaml"]))
COUNT = RAW["studies"]["dh"]["replicates"] = 3


@pytest.fixture(scope="module")
def config():
    return load(RAW | {"studies": {"dh": RAW["studies"]["dh"]}})


def measured(cell):
    """Of w/ DH: synonyms are alike before and after, others are not, and within neither does one tell of the other."""
    if cell["kind"] != "replaced":
        return None
    start, metric, split = start_of(cell["facts"]), cell["metric"], cell["split"]
    alone = split.endswith((SYNONYMS, OTHERS))
    if metric == "pearson":
        return (0.03 if alone else 0.6) if start == WITH else 0.01
    if metric == "accuracy":
        return 0.9 if split == "A-D1" or start == WITH else 0.5
    if metric in ("tv_pretrained", "tv_finetuned"):
        return 0.05 if start == WITH and split.endswith(SYNONYMS) else 0.7
    return None


@pytest.fixture(scope="module")
def results(config):
    return synthetic.results(config, "dh", measured)


def claims(config, results):
    found = synthetic.claims("dh", config, results)
    return found[found.index.str.startswith("replaced-")]


def test_verdicts_of_scores_whose_answer_is_known(config, results):
    found = claims(config, results)
    wanted = {"known": "supported", "kept": "supported", "follows": "supported", "owing": "supported",
              "alone": "supported", "sizes": "supported"}  # fmt: skip
    assert found["verdict"].to_dict() == {
        f"replaced-{name}-{count}": verdict for count in (1, 3) for name, verdict in wanted.items()
    }
    value = found["value"]
    assert value["replaced-follows-1"] == pytest.approx(0.6 - LOW, abs=0.01)
    assert value["replaced-kept-3"] == pytest.approx(-0.65, abs=0.01)


def test_starting_points_are_compared_on_the_same_features(config):
    """Drawn ones, which say the opposite here; the paper's own sentences keep to the most salient."""

    def opposite(cell):
        value, drawn = measured(cell), "drawn" in (cell["split"] or "")
        at_with = start_of(cell["facts"]) == WITH
        if drawn and cell["metric"] == "pearson":
            return 0.0 if at_with else 0.5
        return 0.75 - value if drawn and cell["metric"].startswith("tv_") and value is not None else value

    verdicts = claims(config, synthetic.results(config, "dh", opposite))["verdict"].to_dict()
    wanted = dict(
        known="contradicted", kept="contradicted", follows="supported", owing="contradicted", alone="contradicted",
        sizes="supported",
    )  # fmt: skip
    assert verdicts == {f"replaced-{name}-{count}": verdict for count in (1, 3) for name, verdict in wanted.items()}


def test_what_holds_if_models_generalize_by_it_is_untested_where_they_do_not(config):
    """The same correlations, of classifiers that get the other form as little right w/ DH as w/o DH."""

    def alike(cell):
        return 0.5 if cell["metric"] == "accuracy" and cell["split"] != "A-D1" else measured(cell)

    found = claims(config, synthetic.results(config, "dh", alike))
    for count in (1, 3):
        for name in ("follows", "owing", "alone", "sizes"):
            assert "what it presupposes was not shown" in found["why"][f"replaced-{name}-{count}"]
        assert found["verdict"][f"replaced-known-{count}"] == "supported"


def test_it_is_seen_where_d_f0_alone_makes_a_correlation_higher(config):
    """Of scratch, whose own predictions are alike beside everything, but whose changes go with the exact distances."""

    def owing_to_the_first(cell):
        return 0.6 if cell["metric"] == "pearson" and cell["split"].endswith(LAW) else measured(cell)

    verdicts = claims(config, synthetic.results(config, "dh", owing_to_the_first))["verdict"]
    assert {verdicts[f"replaced-owing-{count}"] for count in (1, 3)} == {"supported"}
    assert not {verdicts[f"replaced-alone-{count}"] for count in (1, 3)} & {"supported", "untested"}


def test_nothing_is_decided_on_classifiers_that_learned_nothing(config):
    def chance(cell):
        return 0.5 if cell["metric"] in ("accuracy", "majority") else measured(cell)

    assert set(claims(config, synthetic.results(config, "dh", chance))["verdict"]) == {"untested"}
    unlearned = synthetic.results(config, "dh", measured, learned=False)
    assert set(claims(config, unlearned)["verdict"]) == {"untested"}


@pytest.mark.parametrize("name", ["figure_replaced", "figure_replaced_course"])
def test_what_a_figure_draws_is_what_was_measured(name, config, results):
    figure, data = find("dh", config.studies["dh"], "figures", name).draw(results)
    drawn = [line for axes in figure.axes for line in axes.get_lines() if not line.get_label().startswith("_")]
    assert len(drawn) == data.groupby(["level", "part", "start"]).ngroups
    salient, drawn_ones = {"1 synset", "3 synsets"}, {"1 synset drawn", "3 synsets drawn"}
    assert set(data["start"]) == set(STARTS)
    assert set(data["level"]) == salient | (drawn_ones if name == "figure_replaced" else set())
    one = data[(data["start"] == WITH) & (data["part"] == PARTS[None])]
    assert np.allclose(one["value"], 0.6, atol=0.02) and (one["replicates"] == COUNT).all()
    probe = config.probes["dh-replaced"]
    if name == "figure_replaced":
        assert set(data["train_size"]) == set(probe.sizes) and set(data["part"]) == set(PARTS.values())
    else:
        assert set(data["updates"]) == set(probe.updates)
    nothing_overlaps(figure)
    all_is_in_view(figure)


@pytest.mark.parametrize("name", ["figure_replaced", "figure_replaced_course"])
def test_curves_of_a_panel_are_over_the_replicates_that_all_of_them_have(name, config, results):
    """The third is of another language, and w/ DH alone has it."""
    scores = results.scores
    others = [recipe for recipe, facts in results.view.recipes.items() if start_of(facts) != WITH]
    fewer = scores[~(scores["recipe"].isin(others) & (scores["replicate"] == COUNT))]
    found = Results(results.view, fewer, models=results.models)
    _, data = find("dh", config.studies["dh"], "figures", name).draw(found)
    assert set(data["replicates"]) == {COUNT - 1} and set(data["start"]) == set(STARTS)


def test_the_table_has_correlations_distances_and_accuracies(config, results):
    item = find("dh", config.studies["dh"], "tables", "replaced")
    table = item.function()(results, item.choose(results.view))
    assert list(table.columns) == TIDY and set(table["panel"]) == {
        "1 synset",
        "3 synsets",
        "1 synset drawn",
        "3 synsets drawn",
        "accuracy",
    }
    values = table.set_index(["panel", "row", "label"])["value"]
    row = "before fine-tuning, synonyms"
    assert values["1 synset", row, WITH] == pytest.approx(0.05, abs=0.01)
    assert values["1 synset", row, WITHOUT] == pytest.approx(0.7, abs=0.01)
    assert values["accuracy", "B-D1", WITH] == pytest.approx(0.9, abs=0.01)
    assert isinstance(table, pd.DataFrame) and not table.duplicated(["panel", "row", "label"]).any()


def test_a_study_without_the_probe_has_none_of_it():
    raw = plain(layered(()))
    config = load(raw | {"studies": {"dh": raw["studies"]["dh"]}})
    view = View.of(config, "dh")
    assert not [claim for claim in claims_of("dh", config.studies["dh"], view) if claim.name.startswith("replaced")]
    with pytest.raises(MaskLabError, match="needs a `replaced` probe on a patterns task"):
        find("dh", config.studies["dh"], "figures", "figure_replaced").needs(view)
