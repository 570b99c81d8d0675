"""Other words in the place of a word's synonym, drawn from the synonyms of others: does a distance tell the two apart?

What comes in the place of a synonym is of the same part of speech and inflection and as many tokens, and is spelt as
much like the word as the synonym is, so that neither grammar nor length nor spelling tells the two apart. Of a hundred
one or so is a synonym after all, in another sense. This is not in Chiang and Yogatama (2023).
"""

from collections import defaultdict

from masklab.tasks.encoding import content_ids

BEGINNING = 4  # letters


class Spelling:
    """How far some words are spelt alike: how many tokens of the model they share, and whether their first letters."""

    def __init__(self, words, tokenizer):
        words = sorted({word.lower() for word in words})
        ids = content_ids(tokenizer, [f" {word}" for word in words]) if words else ()
        self.tokens = {word: frozenset(own) for word, own in zip(words, ids, strict=True)}

    def shared(self, one: str, two: str) -> tuple[int, bool]:
        """(tokens that two of the words share, whether they begin with the same four letters), whatever their case."""
        one, two = one.lower(), two.lower()
        return len(self.tokens[one] & self.tokens[two]), one[:BEGINNING] == two[:BEGINNING]


def spelling(features, tokenizer) -> Spelling:
    """Of the words and of what takes their places."""
    return Spelling([word for feature in features for word in (feature.old, feature.new)], tokenizer)


def others(features, tokenizer, rng) -> list[str | None]:
    """For each feature the replacement of another one, drawn of those that are possible; None where there is none.

    Not possible are the word itself and what takes its place anywhere.
    """
    lengths = map(len, content_ids(tokenizer, [f" {feature.new}" for feature in features])) if features else ()
    kinds = [(feature.category, feature.form, length) for feature, length in zip(features, lengths, strict=True)]
    spelt = spelling(features, tokenizer)
    of_kind, synonyms = defaultdict(list), defaultdict(set)
    for feature, kind in zip(features, kinds, strict=True):
        of_kind[kind].append(feature.new)
        synonyms[feature.old.lower()].add(feature.new.lower())
    found = []
    for feature, kind in zip(features, kinds, strict=True):
        old = feature.old.lower()
        like = spelt.shared(old, feature.new)
        options = [
            new
            for new in of_kind[kind]
            if new.lower() != old and new.lower() not in synonyms[old] and spelt.shared(old, new) == like
        ]
        found.append(options[int(rng.integers(len(options)))] if options else None)
    return found
