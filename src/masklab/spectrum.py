"""Effective ranks of a matrix that is never held in memory, and how much of it lies outside the subspace of another.

Squared singular values come from a streamed Gram matrix. Three ranks are made of them: the whole number of Cai et al.
(2021), the same between whole numbers, and the exponential of the entropy (Roy & Vetterli 2007).
"""

import numpy as np
import torch

SLACK = 1e-12  # a share of the spectrum that is `threshold` but for rounding reaches it


class Gram:
    """Sums over the rows of a matrix H [n, d] that comes in parts: n, H'1 and H'H in float64.

    Memory is d x d whatever n is. Rows are measured from about the mean of the first part, so that centring loses no
    digits to a large mean.
    """

    def __init__(self):
        self.count, self.origin = 0, None

    def add(self, rows: torch.Tensor) -> "Gram":
        """Take in rows [n, d], on any device and of any floating type."""
        if len(rows) == 0:
            return self
        rows = rows.double()
        if self.origin is None:
            self.origin = rows.mean(0)
            self.sums, self.products = torch.zeros_like(self.origin), rows.new_zeros(rows.shape[1], rows.shape[1])
        rows = rows - self.origin
        self.count += len(rows)
        self.sums += rows.sum(0)
        self.products.addmm_(rows.T, rows)
        return self

    def __add__(self, other: "Gram") -> "Gram":
        """The Gram matrix of the rows of both."""
        if not (self.count and other.count):
            return self if self.count else other
        both = Gram()
        both.count, both.origin = self.count + other.count, self.origin
        away = other.origin - self.origin
        both.sums = self.sums + other.sums + other.count * away
        cross = torch.outer(other.sums, away)
        both.products = self.products + other.products + cross + cross.T + other.count * torch.outer(away, away)
        return both

    def matrix(self, centred: bool = False) -> np.ndarray:
        """H'H, [d, d] float64; `centred`: of H without the mean of its rows."""
        if centred:
            products = self.products - torch.outer(self.sums, self.sums) / self.count
        else:
            cross = torch.outer(self.sums, self.origin)
            products = self.products + cross + cross.T + self.count * torch.outer(self.origin, self.origin)
        return products.cpu().numpy()

    def eigenvalues(self, centred: bool = False) -> np.ndarray:
        """Squared singular values of H, descending, [d] float64; `centred`: of H without the mean of its rows."""
        return np.linalg.eigvalsh(self.matrix(centred))[::-1].clip(min=0)

    def mean_share(self) -> float:
        """Share of the squared norm of H that its rows' mean makes up; near 1 one direction rules uncentred ranks."""
        mean = self.origin + self.sums / self.count
        whole = float(np.trace(self.matrix()))
        return float(self.count * (mean @ mean)) / whole if whole else 0.0


def effective_rank(eigenvalues, threshold: float) -> int:
    """Fewest of the squared singular values, descending [d], whose sum is `threshold` of the whole (Cai et al. 2021).

    Meng et al. (2024, section 2.2) take threshold .9. A matrix of zeros has rank 0.
    """
    sums = np.cumsum(np.asarray(eigenvalues, float))
    if sums[-1] == 0:
        return 0
    return int(np.searchsorted(sums, (threshold - SLACK) * sums[-1])) + 1


def interpolated_rank(eigenvalues, threshold: float) -> float:
    """`effective_rank` on the lines between whole numbers: where the sum of the largest is `threshold` exactly.

    It lies in (k - 1, k] where that is k: of d equal values it is `threshold` times d. A matrix of zeros has rank 0.
    """
    values = np.asarray(eigenvalues, float)
    whole = effective_rank(values, threshold)
    if whole == 0:
        return 0.0
    before = values[: whole - 1].sum()
    return whole - 1 + min(1.0, (threshold * values.sum() - before) / values[whole - 1])


def entropy_rank(eigenvalues) -> float:
    """exp of the entropy of the squared singular values as shares of their sum; needs no threshold.

    Of d equal values it is d. (Roy & Vetterli 2007 take the singular values themselves; shares of the squared norm are
    what the other ranks are of.) A matrix of zeros has rank 0.
    """
    values = np.asarray(eigenvalues, float)
    if values.sum() == 0:
        return 0.0
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def ranks(gram: Gram, threshold: float) -> dict[str, float]:
    """Every rank of a matrix by its name, plain and, with `_centred`, without the mean of its rows."""
    found = {}
    for suffix, centred in (("", False), ("_centred", True)):
        values = gram.eigenvalues(centred)
        found[f"rank{suffix}"] = float(effective_rank(values, threshold))
        found[f"rank_interpolated{suffix}"] = interpolated_rank(values, threshold)
        found[f"rank_entropy{suffix}"] = entropy_rank(values)
    return found


def subspace(of: Gram, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """The subspace of a matrix: its right singular vectors [d, d], as columns, and how much of each counts, [d].

    It is that of the largest singular values which hold `threshold` of the squared norm; the last of them counts in
    part, so that exactly 1 - `threshold` of the matrix's own norm lies outside. Nothing is centred.
    """
    values, vectors = np.linalg.eigh(of.matrix())
    values, vectors = values[::-1].clip(min=0), vectors[:, ::-1]
    return vectors, np.clip(interpolated_rank(values, threshold) - np.arange(len(values)), 0, 1)


def outside(rows: Gram, space: tuple[np.ndarray, np.ndarray]) -> float:
    """Share of the squared norm of `rows` that lies outside a `subspace`."""
    vectors, kept = space
    matrix = rows.matrix()
    along = np.einsum("di,di->i", vectors, matrix @ vectors)
    whole = np.trace(matrix)
    return float(np.clip(1 - kept @ along / whole, 0, 1)) if whole else 0.0
