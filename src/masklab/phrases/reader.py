"""Texts of examples as a model reads them: their ids, what a classifier answers, and which tokens a feature is."""

import numpy as np

from masklab.phrases.distances import total_variation
from masklab.phrases.examples import Text
from masklab.phrases.saliency import probabilities
from masklab.tasks.encoding import content_ends, content_ids, joined


class Reader:
    """Texts as a model reads them."""

    def __init__(self, tokenizer, longest, device):
        self.tokenizer, self.longest, self.device = tokenizer, longest, device

    def pairs(self, texts) -> list[tuple]:
        """(ids of the first text, ids of the second or None) of examples' texts."""
        firsts = content_ids(self.tokenizer, [first for first, _ in texts])
        seconds = content_ids(self.tokenizer, [second or "" for _, second in texts])
        return [(a, None if second is None else b) for a, b, (_, second) in zip(firsts, seconds, texts, strict=True)]

    def answers(self, classifier, texts) -> np.ndarray:
        """A classifier's probabilities, [N, C]."""
        return probabilities(classifier, [joined(*pair, self.longest) for pair in self.pairs(texts)], self.device)

    def changes(self, classifier, features) -> np.ndarray:
        """Total variation between predictions before and after each replacement, [N]."""
        whole = [feature.example.texts for feature in features] + [feature.texts for feature in features]
        given = self.answers(classifier, whole)
        return total_variation(given[: len(features)], given[len(features) :])

    def spans(self, text: Text, nodes) -> list[tuple[int, int, int]]:
        """(text, first token, token after the last) of nodes: all tokens that hold some of it, `cat.` of `cat`."""
        (ends,) = content_ends(self.tokenizer, [text.text])
        places = np.array([text.place(node) for node in nodes]).reshape(-1, 2)
        begins, behind = np.searchsorted(ends, places, side="right").T
        last = np.minimum(np.searchsorted(ends, places[:, 1]) + 1, len(ends))
        return [(text.side, *span) for span in zip(begins.tolist(), np.maximum(behind, last).tolist(), strict=True)]
