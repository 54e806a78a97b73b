r"""Even pairs in closed form from zero init, and the hard-margin direction of its attention outputs.

The data are all binary strings of the lengths 1 to L_max, so infinite data are the data. Two symmetries of zero init
last for ever: renaming both symbols changes nothing, and neither does a symbol between the first and the last one. So

    u(l, b) = v_l,    W[(1, b), (L, c)] = S_L0 if b = c else S_L1,    W[(l, b), (L, c)] = S_Ll  for 1 < l <= L,

(l, b) being the token with symbol b at position l, and the output f_L+ or f_L- of a string depends on its length and
label only:

    P+ = softmax of (S_L0, S_L2, ..., S_LL),   P- = softmax of (S_L1, S_L2, ..., S_LL),   f_Ly = sum_l Py_l v_l,
    loss = (1/L_max) [ln(1 + e^{-v_1}) + sum_{L >= 2} (ln(1 + e^{-f_L+}) + ln(1 + e^{f_L-})) / 2].

That is L_max^2 / 2 numbers in place of 2^L_max strings: exact for every plan and every L_max, however large.
"""

import math
from dataclasses import dataclass

import numpy as np

from .errors import InputError, rate, real, whole
from .gradients.even_pairs import _checked
from .gradients.exponential import exp
from .jit import jit
from .margin import hard_margin_by

TURNS = 50  # of improving a string, at most; a few are usual
LONGEST = 2000  # L_max of symmetric states: S has L_max^2 entries


# ---- single steps from zero init -------------------------------------------------------------------------------------


def output_update(max_length, rate_o):
    """c, the entry of u at both tokens of position 1 after one output step from zero init; all others stay 0.

    c = rate_o / (4 L_max): the labels of longer strings are balanced given any one token, so that only the two strings
    of length 1 pull. Claim even_pairs.output_update.

    Parameters
    ----------
    max_length : int
    rate_o : float
        multiplies the gradient of the mean over lengths of the mean over strings of ln(1 + e^{-y f})

    Examples
    --------
    >>> output_update(10, 40.0)
    1.0
    """
    return rate("rate_o", rate_o) / (4.0 * whole("max_length", max_length))


def attention_gradient(max_length, c):
    """dL/dW at W = 0 and u = c (E_{1,0} + E_{1,1}), (D, D), exact.

    With s+ = 1 / (1 + e^{c/L}) and s- = 1 - s+, the column of the last token (L, b'), L >= 2, is -(c / (L_max L)) times

        (1, b):  (1 - 1/L) s+ / 4  if b = b',  else  -(1 - 1/L) s- / 4,
        (l, b), 1 < l < L:  (s- - s+) / (8 L),        (L, b'):  (s- - s+) / (4 L).

    Claim even_pairs.attention_gradient.

    Examples
    --------
    >>> attention_gradient(2, 0.0).any()  # dL/dW = 0 where u = 0
    np.False_
    >>> attention_gradient(2, 2.0)[:, 2].round(4)  # column of the last token (2, 0)
    array([-0.0168,  0.0457, -0.0289,  0.    ])
    """
    max_length, c = whole("max_length", max_length), real("c", c)
    gradient = np.zeros((2 * max_length, 2 * max_length))
    for length in range(2, max_length + 1):
        miss = 1.0 / (1.0 + math.exp(min(c / length, 700.0)))
        skew = math.tanh(c / (2 * length))  # s- - s+
        scale = -c / (max_length * length)
        for last in (2 * length - 2, 2 * length - 1):
            gradient[last % 2, last] = scale * (1 - 1 / length) * miss / 4
            gradient[1 - last % 2, last] = -scale * (1 - 1 / length) * (1 - miss) / 4
            gradient[2 : 2 * length - 2, last] = scale * skew / (8 * length)
            gradient[last, last] = scale * skew / (4 * length)
    return gradient


