"""The `dh` study through the real workflow at the smallest scale: every figure, table and claim appears."""

import pandas as pd
import pytest
import running
from running import jobs, laid, unlearned

pytestmark = pytest.mark.workflow

PANELS = {"single": ["with", "without", "cbow", "scratch", "shuffled"], "mixed forms": ["without", "50", "with"],
          "shared": ["with", "without", "scratch"], "separate": ["with", "without", "scratch"]}  # fmt: skip
REPLICATES = {"default": 5, "evening": 15, "gpu": 5, "paper": 5}
SIZES, SEEDS = [10, 20, 40], [1, 2]
SPELLINGS = [panel for panel in PANELS if panel != "mixed forms"]
EACH = {"for": {"panel": SPELLINGS}}
BOTH = {"for": {"panel": SPELLINGS, "property": ["with", "without"]}}
MIXES = {"for": {"panel": SPELLINGS, "percent": [0, 10, 50]}}
TUNED = {"seeds": SEEDS, "max_steps": 2, "evaluate_every": 2}
TINY = {
    "corpora": {name: case | {"sequences": 100, "valid": 10, "test": 10}
                for name, case in (("dh-{panel}-{property}", BOTH), ("dh-single-50", {}))},
    "encoders": {"dh": {"hidden": 16}},
    "embeddings": {"dh-{panel}": EACH | {"epochs": 1, "size": 16}},
    "models": {"dh-{panel}-{property}": BOTH | {"steps": 4, "checkpoints": [4], "batch_size": 8},
               "dh-single-50": {"steps": 4, "checkpoints": [4], "batch_size": 8},
               "dh-single-with": {"checkpoints": [1, 2, 3, 4]},
               "dh-{panel}-shuffled": EACH | {"init": "dh-{panel}-with@4"}},
    "tasks": {"patterns-{panel}-{percent}": MIXES | {"train": 40, "valid": 10, "test": 20}},
    "probes": {"dh-{panel}": EACH | TUNED | {"sizes": SIZES},
               "dh-doses": TUNED | {"sizes": SIZES},
               "dh-course": TUNED | {"sizes": SIZES[1:2], "steps": [1, 2, 3]},
               "dh-replaced": TUNED | {"sizes": SIZES[1:2], "examples": 10, "updates": [1]},
               "dh-loss": {"sequences": 4}, "dh-course-loss": {"sequences": 4, "steps": [1, 2, 3]}},
}  # fmt: skip


