"""Cross-entropy and its gradient in one go, against double precision."""

import pytest
import torch
from torch.nn import functional as F

from masklab.kernels.token_loss import log_sums, loss_and_gradient_


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("copies, rows, width", [(1, 1, 1), (3, 20, 7), (2, 9, 16), (1, 33, 1000), (2, 0, 5)])
def test_loss_and_gradient(copies, rows, width, dtype):
    """Sums to 1e-6 of them, gradients to 1e-6, and a rounding to bf16 where they are stored so; nothing of no token."""
    torch.manual_seed(1)
    logits = (5 * torch.randn(copies, rows, width)).to(dtype)
    targets, shares = torch.randint(0, width, (copies, rows)), torch.rand(copies)
    targets[:, 1::3] = -1
    exact = logits.double().requires_grad_()
    wanted = F.cross_entropy(exact.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="none")
    wanted = wanted.view(copies, rows).sum(1)
    (gradient,) = torch.autograd.grad((wanted * shares).sum(), exact)
    found = logits.clone()
    sums = loss_and_gradient_(found, targets, shares)
    torch.testing.assert_close(sums.double(), wanted.detach(), atol=1e-5, rtol=1e-6)
    last = 2**-8 if dtype == torch.bfloat16 else 0
    torch.testing.assert_close(found.double(), gradient, atol=1e-6, rtol=last)
    assert not found[:, 1::3].any()


@pytest.mark.parametrize("rows, width", [(1, 1), (20, 7), (33, 1000), (0, 5)])
def test_log_sums(rows, width):
    """To 1e-6 of them."""
    logits = 5 * torch.randn(rows, width, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(log_sums(logits).double(), logits.double().logsumexp(-1), atol=1e-6, rtol=1e-6)
