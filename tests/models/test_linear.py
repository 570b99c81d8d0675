"""Linear maps by oneDNN, or by MKL, against torch's own."""

import pytest
import torch
from torch.nn import functional as F

from masklab.models import products
from masklab.models.linear import CpuLinear, Linear, linear
from masklab.optim import direct


@pytest.fixture
def by_onednn(monkeypatch):
    """oneDNN is taken, whatever the processor prefers; not where it rounds to bf16 (AMX): there MKL is tested."""
    exact = products.onednn_is_exact()
    monkeypatch.setattr("masklab.models.products.prefers_onednn", lambda: exact)
    return exact


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 256, 8), (37, 256, 65), (64, 256, 65), (240, 64, 5000)])
@pytest.mark.parametrize("biased", [True, False])
def test_values_and_gradients(shape, biased, by_onednn):
    n, k, m = shape
    torch.manual_seed(1)
    inputs = [torch.randn(n, k), torch.randn(m, k), torch.randn(m) if biased else None]
    leaves = [part if part is None else part.requires_grad_() for part in inputs]
    given, gradient = [part for part in leaves if part is not None], torch.randn(n, m)
    found, expected = CpuLinear.apply(*leaves), F.linear(*leaves)
    # against double precision, no further off than torch's own product
    exact = F.linear(*(part if part is None else part.double() for part in leaves))
    for result in (found, expected):
        torch.testing.assert_close(result.double(), exact, rtol=1e-5, atol=1e-4)
    for ours, theirs in zip(
        torch.autograd.grad(found, given, gradient), torch.autograd.grad(expected, given, gradient), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("shape", [(3, 256, 65), (37, 256, 65), (240, 64, 5000)])
def test_onednn_is_given_multiples_of_32_rows(shape, by_onednn):
    if not by_onednn:
        pytest.skip("no oneDNN, or one that rounds to bf16")
    n, k, m = shape
    x, weight = torch.randn(n, k), torch.randn(m, k)
    with torch.profiler.profile(record_shapes=True) as profile:
        CpuLinear.apply(x, weight, None)
    rows = [e.input_shapes[0][0] for e in profile.events() if e.name == "mkldnn::_linear_pointwise"]
    assert all(count % 32 == 0 for count in rows)
    assert len(rows) == (n >= 32)


def test_the_gradient_of_a_marked_weight_is_added_to_what_is_there(by_onednn):
    torch.manual_seed(1)
    x, weight = torch.randn(75, 40), torch.nn.Parameter(torch.randn(30, 40))
    weight.grad = torch.ones_like(weight)
    direct.mark(weight)
    gradient = torch.randn(75, 30)
    CpuLinear.apply(x, weight, None).backward(gradient)
    torch.testing.assert_close(weight.grad, 1 + gradient.t() @ x, rtol=1e-5, atol=1e-4)


def test_second_derivative(by_onednn):
    torch.manual_seed(1)
    x, weight = torch.randn(6, 5, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    found = []
    for function in (CpuLinear.apply, F.linear):
        (first,) = torch.autograd.grad(function(x, weight, None).pow(3).sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.pow(2).sum(), weight)[0])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-3)


def test_other_inputs_go_to_torch():
    layer = Linear(5, 3)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    for x in (torch.randn(2, 4, 5), torch.randn(0, 5)):
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias))
    double = torch.randn(4, 5).double()
    assert linear(double, layer.weight.double(), None).dtype == torch.float64
