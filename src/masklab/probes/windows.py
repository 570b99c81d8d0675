"""Questions and contexts as windows of tokens: [CLS] question [SEP] part of the context [SEP]."""

from dataclasses import dataclass

import numpy as np
import torch

from masklab.errors import MaskLabError
from masklab.files import read_table
from masklab.tasks.encoding import of_text
from masklab.tokenizers import CLS, PAD, SEP


@dataclass(frozen=True)
class Windows:
    """Windows of a split's questions, in order; W windows, Q questions.

    ids       [W, T] int32 on the device, padded
    lengths   [W] tokens, specials counted
    labels    [W, 3] first and last token of the answer (0, 0: none in this window), first token of the context
    question  [W] which question, ascending
    spans     per window, [tokens of its part of the context, 2] characters that each stands for
    contexts, answers   [Q] the context, and the list of right answers (empty: there is none)
    """

    ids: torch.Tensor
    lengths: np.ndarray
    labels: np.ndarray
    question: np.ndarray
    spans: list[np.ndarray]
    contexts: list[str]
    answers: list[list[str]]

    def __len__(self):
        return len(self.lengths)

    @property
    def answerable(self) -> np.ndarray:
        return np.array([bool(answers) for answers in self.answers])

    def rows(self, questions: int) -> int:
        """Windows of the first `questions` questions."""
        return int(np.searchsorted(self.question, questions))

    def batch(self, rows: np.ndarray):
        """(ids [B, T], lengths [B], labels [B, 3]) of `rows`, on the device, T = longest of them."""
        device, lengths = self.ids.device, self.lengths[rows]
        rows, counts, labels = (
            torch.from_numpy(part).to(device, non_blocking=True) for part in (rows, lengths, self.labels[rows])
        )
        return self.ids[rows, : int(lengths.max())].long(), counts, labels


def encode_windows(path, tokenizer, max_length: int, stride: int, max_question: int, device="cpu") -> Windows:
    """A split's file as windows: columns question, context, answers (list of texts), starts (list of characters).

    A context that does not fit next to its question (cut to `max_question` tokens) is read in windows that begin
    `stride` tokens apart. The label is the first answer's; an answer that a window does not hold whole is none in it.

    Raises:
        MaskLabError: naming file and row: an answer that is not where `starts` says; no room for a context.
    """
    frame = read_table(path).to_pylist()
    questions = tokenizer.encode_batch([row["question"] for row in frame], add_special_tokens=False)
    contexts = tokenizer.encode_batch([row["context"] for row in frame], add_special_tokens=False)
    rows, labels, owner, spans = [], [], [], []
    for number, (row, question, context) in enumerate(zip(frame, questions, contexts, strict=True)):
        asked = of_text(question.ids[:max_question])
        room = max_length - len(asked) - 3
        if room < 1 or not context.ids:
            message = "the context is empty" if room > 0 else f"the question leaves no room in {max_length} tokens"
            raise MaskLabError(f"{path}: row {number + 1}: {message}")
        where = _stripped(context.offsets, row["context"])
        answer = _answer(row, where, path, number)
        for begin in _starts(len(where), room, stride):
            part = slice(begin, begin + room)
            first = len(asked) + 2
            ids = of_text(context.ids[part])
            inside = answer is not None and begin <= answer[0] and answer[1] < begin + len(ids)
            labels.append([answer[0] - begin + first, answer[1] - begin + first, first] if inside else [0, 0, first])
            rows.append([CLS, *asked, SEP, *ids, SEP])
            spans.append(where[part])
            owner.append(number)
    lengths = np.array([len(row) for row in rows], np.int64)
    ids = np.full((len(rows), int(lengths.max(initial=3))), PAD, np.int32)
    for row, place in zip(rows, ids, strict=True):
        place[: len(row)] = row
    texts = [row["context"] for row in frame], [list(row["answers"]) for row in frame]
    labels = np.array(labels, np.int64).reshape(-1, 3)
    return Windows(torch.from_numpy(ids).to(device), lengths, labels, np.array(owner), spans, *texts)


def _starts(tokens: int, room: int, stride: int) -> list[int]:
    """Where windows of `room` tokens begin so that the last one reaches the end."""
    starts = [0]
    while starts[-1] + room < tokens:
        starts.append(starts[-1] + min(stride, room))
    return starts


def _stripped(offsets, text: str) -> np.ndarray:
    """Characters [start, end) of each token without the spaces around it, [n, 2]; a token of spaces is empty."""
    bounds = np.array(offsets, np.int64).reshape(-1, 2)
    for row in bounds:
        piece = text[row[0] : row[1]]
        row[0] += len(piece) - len(piece.lstrip())
        row[1] = max(row[0], row[1] - len(piece) + len(piece.rstrip()))
    return bounds


def _answer(row, where, path, number):
    """First and last token that the first answer touches, or None."""
    if not row["answers"]:
        return None
    text, start = row["answers"][0], row["starts"][0]
    if row["context"][start : start + len(text)] != text:
        raise MaskLabError(f"{path}: row {number + 1}: the answer {text!r} does not stand at character {start}")
    touched = np.flatnonzero((where[:, 1] > start) & (where[:, 0] < start + len(text)))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None
