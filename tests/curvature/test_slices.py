"""Directions and slices: against the Fisher information laid out, and the definitions."""

from functools import partial

import numpy as np
import pytest
import torch

from masklab.config.schema import Encoder
from masklab.curvature import slices, trace
from masklab.curvature.per_example import counted
from masklab.models.encoder import MaskedLM

V, T, B = 11, 6, 8


@pytest.fixture
def world():
    """(model in float64, ids, lengths, at)."""
    generator = torch.Generator().manual_seed(2)
    config = Encoder(positions="absolute", norm="pre", layers=1, hidden=8, heads=2, intermediate=8, max_positions=T)
    model = MaskedLM(config, V, 3, generator).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.4)
    ids = torch.randint(5, V, (B, T), generator=generator)
    ids, at = trace.hide(ids, 1 + torch.arange(B) % 4)
    return model, ids, torch.full((B,), T), at


def scores(model, ids, lengths, at):
    """Gradients of log p_y for every sentence and label, [B, V, parameters], and p [B, V]."""
    logits, parameters = model(ids, lengths, at=at).logits, list(counted(model).values())
    p, rows = logits.softmax(-1).detach(), []
    for row in logits.log_softmax(-1).flatten():
        gradients = torch.autograd.grad(row, parameters, retain_graph=True, allow_unused=True, materialize_grads=True)
        rows.append(torch.cat([gradient.flatten() for gradient in gradients]))
    return torch.stack(rows).view(B, V, -1), p


def test_top_direction_is_the_fishers(world):
    """Nearly: its Rayleigh quotient is at least 90 % of the largest eigenvalue."""
    model, ids, lengths, at = world
    rows, p = scores(*world)
    fisher = torch.einsum("bv,bvi,bvj->ij", p, rows, rows) / B
    rng = np.random.default_rng(1)
    batches = [(ids, lengths, at, trace.random_signs(rng, B, V)) for _ in range(64)]
    found = torch.cat([part.flatten() for part in slices.top_direction(model, batches).values()])
    assert float(found.norm()) == pytest.approx(1) and found[found.abs().argmax()] > 0
    assert float(found @ fisher @ found) > 0.9 * float(torch.linalg.eigvalsh(fisher)[-1])


def test_random_slices_rise_by_the_trace(world):
    """The mean second difference of expected losses along normal directions is the trace of the Hessian."""
    model, ids, lengths, at = world
    rows, p = scores(*world)
    exact = float((p * rows.square().sum(-1)).sum() / B)
    # every label in its share: expected losses under the model's own distribution, at saturation
    parameters, step, found = counted(model), 1e-4, []

    def expected():
        with torch.no_grad():
            return float(-(p * model(ids, lengths, at=at).logits.log_softmax(-1)).sum(-1).mean())

    here = expected()
    for number in range(300):
        direction = slices.random_direction(model, "gaussian", torch.Generator().manual_seed(number))
        assert direction.keys() == parameters.keys()
        around = []
        for offset in (-step, step):
            with slices.moved(model, direction, offset):
                around.append(expected())
        found.append((sum(around) - 2 * here) / step**2)
    error = np.std(found, ddof=1) / len(found) ** 0.5
    assert error < 0.05 * exact and abs(np.mean(found) - exact) < 4 * error
    assert expected() == here  # and the model is where it was


def test_filters_are_as_long_as_the_weights(world):
    model = world[0]
    direction = slices.random_direction(model, "filter", torch.Generator().manual_seed(1))
    for name, parameter in counted(model).items():
        if parameter.dim() == 1:
            assert not direction[name].any()
        else:
            torch.testing.assert_close(direction[name].norm(dim=1), parameter.detach().norm(dim=1))


def test_losses_are_means_over_sentences(world):
    model, ids, lengths, at = world
    labels = torch.arange(B) % 6 + 5
    truth = -model(ids, lengths, at=at).logits.log_softmax(-1)[torch.arange(B), labels].mean().item()
    columns = at - torch.arange(B) * T
    parts = [(ids[k], lengths[k], torch.arange(len(ids[k])) * T + columns[k], labels[k])
             for k in (slice(0, 3), slice(3, B))]  # fmt: skip
    direction = slices.random_direction(model, "gaussian", torch.Generator().manual_seed(1))
    found = slices.slice_loss(model, direction, [-0.3, 0.0, 0.3], parts)
    assert found[1] == pytest.approx(truth, rel=1e-12) and min(found[0], found[2]) != found[1]


def test_parameters_that_the_loss_does_not_touch_stay(world):
    """One more of them changes nothing: neither the direction nor the trace (1e-12: sums may be of another order)."""
    model, ids, lengths, at = world
    batches = [(ids, lengths, at, trace.random_signs(np.random.default_rng(1), B, V))]
    before, norms = slices.top_direction(model, batches), trace.summed_norms(model, *batches[0])
    model.register_parameter("untouched", torch.nn.Parameter(torch.ones(3, 2, dtype=torch.float64)))
    found = slices.top_direction(model, batches)
    assert not found.pop("untouched").any() and found.keys() == before.keys()
    close = partial(torch.testing.assert_close, rtol=1e-12, atol=1e-12)
    close(found, before)
    close(trace.summed_norms(model, *batches[0]), norms)


def test_filters_keep_the_directions_of_their_rows(world):
    """Each row is the normal numbers of that seed, made as long as the weights' row."""
    model = world[0]
    drawn = slices.random_direction(model, "gaussian", torch.Generator().manual_seed(1))
    scaled = slices.random_direction(model, "filter", torch.Generator().manual_seed(1))
    for name, parameter in counted(model).items():
        if parameter.dim() > 1:
            rows, weights = drawn[name].flatten(1), parameter.detach().flatten(1)
            wanted = rows / rows.norm(dim=1)[:, None] * weights.norm(dim=1)[:, None]
            torch.testing.assert_close(scaled[name].flatten(1), wanted)


def test_a_slice_is_the_loss_at_moved_weights(world):
    model, ids, lengths, at = world
    labels = torch.arange(B) % 6 + 5
    direction = slices.random_direction(model, "gaussian", torch.Generator().manual_seed(1))
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    (found,) = slices.slice_loss(model, direction, [0.25], [(ids, lengths, at, labels)])
    assert all(torch.equal(parameter, before[name]) for name, parameter in model.named_parameters())
    weights = before | {name: before[name] + 0.25 * step for name, step in direction.items()}
    logits = torch.func.functional_call(model, weights, (ids, lengths), {"at": at}).logits
    wanted = -logits.log_softmax(-1)[torch.arange(B), labels].mean()
    assert found == pytest.approx(float(wanted), rel=1e-10)
