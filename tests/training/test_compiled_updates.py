"""Compiled forward passes: one graph, whatever the widths of the batches."""

import functools

import numpy as np
import pytest
import torch
from runs import make_run
from torch._dynamo.utils import counters

from masklab.config.schema import Encoder, Objective
from masklab.models.attention import Attention
from masklab.objectives.batch import Batch
from masklab.training.learner import Learner

FORMS = {"disentangled": {"positions": "disentangled"}, "decoder": {"positions": "relative", "decoder": {"layers": 1}}}
WIDTHS = range(20, 68, 4)


def batch_of(width, learner, rows=8):
    rng = np.random.default_rng(width)
    ids, lengths = rng.integers(5, 500, (rows, width)), rng.integers(width - 3, width + 1, rows)
    shown, row, column, *more = learner.terms.reader.corrupt(ids, lengths, learner.config.masking, 500, rng)
    at, ids = torch.from_numpy(row * width + column), torch.from_numpy(ids)
    batch = Batch(torch.from_numpy(shown), ids, torch.from_numpy(lengths), at, ids.flatten()[at], None)
    extra = more[0] if more else {}
    batch.extra = {name: torch.from_numpy(row * width + column) for name, (row, column) in extra.items()}
    learner.terms.reader.arrange(batch)
    return batch


def compiled(form, widths, english, folder, monkeypatch):
    """Forward and backward passes of a compiled model; what torch has counted."""
    torch._dynamo.reset()
    counters.clear()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    encoder = Encoder(layers=1, hidden=32, heads=2, max_positions=64, **form)
    objective = Objective(mae=1) if "decoder" in form else Objective(mlm=1)
    learner = Learner(make_run(english, encoder, folder, objective=objective, compile=True))
    for width in widths:
        learner.loss_of(batch_of(width, learner))[0].backward()
    return counters


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_graphs_neither_break_nor_are_made_again(form, english, tmp_path, monkeypatch):
    """At the second of 12 widths torch learns that they differ; no other graph is made after that."""
    found = compiled(form, WIDTHS, english, tmp_path, monkeypatch)
    assert len(WIDTHS) == 12 and not found["graph_break"], found["graph_break"]
    assert found["stats"]["unique_graphs"] <= 2, found["stats"]


def test_a_graph_that_breaks_is_found(english, tmp_path, monkeypatch):
    whole = Attention.attend
    monkeypatch.setattr(Attention, "attend", lambda self, q, *rest: whole(self, q * float(q.sum() > 0), *rest))
    assert compiled({"positions": "absolute"}, [10], english, tmp_path, monkeypatch)["graph_break"]
