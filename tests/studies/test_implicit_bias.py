"""The wing of `implicit-bias`: what is what by facts, figures and tables from scores of known values, its claims."""

import copy
import json
from functools import partial
from math import exp, log, log2
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import synthetic
from drawn import all_is_in_view, nothing_overlaps
from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.report.cells import TIDY, markdown
from masklab.scores.results import Results
from masklab.scores.view import View
from masklab.studies import claims_of, find
from masklab.studies.implicit_bias import FIGURES, TABLES
from masklab.studies.implicit_bias.figures import name_of
from masklab.studies.implicit_bias.select import (
    algorithms,
    letters,
    measured_start,
    places,
    said,
    sgd,
    sizes,
    twin,
    weights,
)
from masklab.studies.implicit_bias.traces import regression

# the default run as this world knows it, whatever its sizes, lengths, seeds and margins are just now
COURSE = {"steps": 500, "checkpoints": [60, 150, 300, 500]}
ENDS = {"steps": 500, "checkpoints": [500]}
SHORT = {"steps": 300, "checkpoints": [60, 150, 300]}
SGD = {"steps": 600, "checkpoints": [100, 200, 400, 600]}
FIXED = {
    "encoders": {"ib-lstm-s": {"hidden": 16}, "ib-lstm-m": {"hidden": 32}, "ib-lstm-l": {"hidden": 64}},
    "models": {f"ib-pcfg-{size}": COURSE for size in ("xs", "s", "m", "l")}
    | {f"ib-pcfg-{way}": ENDS for way in ("s-15", "l-15", "adversarial")}
    | {f"ib-hmm-{size}": SHORT for size in ("s", "m", "l")}
    | {"ib-pcfg-sgd": SGD | {"init": "ib-pcfg-l@500"}, "ib-hmm-sgd": SGD | {"init": "ib-hmm-m@300"}},
    "probes": {
        **{f"ib-{kind}": {"seeds": [1], "examples": "first", "sizes": None} for kind in ("pcfg", "hmm")},
        "ib-slices": {"steps": [150, 500]},
    },
    "studies": {"implicit-bias": {"replicates": 3, "below_margin": "sign"}},
}
RAW = overlay(plain(layered()), {"extends": [], **FIXED})
RAW["studies"]["implicit-bias"]["margins"] = {"correlation": 0.3, "partial_correlation": 0.3}
for model in RAW["models"].values():
    model.pop("replicates", None)  # three of all, so that a figure is made of as many everywhere
ELSEWHERE = ("figure6", "figure7", "figure8", "figure_pressed", "figure_cooled", "figure_drift", "figure_swept")
DRAWN = [name for name in FIGURES if name not in ELSEWHERE]
FLOOR = 2.0
config_of = partial(synthetic.config_of, RAW, "implicit-bias")
shown, claims = partial(synthetic.shown, "implicit-bias"), partial(synthetic.claims, "implicit-bias")


@pytest.fixture(scope="module")
def config():
    return config_of()


def rank(facts):
    return {16: 0, 24: 1, 32: 2, 48: 3}.get(facts["encoder.hidden"], 3)


def share(facts, step):
    """Gap as a share of the floor: width 16 stays at 5 %, the others are within 1 % of their lowest from 100 on."""
    if facts["encoder.kind"] == "lookup":
        return 0.0
    start = 0.0 if facts["init"] else 0.2 * exp(-step / 25)
    return start + (0.05 if rank(facts) == 0 else 0.004 - 0.001 * rank(facts))


def sharpness(facts, step):
    flat = 40 - 4 * rank(facts) - 3 * log2(max(step, 1) / 50)
    return flat * (3 if "adversarial" in facts["objective.terms"] else 1)


def probed(facts, step):
    if facts["encoder.kind"] == "lookup":
        return 0.3
    return 0.4 + 0.04 * rank(facts) + 0.03 * log2(step / 50) - 0.1 * ("adversarial" in facts["objective.terms"])


