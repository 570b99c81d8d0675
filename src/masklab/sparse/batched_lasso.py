"""Non-negative lasso by active sets, many vectors at once in torch: the exact solver for GPUs.

Each round adds, for every vector still open, the `GROWTH` most violated constraints to its working set, and solves
the problem on the working set by Lawson and Hanson's steps (1974) with batched Cholesky factors.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from masklab.sparse.targets import Codes

GROWTH = 8
ROUNDS = 1000
RIDGE = 3e-6  # keeps the factors of dependent atoms positive definite


def solve(x: Tensor, squares: Tensor, dictionary, penalty: float, tolerance: float) -> Codes:
    """Codes of x [n, d]; squares [n] float64 is |x|^2, dictionary a `lasso.Dictionary`."""
    gram = dictionary.gram
    k = len(gram)
    correlations = x @ dictionary.matrix
    result = torch.zeros_like(correlations)
    rows = torch.arange(len(x), device=x.device)  # open vectors, and their state
    atoms = rows.new_zeros(len(x), 0)
    a = x.new_zeros(len(x), 0)
    growth = torch.full_like(rows, GROWTH)
    for _ in range(ROUNDS):
        q = correlations[rows]
        if a.shape[1]:
            q = q - F.embedding_bag(atoms, gram, per_sample_weights=a, mode="sum")
        own = q.gather(1, atoms).double()
        c = correlations[rows[:, None], atoms]
        gap, primal = _gap(q.amax(1).double(), own, c.double(), a.double(), squares[rows], penalty)
        # of atoms in use, 0; the least, since what fills up the rows calls itself atom 0, which may be in use too
        q = q.scatter_reduce(1, atoms, torch.where(a > 0, 0, q.gather(1, atoms)), "amin")
        score, new = q.topk(min(GROWTH, k), 1)
        wanted = (score > penalty * (1 + 1e-6)) & (torch.arange(score.shape[1], device=x.device) < growth[:, None])
        # a single new atom that came to nothing: single precision allows no improvement
        done = (gap <= tolerance * primal) | ~wanted.any(1) | (growth == 0)
        result[rows[done]] = result[rows[done]].scatter_add(1, atoms[done], a[done])
        keep = ~done
        if not bool(keep.any()):
            break
        rows, growth, wanted, new = rows[keep], growth[keep], wanted[keep], new[keep]
        atoms, a, used = _compact(
            torch.cat([atoms[keep], new], 1),
            torch.cat([a[keep], x.new_zeros(new.shape)], 1),
            torch.cat([a[keep] > 0, wanted], 1),
        )
        fresh = used & (a == 0)
        a = _restricted(gram, atoms, correlations[rows[:, None], atoms] - penalty, a, used)
        stuck = ~(fresh & (a > 0)).any(1)
        growth = torch.where(stuck, torch.where(growth > 1, 1, 0), GROWTH)
        atoms, a, _ = _compact(atoms, a, a > 0)
    else:
        result[rows] = result[rows].scatter_add(1, atoms, a)
    return Codes.of_dense(result)


def _gap(top, own, c, a, squares, penalty):
    """Duality gap and objective [b]; the residual, scaled to be dual feasible, is the dual point."""
    ac = (a * c).sum(1)
    rest = squares - ac - (a * own).sum(1)
    scale = (penalty / top).where(top > penalty, 1.0)
    primal = rest / 2 + penalty * a.sum(1)
    return primal - scale * (squares - ac) + scale.square() * rest / 2, primal


def _compact(atoms, a, used):
    """Used entries moved to the front of each row, the others cut or set to atom 0 with coefficient 0."""
    order = used.sort(dim=1, descending=True, stable=True).indices[:, : int(used.sum(1).max())]
    used = used.gather(1, order)
    return atoms.gather(1, order).where(used, 0), a.gather(1, order).where(used, 0), used


def _restricted(gram, atoms, right, a, used):
    """min over a >= 0 of 1/2 a G a - right a on the `used` atoms [b, m] of each row, started at a feasible a."""
    a, local = a.clone(), gram[atoms[:, :, None], atoms[:, None, :]].double()
    right = right.double()
    eye = torch.eye(atoms.shape[1], dtype=torch.bool, device=a.device)
    passive, open_rows = used.clone(), torch.arange(len(a), device=a.device)
    while len(open_rows):
        p = passive[open_rows]
        system = torch.where(p[:, :, None] & p[:, None, :], local[open_rows], eye.double())
        factor = torch.linalg.cholesky_ex(system + eye * RIDGE).L
        wanted = (right[open_rows] * p)[:, :, None]
        z = torch.cholesky_solve(wanted, factor)
        # once more for what the ridge changed; where atoms are dependent, z stays a direction of descent
        rest = wanted - system @ z
        z = (z + torch.cholesky_solve(rest, factor))[:, :, 0].to(a.dtype)
        now = a[open_rows]
        blocked = p & (z <= 0)
        ratio = torch.where(blocked, now / (now - z).clamp(min=1e-30), torch.inf)
        step = ratio.amin(1).clamp(max=1)
        moved = now + step[:, None] * (z - now)
        free = ~blocked.any(1)
        moved = torch.where(free[:, None], z, moved) * p
        leaves = blocked & ((ratio <= step[:, None]) | (moved <= 0))
        a[open_rows] = moved.masked_fill(leaves, 0).clamp(min=0)
        passive[open_rows] = p & ~leaves
        open_rows = open_rows[~free]
    return a
