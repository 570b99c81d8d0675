"""Non-negative lasso by active sets, compiled for the CPU.

For each vector x the problem is min over a >= 0 of 1/2 |x - D a|^2 + penalty |a|_1. With G = D^T D, the slope of the
first term along atom j is -q_j, where q = D^T (x - D a) are the correlations of the atoms with the residual. A code
is optimal where q_j = penalty for the atoms in use and q_j <= penalty for all others.

The passive set P (the atoms in use, whose constraint a_j >= 0 is not active) grows one atom at a time, as in Lawson
and Hanson's non-negative least squares (1974, chapter 23). `_code` is this algorithm, and each of its steps is a
function below it:

1. The atom whose constraint q_j <= penalty is violated most enters P (`_most_violated`, `_project`, `_border`,
   `_append`). One that depends on the atoms in P takes the place of one of them (`_slide`, `_remove`), if single
   precision shows a gain: of two equal atoms each would else take the other's place for ever.
2. The equations on P, G_PP z = D_P^T x - penalty, are solved (`_follow`, or the whole product).
3. The code moves from a towards z. The first entries that reach zero on the way leave P, and the equations are solved
   again, until the whole way is free (`_way`, `_advance`, `_remove`).
4. When no constraint that is looked at is violated any more, all of them are looked at again (`_largest`, `_look_up`),
   and the duality gap says whether to stop (`_gap`).

Two things make it fast. The next atoms come from a shortlist of the `SHORTLIST` most violated constraints, so that the
correlations with all k atoms are formed only a few times. And the inverse of G_PP is kept, in double precision, and
bordered or deflated as P changes: unlike triangular solves, its products do not wait for one another. Every step
lowers the objective, so the result is feasible and optimal to the requested duality gap.

The functions share these arrays, made once by `solve`. They are passed one by one: in tuples, numba would count their
references at every call, which takes two to ten times as long. For the same reason the functions that a step calls are
short loops that call nothing, and `inlined` are those whose calls took time that can be measured.

    of the passive set, the first m rows in use
    atoms    [limit] int64: which atoms
    a        [limit] float64: their coefficients, the code so far
    right    [limit] float64: their right-hand sides, correlation with x minus penalty
    inverse  [limit, limit] float64: the inverse of G_PP
    cross    [limit, SHORTLIST] float32: G between them and the shortlisted atoms

    of the shortlist, the first `listed` entries in use
    ids      [SHORTLIST] int64: which atoms
    scores   [SHORTLIST] float32: their correlations with the residual, or `CLOSED`
    full     [SHORTLIST] float32: their correlations with x, or `CLOSED`

    on the way
    q        [k] float32: correlations of all atoms with the residual
    single   [limit] float32: a in single precision
    z        [limit] float64: solution of the equations on P
    g        [limit] float64: G between P and the atom that enters
    u        [limit] float64: G_PP^-1 g, the combination of passive atoms nearest to the atom that enters
    places   [limit] int64: 0, 1, 2, ..., the rows of `cross`

Without `fastmath`, which would gain nothing here: with it, what a process compiles itself and what it finds in numba's
cache add up in different orders, and a first run ended with another dictionary than a second.
"""

import numba
import numpy as np

SHORTLIST = 16
DEPENDENT = 1e-6  # squared distance of an atom from the span of the passive atoms; below, it counts as within
NOISE = 5e-7  # times |x|: by how much correlations in single precision differ from equal ones
CLOSED = np.float32(-1e9)  # in the place of the correlation of a shortlisted atom that must not be chosen (again)

compiled = numba.njit(cache=True, nogil=True)
inlined = numba.njit(cache=True, nogil=True, forceinline=True)  # its machine code stands where it is called
pasted = numba.njit(cache=True, nogil=True, inline="always")  # its statements do, before anything is compiled


# --- linear algebra -----------------------------------------------------------


