r"""Finite samples: how many words keep the signs and the window of the population steps, from zero init.

Phase 1 averages X_j = 1{y=+1} p_j, beta_j = 4 eta (1/N) sum X_j; its deviations hold for OR over k of d letters.
Phase 2 is for occurrence (k = 1): alpha_j = 2 eta_A (1/N) sum Y_j with Y_j = -r p_j (beta_j - h), on fresh words or on
the words of phase 1 again. All deviations hold together with probability at least 1 - delta (Bernstein, and a union
over letters).

Bernstein, one-sided, for N independent values with variance at most V and Y - E Y <= R:
mean - E Y <= R l/(3N) + sqrt((R l/(3N))^2 + 2 V l/N) with probability at least 1 - e^{-l}.
"""

from dataclasses import dataclass

import numpy as np

from .bounds import certified_length
from .errors import choice, real, whole
from .languages import any_of
from .moments import letter_moment, share_moments
from .one_step import logit_gap, output_update


def bernstein(variance, reach, n, log_term):
    """Deviation that a mean of n values exceeds with probability at most e^-log_term; see the head of this file."""
    step = reach * log_term / (3 * n)
    return step + np.sqrt(step**2 + 2 * variance * log_term / n)


@dataclass(frozen=True)
class PositiveShares:
    """What enters the bounds: the law of X_j = 1{y=+1} p_j for a target and for another letter."""

    mean_other: float
    variance_target: float
    variance_other: float


def positive_shares(d, k, law):
    """`PositiveShares` of OR: means 1/d (target) and (q - kappa)/D; exact variances.

    v_S = E1 (d-1)/d^2, v_o = (1 - E1)/d^2 + E1/d - ((G - G1)/D^2 + G1/D) - mean^2.
    """
    m = share_moments(d, k, law)
    other = m.d - m.k
    mean = m.excess / other
    variance = (1 - m.E1) / m.d**2 + m.E1 / m.d - ((m.G - m.G1) / other**2 + m.G1 / other) - mean**2
    return PositiveShares(float(mean), float(m.E1 * (m.d - 1) / m.d**2), float(variance))


def output_deviations(d, k, law, rate_o, n, delta, events=None):
    """(t_S, t_o): with probability >= 1 - delta, |beta_j - its population value| <= t for all letters after O(1x).

    Parameters
    ----------
    d, k, law, rate_o : as in `one_step.output_update`, one each
    n : words in the sample
    delta : failure probability, shared by ``events`` one-sided events (default 2 d, all of this statement)

    Examples
    --------
    >>> [round(float(t), 3) for t in output_deviations(50, 1, None, 20.0, 12500, 0.05)]
    [0.128, 0.07]
    """
    shares = positive_shares(d, k, law)
    log_term = np.log((2 * d if events is None else events) / real("delta", delta, 0, 1, open_low=True, open_high=True))
    target = bernstein(shares.variance_target, 1 - 1 / d, whole("n", n), log_term)
    return 4 * rate_o * target, 4 * rate_o * bernstein(shares.variance_other, 1 - shares.mean_other, n, log_term)


def window_failure(d, k, law, rate_o, n, method="bernstein"):
    """Bound on P(not (min over S of beta > 1 > max over the others)) after O(1x) on n words from zero init.

    k P_S + D P_o with margins e_S = 1/d - 1/(4 eta), e_o = 1/(4 eta) - (q - kappa)/D. For a margin e, variance v and
    reach b, P is exp(-n e^2/(2 (v + b e/3))) (bernstein), exp(-(n v/b^2) h(b e/v)) with h(u) = (1+u) ln(1+u) - u
    (bennett), or exp(-2 n e^2) (hoeffding). The lower tail of a target has b = 1/d, the upper tail of another letter
    b = 1 - its mean. 1 if the rate is outside the window.
    """
    choice("method", method, ("bernstein", "bennett", "hoeffding"))
    shares, n = positive_shares(d, k, law), whole("n", n)
    per_rate = 1 / (4 * real("rate_o", rate_o, 0, open_low=True))
    margins = 1 / d - per_rate, per_rate - shares.mean_other
    if min(margins) <= 0:
        return 1.0
    variances, reaches = (shares.variance_target, shares.variance_other), (1 / d, 1 - shares.mean_other)
    total = 0.0
    for count, e, v, b in zip((k, d - k), margins, variances, reaches, strict=True):
        u = b * e / v
        exponent = {
            "bernstein": e**2 / (2 * (v + b * e / 3)),
            "bennett": v / b**2 * ((1 + u) * np.log1p(u) - u),
            "hoeffding": 2 * e**2,
        }[method]
        total += count * np.exp(-n * exponent)
    return float(min(total, 1.0))


