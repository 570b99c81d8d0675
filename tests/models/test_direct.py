"""Gradients that are added in place against those that autograd carries."""

import pytest
import torch

from masklab.config.schema import Encoder
from masklab.kernels.processor import faster_compiled
from masklab.models.encoder import MaskedLM
from masklab.optim import direct

IDS = torch.tensor([[2, 7, 4, 9, 3], [2, 7, 7, 3, 0]])
LENGTHS, AT = torch.tensor([5, 4]), torch.tensor([2, 6, 7])


def model(marked: bool, **switches):
    config = Encoder(
        positions="absolute", layers=2, hidden=32, heads=4, max_positions=8, dropout=0.1, init_range=0.3, **switches
    )
    found = MaskedLM(config, 12, generator=torch.Generator().manual_seed(1))
    for parameter in found.parameters():
        parameter.grad = torch.zeros_like(parameter)
        if marked:
            direct.mark(parameter)
    return found


def loss_of(model, seed):
    torch.manual_seed(seed)
    return model(IDS, LENGTHS, at=AT).logits.pow(2).sum()


@pytest.mark.parametrize("made_by", ["MaskLab", "a library"])
@pytest.mark.parametrize("tied", [True, False])
def test_gradients_of_several_passes_add_up(tied, made_by, monkeypatch):
    if made_by == "MaskLab" and not faster_compiled(torch.float32):
        pytest.skip("libraries make products here")
    monkeypatch.setattr("masklab.models.linear.faster_compiled", lambda _: made_by == "MaskLab")
    models = [model(marked, tied_head=tied) for marked in (True, False)]
    for seed in range(3):
        losses = [loss_of(each, seed) for each in models]
        assert torch.equal(*losses)
        for loss in losses:
            loss.backward()
    for (name, found), wanted in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        tolerance = 1e-6 * float(1 + wanted.grad.abs().max())
        torch.testing.assert_close(found.grad, wanted.grad, atol=tolerance, rtol=0, msg=name)
        assert found.grad.abs().sum() > 0


def test_autograd_carries_none_of_a_marked_weight():
    """What makes the mark worth it, and why it is for those who call `backward()`."""
    marked = model(True)
    table = marked.embeddings.word
    (found,) = torch.autograd.grad(loss_of(marked, 0), table, allow_unused=True)
    assert found is None and table.grad.abs().sum() > 0


def test_gradients_of_gradients_are_autograds():
    found = []
    for marked in (True, False):
        each = model(marked).double()
        table = each.embeddings.word
        (first,) = torch.autograd.grad(loss_of(each, 0), table, create_graph=True)
        found.append(torch.autograd.grad(first.pow(2).sum(), table, create_graph=True)[0])
        assert not table.grad.any()
    torch.testing.assert_close(*found)


def test_without_a_place_to_add_to_autograd_has_it():
    marked = model(True)
    marked.zero_grad(set_to_none=True)
    loss_of(marked, 0).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in marked.parameters())


def test_every_row_has_its_gradient_where_autograd_carries_it():
    table = torch.nn.Parameter(torch.randn(4, 3))
    table.grad = torch.zeros(4, 3)
    direct.mark(table)
    found = direct.lookup(torch.tensor([[0, 1], [1, 3]]), table)
    (gradient,) = torch.autograd.grad(found.sum(), table, create_graph=True)
    assert gradient[:, 0].tolist() == [1, 2, 0, 1] and not table.grad.any()


def test_only_a_marked_parameter_with_a_gradient_is_direct():
    plain, marked, without = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    plain.grad, marked.grad = torch.zeros(2), torch.zeros(2)
    direct.mark(marked)
    direct.mark(without)
    assert [bool(direct.is_direct(each)) for each in (plain, marked, without)] == [False, True, False]
    elsewhere = torch.nn.Parameter(torch.zeros(2, device="meta"))
    direct.mark(elsewhere)
    assert not elsewhere.is_direct
