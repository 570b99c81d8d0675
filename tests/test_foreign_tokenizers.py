"""The tokenizer of a Hugging Face folder cuts every text as it did; only their numbers are ours."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers

sys.path.insert(0, str(Path(__file__).parent / "models"))
from test_adopt import NAMES, trained

from masklab.errors import MaskLabError
from masklab.foreign_tokenizers import renumbered
from masklab.tokenizers import SPECIALS, load_tokenizer, save_tokenizer, special_tokens
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


def test_each_role_needs_a_token_of_its_own(tmp_path):
    theirs = trained("word pieces", LINES)
    theirs.pad_token = "[SEP]"
    theirs.save_pretrained(tmp_path)
    with pytest.raises(MaskLabError, match=r"has '\[SEP\]' as sep_token and as pad_token; each needs its own token"):
        renumbered(tmp_path)
    theirs.add_special_tokens({"pad_token": "[NEW]"})
    theirs.save_pretrained(tmp_path)
    with pytest.raises(MaskLabError, match=r"its pad_token has the id (\d+); its model knows 0 to \d+"):
        renumbered(tmp_path, len(theirs) - 1)


def of_words(kind, words, folder):
    """A folder of transformers' with the special tokens [PAD], [UNK], [CLS], [SEP], [MASK] and then words."""
    every = [*NAMES.values(), *words]
    if kind == "unigram":
        tokenizer = Tokenizer(models.Unigram([(word, -1.0) for word in every], every.index("[UNK]"), False))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    else:
        tokenizer = Tokenizer(models.WordPiece({word: at for at, word in enumerate(every)}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **NAMES).save_pretrained(folder)


@pytest.mark.parametrize("spaces", [{}, {"split": False}, {"replacement": "_"}, {"prepend_scheme": "never"}])
def test_pieces_over_spaces_and_other_marks_are_saved_as_they_are(spaces, tmp_path):
    mark = spaces.get("replacement", "\u2581")
    pieces = [f"{mark}the", f"{mark}cat", f"{mark}the{mark}cat", mark, "the"]
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in [*SPECIALS, *pieces]], 2, False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(**spaces)
    tokenizer.add_special_tokens(special_tokens())
    save_tokenizer(tokenizer, tmp_path, 32)
    read = load_tokenizer(tmp_path)
    assert read.encode("the cat").ids == tokenizer.encode("the cat").ids
    assert read.pre_tokenizer.split == tokenizer.pre_tokenizer.split


@pytest.mark.parametrize("kind", ["word pieces", "unigram"])
def test_a_model_with_fewer_rows_than_its_tokenizer_has_tokens(kind, tmp_path):
    of_words(kind, ["\u2581the", "\u2581cat", "\u2581dog"], tmp_path)
    ours, order = renumbered(tmp_path, 7)
    assert len(order) == ours.get_vocab_size() == 7 and ours.token_to_id("\u2581cat") == 6
    assert ours.token_to_id("\u2581dog") is None


@pytest.mark.parametrize("kind", ["word pieces", "unigram"])
def test_a_word_that_has_the_name_of_one_of_our_special_tokens(kind, tmp_path):
    """Two tokens of one name: one of them would get the other's number."""
    of_words(kind, ["the", "<pad>"], tmp_path)
    with pytest.raises(MaskLabError, match="has a token '<pad>' that is not its pad_token"):
        renumbered(tmp_path)


@pytest.mark.parametrize("kind", ["word pieces", "unigram"])
def test_numbers_that_no_token_has(kind, tmp_path):
    """Behind them every token keeps its number, and there are as many tokens as numbers."""
    of_words(kind, ["\u2581the", "\u2581cat"], tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    if kind == "unigram":
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
        content["added_tokens"].append({"id": 10, "content": "\u2581dog"} | flags)
    else:
        content["model"]["vocab"]["\u2581dog"] = 10
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours, order = renumbered(tmp_path)
    assert len(order) == ours.get_vocab_size() == 1 + max(theirs.get_vocab().values())
    assert order[ours.token_to_id("\u2581dog")] == theirs.get_vocab()["\u2581dog"]
    text = "\u2581the \u2581dog \u2581cat"
    ids = ours.encode(text, add_special_tokens=False).ids
    assert [order[index] for index in ids] == theirs(text, add_special_tokens=False)["input_ids"]
