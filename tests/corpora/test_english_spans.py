"""Generated questions and ratings, worked out again from their text by other means."""

import re

import numpy as np
import pytest

from masklab.config.schema import EnglishRatings, EnglishSpans
from masklab.corpora.english.lexicon import LEXICON
from masklab.corpora.english.ratings import rating_task
from masklab.tasks import build, write_task

PAST = dict(zip(LEXICON["V(hum,part)"], LEXICON["V(hum,past)"], strict=True))
SIZES = {"train": 120, "valid": 31, "test": 40}


def event(sentence):
    """(who, did what, to whom) of a sentence; None where it tells no event."""
    text = sentence.lower().rstrip(".")
    if found := re.fullmatch(r"(the \w+) was (\w+) by (the \w+)", text):
        return found[3], PAST[found[2]], found[1]
    found = re.fullmatch(r"(the \w+) (\w+) (the \w+)", text)
    return found and found.groups()


def test_questions_have_exactly_the_answers_that_follow_from_the_context(tmp_path):
    config = EnglishSpans(kind="english-spans", **SIZES)
    splits, facts = build(config, "t", 1)
    assert facts["rows"] == SIZES
    contexts = [row["context"] for frame in splits.values() for row in frame.to_dict("records")]
    assert len(set(contexts)) == len(contexts)
    for split, frame in splits.items():
        right = 0
        for row in frame.to_dict("records"):
            events = [e for e in map(event, re.findall(r"[^.]+\.", row["context"].replace(". ", "."))) if e]
            assert len(events) == 2
            question = row["question"].lower().rstrip("?")
            if found := re.fullmatch(r"who was (\w+) by (the \w+)", question):
                answers = [c for a, v, c in events if (a, v) == (found[2], PAST[found[1]])]
                mentioned = PAST[found[1]], found[2]
            else:
                verb, whom = re.fullmatch(r"who (\w+) (the \w+)", question).groups()
                answers = [a for a, v, c in events if (v, c) == (verb, whom)]
                mentioned = verb, whom
            # with or without an answer, verb and person are in the context
            assert mentioned[0] in [e[1] for e in events] and mentioned[1] in [p for e in events for p in e]
            assert [a.lower() for a in row["answers"]] == answers
            for text, start in zip(row["answers"], row["starts"], strict=True):
                assert row["context"][start : start + len(text)] == text
            right += bool(answers)
        assert right == (SIZES[split] + 1) // 2
    assert build(config, "t", 1)[0]["test"].equals(splits["test"])
    write_task(tmp_path, splits, facts)


def test_ratings_are_what_the_sentences_have_in_common(tmp_path):
    config = EnglishRatings(kind="english-ratings", **SIZES)
    splits, facts = build(config, "t", 1)
    assert (facts["kind"], facts["low"], facts["high"]) == ("ratings", 0.0, 5.0)
    for split, frame in splits.items():
        assert frame["label"].value_counts().between(SIZES[split] // 6, SIZES[split] // 6 + 1).all()
        for row in frame.to_dict("records"):
            (a, v, b), (c, w, d) = event(row["text_a"]), event(row["text_b"])
            if (a, b) == (d, c):
                rating = 4 if v == w else 2
            else:
                rating = {3: 5, 2: 3, 1: 1, 0: 0}[(a == c) + (v == w) + (b == d)]
            assert row["label"] == rating, row
    write_task(tmp_path, splits, facts)


def test_impossible_sizes_are_said():
    from masklab.corpora.english.questions import question_task

    assert len(question_task({"train": 1}, 1)["train"]) == 1
    with pytest.raises(ValueError):
        EnglishSpans(kind="english-spans", train=0)


def test_ratings_of_few_rows_lie_far_apart():
    """Down to the two rows that a correlation takes; of more rows, every rating is there."""
    drawn = {rows: rating_task({"train": rows}, 1)["train"]["label"].to_numpy() for rows in (1, 2, 3, 5, 6, 7, 31)}
    assert {rows: sorted(labels) for rows, labels in drawn.items() if rows < 6} == {
        1: [0], 2: [0, 5], 3: [0, 2, 5], 5: [0, 1, 2, 4, 5],
    }  # fmt: skip
    for rows in (6, 7, 31):
        counts = np.bincount(drawn[rows].astype(int), minlength=6)
        assert counts.min() >= 1 and counts.max() - counts.min() <= 1 and counts.sum() == rows
