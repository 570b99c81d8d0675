"""The wing of `mae`: its recipes by their facts, figures and tables from scores of known values, its claims."""

import copy
import json
import re
from functools import partial

import numpy as np
import pytest
from scipy import stats

import synthetic
from drawn import all_is_in_view, nothing_overlaps
from masklab.config import layered, load, overlay, plain
from masklab.errors import MaskLabError
from masklab.report.cells import TIDY, markdown
from masklab.scores.results import Results
from masklab.scores.schema import rows_to_frame
from masklab.scores.view import View
from masklab.studies import caption, claims_of, find
from masklab.studies.mae import FIGURES, TABLES
from masklab.studies.mae.select import COMPARED, GROUPS, MAE, MLM, PART, RESET, Panel, role_of

DEEP = (
    "mae-decoder",
    "mae-no-relative",
    "mae-self+cross",
    "mae-causal+cross",
    "mae-cross",
    "mae-narrower",
    "mae-wider",
)
DEEP = {name: {"layers": 4, "decoder": {"layers": 2}} for name in DEEP}
DEEP |= {name: {"layers": 4} for name in ("mae-plain", "mae-fewer-layers", "mae-more-layers")}
RAW = overlay(plain(layered()), {"extends": [], "encoders": DEEP, "studies": {"mae": {"replicates": 3}}})
ABLATIONS = ("delta-0.25", "delta-0.5", "delta-0.75", "kept", "reset", "random", "misaligned", "no-relative",
             "self+cross", "causal+cross", "cross", "fewer-layers", "more-layers", "narrower", "wider")  # fmt: skip
LABELS = {"MLM": "mae-mlm", "MAE-LM": "mae-mae", "80/10/10": "mae-80-10-10"}
LABELS |= {name: f"mae-{name}" for name in ABLATIONS}
PARTS = ("of it [MASK]s themselves", "of it the tokens beside them")
# What MAE-LM loses by other attention in the decoder, by a third layer, by a wider decoder.
WORSE = {"attention": 0.02, "layers": 0.01, "wider": 0.01}
shown, claims = partial(synthetic.shown, "mae"), partial(synthetic.claims, "mae")
law_shown, law_claims = partial(synthetic.shown, "mae-law"), partial(synthetic.claims, "mae-law")


def config_of(change=None, panels=None):
    """The default config with this study alone, changed, and with these panels."""
    raw = overlay(copy.deepcopy(RAW), change or {})
    study = raw["studies"]["mae"] | ({"panels": panels} if panels else {})
    if panels == {"English": LABELS}:
        study["probes"] = study["probes"] | {"mae-rank": ["mae-mlm", "mae-mae", "mae-80-10-10"]}
    return load(raw | {"studies": {"mae": study}})


@pytest.fixture(scope="module")
def config():
    """A study of all ablations."""
    return config_of(panels={"English": LABELS})


def score(facts):
    """MAE-LM is .03 above MLM, and loses it as [MASK]s stay in the encoder; resetting them brings .02 of it back."""
    if facts["objective.terms"] != ["mae"] or facts["masking.random"] == 1:
        return 0.8
    delta, reset = facts["objective.mae.delta"], facts["objective.mae.reset"]
    lost = WORSE["attention"] * (facts["encoder.decoder.attention"] != "self")
    lost += WORSE["layers"] * (facts["encoder.decoder.layers"] > 2)
    lost += WORSE["wider"] * ((facts["encoder.decoder.hidden"] or 0) > facts["encoder.hidden"])
    return 0.83 - (0.01 if reset else 0.03 * delta) - lost


def rank(cell):
    """[MASK]s add to the rank of MLM in deep layers; MAE-LM's of real tokens is higher."""
    layer, masked = cell["layer"], cell["split"] == "masked"
    by_layer = {
        "mask-positions": 2 + 6 * layer,
        "real-positions": 30 + 1.2 * layer,
        "with-words": 34,
        "beside-words": 31,
    }
    grows = 3 if role_of(cell["facts"]) == MAE else 1 + layer * masked
    return by_layer.get(cell["split"], 30 + grows * layer) - 2 * cell["metric"].endswith("centred")


def outside(cell):
    """Real tokens of another sample have .01 outside their subspace, random words .015, [MASK]s more by layer."""
    own = {"mask-positions": 0.01 * (cell["layer"] + 2), "random-words": 0.015}
    return own.get(cell["split"], 0.01)


