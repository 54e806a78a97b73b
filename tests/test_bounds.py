"""Windows, thresholds, phase 3 and the failures of other plans: each against what it bounds, in several ways."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import analytic
from analytic.bounds import (
    attention_gap,
    balanced_rate_o,
    certified_length,
    error_probability,
    log_error_bound,
    logit_gap_for_attention,
    logit_gap_for_length,
    rate_a_for_logit_gap,
    rate_o_turning_point,
    rate_o_window,
    smallest_weight_gap,
)
from analytic.certificate import certify
from analytic.errors import InputError
from analytic.failures import (
    attention_first_asymptote,
    attention_first_probability,
    attention_first_ratio,
    attention_only_bound,
    frozen_attention_minimum,
    output_only_loss,
    output_only_weights,
)
from analytic.gradients.letter import evaluate, sample_words
from analytic.languages import any_of
from analytic.lengths import Fixed, Geometric, ShiftedPoisson, Table, Uniform, balanced_geometric
from analytic.one_step import (
    attention_drive,
    linear_attention_gradient,
    logit_gap,
    output_gap,
    output_update,
)
from analytic.phase_three import output_phase
from analytic.population import population_gradient, population_path
from analytic.three_phases import theory

from . import brute_force

ROUNDING = 1e-12  # relative, closed forms in floats
FAR = 5.0  # z-score at fixed seeds

LAWS = [Geometric(0.2), Geometric(1 / 49), Fixed(2), Fixed(7), Uniform(1, 9), ShiftedPoisson(4.0)]
laws = st.sampled_from([None, *LAWS])
alphabets = st.integers(3, 200).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, min(d - 1, 16))))
small_laws = st.sampled_from(
    [
        {2: Fraction(1)},
        {1: Fraction(1, 4), 3: Fraction(3, 4)},
        {2: Fraction(1, 2), 3: Fraction(1, 4), 5: Fraction(1, 4)},
    ]
)


def the_law(law, d, k):
    return law or balanced_geometric(any_of(k), d)


# ---------------------------------------------------------------- phases 1 and 2


@given(alphabets, laws, st.floats(0.01, 3))
def test_the_window_is_where_targets_are_above_one_and_others_below(alphabet, law, times):
    d, k = alphabet
    low, high = rate_o_window(d, k, law)
    for edge in (low, high):
        rate_o = times * edge
        if not math.isfinite(rate_o) or abs(times - 1) < 1e-9:
            continue
        target, other = output_update(d, k, law, rate_o)
        if edge == low:
            assert (target > 1) == (rate_o > low)
        else:
            assert (other < 1) == (rate_o < high)


@given(alphabets, laws, st.floats(0.01, 3))
def test_attention_moves_to_the_targets_iff_the_rate_is_below_the_turning_point(alphabet, law, times):
    d, k = alphabet
    if the_law(law, d, k).mean_inverse == 1:
        return
    turning = rate_o_turning_point(d, k, law)
    assert turning > d / 2
    if abs(times - 1) > 1e-9:
        assert (attention_drive(d, k, law, times * turning) > 0) == (times < 1)
        assert (logit_gap(d, k, law, times * turning, 1.0) > 0) == (times < 1)
    low, high = rate_o_window(d, k, law)
    assert low < min(d / 2, high)  # there are always rates with all three properties
    assert attention_drive(d, k, law, (low + min(d / 2, high)) / 2) > 0


@pytest.mark.parametrize("d", range(2, 120))
def test_rounding_never_certifies_the_tie_of_output_only(d):
    """O only at balanced labels ties on one target among d letters, f = 0: the ratio is d - 1 exactly, and so is M*."""
    if d == 2:  # p = 1: words of one letter
        return
    phase = output_phase(d, 1, None, 0.0)
    assert certified_length(0.0, phase.beta_target, phase.beta_other) == d - 1


def test_the_window_alone_does_not_make_attention_move_to_the_targets():
    low, high = rate_o_window(10, 1, Fixed(2))
    assert (low, high) == pytest.approx((2.5, 25))
    assert rate_o_turning_point(10, 1, Fixed(2)) == pytest.approx(100 / 11)
    assert attention_drive(10, 1, Fixed(2), 9.2) < 0 < attention_drive(10, 1, Fixed(2), 9.0)


def test_words_of_one_letter_have_no_upper_end_and_no_turning_point():
    assert rate_o_window(50, 1, Fixed(1)) == (12.5, math.inf)
    assert np.isnan(rate_o_turning_point(50, 1, Fixed(1)))


@given(alphabets, laws)
def test_the_balanced_rate_has_equal_margins(alphabet, law):
    target, other = output_update(*alphabet, law, balanced_rate_o(*alphabet, law))
    assert target - 1 == pytest.approx(1 - other, rel=1e-9)


@given(alphabets, st.floats(-30, 30), st.floats(1e-6, 0.999))
def test_attention_gaps_are_gaps_of_softmax_weights(alphabet, g, eps):
    d, k = alphabet
    scores = np.where(np.arange(d) < k, g, 0.0)
    gamma = np.exp(scores - scores.max())
    gamma /= gamma.sum()
    assert attention_gap(d, k, g) == pytest.approx(gamma[:k].sum() - gamma[k:].max(), rel=1e-9, abs=1e-12)
    assert smallest_weight_gap(d, k, g) == pytest.approx(gamma[:k].min() - gamma[k:].max(), rel=1e-9, abs=1e-12)
    threshold = logit_gap_for_attention(d, k, eps)
    assert attention_gap(d, k, threshold) == pytest.approx(1 - eps, abs=1e-12)
    assert attention_gap(d, k, threshold + 1e-3) > 1 - eps > attention_gap(d, k, threshold - 1e-3)


def test_attention_gaps_stay_numbers_at_any_logit_gap():
    assert attention_gap(50, 2, np.array([-1e4, 1e4])) == pytest.approx([-1 / 48, 1])
    assert smallest_weight_gap(50, 2, np.array([-1e4, 1e4])) == pytest.approx([-1 / 48, 1 / 2])


@given(alphabets, laws, st.floats(0.3, 1.5), st.floats(0.1, 20))
def test_the_threshold_rate_gives_the_logit_gap_asked_for(alphabet, law, times, g):
    d, k = alphabet
    rate_o = times * d / 2
    rate_a = rate_a_for_logit_gap(d, k, law, rate_o, g)
    if attention_drive(d, k, law, rate_o) > 1e-12:
        assert logit_gap(d, k, law, rate_o, rate_a) == pytest.approx(g, rel=1e-9)
    elif attention_drive(d, k, law, rate_o) < 0:
        assert rate_a == math.inf


@given(st.floats(1.001, 3), st.floats(-1, 0.999), st.integers(2, 10**6))
def test_the_logit_gap_for_a_length_is_the_infimum(target, other, length):
    g = logit_gap_for_length(length, target, other)
    assert certified_length(g + 1e-6, target, other) >= length
    assert certified_length(g - 1e-6, target, other) < length


@given(st.integers(3, 8), st.integers(1, 2), st.floats(-2, 5), st.floats(-1, 3), st.floats(-1, 3))
def test_the_certified_length_agrees_with_the_exact_certificate(d, k, g, target, other):
    inside = np.arange(d) < k
    exact = certify(any_of(k), np.where(inside, g, 0.0), np.where(inside, target, other)).length
    value = certified_length(g, target, other)
    if value != exact:  # floats may miss the boundary, by one and only there
        ratio = math.exp(g) * (target - 1) / (1 - other)
        assert abs(value - exact) <= max(1, 1e-12 * exact) and abs(ratio - round(ratio)) <= 1e-12 * max(ratio, 1)


@given(
    st.integers(2, 4),
    small_laws,
    st.integers(-2, 3),
    st.sampled_from([-1.0, 0.5, 1.0, 1.5, 3.0]),
    st.sampled_from([-1.0, 0.25, 1.0, 1.7]),
)
@settings(max_examples=40)
def test_the_error_is_the_mass_of_the_wrong_words_and_below_its_bound(d, law, g, target, other):
    g *= 0.9  # no ties but at 0
    k = 1

    def wrong(counts):
        n, r = counts[0], sum(counts[1:])
        f = n * math.exp(g) * (target - 1) + r * (other - 1)
        return f <= 0 if n else f >= 0

    table = brute_force.to_law(law)
    value = error_probability(d, k, table, g, target, other)
    assert value == pytest.approx(float(brute_force.expectation(d, law, wrong)), abs=1e-14)
    length = certified_length(g, target, other)
    if other < 1:
        assert value <= math.exp(log_error_bound(table, length)) + 1e-14


def test_much_less_than_the_certified_length_of_the_bound_is_enough():
    """336 letters cover all but 1e-3 of the words, but a certified length of 189 already errs on less."""
    law = Geometric(1 / 49)
    assert law.quantile_length(1e-3) == 336
    for length, enough in ((189, True), (170, False)):
        ratio = length - 0.5
        g = math.log(ratio * 0.25 / 0.5)
        assert certified_length(g, 1.5, 0.75) == length
        assert (error_probability(50, 1, law, g, 1.5, 0.75) <= 1e-3) == enough


def test_the_error_of_a_sample_agrees(seed=5):
    d, k, law, n = 20, 2, balanced_geometric(any_of(2), 20), 100_000
    rng = np.random.default_rng(seed)
    words = sample_words(rng, law.sample(rng, n), d, any_of(k))
    for g, target, other in [(0.0, 1.5, 0.7), (2.0, 1.2, 0.4), (1.0, 0.8, 0.9)]:
        inside = np.arange(d) < k
        _, accuracy = evaluate(words, np.where(inside, g, 0.0), np.where(inside, target, other))
        p = float(error_probability(d, k, law, g, target, other))
        assert abs(1 - accuracy - p) < FAR * math.sqrt(p * (1 - p) / n)


# ---------------------------------------------------------------- phase 3


def exact_phase_three(d, k, law, weight):
    """Minimum over (beta_S, beta_o) in rationals, e^g = weight: the normal equations of the symmetric model."""
    rows = [
        (p, Fraction(weight * sum(n[:k]), weight * sum(n[:k]) + sum(n[k:])), 2 if sum(n[:k]) else 0)
        for n, p in brute_force.words(d, law)
    ]
    aa = sum(p * a * a for p, a, _ in rows)
    ab = sum(p * a * (1 - a) for p, a, _ in rows)
    bb = sum(p * (1 - a) ** 2 for p, a, _ in rows)
    ya = sum(p * a * y for p, a, y in rows)
    yb = sum(p * (1 - a) * y for p, a, y in rows)
    determinant = aa * bb - ab * ab
    target, other = (ya * bb - yb * ab) / determinant, (yb * aa - ya * ab) / determinant
    loss = sum(p * (target * a + other * (1 - a) - y) ** 2 for p, a, y in rows)
    return loss, target, other


@given(st.integers(2, 4), st.integers(1, 2), small_laws, st.integers(-2, 6))
@settings(max_examples=40)
def test_the_minimum_of_phase_three_is_exact(d, k, law, log2_weight):
    if k >= d:
        return
    weight = Fraction(2) ** log2_weight
    loss, target, other = exact_phase_three(d, k, law, weight)
    phase = output_phase(d, k, brute_force.to_law(law), log2_weight * math.log(2))
    assert phase.minimum == pytest.approx(float(loss), rel=1e-11, abs=1e-15)
    assert phase.beta_target == pytest.approx(float(target), rel=1e-11, abs=0)
    assert phase.beta_other == pytest.approx(float(other), rel=1e-11, abs=1e-15)
    assert phase.loss(phase.beta_target, phase.beta_other) == pytest.approx(float(loss), rel=1e-9, abs=1e-15)


@given(alphabets, laws, st.floats(-5, 40))
@settings(max_examples=40)
def test_the_bounds_of_phase_three_hold_in_order(alphabet, law, g):
    phase = output_phase(*alphabet, law, g)
    values = [phase.lower_bound, phase.minimum, phase.bound, phase.exponential_bound, phase.universal_bound]
    for smaller, larger in pairwise(values):
        assert smaller <= larger * (1 + ROUNDING)
    assert phase.minimum >= 0
    assert phase.minimum == pytest.approx(2 * phase.moments.negative * phase.beta_other, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("g", [5.0, 12.0, 20.0, 36.0, 300.0])
def test_the_minimum_is_stable_at_large_logit_gaps(g):
    """Against forty digits: the plain formula nu - mu^2 has lost every digit at g = 20."""
    d, k, law = 10, 2, Table([1, 4, 30], [0.25, 0.5, 0.25])
    with mpmath.workdps(300):
        e, kappa = mpmath.exp(mpmath.mpf(g)), mpmath.mpf(k) / d
        q = mu = nu = mpmath.mpf(0)
        for m, p in zip(law.lengths.tolist(), law.probabilities.tolist(), strict=True):
            for n in range(1, m + 1):
                mass = mpmath.mpf(p) * mpmath.binomial(m, n) * kappa**n * (1 - kappa) ** (m - n)
                a = n * e / (n * e + m - n)
                q, mu, nu = q + mass, mu + mass * a, nu + mass * a**2
        mu, nu = mu / q, nu / q
        exact = 4 * q * (1 - q) * (nu - mu**2) / (nu - q * mu**2)
    assert output_phase(d, k, law, g).minimum == pytest.approx(float(exact), rel=ROUNDING, abs=0)


def test_the_hessian_has_the_stated_eigenvalues():
    """All d of them, from the second moments of the attention shares over all words."""
    d, k, law, weight = 5, 2, {2: Fraction(1, 2), 4: Fraction(1, 2)}, 3
    second = np.zeros((d, d))
    for counts, p in brute_force.words(d, law):
        a = [float(v) for v in brute_force.shares(counts, [weight] * k + [1] * (d - k))]
        second += float(p) * np.outer(a, a)
    phase = output_phase(d, k, brute_force.to_law(law), math.log(weight))
    stated = [*phase.eigenvalues, *[phase.target_eigenvalue] * (k - 1), *[phase.other_eigenvalue] * (d - k - 1)]
    assert np.sort(stated) == pytest.approx(np.linalg.eigvalsh(2 * second), abs=1e-13)


@given(alphabets, laws, st.floats(-5, 20))
@settings(max_examples=40)
def test_every_rate_up_to_one_is_safe(alphabet, law, g):
    phase = output_phase(*alphabet, law, g)
    assert phase.eigenvalues[1] < 2
    assert phase.largest_stable_rate > 1
    assert phase.target_eigenvalue <= phase.eigenvalues[1] * (1 + ROUNDING)
    assert phase.other_eigenvalue <= phase.eigenvalues[1] * (1 + ROUNDING)
    assert phase.eigenvalues == pytest.approx(np.linalg.eigvalsh(phase.hessian), abs=1e-14)
    assert phase.convergence_factor(phase.best_rate) <= phase.convergence_factor(1.0) + ROUNDING


@given(alphabets, laws, st.floats(0, 12), st.floats(0.05, 1.2), st.floats(-1, 3), st.floats(-1, 2))
@settings(max_examples=30)
def test_the_loss_of_phase_three_follows_its_closed_form(alphabet, law, g, rate, target, other):
    d, k = alphabet
    phase = output_phase(d, k, law, g)
    path = population_path(d, k, law, [("O", 60, rate, 0.0)], start=(target, other, g))
    expected = phase.minimum + phase.excess_loss(target, other, rate, np.arange(61))
    assert path.loss == pytest.approx(expected, rel=1e-9, abs=1e-13)


@given(alphabets, st.floats(1, 12), st.floats(0.05, 1.0), st.floats(1e-8, 1e-2))
@settings(max_examples=40)
def test_the_step_count_suffices_and_the_exact_one_is_least(alphabet, g, rate, excess):
    phase = output_phase(*alphabet, None, g)
    bound, exact = (f(excess, 1.5, 0.7, rate) for f in (phase.steps_to, phase.exact_steps_to))
    assert exact <= bound
    assert phase.excess_loss(1.5, 0.7, rate, exact) <= excess
    assert exact == 0 or phase.excess_loss(1.5, 0.7, rate, exact - 1) > excess


def test_values_of_phase_three():
    g = logit_gap(50, 1, None, 20.0, 300.0)
    phase = output_phase(50, 1, None, g)
    assert phase.minimum == pytest.approx(1.45613521e-6, rel=5e-9, abs=0)
    assert phase.bound == pytest.approx(4.36941e-6, rel=5e-6, abs=0)
    assert certified_length(g, phase.beta_target, phase.beta_other) == 33825
    start = output_update(50, 1, None, 20.0)
    assert phase.steps_to(1e-3, *start, 1.0) == 145
    assert phase.exact_steps_to(1e-3, *start, 1.0) == 139
    assert phase.steps_to(1e-3, *start, 2.5) == math.inf == phase.exact_steps_to(1e-3, *start, 2.5)
    with pytest.raises(InputError, match="excess"):
        phase.steps_to(0.0, *start, 1.0)


# ---------------------------------------------------------------- what other plans cannot do


@given(alphabets, laws)
def test_output_only_is_phase_three_without_attention(alphabet, law):
    phase = output_phase(*alphabet, law, 0.0)
    assert output_only_loss(*alphabet, law) == pytest.approx(float(phase.minimum), rel=1e-9, abs=1e-14)
    target, other = output_only_weights(*alphabet, law)
    assert (target, other) == pytest.approx((float(phase.beta_target), float(phase.beta_other)), rel=1e-8)


@given(st.integers(2, 4), small_laws)
def test_output_only_matches_all_words(d, law):
    assert output_only_loss(d, 1, brute_force.to_law(law)) == pytest.approx(
        float(exact_phase_three(d, 1, law, 1)[0]), abs=1e-14
    )


def test_values_of_the_lower_bounds():
    assert output_only_loss(50, np.array([1, 2])) == pytest.approx([0.748294689, 0.698452769], abs=5e-10)
    assert attention_first_probability(50) == pytest.approx(0.130564, abs=5e-7)
    assert attention_first_ratio(50) == pytest.approx(1.9259, abs=5e-5)


def test_a_frozen_random_attention_allows_no_less_than_its_minimum():
    rng = np.random.default_rng(0)
    d, law = 4, {2: Fraction(1, 2), 5: Fraction(1, 2)}
    weights = [Fraction(int(n), 16) for n in rng.integers(4, 64, d)]
    second, positive = np.zeros((d, d)), np.zeros(d)
    for counts, p in brute_force.words(d, law):
        a = np.array([float(v) for v in brute_force.shares(counts, weights)])
        second += float(p) * np.outer(a, a)
        positive += float(p) * a * (counts[0] > 0)
    q = float(brute_force.expectation(d, law, lambda counts: counts[0] > 0))
    loss, beta = frozen_attention_minimum(second, positive, q)

    def exact(values):
        return float(
            brute_force.loss_and_gradient(any_of(1), d, law, [weights], [[Fraction(float(b)) for b in values]])[0]
        )

    assert exact(beta) == pytest.approx(loss, abs=1e-12)
    assert min(exact(beta + 0.01 * rng.normal(size=d)) for _ in range(5)) > loss


@given(st.integers(1, 2), st.integers(0, 10**6))
@settings(max_examples=25)
def test_scores_alone_never_get_below_their_bound(heads, seed):
    rng = np.random.default_rng(seed)
    d, law = 3, {1: Fraction(1, 4), 3: Fraction(3, 4)}
    beta = rng.integers(-8, 20, (heads, d)) / 8
    q = float(brute_force.expectation(d, law, lambda counts: counts[0] > 0))
    bound, accuracy = attention_only_bound(q, beta)
    weights = [[Fraction(int(w), 4) for w in row] for row in rng.integers(1, 400, (heads, d))]
    rational = [[Fraction(float(b)) for b in row] for row in beta]
    loss = brute_force.loss_and_gradient(any_of(1), d, law, weights, rational)[0]
    assert float(loss) >= bound - 1e-12
    if not np.isnan(accuracy):

        def right(counts):
            f = (
                sum(
                    sum(a * b for a, b in zip(brute_force.shares(counts, w), row, strict=True))
                    for w, row in zip(weights, rational, strict=True)
                )
                - 1
            )
            return f * (1 if counts[0] else -1) > 0

        assert float(brute_force.expectation(d, law, right)) == pytest.approx(accuracy)


def test_scores_alone_stay_at_zero_init_for_ever():
    path = population_path(50, 1, None, [("A", 20, 0.0, 100.0)])
    assert np.all(path.loss == path.loss[0]) and path.loss[0] == pytest.approx(2.0)
    assert attention_only_bound(0.5, np.zeros(50)) == (2.0, 0.5)
    assert np.all(path.accuracy == pytest.approx(0.5))
    assert population_gradient(50, 1, None, 0.0, 0.0, 3.0)[3] == 0


@pytest.mark.parametrize(("d", "law"), [(5, None), (50, None), (50, Geometric(0.2)), (1000, None)])
def test_the_first_pick_probability_is_its_integral(d, law):
    rho = float(attention_first_ratio(d, law))
    slope = math.sqrt((d * rho**2 - 1) / (d - 1))
    with mpmath.workdps(20):
        exact = mpmath.quad(
            lambda t: mpmath.npdf(t) * mpmath.ncdf(slope * t) ** (d - 1), [-10, -3, 0, 1, 2, 3, 4, 6, 10]
        )
    assert attention_first_probability(d, law) == pytest.approx(float(exact), abs=1e-12)


def test_random_draws_pick_the_target_first_that_often():
    d, n, law, rng = 50, 40_000, Geometric(1 / 49), np.random.default_rng(7)
    beta = rng.normal(size=(n, d))
    alpha = -linear_attention_gradient(any_of(1), d, law, beta)  # rows are independent: the gradient is linear
    share = (alpha.argmax(axis=1) == 0).mean()
    p = float(attention_first_probability(d, law))
    assert abs(share - p) < FAR * math.sqrt(p * (1 - p) / n)


def test_the_first_pick_probability_decays_as_its_asymptote():
    d = np.array([50, 10**3, 10**4, 10**6, 10**8])
    ratio = attention_first_probability(d) / attention_first_asymptote(d)
    assert np.all(np.diff(ratio) > 0) and ratio[-1] < 1 and ratio[-1] > 0.95
    assert np.all(np.diff(attention_first_probability(d)) < 0)


# ---------------------------------------------------------------- the three phases together


def test_theory_has_every_promised_number():
    result = theory(50, 1, None, 20.0, 300.0)
    for key in (
        "q",
        "E1",
        "E2",
        "beta_target",
        "beta_other",
        "output_gap",
        "rate_o_window",
        "K",
        "logit_gap",
        "attention_gap",
        "certified_length",
        "log10_test_error_bound",
        "phase3_loss",
        "phase3_loss_bound",
        "output_only_loss",
        "attention_first_probability",
    ):
        assert np.all(np.isfinite(result[key])), key
    assert result["certified_length"] == 93590
    assert result["attention_gap"] == pytest.approx(0.998520372, abs=5e-10)
    assert result["log10_test_error_bound"] == pytest.approx(93590 * math.log10(48 / 49), rel=1e-12, abs=0)
    assert result["rate_o_window"] == pytest.approx((12.5, 25.5208333), abs=5e-8)
    assert analytic.theory is theory


def test_theory_broadcasts_over_grids_of_rates_and_of_d():
    grid = theory(50, 1, None, np.linspace(10, 30, 5)[:, None], np.linspace(0, 400, 4))
    assert grid["certified_length"].shape == grid["phase3_loss"].shape == (5, 4)
    one = theory(50, 1, None, 20.0, 400.0)
    for key, value in one.items():
        if key != "rate_o_window":
            entry = np.broadcast_to(grid[key], (5, 4))[2, 3]
            assert entry == pytest.approx(float(value), rel=1e-12, abs=0), key
    many = theory(np.array([10, 50, 200]), 2)
    assert many["phase3_loss"].shape == (3,) and np.all(np.isnan(many["attention_first_probability"]))
    assert many["q"] == pytest.approx(0.5)


def test_output_gap_of_phase_one_is_in_theory():
    assert theory()["output_gap"] == output_gap(50, 1, None, 20.0)


@pytest.mark.parametrize("bad", [{"d": 1}, {"k": 0}, {"k": 50}, {"rate_o": -1.0}, {"rate_a": math.nan}])
def test_theory_refuses_what_makes_no_sense(bad):
    with pytest.raises(InputError):
        theory(**bad)


def test_bad_thresholds_are_refused():
    for eps in (0.0, 1.0, -1.0, math.nan):
        with pytest.raises(InputError, match="eps"):
            logit_gap_for_attention(50, 1, eps)
    for beta in (np.zeros((1, 1, 1)), np.array([]), np.array([np.nan])):
        with pytest.raises(InputError, match="beta"):
            attention_only_bound(0.5, beta)
