"""Grammars that are drawn until no label of their spans is too frequent."""

import numpy as np
import pytest

from masklab.config.schema import Grammar, PcfgTask
from masklab.corpora.pcfg import rules
from masklab.corpora.pcfg.read import parse_rules
from masklab.corpora.pcfg.rules import draw_rules
from masklab.errors import MaskLabError
from masklab.tasks import build

SMALL = {"levels": [3, 3, 3, 3], "words": 12, "rules": 4, "emissions": 8, "stop": 0.0}
SPANS = [8, 4]


def grammar(**more):
    return Grammar(**SMALL, **more)


def same(one, other):
    return all(np.array_equal(getattr(one, part), getattr(other, part)) for part in ("binary", "lexical", "start"))


def test_it_is_the_first_that_will_do():
    """Of twelve seeds some take the first grammar, and it is the one that is drawn without a limit; others another."""
    kept = [same(draw_rules(grammar(), seed), draw_rules(grammar(label_spans=SPANS), seed)) for seed in range(12)]
    assert 2 < sum(kept) < 12
    loose = grammar(label_spans=SPANS, label_share=1.0)
    assert all(same(draw_rules(grammar(), seed), draw_rules(loose, seed)) for seed in range(4))


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_tasks_of_these_spans_have_no_label_that_is_nearly_always_right(seed):
    """Up to .06, by which shares of 500 sentences and of 2,000 can differ by chance."""
    law = grammar(label_spans=SPANS, label_share=0.6)
    for span in SPANS:
        task = PcfgTask(kind="pcfg", grammar=law, span=span, train=10, valid=10, test=2000)
        _, facts = build(task, "t", seed)
        assert facts["majority"]["test"] <= 0.66


def test_a_limit_that_no_grammar_keeps_is_said(monkeypatch):
    monkeypatch.setattr(rules, "TRIES", 5)
    with pytest.raises(MaskLabError, match=r"of 5 drawn none gives at most 0.01 of the sentences .* first 8, 4 words"):
        draw_rules(grammar(label_spans=SPANS, label_share=0.01), 1)


def test_sentences_that_no_task_of_a_span_has_do_not_count():
    """Half of the sentences are two words, of another label than the first four words of the rest, which is one."""
    law = parse_rules("S S1 .5\nS S2 .5\nS1 A A 1\nA B B 1\nB C C 1\nS2 C C 1\nC c 1\n", "test")
    assert rules._most_frequent(law, [4]) == 1.0
    assert 0.4 < rules._most_frequent(law, [8]) < 0.6  # the longest sentence: all are labelled by their roots
