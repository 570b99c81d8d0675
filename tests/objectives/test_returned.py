"""What a user's term says of a batch is checked where it says it, and no later."""

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch

from masklab.config import kinds
from masklab.config.schema import Masking, Weight
from masklab.errors import MaskLabError
from masklab.models.encoder import Output
from masklab.objectives import Term
from masklab.objectives.batch import Batch
from masklab.objectives.returned import arrange, hidden_by, maskable_by, output_of

IDS, LENGTHS = np.full((3, 9), 7), np.array([9, 4, 6])


class Reads(Weight):
    """Settings of a term that hides or reads tokens in its own way."""

    reads: ClassVar = True


def term_of(monkeypatch, **hooks):
    """A term of mine.py with these hooks."""
    made = type("Own", (Term,), hooks)
    monkeypatch.setitem(kinds._yours["terms"], "own", kinds.Kind("terms", "own", Reads, made, (), "mine.py"))
    term = made()
    term.name = "own"
    return term


@pytest.mark.parametrize(
    ("change", "got"),
    [
        (lambda shown, rows, columns: (shown, rows), "corrupt, so many values: 2)"),
        (lambda shown, rows, columns: None, "corrupt: None"),
        (
            lambda shown, rows, columns: (shown[:, :-1], rows, columns),
            "shown: a ndarray of shape (3, 8) and type int64",
        ),
        (
            lambda shown, rows, columns: (shown * 1.0, rows, columns),
            "shown: a ndarray of shape (3, 9) and type float64",
        ),
        (lambda shown, rows, columns: (shown * 99, rows, columns), "shown, from and to: ["),
        (lambda shown, rows, columns: (shown, rows, columns[1:]), "columns: a ndarray of shape ("),
        (lambda shown, rows, columns: (shown, list(rows), columns), "rows: an object of the class list"),
        (lambda shown, rows, columns: (shown, np.array(1), np.array(1)), "rows: a ndarray of shape () and"),
        (lambda shown, rows, columns: (shown, rows, columns * 0 + 9), "row, column: (0, 9)"),
        (lambda shown, rows, columns: (shown, rows * 0 + 1, columns * 0 + 4), "row, column: (1, 4)"),
        (lambda shown, rows, columns: (shown, rows - 3, columns), "row, column: (-3, "),
        (lambda shown, rows, columns: (shown, rows + 3, columns), "row, column: (3, "),
        (lambda shown, rows, columns: (np.tile(shown, (2, 1)), rows, columns), "shown: a ndarray of shape (6, 9) and"),
        (lambda shown, rows, columns: (shown, rows, columns, [rows]), "further tokens: [array("),
        (lambda shown, rows, columns: (shown, rows, columns, {"a": rows}), "a: further tokens: a ndarray of shape ("),
        (lambda shown, rows, columns: (shown, rows, columns, {"a": (rows, [0])}), "a: columns: [0]"),
        (lambda shown, rows, columns: (shown, rows, columns, {"a": (rows, columns + 9)}), "a: row, column: (0, "),
    ],
)
def test_what_a_term_hides_is_there(monkeypatch, change, got):
    def corrupt(self, *batch):
        return change(*Term.corrupt(self, *batch))

    with pytest.raises(MaskLabError) as caught:
        ask(term_of(monkeypatch, corrupt=corrupt))
    said = str(caught.value)
    assert said.startswith("mine.py: 'own' of terms must return (shown [3, 9], rows [N], columns [N])")
    assert got in said and "\n" not in said


def ask(term, **part):
    return hidden_by(term, IDS, LENGTHS, Masking(rate=0.5), 20, np.random.default_rng(1), **part)


def test_what_is_right_is_let_through(monkeypatch):
    plain = ask(Term())
    own = ask(term_of(monkeypatch, corrupt=lambda self, *batch: Term.corrupt(self, *batch)))
    assert all(np.array_equal(one, other) for one, other in zip(plain, own, strict=True))

    def corrupt(self, ids, lengths, masking, vocab_size, rng, part=None):
        return ids, np.array([0]), np.array([5]), {}, 1

    term = term_of(monkeypatch, corrupt=corrupt)
    assert len(hidden_by(term, IDS[2:], LENGTHS, None, 20, None, part=np.array([2]))) == 5
    with pytest.raises(MaskLabError, match=r"row, column: \(0, 5\)"):
        hidden_by(term, IDS[1:2], LENGTHS, None, 20, None, part=np.array([1]))