def world(cell):
    """About the paper's: accuracy rises and the trace falls with size and with updates; the adversary costs .1."""
    facts, step, metric = cell["facts"], cell["step"], cell["metric"]
    if metric in ("majority", "majority_f1"):
        return 0.2
    if cell["null"]:
        return 0.25 if metric == "accuracy" else None
    gap = share(facts, step) * FLOOR
    if cell["kind"] == "landscape":
        return FLOOR + gap + sharpness(facts, step) * cell["at"] ** 2 / 2
    known = {"gap": gap, "loss": FLOOR + gap, "trace": sharpness(facts, step)}
    known["trace_embedded"] = 1.5 * known["trace"]
    return probed(facts, step) if metric == "accuracy" else known.get(metric)


@pytest.fixture(scope="module")
def results(config):
    return synthetic.results(config, "implicit-bias", world, noise=0.0005)


@pytest.fixture(scope="module")
def exact(config):
    return synthetic.results(config, "implicit-bias", world, noise=0)


def lines(axes):
    return [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]


# --- what is what -----------------------------------------------------------------------


def test_roles_come_from_facts(config):
    view = View.of(config, "implicit-bias")
    assert sizes(view, "pcfg") == ["ib-pcfg-xs", "ib-pcfg-s", "ib-pcfg-m", "ib-pcfg-l"]
    assert sizes(view, "pcfg", one_mask=False) == ["ib-pcfg-s-15", "ib-pcfg-l-15"]
    assert sizes(view, "hmm") == ["ib-hmm-s", "ib-hmm-m", "ib-hmm-l"] and sgd(view, "causal") is None
    assert sgd(view, "pcfg") == ("ib-pcfg-sgd", ("ib-pcfg-l", 500))
    assert list(algorithms(view).values()) == ["ib-pcfg-l", "ib-pcfg-adversarial", "ib-pcfg-lookup"]
    assert twin(view, "ib-pcfg-s-15", "masking.") == "ib-pcfg-s"
    assert letters(view) == {"a": "ib-pcfg-a", "b": "ib-pcfg-b", "c": "ib-pcfg-c"}
    assert places(view, "hmm")["sizes"] == ["ib-hmm-6"] and places(view, "causal")["more sizes"] == ["ib-causal-6"]
    assert [said(view, task) for task in ("ib-pcfg-b", "ib-hmm-6", "ib-causal-4")] == [
        "span of 4 words", "position 6", "expected word 4",
    ]  # fmt: skip


def test_tasks_are_told_apart_and_titled_by_facts():
    """Spans and positions swapped: the same figures show other tasks, and say which."""
    change = {"ib-pcfg-a": {"span": 1}, "ib-pcfg-c": {"span": 7}, "ib-hmm-3": {"position": 8}}
    config = config_of({"tasks": change})
    view = View.of(config, "implicit-bias")
    assert letters(view) == {"a": "ib-pcfg-c", "b": "ib-pcfg-b", "c": "ib-pcfg-a"}
    found = synthetic.results(config, "implicit-bias", world)
    figure, data = shown(config, found, "figures", "figure3")
    titles = [axes.get_title("left") for axes in figure.axes[:2]]
    assert "PCFG, span of 1 word\n(" in titles[0] and "HMM, position 8\n(" in titles[1]
    assert set(data["task"]) == {"", "ib-pcfg-a", "ib-hmm-3"}
    assert {"larger-hmm-6", "larger-hmm-8"} < set(claims(config, found).index)


def test_a_study_of_one_panel(config, results):
    """Panels group and label, and decide nothing."""
    panels = config.studies["implicit-bias"].panels.values()
    one = config_of(panels={"全部": {f"{name}!": name for own in panels for name in own.values()}})
    other = synthetic.results(one, "implicit-bias", world, noise=0.0005)
    columns = ["value", "low", "high", "verdict"]
    assert claims(one, other)[columns].equals(claims(config, results)[columns])


