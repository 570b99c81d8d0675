"""KL divergence of tokens' distributions against torch's in double precision."""

import pytest
import torch
from torch.nn import functional as F

from masklab.objectives.divergence import token_divergence


def exact(given, logits, temperature):
    target, student = (F.log_softmax(each.double() / temperature, -1) for each in (given, logits))
    return F.kl_div(student, target, reduction="none", log_target=True).sum(-1)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("rows, width", [(1, 1), (3, 7), (9, 16), (20, 1000), (0, 5)])
def test_value_and_gradient(rows, width, temperature):
    """Values to 2e-6 of them, gradients to 1e-6."""
    torch.manual_seed(1)
    given, logits, weights = 5 * torch.randn(rows, width), 5 * torch.randn(rows, width), torch.rand(rows)
    logits.requires_grad_()
    double = logits.detach().double().requires_grad_()
    found, wanted = token_divergence(given, logits, temperature), exact(given, double, temperature)
    torch.testing.assert_close(found.double(), wanted, rtol=2e-6, atol=2e-6)
    (gradient,) = torch.autograd.grad((found * weights).sum(), logits)
    torch.testing.assert_close(
        gradient.double(), torch.autograd.grad((wanted * weights).sum(), double)[0], atol=1e-6, rtol=0
    )


def test_of_equal_distributions_it_is_nothing():
    logits = torch.randn(4, 300)
    torch.testing.assert_close(token_divergence(logits, logits + 3, 1.0), torch.zeros(4), atol=2e-6, rtol=0)


def test_distributions_far_apart_have_finite_divergences():
    given = torch.tensor([[300.0, 0.0, -300.0]])
    logits = torch.tensor([[-300.0, 0.0, 300.0]], requires_grad=True)
    losses = token_divergence(given, logits, 1.0)
    torch.testing.assert_close(losses.detach(), torch.tensor([600.0]))
    losses.sum().backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[-1.0, 0.0, 1.0]]))


@pytest.mark.parametrize("which", [0, 1])
def test_a_logit_that_is_no_number_shows(which):
    both = [torch.zeros(2, 40), torch.zeros(2, 40)]
    both[which][0, 3] = torch.nan
    assert token_divergence(*both, 1.0).isnan().tolist() == [True, False]


def test_rows_need_not_lie_one_after_the_other():
    given, logits = torch.randn(6, 50), torch.randn(6, 60)
    found = token_divergence(given[::2, :40], logits[::2, 3:43], 1.0)
    torch.testing.assert_close(found, token_divergence(given[::2, :40].clone(), logits[::2, 3:43].clone(), 1.0))


def test_gradients_of_gradients_are_torchs():
    torch.manual_seed(1)
    given, logits, found = torch.randn(5, 19), torch.randn(5, 19, requires_grad=True), []
    for loss in (token_divergence, exact):
        (gradient,) = torch.autograd.grad((loss(given, logits, 2.0) ** 2).sum(), logits, create_graph=True)
        found.append(torch.autograd.grad((gradient**2).sum(), logits)[0])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "dtype, computed, tolerance", [(torch.bfloat16, torch.float32, 2e-6), (torch.float64, torch.float64, 1e-13)]
)
def test_it_is_computed_in_fp32_at_least(dtype, computed, tolerance):
    torch.manual_seed(1)
    given, logits = torch.randn(5, 11).to(dtype), torch.randn(5, 11).to(dtype)
    found = token_divergence(given, logits, 2.5)
    assert found.dtype == computed
    torch.testing.assert_close(found.double(), exact(given, logits, 2.5), atol=tolerance, rtol=tolerance)
