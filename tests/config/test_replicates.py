"""Replicates: which entries are drawn anew, how many there are, and with which seed."""

import subprocess
import sys

import pytest

from masklab.config import load, overlay
from masklab.config.measured import replicates_of, study_pairs
from masklab.config.nulls import with_nulls
from masklab.config.references import phase
from masklab.config.replicates import (
    instance,
    is_redrawn,
    measured_replicates,
    seed_of,
    split_instance,
    trained_replicates,
)
from masklab.errors import MaskLabError
from masklab.rng import replicate_seed

MODEL = {"corpus": "c", "tokenizer": "t", "encoder": "e", "objective": "mlm", "steps": 10}
RAW = {
    "seed": 7,
    "replicates": 2,
    "chains": {"words": {"synsets": 20}},
    "corpora": {
        "c": {"kind": "markov", "chains": "words", "distributional": True},
        "own": {"kind": "markov", "chains": {"synsets": 20}, "distributional": True},
        "text": {"kind": "english", "sentences": 10},
        "drawn": {"kind": "causal", "causal": "lm", "length": 20},
        "hub": {"kind": "causal", "causal": "facebook/opt-125m"},
    },
    "tokenizers": {
        "t": {"kind": "symbols", "corpus": "c", "max_length": 22},
        "pieces": {"corpus": "text", "max_length": 22},
    },
    "causal_models": {"lm": {"corpus": "text", "tokenizer": "pieces", "steps": 3}},
    "encoders": {"e": {"positions": "absolute", "layers": 1, "hidden": 32, "heads": 2, "max_positions": 32}},
    "objectives": {"mlm": {"mlm": 1}, "mlsm": {"mlsm": 1}},
    "models": {
        "base": MODEL | {"checkpoints": [10]},
        "next": MODEL | {"init": "base@10"},
        "coded": MODEL | {"init": "next@10", "dictionary": "d", "objective": "mlsm"},
        "other": MODEL,
    },
    "dictionaries": {"d": {"model": "other@10", "layer": 1}},
    "tasks": {
        "p": {"kind": "patterns", "chains": "words"},
        "labels": {"kind": "english-labels", "recipe": "sentiment"},
        "restricted": {"kind": "restricted-labels", "task": "labels", "corpus": "drawn"},
    },
    "probes": {"loss": {"kind": "loss"}, "cost": {"kind": "cost"}},
    "studies": {"s": {"panels": {"x": ["next"]}, "extra": ["base"], "probes": {"loss": ["next"], "cost": "all"}}},
}


def config(**changes):
    return load(overlay(RAW, changes))


EVERY = [(section, name) for section in ("corpora", "tokenizers", "causal_models", "tasks") for name in RAW[section]]


def redrawn(found) -> set:
    return {name for section, name in EVERY if is_redrawn(found, section, name)}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, set()),
        ({"chains": {"words": {"redraw": True}}}, {"c", "t", "p"}),
        ({"corpora": {"c": {"redraw": True}}}, {"c", "t"}),
        ({"corpora": {"own": {"chains": {"redraw": True}}}}, {"own"}),
        ({"corpora": {"text": {"redraw": True}}}, {"text", "pieces", "lm", "drawn", "restricted"}),
        ({"corpora": {"hub": {"redraw": True}}}, {"hub"}),
        ({"tasks": {"labels": {"redraw": True}}}, {"labels", "restricted"}),
    ],
)
def test_what_is_made_from_something_redrawn_is_redrawn_too(changes, wanted):
    assert redrawn(config(**changes)) == wanted


def test_a_recipe_and_what_is_made_from_it_always_have_instances_of_their_own():
    for section in ("models", "embeddings", "dictionaries"):
        assert is_redrawn(config(), section, "any")
    assert instance(config(), "models", "base", 3) == "base/r3" and instance(config(), "corpora", "c", 3) == "c"
    again = config(corpora={"c": {"redraw": True}})
    assert instance(again, "corpora", "c", 3) == "c/r3"
    assert split_instance("c/r3") == ("c", 3) and split_instance("c") == ("c", None)


def test_seeds():
    found = config()
    assert seed_of(found, None) == 7 and seed_of(found, 2) == replicate_seed(7, 2) != seed_of(found, 1)


def test_the_recipe_speaks_before_the_study_and_the_study_before_the_top_level():
    assert measured_replicates(config(), "s", "next") == 2
    found = config(studies={"s": {"replicates": 4}})
    assert measured_replicates(found, "s", "next") == 4
    found = config(studies={"s": {"replicates": 4}}, models={"next": {"replicates": 3}})
    assert measured_replicates(found, "s", "next") == 3 and measured_replicates(found, "s", "base") == 4


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, {"base": 2, "next": 2, "coded": 2, "other": 2}),
        ({"studies": {"s": {"replicates": 5}}}, {"base": 5, "next": 5, "coded": 2, "other": 2}),
        ({"studies": {"s": {"replicates": 1}}}, {"base": 2, "next": 2, "coded": 2, "other": 2}),
        ({"models": {"next": {"replicates": 6}}}, {"base": 6, "next": 6, "coded": 2, "other": 2}),
        ({"models": {"coded": {"replicates": 6}}}, {"base": 6, "next": 6, "coded": 6, "other": 6}),
        ({"models": {"base": {"replicates": 1}}}, {"base": 2, "next": 2, "coded": 2, "other": 2}),
        (
            {"studies": {"more": RAW["studies"]["s"] | {"replicates": 3}, "s": {"replicates": 1}}},
            {"base": 3, "next": 3, "coded": 2, "other": 2},
        ),
    ],
)
def test_a_recipe_has_as_many_as_any_study_measures_and_as_what_starts_from_it(changes, wanted):
    assert trained_replicates(config(**changes)) == wanted


def test_phases_are_links_of_init():
    found = config()
    assert [phase(found, name) for name in ("base", "next", "coded", "other")] == [0, 1, 2, 0]


def test_what_a_study_measures():
    found = config(studies={"s": {"replicates": 2}}, models={"next": {"replicates": 1}})
    pairs = study_pairs(found, "s")
    assert pairs == [("loss", "next"), ("cost", "base"), ("cost", "next")]
    assert replicates_of(found, "s", pairs) == [
        ("loss", "next", 1),
        ("cost", "base", 1),
        ("cost", "base", 2),
        ("cost", "next", 1),
    ]


def test_a_study_measures_its_nulls_too():
    found = with_nulls(config(studies={"s": {"nulls": ["untrained", "majority"], "probes": {"loss": ["next"]}}}))
    nulls = [recipe for probe, recipe in study_pairs(found, "s") if recipe not in RAW["models"]]
    assert nulls == ["untrained.next"] and trained_replicates(found)["untrained.next"] == 2


def test_no_entry_is_called_like_a_replicate():
    with pytest.raises(MaskLabError, match=r"corpora.r2: .*r and a number"):
        config(corpora={"r2": RAW["corpora"]["text"]})
    assert "r2d" in config(corpora={"r2d": RAW["corpora"]["text"]}).corpora


def test_it_is_light():
    command = "import sys, masklab.config.replicates; print('numpy' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"
