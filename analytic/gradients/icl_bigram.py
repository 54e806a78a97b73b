"""Loss, gradient and gradient descent of in-context bigrams: which letter follows the query in this context?

A context is T + 1 distinct letters x_0, ..., x_T of d: T pairs of a key x_{l-1} and its value x_l. The query is one of
the keys, the target its value. With the attention matrix A and the output matrix B, both d x d, and l = 1..T,

    P = softmax over l of A[query, x_{l-1}],   z = sum_l P_l B[:, x_l],   loss = mean of log sum_j e^{z_j} - z_target.

Columns of B belong to values, rows to the letters whose logits they raise. `icl_bigram_twin` says the same in numpy.

How it is computed
------------------
With r_j = e^{z_j - top} for the letters other than the target, R their sum, and -R in the target's own place, and
u = e^{z_target - top},

    loss = log(1 + R / u),   c = 1 / (N (u + R)),   D_l = sum_j r_j B[j, x_l],

    d loss / d B[:, x_l] gathers c P_l r,   d loss / d A[query, x_{l-1}] gathers c P_l (D_l - sum_m P_m D_m).

No sum holds the target's own u, so a loss of 1e-300 is as exact as one of 3. While entries of B lie within NEAR of 0
no exponential can overflow, and top is 0; beyond, it is the largest logit. While entries of A do, e^A is taken once per
entry of A, not once per pair; beyond, each context subtracts its largest score.

Near 0, what the logits add up is B / ln 2, so that r = 2^z: to split z into a whole number and a rest takes additions
only, which many processors do beside the multiply-adds. The dots add up B itself.

That is 3 T d multiply-adds and d exponentials a context. Contexts are cut into blocks of ROWS. A block goes through
short loops, each over all of its contexts, so that no step waits for the one before it:

    shares:  pair 1: context 0, ..., ROWS - 1     pair 2 ...      contexts are SIMD lanes
    z:       context 0: letter 0, ..., d - 1, padding             letters are SIMD lanes   (then r in its place)
             context 1 ...

Padding has logits so low that r is lost in any sum, and zeros in the rows of B that the dots read. z is a sum over
pairs of rows of B, transposed: JAM pairs at a time, so that z is stored once for all of them. The two gradients need
each r with the same row of B, that of the value: so the pairs of a block are sorted by their value, once for all, and
JAM pairs with the same value, a *bundle*, share the loads of its row of B, and the load and store of its row of the
gradient. Bundles are filled up with a pair of weight 0.

What a frozen layer does not need is left out: shares are kept while A is frozen, and only the other gradient is taken.
"""

import math
from collections import namedtuple
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import InputError, rate, real, whole
from ..jit import jit
from .exponential import exp, log1p

ROWS = 128  # contexts in a block
JAM = 6  # pairs treated together
LANES = 8  # floats in the widest vector; rows of B and z are a multiple
NEAR = 300.0  # size of entries of A and B within which nothing overflows or underflows
LOW = -540.0  # the logit of padding where r = 2^z: other r are at least 2^-433, beside which 2^LOW is lost in any sum
CLOSE = 1e-9  # logits of size 433 = NEAR / ln 2 that differ by more are not mixed up by rounding
TILES = (3, 7)  # vectors in a row of z (d <= 24, d <= 56) with loops of fixed length; longer rows have loops of any
PER_LN2 = 1.4426950408889634
ROUND = 1.5 * 2.0**52  # a float near it is a whole number, and has that number in its lowest bits
EXPONENT = np.uint64(52)  # the bit at which a float's exponent starts
C1, C2, C3, C4, C5, C6 = (  # of the polynomial closest to 2^f: within 5e-17 of it for |f| <= 1/2, relatively
    0.6931471805599457,
    0.24022650695910097,
    0.05550410866479039,
    0.009618129107607003,
    0.001333355815343997,
    0.0001540353044157185,
)
C7, C8, C9, C10, C11 = (
    1.5252727385189775e-05,
    1.3215442675452854e-06,
    1.0180647660573069e-07,
    7.072570394540799e-09,
    4.0780717860928705e-10,
)
MAX_LETTERS = 1 << 15  # so that places in A fit 32 bits
CHUNK = 1 << 14  # contexts drawn at a time

