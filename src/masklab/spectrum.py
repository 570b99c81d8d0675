"""Effective rank of a matrix that is never held: its squared singular values from a streamed Gram matrix."""

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

    def eigenvalues(self, centred: bool = False) -> np.ndarray:
        """Squared singular values of H, descending, [d] float64; `centred`: of H without the mean of its rows."""
        if centred:
            products = self.products - torch.outer(self.sums, self.sums) / self.count
        else:
            cross = torch.outer(self.sums, self.origin)
            products = self.products + cross + cross.T + self.count * torch.outer(self.origin, self.origin)
        return np.linalg.eigvalsh(products.cpu().numpy())[::-1].clip(min=0)

    def mean_share(self) -> float:
        """Share of the squared norm of H that its rows' mean makes up; near 1 one direction rules uncentred ranks."""
        mean = self.origin + self.sums / self.count
        whole = float(self.eigenvalues().sum())
        return float(self.count * (mean @ mean)) / whole if whole else 0.0


def effective_rank(eigenvalues, threshold: float) -> int:
    """Fewest of the squared singular values, descending [d], whose sum is `threshold` of the whole (Cai et al. 2021).

    Meng et al. (2024, section 2.2) take threshold .9. A matrix of zeros has rank 0.
    """
    sums = np.cumsum(np.asarray(eigenvalues, float))
    if sums[-1] == 0:
        return 0
    return int(np.searchsorted(sums, (threshold - SLACK) * sums[-1])) + 1
