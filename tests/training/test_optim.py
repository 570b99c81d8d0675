from functools import partial

import pytest
import torch
from transformers import get_constant_schedule_with_warmup, get_linear_schedule_with_warmup

from masklab.config.schema import Optimiser
from masklab.optim.flat import FlatParameters, rate_at


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


@pytest.mark.parametrize("kind,momentum", [("adamw", 0.0), ("sgd", 0.0), ("sgd", 0.9)])
def test_flat_updates_equal_torch(kind, momentum):
    """20 clipped updates of a small network, to 1e-6."""
    networks = [torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3)) for _ in range(2)]
    networks[1].load_state_dict(networks[0].state_dict())
    flat = FlatParameters(networks[0].parameters())
    make = torch.optim.AdamW if kind == "adamw" else partial(torch.optim.SGD, momentum=momentum)
    peer = make(networks[1].parameters(), lr=0.05, weight_decay=0.1)
    for step in range(20):
        x = torch.randn(8, 5, generator=torch.Generator().manual_seed(step))
        for network in networks:
            (10 * network(x).square().mean()).backward()
        norm = torch.nn.utils.clip_grad_norm_(networks[1].parameters(), 0.5)
        assert torch.allclose(flat.step(0.05, 0.1, 0.5, kind=kind, momentum=momentum), norm, atol=1e-6)
        peer.step()
        peer.zero_grad()
    for ours, theirs in zip(networks[0].parameters(), networks[1].parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


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
