import shutil

import numpy as np
import pytest
import torch
from test_lasso import PENALTY, vectors

from masklab.errors import MaskLabError
from masklab.sparse import dictionary as module
from masklab.sparse.dictionary import learn
from masklab.sparse.lasso import lasso, objective, unit_rows
from masklab.sparse.quality import describe


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


def test_what_is_said_of_a_dictionary_is_of_the_codes_of_its_solver():
    x, dictionary = vectors(60, 24), vectors(90, 24, 1).T.contiguous()
    for solver in ("exact", "fista"):
        codes = lasso(x, dictionary, PENALTY, solver)
        said = describe(x, dictionary, PENALTY, solver)
        assert said["nonzeros"] == pytest.approx(len(codes.indices) / 60) and said["vectors"] == 60
        assert said["atoms_used"] == len(set(codes.indices.tolist())) and said["empty"] == 0
        assert said["objective"] == pytest.approx(float(objective(x, dictionary, codes, PENALTY).mean()))
    assert said["nonzeros"] > describe(x, dictionary, PENALTY)["nonzeros"]


def test_planted_dictionary():
    pytest.importorskip("spams")  # some machines have no build of it
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
    pytest.importorskip("spams")  # some machines have no build of it
    x = vectors(4000, 48, types=300)
    values = {
        backend: held_out(x[3000:], learn(x[:3000], 128, PENALTY, iterations, batch_size, seed=1, backend=backend))
        for backend in ("torch", "spams")
    }
    assert values["torch"] < 1.01 * values["spams"], values


@pytest.mark.parametrize("backend", ["torch", "spams"])
def test_deterministic(backend):
    if backend == "spams":
        pytest.importorskip("spams")  # some machines have no build of it
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


def test_as_many_vectors_as_atoms_are_enough_errors_none():
    x = vectors(12, 6, types=12)
    assert learn(x, 12, PENALTY, iterations=2, batch_size=4).shape == (6, 12)


def test_batches_are_the_permutations_cut_draws():
    """In order, over the ends of epochs: the epochs' permutations one after another, by their own addresses."""
    from masklab import rng

    whole = np.concatenate([rng.generator(3, "dictionary", "order", epoch).permutation(7) for epoch in range(6)])
    for size in (1, 3, 7, 10, 16):
        for i in range(2):
            found = module._batch(i, 7, size, 3)
            assert found.tolist() == whole[i * size : (i + 1) * size].tolist()


@pytest.mark.parametrize("accumulate", [module._accumulate, module._accumulate_dense, module._accumulate_sparse])
@pytest.mark.parametrize("shape", [(1, 4), (9, 5), (64, 12)])
def test_accumulate_adds_to_what_is_there(shape, accumulate):
    k, d = shape
    x, dictionary = vectors(30, d), torch.nn.functional.normalize(torch.randn(d, k), dim=0)
    codes = lasso(x, dictionary, PENALTY)
    a, b = torch.rand(k, k), torch.rand(k, d)
    dense, wanted = codes.dense(k), (a.clone(), b.clone())
    accumulate(a, b, codes, x)
    torch.testing.assert_close(a, wanted[0] + dense.T @ dense / 30)
    torch.testing.assert_close(b, wanted[1] + dense.T @ x / 30)


def test_which_atoms_are_replaced():
    """Used just above the limit, alike just below it: kept. More of them than vectors: as many as there are."""
    d_t = torch.eye(4)
    a = torch.diag(torch.tensor([1e-6, 1.01e-6, 1.0, 0.0]))
    gram = torch.eye(4)
    gram[1, 2] = gram[2, 1] = 0.9999
    before, x = d_t.clone(), vectors(9, 4)
    module._replace(d_t, a, torch.ones(4, 4), gram, x, np.random.default_rng(0))
    assert (d_t != before).any(1).tolist() == [True, False, False, True]
    gram[1, 2] = gram[2, 1] = 0.99995
    d_t, a = torch.eye(4), torch.eye(4)
    module._replace(d_t, a, b := torch.ones(4, 4), gram, x, np.random.default_rng(0))
    assert (d_t != before).any(1).tolist() == [False, False, True, False]  # the later of the two
    assert a[2].tolist() == [0] * 4 == a[:, 2].tolist() and b.sum(1).tolist() == [4, 4, 0, 4]
    d_t, a = torch.eye(4), torch.zeros(4, 4)
    module._replace(d_t, a, torch.ones(4, 4), torch.eye(4), x[:2], np.random.default_rng(0))
    assert (d_t != before).any(1).tolist() == [True, True, False, False]
    assert sorted(map(tuple, d_t[:2].tolist())) == sorted(map(tuple, x[:2].tolist()))


def test_iterations_by_the_algorithm_written_out():
    """Learning against its parts put together here: codes, forgetting, statistics, replacement, update."""
    from masklab import rng
    from masklab.sparse.lasso import Dictionary

    x, k, size = vectors(90, 8), 16, 20
    d_t, a, b = module.initial(x, k, 2).T.contiguous(), torch.zeros(k, k), torch.zeros(k, 8)
    for i in range(23):
        batch, dictionary = x[module._batch(i, 90, size, 2)], Dictionary(d_t.T)
        dense = lasso(batch, dictionary, PENALTY, tolerance=module.CODE_TOLERANCE).dense(k)
        keep = module._keep(i, size, k)
        a, b = keep * a + (1 - keep) * 0 + dense.T @ dense / size, keep * b + dense.T @ batch / size
        if i in (9, 19):
            module._replace(d_t, a, b, dictionary.gram, batch, rng.generator(2, "dictionary", "replace", i))
        module._update(d_t, a, b)
    seen = []
    found = learn(x, k, PENALTY, 23, size, 2, progress=lambda *said: seen.append(said))
    torch.testing.assert_close(found, d_t.T, atol=2e-4, rtol=1e-3)
    assert seen == [(i + 1, 23) for i in range(23)]


def test_a_state_resume_keeps_is_saved_no_more_often_than_asked(tmp_path):
    x = vectors(60, 8)
    learn(x, 8, PENALTY, 6, 10, state_folder=tmp_path, save_seconds=1000)
    assert not (tmp_path / "learning.safetensors").exists()
    learn(x, 8, PENALTY, 1, 10, state_folder=tmp_path, save_seconds=0)
    assert not (tmp_path / "learning.safetensors").exists(), "the last iteration is the result's"
    learn(x, 8, PENALTY, 2, 10, state_folder=tmp_path, save_seconds=0)
    assert (tmp_path / "learning.safetensors").exists()


def test_what_spams_is_given_and_what_initial_draws_are(monkeypatch):
    """The vectors in the order of our first epoch, and columns of length 1 of vectors of any length."""
    from masklab import rng

    x, seen = 7 * vectors(30, 6), []
    monkeypatch.setattr(module.spams_backend, "train", lambda *given: seen.extend(given) or given[1])
    found = learn(x, 8, PENALTY, 5, 9, 4, "spams", threads=3)
    assert torch.equal(seen[0], x[torch.from_numpy(rng.generator(4, "dictionary", "order", 0).permutation(30))])
    assert seen[2:] == [PENALTY, 5, 9, 3] and torch.equal(found, module.initial(x, 8, 4))
    for scale in (7.0, 1.0, 0.01):
        start = module.initial(scale * vectors(30, 6), 8, 4)
        torch.testing.assert_close(start.norm(dim=0), torch.ones(8))
        rows = start.T @ vectors(30, 6).T
        torch.testing.assert_close(rows.amax(1), torch.ones(8))  # each is one of the vectors
