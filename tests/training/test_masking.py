import numpy as np
import pytest

from masklab.config.schema import Masking
from masklab.masking import mask_batch, maskable, masked_count
from masklab.tokenizers import MASK


def batch(lengths, vocab=50, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.full((len(lengths), max(lengths)), 3)
    for row, length in enumerate(lengths):
        ids[row, :length] = [0, *rng.integers(5, vocab, length - 2), 1]
    return ids, np.array(lengths)


def test_floor_count_is_exact_and_specials_are_never_hidden():
    ids, lengths = batch([40, 20, 7, 6, 3, 2, 27])
    corrupted, rows, columns = mask_batch(ids, lengths, Masking(), 50, np.random.default_rng(1))
    assert np.bincount(rows, minlength=7).tolist() == [6, 3, 1, 0, 0, 0, 4] == masked_count(lengths, Masking()).tolist()
    assert ((columns >= 1) & (columns < lengths[rows] - 1)).all()
    assert (corrupted[rows, columns] == MASK).all()
    untouched = np.ones_like(ids, bool)
    untouched[rows, columns] = False
    assert (corrupted[untouched] == ids[untouched]).all()
    assert maskable(lengths, Masking()).tolist() == [True, True, True, False, False, False, True]


def test_count_one_hides_exactly_one_token_of_each_sequence_all_equally_likely():
    lengths = [3, 4, 7, 40] * 3000
    ids, lengths = batch(lengths)
    masking = Masking(count="one", rate=0.9)
    corrupted, rows, columns = mask_batch(ids, lengths, masking, 50, np.random.default_rng(1))
    assert rows.tolist() == list(range(len(lengths))) and (masked_count(lengths, masking) == 1).all()
    assert ((columns >= 1) & (columns < lengths - 1)).all()
    assert ((corrupted != ids).sum(1) == (ids[rows, columns] != MASK)).all()
    for length in (4, 7, 40):
        counts = np.bincount(columns[lengths == length], minlength=length)[1 : length - 1]
        expected = 3000 / (length - 2)
        assert abs(counts - expected).max() < 4.5 * np.sqrt(expected)
    assert maskable(np.array([2, 3, 4]), masking).tolist() == [False, True, True]


def test_every_inner_position_is_equally_likely():
    ids, lengths = batch([22] * 4000)
    _, _, columns = mask_batch(ids, lengths, Masking(), 50, np.random.default_rng(2))
    counts = np.bincount(columns, minlength=22)[1:21]
    expected = 4000 * 3 / 20
    assert abs(counts - expected).max() < 4.5 * np.sqrt(expected * (1 - 3 / 20))


def test_bernoulli_rate_within_four_standard_errors():
    ids, lengths = batch([22] * 4000)
    _, rows, _ = mask_batch(ids, lengths, Masking(count="bernoulli"), 50, np.random.default_rng(3))
    n = 4000 * 20
    assert abs(len(rows) - 0.15 * n) < 4 * np.sqrt(n * 0.15 * 0.85)


@pytest.mark.parametrize("mask,random", [(0.8, 0.1), (0.0, 1.0), (0.0, 0.0)])
def test_corruption_shares(mask, random):
    ids, lengths = batch([42] * 3000, vocab=5000)
    masking = Masking(mask=mask, random=random)
    corrupted, rows, columns = mask_batch(ids, lengths, masking, 5000, np.random.default_rng(4))
    shown, was = corrupted[rows, columns], ids[rows, columns]
    n = len(rows)
    for found, share in (((shown == MASK).sum(), mask), ((shown == was).sum(), 1 - mask - random)):
        assert abs(found - share * n) <= 4 * np.sqrt(n * share * (1 - share)) + n * random / 4995 * 3
    assert shown[(shown != MASK)].min(initial=5) >= 5


def test_rounded_counts_have_the_exact_mean_and_reach_special_tokens():
    """floor(rate x length + U): 76 or 77 of 512 as in the released code of MAE-LM; mean within 4 standard errors."""
    ids, lengths = batch([512] * 400 + [2] * 400)
    masking = Masking(count="rounded", specials=True)
    _, rows, columns = mask_batch(ids, lengths, masking, 50, np.random.default_rng(5))
    counts = np.bincount(rows, minlength=800)
    assert set(counts[:400]) == {76, 77} and abs(counts[:400].mean() - 76.8) < 4 * np.sqrt(0.8 * 0.2 / 400)
    assert set(counts[400:]) == {0, 1} and abs(counts[400:].mean() - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 400)
    ends = np.isin(columns[rows < 400], [0, 511]).sum()
    assert abs(ends - 800 * 0.15) < 4 * np.sqrt(800 * 0.15 * 0.85)
    inner = Masking(count="rounded")
    _, rows, columns = mask_batch(ids, lengths, inner, 50, np.random.default_rng(6))
    assert (rows < 400).all() and columns.min() >= 1 and columns.max() <= 510
    assert maskable(np.array([2, 3, 9]), inner).tolist() == [False, True, True]
