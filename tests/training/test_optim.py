import copy
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from transformers import get_constant_schedule_with_warmup, get_linear_schedule_with_warmup

from masklab import inside_torch
from masklab.config.schema import Optimiser
from masklab.optim import flat as flat_module
from masklab.optim.flat import FlatParameters, rate_at, warm_updates


@pytest.mark.parametrize("warmup", [{"warmup": 0.1}, {"warmup": 0.7, "warmup_steps": 20}])
@pytest.mark.parametrize("schedule", ["linear", "constant"])
def test_schedule_equals_transformers(schedule, warmup):
    config = Optimiser(lr=3e-4, schedule=schedule, **warmup)
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=config.lr)
    peer = (
        get_linear_schedule_with_warmup(optimiser, 20, 200)
        if schedule == "linear"
        else get_constant_schedule_with_warmup(optimiser, 20)
    )
    for step in range(200):
        assert rate_at(step, 200, config) == pytest.approx(peer.get_last_lr()[0], abs=1e-12)
        optimiser.step()
        peer.step()


def test_warm_up_of_no_steps():
    assert rate_at(0, 200, Optimiser(lr=1.0, warmup=0.5, warmup_steps=0)) == 1.0


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind,momentum", [("adamw", 0.0), ("sgd", 0.0), ("sgd", 0.9)])
def test_flat_updates_equal_torch(kind, momentum, fused, monkeypatch):
    """20 clipped updates of a small network, to 1e-12 in double precision.

    In single precision AdamW makes a rounding of a gradient near 0 as large as its rate.
    """
    monkeypatch.setattr(inside_torch, "has_fused_adamw", lambda: fused)
    layers = [torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)]
    networks = [torch.nn.Sequential(*copy.deepcopy(layers)).double() for _ in range(2)]
    flat = FlatParameters(networks[0].parameters())
    make = torch.optim.AdamW if kind == "adamw" else partial(torch.optim.SGD, momentum=momentum)
    peer = make(networks[1].parameters(), lr=0.05, weight_decay=0.1)
    for step in range(20):
        x = torch.randn(8, 5, generator=torch.Generator().manual_seed(step), dtype=torch.float64)
        for network in networks:
            (10 * network(x).square().mean()).backward()
        norm = torch.nn.utils.clip_grad_norm_(networks[1].parameters(), 0.5)
        torch.testing.assert_close(
            flat.step(0.05, 0.1, 0.5, kind=kind, momentum=momentum), norm, rtol=1e-12, atol=1e-12
        )
        peer.step()
        peer.zero_grad()
    for ours, theirs in zip(networks[0].parameters(), networks[1].parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("clip", [1e-6, 5e-6, 1.0])
def test_small_gradients_are_clipped_as_by_torch(clip):
    """Its 1e-6 beside the norm counts where gradients are as small; a plain step of SGD shows what is left."""
    gradient, weight = torch.tensor([3e-6, -4e-6]), torch.nn.Parameter(torch.zeros(2))
    flat = FlatParameters([weight])
    flat.gradient.copy_(gradient)
    assert float(flat.step(1.0, clip=clip, kind="sgd")) == pytest.approx(5e-6)
    torchs = torch.nn.Parameter(torch.zeros(2))
    torchs.grad = gradient.clone()
    torch.nn.utils.clip_grad_norm_([torchs], clip)
    torch.testing.assert_close(weight.detach(), -torchs.grad, rtol=1e-6, atol=0)
    assert not flat.gradient.any() and not flat.mean.any()


@pytest.mark.parametrize(("warm", "steps"), [(0, 1), (1, 1), (1, 2), (2, 2), (9, 10), (10, 10), (3, 5)])
@pytest.mark.parametrize("schedule", ["linear", "constant"])
def test_short_schedules_equal_transformers(schedule, warm, steps):
    """As long as the warm-up or one longer, where a division by 0 is kept away; and past the end."""
    config = Optimiser(lr=0.5, schedule=schedule, warmup=0.3, warmup_steps=warm)
    optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=config.lr)
    linear = schedule == "linear"
    peer = (get_linear_schedule_with_warmup if linear else get_constant_schedule_with_warmup)(
        optimiser, warm, *[steps] * linear
    )
    for step in range(steps + 2):
        assert rate_at(step, steps, config) == pytest.approx(peer.get_last_lr()[0], abs=1e-12)
        optimiser.step()
        peer.step()


def test_the_warm_up_is_a_rounded_share_unless_it_is_given():
    assert warm_updates(25, Optimiser(warmup=0.3)) == 8 and warm_updates(25, Optimiser(warmup=0.3, warmup_steps=0)) == 0
    assert warm_updates(25, SimpleNamespace(warmup=0.1)) == 2


def test_a_model_begins_anew():
    weight = torch.nn.Parameter(torch.ones(3))
    flat = FlatParameters([weight])
    flat.gradient.fill_(2.0)
    flat.step(0.1)
    flat.gradient.fill_(1.0)
    kept = {name: tensor.clone() for name, tensor in flat.state().items()}
    flat.restart(torch.tensor([5.0, 6.0, 7.0]))
    assert weight.tolist() == [5, 6, 7] and not any(t.any() for t in (flat.gradient, flat.mean, flat.square))
    assert flat.updates == 0
    flat.load(kept)
    assert flat.updates == 1 and torch.equal(weight, kept["values"]) and flat.mean.any() and flat.square.any()


@pytest.mark.parametrize("low", [True, False])
def test_copies_are_those_of_the_last_refresh(low):
    first, second = torch.nn.Parameter(torch.rand(2, 3)), torch.nn.Parameter(torch.rand(4))
    flat = FlatParameters([first, second], low=low)
    assert (flat.low is None) == (not low) and not hasattr(first, "is_direct")
    flat.values.add_(1.0)
    if low:
        assert not torch.equal(second.low, second.detach().bfloat16())
    flat.refresh()
    if low:
        assert torch.equal(first.low, first.detach().bfloat16()) and torch.equal(second.low, second.detach().bfloat16())
        assert first.low.shape == first.shape
    assert FlatParameters([second], direct=True).gradient.shape == (4,) and second.is_direct


def test_gradients_of_a_gpu_are_gathered_when_they_are_asked_for(monkeypatch):
    """Over several backward passes, with a parameter that no loss reads: what `grad` as a view would hold."""
    gathered, plain = ([torch.nn.Parameter(torch.linspace(0, 1, n)) for n in (3, 4, 2)] for _ in range(2))
    views = FlatParameters(plain)
    monkeypatch.setattr(flat_module, "gathers", lambda device: True)
    flat = FlatParameters(gathered, direct=True)
    for parameters in (gathered, plain):
        for factor in (1.0, 2.0):
            (factor * parameters[0].square().sum() + parameters[2].sum()).backward()
    assert torch.equal(flat.gradient, views.gradient) and flat.gradient.any()
    assert all(parameter.grad is None for parameter in gathered)
    for parameters in (gathered, plain):
        parameters[1].sum().backward()
    assert torch.equal(flat.step(0.1, 0.01, 1.0), views.step(0.1, 0.01, 1.0))
    assert torch.equal(flat.values, views.values) and not flat.gradient.any()
    plain[0].sum().backward()
    flat.restart(views.values)
    assert not flat.gradient.any()
