"""Norms, gelu and dropout of rows against torch's operations in double precision; sums that no thread changes."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from masklab.kernels.bits import BEHIND, Keep
from masklab.kernels.rowwise import add_norm, add_norm_backward, drop_, gelu, gelu_backward_

SHAPES = [(1, 70, 32), (3, 33, 20), (2, 5, 96)]


def kept(shape, p=0.2, own=None):
    """Bits of [S, N, W] numbers, and what each number is multiplied by, in double precision."""
    copies, rows, width = shape
    generator = torch.Generator().manual_seed(3)
    bits = torch.randint(-(2**15), 2**15, (copies, (own or rows) * width + BEHIND), generator=generator).to(torch.int16)
    keep, share = Keep(bits, [0] * copies, [(1, own or rows, width)] * copies, p), round(p * 2**16)
    numbers = bits[:, : (own or rows) * width].view(copies, -1, width).long()
    return keep, (numbers >= share - 2**15).double() * (2**16 / (2**16 - share))


@pytest.mark.parametrize("counts", [None, "some"])
@pytest.mark.parametrize("full", [True, False], ids=["all", "norm alone"])
@pytest.mark.parametrize("shape", SHAPES)
def test_norm_of_a_sum(shape, full, counts):
    copies, rows, width = shape
    torch.manual_seed(1)
    counts = None if counts is None else [max(1, rows - 4 * copy - 3) for copy in range(copies)]
    live = torch.arange(rows) < torch.tensor(counts or [rows] * copies)[:, None]
    y, residual, g, more, beside = torch.randn(5, *shape)
    bias, weight, shift = torch.randn(3, copies, width)
    keep, mask = kept(shape)
    s = y.clone()
    given = {"residual": residual, "bias": bias, "keep": keep} if full else {}
    z, moments = add_norm(s, weight, shift, 1e-6, counts=counts, **given)
    exact = [each.double().requires_grad_() for each in (residual, y, weight, shift, bias)]
    total = exact[0] + mask * (exact[1] + exact[4][:, None]) if full else exact[1]
    normed = F.layer_norm(total, (width,), eps=1e-6) * exact[2][:, None] + exact[3][:, None]
    torch.testing.assert_close(z.double()[live], normed[live], atol=1e-5, rtol=0)
    torch.testing.assert_close(s.double()[live], total[live], atol=1e-6, rtol=0)
    assert not z[~live].any()
    into = torch.full((3, copies, width), torch.nan)
    others = {"more": more, "beside": beside} if full else {}
    keep = keep if full else None
    ds, dy = add_norm_backward(g, s, moments, weight, into, keep, counts, **others)
    weights = live[..., None] * (g + more if full else g).double(), live[..., None] * beside.double() * full
    loss = (normed * weights[0]).sum() + (total * weights[1]).sum()
    wanted = torch.autograd.grad(loss, exact, allow_unused=True)
    torch.testing.assert_close(dy.double(), wanted[1], atol=1e-5, rtol=0)
    torch.testing.assert_close(into[:2].double(), torch.stack(wanted[2:4]), atol=5e-5, rtol=0)
    if full:
        torch.testing.assert_close(ds.double(), wanted[0], atol=1e-5, rtol=0)
        torch.testing.assert_close(into[2].double(), wanted[4], atol=5e-5, rtol=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_gelu(shape):
    torch.manual_seed(1)
    x, g, bias = 3 * torch.randn(shape), torch.randn(shape), torch.randn(shape[0], shape[2])
    exact = [each.double().requires_grad_() for each in (x, bias)]
    wanted = F.gelu(exact[0] + exact[1][:, None])
    gradients = torch.autograd.grad(wanted, exact, g.double())
    torch.testing.assert_close(gelu(x, bias).double(), wanted, atol=2e-6, rtol=0)
    into = torch.full((shape[0], shape[2]), torch.nan)
    found = gelu_backward_(g.clone(), x, bias, into)
    torch.testing.assert_close(found.double(), gradients[0], atol=2e-6, rtol=0)
    torch.testing.assert_close(into.double(), gradients[1], atol=3e-5, rtol=0)


def test_dropout_of_rows_elsewhere():
    """Rows whose bits are those of other rows of a batch, in any order."""
    x = torch.randn(2, 6, 8)
    keep, mask = kept(x.shape, own=9)
    places = torch.randint(0, 9, (12,))
    wanted = x.double() * torch.stack([own[at] for own, at in zip(mask, places.view(2, 6), strict=True)])
    torch.testing.assert_close(drop_(x, keep.at(places)).double(), wanted, atol=1e-6, rtol=0)
    with pytest.raises(TypeError, match="fp32 states alone"):
        drop_(x.bfloat16(), keep.at(places))


def test_bf16_is_computed_in_full_and_rounded_once():
    torch.manual_seed(1)
    shape = 2, 40, 48
    y, residual = torch.randn(2, *shape).bfloat16()
    weight, shift, bias = torch.randn(3, 2, 48)
    exact = (residual.double() + y.double() + bias.double()[:, None]).bfloat16()  # what the norm's gradient is of
    s = y.clone()
    z, moments = add_norm(s, weight, shift, 1e-6, residual, bias)
    wanted = F.layer_norm(exact.double(), (48,), eps=1e-6) * weight.double()[:, None] + shift.double()[:, None]
    assert torch.equal(s, exact) and z.dtype == torch.bfloat16 and moments.dtype == torch.float32
    torch.testing.assert_close(z.double(), wanted, atol=1e-4, rtol=2**-8)
    active = gelu(y, bias)
    torch.testing.assert_close(active.double(), F.gelu(y.double() + bias.double()[:, None]), atol=1e-6, rtol=2**-8)


def test_no_thread_and_no_other_copy_changes_a_bit(request):
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.manual_seed(1)
    shape = copies, _, width = 3, 100, 24
    y, residual, g = torch.randn(3, *shape)
    weight, shift, bias = torch.randn(3, copies, width)

    def all_of(part):
        s, into = y[part].clone(), torch.empty(3, len(y[part]), width)
        z, moments = add_norm(s, weight[part], shift[part], 1e-6, residual[part], bias[part])
        back = add_norm_backward(g[part], s, moments, weight[part], into)
        active, of_bias = gelu(s, bias[part]), torch.empty(len(s), width)
        return [z, *back, *into, active, gelu_backward_(g[part].clone(), s, bias[part], of_bias), of_bias]

    torch.set_num_threads(2)
    found = all_of(slice(None))
    torch.set_num_threads(1)
    for copy in range(copies):
        alone = all_of(slice(copy, copy + 1))
        assert all(torch.equal(one[copy], other[0]) for one, other in zip(found, alone, strict=True))