def attention_update(max_length, rate_o, rate_a):
    """W after one output step and one attention step from zero init, (D, D).

    W_1 = -rate_a dL/dW at W = 0 and c = rate_o / (4 L_max). Claim even_pairs.attention_update.

    Examples
    --------
    >>> W = attention_update(10, 95.0, 300.0)
    >>> W[0, 2] > 0 > W[1, 2]  # the last token (2, 0) looks at a first 0 and away from a first 1
    np.True_
    """
    return -rate("rate_a", rate_a) * attention_gradient(max_length, output_update(max_length, rate_o))


def output_only_loss(max_length):
    """The infimum of the loss over all u at uniform attention (W = 0): (1 - 1/L_max) ln 2. It is not attained.

    By symmetry and convexity u(l, 0) = u(l, 1) is best; then both labels of a length share one output, and only
    length 1, which has one label, goes below ln 2. Claim even_pairs.output_only.

    Examples
    --------
    >>> round(output_only_loss(10), 4)
    0.6238
    """
    return (1.0 - 1.0 / whole("max_length", max_length)) * math.log(2.0)


# ---- symmetric states ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SymmetricPath:
    """Exact gradient descent from a symmetric state; index t is the state after t updates.

    Attributes
    ----------
    loss, accuracy, attention_gap : (T + 1,) float64
    scores : (L_max, L_max + 1) float64
        of the last state: row L - 1 holds S_L0 (the first symbol agrees with the last), S_L1 (it does not), S_L2, ...
    weights : (L_max,) float64
        of the last state: v_1, ..., v_{L_max}
    """

    loss: np.ndarray
    accuracy: np.ndarray
    attention_gap: np.ndarray
    scores: np.ndarray
    weights: np.ndarray


def symmetric_path(max_length, rate_a, rate_o, steps, start=None):
    """Gradient descent on all strings from a symmetric state, with a few numbers in place of W and u.

    The same as `analytic.gradients.even_pairs.descend` from `expand(*start)`, up to rounding, in time L_max^2 a step.

    Parameters
    ----------
    max_length : int
        L_max, at most 2000
    rate_a, rate_o : float
        step sizes of W and u; 0 freezes a layer
    steps : int
    start : (scores, weights) of a `SymmetricPath`, or None for zero init

    Returns
    -------
    SymmetricPath

    Raises
    ------
    InputError
        an argument is out of range, or start does not fit max_length

    Examples
    --------
    The three-phase plan:

    >>> first = symmetric_path(10, 0.0, 95.0, 1)
    >>> second = symmetric_path(10, 300.0, 0.0, 1, (first.scores, first.weights))
    >>> third = symmetric_path(10, 0.0, 5.0, 400, (second.scores, second.weights))
    >>> [round(float(path.loss[-1]), 3) for path in (first, second, third)], float(third.accuracy[-1])
    ([0.67, 0.517, 0.084], 1.0)
    """
    max_length = whole("max_length", max_length, high=LONGEST)
    rate_a, rate_o, steps = rate("rate_a", rate_a), rate("rate_o", rate_o), whole("steps", steps, low=0)
    scores, weights = _start(max_length, start)
    loss, gap, right = np.empty(steps + 1), np.empty(steps + 1), np.zeros((steps + 1, max_length, 2))
    _descend(scores, weights, rate_a, rate_o, loss, right, gap)
    return SymmetricPath(loss, _accuracy(right), gap, scores, weights)


def _start(max_length, start):
    shapes = (max_length, max_length + 1), (max_length,)
    if start is None:
        return tuple(np.zeros(shape) for shape in shapes)
    arrays = tuple(np.array(array, dtype=np.float64) for array in start)
    if tuple(array.shape for array in arrays) != shapes or not all(np.isfinite(array).all() for array in arrays):
        raise InputError(f"start must be finite scores and weights of the shapes {shapes[0]} and {shapes[1]}")
    return arrays


def _accuracy(right):
    """Share of right strings: 2^(L - 1) of each length and label are or are not (and length 1 counts for both)."""
    length = np.arange(1, right.shape[1] + 1)
    share = 2.0 ** (length - 1.0 - len(length)) / (2.0 - 2.0 ** (1.0 - len(length)))  # no power overflows
    return right.sum(axis=2) @ share


