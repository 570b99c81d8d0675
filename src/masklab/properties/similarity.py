"""How alike words are, by what knows nothing of the model: by the words beside them, or by WordNet."""

import functools

import numpy as np
from scipy import sparse

from masklab.properties.coded_words import Sample
from masklab.wordnet import open_wordnet

FREQUENT = 2000  # words whose presence beside a word counts
SENSES = 3  # of a word that are looked at, the commonest ones


class Neighbours:
    """Cosine of positive pointwise mutual information with the words just before and just after.

    As in Levy and Goldberg (2014), with a window of one word on either side.
    """

    name = "neighbours"

    def __init__(self, sample: Sample):
        self.place = {form: at for at, form in enumerate(sample.forms)}
        by_count = np.argsort(-sample.occurrences, kind="stable")  # else ties are in an order of the machine's
        frequent = {sample.forms[at]: rank for rank, at in enumerate(by_count[:FREQUENT])}
        rows, columns = [], []
        for words in sample.sequences:
            lower = [word.lower() for word in words.words]
            for at, word in enumerate(lower):
                for side, beside in ((0, at - 1), (1, at + 1)):
                    if 0 <= beside < len(lower) and lower[beside] in frequent and word in self.place:
                        rows.append(self.place[word])
                        columns.append(2 * frequent[lower[beside]] + side)
        shape = (len(self.place), 2 * max(1, len(frequent)))
        counts = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape)
        self.vectors = _unit(_ppmi(counts))
        self.seen = np.diff(self.vectors.indptr) > 0

    def knows(self, word: str) -> bool:
        return word in self.place and bool(self.seen[self.place[word]])

    def between(self, words: list[str]) -> np.ndarray:
        """Similarity of every two words, all of them known, [n, n]."""
        vectors = self.vectors[[self.place[word] for word in words]]
        return (vectors @ vectors.T).toarray()


def _ppmi(counts):
    """Positive pointwise mutual information of a matrix of counts."""
    counts.sum_duplicates()
    entries, total = counts.tocoo(), counts.sum()
    rows, columns = (np.asarray(counts.sum(axis)).ravel() for axis in (1, 0))
    with np.errstate(divide="ignore"):
        values = np.log(entries.data * total / (rows[entries.row] * columns[entries.col]))
    kept = values > 0
    return sparse.csr_matrix((values[kept], (entries.row[kept], entries.col[kept])), counts.shape)


def _unit(matrix):
    norms = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
    return (sparse.diags(1 / np.maximum(norms, 1e-12)) @ matrix).tocsr()


class WordNet:
    """The shortest path between two words in WordNet's hierarchies, of nouns and of verbs (`path_similarity`).

    folder: a data folder of NLTK, with the database in corpora/wordnet (data.noun, ...), or that folder itself.
    """

    name = "WordNet"

    def __init__(self, folder):
        self.reader = open_wordnet(folder)
        self.senses = functools.lru_cache(maxsize=None)(self._senses)
        self.similarity = functools.lru_cache(maxsize=1 << 20)(self._similarity)

    def _senses(self, word):
        if not word.isalpha():
            return ()
        return tuple(sense for sense in self.reader.synsets(word)[:SENSES] if sense.pos() in "nv")

    def knows(self, word: str) -> bool:
        return bool(self.senses(word))

    def between(self, words: list[str]) -> np.ndarray:
        """Similarity of every two words, all of them known, [n, n]; 0 of words that no hierarchy holds both of."""
        found = np.eye(len(words))
        for i, left in enumerate(words):
            for j, right in enumerate(words[:i]):
                found[i, j] = found[j, i] = self.similarity(*sorted((left, right)))
        return found

    def _similarity(self, left, right) -> float:
        pairs = ((a, b) for a in self.senses(left) for b in self.senses(right) if a.pos() == b.pos())
        return max((a.path_similarity(b) or 0.0 for a, b in pairs), default=0.0)

    def synonyms(self, words: list[str]) -> list[tuple[str, str]]:
        """Pairs of these words that share a sense of nouns or verbs which is among the first of both, in order."""
        by_sense: dict[str, list[str]] = {}
        for word in words:
            for sense in self.senses(word):
                by_sense.setdefault(sense.name(), []).append(word)
        pairs = {
            tuple(sorted((left, right)))
            for members in by_sense.values()
            for at, left in enumerate(members)
            for right in members[:at]
            if self._lemma(left) != self._lemma(right)
        }
        return sorted(pairs)

    def _lemma(self, word):
        return self.reader.morphy(word) or word
