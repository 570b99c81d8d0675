import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer, models

from masklab import texts, token_writer
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
    monkeypatch.setattr(texts, "ROWS", chunk)
    expected = [naive(tokenizer, text, 20) for text in TEXTS]
    truncated = sum(len(naive(tokenizer, text, 10**6)) > 20 for text in TEXTS)
    calls = []
    counts = write_tokens(TEXTS, tokenizer, 20, tmp_path, "train", lambda done, total: calls.append((done, total)))
    store = TokenStore(tmp_path, "train")
    assert len(store) == len(TEXTS) and calls[-1] == (len(TEXTS), len(TEXTS))
    assert store.lengths.tolist() == [len(row) for row in expected] and store.lengths.dtype == np.int32
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
    for name, given in {
        "list": TEXTS,
        "arrow": pa.chunked_array([TEXTS[:50], TEXTS[50:]]),
        "lazy": iter(TEXTS),
    }.items():
        write_tokens(given, tokenizer, 20, tmp_path / name, "train")
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


def test_shards_read_as_one(tokenizer, tmp_path, monkeypatch):
    write_tokens(TEXTS, tokenizer, 20, tmp_path / "one", "train")
    monkeypatch.setattr(texts, "ROWS", 9)
    monkeypatch.setattr(token_writer, "SHARD", 300)
    write_tokens(TEXTS, tokenizer, 20, tmp_path / "many", "train")
    one, many = TokenStore(tmp_path / "one", "train"), TokenStore(tmp_path / "many", "train")
    files = sorted(path.name for path in (tmp_path / "many").glob("train.ids*"))
    assert len(files) > 4 and len(many.ids) == len(one.ids)
    rows = generator(1, "rows").permutation(len(TEXTS))
    for ours, theirs in zip(many.batch(rows), one.batch(rows), strict=True):
        assert ours.equal(theirs)
    assert (many.counts(36) == one.counts(36)).all()
    assert (many.ids[250:1000] == one.ids[250:1000]).all() and (many.ids[:] == one.ids[:]).all()
    for size in (100, 10**6):
        joined = list(many.blocks(size))
        assert (np.concatenate([ids for _, ids, _ in joined]) == one.ids).all()
        assert all(offsets[0] == begin and len(ids) == offsets[-1] - begin for begin, ids, offsets in joined)
    write_tokens(TEXTS[:5], tokenizer, 20, tmp_path / "many", "train")  # fewer shards: those of before are gone
    assert sorted(path.name for path in (tmp_path / "many").glob("train.ids*")) == ["train.ids.npy"]
    assert len(TokenStore(tmp_path / "many", "train")) == 5


@pytest.mark.parametrize("threads", [1, 3])
def test_parquet_files_and_threads_give_the_same_arrays(tokenizer, tmp_path, monkeypatch, threads):
    write_tokens(TEXTS, tokenizer, 20, tmp_path / "list", "train")
    monkeypatch.setattr(texts, "ROWS", 11)
    pq.write_table(pa.table({"text": TEXTS}), tmp_path / "texts.parquet", row_group_size=50)
    source = texts.TextFile(tmp_path / "texts.parquet")
    write_tokens(source, tokenizer, 20, tmp_path / "file", "train", threads=threads)
    for name in ("train.ids.npy", "train.offsets.npy"):
        assert (tmp_path / "file" / name).read_bytes() == (tmp_path / "list" / name).read_bytes()
    assert [text for piece in source.pieces(117) for text in piece.to_pylist()] == TEXTS[117:]
    rows = np.array([0, 10, 11, 49, 50, 201])
    assert source.take(rows) == [TEXTS[row] for row in rows] and list(source) == TEXTS
