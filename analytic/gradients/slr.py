"""Loss, gradient and gradient descent of single-location regression.

A context has L tokens X_l in R^d and a target y. Attention with scores X_l . k picks among the tokens, and v reads
the value off what it picked,

    P_l = e^{X_l . k} / sum_i e^{X_i . k},   f = sum_l P_l (X_l . v),

and the loss is the mean over contexts of (f - y)^2, without a factor 1/2. `slr_twin` says the same in numpy.

How it is computed
------------------
With s_l = X_l . k, u_l = X_l . v, p_l = e^{s_l} and z = sum_l p_l, each context needs

    f = sum_l p_l u_l / z,   c_l = (f - y) p_l / z,   e_l = c_l (u_l - f),
    d loss / d v = (2/N) sum c_l X_l,                 d loss / d k = (2/N) sum e_l X_l.

That is 4 L d multiply-adds a context, but what takes the time is to fetch X from memory. So X is fetched once: a block
of contexts stays in the nearest cache from the products that give s and u to those that use c and e, and while the
processor works on one block it asks for the next, some lines at a time: three quarters of them in the forward pass,
which measured best. Two blocks of long contexts do not fit that cache; there the forward pass asks for the tokens that
it will read next. X stays as it was given, token after token:

    tokens:  context 0                         context 1 ...
             token 0     token 1     ...
             X_1 ... X_d X_1 ... X_d
    place:   of the tokens of a block, in the arrays s, u, p, where a context has a multiple of LANES places

A block has a multiple of JAM tokens. The backward pass treats JAM together. The forward pass takes half as many:
that costs arithmetic, but measured faster where tokens come from memory. Every token is read up to a multiple of LANES
numbers, of SPAN in the forward pass: into the next token, where k and v have zeros and nobody looks at the gradient. So
no loop has a remainder. The last block, which may be short or have too little behind it, is a copy that ends in zeros.

e^{s_l} needs no largest score to be subtracted as long as |k| times the longest token is at most NEAR; the choice
depends on the state only. From a single token it is subtracted always: then p = 1 and e = 0 to the last bit. While k is
frozen, the loss is a quadratic in v: the attention outputs sum_l P_l X_l, and the targets, are reduced to a triangle R
of d + 1 columns by reflections (QR), and then

    loss = |R (v, -1)|^2 / N

for all steps of the run, exact to rounding, without another look at X. As R depends on X and k only, the same steps
have the same bits in whatever calls they are made.

Many contexts are cut into parts, which threads evaluate side by side; loss and gradients are added part after part.
How many parts depends on the data only, never on the threads, so that any machine computes the same bits.
"""

import math
import os
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from ..errors import InputError, rate, real, whole
from ..jit import jit
from .exponential import exp_inside
from .prefetch import LINE, ask_ahead

JAM = 8  # tokens treated together, or half as many: k and v, or the gradients, are loaded once for all of them
LANES = 8  # float64 in the widest vector register
SPAN = 2 * LANES  # numbers of a token that the forward pass takes at a time
ASK = 3  # tokens asked for with every JAM / 2 tokens of a forward pass whose backward pass asks for the rest
BLOCK = 2000  # numbers in a block, about: 16 kB, so that two of them fit the nearest cache
NEAR = 300.0  # scores up to here are exponents as they are: then e^{+-300} f stays far from overflow
ROWS = 64  # attention outputs absorbed into the triangle at a time
SMALLEST, LARGEST = 1e-200, 1e200  # squares of lengths that need no scaling

LARGE = 1e7  # numbers in X from which on a run is cut into parts: a step of 2 ms, 0.05 of which threads cost
PARTS = 16
THREADS = os.cpu_count() or 1  # they share the parts

Layout = namedtuple("Layout", "tokens whole rest targets place contexts n length d longest")
Work = namedtuple("Work", "k v s u p d_k d_v")
REASSOCIATE = {"reassoc", "contract", "nsz"}  # sums over a token in vector registers
U = np.uint64  # indices without a sign need no arithmetic for counting from the end


