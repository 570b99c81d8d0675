"""A metric of one test set from its items: the truth for `resampled`, and for the rows that probes give with items."""

import numpy as np

from masklab.scores.items import OUTCOME
from masklab.scores.metrics import CLASSES, pearson, spearman, tally


def of_items(metric: str, targets, predictions) -> float:
    """Of two classes where no number is above 1; the mean of what is no answer but an outcome of its own."""
    targets, predictions = np.asarray(targets), np.asarray(predictions)
    if metric in ("pearson", "spearman"):
        return {"pearson": pearson, "spearman": spearman}[metric](targets, predictions)
    if metric not in CLASSES or (targets == OUTCOME).all():
        return float(predictions.astype(float).mean())
    targets, predictions = targets.astype(np.int64), predictions.astype(np.int64)
    classes = max(2, int(targets.max()) + 1, int(predictions.max()) + 1)
    return float(CLASSES[metric](tally(targets, predictions, classes)))