def world(cell):
    """About the paper's; pre-training is half way at its first checkpoint, where scores are those of the last."""
    metric, facts = cell["metric"], cell["facts"]
    if metric in ("seconds", "flops", "tokens"):
        return 100 * cell["step"] / cell["last"] * (1.1 if role_of(facts) == MAE and metric != "tokens" else 1)
    if cell["null"] or metric.startswith("majority"):
        return None
    if metric.startswith("rank"):
        return rank(cell)
    if metric.startswith("outside"):
        return outside(cell)
    return score(facts) + 0.05 * (metric == "f1") if cell["kind"] == "finetune" else None


@pytest.fixture(scope="module")
def results(config):
    return synthetic.results(config, "mae", world, noise=0.0005)


@pytest.fixture(scope="module")
def exact(config):
    return synthetic.results(config, "mae", world, noise=0)


# --- what is what -------------------------------------------------------------------------


def test_roles_come_from_facts(config):
    panel = Panel(View.of(config, "mae"), "English")
    assert set(COMPARED) | {role for group in GROUPS.values() for role in group} | {PART} == set(panel.roles)
    assert panel[RESET] == "mae-reset" and panel["cross"] == "mae-cross" and panel["wider"] == "mae-wider"
    assert panel.deltas == {
        0: "mae-mae", 0.25: "mae-delta-0.25", 0.5: "mae-delta-0.5", 0.75: "mae-delta-0.75", 1: "mae-kept",
    }  # fmt: skip


def test_delta_is_drawn_from_facts():
    changed = config_of({"objectives": {"mae-delta-0.5": {"mae": {"delta": 0.9}}}}, panels={"English": LABELS})
    _, data = shown(changed, synthetic.results(changed, "mae", world, noise=0), "figures", "figure4")
    own = data[data["recipe"] == "mae-delta-0.5"]
    assert set(own["delta"]) == {0.9} and own["value"].to_numpy() == pytest.approx(0.83 - 0.03 * 0.9)


def test_names_are_free():
    """The panel, its labels and recipes renamed, to another script: the same numbers under other labels."""
    text = json.dumps(RAW, ensure_ascii=False)
    for name, other in (("mae-mlm", "掩码"), ("mae-mae", "自编码"), ("mae-80-10-10", "三种")):
        text = text.replace(f'"{name}"', f'"{other}"')
    raw = json.loads(text)
    study = raw["studies"]["mae"]
    study["panels"] = {
        "英语": {f"{label} 模型": name for own in study["panels"].values() for label, name in own.items()}
    }
    config, renamed = config_of(), load(raw | {"studies": {"mae": study}})
    first, second = (synthetic.results(each, "mae", world) for each in (config, renamed))
    columns = ["value", "low", "high", "verdict"]
    assert claims(renamed, second)[columns].equals(claims(config, first)[columns])
    free = ["panel", "label", "recipe"]
    for section, drawn in (("figures", ("figure1a", "figure3", "figure_outside")), ("tables", ("table1", "table3"))):
        for name in drawn:
            one, other = (shown(c, r, section, name) for c, r in ((config, first), (renamed, second)))
            one, other = (each[1] if section == "figures" else each for each in (one, other))
            keys = [key for key in free if key in one and name != "table3"] or ["label", "recipe"]
            assert other.drop(columns=keys).equals(one.drop(columns=keys))
            assert "MLM 模型" in set(other["label"]) and "掩码" in set(other["recipe"])


def test_what_a_study_lacks_is_said(config):
    study = config.studies["mae"]

    def left(*labels):
        fewer = study.model_copy(update={"panels": {"English": {label: LABELS[label] for label in labels}}})
        return View.of(config.model_copy(update={"studies": {"mae": fewer}}), "mae")

    alone = left("MLM")
    for section, name, lacking in (
        ("figures", "figure3", "panel 'English' has 1 of the recipes MLM, MAE-LM; 2 needed"),
        ("figures", "figure4", "panel 'English' has no two recipes that differ in how many"),
        ("tables", "table2", "panel 'English' has no two recipes to compare in Table 2"),
    ):
        with pytest.raises(MaskLabError, match=lacking) as caught:
            find("mae", study, section, name).needs(alone)
        assert "\n" not in str(caught.value)
    names = {claim.name for claim in claims_of("mae", study, alone)}
    assert {name.removesuffix("-centred").removesuffix("-entropy") for name in names} == {
        "deficient-mlm", "deficient-mlm-learned", "deficient-last", "deeper", "lemma", "lemma-twice", "lemma-learned",
        "masks-own", "masks-own-learned", "masks-own-most", "masks-own-words", "theorem", "theorem-beside",
        "theorem-words", "theorem-learned",
    }  # fmt: skip
    names = {claim.name for claim in claims_of("mae", study, left("MLM", "MAE-LM", "kept"))}
    assert "delta-ends-answers" in names and not {"delta-answers", "reset-helps-answers"} & names


