"""Draw sentences from the compiled grammar, all at once.

Every sentence starts as one symbol; each pass replaces all phrasal and lexical
categories of all sentences by one draw of their alternatives, with a fixed number of
NumPy operations. A sentence over the word limit is dropped as soon as it has that
many symbols (no category derives the empty string), so the law sampled is the
grammar's, conditioned on length.
"""

import itertools
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from masklab.corpora.english.compiler import compiled, is_category
from masklab.corpora.english.lexicon import LEXICON
from masklab.corpora.english.spelling import takes_an

MAX_WORDS = 24
_BLOCK = 20_000


def word_weights(count: int) -> np.ndarray:
    """Probabilities of the words of a category in their listed order: a Zipf law, 1 / (rank + 3)."""
    weights = 1.0 / (np.arange(count) + 4.0)
    return weights / weights.sum()


class Sampler:
    """The compiled grammar as flat arrays.

    Words are numbered 0..W-1 and categories from W on. Alternative r of category s
    occupies `rhs[first[r] : first[r] + length[r]]`; `edges` holds s + the cumulative
    probability up to r, so that one binary search draws alternatives for all symbols.
    """

    def __init__(self):
        rules = dict(compiled())
        for category, entries in LEXICON.items():
            weights = word_weights(len(entries))
            rules[category] = [(p, (word,)) for p, word in zip(weights, entries, strict=True)]
        vocabulary = {
            token
            for alternatives in rules.values()
            for _, right in alternatives
            for token in right
            if not is_category(token)
        }
        vocabulary |= {word for entries in LEXICON.values() for word in entries}
        self.words = sorted(vocabulary)
        self.word_id = {word: index for index, word in enumerate(self.words)}
        self.symbol_id = {category: len(self.words) + index for index, category in enumerate(rules)}
        lengths, rhs, edges = [], [], []
        for index, (category, alternatives) in enumerate(rules.items()):
            cumulative = np.cumsum([p for p, _ in alternatives])
            cumulative[-1] = 1.0
            edges.append(index + cumulative)
            lexical = category in LEXICON
            for _, right in alternatives:
                lengths.append(len(right))
                rhs.extend(self.symbol_id[t] if is_category(t) and not lexical else self.word_id[t] for t in right)
        self.edges = np.concatenate(edges)
        self.length = np.array(lengths)
        self.first = np.cumsum(self.length) - self.length
        self.rhs = np.array(rhs)
        self._spelled()

    def _spelled(self) -> None:
        """The strings of all words in mid-sentence (with the space before them) and of first words."""
        middle = [word if word in ".,?" else f" {word}" for word in [*self.words, "an"]]
        first = [word[:1].upper() + word[1:] for word in [*self.words, "an"]]
        self.strings = pa.array(middle + first)
        self.vowel = np.array([takes_an(word) for word in self.words])

    def draw(self, category: str, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Expand `count` copies of a category.

        Returns (words, owner): word ids in order, and for each the copy it belongs to,
        ascending; copies longer than `MAX_WORDS` (punctuation not counted) are absent.
        """
        symbols = np.full(count, self.symbol_id[category])
        owner = np.arange(count)
        bound = len(self.words)
        while True:
            open_ = symbols >= bound
            if not open_.any():
                break
            which = symbols[open_]
            point = rng.random(len(which)) * (1 - 1e-12)  # the sum below must not round up to the next category
            draw = np.searchsorted(self.edges, which - bound + point, side="right")
            repeats = np.ones(len(symbols), dtype=np.int64)
            repeats[open_] = self.length[draw]
            start = np.zeros(len(symbols), dtype=np.int64)
            start[open_] = self.first[draw]
            source = np.repeat(np.arange(len(symbols)), repeats)
            within = np.arange(len(source)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
            symbols = np.where(open_[source], self.rhs[start[source] + within], symbols[source])
            owner = owner[source]
            size = np.bincount(owner, minlength=count)
            if size.max() > MAX_WORDS + 1:  # one for the final mark
                keep = (size <= MAX_WORDS + 1)[owner]
                symbols, owner = symbols[keep], owner[keep]
        return symbols, owner

    def write(self, words: np.ndarray, owner: np.ndarray) -> pa.Array:
        """Strings of the sentences in (words, owner) as `draw` returns them (see `spelling.write`)."""
        starts = np.flatnonzero(np.diff(owner, prepend=-1))
        count = len(self.words)
        article = np.zeros(len(words), dtype=bool)
        article[:-1] = (words[:-1] == self.word_id["a"]) & self.vowel[words[1:]]
        ids = np.where(article, count, words)
        ids[starts] += count + 1
        offsets = pa.array(np.append(starts, len(words)).astype(np.int32))
        return pc.binary_join(pa.ListArray.from_arrays(offsets, self.strings.take(pa.array(ids))), "")


@lru_cache(maxsize=1)
def sampler() -> Sampler:
    """The one sampler of this process (compiled on first use)."""
    return Sampler()


def phrases(category: str, count: int, rng: np.random.Generator) -> list[list[str]]:
    """`count` draws of a phrasal category as lists of words, in the order drawn."""
    machine, result = sampler(), []
    while len(result) < count:
        words, owner = machine.draw(category, count - len(result) + 8, rng)
        spelled = [machine.words[word] for word in words]
        starts = [*np.flatnonzero(np.diff(owner, prepend=-1)), len(words)]
        result.extend(spelled[a:b] for a, b in itertools.pairwise(starts))
    return result[:count]


def sentences(count: int, rng: np.random.Generator) -> pa.Array:
    """`count` sentences (pyarrow strings) of at most `MAX_WORDS` words, independent draws of the grammar."""
    machine, chunks, total = sampler(), [], 0
    while total < count:
        chunks.append(machine.write(*machine.draw("Root", min(_BLOCK, count - total + 64), rng)))
        total += len(chunks[-1])
    return pa.concat_arrays(chunks)[:count]
