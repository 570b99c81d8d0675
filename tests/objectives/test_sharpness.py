"""The term `sharpness`: its estimate and gradient against the exact Fisher information; what it does to a run."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from masklab import symbols
from masklab.config.schema import Encoder, Objective
from masklab.config.schema import Sharpness as Settings
from masklab.curvature.trace import hide, random_signs, squared_norms
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.objectives import Setup
from masklab.objectives.sharpness import Sharpness, fisher_trace
from masklab.rng import generator
from masklab.tokens import TokenStore, write_symbol_tokens
from masklab.training.loop import Trainer, train
from tablelaw import run_of

ENCODER = Encoder(layers=1, hidden=32, heads=4, max_positions=8, dropout=0.1, positions="absolute")


def term(table, tokens=None, **settings):
    found = Sharpness(Settings(**settings))
    found.name = "sharpness"
    found.prepare(Setup(ENCODER, 9, tokens or table.tokens, table.root / "tokenizer"))
    return found


def test_the_mean_over_noise_is_the_trace_and_its_gradient():
    """One softmax of logits scale * v: F = scale^2 (diag p - p p'), its trace and gradient are known; to 1 % and 3 %.

    40,000 draws at once, each a row.
    """
    v, scale = torch.tensor([0.7, -0.4, 0.1]).double().requires_grad_(), torch.tensor(1.5).double().requires_grad_()
    noise = torch.randn(40000, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    shown = {"v": v.expand(40000, 3), "scale": scale}
    found = fisher_trace(lambda x: x["scale"] * x["v"], shown, {"v": noise, "scale": torch.zeros(1)}, 1e-3)
    p = (scale * v).softmax(-1)
    wanted = scale**2 * (p * (1 - p)).sum()
    assert found.item() == pytest.approx(wanted.item(), rel=0.01)
    for ours, exact in zip(*(torch.autograd.grad(value, (v, scale)) for value in (found, wanted)), strict=True):
        assert torch.allclose(ours, exact, rtol=0.03, atol=3e-3)


@pytest.mark.parametrize("kind", ["transformer", "lstm"])
def test_estimate_is_that_of_the_exact_fisher_information(table, kind):
    """u' F u of the same sequences and noise, F from the derivatives of every word's log probability; to 1e-4."""
    small = {"hidden": 8, "heads": 2, "dropout": 0.0, "kind": kind, "init_range": 0.3, "norm": "pre"}
    model = MaskedLM(ENCODER.model_copy(update=small), 9, generator=torch.Generator().manual_seed(1)).double()
    found = term(table, sequences=10, reach=1e-4)
    torch.manual_seed(5)
    value = found.per_update(model, 0, generator(1, "x"))
    assert model.training

    torch.manual_seed(5)
    values = dict(model.eval().named_parameters())
    noise = {name: torch.randn_like(value) for name, value in values.items()}
    ids, lengths, columns = found._drawn(generator(1, "x"))
    hidden, at = hide(ids, columns)
    logs = model(hidden, lengths, at=at).logits.log_softmax(-1)
    wanted = 0.0
    for row in logs:
        for log in row:
            slopes = torch.autograd.grad(
                log, values.values(), retain_graph=True, allow_unused=True, materialize_grads=True
            )
            along = sum(float((slope * noise[name]).sum()) for slope, name in zip(slopes, values, strict=True))
            wanted += log.exp().item() * along**2 / len(logs)
    assert value.exp().item() == pytest.approx(wanted, rel=1e-4)


def test_gradient_reaches_every_weight(table):
    """Along a random direction, against central differences of the term itself; relative error 1e-5."""
    small = {"hidden": 8, "heads": 2, "dropout": 0.0, "init_range": 0.3}
    model = MaskedLM(ENCODER.model_copy(update=small), 9, generator=torch.Generator().manual_seed(1)).double()
    found = term(table, sequences=20, reach=0.1)

    def value():
        torch.manual_seed(5)
        return found.per_update(model, 0, generator(1, "x"))

    weights = list(model.parameters())
    gradients = torch.autograd.grad(value(), weights, allow_unused=True, materialize_grads=True)
    direction = [torch.randn(w.shape, generator=torch.Generator().manual_seed(2), dtype=w.dtype) for w in weights]
    slope = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
    ends = []
    for sign in (1, -2):
        with torch.no_grad():
            for weight, move in zip(weights, direction, strict=True):
                weight += sign * 1e-5 * move
            ends.append(float(value().detach()))
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


def measured_trace(folder, table):
    """The estimate of `curvature` probes on 300 test sequences."""
    model, store, rng = load_checkpoint(folder).eval(), TokenStore(table.tokens, "test"), np.random.default_rng(3)
    rows = rng.integers(store.lengths.size, size=300)
    ids, lengths = store.batch(rows)
    columns = torch.from_numpy(1 + (rng.random(300) * (store.lengths[rows] - 2)).astype(np.int64))
    hidden, at = hide(ids, columns)
    return float(squared_norms(model, [(hidden, lengths, at, random_signs(rng, 300, 9))]).sum(1).mean())


def test_a_run_lowers_or_raises_the_trace(table, tmp_path):
    """300 updates; the trace of the curvature probe moves by more than a tenth each way, the loss by less than .03."""
    traces, losses = {}, {}
    for name, how in (("plain", None), ("flat", {"weight": 0.01}), ("sharp", {"weight": 0.01, "raised": True})):
        goal = Objective(mlm=1, sharpness=Settings(**how)) if how else Objective(mlm=1)
        run = run_of(table.root, name, ENCODER.model_copy(update={"dropout": 0.0}), 300, goal)
        train(dataclasses.replace(run, output=tmp_path / name, state=tmp_path / "state" / name))
        traces[name] = measured_trace(tmp_path / name / "step-300", table)
        rows = pd.read_parquet(tmp_path / name / "metrics.parquet")
        losses[name] = rows["loss"].tail(5).mean()
    assert traces["flat"] < 0.9 * traces["plain"] < 0.8 * traces["sharp"]
    assert abs(losses["flat"] - losses["plain"]) < 0.03 > abs(losses["sharp"] - losses["plain"])


def test_a_run_takes_it_at_every_third_update(table, tmp_path):
    """Its column has the estimate where the term was added, and two runs of it have the same weights."""
    goal = Objective(mlm=1, sharpness=Settings(weight=1e-3, every=3))
    ends = []
    for name in ("one", "two"):
        run = run_of(table.root, "twice", ENCODER, 7, goal)
        trainer = Trainer(dataclasses.replace(run, output=tmp_path / name, state=tmp_path / name / "state"))
        trainer.resume()
        for step in range(7):
            assert ("sharpness" in trainer.update(step)) == (step % 3 == 0)
        ends.append(trainer.learner.flat.values)
    assert torch.equal(*ends)


def test_without_a_token_to_hide(table, tmp_path):
    names = [f"w{i}" for i in range(4)]
    column = symbols.column(np.array([], int), [0, 0])
    write_symbol_tokens(column, 9, 6, tmp_path / "tokens", "train", {"names": names})
    with pytest.raises(MaskLabError, match=r"sharpness: no training sequence has a token"):
        term(table, tmp_path / "tokens")
