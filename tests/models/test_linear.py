"""Linear maps by each of those who make them, against torch's own."""

import pytest
import torch
from torch.nn import functional as F

from masklab.kernels.processor import faster_compiled
from masklab.models.linear import CpuLinear, Linear, linear
from masklab.optim import direct


@pytest.fixture(params=["MaskLab", "a library"])
def made_by(request, monkeypatch):
    """Who makes products, whatever the processor prefers."""
    if request.param == "MaskLab" and not faster_compiled(torch.float32):
        pytest.skip("libraries make products here")
    monkeypatch.setattr("masklab.models.linear.faster_compiled", lambda _: request.param == "MaskLab")


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 256, 8), (37, 256, 65), (64, 256, 65), (240, 64, 5000)])
@pytest.mark.parametrize("biased", [True, False])
def test_values_and_gradients(shape, biased, made_by):
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


def test_the_gradient_of_a_marked_weight_is_added_to_what_is_there(made_by):
    torch.manual_seed(1)
    x, weight = torch.randn(75, 40), torch.nn.Parameter(torch.randn(30, 40))
    weight.grad = torch.ones_like(weight)
    direct.mark(weight)
    gradient = torch.randn(75, 30)
    CpuLinear.apply(x, weight, None).backward(gradient)
    torch.testing.assert_close(weight.grad, 1 + gradient.t() @ x, rtol=1e-5, atol=1e-4)


def test_second_derivative(made_by):
    torch.manual_seed(1)
    x, weight = torch.randn(6, 5, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    found = []
    for function in (CpuLinear.apply, F.linear):
        (first,) = torch.autograd.grad(function(x, weight, None).pow(3).sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.pow(2).sum(), weight)[0])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-3)


def test_numbers_that_do_not_lie_one_after_the_other(made_by):
    """A slice, a transpose, and a gradient that is one number for all."""
    torch.manual_seed(1)
    x, weight, bias = torch.randn(50, 64)[:, 3:43], torch.randn(40, 30).t(), torch.randn(60)[::2]
    leaves = [each.detach().requires_grad_() for each in (x, weight, bias)]
    found, wanted = CpuLinear.apply(*leaves), F.linear(*leaves)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-4)
    for ours, theirs in zip(*(torch.autograd.grad(y.sum(), leaves) for y in (found, wanted)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "x, weight, bias",
    [
        ((5, 9), (6, 8), None), ((5, 7), (6, 8), None), ((4, 64), (40, 20), None), ((5, 8), (6, 8), (3,)),
        ((5, 8), (2, 8, 8), None),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_torchs_error(made_by, x, weight, bias):
    with pytest.raises(RuntimeError):
        linear(torch.randn(x), torch.randn(weight), None if bias is None else torch.randn(bias))


@pytest.mark.parametrize(
    "x, weight, bias", [((5, 8), (6, 8), (1,)), ((5, 8), (6, 8), (5, 6)), ((5, 8), (8,), None), ((5, 8), (0, 8), None)]
)
def test_what_torch_spreads_is_spread(made_by, x, weight, bias):
    torch.manual_seed(1)
    given = [None if each is None else torch.randn(each) for each in (x, weight, bias)]
    torch.testing.assert_close(linear(*given), F.linear(*given))


def test_numbers_that_are_to_be_negated(made_by):
    x, weight = torch._neg_view(torch.randn(5, 8)), torch.randn(6, 8)
    torch.testing.assert_close(linear(x, weight), F.linear(x, weight))


def test_what_it_gives_may_be_written_to(made_by):
    x, weight = torch.randn(33, 16), torch.randn(64, 16).requires_grad_()
    y = linear(x, weight)
    y[:, 0] = -1.0
    y.sum().backward()
    assert not weight.grad[0].any() and weight.grad[1].any()


def test_tensors_that_stand_for_others_are_left_to_torch(made_by):
    with torch._subclasses.fake_tensor.FakeTensorMode():
        x, weight = torch.randn(40, 8), torch.randn(5, 8)
        assert linear(x, weight).shape == (40, 5)


def test_other_inputs_go_to_torch():
    layer = Linear(5, 3)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    for x in (torch.randn(2, 4, 5), torch.randn(0, 5)):
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias))
    double = torch.randn(4, 5).double()
    assert linear(double, layer.weight.double(), None).dtype == torch.float64
