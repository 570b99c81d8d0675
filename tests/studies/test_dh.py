"""The wing of `dh`: its recipes by their facts, its figures and tables from scores, its claims."""

from functools import partial

import numpy as np
import pyarrow.compute as pc
import pytest
from scipy import stats

import synthetic
from drawn import all_is_in_view, nothing_overlaps
from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.report.cells import TIDY, markdown
from masklab.report.figure_files import write_figure
from masklab.scores.results import Results
from masklab.scores.view import View
from masklab.studies import caption, claims_of, find
from masklab.studies.dh import FIGURES, TABLES
from masklab.studies.dh.figures import mix_words
from masklab.studies.dh.select import (
    DOMAINS,
    DOSE,
    HALF,
    NONE,
    SOME,
    STARTS,
    WITH,
    doses,
    panels,
    share_of,
    sizes,
    start_of,
    tasks,
)
from masklab.tasks import build

RAW = plain(layered(["presets/evening.yaml"]))
SIZES = RAW["probes"]["dh-single"]["sizes"]
SHARES = np.arange(1, len(SIZES) + 1) / len(SIZES)  # of what is gained at the largest size
MEAN, SMALL = SHARES.mean(), SIZES[: -(-len(SIZES) // 2)]
COUNT = RAW["studies"]["dh"]["replicates"] = 3
config_of = partial(synthetic.config_of, RAW, "dh")
shown, claims = partial(synthetic.shown, "dh"), partial(synthetic.claims, "dh")


def slope(values, at):
    return np.polyfit(np.log2(at), values, 1)[0]


@pytest.fixture(scope="module")
def config():
    return config_of()


def paper(cell):
    """About the paper's curves: w/ DH carries over to B, nothing else does; pre-training helps on D2."""
    if cell["metric"] != "accuracy":
        return None
    start, gained = start_of(cell["facts"]), dict(zip(SIZES, SHARES, strict=True)).get(cell["train_size"], 0)
    base = {WITH: 0.3, "w/o DH": 0.2, "CBOW": 0.15, "scratch": 0.1, "shuffled": 0.1}.get(start, 0.0)
    if start == DOSE:
        base = 0.2 + 0.1 * cell["facts"]["corpus.distributional"]
    if start == WITH:
        base *= cell["step"] / cell["last"]  # an early checkpoint has learned less
    base -= 0.08 * (cell["split"] == "A-D2")
    lost = start not in (WITH, DOSE) and cell["split"].startswith("B") and cell["task"].endswith("-0")
    return 0.505 if lost or cell["null"] else 0.55 + base * gained


@pytest.fixture(scope="module")
def results(config):
    return synthetic.results(config, "dh", paper)


def test_roles_come_from_facts(config):
    view = View.of(config, "dh")
    assert {spelling: set(own) for spelling, own in panels(view).items()} == {
        "single": set(STARTS), "shared": set(STARTS), "separate": set(STARTS),
    }  # fmt: skip
    assert tasks(view, "shared") == {
        NONE: "patterns-shared-0", SOME: "patterns-shared-10", HALF: "patterns-shared-50",
    }  # fmt: skip
    assert sizes(view, "separate") == tuple(SIZES)
    assert list(doses(view)) == [0, 0.25, 0.5, 0.75, 1] and doses(view)[0] == panels(view)["single"]["w/o DH"]
    assert [share_of(mix) for mix in (0, 0.2, 0.5, 0.6)] == [NONE, SOME, HALF, HALF]


@pytest.mark.parametrize("name", [name for name in FIGURES if name[6:7] in "234567"])
def test_a_figure_draws_its_data(name, config, results, tmp_path):
    figure, data = shown(config, results, "figures", name)
    assert (
        np.isfinite(data[["value", "low", "high", "majority"]]).all(axis=None) and (data["replicates"] == COUNT).all()
    )
    drawn = [line for axes in figure.axes for line in axes.get_lines() if not line.get_label().startswith("_")]
    curves = data.groupby(["spelling", "share", "start", "domain"])
    assert len(drawn) == curves.ngroups
    for line in drawn:
        assert np.isin(np.round(line.get_ydata(), 9), np.round(data["value"], 9)).all()
    for axes in figure.axes:  # a panel is a domain, and holds w/ DH, w/o DH and their nulls
        inside = [line.get_label() for line in axes.get_lines()]
        assert {WITH, "w/o DH", "scratch", "shuffled", "bag of synsets", "_majority"} < set(inside)
        assert inside.index("w/o DH") > inside.index("bag of synsets")  # on top of them
    write_figure(figure, data, tmp_path / name)
    first = (tmp_path / f"{name}.png").read_bytes()
    write_figure(*shown(config, results, "figures", name), tmp_path / name)
    assert first == (tmp_path / f"{name}.png").read_bytes()
    nothing_overlaps(figure)
    all_is_in_view(figure)


def lacking(results, dropped):
    """The same scores without the third replicate of the recipes that are to be `dropped`, by their starting point."""
    starts = results.scores["recipe"].map({name: start_of(facts) for name, facts in results.view.recipes.items()})
    kept = results.scores[~(dropped(starts) & (results.scores["replicate"] == COUNT))]
    return Results(results.view, kept, models=results.models)


@pytest.mark.parametrize("name", ["figure2", "figure7", "figure_dose"])
def test_curves_of_a_row_are_over_the_replicates_that_all_of_them_have(name, config, results):
    """The third is of another language, of another majority too, and w/ DH alone has it."""
    scores = results.scores.copy()
    scores.loc[(scores["metric"] == "majority") & (scores["replicate"] == COUNT), "value"] = 0.9
    fewer = lacking(Results(results.view, scores), lambda starts: starts != WITH)
    _, data = shown(config, fewer, "figures", name)
    assert set(data["replicates"]) == {COUNT - 1} and np.allclose(data["majority"], 0.5)
    assert "dh-single-with" in set(data["recipe"]) or name == "figure7"


def test_accuracies_and_gaps_of_checkpoints_are_over_the_same_replicates(config, results):
    scores = results.scores.copy()
    gap = scores["metric"] == "gap"
    scores.loc[gap & (scores["replicate"] == COUNT), "value"] += 1
    fewer = Results(results.view, scores[gap | (scores["replicate"] < COUNT)], models=results.models)
    _, data = shown(config, fewer, "figures", "figure_course")
    _, known = shown(config, results, "figures", "figure_course")
    assert set(data["replicates"]) == {COUNT - 1}
    assert np.allclose(data["gap"], known["gap"], atol=0.05)


def test_values_and_intervals(config, results):
    _, data = shown(config, results, "figures", "figure3a")
    rows = results.scores
    rows = rows[(rows["recipe"] == "dh-single-with") & (rows["task"] == "patterns-single-0")]
    rows = rows[rows["probe"] == "dh-single"]
    rows = rows[rows["step"] == rows["step"].max()]  # earlier ones are fine-tuned too, at one size
    for domain in DOMAINS:
        for size in (SIZES[0], SIZES[-1]):
            values = rows[(rows["split"] == domain) & (rows["train_size"] == size) & (rows["metric"] == "accuracy")]
            values = values.groupby("replicate")["value"].mean()
            low, high = stats.t.interval(0.95, COUNT - 1, values.mean(), stats.sem(values))
            one = data[(data["start"] == WITH) & (data["domain"] == domain) & (data["train_size"] == size)].iloc[0]
            assert one[["value", "low", "high"]].tolist() == pytest.approx([values.mean(), low, high])


@pytest.mark.parametrize("name", [name for name in TABLES if name not in ("replaced", "phrases")])
def test_a_table_has_the_numbers_of_its_figure_and_the_nulls(name, config, results):
    table = shown(config, results, "tables", name)
    assert list(table.columns) == TIDY and not table.duplicated(["panel", "row", "label"]).any()
    text = markdown(table)
    assert f"Mean ± half the width of the 95 % interval over {COUNT} replicates" in text
    if name == "stopping":
        assert set(table["panel"]) == {"single", "shared", "separate"} and not table["label"].str.contains("null").any()
        return
    assert {"null: bag-of-words", "null: bag-of-units", "null: majority"} < set(table["label"])
    assert table["row"].str.endswith(", MCC").sum() * 2 == len(table)
    _, data = shown(config, results, "figures", f"figure{name.removeprefix('table')}")
    values = data.loc[data["start"].isin(STARTS), "value"]  # of the bag of words a table has the best of all recipes
    assert set(np.round(values, 9)) <= set(np.round(table["value"], 9))


def test_the_paper_is_supported_by_scores_of_its_shape(config, results):
    found = claims(config, results)
    assert len(found) > 80 and found["headline"].sum() == 3
    for name in ("better-B-D1", "transfer-helped-B-D1", "transfer-B-D1", "no-transfer-without-B-D1", "faster-A-D1",
                 "semantic-with-none", "separate-transfer-B-D2", "sooner-A-D1", "multi-separate-A-D1", "dose-none-B-D1",
                 "course-half-B-D1"):  # fmt: skip
        assert found["verdict"][name] == "supported", (name, found["why"][name])
    assert found["value"]["better-A-D2"] == pytest.approx(0.1 * MEAN, abs=0.01)
    assert found["verdict"]["transfer-diminishes-B-D1"] == "contradicted"  # here it grows
    assert (found["same_effect"] == found.index).all()


def test_numbers_without_noise(config):
    found = claims(config, synthetic.results(config, "dh", paper, noise=0))["value"]
    small = SHARES[: len(SMALL)]
    assert found["faster-A-D1"] == pytest.approx(slope(0.1 * small, SMALL))
    assert found["transfer-B-D1"] == pytest.approx(0.55 + 0.3 * MEAN - 0.505)  # shuffled and scratch: .505
    assert found["transfer-helped-B-D1"] == pytest.approx(0.55 + 0.3 * MEAN - 0.505)
    assert found["transfer-diminishes-B-D1"] == pytest.approx(slope(0.3 * SHARES, SIZES))
    assert found["transfer-some-B-D1"] == pytest.approx(0.1 * MEAN - 0.05)
    assert found["semantic-cbow-slight-none"] == pytest.approx((0.25 - 0.15) * MEAN)
    assert found["multi-less-apparent-A-D1"] == pytest.approx(0)
    assert found["multi-separate-A-D1"] == pytest.approx(0.1 * SHARES[0])  # at its least
    assert found["shared-transfer-better"] == pytest.approx(0)
    assert found["dose-half-B-D1"] == pytest.approx(0.1 * MEAN)
    assert found["dose-quarter-half-B-D1"] == pytest.approx((0.025 - 0.05) * MEAN)
    reached = [np.interp(0.75, 0.55 + base * SHARES, np.log2(SIZES)) for base in (0.3, 0.2)]
    assert found["sooner-A-D1"] == pytest.approx(reached[0] - reached[1])


def test_models_that_learned_nothing_decide_nothing(config):
    chance = synthetic.results(config, "dh", lambda cell: 0.5 if cell["metric"] == "accuracy" else None, learned=False)
    found = claims(config, chance)
    assert set(found["verdict"]) == {"untested"}, found[found["verdict"] != "untested"]


def test_what_is_not_there_cannot_diminish(config):
    """Scores of the paper's shape, but w/ DH carries nothing over to B when trained on A-D1 alone."""

    def stays(cell):
        lost = cell["split"].startswith("B") and cell["task"].endswith("-0") and cell["metric"] == "accuracy"
        return 0.505 if lost and start_of(cell["facts"]) in (WITH, DOSE) else paper(cell)

    found = claims(config, synthetic.results(config, "dh", stays))
    for name in ("transfer-diminishes-B-D1", "separate-diminishes-B-D2", "cbow-transfer-remains", "shared-some-less",
                 "dose-quarter-none-B-D1"):  # fmt: skip
        assert "what it presupposes was not shown to be above 0" in found["why"][name], (name, found["why"][name])
    assert found["verdict"]["transfer-some-remains-B-D1"] == "supported"  # with examples of B-D2 there is


@pytest.mark.parametrize(("uneven", "verdict"), [(["CBOW"], "supported"), (["CBOW", "scratch"], "untested")])
def test_a_curve_is_less_stable_where_scratch_is_not(uneven, verdict, config):
    """Noise alone takes every curve away from a straight course."""

    def bent(cell):
        known = paper(cell)
        middle = cell["train_size"] == SIZES[1] and start_of(cell["facts"]) in uneven
        return known if known is None or not middle else known - 0.1

    assert claims(config, synthetic.results(config, "dh", bent))["verdict"]["cbow-less-stable"] == verdict


def test_a_bag_of_words_that_does_as_well_leaves_its_domain_untested(config):
    def level(cell):
        known = cell["null"] and cell["split"] == "A-D1" and cell["metric"] == "accuracy"
        return 0.95 if known else paper(cell)

    found = claims(config, synthetic.results(config, "dh", level))
    assert "above bag-of-" in found["why"]["faster-A-D1"]
    assert found["verdict"]["transfer-helped-B-D1"] == "supported"


def test_names_are_free(config, results):
    """Recipes, panels and labels renamed, to other scripts too: the same numbers under other labels."""
    raw = overlay(RAW, {})
    study = raw["studies"]["dh"]
    study["panels"] = {
        {"single": "单词", "mixed forms": "d", "shared": "b", "separate": "c"}[title]: {
            f"{label}'": name for label, name in own.items()
        }
        for title, own in study["panels"].items()
    }
    renamed = load(raw | {"studies": {"dh": study}})
    other = synthetic.results(renamed, "dh", paper)
    columns = ["value", "low", "high", "verdict"]
    assert claims(renamed, other)[columns].equals(claims(config, results)[columns])
    for name in ("figure2", "figure7", "figure_course"):
        _, data = shown(config, results, "figures", name)
        _, again = shown(renamed, other, "figures", name)
        assert again.drop(columns="recipe").equals(data.drop(columns="recipe"))


def test_mixes_are_drawn_from_facts():
    changed = config_of({"tasks": {"patterns-single-10": {"mix": 0.25}}})
    _, data = shown(changed, synthetic.results(changed, "dh", paper), "figures", "figure3b")
    assert set(data["mix"]) == {0.25} and mix_words(0.25) == "75 % A-D1, 25 % B-D2"
    said = caption("dh", changed.studies["dh"], "figures", "figure3b")
    assert "fewer than half of them from B-D2" in said and "tenth" not in said
    said = [each.text for each in claims_of("dh", changed.studies["dh"], View.of(changed, "dh")) if "10%" in each.text]
    single = [text for text in said if "(here 25%)" in text]
    assert len(single) == 2 and all("much" in text for text in single) and len(said) > 2


@pytest.mark.parametrize("first", [True, False])
def test_of_several_mixes_that_of_the_paper_counts(config, first):
    listed = RAW["probes"]["dh-single"]["tasks"]
    more = ["more-single-30", *listed] if first else [*listed, "more-single-30"]
    task = {"more-single-30": {"like": "patterns-single-10", "mix": 0.3}}
    several = config_of({"tasks": task, "probes": {"dh-single": {"tasks": more}}})
    assert tasks(View.of(several, "dh"), "single") == tasks(View.of(config, "dh"), "single")


def test_captions_of_section_6_say_what_is_compared(config):
    """Columns of a table are about features that each classifier chose, and so no replicate's n is that of another."""
    study = config.studies["dh"]
    for section, name in (("figures", "figure_replaced"), ("tables", "replaced")):
        said = caption("dh", study, section, name)
        unlike = "about unlike features; where they are drawn, they are, in a replicate, the same for all."
        assert unlike in said and "half" not in said
    assert "n: features, of the replicate that has the fewest" in said


def test_what_a_figure_lacks_is_said():
    fewer = {"panels": {"single": {"w/ DH": "dh-single-with"}}, "probes": {"dh-single": ["dh-single-with"]}}
    small = config_of()
    study = small.studies["dh"].model_copy(update=fewer)
    view = View.of(small.model_copy(update={"studies": {"dh": study}}), "dh")
    with pytest.raises(MaskLabError, match="needs recipes of Markov chains whose features are several tokens, shared"):
        find("dh", study, "figures", "figure5a").needs(view)
    with pytest.raises(MaskLabError, match="needs a recipe that is w/o DH, of features of single tokens"):
        find("dh", study, "figures", "figure1").corpora(view)
    names = {claim.name for claim in claims_of("dh", study, view)}
    assert "transfer-diminishes-B-D1" in names and "better-B-D1" not in names


def test_probes_of_all_checkpoints_count_as_those_of_the_last_do(config):
    """`steps: all` in place of `last`: the same claims; in place of a list: the figure of the course."""
    every = config_of({"probes": {f"dh-{spelling}": {"steps": "all"} for spelling in ("single", "shared", "separate")}})
    names = [[claim.name for claim in claims_of("dh", c.studies["dh"], View.of(c, "dh"))] for c in (config, every)]
    assert names[0] == names[1] and "multi-separate-A-D1" in names[1]
    other = config_of({"probes": {"dh-course": {"steps": "all", "sizes": [50]}}})
    assert sizes(View.of(other, "dh"), "single") == tuple(SIZES)
    _, data = shown(other, synthetic.results(other, "dh", paper), "figures", "figure_course")
    assert set(data["step"]) == set(other.models["dh-single-with"].checkpoints) and set(data["train_size"]) == {50}


def test_what_the_paper_does_not_draw(config, results):
    """Doses by their share, checkpoints by their gap: what is drawn is what was measured."""
    figure, data = shown(config, results, "figures", "figure_dose")
    assert set(data["mixed"].dropna()) == {0, 0.25, 0.5, 0.75, 1} and set(data["share"]) == {NONE, HALF}
    for axes in figure.axes:  # beside models that were not pre-trained
        assert [line.get_label() for line in axes.get_lines()].count("_scratch") == len(SIZES)
    assert "mean of scratch, of the same shade" in {text.get_text() for text in figure.legends[0].get_texts()}
    assert set(data.loc[data["mixed"].isna(), "recipe"]) == {"dh-single-scratch"}
    assert len(figure.axes) == 2 * len(DOMAINS) and set(data["train_size"]) == set(SIZES)
    one = data[(data["share"] == HALF) & (data["domain"] == "B-D1") & (data["train_size"] == SIZES[-1])].dropna(
        subset="mixed"
    )
    assert one.sort_values("mixed")["value"].tolist() == pytest.approx([0.75, 0.775, 0.8, 0.825, 0.85], abs=0.01)
    nothing_overlaps(figure)
    all_is_in_view(figure)
    figure, data = shown(config, results, "figures", "figure_course")
    steps = config.models["dh-single-with"].checkpoints
    assert set(data["step"]) == set(steps) and set(data["domain"]) == set(DOMAINS)
    gaps = data.drop_duplicates("step").set_index("step")["gap"]
    assert gaps[steps[0]] > gaps[steps[-1]] and figure.axes[0].xaxis_inverted()
    nothing_overlaps(figure)
    all_is_in_view(figure)


def test_the_course_says_the_size_of_each_mix_and_draws_a_gap_below_0():
    """A gap is an estimate: that of a model which has learned all may lie below 0, where a log axis hides it."""
    probes = {
        "dh-course": {"tasks": ["patterns-single-0"], "sizes": [SIZES[-1]]},
        "dh-course-half": {"like": "dh-course", "tasks": ["patterns-single-50"], "sizes": [SIZES[0]]},
    }
    study = {"probes": RAW["studies"]["dh"]["probes"] | {"dh-course-half": ["dh-single-with"]}}
    own = config_of({"probes": probes}, **study)

    def learned(cell):
        return -0.001 if cell["metric"] == "gap" and cell["step"] == cell["last"] else paper(cell)

    figure, data = shown(own, synthetic.results(own, "dh", learned, noise=0), "figures", "figure_course")
    assert {share: set(part["train_size"]) for share, part in data.groupby("share")} == {
        NONE: {SIZES[-1]}, HALF: {SIZES[0]},
    }  # fmt: skip
    note = " ".join(figure.legends[0].get_title().get_text().split())
    assert f"{SIZES[-1]:,} and {SIZES[0]:,} examples" in note and (data["gap"] < 0).any()
    all_is_in_view(figure)


def test_the_default_run_compares_on_b_d1():
    """Of the paper's claims those on Figure 3a are asked, and scores of the paper's shape decide those on B-D1."""
    raw = plain(layered())
    raw["studies"] = {"dh": raw["studies"]["dh"]}
    default, at = load(raw), dict(zip(raw["probes"]["dh-single"]["sizes"], (0.7, 1.0), strict=True))

    def level(cell):
        if cell["metric"] != "accuracy":
            return None
        carried = cell["split"].startswith("A") or start_of(cell["facts"]) == WITH
        return 0.505 if cell["null"] or not carried else 0.55 + 0.3 * at[cell["train_size"]]

    found = claims(default, synthetic.results(default, "dh", level))
    assert set(found["figure"]) == {"3a"} and not [name for name in found.index if "cbow" in name]
    for name in ("transfer-helped-B-D1", "transfer-B-D1", "no-transfer-without-B-D1"):
        assert found["verdict"][name] == "supported", (name, found["why"][name])


@pytest.mark.parametrize("preset", [[], ["presets/evening.yaml"]])
def test_few_test_rows_are_training_rows(preset):
    """What a model knows of walks by heart is not what is measured."""
    config, shares = load(layered(preset)), []
    task = config.tasks["patterns-single-0"]
    for seed in (1, 2, 3):
        splits, _ = build(task.model_copy(update={"chains": config.chains[task.chains]}), "patterns", seed)
        known = {tuple(row) for row in splits["train"]["symbols"].to_pylist()}
        test = splits["test"].filter(pc.field("domain") == "A-D1")["symbols"].to_pylist()
        shares.append(np.mean([tuple(row) in known for row in test]))
    assert np.mean(shares) < 0.15, shares


def test_doses_at_as_many_sizes_as_the_paper_has():
    """Four of ten are drawn, the first and the last among them."""
    ten = [25 * size for size in range(1, 11)]
    changed = config_of({"probes": {key: {"sizes": ten} for key in ("dh-single", "dh-doses")}})
    figure, data = shown(changed, synthetic.results(changed, "dh", paper), "figures", "figure_dose")
    assert sorted(set(data["train_size"])) == [25, 100, 175, 250]
    nothing_overlaps(figure)
    all_is_in_view(figure)


def test_a_quarter_is_what_a_quarter_of_the_forms_makes():
    """Of the dose of .25, whichever others there are; without it nothing is said."""
    finer, other = (
        config_of({"corpora": {f"dh-single-{percent}": {"distributional": share}}})
        for percent, share in ((50, 0.1), (25, 0.4))
    )
    found = claims(finer, synthetic.results(finer, "dh", paper, noise=0))["value"]
    assert found["dose-quarter-half-B-D1"] == pytest.approx((0.025 - 0.05) * MEAN)
    names = {claim.name for claim in claims_of("dh", other.studies["dh"], View.of(other, "dh"))}
    assert "dose-half-B-D1" in names and not any("quarter" in name for name in names)
