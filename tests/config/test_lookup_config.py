"""Lookup tables and exact losses in the config: what fits, and one line for what does not."""

import copy

import pytest

from masklab.config import is_exact, load, overlay
from masklab.errors import MaskLabError

START = {"corpus": "c", "tokenizer": "symbols", "objective": "mlm"}
CONFIG = {
    "chains": {"c": {"synsets": 50}},
    "corpora": {"c": {"kind": "markov", "chains": "c", "distributional": True, "length": 32}},
    "tokenizers": {"symbols": {"kind": "symbols", "corpus": "c", "max_length": 34}},
    "encoders": {"e": {"layers": 1, "hidden": 32, "heads": 2}, "table": {"kind": "lookup"}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {
        "mlm": START | {"encoder": "e", "steps": 10, "masking": {"mask": 0.8}},
        "table": START | {"encoder": "table", "steps": 0},
    },
    "tasks": {"p": {"kind": "patterns", "chains": "c"}},
    "probes": {
        "loss": {"kind": "loss", "masks": "one"},
        "plain": {"kind": "loss", "floor": False},
        "finetune": {"kind": "finetune", "tasks": ["p"]},
        "linear": {"kind": "linear_probe", "tasks": ["p"]},
    },
    "studies": {"s": {"panels": {"all": ["mlm", "table"]}, "probes": {"loss": "all", "linear": "all"}}},
}


def test_exact_where_one_mask_meets_known_conditionals():
    config = load(CONFIG)  # although the model's own masks have no exact floor
    assert is_exact(config, "loss", "mlm") and is_exact(config, "loss", "table")
    assert not is_exact(config, "plain", "mlm") and not is_exact(config, "linear", "mlm")
    multi = {"chains": {"c": {"features": "multi"}}, "studies": {"s": {"panels": {"all": ["mlm"]}}}}
    raw = overlay(copy.deepcopy(CONFIG), multi)
    del raw["models"]["table"]
    assert not is_exact(load(raw), "loss", "mlm")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"models": {"table": {"steps": 5}}}, "models.table.steps: a lookup table is not trained; set steps: 0"),
        ({"models": {"table": {"init": "mlm@10"}}}, "models.table: a lookup table takes no init"),
        ({"chains": {"c": {"features": "multi"}}}, "models.table.corpus: a lookup table needs a corpus with exact"),
        (
            {"studies": {"s": {"probes": {"finetune": "all"}}}},
            "'table' is a lookup table, which finetune probes cannot",
        ),
        ({"studies": {"s": {"probes": {"plain": ["table"]}}}}, "lookup table 'table' needs masks: one and floor: true"),
        ({"probes": {"linear": {"pooling": "cls"}}}, "the lookup table 'table' has no [CLS]; use pooling: concat"),
        ({"dictionaries": {"d": {"model": "table@0", "layer": 0}}}, "dictionaries.d.model: a lookup table has no hid"),
        ({"probes": {"loss": {"masks": "two"}}}, "probes.loss.masks: must be one of training, one (got 'two')"),
    ],
)
def test_what_does_not_fit_is_one_line(change, said):
    with pytest.raises(MaskLabError) as caught:
        load(overlay(CONFIG, change))
    assert said in str(caught.value)
