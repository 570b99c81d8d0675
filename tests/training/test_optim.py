import pytest
import torch
from transformers import get_constant_schedule_with_warmup, get_linear_schedule_with_warmup

from masklab.config.schema import Optimiser
from masklab.training.optim import build, rate_at


@pytest.mark.parametrize("schedule", ["linear", "constant"])
def test_schedule_equals_transformers(schedule):
    config = Optimiser(lr=3e-4, schedule=schedule, warmup=0.1)
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


def test_every_parameter_decays():
    weight = torch.nn.Parameter(torch.ones(3))
    optimiser = build([weight], Optimiser(lr=0.1, weight_decay=0.5), torch.device("cpu"))
    weight.grad = torch.zeros(3)
    optimiser.step()
    assert torch.allclose(weight, torch.full((3,), 1 - 0.1 * 0.5))
