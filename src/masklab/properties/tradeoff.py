"""How sparse codes are and how much of a vector they keep, against the penalty and against the number of atoms."""

import torch
from torch import Tensor

from masklab.sparse.dictionary import learn
from masklab.sparse.lasso import lasso, prepare
from masklab.sparse.looked import ITERATIONS, SIZES

FACTORS = (0.25, 0.5, 1, 2, 4)  # of the penalty
CODED = 2000  # vectors that are coded, at most


def kept(x: Tensor, dictionary: Tensor, penalty: float, solver: str) -> dict[str, float]:
    """Means over the unit vectors x [n, d]: nonzeros, entries of a code; kept, 1 - |x - D a|^2; empty, share of empty
    codes; dead, share of atoms that no code has.
    """
    codes = lasso(x, prepare(dictionary), penalty, solver)
    k, rest = dictionary.shape[1], []
    for start in range(0, len(x), 512):
        dense = _rows(codes, start, min(start + 512, len(x)), k)
        rest.append((x[start : start + 512] - dense @ dictionary.T).square().sum(1))
    return {
        "penalty": penalty,
        "atoms": k,
        "nonzeros": float(codes.counts.double().mean()),
        "kept": 1 - float(torch.cat(rest).double().mean()),
        "empty": float((codes.counts == 0).double().mean()),
        "dead": 1 - len(torch.unique(codes.indices)) / k,
    }


def _rows(codes, first, last, k) -> Tensor:
    """Some rows of codes as a dense tensor."""
    dense = torch.zeros(last - first, k)
    part = slice(int(codes.indptr[first]), int(codes.indptr[last]))
    rows = torch.repeat_interleave(torch.arange(last - first), codes.counts[first:last])
    dense[rows, codes.indices[part]] = codes.values[part]
    return dense


def penalties(x: Tensor, dictionary: Tensor, penalty: float, solver: str) -> list[dict]:
    """A row of `kept` for each of some penalties, under one dictionary."""
    return [kept(x, dictionary, penalty * factor, solver) for factor in FACTORS]


def sizes(train: Tensor, x: Tensor, atoms: int, settings: dict) -> list[dict]:
    """A row of `kept` for each of some numbers of atoms, each with a dictionary of its own learned from `train`.

    settings: penalty, solver, iterations and batch_size. All are learned for as many iterations, `ITERATIONS` at most,
    the one of `atoms` atoms too. Sizes for which `train` has too few vectors are left out.
    """
    penalty, iterations = settings["penalty"], min(settings["iterations"], ITERATIONS)
    counts = sorted({max(1, round(atoms * factor)) for factor in SIZES})
    return [
        kept(x, learn(train, count, penalty, iterations, settings["batch_size"], seed=1), penalty, settings["solver"])
        for count in counts
        if count <= len(train)
    ]