# --- figures and tables -------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "figure_law"])
def test_a_figure_draws_its_data(name, config, results):
    figure, data = shown(config, results, "figures", name)
    assert np.isfinite(data[["value", "low", "high"]]).all(axis=None) and (data["replicates"] == 3).all()
    values = np.round(data["value"], 9)
    for axes in figure.axes:
        curves = [line for line in axes.get_lines() if len(line.get_ydata()) > 2 or line.get_marker() in ("s", "o")]
        assert curves and axes.get_xlabel()
        for line in curves:
            assert np.isin(np.round(line.get_ydata(), 9), values).all()
    nothing_overlaps(figure)
    all_is_in_view(figure)


def test_the_caption_says_whose_nulls_stand_beside_masks_alone(config, results):
    _, data = shown(config, results, "figures", "figure1b")
    first, null = LABELS["MLM"], data[data["null"] != ""]
    assert set(null["label"]) == {"MLM"} and set(null["recipe"]) <= set(results.view.nulls[first].values())
    assert "Nulls are those of the first way" in caption("mae", config.studies["mae"], "figures", "figure1b")


def test_curves_have_the_interval_of_their_replicates(config, results):
    _, data = shown(config, results, "figures", "figure1a_centred")
    curve = data[(data["recipe"] == "mae-mlm") & (data["split"] == "masked")].set_index("layer")
    rows = results.scores.query("recipe == 'mae-mlm' and split == 'masked' and metric == 'rank_centred'")
    for layer in range(5):
        values = rows[rows["layer"] == layer]["value"]
        assert values.std() < 0.2  # ranks are whole numbers: three that agree are rounded alike
        low, high = stats.norm.interval(0.95, values.mean(), np.sqrt(1 / 12))
        found = curve.loc[layer, ["value", "low", "high"]].tolist()
        assert found == pytest.approx([values.mean(), low, high], abs=0.05)
    greys = data[data["null"] == "untrained"]
    assert set(greys["recipe"]) == {f"untrained.{name}" for name in ("mae-mlm", "mae-mae", "mae-80-10-10")}


def test_figures_name_the_shares_of_their_own_probe():
    """Of the norm that a subspace holds, and of the variance that a rank counts."""
    config = config_of({"probes": {"mae-rank": {"subspace": 0.95, "threshold": 0.8}}})
    results = synthetic.results(config, "mae", world)
    figure, _ = shown(config, results, "figures", "figure_outside")
    said = figure.legends[0].get_title().get_text().replace("\n", " ")
    assert said.startswith("the subspace holds .95 of the squared norm of real tokens; mean with its 95 % interval")
    assert "n = 100 tokens in the places of [MASK]s of the replicate that has the fewest" in said
    figure, _ = shown(config, results, "figures", "figure1a")
    assert figure.axes[0].get_ylabel() == ".8-effective rank"
    figure, _ = shown(config, results, "figures", "figure1b")
    assert ".8-effective rank, centred" in figure.axes[1].get_title(loc="left")


def test_figures_in_numbers(config, exact):
    _, data = shown(config, exact, "figures", "figure3")
    own = data[data["recipe"] == "mae-mae"].set_index("metric")
    assert own.loc["seconds", "cost"].tolist() == pytest.approx([55, 110])
    assert own.loc["tokens", "cost"].tolist() == pytest.approx([50, 100])
    assert own["value"].to_numpy() == pytest.approx(0.83) and own["last"].to_numpy() == pytest.approx(0.8)
    assert own["null"].to_numpy() == pytest.approx(0.5)
    _, data = shown(config, exact, "figures", "figure4")
    curve = data[data["tasks"] == "answers"].dropna(subset=["delta"])
    assert curve["delta"].tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert curve["value"].to_numpy() == pytest.approx(0.83 - 0.03 * curve["delta"])
    assert data[data["recipe"] == "mae-mlm"]["value"].tolist() == pytest.approx([0.8, 0.8])


SHARE = "gap, share of the floor"


