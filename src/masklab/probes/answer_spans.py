"""Extraction of answers: where the answer to a question begins and ends in its context, or that there is none."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from masklab.probes import squad_metric
from masklab.probes.goals import EVALUATION_TOKENS
from masklab.probes.headed import Headed
from masklab.probes.outcomes import of_items
from masklab.probes.windows import Windows
from masklab.tasks.encoding import fitting, sorted_batches

NEVER = -1e4  # score of a position where no answer can be


class SpanModel(Headed):
    """An encoder with two linear heads on its last states: of the first token of an answer, and of the last."""

    HEAD = ("ends",)

    def __init__(self, encoder):
        super().__init__(encoder)
        self.ends = nn.Linear(encoder.config.hidden, 2)

    def forward(self, ids, lengths, first):
        """Scores [B, T, 2] of begin and end; far below all others where neither can be.

        An answer lies in the context, which begins at token `first` [B]; [CLS] stands for none.
        """
        scores = self.ends(self.encoder.encode(ids, lengths)).float()
        column = torch.arange(ids.shape[1], device=ids.device)
        inside = (column >= first[:, None]) & (column < lengths[:, None] - 1) | (column == 0)
        return scores.masked_fill(~inside[..., None], NEVER)


@dataclass(frozen=True)
class Answers:
    """Predictions for Q questions: the best answer's text, and the doubt that there is one (score of none - of it)."""

    texts: list[str]
    doubts: np.ndarray


@dataclass(frozen=True)
class Extraction:
    """SQuAD 2.0's task: an answer is a span of at most `longest` tokens, or none."""

    metric: str
    longest: int = 30

    def model(self, pretrained, probe):
        return SpanModel(pretrained)

    def loss(self, model, ids, lengths, labels):
        scores = model(ids, lengths, labels[:, 2])
        return (F.cross_entropy(scores[..., 0], labels[:, 0]) + F.cross_entropy(scores[..., 1], labels[:, 1])) / 2

    def predict(self, model, windows: Windows) -> Answers:
        """The best span over all windows of a question, and the lowest score of none (as in BERT's published code)."""
        size = len(windows)
        best, none, span = np.full(size, -np.inf), np.empty(size), np.zeros((size, 2), np.int64)
        for rows in sorted_batches(windows.lengths, fitting(EVALUATION_TOKENS, windows.ids.device)):
            ids, lengths, labels = windows.batch(rows)
            scores = model(ids, lengths, labels[:, 2])
            none[rows] = scores[:, 0].sum(-1).cpu().numpy()
            best[rows], span[rows] = best_spans(scores[:, 1:], self.longest)
        texts, doubts = [""] * len(windows.answers), np.full(len(windows.answers), np.inf)
        top = np.full(len(windows.answers), -np.inf)
        for window, question in enumerate(windows.question):
            doubts[question] = min(doubts[question], none[window])
            if best[window] > top[question]:
                top[question] = best[window]
                begin, end = span[window] + 1 - windows.labels[window, 2]
                where = windows.spans[window]
                texts[question] = windows.contexts[question][where[begin, 0] : where[end, 1]]
        return Answers(texts, doubts - top)

    def value(self, windows, answers: Answers, select: str) -> float:
        scores = self._scores(windows, answers)[self.metric]
        return squad_metric.best_threshold(scores, windows.answerable, answers.doubts, answers.texts)[0]

    def rows(self, test, valid) -> list[dict]:
        """exact and f1 with the threshold that is best on the validation split, and with threshold 0.

        Where all questions of both splits have an answer (SQuAD 1.1), every one is answered, as its script has it.
        `majority` and `majority_f1` are those of giving no answer to any question.
        """
        (windows, answers), (valid_windows, valid_answers) = test, valid
        all_have_one = np.all(windows.answerable) and np.all(valid_windows.answerable)
        rows, tuned = [], self._scores(valid_windows, valid_answers)
        for metric, scores in self._scores(windows, answers).items():
            _, threshold = squad_metric.best_threshold(
                tuned[metric], valid_windows.answerable, valid_answers.doubts, valid_answers.texts
            )
            tuned_or_not = {metric: threshold, f"{metric}_untuned": 0.0}
            for name, at in (dict.fromkeys(tuned_or_not, np.inf) if all_have_one else tuned_or_not).items():
                values = squad_metric.thresholded(scores, windows.answerable, answers.doubts, at)
                rows += of_items(values, name, split="test")
        return rows + of_items(~windows.answerable, "majority", "majority_f1", split="test")

    def _scores(self, windows, answers):
        exact, f1 = squad_metric.raw_scores(windows.answers, answers.texts)
        return {"exact": exact, "f1": f1}


def best_spans(scores: torch.Tensor, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Best sums begin + end of spans of 1 to `longest` tokens: scores [B, T, 2] -> ([B], positions [B, 2])."""
    begin, end = scores[..., 0], scores[..., 1]
    length = scores.shape[1]
    sums = torch.stack(
        [F.pad(begin[:, : length - n] + end[:, n:], (0, n), value=2 * NEVER) for n in range(min(longest, length))], 1
    )
    value, flat = sums.flatten(1).max(1)
    first = flat % length
    return value.cpu().numpy(), torch.stack([first, first + flat // length], 1).cpu().numpy()
