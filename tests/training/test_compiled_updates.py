"""Compiled blocks: a graph for each kind of block, whatever the widths of the batches."""

import copy
import functools

import numpy as np
import pytest
import torch
from runs import make_run
from torch._dynamo.utils import counters

from masklab import inside_torch
from masklab.config.schema import Encoder, Objective
from masklab.models.attention import Attention
from masklab.models.blocks import Block
from masklab.models.encoder import MaskedLM
from masklab.objectives.batch import Batch
from masklab.training.compiled import FORMS as MOST
from masklab.training.compiled import compiled as compiled_form
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
    encoder = Encoder(layers=3, hidden=32, heads=2, max_positions=64, **form)
    objective = Objective(mae=1) if "decoder" in form else Objective(mlm=1)
    learner = Learner(make_run(english, encoder, folder, objective=objective, compile=True))
    for width in widths:
        learner.loss_of(batch_of(width, learner))[0].backward()
    return counters


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_graphs_neither_break_nor_are_made_again(form, english, tmp_path, monkeypatch):
    """Two at 12 widths: one for all blocks that give every position, one for that which is asked for some."""
    found = compiled(form, WIDTHS, english, tmp_path, monkeypatch)
    assert len(WIDTHS) == 12 and not found["graph_break"], found["graph_break"]
    assert found["stats"]["unique_graphs"] == 2, found["stats"]


def test_the_model_itself_is_not_compiled_and_has_the_weights(monkeypatch):
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    model = MaskedLM(Encoder(layers=2, hidden=32, heads=2, max_positions=64, decoder={"layers": 1}), 50)
    made, blocks = compiled_form(model), [*model.blocks, *model.decoder.blocks]
    assert {id(each) for each in made.parameters()} == {id(each) for each in model.parameters()}
    assert made.one_path and made.decoder.one_path and not (model.one_path or model.decoder.one_path)
    found = [*made.blocks, *made.decoder.blocks]
    assert all(type(new) is not type(old) and type(old) is Block for new, old in zip(found, blocks, strict=True))
    assert torch._dynamo.config.recompile_limit >= MOST


def test_no_other_weights_are_trained_where_a_copy_would_have_its_own(monkeypatch):
    model = MaskedLM(Encoder(layers=1, hidden=32, heads=2, max_positions=64), 50)
    monkeypatch.setattr(inside_torch, "shallow_copy", copy.deepcopy)  # as in a torch whose modules are kept otherwise
    assert compiled_form(model) is model


def test_an_lstm_stays_as_it_is():
    model = MaskedLM(Encoder(kind="lstm", positions="absolute", norm="pre", layers=1, hidden=32, max_positions=64), 50)
    assert compiled_form(model).blocks is model.blocks


def test_a_graph_that_breaks_is_found(english, tmp_path, monkeypatch):
    whole = Attention.attend
    monkeypatch.setattr(Attention, "attend", lambda self, q, *rest: whole(self, q * float(q.sum() > 0), *rest))
    assert compiled({"positions": "absolute"}, [10], english, tmp_path, monkeypatch)["graph_break"]
