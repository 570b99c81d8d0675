import random

import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from masklab import wordwise
from masklab.subwords import train
from masklab.tokenizers import load_tokenizer, save_tokenizer, symbol_tokenizer
from masklab.wordwise import Wordwise, applies

ALPHABET = [
    " ", "  ", "a", "the", "dog", "``", "'", "''", "\u2581", "[SEP]", "[MASK]", "<unk>", "\t", "\u00a0", "é", "e\u0301",
    "Σ", "İ", "ß", ".", ",", "\u3000", "\n", "\r", "\U0001f600", "[", "x", "\u200b", "\uff0c", "3",
]  # fmt: skip


def texts(count, seed=1, most=12):
    stream = random.Random(seed)
    return ["".join(stream.choice(ALPHABET) for _ in range(stream.randint(0, most))) for _ in range(count)]


def rows(tokenizer, given):
    return [row.ids for row in tokenizer.encode_batch_fast(given, add_special_tokens=False)]


def as_rows(found):
    ids, counts = found
    ends = counts.cumsum()
    return [ids[end - count : end].tolist() for end, count in zip(ends, counts, strict=True)]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", ["unigram", "bpe", "wordpiece"])
def test_equals_the_library_on_anything(kind, lowercase, tmp_path):
    save_tokenizer(train(["the dog sees a cat", *texts(300)], 200, kind, lowercase), tmp_path, 64)
    tokenizer = load_tokenizer(tmp_path)
    assert applies(tokenizer)
    fast = Wordwise(tokenizer)
    for seed in (2, 3):  # the second time words are known
        given = [*texts(3000, seed), "", " ", "   ", "\u2581", " \u2581a", "a [MASK]  b"]
        expected = rows(tokenizer, given)
        assert as_rows(fast.encode(pa.array(given))) == expected
        assert as_rows(fast.encode(pa.array(given).slice(17, 40))) == expected[17:57]
    assert as_rows(fast.encode(pa.array([], pa.string()))) == []
    assert as_rows(fast.encode(pa.array(["", ""]))) == [[], []]


def test_words_are_forgotten_when_there_are_too_many(monkeypatch):
    tokenizer = train(["the dog sees a cat", *texts(300)], 200)
    monkeypatch.setattr(wordwise, "KNOWN", 50)
    fast = Wordwise(tokenizer)
    for seed in range(5):
        given = texts(100, seed)
        assert as_rows(fast.encode(pa.array(given))) == rows(tokenizer, given)
        assert len(fast.slots) < 600


def test_symbols_are_words():
    tokenizer = symbol_tokenizer([f"s{i}" for i in range(9)])
    assert applies(tokenizer)
    given = ["s1 s2  s3", "", "s8 unknown"]
    assert as_rows(Wordwise(tokenizer).encode(pa.array(given))) == rows(tokenizer, given)


def test_tokenizers_that_look_beyond_words_are_left_to_the_library():
    def plain():
        made = Tokenizer(models.WordLevel({"<unk>": 0, "[SEP]": 1}, "<unk>"))
        made.add_special_tokens(["<unk>", "[SEP]"])
        return made

    found = {}
    for name, (normaliser, splitter) in {
        "whole": (None, None),
        "compatibility": (normalizers.NFKC(), pre_tokenizers.WhitespaceSplit()),
        "across spaces": (normalizers.Replace("a b", "c"), pre_tokenizers.WhitespaceSplit()),
        "only first": (None, pre_tokenizers.Metaspace(prepend_scheme="first")),
        "bytes": (None, pre_tokenizers.ByteLevel()),
        "words": (normalizers.Lowercase(), pre_tokenizers.WhitespaceSplit()),
    }.items():
        tokenizer = plain()
        if normaliser:
            tokenizer.normalizer = normaliser
        if splitter:
            tokenizer.pre_tokenizer = splitter
        found[name] = applies(tokenizer)
    assert [name for name, yes in found.items() if yes] == ["words"]
    assert Wordwise(tokenizer).between == ("[SEP]", 1)  # not <unk>, which other words are encoded as
    for model in (models.BPE({"[SEP]": 0}, [], dropout=0.1), models.WordLevel({"<unk>": 0}, "<unk>")):
        other = Tokenizer(model)
        other.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        other.add_special_tokens(["[SEP]"] if other.token_to_id("<unk>") is None else ["<unk>"])
        assert not applies(other)
