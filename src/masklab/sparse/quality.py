"""How well a dictionary codes a set of vectors."""

import torch
from torch import Tensor

from masklab.sparse.lasso import lasso, objective


def describe(x: Tensor, dictionary: Tensor, penalty: float, solver: str = "exact") -> dict[str, float]:
    """Means over the unit vectors x [n, d] under dictionary [d, k], of codes by a solver of `lasso`.

    objective: of the lasso (Berend 2023, eq. 1); nonzeros: entries of a code; empty: share of all-zero codes;
    atoms_used: atoms with an entry in at least one code.
    """
    codes = lasso(x, dictionary, penalty, solver)
    return {
        "vectors": len(x),
        "objective": float(objective(x, dictionary, codes, penalty).mean()),
        "nonzeros": float(codes.counts.double().mean()),
        "empty": float((codes.counts == 0).double().mean()),
        "atoms_used": len(torch.unique(codes.indices)),
    }
