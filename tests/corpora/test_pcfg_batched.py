"""The pass in torch against the compiled one."""

import numpy as np
import pytest
import torch

from masklab.config.schema import Grammar
from masklab.corpora.pcfg import batched_law
from masklab.corpora.pcfg.batched_law import BatchedLaw
from masklab.corpora.pcfg.law import Law
from masklab.corpora.pcfg.read import parse_rules
from masklab.corpora.pcfg.rules import draw_rules
from masklab.corpora.pcfg.sample import sample
from masklab.errors import MaskLabError

RECURSIVE = "S S1 .5\nS S2 .5\nS1 A S2 .6\nS1 A A .4\nS2 A B 1\nA A B .3\nA a .5\nA b .2\nB B B .25\nB b .4\nB c .35\n"
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "grammar", [Grammar(), Grammar(levels=[3, 5, 2], emissions=110), RECURSIVE], ids=["default", "odd", "recursive"]
)
def test_it_equals_the_compiled_pass(grammar, device, monkeypatch):
    law = Law(parse_rules(grammar, "test") if isinstance(grammar, str) else draw_rules(grammar, 1))
    words, lengths = sample(law.rules, 60, 1, "batched", max_length=32 if law.rules.longest() else 9)
    wanted = law.conditionals(words, lengths)
    found = BatchedLaw(law, device).conditionals(words, lengths)
    assert found.device.type == device and np.abs(found.cpu().numpy() - wanted).max() < 1e-11
    monkeypatch.setattr(batched_law, "NUMBERS", 1)  # one sentence at a time
    again = BatchedLaw(law, device).conditionals(words[:8], lengths[:8])
    assert np.abs(again.cpu().numpy() - wanted[:8]).max() < 1e-11
    single = BatchedLaw(law, device, torch.float32).conditionals(words[:8], lengths[:8])
    assert single.dtype == torch.float32 and np.abs(single.cpu().numpy() - wanted[:8]).max() < 1e-4


def test_impossible_sequences_are_refused():
    law = BatchedLaw(Law(parse_rules("S A B 1\nA a 1\nB b 1\n", "test")), "cpu")
    with pytest.raises(MaskLabError, match="sequence 1: impossible"):
        law.conditionals([[0, 1], [1, 1]], [2, 2])
