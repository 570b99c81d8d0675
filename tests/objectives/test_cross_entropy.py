"""Cross-entropy of tokens against torch's."""

import pytest
import torch
from torch.nn import functional as F

from masklab.objectives.cross_entropy import token_cross_entropy


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_value_and_gradient(dtype, tolerance):
    """Columns beyond a multiple of what is computed at once, too."""
    torch.manual_seed(1)
    logits = (6 * torch.randn(40, 97, dtype=dtype)).requires_grad_()
    targets, weights = torch.randint(97, (40,)), torch.rand(40, dtype=dtype)
    found, expected = token_cross_entropy(logits, targets), F.cross_entropy(logits, targets, reduction="none")
    torch.testing.assert_close(found, expected, rtol=0, atol=10 * tolerance)
    gradients = [torch.autograd.grad((losses * weights).sum(), logits)[0] for losses in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=0, atol=tolerance)


def test_impossible_tokens_have_finite_losses():
    logits = torch.tensor([[0.0, -200.0], [500.0, -500.0]], requires_grad=True)
    losses = token_cross_entropy(logits, torch.tensor([1, 1]))
    torch.testing.assert_close(losses.detach(), torch.tensor([200.0, 1000.0]))
    losses.sum().backward()
    torch.testing.assert_close(logits.grad, torch.tensor([[1.0, -1.0], [1.0, -1.0]]))


def test_losses_are_exact_down_to_the_smallest_probabilities():
    """Past 1e-30 another way computes them; nowhere do they differ from double precision by more than rounding."""
    logits = torch.stack([torch.linspace(0, -110, 400), torch.zeros(400)], 1)
    losses = token_cross_entropy(logits, torch.zeros(400, dtype=torch.long))
    exact = F.cross_entropy(logits.double(), torch.zeros(400, dtype=torch.long), reduction="none")
    torch.testing.assert_close(losses.double(), exact, rtol=3e-7, atol=3e-7)


def test_a_logit_that_is_no_number_shows():
    losses = token_cross_entropy(torch.tensor([[0.0, torch.nan], [0.0, 0.0]]), torch.tensor([0, 0]))
    assert losses.isnan().tolist() == [True, False]


def test_gradients_of_gradients_are_torchs():
    torch.manual_seed(1)
    logits, targets, found = torch.randn(5, 19, requires_grad=True), torch.randint(19, (5,)), []
    for loss in (token_cross_entropy, lambda *given: F.cross_entropy(*given, reduction="none")):
        (gradient,) = torch.autograd.grad((loss(logits, targets) ** 2).sum(), logits, create_graph=True)
        found.append(torch.autograd.grad((gradient**2).sum(), logits)[0])
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


def test_a_target_beyond_the_vocabulary_is_an_error():
    with pytest.raises(IndexError, match=r"0 \.\. 3"):
        token_cross_entropy(torch.randn(2, 4), torch.tensor([0, 4]))


def test_half_precision_is_computed_in_full():
    logits = torch.randn(5, 11).bfloat16()
    assert token_cross_entropy(logits, torch.zeros(5, dtype=torch.long)).dtype == torch.float32


def test_elsewhere_than_on_cpus_it_is_torchs_own_in_full_precision():
    """By a device that holds no numbers: what runs on CPUs alone would look at them."""
    for dtype, computed in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
        targets = torch.zeros(3, dtype=torch.long, device="meta")
        losses = token_cross_entropy(torch.empty(3, 4, dtype=dtype, device="meta"), targets)
        assert losses.shape == (3,) and losses.dtype == computed


@pytest.mark.parametrize(("dtype", "computed"), [(torch.float64, torch.float64), (torch.bfloat16, torch.float32)])
def test_a_compiled_model_has_torchs_own(monkeypatch, dtype, computed):
    """Which can be differentiated twice, as ours cannot."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    logits = torch.randn(5, 7).to(dtype).requires_grad_()
    losses = token_cross_entropy(logits, torch.arange(5))
    assert losses.dtype == computed
    (gradient,) = torch.autograd.grad(losses.sum(), logits, create_graph=True)
    assert gradient.requires_grad
    torch.testing.assert_close(losses, F.cross_entropy(logits.to(computed), torch.arange(5), reduction="none"))


def test_on_cpus_it_is_ours():
    assert type(token_cross_entropy(torch.randn(2, 3, requires_grad=True), torch.zeros(2).long()).grad_fn).__name__ == (
        "TokenCrossEntropyBackward"
    )
