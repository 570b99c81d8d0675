import numpy as np
import pytest

from masklab.config.schema import Masking
from masklab.masking import FIRST_PIECE, Hidden, hide, leaving, mask_batch, maskable, masked_count
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


def test_fixed_counts_by_arithmetic():
    """floor(.15 x length) (one above a whole number but for rounding counts), and what must stay visible."""
    lengths = np.array([2, 3, 4, 7, 20, 40, 512])
    assert masked_count(lengths, Masking(rate=0.15)).tolist() == [0, 0, 0, 1, 3, 6, 76]
    assert masked_count(lengths, Masking(rate=0.99)).tolist() == [0, 1, 2, 5, 18, 38, 506]
    assert masked_count(lengths, Masking(rate=0.99, specials=True)).tolist() == [1, 2, 3, 6, 19, 39, 506]
    assert masked_count([3], Masking(rate=0.1, count="rounded"), np.array([0.69])).tolist() == [0]
    assert masked_count([3], Masking(rate=0.1, count="rounded"), np.array([0.71])).tolist() == [1]
    assert masked_count([10, 20], Masking(rate=0.29 + 0.01)).tolist() == [3, 6]
    assert maskable([2, 3], Masking(count="bernoulli")).tolist() == [False, True]


def test_masks_alone_need_no_further_draws():
    """A stream goes on after one draw per position, so that later batches see the same masks."""
    ids, lengths = batch([40, 20, 7])
    ours, theirs = np.random.default_rng(1), np.random.default_rng(1)
    mask_batch(ids, lengths, Masking(), 50, ours)
    theirs.random(ids.shape)
    assert ours.random() == theirs.random()


def test_random_tokens_are_all_others_but_special_ones_alike():
    ids, lengths = batch([42] * 2000, vocab=30)
    masking = Masking(mask=0.2, random=0.5)
    corrupted, rows, columns = mask_batch(ids, lengths, masking, 30, np.random.default_rng(7))
    shown, was = corrupted[rows, columns], ids[rows, columns]
    drawn = np.bincount(shown[(shown != MASK) & (shown != was)], minlength=30)[FIRST_PIECE:]
    expected = len(rows) * 0.5 / 25 * 24 / 25
    assert FIRST_PIECE == 5 and abs(drawn - expected).max() < 4.5 * np.sqrt(expected)
    assert abs((shown == MASK).mean() - 0.2) < 4 * np.sqrt(0.16 / len(rows))


def test_only_masks_leave_and_a_share_of_each_row_stays():
    """Of a row's m [MASK]s floor(delta m + U) stay: m (1 - delta) leave on average, each alike; other tokens never."""
    rng, rounds = np.random.default_rng(8), 4000
    shown = np.array([MASK, 9, MASK, MASK, MASK, MASK + 1, MASK, MASK, 9])
    rows = np.array([0, 0, 0, 2, 2, 2, 2, 2, 5])
    hidden = Hidden(rows, shown == MASK, None, None, rows, np.arange(len(rows)))
    gone = np.stack([leaving(hidden, 0.3, rng) for _ in range(rounds)])
    assert not gone[:, shown != MASK].any()
    share = gone[:, shown == MASK].mean(0)
    assert abs(share - 0.7).max() < 4.5 * np.sqrt(0.21 / rounds)
    for row, count in ((0, 2), (2, 4)):
        stay = count - gone[:, rows == row].sum(1)
        assert set(stay) == {np.floor(0.3 * count), np.floor(0.3 * count) + 1}
        assert abs(stay.mean() - 0.3 * count) < 4 * np.sqrt(0.25 / rounds)
    assert leaving(hidden, 0.0, rng).tolist() == (shown == MASK).tolist()
    assert not leaving(hidden, 1.0, rng).any()


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


MASKINGS = {
    "floor": Masking(),
    "one": Masking(count="one"),
    "bernoulli": Masking(count="bernoulli", rate=0.4),
    "rounded": Masking(count="rounded", rate=0.37, specials=True),
    "noise": Masking(count="bernoulli", rate=0.5, mask=0.6, random=0.2),
    "fixed noise": Masking(rate=0.5, mask=0.6, random=0.2),
}
PARTS = [[0], [6], [2, 3, 4], [0, 2, 3, 6], [1, 4, 6], [], [0, 1, 2, 3, 4, 5, 6]]


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("masking", MASKINGS.values(), ids=MASKINGS)
def test_some_rows_get_what_they_get_among_all(masking, part):
    """Tokens, places and what leaves, row by row; and the stream goes on as if all had been worked on."""
    ids, lengths = batch([12, 20, 7, 9, 31, 12, 8], vocab=40)
    ours, theirs = np.random.default_rng(3), np.random.default_rng(3)
    some = hide(lengths, ids.shape[1], masking, 40, ours, np.array(part, int))
    every = hide(lengths, ids.shape[1], masking, 40, theirs)
    np.testing.assert_array_equal(some.corrupt(ids[part]), every.corrupt(ids)[part])
    mine = np.isin(every.rows, part)
    np.testing.assert_array_equal(np.array(part, int)[some.rows], every.rows[mine])
    np.testing.assert_array_equal(some.columns, every.columns[mine])
    np.testing.assert_array_equal(some.all_rows, every.rows)
    np.testing.assert_array_equal(some.of(every.columns), every.columns[mine])
    for delta in (0.0, 0.4, 1.0):
        np.testing.assert_array_equal(leaving(some, delta, ours), leaving(every, delta, theirs)[mine])
    assert ours.random() == theirs.random()


def test_what_is_shown_of_a_hidden_token():
    """[MASK], another token, or itself; the least other token is the first that is not special."""
    ids = np.array([[0, 7, 8, 9, 1], [0, 5, 6, 1, 3]])
    rows, columns = np.array([0, 0, 1]), np.array([1, 3, 2])
    hidden = Hidden(rows, np.array([True, False, False]), np.array([-1, 5, -1]), None, rows, columns)
    assert hidden.corrupt(ids).tolist() == [[0, MASK, 8, 5, 1], [0, 5, 6, 1, 3]] and ids[0, 1] == 7
