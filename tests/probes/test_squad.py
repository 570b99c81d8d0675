"""SQuAD 2.0's metric on cases whose official result is known, and its threshold against trying every one."""

import numpy as np
import pytest

from masklab.probes.squad_metric import best_threshold, exact, f1, normalise, raw_scores, thresholded


def test_answers_are_compared_without_case_articles_punctuation_and_spaces():
    assert normalise(" The  U.S.A.'s an answer, a-b; theatre!") == "usas answer ab theatre"
    assert exact("the Norman conquest", "Norman Conquest.") == 1 and exact("1976", "1977") == 0
    assert exact("", "the") == 1 and exact("a", "b") == 0


@pytest.mark.parametrize(
    "gold,predicted,value",
    [
        ("1976", "1976", 1.0),
        ("Santa Clara, California", "in Santa Clara", 2 * 2 / 6),  # precision 2/3, recall 2/3
        ("Denver Broncos", "the Broncos", 2 * 1 / 3),  # precision 1, recall 1/2
        ("gold gold anniversary", "gold", 2 * 1 / 4),  # words count as often as they occur in both
        ("France", "Germany", 0.0),
        ("", "", 1.0),
        ("", "Germany", 0.0),
        ("Germany", "", 0.0),
    ],
)
def test_f1(gold, predicted, value):
    assert f1(gold, predicted) == pytest.approx(value)


def test_the_best_of_several_answers_counts_and_no_answer_is_the_empty_one():
    answers = [["1976"], ["Denver Broncos", "Broncos"], [], ["the"]]
    whole, words = raw_scores(answers, ["1976", "the Broncos", "", ""])
    assert whole.tolist() == [1, 1, 1, 1] and words.tolist() == [1, 1, 1, 1]
    whole, words = raw_scores(answers, ["1977", "Denver", "x", "x"])
    assert whole.tolist() == [0, 0, 0, 0] and words.tolist() == pytest.approx([0, 2 / 3, 0, 0])


def test_threshold_of_a_case_by_hand():
    """Doubts .1 (right), .3 (wrong where there is none), .5 (right), .9 (wrong): answering to .1 or .5 gives 3 of 4.

    At .1: right, and the two without answer are right too: 1 + 1 + 0 + 1 = 3. At .5: 1 + 0 + 1 + 1 = 3.
    """
    scores, answerable = np.array([1.0, 0.0, 1.0, 0.0]), np.array([True, False, True, False])
    doubts, texts = np.array([0.1, 0.3, 0.5, 0.9]), ["a", "b", "c", "d"]
    assert best_threshold(scores, answerable, doubts, texts) == (0.75, 0.1)
    assert thresholded(scores, answerable, doubts, 0.1).tolist() == [1, 1, 0, 1]
    assert thresholded(scores, answerable, doubts, 0.5).tolist() == [1, 0, 1, 1]
    # the example of the official metric's documentation: one right answer without doubt
    assert best_threshold(np.ones(1), [True], np.zeros(1), ["1976"]) == (1.0, 0.0)
    assert best_threshold(np.zeros(2), [True, False], np.zeros(2), ["x", "y"]) == (0.5, -np.inf)


def test_threshold_equals_trying_every_one():
    rng = np.random.default_rng(1)
    for _ in range(50):
        n = int(rng.integers(1, 30))
        answerable, doubts = rng.random(n) < 0.6, rng.normal(size=n)
        texts = ["" if rng.random() < 0.1 else "x" for _ in range(n)]
        scores = np.where(answerable, rng.random(n).round(1), [float(text == "") for text in texts])
        value, threshold = best_threshold(scores, answerable, doubts, texts)
        tried = [thresholded(scores, answerable, doubts, at).mean() for at in (-np.inf, *doubts)]
        assert value == pytest.approx(max(tried))
        assert thresholded(scores, answerable, doubts, threshold).mean() == pytest.approx(value)
