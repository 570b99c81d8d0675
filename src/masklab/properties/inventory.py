"""What each property stands for: how often it is active, its words, its strongest occurrences in context."""

from dataclasses import dataclass

import numpy as np

from masklab.properties.coded_words import Sample

WORDS = 10  # words of a property
OCCURRENCES = 6  # in context
SAME = 2  # of one word at most
AROUND = 7  # words on either side
LEAST = 5  # occurrences of a word below which its mean coefficient is not believed


@dataclass(frozen=True)
class Occurrence:
    """One word in its context, and the coefficient of its token there."""

    before: str
    word: str
    after: str
    value: float


@dataclass(frozen=True)
class Property:
    """One atom.

    active: share of tokens with a coefficient; mean, largest: of those coefficients. words: (word, mean coefficient
    over all of its tokens), the largest first; covered: share of the sum of all coefficients that these words take.
    """

    number: int
    active: float
    mean: float
    largest: float
    words: list[tuple[str, float]]
    covered: float
    occurrences: list[Occurrence]


def inventory(sample: Sample, least: int = LEAST) -> list[Property]:
    """Every property of a sample, in the order of the atoms; one that is never active has no words."""
    means, counts = sample.mean_codes(), sample.counts
    means = means.multiply((sample.occurrences >= least)[:, None]).tocsc()
    columns = sample.codes.tocsc()
    return [_property(sample, number, columns, means, counts) for number in range(columns.shape[1])]


def _property(sample, number, columns, means, counts) -> Property:
    rows, values = _column(columns, number)
    total = float(values.sum())
    forms, strength = _column(means, number)
    order = np.lexsort((forms, -strength))[:WORDS]
    forms, strength = forms[order], strength[order]
    kept = strength > 0
    forms, strength = forms[kept], strength[kept]
    covered = float((strength * counts[forms]).sum() / total) if total else 0.0
    words = [(sample.forms[form], float(value)) for form, value in zip(forms, strength, strict=True)]
    return Property(
        number,
        active=len(rows) / max(1, columns.shape[0]),
        mean=total / len(rows) if len(rows) else 0.0,
        largest=float(values.max(initial=0.0)),
        words=words,
        covered=covered,
        occurrences=_occurrences(sample, rows, values),
    )


def _column(matrix, number):
    """(rows, values) of the entries of a column of a compressed sparse column matrix."""
    part = slice(matrix.indptr[number], matrix.indptr[number + 1])
    return matrix.indices[part], matrix.data[part]


def _occurrences(sample, rows, values) -> list[Occurrence]:
    """The strongest, few of one word."""
    found, seen = [], {}
    for at in np.lexsort((rows, -values)):
        token, form = rows[at], sample.form[rows[at]]
        if seen.get(form, 0) < SAME:
            seen[form] = seen.get(form, 0) + 1
            words, here = sample.sequences[sample.row[token]], int(sample.word[token])
            before, after = words.shown(here - AROUND, here), words.shown(here + 1, here + 1 + AROUND)
            found.append(Occurrence(before, words.words[here], after, float(values[at])))
        if len(found) == OCCURRENCES:
            break
    return found