Layout = namedtuple("Layout", "places values targets letters slots bundles n d pairs width")
Work = namedtuple("Work", "shares z dots pulls sums tops own rest c losses table rows summands d_table d_rows")
Path = namedtuple("Path", "loss attention output")
U = np.uint64  # an index that is known not to be negative needs no look at the array's length


# ---- contexts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Contexts:
    """An immutable set of contexts: T + 1 distinct letters each, and which of them is the query.

    Make one with `Contexts.from_arrays` or `sample_contexts`.

    Attributes
    ----------
    n_contexts, d, pairs : int
        number of contexts, of letters, and of pairs T in a context
    letters : (n_contexts, T + 1) integers, read-only
        x_0, ..., x_T, from 0 to d - 1
    queries : (n_contexts,) integers, read-only
        the place l - 1 in 0..T - 1 of the query; the target is the next letter
    nbytes : int
        memory held

    Examples
    --------
    >>> contexts = Contexts.from_arrays([[0, 2, 1], [3, 0, 2]], [0, 1], d=4)
    >>> contexts.n_contexts, contexts.d, contexts.pairs
    (2, 4, 2)
    """

    letters: np.ndarray
    queries: np.ndarray
    _layout: Layout

    @classmethod
    def from_arrays(cls, letters, queries, d):
        """Contexts with the given letters.

        Parameters
        ----------
        letters : (n_contexts, T + 1) integers from 0 to d - 1
            distinct within a context, T >= 1
        queries : (n_contexts,) integers from 0 to T - 1
            place of the query among the letters
        d : int
            letters in the alphabet

        Raises
        ------
        InputError
            the arrays are not such
        """
        d = whole("d", d, low=2, high=MAX_LETTERS)
        letters, queries = np.asarray(letters), np.asarray(queries)
        if letters.dtype.kind not in "iu" or letters.ndim != 2 or not letters.size or letters.shape[1] < 2:
            raise InputError(f"letters must be whole numbers, T + 1 >= 2 a context, not {_brief(letters)}")
        if letters.min() < 0 or letters.max() >= d:
            raise InputError(f"letters must be from 0 to {d - 1}, not from {letters.min()} to {letters.max()}")
        twice = np.flatnonzero((np.diff(np.sort(letters, axis=1), axis=1) == 0).any(axis=1))
        if twice.size:
            raise InputError(f"letters must be distinct within a context, but context {twice[0]} has one twice")
        if queries.dtype.kind not in "iu" or queries.shape != letters.shape[:1]:
            raise InputError(f"queries must be {len(letters)} whole numbers, one a context, not {_brief(queries)}")
        if queries.min() < 0 or queries.max() > letters.shape[1] - 2:
            raise InputError(f"queries must be from 0 to {letters.shape[1] - 2}, the places of keys")
        return cls._pack(np.array(letters, np.uint16, order="C"), np.array(queries, np.uint16), d)

    @classmethod
    def _pack(cls, letters, queries, d):
        letters.flags.writeable = queries.flags.writeable = False
        return cls(letters, queries, _layout(letters, queries, d))

    @property
    def n_contexts(self):
        return self._layout.n

    @property
    def d(self):
        return self._layout.d

    @property
    def pairs(self):
        return self._layout.pairs

    @property
    def nbytes(self):
        arrays = [self.letters, self.queries, *(part for part in self._layout if isinstance(part, np.ndarray))]
        return sum(array.nbytes for array in arrays)


