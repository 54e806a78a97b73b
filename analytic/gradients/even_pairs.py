"""Loss, gradient and gradient descent of the even-pairs model, over all binary strings up to a length.

A string b_1 ... b_L has y = +1 iff its first and its last symbol agree (then "01" and "10" occur in it an even number
of times). The token with symbol b at position l is one-hot in D = 2 L_max dimensions, at index

    2 (l - 1) + b      (position 1: 0, 1;  position 2: 2, 3;  ...).

One head of softmax attention asks with the last token and a linear layer reads its output:

    s_l = W[x_l, x_L],   P = softmax(s),   f = sum_l P_l u[x_l]     (x_l is the index of the token at position l),
    loss = mean over L = 1..L_max of the mean over the 2^L strings of ln(1 + e^{-y f}).

`even_pairs_twin` says the same in numpy.

How it is computed
------------------
Strings of one length and one last token j share the 2 L - 1 numbers e_i = exp(W[i, j]). A string needs

    Z = sum_l e[x_l],   S = sum_l e[x_l] u[x_l],   f = S / Z,   and gives back   c = (d loss / d f) / Z  and  c f:
    d loss / d u[i] = sum over j of e_i C_ij,   d loss / d W[i, j] = e_i (u_i C_ij - K_ij),

where C_ij and K_ij add up c and c f of the strings that have token i and end in j. The symbols before the last one are
cut in two halves, row and column of a table of strings. Z and S are a number of the row plus a number of the column,
and each half's numbers are made by doubling: one more position joins each sum so far with either of its two tokens.
Backwards, c and c f are added up by row and by column; folding such a list in two, position by position, gives the
sums of its halves, which are C and K. So a string costs two sums, two divisions, an exponential and four sums, whatever
its length, and the memory is that of the halves, about 2^{L/2} numbers:

    columns: tile 0                                                                            tile 1 ...
             Z of column 0, ..., LANES - 1, then S, sums of c, of c f, and the losses in two parts
    b:       Z, S, sums of c, of c f, each of all rows
    sums:    c of four rows, then c f, each in LANES partial sums

The lowest bit of a row is its first symbol, so that y alternates from row to row. Losses of a column are multiplied,
prod (1 + e^{-|y f|}) - 1 = p, and p keeps every digit of tiny losses; a logarithm is then taken once for many strings.

Where the scores of one column of W are so far apart that exp(W - middle) could overflow or vanish, its strings are
treated one by one, each with the largest of its own scores subtracted. The choice depends on the current state only.
"""

import math
from collections import namedtuple
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..errors import InputError, rate, real, whole
from ..jit import jit
from .exponential import exp, exp_inside, log1p

LONGEST = 24  # L_max: 2^25 strings, 0.1 s a step or less
LANE_BITS = 4
LANES = 1 << LANE_BITS  # columns side by side; LLVM vectorises no loop of fewer than 16 rounds behind an alias check
GROUP = 4  # rows treated together: as many exponentials that do not wait for each other
FIELDS = 6  # of a column: Z, S, c, c f, p, and the loss not in p
SURELY_RIGHT = 1e300  # S of rows that are no strings: their loss, c and c f are 0
COLUMN_BITS = 10  # of a table of strings, at most: its columns then stay in the nearest cache

FAR_SCORES = 600.0  # within them e lies in e^{-+300}, and with weights from 1e-30 to 1e30 no c f overflows or vanishes
FAR_WEIGHTS = 1e30
FACTORS = 960  # of at most 2 that a product of losses takes up before its logarithm

Work = namedtuple("Work", "e middles far d_W d_u columns a b sums tokens shares")