@compiled
def _subtract_rows(q, gram, rows, a, m):
    """q -= sum over i < m of a_i gram[rows_i], four rows a pass."""
    k = len(q)
    i = 0
    while i + 4 <= m:
        row0, row1, row2, row3 = gram[rows[i]], gram[rows[i + 1]], gram[rows[i + 2]], gram[rows[i + 3]]
        a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
        for j in range(k):
            q[j] -= a0 * row0[j] + a1 * row1[j] + a2 * row2[j] + a3 * row3[j]
        i += 4
    while i < m:
        row0, a0 = gram[rows[i]], a[i]
        for j in range(k):
            q[j] -= a0 * row0[j]
        i += 1


@compiled
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


# --- the passive set ----------------------------------------------------------


@inlined
def _project(b, square, m, inverse, cross, g, u):
    """Project the shortlisted atom b on the span of the passive atoms: fill g = G_Pb and u = G_PP^-1 g.

    square: G_bb. Returns the Schur complement G_bb - g u, the atom's squared distance from the span.
    """
    for i in range(m):
        g[i] = cross[i, b]
    _product(inverse, g, u, m)
    schur = np.float64(square)
    for i in range(m):
        schur -= g[i] * u[i]
    return schur


@compiled
def _border(u, schur, m, inverse):
    """Border G_PP^-1 by the atom that becomes entry m of the passive set.

    With u and schur as `_project` gives them, the inverse of [[G_PP, g], [g^T, G_bb]] is
    [[G_PP^-1 + u u^T / schur, -u / schur], [-u^T / schur, 1 / schur]].
    """
    for i in range(m):
        factor = u[i] / schur
        for h in range(m):
            inverse[i, h] += factor * u[h]
        inverse[i, m] = inverse[m, i] = -factor
    inverse[m, m] = 1 / schur


@inlined
def _append(atom, coefficient, rhs, gram, m, atoms, a, right, cross, ids):
    """Make `atom` entry m of the passive set, with its `coefficient` and right-hand side; the size is then m + 1."""
    atoms[m], a[m], right[m] = atom, coefficient, rhs
    row = gram[atom]
    for v in range(SHORTLIST):
        cross[m, v] = row[ids[v]]


@compiled
def _remove(i, m, atoms, a, right, inverse, cross):
    """Take entry i out of the passive set of size m; the last entry takes its place, and the size is then m - 1.

    The inverse is deflated: with M = G_PP^-1, that of G_PP without row and column i is M - M_:i M_i: / M_ii.
    """
    pivot = 1 / inverse[i, i]
    row = inverse[i]
    for r in range(m):
        if r != i:
            factor = inverse[r, i] * pivot
            for h in range(m):
                inverse[r, h] -= factor * row[h]
    last = m - 1
    if i < last:
        atoms[i], a[i], right[i] = atoms[last], a[last], right[last]
        for v in range(SHORTLIST):
            cross[i, v] = cross[last, v]
        for h in range(m):
            inverse[i, h] = inverse[last, h]
        for h in range(last):
            inverse[h, i] = inverse[h, last]
        inverse[i, i] = inverse[last, last]


# --- the shortlist ------------------------------------------------------------


@compiled
def _largest(q, floor, ids, scores):
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


@compiled
def _leave_out(q, m, atoms):
    """Set q to 0 for the passive atoms, so that they are not listed."""
    for i in range(m):
        q[atoms[i]] = 0


@inlined
def _look_up(listed, correlations, gram, m, atoms, cross, ids, full):
    """Fill `full` and `cross`, what is needed of the shortlisted atoms; correlations [k] = D^T x."""
    for v in range(SHORTLIST):
        full[v] = correlations[ids[v]] if v < listed else CLOSED
    for i in range(m):
        row = gram[atoms[i]]
        for v in range(SHORTLIST):
            cross[i, v] = row[ids[v]]


@inlined
def _most_violated(scores, listed, floor):
    """Place in the shortlist of the atom with the largest score above `floor`, or -1."""
    b, best = -1, floor
    for v in range(listed):
        if scores[v] > best:
            best, b = scores[v], v
    return b


@compiled
def _reopen(atom, correlation, ids, full, listed):
    """Let `atom`, which leaves P, be chosen again if it is on the shortlist."""
    for v in range(listed):
        if ids[v] == atom:
            full[v] = correlation


