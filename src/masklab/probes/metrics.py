"""Classification metrics from one confusion matrix (definitions: scikit-learn's)."""

import numpy as np


def confusion(labels, predictions, classes: int) -> np.ndarray:
    """Counts [classes, classes]: row = true label, column = prediction."""
    flat = np.asarray(labels) * classes + np.asarray(predictions)
    return np.bincount(flat, minlength=classes * classes).reshape(classes, classes)


def accuracy(counts) -> float:
    """Share of correct predictions."""
    return float(np.trace(counts) / max(1, counts.sum()))


def mcc(counts) -> float:
    """Matthews correlation (Gorodkin's R_k for several classes); 0 where it is undefined."""
    counts = np.asarray(counts, dtype=float)
    total, true, predicted = counts.sum(), counts.sum(1), counts.sum(0)
    covariance = np.trace(counts) * total - true @ predicted
    scale = np.sqrt((total**2 - predicted @ predicted) * (total**2 - true @ true))
    return float(covariance / scale) if scale else 0.0


def f1(counts) -> float:
    """F1 of class 1 for two classes; else the mean F1 of the classes that occur in labels or predictions.

    A class with neither a true nor a predicted member is left out, as in scikit-learn; F1 is 0 without hits.
    """
    counts = np.asarray(counts, dtype=float)
    hits, either = np.diag(counts), counts.sum(0) + counts.sum(1)
    scores = 2 * hits / np.maximum(either, 1)
    if len(counts) == 2:
        return float(scores[1])
    return float(scores[either > 0].mean()) if (either > 0).any() else 0.0


def majority(counts) -> float:
    """Share of the largest class: the accuracy of always giving one answer."""
    return float(np.sum(counts, axis=1).max() / max(1, np.sum(counts)))


METRICS = {"accuracy": accuracy, "mcc": mcc, "f1": f1, "majority": majority}


def pearson(truth, predictions) -> float:
    """Correlation of two lists of numbers; 0 where one of them is constant."""
    truth, predictions = (np.asarray(values, float) - np.mean(values) for values in (truth, predictions))
    scale = np.sqrt((truth @ truth) * (predictions @ predictions))
    return float(truth @ predictions / scale) if scale else 0.0


def spearman(truth, predictions) -> float:
    """Correlation of the ranks; equal numbers share the mean of their ranks."""
    return pearson(_ranks(truth), _ranks(predictions))


def _ranks(values):
    _, inverse, counts = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]
