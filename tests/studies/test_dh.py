"""The wing of `dh`: its recipes by their facts, its figures and tables from scores, its claims."""

import numpy as np
import pytest
from scipy import stats

import synthetic
from drawn import all_is_in_view, nothing_overlaps
from masklab.claims.verdict import test_claims
from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.report.cells import TIDY, markdown
from masklab.report.figure_files import write_figure
from masklab.scores.view import View
from masklab.studies import claims_of, find
from masklab.studies.dh import FIGURES, TABLES
from masklab.studies.dh.figures import mix_words
from masklab.studies.dh.select import DOMAINS, HALF, NONE, SOME, STARTS, WITH, panels, share_of, start_of, tasks

RAW = plain(layered())
OTHERS = [study for study in RAW["studies"] if study != "dh"]


def config_of(change=None):
    raw = overlay(RAW, {"extends": [], **(change or {})})
    raw["studies"] = {"dh": raw["studies"]["dh"]}
    return load(raw)


@pytest.fixture(scope="module")
def config():
    return config_of()


def paper(cell):
    """About the paper's curves: w/ DH carries over to B, nothing else does; pre-training helps on D2."""
    if cell["metric"] != "accuracy":
        return None
    start = start_of(cell["facts"])
    base = {WITH: 0.3, "w/o DH": 0.2, "CBOW": 0.15, "scratch": 0.1, "shuffled": 0.1}.get(start, 0.0)
    base -= 0.08 * (cell["split"] == "A-D2")
    lost = start != WITH and cell["split"].startswith("B") and cell["task"].endswith("-0")
    return 0.505 if lost or cell["null"] else 0.55 + base * cell["train_size"] / 800


@pytest.fixture(scope="module")
def results(config):
    return synthetic.results(config, "dh", paper)


def shown(config, results, section, name):
    item = find("dh", config.studies["dh"], section, name)
    if section == "figures":
        return item.draw(results)
    return item.function()(results, item.choose(results.view))


def claims(config, results):
    found = test_claims(claims_of("dh", config.studies["dh"], results.view), results)
    return found.set_index("claim")


def test_roles_come_from_facts(config):
    view = View.of(config, "dh")
    assert {spelling: set(own) for spelling, own in panels(view).items()} == {
        "single": set(STARTS), "shared": set(STARTS), "separate": set(STARTS),
    }  # fmt: skip
    assert tasks(view, "shared") == {
        NONE: "patterns-shared-0", SOME: "patterns-shared-10", HALF: "patterns-shared-50",
    }  # fmt: skip
    assert [share_of(mix) for mix in (0, 0.2, 0.5, 0.6)] == [NONE, SOME, HALF, HALF]


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "figure1"])
def test_a_figure_draws_its_data(name, config, results, tmp_path):
    figure, data = shown(config, results, "figures", name)
    assert np.isfinite(data[["value", "low", "high", "majority"]]).all(axis=None) and (data["replicates"] == 3).all()
    drawn = [line for axes in figure.axes for line in axes.get_lines() if not line.get_label().startswith("_")]
    curves = data.groupby(["spelling", "share", "start", "domain"])
    assert len(drawn) == curves.ngroups
    for line in drawn:
        assert np.isin(np.round(line.get_ydata(), 9), np.round(data["value"], 9)).all()
    write_figure(figure, data, tmp_path / name)
    first = (tmp_path / f"{name}.png").read_bytes()
    write_figure(*shown(config, results, "figures", name), tmp_path / name)
    assert first == (tmp_path / f"{name}.png").read_bytes()
    nothing_overlaps(figure)
    all_is_in_view(figure)


def test_values_and_intervals(config, results):
    _, data = shown(config, results, "figures", "figure3a")
    rows = results.scores
    rows = rows[(rows["recipe"] == "dh-single-with") & (rows["task"] == "patterns-single-0")]
    for domain in DOMAINS:
        for size in (200, 800):
            values = rows[(rows["split"] == domain) & (rows["train_size"] == size) & (rows["metric"] == "accuracy")]
            values = values.groupby("replicate")["value"].mean()
            low, high = stats.t.interval(0.95, 2, values.mean(), stats.sem(values))
            one = data[(data["start"] == WITH) & (data["domain"] == domain) & (data["train_size"] == size)].iloc[0]
            assert one[["value", "low", "high"]].tolist() == pytest.approx([values.mean(), low, high])


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_numbers_of_its_figure_and_the_nulls(name, config, results):
    table = shown(config, results, "tables", name)
    assert list(table.columns) == TIDY and not table.duplicated(["panel", "row", "label"]).any()
    text = markdown(table)
    assert "Mean ± half the width of the 95 % interval over 3 replicates" in text
    if name == "losses":
        assert set(table["row"]) == {"loss", "floor", "gap"}
        return
    assert {"null: bag-of-words", "null: majority"} < set(table["label"])
    _, data = shown(config, results, "figures", f"figure{name.removeprefix('table')}")
    values = data.loc[data["start"].isin(STARTS), "value"]  # of the bag of words a table has the best of all recipes
    assert set(np.round(values, 9)) <= set(np.round(table["value"], 9))


