"""Objectives in the config: terms with settings of their own, and one line for what does not fit."""

from typing import ClassVar

import pytest
from pydantic import ValidationError

from masklab.config import document, kinds, load, overlay
from masklab.config.references import phase
from masklab.config.schema import Config, Masking, Objective, Weight
from masklab.errors import MaskLabError

CONFIG = {
    "chains": {"c": {"synsets": 50}, "other": {"synsets": 50}},
    "corpora": {"c": {"kind": "markov", "chains": "c", "distributional": True, "length": 32}},
    "tokenizers": {"symbols": {"kind": "symbols", "corpus": "c", "max_length": 34}},
    "encoders": {"e": {"layers": 1, "hidden": 32, "heads": 2}},
    "objectives": {"mlm": {"mlm": 1}, "foe": {"mlm": 1, "adversarial": {"weight": 0.1, "task": "p"}}},
    "models": {
        "m": {"corpus": "c", "tokenizer": "symbols", "encoder": "e", "objective": "foe", "steps": 10},
        "start": {"corpus": "c", "tokenizer": "symbols", "encoder": "e", "objective": "mlm", "steps": 10},
    },
    "tasks": {
        "p": {"kind": "patterns", "chains": "c"},
        "pairs": {"kind": "english-pairs"},
        "spans": {"kind": "english-spans"},
        "ratings": {"kind": "english-ratings"},
    },
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"objectives": {"foe": {"adversarial": 0.1}}}, "objectives.foe.adversarial.task: required, but missing"),
        (
            {"objectives": {"foe": {"mlm": 0}}},
            "objectives.foe: at least one of mlm, kd, mlsm, mae must have a weight ab",
        ),
        ({"objectives": {"foe": {"adversarial": {"task": "q"}}}}, "objectives.foe.adversarial.task: 'q' is not declar"),
        (
            {"objectives": {"foe": {"adversarial": {"task": "pairs"}}}},
            "'pairs' is a task of pairs; it must have labels",
        ),
        (
            {"objectives": {"foe": {"adversarial": {"task": "spans"}}}},
            "objectives.foe.adversarial.task: 'spans' is a task of spans; it must have labels",
        ),
        (
            {"objectives": {"foe": {"adversarial": {"task": "ratings"}}}},
            "objectives.foe.adversarial.task: 'ratings' is a task of ratings; it must have labels",
        ),
        (
            {"objectives": {"foe": {"adversarial": {"query": 0}}}},
            "objectives.foe.adversarial.query: must be at least 1",
        ),
        (
            {"objectives": {"foe": {"mlmm": 1}}},
            "objectives.foe.mlmm: unknown key; did you mean 'mlm'?",
        ),
        ({"objectives": {"foe": {"kd": {"temprature": 2}}}}, "kd.temprature: unknown key; did you mean 'temperature'"),
        (
            {"objectives": {"foe": {"kd": {"temperature": 0}}}},
            "foe.kd.temperature: must be above 0 (got",
        ),
        ({"objectives": {"foe": {"mlm": -1}}}, "objectives.foe.mlm: must be at least 0"),
        (
            {"objectives": {"foe": {"mlm": "much"}}},
            "objectives.foe.mlm: must be a weight, such as 1, or a mapping with it",
        ),
        (
            {"objectives": {"foe": {"mlm": True}}},
            "objectives.foe.mlm: must be a weight, such as 1, or a mapping with it",
        ),
        ({"objectives": {"foe": {"mae": 1}}}, "objectives.foe: mlm and mae exclude each other: they are one loss on"),
        ({"objectives": {"foe": {"kd": 1}}}, "models.m.init: objective 'foe' needs a teacher, given as model@step"),
        (
            {"objectives": {"foe": {"mlsm": 1}}, "models": {"m": {"init": "start@10"}}},
            "models.m.dictionary: objective 'foe' needs a dictionary",
        ),
        (
            {"tasks": {"p": {"train": 511}}},
            "objectives.foe.adversarial.task: 'p' has 511 training rows, and the term draws 512 at once",
        ),
        (
            {"tasks": {"p": {"chains": "other"}}},
            "models.m.objective: the task 'p' of objective 'foe' is of another law",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(change, said):
    assert load(CONFIG).objectives["foe"].get("adversarial").ridge == 1e-3
    with pytest.raises(MaskLabError) as caught:
        load(overlay(CONFIG, change))
    assert said in str(caught.value) and "\n" not in str(caught.value)


CODED = {
    "objectives": {"code": {"mlsm": 1}},
    "models": {
        "m": {"objective": "code", "init": "start@10", "dictionary": "d"},
        "other": {"corpus": "c", "tokenizer": "symbols", "encoder": "e", "objective": "mlm", "steps": 10},
    },
    "dictionaries": {"d": {"model": "start@10", "layer": 1}},
}
ELSEWHERE = {"corpora": {"c2": {"kind": "markov", "chains": "c", "distributional": True, "length": 32}}}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"models": {"m": {"masking": {"specials": True}}}},
            "models.m.masking.specials: [CLS] and [SEP] have no stored codes; use codes: on-the-fly",
        ),
        (
            {"models": {"m": {"masking": {"specials": True}, "codes": "masked"}}},
            "models.m.masking.specials: [CLS] and [SEP] have no stored codes; use codes: on-the-fly",
        ),
        (
            {"models": {"m": {"init": "other@10", "codes": "on-the-fly"}}},
            "models.m.init: codes on-the-fly are those of dictionary 'd', of the states of start@10, not of other@10;"
            " give start@10 as teacher or init, or use 'stored' codes",
        ),
        (
            ELSEWHERE | {"models": {"m": {"init": "other@10", "codes": "on-the-fly", "corpus": "c2"}}},
            "not of other@10; give start@10 as teacher or init",
        ),
        (
            ELSEWHERE | {"models": {"m": {"corpus": "c2"}}},
            "models.m.codes: 'stored' needs the dictionary's own corpus ('c', not 'c2'); use 'on-the-fly'",
        ),
        (
            ELSEWHERE | {"models": {"m": {"corpus": "c2", "init": "other@10", "codes": "masked"}}},
            "models.m.codes: 'masked' needs the dictionary's own corpus ('c', not 'c2'); use 'on-the-fly' and give"
            " start@10 as teacher or init",
        ),
        (
            {
                "tokenizers": {"t2": {"kind": "symbols", "corpus": "c", "max_length": 34}},
                "models": {"other": {"tokenizer": "t2"}},
                "dictionaries": {"d": {"model": "other@10"}},
            },
            "models.m.dictionary: 'd' codes the states of other@10, whose tokenizer ('t2') must be the model's"
            " ('symbols')",
        ),
    ],
)
def test_codes_that_a_recipe_cannot_read_are_one_line(change, said):
    with pytest.raises(MaskLabError) as caught:
        load(overlay(overlay(CONFIG, CODED), change))
    assert str(caught.value).endswith(said) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"init": "other@10"},  # stored codes hang on no start
        {"codes": "on-the-fly", "masking": {"specials": True}},
        {"codes": "on-the-fly", "init": "other@10", "teacher": "start@10"},
        {"codes": "on-the-fly", "corpus": "c2"},
    ],
)
def test_codes_that_a_recipe_can_read_are_accepted(change):
    config = load(overlay(overlay(overlay(CONFIG, CODED), ELSEWHERE), {"models": {"m": change}}))
    assert config.models["m"].dictionary == "d"


