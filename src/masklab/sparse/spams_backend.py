"""Every call of SPAMS (Mairal et al.), the toolbox the paper used. GPL, CPU only, imported when called."""

import torch
from torch import Tensor

from masklab.errors import MaskLabError
from masklab.sparse.targets import Codes


def _spams():
    try:
        import spams
    except ImportError as error:
        raise MaskLabError(f"backend spams: SPAMS cannot be imported ({error}); pip install spams-bin") from None
    return spams


def _columns(x: Tensor):
    """Rows [n, d] of a tensor as the columns of a Fortran-ordered [d, n] array, without a copy where possible."""
    return x.detach().cpu().float().contiguous().numpy().T


def train(x: Tensor, start: Tensor, penalty: float, iterations: int, batch_size: int, threads: int = 1) -> Tensor:
    """`spams.trainDL` on vectors x [n, d] from the dictionary `start` [d, k]: the learned dictionary [d, k]."""
    learned = _spams().trainDL(
        _columns(x),
        D=_columns(start.T),
        lambda1=penalty,
        iter=iterations,
        batchsize=batch_size,
        posAlpha=True,
        mode=2,
        numThreads=threads,
        verbose=False,
    )
    return torch.from_numpy(learned.copy(order="C"))


def lasso(x: Tensor, dictionary: Tensor, penalty: float, threads: int = 1) -> Codes:
    """`spams.lasso` with non-negative codes: x [n, d], dictionary [d, k]."""
    result = _spams().lasso(
        _columns(x), D=_columns(dictionary.T), lambda1=penalty, pos=True, mode=2, numThreads=threads
    )
    result.sort_indices()  # a [k, n] matrix by columns is a [n, k] one by rows
    return Codes(
        *(
            torch.from_numpy(part)
            for part in (result.indptr.astype("int64"), result.indices.astype("int64"), result.data)
        )
    )
