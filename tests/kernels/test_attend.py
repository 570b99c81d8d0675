"""Compiled attention against the formula in double precision, by torch's own operations."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch

from masklab.kernels.attend import LANES, Layout, attend, attend_backward
from masklab.kernels.bits import BEHIND, Keep
from masklab.kernels.distance_bias import gather, spread
from masklab.kernels.distance_tables import Tables
from masklab.kernels.panels import wide

SIZES = {  # copies, rows, longest, heads, width of a head
    "one": (1, 3, 7, 2, 16),
    "odd width": (2, 4, 9, 3, 5),
    "beyond a vector": (1, 2, 37, 1, 24),
    "wide": (2, 3, 20, 2, 64),
}


def world(size, seed=1):
    """Packed queries, keys and values [S, R, 3 H], their layout, and the number of tokens of every row [S, B]."""
    copies, rows, longest, heads, width = size
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest + 1, (copies, rows), generator=generator)
    lengths[0, 0] = longest
    places = int(lengths.sum(1).max()) + 3
    starts = (lengths.cumsum(1) - lengths + places * torch.arange(copies)[:, None]).flatten()
    counts = lengths.flatten()
    layout = Layout(rows, starts, counts, starts, counts, longest, longest, ends=(lengths.sum(1).tolist(),) * 2)
    qkv = torch.randn(copies, places, 3 * heads * width, generator=generator)
    return qkv, layout, lengths


def some(layout, lengths):
    """The layout of queries of some positions, none in some rows, and the most that a copy has."""
    copies, rows = lengths.shape
    asked = torch.tensor([[2, 0, 1, 3], [0, 1, 1, 0]])[:copies].repeat(1, -(-rows // 4))[:, :rows].minimum(lengths)
    most = int(asked.sum(1).max())
    columns = torch.zeros(copies, most, dtype=torch.int64)
    for copy in range(copies):
        own = [torch.randperm(int(lengths[copy, row]))[: asked[copy, row]] for row in range(rows)]
        columns[copy, : asked[copy].sum()] = torch.cat(own)
    starts = (asked.cumsum(1) - asked + most * torch.arange(copies)[:, None]).flatten()
    slots = torch.randint(0, 5, (copies * most,))
    changes = {"q_starts": starts, "q_counts": asked.flatten(), "queries": int(asked.max()), "slots": slots}
    ends = asked.sum(1).tolist(), layout.ends[1]
    return replace(layout, **changes, columns=columns.flatten(), ends=ends), most


def dropout(size, queries, p=0.25, seed=2):
    """Random bits of [n, B, M, max(T, 16)] weights of each copy."""
    copies, rows, longest, heads, _ = size
    shape = heads, rows, queries, max(longest, 16)
    bits = torch.randint(
        -(2**15), 2**15, (copies, math.prod(shape) + BEHIND), generator=torch.Generator().manual_seed(seed)
    )
    return Keep(bits.to(torch.int16), [0] * copies, [shape] * copies, p)


def wanted(q, kv, layout, heads, scale, keep=None, bias=None, tables=None):
    """The context, row by row and head by head. tables: keys and queries of distances, [S, 2 L - 1, H] each."""
    width = kv.shape[-1] // (heads * (3 if kv is q else 2))
    flat_q, flat_kv = (each.reshape(-1, heads, each.shape[-1] // (heads * width), width) for each in (q, kv))
    context = torch.zeros(len(flat_q), heads, width, dtype=q.dtype)
    rows = zip(layout.q_starts, layout.q_counts, layout.k_starts, layout.k_counts, strict=True)
    for row, (q_start, asked, k_start, count) in enumerate(
        torch.tensor([tuple(map(int, each)) for each in rows]).tolist()
    ):
        copy, within = divmod(row, layout.size)
        of_q, of_k = slice(q_start, q_start + asked), slice(k_start, k_start + count)
        slots = torch.arange(asked) if layout.slots is None else layout.slots[of_q]
        columns = torch.arange(asked) if layout.columns is None else layout.columns[of_q]
        for head in range(heads):
            keys, values = flat_kv[of_k, head, -2], flat_kv[of_k, head, -1]
            scores = scale * flat_q[of_q, head, 0] @ keys.T
            if tables is not None:
                zero, part = tables[0].shape[1] // 2, slice(head * width, (head + 1) * width)
                apart = zero + torch.arange(count) - columns[:, None]  # [asked, count]
                of_keys, of_queries = (table[copy, :, part][apart] for table in tables)  # [asked, count, d]
                scores = scores + scale * (flat_q[of_q, head, 0][:, None] * of_keys + keys * of_queries).sum(-1)
            if bias is not None and bias.dim() == 4:  # of each query and key
                scores = scores + bias.flatten(0, 1)[of_q, head, :count]
            elif bias is not None:
                middle = (bias.shape[-1] - LANES) // 2
                scores = scores + bias[copy, head][middle + torch.arange(count) - columns[:, None]]
            weights = scores.softmax(-1)
            if keep is not None:
                shape = keep.shapes[copy]
                bits = keep.bits[copy, : math.prod(shape)].view(shape)[head, within][slots, :count]
                share = round(keep.p * 2**16)
                weights = weights * (bits.long() >= share - 2**15) * (2**16 / (2**16 - share))
            context[of_q, head] = weights @ values
    return context.view(*q.shape[:-1], -1)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("biased", [False, True], ids=["", "biased"])
@pytest.mark.parametrize("drops", [False, True], ids=["", "dropout"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_context_and_gradients_from_every_position(size, drops, biased, threads, request):
    """fp32: within 1e-5 of double precision, where numbers are of the order of 1."""
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(threads)
    copies, _, longest, heads, width = size
    qkv, layout, _ = world(size)
    keep = dropout(size, longest) if drops else None
    bias = torch.randn(copies, heads, 2 * longest - 1 + LANES) if biased else None
    scale = width**-0.5
    context, weights = attend(qkv, qkv, layout, heads, scale, keep, bias)
    exact = qkv.double().requires_grad_()
    exact_bias = bias.double().requires_grad_() if biased else None
    expected = wanted(exact, exact, layout, heads, scale, keep, exact_bias)
    torch.testing.assert_close(context.double(), expected, atol=1e-5, rtol=0)
    g = torch.randn(context.shape)
    bias_gradient = torch.ones_like(bias) if biased else None
    found = attend_backward(g, qkv, qkv, weights, layout, heads, scale, keep, bias, bias_gradient)
    assert found[0] is found[1]
    gradients = torch.autograd.grad(expected, [exact, exact_bias] if biased else [exact], g.double())
    torch.testing.assert_close(found[0].double(), gradients[0], atol=2e-5, rtol=0)
    if biased:
        used = slice(0, 2 * longest - 1)
        found = bias_gradient[..., used].double() - 1
        torch.testing.assert_close(found, gradients[1][..., used], atol=2e-5, rtol=0)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("asked", [False, True], ids=["every position", "some"])
@pytest.mark.parametrize("size", [*SIZES.values(), (2, 21, 6, 2, 16)], ids=[*SIZES, "many rows"])
def test_disentangled_scores(size, asked, threads, request):
    """fp32: within 2e-5 of double precision, gradients of tables, which are sums over rows, within 1e-4."""
    request.addfinalizer(partial(torch.set_num_threads, torch.get_num_threads()))
    torch.set_num_threads(threads)
    copies, _, longest, heads, width = size
    qkv, layout, lengths = world(size)
    q, kv, exact = qkv, qkv, [qkv.double().requires_grad_()]
    if asked:
        kv = qkv[..., : 2 * heads * width].contiguous()
        layout, most = some(layout, lengths)
        q = torch.randn(copies, most, heads * width)
        exact = [each.double().requires_grad_() for each in (q, kv)]
    keep = dropout(size, longest)
    drawn = [torch.randn(copies, 2 * longest + 5, heads * width) for _ in range(2)]  # of two positions beyond the rows
    tables = Tables(*drawn, heads)
    context, weights = attend(q, kv, layout, heads, 0.2, keep, tables=tables)
    exact_tables = [each.double().requires_grad_() for each in drawn]
    expected = wanted(exact[0], exact[-1], layout, heads, 0.2, keep, tables=exact_tables)
    torch.testing.assert_close(context.double(), expected, atol=2e-5, rtol=0)
    g = torch.randn(context.shape)
    found = attend_backward(g, q, kv, weights, layout, heads, 0.2, keep, tables=tables)
    gradients = torch.autograd.grad(expected, exact + exact_tables, g.double())
    for one, other in zip(found, gradients, strict=False):
        torch.testing.assert_close(one.double(), other, atol=2e-5, rtol=0)
        if not asked:
            break
    for one, other in zip(tables.gradients(), gradients[-2:], strict=True):
        torch.testing.assert_close(one.double(), other, atol=1e-4, rtol=0)


@pytest.mark.parametrize("drops", [False, True], ids=["", "dropout"])
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_bias_of_each_query_and_key(size, drops):
    """Numbers behind a row's last key count for nothing; a row without tokens has no context and changes nothing."""
    copies, _, longest, heads, _ = size
    qkv, layout, _ = world(size)
    layout.q_counts[-1] = layout.k_counts[-1] = 0
    keep = dropout(size, longest) if drops else None
    bias = torch.randn(copies, qkv.shape[1], heads, wide(longest))
    context, weights = attend(qkv, qkv, layout, heads, 0.3, keep, bias)
    exact, exact_bias = qkv.double().requires_grad_(), bias.double().requires_grad_()
    expected = wanted(exact, exact, layout, heads, 0.3, keep, exact_bias)
    own = expected.flatten(0, 1) != 0
    torch.testing.assert_close(context.double().flatten(0, 1)[own], expected.flatten(0, 1)[own], atol=1e-5, rtol=0)
    g = torch.randn(context.shape)
    gradients = torch.autograd.grad(expected, [exact, exact_bias], g.double())
    bias_gradient = torch.ones_like(bias)
    found, _ = attend_backward(g, qkv, qkv, weights, layout, heads, 0.3, keep, bias, bias_gradient)
    used = gradients[1] != 0
    torch.testing.assert_close((bias_gradient.double() - 1)[used], gradients[1][used], atol=2e-5, rtol=0)
    assert (bias_gradient[~used] == 1).all()
    rows_with_tokens = (gradients[0] != 0).any(-1)
    torch.testing.assert_close(found.double()[rows_with_tokens], gradients[0][rows_with_tokens], atol=2e-5, rtol=0)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_a_bias_by_distance_of_tokens_anywhere(size):
    """Laid out to the bit; its gradient to 1e-5, added to what is there."""
    copies, rows, longest, heads, _ = size
    _, layout, _ = world(size)
    span, tokens = longest + 9, int(layout.q_starts.max()) + longest + 1
    tokens = -(-tokens // copies)
    bias = torch.randn(copies, heads, 2 * span - 1 + LANES)
    columns = torch.zeros(copies * tokens, dtype=torch.int64)
    for start, count in zip(layout.q_starts.tolist(), layout.q_counts.tolist(), strict=True):
        columns[start : start + count] = torch.randperm(span)[:count].sort()[0]
    values = spread(bias, columns, layout)
    assert values.shape == (copies, tokens, heads, wide(longest))
    given, gradient = torch.randn(values.shape), torch.ones_like(bias)
    gather(given, columns, layout, gradient)
    wanted_gradient = torch.ones_like(bias, dtype=torch.float64)
    flat, flat_given = values.flatten(0, 1), given.flatten(0, 1)
    for row, (start, count) in enumerate(zip(layout.q_starts.tolist(), layout.q_counts.tolist(), strict=True)):
        for i in range(start, start + count):
            at = span - 1 + columns[start : start + count] - columns[i]
            own = row // rows
            assert torch.equal(flat[i, :, :count], bias[own][:, at])
            wanted_gradient[own].index_add_(1, at, flat_given[i, :, :count].double())
    torch.testing.assert_close(gradient.double(), wanted_gradient, atol=1e-5, rtol=0)


@pytest.mark.parametrize("biased", [False, True], ids=["", "biased"])
def test_context_and_gradients_from_some_positions(biased):
    """Queries of a tensor of their own, as many as each row has: none in some; keys and values of another."""
    size = copies, _, longest, heads, width = 2, 4, 18, 2, 16
    qkv, layout, lengths = world(size)
    kv = qkv[..., : 2 * heads * width].contiguous()
    layout, most = some(layout, lengths)
    q = torch.randn(copies, most, heads * width)
    keep, bias = dropout(size, 5), torch.randn(copies, heads, 2 * longest - 1 + LANES) if biased else None
    context, weights = attend(q, kv, layout, heads, 0.3, keep, bias)
    exact = [each.double().requires_grad_() for each in (q, kv)]
    expected = wanted(*exact, layout, heads, 0.3, keep, None if bias is None else bias.double())
    torch.testing.assert_close(context.double(), expected, atol=1e-5, rtol=0)
    g = torch.randn(context.shape)
    bias_gradient = torch.zeros_like(bias) if biased else None
    found = attend_backward(g, q, kv, weights, layout, heads, 0.3, keep, bias, bias_gradient)
    for one, other in zip(found, torch.autograd.grad(expected, exact, g.double()), strict=False):
        torch.testing.assert_close(one.double(), other, atol=2e-5, rtol=0)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_bf16_is_rounded_once(size):
    """What goes in and comes out is bf16, and what lies in between is not: within the rounding of its result."""
    qkv, layout, _ = world(size)
    heads, low = size[3], qkv.bfloat16()
    context, weights = attend(low, low, layout, heads, 0.25)
    exact = low.double().requires_grad_()
    expected = wanted(exact, exact, layout, heads, 0.25)
    assert context.dtype == torch.bfloat16 and weights.dtype == torch.float32
    torch.testing.assert_close(context.double(), expected, atol=1e-6, rtol=2**-8)
    g = torch.randn(context.shape).bfloat16()
    (gradient,) = torch.autograd.grad(expected, exact, g.double())
    found, _ = attend_backward(g, low, low, weights, layout, heads, 0.25)
    torch.testing.assert_close(found.double(), gradient, atol=2e-5, rtol=2**-7)


def test_what_is_no_number_stays_so():
    qkv, layout, _ = world(SIZES["one"])
    qkv[0, 0, 0] = torch.nan
    context, _ = attend(qkv, qkv, layout, 2, 0.25)
    assert context[0, 0].isnan().any() and context[0, 7:].isfinite().all()
