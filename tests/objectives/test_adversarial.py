"""The adversarial term: the head is ridge regression, the gradient passes through it, a run obeys it and can resume."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import Ridge

from masklab.config.schema import Adversarial as Settings
from masklab.config.schema import Encoder, Objective
from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.objectives import Setup
from masklab.objectives.adversarial import Adversarial, meta_loss, one_hot_centred, ridge_predictions
from masklab.rng import generator
from masklab.training.loop import Trainer, train
from tablelaw import run_of

ENCODER = Encoder(layers=1, hidden=32, heads=4, max_positions=8, dropout=0.1, positions="absolute")
SETTINGS = Settings(task="task", support=60, query=40)
RNG = np.random.default_rng(0)


def objective(weight=0.1, **settings):
    return Objective(mlm=1, adversarial=SETTINGS.model_copy(update={"weight": weight} | settings))


def adversary(table, **settings):
    found = Adversarial(SETTINGS.model_copy(update=settings))
    found.prepare(Setup(ENCODER, 9, table.tokens, table.root / "tokenizer", {"task": table.task}))
    return found


@pytest.mark.parametrize("features", [5, 80])
def test_the_head_is_ridge_regression(features):
    """Of scikit-learn, without intercept, more and fewer features than rows; to 1e-9."""
    support, query = RNG.normal(size=(30, features)), 7 * RNG.normal(size=(11, features))
    targets = one_hot_centred(torch.from_numpy(RNG.integers(0, 4, 30)), 4)
    assert targets.sum().abs() < 1e-12 and targets.unique().tolist() == [-0.25, 0.75]
    found = ridge_predictions(torch.from_numpy(support), targets, torch.from_numpy(query), 1e-3)

    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    reference = Ridge(alpha=1e-3, fit_intercept=False).fit(unit(support), targets.numpy())
    assert np.allclose(found.numpy(), reference.predict(unit(query)), atol=1e-9)


def test_gradient_passes_through_the_head():
    """Finite differences in float64, with respect to the features of both subsets."""
    features = torch.from_numpy(RNG.normal(size=(14, 6))).requires_grad_()
    labels = torch.from_numpy(RNG.integers(0, 3, 14))
    assert torch.autograd.gradcheck(lambda x: meta_loss(x, labels, 9, 3, 0.05), features)


@pytest.mark.parametrize(("kind", "pooling"), [("transformer", "concat"), ("lstm", "mean"), ("transformer", "cls")])
def test_gradient_with_respect_to_weights(table, kind, pooling):
    """Along three random directions, by central differences; relative error 1e-5."""
    keys = {"dropout": 0.0, "kind": kind, "norm": "pre" if kind == "lstm" else "post", "init_range": 0.2}
    model = MaskedLM(ENCODER.model_copy(update=keys), 9, generator=torch.Generator().manual_seed(1)).double()
    foe = adversary(table, pooling=pooling, ridge=0.1)
    weights = [parameter for name, parameter in model.named_parameters() if not name.startswith("head")]
    gradients = torch.autograd.grad(foe.error(model, generator(1, "x")), weights)
    for seed in range(3):
        gen = torch.Generator().manual_seed(seed)
        direction = [torch.randn(w.shape, generator=gen, dtype=w.dtype) for w in weights]
        slope = sum(float((g * d).sum()) for g, d in zip(gradients, direction, strict=True))
        values = []
        for step in (1e-5, -2e-5):
            with torch.no_grad():
                for w, d in zip(weights, direction, strict=True):
                    w += step * d
                values.append(float(foe.error(model, generator(1, "x"))))
        with torch.no_grad():
            for w, d in zip(weights, direction, strict=True):
                w += 1e-5 * d
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(slope, rel=1e-5)


def test_loss_is_that_of_a_head_fitted_by_hand(table):
    """Rows drawn without replacement; states of each sequence on its own, side by side, length 1; to 1e-5."""
    foe, model = adversary(table), load_checkpoint(table.folders["bert"]).eval()
    rows = generator(4, "d").choice(300, 100, replace=False)
    assert len(set(rows)) == 100
    features = np.zeros((100, 4 * 32))
    with torch.no_grad():
        for i, row in enumerate(rows):
            ids, lengths, _ = foe.split.batch(np.array([row]))
            states = model.encode(ids, lengths)[0, 1 : int(lengths[0]) - 1].flatten().numpy()
            features[i, : len(states)] = states / np.linalg.norm(states)
        found = foe.error(model, generator(4, "d"))
    labels = foe.split.labels[rows]
    targets = np.eye(3)[labels] - 1 / 3
    reference = Ridge(alpha=1e-3, fit_intercept=False).fit(features[:60], targets[:60])
    wanted = ((reference.predict(features[60:]) - targets[60:]) ** 2).sum(1).mean()
    assert float(found) == pytest.approx(wanted, rel=1e-5)


def test_a_run_raises_the_heads_loss_and_still_learns(table, tmp_path):
    """Against plain MLM of the same steps; losses of 30 heads on fresh draws, dropout off."""
    losses = {}
    for name, goal in (("plain", None), ("adversarial", objective())):
        run = run_of(table.root, name, ENCODER, 150, goal, {"task": table.task} if goal else None)
        train(dataclasses.replace(run, output=tmp_path / name, state=tmp_path / "state" / name))
        model, foe = load_checkpoint(tmp_path / name / "step-150").eval(), adversary(table)
        with torch.no_grad():
            losses[name] = np.mean([float(foe.error(model, generator(1, "test", i))) for i in range(30)])
    rows = pd.read_parquet(tmp_path / "adversarial" / "metrics.parquet")
    plain = pd.read_parquet(tmp_path / "plain" / "metrics.parquet")
    assert losses["adversarial"] > losses["plain"] + 0.3
    assert rows["adversarial"].iloc[-1] > rows["adversarial"].iloc[0]
    assert rows["loss"].iloc[-1] < plain["loss"].iloc[0] - 0.3
    assert "adversarial" not in plain and (rows["loss"] == rows["mlm"]).all()


def test_a_resumed_run_is_the_uninterrupted_one(table, tmp_path):
    """Weights bit by bit and the rows of metrics, with the term at every third update."""

    def trainer(name):
        run = run_of(table.root, "twice", ENCODER, 12, objective(every=3), {"task": table.task}, log_every=4)
        found = Trainer(dataclasses.replace(run, output=tmp_path / name, state=tmp_path / name / "state"))
        return found, found.resume()

    def advance(trainer, first, last):
        for step in range(first, last):
            row = trainer.update(step)
            assert ("adversarial" in row) == (step % 3 == 0)
            trainer.record.means.add(row)

    whole, _ = trainer("whole")
    advance(whole, 0, 12)
    torn, _ = trainer("torn")
    advance(torn, 0, 5)
    torn.record.save(5, torn.learner.flat, torn.guard)
    again, step = trainer("torn")
    assert step == 5
    advance(again, 5, 12)
    assert torch.equal(again.learner.flat.values, whole.learner.flat.values)
    assert again.record.means.take() == whole.record.means.take()
    plain = Trainer(run_of(table.root, "twice", ENCODER, 12))
    other, _ = trainer("other")
    for step in range(2):  # the first has a learning rate of 0
        plain.update(step)
        other.update(step)
    assert not torch.equal(other.learner.flat.values, plain.learner.flat.values)


def test_too_few_rows_is_one_line(table):
    with pytest.raises(MaskLabError, match=r"support 290 \+ query 40 rows are more than the 300 training rows"):
        adversary(table, support=290)
    assert len(adversary(table, support=260).split) == 300  # just enough


def test_a_task_without_labels_is_one_line(table, tmp_path):
    (tmp_path / "task.json").write_text('{"kind": "pairs"}')
    found = Adversarial(SETTINGS)
    found.name = "adversarial"
    with pytest.raises(MaskLabError, match=r"adversarial.task: 'task' holds pairs; it must hold labels"):
        found.prepare(Setup(ENCODER, 9, table.tokens, table.root / "tokenizer", {"task": tmp_path}))


def test_the_term_stands_in_every_so_manieth_update(table):
    """And the model is as it trains afterwards, dropout and all; without dropout the error is one number."""
    foe, model = adversary(table, every=3), load_checkpoint(table.folders["bert"]).train()
    assert [foe.per_update(model, step, generator(1, "x")) is None for step in range(7)] == [False, True, True] * 2 + [
        False
    ]
    first, second = (foe.per_update(model, 0, generator(1, "x")).item() for _ in range(2))
    assert first == second and model.training