# ---- data ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tokens:
    """An immutable set of contexts: their tokens, and targets.

    Make one with `Tokens.from_arrays` or `sample_tokens`.

    Attributes
    ----------
    n, length, d : int
        number of contexts, of tokens in each, and of numbers in a token
    tokens : (n, length, d) float64, read-only
    targets : (n,) float64, read-only
    nbytes : int
        memory held

    Examples
    --------
    >>> data = Tokens.from_arrays([[[1.0, 0.0], [0.0, 1.0]]], [0.5])
    >>> data.n, data.length, data.d
    (1, 2, 2)
    """

    _layout: Layout

    @classmethod
    def from_arrays(cls, tokens, targets):
        """Contexts with the given tokens and targets.

        Parameters
        ----------
        tokens : (n, length, d) real numbers
            aligned float64 in C order is kept, not copied: it must not be written to afterwards
        targets : (n,) real numbers

        Raises
        ------
        InputError
            the shapes do not match, something is empty, or a number is not finite
        """
        tokens = _reals("tokens", tokens, ("n", "L", "d"))
        targets = _reals("targets", targets, tokens.shape[:1])
        tokens = np.require(tokens, np.float64, "CA").view()
        tokens.flags.writeable = False
        square = _longest_square(tokens.reshape(-1), tokens.shape[2])
        if not math.isfinite(square):
            _check_finite("tokens", tokens)
        return cls(_layout(tokens, targets.astype(np.float64), math.sqrt(square)))

    @property
    def n(self):
        return self._layout.n

    @property
    def length(self):
        return self._layout.length

    @property
    def d(self):
        return self._layout.d

    @property
    def tokens(self):
        return self._layout.tokens.reshape(self.n, self.length, self.d)

    @property
    def targets(self):
        return self._layout.targets[: self.n]

    @property
    def nbytes(self):
        return sum(part.nbytes for part in self._layout if isinstance(part, np.ndarray))


def sample_tokens(rng, n, length, key, value, noise):
    """Contexts in which one token, at a random position J, is informative.

    X_J ~ N(sqrt(d/2) key, I/2), the other tokens ~ N(0, I), y = X_J . value + noise xi with xi ~ N(0, 1).

    Parameters
    ----------
    rng : numpy.random.Generator
        the same state gives the same contexts
    n, length : int
        contexts, and tokens in each
    key, value : (d,) orthonormal vectors k*, v*
        which token to attend to, and what to read off it
    noise : float
        eps, standard deviation of the targets' noise

    Raises
    ------
    InputError
        a count is below 1, key and value are not orthonormal, or noise is negative

    Examples
    --------
    >>> data = sample_tokens(np.random.default_rng(0), 1000, 10, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], 0.1)
    >>> data.tokens.shape, round(float(np.mean(data.targets**2)), 1)
    ((1000, 10, 3), 0.5)
    """
    n, length, noise = whole("n", n), whole("length", length), real("noise", noise, low=0.0)
    key = np.asarray(_reals("key", key, ("d",)), dtype=np.float64)
    value = np.asarray(_reals("value", value, key.shape), dtype=np.float64)
    gram = np.array([key, value]) @ np.array([key, value]).T
    if not np.abs(gram - np.eye(2)).max() <= 1e-9:
        raise InputError(f"key and value must be orthonormal, not of scalar products {gram.tolist()}")
    at = np.arange(n), rng.integers(length, size=n)
    xi = rng.standard_normal(n)
    tokens = _aligned((n, length, key.size))
    rng.standard_normal(out=tokens)
    informative = math.sqrt(0.5) * tokens[at] + math.sqrt(key.size / 2) * key
    tokens[at] = informative
    return Tokens.from_arrays(tokens, informative @ value + noise * xi)


