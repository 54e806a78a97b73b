r"""Windows, thresholds and bounds of the three phases O(1x) -> A(1x) -> O, from zero init on infinite data.

For OR over k of d letters (k = 1: occurrence); D = d - k, kappa = k/d, q = P(y = +1), Delta = beta_S - beta_o,
g = alpha_S - alpha_o. Arguments broadcast; law = None is the geometric law that balances the labels best.
A word is decided correctly iff y f > 0: f = 0 is wrong. Every bound comes with, or names, the exact value it
bounds, so that its slack can be printed.
"""

import numpy as np

from .errors import InputError
from .moments import check_alphabet, share_moments
from .one_step import attention_drive, output_gap, output_update

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


def attention_gap(d, k, logit_gap):
    """Attention mass on S minus the largest other weight: (k e^g - 1)/(k e^g + D), ideal 1.

    Weights over the alphabet; the same as gamma_s - max other gamma for k = 1.

    >>> round(float(attention_gap(50, 1, 10.4265363)), 9)
    0.998520372
    """
    d, k = check_alphabet(d, k)
    weight = np.exp(-np.asarray(logit_gap, dtype=np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isinf(weight), -1 / (d - k), (k - weight) / (k + (d - k) * weight))


def smallest_weight_gap(d, k, logit_gap):
    """Smallest attention weight in S minus the largest other: (e^g - 1)/(k e^g + D), ideal 1/k."""
    d, k = check_alphabet(d, k)
    weight = np.exp(-np.asarray(logit_gap, dtype=np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(np.isinf(weight), -1 / (d - k), (1 - weight) / (k + (d - k) * weight))


def logit_gap_for_attention(d, k, eps):
    """Smallest g whose `attention_gap` is 1 - eps: ln((1 + (1 - eps) D)/(k eps)), 0 < eps < 1.

    >>> g = logit_gap_for_attention(50, 2, 0.01)
    >>> round(float(attention_gap(50, 2, g)), 12)
    0.99
    """
    d, k = check_alphabet(d, k)
    eps = np.asarray(eps, dtype=np.float64)
    if not np.all((eps > 0) & (eps < 1)):
        raise InputError(f"eps must lie in (0, 1), not {eps.tolist()!r}")
    return np.log((1 + (1 - eps) * (d - k)) / (k * eps))
