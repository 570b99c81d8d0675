"""Classifiers trained side by side are those trained alone by torch, and as good as scikit-learn's."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from masklab.config.schema import LinearProbe
from masklab.optim.flat import rate_at
from masklab.probes.heads import Heads, standardised, train_heads

PROBE = LinearProbe(kind="linear_probe", tasks=["t"], epochs=7, batch_size=48, lr=0.02, warmup=0.2, weight_decay=0.1)


def generators(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


def orders(count, *seeds):
    return [lambda epoch, seed=seed: np.random.default_rng([seed, epoch]).permutation(count) for seed in seeds]


def blobs(count, classes, features, spread, seed=0):
    """(x [count, features], labels) around well or badly separated centres."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(9).normal(size=(classes, features))
    labels = rng.integers(0, classes, count)
    return (centres[labels] + spread * rng.normal(size=(count, features))).astype(np.float32), labels


@pytest.mark.parametrize("shared", [False, True])
def test_equals_torch_one_classifier_at_a_time(shared):
    """Three seeds in one product against nn.Linear, cross_entropy and torch.optim.AdamW; weights to 1e-5."""
    x, labels = blobs(110, 4, 6, 2.0)
    views = torch.from_numpy(np.stack([x, 2 * x, x[:, ::-1]], 1))[:, : 1 if shared else 3]
    heads = Heads(6, 4, generators(1, 2, 3))
    start = heads.weight.detach().clone()
    assert (train_heads(heads, views, labels[None], orders(110, 1, 2, 3), PROBE) == 21).all()
    for s in range(3):
        layer = torch.nn.Linear(6, 4)
        with torch.no_grad():
            layer.weight.copy_(start[s])
            layer.bias.zero_()
        optimiser = torch.optim.AdamW(layer.parameters(), weight_decay=0.1)
        for step in range(21):
            epoch, at = divmod(step, 3)
            rows = orders(110, s + 1)[0](epoch)[at * 48 : at * 48 + 48]
            optimiser.param_groups[0]["lr"] = rate_at(step, 21, PROBE)
            optimiser.zero_grad()
            out = layer(views[rows, 0 if shared else s])
            torch.nn.functional.cross_entropy(out, torch.from_numpy(labels[rows])).backward()
            optimiser.step()
        assert torch.allclose(heads.weight[s], layer.weight, atol=1e-5)
        assert torch.allclose(heads.bias[s, :, 0], layer.bias, atol=1e-5)


@pytest.mark.parametrize(("spread", "tolerance"), [(0.3, 0.0), (1.5, 0.02)])
def test_as_accurate_as_logistic_regression(spread, tolerance):
    """Separable classes: no error, as scikit-learn; overlapping ones: its test accuracy to 0.02."""
    (x, labels), (test, wanted) = blobs(1500, 5, 20, spread, 1), blobs(1500, 5, 20, spread, 2)
    heads = Heads(20, 5, generators(1, 2))
    probe = PROBE.model_copy(update={"epochs": 60, "weight_decay": 0.0})
    train_heads(heads, torch.from_numpy(x)[:, None], labels[None], orders(1500, 1, 2), probe)
    reference = (LogisticRegression(C=1e4, max_iter=2000).fit(x, labels).predict(test) == wanted).mean()
    assert reference == 1 or spread > 1
    for found in heads.predictions(torch.from_numpy(test)[:, None]):
        assert (found == wanted).mean() == pytest.approx(reference, abs=tolerance)


def test_each_classifier_ends_at_its_own_best_epoch():
    x, labels = blobs(96, 3, 4, 1.0)
    scripted = iter([[0.1, 0.9], [0.5, 0.9], [0.4, 0.2]] + 4 * [[0.0, 0.0]])
    seen = []

    def validate(heads):
        seen.append(heads.weight.detach().clone())
        return next(scripted)

    heads = Heads(4, 3, generators(1, 2))
    made = train_heads(heads, torch.from_numpy(x)[:, None], labels[None], orders(96, 1, 2), PROBE, validate)
    assert made.tolist() == [4, 2] and len(seen) == 7
    assert torch.equal(heads.weight[0], seen[1][0]) and torch.equal(heads.weight[1], seen[0][1])


def test_standardised_by_the_training_rows_alone():
    train, test = torch.randn(50, 2, 3) * 5 + 1, torch.randn(9, 2, 3)
    train[:, 1, 2] = test[:, 1, 2] = 0.7  # never varies
    found, other = standardised(train, test)
    keep = torch.ones(2, 3, dtype=bool)
    keep[1, 2] = False
    assert torch.allclose(found.mean(0), torch.zeros(2, 3), atol=1e-5)
    assert torch.allclose(found.std(0, correction=0)[keep], torch.ones(5), atol=1e-5)
    wanted = (test - train.mean(0)) / train.std(0, correction=0)
    assert torch.allclose(other[:, keep], wanted[:, keep], atol=1e-5) and (other[:, ~keep] == 0).all()