def test_names_are_free(config, results):
    """A recipe renamed, panels and labels in another script: the same numbers."""
    raw = copy.deepcopy(RAW)
    study = raw["studies"]["implicit-bias"]
    for probe in ("ib-pcfg", "ib-hmm", "ib-causal"):
        study["probes"][probe] = list(config.studies["implicit-bias"].probes[probe])
    study["panels"] = {f"图 {k}": {f"{label}'": name for label, name in own.items()}
                       for k, own in enumerate(study["panels"].values())}  # fmt: skip
    raw = json.loads(json.dumps(raw | {"studies": {"implicit-bias": study}}).replace("ib-pcfg-l", "zeta"))
    renamed = load(json.loads(json.dumps(raw).replace("zetaookup", "ib-hmm-adversary")))
    other = synthetic.results(renamed, "implicit-bias", world, noise=0.0005)
    columns = ["value", "low", "high", "verdict"]
    assert claims(renamed, other)[columns].equals(claims(config, results)[columns])
    for name in ("figure1", "figure3", "figure11"):
        _, data = shown(config, results, "figures", name)
        _, again = shown(renamed, other, "figures", name)
        assert again.drop(columns=["recipe", "label"]).equals(data.drop(columns=["recipe", "label"]))
        assert "zeta" in set(again["recipe"])


def test_what_a_study_lacks_is_said(config):
    study = config.studies["implicit-bias"]

    def without(*panels, **more):
        kept = {title: own for title, own in study.panels.items() if title not in panels}
        fewer = study.model_copy(update={"panels": kept, **more})
        return View.of(config.model_copy(update={"studies": {"implicit-bias": fewer}}), "implicit-bias")

    plain = without("pcfg-sgd", "hmm-sgd", "pcfg-algorithms")
    names = {claim.name for claim in claims_of("implicit-bias", study, plain)}
    assert "larger-pcfg-b" in names and not any("sgd" in name or "adversarial" in name for name in names)
    for item, lacking in (("figure3", "recipes trained on by SGD"), ("table1", "an adversarial term")):
        with pytest.raises(MaskLabError, match=lacking):
            find("implicit-bias", study, "tables" if "table" in item else "figures", item).needs(plain)
    with pytest.raises(MaskLabError, match="needs a recipe on a corpus of kind causal"):
        FIGURES["figure8"].corpora(without("causal"))


def test_of_two_recipes_of_one_size_nobody_says_which_is_meant():
    """l trained at another rate is no size of its own: what it differs in would count as a difference of sizes."""
    rate = {"optimisers": {"slow": {"like": "ib", "lr": 1e-5}}}
    model = {"models": {"ib-pcfg-l-slow": {"like": "ib-pcfg-l", "optimiser": "slow"}}}
    panels = RAW["studies"]["implicit-bias"]["panels"]
    twice = config_of(rate | model, panels=panels | {"slow": {"l, slow": "ib-pcfg-l-slow"}})
    view = View.of(twice, "implicit-bias")
    said = "compares sizes, and ib-pcfg-l and ib-pcfg-l-slow are of the same size; leave one to another study"
    for asked in (
        lambda: claims_of("implicit-bias", twice.studies["implicit-bias"], view),
        lambda: FIGURES["figure2"].needs(view),
    ):
        with pytest.raises(MaskLabError, match=said):
            asked()


def test_ways_of_training_without_a_linear_probe_have_losses_and_traces():
    panel = {"AdamW": "ib-pcfg-l", "adversarial": "ib-pcfg-adversarial"}
    config = config_of(panels={"ways": panel}, probes={"ib-loss": "all", "ib-trace": "all"}, figures=[])
    found = synthetic.results(config, "implicit-bias", world)
    for name, rows in (("table1", ["Loss", "Gap"]), ("table2", ["Loss", "Gap", "Trace"])):
        assert list(dict.fromkeys(shown(config, found, "tables", name)["row"])) == rows


