"""SGD of `implicit-bias` at several rates, batch sizes and lengths: its recipes, figure and claims."""

from math import exp

import pytest
import test_implicit_bias as wing

import synthetic
from masklab.errors import MaskLabError
from masklab.scores.results import Results
from masklab.scores.view import View
from masklab.studies.implicit_bias.select import drift, sgd, swept

# way -> rate, batch size, updates; the default run has .3, 32 and 600: k eta^2 / B = 1.6875
WAYS = {"slow": (0.15, 8, 600), "fast": (0.6, 64, 300), "long": (0.6, 32, 600), "short": (0.3, 32, 100)}
CHANGE = {
    "optimisers": {f"sgd-{way}": {"like": "ib-sgd", "lr": rate} for way, (rate, _, _) in WAYS.items()},
    "models": {
        f"swept-{way}": {"like": "ib-pcfg-sgd", "optimiser": f"sgd-{way}", "batch_size": batch, "steps": steps,
                         "checkpoints": [steps]}
        for way, (_, batch, steps) in WAYS.items()
    },
}  # fmt: skip
PANELS = {
    "pcfg": {"s": "ib-pcfg-s", "l": "ib-pcfg-l"},
    "sgd": {"main": "ib-pcfg-sgd"} | {way: f"swept-{way}" for way in WAYS},
}
PROBES = {
    "ib-loss": "all",
    "ib-pcfg": "all",
    "ib-trace": ["ib-pcfg-s", "ib-pcfg-l"],
    "ib-sgd-trace": ["ib-pcfg-sgd", *CHANGE["models"]],
}


@pytest.fixture(scope="module")
def config():
    return wing.config_of(CHANGE, panels=PANELS, probes=PROBES, figures=["figure_swept"], tables=[])


def world(better, batch_counts=False):
    """The trace falls from 40 by the time of the theorem, or by the batch size too; accuracy rises with that time."""

    def cell(cell):
        facts, metric = cell["facts"], cell["metric"]
        if facts.get("optimiser.kind") != "sgd" or cell["null"]:
            return wing.world(cell)
        time = cell["step"] * facts["optimiser.lr"] ** 2 / facts["batch_size"]
        extra = facts["batch_size"] / 32 if batch_counts else 1
        known = {"accuracy": 0.5 + better * time, "trace": 10 + 30 * exp(-time / 2) * extra}
        return known.get(metric, wing.world(cell))

    return cell


def test_by_the_time_of_the_theorem(config):
    view = View.of(config, "implicit-bias")
    assert sgd(view, "pcfg") == ("ib-pcfg-sgd", ("ib-pcfg-l", 500))  # it keeps the most checkpoints
    assert {name: round(drift(view, name), 6) for name in swept(view, "pcfg")} == {
        "swept-short": 0.28125, "ib-pcfg-sgd": 1.6875, "swept-slow": 1.6875, "swept-fast": 1.6875, "swept-long": 6.75,
    }  # fmt: skip
    assert swept(view, "hmm") == []
    other = {"models": CHANGE["models"] | {"swept-slow": {"like": "ib-pcfg-sgd", "init": "ib-pcfg-l@150"}}}
    changed = wing.config_of(CHANGE | other, panels=PANELS, probes=PROBES, figures=["figure_swept"], tables=[])
    with pytest.raises(MaskLabError, match="2 recipes that are starts of SGD on a pcfg corpus"):
        swept(View.of(changed, "implicit-bias"), "pcfg")


def test_claims_follow_the_world(config):
    for better, verdict in ((0.02, "supported"), (-0.02, "contradicted")):
        found = wing.claims(config, synthetic.results(config, "implicit-bias", world(better), noise=0.001))
        alike = [name for name in found.index if name.startswith("sgd-drift-pcfg")]
        assert alike == [f"sgd-drift-pcfg-{pair}" for pair in ("0.15-8-0.3-32", "0.6-64-0.3-32", "0.6-64-0.15-8")]
        assert {*found.loc[[*alike, "sgd-drift-more-pcfg"], "verdict"]} == {"supported"}
        assert {*found.loc[alike, "margin"]} == {0.05} and (found.loc[alike, "value"].abs() < 0.01).all()
        letters = [f"sgd-drift-better-pcfg-{letter}" for letter in "abc"]
        assert {*found.loc[letters, "verdict"]} == {verdict}
        assert found.loc[letters[0], "value"] == pytest.approx(better * (6.75 - 0.28125), abs=0.002)
    found = wing.claims(config, synthetic.results(config, "implicit-bias", world(0.0, batch_counts=True), noise=0.0005))
    assert {*found.loc[alike, "verdict"]} == {"contradicted"}
    constant = synthetic.results(
        config, "implicit-bias", lambda cell: 20 if cell["metric"] == "trace" else world(0.0)(cell), noise=0.0005
    )
    found = wing.claims(config, constant)
    assert {*found.loc[alike, "verdict"]} == {"untested"}
    assert found.loc[alike, "why"].str.startswith("what it presupposes was not shown").all()


def test_the_figure_draws_updates_and_the_time_of_the_theorem(config):
    results = synthetic.results(config, "implicit-bias", world(0.02), noise=0)
    figure, data = wing.shown(config, results, "figures", "figure_swept")
    trace = data[data["metric"] == "trace"].set_index("recipe")
    assert trace["drift"].round(6).tolist() == [0, 0.28125, 1.6875, 1.6875, 1.6875, 6.75]
    assert trace.loc["swept-fast", ["rate", "batch_size", "updates"]].tolist() == [0.6, 64, 300]
    assert trace.index[0] == "ib-pcfg-l" and trace.loc["ib-pcfg-l", ["rate", "updates"]].tolist() == [0, 0]
    assert trace.loc["swept-long", "value"] == pytest.approx(10 + 30 * exp(-6.75 / 2))
    wing.all_is_in_view(figure)
    wing.nothing_overlaps(figure)
    wing.marks_at_1_are_whole(config, results, "figure_swept")


def test_a_figure_is_over_the_replicates_that_all_its_models_have(config):
    """The third has a language on which all is easy, and what SGD started from alone has it."""
    results = synthetic.results(config, "implicit-bias", world(0.02), noise=0)
    scores = results.scores.copy()
    third, start = scores["replicate"] == 3, scores["recipe"] == "ib-pcfg-l"
    scores.loc[third & (scores["metric"] == "accuracy"), "value"] += 0.3
    uneven = Results(results.view, scores[~third | start], models=results.models)
    data, even = (wing.shown(config, each, "figures", "figure_swept")[1] for each in (uneven, results))
    assert set(data["replicates"]) == {2} and set(even["replicates"]) == {3}
    assert data["value"].tolist() == pytest.approx(even["value"].tolist())


def test_a_study_without_a_sweep():
    config = wing.config_of()
    with pytest.raises(MaskLabError, match="needs recipes trained on by SGD from one start at several rates"):
        wing.shown(config, synthetic.results(config, "implicit-bias", wing.world), "figures", "figure_swept")
