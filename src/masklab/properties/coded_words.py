"""Tokens of some text with their codes, and the words that they are parts of."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from tokenizers import decoders

from masklab.sparse.targets import Codes
from masklab.tokenizers import SPECIALS, UNK

MARK = "▁"  # how a piece begins that begins a word
GOES_ON, SPACE = "##", "Ġ"  # how one begins that goes on with a word, or begins one, in other tokenizers
WORD = re.compile(r"\w+|[^\w\s]")
UNKNOWN = "\ue000"  # stands for a token that spells nothing, while words are looked for
RUN = re.compile(rf"{UNKNOWN}|\w+|[^\w\s{UNKNOWN}]+")
JOINERS = "\u200c\u200d"  # stand within words of Persian and of languages of India


class _Lettered(dict):
    """Takes what stands within words and is no letter to Python, marks of letters and joiners, to a letter."""

    def __missing__(self, code):
        char = chr(code)
        self[code] = "x" if char in JOINERS or unicodedata.category(char)[0] == "M" else char
        return self[code]


LETTERED = _Lettered()


def _found(pattern, text: str) -> list[tuple[int, int]]:
    """Where words, or what else a pattern looks for, begin and end in a text."""
    return [match.span() for match in pattern.finditer(text if text.isascii() else text.translate(LETTERED))]


@dataclass(frozen=True)
class Words:
    """The words of one sequence. glued: whether each follows the one before without a space; of: each token's word."""

    words: list[str]
    glued: list[bool]
    of: np.ndarray

    def shown(self, first: int, last: int) -> str:
        """Words first to last (excluded) as text."""
        words = range(max(first, 0), min(last, len(self.words)))
        return "".join(("" if self.glued[at] else " ") + self.words[at] for at in words).strip()


def with_marks(pieces: list[str]) -> tuple[list[str], bool]:
    """The pieces of a vocabulary, of which those that begin a word begin with `MARK`, and whether any is part of one.

    WordPiece marks the others, by ##; byte pairs made elsewhere write a space as Ġ, and all else byte by byte.
    """
    counts = {mark: sum(piece.startswith(mark) for piece in pieces) for mark in (MARK, GOES_ON, SPACE)}
    usual = max(counts, key=counts.get)  # a text may hold the marks of others
    if not counts[usual]:
        return pieces, False
    if usual == GOES_ON:
        return [piece[2:] if piece.startswith(GOES_ON) and piece != GOES_ON else MARK + piece for piece in pieces], True
    if usual == SPACE:
        bytewise = decoders.ByteLevel()
        texts = [bytewise.decode([piece]) for piece in pieces]
        return [MARK + text[1:] if text.startswith(" ") else text for text in texts], True
    return pieces, True


def words_of_pieces(pieces: list[str], marked: bool = True) -> Words:
    """Words of a sequence of pieces; marked: those that begin a word begin with `MARK`, else each is a word.

    What is of letters and digits and what is not are never one word, whatever pieces hold of both; a piece belongs to
    the word that it begins in, and one that is a mark alone to the word that follows.
    """
    if not marked:
        return Words(list(pieces), [False] * len(pieces), np.arange(len(pieces)))
    text, begin = "", []
    for piece in pieces:
        begin.append(len(text))
        special = piece.removeprefix(MARK) in SPECIALS
        text += " " * piece.startswith(MARK) + UNKNOWN if special else piece.replace(MARK, " ")
    found = _found(RUN, text)
    if not found:
        return Words([""], [False], np.zeros(len(pieces), np.int64))
    firsts = [next((at for at in range(start, len(text)) if not text[at].isspace()), start) for start in begin]
    of = np.searchsorted([start for start, _ in found], firsts, "right") - 1
    return Words([text[a:b].replace(UNKNOWN, SPECIALS[UNK]) for a, b in found], _glued(found), of)


def words_of_text(text: str, spans: list[tuple[int, int]]) -> tuple[Words, np.ndarray]:
    """Words of a text, and which tokens lie in one, [tokens] bool; spans: the characters that each token stands for."""
    found = _found(WORD, text)
    starts = np.array([start for start, _ in found], np.int64)
    firsts = [next((at for at in range(a, b) if not text[at].isspace()), -1) for a, b in spans]
    of = np.searchsorted(starts, firsts, "right") - 1
    kept = of >= 0
    return Words([text[a:b] for a, b in found], _glued(found), of[kept]), kept


def _glued(found) -> list[bool]:
    return [at > 0 and start == found[at - 1][1] for at, (start, _) in enumerate(found)]


@dataclass(frozen=True)
class Sample:
    """Coded tokens of some sequences.

    sequences: their words. row, word [n]: the sequence of each token and its word there. codes [n, k] float64, a
    compressed sparse row matrix of the coefficients. forms: words as they are counted, in lower case; form [n]: that of
    each token.
    """

    sequences: list[Words]
    row: np.ndarray
    word: np.ndarray
    codes: sparse.csr_matrix
    forms: list[str]
    form: np.ndarray

    @classmethod
    def of(cls, sequences: Iterable[Words], codes: Codes, atoms: int) -> "Sample":
        """A sample from its sequences and the codes of all their tokens, end to end."""
        sequences = list(sequences)
        row = np.repeat(np.arange(len(sequences)), [len(each.of) for each in sequences])
        word = np.concatenate([each.of for each in sequences]) if sequences else np.empty(0, np.int64)
        lower = [sequences[r].words[w].lower() for r, w in zip(row.tolist(), word.tolist(), strict=True)]
        forms = sorted(set(lower))  # no array of text, in which each word would be as wide as the longest
        place = {each: at for at, each in enumerate(forms)}
        form = np.array([place[each] for each in lower], np.int64)
        parts = (getattr(codes, name).cpu().numpy() for name in ("values", "indices", "indptr"))
        matrix = sparse.csr_matrix(tuple(parts), shape=(len(row), atoms)).astype(np.float64)
        return cls(sequences, row, word, matrix, forms, form)

    @property
    def counts(self) -> np.ndarray:
        """Tokens of each form, [forms]."""
        return np.bincount(self.form, minlength=len(self.forms))

    def first_tokens(self) -> np.ndarray:
        """Numbers of the first token of each occurrence of a word, [occurrences]."""
        begins = (np.diff(self.row, prepend=-1) != 0) | (np.diff(self.word, prepend=-1) != 0)
        return np.flatnonzero(begins)

    @property
    def occurrences(self) -> np.ndarray:
        """Occurrences of each form, [forms]: a word of three tokens is one."""
        return np.bincount(self.form[self.first_tokens()], minlength=len(self.forms))

    def mean_codes(self) -> sparse.csr_matrix:
        """The mean code of the tokens of each form, [forms, k]."""
        tokens = np.arange(len(self.form))
        pick = sparse.csr_matrix((1 / self.counts[self.form], (self.form, tokens)), (len(self.forms), len(tokens)))
        return (pick @ self.codes).tocsr()