# --- figures and tables -----------------------------------------------------------------


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_draws_means_over_replicates(name, config, results):
    figure, data = shown(config, results, "figures", name)
    assert np.isfinite(data[["value", "low", "high"]]).all(axis=None) and (data["replicates"] == 3).all()
    for axes in figure.axes:
        for line in lines(axes):
            assert np.isin(np.round(line.get_ydata(), 9), np.round(data["value"], 9)).all()
    nothing_overlaps(figure)
    all_is_in_view(figure)
    if "null" in data:
        assert (data.loc[data["metric"] == "accuracy", "null"].round(2) == 0.25).all()


def marks_at_1_are_whole(config, results, name):
    """Half of a mark at an accuracy of 1 would lie above axes that end there."""
    scores = results.scores
    perfect = scores.assign(value=scores["value"].mask(scores["metric"] == "accuracy", 1.0))
    figure, _ = shown(config, Results(results.view, perfect, models=results.models), "figures", name)
    drawn = [(axes, np.asarray(line.get_ydata())) for axes in figure.axes for line in axes.get_lines()]
    ends = [axes.get_ylim()[1] for axes, values in drawn if (values == 1).any()]
    assert ends and min(ends) > 1.01


@pytest.mark.parametrize("name", ["figure1", "figure2", "figure3", "figure5", "figure9", "figure10", "figure11"])
def test_marks_at_1_are_whole(name, config, exact):
    marks_at_1_are_whole(config, exact, name)


def test_points_have_the_interval_of_their_replicates(config, results):
    _, data = shown(config, results, "figures", "figure1")
    rows = results.scores.query(
        "recipe == 'ib-pcfg-m' and step == 300 and task == 'ib-pcfg-c' and metric == 'accuracy'"
    )
    values = rows.groupby("replicate")["value"].mean()
    low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
    row = data.query("recipe == 'ib-pcfg-m' and step == 300 and task == 'ib-pcfg-c'").iloc[0]
    assert row[["value", "low", "high"]].tolist() == pytest.approx([values.mean(), low, high])
    curve = data.query("recipe == 'ib-pcfg-m' and metric == 'gap'")
    assert curve["converged"].tolist() == [False, True, True, True] and curve["step"].tolist() == [60, 150, 300, 500]
    one = synthetic.results(config, "implicit-bias", world, replicates=1)
    figure, data = shown(config, one, "figures", "figure1")
    assert data["low"].isna().all() and "one replicate, no interval" in figure.legends[-1].get_title().get_text()


def test_sizes_at_equal_loss_and_the_entropy_are_marked(config, exact):
    figure, data = shown(config, exact, "figures", "figure2")
    special = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert special["_floor"].get_ydata()[0] == FLOOR and special["_saturated"].get_xdata()[0] == 2000  # size s
    own = data[(data["corpus"] == "pcfg") & (data["metric"] == "loss")]
    assert own["equal"].tolist() == [False, True, True, True]
    np.testing.assert_allclose(own["value"], FLOOR * (1 + np.array([0.05, 0.003, 0.002, 0.001])), atol=1e-4)
    for metric in ("trace", "trace_embedded"):
        figure, data = shown(config, exact, "figures", "figure5" if metric == "trace" else "figure5_embedded")
        (line,) = (line for line in figure.axes[0].get_lines() if line.get_label() == "_regression")
        assert line.zorder > max(other.zorder for other in figure.axes[0].get_lines() if other is not line)
        own = data[data["corpus"] == "pcfg"]
        np.testing.assert_allclose(own["value_trace"], exact_traces(metric))
        expected = stats.linregress(own["value_trace"][1:], own["value"][1:])
        row = own.iloc[0]
        assert (row["slope"], row["r"]) == pytest.approx((expected.slope, expected.rvalue))
        assert (data["r_low"].dropna() >= -1).all() and (data["r_high"].dropna() <= 1).all()
    assert np.isnan(regression(own.iloc[:2])).all()


