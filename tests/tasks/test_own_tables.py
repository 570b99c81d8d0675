"""The tables of a task of a user's own are checked when they are made."""

import pandas as pd
import pyarrow as pa
import pytest

from masklab.config.kinds import Kind
from masklab.errors import MaskLabError
from masklab.tasks.own_tables import SPLITS, checked

KIND = Kind("tasks", "k", None, len, (), "mine.py")
FACTS = {
    "labels": {"kind": "labels", "labels": 2, "metric": "mcc"},
    "ratings": {"kind": "ratings", "low": 0, "high": 5, "metric": "pearson"},
    "spans": {"kind": "spans", "metric": "f1"},
    "pairs": {"kind": "pairs"},
}
ROWS = {
    "labels": {"text_a": ["a", "b"], "label": [0, 1]},
    "ratings": {"text_a": ["a", "b"], "label": [0.5, 5]},
    "spans": {"question": ["q", "r"], "context": ["a b", "c"], "answers": [["a"], []], "starts": [[0], []]},
    "pairs": {"phenomenon": ["p", "p"], "paradigm": ["q", "q"], "good": ["a", "b"], "bad": ["c", "d"]},
}


def ask(held, facts=None, **changes):
    """What comes of a task whose test split has other columns, None: not that one."""
    rows = {name: column for name, column in (ROWS[held] | changes).items() if column is not None}
    splits = {split: pd.DataFrame(rows if split == "test" else ROWS[held]) for split in SPLITS[held]}
    return checked(KIND, splits, FACTS[held] | (facts or {}))


@pytest.mark.parametrize("held", FACTS)
def test_what_is_complete_is_let_through(held):
    for split, table in ask(held).items():
        assert isinstance(table, pa.Table) and split in SPLITS[held]
        wanted = ROWS[held] | ({"text_b": [None, None]} if "text_a" in ROWS[held] else {})
        assert table.to_pydict() == wanted


def test_symbols_are_no_texts_and_what_is_held_may_be_ones_own():
    symbols = pa.table({"symbols": [[1, 2], [3]], "label": [1, 1]})
    splits = dict.fromkeys(("train", "valid", "test"), symbols)
    assert checked(KIND, splits, FACTS["labels"])["test"].equals(symbols)
    assert checked(KIND, {"all": 5}, {"kind": "riddles"}) == {"all": 5}
    assert len(ask("spans", answers=[[], []], starts=[[], []])["test"]) == 2
    assert ask("labels", text_b=["c", None])["test"]["text_b"].to_pylist() == ["c", None]


