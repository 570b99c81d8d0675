"""Non-negative lasso by active sets, compiled for the CPU.

For each vector, the passive set P (the atoms in use) grows one atom at a time, as in Lawson and Hanson's
non-negative least squares (1974): the equations on P are solved, and a solution with negative entries is
approached until the first entry reaches zero, which leaves P. Two things make it fast. The next atoms come from a
shortlist of the `SHORTLIST` most violated constraints, so that the correlations with all k atoms are formed only a
few times. And the inverse of P's Gram matrix is kept, in double precision, and bordered or deflated as P changes:
unlike triangular solves, its products do not wait for one another. Every step lowers the objective, so the result
is feasible and optimal to the requested duality gap.

Without `fastmath`, which would gain nothing here: with it, what a process compiles itself and what it finds in numba's
cache add up in different orders, and a first run ended with another dictionary than a second.
"""

import numba
import numpy as np

SHORTLIST = 16
DEPENDENT = 1e-6  # squared distance of an atom from the span of the passive atoms; below, it counts as within


@numba.njit(cache=True, nogil=True)
def _subtract_rows(q, gram, passive, a, m):
    """q -= sum over the passive atoms of a_i gram[i], four rows a pass."""
    k = len(q)
    i = 0
    while i + 4 <= m:
        row0, row1, row2, row3 = gram[passive[i]], gram[passive[i + 1]], gram[passive[i + 2]], gram[passive[i + 3]]
        a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        for j in range(k):
            q[j] -= a0 * row0[j] + a1 * row1[j] + a2 * row2[j] + a3 * row3[j]
        i += 4
    while i < m:
        row0, a0 = gram[passive[i]], a[i]
        for j in range(k):
            q[j] -= a0 * row0[j]
        i += 1


@numba.njit(cache=True, nogil=True)
def _shortlist(q, floor, ids, scores):
    """Fill `ids` and `scores` with the largest entries of q above `floor`; returns their number."""
    count, lowest = 0, 0
    for j in range(len(q)):
        if q[j] > floor:
            if count < SHORTLIST:
                lowest = count
                count += 1
            ids[lowest] = j
            scores[lowest] = q[j]
            if count == SHORTLIST:
                lowest = 0
                for v in range(1, SHORTLIST):
                    if scores[v] < scores[lowest]:
                        lowest = v
                floor = scores[lowest]
    return count


@numba.njit(cache=True, nogil=True)
def _product(inverse, right, result, m):
    """result = inverse @ right on the first m entries; `inverse` is symmetric."""
    for j in range(m):
        result[j] = 0
    i = 0
    while i + 4 <= m:
        row0, row1, row2, row3 = inverse[i], inverse[i + 1], inverse[i + 2], inverse[i + 3]
        r0, r1, r2, r3 = right[i], right[i + 1], right[i + 2], right[i + 3]
        for j in range(m):
            result[j] += r0 * row0[j] + r1 * row1[j] + r2 * row2[j] + r3 * row3[j]
        i += 4
    while i < m:
        row0, r0 = inverse[i], right[i]
        for j in range(m):
            result[j] += r0 * row0[j]
        i += 1


@numba.njit(cache=True, nogil=True)
def _remove(i, m, inverse, passive, a, right, cross):
    """Take entry i out of the passive set of size m; the last entry takes its place."""
    pivot = 1 / inverse[i, i]
    row = inverse[i]
    for r in range(m):
        if r != i:
            factor = inverse[r, i] * pivot
            for h in range(m):
                inverse[r, h] -= factor * row[h]
    last = m - 1
    if i < last:
        passive[i], a[i], right[i] = passive[last], a[last], right[last]
        for v in range(SHORTLIST):
            cross[i, v] = cross[last, v]
        for h in range(m):
            inverse[i, h] = inverse[last, h]
        for h in range(last):
            inverse[h, i] = inverse[h, last]
        inverse[i, i] = inverse[last, last]


