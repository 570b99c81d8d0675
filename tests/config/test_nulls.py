"""Nulls of studies: which recipes are derived, which share one, what they are called, what measures them."""

import copy

import pytest

from masklab.config import load, overlay, probe_steps
from masklab.config.checks import check_names, check_references
from masklab.config.exact import check_measurable
from masklab.config.nulls import null_measurements, null_recipes, with_nulls
from masklab.config.schema import Encoder, Masking, Objective
from masklab.errors import MaskLabError
from masklab.scores.facts import recipe_facts

START = {"corpus": "c", "tokenizer": "t", "objective": "mlm", "encoder": "small"}
ALL = ["untrained", "shuffled", "one-hot", "bag-of-words", "majority"]
CONFIG = {
    "corpora": {"c": {"kind": "english", "sentences": 2000}, "d": {"kind": "english", "sentences": 3000}},
    "tokenizers": {"t": {"corpus": "c", "max_length": 40}},
    "encoders": {
        "small": {"layers": 1, "hidden": 32, "heads": 2, "max_positions": 64},
        "large": {"layers": 2, "hidden": 64, "heads": 2, "max_positions": 64},
        "mae": {"layers": 1, "hidden": 32, "heads": 2, "max_positions": 80, "decoder": {"layers": 1}},
        "words": {"kind": "words", "order": False},
    },
    "objectives": {"mlm": {"mlm": 1}, "kd": {"kd": 1}, "mae": {"mae": 1}},
    "models": {
        "a": START | {"steps": 10},
        "b": START | {"steps": 20, "objective": "kd", "init": "a@10"},
        "large": START | {"steps": 10, "encoder": "large"},
        "start": START | {"steps": 0},
        "other": START | {"steps": 10, "corpus": "d"},
        "mae": START | {"steps": 10, "encoder": "mae", "objective": "mae", "precision": "bf16"},
        "often": START | {"steps": 10, "masking": {"rate": 0.5}},
        "words": START | {"steps": 0, "encoder": "words"},
    },
    "tasks": {
        "blimp": {"kind": "english-pairs"},
        "cola": {"kind": "english-labels", "recipe": "acceptability"},
        "squad": {"kind": "english-spans"},
    },
    "probes": {
        "pairs": {"kind": "minimal_pairs", "tasks": ["blimp"]},
        "tune": {"kind": "finetune", "tasks": ["cola", "squad"]},
        "spans": {"kind": "finetune", "tasks": ["squad"]},
        "linear": {"kind": "linear_probe", "tasks": ["cola"]},
        "loss": {"kind": "loss"},
        "rank": {"kind": "rank"},
        "cost": {"kind": "cost"},
        "trace": {"kind": "curvature"},
        "slices": {"kind": "landscape"},
        "figure": {"kind": "prediction", "sentence": "The [MASK]."},
    },
    "studies": {
        "s": {"panels": {"one": ["a", "b"], "two": {"L": "large", "A": "a"}}, "nulls": ALL, "probes": {"pairs": "all"}},
        "plain": {"panels": {"all": ["other"]}, "probes": {"loss": "all"}},
    },
}


def config_of(**study):
    raw = copy.deepcopy(CONFIG)
    raw["studies"]["s"] |= study
    return load(raw)


def config_before():
    """The same without the recipes of its nulls, which `load` adds."""
    config = config_of(nulls=[])
    study = config.studies["s"].model_copy(update={"nulls": ALL})
    return config.model_copy(update={"studies": config.studies | {"s": study}})


def test_nulls_of_a_study_are_shared_and_named_after_the_first():
    config = config_of()
    found = null_recipes(config, "s")
    words = {"one-hot": "one-hot.a", "bag-of-words": "bag-of-words.a", "majority": None}
    assert found == {
        "a": {"untrained": "untrained.a", "shuffled": "shuffled.a", **words},
        "b": {"untrained": "untrained.a", "shuffled": "shuffled.b", **words},
        "large": {"untrained": "untrained.large", "shuffled": "shuffled.large", **words},
    }
    assert all(list(nulls) == ALL for nulls in found.values())
    turned = null_recipes(config_of(panels={"one": ["large", "b", "a"]}), "s")
    assert turned["a"]["untrained"] == turned["b"]["untrained"] == "untrained.b"
    assert {nulls["one-hot"] for nulls in turned.values()} == {"one-hot.large"}


