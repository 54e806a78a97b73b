"""Even pairs: the hard-margin direction of its attention outputs."""

import math

import numpy as np

from .gradients.even_pairs import _checked
from .gradients.exponential import exp
from .jit import jit
from .margin import hard_margin_by

TURNS = 50  # of improving a string, at most; a few are usual


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
