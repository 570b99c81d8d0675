import numpy as np
import pytest
import scipy.stats
from sklearn import metrics as sk

from masklab.scores.metrics import CLASSES, accuracy, f1, majority, majority_f1, mcc, pearson, ranks, spearman, tally


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_metrics_equal_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    for size in (4, 30, 500):
        labels = rng.integers(0, classes, size)
        predictions = np.where(rng.random(size) < 0.4, labels, rng.integers(0, classes, size))
        counts = tally(labels, predictions, classes)
        average = "binary" if classes == 2 else "macro"
        confusion = sk.confusion_matrix(labels, predictions, labels=range(classes))
        for found, wanted in ((counts.hits, confusion.diagonal()), (counts.true, confusion.sum(1))):
            assert (found == wanted).all()
        assert (counts.predicted == confusion.sum(0)).all() and counts.total == size
        assert accuracy(counts) == pytest.approx(sk.accuracy_score(labels, predictions), abs=1e-12)
        assert mcc(counts) == pytest.approx(sk.matthews_corrcoef(labels, predictions), abs=1e-12)
        assert f1(counts) == pytest.approx(sk.f1_score(labels, predictions, average=average), abs=1e-12)


def test_constant_predictions_are_zero_not_nan():
    counts = tally([0, 1, 1, 0], [0, 0, 0, 0], 2)
    assert (accuracy(counts), mcc(counts), f1(counts)) == (0.5, 0.0, 0.0)
    missing = tally([0, 1, 0], [0, 1, 1], 3)  # class 2 never occurs
    assert f1(missing) == pytest.approx(sk.f1_score([0, 1, 0], [0, 1, 1], average="macro"))


def test_majority_is_what_one_answer_gives():
    labels = [0, 2, 2, 1, 2]
    best = max(accuracy(tally(labels, [answer] * 5, 3)) for answer in range(3))
    counts = tally(labels, [1, 0, 2, 1, 1], 3)
    assert majority(counts) == best == 0.6
    assert majority_f1(counts) == f1(tally(labels, [2] * 5, 3)) == pytest.approx(0.75 / 3)
    two = tally([0, 0, 0, 1], [0, 1, 0, 1], 2)
    assert majority_f1(two) == f1(tally([0, 0, 0, 1], [1] * 4, 2)) == pytest.approx(2 / 5)
    assert majority(two) == 0.75 and majority_f1(tally([0, 0], [0, 0], 2)) == 0


def test_arrays_of_counts_give_arrays_of_values():
    rng = np.random.default_rng(1)
    for classes in (2, 4):
        single = [tally(*rng.integers(0, classes, (2, 20)), classes) for _ in range(6)]
        stacked = type(single[0])(
            *(np.stack([getattr(each, part) for each in single]) for part in ("hits", "true", "predicted")),
            classes == 2,
        )
        for metric in CLASSES.values():
            assert metric(stacked) == pytest.approx([float(metric(each)) for each in single], abs=1e-15)


def test_correlations_are_scipys():
    rng = np.random.default_rng(0)
    for n in (3, 10, 200):
        truth, predictions = rng.integers(0, 5, n) / 2, rng.normal(size=n)
        assert pearson(truth, predictions) == pytest.approx(scipy.stats.pearsonr(truth, predictions)[0])
        assert spearman(truth, predictions) == pytest.approx(scipy.stats.spearmanr(truth, predictions)[0])
        assert spearman(truth, truth * 3 - 1) == pytest.approx(1)
    assert pearson([1, 1, 1], [1, 2, 3]) == 0 == spearman([1, 2, 3], [4, 4, 4])
    assert pearson([0.1] * 3, [1, 2, 3]) == 0  # whose mean is not 0.1 in floating point


def test_ranks_are_scipys_and_one_item_is_a_share():
    values = [3.0, 1.0, 3.0, 2.0, 3.0, 1.0]
    assert ranks(values).tolist() == scipy.stats.rankdata(values).tolist()
    one = tally([1], [1], 2)
    assert accuracy(one) == 1 == majority(one) == f1(one) and one.total == 1


def test_matthews_of_few_items():
    """Against scikit-learn, where the squares under the root are as small as they can be."""
    for labels, given in (([0, 1], [0, 1]), ([0, 1], [1, 0]), ([0, 1, 1], [0, 0, 1]), ([0, 0], [0, 1])):
        assert mcc(tally(labels, given, 2)) == pytest.approx(sk.matthews_corrcoef(labels, given))


@pytest.mark.parametrize("classes", [2, 3])
def test_every_small_case_equals_scikit_learn(classes):
    """All labels and answers of 1, 2 and 3 items."""
    import itertools
    import warnings

    for size in (1, 2, 3):
        for labels in itertools.product(range(classes), repeat=size):
            for given in itertools.product(range(classes), repeat=size):
                counts, how = tally(labels, given, classes), {"average": "binary" if classes == 2 else "macro"}
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = sk.f1_score(labels, given, zero_division=0, **how), sk.matthews_corrcoef(labels, given)
                assert f1(counts) == pytest.approx(wanted[0]), (labels, given)
                assert mcc(counts) == pytest.approx(wanted[1]), (labels, given)
                best = max(np.bincount(labels))
                assert majority(counts) == pytest.approx(best / size)
                answer = 1 if classes == 2 else int(np.bincount(labels).argmax())
                always = tally(labels, [answer] * size, classes)
                assert majority_f1(counts) == pytest.approx(f1(always))


def test_a_correlation_of_numbers_too_small_to_square_is_none():
    assert pearson([0.0, 1e-200], [0.0, 1e-200]) == 0
    nothing = np.array([], int)
    assert accuracy(tally(nothing, nothing, 2)) == 0 == majority(tally(nothing, nothing, 3))
