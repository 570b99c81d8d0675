import numpy as np
import pytest
from sklearn import metrics as sk

from masklab.probes.metrics import accuracy, confusion, f1, majority, mcc


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_metrics_equal_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    for size in (4, 30, 500):
        labels = rng.integers(0, classes, size)
        predictions = np.where(rng.random(size) < 0.4, labels, rng.integers(0, classes, size))
        counts = confusion(labels, predictions, classes)
        average = "binary" if classes == 2 else "macro"
        assert (counts == sk.confusion_matrix(labels, predictions, labels=range(classes))).all()
        assert accuracy(counts) == pytest.approx(sk.accuracy_score(labels, predictions), abs=1e-12)
        assert mcc(counts) == pytest.approx(sk.matthews_corrcoef(labels, predictions), abs=1e-12)
        assert f1(counts) == pytest.approx(sk.f1_score(labels, predictions, average=average), abs=1e-12)


def test_constant_predictions_are_zero_not_nan():
    counts = confusion([0, 1, 1, 0], [0, 0, 0, 0], 2)
    assert (accuracy(counts), mcc(counts), f1(counts)) == (0.5, 0.0, 0.0)
    missing = confusion([0, 1, 0], [0, 1, 1], 3)  # class 2 never occurs
    assert f1(missing) == pytest.approx(sk.f1_score([0, 1, 0], [0, 1, 1], average="macro"))


def test_majority_is_the_accuracy_of_one_answer():
    labels = [0, 2, 2, 1, 2]
    best = max(accuracy(confusion(labels, [answer] * 5, 3)) for answer in range(3))
    assert majority(confusion(labels, [1, 0, 2, 1, 1], 3)) == best == 0.6
