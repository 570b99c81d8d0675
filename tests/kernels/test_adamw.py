"""AdamW of several copies in one pass, against torch's in double precision."""

import math

import pytest
import torch

from masklab.kernels.adamw import TILE, adamw_, clipped

COUNTS = [16, 48, 256, TILE, 3 * TILE + 80]
BETAS, EPS = (0.8, 0.95), 1e-6


def draw(copies, count, seed=0):
    return torch.randn(copies, count, generator=torch.Generator().manual_seed(seed))


def updated(values, gradients, clip, low=False, lr=0.03, weight_decay=0.1):
    """Values [S, n], and in bf16, after an update with each of `gradients`; the norms of these [S, updates]."""
    values = values.clone()
    mean, square = torch.zeros_like(values), torch.zeros_like(values)
    rounded = torch.zeros_like(values, dtype=torch.bfloat16) if low else None
    found = []
    for number, gradient in enumerate(gradients, 1):
        norms, shares = clipped(gradient, clip)
        adamw_(values, gradient, mean, square, shares, rounded, number, lr, BETAS, weight_decay, EPS)
        found.append(norms)
    return values, rounded, torch.stack(found, 1)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("clip", [None, 1e-6, 0.5, 1e3])
def test_updates_equal_torchs_in_double_precision(count, clip):
    """Every copy by itself, to a few roundings of a weight for each of five updates."""
    values, gradients = (
        draw(3, count),
        [draw(3, count, seed) * torch.tensor([[1.0], [1e-3], [5.0]]) for seed in range(5)],
    )
    found, _, norms = updated(values, gradients, clip)
    for copy in range(3):
        weight = torch.nn.Parameter(values[copy].double())
        optimiser = torch.optim.AdamW([weight], 0.03, BETAS, EPS, 0.1)
        for gradient, norm in zip(gradients, norms[copy], strict=True):
            weight.grad = gradient[copy].double()
            true = torch.nn.utils.clip_grad_norm_([weight], math.inf if clip is None else clip)
            assert float(norm) == pytest.approx(float(true), rel=1e-6)
            optimiser.step()
        torch.testing.assert_close(found[copy], weight.detach().float(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("count", COUNTS)
def test_bits_depend_on_neither_company_nor_threads(count):
    values, gradients = draw(4, count), [draw(4, count, seed) for seed in range(3)]
    together = updated(values, gradients, 0.5, low=True)
    for copy in range(4):
        alone = updated(values[copy : copy + 1], [own[copy : copy + 1] for own in gradients], 0.5, low=True)
        for ours, own in zip(together, alone, strict=True):
            assert torch.equal(ours[copy], own[0])
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3 - min(threads, 2))
        for ours, other in zip(together, updated(values, gradients, 0.5, low=True), strict=True):
            assert torch.equal(ours, other)
    finally:
        torch.set_num_threads(threads)


def test_a_gradient_is_left_as_it_is_where_nothing_is_clipped():
    """Even one whose square is infinite in fp32."""
    gradient = torch.full((2, 32), 1e-3)
    gradient[0, 5] = 1e25
    norms, shares = clipped(gradient, None)
    assert norms.isinf().tolist() == [True, False] and shares.tolist() == [1, 1]


def test_a_copy_in_bf16_is_what_rounding_gives():
    values, rounded, _ = updated(draw(2, 80), [draw(2, 80, 1)], 1.0, low=True)
    assert torch.equal(rounded, values.to(torch.bfloat16))


def test_only_its_own_copy_is_spoilt_by_what_is_no_number():
    gradient = draw(3, 48)
    gradient[1, 7] = torch.nan
    values, _, norms = updated(draw(3, 48), [gradient], 1.0)
    assert norms[:, 0].isnan().tolist() == [False, True, False]
    assert values.isnan().all(1).tolist() == [False, True, False] and values.isnan().any(1).sum() == 1
