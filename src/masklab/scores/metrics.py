"""Metrics of predictions: of classes from counts per class (definitions: scikit-learn's), of ratings from the numbers.

Every function of a `Tally` works on one set of counts or on arrays of them, so that a metric has one definition,
whether it is computed once or on thousands of resampled test sets.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tally:
    """Answers counted by class, [..., C] each: `hits` right ones, `true` labels, `predicted` answers.

    two: whether the task has two classes, of which class 1 is the one looked for. Classes that occur nowhere may be
    left out of the C, except then.
    """

    hits: np.ndarray
    true: np.ndarray
    predicted: np.ndarray
    two: bool

    @property
    def total(self):
        """Items, [...]."""
        return self.true.sum(-1)


def tally(labels, predictions, classes: int) -> Tally:
    """Counts of the answers [n] to a task of so many classes, both numbered from 0."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    counts = (np.bincount(each, minlength=classes) for each in (labels[labels == predictions], labels, predictions))
    return Tally(*(np.asarray(each, float) for each in counts), classes == 2)


def accuracy(counts: Tally):
    """Share of correct predictions."""
    return counts.hits.sum(-1) / np.maximum(counts.total, 1)


def mcc(counts: Tally):
    """Matthews correlation (Gorodkin's R_k for several classes); 0 where it is undefined."""
    total, true, predicted = counts.total, counts.true, counts.predicted
    covariance = counts.hits.sum(-1) * total - (true * predicted).sum(-1)
    scale = np.sqrt((total**2 - (predicted * predicted).sum(-1)) * (total**2 - (true * true).sum(-1)))
    return np.where(scale > 0, covariance / np.where(scale > 0, scale, 1), 0.0)


def f1(counts: Tally):
    """F1 of class 1 for two classes; else the mean F1 of the classes that occur in labels or predictions.

    A class with neither a true nor a predicted member is left out, as in scikit-learn; F1 is 0 without hits.
    """
    either = counts.true + counts.predicted
    scores = 2 * counts.hits / np.maximum(either, 1)
    if counts.two:
        return scores[..., 1]
    return scores.sum(-1) / np.maximum((either > 0).sum(-1), 1)


def majority(counts: Tally):
    """Share of the largest class: the accuracy of always giving one answer."""
    return counts.true.max(-1) / np.maximum(counts.total, 1)


def majority_f1(counts: Tally):
    """F1 of always giving the answer that is best for it: class 1 of two classes, the largest of more."""
    classes = counts.true.shape[-1]
    answer = np.ones(counts.true.shape[:-1], int) if counts.two else counts.true.argmax(-1)
    given = np.arange(classes) == np.asarray(answer)[..., None]
    return f1(Tally(counts.true * given, counts.true, counts.total[..., None] * given, counts.two))


CLASSES = {"accuracy": accuracy, "mcc": mcc, "f1": f1, "majority": majority, "majority_f1": majority_f1}


def pearson(truth, predictions) -> float:
    """Correlation of two lists of numbers; 0 where one of them is constant."""
    truth, predictions = np.asarray(truth, float), np.asarray(predictions, float)
    if truth.min() == truth.max() or predictions.min() == predictions.max():
        return 0.0
    truth, predictions = truth - truth.mean(), predictions - predictions.mean()
    scale = np.sqrt((truth @ truth) * (predictions @ predictions))
    return float(truth @ predictions / scale) if scale else 0.0


def spearman(truth, predictions) -> float:
    """Correlation of the ranks; equal numbers share the mean of their ranks."""
    return pearson(ranks(truth), ranks(predictions))


def ranks(values) -> np.ndarray:
    """Rank of each number, from 1; equal numbers share the mean of their ranks."""
    _, inverse, counts = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]
