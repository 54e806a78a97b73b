r"""What other plans cannot do: lower bounds on the loss of A only, O only and A(1x) -> O, on infinite data.

Loss E[(f - y)^2], f = sum_h sum_j a^h_j beta^h_j - 1. The functions of (d, k, law) are for OR over k of d letters
and broadcast; law = None is the geometric law that balances the labels best.
"""

import numpy as np
from scipy import linalg, special

from .errors import InputError, reals
from .moments import share_moments


def attention_only_bound(q, beta):
    """Least loss that scores alone can reach: q (2 - M)_+^2 + (1-q) m_+^2 with m <= sum_j a_j beta_j <= M.

    M (m) is the sum over heads of the largest (smallest) output weight.

    Parameters
    ----------
    q : P(y = +1)
    beta : (d,) or (H, d), the frozen output weights; zero init gives the loss 4 q for ever

    Returns
    -------
    loss : the lower bound
    accuracy : 1 - q if M < 1 (every word is rejected), q if m > 1, else nan (not determined)

    Examples
    --------
    >>> attention_only_bound(0.5, np.zeros(50))
    (2.0, 0.5)
    """
    beta = np.atleast_2d(reals("beta", beta))
    if beta.ndim != 2 or not beta.size or not np.all(np.isfinite(beta)):
        raise InputError("beta must be a finite array of shape (d,) or (heads, d)")
    high, low = beta.max(axis=1).sum(), beta.min(axis=1).sum()
    loss = q * max(2 - high, 0.0) ** 2 + (1 - q) * max(low, 0.0) ** 2
    accuracy = 1 - q if high < 1 else q if low > 1 else np.nan
    return float(loss), float(accuracy)


def output_only_loss(d, k=1, law=None):
    """Least loss with uniform attention: L*(0) = 4 (1-q)(q E[x^2] - kappa^2) / (kappa (1-kappa) E1).

    O only from zero init stays above it for ever, and so does A(1x) -> O, which equals it step for step: the
    scores' gradient vanishes at beta = 0.

    >>> [round(float(loss), 9) for loss in output_only_loss(50, [1, 2])]
    [0.748294689, 0.698452769]
    """
    m = share_moments(d, k, law)
    return 4 * m.G * (m.q * m.X2 - m.kappa**2) / (m.kappa * (1 - m.kappa) * m.E1)


def output_only_weights(d, k=1, law=None):
    """(beta_S, beta_o) of that minimum.

    beta_o = 2 - 2 (1-q) E[x^2]/(kappa (1-kappa) E1), beta_S - beta_o = 2 (1-q)/((1-kappa) E1): with balanced labels
    the model then accepts a word iff x > kappa, the letter occurring more often than expected.

    >>> target, other = output_only_weights(50)
    >>> round(float((1 - other) / (target - other)), 12)  # the threshold on x
    0.02
    """
    m = share_moments(d, k, law)
    other = 2 - 2 * m.G * m.X2 / (m.kappa * (1 - m.kappa) * m.E1)
    return other + 2 * m.G / ((1 - m.kappa) * m.E1), other


def frozen_attention_minimum(second_moment, positive_mean, q):
    """Least loss over beta at frozen scores, from the moments of the attention shares a in R^n (heads stacked).

    L = 4 q - 4 c.beta + beta.C beta with C = E[a a^T] and c = E[a; y = +1]; L* = 4 q - 4 c.C^-1 c at beta = 2 C^-1 c.

    Parameters
    ----------
    second_moment : (n, n), C, symmetric positive semidefinite (a singular C is allowed: least squares)
    positive_mean : (n,), c
    q : P(y = +1)

    Returns
    -------
    loss, beta : the minimum and a minimiser

    Examples
    --------
    >>> from analytic.moments import letter_moment
    >>> from analytic.languages import any_of
    >>> from analytic.lengths import Geometric
    >>> law, d = Geometric(1 / 49), 50
    >>> C = np.full((d, d), (1 - law.mean_inverse) / d**2) + np.eye(d) * law.mean_inverse / d
    >>> c = [float(letter_moment(any_of(1), d, law, {j: 1}, label=1)) for j in range(d)]
    >>> round(frozen_attention_minimum(C, np.array(c), 0.5)[0], 9)
    0.748294689
    """
    c = np.asarray(positive_mean, dtype=np.float64)
    beta = 2 * linalg.lstsq(np.asarray(second_moment, dtype=np.float64), c)[0]
    return float(4 * q - 2 * c @ beta), beta


def attention_first_ratio(d, law=None):
    """rho of occurrence: 1/rho = 1 - (d/(d-1)) (G - G1)/(1 - E1), z = 1 - 1/d; nan for words of one letter.

    To first order in beta ~ N(0, sigma^2), A(1x) at alpha = 0 gives the target the largest score iff
    rho beta_s > max over the others of beta_j + (rho - 1) mean of the others. rho -> 1/q as E1 -> 0.
    """
    m = share_moments(d, 1, law)
    with np.errstate(invalid="ignore"):
        return 1 / (1 - (m.d / (m.d - 1)) * (m.G - m.G1) / (1 - m.E1))


def attention_first_probability(d, law=None):
    """P(the target gets the largest score in A(1x) from beta ~ N(0, sigma^2 I), alpha = 0), to first order in sigma.

    The others' side is an equicorrelated Gaussian, so that P = Int phi(t) Phi(rho' t)^(d-1) dt with
    rho'^2 = (d rho^2 - 1)/(d - 1); Gauss-Legendre panels, absolute error below 1e-12.

    >>> round(float(attention_first_probability(50)), 6)
    0.130564
    """
    d = np.asarray(d)
    rho = attention_first_ratio(d, law)
    slope = np.sqrt((d * rho**2 - 1) / (d - 1))
    nodes, weights = special.roots_legendre(32)
    edges = np.linspace(-9, 9, 73)  # Phi^(d-1) rises over a width of about 1/sqrt(2 ln d)
    half = (edges[1] - edges[0]) / 2
    t = (edges[:-1, None] + half * (1 + nodes)).ravel()
    density = np.tile(weights, len(edges) - 1) * half * np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    return np.exp((d - 1)[..., None] * special.log_ndtr(slope[..., None] * t)) @ density


def attention_first_asymptote(d, rho=2.0):
    """Large-d form of `attention_first_probability` at a fixed ratio rho (2 for balanced labels).

    rho Gamma(1 + 1/rho^2) (4 pi ln d)^((1/rho^2 - 1)/2) d^(-1/rho^2), for rho = 2 equal to
    2 Gamma(5/4) (4 pi ln d)^(-3/8) d^(-1/4): one attention step first is luck, and slowly worse.

    >>> round(float(attention_first_asymptote(50) / attention_first_probability(50)), 2)
    1.21
    """
    d, power = np.asarray(d, dtype=np.float64), 1 / np.asarray(rho) ** 2
    return rho * special.gamma(1 + power) * (4 * np.pi * np.log(d)) ** ((power - 1) / 2) * d**-power