def test_losses_stand_beside_their_floors():
    """A table of any study: of the pre-trained recipes that a probe of losses measures."""
    change = {"probes": {"losses": {"kind": "loss"}}, "models": {"mae-mae": {"keep_decoder": True}}}
    config = config_of(change | {"studies": {"mae": {"probes": {"losses": list(LABELS.values())[:2]}}}})
    table = shown(config, synthetic.results(config, "mae", world, noise=0), "tables", "losses")
    cells = table.set_index(["panel", "row", "label"])["value"]
    assert set(table["row"]) == {"loss", "floor", "gap", SHARE} and cells["English", "floor", "MLM"] == 2
    assert cells["English", SHARE, "MLM"] == pytest.approx(cells["English", "gap", "MLM"] / 2)
    assert {label for label in table["label"] if not label.startswith("null")} == {"MLM", "MAE-LM"}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name, exact, config):
    table = shown(config, exact, "tables", name)
    assert list(table.columns) == TIDY and not table.duplicated(["panel", "row", "label"]).any()
    assert np.isfinite(table["value"]).all() and "over 3 replicates" in markdown(table)
    cells = table.set_index(["panel", "row", "label"])["value"]
    if name == "table1":
        assert cells["English", "Average", "MAE-LM"] == pytest.approx(0.83)
        assert cells["English", "answers (exact match)", "MLM"] == pytest.approx(0.8)
        assert cells["English", "answers (F1)", "MLM"] == pytest.approx(0.85)
        # MCC and Spearman 0, accuracy .5
        assert cells["English", "Average", "null: majority"] == pytest.approx(0.5 / 3)
    if name == "table2":
        for label, value in (("kept", 0.8), ("reset", 0.82), ("random", 0.8)):
            assert cells["Handling [MASK]", "Average", label] == pytest.approx(value)
        assert cells["Decoder size", "Answer extraction", "more-layers"] == pytest.approx(0.82)
        assert list(table["panel"].unique()) == list(GROUPS)
    if name == "ranks":
        parts = [cells["Effective rank", row, "MLM"] for row in ("the gap", *PARTS)]
        assert parts == pytest.approx([7.5, 7.0, 0.5])
        assert cells["Effective rank", "random words in the places of [MASK]s", "MLM"] == pytest.approx(3)
        assert cells["Effective rank", f"{PARTS[0]} at initial weights", "MLM"] == pytest.approx(0)
        assert cells["Effective rank, entropy, centred", "the gap at initial weights", "MLM"] == pytest.approx(0)
        heading = "Share outside the subspace of real tokens"
        assert cells[heading, "mask positions", "MLM"] == pytest.approx(0.045)
        assert cells[heading, "mask positions at initial weights", "MLM"] == pytest.approx(0.01)
        return
    if name == "table3":
        assert cells["Effective rank", "Pre-trained", "MAE-LM"] == 30 + 3 * 4
        assert cells["Effective rank, centred", "Pre-trained", "MLM"] == 30 + 4 - 2
    assert any(label.startswith("null: ") for label in table["label"])


@pytest.mark.parametrize(("name", "counted"), [
    ("table1", "test items"), *((name, "tokens (after fine-tuning: test items)") for name in ("table3", "ranks")),
])  # fmt: skip
def test_a_table_says_what_n_counts(name, counted, config, exact):
    assert f" n: {counted} behind a value of one replicate" in markdown(shown(config, exact, "tables", name))


def test_a_row_of_ranks_is_over_the_replicates_that_all_its_cells_have(config, exact):
    """The third has a law under which [MASK]s add 3 dimensions more, and MLM alone has it."""
    scores = exact.scores.copy()
    third, mlm = scores["replicate"] == 3, scores["recipe"] == "mae-mlm"
    scores.loc[third & scores["metric"].str.startswith("rank") & (scores["split"] == "masked"), "value"] += 3
    table = shown(config, Results(exact.view, scores[~third | mlm], models=exact.models), "tables", "ranks")
    assert set(table["replicates"]) == {2}
    cells = table.set_index(["panel", "row", "label"])["value"]
    assert cells["Effective rank", "the gap", "MLM"] == pytest.approx(7.5)


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "figure_law"])
def test_curves_of_a_panel_are_over_the_replicates_that_all_of_them_have(name, config, exact):
    """The third is of another language, and MLM alone has it."""
    scores = exact.scores
    fewer = scores[(scores["replicate"] < 3) | (scores["recipe"] == "mae-mlm")]
    _, data = shown(config, Results(exact.view, fewer, models=exact.models), "figures", name)
    assert set(data["replicates"]) == {2} and "mae-mlm" in set(data["recipe"])


# --- claims -------------------------------------------------------------------------------