@inlined
def _copy(source, target, m):
    """target = source on the first m entries."""
    for i in range(m):
        target[i] = source[i]


# --- the steps of the algorithm -----------------------------------------------


@inlined
def _gap(q, square, penalty, m, atoms, a, right):
    """Duality gap of the code a on P, and its objective.

    The dual point is the residual r = x - D a times the largest scale <= 1 that makes it feasible, penalty / max q.
    With |r|^2 = |x|^2 - a D^T x - a q, the gap is 1/2 |r|^2 + penalty |a|_1 - scale r x + 1/2 scale^2 |r|^2.
    square: |x|^2.
    """
    top = np.float32(0)
    for j in range(len(q)):
        top = max(top, q[j])
    ac, aq, l1 = 0.0, 0.0, 0.0
    for i in range(m):
        ac += a[i] * (right[i] + penalty)
        aq += a[i] * q[atoms[i]]
        l1 += a[i]
    rest = square - ac - aq
    scale = penalty / top if top > penalty else 1.0
    primal = 0.5 * rest + penalty * l1
    return primal - scale * (square - ac) + 0.5 * scale * scale * rest, primal


@compiled
def _slide(m, a, u, inverse, schur):
    """Let an atom that is (nearly) the combination u of passive atoms take its place, until one of them is at 0.

    Along (-u, 1) hardly anything changes in D a, and the objective falls. Returns how far it went, which is the
    coefficient of the atom that enters, and which entry is at 0 and has to leave. The entry is -1, and nothing has
    moved, where none ever reaches 0, or where the atom would be within the span of the others even without it.
    """
    way, block = np.inf, -1
    for i in range(m):
        if u[i] > 0 and a[i] < way * u[i]:
            way, block = a[i] / u[i], i
    if block < 0 or schur + u[block] ** 2 / inverse[block, block] < DEPENDENT:
        return way, -1
    for i in range(m):
        a[i] = max(0.0, a[i] - way * u[i])
    return way, block


@inlined
def _follow(last, a, u, m, z):
    """Solve the equations on P after an atom has entered as entry m, where a solves those on P without it.

    The two solutions differ along (-u, 1): z = (a - last u, last). last: the coefficient of the entering atom, the
    slope of its constraint over its Schur complement.
    """
    z[m] = last
    for i in range(m):
        z[i] = a[i] - last * u[i]


@inlined
def _way(a, z, m):
    """The share of the way from a to z that is free, and the entry that is then at 0: (1, -1) if all of it is."""
    step, block = 1.0, -1
    for i in range(m):
        if z[i] <= 0 and a[i] <= step * (a[i] - z[i]):
            step, block = a[i] / (a[i] - z[i]), i
    return step, block


@compiled
def _advance(step, block, a, z, m):
    """Move a by the share `step` of the way to z, to where its entry `block` is 0."""
    for i in range(m):
        a[i] += step * (z[i] - a[i])
    a[block] = 0