def test_the_config_with_nulls_is_sound_and_nothing_else_in_it_changes():
    config = config_before()
    made = with_nulls(config)
    new = set(made.models) - set(config.models)
    assert new == {
        "untrained.a", "untrained.large", "shuffled.a", "shuffled.b", "shuffled.large", "one-hot.a", "bag-of-words.a",
    }  # fmt: skip
    assert {name: made.models[name] for name in config.models} == config.models
    assert set(made.encoders) - set(config.encoders) == {"null.one-hot-64", "null.bag-of-words-64"}
    assert made.encoders["null.bag-of-words-64"] == Encoder(kind="words", order=False, max_positions=64)
    assert set(made.objectives) - set(config.objectives) == {"null.mlm"}
    for section in type(config).model_fields:
        if section not in ("models", "encoders", "objectives"):
            assert getattr(made, section) == getattr(config, section)
    check_names(made)
    check_references(made)
    assert with_nulls(made) == made and null_recipes(made, "s") == null_recipes(config, "s")
    assert load({key: value for key, value in made.model_dump().items() if value}) == made == config_of()


def test_what_a_null_is_made_of():
    config = with_nulls(config_of(panels={"one": ["b", "mae"]}, probes={"linear": "all"}))
    untrained, shuffled = config.models["untrained.b"], config.models["shuffled.b"]
    for model in (untrained, shuffled):
        assert (model.corpus, model.tokenizer, model.encoder, model.steps) == ("c", "t", "small", 0)
        assert model.objective == "null.mlm" and model.embeddings is None and model.dictionary is None
        assert probe_steps(config.probes["pairs"], model) == [0]
    assert untrained.init is None and not untrained.shuffle
    assert shuffled.init == "b@20" and shuffled.shuffle
    mae = config.models["untrained.mae"]
    assert (mae.objective, mae.keep_decoder, mae.precision, mae.encoder) == ("null.mae", True, "bf16", "mae")
    assert config.objectives["null.mae"] == Objective(mae=1)
    words = config.models["one-hot.mae"]
    assert (words.encoder, words.objective, words.keep_decoder) == ("null.one-hot-80", "null.mlm", False)
    assert config.models["one-hot.b"].encoder == "null.one-hot-64"
    check_references(config)


def test_what_tells_nulls_apart():
    """The corpus, and the masking: the losses of two maskings are not compared with one null."""
    names = ("a", "other", "often")
    found = null_recipes(config_of(panels={"one": list(names)}), "s")
    for kind in ("untrained", "one-hot", "bag-of-words"):
        assert [found[name][kind] for name in names] == [f"{kind}.{name}" for name in names]
    config = with_nulls(config_of(panels={"one": ["often"]}))
    assert {config.models[f"{kind}.often"].masking for kind in ("untrained", "shuffled", "one-hot")} == {
        Masking(rate=0.5)
    }


def test_a_bag_of_units_is_measured_where_all_tasks_say_what_words_spell():
    """By fine-tuning on patterns alone; whoever declares one for another probe is told."""
    chains, encoder = {"c": {"synsets": 8}}, {"layers": 1, "hidden": 16, "heads": 2, "max_positions": 12}
    raw = {
        "chains": chains,
        "corpora": {"m": {"kind": "markov", "chains": "c", "distributional": 0.5, "length": 8}},
        "tokenizers": {"t": {"kind": "symbols", "corpus": "m", "max_length": 10}},
        "encoders": {"e": encoder, "bag": {"kind": "words", "units": True, "max_positions": 12}},
        "objectives": {"mlm": {"mlm": 1}},
        "models": {
            "a": {"corpus": "m", "tokenizer": "t", "encoder": "e", "objective": "mlm", "steps": 2, "checkpoints": [2]},
            "b": {"corpus": "m", "tokenizer": "t", "encoder": "bag", "objective": "mlm", "steps": 0},
        },
        "tasks": {"p": {"kind": "patterns", "chains": "c", "length": 8, "set_size": 2}},
        "probes": {
            "tune": {"kind": "finetune", "tasks": ["p"]},
            "linear": {"kind": "linear_probe", "tasks": ["p"]},
        },
        "studies": {
            "s": {"panels": {"x": ["a"]}, "probes": {"tune": "all", "linear": "all"}, "nulls": ["bag-of-units"]},
        },
    }
    config = load(raw)
    assert null_measurements(config, "s") == {"tune": ["bag-of-units.a"]}
    made = with_nulls(config)
    assert made.encoders["null.bag-of-units-12"] == Encoder(kind="words", order=False, units=True, max_positions=12)
    raw["studies"]["s"]["panels"]["x"] = ["a", "b"]
    with pytest.raises(MaskLabError, match="'b' counts what words spell: finetune can measure it, on tasks of kind"):
        load(raw)


