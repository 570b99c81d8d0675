"""Which scores a figure needs, asked at parse time."""

import subprocess
import sys

import pytest

from masklab.config import load
from masklab.errors import MaskLabError
from masklab.figures.needs import arguments, needs


def raw():
    base = {"corpus": "c", "tokenizer": "t", "encoder": "e"}
    phase2 = base | {"steps": 50, "init": "one@10", "dictionary": "d"}
    labelled = {"kind": "label-files", "train": "a", "valid": "b"}
    return {
        "corpora": {"c": {"kind": "english", "sentences": 9}},
        "tokenizers": {"t": {"corpus": "c"}},
        "encoders": {"e": {}},
        "objectives": {"mlm": {"mlm": 1}, "mlsm": {"mlsm": 1}, "mlsm+mlm": {"mlsm": 1, "mlm": 1}},
        "models": {
            "one": base | {"objective": "mlm", "steps": 10},
            "m": phase2 | {"objective": "mlm"},
            "s": phase2 | {"objective": "mlsm"},
            "j": phase2 | {"objective": "mlsm+mlm"},
        },
        "dictionaries": {"d": {"model": "one@10", "layer": 3}},
        "tasks": {
            "blimp": {"kind": "english-pairs"},
            "rte": labelled,
            "cola": labelled | {"metric": "mcc"},
            "cr": labelled | {"metric": "mcc"},
            "cr-lc": labelled | {"metric": "mcc"},
        },
        "probes": {
            "pll": {"kind": "minimal_pairs", "tasks": ["blimp"]},
            "glue": {"kind": "finetune", "tasks": ["rte", "cola"]},
            "msgs": {"kind": "finetune", "tasks": ["cr", "cr-lc"]},
            "predict": {"kind": "prediction", "sentence": "A [MASK]."},
        },
        "studies": {
            "mlsm": {
                "panels": {"P": ["m", "s", "j"]},
                "extra": ["one"],
                "probes": {"pll": "all", "glue": ["m", "j"], "msgs": ["m", "s", "j"], "predict": ["m", "s"]},
                "sets": {
                    "blimp": ["blimp"],
                    "glue": ["rte", "cola"],
                    "msgs-control": ["cr"],
                    "msgs-ambiguous": ["cr-lc"],
                },
            }
        },
    }


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("figure1", [("predict", "m"), ("predict", "s")]),
        ("figure2", [("pll", "s"), ("pll", "j")]),
        ("figure3", [("pll", "one"), ("pll", "m"), ("pll", "s"), ("pll", "j")]),
        ("figure4", [("glue", "m"), ("glue", "j")]),
        ("figure5", [("msgs", "m"), ("msgs", "s"), ("msgs", "j")]),
        ("figure6", [("msgs", "m"), ("msgs", "j")]),
        ("table1", [("pll", "m"), ("pll", "s"), ("pll", "j")]),
        ("table1_full_width", [("pll", "m"), ("pll", "s"), ("pll", "j")]),
        ("table2", [("glue", "m"), ("glue", "j")]),
        ("table3", [("msgs", "m"), ("msgs", "s"), ("msgs", "j")]),
    ],
)
def test_needs_exactly_the_measured_models_of_the_right_probe(item, expected):
    assert needs("mlsm", item, load(raw())) == expected


def test_arguments_are_labels_metrics_and_starts():
    config = load(raw())
    assert arguments(config, config.studies["mlsm"]) == {
        "labels": {"one": "one", "m": "MLM", "s": "MLSM", "j": "MLSM+MLM"},
        "metrics": {"blimp": "accuracy", "rte": "accuracy", "cola": "mcc", "cr": "mcc", "cr-lc": "mcc"},
        "starts": {"P": "one@10"},
    }


def test_models_of_one_objective_in_one_panel_are_told_apart():
    text = raw()
    text["models"]["m2"] = text["models"]["m"]
    text["studies"]["mlsm"]["panels"]["P"] = ["m2", "m", "s", "j"]
    config = load(text)
    labels = arguments(config, config.studies["mlsm"])["labels"]
    assert (labels["m"], labels["m2"], labels["s"]) == ("MLM (m)", "MLM (m2)", "MLSM")
    # The first of them stands for the objective; it is not measured here.
    with pytest.raises(MaskLabError, match="no prediction probe of the study measures m2"):
        needs("mlsm", "figure1", config)


def test_a_study_may_carry_a_suffix():
    text = raw()
    text["studies"] = {"mlsm-tiny": text["studies"]["mlsm"], "other": text["studies"]["mlsm"]}
    assert needs("mlsm-tiny", "figure2", load(text)) == [("pll", "s"), ("pll", "j")]
    with pytest.raises(MaskLabError, match=r"studies\.other: no figures or tables of that name"):
        needs("other", "figure2", load(text))


def _without(key, value):
    def change(study):
        study[key] = value(study[key])

    return change


@pytest.mark.parametrize(
    ("item", "change", "said"),
    [
        ("figure9", lambda study: None, "no figure or table 'figure9'; allowed: figure1"),
        ("figure2", _without("panels", lambda p: {"P": ["m", "j"]}), "no panel has a model of objective MLSM;"),
        ("figure2", _without("panels", lambda p: {"P": ["s"], "Q": ["j"]}), "no single panel has .* MLSM and MLSM"),
        ("figure6", _without("panels", lambda p: {"P": ["m", "s"]}), "no panel has a model of objective MLSM.MLM"),
        ("table2", _without("sets", lambda s: {}), "needs a set 'glue'"),
        ("table2", _without("probes", lambda p: {"pll": "all"}), "needs a finetune probe"),
        ("table2", _without("sets", lambda s: {"glue": ["rte", "blimp"]}), "task 'blimp' of set 'glue' is in no fine"),
        ("figure2", _without("probes", lambda p: {"pll": ["m", "s"]}), "no minimal_pairs probe .* measures j"),
    ],
)
def test_what_is_missing_is_said_in_one_line(item, change, said):
    text = raw()
    change(text["studies"]["mlsm"])
    text["studies"]["mlsm"]["extra"] = ["one", "m", "s", "j"]  # so that every probe's models stay declared
    with pytest.raises(MaskLabError, match=said) as caught:
        needs("mlsm", item, load(text))
    assert "\n" not in str(caught.value)


def test_asking_imports_nothing_heavy():
    code = (
        "import sys, masklab.figures.needs; print([m for m in ('pandas', 'numpy', 'matplotlib') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