def named_in(figure, panel=0):
    """Names of points of a panel."""
    return {text.get_text() for text in figure.axes[panel].texts}


def test_all_points_beside_traces_are_named_unless_they_crowd(config, exact):
    figure, data = shown(config, exact, "figures", "figure5")
    own = data[data["corpus"] == "pcfg"]
    assert named_in(figure) == set(map(name_of, (row for _, row in own.iterrows()))) and len(own) == 4
    nothing_overlaps(figure)

    def alike(cell):
        """All sizes but the least, whose loss is another, at one trace and one accuracy."""
        if cell["metric"] in ("trace", "accuracy") and not cell["null"] and cell["facts"]["encoder.hidden"] != 16:
            return {"trace": 30, "accuracy": 0.8}[cell["metric"]] + 1e-4 * rank(cell["facts"])
        return world(cell)

    crowd = synthetic.results(config, "implicit-bias", alike, noise=0)
    figure, data = shown(config, crowd, "figures", "figure5")
    own = data[data["corpus"] == "pcfg"]
    kept = own.drop(own[own["equal"]].iloc[1:-1].index)
    assert named_in(figure) == set(map(name_of, (row for _, row in kept.iterrows()))) and len(kept) == 3


def exact_traces(metric):
    return [(40 - 4 * r - 3 * log2(500 / 50)) * (1.5 if metric == "trace_embedded" else 1) for r in range(4)]


def test_sgd_is_drawn_from_where_it_starts(config, exact):
    _, data = shown(config, exact, "figures", "figure3")
    own = data[(data["corpus"] == "pcfg") & (data["metric"] == "trace")]
    assert own["step"].tolist() == [0, 100, 200, 400, 600] and own["recipe"].iloc[0] == "ib-pcfg-l"
    np.testing.assert_allclose(own["value"], [28 - 3 * log2(step / 50) for step in (500, 100, 200, 400, 600)])
    worse = synthetic.results(
        config, "implicit-bias",
        lambda cell: 0.3 if cell["metric"] == "gap" and cell["facts"]["init"] and cell["step"] > 200 else world(cell),
        noise=0,
    )  # fmt: skip
    _, data = shown(config, worse, "figures", "figure3")
    assert data[(data["corpus"] == "hmm") & (data["metric"] == "gap")]["converged"].tolist() == [True] * 3 + [False] * 2


def test_sgd_from_a_checkpoint_whose_trace_nobody_measures():
    """Traces are those of the last checkpoint, and SGD starts from an earlier one: its fall is that since it converged.

    From its first checkpoint on, at step 100, its loss is the lowest.
    """
    config = config_of({"models": {"ib-pcfg-sgd": {"init": "ib-pcfg-l@300"}}})
    results = synthetic.results(config, "implicit-bias", world, noise=0)
    assert measured_start(results.view, "pcfg") is None and measured_start(results.view, "hmm") == ("ib-hmm-m", 300)
    _, data = shown(config, results, "figures", "figure3")
    own = data[(data["corpus"] == "pcfg") & (data["metric"] == "trace")]
    assert own["step"].tolist() == [100, 200, 400, 600] and set(own["recipe"]) == {"ib-pcfg-sgd"}
    row = claims(config, results).loc["sgd-trace-falls-pcfg"]
    assert (row["verdict"], row["value"]) == ("supported", pytest.approx(log((28 - 3 * log2(12)) / (28 - 3 * log2(2)))))


def test_slices_rise_with_the_trace(config, exact):
    figure, data = shown(config, exact, "figures", "figure4")
    offsets = np.array([-0.1, 0.0, 0.1])
    early, late, small, large = (line.get_ydata() for axes in figure.axes for line in lines(axes))
    for line, width, step in ((early, 3, 150), (late, 3, 500), (small, 1, 500), (large, 3, 500)):
        np.testing.assert_allclose(line, (40 - 4 * width - 3 * log2(step / 50)) * offsets**2 / 2, atol=1e-12)
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert legend == ["s (2K parameters), grown", "l (4K parameters), as trained"] and set(data["label"][:6]) == {
        "after 150 updates",
        "after 500 updates",
    }


