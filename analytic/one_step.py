r"""One gradient step in closed form, on infinite data, from the zero initialization.

Loss E[(f - y)^2] (no 1/2), f = sum_j a_j beta_j - 1, a the softmax of the scores alpha over the letters of the
word; a step is alpha - rate_a dL/dalpha, beta - rate_o dL/dbeta. The functions of (d, k, law) are for OR over
k of d letters (k = 1: occurrence) and hold for every length law; their arguments broadcast, and law = None
is the geometric law that balances the labels best.
"""

import numpy as np

from .errors import InputError, broadcasting, reals, shown
from .lengths import length_law
from .moments import share_moments


def check_rates(name, rates):
    """Return ``rates`` as a float array of finite values >= 0, or raise `InputError`."""
    rates = reals(name, rates)
    if not np.all(np.isfinite(rates) & (rates >= 0)):
        raise InputError(f"{name} must be finite and at least 0, not {shown(rates.tolist())}")
    return rates


@broadcasting
def output_update(d, k, law, rate_o):
    """Output weights after O(1x) from zero: beta_S = 4 eta/d, beta_o = 4 eta (q - kappa)/(d - k).

    Since dL/dbeta_j = 2 E[r a_j] with r = -2 on positive words and 0 on negative ones, and E[x] = kappa.

    Parameters
    ----------
    d, k : alphabet size and number of targets, 1 <= k < d
    law : `LengthLaw`, or None for the balanced geometric law
    rate_o : eta, step size of the output layer, >= 0

    Returns
    -------
    beta_target, beta_other : weight of each target letter and of each other letter

    Examples
    --------
    >>> target, other = output_update(50, 1, None, 20.0)
    >>> float(target), round(float(other), 9)
    (1.6, 0.783673469)
    """
    m, rate_o = share_moments(d, k, law), check_rates("rate_o", rate_o)
    return 4 * rate_o / m.d, 4 * rate_o * m.excess / (m.d - m.k)


@broadcasting
def output_gap(d, k, law, rate_o):
    """(beta_S - beta_o)/2 after O(1x) from zero: 2 eta (1-q)/(d-k), positive whenever q < 1.

    >>> round(float(output_gap(50, 1, None, 20.0)), 9)
    0.408163265
    """
    m = share_moments(d, k, law)
    return 2 * check_rates("rate_o", rate_o) * m.G / (m.d - m.k)


@broadcasting
def attention_drive(d, k, law, rate_o):
    """K = (2 - beta_o) M1 - Delta M2: its sign says whether the attention step after O(1x) moves towards S.

    Delta = beta_S - beta_o; M1 = E[x(1-x)], M2 = E[x^2(1-x)]. On positive words r = -(2 - beta_o) + x Delta, and
    the gradient of the scores is E[r x(1-x)] Delta; on negative words it vanishes.

    >>> round(float(attention_drive(50, 1, None, 20.0)), 7)
    0.0208618
    """
    m = share_moments(d, k, law)
    _, beta_other = output_update(d, k, law, rate_o)
    return (2 - beta_other) * m.M1 - 2 * output_gap(d, k, law, rate_o) * m.M2


@broadcasting
def attention_update(d, k, law, rate_o, rate_a):
    """Scores after O(1x) -> A(1x) from zero: alpha_S = 2 eta_A Delta K/k, alpha_o = -2 eta_A Delta K/(d-k).

    Returns
    -------
    alpha_target, alpha_other : score of each target letter and of each other letter

    Examples
    --------
    >>> target, other = attention_update(50, 1, None, 20.0, 300.0)
    >>> round(float(target - other), 7)
    10.4265363
    """
    d, k = np.asarray(d), np.asarray(k)
    drive = 4 * check_rates("rate_a", rate_a) * output_gap(d, k, law, rate_o) * attention_drive(d, k, law, rate_o)
    return drive / k, -drive / (d - k)


@broadcasting
def logit_gap(d, k, law, rate_o, rate_a):
    """g = alpha_S - alpha_o after O(1x) -> A(1x) from zero: 2 eta_A Delta K d/(k (d-k)).

    >>> round(float(logit_gap(50, 1, None, 20.0, 300.0)), 7)
    10.4265363
    """
    target, other = attention_update(d, k, law, rate_o, rate_a)
    return target - other


