"""Bracketed parses, where their words lie in a text, and the words and phrases that may be replaced.

Parses are in the brackets of the Penn Treebank, one after the other in a text file, or in the fields of json lines or
the columns of a TSV whose names end in `parse` (MNLI's `sentence1_parse`, `premise_parse`). Trees whose labels are no
syntactic categories (the sentiments of the Stanford Sentiment Treebank) have phrases too, which count as nouns where a
category is asked; of single words `synonyms` knows better.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from masklab.errors import MaskLabError
from masklab.lines import format_of, read_json_lines, read_lines

ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}", "``": '"', "''": '"'}
ESCAPED |= {r"\/": "/", r"\*": "*"}
PRONOUNS = {"he", "him", "she", "her", "it", "someone", "somebody"}
NOUN, VERB, ADJECTIVE = "noun", "verb", "adjective"
KINDS = {"N": NOUN, "V": VERB, "J": ADJECTIVE}  # by the first letter of a tag or label of the Penn Treebank
SHORT = 4  # words of the longest short phrase
BINARY = "binary_parse"  # of json lines: without categories


@dataclass(frozen=True)
class Node:
    """A constituent: its label, and its words `begin` to `end` - 1."""

    label: str
    begin: int
    end: int

    def __len__(self):
        return self.end - self.begin


@dataclass(frozen=True)
class Tree:
    """words, and all constituents of a sentence in the order in which they open, those of single words last opened."""

    words: tuple[str, ...]
    nodes: tuple[Node, ...]

    @cached_property
    def labelled(self) -> bool:
        """Whether its labels are syntactic categories."""
        return not all(re.fullmatch(r"-?\d*", node.label) for node in self.nodes)

    def category(self, node) -> str | None:
        """noun, verb or adjective; None of any other constituent. Of unlabelled trees always noun."""
        if not self.labelled:
            return (
                NOUN
                if any(character.isalnum() for word in self.words[node.begin : node.end] for character in word)
                else None
            )
        return ADJECTIVE if node.label == "ADJP" else KINDS.get(node.label[:1])

    @cached_property
    def candidates(self) -> list[Node]:
        """Nouns, verbs, adjectives and their phrases below the sentence, each stretch once, as its innermost node."""
        found = {}
        for node in self.nodes:
            pronoun = len(node) == 1 and self.words[node.begin].lower() in PRONOUNS
            if len(node) < len(self.words) and not pronoun and self.category(node):
                found[node.begin, node.end] = node
        return [found[key] for key in sorted(found)]

    def longest(self) -> Node | None:
        """The longest noun, verb or adjective phrase, the first of equals; None: there is none of two words."""
        phrases = [node for node in self.candidates if len(node) > 1]
        return max(phrases, key=len, default=None)


def read_trees(path):
    """Yield the `Tree`s of a file; MaskLabError naming the file and the line that a broken one ends on."""
    for line, text in _parses(path):
        yield parse(text, f"{path}: line {line}")


def _parses(path):
    """(line, bracketed text) of each parse of a file."""
    if format_of(path) in (".json", ".jsonl", ".tsv"):
        for number, row in _tsv_rows(path) if format_of(path) == ".tsv" else read_json_lines(path):
            fields = [key for key in row if key.endswith("parse") and not key.endswith(BINARY)]
            if not fields:
                raise MaskLabError(f"{path}: line {number}: no field whose name ends in `parse`")
            yield from ((number, str(row[key])) for key in fields)
        return
    number, depth, begun = 0, 0, []
    for number, line in read_lines(path):
        depth += line.count("(") - line.count(")")
        begun += [line] if line.strip() else []
        if begun and depth <= 0:
            yield number, "\n".join(begun)
            depth, begun = 0, []
    if begun:
        raise MaskLabError(f"{path}: line {number}: a parse is not closed")


def _tsv_rows(path):
    """(line, columns) of the rows of GLUE's tables, which quote nothing."""
    columns = None
    for number, line in read_lines(path):
        values = line.split("\t")
        if columns is None:
            columns = values
        elif line.strip():
            yield number, dict(zip(columns, values, strict=False))


def parse(text: str, where: str = "parse") -> Tree:
    """The tree of one bracketed parse; MaskLabError, beginning with `where`: it is none."""
    words, nodes, open_ = [], [], []
    tokens = re.findall(r"[()]|[^\s()]+", text)
    for place, token in enumerate(tokens):
        if token == "(":
            label = tokens[place + 1] if place + 1 < len(tokens) and tokens[place + 1] not in "()" else ""
            open_.append((len(nodes), label, len(words)))
            nodes.append(None)
        elif token == ")":
            if not open_:
                raise MaskLabError(f"{where}: a bracket is closed that was not opened")
            index, label, begin = open_.pop()
            if len(words) == begin:
                raise MaskLabError(f"{where}: a constituent has no word")
            nodes[index] = Node(label, begin, len(words))
        elif place == 0 or tokens[place - 1] != "(" or _is_bare(tokens, place):
            if not open_:
                raise MaskLabError(f"{where}: {token!r} stands outside of any bracket")
            words.append(ESCAPED.get(token, token))
    if open_ or not words:
        raise MaskLabError(f"{where}: {'a bracket is not closed' if open_ else 'no parse in brackets'}")
    return Tree(tuple(words), tuple(nodes))


def _is_bare(tokens, place):
    """Whether what follows a bracket is a word without a label: `(word)`."""
    return tokens[place + 1] == ")" if place + 1 < len(tokens) else False


# --- a tree and its text -----------------------------------------------------------------------


def key_of(text: str) -> str:
    """What a text and its parse have in common: letters, with the marks on them, and digits; "" if it has none."""
    text = unicodedata.normalize("NFC", text.lower())  # one form of a letter with a mark
    kept = [letter for letter in text if letter.isalnum() or unicodedata.category(letter)[0] == "M"]
    return "".join(kept) if any(letter.isalnum() for letter in kept) else ""


def keyed(trees) -> dict[str, list[Tree]]:
    """Trees by their key, those of one key in their order: `Yes .` and `Yes ?` have one.

    Of several with the same words the first is kept. What has no letters and digits is no text's.
    """
    found: dict[str, list[Tree]] = {}
    for tree in trees:
        if key := key_of(" ".join(tree.words)):
            own = found.setdefault(key, [])
            if all(tree.words != other.words for other in own):
                own.append(tree)
    return found


def fitting(trees: list[Tree], text: str) -> tuple[Tree, str, list[tuple[int, int]]]:
    """Of trees of a text's key the first whose words lie in the text, else the first of all; with its `places`."""
    found = [(tree, *places(tree, text)) for tree in trees]
    return next((each for each in found if each[1] == text), found[0])


def places(tree: Tree, text: str) -> tuple[str, list[tuple[int, int]]]:
    """(text, (begin, end) of the characters of each word); of the words joined by spaces if they do not lie in it.

    Capitals are the text's, either way: GLUE's SST-2 has none, the treebank has.
    """
    found, at, small = [], 0, _small(text)
    for word in map(_small, tree.words):
        begin = small.find(word, at)
        if begin < 0 or text[at:begin].strip():
            break
        at = begin + len(word)
        found.append((begin, at))
    if len(found) == len(tree.words) and not text[at:].strip():
        return text, found
    found, at = [], 0
    words = tree.words if text != text.lower() else [_small(word) for word in tree.words]
    for word in words:
        found.append((at, at + len(word)))
        at += len(word) + 1
    return " ".join(words), found


def _small(text: str) -> str:
    """A text in small letters, of the same length."""
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)
