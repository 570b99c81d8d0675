"""Texts of tasks as ids: those of the token arrays, among which no special token is, whatever a text spells."""

import numpy as np
import pytest

from masklab.subwords import train
from masklab.tasks.encoding import around_hole, content_ends, content_ids
from masklab.tokenizers import MASK, UNK
from masklab.tokens import TokenStore, write_tokens

TEXTS = ["the dog <pad> [ CLS ]", "a [MASK] sees", "a [SEP]b", "<PAD> [mask] x [CLS]", "<unk>", "", "a dog sees"]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
def test_what_spells_a_special_token_is_unknown_as_in_pre_training(kind, lowercase, tmp_path):
    tokenizer = train([*TEXTS, "[MASK]", "<pad>", "[SEP]"] * 30, 150, kind, lowercase)
    found = content_ids(tokenizer, TEXTS)
    assert all(token > MASK or token == UNK for ids in found for token in ids)
    assert list(map(len, found)) == list(map(len, content_ends(tokenizer, TEXTS)))
    write_tokens(TEXTS, tokenizer, 50, tmp_path, "train")
    ids, lengths = TokenStore(tmp_path, "train").batch(np.arange(len(TEXTS)))
    assert found == [row[1 : n - 1].tolist() for row, n in zip(ids, lengths, strict=True)]


@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
def test_blanks_behind_a_missing_word(kind):
    """A sentence written as a block of YAML ends in a line ending; a no-break space may stand before a space."""
    tokenizer = train(["the dog sees a cat ."] * 30, 150, kind)
    plain = around_hole(tokenizer, [("the ", ""), ("the ", "."), ("the ", " sees a cat .")])
    assert around_hole(tokenizer, [("the ", "\n"), ("the ", ".\n"), ("the ", " sees a cat . \r\n")]) == plain
    [(_, after)] = around_hole(tokenizer, [("the ", "\xa0 dog")])
    assert after[-1:] == content_ids(tokenizer, [" dog"])[0]
    assert around_hole(tokenizer, []) == []