@pasted
def _code(
    correlations, gram, square, penalty, tolerance,
    atoms, a, right, inverse, cross, ids, scores, full, q, single, z, g, u, places,
):  # fmt: skip
    """Find the code of one vector x and leave it in the first entries of `atoms` and `a`; returns the size of P.

    correlations [k] = D^T x, square = |x|^2; penalty and tolerance as in `solve`; the rest as the module says.
    """
    limit = len(atoms)
    m, steps, most = 0, 0, 20 * limit + 100
    floor = np.float32(penalty * (1 + 1e-6))
    while True:
        # the correlations with the residual, q = D^T (x - D a) = D^T x - G a, and what they say of the code
        _copy(a, single, m)
        _copy(correlations, q, len(q))
        _subtract_rows(q, gram, atoms, single, m)
        gap, primal = _gap(q, square, penalty, m, atoms, a, right)
        if gap <= tolerance * primal:
            return m
        # the shortlist
        _leave_out(q, m, atoms)
        listed = _largest(q, floor, ids, scores)
        _look_up(listed, correlations, gram, m, atoms, cross, ids, full)
        before = steps
        while steps < most:
            # the atom that enters
            b = _most_violated(scores, listed, floor)
            if b < 0:
                break
            atom, score, rhs = ids[b], scores[b], full[b] - penalty
            scores[b] = full[b] = CLOSED
            begin, schur = 0.0, _project(b, gram[atom, atom], m, inverse, cross, g, u)
            if schur < DEPENDENT or m == limit:
                if score - penalty < NOISE * np.sqrt(square):
                    continue
                begin, block = _slide(m, a, u, inverse, schur)
                if block < 0:
                    continue
                _reopen(atoms[block], right[block] + penalty, ids, full, listed)
                _remove(block, m, atoms, a, right, inverse, cross)
                m -= 1
                schur = max(_project(b, gram[atom, atom], m, inverse, cross, g, u), DEPENDENT)
            steps += 1
            _border(u, schur, m, inverse)
            _append(atom, begin, rhs, gram, m, atoms, a, right, cross, ids)
            m += 1
            # the equations on P
            if begin > 0:
                _product(inverse, right, z, m)
            else:
                _follow((score - penalty) / schur, a, u, m - 1, z)
            # the way to their solution
            step, block = _way(a, z, m)
            while block >= 0:
                _advance(step, block, a, z, m)
                for i in range(m - 1, -1, -1):  # what leaves may come back, unless it only just came
                    if a[i] <= 0:
                        if atoms[i] != atom:
                            _reopen(atoms[i], right[i] + penalty, ids, full, listed)
                        _remove(i, m, atoms, a, right, inverse, cross)
                        m -= 1
                _product(inverse, right, z, m)
                step, block = _way(a, z, m)
            _copy(z, a, m)
            # the correlations of the shortlisted atoms with the residual
            _copy(a, single, m)
            _copy(full, scores, SHORTLIST)
            _subtract_rows(scores, cross, places, single, m)
        if steps == before:
            return m  # optimal to single precision


# --- many vectors -------------------------------------------------------------


@compiled
def _with_room(indices, values, used, m):
    """`indices` and `values`, or longer copies of them, with room for m more entries behind the first `used`."""
    if used + m <= len(indices):
        return indices, values
    more = np.empty(2 * len(indices) + m, np.int64)
    more[:used] = indices[:used]
    more_values = np.empty(len(more), np.float32)
    more_values[:used] = values[:used]
    return more, more_values


@compiled
def _write(m, atoms, a, indices, values, used):
    """Write the code behind the first `used` entries of `indices` and `values`, sorted by atom (insertion sort)."""
    for i in range(m):
        h = used + i
        while h > used and indices[h - 1] > atoms[i]:
            indices[h], values[h] = indices[h - 1], values[h - 1]
            h -= 1
        indices[h], values[h] = atoms[i], a[i]


@compiled
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
    atoms, a, right = np.empty(limit, np.int64), np.empty(limit), np.empty(limit)
    inverse, cross = np.empty((limit, limit)), np.zeros((limit, SHORTLIST), np.float32)
    ids, scores, full = np.zeros(SHORTLIST, np.int64), np.empty(SHORTLIST, np.float32), np.empty(SHORTLIST, np.float32)
    q, single, places = np.empty(k, np.float32), np.empty(limit, np.float32), np.arange(limit)
    z, g, u = np.empty(limit), np.empty(limit), np.empty(limit)
    counts = np.zeros(n, np.int64)
    indices, values, used = np.empty(16 * n + limit, np.int64), np.empty(16 * n + limit, np.float32), 0
    for t in range(n):
        m = _code(
            correlations[t], gram, squares[t], penalty, tolerance,
            atoms, a, right, inverse, cross, ids, scores, full, q, single, z, g, u, places,
        )  # fmt: skip
        indices, values = _with_room(indices, values, used, m)
        _write(m, atoms, a, indices, values, used)
        used += m
        counts[t] = m
    return counts, indices[:used], values[:used]