@pytest.mark.parametrize(
    ("held", "facts", "changes", "said"),
    [
        ("labels", {"metric": "acuracy"}, {}, "the fact `metric`, one of accuracy, mcc, f1 (got metric: 'acuracy')"),
        ("labels", {"labels": None}, {}, "the fact `labels`, a whole number (got labels: None)"),
        ("labels", {"labels": 2.0}, {}, "the fact `labels`, a whole number (got labels: 2.0)"),
        ("labels", {"labels": True}, {}, "the fact `labels`, a whole number (got labels: True)"),
        ("ratings", {"low": "0"}, {}, "the fact `low`, a number (got low: '0')"),
        ("ratings", {"low": 5}, {}, "for ratings a `low` below `high` (got [5, 5])"),
        ("ratings", {"high": float("inf")}, {}, "the fact `high`, a number (got high: inf)"),
        ("ratings", {"metric": "f1"}, {}, "the fact `metric`, one of pearson, spearman (got metric: 'f1')"),
        ("labels", {}, {"label": [0, 2]}, "labels that are whole numbers of 0 to 1 (got test: row 2: 2)"),
        ("labels", {}, {"label": [-1, 0]}, "labels that are whole numbers of 0 to 1 (got test: row 1: -1)"),
        ("labels", {}, {"label": [0.0, 1.0]}, "labels that are whole numbers of 0 to 1 (got test: row 1: 0.0)"),
        ("labels", {}, {"label": ["a", "b"]}, "labels that are whole numbers of 0 to 1 (got test: row 1: 'a')"),
        ("labels", {}, {"label": None}, "a column label (got test: columns: ['text_a'])"),
        ("labels", {}, {"text_a": None}, "a column text_a (got test: columns: ['label'])"),
        ("labels", {}, {"text_a": ["a", None]}, "a text in every row of text_a (got test: row 2: None)"),
        ("labels", {}, {"text_a": [3, 4]}, "texts in the column text_a (got test: row 1: 3)"),
        ("labels", {}, {"text_a": [3, "b"]}, "columns of one type each (got test: "),
        ("ratings", {}, {"label": [5.1, 1]}, "labels that are numbers of 0 to 5 (got test: row 1: 5.1)"),
        ("ratings", {}, {"label": [1, float("nan")]}, "labels that are numbers of 0 to 5 (got test: row 2: None)"),
        ("spans", {}, {"starts": None}, "a column starts (got test: columns: ['question', 'context', 'answers'])"),
        ("spans", {}, {"answers": [["a"], None]}, "lists of texts in the column answers (got test: row 2: None)"),
        ("spans", {}, {"answers": ["a", "c"]}, "lists of texts in the column answers (got test: row 1: 'a')"),
        (
            "spans",
            {},
            {"answers": [["a", None], []]},
            "lists of texts in the column answers (got test: row 1: ['a', None])",
        ),
        ("spans", {}, {"starts": [["0"], []]}, "lists of whole numbers in the column starts (got test: row 1: ['0'])"),
        ("spans", {}, {"starts": [[0.0], []]}, "lists of whole numbers in the column starts (got test: row 1: [0.0])"),
        ("spans", {}, {"starts": [[], []]}, "a start for each answer (got test: row 1: [['a'], []])"),
        ("labels", {}, {"symbols": [1, 2]}, "lists of whole numbers in the column symbols (got test: row 1: 1)"),
        ("labels", {}, {"symbols": ["a", "b"]}, "lists of whole numbers in the column symbols (got test: row 1: 'a')"),
        (
            "labels",
            {},
            {"symbols": [[1.5], [2]]},
            "lists of whole numbers in the column symbols (got test: row 1: [1.5])",
        ),
        (
            "labels",
            {},
            {"symbols": [[1], None]},
            "lists of whole numbers in the column symbols (got test: row 2: None)",
        ),
        (
            "labels",
            {},
            {"symbols": [[1], [2, None]]},
            "whole numbers in the column symbols (got test: row 2: [2, None])",
        ),
        ("pairs", {}, {"bad": ["c", None]}, "a text in every row of bad (got test: row 2: None)"),
    ],
)
def test_what_a_probe_would_fail_at_is_one_line(held, facts, changes, said):
    with pytest.raises(MaskLabError) as caught:
        ask(held, facts, **changes)
    message = str(caught.value)
    assert message.startswith("mine.py: 'k' of tasks must return ") and said in message and "\n" not in message


@pytest.mark.parametrize("held", FACTS)
def test_a_split_without_a_row_is_named(held):
    """A filter of a user's that keeps nothing, say: probes would divide by its length, after pre-training."""
    for split in SPLITS[held]:
        splits = {name: pd.DataFrame(ROWS[held]) for name in SPLITS[held]} | {split: pd.DataFrame(ROWS[held]).head(0)}
        with pytest.raises(MaskLabError) as caught:
            checked(KIND, splits, FACTS[held])
        said = f"mine.py: 'k' of tasks must return for {held} a row or more in every split (got {split}: rows: 0)"
        assert str(caught.value) == said


def test_a_missing_split_is_named():
    splits = dict.fromkeys(("train", "test"), pd.DataFrame(ROWS["labels"]))
    with pytest.raises(MaskLabError, match=r"the splits train, valid, test \(got splits: \['train', 'test'\]"):
        checked(KIND, splits, FACTS["labels"])
