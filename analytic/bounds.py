r"""Windows, thresholds and bounds of the three phases O(1x) -> A(1x) -> O, from zero init on infinite data.

For OR over k of d letters (k = 1: occurrence); D = d - k, kappa = k/d, q = P(y = +1), Delta = beta_S - beta_o,
g = alpha_S - alpha_o. Arguments broadcast; law = None is the geometric law that balances the labels best.
A word is decided correctly iff y f > 0: f = 0 is wrong. Every bound comes with, or names, the exact value it
bounds, so that its slack can be printed.
"""

import numpy as np

from .errors import InputError, broadcasting, reals, shown
from .moments import check_alphabet, share_moments
from .one_step import logit_gap as one_step_logit_gap
from .shares import share_law

ROUNDING = 1e-14  # relative, 45 units in the last place; the ratio behind a certified length is rounded a few times

# ---------------------------------------------------------------- phase 1: rates of the output step


def rate_o_window(d, k=1, law=None):
    """(lo, hi): beta_S > 1 > beta_o after O(1x) iff lo < rate_o < hi; d/4 and D/(4 (q - kappa)).

    hi is infinite if q = kappa (words of one letter). Outside the window the A step on infinite data cannot end
    at accuracy 1; inside it the attention step moves towards S iff also rate_o < `rate_o_turning_point`.

    >>> [round(float(rate), 7) for rate in rate_o_window(50)]
    [12.5, 25.5208333]
    """
    m = share_moments(d, k, law)
    with np.errstate(divide="ignore"):
        return m.d / 4 + 0 * m.q, (m.d - m.k) / (4 * np.maximum(m.excess, 0.0))


def rate_o_turning_point(d, k=1, law=None):
    """eta_K = D M1 / (2 [(q - kappa) M1 + (1 - q) M2]): for P(m >= 2) > 0, K > 0 iff 0 < rate_o < eta_K.

    Always eta_K > d/2, so that the interval (d/4, min(d/2, hi)) has beta_S > 1 > beta_o and K > 0. The window
    alone does not imply K > 0. nan for words of one letter (K = 0 for every rate).

    >>> from analytic.lengths import Fixed
    >>> round(float(rate_o_turning_point(10, 1, Fixed(2))), 2)
    9.09
    """
    m = share_moments(d, k, law)
    with np.errstate(invalid="ignore"):
        return (m.d - m.k) * m.M1 / (2 * (m.excess * m.M1 + m.G * m.M2))


def balanced_rate_o(d, k=1, law=None):
    """The rate with equal margins beta_S - 1 = 1 - beta_o after O(1x): 1/(2 (1/d + (q - kappa)/D)).

    >>> round(float(balanced_rate_o(50)), 2)
    16.78
    """
    m = share_moments(d, k, law)
    return 1 / (2 * (1 / m.d + m.excess / (m.d - m.k)))


# ---------------------------------------------------------------- phase 2: attention gap and its thresholds


@broadcasting
def attention_gap(d, k, logit_gap):
    """Attention mass on S minus the largest other weight: (k e^g - 1)/(k e^g + D), ideal 1.

    Weights over the alphabet; the same as gamma_s - max other gamma for k = 1.

    >>> round(float(attention_gap(50, 1, 10.4265363)), 9)
    0.998520372
    """
    d, k = check_alphabet(d, k)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = np.exp(-reals("logit_gap", logit_gap))
        return np.where(np.isinf(weight), -1 / (d - k), (k - weight) / (k + (d - k) * weight))


@broadcasting
def smallest_weight_gap(d, k, logit_gap):
    """Smallest attention weight in S minus the largest other: (e^g - 1)/(k e^g + D), ideal 1/k."""
    d, k = check_alphabet(d, k)
    with np.errstate(over="ignore", invalid="ignore"):
        weight = np.exp(-reals("logit_gap", logit_gap))
        return np.where(np.isinf(weight), -1 / (d - k), (1 - weight) / (k + (d - k) * weight))


@broadcasting
def logit_gap_for_attention(d, k, eps):
    """Smallest g whose `attention_gap` is 1 - eps: ln((1 + (1 - eps) D)/(k eps)), 0 < eps < 1.

    >>> g = logit_gap_for_attention(50, 2, 0.01)
    >>> round(float(attention_gap(50, 2, g)), 12)
    0.99
    """
    d, k = check_alphabet(d, k)
    eps = reals("eps", eps)
    if not np.all((eps > 0) & (eps < 1)):
        raise InputError(f"eps must lie in (0, 1), not {shown(eps.tolist())}")
    return np.log((1 + (1 - eps) * (d - k)) / (k * eps))