def gradient_at_zero_scores(language, d, law, beta):
    r"""Population gradient at alpha = 0 and any output weights, all orders, for any language and number of heads.

    With b = beta^h, B = sum_h beta^h, a bar for the mean over letters, z_U = 1 - |U|/d, G_U = G(z_U),
    G1_U = G1(z_U), t2 = E1 - E2, t3 = 1 - 3 E1 + 2 E2, and 1{y = +1} = sum_U sign_U 1{no letter of U}:

        dL/dalpha^h_j / 2 = (t2/d) [B_j b_j + b_j B_bar - B_j b_bar - mean(B b)] + (t3/d) B_bar (b_j - b_bar)
            - 2 sum over U without j of sign_U (G_U - G1_U) (b_j - mean of b outside U) / (d - |U|)
        dL/dbeta_j / 2 = (E1 B_j + (1 - E1) B_bar)/d - 2 sum over U without j of sign_U G_U / (d - |U|)

    Parameters
    ----------
    language : `Language`
    d : alphabet size
    law : `LengthLaw`
    beta : (d,) or (H, d)

    Returns
    -------
    d_alpha, d_beta : shaped like ``beta``

    Examples
    --------
    >>> from analytic.languages import any_of
    >>> from analytic.lengths import Geometric
    >>> d_alpha, d_beta = gradient_at_zero_scores(any_of(1), 50, Geometric(1 / 49), np.zeros(50))
    >>> float(-20 * d_beta[0]), round(float(-20 * d_beta[1]), 9)
    (1.6, 0.783673469)
    """
    beta = check_weights(language, d, beta)
    total = beta.sum(axis=0) if beta.ndim == 2 else beta
    mean_total, mean = total.mean(), beta.mean(axis=-1, keepdims=True)
    law = length_law(law)
    E1, E2 = law.mean_inverse, law.mean_inverse_square
    mixed = total * beta + beta * mean_total - total * mean - (total * beta).mean(axis=-1, keepdims=True)
    quadratic = (E1 - E2) * mixed + (1 - 3 * E1 + 2 * E2) * mean_total * (beta - mean)
    output, _ = _label_sums(language, d, law, beta)
    d_beta = 2 * (E1 * total + (1 - E1) * mean_total) / d - 4 * output
    d_alpha = 2 * quadratic / d + linear_attention_gradient(language, d, law, beta)
    return d_alpha, np.broadcast_to(d_beta, beta.shape).copy()


def linear_attention_gradient(language, d, law, beta):
    """The part of dL/dalpha at alpha = 0 that is linear in beta: what A(1x) sees from a small random beta.

    -4 sum over U without j of sign_U (G_U - G1_U) (beta_j - mean of beta outside U) / (d - |U|); arguments and
    shape as in `gradient_at_zero_scores`. (For OR with one target s this is -4 [beta_j (c_o - e_jj + e_oo) - ...].)

    >>> from analytic.languages import any_of
    >>> from analytic.lengths import Fixed
    >>> linear_attention_gradient(any_of(1), 2, Fixed(2), np.array([1.0, 0.0])).tolist()
    [-0.5, 0.5]
    """
    beta = check_weights(language, d, beta)
    return -4 * _label_sums(language, d, law, beta)[1]


def _label_sums(language, d, law, beta):
    """Sums over U without j of sign_U G_U / (d-|U|) and of sign_U (G_U - G1_U)(b_j - mean of b outside U) / (d-|U|)."""
    letters, law = np.array(language.letters), length_law(law)
    output, attention = np.zeros(d), np.zeros(beta.shape)
    for mask, sign in language.signs.items():
        absent = letters[(mask >> np.arange(language.k) & 1) == 1]
        if len(absent) == d:
            continue
        outside = np.ones(d, dtype=bool)
        outside[absent] = False
        z = 1 - len(absent) / d
        G, G1 = law.pgf(z), law.pgf_over_m(z)
        output[outside] += sign * G / (d - len(absent))
        kept = beta[..., outside]
        centred = kept - kept.mean(axis=-1, keepdims=True)
        attention[..., outside] += sign * (G - G1) / (d - len(absent)) * centred
    return output, attention


def check_weights(language, d, beta):
    """Return ``beta`` as a finite float array (d,) or (H, d), or raise `InputError`."""
    language.check_alphabet(d)
    beta = reals("beta", beta)
    if beta.ndim not in (1, 2) or beta.shape[-1] != d or not beta.size:
        raise InputError(f"beta must have shape ({d},) or (heads, {d}), not {beta.shape}")
    if not np.all(np.isfinite(beta)):
        raise InputError("beta must be finite")
    return beta
