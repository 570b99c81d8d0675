"""The tasks on spans: what is drawn again, what the facts say."""

import numpy as np
import pytest

from masklab import symbols
from masklab.config.schema import Grammar, PcfgTask
from masklab.corpora.pcfg.law import Law
from masklab.corpora.pcfg.rules import draw_rules
from masklab.corpora.pcfg.sample import pad
from masklab.corpora.pcfg.span_scores import span_scores
from masklab.errors import MaskLabError
from masklab.tasks import build, write_task


def task(**keys):
    keys = {"grammar": Grammar(), "train": 600, "valid": 50, "test": 70, **keys}
    return PcfgTask(kind="pcfg", **keys)


@pytest.mark.parametrize("span,shortest", [(32, 5), (8, 8)])
def test_rows_and_facts(span, shortest, tmp_path):
    splits, facts = build(task(span=span), "t", 1)
    law = Law(draw_rules(Grammar(), 1))
    assert facts["names"] == law.rules.names and facts["labels"] == 50 and facts["metric"] == "accuracy"
    assert facts["rows"] == {"train": 600, "valid": 50, "test": 70}
    for split, table in splits.items():
        words, lengths = pad(*symbols.rows(table["symbols"]))
        labels = table["label"].to_numpy()
        assert lengths.min() >= shortest and lengths.max() <= 32
        assert (labels == span_scores(law, words, lengths, span, "marginal").argmax(1)).all()
        counts = np.bincount(labels)
        assert facts["majority"][split] == pytest.approx(counts.max() / counts.sum())
    assert facts["seen"] == len(np.unique(splits["train"]["label"])) >= 8
    assert 0 <= facts["unlabelled"] < 0.1
    write_task(tmp_path, splits, facts)
    assert symbols.read_header(tmp_path / "test.parquet")["names"] == law.rules.words


def test_sentences_without_a_label_are_drawn_again():
    splits, facts = build(task(span=8, reading="outside", train=200), "t", 1)
    assert facts["unlabelled"] > 0.2 and facts["rows"]["train"] == 200
    words, lengths = pad(*symbols.rows(splits["train"]["symbols"]))
    assert span_scores(Law(draw_rules(Grammar(), 1)), words, lengths, 8, "outside").any(1).all()


def test_splits_and_seeds_differ_names_do_not_matter():
    first, _ = build(task(), "t", 1)
    again, _ = build(task(), "u", 1)
    other, _ = build(task(seed=2), "t", 1)
    assert first["train"].equals(again["train"])
    assert not first["train"]["symbols"].equals(other["train"]["symbols"])
    assert not first["train"]["symbols"][:50].equals(first["valid"]["symbols"][:50])


def test_a_span_that_is_never_a_node_is_one_line():
    """Trees of four words are full ones: three words are no node."""
    grammar = Grammar(levels=[1, 1, 1], words=2, rules=1, emissions=2, stop=0)
    with pytest.raises(MaskLabError, match=r"tasks\.t\.span: only 0 of 20 sentences had a symbol over their first 3"):
        build(task(grammar=grammar, span=3, min_length=2, train=20), "t", 1)