def test_the_paper_is_supported_by_scores_of_its_shape(config, results):
    found = claims(config, results)
    found = found[~found.index.str.startswith("rank-matched")]  # at no checkpoint has MLM the loss of MAE-LM
    assert found.index.is_unique and found["headline"].sum() == 3 and (found["replicates"] == 3).all()
    costs = ["faster-seconds", "faster-flops"]  # .55 of the cost is more than half of it
    assert (found["verdict"][costs] == "contradicted").all()
    corrupted = ["deficient-80-10-10", "deficient-80-10-10-centred"]  # 3 of 4 nats, a tenth of them of words it sees
    assert (found["verdict"][corrupted] == "untested").all()
    assert found["why"][corrupted].str.startswith("80/10/10 has learned too little: 17% of the entropy").all()
    rest = found.drop(index=costs + corrupted)
    assert (rest["verdict"] == "supported").all(), rest.loc[rest["verdict"] != "supported", ["verdict", "why"]]


def test_claims_in_numbers(config, exact):
    value = claims(config, exact)["value"]
    assert value["better-sentences"] == pytest.approx(0.03)
    assert value["delta-sentences"] == pytest.approx(-0.03) and "delta-ends-sentences" not in value
    assert value["more-layers-sentences"] == pytest.approx(0.01), "a small decoder, by its depth"
    assert value["wider-sentences"] == value["wider-answers"] == pytest.approx(0.01), "and by its width"
    assert value["masks-own"] == pytest.approx(7.0) and value["masks-own-most-centred"] == pytest.approx(7 - 0.5)
    assert value["masks-own-learned"] == pytest.approx(7.0) and value["masks-own-words"] == pytest.approx(7 - 3)
    assert value["theorem"] == value["theorem-beside"] == pytest.approx(0.035)
    assert value["theorem-words"] == pytest.approx(0.03)
    # 3 to 6 times what real tokens have, at initial weights as much
    assert value["theorem-learned"] == pytest.approx(np.log(4.5))
    assert value["deficient-mlm-learned-entropy"] == pytest.approx(7.5)
    assert value["lemma-learned"] == pytest.approx(24)
    assert value["deficient-mlm"] == pytest.approx(np.mean([layer**2 for layer in (1, 2, 3, 4)]))
    assert value["deeper"] == pytest.approx((9 + 16) / 2 - (1 + 4) / 2)
    assert value["lemma-twice-centred"] == pytest.approx((2 + 24 - 2) - 2 * (2 - 2))
    assert value["equal-seconds"] == pytest.approx(0.1) and value["slightly-flops"] == pytest.approx(-0.1)
    assert value["faster-seconds"] == pytest.approx(0.55 - 0.5)
    assert value["decoder-alone-answers"] == pytest.approx(0 - 0.03 / 2)
    assert value["cross-answers"] == pytest.approx(WORSE["attention"])
    assert value["kept-similar-sentences"] == pytest.approx(0)


def test_a_kept_mask_that_is_better_than_mlm_is_not_similar(config):
    """Footnote 2: all [MASK]s in the encoder, with a decoder, come to what MLM comes to without one."""

    def higher(cell):
        kept = cell["facts"].get("objective.mae.delta") == 1 and not cell["facts"]["objective.mae.reset"]
        made = world(cell)
        return made + 0.1 if kept and cell["kind"] == "finetune" and made is not None else made

    found = claims(config, synthetic.results(config, "mae", higher, noise=0.0005)).loc["kept-similar-sentences"]
    assert found["section"] == "4.3, footnote 2" and found["value"] == pytest.approx(0.1, abs=0.01)
    assert found["verdict"] == "contradicted"


