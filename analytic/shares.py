r"""The law of the share of target letters in a word, compressed to a few hundred points.

A word of m letters has n targets (n | m is Binomial(m, k/d)) and r = m - n others. With one score on all
targets and one on all others, g apart, the attention mass on the targets is

    A = n e^g / (n e^g + r) = 1 / (1 + e^{-g} s),    s = r/n,

so every population quantity of a symmetric model is an expectation of a function of the odds s whose only
pole is at s = -e^g < 0. On an octave [2^b, 2^{b+1}] that function is, whatever g is, a polynomial of degree
23 up to a relative (3 + sqrt 8)^-24 = 4e-19 (times a small constant). So the masses of all (m, n), computed
by a recursion, are replaced by weights at 24 Chebyshev points an octave, exact for such polynomials.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .errors import broadcasting, reals
from .jit import jit
from .moments import share_moments

LEFT_OUT = 1e-18  # mass that the sums leave out: so much of the lengths, and so much of the n given the length
POINTS = 24  # per octave
BLOCK_ROWS, BLOCK_CELLS = 256, 1 << 15  # lengths, and pairs (m, n), done at a time: what a cache holds


@jit
def _row_ranges(lengths, probabilities, odds, cut):
    """For each length the range low..high of n >= 1 whose mass P(m, n) counts, and the mass of the lowest.

    Binomial masses by the ratio of neighbours, (m - n) odds / (n + 1), outwards from the mode; beyond the last
    n kept the masses fall faster than a geometric series, so at most ``cut`` is left out on each side.
    """
    rows = len(lengths)
    low = np.empty(rows, np.int64)
    high = np.empty(rows, np.int64)
    lowest_mass = np.empty(rows)
    for i in range(rows):
        m = lengths[i]
        mode = min(m, int((m + 1) * odds / (1 + odds)))
        total = 1.0  # relative to the mode
        mass = 1.0
        n = mode
        while n < m:
            ratio = (m - n) * odds / (n + 1)
            mass *= ratio
            if probabilities[i] * mass < cut * (1 - ratio):  # never while masses still grow
                break
            total += mass
            n += 1
        high[i] = n
        mass = lowest = 1.0
        n = mode
        while n > 0:
            ratio = n / ((m - n + 1) * odds)
            mass *= ratio
            if probabilities[i] * mass < cut * (1 - ratio):
                break
            total += mass
            n -= 1
            if n > 0:
                lowest = mass
        low[i] = max(n, 1)
        if mode == 0:
            lowest = m * odds
        lowest_mass[i] = lowest * probabilities[i] / total
    return low, high, lowest_mass


@jit
def _columns(low, high):
    """For each n from ``smallest`` on: its first row, and where its column starts among all cells."""
    smallest = low.min()
    columns = max(high.max() - smallest + 1, 0)
    first = np.full(columns, len(low))
    last = np.full(columns, -1)
    for i in range(len(low)):
        for c in range(low[i] - smallest, high[i] - smallest + 1):
            first[c] = min(first[c], i)
            last[c] = i
    start = np.zeros(columns + 1, np.int64)
    for c in range(columns):
        start[c + 1] = start[c] + max(last[c] - first[c] + 1, 0)
    return smallest, first, start


@jit
def _block(low, high, end):
    """The first of the rows before ``end`` that are done at a time, and the range of their n."""
    begin, bottom, top = end - 1, low[end - 1], high[end - 1]
    while begin > 0 and end - begin < BLOCK_ROWS:
        wider = min(bottom, low[begin - 1]), max(top, high[begin - 1])
        if (wider[1] - wider[0] + 1) * (end - begin + 1) > BLOCK_CELLS:
            break
        begin -= 1
        bottom, top = wider
    return begin, bottom, top


@jit(fastmath={"reassoc", "contract", "nsz"})
def _compress(lengths, low, high, lowest_mass, odds, smallest, first, start, beyond, lowest, moments):
    """The cells P(m, n), block of rows by block from the longest words on, summed in two ways.

    beyond : in the place of each cell the sum of its column from there on
    moments : sums of P(m, n) T_j(x) and of P(m, n) T_j(x) / n, x in [-1, 1] the place of s = r/n in its octave
    atom : the same for s = 0, j = 0
    """
    points = moments.shape[2]
    ratio = odds / (smallest + 1 + np.arange(len(first)))  # of P(m, n + 1) and P(m, n), over m - n
    atom = np.zeros(2)
    x = np.empty(BLOCK_ROWS)
    older = np.empty(BLOCK_ROWS)
    end = len(lengths)
    while end > 0:
        begin, bottom, top = _block(low, high, end)
        cells = np.zeros((top - bottom + 1, end - begin + 8))  # + 8: columns a page apart share cache sets
        for i in range(begin, end):
            m = lengths[i]
            mass = lowest_mass[i]
            for n in range(low[i], high[i] + 1):
                cells[n - bottom, i - begin] = mass
                mass *= (m - n) * ratio[n - smallest]

        for n in range(bottom, bottom + len(cells)):
            c = n - smallest
            column = cells[n - bottom]
            i = max(begin, first[c])
            stop = min(end, first[c] + start[c + 1] - start[c])
            shift = start[c] - first[c]
            running = beyond[shift + end] if shift + end < start[c + 1] else 0.0
            for j in range(stop - 1, i - 1, -1):
                running += column[j - begin]
                beyond[shift + j] = running

            if i < stop and lengths[i] == n:
                atom[0] += column[i - begin]
                atom[1] += column[i - begin] / n
                i += 1
            octave = 0
            while i < stop:
                while lengths[i] - n >= n * 2.0 ** (lowest + octave + 1):
                    octave += 1
                limit = n * 2.0 ** (lowest + octave + 1)
                scale = 2.0 ** (1 - lowest - octave) / n
                old = column[i - begin :]
                count = 0
                while i < stop and lengths[i] - n < limit:
                    x[count] = (lengths[i] - n) * scale - 3
                    older[count] = old[count] * x[count]  # T_{-1} = T_1
                    count += 1
                    i += 1
                for p in range(points):
                    sum_ = 0.0
                    for j in range(count):
                        sum_ += old[j]
                        new = 2 * x[j] * old[j] - older[j]
                        older[j] = old[j]
                        old[j] = new
                    moments[0, octave, p] += sum_
                    moments[1, octave, p] += sum_ / n
        end = begin
    return atom


@jit
def rejected_mass(w_target, w_other, lengths, smallest, first, start, beyond):
    """P(n >= 1 and n w_target + r w_other <= 0): a bisection over the rows of each column."""
    mass = 0.0
    for c in range(len(first)):
        size = start[c + 1] - start[c]
        if size == 0:
            continue
        n = smallest + c
        threshold = n * w_target
        low = 0  # rows before `low` are on the accepted side for w_other <= 0, on the rejected one for w_other > 0
        high = size
        while low < high:
            middle = (low + high) // 2
            r = lengths[first[c] + middle] - n
            accepted = threshold + r * w_other > 0 if r else threshold > 0
            if accepted == (w_other <= 0):
                low = middle + 1
            else:
                high = middle
        rest = beyond[start[c] + low] if low < size else 0.0
        mass += rest if w_other <= 0 else beyond[start[c]] - rest
    return mass


class ShareLaw:
    """The joint law of (m, n) for d letters of which k are targets, as far as symmetric models see it.

    Attributes
    ----------
    q : P(n >= 1) = P(y = +1)
    odds : (points,) values of s = r/n; the first one is 0, words of targets only
    weights : (points,) their weights: E[phi(s); n >= 1] = weights @ phi(odds)
    weights_over_n : (points,) the same for E[phi(s) / n; n >= 1]
    left_out : bound on the mass left out (2e-18, more only for a `Custom` law with a heavy tail)

    Examples
    --------
    >>> from analytic.lengths import Geometric
    >>> law = ShareLaw(50, 1, Geometric(1 / 49))
    >>> round(float(law.weights @ (1 / (1 + law.odds) ** 2)), 14)  # E[x^2]
    0.00198915995506
    """

    def __init__(self, d, k, law):
        odds = k / (d - k)
        lengths, probabilities = law.support(LEFT_OUT)
        self.left_out = LEFT_OUT + max(LEFT_OUT, getattr(law, "left_out", 0.0))
        low, high, lowest_mass = _row_ranges(lengths, probabilities, odds, LEFT_OUT / (2 * len(lengths)))
        smallest, first, start = _columns(low, high)
        lowest = -int(np.ceil(np.log2(high.max())))
        octaves = int(np.log2(lengths[-1])) + 1 - lowest
        beyond = np.empty(start[-1])
        moments = np.zeros((2, octaves, POINTS))
        atom = _compress(lengths, low, high, lowest_mass, odds, smallest, first, start, beyond, lowest, moments)
        self.table = (lengths, smallest, first, start, beyond)

        moments = moments[:, (used := moments[0, :, 0] > 0)]
        angles = (np.arange(POINTS) + 0.5) * np.pi / POINTS
        interpolation = 2 / POINTS * np.cos(np.outer(np.arange(POINTS), angles))  # weights from the moments
        interpolation[0] /= 2
        points = np.ldexp((np.cos(angles) + 3) / 2, lowest + np.flatnonzero(used)[:, None])
        weights = (moments @ interpolation).reshape(2, -1)
        self.odds = np.append(0.0, points.ravel())
        self.weights = np.append(atom[0], weights[0])
        self.weights_over_n = np.append(atom[1], weights[1])
        self.q = float(self.weights.sum())

    def positive_error(self, logit_gap, beta_target, beta_other):
        """P(y = +1 and f <= 0) of the symmetric model; arguments broadcast.

        f has the sign of n e^g (beta_target - 1) + r (beta_other - 1).
        """
        g = np.asarray(logit_gap, dtype=np.float64)
        w_target = np.exp(np.minimum(g, 0)) * (np.asarray(beta_target) - 1)
        w_other = np.exp(-np.maximum(g, 0)) * (np.asarray(beta_other) - 1)
        w_target, w_other = np.broadcast_arrays(w_target, w_other)
        masses = [rejected_mass(a, b, *self.table) for a, b in zip(w_target.ravel(), w_other.ravel(), strict=True)]
        return np.reshape(masses, w_target.shape)


@lru_cache(maxsize=4)
def share_law(d, k, law):
    """The `ShareLaw` of (d, k, law), kept for the next call."""
    return ShareLaw(d, k, law)


@dataclass(frozen=True)
class AttentionMoments:
    """Moments of the attention mass A on S in the symmetric model, arrays over the arguments.

    ====================  ====================================================
    ``q``                 P(y = +1)
    ``negative``          P(y = -1)
    ``mass``              mu = E[A | y = +1]
    ``rest``              1 - mu = E[1 - A | y = +1]
    ``variance``          Var(A | y = +1)
    ``odds_square``       E[((m - n)/n)^2 | y = +1], independent of g
    ``target_contrast``   E[n e^2g / Z^2], Z = n e^g + m - n
    ``other_contrast``    E[(m - n) / Z^2]
    ====================  ====================================================
    """

    q: np.ndarray
    negative: np.ndarray
    mass: np.ndarray
    rest: np.ndarray
    variance: np.ndarray
    odds_square: np.ndarray
    target_contrast: np.ndarray
    other_contrast: np.ndarray


@broadcasting
def attention_moments(d, k, law, logit_gap):
    """The `AttentionMoments` at logit gap g, each with a small relative error at any g (nothing cancels).

    Arguments broadcast; ``law`` may be None, the geometric law that balances the labels best.

    >>> m = attention_moments(50, 1, None, 10.4265362715)
    >>> round(float(4 * m.q * m.variance * 1e6), 3)  # close to the loss after phase 3
    1.453
    """
    settings = share_moments(d, k, law)
    g = reals("logit_gap", logit_gap)
    laws = np.asarray(settings.law, dtype=object)
    *setting, g = np.broadcast_arrays(settings.d, settings.k, laws, np.clip(g, -700, 700))
    out = np.empty((7, g.size))
    keys = list(zip(*(array.ravel().tolist() for array in setting), strict=True))
    for key in dict.fromkeys(keys):
        chosen = np.array([other == key for other in keys])
        shares = share_law(*key)
        out[:, chosen] = _attention_moments(g.ravel()[chosen], shares.odds, shares.weights, shares.weights_over_n)
    q, mass, rest, variance, odds_square, target, other = out.reshape(7, *g.shape)
    return AttentionMoments(q, settings.G, mass, rest, variance, odds_square, target, other + settings.G1)


@jit
def _attention_moments(g, odds, weights, weights_over_n):
    out = np.zeros((7, len(g)))
    q = weights.sum()
    for i in range(len(g)):
        e = np.exp(g[i])
        for j in range(len(odds)):
            mass = e / (odds[j] + e)
            rest = odds[j] / (odds[j] + e)
            out[1, i] += weights[j] * mass / q
            out[2, i] += weights[j] * rest / q
            out[4, i] += weights[j] * odds[j] ** 2 / q
            out[5, i] += weights_over_n[j] * mass**2
            out[6, i] += weights_over_n[j] * mass * rest / e  # (1-A)^2 / r = A (1-A) e^-g / n
        for j in range(len(odds)):
            smaller = e if out[1, i] < out[2, i] else odds[j]  # the variance of A, or of 1 - A
            out[3, i] += weights[j] * (smaller / (odds[j] + e) - min(out[1, i], out[2, i])) ** 2 / q
        out[0, i] = q
    return out
