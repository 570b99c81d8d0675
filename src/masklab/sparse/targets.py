"""Sparse codes in memory, and as targets of the MLSM loss (Berend 2023, section 2.3)."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass
class Codes:
    """Sparse rows [n, k], compressed: row i holds entries indptr[i] to indptr[i + 1].

    indptr [n + 1] int64; indices [nnz] int64, ascending within a row; values [nnz] float32. All on one device.
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def counts(self) -> Tensor:
        """Entries of each row, [n] int64."""
        return self.indptr.diff()

    @property
    def rows(self) -> Tensor:
        """Row of each entry, [nnz] int64."""
        return torch.repeat_interleave(torch.arange(len(self), device=self.indptr.device), self.counts)

    def dense(self, k: int) -> Tensor:
        """The same as a dense [n, k] float32 tensor."""
        result = self.values.new_zeros(len(self), k)
        result[self.rows, self.indices] = self.values
        return result

    @classmethod
    def of_dense(cls, dense: Tensor) -> "Codes":
        """Codes of the non-zero entries of a dense [n, k] tensor."""
        rows, indices = dense.nonzero(as_tuple=True)
        return cls(_pointers(torch.bincount(rows, minlength=len(dense))), indices, dense[rows, indices])

    @classmethod
    def cat(cls, parts: list["Codes"]) -> "Codes":
        """The rows of `parts` (at least one), one after another."""
        counts = torch.cat([part.counts for part in parts])
        indices, values = (torch.cat([getattr(part, key) for part in parts]) for key in ("indices", "values"))
        return cls(_pointers(counts), indices, values)


def _pointers(counts: Tensor) -> Tensor:
    return F.pad(counts.cumsum(0), (1, 0))


def pad(counts: Tensor, indices: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Targets of n rows of `counts` [n] entries each, given end to end: (indices [n, m], values [n, m]).

    m is the largest count, at least 1; padding has index 0 and value 0. Rows of `values` sum to 1, or are all zero.
    """
    width = max(1, int(counts.max())) if len(counts) else 1
    taken = torch.arange(width, device=counts.device) < counts[:, None]
    padded = indices.new_zeros(taken.shape, dtype=torch.long)
    weights = values.new_zeros(taken.shape)
    padded[taken] = indices.long()
    weights[taken] = values
    return padded, F.normalize(weights, p=1, dim=-1)


def targets(codes: Codes) -> tuple[Tensor, Tensor]:
    """L1-normalised codes as padded (indices [n, m] int64, values [n, m] float32), see `pad`."""
    return pad(codes.counts, codes.indices, codes.values)


def kl_to_sparse(indices: Tensor, values: Tensor, log_probs: Tensor) -> Tensor:
    """KL(target || student) in nats of each row, [N].

    indices, values: [N, m] as from `targets`; log_probs: [N, k], the student's log-probabilities.
    A row whose target is all zero contributes 0.
    """
    return (torch.xlogy(values, values) - values * log_probs.gather(1, indices)).sum(-1)
