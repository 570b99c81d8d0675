from itertools import combinations

import numpy as np
import pytest
import torch

from masklab.errors import MaskLabError
from masklab.sparse import batched_lasso, spams_backend
from masklab.sparse.lasso import Dictionary, lasso, objective, prepare, unit_rows
from masklab.sparse.targets import Codes

PENALTY = 0.05


def vectors(n, d, seed=0, types=60):
    """Unit vectors like hidden states: a common mean, a decaying spectrum, recurring types plus noise."""
    rng = np.random.default_rng(seed)
    spread = np.arange(1, d + 1) ** -0.5
    kinds = rng.standard_normal((types, d)) * spread
    x = 0.3 * kinds[0] + kinds[rng.integers(0, types, n)] + 0.4 * rng.standard_normal((n, d)) * spread
    return unit_rows(torch.from_numpy(x).float())


def atoms(d, k, seed=1):
    return vectors(k, d, seed).T.contiguous()


def solve_batched(x, dictionary, penalty):
    return batched_lasso.solve(x, x.double().square().sum(1), prepare(dictionary), penalty, 1e-6)


def solve_exact(x, dictionary, penalty):
    return lasso(x, dictionary, penalty)


both = pytest.mark.parametrize("solve", [solve_exact, solve_batched])


def test_no_atom_enters_a_working_set_twice(monkeypatch):
    """Atom 0 is in every code, and fills up the shorter rows."""
    compact, entered = batched_lasso._compact, []

    def checked(*sets):
        made = compact(*sets)
        entered.extend(row[used].tolist() for row, used in zip(made[0], made[2], strict=True))
        return made

    monkeypatch.setattr(batched_lasso, "_compact", checked)
    dictionary = atoms(24, 80)
    x = unit_rows(vectors(100, 24) + 3 * dictionary[:, 0])
    found = solve_batched(x, dictionary, 0.01)
    assert (found.dense(80)[:, 0] > 0).all() and len(set(found.counts.tolist())) > 2
    assert all(len(row) == len(set(row)) for row in entered)


def brute_force(x, dictionary, penalty):
    """The smallest objective over the stationary points of all supports, in double precision."""
    x, dictionary = x.double().numpy(), dictionary.double().numpy()
    k = dictionary.shape[1]
    best = np.sum(x**2, 1) / 2
    for size in range(1, k + 1):
        for support in combinations(range(k), size):
            d = dictionary[:, support]
            a = np.linalg.lstsq(d.T @ d, d.T @ x.T - penalty, rcond=None)[0]
            value = np.sum((x.T - d @ a) ** 2, 0) / 2 + penalty * a.sum(0)
            best = np.where((a >= 0).all(0), np.minimum(best, value), best)
    return best


@both
@pytest.mark.parametrize(("d", "k"), [(4, 8), (3, 8), (8, 6), (3, 1)])
def test_equals_brute_force_over_supports(solve, d, k):
    x, dictionary = vectors(40, d), atoms(d, k)
    found = objective(x, dictionary, solve(x, dictionary, PENALTY), PENALTY)
    np.testing.assert_allclose(found, brute_force(x, dictionary, PENALTY), rtol=1e-6)


@both
@pytest.mark.parametrize(("d", "k", "n"), [(64, 256, 700), (12, 60, 300), (96, 40, 100), (256, 700, 100)])
def test_optimality_conditions(solve, d, k, n):
    x, dictionary = vectors(n, d), atoms(d, k)
    a = solve(x, dictionary, PENALTY).dense(k).double()
    slope = (x.double() - a @ dictionary.T.double()) @ dictionary.double() - PENALTY
    assert (a >= 0).all()
    assert slope[a > 0].abs().max() < 1e-5
    # the duality gap is bounded: no excluded constraint is violated by more than it allows
    assert slope.max() < 1e-3
    residual = x.double() - a @ dictionary.T.double()
    primal = residual.square().sum(1) / 2 + PENALTY * a.sum(1)
    point = residual * (PENALTY / (slope + PENALTY).amax(1, keepdim=True)).clamp(max=1)
    dual = (x.double().square().sum(1) - (x.double() - point).square().sum(1)) / 2
    assert ((primal - dual) / primal).max() < 1e-5


@both
@pytest.mark.parametrize(("d", "k", "n"), [(64, 256, 1500), (192, 600, 200)])
def test_objective_not_above_spams(solve, d, k, n):
    pytest.importorskip("spams")  # some machines have no build of it
    x = vectors(n, d)
    dictionary = atoms(d, k)
    ours = objective(x, dictionary, solve(x, dictionary, PENALTY), PENALTY)
    theirs = objective(x, dictionary, spams_backend.lasso(x, dictionary, PENALTY), PENALTY)
    assert ((ours - theirs) / theirs).max() < 1e-5
    # SPAMS stops early on a few vectors; on nearly all the objectives are equal
    assert np.quantile(((theirs - ours) / theirs).abs(), 0.98) < 1e-4


