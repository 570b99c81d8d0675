import numpy as np
import pytest

from masklab.probes.encoding import encode_split, longest_first, shuffled_batches, sorted_batches


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
    batches = shuffled_batches(lengths, 32, np.random.default_rng(1))
    assert len(batches) == -(-1003 // 32)
    assert sorted(np.concatenate(batches)) == list(range(1003))
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    assert padded < 1.15 * lengths.sum()  # unsorted batches of 32 would be about 1.8
    batches = sorted_batches(lengths, 200)
    assert sorted(np.concatenate(batches)) == list(range(1003))
    assert all(len(batch) * lengths[batch].max() <= 200 for batch in batches)