@pytest.mark.parametrize("made", [None, Output(torch.zeros(5, 8)), Output(torch.zeros(4, 2, 8)), torch.zeros(4, 8)])
def test_an_output_has_a_row_for_each_token(monkeypatch, made):
    term = term_of(monkeypatch, forward=lambda self, model, batch: made)
    with pytest.raises(MaskLabError, match=r"mine.py: 'own' of terms must return an Output with logits of shape \(4, "):
        output_of(term, None, SimpleNamespace(at=torch.arange(4)))
    right = Output(torch.zeros(4, 8))
    term = term_of(monkeypatch, forward=lambda self, model, batch: right)
    assert output_of(term, None, SimpleNamespace(at=torch.arange(4))) is right


@pytest.mark.parametrize(
    ("made", "got"),
    [
        (None, "None"),
        ([True, True, False], "[True, True, False]"),
        (np.array([0, 2]), "a ndarray of shape (2,) and type int64"),
        (np.array([1, 1, 0]), "a ndarray of shape (3,) and type int64"),
        (torch.tensor([True, True, False]), "a Tensor of shape (3,) and type torch.bool without a gradient"),
    ],
)
def test_which_sequences_can_be_hidden_in_is_said_of_each(monkeypatch, made, got):
    """Numbers of rows, or ones and zeros, would be taken for other rows without a word."""
    with pytest.raises(MaskLabError) as caught:
        maskable_by(term_of(monkeypatch, maskable=lambda self, lengths, masking: made), LENGTHS, None)
    assert str(caught.value) == (
        "mine.py: 'own' of terms must return which sequences can be hidden in: an array of true and false of shape (3,)"
        f" (got maskable: {got})"
    )
    right = np.array([True, False, True])
    assert maskable_by(term_of(monkeypatch, maskable=lambda self, *given: right), LENGTHS, None) is right


def batch():
    ids = torch.from_numpy(IDS)
    return Batch(ids, ids, torch.from_numpy(LENGTHS), torch.arange(4), torch.arange(4), None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda batch: batch.extra, "must return nothing of `arrange`, which adds to batch.extra (got arrange: {})"),
        (
            lambda batch: setattr(batch, "ids", batch.ids.repeat(1, 2)),
            "must return a batch as it was, but for batch.extra (got arrange, batch.ids: a Tensor of shape (3, 18) and",
        ),
        (
            lambda batch: setattr(batch, "at", batch.at.float()),
            "(got arrange, batch.at: a Tensor of shape (4,) and type",
        ),
        (lambda batch: setattr(batch, "lengths", batch.lengths.numpy()), "(got arrange, batch.lengths: a ndarray of"),
        (lambda batch: setattr(batch, "extra", [1]), "(got arrange, batch.extra: [1])"),
        (lambda batch: batch.extra.update({1: 2}), "(got arrange, batch.extra: {1: 2})"),
        (
            lambda batch: batch.extra.update(far=torch.zeros(3, device="meta")),
            "must return tensors on the CPU, which are moved with the batch (got arrange, batch.extra['far']: 'meta')",
        ),
    ],
)
def test_what_is_added_to_a_batch_lies_beside_it(monkeypatch, change, said):
    with pytest.raises(MaskLabError) as caught:
        arrange(term_of(monkeypatch, arrange=lambda self, batch: change(batch)), batch())
    assert said in str(caught.value) and str(caught.value).startswith("mine.py: 'own' of terms must return ")


def test_what_is_added_rightly_is_there(monkeypatch):
    added = {"widths": torch.ones(3), "most": 9}
    arrange(term_of(monkeypatch, arrange=lambda self, batch: batch.extra.update(added)), given := batch())
    assert given.extra == added
