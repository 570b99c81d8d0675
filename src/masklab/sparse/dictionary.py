"""Online dictionary learning (Mairal, Bach, Ponce, Sapiro: ICML 2009, JMLR 2010).

min over D with columns of norm <= 1 of the mean over x of min over a >= 0 of 1/2 |x - D a|^2 + penalty |a|_1
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from masklab import rng
from masklab.errors import MaskLabError
from masklab.jobs.midway import Midway
from masklab.sparse import spams_backend
from masklab.sparse.lasso import Dictionary, lasso

BACKENDS = ("torch", "spams")
BLOCK = 128  # atoms whose gradients are formed by one matrix product
UNUSED = 1e-6  # mean squared coefficient below which an atom counts as unused (SPAMS: the same)
DUPLICATE = 0.9999  # cosine above which the later of two atoms counts as unused
REPLACE_EVERY = 10  # iterations
FORGETTING = 10  # rho: statistics of early, poor dictionaries are forgotten sooner than by SPAMS (rho of about 1)
MEMORY = 10  # vectors per atom that are remembered at least
CODE_TOLERANCE = 1e-4  # duality gap of the codes during learning


def learn(
    x: Tensor,
    atoms: int,
    penalty: float,
    iterations: int = 1000,
    batch_size: int = 400,
    seed: int = 1,
    backend: str = "torch",
    progress=None,
    *,
    threads: int = 1,
    device=None,
    state_folder=None,
    fingerprint: dict | None = None,
    save_seconds: float = 60,
) -> Tensor:
    """Dictionary [d, atoms] float32 of the vectors x [n, d] (L2-normalised by the caller), on the CPU.

    Args:
        penalty: lambda of the codes.
        iterations: mini-batches of `batch_size` vectors; the order of the data is drawn anew in each epoch.
        backend: `torch`: ours; `spams`: `spams.trainDL`, which reports no progress and cannot resume.
        progress: called as progress(done, iterations).
        threads: threads of SPAMS; torch uses its own setting.
        device: where `torch` computes; None: where x is.
        state_folder: where `torch` keeps its state every `save_seconds`; a state with an equal `fingerprint`
            (and shape) is resumed, to the same result as without interruption. It stays: the caller removes it once
            the dictionary lies in its place.

    Raises:
        MaskLabError: fewer vectors than atoms, or an unknown backend.
    """
    if backend not in BACKENDS:
        raise MaskLabError(f"backend {backend!r}: allowed are {', '.join(BACKENDS)}")
    if len(x) < atoms:
        raise MaskLabError(f"sample: {len(x)} vectors are too few for {atoms} atoms")
    x, start = x.detach().float(), initial(x, atoms, seed)
    if backend == "spams":
        order = torch.from_numpy(rng.generator(seed, "dictionary", "order", 0).permutation(len(x)))
        return spams_backend.train(x[order], start, penalty, iterations, batch_size, threads)
    settings = {"shape": list(x.shape), "atoms": atoms, "penalty": penalty, "iterations": iterations}
    settings |= {"batch_size": batch_size, "seed": seed, **(fingerprint or {})}
    file = None if state_folder is None else Path(state_folder) / "learning.safetensors"
    midway = Midway("dictionary", None, file, settings, save_seconds)
    device = torch.device(device or x.device)
    d_t, a, b, first = start.T.contiguous(), torch.zeros(atoms, atoms), torch.zeros(atoms, x.shape[1]), 0
    if (found := midway.begun()) is not None:
        d_t, a, b = (found.tensors[name] for name in ("d_t", "a", "b"))
        first = found.facts["updates"]
    d_t, a, b = d_t.to(device), a.to(device), b.to(device)
    for i in range(first, iterations):
        batch = x[_batch(i, len(x), batch_size, seed)].to(device)
        dictionary = Dictionary(d_t.T)
        codes = lasso(batch, dictionary, penalty, tolerance=CODE_TOLERANCE)
        keep = _keep(i, batch_size, atoms)
        a.mul_(keep)
        b.mul_(keep)
        _accumulate(a, b, codes, batch)
        if i % REPLACE_EVERY == REPLACE_EVERY - 1:
            _replace(d_t, a, b, dictionary.gram, batch, rng.generator(seed, "dictionary", "replace", i))
        _update(d_t, a, b)
        if i + 1 < iterations:
            midway.after(i + 1, iterations, lambda: ({"d_t": d_t, "a": a, "b": b}, {}))
        if progress:
            progress(i + 1, iterations)
    return d_t.T.cpu().contiguous()


def initial(x: Tensor, atoms: int, seed: int) -> Tensor:
    """`atoms` of the vectors x [n, d], drawn at random and scaled to norm 1, as a dictionary [d, atoms].

    Equal vectors are drawn once, as long as there are others.
    """
    order = rng.generator(seed, "dictionary", "initial").permutation(len(x))
    seen, first, again = set(), [], []
    for row in order:
        content = x[row].cpu().numpy().tobytes()
        (again if content in seen else first).append(row)
        seen.add(content)
        if len(first) == atoms:
            break
    rows = torch.from_numpy(np.array((first + again)[:atoms]))
    return F.normalize(x[rows].detach().cpu().float(), dim=1, eps=1e-9).T.contiguous()


def _batch(i: int, n: int, size: int, seed: int) -> Tensor:
    """Row numbers of mini-batch i: the epochs' permutations, one after another, cut into batches."""
    start, rows = i * size, []
    while size:
        epoch, place = divmod(start, n)
        rows.append(_order(seed, epoch, n)[place : place + size])
        start, size = start + len(rows[-1]), size - len(rows[-1])
    return torch.from_numpy(np.concatenate(rows))


