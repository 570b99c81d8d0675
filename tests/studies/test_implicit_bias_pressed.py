"""The intervention of `implicit-bias`: recipes whose trace is lowered or raised, their figure and their claims."""

import pytest
import test_implicit_bias as wing

import synthetic
from masklab.errors import MaskLabError
from masklab.scores.view import View
from masklab.studies.implicit_bias.select import press, pressed, sizes

CHANGE = {
    "objectives": {
        "down": {"mlm": 1, "sharpness": {"weight": 0.01}},
        "up": {"mlm": 1, "sharpness": {"weight": 0.003, "raised": True}},
    },
    "models": {
        "b": {"like": "ib-pcfg-l", "objective": "down"},
        "a": {"like": "ib-pcfg-l", "objective": "up"},
    },
}
PANELS = {"pcfg": {"s": "ib-pcfg-s", "l": "ib-pcfg-l"}, "pressed": {"x": "a", "y": "b"}}
PROBES = {"ib-loss": "all", "ib-pcfg": "all", "ib-trace": "all"}


@pytest.fixture(scope="module")
def config():
    return wing.config_of(CHANGE, panels=PANELS, probes=PROBES, figures=["figure_pressed"], tables=[])


def world(per_trace):
    """The trace is 40, 20 where lowered and 80 where raised; the accuracy .6 and `per_trace` for each of it less."""

    def cell(cell):
        facts, metric = cell["facts"], cell["metric"]
        lowered = {None: 0, True: 40, False: -20}[facts.get("objective.sharpness.raised")]
        if metric == "trace" and not cell["null"]:
            return 40 + lowered
        if metric == "accuracy" and not cell["null"]:
            return 0.6 - per_trace * lowered
        return wing.world(cell)

    return cell


def test_from_the_sharpest_to_the_flattest(config):
    view = View.of(config, "implicit-bias")
    assert pressed(view, "pcfg") == ["a", "ib-pcfg-l", "b"] and pressed(view, "hmm") == []
    assert [press(view, name) for name in pressed(view, "pcfg")] == [-0.003, 0, 0.01]
    assert sizes(view, "pcfg") == ["ib-pcfg-s", "ib-pcfg-l"]


def test_claims_follow_the_world(config):
    for per_trace, verdict in ((0.002, "supported"), (-0.002, "contradicted"), (0.0, "negligible")):
        found = wing.claims(config, synthetic.results(config, "implicit-bias", world(per_trace), noise=0.0005))
        assert found.loc["pressed-trace-pcfg", "verdict"] == "supported"
        ways = [f"pressed-loss-{way}-pcfg" for way in ("lowered", "raised")]
        assert {*found.loc[ways, "verdict"]} == {"supported"}
        assert {found.loc[f"pressed-better-pcfg-{letter}", "verdict"] for letter in "abc"} == {verdict}
        assert found.loc["pressed-better-pcfg-b", "value"] == pytest.approx(60 * per_trace, abs=0.002)
        assert found.loc["pressed-lowered-pcfg-b", "value"] == pytest.approx(20 * per_trace, abs=0.002)


def test_the_figure_draws_traces_losses_and_accuracies(config):
    results = synthetic.results(config, "implicit-bias", world(0.002), noise=0)
    figure, data = wing.shown(config, results, "figures", "figure_pressed")
    traces = data[data["metric"] == "trace"]
    assert traces["value"].tolist() == [80, 40, 20] and traces["weight"].tolist() == [-0.003, 0, 0.01]
    assert data[data["metric"] == "accuracy"].groupby("recipe")["value"].first().to_dict() == pytest.approx(
        {"a": 0.52, "ib-pcfg-l": 0.6, "b": 0.64}
    )
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles[:2] == [r"$\bf{(a)}$ PCFG", r"$\bf{(b)}$ PCFG"] and titles[2].startswith(r"$\bf{(c)}$ PCFG, ")
    wing.all_is_in_view(figure)
    wing.nothing_overlaps(figure)
    wing.marks_at_1_are_whole(config, results, "figure_pressed")


def test_a_study_without_such_recipes():
    config = wing.config_of()
    with pytest.raises(MaskLabError, match="needs recipes whose objective is mlm and sharpness"):
        wing.shown(config, synthetic.results(config, "implicit-bias", wing.world), "figures", "figure_pressed")
