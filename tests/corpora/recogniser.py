"""Is a sentence in the language? A parser of the grammar that knows nothing of the sampler.

Top-down parsing with a table (every category at every position is worked out once) and
one word of look-ahead; alternatives that begin alike are followed together. The grammar
has no empty and no left-recursive categories, so this is complete: a sentence is accepted
exactly when the rules derive it.
"""

import re
from functools import cache, lru_cache

from masklab.corpora.english.compiler import compiled, is_category
from masklab.corpora.english.lexicon import LEXICON
from masklab.corpora.english.spelling import write

_TOKEN = re.compile(r"[A-Za-z]+(?:'s)?|[.,?]")
_PROPER = frozenset(word for category, entries in LEXICON.items() if category.startswith("Name") for word in entries)
_END = ""  # key of a trie node where an alternative is complete


def read(sentence: str) -> list[str] | None:
    """The words of a sentence, `an` as `a`; None where it is not written as `write` would write it."""
    words = _TOKEN.findall(sentence)
    if not words:
        return None
    if words[0] not in _PROPER:
        words[0] = words[0].lower()
    words = ["a" if word == "an" else word for word in words]
    return words if write(words) == sentence else None


@lru_cache(maxsize=1)
def _first_words() -> dict[str, frozenset[str]]:
    """The words that a phrase of each category can begin with."""
    first: dict[str, set] = {category: set(entries) for category, entries in LEXICON.items()}
    corners = {category: {right[0] for _, right in alternatives} for category, alternatives in compiled().items()}

    def words_of(category: str) -> set[str]:
        if category not in first:
            first[category] = set()
            for corner in corners[category]:
                first[category] |= words_of(corner) if is_category(corner) else {corner}
        return first[category]

    return {category: frozenset(words_of(category)) for category in [*corners, *LEXICON]}


@lru_cache(maxsize=1)
def _tries() -> dict[str, dict]:
    """The alternatives of each category as a trie of tokens."""
    tries: dict[str, dict] = {}
    for category, alternatives in compiled().items():
        root = tries[category] = {}
        for _, right in alternatives:
            node = root
            for token in right:
                node = node.setdefault(token, {})
            node[_END] = True
    return tries


@cache
def _predicted(category: str, word: str) -> tuple[tuple[str, dict], ...]:
    """The branches of a category's trie that can begin with `word`."""
    first = _first_words()
    return tuple(
        (token, node)
        for token, node in _tries()[category].items()
        if (word in first[token] if is_category(token) else word == token)
    )


def recognises(sentence: str) -> bool:
    """Whether the written sentence (`She picked a delicious apple.`) is in the language."""
    words = read(sentence)
    if words is None:
        return False
    first = _first_words()
    length = len(words)
    table: dict[tuple[str, int], set[int]] = {}

    def ends(token: str, start: int) -> set[int]:
        """Positions where a word or a phrase of this category that starts at `start` can end."""
        if start == length:
            return set()
        if token not in first:
            return {start + 1} if words[start] == token else set()
        if words[start] not in first[token]:
            return set()
        if token in LEXICON:
            return {start + 1}
        key = token, start
        if key not in table:
            result: set[int] = set()
            for branch, node in _predicted(token, words[start]):
                for position in ends(branch, start):
                    follow(node, position, result)
            table[key] = result
        return table[key]

    def follow(node: dict, position: int, result: set[int]) -> None:
        for token, child in node.items():
            if token == _END:
                result.add(position)
            else:
                for end in ends(token, position):
                    follow(child, end, result)

    return length in ends("Root", 0)
