"""An encoder by hand in a model that autograd trains is the encoder that autograd trains."""

import copy

import pytest
import torch

from masklab.config.schema import Encoder
from masklab.models.encoder import MaskedLM
from masklab.models.stacked.by_hand import ByHand

FORMS = {
    "absolute": {"positions": "absolute"},
    "disentangled": {"positions": "disentangled"},
    "relative, pre": {"positions": "relative", "relative_buckets": 8, "relative_distance": 12, "norm": "pre"},
    "none": {"positions": "none", "norm": "pre", "embedding_norm": False},
}
LENGTHS = torch.tensor([17, 3, 9, 17, 1, 12])
PLACES = {"all": None, "first": torch.arange(6) * 17, "some": torch.tensor([53, 3, 18, 0, 40])}


def made(form, dropout):
    sizes = {"layers": 2, "hidden": 48, "heads": 3, "max_positions": 30, "init_range": 0.2, "dropout": dropout}
    return MaskedLM(Encoder(**sizes | FORMS[form]), 50, generator=torch.Generator().manual_seed(1)).train()


def states_and_gradients(model, at, times=1):
    """(states of tokens, gradients by name, the next random number) with dropout of seed 3."""
    ids = torch.randint(5, 50, (6, 17), generator=torch.Generator().manual_seed(2))
    model.zero_grad()
    torch.manual_seed(3)
    real = 1 if at is not None else (torch.arange(17) < LENGTHS[:, None])[..., None]
    states = [model.encode(ids, LENGTHS, at=at) * real for _ in range(times)]
    weights = torch.randn(states[0].shape, generator=torch.Generator().manual_seed(4))
    sum((each * weights).square().sum() for each in states).backward()
    gradients = {name: own.grad for name, own in model.named_parameters() if own.grad is not None}
    return torch.stack(states).detach(), gradients, torch.rand(())


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice before its gradient is asked for"])
@pytest.mark.parametrize("at", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("form", FORMS)
def test_states_and_gradients_are_autograds(form, dropout, at, times):
    """fp32: states within 1e-5, gradients within 1e-5 of the largest number of each; the same dropout."""
    model = made(form, dropout)
    wanted, of_autograd, number = states_and_gradients(model, at, times)
    model.by_hand = ByHand(model)
    for _ in range(2):  # the second time with what the first one has left
        found, gradients, other = states_and_gradients(model, at, times)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)
        assert number == other and gradients.keys() == of_autograd.keys()
        for name, gradient in of_autograd.items():
            bound = 1e-5 * float(gradient.abs().max()) + 1e-6
            torch.testing.assert_close(gradients[name], gradient, atol=bound, rtol=0, msg=name)


def test_an_evaluation_is_the_models_own():
    model = made("absolute", 0.2)
    ids = torch.randint(5, 50, (6, 17))
    model.eval()
    wanted = model.encode(ids, LENGTHS)
    model.by_hand = ByHand(model)
    assert torch.equal(model.encode(ids, LENGTHS), wanted)


def test_a_copy_of_the_model_encodes_by_itself():
    model = made("absolute", 0.0)
    model.by_hand = ByHand(model)
    assert copy.deepcopy(model).by_hand is None


@pytest.mark.parametrize("form", FORMS)
def test_rows_longer_than_the_positions_are_an_error(form):
    model = made(form, 0.0)
    model.by_hand = ByHand(model)
    with pytest.raises(IndexError, match="rows have 31 tokens, positions end at 30"):
        model.encode(torch.full((2, 31), 7), torch.tensor([31, 4]))


def test_no_place_at_all():
    model = made("disentangled", 0.2)
    model.by_hand = ByHand(model)
    states = model.encode(torch.full((2, 9), 7), torch.tensor([9, 4]), at=torch.zeros(0, dtype=torch.int64))
    assert states.shape == (0, 48)
