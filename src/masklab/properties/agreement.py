"""Whether tokens of similar meaning have similar codes (Berend 2023, section 2.3), compared with other tokens.

Two codes, divided by their sums, overlap by the sum of their smaller entries: 1 for equal ones, 0 for those that share
no property.
"""

import numpy as np
from scipy import sparse

from masklab.properties.coded_words import Sample
from masklab.properties.coherence import Mean
from masklab.properties.inventory import LEAST

PAIRS = 2000  # that are compared, drawn at random where there are more


def overlaps(left: sparse.csr_matrix, right: sparse.csr_matrix) -> np.ndarray:
    """Overlap of each row of one with that of the other, [n]; NaN where either is empty."""
    left, right = _shares(left), _shares(right)
    both = np.asarray(left.minimum(right).sum(1)).ravel()
    empty = (np.diff(left.indptr) == 0) | (np.diff(right.indptr) == 0)
    return np.where(empty, np.nan, both)


def _shares(codes):
    sums = np.asarray(codes.sum(1)).ravel()
    return (sparse.diags(1 / np.maximum(sums, 1e-12)) @ codes).tocsr()


def of_one_word(sample: Sample, rng: np.random.Generator) -> tuple[Mean, Mean]:
    """Overlap of the codes of two occurrences of a word, and of two different words.

    Words count alike, however frequent they are, an occurrence by its first token. Both comparisons are of the same
    tokens, in other pairs. An encoder that has learned nothing passes this too, since it sees the word.
    """
    first = sample.first_tokens()
    form = sample.form[first]
    by_form = np.split(first[np.argsort(form, kind="stable")], np.cumsum(np.bincount(form))[:-1])
    several = [tokens for tokens in by_form if len(tokens) > 1]
    if len(several) < 2:
        return Mean.of([]), Mean.of([])
    chosen = rng.permutation(len(several))[:PAIRS]
    pairs = np.array([rng.choice(several[at], 2, replace=False) for at in chosen])
    left, right = sample.codes[pairs[:, 0]], sample.codes[pairs[:, 1]]
    other = sample.codes[np.roll(pairs[:, 1], 1)]  # of the word chosen before it
    return Mean.of(overlaps(left, right)), Mean.of(overlaps(left, other))


def of_synonyms(sample: Sample, wordnet, rng: np.random.Generator) -> tuple[Mean, Mean]:
    """Overlap of the mean codes of two synonyms, and of words of the same kind that are none, about as frequent.

    The second of each pair is replaced by the word nearest to it in frequency that has a sense of the same part of
    speech and shares none with the first.
    """
    counts, place = sample.occurrences, {form: at for at, form in enumerate(sample.forms)}
    known = [form for form, count in zip(sample.forms, counts, strict=True) if count >= LEAST and wordnet.knows(form)]
    pairs = wordnet.synonyms(known)
    if len(pairs) > PAIRS:
        pairs = [pairs[at] for at in sorted(rng.choice(len(pairs), PAIRS, replace=False))]
    by_count = sorted(known, key=lambda form: counts[place[form]])
    rank = {form: at for at, form in enumerate(by_count)}
    codes, rows = sample.mean_codes(), []
    for left, right in pairs:
        instead = _nearest(by_count, rank[right], lambda form, pair=(left, right): _like(wordnet, form, *pair))
        if instead is not None:
            rows.append((place[left], place[right], place[instead]))
    if not rows:
        return Mean.of([]), Mean.of([])
    left, right, instead = (codes[list(column)] for column in zip(*rows, strict=True))
    return Mean.of(overlaps(left, right)), Mean.of(overlaps(left, instead))


def _like(wordnet, form, left, right) -> bool:
    """Whether a word may stand for `right` as no synonym of `left`."""
    if form in (left, right) or set(wordnet.senses(form)) & set(wordnet.senses(left)):
        return False
    return wordnet.senses(form)[0].pos() == wordnet.senses(right)[0].pos()


def _nearest(ordered, start, fits):
    """The fitting entry nearest to a place of a list; None if none fits."""
    for away in range(1, len(ordered)):
        for at in (start + away, start - away):
            if 0 <= at < len(ordered) and fits(ordered[at]):
                return ordered[at]
    return None