@both
def test_awkward_input(solve):
    # duplicate atoms, a zero atom, zero vectors, vectors without a correlated atom, an atom itself
    dictionary = atoms(16, 24)
    dictionary = torch.cat([dictionary, dictionary[:, :8], torch.zeros(16, 1)], 1)
    x = torch.cat([torch.zeros(2, 16), vectors(30, 16), dictionary.T[:5], -1e-3 * dictionary.T[:1]])
    codes = solve(x, dictionary, PENALTY)
    assert codes.counts[:2].tolist() == [0, 0] and codes.counts[-1] == 0
    found = objective(x, dictionary, codes, PENALTY)
    distinct = objective(x, dictionary[:, :24], solve(x, dictionary[:, :24].contiguous(), PENALTY), PENALTY)
    np.testing.assert_allclose(found, distinct, rtol=1e-5, atol=1e-9)
    assert len(solve(x[:0], dictionary, PENALTY)) == 0


@both
@pytest.mark.parametrize("apart", [0, 1e-6, 1e-4])
@pytest.mark.parametrize("penalty", [0.05, 0.0125, 0.005])
def test_an_atom_that_stands_twice_changes_no_code(solve, apart, penalty):
    """Nor one that stands twice up to rounding, as a dictionary of few different vectors has them."""
    x, dictionary = vectors(200, 16), atoms(16, 24)
    twice = unit_rows(dictionary[:, :8].T + apart * vectors(8, 16, 2)).T
    twice = torch.cat([dictionary, twice], 1).contiguous()
    found, alone = (objective(x, each, solve(x, each, penalty), penalty) for each in (twice, dictionary))
    assert (found / alone).max() < 1 + 1e-4


def test_threads_and_chunks_do_not_matter():
    x, dictionary = vectors(1100, 32), atoms(32, 128)
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            results.append(lasso(x, dictionary, PENALTY))
    finally:
        torch.set_num_threads(threads)
    pieces = Codes.cat([lasso(part, dictionary, PENALTY) for part in x.split(256)])
    for other in (results[1], pieces):
        torch.testing.assert_close(results[0].dense(128), other.dense(128), atol=2e-5, rtol=0)


def test_fista_is_the_released_iteration():
    # the iteration of the released code, written out; the step recomputed from its definition
    x, dictionary = vectors(20, 24), atoms(24, 60)
    step = 1 / torch.linalg.eigvalsh(dictionary @ dictionary.T)[-1]
    a = y = torch.zeros(20, 60)
    t = 1.0
    for _ in range(100):
        new = (y - step * (y @ dictionary.T - x) @ dictionary - step * PENALTY).clamp(min=0)
        t_new = (1 + (1 + 4 * t * t) ** 0.5) / 2
        y = new + (t - 1) / t_new * (new - a)
        a, t = new, t_new
    torch.testing.assert_close(lasso(x, dictionary, PENALTY, solver="fista").dense(60), a, atol=1e-4, rtol=0)


def test_codes_are_ordered_rows():
    x = vectors(50, 32)
    codes = lasso(x, atoms(32, 100), PENALTY)
    assert codes.indptr[0] == 0 and codes.indptr[-1] == len(codes.indices) == len(codes.values)
    for first, last in zip(codes.indptr[:-1], codes.indptr[1:], strict=True):
        assert (codes.indices[first:last].diff() > 0).all()
    again = Codes.of_dense(codes.dense(100))
    assert all(torch.equal(getattr(codes, key), getattr(again, key)) for key in ("indptr", "indices", "values"))


def test_prepared_dictionary_follows_changes():
    dictionary = atoms(8, 12)
    first = prepare(dictionary)
    assert prepare(dictionary) is first and prepare(first) is first
    dictionary[:, 0] = 0
    torch.testing.assert_close(prepare(dictionary).gram, dictionary.T @ dictionary)


def test_errors():
    dictionary = Dictionary(atoms(8, 12))
    with pytest.raises(MaskLabError, match="solver 'newton'"):
        lasso(vectors(3, 8), dictionary, PENALTY, solver="newton")
    with pytest.raises(MaskLabError, match=r"\[3, 7\]"):
        lasso(vectors(3, 7), dictionary, PENALTY)
    with pytest.raises(MaskLabError, match="penalty 0"):
        lasso(vectors(3, 8), dictionary, 0)
    bad = vectors(3, 8)
    bad[1, 2] = torch.nan
    with pytest.raises(MaskLabError, match="row 1"):
        lasso(bad, dictionary, PENALTY)


def test_unit_rows():
    x = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    torch.testing.assert_close(unit_rows(x), torch.tensor([[0.6, 0.8], [0.0, 0.0]]))


