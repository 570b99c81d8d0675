"""Labelled tasks: labels worked out again from the text by other means, balance, disjoint splits."""

import re

import numpy as np
import pytest
from recogniser import recognises
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from masklab.corpora.english import word_lists
from masklab.corpora.english.labelled_tasks import RECIPES, labelled
from masklab.corpora.english.lexicon import LEXICON
from masklab.errors import MaskLabError

SIZES = {"train": 160, "valid": 61, "test": 80}


@pytest.fixture(scope="module")
def tasks():
    return {name: labelled(name, SIZES, seed=5) for name in RECIPES}


def _forms(*frames: str) -> set[str]:
    return {w for c, entries in LEXICON.items() if c.startswith(tuple(f"V({f}," for f in frames)) for w in entries}


def _main_verb(text: str) -> bool:
    """Is the main verb in -ing: `was ...ing` outside relative and complement clauses."""
    return bool(re.search(r"\bwas \w+ing\b", re.sub(r"who was \w+ing|that [A-Z]\w+ was \w+ing", "", text)))


def _control(text: str) -> bool:
    control = _forms("want") | set(LEXICON["Control"])
    raising = _forms("seem") | set(LEXICON["Raising"])
    word = re.search(r"(\w+) to ", text).group(1)
    assert (word in control) != (word in raising)
    return word in control


def _category(text: str) -> bool:
    predicate = re.search(r" was (\w+)", text).group(1)
    return any(predicate in entries.split() for entries in word_lists.ADJECTIVES.values())


def _lexical(text: str) -> bool:
    return re.search(r"\bthe\b", text.lower()) is not None


def _position(text: str) -> bool:
    lower = text.lower()
    return re.search(r"\bthe\b", lower).start() < re.search(r"\ban?\b", lower).start()


LINGUISTIC = {"main_verb": _main_verb, "control_raising": _control, "syntactic_category": _category}
SURFACE = {"lexical_content": _lexical, "relative_position": _position}


def test_shape_balance_and_disjoint_splits(tasks):
    for name, splits in tasks.items():
        seen: set[str] = set()
        for split, frame in splits.items():
            assert list(frame.columns) == ["text_a", "text_b", "label"]
            assert len(frame) == SIZES[split]
            assert frame.label.dtype == np.int64
            assert abs(frame.label.mean() - 0.5) < 0.02
            assert frame.text_b.notna().all() if RECIPES[name].pair else frame.text_b.isna().all()
            texts = [*frame.text_a, *frame.text_b.dropna()]
            assert len(set(texts)) == len(texts), name
            assert not seen & set(texts), name
            seen |= set(texts)


def test_sentences_are_in_the_language(tasks):
    for name, splits in tasks.items():
        frame = splits["test"]
        if name == "acceptability":
            assert (frame.text_a.map(recognises) == frame.label.astype(bool)).all()
        else:
            texts = [*frame.text_a, *frame.text_b.dropna()]
            assert [text for text in texts if not recognises(text)] == [], name


def test_sentiment_labels(tasks):
    positive = set(word_lists.ADJECTIVES["pos"].split()) | _forms("lovepos")
    negative = set(word_lists.ADJECTIVES["neg"].split()) | _forms("loveneg")
    clear = 0
    for row in tasks["sentiment"]["train"].itertuples():
        # the last opinion word is the predicate's, unless a noun phrase follows a verb of liking
        found = re.findall(r"\w+", row.text_a)
        verbs = [w for w in found if w in _forms("lovepos", "loveneg")]
        opinion = verbs[0] if verbs else [w for w in found if w in positive | negative][-1]
        assert row.label == ((opinion in positive) != ("not" in found)), row.text_a
        clear += "not" in found
    assert 0.4 < clear / len(tasks["sentiment"]["train"]) < 0.6


