"""Symbols as tokens: the vocabulary, the arrays, the files that transformers reads."""

import numpy as np
import pyarrow as pa
import pytest

from masklab import symbols
from masklab.config.checks import MOST_WORDS
from masklab.config.schema import Chains, MarkovCorpus
from masklab.corpora import generate
from masklab.errors import MaskLabError
from masklab.files import read_json, write_table
from masklab.tokenizers import CLS, MASK, PAD, SEP, load_tokenizer, save_tokenizer, symbol_tokenizer
from masklab.tokens import TokenStore, write_symbol_tokens, write_tokens

MULTI = Chains(synsets=30, features="multi", vocabularies="shared")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """(table, its facts) of a corpus whose rows differ in length."""
    config = MarkovCorpus(kind="markov", chains=MULTI, distributional=True, sequences=200, valid=5, test=5, length=12)
    table = generate(config, "c", 1)["train"]
    path = tmp_path_factory.mktemp("corpus") / "train.parquet"
    write_table(table, path)
    return table, symbols.read_header(path)


@pytest.mark.parametrize("max_length", [100, 20])
def test_arrays_equal_those_of_the_text(corpus, tmp_path, max_length):
    """Written as words and tokenised, the same arrays and counts come out."""
    table, facts = corpus
    tokenizer = symbol_tokenizer(facts["names"])
    texts = [" ".join(facts["names"][s] for s in row) for row in table["symbols"].to_pylist()]
    expected = write_tokens(texts, tokenizer, max_length, tmp_path / "text", "train")
    size = tokenizer.get_vocab_size()
    found = write_symbol_tokens(table["symbols"], size, max_length, tmp_path / "symbols", "train", facts)
    assert found == expected and (found["truncated"] > 0) == (max_length == 20)
    ours, theirs = (TokenStore(tmp_path / kind, "train") for kind in ("symbols", "text"))
    assert (ours.ids == theirs.ids).all() and (ours.offsets == theirs.offsets).all() and ours.ids.dtype == np.uint16
    meta = read_json(tmp_path / "symbols" / "meta.json")
    assert meta["corpus"]["kind"] == "markov" and meta["vocab_size"] == 5 + len(facts["names"])
    ids, lengths = ours.batch([3, 5])
    assert (ids[:, 0] == CLS).all() and ids[0, lengths[0] - 1] == SEP and (ids == PAD).sum() == abs(np.diff(lengths))


def test_sliced_and_chunked_columns_are_read_right(corpus, tmp_path):
    table, facts = corpus
    part = table.slice(37, 50)
    write_symbol_tokens(part["symbols"], 5 + 30, 100, tmp_path, "train", facts)
    store = TokenStore(tmp_path, "train")
    wanted = [symbol + 5 for row in part["symbols"].to_pylist() for symbol in row]
    assert store.ids.tolist() == wanted
    with pytest.raises(MaskLabError, match=r"symbol 29 is not among the tokenizer's 20"):
        write_symbol_tokens(part["symbols"], 25, 100, tmp_path, "train", facts)


def test_transformers_reads_the_tokenizer(tmp_path):
    from transformers import AutoTokenizer

    save_tokenizer(symbol_tokenizer([f"{f}{i}" for f in "ab" for i in range(50)]), tmp_path, 34)
    ours, theirs = load_tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    text = "a0 b49 [MASK] a12 what"
    wanted = [CLS, 5, 5 + 99, MASK, 5 + 12, 2, SEP]
    assert ours.encode(text).ids == wanted == theirs(text)["input_ids"]
    assert theirs.vocab_size == 105 and theirs.mask_token_id == MASK and theirs.model_max_length == 34
    assert theirs.decode([5, 104]) == "a0 b49"


def test_names_must_differ():
    with pytest.raises(MaskLabError, match="same name"):
        symbol_tokenizer(["a", "b", "a"])


def test_a_config_may_ask_for_as_many_words_as_can_be_numbered():
    names = [f"w{number}" for number in range(MOST_WORDS)]
    assert len(symbols.with_header(pa.table({}), names).schema.metadata) > 0
    with pytest.raises(MaskLabError, match="can be numbered"):
        symbols.with_header(pa.table({}), [*names, "more"])


@pytest.mark.parametrize("value", [-1, 65536, 2**40])
def test_a_number_that_no_symbol_has_is_refused(value):
    """16 bits would make another symbol of it: of 65536 the first, 0."""
    with pytest.raises(MaskLabError, match=f"^symbol {value}: symbols are numbered from 0 to "):
        symbols.column(np.array([0, value]), [1, 1])


def test_the_last_numbers_of_16_bits_are_no_tokens(tmp_path):
    """Their token ids would wrap around to those of special tokens."""
    with pytest.raises(MaskLabError, match="symbol 65535 is not among the tokenizer's 2"):
        write_symbol_tokens(symbols.column([0, 65535], [1, 1]), 7, 8, tmp_path, "train")
