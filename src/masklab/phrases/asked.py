"""What a pre-trained model predicts of features before fine-tuning, and what of it is a matter of form."""

from dataclasses import dataclass, replace

import numpy as np

from masklab.phrases import EXAMPLE, LONG, MEANS, WITH, WORDS, held_fixed, in_text, untaught
from masklab.phrases.distances import template_distances, without
from masklab.phrases.others import spelling
from masklab.phrases.parses import NOUN, VERB
from masklab.phrases.queries import by_template, filled, in_its_text, query_ids, sentence_query
from masklab.tasks.encoding import content_ids


@dataclass(frozen=True)
class Asked:
    """The features of a level, distances of what the pre-trained model predicts of them, [N], and `nuisances` that are
    held fixed, [N, K], or None."""

    features: list
    before: np.ndarray
    fixed: np.ndarray | None = None

    def left(self, *distances) -> list:
        """Distances, [N] each, without what goes with what is held fixed."""
        return [of if self.fixed is None else without(of, self.fixed) for of in distances]


def ways(level, probe) -> dict:
    """What a level of words or phrases is called by how it is asked -> (feature, new) -> pairs of queries."""
    return {level: by_template} | ({in_text(level): in_its_text} if probe.in_text else {})


def _distances(model, queries, reader, among=None):
    rows = query_ids(reader.tokenizer, [query for pair in queries for query in pair], reader.longest)
    return template_distances(model, list(zip(rows[0::2], rows[1::2], strict=True)), reader.device, among)


def means(model, features, words, how, reader) -> np.ndarray:
    """Mean distance over the pairs of queries of each feature and of the words in its place, [N]."""
    queries = [how(feature, new) for feature, new in zip(features, words, strict=True)]
    counts = np.array([len(of) for of in queries])
    given = _distances(model, [pair for of in queries for pair in of], reader)
    return np.add.reduceat(given, np.cumsum(counts) - counts) / counts


def nuisances(features, reader) -> np.ndarray:
    """The form of words, with which distances go even of initial weights, [N, 11]: of how many words and tokens the
    text is, as logarithm and inverse, of how many tokens the word and its synonym are, whether of as many, what
    spelling they share, and the part of speech, which decides about the query.
    """
    words = [len(feature.text.tree.words) for feature in features]
    texts = (
        [feature.text.text for feature in features],
        *zip(*((f" {f.old}", f" {f.new}") for f in features), strict=True),
    )
    tokens, old, new = (np.array([*map(len, content_ids(reader.tokenizer, [*of]))]) for of in texts)
    lengths = np.array([words, tokens], np.float64)
    spelt = spelling(features, reader.tokenizer)
    shared = np.transpose([spelt.shared(feature.old, feature.new) for feature in features])
    kinds = [[feature.category == kind for feature in features] for kind in (NOUN, VERB)]
    return np.stack([*np.log(lengths), *(1 / lengths), old, new, old != new, *shared, *kinds], 1)


def measured_before(model, chosen, reader, probe, answers, untrained=None) -> dict[str, Asked]:
    """Level -> what the pre-trained model predicts of its features; with `untrained`, initial weights, also what these
    predict, of words whose form is held fixed."""
    levels = {}
    for level, own in chosen.items():
        new = [feature.new for feature in own]
        fixed = nuisances(own, reader) if probe.in_text and level in WORDS else None
        for asked, how in ways(level, probe).items():
            levels[asked] = whole = Asked(own, means(model, own, new, how, reader))
            if fixed is None:
                continue
            levels[held_fixed(asked)] = replace(whole, fixed=fixed)
            if untrained is not None:
                levels[untaught(asked)] = by_chance = Asked(own, means(untrained, own, new, how, reader))
                levels[untaught(held_fixed(asked))] = replace(by_chance, fixed=fixed)
    if long := chosen.get(LONG):
        for level, kind in ((WITH, "with"), (MEANS, "means")):
            queries = [[sentence_query(kind, texts[f.text.side]) for texts in (f.example.texts, f.texts)] for f in long]
            levels[level] = Asked(long, _distances(model, queries, reader))
        if answers is not None:
            queries = [[filled(probe.query, *texts) for texts in (f.example.texts, f.texts)] for f in long]
            levels[EXAMPLE] = Asked(long, _distances(model, queries, reader, answers))
    return levels