def test_ranks_at_equal_loss_and_by_way_of_ranks_to_scores():
    """MLM's real tokens have 30, then 34 dimensions, MAE-LM's 42; its loss of 2.5 MLM has half way between the two."""
    compared = ["mae-mlm", "mae-mae", "mae-kept", "mae-reset"]
    sentences = ["mae-acceptability", "mae-entailment", "mae-similarity"]
    probes = {"mae-rank": {"steps": "all"}, "mae-curve": {"tasks": sentences}}
    change = {"probes": probes, "studies": {"mae": {"probes": {"mae-cost": compared, "mae-rank": compared}}}}
    config = config_of(change, panels={"English": dict(zip(compared, compared, strict=True))})
    moved = {}

    def level(cell):
        metric, last = cell["metric"], cell["step"] == cell["last"]
        if metric == "valid_loss":
            return 2.5 if role_of(cell["facts"]) == MAE else 2.0 if last else 3.0
        made = world(cell)
        if metric.startswith("rank") and cell["split"] == "unmasked" and not cell["null"]:
            return made - 4 * (not last and role_of(cell["facts"]) != MAE)
        if cell["kind"] == "finetune" and role_of(cell["facts"]) == MLM and not last and made is not None:
            return made - 0.04
        return made

    results = synthetic.results(config, "mae", level, noise=0, replicates=5)
    # a recipe's replicates differ in rank, at the same loss, and by .01 of the score for each dimension
    scores, rng = results.scores.copy(), np.random.default_rng(3)
    for recipe in compared:
        for replicate in range(1, 6):
            own = (scores["recipe"] == recipe) & (scores["replicate"] == replicate)
            more = rng.normal()
            ranks = scores["metric"].str.startswith("rank") & (scores["split"] == "unmasked")
            scores.loc[own & ranks, "value"] += more
            scored = scores["probe"].isin(["mae-finetune", "mae-curve"]) & ~scores["metric"].str.startswith("rank")
            scores.loc[own & scored & (scores["split"] == "test"), "value"] += 0.01 * more
            moved[recipe, replicate] = more
    results = Results(results.view, scores, models=synthetic.manifests(results.view, True, 5))
    found = claims(config, results)
    apart = np.mean([moved["mae-mlm", r] - moved["mae-mae", r] for r in range(1, 6)])
    # the two checkpoints of MLM share what is drawn for a replicate
    assert found["value"]["rank-matched-centred"] == pytest.approx(32 - 42 + apart)
    assert found["verdict"]["rank-matched-centred"] == "supported"
    assert "mae-mlm at step 700 and mae-mlm at step 1400 at the loss of mae-mae" in found["comparison"]["rank-matched"]
    # scores of .76, then .80, against .83; answers are asked of the last checkpoint alone
    assert found["value"]["better-matched-sentences"] == pytest.approx(0.78 - 0.83 + 0.01 * apart)
    assert found["verdict"]["better-matched-sentences"] == "supported"
    assert "better-sentences" in found.index and "better-matched-answers" not in found.index
    assert found["value"]["chain-score-sentences"] == pytest.approx(0.01)
    freed = 8 + np.mean([moved["mae-mae", r] - moved["mae-kept", r] for r in range(1, 6)])
    assert found["value"]["chain-rank"] == pytest.approx(freed)
    assert found["value"]["chain-path-sentences"] == pytest.approx(0.01 * freed)
    # losses are equal in all replicates, so that nothing is given by them
    assert found["value"]["chain-path-loss-sentences"] == pytest.approx(0.01 * freed)


@pytest.mark.parametrize("kept", [0.81, 0.82])
def test_the_decoder_alone_is_no_main_reason_below_half_of_the_gain(config, kept):
    """MLM .8, MAE-LM .83: .81 with the decoder alone is a third of the gain, .82 two thirds."""

    def level(cell):
        made, facts = world(cell), cell["facts"]
        alone = facts.get("objective.mae.delta") == 1 and not facts["objective.mae.reset"]
        return kept if alone and made == pytest.approx(0.8) else made

    found = claims(config, synthetic.results(config, "mae", level, noise=0.0001))
    wanted = "supported" if kept == 0.81 else "contradicted"
    assert found["verdict"]["decoder-alone-sentences"] == found["verdict"]["decoder-alone-answers"] == wanted


def test_what_a_sentence_takes_for_granted_must_be_there(config):
    """Where MAE-LM gains nothing there is neither a reason for a gain nor a time at which MLM's score is reached."""

    def level(cell):
        made = world(cell)
        return 0.79 if role_of(cell["facts"]) == MAE and made == pytest.approx(0.83) else made

    found = claims(config, synthetic.results(config, "mae", level, noise=0.0001))
    for name in ("decoder-alone-sentences", "decoder-alone-answers", "faster-seconds", "faster-flops"):
        assert found["verdict"][name] == "untested" and "what it presupposes was not shown" in found["why"][name]
    assert found["verdict"]["better-sentences"] == "contradicted"


def test_models_that_learned_nothing_decide_nothing(config):
    def level(cell):
        if cell["kind"] != "finetune" or cell["metric"].startswith("rank"):
            return world(cell)
        return {"mcc": 0.0, "pearson": 0.0, "spearman": 0.0, "exact": 0.5, "f1": 0.6}.get(cell["metric"], 0.5)

    found = claims(config, synthetic.results(config, "mae", level, learned=False))
    assert set(found["verdict"]) == {"untested"}
    above = r"no recipe learned more than word frequencies \(the loss of MLM is [\d.e-]+ nats above theirs"
    assert re.match(above, found["why"]["deficient-mlm"])
    found = claims(config, synthetic.results(config, "mae", level))  # the language was learned, the tasks were not
    tasks = [name for name in found.index if name.startswith(("better", "faster", "delta", "reset", "cross", "rank-"))]
    tasks = [name for name in tasks if name != "rank-centred"]  # of the pre-trained states
    assert set(found["verdict"][tasks]) == {"untested"}
    assert found["verdict"][["deficient-mlm", "slightly-seconds"]].tolist() == ["supported"] * 2