def test_recipes_without_a_null_of_some_kind():
    found = null_recipes(config_of(panels={"one": ["start", "words"]}), "s")
    assert list(found["start"]) == ["untrained", "one-hot", "bag-of-words", "majority"]  # never trained
    assert found["words"] == {"majority": None}
    config = config_of(nulls=["majority"])
    assert null_recipes(config, "s") == {name: {"majority": None} for name in ("a", "b", "large")}
    assert with_nulls(config) == config
    raw = copy.deepcopy(CONFIG)
    raw["corpora"]["m"] = {"kind": "markov", "chains": "m", "distributional": True, "length": 16}
    raw["chains"] = {"m": {"synsets": 20}}
    raw["tokenizers"]["m"] = {"kind": "symbols", "corpus": "m", "max_length": 18}
    raw["encoders"]["table"] = {"kind": "lookup"}
    raw["models"]["table"] = START | {"corpus": "m", "tokenizer": "m", "encoder": "table", "steps": 0}
    raw["studies"]["s"] = {"panels": {"one": ["table"]}, "nulls": ALL, "probes": {}}
    config = load(raw)
    assert list(null_recipes(config, "s")["table"]) == ["one-hot", "bag-of-words", "majority"]
    check_references(with_nulls(config))


def test_studies_without_nulls_are_left_alone():
    config = config_of(nulls=[])
    assert with_nulls(config) == config
    assert null_recipes(config, "s") == {"a": {}, "b": {}, "large": {}} and null_measurements(config, "s") == {}
    config = config_of()
    assert null_recipes(config, "plain") == {"other": {}} and "untrained.other" not in with_nulls(config).models


def test_families_are_expanded_before():
    raw = copy.deepcopy(CONFIG)
    raw["models"]["h-{size}-{n}"] = {
        "for": {"size": ["small", "large"], "n": [5, 7]}, **START, "encoder": "{size}", "steps": "{n}",
    }  # fmt: skip
    raw["studies"]["s"] = {"panels": {"all": ["h-*"]}, "nulls": ["untrained", "shuffled"], "probes": {"loss": "all"}}
    config = load(raw)
    assert {recipe: nulls["untrained"] for recipe, nulls in null_recipes(config, "s").items()} == {
        "h-small-5": "untrained.h-small-5",
        "h-small-7": "untrained.h-small-5",
        "h-large-5": "untrained.h-large-5",
        "h-large-7": "untrained.h-large-5",
    }
    assert with_nulls(config).models["shuffled.h-small-7"].init == "h-small-7@7"


def test_replicates_are_those_of_the_recipe_with_most():
    def replicates(config, name):
        return with_nulls(config).models[name].replicates

    assert replicates(config_of(), "untrained.a") == 1
    assert replicates(config_of(replicates=3), "untrained.a") == 3
    raw = overlay(CONFIG, {"models": {"b": {"replicates": 5}}, "replicates": 2})
    config = load(raw)
    assert [replicates(config, name) for name in ("untrained.a", "shuffled.a", "shuffled.b")] == [5, 2, 5]
    raw = overlay(raw, {"studies": {"plain": {"panels": {"all": ["a"]}, "nulls": ["shuffled"], "replicates": 4}}})
    assert replicates(load(raw), "shuffled.a") == 4 and replicates(load(raw), "untrained.a") == 5
    assert with_nulls(with_nulls(load(raw))) == with_nulls(load(raw))


def test_two_studies_may_name_a_null_differently():
    raw = overlay(CONFIG, {"studies": {"plain": {"panels": {"all": ["b", "a"]}, "nulls": ["untrained"]}}})
    made = with_nulls(load(raw))
    assert null_recipes(made, "plain")["a"] == {"untrained": "untrained.b"}
    assert made.models["untrained.b"] == made.models["untrained.a"]


