"""How features are spelt: each synset has a feature of form a (0) and one of form b (1), each 1 to 3 symbols long.

A feature's number is form x synsets + synset. In the single-token setting that is also its symbol. In the
multi-token setting (appendix A.1) a feature is a random sequence of symbols of its form's alphabet; the mapping is
drawn once and is one to one.
"""

from dataclasses import dataclass

import numpy as np

from masklab.config.schema import Chains
from masklab.errors import MaskLabError
from masklab.rng import generator

TRIES = 10_000  # draws of one feature before giving up


@dataclass(frozen=True)
class Features:
    """spelling [2 n, longest] uint16 (padded with 0), lengths [2 n] int64, names of the symbols."""

    synsets: int
    spelling: np.ndarray
    lengths: np.ndarray
    names: list[str]

    @property
    def single(self) -> bool:
        return self.spelling.shape[1] == 1

    def spell(self, synsets, forms) -> tuple[np.ndarray, np.ndarray]:
        """Symbols of sequences of features: synsets [B, L], forms [B, L] (or one number) of 0 and 1.

        Returns (values [sum of counts] uint16, counts [B] int64), the rows end to end.
        """
        feature = (np.asarray(synsets) + np.asarray(forms, np.uint16) * np.uint16(self.synsets)).astype(np.uint16)
        if self.single:
            return feature.ravel(), np.full(len(feature), feature.shape[1], np.int64)
        lengths = self.lengths[feature]
        used = np.arange(self.spelling.shape[1]) < lengths[..., None]
        return self.spelling[feature][used], lengths.sum(1)

    def words(self) -> list[tuple[int, ...]]:
        """The symbols of each feature, in order of their numbers."""
        return [tuple(row[:n]) for row, n in zip(self.spelling.tolist(), self.lengths.tolist(), strict=True)]

    def decode(self, symbols) -> list[int]:
        """Features that a sequence of symbols is read as, from left to right, the shortest match first.

        Exact for single tokens and for `code: prefix-free`. MaskLabError if a rest is no feature.
        """
        numbers = {word: feature for feature, word in enumerate(self.words())}
        features, begin = [], 0
        for end in range(1, len(symbols) + 1):
            word = tuple(symbols[begin:end])
            if word in numbers:
                features.append(numbers[word])
                begin = end
        if begin < len(symbols):
            raise MaskLabError(f"symbols {list(symbols[begin:])} at {begin}: not a sequence of features")
        return features


def draw_features(config: Chains, seed: int) -> Features:
    """The features of an entry of `chains`; equal settings and seeds give equal features.

    MaskLabError if `alphabet` is too small for so many different features.
    """
    n = config.synsets
    if config.features == "single":
        names = [f"{form}{synset}" for form in "ab" for synset in range(n)]
        return Features(n, np.arange(2 * n, dtype=np.uint16)[:, None], np.ones(2 * n, np.int64), names)
    rng = generator(seed, "chains", config.seed, "features", config.vocabularies)
    size = config.alphabet or n
    shared = config.vocabularies == "shared"
    names = [f"{letter}{token}" for letter in ("v" if shared else "pq") for token in range(size)]
    lengths = rng.integers(1, config.longest + 1, size=2 * n)
    words, taken = [()] * (2 * n), set()
    for feature in np.argsort(lengths, kind="stable"):  # short ones first: they must not begin longer ones
        first = 0 if shared or feature < n else size
        words[feature] = _new_word(config, rng, first, size, lengths[feature], taken)
        taken.add(words[feature])
    spelling = np.zeros((2 * n, config.longest), np.uint16)
    for feature, word in enumerate(words):
        spelling[feature, : len(word)] = word
    return Features(n, spelling, lengths, names)


def _new_word(config, rng, first, size, length, taken):
    for _ in range(TRIES):
        word = tuple((first + rng.integers(size, size=length)).tolist())
        shortest = 1 if config.code == "prefix-free" else length
        if not any(word[:end] in taken for end in range(shortest, length + 1)):
            return word
    raise MaskLabError(
        f"chains: alphabet: {size} tokens are too few to spell {2 * config.synsets} features of 1 to {config.longest}"
        f" tokens ({config.vocabularies}, {config.code}); raise alphabet or longest"
    )