def _layout(tokens, targets, longest):
    """Tokens and targets in blocks of a multiple of JAM tokens; those without SPAN numbers behind them are copied."""
    n, length, d = tokens.shape
    unit = JAM // math.gcd(length, JAM)
    contexts = unit * max(1, BLOCK // (unit * length * d))
    size, blocks = contexts * length * d, -(-n // contexts)
    whole = max(0, tokens.size - SPAN) // size
    last = tokens[whole * contexts :].reshape(-1)
    rest = _aligned(((blocks - whole) * size + SPAN,))
    rest[: last.size] = last
    padded = np.zeros(blocks * contexts)
    padded[:n] = targets
    token = np.arange(contexts * length)
    place = (token // length * (-(-length // LANES) * LANES) + token % length).astype(np.uint64)
    for array in (rest, padded, place):
        array.flags.writeable = False
    return Layout(tokens.reshape(-1), whole, rest, padded, place, contexts, n, length, d, longest)


def _aligned(shape):
    """A zero array that starts at a multiple of 64 bytes, the width of the widest vector load."""
    size = math.prod(shape)
    buffer = np.zeros(size + 7)
    start = -(buffer.ctypes.data // 8) % 8
    return buffer[start : start + size].reshape(shape)


def _reals(name, value, shape):
    """``value`` as an array of finite real numbers of this shape; letters stand for any size from 1."""
    array = np.asarray(value)
    fits = array.ndim == len(shape) and array.size and array.dtype.kind in "fiu"
    if not fits or any(size != want for size, want in zip(array.shape, shape, strict=True) if isinstance(want, int)):
        wanted = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
        raise InputError(f"{name} must hold real numbers in the shape {wanted}, not {_brief(array)}")
    if array.ndim < 3:  # the tokens are checked on the way
        _check_finite(name, array)
    return array


def _check_finite(name, array):
    bad = ~np.isfinite(array)
    if bad.any():
        raise InputError(f"{name} must be finite, but {np.argwhere(bad)[0].tolist()} is not")


def _brief(array):
    return f"{array.dtype} of shape {array.shape}" if array.size > 4 else f"{array.tolist()!r}"


@jit(fastmath=REASSOCIATE)
def _longest_square(tokens, d):
    """The largest |X_l|^2; not finite if some number is not, or too large to be squared."""
    longest = 0.0
    for first in range(0, tokens.size, d):
        square = 0.0
        for x in tokens[first : first + d]:
            square += x * x
        if not square <= longest:
            longest = square
        if not longest < math.inf:
            break
    return longest


# ---- kernels ---------------------------------------------------------------------------------------------------------

inner = partial(jit, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # only for kernels to call: compiles faster


@inner
def _floats(size):
    """Zeros that start at a multiple of 64 bytes, the width of the widest vector load."""
    buffer = np.zeros(size + 7)
    start = -(buffer.ctypes.data // 8) % 8
    return buffer[start : start + size]


@inner
def _padded(size, unit):
    return (size + unit - 1) // unit * unit


@inner
def _work(layout):
    """What one pass fills: padded k and v, scores, values and weights of a block, and gradients."""
    places = layout.contexts * _padded(layout.length, LANES)
    work = Work(
        _floats(_padded(layout.d, SPAN)),
        _floats(_padded(layout.d, SPAN)),
        _floats(places),
        _floats(places),
        _floats(places),
        _floats(_padded(layout.d, LANES)),
        _floats(_padded(layout.d, LANES)),
    )
    work.s[:] = -math.inf  # stays so where no token is: weight 0
    return work


@inner
def _are_near(layout, k):
    """Whether e^{s_l} can be taken of all scores as they are. A single token has the weight e^0 = 1 to the last bit."""
    return layout.length > 1 and math.sqrt(np.sum(k * k)) * layout.longest <= NEAR


@inner
def _block(layout, block):
    """The array that holds the tokens of a block, and where it starts there."""
    size = U(layout.place.size * layout.d)
    whole = U(layout.whole)
    return (layout.tokens, block * size) if block < whole else (layout.rest, (block - whole) * size)


@inner
def _asking(size, d, backward):
    """How far ahead a pass asks for tokens, and for how many numbers with every JAM / 2 tokens of its forward half."""
    some = U(JAM // 2) * d
    if size > U(2 * BLOCK):
        return some, some
    return size, U(ASK) * d if backward else some


@inner(fastmath=REASSOCIATE)
def _forward(tokens, at, d, ask, share, k, v, place, s, u):
    """s = X . k and u = X . v for the tokens of the block that starts ``at``.

    Asks for ``share`` numbers, from ``ask`` on, with every JAM / 2 tokens.
    """
    width = U(k.size) // U(SPAN) * U(SPAN)  # no change, but lets the compiler know that there is no remainder
    for i in range(U(0), U(place.size), U(JAM // 2)):
        for j in range(ask, ask + share, U(LINE)):
            ask_ahead(tokens, j)
        ask += share
        at1, at2, at3 = at + d, at + U(2) * d, at + U(3) * d
        s0 = s1 = s2 = s3 = 0.0
        u0 = u1 = u2 = u3 = 0.0
        for j in range(width):
            kj, vj = k[j], v[j]
            x0, x1, x2, x3 = tokens[at + j], tokens[at1 + j], tokens[at2 + j], tokens[at3 + j]
            s0, s1, s2, s3 = s0 + x0 * kj, s1 + x1 * kj, s2 + x2 * kj, s3 + x3 * kj
            u0, u1, u2, u3 = u0 + x0 * vj, u1 + x1 * vj, u2 + x2 * vj, u3 + x3 * vj
        p0, p1, p2, p3 = place[i], place[i + U(1)], place[i + U(2)], place[i + U(3)]
        s[p0], s[p1], s[p2], s[p3] = s0, s1, s2, s3
        u[p0], u[p1], u[p2], u[p3] = u0, u1, u2, u3
        at += U(JAM // 2) * d


@inner(fastmath={"contract"})
def _backward(tokens, at, d, ask, share, place, c, e, d_k, d_v):
    """d_v += sum c X and d_k += sum e X over the tokens of the block that starts ``at``.

    Asks for ``share`` numbers, from ``ask`` on, with every JAM tokens.
    """
    width = U(d_k.size) // U(LANES) * U(LANES)
    for i in range(U(0), U(place.size), U(JAM)):
        for j in range(ask, ask + share, U(LINE)):
            ask_ahead(tokens, j)
        ask += share
        at1, at2, at3 = at + d, at + U(2) * d, at + U(3) * d
        at4, at5, at6, at7 = at + U(4) * d, at + U(5) * d, at + U(6) * d, at + U(7) * d
        p0, p1, p2, p3 = place[i], place[i + U(1)], place[i + U(2)], place[i + U(3)]
        p4, p5, p6, p7 = place[i + U(4)], place[i + U(5)], place[i + U(6)], place[i + U(7)]
        c0, c1, c2, c3, c4, c5, c6, c7 = c[p0], c[p1], c[p2], c[p3], c[p4], c[p5], c[p6], c[p7]
        e0, e1, e2, e3, e4, e5, e6, e7 = e[p0], e[p1], e[p2], e[p3], e[p4], e[p5], e[p6], e[p7]
        for j in range(width):
            x0, x1, x2, x3 = tokens[at + j], tokens[at1 + j], tokens[at2 + j], tokens[at3 + j]
            x4, x5, x6, x7 = tokens[at4 + j], tokens[at5 + j], tokens[at6 + j], tokens[at7 + j]
            d_v[j] += (c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3) + (c4 * x4 + c5 * x5 + c6 * x6 + c7 * x7)
            d_k[j] += (e0 * x0 + e1 * x1 + e2 * x2 + e3 * x3) + (e4 * x4 + e5 * x5 + e6 * x6 + e7 * x7)
        at += U(JAM) * d


@inner
def _weigh(s, p, stride, near):
    """p = e^s, after the largest score of each context is subtracted if they are not ``near`` 0."""
    if not near:
        for first in range(0, s.size, stride):
            top = s[first : first + stride].max()
            for i in range(first, first + stride):
                s[i] -= top
    for i in range(U(s.size)):
        p[i] = exp_inside(s[i])


@inner(fastmath=REASSOCIATE)
def _settle(p, u, targets, first, stride):
    """f of each context of a block; leaves c in ``p`` and e in ``u``. Returns the sum of (f - y)^2."""
    loss, at, stride = 0.0, U(0), U(stride)
    for i in range(U(p.size) // stride):
        z = f = 0.0
        for l in range(at, at + stride):
            z += p[l]
            f += p[l] * u[l]
        inverse = 1.0 / z
        f *= inverse
        residual = f - targets[first + i]
        loss += residual * residual
        residual *= inverse
        for l in range(at, at + stride):
            c = p[l] * residual
            p[l] = c
            u[l] = c * (u[l] - f)
        at += stride
    return loss


@inner
def _pass(layout, first, last, k, v, work, backward):
    """The sum of (f - y)^2 over the blocks from ``first`` to before ``last``, and with ``backward`` d_k and d_v."""
    padded_k, padded_v, s, u, p, d_k, d_v = work
    padded_k[: layout.d], padded_v[: layout.d] = k, v
    d_k[:] = 0.0
    d_v[:] = 0.0
    near, place, d = _are_near(layout, k), layout.place, U(layout.d)
    size, stride = U(place.size) * d, s.size // layout.contexts
    ahead, share = _asking(size, d, backward)
    asked, rest = U(place.size // (JAM // 2)) * share, U(JAM) * d - U(2) * share
    loss = 0.0
    for block in range(U(first), U(last)):
        tokens, at = _block(layout, block)
        _forward(tokens, at, d, at + ahead, share, padded_k, padded_v, place, s, u)
        _weigh(s, p, stride, near)
        loss += _settle(p, u, layout.targets, block * U(layout.contexts), stride)
        if backward:
            _backward(tokens, at, d, at + ahead + asked, rest, place, p, u, d_k, d_v)
    return loss


@jit
def _run(layout, k, v, rate_a, rate_o, loss, loss_limit, last_gradient):
    """Fill loss[t], k[t], v[t] from k[0], v[0] on.

    Returns how many states were reached, and of the last one, if ``last_gradient``, the gradients.
    """
    work = _work(layout)
    scale = 2.0 / layout.n
    d_k, d_v = work.d_k[: layout.d], work.d_v[: layout.d]
    n, last, blocks = 0, loss.size - 1, layout.targets.size // layout.contexts
    for t in range(loss.size):
        loss[t] = _pass(layout, 0, blocks, k[t], v[t], work, t < last or last_gradient) / layout.n
        n = t + 1
        if t == last or not (loss[t] < math.inf and loss[t] <= loss_limit):
            break
        k[n] = k[t] - rate_a * (scale * d_k)
        v[n] = v[t] - rate_o * (scale * d_v)
    return n, scale * d_k, scale * d_v


# ---- k frozen: least squares -----------------------------------------------------------------------------------------


@inner(fastmath=REASSOCIATE)
def _dot(a, b):
    total = 0.0
    for i in range(U(a.size)):
        total += a[i] * b[i]
    return total


@inner(fastmath={"contract"})
def _subtract(a, factor, b):
    for i in range(U(a.size)):
        a[i] -= factor * b[i]


@jit
def _absorb(triangle, columns):
    """Reflect the rows with these ``columns`` into the upper ``triangle``: R'R + C'C becomes R'R. C is used up."""
    size = triangle.shape[0]
    for j in range(size):
        column, corner, scale = columns[j], triangle[j, j], 1.0
        below = _dot(column, column)
        if not SMALLEST <= corner * corner + below <= LARGEST:
            scale = max(abs(corner), np.abs(column).max())
            if scale == 0.0:
                continue
            column /= scale
            corner /= scale
            below = _dot(column, column)
        length = math.copysign(math.sqrt(corner * corner + below), corner)
        pivot = corner + length
        share = 1.0 / (length * pivot)  # 2 / |reflector|^2
        for i in range(j + 1, size):
            factor = share * (pivot * triangle[j, i] + _dot(column, columns[i]))
            triangle[j, i] -= factor * pivot
            _subtract(columns[i], factor, column)
        triangle[j, j] = -length * scale


@inner(fastmath={"contract"})
def _attend(tokens, at, d, p, first, length, column, columns):
    """Write the attention output sum_l P_l X_l of one context into a column."""
    z = 0.0
    for l in range(length):
        z += p[first + l]
    for l in range(length):
        weight = p[first + l] / z
        for j in range(d):
            columns[j, column] += weight * tokens[at + l * d + j]


@jit
def _triangle(layout, first, last, k):
    """R of the QR decomposition of [attention outputs, targets], of the blocks from ``first`` to before ``last``."""
    work, d = _work(layout), U(layout.d)
    work.k[: layout.d] = k
    near, size, stride = _are_near(layout, k), U(layout.place.size) * d, work.s.size // layout.contexts
    ahead, share = _asking(size, d, False)
    triangle, columns = np.zeros((layout.d + 1, layout.d + 1)), np.zeros((layout.d + 1, ROWS))
    row = 0
    for block in range(U(first), U(last)):
        tokens, at = _block(layout, block)
        _forward(tokens, at, d, at + ahead, share, work.k, work.v, layout.place, work.s, work.u)
        _weigh(work.s, work.p, stride, near)
        for i in range(U(layout.contexts)):
            _attend(tokens, at, d, work.p, i * U(stride), U(layout.length), row, columns)
            columns[layout.d, row] = layout.targets[block * U(layout.contexts) + i]
            at += U(layout.length) * d
            row += 1
            if row == ROWS:
                _absorb(triangle, columns)
                columns[:] = 0.0
                row = 0
    _absorb(triangle, columns)
    return triangle


@inner(fastmath=REASSOCIATE)
def _quadratic(triangle, weights, slope):
    """|R (v, -1)|^2, given (v, -1), and half its gradient by v and 1."""
    slope[:] = 0.0
    loss = 0.0
    for i in range(triangle.shape[0]):
        row = triangle[i]
        product = 0.0
        for j in range(i, row.size):
            product += row[j] * weights[j]
        loss += product * product
        for j in range(i, row.size):
            slope[j] += row[j] * product
    return loss


@jit
def _run_frozen(triangle, n, k, v, rate_o, loss, loss_limit):
    """What `_run` does when k does not move, from R."""
    d, last = v.shape[1], loss.size - 1
    weights, slope = np.empty(d + 1), np.empty(d + 1)
    weights[d] = -1.0
    for t in range(loss.size):
        weights[:d] = v[t]
        loss[t] = _quadratic(triangle, weights, slope) / n
        if t == last or not (loss[t] < math.inf and loss[t] <= loss_limit):
            break
        k[t + 1] = k[t]
        v[t + 1] = v[t] - rate_o * (2.0 / n * slope[:d])
    return t + 1


# ---- many contexts, in parts -----------------------------------------------------------------------------------------


def _edges(layout):
    """First block of each part, and the end, as even as they can be cut."""
    blocks = layout.targets.size // layout.contexts
    parts = min(PARTS, blocks) if layout.tokens.size >= LARGE else 1
    return [blocks * part // parts for part in range(parts + 1)]


@jit
def _some_parts(layout, edges, thread, threads, k, v, losses, gradients, backward):
    """Every ``threads``-th part from the ``thread``-th on: its share of the loss and of the gradients."""
    work = _work(layout)
    for i in range(thread, edges.size - 1, threads):
        losses[i] = _pass(layout, edges[i], edges[i + 1], k, v, work, backward)
        gradients[i, 0], gradients[i, 1] = work.d_k[: layout.d], work.d_v[: layout.d]


def _run_parts(layout, edges, pool, k, v, rate_a, rate_o, loss, loss_limit, last_gradient):
    """What `_run` does, by several threads. Each adds up whole parts, so their number changes no bit."""
    parts, last, scale = len(edges) - 1, loss.size - 1, 2.0 / layout.n
    threads = max(1, min(THREADS, parts))
    losses, gradients, edges = np.empty(parts), np.zeros((parts, 2, layout.d)), np.array(edges)
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(loss.size):
            task = threads, k[t], v[t], losses, gradients, t < last or last_gradient
            done = [pool.submit(_some_parts, layout, edges, thread, *task) for thread in range(threads)]
            for future in done:
                future.result()
            loss[t], (d_k, d_v) = losses.sum() / layout.n, scale * gradients.sum(axis=0)
            if t == last or not (loss[t] < math.inf and loss[t] <= loss_limit):
                break
            k[t + 1], v[t + 1] = k[t] - rate_a * d_k, v[t] - rate_o * d_v
    return t + 1, d_k, d_v


def _descend(layout, k, v, rate_a, rate_o, loss, loss_limit, last_gradient):
    edges = _edges(layout)
    if len(edges) == 2:
        return _run(layout, k, v, rate_a, rate_o, loss, loss_limit, last_gradient)
    with ThreadPoolExecutor(THREADS) as pool:
        return _run_parts(layout, edges, pool, k, v, rate_a, rate_o, loss, loss_limit, last_gradient)


def _descend_frozen(layout, k, v, rate_o, loss, loss_limit):
    edges = _edges(layout)
    with ThreadPoolExecutor(THREADS) as pool:
        parts = list(pool.map(lambda part: _triangle(layout, *part, k[0]), pairwise(edges)))
    triangle = parts[0]
    for part in parts[1:]:
        _absorb(triangle, np.ascontiguousarray(part.T))
    return _run_frozen(triangle, layout.n, k, v, rate_o, loss, loss_limit)


# ---- what others call ------------------------------------------------------------------------------------------------

Path = namedtuple("Path", "loss k v")


def _checked(data, k, v):
    """The layout of ``data``, and ``k`` and ``v`` as (d,) float64 arrays of their own."""
    if not isinstance(data, Tokens):
        raise InputError(f"data must be made by Tokens.from_arrays or sample_tokens, not {type(data).__name__}")
    pair = (_reals(name, value, (data.d,)) for name, value in (("k", k), ("v", v)))
    return data._layout, *(np.array(array, dtype=np.float64) for array in pair)


def _state(data, k, v, gradient):
    """Loss and, if ``gradient``, the gradients at one state."""
    layout, k, v = _checked(data, k, v)
    loss = np.empty(1)
    _, d_k, d_v = _descend(layout, k[None], v[None], 0.0, 0.0, loss, math.inf, gradient)
    return float(loss[0]), d_k, d_v


def evaluate(data, k, v):
    """Loss, the mean over contexts of (f - y)^2, f = sum_l P_l (X_l . v), P the softmax of X_l . k.

    Parameters
    ----------
    data : Tokens
    k, v : (d,)
        attention and output parameter

    Returns
    -------
    float

    Raises
    ------
    InputError
        shapes do not match the data, or a parameter is not finite

    Examples
    --------
    >>> data = Tokens.from_arrays([[[1.0, 0.0], [0.0, 1.0]]], [0.5])
    >>> evaluate(data, [0.0, 0.0], [3.0, 0.0])
    1.0
    """
    return _state(data, k, v, gradient=False)[0]


def loss_and_gradient(data, k, v):
    """Loss and its gradients by ``k`` and ``v``.

    loss = mean (f - y)^2; with r = f - y and N contexts,

        d loss / d v = (2/N) sum r sum_l P_l X_l,   d loss / d k = (2/N) sum r sum_l P_l (X_l . v - f) X_l.

    Parameters and errors are those of `evaluate`.

    Returns
    -------
    loss, d_k, d_v : float, (d,), (d,)

    Examples
    --------
    >>> data = Tokens.from_arrays([[[1.0, 0.0], [0.0, 1.0]]], [0.5])
    >>> loss_and_gradient(data, [0.0, 0.0], [3.0, 0.0])
    (1.0, array([ 1.5, -1.5]), array([1., 1.]))
    """
    return _state(data, k, v, gradient=True)


def descend(data, k, v, rate_a, rate_o, steps, loss_limit=math.inf):
    """Full-batch gradient descent on both layers at once.

    k <- k - rate_a d loss / d k,   v <- v - rate_o d loss / d v, both from the same gradient.

    Parameters
    ----------
    data : Tokens
    k, v : (d,)
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
        ``loss[t]``, ``k[t]``, ``v[t]`` after t updates, t = 0..steps, or up to the state that stopped the run.
        A run cut into several calls has the same bits. With k frozen the steps are those of the same least-squares
        problem in other coordinates, and agree with `loss_and_gradient` to rounding.

    Raises
    ------
    InputError
        as in `evaluate`, or a rate is negative or not finite, or steps is not a whole number of at least 0

    Examples
    --------
    >>> data = Tokens.from_arrays([[[1.0, 0.0], [0.0, 1.0]]], [0.5])
    >>> path = descend(data, [0.0, 0.0], [0.0, 0.0], rate_a=1.0, rate_o=0.5, steps=2)
    >>> path.loss.tolist()
    [0.25, 0.0625, 0.015625]
    """
    layout, k, v = _checked(data, k, v)
    rate_a, rate_o, steps = rate("rate_a", rate_a), rate("rate_o", rate_o), whole("steps", steps, low=0)
    loss_limit = math.inf if loss_limit == math.inf else real("loss_limit", loss_limit, low=0.0)
    loss, ks, vs = np.empty(steps + 1), np.empty((steps + 1, layout.d)), np.empty((steps + 1, layout.d))
    ks[0], vs[0] = k, v
    if rate_a:
        n = _descend(layout, ks, vs, rate_a, rate_o, loss, loss_limit, False)[0]
    else:
        n = _descend_frozen(layout, ks, vs, rate_o, loss, loss_limit)
    return Path(loss[:n], ks[:n], vs[:n])