@pytest.mark.parametrize("said", [r"$\frac$", "$5 to $6", "_a"])
def test_labels_of_slices_stand_as_a_config_has_them(said, config, tmp_path):
    """No formula, and none that matplotlib keeps out of the legend."""
    panels = {title: {f"{said} {label}": name for label, name in own.items()}
              for title, own in config.studies["implicit-bias"].panels.items()}  # fmt: skip
    named = config_of(panels=panels)
    figure, _ = shown(named, synthetic.results(named, "implicit-bias", world, noise=0), "figures", "figure4")
    figure.savefig(tmp_path / "figure.pdf")
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    own = said.replace("$", r"\$")
    assert legend == [f"{own} s (2K parameters), grown", f"{own} l (4K parameters), as trained"]


def test_slices_are_over_the_replicates_that_both_models_have(config, exact):
    """Each replicate may have a language of its own, and the small model lacks the third."""
    lacking = (exact.scores["probe"] == "ib-slices-grown") & (exact.scores["replicate"] == 3)
    fewer = Results(exact.view, exact.scores[~lacking], models=exact.models)
    _, data = shown(config, fewer, "figures", "figure4")
    assert [set(own) for _, own in data.groupby("panel", sort=False)["replicates"]] == [{3}, {2}]


def test_nulls_are_over_the_replicates_that_all_models_have(config, exact):
    """The third has a language on which initial weights do well, and the largest model alone has it."""
    scores = exact.scores.copy()
    third, own = scores["replicate"] == 3, ["ib-pcfg-l", exact.view.nulls["ib-pcfg-l"]["untrained"]]
    scores.loc[third & (scores["metric"] == "accuracy") & (scores["recipe"] == own[1]), "value"] = 1.0
    uneven = Results(exact.view, scores[~third | scores["recipe"].isin(own)], models=exact.models)
    _, data = shown(config, uneven, "figures", "figure9")
    row = data[data["recipe"] == "ib-pcfg-l"].iloc[0]
    assert row["replicates"] == 2 and row["null"] == pytest.approx(0.25)


def test_one_mask_and_more_are_over_the_replicates_that_both_have(config, exact):
    """Figure 11 has two lines in the same axes; those with one mask lack the third replicate."""
    lacking = (exact.scores["replicate"] == 3) & (exact.scores["recipe"] == "ib-pcfg-l")
    fewer = Results(exact.view, exact.scores[~lacking], models=exact.models)
    _, data = shown(config, fewer, "figures", "figure11")
    assert data["masks"].nunique() == 2 and set(data["replicates"]) == {2}


def test_small_print_says_what_was_moved_and_nothing_of_intervals_that_are_not_there(config, exact):
    """Figure 11 draws both ways of masking side by side; of one replicate no interval holds how languages differ."""
    one = Results(exact.view, exact.scores[exact.scores["replicate"] == 1], models=exact.models)
    for results, several in ((exact, True), (one, False)):
        figure, _ = shown(config, results, "figures", "figure11")
        note = " ".join(figure.legends[-1].get_title().get_text().split())
        assert "marks at one x are drawn side by side" in note
        assert ("each replicate has a language of its own: intervals" in note) == several
        assert ("no interval" in note) == (not several)