def sample_contexts(rng, n_contexts, d, pairs):
    """Contexts of uniform distinct letters, with a uniform query.

    Parameters
    ----------
    rng : numpy.random.Generator
        the same state gives the same contexts
    n_contexts, d, pairs : int
        how many; letters in the alphabet; pairs T in a context, at most d - 1

    Raises
    ------
    InputError
        a number is out of range

    Examples
    --------
    >>> contexts = sample_contexts(np.random.default_rng(0), 1000, 50, 6)
    >>> contexts.letters.shape, bool((np.diff(np.sort(contexts.letters), axis=1) > 0).all())
    ((1000, 7), True)
    """
    d = whole("d", d, low=2, high=MAX_LETTERS)
    pairs, n_contexts = whole("pairs", pairs, high=d - 1), whole("n_contexts", n_contexts)
    letters, queries = np.empty((n_contexts, pairs + 1), np.uint16), np.empty(n_contexts, np.uint16)
    ends = [*range(d, d - pairs - 1, -1), pairs]
    for first in range(0, n_contexts, CHUNK):
        last = min(first + CHUNK, n_contexts)
        _deal(rng.integers(0, ends, size=(last - first, pairs + 2)), letters[first:last], queries[first:last], d)
    return Contexts._pack(letters, queries, d)


@jit
def _deal(draws, letters, queries, d):
    """Distinct letters from independent draws: the i-th is the ``draws[i]``-th of those left (Fisher and Yates)."""
    left = np.arange(d)
    for n in range(draws.shape[0]):
        for i in range(letters.shape[1]):
            drawn = i + draws[n, i]
            left[i], left[drawn] = left[drawn], left[i]
            letters[n, i] = left[i]
        queries[n] = draws[n, letters.shape[1]]
        for i in range(letters.shape[1] - 1, -1, -1):  # back to where it was: a context depends on its own draws only
            drawn = i + draws[n, i]
            left[i], left[drawn] = left[drawn], left[i]


