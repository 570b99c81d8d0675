"""Groups of sentences with shared parts, drawn from the grammar.

A template is a line of tokens: words; `1=NPs(?h,hum)`, a slot filled by one draw of a
category; `1`, the same words again; `1=V(food,base)`, where slot 1 was a word of the
aligned category `V(food,past)`: the same lemma in another form. Variables (`?h`) have one
value throughout a group of templates.
"""

import re
from collections.abc import Sequence

import numpy as np

from masklab.corpora.english.compiler import compiled, instances, substitute
from masklab.corpora.english.lexicon import LEXICON
from masklab.corpora.english.sample import MAX_WORDS, phrases, word_weights
from masklab.corpora.english.spelling import write

_SLOT = re.compile(r"(\d+)(?:=(\S+))?")


def _possible(texts: Sequence[str]) -> list[tuple[str, ...]]:
    """The templates with every assignment of variables under which all categories exist."""
    result = []
    for values in instances(" ".join(texts)):
        concrete = tuple(substitute(text, values) for text in texts)
        slots = [_SLOT.fullmatch(token) for text in concrete for token in text.split()]
        if all(s.group(2) in LEXICON or s.group(2) in compiled() for s in slots if s and s.group(2)):
            result.append(concrete)
    return result


def _fill(texts: Sequence[str], count: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """`count` groups of sentences of templates without variables, fewer where a draw is unusable."""
    drawn: dict[str, np.ndarray | list] = {}  # slot -> positions in its category, or phrases
    category: dict[str, str] = {}
    usable = np.ones(count, dtype=bool)
    columns = []
    for text in texts:
        parts: list[list[list[str]]] = []
        for token in text.split():
            slot = _SLOT.fullmatch(token)
            if slot is None:
                parts.append([[token]] * count)
                continue
            name, wanted = slot.groups()
            wanted = wanted or category[name]
            if name not in drawn:
                category[name] = wanted
                if wanted in LEXICON:
                    size = len(LEXICON[wanted])
                    drawn[name] = rng.choice(size, count, p=word_weights(size))
                    for other in category:  # two slots of one category hold different words
                        if other != name and category[other] == wanted:
                            usable &= drawn[other] != drawn[name]
                else:
                    drawn[name] = phrases(wanted, count, rng)
            if wanted in LEXICON:
                parts.append([[LEXICON[wanted][position]] for position in drawn[name]])
            else:
                parts.append(drawn[name])
        columns.append([[word for part in row for word in part] for row in zip(*parts, strict=True)])
    return [
        tuple(map(write, row))
        for row, kept in zip(zip(*columns, strict=True), usable, strict=True)
        if kept and all(len(words) <= MAX_WORDS + 1 for words in row)
    ]


class Templates:
    """A group of templates that share slots and variables, e.g. a good and a bad sentence.

    `draw(count, rng)` gives at least `count` tuples of sentences, one sentence per template.
    """

    def __init__(self, *texts: str):
        self.texts = texts
        self._concrete: list[tuple[str, ...]] | None = None

    def draw(self, count: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
        if self._concrete is None:
            self._concrete = _possible(self.texts)
        result: list[tuple[str, ...]] = []
        while len(result) < count:
            # few assignments at a time: each costs one call of the sampler per slot
            share = max(4, (count - len(result)) // 12)
            chosen = self._concrete[rng.integers(len(self._concrete))]
            result.extend(_fill(chosen, share, rng))
        order = rng.permutation(len(result))
        return [result[index] for index in order]