def small() -> dict:
    """The study `dh` of the evening alone, once, where nothing is learned; fewer starts of the multi-token panels."""
    config = laid(running.default_config("dh", preset="evening"), TINY) | {"run": ""}
    study = config["studies"]["dh"]
    for panel, starts in PANELS.items():
        kept = {f"dh-{panel if panel in SPELLINGS else 'single'}-{start}" for start in starts}
        study["panels"][panel] = {label: name for label, name in study["panels"][panel].items() if name in kept}
    for panel in SPELLINGS:
        study["probes"][f"dh-{panel}"] = list(study["panels"][panel].values())
    study["probes"]["dh-doses"] = ["dh-single-50"]
    study["probes"]["dh-loss"] = ["dh-single-with", "dh-separate-with"]
    study["replicates"] = 1
    return unlearned(config) | {"device": "cpu"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("dh")


def snakemake(folder, *arguments, config=None):
    return running.snakemake(folder, config or small(), *arguments)


def test_figure1_needs_two_corpora_only(folder):
    assert jobs(snakemake(folder, "--dry-run", "dh_figure1")) == {"corpus": 2, "figure": 1, "dh_figure1": 1}


def test_figure2_needs_the_single_token_panel_only(folder):
    counts = jobs(snakemake(folder, "--dry-run", "dh_figure2"))
    assert counts == {
        "corpus": 2, "tokenizer": 1, "tokens": 2, "embeddings": 1, "pretrain": 9, "task": 3, "probe": 10, "figure": 1,
        "dh_figure2": 1,
    }  # fmt: skip


def test_everything_is_made(folder):
    """Of models that have learned nothing no claim is decided, and each says why."""
    snakemake(folder)
    results, study = folder / "results", small()["studies"]["dh"]
    running.assert_drawn(results, "dh", study)
    scores = pd.read_parquet(results / "scores.parquet")
    runs = scores[scores["metric"] == "accuracy"]
    runs = runs[~runs["probe"].isin(["dh-course", "dh-replaced"])]
    recipes = {name for panel in study["panels"].values() for name in panel.values()}
    nulls = set(runs["recipe"]) - recipes
    assert len(recipes) == 12 and len(nulls) == 14  # two bags for each corpus that recipes are about
    assert all(name.startswith(("bag-of-words.", "bag-of-units.")) for name in nulls)
    every = len(SIZES) * 4  # of each task: sizes, domains
    counts = runs.groupby(["recipe", "task"]).size().groupby("recipe").agg(["size", "min", "max"])
    seeds = {name: 1 if name in nulls else len(SEEDS) for name in counts.index}
    for name, tasks, least, most in counts.itertuples():
        shares = 2 if name.endswith("-50") else 3  # of B-D2; doses are fine-tuned on two
        assert (tasks, least, most) == (shares, seeds[name] * every, seeds[name] * every)
    assert set(runs["task"]) == {f"patterns-{panel}-{percent}" for panel in SPELLINGS for percent in (0, 10, 50)}
    assert set(runs["split"]) == {"A-D1", "B-D1", "A-D2", "B-D2"} and set(runs["replicate"]) == {1}
    claims = pd.read_parquet(results / "claims.parquet")
    pd.testing.assert_frame_equal(claims, pd.read_parquet(results / "claims/dh.parquet"))
    known = claims[claims["value"].notna()]  # a curve that stays at one half correlates with nothing
    assert (known["replicates"] == 1).all() and len(known) > 60
    # of one replicate with 20 sequences, some model may be above its nulls by chance
    assert set(claims["verdict"]) == set(claims["corrected"]) <= {"untested", "inconclusive"}
    assert (claims["verdict"] == "untested").mean() > 0.9 and (claims["why"] != "").all()
    several = claims.loc[claims["comparison"].str.contains("shared|separate"), "comparison"]
    assert len(several) and "CBOW" not in " ".join(several)
    losses = pd.read_parquet(results / "tables/dh/losses.parquet").set_index(["panel", "row"])["value"]
    for panel in ("single", "separate"):  # of features of several tokens too
        loss, floor, gap = (losses[panel, row] for row in ("loss", "floor", "gap"))
        assert loss > floor > 0 and gap == pytest.approx(loss - floor)
    replaced = pd.read_parquet(results / "figures/dh/figure_replaced.parquet")
    assert set(replaced["start"]) == {"w/ DH", "w/o DH", "scratch", "shuffled"} and len(replaced) == 4 * 3 * 4
    course = pd.read_parquet(results / "figures/dh/figure_course.parquet")
    assert set(course["step"]) == {1, 2, 3, 4} and (course["train_size"] == SIZES[1]).all()


def test_the_margin_re_tests_claims_and_draws_nothing(folder):
    config = small()
    config["studies"]["dh"]["margin"] = 0.03
    assert jobs(snakemake(folder, "--dry-run", config=config)) == {"study_claims": 1, "claims": 1, "pages": 1}


def test_the_default_run_asks_little(tmp_path):
    """Four recipes and two bags for each of two corpora, fine-tuned on A-D1 alone."""
    counts = jobs(snakemake(tmp_path, "--dry-run", "dh", config=running.default_config("dh")))
    replicates = REPLICATES["default"]
    assert (counts["pretrain"], counts["task"], counts["figure"]) == (replicates * (4 + 4), replicates, 2)


@pytest.mark.parametrize(("preset", "words"), [("evening", 18), ("gpu", 18), ("paper", 24)])
def test_presets_dry_run(preset, words):
    """18 recipes, and two bags for each corpus and tokenizer, in as many replicates as the preset says."""
    counts, replicates = jobs(running.dry_run_of_preset(preset, "dh")), REPLICATES[preset]
    assert (counts["pretrain"], counts["figure"], counts["study_claims"]) == (replicates * (18 + words), 12, 1)