@pytest.mark.parametrize("name", TABLES)
def test_tables(name, config, exact):
    table = shown(config, exact, "tables", name)
    assert list(table.columns) == TIDY and not table.duplicated(["panel", "row", "label"]).any()
    cells, text = table.set_index(["row", "label"])["value"], markdown(table)
    if name == "table3":
        own = table[table["panel"] == "PCFG"].set_index(["row", "label"])["value"]
        assert (own["Parameters", "m"], own["Width", "m"], own["Feed-forward width", "l"]) == (3000, 32, 192)
        assert "replicate" not in text and set(table[table["panel"] == "HMM"]["row"]) == {
            "Parameters",
            "Width",
            "Layers",
        }
        return
    task = "Span of 4 words" if name == "table1" else "Span of 2 words"
    at = probed({"encoder.kind": "", "encoder.hidden": 48, "objective.terms": []}, 500)
    assert cells[task, "plain MLM"] == pytest.approx(at) and cells[task, "adversarial"] == pytest.approx(at - 0.1)
    assert cells["Gap", "lookup table"] == 0 and cells[task, "null: untrained"] == 0.25
    assert {"null: one-hot", "null: majority"} < set(table["label"]) and "over 3 replicates" in text
    if name == "table2":
        assert cells["Trace", "adversarial"] == pytest.approx(3 * cells["Trace", "plain MLM"])


# --- claims -----------------------------------------------------------------------------


def test_claims_are_right_where_values_are_known(config, exact):
    found = claims(config, exact)
    assert len(found) == 68 and found["headline"].sum() == 4
    few = [name for name in found.index if "correlates" in name or "-R2-" in name]
    alike = [name for name in found.index if name.startswith("within-size")]  # no replicate differs from another
    wanted = dict.fromkeys(found.index, "supported") | dict.fromkeys([*few, *alike], "untested")
    wanted |= {"hmm-smallest": "contradicted"}
    assert found["verdict"].to_dict() == wanted
    assert found["why"][few].str.endswith("points; a correlation needs 8").all()
    value = found["value"]
    assert value["rises-pcfg-c"] == pytest.approx(0.03 * log2(500 / 150))  # 150 to 500 updates
    at = [log(weights(exact.view.recipes[f"ib-pcfg-{size}"])) for size in "sml"]
    line = np.polyfit(at, [0.0, 0.04, 0.08], 1)[0] * (at[-1] - at[0])
    assert value["larger-pcfg-b"] == pytest.approx(line)  # s to l
    assert value["loss-falls-pcfg"] == pytest.approx(-0.049, abs=1e-4)
    assert value["adversarial-worse-pcfg-a"] == pytest.approx(0.1)
    assert value["adversarial-worse-6-pcfg-a"] == pytest.approx(0.04)
    assert value["adversarial-below-small"] == pytest.approx(-0.02)  # adversarial l less plain s
    assert value["adversarial-trace-2"] == pytest.approx(log(3) - log(2), abs=1e-4)
    assert value["lookup-worst"] == pytest.approx(0.1 + 0.03 * log2(10))
    assert value["sgd-improves-hmm-6"] == pytest.approx(0.03)  # AdamW's 300 updates to SGD's 600
    assert value["sgd-trace-falls-pcfg"] == pytest.approx(log((28 - 3 * log2(12)) / (28 - 3 * log2(10))))
    assert value["masks-same-pcfg-b"] == pytest.approx(0) and value["masks-larger-pcfg-b"] == pytest.approx(0.08)
    assert found["comparison"]["larger-pcfg-b"] == "l - s: accuracy on ib-pcfg-b, in pcfg (by a line through 3)"


def test_models_that_learned_nothing_decide_nothing(config):
    def unlearned(cell):
        return 0.5 if cell["metric"] == "accuracy" else world(cell)

    found = claims(config, synthetic.results(config, "implicit-bias", unlearned, learned=False))
    assert set(found["verdict"]) == {"untested"}


def test_random_weights_that_do_as_well_leave_a_task_untested(config):
    def level(cell):
        random = (cell["null"] or "") == "untrained" and cell["metric"] == "accuracy" and "hmm" in cell["task"]
        return 0.9 if random else world(cell)

    found = claims(config, synthetic.results(config, "implicit-bias", level, noise=0))
    assert "above untrained" in found["why"]["larger-hmm-6"] and found["verdict"]["larger-pcfg-b"] == "supported"


