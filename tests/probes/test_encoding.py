from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from masklab.errors import MaskLabError
from masklab.probes.goals import EVALUATION_TOKENS
from masklab.tasks.encoding import encode_split, fitting, longest_first, shuffled_batches, sorted_batches
from masklab.tokenizers import CLS, PAD, SEP


@pytest.mark.parametrize("max_length", [4, 5, 8, 9, 13, 30])
def test_truncation_equals_the_tokenizers_library(make_tokenizer, write_task, max_length):
    texts = ["cats run", "a dog sleeps near the old house", "birds", "the cats see a dog and the dog sees the cats"]
    rows = [(a, b, 0) for a in texts for b in texts]
    tokenizer = make_tokenizer()
    folder = write_task("pairs", rows, classes=2)
    split = encode_split(folder / "train.parquet", tokenizer, max_length)
    tokenizer.enable_truncation(max_length, strategy="longest_first")
    for row, (a, b, _) in enumerate(rows):
        wanted = tokenizer.encode(a, b).ids
        assert split.ids[row, : split.lengths[row]].tolist() == wanted


def test_single_sentences_are_truncated_and_padded(make_tokenizer, write_task):
    tokenizer = make_tokenizer()
    folder = write_task("single", [("cats run", None, 1), ("the dog sees the old house", None, 0)], classes=2)
    split = encode_split(folder / "train.parquet", tokenizer, 6)
    tokenizer.enable_truncation(6)
    tokenizer.enable_padding(pad_id=3, length=split.ids.shape[1])
    assert split.ids.tolist() == [tokenizer.encode(text).ids for text in ("cats run", "the dog sees the old house")]
    assert split.labels.tolist() == [1, 0]


def test_longest_first_keeps_the_budget():
    for a in range(9):
        for b in range(9):
            for budget in range(12):
                keep_a, keep_b = longest_first(a, b, budget)
                assert 0 <= keep_a <= a
                assert 0 <= keep_b <= b
                assert keep_a + keep_b == min(budget, a + b)


def test_batches_hold_every_row_once():
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 40, 1003)
    batches = shuffled_batches(lengths, 32, np.random.default_rng(1), 8)
    assert len(batches) == -(-1003 // 32)
    assert sorted(np.concatenate(batches)) == list(range(1003))
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    assert padded < 1.15 * lengths.sum()  # unsorted batches of 32 would be about 1.8
    batches = sorted_batches(lengths, 200)
    assert sorted(np.concatenate(batches)) == list(range(1003))
    assert all(len(batch) * lengths[batch].max() <= 200 for batch in batches)


@pytest.mark.parametrize("kind", [pa.list_(pa.uint16()), pa.large_list(pa.int32()), pa.list_(pa.int32(), 4)])
@pytest.mark.parametrize("max_length", [4, 5, 30])
def test_symbols_follow_the_special_tokens(tmp_path, kind, max_length):
    rng = np.random.default_rng(0)
    fixed = pa.types.is_fixed_size_list(kind)
    rows = [rng.integers(0, 9, 4 if fixed else rng.integers(0, 7)).tolist() for _ in range(40)]
    table = pa.table({"symbols": pa.array(rows, kind), "label": [row % 2 for row in range(40)]})
    pq.write_table(table, tmp_path / "train.parquet", row_group_size=7)
    split = encode_split(tmp_path / "train.parquet", None, max_length, vocab_size=14)
    assert split.labels.tolist() == table.column("label").to_pylist() and split.domains == {}
    assert split.ids.shape[1] == split.lengths.max() <= max_length
    for row, symbols in enumerate(rows):
        wanted = [CLS, *[symbol + 5 for symbol in symbols[: max_length - 2]], SEP]
        assert split.ids[row].tolist() == wanted + [PAD] * (split.ids.shape[1] - len(wanted))
        assert split.lengths[row] == len(wanted)


@pytest.mark.parametrize(
    "symbols, said",
    [
        ([[1, 2], [], [3, 9]], "row 3: symbol 9; the model has symbols 0 to 8"),
        ([[1], [-1, 2]], "row 2: symbol -1; the model has symbols 0 to 8"),
        ([[1], [4], None], "row 3: a symbol is missing"),
        ([[1], [4, None]], "row 2: a symbol is missing"),
    ],
)
def test_wrong_symbols_are_refused(tmp_path, symbols, said):
    path = tmp_path / "train.parquet"
    pq.write_table(pa.table({"symbols": pa.array(symbols, pa.list_(pa.int32())), "label": [0] * len(symbols)}), path)
    with pytest.raises(MaskLabError) as caught:
        encode_split(path, None, 8, vocab_size=14)
    assert str(caught.value) == f"{path}: {said}"


def test_texts_need_a_tokenizer_and_domains_are_complete(tmp_path, make_tokenizer):
    path = tmp_path / "test.parquet"
    table = pa.table({"text_a": ["cats", "dogs"], "text_b": pa.nulls(2, pa.string()), "label": [0, 1]})
    pq.write_table(table, path)
    with pytest.raises(MaskLabError, match="the model has no tokenizer"):
        encode_split(path, None, 8)
    pq.write_table(table.append_column("domain", pa.array(["A-D1", None])), path)
    with pytest.raises(MaskLabError, match="row 2: 'domain' is missing"):
        encode_split(path, make_tokenizer(), 8)


@pytest.mark.parametrize(("gib", "tokens"), [(8, 8192), (24, 24576), (80, 65536)])
def test_a_small_gpu_measures_fewer_tokens_at_once(gib, tokens, monkeypatch):
    """No key of a probe that is fine-tuned says how many: one that trains with a batch of 1 ran out of memory here."""
    found = SimpleNamespace(total_memory=gib << 30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: found)
    assert fitting(EVALUATION_TOKENS, "cuda") == fitting(EVALUATION_TOKENS, torch.device("cuda", 1)) == tokens
    assert fitting({"cpu": 1024, "cuda": 4096}, "cuda") == 4096 and fitting(EVALUATION_TOKENS, "cpu") == 1024
