"""A term that a user registers, with its own way of hiding tokens and of reading them: it trains like ours."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional as F

from masklab.config import kinds
from masklab.config.schema import Encoder, Objective, Weight
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.models.encoder import Output
from masklab.objectives import Term
from masklab.tokenizers import MASK
from masklab.training.learner import Learner
from masklab.training.loop import Trainer, train
from masklab.training.validation import Validation
from tablelaw import run_of

ENCODER = Encoder(layers=1, hidden=32, heads=4, max_positions=8, dropout=0.1, positions="absolute")


class SpanSettings(Weight):
    """Cross-entropy of the tokens of a span, predicted from the state before it."""

    reads: ClassVar = True

    length: int = 2


class Span(Term):
    def maskable(self, lengths, masking):
        return lengths - 2 >= self.settings.length

    def corrupt(self, ids, lengths, masking, vocab_size, rng):
        size, longest = self.settings.length, lengths - 2 - self.settings.length
        first = 1 + np.floor(rng.random(len(ids)) * (longest + 1)).astype(int)
        rows = np.repeat(np.arange(len(ids)), size)
        columns = (first[:, None] + np.arange(size)).ravel()
        corrupted = ids.copy()
        corrupted[rows, columns] = MASK
        return corrupted, rows, columns, {"before": (rows, np.repeat(first - 1, size))}

    def arrange(self, batch):
        batch.extra["count"] = len(batch.at)

    def forward(self, model, batch):
        assert batch.extra["count"] == len(batch.extra["before"])
        at, which = batch.extra["before"].unique(return_inverse=True)
        return Output(model(batch.ids, batch.lengths, at=at).logits[which])


@pytest.fixture
def span():
    kinds.term("span", SpanSettings)(Span)
    yield
    del kinds._yours["terms"]["span"]


def run(table, folder, **model):
    import dataclasses

    objective = Objective(span={"weight": 0.5, "length": 2})
    found = run_of(table.root, "span", ENCODER, 120, objective, micro_batch=24, log_every=10, **model)
    return dataclasses.replace(found, output=folder / "span", state=folder / "state")


def test_it_trains_and_resumes(span, table, tmp_path):
    """Stopped and started again it is the same run; the model learns more than how often each token occurs."""
    whole, torn = run(table, tmp_path / "whole"), run(table, tmp_path / "torn")
    train(whole)

    class Stopped(Trainer):
        def update(self, step):
            if step == 47:
                self.interruption.receive(15)
            return super().update(step)

    with pytest.raises(MaskLabError, match="stopped by signal 15 at step 47; the state of step 47 is saved"):
        Stopped(torn).run_all()
    train(torn)
    one, other = (read_json(each.output / "manifest.json") for each in (whole, torn))
    assert one["steps"] == other["steps"] and one["facts"] == other["facts"]
    assert one["config"]["objective"] == {"span": {"weight": 0.5, "length": 2}}
    frames = [pd.read_parquet(each.output / "metrics.parquet").drop(columns="seconds") for each in (whole, torn)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)
    assert np.allclose(frames[0]["loss"], 0.5 * frames[0]["span"])
    assert one["facts"]["valid_loss"]["120"] < one["facts"]["unigram_loss"]


def test_a_term_that_hides_nothing_is_named(span, table, tmp_path, monkeypatch):
    """The recipe's masking, which it takes the place of, is not at fault."""
    monkeypatch.setattr(Span, "corrupt", lambda self, ids, *_: (ids, np.arange(0), np.arange(0)))
    with pytest.raises(MaskLabError, match=r"^span: objective: span: its `corrupt` gives no token of any"):
        train(run(table, tmp_path))


def test_validation_hides_and_reads_as_training_does(span, table, tmp_path):
    learner = Learner(run(table, tmp_path))
    validation = Validation(learner)
    batches = list(validation.batches())
    total = count = 0
    for batch in batches:
        column = batch.at.view(-1, 2) % batch.ids.shape[1]
        assert (column[:, 1] == column[:, 0] + 1).all() and (column[:, 0] >= 1).all()
        assert (batch.ids.flatten()[batch.at] == MASK).all() and (batch.lengths >= 4).all()
        logits = learner.model.eval()(batch.ids, batch.lengths).logits.view(*batch.ids.shape, -1)
        rows = torch.arange(len(batch.ids)).repeat_interleave(2)
        before = logits[rows, column[:, :1].expand(-1, 2).flatten() - 1]
        total += float(F.cross_entropy(before, batch.targets, reduction="sum").detach())
        count += len(batch.at)
    assert len(batches) > 1 and count > 60
    assert validation.loss() == pytest.approx(total / count, rel=1e-5)
