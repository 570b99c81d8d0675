"""Non-negative sparse coding under a fixed dictionary (Berend 2023, section 2.3, equation 1).

min over a >= 0 of 1/2 |x - D a|^2 + penalty |a|_1
"""

import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F

from masklab.errors import MaskLabError
from masklab.inside_torch import version
from masklab.sparse import batched_lasso
from masklab.sparse.targets import Codes

SOLVERS = ("exact", "fista")
FISTA_ITERATIONS = 100  # of the released code, which does not check convergence
CHUNK = {"cpu": 512, "cuda": 8192}  # vectors whose correlations with all atoms are held at once


def unit_rows(x: Tensor) -> Tensor:
    """Rows of x [n, d] divided by their L2 norm (at least 1e-9); zero rows stay zero."""
    return F.normalize(x, dim=-1, eps=1e-9)


class Dictionary:
    """A matrix of atoms [d, k] float32 with what solvers need of it, computed once."""

    def __init__(self, matrix: Tensor):
        self.matrix = matrix.detach().float()

    @cached_property
    def gram(self) -> Tensor:
        """D^T D, [k, k]."""
        return self.matrix.T @ self.matrix

    @cached_property
    def step(self) -> float:
        """1 / lambda_max(D D^T), the fixed step of FISTA."""
        d, k = self.matrix.shape
        square = self.matrix @ self.matrix.T if d <= k else self.gram
        return 1 / float(torch.linalg.eigvalsh(square)[-1].clamp(min=1e-12))


_latest = None  # (weak reference to the tensor, its version, Dictionary)


def prepare(dictionary: "Tensor | Dictionary") -> Dictionary:
    """The `Dictionary` of a tensor; that of the latest tensor is kept, so repeated calls with it cost nothing."""
    global _latest
    if isinstance(dictionary, Dictionary):
        return dictionary
    now = version(dictionary)
    if _latest is None or _latest[0]() is not dictionary or _latest[1] != now:
        _latest = (weakref.ref(dictionary), now, Dictionary(dictionary))
    return _latest[2]


@torch.no_grad()
def lasso(
    x: Tensor,
    dictionary: "Tensor | Dictionary",
    penalty: float,
    solver: str = "exact",
    tolerance: float = 1e-6,
    only: Tensor | None = None,
) -> Codes:
    """Non-negative lasso codes of the rows of x, on x's device.

    Args:
        x: [n, d] vectors.
        dictionary: [d, k] atoms, each of norm <= 1, on the same device.
        penalty: lambda > 0.
        solver: `exact`: active sets, compiled on the CPU (torch's threads are used), batched on a GPU;
            `fista`: the released code's 100 unchecked iterations with step 1 / lambda_max(D D^T).
        tolerance: duality gap, relative to the objective, at which `exact` stops. It also stops where
            single precision allows no improvement (gaps of about 5e-6).
        only: rows to code, [n] bool; the codes of others are left out. By `exact` on a CPU each is, to the last bit,
            what it is where all are coded.

    Raises:
        MaskLabError: shapes do not fit, a value is not finite, or the solver is unknown.
    """
    dictionary = prepare(dictionary)
    d, k = dictionary.matrix.shape
    if solver not in SOLVERS:
        raise MaskLabError(f"solver {solver!r}: allowed are {', '.join(SOLVERS)}")
    if x.dim() != 2 or x.shape[1] != d:
        raise MaskLabError(
            f"vectors have shape {list(x.shape)}, expected [n, {d}] for a dictionary of shape [{d}, {k}]"
        )
    if not penalty > 0:  # nor is a nan
        raise MaskLabError(f"penalty {penalty}: must be above 0")
    x = x.float()
    squares = x.double().square().sum(1)
    if not bool(squares.isfinite().all()):
        raise MaskLabError(f"row {int((~squares.isfinite()).nonzero()[0])} of the vectors to code is not finite")
    exact = _exact_cpu if x.device.type == "cpu" else batched_lasso.solve
    solve = fista if solver == "fista" else exact
    parts = []
    for start in range(0, max(1, len(x)), chunk := CHUNK.get(x.device.type, 8192)):
        rows = slice(start, start + chunk)
        xs, sq, wanted = x[rows], squares[rows], None if only is None else only[rows]
        if wanted is None:
            parts.append(solve(xs, sq, dictionary, penalty, tolerance))
        elif solve is _exact_cpu and bool(wanted.any()):
            parts.append(solve(xs, sq, dictionary, penalty, tolerance, wanted))
        elif bool(wanted.any()):
            parts.append(solve(xs[wanted], sq[wanted], dictionary, penalty, tolerance))
    if not parts:
        return Codes.of_dense(x.new_zeros(0, k))
    return parts[0] if len(parts) == 1 else Codes.cat(parts)


def _exact_cpu(x, squares, dictionary, penalty, tolerance, only=None) -> Codes:
    from masklab.sparse.active_set import solve  # numba takes half a second

    correlations, gram = x @ dictionary.matrix, dictionary.gram.numpy()
    if only is not None:  # after the product, whose rounding depends on the number of its rows
        correlations, squares = correlations[only], squares[only]
    correlations, squares, limit = correlations.numpy(), squares.numpy(), min(dictionary.matrix.shape)
    count = len(squares)
    workers = min(torch.get_num_threads(), -(-count // 64))
    bounds = [count * i // max(workers, 1) for i in range(workers + 1)]

    def part(i):
        rows = slice(bounds[i], bounds[i + 1])
        return solve(correlations[rows], gram, squares[rows], penalty, tolerance, limit)

    if workers <= 1:
        results = [solve(correlations, gram, squares, penalty, tolerance, limit)]
    else:  # the compiled part runs without the interpreter's lock
        with ThreadPoolExecutor(workers) as pool:
            results = list(pool.map(part, range(workers)))
    counts, indices, values = (torch.cat([torch.from_numpy(result[i]) for result in results]) for i in range(3))
    return Codes(F.pad(counts.cumsum(0), (1, 0)), indices, values)


def fista(x, squares, dictionary, penalty, tolerance) -> Codes:
    """100 iterations from zero (Beck and Teboulle 2009), as the released code; `squares`, `tolerance` are not used."""
    matrix, step = dictionary.matrix, dictionary.step
    codes = x.new_zeros(len(x), matrix.shape[1])
    ahead, t = codes, 1.0
    for _ in range(FISTA_ITERATIONS):
        before = codes
        codes = torch.addmm(ahead, x - ahead @ matrix.T, matrix, alpha=step).sub_(step * penalty).clamp_(min=0)
        t_next = (1 + (1 + 4 * t * t) ** 0.5) / 2
        ahead = torch.lerp(before, codes, 1 + (t - 1) / t_next)
        t = t_next
    return Codes.of_dense(codes)


def objective(x: Tensor, dictionary: "Tensor | Dictionary", codes: Codes, penalty: float) -> Tensor:
    """1/2 |x - D a|^2 + penalty |a|_1 of each row of x [n, d]: [n] float64."""
    matrix = prepare(dictionary).matrix
    result = []
    for start in range(0, len(x), 4096):
        rows = x[start : start + 4096]
        first, last = codes.indptr[start], codes.indptr[start + len(rows)]
        part = Codes(
            codes.indptr[start : start + len(rows) + 1] - first, codes.indices[first:last], codes.values[first:last]
        )
        dense = part.dense(matrix.shape[1]).double()
        result.append((rows.double() - dense @ matrix.T.double()).square().sum(1) / 2 + penalty * dense.sum(1))
    return torch.cat(result) if result else x.new_zeros(0, dtype=torch.double)
