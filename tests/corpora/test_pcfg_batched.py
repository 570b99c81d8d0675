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


@pytest.mark.parametrize("length", [1, 2, 5, 9])
@pytest.mark.parametrize("grammar", [Grammar(levels=[3, 5, 2], emissions=110), RECURSIVE], ids=["odd", "recursive"])
def test_numbers_of_a_sentence_are_counted(grammar, length):
    """Two charts, conditionals twice, and the widest step: its cells, and both sides of each split there and back."""
    law = Law(parse_rules(grammar, "test") if isinstance(grammar, str) else draw_rules(grammar, 1))
    plan, tables = law.plan(length), law.tables
    charts = sum(int(tables.rows[group]) for group, _, _ in plan.spans) + int(tables.rows.sum())  # and an empty span
    steps = {}
    for offset, group, begin, end in plan.jobs.tolist():
        width = next(w for (g, _, w), at in plan.spans.items() if at == offset and g == group)
        steps.setdefault((group, width), []).append(end - begin)
    widest = 0
    for (group, _), splits in steps.items():
        height = int(tables.heights[group])
        widest = max(widest, len(splits) * (height**2 + 4 * max(splits) * height))
    layout = BatchedLaw(law, "cpu")._layout(length)
    assert layout.numbers == 2 * charts + widest + 2 * length * law.symbols


def test_a_batch_holds_as_many_sentences_as_fit_and_names_the_bad_one(monkeypatch):
    law = Law(parse_rules("S A B 1\nA a 1\nB b 1\n", "test"))
    batched, sizes = BatchedLaw(law, "cpu"), []
    monkeypatch.setattr(batched, "_part", lambda words, layout: sizes.append(len(words)) or part(words, layout))
    part = BatchedLaw._part.__get__(batched)
    monkeypatch.setattr(batched_law, "NUMBERS", 3 * batched._layout(2).numbers + 1)
    good = [[0, 1]] * 8
    assert batched.conditionals(good, [2] * 8).shape == (8, 2, 2) and sizes == [3, 3, 2]
    with pytest.raises(MaskLabError, match="sequence 4: impossible"):
        batched.conditionals([*good[:4], [1, 0], *good[:2]], [2] * 7)
    sizes.clear()
    monkeypatch.setattr(batched_law, "NUMBERS", 1)
    batched.conditionals(good[:2], [2] * 2)
    assert sizes == [1, 1]
    padded = batched.conditionals([[0, 1, 1]], [2])
    assert padded[0].tolist() == [[1, 0], [0, 1], [0, 0]] and padded.dtype == torch.float64
