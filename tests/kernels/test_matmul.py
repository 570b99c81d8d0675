"""Compiled products and their gradients against double precision; bits that neither company nor threads change."""

from functools import partial

import pytest
import torch

from masklab.kernels import matmul
from masklab.kernels.processor import faster_compiled

DTYPES = [torch.float32, torch.bfloat16]
SHAPES = [  # copies, rows, inner and outer width
    (1, 1, 2, 1),
    (2, 37, 20, 50),
    (3, 24, 64, 96),
    (2, 25, 34, 64),
    (1, 300, 48, 33),
    (1, 40, 8, 9),
    (1, 13, 2 * matmul.DEPTH + 70, 40),  # deeper than a panel of either kind
    (1, 2 * matmul.TOKENS + 261, 32, 32),  # more rows than are summed at once
]
pytestmark = pytest.mark.skipif(not faster_compiled(torch.float32), reason="libraries make products here")


def drawn(dtype, copies, rows, inner, outer):
    if not faster_compiled(dtype):
        pytest.skip("libraries make such products here")
    torch.manual_seed(1)
    x, weight, g = (
        torch.randn(shape).to(dtype) for shape in ((copies, rows, inner), (copies, outer, inner), (copies, rows, outer))
    )
    counts = torch.tensor([max(0, rows - 9 * copy) for copy in range(copies)])
    return x, weight, g, torch.randn(copies, outer), counts, (torch.arange(rows) < counts[:, None])[..., None]


def close(found, wanted, terms: int):
    """Sums in fp32: to a rounding per term, at worst; and rounded once more where they are stored in bf16."""
    scale = float(wanted.abs().max()) + 1
    last = 2**-8 if found.dtype == torch.bfloat16 else 0
    torch.testing.assert_close(found.double(), wanted, rtol=last, atol=scale * terms * 2**-24)


@pytest.mark.parametrize("into", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_products(shape, dtype, into):
    """Of even depth, where factors are bf16: pairs are multiplied."""
    copies, rows, inner, outer = shape
    x, weight, g, bias, counts, live = drawn(dtype, *shape)
    y = torch.full((copies, rows, outer), torch.nan, dtype=into)
    matmul.times(x, weight, y, counts, True, bias)
    close(y, (x.double() @ weight.double().mT + bias[:, None]) * live, inner)
    matmul.times(x, weight, y, counts, True)
    close(y, x.double() @ weight.double().mT * live, inner)
    if outer % 2 == 0 or dtype == torch.float32:
        y = torch.full((copies, rows, inner), torch.nan, dtype=into)
        matmul.times(g, weight, y, counts, False)
        close(y, g.double() @ weight.double() * live, outer)
        before = torch.randn(y.shape).to(into)
        matmul.times(g, weight, y.copy_(before), counts, False, more=True)
        close(y, before.double() + g.double() @ weight.double() * live, outer + 1)
        assert torch.equal(y[~live.squeeze(-1)], before[~live.squeeze(-1)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients(shape, dtype):
    copies, rows, inner, outer = shape
    x, _, g, _, counts, live = drawn(dtype, *shape)
    room = torch.full((copies, outer * inner + 7), torch.nan)  # copies lie apart, as in a stack
    into, bias = room[:, : outer * inner].view(copies, outer, inner), torch.full((copies, outer), torch.nan)
    matmul.gradient(g, x, into, counts, bias)
    close(into, (g.double() * live).mT @ x.double(), rows)
    close(bias, (g.double() * live).sum(1), rows)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_number_of_rows(dtype):
    for rows in range(1, 2 * matmul.ROWS + 2):
        x, weight, g, _, counts, _ = drawn(dtype, 1, rows, 6, 32)
        y, into = torch.empty(1, rows, 32), torch.empty(1, 32, 6)
        matmul.times(x, weight, y, counts, True)
        close(y, x.double() @ weight.double().mT, 6)
        matmul.gradient(g, x, into, counts)
        close(into, g.double().mT @ x.double(), rows)


def test_of_numbers_that_do_not_lie_one_after_the_other():
    """Columns of wider states."""
    x, weight, g, _, counts, _ = drawn(torch.float32, 2, 30, 96, 48)
    y, into = torch.empty(2, 30, 48), torch.empty(2, 48, 32)
    matmul.times(x[..., 32:64], weight[..., :32].contiguous(), y, counts, True)
    live = (torch.arange(30) < counts[:, None])[..., None]
    close(y, x[..., 32:64].double() @ weight[..., :32].double().mT * live, 32)
    matmul.gradient(g, x[..., 32:64], into, counts)
    close(into, (g.double() * live).mT @ x[..., 32:64].double(), 30)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_depend_on_a_copys_own_numbers_alone(dtype, request):
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    x, weight, g, bias, counts, _ = drawn(dtype, 3, 530, 64, 100)
    g = (g.float() * torch.exp(3 * torch.randn(g.shape))).to(dtype)  # sums of which depend on their order

    def all_of(copies, threads):
        torch.set_num_threads(threads)
        own = [each[copies].contiguous() for each in (x, weight, g, bias, counts)]
        y, dx = (torch.empty(len(own[0]), 530, width, dtype=dtype) for width in (100, 64))
        into, sums = torch.empty(len(y), 100, 64), torch.empty(len(y), 100)
        matmul.times(own[0], own[1], y, own[4], True, own[3])
        matmul.times(own[2], own[1], dx, own[4], False)
        matmul.gradient(own[2], own[0], into, own[4], sums)
        return y, dx, into, sums

    together = all_of(slice(None), 2)
    for copy in range(3):
        for alone, found in zip(all_of(slice(copy, copy + 1), 1), together, strict=True):
            assert torch.equal(alone[0], found[copy])


def test_bias_gradients_are_sums_in_the_order_of_rows():
    """So that no part that a column falls into changes them; of numbers of very different size."""
    x, _, g, _, counts, _ = drawn(torch.float32, 2, 300, 32, 200)
    g *= torch.exp(3 * torch.randn(g.shape))
    into, bias, alone = torch.empty(2, 200, 32), torch.empty(2, 200), torch.empty(2, 200)
    matmul.gradient(g, x, into, counts, bias)
    matmul.column_sums(g, alone, counts)
    for copy, count in enumerate(counts.tolist()):
        wanted = torch.zeros(200)
        for row in g[copy, :count]:
            wanted += row
        assert torch.equal(bias[copy], wanted) and torch.equal(alone[copy], wanted)


def test_numbers_that_are_no_pairs_are_refused():
    if not faster_compiled(torch.bfloat16):
        pytest.skip("libraries make such products here")
    x, weight, y = (torch.zeros(1, 4, width).bfloat16() for width in (3, 3, 4))
    with pytest.raises(ValueError, match="multiplied in pairs"):
        matmul.times(x, weight, y, torch.tensor([4]), True)
    with pytest.raises(ValueError, match="multiplied in pairs"):
        matmul.times(x[..., :2], weight[..., :2], y, torch.tensor([4]), True)
