r"""The output step from a random start: beta_0 ~ N(0, sigma^2 I), alpha_0 = 0, infinite data.

For OR over k of d letters (k = 1: occurrence); law = None is the geometric law that balances the labels best.
At alpha = 0 the gradient is linear in beta, so with a bar for the mean over letters, exactly,

    beta_1 = beta_inf + (1 - A) beta_0 - B beta_0_bar,    A = 2 eta E1/d,  B = 2 eta (1 - E1)/d,

where beta_inf is the step from zero (`one_step.output_update`): Gaussian, all pairs of letters equally correlated.
"""

import numpy as np
from scipy import special

from .bounds import rate_o_window
from .errors import broadcasting, real
from .moments import share_moments
from .one_step import check_rates, output_update


@broadcasting
def output_step_covariance(d, k, law, rate_o, sigma):
    """(variance of a letter, covariance of two letters) of beta after O(1x); arguments broadcast.

    sigma^2 [(1-A)^2 + c] and sigma^2 c, c = B^2/d - 2 (1-A) B/d.
    """
    m, rate_o = share_moments(d, k, law), check_rates("rate_o", rate_o)
    A, B = 2 * rate_o * m.E1 / m.d, 2 * rate_o * (1 - m.E1) / m.d
    common = (B**2 - 2 * (1 - A) * B) / m.d
    square = check_rates("sigma", sigma) ** 2
    return square * ((1 - A) ** 2 + common), square * common


@broadcasting
def random_scores_variance(d, k, law, rate_o, sigma):
    """What alpha_0 ~ N(0, sigma^2 I) adds to the variances of beta_1, to first order: (target, other).

    beta_1 gains 4 eta [(1 - E1)(alpha_j - mean)/d - 1{j not in S}(G - G1)(alpha_j - mean of others)/D]. The remainder
    of E[1_+ a_j] is at most 2 s^2 e^{2s} times its value at alpha = 0, s = max |alpha_0|: usable up to sigma = 0.03.
    """
    m, rate_o = share_moments(d, k, law), check_rates("rate_o", rate_o)
    other = m.d - m.k
    all_letters = 4 * rate_o * (1 - m.E1) / m.d
    others_only = 4 * rate_o * (m.G - m.G1) / other
    square = check_rates("sigma", sigma) ** 2
    # coefficient of alpha_j itself, of every other letter outside S, of every letter of S
    own, beside, targets = all_letters - others_only, others_only / other - all_letters / m.d, -all_letters / m.d
    others_variance = (own + beside) ** 2 + (other - 1) * beside**2 + m.k * targets**2
    return square * all_letters**2 * (1 - 1 / m.d), square * others_variance


@broadcasting
def window_failure_bound(d, k, law, rate_o, sigma, sigma_alpha=0.0):
    """Union bound on P(not (min over S of beta_1 > 1 > max over the others)); arguments broadcast.

    k Phi(-(beta_S - 1)/sd_S) + D Phi(-(1 - beta_o)/sd_o), at most 1; `window_probability` is exact for
    sigma_alpha = 0. With alpha_0 ~ N(0, sigma_alpha^2 I) the variances are to first order in alpha_0.

    >>> round(float(window_failure_bound(50, 1, None, 16.0, 0.1)), 4)
    0.0032
    """
    m = share_moments(d, k, law)
    target, other = output_update(d, k, law, rate_o)
    variance, _ = output_step_covariance(d, k, law, rate_o, sigma)
    more_target, more_other = random_scores_variance(d, k, law, rate_o, sigma_alpha)
    with np.errstate(divide="ignore", invalid="ignore"):
        failures = m.k * special.ndtr(-(target - 1) / np.sqrt(variance + more_target))
        failures = failures + (m.d - m.k) * special.ndtr(-(1 - other) / np.sqrt(variance + more_other))
    return np.minimum(failures, 1.0)


def window_probability(d, k, law, rate_o, sigma):
    """P(min over S of beta_1 > 1 > max over the others), exactly (scalars).

    With beta_1 = beta_inf + a z_j + b w, a = sigma |1-A|, b^2 the common covariance, it is the integral over w of
    phi(w) Phi((beta_S - 1 + b w)/a)^k Phi((1 - beta_o - b w)/a)^D. Where letters are negatively correlated b is
    imaginary and the formula still holds, the integrand being entire. 1e-9 absolute.

    >>> round(1 - window_probability(50, 1, None, 20.0, 0.1), 3)
    0.391
    """
    real("sigma", sigma, 0, open_low=True)
    m = share_moments(d, k, law)
    target, other = output_update(d, k, law, rate_o)
    variance, common = output_step_covariance(d, k, law, rate_o, sigma)
    own, k, others = np.sqrt(variance - common), int(m.k), int(m.d - m.k)
    if common >= 0:  # steep where own << b: split at the edges w = (1 - beta_S)/b and (1 - beta_o)/b
        return _positively_correlated(target - 1, 1 - other, own, np.sqrt(common), k, others)
    nodes, weights = special.roots_hermitenorm(120)
    shift = np.sqrt(complex(common)) * nodes

    def cdf(z):
        return special.erfc(-z / np.sqrt(2)) / 2

    inside = cdf((target - 1 + shift) / own) ** k * cdf((1 - other - shift) / own) ** others
    return float(np.clip((weights @ inside).real / np.sqrt(2 * np.pi), 0, 1))


def _positively_correlated(margin, other_margin, own, b, k, others):
    """P(a z_j + b w > -margin for the k targets and < other_margin for the others), a = ``own``."""
    if b == 0:
        inside = (
            special.ndtr(np.array([margin, other_margin]) / own) if own else np.array([margin > 0, other_margin > 0])
        )
        return float(inside[0] ** k * inside[1] ** others)
    edges = np.clip([-margin / b, other_margin / b], -9, 9)
    if own == 0:
        return float(max(special.ndtr(edges[1]) - special.ndtr(edges[0]), 0.0))
    from scipy.integrate import quad

    def inside(w):
        log = k * special.log_ndtr((margin + b * w) / own) + others * special.log_ndtr((other_margin - b * w) / own)
        return np.exp(log - w**2 / 2) / np.sqrt(2 * np.pi)

    return quad(inside, -9, 9, points=sorted(set(edges)), epsabs=1e-12, limit=500)[0]


def best_rate_o(d, k, law, sigma):
    """(rate, probability): the rate of O(1x) with the largest `window_probability` (scalars).

    >>> rate, probability = best_rate_o(50, 1, None, 0.1)
    >>> round(rate, 1), round(1 - probability, 4)
    (16.1, 0.0032)
    """
    from scipy.optimize import minimize_scalar

    low, high = (float(edge) for edge in rate_o_window(d, k, law))
    high = min(high, 4 * low)  # beyond that the spread of beta_0 grows again
    best = minimize_scalar(
        lambda rate: -window_probability(d, k, law, rate, sigma),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(best.x), float(-best.fun)
