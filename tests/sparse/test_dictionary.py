import shutil

import numpy as np
import pytest
import torch
from test_lasso import PENALTY, vectors

from masklab.errors import MaskLabError
from masklab.sparse import dictionary as module
from masklab.sparse.dictionary import learn
from masklab.sparse.lasso import lasso, objective, unit_rows


def planted(n, d=32, k=64, seed=0):
    """Unit vectors with about four atoms each of a random dictionary, and noise: (x [n, d], dictionary [d, k])."""
    rng = np.random.default_rng(seed)
    dictionary = rng.standard_normal((d, k))
    dictionary /= np.linalg.norm(dictionary, axis=0)
    codes = rng.gamma(2, 1, (n, k)) * (rng.random((n, k)) < 4 / k)
    x = codes @ dictionary.T + 0.02 * rng.standard_normal((n, d))
    return unit_rows(torch.from_numpy(x).float()), torch.from_numpy(dictionary).float()


def held_out(x, dictionary):
    return objective(x, dictionary, lasso(x, dictionary, PENALTY), PENALTY).mean().item()


def test_planted_dictionary():
    x, truth = planted(6000)
    ours = learn(x[:5000], 64, PENALTY, iterations=60, batch_size=200, seed=3)
    spams = learn(x[:5000], 64, PENALTY, iterations=60, batch_size=200, seed=3, backend="spams")
    assert ours.shape == (32, 64) and ours.dtype == torch.float32
    assert ours.norm(dim=0).max() < 1 + 1e-5
    assert held_out(x[5000:], ours) < 1.01 * held_out(x[5000:], spams)
    # the planted atoms are found again
    assert (truth.T @ ours).amax(1).quantile(0.9) > 0.97


@pytest.mark.parametrize(("iterations", "batch_size"), [(60, 64), (150, 200)])
def test_state_like_vectors_as_good_as_spams(iterations, batch_size):
    x = vectors(4000, 48, types=300)
    values = {
        backend: held_out(x[3000:], learn(x[:3000], 128, PENALTY, iterations, batch_size, seed=1, backend=backend))
        for backend in ("torch", "spams")
    }
    assert values["torch"] < 1.01 * values["spams"], values


@pytest.mark.parametrize("backend", ["torch", "spams"])
def test_deterministic(backend):
    x = vectors(600, 16)
    first, second, other = (learn(x, 32, PENALTY, 12, 50, seed=seed, backend=backend) for seed in (1, 1, 2))
    assert torch.equal(first, second) and not torch.equal(first, other)


class Interrupted(Exception):
    pass


def test_resume_is_bit_identical(tmp_path):
    x = vectors(500, 16)
    settings = {"atoms": 32, "penalty": PENALTY, "iterations": 25, "batch_size": 60, "seed": 5}
    whole = learn(x, **settings)
    seen = []

    def stop_at(done, total):
        seen.append(done)
        if done == 13:
            raise Interrupted

    state = tmp_path / "state"
    kept = {"state_folder": state, "fingerprint": {"model": "a"}, "save_seconds": 0}
    with pytest.raises(Interrupted):
        learn(x, **settings, progress=stop_at, **kept)
    assert state.is_dir()
    seen.clear()
    resumed = learn(x, **settings, progress=stop_at_nothing(seen), **kept)
    assert seen[0] == 14 and seen[-1] == 25
    assert torch.equal(whole, resumed)
    assert (state / "learning.safetensors").exists()  # until the dictionary lies in its place
    # another fingerprint starts afresh
    shutil.rmtree(state)
    with pytest.raises(Interrupted):
        learn(x, **settings, progress=stop_at, **kept)
    seen.clear()
    again = learn(x, **settings, progress=stop_at_nothing(seen), **(kept | {"fingerprint": {"model": "b"}}))
    assert seen[0] == 1 and torch.equal(whole, again)


def stop_at_nothing(seen):
    return lambda done, total: seen.append(done)


