"""Effective ranks and shares outside a subspace: from Gram matrices, against numpy and against closed forms."""

import numpy as np
import pytest
import torch

from masklab.spectrum import Gram, effective_rank, entropy_rank, interpolated_rank, outside, ranks, subspace


def by_svd(matrix, threshold=0.9):
    energy = np.linalg.svd(matrix, compute_uv=False) ** 2
    return int(np.argmax(np.cumsum(energy) / energy.sum() >= threshold)) + 1


def streamed(matrix, sizes):
    gram, start = Gram(), 0
    for size in sizes:
        gram.add(torch.from_numpy(matrix[start : start + size]))
        start += size
    assert start == len(matrix)
    return gram


def drawn(n, d, seed):
    """A matrix with a large mean and directions of very unlike lengths."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) * np.geomspace(1, 1e-3, d) + 5 * rng.normal(size=d)) @ rng.normal(size=(d, d))


@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.99, 0.99999])
@pytest.mark.parametrize("shape", [(40, 7), (7, 7), (5, 9)])
def test_equals_numpy_svd(shape, threshold):
    for seed in range(5):
        matrix = drawn(*shape, seed)
        gram = streamed(matrix, [len(matrix)])
        assert effective_rank(gram.eigenvalues(), threshold) == by_svd(matrix, threshold)
        centred = matrix - matrix.mean(0)
        assert effective_rank(gram.eigenvalues(centred=True), threshold) == by_svd(centred, threshold)


def test_streamed_equals_in_memory():
    """Squared singular values to 1e-8 of the largest, in any parts and in two sums joined; the mean too."""
    matrix = drawn(1000, 12, 3) + 1e4
    energy = np.linalg.svd(matrix, compute_uv=False) ** 2
    centred = np.linalg.svd(matrix - matrix.mean(0), compute_uv=False) ** 2
    halves = streamed(matrix[:300], [1, 299]) + streamed(matrix[300:], [1, 699]) + Gram()
    for gram in (streamed(matrix, [1000]), streamed(matrix, [1, 0, 13, 986]), halves, Gram() + halves):
        assert gram.count == 1000
        np.testing.assert_allclose(gram.eigenvalues(), energy, rtol=0, atol=1e-8 * energy[0])
        np.testing.assert_allclose(gram.eigenvalues(centred=True), centred, rtol=0, atol=1e-8 * centred[0])
        assert gram.mean_share() == pytest.approx(1000 * (matrix.mean(0) ** 2).sum() / energy.sum(), rel=1e-10)


def test_an_anisotropic_case_of_known_rank():
    """Ten directions of one variance and twenty of a hundredth, with a mean of 1000 times their norm.

    The ten hold 10 / 10.2 of the variance: .9 of it takes ten of them (9 / 10.2 = .88), and .99 takes some of the
    twenty more: 10 + ceil((.99 x 10.2 - 10) / .01) = 20. The mean takes all of the uncentred norm.
    """
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(40, 40)))[0]
    scores = np.linalg.qr(rng.normal(size=(500, 31)))[0]  # orthonormal, and below without any mean
    scores = np.linalg.qr(np.column_stack([np.ones(500), scores]))[0][:, 1:31]
    scale = np.array([1.0] * 10 + [0.1] * 20)
    matrix = scores * scale @ basis[:30] + 1000 * basis[35]
    gram = streamed(matrix, [200, 300])
    assert effective_rank(gram.eigenvalues(centred=True), 0.9) == 10
    assert effective_rank(gram.eigenvalues(centred=True), 0.99) == 20
    assert effective_rank(gram.eigenvalues(), 0.9) == 1 and gram.mean_share() > 0.999
    isotropic = streamed(np.eye(20), [20])
    assert effective_rank(isotropic.eigenvalues(), 0.9) == 18  # .9 exactly, but for rounding
    assert effective_rank(streamed(np.zeros((9, 4)), [9]).eigenvalues(), 0.9) == 0


def test_half_precision_rows_are_summed_in_double():
    rows = torch.randn(3000, 5).to(torch.bfloat16)
    found = Gram().add(rows[:1]).add(rows[1:]).eigenvalues()
    truth = np.linalg.svd(rows.double().numpy(), compute_uv=False) ** 2
    np.testing.assert_allclose(found, truth, rtol=1e-10)


def test_one_column_and_none():
    assert effective_rank([3.0], 0.9) == 1 and effective_rank([1.0, 0.0], 0.9) == 1 and effective_rank([0.0], 0.9) == 0
    gram = streamed(np.zeros((3, 2)), [3])
    assert gram.mean_share() == 0 and gram.eigenvalues().tolist() == [0, 0]
    thin = streamed(np.array([[0.1], [0.3]]), [1, 1])
    assert thin.eigenvalues() == pytest.approx([0.1]) and thin.eigenvalues(centred=True) == pytest.approx([0.02])
    assert thin.mean_share() == pytest.approx(0.08 / 0.1)


# --- ranks between whole numbers ------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.3, 0.9, 0.99])
def test_equal_values_have_a_rank_in_proportion(threshold):
    for d in (1, 7, 64):
        assert interpolated_rank(np.full(d, 3.5), threshold) == pytest.approx(threshold * d)
        assert entropy_rank(np.full(d, 3.5)) == pytest.approx(d)


def test_a_geometric_spectrum_has_its_closed_forms():
    """Values q^i, i from 0 to d - 1: the first k hold (1 - q^k) / (1 - q^d); the entropy is that of a geometric law."""
    q, d = 0.8, 200  # q^d is below rounding
    values = q ** np.arange(d)
    entropy = -(np.log(1 - q) + q / (1 - q) * np.log(q))
    assert entropy_rank(values) == pytest.approx(np.exp(entropy), rel=1e-9)
    k = int(np.ceil(np.log(0.1) / np.log(q)))  # 1 - q^k >= .9 first
    part = (0.9 - (1 - q ** (k - 1))) / (q ** (k - 1) * (1 - q))
    assert effective_rank(values, 0.9) == k and interpolated_rank(values, 0.9) == pytest.approx(k - 1 + part, rel=1e-9)


def test_the_rank_between_whole_numbers_rounds_up_to_the_whole_number():
    rng = np.random.default_rng(3)
    for _ in range(50):
        values = np.sort(rng.gamma(0.3, size=12))[::-1]
        for threshold in (0.5, 0.9, 0.99):
            between = interpolated_rank(values, threshold)
            whole = effective_rank(values, threshold)
            assert whole - 1 < between <= whole
            # by brute force: where the broken line of sums crosses
            grid = np.linspace(0, 12, 120_001)
            sums = np.interp(grid, np.arange(13), np.append(0, np.cumsum(values))) / values.sum()
            assert between == pytest.approx(grid[np.argmax(sums >= threshold)], abs=2e-4)


def test_no_rank_of_nothing_and_one_of_one_direction():
    assert interpolated_rank([0.0, 0.0], 0.9) == 0 == entropy_rank([0.0, 0.0])
    assert entropy_rank([5.0, 0.0]) == pytest.approx(1) and interpolated_rank([5.0, 0.0], 0.9) == pytest.approx(0.9)


def test_all_ranks_of_a_matrix_equal_numpys():
    matrix = drawn(60, 9, 4)
    found = ranks(streamed(matrix, [20, 40]), 0.9)
    for suffix, own in (("", matrix), ("_centred", matrix - matrix.mean(0))):
        energy = np.linalg.svd(own, compute_uv=False) ** 2
        shares = energy / energy.sum()
        assert found[f"rank{suffix}"] == by_svd(own, 0.9)
        assert found[f"rank_interpolated{suffix}"] == pytest.approx(interpolated_rank(energy, 0.9), rel=1e-9)
        assert found[f"rank_entropy{suffix}"] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-9)


# --- outside a subspace ---------------------------------------------------------------------


def by_projection(rows, of, threshold):
    """Row by row: less their projections on whole singular vectors, and less part of that on the last one."""
    _, sigma, directions = np.linalg.svd(of, full_matrices=False)
    whole, left = 0, threshold * (sigma**2).sum()
    while sigma[whole] ** 2 <= left:
        left -= sigma[whole] ** 2
        whole += 1
    part = left / sigma[whole] ** 2
    inside = ((rows @ directions[:whole].T) ** 2).sum() + part * ((rows @ directions[whole]) ** 2).sum()
    return 1 - inside / (rows**2).sum()


@pytest.mark.parametrize("threshold", [0.5, 0.9, 0.99])
def test_the_share_outside_equals_projections_row_by_row(threshold):
    for seed in range(4):
        rows, of = drawn(50, 8, seed), drawn(70, 8, seed + 10)
        found = outside(streamed(rows, [50]), subspace(streamed(of, [30, 40]), threshold))
        assert found == pytest.approx(by_projection(rows, of, threshold), abs=1e-9)


def test_a_matrix_has_exactly_the_rest_of_itself_outside():
    for seed in range(4):
        gram = streamed(drawn(50, 8, seed), [50])
        for threshold in (0.5, 0.9, 0.99):
            assert outside(gram, subspace(gram, threshold)) == pytest.approx(1 - threshold, abs=1e-9)


def test_directions_that_are_shared_and_that_are_not():
    """Real tokens on e1 .. e4 evenly, [MASK]s with a quarter of their norm on e5: that quarter, and .01 of the rest."""
    real = np.eye(6)[:4].repeat(5, 0)
    masks = np.concatenate([np.eye(6)[:4].repeat(3, 0), 2 * np.eye(6)[4:5]])
    assert outside(streamed(masks, [13]), subspace(streamed(real, [20]), 0.99)) == pytest.approx(0.25 + 0.75 * 0.01)
    assert outside(streamed(np.zeros((2, 6)), [2]), subspace(streamed(real, [20]), 0.99)) == 0
