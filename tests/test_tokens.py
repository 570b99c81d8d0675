import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer, models

from masklab import tokens
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.rng import generator
from masklab.subwords import train
from masklab.tokenizers import CLS, MASK, PAD, SEP, UNK
from masklab.tokens import TokenStore, write_tokens


def sentences(count):
    stream = generator(1, "sentences")
    words = ["the", "dog", "sees", "a", "cat", "in", "big", "gardens", "and", "runs", "away", "quickly"]
    return [" ".join(stream.choice(words, stream.integers(0, 15))) for _ in range(count)]


TEXTS = [*sentences(200), "", "the dog " * 40]


@pytest.fixture(scope="module")
def tokenizer():
    return train(TEXTS, 36)


def naive(tokenizer, text, max_length):
    """[CLS] tokens [SEP] of one text, one token at a time."""
    ids = []
    for word in text.split(" "):
        ids += tokenizer.encode(word, add_special_tokens=False).ids if word else []
    return [CLS, *ids[: max_length - 2], SEP]


@pytest.mark.parametrize("chunk", [7, 1000])
def test_round_trip(tokenizer, tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(tokens, "CHUNK", chunk)
    expected = [naive(tokenizer, text, 20) for text in TEXTS]
    truncated = sum(len(naive(tokenizer, text, 10**6)) > 20 for text in TEXTS)
    calls = []
    counts = write_tokens(TEXTS, tokenizer, 20, tmp_path, "train", lambda done, total: calls.append((done, total)))
    store = TokenStore(tmp_path, "train")
    assert len(store) == len(TEXTS) and calls[-1] == (len(TEXTS), len(TEXTS))
    assert store.lengths.tolist() == [len(row) for row in expected] and store.lengths.dtype == np.int64
    assert store.ids.dtype == np.uint16 and store.offsets.dtype == np.int64
    assert 0 < truncated < len(TEXTS)
    assert counts == {
        "sequences": len(TEXTS),
        "tokens": sum(map(len, expected)) - 2 * len(TEXTS),
        "truncated": truncated,
    }
    rows = generator(1, "rows").permutation(len(TEXTS))
    ids, lengths = store.batch(rows)
    assert lengths.tolist() == [len(expected[row]) for row in rows]
    assert ids.shape == (len(rows), max(map(len, expected)))
    for row, line in zip(rows, ids.tolist(), strict=True):
        assert line == expected[row] + [PAD] * (ids.shape[1] - len(expected[row]))


def test_special_tokens_spelled_in_text_become_unknown(tokenizer, tmp_path):
    write_tokens(["a [SEP] cat", "a [MASK]"], tokenizer, 50, tmp_path, "train")
    ids = TokenStore(tmp_path, "train").ids.tolist()
    plain = [i for text in ("a [SEP] cat", "a [MASK]") for i in tokenizer.encode(text, add_special_tokens=False).ids]
    assert SEP in plain and MASK in plain
    assert ids == [UNK if i in (SEP, MASK) else i for i in plain]


def test_flat_positions(tokenizer, tmp_path):
    write_tokens(TEXTS, tokenizer, 20, tmp_path, "train")
    store = TokenStore(tmp_path, "train")
    rows = np.array([5, 0, 201, 17, 5])
    ids, lengths = store.batch(rows)
    row_index, column = zip(*((b, t) for b in range(5) for t in range(1, int(lengths[b]) - 1)), strict=True)
    positions = store.flat(rows, np.array(row_index), np.array(column))
    assert store.ids[positions].tolist() == [int(ids[b, t]) for b, t in zip(row_index, column, strict=True)]
    assert positions.min() == 0  # row 0 is among them, and its first token is the store's


def test_only_empty_rows(tokenizer, tmp_path):
    write_tokens(["", ""], tokenizer, 20, tmp_path, "train")
    ids, lengths = TokenStore(tmp_path, "train").batch(np.array([1, 0]))
    assert ids.tolist() == [[CLS, SEP]] * 2 and lengths.tolist() == [2, 2]


def test_arrow_columns_and_iterators_give_the_same_arrays(tokenizer, tmp_path):
    for name, texts in {
        "list": TEXTS,
        "arrow": pa.chunked_array([TEXTS[:50], TEXTS[50:]]),
        "lazy": iter(TEXTS),
    }.items():
        write_tokens(texts, tokenizer, 20, tmp_path / name, "train")
    expected = (tmp_path / "list/train.ids.npy").read_bytes()
    assert all((tmp_path / name / "train.ids.npy").read_bytes() == expected for name in ("arrow", "lazy"))


def test_wide_vocabulary_is_stored_in_32_bits(tmp_path):
    vocabulary = {f"w{i}": i for i in range(70000)}
    wide = Tokenizer(models.WordLevel(vocabulary, unk_token="w2"))
    write_tokens(["w69999", "w5"], wide, 8, tmp_path, "train")
    store = TokenStore(tmp_path, "train")
    assert store.ids.dtype == np.int32 and store.ids.tolist() == [69999, 5]


def test_meta_gathers_splits_of_one_setting(tokenizer, tmp_path):
    write_tokens(TEXTS, tokenizer, 20, tmp_path, "train")
    write_tokens(TEXTS[:3], tokenizer, 20, tmp_path, "valid")
    meta = read_json(tmp_path / "meta.json")
    assert (meta["vocab_size"], meta["max_length"]) == (tokenizer.get_vocab_size(), 20)
    assert {split: counts["sequences"] for split, counts in meta["splits"].items()} == {"train": len(TEXTS), "valid": 3}
    write_tokens(TEXTS[:3], tokenizer, 30, tmp_path, "valid")
    assert list(read_json(tmp_path / "meta.json")["splits"]) == ["valid"]


def test_failed_write_leaves_the_old_arrays(tokenizer, tmp_path):
    write_tokens(TEXTS, tokenizer, 20, tmp_path, "train")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def broken():
        yield "the dog"
        raise RuntimeError("disk gone")

    with pytest.raises(RuntimeError):
        write_tokens(broken(), tokenizer, 20, tmp_path, "train")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_store_errors(tokenizer, tmp_path):
    with pytest.raises(MaskLabError, match=r"train\.ids\.npy: no such file"):
        TokenStore(tmp_path, "train")
    write_tokens(TEXTS, tokenizer, 20, tmp_path, "train")
    np.save(tmp_path / "train.ids.npy", np.zeros(3, np.uint16))
    with pytest.raises(MaskLabError, match="3 tokens, but its offsets end at"):
        TokenStore(tmp_path, "train")
