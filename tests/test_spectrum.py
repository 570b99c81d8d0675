"""Effective ranks from Gram matrices against singular values of the matrix itself."""

import numpy as np
import pytest
import torch

from masklab.spectrum import Gram, effective_rank


def by_svd(matrix, threshold):
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
