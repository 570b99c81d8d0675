"""What a fine-tuning aims at: its head, its loss, what it predicts, and how predictions are judged.

A goal is what `single.OneByOne` is given besides a course:

    model(pretrained, probe)            a module with `used_parameters()` and `reset_head(generator)`
    loss(model, ids, lengths, labels)   the mean loss of a batch
    predict(model, split)               predictions on a split
    value(split, predictions, select)   what the best evaluation is chosen by; higher is better
    rows(test, valid)                   score rows and item records (`outcomes`); both are (split, predictions)

Spans are in `probes.answer_spans`.
"""

import logging
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from masklab.probes.classifier import Classifier
from masklab.probes.outcomes import of_classes, of_ratings
from masklab.scores.metrics import CLASSES, pearson, spearman, tally
from masklab.tasks.encoding import fitting, sorted_batches

# Tokens per forward pass when measuring (`fitting`): on a CPU few, since what stays in the cache is computed faster.
EVALUATION_TOKENS = {"cpu": 1024, "cuda": 65536}
log = logging.getLogger("masklab")


def outputs(model, split, shape=()) -> torch.Tensor:
    """The model's outputs on every row of a split, [N, *shape] float32 on the CPU; `shape` as of one row."""
    values = torch.empty(len(split), *shape)
    for rows in sorted_batches(split.lengths, fitting(EVALUATION_TOKENS, split.ids.device)):
        ids, lengths, _ = split.batch(rows)
        values[torch.from_numpy(rows)] = model(ids, lengths).float().cpu()
    return values


def answers(logits) -> torch.Tensor:
    """The class of the largest logit, [..., C] -> [...]; -1 where training has diverged and logits are no numbers."""
    return torch.where(logits.isfinite().all(-1), logits.argmax(-1), -1)


def domains(split) -> dict:
    """Rows of each domain of a split, or of all of them as `test`."""
    return split.domains or {"test": np.arange(len(split))}


@dataclass(frozen=True)
class Classification:
    """One of `classes` labels; `metric`: the one the task reports."""

    classes: int
    metric: str = "accuracy"

    def model(self, pretrained, probe):
        return Classifier(pretrained, self.classes, probe.pooling, probe.activation)

    def loss(self, model, ids, lengths, labels):
        return F.cross_entropy(model(ids, lengths), labels)

    def predict(self, model, split) -> np.ndarray:
        return answers(outputs(model, split, (self.classes,))).numpy()

    def value(self, split, predictions, select: str) -> float:
        if (predictions < 0).any():  # it has diverged: worse than whatever has not
            return -np.inf
        counts = tally(split.labels, predictions, self.classes)
        metric = self.metric if select == "task" else "f1" if select == "f1" and self.classes == 2 else "accuracy"
        return float(CLASSES[metric](counts))

    def rows(self, test, valid) -> list[dict]:
        split, predictions = test
        if lost := int((predictions < 0).sum()):  # class 0, as argmax of what is no number is
            log.warning("%s of %s rows get logits that are no numbers: training has diverged", lost, len(predictions))
            predictions = np.maximum(predictions, 0)
        rows = []
        for name, members in domains(split).items():
            rows += of_classes(split.labels[members], predictions[members], self.classes, split=name)
        return rows


@dataclass(frozen=True)
class Regression:
    """A number between `low` and `high`: mean squared error of (number - low) / (high - low) (STS-B)."""

    low: float
    high: float
    metric: str = "spearman"

    def model(self, pretrained, probe):
        return Classifier(pretrained, 1, probe.pooling, probe.activation)

    def loss(self, model, ids, lengths, labels):
        wanted = (labels - self.low) / (self.high - self.low)
        return F.mse_loss(model(ids, lengths)[:, 0].float(), wanted.float())

    def predict(self, model, split) -> np.ndarray:
        return outputs(model, split, (1,))[:, 0].numpy() * (self.high - self.low) + self.low

    def value(self, split, predictions, select: str) -> float:
        if not np.isfinite(predictions).all():  # it has diverged: worse than whatever has not
            return -np.inf
        return (pearson if self.metric == "pearson" else spearman)(split.labels, predictions)

    def rows(self, test, valid) -> list[dict]:
        split, predictions = test
        known = np.isfinite(predictions)
        if lost := int((~known).sum()):  # the least rating, as class 0 of labels; of nothing else the correlation is 0
            log.warning("%s of %s rows get ratings that are no numbers: training has diverged", lost, len(predictions))
            predictions = np.where(known, predictions, self.low)
        rows = []
        for name, members in domains(split).items():
            rows += of_ratings(split.labels[members], predictions[members], split=name)
        return rows


def goal_of(facts: dict, probe):
    """The goal of a task, from its task.json."""
    if facts["kind"] == "labels":
        return Classification(facts["labels"], facts.get("metric", "accuracy"))
    if facts["kind"] == "ratings":
        return Regression(facts["low"], facts["high"], facts["metric"])
    from masklab.probes.answer_spans import Extraction

    return Extraction(facts["metric"], probe.max_answer)
