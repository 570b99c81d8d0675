"""SQuAD 2.0's metric: exact match and F1 of answers as texts, with a threshold for giving none.

Definitions are those of the official evaluation script (Rajpurkar et al. 2018), in shares instead of percents.
"""

import re
import string
from collections import Counter

import numpy as np

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Lower case without punctuation, articles and extra spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact(gold: str, predicted: str) -> float:
    """1 where both are the same once normalised."""
    return float(normalise(gold) == normalise(predicted))


def f1(gold: str, predicted: str) -> float:
    """F1 of the words both have; where one has none, whether neither has."""
    gold, predicted = normalise(gold).split(), normalise(predicted).split()
    if not gold or not predicted:
        return float(gold == predicted)
    same = sum((Counter(gold) & Counter(predicted)).values())
    return 2 * same / (len(gold) + len(predicted))


def raw_scores(answers: list[list[str]], predictions: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """(exact [N], f1 [N]) of each prediction against the best of its gold answers; none: the right answer is ""."""
    scores = []
    for golds, predicted in zip(answers, predictions, strict=True):
        golds = [gold for gold in golds if normalise(gold)] or [""]
        scores.append((max(exact(gold, predicted) for gold in golds), max(f1(gold, predicted) for gold in golds)))
    return tuple(np.array(scores).reshape(-1, 2).T)


def thresholded(scores, answerable, doubts, threshold: float) -> np.ndarray:
    """Scores [N] when questions with a doubt above `threshold` get no answer: then 1 where none is right."""
    return np.where(np.asarray(doubts) > threshold, 1.0 - np.asarray(answerable, float), scores)


def best_threshold(scores, answerable, doubts, predictions) -> tuple[float, float]:
    """(best mean score, its threshold) over all doubts; minus infinity where no answer at all is best.

    (The official script says 0 there, whatever the doubts.) Goes through questions by rising doubt, answering each, and
    tells questions of equal doubt apart: both as the official script.
    """
    answerable = np.asarray(answerable, bool)
    gain = np.where(answerable, scores, [-1.0 if text else 0.0 for text in predictions])
    order = np.argsort(doubts, kind="stable")
    none = float((~answerable).sum())
    sums = none + np.cumsum(gain[order])
    if len(sums) == 0 or sums.max() <= none:
        return none / max(1, len(sums)), -np.inf
    at = int(np.argmax(sums))
    return float(sums[at]) / len(sums), float(np.asarray(doubts)[order[at]])
