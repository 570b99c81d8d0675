"""Dropout: its rate, its scale, its gradient and its source of randomness."""

import math

import pytest
import torch

from masklab.models.dropout import dropout, dropout_add, keep_mask


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_rate_and_expectation(p):
    torch.manual_seed(3)
    n = 400_003  # no multiple of the four elements per draw
    out = dropout(torch.ones(n), p, True)
    error = 5 * math.sqrt(p * (1 - p) / n) + 2**-16
    assert abs((out == 0).double().mean() - p) < error
    assert abs(out.double().mean() - 1) < error / (1 - p)
    kept = out[out != 0]
    assert torch.allclose(kept, torch.tensor(1 / (1 - p)), rtol=2**-16 / (1 - p))


def test_neighbours_are_independent():
    torch.manual_seed(3)
    dropped = keep_mask((200_000,), 0.3) == 0
    for lag in range(1, 9):
        both = (dropped[lag:] & dropped[:-lag]).double().mean()
        assert abs(both - 0.09) < 5 * math.sqrt(0.09 * 0.91 / 200_000)


def test_gradient_is_the_mask():
    torch.manual_seed(3)
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    out = dropout(x, 0.4, True)
    out.sum().backward()
    torch.testing.assert_close(x.grad, (out / x).detach())
    assert 0 < (x.grad == 0).sum() < x.numel()


def test_off():
    x = torch.randn(5)
    assert dropout(x, 0.5, False) is x
    assert dropout(x, 0.0, True) is x
    assert torch.all(dropout(x, 1.0, True) == 0)


def test_follows_the_default_generator():
    x = torch.ones(1000)
    torch.manual_seed(5)
    first, second = dropout(x, 0.5, True), dropout(x, 0.5, True)
    torch.manual_seed(5)
    assert torch.equal(first, dropout(x, 0.5, True)) and not torch.equal(first, second)


def test_dropout_add_is_dropout_then_add():
    x, residual = torch.randn(6, 7, requires_grad=True), torch.randn(6, 7, requires_grad=True)
    torch.manual_seed(5)
    expected = residual + dropout(x, 0.3, True)
    torch.manual_seed(5)
    found = dropout_add(residual, x, 0.3, True)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(6, 7)
    gradients = [torch.autograd.grad((sums * weights).sum(), (x, residual)) for sums in (found, expected)]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert torch.equal(dropout_add(residual, x, 0.3, False), residual + x)