def _layout(letters, queries, d):
    pairs = letters.shape[1] - 1
    blocks, padded, width = -(-len(letters) // ROWS), _padded(pairs), -(-d // LANES) * LANES
    width = LANES * min((tile for tile in TILES if LANES * tile >= d), default=width // LANES)
    bundles = np.zeros(blocks + 1, np.int64)
    _count_bundles(letters, d, bundles)
    layout = Layout(
        np.zeros(blocks * pairs * ROWS, np.uint32),
        np.zeros(blocks * padded * ROWS, np.uint32),
        np.zeros(blocks * ROWS, np.uint32),
        np.zeros(bundles[-1], np.uint32),
        np.full(bundles[-1] * JAM, padded * ROWS, np.uint32),
        bundles,
        len(letters),
        d,
        pairs,
        width,
    )
    _fill(layout, letters, queries)
    return layout


@jit
def _padded(pairs):
    """Pairs in a context, filled up to whole groups of JAM."""
    return -(-pairs // JAM) * JAM


@jit
def _count_bundles(letters, d, bundles):
    """bundles[b + 1]: how many bundles the blocks up to b have."""
    counts = np.zeros(d, np.int64)
    for block in range(bundles.size - 1):
        counts[:] = 0
        for n in range(block * ROWS, min((block + 1) * ROWS, letters.shape[0])):
            for l in range(1, letters.shape[1]):
                counts[letters[n, l]] += 1
        bundles[block + 1] = bundles[block] + ((counts + JAM - 1) // JAM).sum()


@jit
def _fill(layout, letters, queries):
    """Where everything is: entries of A, rows of B, the target in a block's z, and pairs sorted by value."""
    pairs, padded, width, d = layout.pairs, _padded(layout.pairs), layout.width, layout.d
    counts, starts = np.zeros(d, np.int64), np.zeros(d, np.int64)
    for block in range(layout.bundles.size - 1):
        first, last = block * ROWS, min((block + 1) * ROWS, letters.shape[0])
        counts[:] = 0
        for row in range(last - first):
            n = first + row
            query, target = np.int64(letters[n, queries[n]]), np.int64(letters[n, queries[n] + 1])
            layout.targets[n] = row * width + target
            for l in range(pairs):
                layout.places[(block * pairs + l) * ROWS + row] = query * d + letters[n, l]
                layout.values[n * padded + l] = letters[n, l + 1] * width
                counts[letters[n, l + 1]] += 1
        at = layout.bundles[block]
        for letter in range(d):
            starts[letter] = at * JAM
            for _ in range((counts[letter] + JAM - 1) // JAM):
                layout.letters[at] = letter * width
                at += 1
        for l in range(pairs):
            for row in range(last - first):
                letter = letters[first + row, l + 1]
                layout.slots[starts[letter]] = l * ROWS + row
                starts[letter] += 1
        for row in range(last - first, ROWS):  # no contexts: anything that is not the padding
            layout.targets[first + row] = row * width


# ---- kernels ---------------------------------------------------------------------------------------------------------

inner = partial(jit, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # only for kernels to call: compiles faster


@inner
def _floats(size):
    """Zeros that start at a multiple of 64 bytes, the width of the widest vector load."""
    buffer = np.zeros(size + 7)
    start = -(buffer.ctypes.data // 8) % 8
    return buffer[start : start + size]


@inner
def _work(layout, frozen):
    """What one pass fills. The shares of all blocks are kept while A is ``frozen``; they end with pairs of weight 0."""
    slots = _padded(layout.pairs) * ROWS + ROWS
    return Work(
        _floats(slots * (layout.bundles.size - 1 if frozen else 1)),
        _floats(ROWS * layout.width),
        _floats(slots),
        _floats(slots),
        _floats(ROWS),
        _floats(ROWS),
        _floats(ROWS),
        _floats(ROWS),
        _floats(ROWS),
        _floats(ROWS),
        _floats(layout.d * layout.d),
        _floats(layout.d * layout.width),
        _floats(layout.d * layout.width),
        _floats(layout.d * layout.d),
        _floats(layout.d * layout.width),
    )


@inner
def _attend(places, table, near, shares, sums, tops):
    """Shares P of one block; ``table`` has e^A where A is ``near`` 0, else A."""
    size = U(places.size)
    for i in range(size):
        shares[i] = table[places[i]]
    if not near:
        tops[:] = -math.inf
        for first in range(U(0), size, U(ROWS)):
            for row in range(U(ROWS)):
                tops[row] = max(tops[row], shares[first + row])
        for first in range(U(0), size, U(ROWS)):
            for row in range(U(ROWS)):
                shares[first + row] = exp(shares[first + row] - tops[row])
    sums[:] = 0.0
    for first in range(U(0), size, U(ROWS)):
        for row in range(U(ROWS)):
            sums[row] += shares[first + row]
    for row in range(U(ROWS)):
        sums[row] = 1.0 / sums[row]
    for first in range(U(0), size, U(ROWS)):
        for row in range(U(ROWS)):
            shares[first + row] *= sums[row]


@inner
def _columns(tile, width):
    """Columns of z: a number the compiler knows, if there is a tile, so that loops over them are unrolled."""
    return U(LANES * len(tile)) if len(tile) else U(width)


@inner(fastmath={"contract"})
def _mix(rows, p, v, j):
    """sum_l p_l B[j, x_l] for JAM pairs."""
    p0, p1, p2, p3, p4, p5 = p
    v0, v1, v2, v3, v4, v5 = v
    first = p0 * rows[v0 + j] + p1 * rows[v1 + j] + p2 * rows[v2 + j]
    return first + p3 * rows[v3 + j] + p4 * rows[v4 + j] + p5 * rows[v5 + j]


@inner
def _six(array, at, step):
    """Six values, ``step`` apart."""
    return (
        array[at],
        array[at + step],
        array[at + U(2) * step],
        array[at + U(3) * step],
        array[at + U(4) * step],
        array[at + U(5) * step],
    )


@inner(fastmath={"contract"})
def _logits(values, shares, rows, z, tile, width):
    """z = sum_l P_l B[:, x_l] of one block."""
    columns, groups = _columns(tile, width), U(values.size // (ROWS * JAM))
    for row in range(U(ROWS)):
        at, first = row * columns, row * groups * U(JAM)
        p, v = _six(shares, row, U(ROWS)), _six(values, first, U(1))
        for j in range(columns):
            z[at + j] = _mix(rows, p, v, j)
        for group in range(U(1), groups):
            p = _six(shares, group * U(JAM * ROWS) + row, U(ROWS))
            v = _six(values, first + group * U(JAM), U(1))
            for j in range(columns):
                z[at + j] += _mix(rows, p, v, j)


@inner
def _set_targets_apart(targets, z, own, low):
    """Keep the targets' logits in ``own`` and lower them in z."""
    for row in range(U(ROWS)):
        own[row] = z[targets[row]]
        z[targets[row]] = low


@inner
def _tops(z, own, tops, width):
    """The largest logit of each context."""
    for row in range(ROWS):
        top = own[row]
        for j in range(row * width, (row + 1) * width):
            top = max(top, z[j])
        tops[row] = top


@inner
def _right(values, targets, shares, rows, z, own, near, live, d, width):
    """How many of the first ``live`` contexts give the target the largest logit, alone.

    Where B is ``near`` 0, z has logits in units of ln 2: close calls are decided by the logits themselves.
    """
    right, slots = 0, values.size // ROWS
    for row in range(live):
        first, mine, top = row * width, own[row], -math.inf
        for j in range(first, first + d):
            top = max(top, z[j])
        if near and abs(mine - top) < CLOSE:
            target, top = targets[row] - first, -math.inf
            for j in range(d):
                logit = 0.0
                for l in range(slots):
                    logit += shares[l * ROWS + row] * rows[values[row * slots + l] + j]
                if j == target:
                    mine = logit
                else:
                    top = max(top, logit)
        right += mine > top
    return right


@inner(fastmath={"contract"})  # never "reassoc": it would cancel the rounding by addition
def _power_of_two(x):
    """2^x for |x| <= 1000, less than one unit in the last place off; 2^0 = 1.

    2^f, |f| <= 1/2, with the rest of x, a whole number, added to its exponent.
    """
    rounded = x + ROUND
    f = x - (rounded - ROUND)
    g = f * f
    tail = C2 + f * C3 + g * (C4 + f * C5 + g * (C6 + f * C7 + g * (C8 + f * C9 + g * (C10 + f * C11))))
    bits = np.float64(1.0 + f * (C1 + f * tail)).view(np.uint64)
    return np.uint64(bits + (np.float64(rounded).view(np.uint64) << EXPONENT)).view(np.float64)


@inner(fastmath={"contract", "reassoc", "nsz"})
def _powers(z, near, tops, rest, tile, width):
    """r = 2^z if B is ``near`` 0, else e^{z - top}, in the place of z, and the sums of r."""
    columns = _columns(tile, width)
    for row in range(U(ROWS)):
        at, top, total = row * columns, tops[row], 0.0
        if near:
            for j in range(columns):
                power = _power_of_two(z[at + j])
                z[at + j] = power
                total += power
        else:
            for j in range(columns):
                power = exp(z[at + j] - top)
                z[at + j] = power
                total += power
        rest[row] = total


@inner
def _losses(targets, z, near, own, tops, rest, c, losses, live, of):
    """Add the losses of the ``live`` contexts of a block; c, and -R in the targets' places."""
    for row in range(U(ROWS)):
        weight = 1.0 if row < live else 0.0
        if near:
            one = _power_of_two(own[row])
            losses[row] += weight * log1p(rest[row] / one)
        else:
            one = exp(own[row] - tops[row])
            losses[row] += weight * (tops[row] - own[row] + log1p(rest[row] + (one - 1.0)))
        c[row] = weight / ((one + rest[row]) * of)
    for row in range(U(ROWS)):
        z[targets[row]] = -rest[row]


@inner
def _weights(shares, c, pulls):
    """c P of every pair of a block."""
    for first in range(U(0), U(shares.size - ROWS), U(ROWS)):
        for row in range(U(ROWS)):
            pulls[first + row] = shares[first + row] * c[row]


@inner(fastmath={"contract", "reassoc", "nsz"})
def _pull(letters, slots, pulls, z, rows, d_rows, dots, tile, width):
    """Add c P r to the gradient of B (unless ``d_rows`` is None), and take the dots D (unless ``dots`` is None)."""
    columns = _columns(tile, width)
    for bundle in range(U(letters.size)):
        v, s = letters[bundle], _six(slots, bundle * U(JAM), U(1))
        s0, s1, s2, s3, s4, s5 = s
        w0, w1, w2, w3, w4, w5 = pulls[s0], pulls[s1], pulls[s2], pulls[s3], pulls[s4], pulls[s5]
        z0, z1, z2 = (s0 % U(ROWS)) * columns, (s1 % U(ROWS)) * columns, (s2 % U(ROWS)) * columns
        z3, z4, z5 = (s3 % U(ROWS)) * columns, (s4 % U(ROWS)) * columns, (s5 % U(ROWS)) * columns
        d0 = d1 = d2 = d3 = d4 = d5 = 0.0
        for j in range(columns):
            r0, r1, r2, r3, r4, r5 = z[z0 + j], z[z1 + j], z[z2 + j], z[z3 + j], z[z4 + j], z[z5 + j]
            if d_rows is not None:
                d_rows[v + j] += w0 * r0 + w1 * r1 + w2 * r2 + w3 * r3 + w4 * r4 + w5 * r5
            if dots is not None:
                b = rows[v + j]
                d0 += r0 * b
                d1 += r1 * b
                d2 += r2 * b
                d3 += r3 * b
                d4 += r4 * b
                d5 += r5 * b
        if dots is not None:
            dots[s0], dots[s1], dots[s2], dots[s3], dots[s4], dots[s5] = d0, d1, d2, d3, d4, d5


@inner
def _pull_attention(places, shares, pulls, dots, sums, d_table):
    """Add c P_l (D_l - sum_m P_m D_m) to the gradient of A."""
    size = U(places.size)
    sums[:] = 0.0
    for first in range(U(0), size, U(ROWS)):
        for row in range(U(ROWS)):
            sums[row] += shares[first + row] * dots[first + row]
    for first in range(U(0), size, U(ROWS)):
        for row in range(U(ROWS)):
            dots[first + row] = pulls[first + row] * (dots[first + row] - sums[row])
    for i in range(size):
        d_table[places[i]] += dots[i]


@inner
def _load(layout, attention, output, work):
    """Table of A (or of e^A), and rows of B, transposed: as they are, and as summands of logits. Are they near 0?"""
    d, width = layout.d, layout.width
    near_a, near_b, lowest = True, True, 0.0
    for i in range(d):
        for j in range(d):
            near_a &= abs(attention[i, j]) <= NEAR
            near_b &= abs(output[i, j]) <= NEAR
            lowest = min(lowest, output[i, j])
    unit, low = (PER_LN2, LOW) if near_b else (1.0, 2.0 * lowest - 1000.0)
    for i in range(d):
        for j in range(d):
            work.table[i * d + j] = exp(attention[i, j]) if near_a else attention[i, j]
    for j in range(d):
        for i in range(d):
            work.rows[j * width + i] = output[i, j]
            work.summands[j * width + i] = unit * output[i, j]
        for i in range(d, width):
            work.summands[j * width + i] = low
    return near_a, near_b


@inner
def _pass(layout, attention, output, work, tile, attended, pull_a, pull_o, judge):
    """Loss at one state and, as told, the gradients by A and by B, and how many contexts are right.

    ``attended``: the shares of all blocks are there already.
    """
    places, values, targets, bundles, width = layout.places, layout.values, layout.targets, layout.bundles, layout.width
    letters, slots = layout.letters, layout.slots
    sums, tops, own, rest, c, losses = work.sums, work.tops, work.own, work.rest, work.c, work.losses
    z, rows, table, pulls, dots = work.z, work.rows, work.table, work.pulls, work.dots
    near_a, near_b = _load(layout, attention, output, work)
    losses[:] = 0.0
    work.d_table[:] = 0.0
    work.d_rows[:] = 0.0
    right, frozen = 0, work.shares.size > work.dots.size
    for block in range(bundles.size - 1):
        live = U(min(ROWS, layout.n - block * ROWS))
        shares = work.shares[block * dots.size : (block + 1) * dots.size] if frozen else work.shares
        here = places[block * layout.pairs * ROWS : (block + 1) * layout.pairs * ROWS]
        to = targets[block * ROWS : (block + 1) * ROWS]
        if not attended:
            _attend(here, table, near_a, shares, sums, tops)
        size = values.size // (bundles.size - 1)
        mine = values[block * size : (block + 1) * size]
        _logits(mine, shares, work.summands, z, tile, width)
        _set_targets_apart(to, z, own, LOW if near_b else -math.inf)
        if judge:
            right += _right(mine, to, shares, rows, z, own, near_b, live, layout.d, width)
        if not near_b:
            _tops(z, own, tops, width)
        _powers(z, near_b, tops, rest, tile, width)
        _losses(to, z, near_b, own, tops, rest, c, losses, live, layout.n)
        if pull_a or pull_o:
            _weights(shares, c, pulls)
            first, last = bundles[block], bundles[block + 1]
            which, pairs = letters[first:last], slots[first * JAM : last * JAM]
            if pull_a and pull_o:
                _pull(which, pairs, pulls, z, rows, work.d_rows, dots, tile, width)
            elif pull_o:
                _pull(which, pairs, pulls, z, rows, work.d_rows, None, tile, width)
            else:
                _pull(which, pairs, pulls, z, rows, None, dots, tile, width)
        if pull_a:
            _pull_attention(here, shares, pulls, dots, sums, work.d_table)
    return losses.sum() / layout.n, right


@jit
def _run(layout, tile, attention, output, rate_a, rate_o, loss, loss_limit, last_gradient):
    """Fill loss[t], attention[t], output[t] from attention[0], output[0] on.

    Returns how many states were reached, and of the last one how many contexts are right and, if ``last_gradient``,
    the gradients by A, as one row, and by B, transposed and padded.
    """
    d, width = layout.d, layout.width
    frozen = rate_a == 0.0 and not last_gradient
    work = _work(layout, frozen)
    n, last, right = 0, loss.size - 1, 0
    for t in range(loss.size):
        pull_a, pull_o = (rate_a > 0.0 and t < last) or last_gradient, (rate_o > 0.0 and t < last) or last_gradient
        attended = frozen and t > 0
        loss[t], right = _pass(
            layout, attention[t], output[t], work, tile, attended, pull_a, pull_o, last == 0 and not last_gradient
        )
        n = t + 1
        if t == last or not (loss[t] < math.inf and loss[t] <= loss_limit):
            break
        for i in range(d):
            for j in range(d):
                attention[n, i, j] = attention[t, i, j] - rate_a * work.d_table[i * d + j]
                output[n, i, j] = output[t, i, j] - rate_o * work.d_rows[j * width + i]
    return n, right, work.d_table, work.d_rows


# ---- what others call ------------------------------------------------------------------------------------------------


def _checked(contexts, attention, output):
    """The layout of ``contexts``, its tile, and the parameters as (d, d) float64 arrays of their own."""
    if not isinstance(contexts, Contexts):
        made = "Contexts.from_arrays or sample_contexts"
        raise InputError(f"contexts must be made by {made}, not {type(contexts).__name__}")
    arrays, shape = [], (contexts.d, contexts.d)
    for name, value in (("attention", attention), ("output", output)):
        array = np.asarray(value)
        if array.dtype.kind not in "fiu" or array.shape != shape:
            raise InputError(f"{name} must hold real numbers in the shape {shape}, not {_brief(array)}")
        if not np.isfinite(array).all():
            raise InputError(f"{name} must be finite, but {np.argwhere(~np.isfinite(array))[0].tolist()} is not")
        arrays.append(np.array(array, dtype=np.float64, order="C"))
    layout = contexts._layout
    vectors = layout.width // LANES
    return layout, (0,) * vectors if vectors in TILES else (), *arrays


def _brief(array):
    """Kind and shape of a wrong array."""
    return f"{array.dtype} of shape {array.shape}"


def _state(contexts, attention, output, gradient):
    layout, tile, attention, output = _checked(contexts, attention, output)
    loss = np.empty(1)
    state = layout, tile, attention[None], output[None]
    _, right, d_attention, d_rows = _run(*state, 0.0, 0.0, loss, math.inf, gradient)
    d = layout.d
    return float(loss[0]), right, d_attention.reshape(d, d), d_rows.reshape(d, layout.width)[:, :d].T.copy()


def evaluate(contexts, attention, output):
    """Loss, the mean of log sum_j e^{z_j} - z_target, and accuracy: the target's logit must be the largest, alone.

    Parameters
    ----------
    contexts : Contexts
    attention, output : (d, d)
        A and B; z = sum_l softmax_l(A[query, x_{l-1}]) B[:, x_l]

    Returns
    -------
    loss : float, in nats
    accuracy : float

    Raises
    ------
    InputError
        shapes do not match the contexts, or a parameter is not finite

    Examples
    --------
    >>> contexts = Contexts.from_arrays([[0, 2, 1], [3, 0, 2]], [0, 1], d=4)
    >>> loss, accuracy = evaluate(contexts, np.zeros((4, 4)), np.zeros((4, 4)))
    >>> round(loss, 6), accuracy
    (1.386294, 0.0)
    >>> evaluate(contexts, 1000 * np.eye(4), 1000 * np.eye(4))
    (0.0, 1.0)
    """
    loss, right, _, _ = _state(contexts, attention, output, gradient=False)
    return loss, right / contexts.n_contexts


def loss_and_gradient(contexts, attention, output):
    """Loss and its gradients by A and B.

    With P the attention shares, g = softmax(z) - e_target and D_l = g . B[:, x_l], means over contexts of

        d loss / d B[:, x_l]: P_l g,        d loss / d A[query, x_{l-1}]: P_l (D_l - sum_m P_m D_m).

    Parameters and errors are those of `evaluate`.

    Returns
    -------
    loss : float, in nats
    d_attention, d_output : (d, d)

    Examples
    --------
    >>> contexts = Contexts.from_arrays([[0, 1]], [0], d=2)
    >>> loss, d_attention, d_output = loss_and_gradient(contexts, np.zeros((2, 2)), np.zeros((2, 2)))
    >>> d_attention.tolist(), d_output.tolist()
    ([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.5], [0.0, -0.5]])
    """
    loss, _, d_attention, d_output = _state(contexts, attention, output, gradient=True)
    return loss, d_attention, d_output


def descend(contexts, attention, output, rate_a, rate_o, steps, loss_limit=math.inf):
    """Full-batch gradient descent on both layers at once.

    A <- A - rate_a d loss / d A,   B <- B - rate_o d loss / d B, both from the same gradient.

    Parameters
    ----------
    contexts : Contexts
    attention, output : (d, d)
        A and B to start from
    rate_a, rate_o : float
        step sizes; they multiply the gradient of the mean loss, and 0 freezes the layer
    steps : int
        number of updates
    loss_limit : float
        stop at the first loss that exceeds it or is not finite

    Returns
    -------
    Path
        ``loss[t]``, ``attention[t]``, ``output[t]`` after t updates, t = 0..steps, or up to the state that stopped the
        run. A run cut into several calls has the same bits.

    Raises
    ------
    InputError
        as in `evaluate`, or a rate is negative or not finite, or steps is not a whole number of at least 0

    Examples
    --------
    >>> contexts = Contexts.from_arrays([[0, 1]], [0], d=2)
    >>> path = descend(contexts, np.zeros((2, 2)), np.zeros((2, 2)), rate_a=0.0, rate_o=1.0, steps=1)
    >>> path.output[1].tolist()
    [[0.0, -0.5], [0.0, 0.5]]
    """
    layout, tile, attention, output = _checked(contexts, attention, output)
    rate_a, rate_o, steps = rate("rate_a", rate_a), rate("rate_o", rate_o), whole("steps", steps, low=0)
    loss_limit = math.inf if loss_limit == math.inf else real("loss_limit", loss_limit, low=0.0)
    loss, shape = np.empty(steps + 1), (steps + 1, layout.d, layout.d)
    attentions, outputs = np.empty(shape), np.empty(shape)
    attentions[0], outputs[0] = attention, output
    n = _run(layout, tile, attentions, outputs, rate_a, rate_o, loss, loss_limit, False)[0]
    return Path(loss[:n], attentions[:n], outputs[:n])
