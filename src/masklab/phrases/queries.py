"""Queries that make a feature a text with one [MASK] (Chiang and Yogatama 2023, section 6.3).

A template is a text with `{}` for the feature (`{a}` and `{b}` for the two texts of a pair) and one [MASK].
"""

import re

from masklab.errors import MaskLabError
from masklab.phrases.parses import ADJECTIVE, NOUN, VERB
from masklab.tasks.encoding import around_hole, content_ids
from masklab.tokenizers import CLS, MASK, SEP, UNK

HOLE = "[MASK]"
PHRASES = {NOUN: "{} [MASK]", VERB: "[MASK] {}", ADJECTIVE: "[MASK] is {}"}


def filled(template: str, *features: str) -> str:
    """A template with its features."""
    named = dict(zip("ab", features, strict=False))
    return re.sub(r"\{([ab]?)\}", lambda hole: named[hole[1] or "a"], template)


def sentence_query(kind: str, text: str) -> str:
    """The query of a sentence: `<text> with [MASK].`, in the place of the full stop, or `"<text>" means [MASK]`."""
    return f"{text.rstrip(' .!?')} with {HOLE}." if kind == "with" else f'"{text}" means {HOLE}'


def in_its_text(feature, new: str) -> list[tuple[str, str]]:
    """The feature's text as it is and with `new` in its place: both with the word before hidden, then the one behind.

    Where the feature begins or ends its text there is one such pair.
    """
    text, node = feature.text, feature.node
    begin, end = text.place(node)
    pairs = []
    if node.begin > 0:
        first, last = text.at[node.begin - 1]
        start = text.text[:first] + HOLE + text.text[last:begin]
        pairs.append((start + feature.old + text.text[end:], start + new + text.text[end:]))
    if node.end < len(text.tree.words):
        first, last = text.at[node.end]
        rest = text.text[end:first] + HOLE + text.text[last:]
        pairs.append((text.text[:begin] + feature.old + rest, text.text[:begin] + new + rest))
    return pairs


def by_template(feature, new: str) -> list[tuple[str, str]]:
    """The paper's query of the feature and of `new`, by the feature's part of speech."""
    return [tuple(filled(PHRASES[feature.category], part) for part in (feature.old, new))]


def query_ids(tokenizer, texts: list[str], longest: int) -> list[list[int]]:
    """[CLS] text [SEP] of texts with one [MASK] each, cut to the `longest` tokens around the mask."""
    parts = [text.split(HOLE) for text in texts]
    for text, halves in zip(texts, parts, strict=True):
        if len(halves) != 2:
            raise MaskLabError(f"query {text!r}: must hold exactly one {HOLE}")
    rows = []
    for before, after in around_hole(tokenizer, [tuple(halves) for halves in parts]):
        room = longest - 3
        behind = min(len(after), max(room // 2, room - len(before)))
        front = min(len(before), room - behind)
        rows.append([CLS, *before[len(before) - front :], MASK, *after[:behind], SEP])
    return rows


def verbaliser_ids(tokenizer, words, where: str) -> list[int]:
    """The token of each word; MaskLabError, naming `where`: a word is several tokens or unknown, or two are one."""
    ids = content_ids(tokenizer, [f" {word}" for word in words])  # the beginning of a word, not of a text
    for word, own in zip(words, ids, strict=True):
        if len(own) != 1:
            raise MaskLabError(f"{where}: {word!r} is {len(own)} tokens of the model; a verbaliser must be one")
        if own[0] == UNK:
            raise MaskLabError(f"{where}: the model does not know {word!r}; a verbaliser must be a token of its own")
    if len({own[0] for own in ids}) < len(ids):
        raise MaskLabError(f"{where}: two of {', '.join(words)} are one token of the model")
    return [own[0] for own in ids]
