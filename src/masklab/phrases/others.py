"""Other words in the place of a word's synonym, drawn from the synonyms of others: does a distance tell the two apart?

What comes in the place of a synonym is of the same part of speech and inflection and as many tokens, so that neither
grammar nor length tells the two apart; spelling may, where a synonym shares a piece with the word. Of a hundred one or
so is a synonym after all, in another sense. This is not in Chiang and Yogatama (2023).
"""

from collections import defaultdict

from masklab.tasks.encoding import content_ids


def others(features, tokenizer, rng) -> list[str | None]:
    """For each feature the replacement of another one, drawn of those that are possible; None where there is none.

    Not possible are the word itself and what takes its place anywhere.
    """
    lengths = map(len, content_ids(tokenizer, [f" {feature.new}" for feature in features])) if features else ()
    kinds = [(feature.category, feature.form, length) for feature, length in zip(features, lengths, strict=True)]
    alike, synonyms = defaultdict(list), defaultdict(set)
    for feature, kind in zip(features, kinds, strict=True):
        alike[kind].append(feature.new)
        synonyms[feature.old.lower()].add(feature.new.lower())
    found = []
    for feature, kind in zip(features, kinds, strict=True):
        old = feature.old.lower()
        options = [new for new in alike[kind] if new.lower() != old and new.lower() not in synonyms[old]]
        found.append(options[int(rng.integers(len(options)))] if options else None)
    return found
