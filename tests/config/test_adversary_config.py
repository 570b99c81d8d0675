"""An adversarial objective in the config: its task, and one line for what does not fit."""

import pytest

from masklab.config import load, overlay
from masklab.errors import MaskLabError

CONFIG = {
    "chains": {"c": {"synsets": 50}, "other": {"synsets": 50}},
    "corpora": {"c": {"kind": "markov", "chains": "c", "distributional": True, "length": 32}},
    "tokenizers": {"symbols": {"kind": "symbols", "corpus": "c", "max_length": 34}},
    "encoders": {"e": {"layers": 1, "hidden": 32, "heads": 2}},
    "objectives": {"foe": {"mlm": 1, "adversarial": 0.1, "adversary": {"task": "p"}}},
    "models": {"m": {"corpus": "c", "tokenizer": "symbols", "encoder": "e", "objective": "foe", "steps": 10}},
    "tasks": {"p": {"kind": "patterns", "chains": "c"}, "pairs": {"kind": "english-pairs"}},
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"objectives": {"foe": {"adversary": None}}}, "objectives.foe: adversarial (above 0) and adversary"),
        ({"objectives": {"foe": {"adversarial": 0}}}, "objectives.foe: adversarial (above 0) and adversary"),
        ({"objectives": {"foe": {"mlm": 0}}}, "objectives.foe: at least one of mlm"),
        ({"objectives": {"foe": {"adversary": {"task": "q"}}}}, "objectives.foe.adversary.task: 'q' is not declared"),
        ({"objectives": {"foe": {"adversary": {"task": "pairs"}}}}, "'pairs' is a task of pairs; it must have labels"),
        (
            {"objectives": {"foe": {"adversary": {"query": 0}}}},
            "objectives.foe.adversary.query: must be at least 1 (got 0)",
        ),
        (
            {"tasks": {"p": {"chains": "other"}}},
            "models.m.objective: the task 'p' of objective 'foe' is of another law",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(change, said):
    assert load(CONFIG).objectives["foe"].adversary.ridge == 1e-3
    with pytest.raises(MaskLabError) as caught:
        load(overlay(CONFIG, change))
    assert said in str(caught.value)
