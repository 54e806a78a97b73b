"""Infinite data: against the kernel on all words of a small alphabet, samples, gradient flow and sympy."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.gradients.letter import Words, descend, sample_words
from analytic.languages import any_of
from analytic.lengths import Fixed, Geometric, ShiftedPoisson, Table, Uniform, balanced_geometric
from analytic.moments import share_moments
from analytic.one_step import attention_update, gradient_at_zero_scores, output_update
from analytic.population import flow_taylor, population_flow, population_gradient, population_path

from . import brute_force

ROUNDING = 1e-12  # absolute, over tens of steps of size 1
FAR = 5.5  # z-score at fixed seeds, largest of about a hundred

LAWS = [Geometric(0.2), Geometric(1 / 49), Fixed(7), Uniform(1, 9), ShiftedPoisson(4.0)]
laws = st.sampled_from([None, *LAWS])
alphabets = st.integers(3, 200).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, min(d - 1, 16))))


def all_words(d, k, repeats):
    """Every word of each length m, ``repeats[m]`` times: a sample that is its own population."""
    rows = [
        word for m, times in repeats.items() for word in itertools.product(range(d), repeat=m) for _ in range(times)
    ]
    counts = np.array([[word.count(j) for j in range(d)] for word in rows])
    return Words.from_counts(counts, any_of(k).labels(counts[:, :k] > 0))


@pytest.mark.parametrize(
    ("d", "k", "repeats", "law"),
    [
        (4, 1, {4: 1}, Fixed(4)),
        (4, 2, {3: 1}, Fixed(3)),
        (2, 1, {1: 2, 2: 3}, Table([1, 2], [0.25, 0.75])),
        (3, 2, {1: 3, 3: 1}, Table([1, 3], [0.25, 0.75])),
    ],
)
def test_population_descent_is_the_kernel_on_all_words(d, k, repeats, law):
    words = all_words(d, k, repeats)
    plan = [("O", 1, 2.0, 0.0), ("A", 1, 0.0, 5.0), ("AO", 40, 0.6, 1.5), ("O", 20, 0.5, 0.0), ("A", 5, 0.0, 3.0)]
    path = population_path(d, k, law, plan)
    alpha, beta, t = np.zeros(d), np.zeros(d), 0
    for layer, steps, rate_o, rate_a in plan:
        run = descend(words, alpha, beta, rate_a if "A" in layer else 0.0, rate_o if "O" in layer else 0.0, steps)
        records = slice(t, t + steps + 1)
        assert path.loss[records] == pytest.approx(run.loss, abs=ROUNDING)
        assert path.beta_target[records] == pytest.approx(run.beta[:, 0], abs=ROUNDING)
        assert path.beta_other[records] == pytest.approx(run.beta[:, -1], abs=ROUNDING)
        assert path.logit_gap[records] == pytest.approx(run.alpha[:, 0] - run.alpha[:, -1], abs=ROUNDING)
        alpha, beta, t = run.alpha[-1], run.beta[-1], t + steps
    assert path.phase_ends == (1, 2, 42, 62, 67)
    gamma = np.exp(alpha) / np.exp(alpha).sum()
    assert path.attention_gap[-1] == pytest.approx(gamma[:k].sum() - gamma[k:].max(), abs=ROUNDING)
    assert path.output_gap[-1] == pytest.approx((beta[:k].min() - beta[k:].max()) / 2, abs=ROUNDING)


def test_samples_follow_the_population_on_average():
    d, n, seeds, steps = 8, 20_000, 12, 40
    law = balanced_geometric(any_of(1), d)
    path = population_path(d, 1, law, [("AO", steps, 1.0, 1.0)])
    runs = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        words = sample_words(rng, law.sample(rng, n), d, any_of(1))
        run = descend(words, np.zeros(d), np.zeros(d), 1.0, 1.0, steps)
        runs.append([run.beta[1:, 0], run.beta[1:, 1:].mean(axis=1), run.loss[1:]])
    runs = np.array(runs)
    exact = np.array([path.beta_target[1:], path.beta_other[1:], path.loss[1:]])
    z = (runs.mean(axis=0) - exact) / (runs.std(axis=0, ddof=1) / np.sqrt(seeds))
    assert np.abs(z).max() < FAR


@given(st.integers(2, 4), st.integers(1, 2), st.integers(-2, 4), st.integers(-8, 20), st.integers(-8, 12))
@settings(max_examples=30)
def test_the_gradient_matches_all_words_at_any_symmetric_state(d, k, log2_weight, target, other):
    if k >= d:
        return
    law = {1: Fraction(1, 4), 3: Fraction(1, 4), 4: Fraction(1, 2)}
    weights = [[Fraction(2) ** log2_weight] * k + [Fraction(1)] * (d - k)]
    beta = [[Fraction(target, 8)] * k + [Fraction(other, 8)] * (d - k)]
    loss, d_alpha, d_beta = brute_force.loss_and_gradient(any_of(k), d, law, weights, beta)
    exact = [float(v) for v in (loss, d_beta[0][0], d_beta[0][-1], d_alpha[0][0], d_alpha[0][-1])]
    value = population_gradient(d, k, brute_force.to_law(law), target / 8, other / 8, log2_weight * np.log(2))
    assert [float(v) for v in value] == pytest.approx(exact, abs=ROUNDING)


@given(alphabets, laws, st.floats(-1, 3), st.floats(-1, 3))
def test_without_attention_the_gradient_is_the_closed_form(alphabet, law, target, other):
    d, k = alphabet
    used = law or balanced_geometric(any_of(k), d)
    beta = np.where(np.arange(d) < k, target, other)
    d_alpha, d_beta = gradient_at_zero_scores(any_of(k), d, used, beta)
    value = population_gradient(d, k, used, target, other, 0.0)[1:]
    expected = [d_beta[0], d_beta[-1], d_alpha[0], d_alpha[-1]]
    assert [float(v) for v in value] == pytest.approx(expected, abs=1e-12 * (1 + abs(target) + abs(other)) ** 2)


@given(alphabets, laws, st.floats(0, 50), st.floats(0, 300))
def test_the_first_two_steps_are_the_closed_forms(alphabet, law, rate_o, rate_a):
    path = population_path(*alphabet, law, [("O", 1, rate_o, 0.0), ("A", 1, 0.0, rate_a)])
    target, other = attention_update(*alphabet, law, rate_o, rate_a)
    scale = (1 + rate_o) ** 2 * (1 + rate_a) * 1e-12
    assert (path.beta_target[1], path.beta_other[1]) == pytest.approx(output_update(*alphabet, law, rate_o), abs=scale)
    assert path.logit_gap[2] == pytest.approx(target - other, abs=scale)


@given(alphabets, laws, st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=30)
def test_a_run_cut_in_two_has_the_same_bits(alphabet, law, first, second):
    whole = population_path(*alphabet, law, [("AO", first + second, 0.7, 1.3)])
    cut = population_path(*alphabet, law, [("AO", first, 0.7, 1.3), ("AO", second, 0.7, 1.3)])
    again = population_path(
        *alphabet,
        law,
        [("AO", second, 0.7, 1.3)],
        start=(whole.beta_target[first], whole.beta_other[first], whole.logit_gap[first]),
    )
    assert np.array_equal(whole.loss, cut.loss) and np.array_equal(whole.logit_gap, cut.logit_gap)
    assert np.array_equal(whole.loss[first:], again.loss)
    assert whole.phase_ends == (first + second,) and cut.phase_ends == (first, first + second)


def test_values_of_joint_descent():
    path = population_path(50, 1, None, [("AO", 400, 1.0, 1.0)])
    assert path.first_above("attention_gap", 0.1) == 29
    assert path.first_above("attention_gap", 0.9) == 142
    assert path.loss[-1] == pytest.approx(9.76217e-4, rel=5e-6)
    assert path.attention_gap[-1] == pytest.approx(0.960506, abs=5e-7)
    assert path.output_gap[-1] == pytest.approx(1.031741, abs=5e-7)
    assert path.first_above("attention_gap", 0.99) is None
    assert path.left_out <= 2e-18


@pytest.mark.parametrize(("d", "step"), [(10, 7), (20, 13), (50, 29), (100, 56), (200, 106), (500, 254), (4000, 1946)])
def test_attention_lags_in_proportion_to_the_alphabet(d, step):
    path = population_path(d, 1, None, [("AO", d, 1.0, 1.0)])
    assert path.first_above("attention_gap", 0.1) == step
    assert path.first_above("output_gap", 0.1) < step / 3


def test_three_phases_solve_and_one_is_not_enough():
    path = population_path(50, 1, None, [("O", 1, 20.0, 0.0), ("A", 1, 0.0, 300.0), ("O", 400, 1.0, 0.0)])
    after_1, after_2, after_3 = path.phase_ends
    assert path.accuracy[after_2] == 1 and path.attention_gap[after_2] == pytest.approx(0.998520372, abs=5e-10)
    assert path.loss[after_3] == pytest.approx(1.4561e-6, rel=0.03)
    assert path.accuracy[after_1] < 0.6


def test_a_path_that_diverges_ends_with_the_state_that_did():
    path = population_path(50, 1, None, [("O", 100, 200.0, 0.0), ("A", 5, 0.0, 1.0)], loss_limit=1e6)
    assert path.loss[-1] > 1e6 and np.all(path.loss[:-1] <= 1e6)
    assert len(path.loss) == len(path.logit_gap) == path.phase_ends[0] + 1 < 100
    assert len(path.phase_ends) == 1


def test_a_plan_without_steps_is_its_start():
    path = population_path(50, 1, None, [], start=(1.5, 0.5, 2.0))
    assert path.loss.shape == (1,) and path.beta_target[0] == 1.5 and path.phase_ends == (0,)


# ---------------------------------------------------------------- gradient flow


def test_descent_tends_to_the_flow():
    flow = population_flow(20, 1, None, [0.0, 4.0, 10.0], rate_o=1.5, rate_a=0.5)
    gaps = []
    for n in (50, 100, 200):
        path = population_path(20, 1, None, [("AO", 10 * n, 1.5 / n, 0.5 / n)])
        gaps.append(path.logit_gap[[4 * n, 10 * n]] - flow.logit_gap[1:])
    assert gaps[0] == pytest.approx(2 * gaps[1], rel=0.05) and gaps[1] == pytest.approx(2 * gaps[2], rel=0.05)
    assert flow.loss[-1] < flow.loss[1] < flow.loss[0] and flow.accuracy[0] == pytest.approx(0.5)


def written_out(d, k, law, c_O, c_A):
    """The coefficients up to order 4 as explicit polynomials in the share moments."""
    m, D = share_moments(d, k, law), d - k
    a, b, e, kappa = c_O / k, c_O / D, c_A * d / (k * D), m.kappa
    S1, B1 = 4 * c_O / d, 4 * b * (m.q - kappa)
    D1 = 4 * c_O * (1 - m.q) / D
    S2, B2, g2 = -a * (B1 * kappa + D1 * m.X2), -b * (B1 * (1 - kappa) + D1 * m.M1), 2 * e * D1 * m.M1
    D2 = S2 - B2
    S3 = -(2 * a / 3) * (B2 * kappa + D2 * m.X2 - 2 * m.M1 * g2)
    B3 = -(2 * b / 3) * (B2 * (1 - kappa) + D2 * m.M1 + 2 * m.M1 * g2)
    g3 = (2 * e / 3) * (2 * D2 * m.M1 - D1 * (B1 * m.M1 + D1 * m.M2))
    D3 = S3 - B3
    E3 = B3 * kappa + D3 * m.X2 + 2 * D1 * g2 * m.M2 + B1 * g2 * m.M1 - 2 * g3 * m.M1
    S4, B4 = -(a / 2) * E3, -(b / 2) * (B3 + D3 * kappa + D1 * g2 * m.M1 - E3)
    g4 = (e / 2) * (2 * D3 * m.M1 - D2 * (B1 * m.M1 + D1 * m.M2) - D1 * (B2 * m.M1 + D2 * m.M2 - 2 * m.M3 * g2))
    return np.array([[0, S1, S2, S3, S4], [0, B1, B2, B3, B4], [0, 0, g2, g3, g4]])


@given(alphabets, laws, st.floats(0.1, 3), st.floats(0.1, 3))
@settings(max_examples=40)
def test_the_taylor_coefficients_are_their_explicit_polynomials(alphabet, law, rate_o, rate_a):
    value = flow_taylor(*alphabet, law, 4, rate_o, rate_a)
    expected = written_out(*alphabet, law, rate_o, rate_a)
    scale = np.abs(expected).max(axis=0)
    assert np.all(np.abs(value - expected) <= 1e-11 * scale + 1e-15)


def test_the_taylor_coefficients_solve_the_flow_by_sympy():
    """Picard iteration on exact power series in t; A as its Taylor series in g, differentiated by sympy."""
    d, k, order, rate_o, rate_a = 3, 1, 5, sympy.Rational(3, 2), sympy.Rational(1, 2)
    law = {1: sympy.Rational(1, 4), 2: sympy.Rational(1, 4), 4: sympy.Rational(1, 2)}
    t, g = sympy.symbols("t g")

    def cut(polynomial):
        polynomial = sympy.Poly(polynomial, t)
        return sum(polynomial.coeff_monomial(t**i) * t**i for i in range(order + 1))

    words = []
    for m, p in law.items():
        for n in range(m + 1):
            share = n * sympy.exp(g) / (n * sympy.exp(g) + m - n)
            taylor = [sympy.diff(share, g, i).subs(g, 0) / sympy.factorial(i) for i in range(order + 1)]
            mass = p * sympy.binomial(m, n) * sympy.Rational(k, d) ** n * (1 - sympy.Rational(k, d)) ** (m - n)
            words.append((mass, 2 if n else 0, taylor))
    target = other = gap = sympy.Integer(0)
    for _ in range(order):
        velocity = [0, 0, 0]
        for mass, y, taylor in words:
            share = cut(sum(c * gap**i for i, c in enumerate(taylor)))
            residual = cut(target * share + other * (1 - share)) - y
            velocity[0] -= 2 * mass * residual * share * rate_o / k
            velocity[1] -= 2 * mass * residual * (1 - share) * rate_o / (d - k)
            push = cut(residual * share) * cut((target - other) * (1 - share))
            velocity[2] -= 2 * mass * push * rate_a * sympy.Rational(d, k * (d - k))
        target, other, gap = (sympy.integrate(cut(v), t) for v in velocity)
        target, other, gap = cut(target), cut(other), cut(gap)
    expected = [[float(sympy.Poly(x, t).coeff_monomial(t**i)) for i in range(order + 1)] for x in (target, other, gap)]
    table = brute_force.to_law({m: Fraction(int(p.p), int(p.q)) for m, p in law.items()})
    assert flow_taylor(d, k, table, order, 1.5, 0.5) == pytest.approx(np.array(expected), rel=1e-11, abs=1e-14)


def test_the_series_meets_the_flow_at_the_order_it_claims():
    times = np.array([0.25, 0.5, 1.0])
    flow = population_flow(10, 1, None, times)
    coefficients = flow_taylor(10, 1, None, order=7)
    misses = np.abs(np.polynomial.polynomial.polyval(times, coefficients[2]) - flow.logit_gap)
    assert misses[0] < 1e-9
    assert 2**7 < misses[2] / misses[1] < 2**9.5  # an error of order t^8


def test_attention_starts_one_order_later_than_the_output():
    target, other, g = flow_taylor(50, 1, None)
    m = share_moments(50)
    slope = 4 * (1 - m.q) / 49
    assert target[1] - other[1] == pytest.approx(slope)
    assert g[1] == 0 and g[2] == pytest.approx(2 * slope * m.M1 * 50 / 49)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("phase", "told"),
    [
        (("B", 1, 1.0, 1.0), "layer must be one of A, O, AO"),
        (("O", -1, 1.0, 1.0), "steps must be a whole number at least 0"),
        (("O", 1, -1.0, 1.0), "rate_o"),
        (("A", 1, 1.0, float("inf")), "rate_a"),
    ],
)
def test_impossible_phases_are_refused(phase, told):
    with pytest.raises(InputError, match=told):
        population_path(50, 1, None, [phase])


def test_impossible_settings_are_refused():
    with pytest.raises(InputError, match="targets"):
        population_path(50, 50, None, [])
    with pytest.raises(InputError, match="beta_S"):
        population_path(50, 1, None, [], start=(float("nan"), 0.0, 0.0))
    for times in ([], [1.0, 0.5], [-1.0], [0.0, 0.0]):
        with pytest.raises(InputError, match="times must ascend"):
            population_flow(50, 1, None, times)
    with pytest.raises(InputError, match="order"):
        flow_taylor(50, 1, None, order=0)