def expand(scores, weights):
    """W (D, D) and u (D,) of a symmetric state.

    Examples
    --------
    >>> W, u = expand([[0, 0, 0], [1.0, -1.0, 0.5]], [2.0, -2.0])
    >>> W[:, 2], u
    (array([ 1. , -1. ,  0.5,  0. ]), array([ 2.,  2., -2., -2.]))
    """
    weights = np.asarray(weights, dtype=float)
    scores, _ = _start(len(weights), (scores, weights))
    W = np.zeros((2 * len(weights), 2 * len(weights)))
    for length in range(2, len(weights) + 1):
        for last in (2 * length - 2, 2 * length - 1):
            W[last % 2, last], W[1 - last % 2, last] = scores[length - 1, :2]
            W[2 : 2 * length - 2, last] = np.repeat(scores[length - 1, 2:length], 2)
            W[last, last] = scores[length - 1, length]
    return W, np.repeat(weights, 2)


@jit
def _softplus(x):
    return math.log1p(math.exp(-abs(x))) + max(x, 0.0)


@jit
def _logistic(x):
    decay = math.exp(-abs(x))
    return (1.0 if x > 0.0 else decay) / (1.0 + decay)


@jit
def _descend(scores, weights, rate_a, rate_o, loss, right, gap):
    """Fill the arrays of each state; scores and weights become those of the last."""
    longest = weights.size
    d_weights, shares, d_scores = np.zeros(longest), np.zeros(longest), np.zeros_like(scores)
    for t in range(loss.size):
        d_weights[:] = 0.0
        d_scores[:] = 0.0
        loss[t], gap[t] = _softplus(-weights[0]) / longest, 0.0
        right[t, 0, :] = weights[0] > 0.0
        d_weights[0] = -0.5 * _logistic(-weights[0]) / longest
        for length in range(2, longest + 1):
            row, d_row = scores[length - 1], d_scores[length - 1]
            for label in range(2):  # 0: even, 1: odd
                y = 1.0 - 2.0 * label
                top = row[label]
                for l in range(2, length + 1):
                    top = max(top, row[l])
                total = 0.0
                for l in range(1, length + 1):
                    shares[l - 1] = math.exp(row[label if l == 1 else l] - top)
                    total += shares[l - 1]
                f = 0.0
                for l in range(length):
                    shares[l] /= total
                    f += shares[l] * weights[l]
                loss[t] += 0.5 * _softplus(-y * f) / longest
                right[t, length - 1, label] = y * f > 0.0
                gap[t] += y * shares[0] / (longest - 1)
                c = -0.5 * y * _logistic(-y * f) / longest
                for l in range(length):
                    pull = c * shares[l] * (weights[l] - f)
                    d_weights[l] += 0.5 * c * shares[l]
                    if l == 0:
                        d_row[label] = 0.5 * pull
                    else:
                        d_row[l + 1] += (0.5 if l == length - 1 else 0.25) * pull
        if t < loss.size - 1:
            for l in range(longest):
                weights[l] -= rate_o * d_weights[l]
            for length in range(2, longest + 1):
                for l in range(length + 1):
                    scores[length - 1, l] -= rate_a * d_scores[length - 1, l]


# ---- hard margin -----------------------------------------------------------------------------------------------------