def test_a_number_is_short_for_a_weight_and_what_is_written_comes_back():
    objective = Objective(kd={"temperature": 2}, mlm=0.5, mlsm=0, mae=None)
    assert objective.model_dump(mode="json") == {"mlm": {"weight": 0.5}, "kd": {"weight": 1.0, "temperature": 2.0}}
    assert Objective.model_validate(objective.model_dump(mode="json")) == objective
    assert objective == Objective(mlm={"weight": 0.5}, kd={"weight": 1, "temperature": 2})
    assert list(objective.terms) == ["mlm", "kd"], "in the order of kinds, whatever the order in the file"
    assert objective.get("kd").temperature == 2 and objective.get("mae") is None
    assert objective.needs("teacher") and not objective.needs("codes") and objective.tasks == []
    assert Objective(mlsm=1).needs("codes") and load(CONFIG).objectives["foe"].tasks == ["p"]


def test_a_share_of_the_masks_leaves_an_autoencoders_encoder():
    masking = Masking(mask=0.8, random=0.1)
    assert Objective(mlm=1).leaving(masking) == 0
    assert Objective(mlm=1).terms["mlm"].besides() == (0, 1)
    foe = {"task": "p", "support": 3, "query": 2, "every": 4}
    assert Objective(mlm=1, adversarial=foe).terms["adversarial"].besides() == (5, 4)
    with pytest.raises(ValidationError):
        Objective.model_validate(5)
    assert Objective(mae={"delta": 0.25}).leaving(masking) == pytest.approx(0.75 * 0.8)
    assert Objective(mae={"delta": 1.0}).leaving(masking) == 0 and Objective(mae=1).leaving(masking) == 0.8


