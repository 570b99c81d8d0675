"""How sparse codes are and how much of a vector they keep, against the penalty and against the number of atoms."""

from collections.abc import Callable

import torch
from torch import Tensor

from masklab.sparse.dictionary import learn
from masklab.sparse.lasso import lasso, prepare

FACTORS = (0.25, 0.5, 1, 2, 4)  # of the penalty
SIZES = (0.25, 0.5, 1, 2)  # of the number of atoms
HELD_OUT = 2000  # vectors that are coded
ITERATIONS = 100  # at most, of a dictionary of another size


def kept(x: Tensor, dictionary: Tensor, penalty: float, solver: str = "exact") -> dict[str, float]:
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


def penalties(x: Tensor, dictionary: Tensor, penalty: float) -> list[dict]:
    """A row of `kept` for each of some penalties, under one dictionary."""
    return [kept(x, dictionary, penalty * factor) for factor in FACTORS]


def sizes(
    train: Tensor, x: Tensor, dictionary: Tensor, penalty: float, how: dict, progress: Callable | None = None
) -> list[dict]:
    """A row of `kept` for each of some numbers of atoms, each with a dictionary of its own learned from `train`.

    how: iterations and batch_size of the dictionary. All are learned for as many iterations, `ITERATIONS` at most; the
    one that is there is one of them where it was not learned for more.
    """
    k, rows = dictionary.shape[1], []
    iterations = min(how["iterations"], ITERATIONS)
    for atoms in sorted({max(1, round(k * factor)) for factor in SIZES}):
        if atoms > len(train):
            continue
        own = dictionary
        if atoms != k or iterations < how["iterations"]:
            own = learn(train, atoms, penalty, iterations, how["batch_size"], seed=1, progress=progress)
        rows.append(kept(x, own, penalty))
    return rows
