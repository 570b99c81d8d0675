"""Features of test examples of text: where they lie, and the example with another text in their place."""

from dataclasses import dataclass
from functools import cached_property

from masklab.errors import MaskLabError
from masklab.files import read_table
from masklab.phrases.parses import KINDS, fitting, key_of


@dataclass(frozen=True)
class Text:
    """A text of an example: which one (0 or 1), its tree, and where the tree's words lie in it."""

    side: int
    text: str
    tree: object
    at: list

    def place(self, node) -> tuple[int, int]:
        """Characters of a node."""
        return self.at[node.begin][0], self.at[node.end - 1][1]

    def part(self, node) -> str:
        begin, end = self.place(node)
        return self.text[begin:end]


@dataclass(frozen=True)
class Example:
    """texts: (first, second or None); parsed: those that have a tree; label."""

    texts: tuple
    parsed: list
    label: int


@dataclass(frozen=True)
class Feature:
    """What is replaced: of an example, a node of one of its texts, by `new`.

    tag: of the Penn Treebank, where the tree does not say it.
    """

    example: Example
    text: Text
    node: object
    new: str
    tag: str | None = None

    @property
    def old(self) -> str:
        return self.text.part(self.node)

    @property
    def category(self) -> str:
        """noun, verb or adjective."""
        return KINDS[self.tag[0]] if self.tag else self.text.tree.category(self.node)

    @property
    def form(self) -> str:
        """Its part of speech and inflection: the tag, or the label of its node."""
        return self.tag or self.node.label

    @cached_property
    def texts(self) -> tuple:
        """The example's texts with the replacement."""
        begin, end = self.text.place(self.node)
        texts = list(self.example.texts)
        texts[self.text.side] = self.text.text[:begin] + self.new + self.text.text[end:]
        return tuple(texts)

    def shown(self) -> str:
        """The text with the paraphrase in brackets behind what it replaces."""
        _, end = self.text.place(self.node)
        return f"{self.text.text[:end]} [{self.new}]{self.text.text[end:]}"


def read_examples(path, trees: dict, most: int) -> list[Example]:
    """The first `most` examples of a test file of which a text has a parse; trees: as `parses.keyed` gives them.

    MaskLabError naming the file: it holds no texts, or no example has a parse.
    """
    table = read_table(path)
    if "text_a" not in table.column_names:
        raise MaskLabError(f"{path}: holds no texts; paraphrases need some")
    seconds = table["text_b"].to_pylist() if "text_b" in table.column_names else [None] * len(table)
    examples = []
    for first, second, label in zip(table["text_a"].to_pylist(), seconds, table["label"].to_pylist(), strict=True):
        texts, own = [first, second], []
        for side, text in enumerate(texts):
            if text is not None and (given := trees.get(key_of(text))):
                tree, texts[side], at = fitting(given, text)
                own.append(Text(side, texts[side], tree, at))
        if own and len(examples) < most:
            examples.append(Example(tuple(texts), own, label))
    if not examples:
        read = sum(map(len, trees.values()))
        raise MaskLabError(f"{path}: none of its {len(table)} examples has a parse among the {read} read")
    return examples