def hard_margin(strings, W):
    """The direction u that separates the even from the odd strings by the largest margin, attention being given.

    u* = argmax over |u| = 1 of min over strings of y f, f = sum_l P_l u[x_l]: all strings count, whatever their length.

    Parameters
    ----------
    strings : analytic.gradients.even_pairs.Strings
    W : (D, D)
        attention scores, which give P

    Returns
    -------
    analytic.margin.Margin
        ``support`` holds the places of strings in the order of `analytic.gradients.even_pairs.scores`

    Raises
    ------
    InputError
        the shape does not match the strings, or an entry is not finite

    Examples
    --------
    >>> from analytic.gradients.even_pairs import Strings
    >>> hard_margin(Strings(2), np.zeros((4, 4))).separable  # uniform attention: f(00) + f(11) = f(01) + f(10)
    False
    >>> W = np.zeros((4, 4))
    >>> W[[0, 1], [2, 3]] = 800.0  # "00" and "11" look at their first token only
    >>> (hard_margin(Strings(2), W).direction * np.sqrt(20)).round(9)
    array([ 1.,  1., -3., -3.])
    """
    max_length, W = _checked(strings, W=W)

    def worst(direction):
        point = np.zeros(strings.dimension)
        key, margin = _worst(max_length, W, direction, point)
        return key, point, margin

    return hard_margin_by(worst, np.zeros(strings.dimension), size=1.0)


@jit
def _worst(max_length, W, u, point):
    """A string with the least y f: its place and its y f; ``point`` becomes the z with z . u = y f.

    Among the strings of one length, last and first symbol: y f <= v iff sum_l e_l (y u_l - v) <= 0, and each symbol
    makes its own summand least. With v the y f of any string, taking those symbols gives one with less, until it is
    the least (Dinkelbach's method). That y u_l - v = y sum_m P_m (u_l - u_m) keeps its digits where v is almost y u_l,
    and only logarithms of summands are compared, as e may be out of range.
    """
    tokens, shares = np.zeros(max_length, np.int64), np.zeros(max_length)
    least, place = np.inf, 0
    for length in range(1, max_length + 1):
        for last in range(2 * length - 2, 2 * length):
            for first in range(2):
                if length == 1 and first != last:
                    continue
                y = 1.0 if first == last % 2 else -1.0
                tokens[0], tokens[length - 1] = first, last
                for l in range(1, length - 1):
                    tokens[l] = 2 * l if y * u[2 * l] <= y * u[2 * l + 1] else 2 * l + 1
                for _ in range(TURNS):
                    value = y * _output(tokens[:length], W, u, shares)
                    if value < least:
                        least, place = value, (1 << length) - 2
                        point[:] = 0.0
                        for l in range(length):
                            place += tokens[l] % 2 << (length - 1 - l)
                            point[tokens[l]] = y * shares[l]
                    if not _improve(tokens[:length], W, u, y):
                        break
    return place, least


@jit
def _improve(tokens, W, u, y):
    """For each symbol in the middle, take the one with the lesser summand; says whether any changed."""
    length, changed = tokens.size, False
    other = tokens.copy()
    for l in range(1, length - 1):
        sign0, size0 = _summand(2 * l, tokens, W, u, y)
        sign1, size1 = _summand(2 * l + 1, tokens, W, u, y)
        if sign0 != sign1:
            other[l] = 2 * l if sign0 < sign1 else 2 * l + 1
        elif size0 != size1:
            other[l] = 2 * l if (size0 < size1) == (sign0 > 0) else 2 * l + 1
        changed |= other[l] != tokens[l]
    tokens[:] = other
    return changed


@jit
def _summand(i, tokens, W, u, y):
    """Sign and logarithm of e_i (y u_i - y f), up to the same positive factor for all i, for the f of a string."""
    last, top, total = tokens[-1], -np.inf, 0.0
    for m in tokens:
        if u[m] != u[i]:
            top = max(top, W[m, last])
    for m in tokens:
        if u[m] != u[i]:
            total += exp(W[m, last] - top) * y * (u[i] - u[m])
    return np.sign(total), W[i, last] + top + math.log(abs(total)) if total else -np.inf


@jit
def _output(tokens, W, u, shares):
    """f of a string given by its tokens; fills in its attention."""
    last = tokens[-1]
    top = W[last, last]
    for i in tokens:
        top = max(top, W[i, last])
    total, f = 0.0, 0.0
    for l in range(tokens.size):
        shares[l] = exp(W[tokens[l], last] - top)
        total += shares[l]
    for l in range(tokens.size):
        shares[l] /= total
        f += shares[l] * u[tokens[l]]
    return f
