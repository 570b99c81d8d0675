"""The tokenizer of a Hugging Face folder cuts every text as it did; only their numbers are ours."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import transformers

sys.path.insert(0, str(Path(__file__).parent / "models"))
from test_adopt import NAMES, trained

from masklab.foreign_tokenizers import renumbered
from masklab.tokenizers import SPECIALS, load_tokenizer, save_tokenizer
from masklab.tokens import TokenStore, write_tokens

LINES = [f"the old cat number {n} sees dogs far from here, today a teacher runs" for n in range(50)]
TEXTS = ["The old cat sees a dog today.", " two  spaces, and a tab\t.", "zzz café", ""]


@pytest.mark.parametrize("kind", ["word pieces", "byte pairs", "unigram"])
def test_the_pieces_of_a_text_are_the_same(kind, tmp_path):
    theirs = trained(kind, LINES)
    theirs.save_pretrained(tmp_path / "theirs")
    ours, order = renumbered(tmp_path / "theirs")
    assert sorted(order) == list(range(len(theirs))) and [ours.id_to_token(n) for n in range(5)] == list(SPECIALS)
    save_tokenizer(ours, tmp_path / "ours", 32)
    read = load_tokenizer(tmp_path / "ours")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")
    for text in TEXTS + LINES[:3]:
        ids = read.encode(text, add_special_tokens=False).ids
        assert [order[index] for index in ids] == theirs(text, add_special_tokens=False)["input_ids"]
        assert again(text)["input_ids"] == [0, *ids, 1]
    write_tokens(TEXTS, read, 32, tmp_path / "tokens", "train")
    store = TokenStore(tmp_path / "tokens", "train")
    ids, lengths = store.batch(np.arange(1))
    assert [order[index] for index in ids[0, 1 : lengths[0] - 1].tolist()] == theirs(
        TEXTS[0], add_special_tokens=False
    )["input_ids"]


def test_a_text_that_names_the_hole_keeps_it(tmp_path):
    trained("word pieces", LINES).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["mask_token"] == NAMES["mask_token"]
    ours, _ = renumbered(tmp_path)
    assert ours.encode("the [MASK] runs").ids[2] == SPECIALS.index("[MASK]")