@numba.njit(cache=True, nogil=True)
def solve(correlations, gram, squares, penalty, tolerance, limit):
    """Codes of n vectors x.

    Args:
        correlations: [n, k] float32, D^T x.
        gram: [k, k] float32, D^T D.
        squares: [n] float64, |x|^2.
        penalty: lambda.
        tolerance: duality gap to stop at, relative to the objective.
        limit: min(d, k), the largest number of independent atoms.

    Returns:
        (counts [n] int64, indices [nnz] int64 ascending in each row, values [nnz] float32)
    """
    n, k = correlations.shape
    counts = np.zeros(n, np.int64)
    indices, values, used = np.empty(16 * n + limit, np.int64), np.empty(16 * n + limit, np.float32), 0
    inverse = np.empty((limit, limit))  # of the passive atoms' Gram matrix
    right, a = np.empty(limit), np.empty(limit)  # right: correlation - penalty
    z, g, u = np.empty(limit), np.empty(limit), np.empty(limit)
    passive, order, single = np.empty(limit, np.int64), np.arange(limit), np.empty(limit, np.float32)
    cross = np.zeros((limit, SHORTLIST), np.float32)  # gram[passive, shortlist]
    ids, scores = np.zeros(SHORTLIST, np.int64), np.empty(SHORTLIST, np.float32)
    open_c = np.empty(SHORTLIST, np.float32)  # correlation of a shortlisted atom; `closed` once it was taken
    q = np.empty(k, np.float32)  # D^T (x - D a)
    closed = np.float32(-1e9)
    floor = np.float32(penalty * (1 + 1e-6))
    for t in range(n):
        m, steps, most, full = 0, 0, 20 * limit + 100, correlations[t]
        while True:
            for i in range(m):
                single[i] = a[i]
            for j in range(k):
                q[j] = full[j]
            _subtract_rows(q, gram, passive, single, m)
            top = np.float32(0)
            for j in range(k):
                top = max(top, q[j])
            # duality gap; the residual, scaled to be dual feasible, is the dual point
            ac, aq, l1 = 0.0, 0.0, 0.0
            for i in range(m):
                ac += a[i] * (right[i] + penalty)
                aq += a[i] * q[passive[i]]
                l1 += a[i]
            rest = squares[t] - ac - aq
            scale = penalty / top if top > penalty else 1.0
            primal = 0.5 * rest + penalty * l1
            if primal - scale * (squares[t] - ac) + 0.5 * scale * scale * rest <= tolerance * primal:
                break
            for i in range(m):
                q[passive[i]] = 0
            listed = _shortlist(q, floor, ids, scores)
            for v in range(SHORTLIST):
                open_c[v] = full[ids[v]] if v < listed else closed
            for i in range(m):
                row = gram[passive[i]]
                for v in range(SHORTLIST):
                    cross[i, v] = row[ids[v]]
            before = steps
            while steps < most:
                b, best = -1, floor
                for v in range(listed):
                    if scores[v] > best:
                        best, b = scores[v], v
                if b < 0:
                    break
                row = gram[ids[b]]
                for i in range(m):
                    g[i] = cross[i, b]
                _product(inverse, g, u, m)
                schur = np.float64(row[ids[b]])
                for i in range(m):
                    schur -= g[i] * u[i]
                new, begin = open_c[b] - penalty, 0.0
                scores[b] = open_c[b] = closed
                if schur < DEPENDENT or m == limit:
                    # a combination u of passive atoms: it takes their place until the first of them has left
                    begin, block = np.inf, -1
                    for i in range(m):
                        if u[i] > 0 and a[i] < begin * u[i]:
                            begin, block = a[i] / u[i], i
                    if block < 0 or schur + u[block] ** 2 / inverse[block, block] < DEPENDENT:
                        continue
                    for i in range(m):
                        a[i] = max(0.0, a[i] - begin * u[i])
                    for v in range(listed):
                        if ids[v] == passive[block]:
                            open_c[v] = right[block] + penalty
                    _remove(block, m, inverse, passive, a, right, cross)
                    m -= 1
                    for i in range(m):
                        g[i] = cross[i, b]
                    _product(inverse, g, u, m)
                    schur = np.float64(row[ids[b]])
                    for i in range(m):
                        schur -= g[i] * u[i]
                    schur = max(schur, DEPENDENT)
                steps += 1
                for i in range(m):
                    factor = u[i] / schur
                    for h in range(m):
                        inverse[i, h] += factor * u[h]
                    inverse[i, m] = inverse[m, i] = -factor
                inverse[m, m] = 1 / schur
                passive[m], a[m], right[m] = ids[b], begin, new
                for v in range(SHORTLIST):
                    cross[m, v] = row[ids[v]]
                m += 1
                if begin > 0:
                    _product(inverse, right, z, m)
                else:  # a solves the equations on the old set: the new solution differs along (-u, 1)
                    z[m - 1] = (best - penalty) / schur
                    for i in range(m - 1):
                        z[i] = a[i] - z[m - 1] * u[i]
                while True:
                    step, block = 1.0, -1
                    for i in range(m):
                        if z[i] <= 0 and a[i] <= step * (a[i] - z[i]):
                            step, block = a[i] / (a[i] - z[i]), i
                    if block < 0:
                        for i in range(m):
                            a[i] = z[i]
                        break
                    for i in range(m):
                        a[i] += step * (z[i] - a[i])
                    a[block] = 0
                    for i in range(m - 1, -1, -1):
                        if a[i] <= 0:
                            for v in range(listed):  # may come back, unless it was only just taken
                                if ids[v] == passive[i] and v != b:
                                    open_c[v] = right[i] + penalty
                            _remove(i, m, inverse, passive, a, right, cross)
                            m -= 1
                    _product(inverse, right, z, m)
                for v in range(SHORTLIST):
                    scores[v] = open_c[v]
                for i in range(m):
                    single[i] = a[i]
                _subtract_rows(scores, cross, order, single, m)
            if steps == before:
                break  # optimal to single precision
        if used + m > len(indices):
            more = np.empty(2 * len(indices) + m, np.int64)
            more[:used] = indices[:used]
            more_values = np.empty(len(more), np.float32)
            more_values[:used] = values[:used]
            indices, values = more, more_values
        for i in range(m):  # insertion sort by atom
            h = used + i
            while h > used and indices[h - 1] > passive[i]:
                indices[h], values[h] = indices[h - 1], values[h - 1]
                h -= 1
            indices[h], values[h] = passive[i], a[i]
        used += m
        counts[t] = m
    return counts, indices[:used], values[:used]