def test_terms_stand_in_the_schema_and_in_the_table_of_keys():
    written = Config.model_json_schema()["$defs"]["Objective"]
    assert written["description"] == (
        "A weighted sum of terms: the name of each -> its settings; a number is short for its weight."
    )
    written = written["properties"]
    assert set(written) == set(kinds.OURS["terms"])
    number, _, nothing = written["mlm"]["anyOf"]
    assert number == {"type": "number", "minimum": 0} and nothing == {"type": "null"}
    assert "temperature" in written["kd"]["anyOf"][1]["properties"]
    assert "### `objectives.<name>.kd`: KL(" in (table := document.keys()) and "`temperature`" in table


def test_a_term_of_ones_own_is_one_of_the_allowed():
    class Span(Weight):
        reads: ClassVar = True
        length: int = 3

    kinds.term("span", Span)(object)
    try:
        assert Objective(span={"length": 4}).get("span").length == 4
        assert Objective(span=2).model_dump(mode="json") == {"span": {"weight": 2.0, "length": 3}}
        with pytest.raises(MaskLabError, match=r"objectives.o: mae and span each bring a way of hiding tokens; one of"):
            load({"objectives": {"o": {"span": 1, "mae": 1}}})
        with pytest.raises(MaskLabError, match=r"objectives.o.span.length: must be a whole number"):
            load({"objectives": {"o": {"span": {"length": "long"}}}})
    finally:
        del kinds._yours["terms"]["span"]
    with pytest.raises(MaskLabError, match=r"objectives.o.span: unknown key"):
        load({"objectives": {"o": {"span": 1}}})


def test_phases_count_the_links_behind_a_model():
    later = {"objective": "mlm", "init": "start@10"}
    config = load(overlay(CONFIG, {"models": {"m": later, "n": CONFIG["models"]["m"] | later | {"init": "m@10"}}}))
    assert [phase(config, name) for name in ("start", "m", "n")] == [0, 1, 2]
    pupil = {"objective": "learn", "teacher": "m@10"}
    raw = overlay(CONFIG, {"objectives": {"learn": {"kd": 1}}, "models": {"m": later}})
    models = {"n": CONFIG["models"]["m"] | pupil, "o": CONFIG["models"]["m"] | pupil | {"init": "start@10"}}
    config = load(overlay(raw, {"models": models}))
    assert [phase(config, name) for name in ("n", "o")] == [2, 2], "the longer way counts"
    with pytest.raises(MaskLabError, match=r"models.m.init: goes round in a circle: m -> start -> m"):
        load(overlay(CONFIG, {"models": {"m": later, "start": {"init": "m@10"}}}))
