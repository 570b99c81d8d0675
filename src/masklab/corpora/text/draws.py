"""Which sequences a word budget leaves, and which are held out: drawn with four bytes per sequence."""

import numpy as np

BLOCK = 1 << 20  # sequences looked at together


def order(count: int, stream) -> np.ndarray:
    """What `stream.permutation(count)` gives, in half the memory."""
    numbers = np.arange(count, dtype=np.uint32 if count < 1 << 32 else np.int64)
    stream.shuffle(numbers)
    return numbers


def within_budget(words, budget, stream) -> list[np.ndarray]:
    """One mask per file: sequences drawn at random within the file's even share of `budget` words.

    What a small file leaves of its share goes to the larger ones. words: per file the words of each sequence, at least
    one; stream(index): the random numbers of a file. The masks are int8.
    """
    totals = [int(counts.sum(dtype=np.int64)) for counts in words]
    masks = [np.ones(len(counts), np.int8) for counts in words]
    if budget is None or sum(totals) <= budget:
        return masks
    left = budget
    for rank, index in enumerate(sorted(range(len(words)), key=lambda i: totals[i])):
        share = left // (len(words) - rank)
        if totals[index] > share:
            left -= _draw(masks[index], words[index], share, stream(index))
        else:
            left -= totals[index]
    return masks


def _draw(mask, words, share, stream) -> int:
    """Set `mask` where a sequence is drawn; the words of those drawn."""
    drawn, passed = order(len(words), stream), 0
    mask[:] = 0
    for start in range(0, len(drawn), BLOCK):
        some = drawn[start : start + BLOCK]
        sums = passed + np.cumsum(words[some], dtype=np.int64)
        fit = int(np.searchsorted(sums, share, "right"))
        mask[some[:fit]] = 1
        if fit:
            passed = int(sums[fit - 1])
        if fit < len(some):  # every sequence has a word: none after it fits
            break
    return passed


def held_out(masks, valid: int, test: int, stream) -> None:
    """In masks of the sequences of each file that are kept, write 2 at `valid` of them and 3 at `test` more."""
    ends = np.cumsum([int(mask.sum(dtype=np.int64)) for mask in masks])
    drawn = order(int(ends[-1]), stream)[: valid + test].astype(np.int64)
    codes = np.repeat(np.array([2, 3], np.int8), [valid, test])
    files = np.searchsorted(ends, drawn, "right")
    for index, mask in enumerate(masks):
        inside = files == index
        if inside.any():
            places = np.flatnonzero(mask).astype(np.uint32 if len(mask) < 1 << 32 else np.int64)
            mask[places[drawn[inside] - (ends[index - 1] if index else 0)]] = codes[inside]