def test_which_probes_measure_which_nulls():
    every = [name for name in CONFIG["probes"] if name not in ("trace", "slices", "figure", "cost", "rank")]
    probes = {name: ["a", "large"] for name in every}
    probes |= {name: ["b"] for name in ("trace", "slices", "figure", "cost")} | {"rank": "all"}
    config = config_of(probes=probes, extra=["other"])
    words = ["one-hot.a", "bag-of-words.a"]
    networks = ["untrained.a", "shuffled.a", "untrained.large", "shuffled.large"]
    found = null_measurements(config, "s")
    assert {probe: set(names) for probe, names in found.items()} == {
        "pairs": {*networks, *words},
        "tune": {*networks, *words},  # its task of answer spans is left out for words
        "spans": set(networks),
        "linear": {*networks, *words},
        "loss": {*networks, *words},
        "rank": {*networks, "shuffled.b"},
    }
    assert found["pairs"] == ["untrained.a", "shuffled.a", *words, "untrained.large", "shuffled.large"]
    made = with_nulls(config)
    assert null_measurements(made, "s") == found
    for probe, names in found.items():
        for name in names:
            check_measurable(made, probe, name, "here")


def test_a_null_is_asked_once_what_two_probes_ask_of_several_checkpoints():
    """The checkpoints that a probe lists are not those of a null, which would be measured twice at its only one."""
    early = {"kind": "finetune", "tasks": ["cola"], "steps": [5]}
    for other, expected in (
        ({}, {"tune"}),
        ({"sizes": [50]}, {"early", "tune"}),
        ({"steps": "last"}, {"early", "tune"}),
    ):
        changed = overlay(copy.deepcopy(CONFIG), {"probes": {"early": early | other}})
        changed["studies"]["s"] |= {"nulls": ["untrained"], "probes": {"early": "all", "tune": "all"}}
        assert set(null_measurements(load(changed), "s")) == expected
    changed["studies"]["s"] |= {"probes": {"early": "all"}}
    assert list(null_measurements(load(changed), "s")) == ["early"]


def test_a_name_that_is_taken_is_said():
    with pytest.raises(MaskLabError, match=r"config: models\.untrained\.a: is the name of a null of a study; choose"):
        load(overlay(CONFIG, {"models": {"untrained.a": START | {"steps": 3}}}))
    with pytest.raises(MaskLabError, match=r"config: encoders\.null\.one-hot-64: is the name"):
        load(overlay(CONFIG, {"encoders": {"null.one-hot-64": {"layers": 1}}}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"models": {"words": {"steps": 5}}}, "models.words.steps: an encoder of words is not trained; set steps: 0"),
        ({"models": {"words": {"processes": 2}}}, "models.words.steps: an encoder of words is not trained"),
        (
            {"models": {"words": {"init": "words@0"}}},
            "models.words: an encoder of words takes no init, teacher, embeddings",
        ),
        ({"dictionaries": {"d": {"model": "words@0", "layer": 0}}}, "d.model: an encoder of words has no hidden"),
        ({"studies": {"s": {"probes": {"rank": ["words"]}}}}, "'words' is an encoder of words, which rank probes"),
        ({"studies": {"s": {"probes": {"trace": ["words"]}}}}, "which curvature probes cannot measure; loss,"),
        ({"studies": {"s": {"probes": {"slices": ["words"]}}}}, "which landscape probes cannot measure"),
        ({"studies": {"s": {"probes": {"figure": ["words"]}}}}, "which prediction probes cannot measure"),
        ({"studies": {"s": {"probes": {"cost": ["words"]}}}}, "which cost probes cannot measure"),
        (
            {"studies": {"s": {"probes": {"spans": ["words"]}}}},
            "config: studies.s.probes.spans: 'words' is an encoder of words, which finds no answer spans, and 'spans'"
            " has no other tasks",
        ),
        ({"studies": {"s": {"nulls": ["scrambled"]}}}, "studies.s.nulls: item 1: must be one of untrained"),
    ],
)
def test_what_words_cannot_be_or_do_is_one_line(change, said):
    raw = overlay(CONFIG, {"studies": {"s": {"panels": {"three": ["words"]}, "probes": {"pairs": ["words"]}}}})
    load(raw)
    with pytest.raises(MaskLabError) as caught:
        load(overlay(raw, change))
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_words_are_measured_by_what_reads_tokens():
    measured = {name: ["words"] for name in ("pairs", "tune", "linear", "loss")}
    load(overlay(CONFIG, {"studies": {"s": {"panels": {"three": ["words"]}, "probes": measured}}}))


def test_a_null_without_a_network_has_no_width():
    config = load(copy.deepcopy(CONFIG))
    name = next(name for name in with_nulls(config).models if name.startswith("bag-of-words."))
    facts = recipe_facts(with_nulls(config), name)
    assert (facts["encoder.kind"], facts["encoder.order"], facts["encoder.hidden"]) == ("words", False, None)