def test_the_objective_of_many_rows_is_its_formula():
    """More rows than are dense at once."""
    generator = torch.Generator().manual_seed(3)
    x, atoms = torch.randn(4200, 3, generator=generator), torch.randn(3, 5, generator=generator)
    dense = torch.rand(4200, 5, generator=generator) * (torch.rand(4200, 5, generator=generator) < 0.5)
    truth = ((x - dense @ atoms.T) ** 2).sum(1) / 2 + 0.3 * dense.sum(1)
    torch.testing.assert_close(objective(x, atoms, Codes.of_dense(dense), 0.3).float(), truth)


@pytest.mark.parametrize("solver", ["exact", "fista"])
@pytest.mark.parametrize("n", [511, 512, 513, 1024, 1100])
def test_any_number_of_vectors_is_coded(n, solver):
    """Around the size that is held at once: each row as it is alone."""
    x, dictionary = vectors(n, 6), atoms(6, 10)
    codes = lasso(x, dictionary, PENALTY, solver)
    assert len(codes) == n
    some = torch.tensor([0, 1, 300, 510, n - 1])
    alone = torch.cat([lasso(x[row : row + 1], dictionary, PENALTY, solver).dense(10) for row in some])
    torch.testing.assert_close(codes.dense(10)[some], alone, atol=1e-5, rtol=1e-4)


def test_objectives_of_many_rows_are_those_of_each():
    """By the formula, past the rows that are laid out at once."""
    x, dictionary = vectors(4099, 3), atoms(3, 4)
    codes = lasso(x, dictionary, PENALTY)
    dense = codes.dense(4).double()
    wanted = (x.double() - dense @ dictionary.T.double()).square().sum(1) / 2 + PENALTY * dense.sum(1)
    found = objective(x, dictionary, codes, PENALTY)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-15)
    assert objective(x[:0], dictionary, Codes.of_dense(torch.zeros(0, 4)), PENALTY).dtype == torch.float64


@pytest.mark.parametrize(("d", "k"), [(3, 5), (5, 3), (4, 4)])
def test_the_step_is_one_over_the_largest_eigenvalue(d, k):
    for scale in (1.0, 0.01):
        matrix = scale * atoms(d, k)
        prepared = Dictionary(matrix.double())
        assert prepared.step == pytest.approx(1 / float(torch.linalg.svdvals(matrix)[0] ** 2), rel=1e-4)
        torch.testing.assert_close(prepared.gram, matrix.T @ matrix)
    assert Dictionary(torch.zeros(d, k)).step == pytest.approx(1e12, rel=1e-3)


def test_what_cannot_be_coded_is_one_line():
    dictionary = atoms(4, 6)
    bad = vectors(5, 4)
    bad[3, 1] = torch.nan
    for x, penalty, said in (
        (bad, 1.0, "row 3 of the vectors to code is not finite"),
        (bad[:2], 0.0, "must be above 0"),
        (bad[:2], -1.0, "must be above 0"),
        (bad[:2], float("nan"), "penalty nan: must be above 0"),
        (bad[:, :3], 1.0, r"shape \[5, 3\], expected \[n, 4\]"),
        (bad[0], 1.0, r"shape \[4\], expected \[n, 4\] for a dictionary of shape \[4, 6\]"),
    ):
        with pytest.raises(MaskLabError, match=said):
            lasso(x, dictionary, penalty)
    assert unit_rows(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1e-8]])).tolist() == [
        [0, 0], pytest.approx([0.6, 0.8]), pytest.approx([0, 1])
    ]  # fmt: skip


@pytest.mark.parametrize("iterations", [1, 2, 3, 6])
def test_fista_step_by_step(iterations, monkeypatch):
    """Long before it has converged, where momentum shows: the iteration of Beck and Teboulle (2009), in double."""
    import masklab.sparse.lasso as module

    monkeypatch.setattr(module, "FISTA_ITERATIONS", iterations)
    x, dictionary = vectors(9, 12), atoms(12, 30)
    matrix, rows = dictionary.double(), x.double()
    step = 1 / torch.linalg.eigvalsh(matrix @ matrix.T)[-1]
    before = ahead = torch.zeros(9, 30, dtype=torch.double)
    t = 1.0
    for _ in range(iterations):
        codes = (ahead - step * ((ahead @ matrix.T - rows) @ matrix + PENALTY)).clamp(min=0)
        following = (1 + (1 + 4 * t**2) ** 0.5) / 2
        ahead, before, t = codes + (t - 1) / following * (codes - before), codes, following
    found = lasso(x, dictionary, PENALTY, solver="fista").dense(30).double()
    torch.testing.assert_close(found, before, atol=2e-6, rtol=1e-5)


def test_on_cpus_the_compiled_solver_is_used(monkeypatch):
    x, dictionary = vectors(20, 6), atoms(6, 9)
    monkeypatch.setattr(batched_lasso, "solve", None)
    assert len(lasso(x, dictionary, PENALTY)) == 20