# --- laws of a known rank -----------------------------------------------------------------


def lawful(cell):
    """On laws of rank 8 and 48: [MASK]s of 10 and 20 dimensions, a gap of 1 and 3, .02 and .05 of [MASK]s outside."""
    high = cell["facts"]["corpus.hmm.log_rank"] == 23
    if cell["null"]:
        return None
    if cell["metric"].startswith("rank"):
        own = {"mask-positions": 20 if high else 10, "masked": 33 if high else 31}
        return own.get(cell["split"], 30)
    if cell["metric"].startswith("outside"):
        return (0.05 if high else 0.02) if cell["split"] == "mask-positions" else 0.01
    return None


@pytest.fixture(scope="module")
def laws():
    raw = copy.deepcopy(RAW)
    return load(raw | {"studies": {"mae-law": raw["studies"]["mae-law"]}})


def test_the_rank_of_a_law_is_an_axis(laws):
    results = synthetic.results(laws, "mae-law", lawful, noise=0.001)
    figure, data = law_shown(laws, results, "figures", "figure_law")
    by = data[data["label"] == "MLM"].set_index(["what", "x"])["value"]
    assert set(data["x"]) == {8, 48}
    assert by["masks", 48] == pytest.approx(20, abs=0.2) and by["initial", 8] == pytest.approx(18, abs=0.2)
    assert by["gap", 8] == pytest.approx(1, abs=0.3) and by["mask-positions", 48] == pytest.approx(0.05, abs=0.01)
    assert {axes.get_xlabel() for axes in figure.axes} == {"Rank of T (log scale)"}
    nothing_overlaps(figure)
    all_is_in_view(figure)


def test_a_row_of_laws_is_over_the_replicates_that_its_models_of_all_laws_have(laws):
    exact = synthetic.results(laws, "mae-law", lawful, noise=0)
    (high,) = exact.view.panels["rank 48"].values()
    lacking = (exact.scores["recipe"] == high) & (exact.scores["replicate"] > 2)
    fewer = Results(exact.view, exact.scores[~lacking], models=exact.models)
    _, data = law_shown(laws, fewer, "figures", "figure_law")
    assert set(data["replicates"]) == {2} and set(data["x"]) == {8, 48}


def test_against_the_loss_every_row_says_which_law_it_is_of(laws):
    results = synthetic.results(laws, "mae-law", lawful, noise=0)
    figure, data = law_shown(laws, results, "figures", "figure_loss")
    said = [axes.get_title("left").replace("\n", " ") for axes in figure.axes]
    assert [title.partition(" ")[2].partition(":")[0] for title in said] == ["rank 8"] * 3 + ["rank 48"] * 3
    gaps = data[data["what"] == "gap"].set_index("panel")["value"]
    assert gaps.to_dict() == pytest.approx({"rank 8": 1, "rank 48": 3})
    nothing_overlaps(figure)


def test_a_panel_s_title_is_no_formula(laws, tmp_path):
    study = laws.studies["mae-law"]
    panels = dict(zip([r"$\frac$", "$5 to $6"], study.panels.values(), strict=True))
    named = laws.model_copy(update={"studies": {"mae-law": study.model_copy(update={"panels": panels})}})
    figure, _ = law_shown(named, synthetic.results(named, "mae-law", lawful), "figures", "figure_loss")
    figure.savefig(tmp_path / "figure.pdf")
    assert r"\$\frac\$: " in figure.axes[0].get_title("left").replace("\n", " ")


def test_doses_are_per_doubling_of_the_rank(laws):
    """[MASK]s less real tokens of 30 dimensions; at initial weights nothing depends on the law."""
    found = law_claims(laws, synthetic.results(laws, "mae-law", lawful, noise=0))
    doublings = np.log2(48 / 8)
    for suffix in ("", "-learned"):
        assert found["value"][f"dose-lemma{suffix}"] == pytest.approx(10 / doublings)
        assert found["value"][f"dose-gap{suffix}"] == pytest.approx(2 / doublings)
        assert found["value"][f"dose-theorem{suffix}"] == pytest.approx(0.03 / doublings)
    assert found["unit"]["dose-lemma"].endswith("per doubling of rank(T)")
    assert found["verdict"]["dose-theorem"] == "supported"
    assert not found["headline"][[name for name in found.index if name.startswith("dose-")]].any()
    assert found["value"]["rank 48: theorem"] == pytest.approx(0.04)


