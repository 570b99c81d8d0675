"""Whether the words of a property belong together, beside random properties.

Coherence is the mean similarity of two of its words. The intrusion test of Chang et al. (2009) asks people which of
some words does not belong; here the word is taken that is least like the others (Lau et al. 2014), so that the share of
intruders found is a number between chance and 1. A random property has as many words, drawn from all properties'.
"""

from dataclasses import dataclass

import numpy as np

from masklab.properties.inventory import Property

FEWEST = 3  # words that are known, without which a property has no coherence
TOP = 6  # words that are compared
INTRUDERS = 5  # of each property, one after another
MOST = 400  # properties that are compared, drawn at random where there are more
TIE = 1e-12


@dataclass(frozen=True)
class Mean:
    """A mean over properties or pairs, with its standard error."""

    value: float
    error: float
    count: int

    @classmethod
    def of(cls, values) -> "Mean":
        values = np.asarray(values, float)
        values = values[np.isfinite(values)]
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        return cls(float(values.mean()) if len(values) else np.nan, float(error), len(values))


@dataclass(frozen=True)
class Coherence:
    """By one similarity: of each property that has enough known words, and means of them and of random properties."""

    name: str
    of: dict[int, float]
    found: dict[int, float]  # share of intruders that are found, of each property
    coherence: Mean
    random_coherence: Mean
    intrusion: Mean
    random_intrusion: Mean
    chance: float


def coherence(properties: list[Property], similarity, rng: np.random.Generator) -> Coherence:
    """Coherence and intrusion of properties by a similarity (`masklab.properties.similarity`)."""
    lists = {each.number: [word for word, _ in each.words if similarity.knows(word)][:TOP] for each in properties}
    lists = {number: words for number, words in lists.items() if len(words) >= FEWEST}
    if len(lists) > MOST:
        kept = sorted(rng.choice(list(lists), MOST, replace=False).tolist())
        lists = {number: lists[number] for number in kept}
    pool = [word for words in lists.values() for word in words]
    own = {each.number: {word for word, _ in each.words} for each in properties}
    random = {number: _drawn(pool, len(words), set(), rng) for number, words in lists.items()}
    scored, found = _scores(lists, own, pool, similarity, rng)
    by_chance, guessed = _scores(
        random, {number: set(words) for number, words in random.items()}, pool, similarity, rng
    )
    return Coherence(
        similarity.name,
        scored,
        found,
        Mean.of(list(scored.values())),
        Mean.of(list(by_chance.values())),
        Mean.of(list(found.values())),
        Mean.of(list(guessed.values())),
        float(np.mean([1 / (len(words) + 1) for words in lists.values()])) if lists else np.nan,
    )


def _drawn(pool, count, without, rng) -> list[str]:
    """Different words of the pool, as often as they stand in it; fewer where there are not so many."""
    words = []
    for at in rng.permutation(len(pool)):
        if pool[at] not in without and pool[at] not in words:
            words.append(pool[at])
            if len(words) == count:
                break
    return words


def _scores(lists, own, pool, similarity, rng) -> tuple[dict, dict]:
    """(coherence, share of intruders found) of each list."""
    scored, found = {}, {}
    for number, words in lists.items():
        intruders = _drawn(pool, INTRUDERS, own[number], rng)
        if len(words) < 2:
            continue
        alike = similarity.between(words + intruders)
        size = len(words)
        scored[number] = float(alike[:size, :size][np.triu_indices(size, 1)].mean())
        shares = [
            _caught(alike[np.ix_(part, part)]) for part in ([*range(size), size + at] for at in range(len(intruders)))
        ]
        found[number] = float(np.mean(shares)) if shares else np.nan
    return scored, found


def _caught(alike) -> float:
    """1 where the last word is the one least like the others, a share where others are as little like them, else 0."""
    size = len(alike)
    means = (alike.sum(1) - np.diag(alike)) / (size - 1)
    least = means <= means.min() + TIE
    return 1 / least.sum() if least[-1] else 0.0