def test_the_paper_is_supported_by_scores_of_its_shape(config, results):
    found = claims(config, results)
    assert len(found) == 71 and found["headline"].sum() == 3
    for name in ("better-B-D1", "transfer-helped-B-D1", "transfer-B-D1", "no-transfer-without-B-D1", "faster-A-D1",
                 "semantic-with-none", "separate-transfer-B-D2"):  # fmt: skip
        assert found["verdict"][name] == "supported", (name, found["why"][name])
    assert found["value"]["better-A-D2"] == pytest.approx(0.1 * (1 + 0.25) / 2, abs=0.01)
    assert found["verdict"]["transfer-diminishes-B-D1"] == "contradicted"  # here it grows
    assert found["verdict"]["cbow-less-stable"] == "untested"  # two sizes have no roughness
    assert (found.loc[found["same_effect"] != found.index, "same_effect"].isin(found.index)).all()


def test_numbers_without_noise(config):
    found = claims(config, synthetic.results(config, "dh", paper, noise=0))
    assert found["value"]["faster-A-D1"] == pytest.approx(0.1 * 0.25)
    assert found["value"]["transfer-B-D1"] == pytest.approx(0.55 + 0.3 * 0.25 - 0.5)
    assert found["value"]["transfer-diminishes-B-D1"] == pytest.approx(0.3 * 0.75)
    assert found["value"]["semantic-cbow-slight-none"] == pytest.approx((0.25 - 0.15) * 0.625)
    assert found["value"]["multi-less-apparent"] == pytest.approx(0)


def test_models_that_learned_nothing_decide_nothing(config):
    chance = synthetic.results(config, "dh", lambda cell: 0.5 if cell["metric"] == "accuracy" else None, learned=False)
    assert set(claims(config, chance)["verdict"]) == {"untested"}


def test_a_bag_of_words_that_does_as_well_leaves_its_domain_untested(config):
    def level(cell):
        known = cell["null"] and cell["split"] == "A-D1" and cell["metric"] == "accuracy"
        return 0.95 if known else paper(cell)

    found = claims(config, synthetic.results(config, "dh", level))
    assert "above bag-of-words" in found["why"]["faster-A-D1"]
    assert found["verdict"]["transfer-helped-B-D1"] == "supported"


def test_names_are_free(config, results):
    """Recipes, panels and labels renamed, to other scripts too: the same numbers under other labels."""
    raw = overlay(RAW, {})
    study = raw["studies"]["dh"]
    study["panels"] = {
        {"single": "单词", "shared": "b", "separate": "c"}[title]: {f"{label}'": name for label, name in own.items()}
        for title, own in study["panels"].items()
    }
    renamed = load(raw | {"studies": {"dh": study}})
    other = synthetic.results(renamed, "dh", paper)
    columns = ["value", "low", "high", "verdict"]
    assert claims(renamed, other)[columns].equals(claims(config, results)[columns])
    for name in ("figure2", "figure7"):
        _, data = shown(config, results, "figures", name)
        _, again = shown(renamed, other, "figures", name)
        assert again.drop(columns="recipe").equals(data.drop(columns="recipe"))


def test_mixes_are_drawn_from_facts():
    changed = config_of({"tasks": {"patterns-single-10": {"mix": 0.25}}})
    _, data = shown(changed, synthetic.results(changed, "dh", paper), "figures", "figure3b")
    assert set(data["mix"]) == {0.25} and mix_words(0.25) == "75 % A-D1, 25 % B-D2"


def test_what_a_figure_lacks_is_said(config):
    fewer = {"panels": {"single": {"w/ DH": "dh-single-with"}}, "probes": {"dh-single": ["dh-single-with"]}}
    small = config_of()
    study = small.studies["dh"].model_copy(update=fewer)
    view = View.of(small.model_copy(update={"studies": {"dh": study}}), "dh")
    with pytest.raises(MaskLabError, match="needs recipes of Markov chains whose features are several tokens, shared"):
        find("dh", study, "figures", "figure5a").needs(view)
    with pytest.raises(MaskLabError, match="needs a recipe that is w/o DH, of features of single tokens"):
        find("dh", study, "figures", "figure1").corpora(view)
    names = {claim.name for claim in claims_of("dh", study, view)}
    assert "transfer-B-D1" in names and "better-B-D1" not in names