def test_unequal_losses_leave_claims_untested(config):
    def level(cell):
        worse = cell["metric"] == "gap" and "adversarial" in cell["facts"]["objective.terms"]
        return 0.05 * FLOOR if worse else world(cell)

    found = claims(config, synthetic.results(config, "implicit-bias", level, noise=0))
    assert "losses not shown to be equal within 0.01 of the floor" in found["why"]["adversarial-worse-pcfg-b"]
    assert found["verdict"]["adversarial-trace"] == "untested"
    assert found["verdict"]["adversarial-loss"] == "contradicted" and found["verdict"]["larger-pcfg-b"] == "supported"
    strict = config_of(saturation=0.0005)
    found = claims(strict, synthetic.results(strict, "implicit-bias", world, noise=0))
    assert found["why"]["larger-pcfg-b"] == "no other recipe is at the loss of l"


def test_the_docs_say_which_presets_have_points_enough_for_correlations():
    """A correlation needs eight: what has fewer is untested, which is known before anything runs."""
    most = {}
    for preset in (None, "gpu", "paper", "evening"):
        view = View.of(load(layered([f"presets/{preset}.yaml"] if preset else [])), "implicit-bias")
        every = [len(sizes(view, kind)) for kind in ("pcfg", "hmm")]
        kept = [len(view.fact(sgd(view, kind)[0], "checkpoints")) for kind in ("pcfg", "hmm")]
        most[preset] = max(every), max(kept)
        assert (min(every) >= 8) == (min(kept) >= 8) == (preset == "evening")
        assert len(sizes(view, "causal")) < 8
    assert most == {None: (4, 3), "gpu": (4, 5), "paper": (6, 5), "evening": (10, 11)}
    text = " ".join(Path("docs/implicit-bias.md").read_text(encoding="utf-8").split())
    assert "ten sizes on the grammar and on the hidden Markov model, and eleven checkpoints of SGD" in text
    assert "at most four, four and six sizes of a kind and keep three, five and five checkpoints of SGD" in text


def test_eight_sizes_at_equal_loss_correlate(config):
    """A study with more sizes: the correlation is tested, over those at equal loss alone, with traces of one width."""
    widths = range(20, 40, 2)
    encoders = {f"w{w}": {"like": "ib-xs", "hidden": w} for w in widths}
    models = {f"ib-pcfg-w{w}": {"like": "ib-pcfg-xs", "encoder": f"w{w}"} for w in widths}
    names = ["ib-pcfg-xs", *models]
    entries = {"encoders": encoders, "models": models}
    config = config_of(
        entries, panels={"sizes": names}, probes=dict.fromkeys(("ib-loss", "ib-pcfg", "ib-trace"), "all")
    )

    def level(cell):
        width, metric = cell["facts"]["encoder.hidden"], cell["metric"]
        if cell["null"] or width == 16:
            return world(cell)
        known = {"gap": 0.001, "loss": FLOOR + 0.001, "accuracy": 0.3 + width / 100}
        known |= {"trace": 50 + width, "trace_embedded": 100 - width}
        return known.get(metric, world(cell))

    found = claims(config, synthetic.results(config, "implicit-bias", level, noise=0.0005))
    assert found["verdict"][["size-correlates-pcfg-b", "size-R2-pcfg-b"]].tolist() == ["supported"] * 2
    assert found["value"]["size-correlates-pcfg-b"] < -0.95
    assert found["verdict"][["size-trace-pcfg", "size-trace-plain-pcfg"]].tolist() == ["supported", "contradicted"]
    assert found["figure"][["size-trace-pcfg", "size-trace-plain-pcfg"]].tolist() == ["5 embedded", "5"]
    assert found["comparison"]["size-trace-pcfg"].startswith("ib-pcfg-w38 - ib-pcfg-w20: log trace embedded")