def words_for_window(d, k, law, rate_o, delta, method="bernstein"):
    """Least n with `window_failure` <= delta, or None outside the window: O(d ln(d/delta)) words by Bernstein.

    >>> [words_for_window(50, 1, None, 20.0, 0.05, method) for method in ("hoeffding", "bernstein", "bennett")]
    [470973, 2331, 1738]
    """
    real("delta", delta, 0, 1, open_low=True, open_high=True)
    return _least(lambda n: window_failure(d, k, law, rate_o, n, method) <= delta)


def _least(holds):
    """Least n >= 1 with holds(n), which stays true from there on; None if it fails at 2^60."""
    high = 1
    while not holds(high):
        high *= 2
        if high > 1 << 60:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class SampledSteps:
    """Guarantees after O(1x) -> A(1x) on samples, all together with probability >= 1 - delta.

    Attributes
    ----------
    beta_target, beta_other : intervals (low, high) that hold every target's and every other letter's weight
    window : True iff they give beta_s > 1 > beta_o for all letters
    logit_gap : lower bound on alpha_s - max over the others, per unit of rate_a; positive: the target is first
    population_logit_gap : its infinite-data value, per unit of rate_a
    """

    beta_target: tuple
    beta_other: tuple
    window: bool
    logit_gap: float
    population_logit_gap: float

    def certified_length(self, rate_a):
        """Every word so long is right: ceil(e^gap (min beta_s - 1)/(1 - min beta_o)) inside the window, else 0."""
        if not self.window:
            return 0.0
        return float(certified_length(rate_a * self.logit_gap, self.beta_target[0], self.beta_other[0]))


def sampled_steps(d, law, rate_o, n, delta, same_words=True):
    """Guarantees for occurrence after O(1x) -> A(1x) from zero init with n words a phase.

    Fresh words (3 d events): gap/(2 eta_A) >= min over the box of beta of (P_s - P_o) - dev_s - dev_o, P the
    population mean of Y. The same words (5 d events): the population gap at the population's beta, less dev_s and
    dev_o there, less what moving beta inside its box can change in the sample, whose means of x(1-x), p_o x, p_o 1_+
    and p_o 1_- are bounded too.

    Parameters
    ----------
    d, law : alphabet size, `LengthLaw` (None: balanced geometric)
    rate_o : step size of O(1x)
    n : number of words; of each phase with ``same_words=False``
    delta : failure probability
    same_words : whether phase 2 uses the words of phase 1 again

    Returns
    -------
    `SampledSteps`

    Examples
    --------
    >>> steps = sampled_steps(50, None, 20.0, 12500, 0.05)
    >>> steps.window, round(steps.logit_gap / steps.population_logit_gap, 3)
    (True, 0.245)
    """
    m = share_moments(d, 1, law)
    target, other = (float(v) for v in output_update(d, 1, law, rate_o))
    events = (5 if same_words else 3) * d
    t_target, t_other = (float(t) for t in output_deviations(d, 1, law, rate_o, n, delta, events))
    log_term = np.log(events / delta)
    means = _occurrence_moments(d, m.law)
    bound = _gap_on_the_same_words if same_words else _gap_on_fresh_words
    gap = 2 * bound(m, means, target, other, t_target, t_other, rate_o, n, log_term)
    box_target, box_other = (target - t_target, target + t_target), (other - t_other, other + t_other)
    population = float(logit_gap(d, 1, law, rate_o, 1.0))
    return SampledSteps(box_target, box_other, box_target[0] > 1 > box_other[1], float(gap), population)


def words_for_ordering(d, law, rate_o, delta, share=0.0, same_words=True):
    """Least n for which `sampled_steps` guarantees the window and a logit gap above ``share`` of the population's.

    >>> words_for_ordering(50, None, 20.0, 0.05), words_for_ordering(50, None, 20.0, 0.05, same_words=False)
    (8454, 3838)
    """
    real("share", share, 0, 1, open_high=True)

    def holds(n):
        steps = sampled_steps(d, law, rate_o, n, delta, same_words)
        return steps.window and steps.logit_gap > share * steps.population_logit_gap

    return _least(holds)


