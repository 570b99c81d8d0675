"""Products of stacked matrices in bf16 against double precision of what is rounded, copy by copy."""

import pytest
import torch

from masklab.models.stacked import products

COPIES, ROWS, INNER, OUTER = 3, 45, 24, 40


@pytest.fixture(autouse=True, params=["as here", "by libraries"])
def maker(request, monkeypatch):
    if request.param == "by libraries":
        monkeypatch.setattr(products, "faster_compiled", lambda _: False)


def factors():
    torch.manual_seed(1)
    shapes = {"x": (COPIES, ROWS, INNER), "weight": (COPIES, OUTER, INNER), "g": (COPIES, ROWS, OUTER)}
    return {name: torch.randn(shape) for name, shape in shapes.items()} | {"bias": torch.randn(COPIES, OUTER)}


def three(x, weight, g, bias, rows=None):
    """The product and its gradients: [result, of x, of the weight, of the bias]."""
    gradients = torch.empty_like(weight), torch.empty_like(bias)
    products.affine_gradients(g, x, *gradients, rows)
    return [products.affine(x, weight, bias, rows), products.input_gradient(g, weight, rows), *gradients]


def test_factors_are_rounded_and_sums_are_not():
    given = factors()
    with products.low():
        found = three(**given)
    x, weight, g = (given[name].bfloat16().double() for name in ("x", "weight", "g"))
    exact = [x @ weight.mT + given["bias"].double()[:, None], g @ weight, g.mT @ x, given["g"].double().sum(1)]
    for ours, wanted in zip(found, exact, strict=True):
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours.double(), wanted, rtol=2**-8, atol=2**-8 * float(wanted.abs().max()))
    torch.testing.assert_close(found[3].double(), exact[3], rtol=0, atol=1e-5)  # of what is not rounded
    full = three(**given)
    assert all(not torch.equal(a, b) for a, b in zip(found[:3], full[:3], strict=True))


def test_of_bf16_numbers_of_odd_number():
    """Of a vocabulary of 41 words, or of 23 units."""
    torch.manual_seed(1)
    x, weight, g = (torch.randn(shape).bfloat16() for shape in ((2, 9, 23), (2, 41, 23), (2, 9, 41)))
    exact = [x.double() @ weight.double().mT, g.double() @ weight.double()]
    for ours, wanted in zip([products.affine(x, weight), products.input_gradient(g, weight)], exact, strict=True):
        assert ours.dtype == torch.bfloat16
        torch.testing.assert_close(ours.double(), wanted, rtol=2**-8, atol=2**-8 * float(wanted.abs().max()))


@pytest.mark.parametrize("rows", [None, [45, 12, 33]])
def test_a_copy_has_what_it_has_alone(rows):
    given = factors()
    with products.low():
        found = three(**given, rows=rows)
        for copy in range(COPIES):
            own = {name: part[copy : copy + 1] for name, part in given.items()}
            count = ROWS if rows is None else rows[copy]
            own |= {name: own[name][:, :count] for name in ("x", "g")}
            for ours, alone in zip(found, three(**own), strict=True):
                same = ours[copy, : alone.shape[1]] if ours.dim() == 3 else ours[copy]
                assert torch.equal(same, alone[0])


def test_it_ends_with_its_context():
    given = factors()
    before = three(**given)
    with pytest.raises(ZeroDivisionError), products.low():
        raise ZeroDivisionError
    with products.low(), products.low(False):
        inside = three(**given)
    assert all(torch.equal(a, b) and torch.equal(a, c) for a, b, c in zip(before, three(**given), inside, strict=True))
