"""Batched products by oneDNN are the products, gradients and gradients of gradients that torch has."""

import pytest
import torch

from masklab.config.schema import Encoder
from masklab.models import batched, products
from masklab.models.encoder import MaskedLM


@pytest.fixture(autouse=True)
def every_product(monkeypatch):
    """oneDNN is given products of any size, whatever the processor prefers; not where it rounds to bf16 (AMX)."""
    if not products.onednn_is_exact():
        pytest.skip("no oneDNN, or one that rounds to bf16")
    monkeypatch.setattr("masklab.models.batched.prefers_onednn", lambda: True)
    monkeypatch.setattr(batched, "LARGE", 1)


@pytest.mark.parametrize("scale", [1.0, 0.25])
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (3, 7, 12, 5), (64, 38, 12, 38), (6, 128, 64, 128)])
def test_values_and_gradients(shape, scale):
    batch, m, k, n = shape
    torch.manual_seed(1)
    a, b = torch.randn(batch, m, k, requires_grad=True), torch.randn(batch, n, k, requires_grad=True)
    gradient = torch.randn(batch, m, n)
    assert batched.takes(a, b.mT)
    found = batched.product(a, b.mT, scale)
    exact = scale * a.double() @ b.double().mT
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-5)
    ours = torch.autograd.grad(found, (a, b), gradient)
    theirs = torch.autograd.grad(exact, (a, b), gradient.double())
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-4)


def test_gradients_of_gradients():
    torch.manual_seed(2)
    a, b, read = torch.randn(4, 5, 6), torch.randn(4, 6, 3), torch.randn(4, 5, 3)

    def second(of, precision):
        leaves = [part.to(precision).requires_grad_() for part in (a, b)]
        first = torch.autograd.grad(of(*leaves), leaves, read.to(precision), create_graph=True)
        return torch.autograd.grad(sum(part.pow(2).sum() for part in first), leaves)

    ours = second(lambda x, y: batched.product(x, y, 0.5).tanh(), torch.float32)
    theirs = second(lambda x, y: torch.tanh(0.5 * x @ y), torch.float64)
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own.double(), other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_are_torchs(dtype):
    a, b = torch.randn(2, 8, 8, dtype=dtype), torch.randn(2, 8, 8, dtype=dtype)
    assert not batched.takes(a, b)
    assert torch.equal(batched.product(a, b), a @ b)


@pytest.mark.parametrize("positions", ["absolute", "disentangled", "relative"])
@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_the_encoder_computes_the_same(positions, dropout, monkeypatch):
    """Loss and gradients by either library; without dropout one lays out every score, the other is torch's fused."""
    config = Encoder(positions=positions, layers=2, hidden=32, heads=4, max_positions=24, dropout=dropout)
    model = MaskedLM(config, 30, generator=torch.Generator().manual_seed(1)).train()
    rows = torch.Generator().manual_seed(2)
    ids = torch.randint(5, 30, (6, 20), generator=rows)
    lengths = torch.tensor([20, 20, 11, 5, 20, 1])
    found = []
    for least in (1, 10**12):
        monkeypatch.setattr(batched, "LARGE", least)
        torch.manual_seed(3)
        states = model.encode(ids, lengths)
        real = (torch.arange(20) < lengths[:, None]).flatten()
        model.zero_grad()
        states.view(-1, 32)[real].pow(3).sum().backward()
        found.append({name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None})
    assert len(found[0]) > 20
    for name, value in found[0].items():
        torch.testing.assert_close(value, found[1][name], rtol=0, atol=1e-5 * float(1 + value.abs().max()), msg=name)