def _occurrence_moments(d, law):
    """Means of products of x = p_s, p_o and the label's indicators."""
    language = any_of(1)

    def mean(label=None, **powers):
        letters = {0: powers.get("x", 0), 1: powers.get("p", 0)}
        return float(letter_moment(language, d, law, {j: a for j, a in letters.items() if a}, label))

    x2, x3, x4 = mean(x=2), mean(x=3), mean(x=4)
    p2x, p2x2, p2_negative = mean(p=2, x=1), mean(p=2, x=2), mean(-1, p=2)
    return {
        "x2(1-x)2": x2 - 2 * x3 + x4,
        "x(1-x)": mean(x=1) - x2,
        "p2x2": p2x2,
        "p2x(1-x)": p2x - p2x2,
        "p2(1-x)2+": mean(p=2) - 2 * p2x + p2x2 - p2_negative,
        "p2-": p2_negative,
        "px": mean(p=1, x=1),
        "p-": mean(-1, p=1),
        "p+": mean(1, p=1),
    }


def _gap_on_fresh_words(m, means, target, other, t_target, t_other, rate_o, n, log_term):
    """Lower bound on mean(Y_s) - max mean(Y_o) for any beta in the box, on words that are independent of it."""
    spread = target - other + t_target + t_other
    residual = max(2 - other + t_other, target + t_target - 2)  # |r| on positive words
    negative = (other + t_other) * 2 * t_other  # |Y_o| / p_o on negative words
    dev_target = bernstein(residual**2 * spread**2 * means["x2(1-x)2"], residual * spread / 2, n, log_term)
    variance = residual**2 * (
        spread**2 * means["p2x2"] + 4 * t_other * spread * means["p2x(1-x)"] + 4 * t_other**2 * means["p2(1-x)2+"]
    )
    reach = 2 * max(residual * (spread / 4 + 2 * t_other), negative)
    dev_other = bernstein(variance + negative**2 * means["p2-"], reach, n, log_term)
    return _least_population_gap(m, target, other, t_target, t_other) - dev_target - dev_other


def _least_population_gap(m, target, other, t_target, t_other):
    """Minimum of P_s - P_o over beta_s, beta_o and the mean of the remaining letters in their intervals.

    P_s - P_o = (2/d)(1-E1)(beta_s - beta_o) + (2/D)(G-G1)(beta_o - mean_o) - (t2/d)(beta_s^2 - beta_o^2)
    - (t3/d) mean (beta_s - beta_o) is concave in beta_s and linear in the remaining mean, so that ends suffice, and
    convex in beta_o.
    """
    d, D = int(m.d), int(m.d - m.k)
    t2, t3 = m.E1 - m.E2, 1 - 3 * m.E1 + 2 * m.E2

    def gap(s, o, rest):
        mean_other = (o + (D - 1) * rest) / D
        mean = (s + D * mean_other) / d
        linear = 2 / d * (1 - m.E1) * (s - o) + 2 / D * (m.G - m.G1) * (o - mean_other)
        return linear - t2 / d * (s**2 - o**2) - t3 / d * mean * (s - o)

    least = np.inf
    low, high = other - t_other, other + t_other
    for s in (target - t_target, target + t_target):
        for rest in (low, high):
            first, middle, last = gap(s, low, rest), gap(s, other, rest), gap(s, high, rest)
            curvature, slope = (first - 2 * middle + last) / 2, (last - first) / 2  # in units of t_other
            vertex = np.clip(-slope / (2 * curvature), -1, 1) if curvature > 0 else 0.0
            least = min(least, first, last, middle + slope * vertex + curvature * vertex**2)
    return float(least)


def _gap_on_the_same_words(m, means, target, other, t_target, t_other, rate_o, n, log_term):
    """Lower bound on mean(Y_s) - max mean(Y_o) at the sample's own beta."""
    spread, t = target - other, t_target + t_other
    residual, widest = max(2 - other, target - 2), max(t_target, t_other)
    d, D = int(m.d), int(m.d - m.k)
    drive = (2 - other) * m.M1 - spread * m.M2
    dev_target = bernstein(residual**2 * spread**2 * means["x2(1-x)2"], residual * spread / 2, n, log_term)
    dev_other = bernstein(residual**2 * spread**2 * means["p2x2"], residual * spread / 2, n, log_term)

    def at_most(mean, square, reach):
        return mean + bernstein(square, reach, n, log_term)

    moved_target = at_most(means["x(1-x)"], means["x2(1-x)2"], 0.25) * (widest * spread + (residual + widest) * t)
    moved_other = (
        at_most(means["px"], means["p2x2"], 0.25) * (widest * spread + (residual + widest) * max(t_target - t_other, 0))
        + (means["p+"] + t_other / (4 * rate_o)) * (residual + widest) * 2 * t_other
        + at_most(means["p-"], means["p2-"], 1.0) * (other + t_other) * 2 * t_other
    )
    return float(spread * drive * d / D - dev_target - dev_other - moved_target - moved_other)