_orders = {}  # the latest permutation


def _order(seed, epoch, n):
    if (seed, epoch, n) not in _orders:
        _orders.clear()
        _orders[seed, epoch, n] = rng.generator(seed, "dictionary", "order", epoch).permutation(n)
    return _orders[seed, epoch, n]


def _keep(i: int, size: int, atoms: int) -> float:
    """Share of the statistics that iteration i keeps.

    (1 - 1/t)^rho of Mairal et al. 2010, section 3.4.1, to first order; but nothing is forgotten before the
    statistics hold `MEMORY` vectors per atom, so that short runs use all they have seen.
    """
    seen = (i + 1) * size
    return 1 - size / min(seen, max(seen / FORGETTING, MEMORY * atoms, size))


def _accumulate(a: Tensor, b: Tensor, codes, batch: Tensor) -> None:
    """a += mean of codes^T codes [k, k]; b += mean of codes^T batch [k, d]."""
    (_accumulate_sparse if batch.device.type == "cpu" else _accumulate_dense)(a, b, codes, batch)


def _accumulate_dense(a, b, codes, batch):
    dense, n = codes.dense(len(a)), len(batch)
    a.addmm_(dense.T, dense, alpha=1 / n)
    b.addmm_(dense.T, batch, alpha=1 / n)


def _accumulate_sparse(a, b, codes, batch):
    """By the codes' transpose in compressed rows: entries sorted by atom, each pointing to a vector."""
    order = codes.indices.argsort(stable=True)
    offsets = torch.bincount(codes.indices, minlength=len(a)).cumsum(0).roll(1)
    offsets[0] = 0
    vectors, weights = codes.rows[order], codes.values[order] / len(batch)
    for total, right in ((a, codes.dense(len(a))), (b, batch)):
        total.add_(F.embedding_bag(vectors, right, offsets, per_sample_weights=weights, mode="sum"))


def _update(d_t: Tensor, a: Tensor, b: Tensor) -> None:
    """One pass of block-coordinate descent over the atoms (rows of d_t), in place: Mairal et al. 2009, algorithm 2."""
    descend = _descend
    if d_t.device.type == "cpu":
        from masklab.sparse import descent  # numba takes half a second

        def descend(*block):
            descent.descend(*(tensor.numpy() for tensor in block), UNUSED)

    for start in range(0, len(a), BLOCK):
        rows = slice(start, start + BLOCK)
        gradient = torch.addmm(b[rows], a[rows], d_t, alpha=-1)  # [BLOCK, d]; sees all updates of earlier blocks
        descend(d_t[rows], gradient, a[rows, rows])


def _descend(atoms: Tensor, gradient: Tensor, local: Tensor) -> None:
    """`descent.descend` in torch, for GPUs."""
    for i, scale in enumerate(local.diagonal().tolist()):
        if scale <= UNUSED:
            continue
        new = torch.add(atoms[i], gradient[i], alpha=1 / scale)
        new /= torch.linalg.vector_norm(new).clamp(min=1)
        gradient[i + 1 :].addr_(local[i + 1 :, i], new - atoms[i], alpha=-1)
        atoms[i] = new


def _replace(d_t, a, b, gram, batch, generator) -> None:
    """Unused and duplicate atoms become vectors of the batch, without statistics."""
    unused = (a.diagonal() <= UNUSED) | (gram.triu(1).amax(0) > DUPLICATE)
    rows = unused.nonzero()[:, 0][: len(batch)]
    if not len(rows):
        return
    drawn = torch.from_numpy(generator.permutation(len(batch))[: len(rows)]).to(batch.device)
    d_t[rows] = batch[drawn]
    a[rows], a[:, rows], b[rows] = 0, 0, 0