@broadcasting
def rate_a_for_logit_gap(d, k, law, rate_o, logit_gap):
    """Rate of the attention step that gives the logit gap g: g k D/(2 Delta K d). Infinite where K <= 0 < g.

    With `logit_gap_for_attention` this is the threshold on eta_A for an attention gap of 1 - eps, with
    `logit_gap_for_length` the one for a certified length (to be passed strictly).

    >>> g = logit_gap_for_attention(50, 1, 0.01)
    >>> round(float(rate_a_for_logit_gap(50, 1, None, 20.0, g)), 3)
    244.78
    """
    per_unit = logit_gap_of_unit_rate(d, k, law, rate_o)
    g = reals("logit_gap", logit_gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(g <= 0, 0.0, np.where(per_unit > 0, g / np.maximum(per_unit, 0), np.inf))


def logit_gap_of_unit_rate(d, k, law, rate_o):
    """g / eta_A = 2 Delta K d/(k D) after O(1x) -> A(1x)."""
    return one_step_logit_gap(d, k, law, rate_o, 1.0)


# ---------------------------------------------------------------- every length: certified length and test error


@broadcasting
def certified_length(logit_gap, beta_target, beta_other):
    """Longest M such that the symmetric model decides every word of length <= M correctly.

    A word with n >= 1 targets and r others is accepted iff n e^g (beta_S - 1) > r (1 - beta_o), a word without
    one is rejected iff beta_o < 1. So M* = ceil(e^g (beta_S - 1)/(1 - beta_o)) if beta_S > 1 > beta_o, else 0, and
    one target with M* others is the first wrong word: no longer length is safe. In floats: a ratio within a relative
    1e-14 above a whole number counts as that number, so that rounding never certifies a length too many; whole
    numbers as float64, inf where they overflow (`analytic.certificate` is exact at the boundary).

    >>> float(certified_length(10.426536271459, 1.6, 0.783673469388))
    93590.0
    """
    names = "logit_gap", "beta_target", "beta_other"
    g, target, other = map(reals, names, (logit_gap, beta_target, beta_other))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.exp(g) * (target - 1) / (1 - other)
        return np.where((target > 1) & (other < 1), np.ceil(ratio * (1 - ROUNDING)), 0.0)


@broadcasting
def logit_gap_for_length(length, beta_target, beta_other):
    """Infimum of the g with `certified_length` >= length: ln((length - 1)(1 - beta_o)/(beta_S - 1)), not attained.

    Infinite outside beta_S > 1 > beta_o. To err with probability at most delta it suffices that length is
    ``law.quantile_length(delta)``: g must grow like the logarithm of the length to be covered.
    """
    names = "length", "beta_target", "beta_other"
    length, target, other = map(reals, names, (length, beta_target, beta_other))
    with np.errstate(divide="ignore", invalid="ignore"):
        threshold = np.log((length - 1) * (1 - other) / (target - 1))
    return np.where((target > 1) & (other < 1), threshold, np.where(length < 1, -np.inf, np.inf))


def error_probability(d, k, law, logit_gap, beta_target, beta_other):
    """Exact P(y f <= 0) of the symmetric model; inside beta_S > 1 > beta_o it is P(0 < x <= 1/(1 + R)).

    R = e^g (beta_S - 1)/(1 - beta_o). The bound P(m > M*) of `log_error_bound` is at least this. d, k and
    law are one each; g and the weights broadcast.

    >>> round(float(error_probability(50, 1, None, 0.0, 1.6, 0.5)), 12)  # without attention: too few targets
    0.498727557196
    """
    m = share_moments(d, k, law)
    negative = np.where(np.asarray(beta_other) < 1, 0.0, m.G)
    return negative + share_law(int(m.d), int(m.k), m.law).positive_error(logit_gap, beta_target, beta_other)


def log_error_bound(law, length):
    """ln P(m > length) for the certified length: the test error of a model certified up to there is at most this.

    -inf where no word is longer. For the geometric law length * ln(1 - p), also where the probability underflows.
    """
    return law.log_tail(length)