@pytest.mark.parametrize("compiled", [True, False])
def test_update_is_sequential_coordinate_descent(compiled):
    # the blocked update against algorithm 2 written out, over more than one block, with one unused atom
    k, d = module.BLOCK + 9, 12
    generator = torch.Generator().manual_seed(0)
    codes = torch.rand(200, k, generator=generator, dtype=torch.double)
    codes[:, 7] = 0
    x = torch.randn(200, d, generator=generator, dtype=torch.double)
    a, b = codes.T @ codes / 200, codes.T @ x / 200
    start = torch.nn.functional.normalize(torch.randn(k, d, generator=generator, dtype=torch.double))
    expected = start.clone().T
    for j in range(k):
        if a[j, j] > 0:
            u = (b[j] - expected @ a[:, j]) / a[j, j] + expected[:, j]
            expected[:, j] = u / max(1, u.norm())
    start, a, b = start.float(), a.float(), b.float()
    if compiled:
        module._update(start, a, b)
    else:
        for rows in (slice(0, 40), slice(40, k)):
            module._descend(start[rows], b[rows] - a[rows] @ start, a[rows, rows])
    torch.testing.assert_close(start, expected.T.float(), atol=1e-5, rtol=1e-4)


def test_accumulate_is_the_mean_of_outer_products():
    x, dictionary = planted(50)
    codes = lasso(x, dictionary, PENALTY)
    a, b = torch.zeros(64, 64), torch.zeros(64, 32)
    module._accumulate(a, b, codes, x)
    dense = codes.dense(64)
    torch.testing.assert_close(a, dense.T @ dense / 50)
    torch.testing.assert_close(b, dense.T @ x / 50)


def test_how_much_is_kept_as_statistics_accumulate():
    """A plain mean of all vectors until there are MEMORY per atom; then Mairal's rho over the iterations."""
    size, atoms = 10, 80
    filled = module.MEMORY * atoms // size
    for i in (1, filled // 2, filled - 1):
        assert module._keep(i, size, atoms) == pytest.approx(i / (i + 1))
    late = filled * 100
    assert module._keep(late, size, atoms) == pytest.approx(1 - module.FORGETTING / (late + 1))
    assert module._keep(filled, size, atoms) == pytest.approx(1 - size / (module.MEMORY * atoms))
    assert module._keep(0, 10**6, 1) == 0  # a batch above all memory is all there is


def test_unused_and_duplicate_atoms_are_replaced():
    x = vectors(40, 8)
    d_t = x[:6].clone()
    d_t[4] = d_t[1]
    a, b = torch.eye(6) + 0.1, torch.ones(6, 8)
    a[2, 2] = 0
    before = d_t.clone()
    module._replace(d_t, a, b, d_t @ d_t.T, x, np.random.default_rng(0))
    assert torch.equal(d_t[[0, 1, 3, 5]], before[[0, 1, 3, 5]])
    for j in (2, 4):
        assert (d_t[j] == x).all(1).any() and not torch.equal(d_t[j], before[j])
        assert not a[j].any() and not a[:, j].any() and not b[j].any()


def test_initial_draws_distinct_vectors():
    x = vectors(20, 8).repeat(5, 1)
    start = module.initial(x, 20, seed=1)
    assert len(start.T.unique(dim=0)) == 20
    assert module.initial(x, 30, seed=1).shape == (8, 30)


def test_batches_are_permutations_end_to_end():
    rows = torch.cat([module._batch(i, 7, 3, seed=1) for i in range(7)])
    for epoch in rows.split(7):
        assert sorted(epoch.tolist()) == list(range(7))
    assert sorted(module._batch(0, 7, 14, seed=1).tolist()) == sorted(list(range(7)) * 2)


def test_errors(monkeypatch):
    with pytest.raises(MaskLabError, match="10 vectors are too few for 11 atoms"):
        learn(vectors(10, 4), 11, PENALTY)
    with pytest.raises(MaskLabError, match="backend 'sklearn'"):
        learn(vectors(10, 4), 5, PENALTY, backend="sklearn")
    monkeypatch.setitem(__import__("sys").modules, "spams", None)
    with pytest.raises(MaskLabError, match="pip install spams-bin"):
        learn(vectors(10, 4), 5, PENALTY, 1, 5, backend="spams")