def test_entailment_and_paraphrase_labels(tasks):
    checked = 0
    for row in [*tasks["entailment"]["train"].itertuples(), *tasks["paraphrase"]["train"].itertuples()]:
        passive = re.fullmatch(r"The (\w+) (?:was|had been) (\w+) by the (\w+)\.", row.text_b)
        active = re.fullmatch(r"The (\w+) (?:had )?(\w+) the (\w+)\.", row.text_a)
        if passive and active:
            assert row.label == ((active[1], active[3]) == (passive[3], passive[1])), row
            checked += 1
        comparison = [re.fullmatch(r"The (\w+) was (\w+) than the (\w+)\.", text) for text in (row.text_a, row.text_b)]
        if all(comparison):
            assert row.label == (comparison[0].group(1) == comparison[1].group(3)), row
            checked += 1
        implicative = re.fullmatch(r"(\w+) (managed|failed) to .*", row.text_a)
        if implicative:
            assert row.label == ((implicative[2] == "managed") != (" did not " in row.text_b)), row
            checked += 1
        subject = re.fullmatch(r"The (\w+) who \w+ the \w+ \w+\.", row.text_a)
        if subject:
            assert row.label == (row.text_b.split()[1] == subject[1]), row
            checked += 1
    assert checked > 60


def test_msgs_controls(tasks):
    features = {
        "control_main_verb": _main_verb,
        "control_control_raising": _control,
        "control_syntactic_category": _category,
        "control_lexical_content": _lexical,
        "control_relative_position": _position,
    }
    assert set(features) == {name for name, recipe in RECIPES.items() if recipe.group == "msgs-control"}
    for name, feature in features.items():
        for frame in tasks[name].values():
            assert [row.text_a for row in frame.itertuples() if feature(row.text_a) != row.label] == [], name


def test_msgs_ambiguous_tasks_coincide_in_training_and_cross_in_test(tasks):
    names = {name for name, recipe in RECIPES.items() if recipe.group == "msgs-ambiguous"}
    assert names == {f"{linguistic}_{surface}" for linguistic in LINGUISTIC for surface in SURFACE}
    for linguistic, first in LINGUISTIC.items():
        for surface, second in SURFACE.items():
            for split, frame in tasks[f"{linguistic}_{surface}"].items():
                for row in frame.itertuples():
                    assert first(row.text_a) == row.label, row.text_a
                    assert (second(row.text_a) == row.label) == (split != "test"), row.text_a


def _bag_of_words_accuracy(train_texts, train_labels, test_texts, test_labels) -> float:
    vectorizer = CountVectorizer(min_df=2, ngram_range=(1, 2))
    model = LogisticRegression(max_iter=500).fit(vectorizer.fit_transform(train_texts), train_labels)
    return model.score(vectorizer.transform(test_texts), test_labels)


@pytest.mark.parametrize("recipe", ["entailment", "paraphrase"])
def test_one_sentence_alone_does_not_give_the_label(recipe):
    splits = labelled(recipe, {"train": 5000, "test": 5000}, seed=6)
    train, test = splits["train"], splits["test"]
    assert train.label.mean() == test.label.mean() == 0.5
    for column in ("text_a", "text_b"):
        accuracy = _bag_of_words_accuracy(train[column], train.label, test[column], test.label)
        assert abs(accuracy - 0.5) < 0.05, (column, accuracy)  # seven standard errors


def test_sentiment_is_no_bag_of_words():
    splits = labelled("sentiment", {"train": 2000, "test": 800}, seed=6)
    vectorizer = CountVectorizer(min_df=2)
    train, test = splits["train"], splits["test"]
    model = LogisticRegression(max_iter=500).fit(vectorizer.fit_transform(train.text_a), train.label)
    assert model.score(vectorizer.transform(test.text_a), test.label) < 0.6


def test_seed_and_unknown_recipe():
    sizes = {"train": 20, "test": 10}
    for name in ("entailment", "acceptability"):
        one, again, other = (labelled(name, sizes, seed) for seed in (1, 1, 2))
        assert all(one[split].equals(again[split]) for split in sizes)
        assert not one["train"].equals(other["train"])
    with pytest.raises(MaskLabError, match="unknown recipe 'polarity'"):
        labelled("polarity", sizes, 1)