# ---- strings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Strings:
    """All binary strings of the lengths 1 to ``max_length``: 2^(max_length + 1) - 2 of them.

    Attributes
    ----------
    max_length : int
        L_max, from 1 to 24
    dimension : int
        of a token, D = 2 L_max: W is (D, D) and u is (D,)
    n_strings : int

    Raises
    ------
    InputError
        max_length is not a whole number from 1 to 24

    Examples
    --------
    >>> strings = Strings(3)
    >>> strings.dimension, strings.n_strings
    (6, 14)
    """

    max_length: int

    def __post_init__(self):
        object.__setattr__(self, "max_length", whole("max_length", self.max_length, 1, LONGEST))

    @property
    def dimension(self):
        return 2 * self.max_length

    @property
    def n_strings(self):
        return 2 ** (self.max_length + 1) - 2


# ---- kernels ---------------------------------------------------------------------------------------------------------

inner = partial(jit, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # only for kernels to call: compiles faster
inlined = partial(inner, forceinline=True)  # else numba counts references to every array at every call
reorder = {"contract", "reassoc", "nsz"}  # sums may be taken lane by lane


@inner
def _column_bits(length):
    """How many of the free symbols 2, ..., L - 1 choose the column; the first one and the others choose the row."""
    return min(max(0, length - 3), max(LANE_BITS, length // 2), COLUMN_BITS)


@inner
def _floats(size):
    """Zeros that start at a multiple of 64 bytes, the width of the widest vector load."""
    buffer = np.zeros(size + 7)
    start = -(buffer.ctypes.data // 8) % 8
    return buffer[start : start + size]


@inner
def _work(max_length):
    """What one pass fills: gradients and scratch."""
    dimension, bits = 2 * max_length, _column_bits(max_length)
    n_columns, n_rows = max(LANES, 1 << bits), max(GROUP, 1 << (max_length - 1 - bits))
    return Work(
        np.zeros((dimension, dimension)),
        np.zeros(dimension),
        np.zeros(dimension, np.bool_),
        np.zeros((dimension, dimension)),
        np.zeros(dimension),
        _floats(FIELDS * n_columns),
        np.zeros((2, n_columns)),
        np.zeros((4, n_rows)),
        _floats(2 * GROUP * LANES),
        np.zeros(max_length, np.int64),
        np.zeros(max_length),
    )


@inner
def _powers(W, u, e, middles, far):
    """e[j, i] = exp(W[i, j] - middle of column j), and which columns are too far apart for that."""
    dimension = W.shape[0]
    largest = 0.0
    for i in range(dimension):
        largest = max(largest, abs(u[i]))
    extreme = not (1.0 / FAR_WEIGHTS <= largest <= FAR_WEIGHTS or largest == 0.0)
    for j in range(dimension):
        low, high = W[j, j], W[j, j]
        for i in range(j // 2 * 2):
            low, high = min(low, W[i, j]), max(high, W[i, j])
        middles[j] = 0.5 * low + 0.5 * high
        far[j] = extreme or not high - low <= FAR_SCORES
    for j in range(dimension):
        for i in range(j // 2 * 2 + 2):
            e[j, i] = W[i, j] - middles[j]
    for j in range(dimension):
        for i in range(j // 2 * 2 + 2):
            e[j, i] = exp_inside(e[j, i])


@inlined
def _double(lists, first, end, last, e, u):
    """Lists of Z and S, one value long, extended by both tokens of the positions first, ..., end - 1.

    The symbol at position ``first`` is the lowest bit of the index.
    """
    size = 1
    for i in range(2 * first, 2 * end, 2):
        z0, z1 = e[last, i], e[last, i + 1]
        s0, s1 = z0 * u[i], z1 * u[i + 1]
        for k in range(size):
            lists[0, size + k] = lists[0, k] + z1
            lists[0, k] += z0
        for k in range(size):
            lists[1, size + k] = lists[1, k] + s1
            lists[1, k] += s0
        size *= 2


@inlined
def _tables(length, last, e, u, a, b):
    """Z and S of the columns, in ``a``, and of the rows, in ``b``, of the strings of a length with a last token."""
    middle = length - 1 - _column_bits(length)
    a[0, 0], a[1, 0] = 0.0, 0.0
    _double(a, middle, length - 1, last, e, u)
    b[0, 0], b[1, 0] = e[last, last], e[last, last] * u[last]
    _double(b, 0, middle, last, e, u)


@inner
def _fill_columns(columns, a, n_columns):
    """Write Z and S into the tiles, and no sums yet."""
    for k in range(n_columns, LANES):
        a[0, k], a[1, k] = math.inf, 0.0  # no strings: c = c f = 0
    for tile in range((n_columns + LANES - 1) // LANES):
        t = columns[FIELDS * LANES * tile : FIELDS * LANES * (tile + 1)]
        for lane in range(LANES):
            t[lane] = a[0, LANES * tile + lane]
            t[LANES + lane] = a[1, LANES * tile + lane]
        for lane in range(2 * LANES, FIELDS * LANES):
            t[lane] = 0.0


@inner(fastmath={"contract"})
def _string(z, s):
    """Of a string with Z = z and y S = s: |c|, |c| y f, e^{-|y f|}, min(y f, 0), and 1 if it is wrong."""
    m = s / z
    decay = exp_inside(-abs(m))
    c = (decay if m > 0.0 else 1.0) / (z + z * decay)
    return c, c * m, decay, min(m, 0.0), 0.0 if m > 0.0 else 1.0


@inner(fastmath={"contract"})
def _four_rows(columns, size, sums, y, z0, z1, z2, z3, s0, s1, s2, s3):
    """Add to the columns and to ``sums`` what four rows of strings give; y is the label of the first and third row.

    Without ``sums`` (None: numba compiles a version for it) only losses and, in place of c, how many are wrong.
    """
    for first in range(0, size, FIELDS * LANES):
        t = columns[first : first + FIELDS * LANES]
        for lane in range(LANES):
            z, s = t[lane], y * t[LANES + lane]
            c0, k0, d0, n0, w0 = _string(z0 + z, s0 + s)
            c1, k1, d1, n1, w1 = _string(z1 + z, s1 - s)
            c2, k2, d2, n2, w2 = _string(z2 + z, s2 + s)
            c3, k3, d3, n3, w3 = _string(z3 + z, s3 - s)
            d01, d23 = d0 + d1 * (1.0 + d0), d2 + d3 * (1.0 + d2)
            t[4 * LANES + lane] += (d01 + d23 * (1.0 + d01)) * (1.0 + t[4 * LANES + lane])
            t[5 * LANES + lane] -= (n0 + n1) + (n2 + n3)
            if sums is None:
                t[2 * LANES + lane] += (w0 + w1) + (w2 + w3)
            else:
                t[2 * LANES + lane] += y * ((c0 - c1) + (c2 - c3))
                t[3 * LANES + lane] += (k0 + k1) + (k2 + k3)
                sums[lane] += c0
                sums[LANES + lane] += c1
                sums[2 * LANES + lane] += c2
                sums[3 * LANES + lane] += c3
                sums[4 * LANES + lane] += k0
                sums[5 * LANES + lane] += k1
                sums[6 * LANES + lane] += k2
                sums[7 * LANES + lane] += k3


@inner(fastmath=reorder)
def _lane_sum(sums, first):
    """Sum of LANES values, which become 0."""
    total = 0.0
    for lane in range(first, first + LANES):
        total += sums[lane]
        sums[lane] = 0.0
    return total


@inner(fastmath=reorder)
def _losses(columns, size, lanes, count):
    """Sum of ln(1 + p) over the columns, and p back to 0; each column multiplied up ``count`` factors."""
    total = 0.0
    for first in range(4 * LANES, size, FIELDS * LANES):
        p = columns[first : first + LANES]
        for lane in range(lanes, LANES):
            p[lane] = 0.0
        factors, width = count, LANES
        while 2 * factors <= FACTORS and width > 1:
            factors, width = 2 * factors, width // 2
            for lane in range(width):
                p[lane] += p[width + lane] * (1.0 + p[lane])
        for lane in range(width):
            total += log1p(p[lane])
        for lane in range(LANES):
            p[lane] = 0.0
    return total


@inner(fastmath=reorder)
def _field(columns, size, field, lanes, values):
    """Collect one field of all columns; returns its sum."""
    total = 0.0
    for tile in range(size // (FIELDS * LANES)):
        for lane in range(lanes):
            value = columns[(FIELDS * tile + field) * LANES + lane]
            values[tile * LANES + lane] = value
            total += value
    return total


@inner(fastmath=reorder)
def _fold(c, k, first, end, last, weight, e, u, d_W, d_u):
    """Gradients by the tokens of the positions first, ..., end - 1, from lists in the order of `_double`.

    They hold sums of y |c| and |c| y f, and are folded in two, position by position, from the highest bit on.
    """
    half = 1 << (end - first)
    for i in range(2 * end - 2, 2 * first - 2, -2):
        half //= 2
        c0, c1, k0, k1 = 0.0, 0.0, 0.0, 0.0
        for n in range(half):
            c0 += c[n]
            c1 += c[half + n]
            c[n] += c[half + n]
        for n in range(half):
            k0 += k[n]
            k1 += k[half + n]
            k[n] += k[half + n]
        share0, share1 = -weight * e[last, i], -weight * e[last, i + 1]
        d_u[i] += share0 * c0
        d_u[i + 1] += share1 * c1
        d_W[i, last] = share0 * (u[i] * c0 - k0)
        d_W[i + 1, last] = share1 * (u[i + 1] * c1 - k1)


@inlined
def _by_table(length, last, weight, e, u, d_W, d_u, columns, a, b, sums, backward):
    """Loss of the strings of a length with a last token, and gradients or, without ``backward``, how many are wrong."""
    bits = _column_bits(length)
    middle, n_columns = length - 1 - bits, 1 << bits
    size, lanes, n_rows = FIELDS * max(LANES, n_columns), min(LANES, n_columns), 1 << middle
    _tables(length, last, e, u, a, b)
    _fill_columns(columns, a, n_columns)
    y = 1.0 if last % 2 == 0 or length == 1 else -1.0  # of even rows: their first symbol is 0
    for row in range(n_rows):
        b[1, row] *= y if row % 2 == 0 else -y
    for row in range(n_rows, GROUP):
        b[0, row], b[1, row] = 1.0, SURELY_RIGHT

    loss, factors = 0.0, 0
    for r in range(0, n_rows, GROUP):
        z0, z1, z2, z3 = b[0, r], b[0, r + 1], b[0, r + 2], b[0, r + 3]
        s0, s1, s2, s3 = b[1, r], b[1, r + 1], b[1, r + 2], b[1, r + 3]
        if backward:
            _four_rows(columns, size, sums, y, z0, z1, z2, z3, s0, s1, s2, s3)
            for i in range(GROUP):
                b[2, r + i] = _lane_sum(sums, LANES * i) * (y if i % 2 == 0 else -y)
                b[3, r + i] = _lane_sum(sums, LANES * (GROUP + i))
        else:
            _four_rows(columns, size, None, y, z0, z1, z2, z3, s0, s1, s2, s3)
        factors += GROUP
        if factors + GROUP > FACTORS or r + GROUP >= n_rows:
            loss += _losses(columns, size, lanes, factors)
            factors = 0
    loss += _field(columns, size, 5, lanes, a[0])
    wrong = _field(columns, size, 2, lanes, a[0])
    if backward:
        _field(columns, size, 3, lanes, a[1])
        _fold(a[0], a[1], middle, length - 1, last, weight, e, u, d_W, d_u)
        _fold(b[2], b[3], 0, middle, last, weight, e, u, d_W, d_u)
        share = -weight * e[last, last]
        d_u[last] += share * b[2, 0]
        d_W[last, last] = share * (u[last] * b[2, 0] - b[3, 0])
    return weight * loss, wrong


@inner
def _attend(string, length, last, W, u, tokens, powers):
    """f of one string, numbered as its symbols before the last read; fills in its tokens and its attention."""
    top = W[last, last]
    tokens[length - 1] = last
    for l in range(length - 1):
        tokens[l] = 2 * l + (string >> (length - 2 - l)) % 2
        top = max(top, W[tokens[l], last])
    total, f = 0.0, 0.0
    for l in range(length):
        powers[l] = exp(W[tokens[l], last] - top)
        total += powers[l]
    for l in range(length):
        powers[l] /= total
        f += powers[l] * u[tokens[l]]
    return f


@inner
def _one_by_one(length, last, weight, W, u, d_W, d_u, tokens, shares, backward):
    """The same for scores that lie far apart."""
    loss, wrong = 0.0, 0.0
    d_W[: 2 * length, last] = 0.0
    for string in range(1 << (length - 1)):
        f = _attend(string, length, last, W, u, tokens, shares)
        y = 1.0 if tokens[0] % 2 == last % 2 else -1.0
        m = y * f
        decay = exp(-abs(m))
        loss += math.log1p(decay) + max(-m, 0.0)
        wrong += 0.0 if m > 0.0 else 1.0
        if backward:
            c = -weight * y * (decay if m > 0.0 else 1.0) / (1.0 + decay)
            for l in range(length):
                d_u[tokens[l]] += c * shares[l]
                d_W[tokens[l], last] += c * shares[l] * (u[tokens[l]] - f)
    return weight * loss, wrong


@inner
def _pass(max_length, W, u, work, backward):
    """Loss at one state, and gradients or, without ``backward``, how many strings are wrong."""
    e, d_W, d_u, columns, a, b, sums = work.e, work.d_W, work.d_u, work.columns, work.a, work.b, work.sums
    _powers(W, u, e, work.middles, work.far)
    d_u[:] = 0.0
    loss, wrong = 0.0, 0.0
    for length in range(1, max_length + 1):
        weight = 1.0 / (max_length * (1 << length))
        for last in range(2 * length - 2, 2 * length):
            if work.far[last]:
                part, miss = _one_by_one(length, last, weight, W, u, d_W, d_u, work.tokens, work.shares, backward)
            else:
                part, miss = _by_table(length, last, weight, e, u, d_W, d_u, columns, a, b, sums, backward)
            loss += part
            wrong += miss
    return loss, wrong


@jit
def _run(max_length, W, u, rate_a, rate_o, loss, loss_limit, last_gradient):
    """Fill loss[t], W[t], u[t] from W[0], u[0] on.

    Returns how many states were reached, and of the last one how many strings are wrong or, if ``last_gradient``, the
    gradients.
    """
    work = _work(max_length)
    n, wrong, last = 0, 0.0, loss.size - 1
    for t in range(loss.size):
        loss[t], wrong = _pass(max_length, W[t], u[t], work, t < last or last_gradient)
        n = t + 1
        if t == last or not (loss[t] < math.inf and loss[t] <= loss_limit):
            break
        for i in range(u.shape[1]):
            u[n, i] = u[t, i] - rate_o * work.d_u[i]
            for j in range(u.shape[1]):
                W[n, i, j] = W[t, i, j] - rate_a * work.d_W[i, j]
    return n, wrong, work.d_W, work.d_u


@jit
def _scores(max_length, W, u, f):
    tokens, shares = np.zeros(max_length, np.int64), np.zeros(max_length)
    at = 0
    for length in range(1, max_length + 1):
        for string in range(1 << length):
            f[at] = _attend(string // 2, length, 2 * length - 2 + string % 2, W, u, tokens, shares)
            at += 1


@jit
def _first_attention(max_length, states, gaps):
    """The mean, over the lengths from 2 on, of y (2 P_1 - 1) of the strings, for each W."""
    work = _work(max_length)
    u = np.zeros(2 * max_length)
    for t in range(states.shape[0]):
        W, total = states[t], 0.0
        _powers(W, u, work.e, work.middles, work.far)
        for length in range(2, max_length + 1):
            for last in range(2 * length - 2, 2 * length):
                if work.far[last]:
                    part = _first_one_by_one(length, last, W, u, work)
                else:
                    part = _first_by_table(length, last, u, work)
                total += part / (1 << length)
        gaps[t] = 2.0 * total / (max_length - 1)  # the y add up to 0


@inner
def _first_one_by_one(length, last, W, u, work):
    """Sum of y P_1 over the strings of a length with a last token."""
    total = 0.0
    for string in range(1 << (length - 1)):
        _attend(string, length, last, W, u, work.tokens, work.shares)
        total += work.shares[0] if work.tokens[0] % 2 == last % 2 else -work.shares[0]
    return total


@inner(fastmath=reorder)
def _first_by_table(length, last, u, work):
    """The same from tables."""
    columns, rows = work.a, work.b
    _tables(length, last, work.e, u, columns, rows)
    n_columns, n_rows = 1 << _column_bits(length), 1 << (length - 1 - _column_bits(length))
    total = 0.0
    for row in range(n_rows):
        inverses, first = 0.0, rows[0, row]
        for column in range(n_columns):
            inverses += 1.0 / (first + columns[0, column])
        inverses *= work.e[last, row % 2]
        total += inverses if row % 2 == last % 2 else -inverses
    return total


# ---- what others call ------------------------------------------------------------------------------------------------

Path = namedtuple("Path", "loss W u")


def _checked(strings, **parameters):
    """L_max, and each parameter as a float64 array of its own."""
    if not isinstance(strings, Strings):
        raise InputError(f"strings must be Strings(max_length), not {type(strings).__name__}")
    D = strings.dimension
    arrays = [strings.max_length]
    for name, value in parameters.items():
        shape = {"W": (D, D), "u": (D,)}[name]
        array = np.asarray(value)
        if array.dtype.kind not in "fiu" or array.shape != shape:
            given = f"{array.dtype} of shape {array.shape}"
            raise InputError(f"{name} must hold real numbers in the shape {shape}, not {given}")
        if not np.isfinite(array).all():
            raise InputError(f"{name} must be finite, but {np.argwhere(~np.isfinite(array))[0].tolist()} is not")
        arrays.append(np.array(array, dtype=np.float64, order="C"))
    return arrays


def _state(strings, W, u, gradient):
    """Loss, how many strings are wrong, and the gradients at one state: one or the other, by ``gradient``."""
    max_length, W, u = _checked(strings, W=W, u=u)
    loss = np.empty(1)
    _, wrong, d_W, d_u = _run(max_length, W[None], u[None], 0.0, 0.0, loss, math.inf, gradient)
    return float(loss[0]), wrong, d_W, d_u


def scores(strings, W, u):
    """The model's output f of every string; the prediction is its sign.

    f = sum_l P_l u[x_l], P = softmax of W[x_l, x_L] over the positions l; x_l = 2 (l - 1) + b_l.

    Parameters
    ----------
    strings : Strings
    W : (D, D)
        attention scores: row of the token looked at, column of the last token
    u : (D,)
        output weights

    Returns
    -------
    f : (n_strings,) float64
        of the strings of length 1, then 2, ...; of one length in the order of the numbers they write

    Raises
    ------
    InputError
        shapes do not match the strings, or a parameter is not finite

    Examples
    --------
    >>> scores(Strings(2), np.zeros((4, 4)), [1.0, 2.0, 0.0, 0.0])
    array([1. , 2. , 0.5, 0.5, 1. , 1. ])
    """
    max_length, W, u = _checked(strings, W=W, u=u)
    f = np.empty(strings.n_strings)
    _scores(max_length, W, u, f)
    return f


def evaluate(strings, W, u):
    """Loss, and accuracy: the share of strings with y f > 0 (f = 0 counts as wrong).

    The loss weighs every length the same, the accuracy every string. Parameters and errors are those of `scores`.

    Examples
    --------
    >>> loss, accuracy = evaluate(Strings(1), np.zeros((2, 2)), [0.0, 1.0])
    >>> round(loss, 6), accuracy  # (ln 2 + ln(1 + 1/e)) / 2, and one of two strings
    (0.503204, 0.5)
    """
    loss, wrong, _, _ = _state(strings, W, u, gradient=False)
    return loss, (strings.n_strings - wrong) / strings.n_strings


def loss_and_gradient(strings, W, u):
    """Loss, and its gradients by W and u.

    With P and f of `scores`, c = -y / (1 + e^{y f}), x_L the last token, and the mean that of the loss,

        d loss / d u[i] = mean of c sum_l P_l [x_l = i],
        d loss / d W[i, j] = mean of c sum_l P_l (u[i] - f) [x_l = i] [x_L = j].

    Parameters and errors are those of `scores`.

    Examples
    --------
    >>> loss, d_W, d_u = loss_and_gradient(Strings(2), np.zeros((4, 4)), np.zeros(4))
    >>> round(loss, 6), d_u  # ln 2; only strings of length 1 pull at u
    (0.693147, array([-0.125, -0.125,  0.   ,  0.   ]))
    """
    loss, _, d_W, d_u = _state(strings, W, u, gradient=True)
    return loss, d_W, d_u


def descend(strings, W, u, rate_a, rate_o, steps, loss_limit=math.inf):
    """Full-batch gradient descent on both layers at once.

    W <- W - rate_a d loss / d W,   u <- u - rate_o d loss / d u, both from the same gradient.

    Parameters
    ----------
    strings : Strings
    W, u : (D, D), (D,)
        the state to start from
    rate_a, rate_o : float
        step sizes; they multiply the gradient of the mean loss, and 0 freezes the layer
    steps : int
        number of updates
    loss_limit : float
        stop at the first loss that exceeds it or is not finite

    Returns
    -------
    Path
        ``loss[t]``, ``W[t]``, ``u[t]`` after t updates, t = 0..steps, or up to the state that stopped the run.
        A run cut into several calls has the same bits.

    Raises
    ------
    InputError
        as in `scores`, or a rate is negative or not finite, or steps is not a whole number of at least 0

    Examples
    --------
    >>> path = descend(Strings(2), np.zeros((4, 4)), np.zeros(4), rate_a=0.0, rate_o=8.0, steps=1)
    >>> path.u[1]
    array([1., 1., 0., 0.])
    """
    max_length, W, u = _checked(strings, W=W, u=u)
    rate_a, rate_o, steps = rate("rate_a", rate_a), rate("rate_o", rate_o), whole("steps", steps, low=0)
    loss_limit = math.inf if loss_limit == math.inf else real("loss_limit", loss_limit, low=0.0)
    loss, W_path, u_path = np.empty(steps + 1), np.empty((steps + 1, *W.shape)), np.empty((steps + 1, *u.shape))
    W_path[0], u_path[0] = W, u
    n = _run(max_length, W_path, u_path, rate_a, rate_o, loss, loss_limit, False)[0]
    return Path(loss[:n], W_path[:n], u_path[:n])


def attention_gap(strings, W):
    """How far attention looks at the first token where y = +1 and away from it where y = -1.

    The mean, over the lengths L = 2..L_max, of the mean over strings of y (2 P_1 - 1), P_1 the attention on the first
    token: 1 if P_1 = [y = +1] for every string; 0 (and no string to look at) for L_max = 1.

    Parameters
    ----------
    strings : Strings
    W : (D, D), or (T, D, D) for many at once

    Returns
    -------
    float, or (T,) float64

    Raises
    ------
    InputError
        the shape does not match the strings, or an entry is not finite

    Examples
    --------
    >>> W = np.zeros((4, 4))
    >>> attention_gap(Strings(2), W)
    0.0
    >>> W[[0, 1], [2, 3]] = 800.0  # "00" and "11" look at their first token
    >>> attention_gap(Strings(2), W)
    0.5
    """
    stack = np.asarray(W)
    states = np.stack([_checked(strings, W=one)[1] for one in (stack if stack.ndim == 3 else [stack])])
    gaps = np.zeros(len(states))
    if strings.max_length > 1:
        _first_attention(strings.max_length, states, gaps)
    return gaps if stack.ndim == 3 else float(gaps[0])
