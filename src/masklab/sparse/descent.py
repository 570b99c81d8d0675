"""The sequential part of the dictionary update, compiled for the CPU."""

import numba
import numpy as np


@numba.njit(fastmath=True, cache=True, nogil=True)
def descend(atoms, gradient, local, unused):
    """One pass of coordinate descent over a block of atoms, in place.

    Args:
        atoms: [n, d] float32, one atom a row.
        gradient: [n, d] float32, rows of B - A D^T at the given atoms; overwritten by the changes of the atoms.
        local: [n, n] float32, the block of A.
        unused: atoms whose diagonal entry of A is not above this stay.
    """
    n, d = atoms.shape
    for i in range(n):
        row = gradient[i]
        if local[i, i] <= unused:
            row[:] = 0
            continue
        for h in range(i):
            weight, change = local[i, h], gradient[h]
            if weight != 0:
                for j in range(d):
                    row[j] -= weight * change[j]
        step, square = 1 / local[i, i], np.float32(0)
        atom = atoms[i]
        for j in range(d):
            row[j] = atom[j] + step * row[j]
            square += row[j] * row[j]
        shrink = 1 / np.sqrt(max(square, np.float32(1)))
        for j in range(d):
            new = shrink * row[j]
            row[j] = new - atom[j]
            atom[j] = new