@pytest.mark.parametrize("lower", ["real", "initial"])
def test_what_rises_with_the_law_for_real_tokens_or_without_training_is_no_dose(laws, lower):
    """Real tokens gain the 10 dimensions of [MASK]s too; or [MASK]s have them at initial weights already."""

    def level(cell):
        high = cell["facts"]["corpus.hmm.log_rank"] == 23
        if not cell["metric"].startswith("rank"):
            return None
        rises = {"real": ("mask-positions", "unmasked"), "initial": ("mask-positions",)}[lower]
        return 10 + 10 * high if cell["split"] in rises and (lower == "initial" or not cell["null"]) else 10

    found = law_claims(laws, synthetic.results(laws, "mae-law", level, noise=0))
    name = {"real": "dose-lemma", "initial": "dose-lemma-learned"}[lower]
    assert found["value"][name] == pytest.approx(0, abs=1e-9)
    assert (found["value"]["dose-lemma"] > 1) == (lower == "initial")


def test_a_law_that_was_not_learned_decides_nothing(laws):
    """Its gap to the floor is more than half of what can be learned: nothing is said of it, but of the other law."""

    def level(cell):
        if cell["metric"] == "gap" and not cell["null"] and cell["facts"]["corpus.hmm.log_rank"] == 23:
            return 1.2  # of the 2 nats between a floor of 2 and words of 4
        return lawful(cell)

    found = law_claims(laws, synthetic.results(laws, "mae-law", level, noise=0.0001))
    assert found["verdict"][["dose-lemma", "rank 48: theorem"]].tolist() == ["untested"] * 2
    assert "has learned too little: 40% of what can be learned" in found["why"]["dose-lemma"]
    assert found["verdict"]["rank 8: theorem"] == "supported"


def test_a_probe_that_measures_no_subspace_leaves_out_what_needs_it():
    """`subspace: null` saves a reading of three; what reads it is refused before anything runs, or shows the rest."""
    config = config_of({"probes": {"mae-rank": {"subspace": None}}})
    view = View.of(config, "mae")
    unread = ("outside", "outside_beside")
    rows = [row for row in synthetic.rows(config, view, world) if row["metric"] not in unread]
    rows = [row for row in rows if row["split"] not in ("with-words", "beside-words")]
    measured = Results(view, rows_to_frame(rows), models=synthetic.manifests(view))
    table = shown(config, measured, "tables", "ranks").set_index("row")
    assert table["value"]["the gap"].notna().all() and table["value"]["random words"].isna().all()
    for name in ("figure_outside", "figure_loss"):
        with pytest.raises(MaskLabError, match="probe mae-rank measures no share outside the subspace"):
            find("mae", config.studies["mae"], "figures", name).part(view)


@pytest.fixture(scope="module")
def panels_apart():
    """Two panels whose recipes have other labels, one of them with a long title; and scores of it."""
    raw = overlay(copy.deepcopy(RAW), {"models": {"denser-mlm": {"like": "mae-mlm", "masking": {"rate": 0.3}}}})
    raw["models"]["denser-mae"] = {"like": "mae-mae", "masking": {"rate": 0.3}}
    long = "English, 30 %, with a title that is so long that it needs several lines"
    panels = {"English": {"MLM": "mae-mlm", "MAE-LM": "mae-mae"}}
    panels[long] = {"plain": "denser-mlm", "decoded": "denser-mae"}
    study = raw["studies"]["mae"] | {"panels": panels, "probes": dict.fromkeys(raw["studies"]["mae"]["probes"], "all")}
    config = load(raw | {"studies": {"mae": study}})
    return config, synthetic.results(config, "mae", world)


def test_the_line_at_the_last_score_has_the_name_of_each_panels_recipe(panels_apart):
    figure, _ = shown(*panels_apart, "figures", "figure3")
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "MLM or plain, last checkpoint" in keys


@pytest.mark.parametrize("name", ["figure1a", "figure1b", "figure_loss", "figure3"])
def test_a_long_title_of_a_panel_lies_on_nothing(name, panels_apart):
    figure, _ = shown(*panels_apart, "figures", name)
    figure.draw_without_rendering()
    texts = [text for axes in figure.axes for text in (axes._left_title, axes.yaxis.label) if text.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    for number, box in enumerate(boxes):
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
