"""A course of `implicit-bias` that is cooled from several of its checkpoints on: its recipes, figure and claims."""

from math import exp, log2

import pytest
import test_implicit_bias as wing

import synthetic
from masklab.errors import MaskLabError
from masklab.scores.view import View
from masklab.studies.implicit_bias.select import branches, sizes, updates

AT = (100, 200, 400, 800)
CHANGE = {
    "encoders": {"narrow": {"like": "ib-l", "hidden": 16, "heads": 1}},
    "optimisers": {"steady": {"like": "ib", "schedule": "constant"}},
    "models": {
        "ib-pcfg-narrow": {"like": "ib-pcfg-s", "encoder": "narrow"},
        "course": {"like": "ib-pcfg-l", "optimiser": "steady", "steps": 800, "checkpoints": list(AT)},
        "cooled-{at}": {"for": {"at": list(AT)}, "like": "ib-pcfg-l", "init": "course@{at}", "steps": 50,
                        "checkpoints": [50]},
    },
}  # fmt: skip
PANELS = {
    "pcfg": {"xs": "ib-pcfg-xs", "narrow": "ib-pcfg-narrow", "s": "ib-pcfg-s", "l": "ib-pcfg-l"},
    "cooled": {f"{at + 50}": f"cooled-{at}" for at in reversed(AT)},
    "sgd": {"l": "ib-pcfg-sgd"},
}
PROBES = {"ib-loss": "all", "ib-pcfg": "all", "ib-trace": "all"}


@pytest.fixture(scope="module")
def config():
    return wing.config_of(CHANGE, panels=PANELS, probes=PROBES, figures=["figure_cooled"], tables=[])


def gap(at):
    """.071, .037, .011, .003 after 150, 250, 450, 850 updates; width 16 ends at .05."""
    return 0.003 + 0.2 * exp(-at / 140)


def world(per_doubling):
    """Accuracy .5 and so much more with each doubling of the updates, of which the trace falls by 3."""

    def cell(cell):
        facts, metric = cell["facts"], cell["metric"]
        if not facts.get("init") or cell["null"]:
            return wing.world(cell)
        at = int(facts["init"].rpartition("@")[2]) + 50
        known = {"accuracy": 0.5 + per_doubling * log2(at / 150), "trace": 50 - 3 * log2(at / 150)}
        known["gap"] = wing.FLOOR * gap(at)
        return known.get(metric, wing.world(cell))

    return cell


def test_branches_from_early_to_late(config):
    view = View.of(config, "implicit-bias")
    assert branches(view, "pcfg") == [f"cooled-{at}" for at in AT] and branches(view, "hmm") == []
    assert [updates(view, name) for name in branches(view, "pcfg")] == [at + 50 for at in AT]
    assert sizes(view, "pcfg") == ["ib-pcfg-xs", "ib-pcfg-narrow", "ib-pcfg-s", "ib-pcfg-l"]
    two = CHANGE | {"models": CHANGE["models"] | {"other": {"like": "cooled-100", "init": "ib-pcfg-l@60"}}}
    several = wing.config_of(two, panels=PANELS | {"more": {"o": "other"}}, probes=PROBES, tables=[])
    with pytest.raises(MaskLabError, match="2 recipes that are courses that others cool on a pcfg corpus"):
        branches(View.of(several, "implicit-bias"), "pcfg")


def test_claims_follow_the_world(config):
    """Within .01 of the last loss are 450 and 850 updates; that of width 16, of as many layers, at 150 to 250."""
    for slope, verdict in ((0.02, "supported"), (-0.02, "contradicted"), (0.0, "negligible")):
        found = wing.claims(config, synthetic.results(config, "implicit-bias", world(slope), noise=0.0005))
        assert {found.loc[f"rises-pcfg-{letter}", "verdict"] for letter in "abc"} == {verdict}
        assert found.loc["rises-pcfg-b", "value"] == pytest.approx(slope * log2(850 / 450), abs=0.002)
        assert found.loc["rises-trace-pcfg", "verdict"] == "supported"
        assert found.loc["sgd-trace-more-pcfg", "verdict"] == "contradicted"  # 44 after SGD, 42 after more of AdamW
        share = (0.05 - gap(150)) / (gap(250) - gap(150))
        there = 0.5 + share * slope * log2(250 / 150)
        small = found.loc["larger-matched-pcfg-b"]
        assert small["value"] == pytest.approx(there - (0.4 + 0.03 * log2(500 / 50)), abs=0.003)
        assert "at the loss of narrow" in small["comparison"]


def test_the_figure_draws_losses_traces_and_accuracies(config):
    results = synthetic.results(config, "implicit-bias", world(0.02), noise=0)
    figure, data = wing.shown(config, results, "figures", "figure_cooled")
    assert data.groupby(["metric", "task"])["step"].apply(list).map(tuple).unique().tolist() == [
        tuple(at + 50 for at in AT)
    ]
    drawn = data[(data["metric"] == "accuracy") & (data["task"] == "ib-pcfg-a")]
    assert drawn["value"].tolist() == pytest.approx([0.5 + 0.02 * log2((at + 50) / 150) for at in AT])
    assert drawn["equal"].tolist() == [False, False, True, True]
    wing.all_is_in_view(figure)
    wing.nothing_overlaps(figure)
    wing.marks_at_1_are_whole(config, results, "figure_cooled")


def test_a_study_without_such_recipes():
    config = wing.config_of()
    with pytest.raises(MaskLabError, match="needs recipes that start from checkpoints of another"):
        wing.shown(config, synthetic.results(config, "implicit-bias", wing.world), "figures", "figure_cooled")
