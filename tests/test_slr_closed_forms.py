"""Infinite data of single-location regression: integrals against other integrals, paths against samples."""

import doctest

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic import slr
from analytic.errors import InputError
from analytic.gradients.slr import descend, evaluate, loss_and_gradient, sample_tokens

EXACT = 1e-14  # what `share_moments` promises
STANDARD_ERRORS = 6.0


def logistic_integrals(d, a):
    """The six moments of two tokens, whose difference of scores is a N(sqrt(d/2), 3/2), to 25 digits."""
    with mpmath.workdps(30):
        mean, deviation, a = mpmath.sqrt(mpmath.mpf(d) / 2), mpmath.sqrt(mpmath.mpf(3) / 2), mpmath.mpf(a)
        marks = sorted({mean + deviation * m for m in (-14, -5, 0, 5, 14)} | {z / max(abs(a), 1) for z in (-40, 0, 40)})

        def mean_of(function):
            def integrand(x):
                share = 1 / (1 + mpmath.exp(-a * x))
                return function(share, x * share * (1 - share)) * mpmath.npdf(x, mean, deviation)

            return float(mpmath.quad(integrand, marks))

        return [mean_of(f) for f in (
            lambda p, slope: p, lambda p, slope: p**2, lambda p, slope: (1 - p) ** 2,
            lambda p, slope: slope, lambda p, slope: 2 * p * slope, lambda p, slope: -2 * (1 - p) * slope,
        )]  # fmt: skip


@pytest.mark.parametrize("a", (0.0, 0.01, 1.0, -2.0, 3.0, 20.0))
@pytest.mark.parametrize("d", (2, 50))
def test_two_tokens_share_attention_by_a_logistic_function_of_a_normal_variable(d, a):
    assert slr.share_moments(d, 2, a) == pytest.approx(logistic_integrals(d, a), abs=EXACT)


@pytest.mark.parametrize("tokens", (1, 2, 3, 10, 1000))
def test_uniform_attention_shares_evenly(tokens):
    first, second, others, *slopes = slr.share_moments(50, tokens, 0.0)
    assert (first, second, others) == pytest.approx((1 / tokens, 1 / tokens**2, (tokens - 1) / tokens**2), abs=EXACT)
    # dP_J/da = P_J (x_J - mean x), and P_J^2 and the other squares follow it
    slope = (tokens - 1) / tokens**2 * 5
    assert slopes == pytest.approx([slope, 2 * slope / tokens, -2 * slope / tokens], abs=5 * EXACT)


def by_quadrature(d, tokens, a, nodes):
    """The moments of three tokens, by Gauss-Hermite sums over their scores: nothing shared with the product."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights /= weights.sum()
    x = np.exp(a * (np.sqrt(d / 2) + np.sqrt(0.5) * points))[:, None, None]
    y, z = np.exp(a * points)[None, :, None], np.exp(a * points)[None, None, :]
    total, mass = x + y + z, np.einsum("i,j,k->ijk", weights, weights, weights)
    return [np.sum(mass * part) for part in (x / total, (x / total) ** 2, (y**2 + z**2) / total**2)]


@pytest.mark.parametrize(("d", "a"), ((2, 0.3), (6, 0.5), (50, -0.4)))
def test_three_tokens_by_gauss_hermite_sums(d, a):
    assert slr.share_moments(d, 3, a)[:3] == pytest.approx(by_quadrature(d, 3, a, 60), abs=1e-12)


@given(st.integers(2, 300), st.integers(2, 60), st.floats(-20, 20))
def test_shares_are_shares(d, tokens, a):
    first, second, others, first_slope, *_ = slr.share_moments(d, tokens, a)
    assert 0 <= first <= 1 + EXACT and first**2 <= second + EXACT and second <= first + EXACT
    assert (1 - first) ** 2 / (tokens - 1) <= others + EXACT  # at least as if the others shared evenly
    assert others <= 1 - first + EXACT
    assert a < 0 or first >= 1 / tokens - EXACT
    step = 1e-4
    moved = (slr.share_moments(d, tokens, [a - 2 * step, a - step, a + step, a + 2 * step])[0]) @ [1, -8, 8, -1]
    assert first_slope == pytest.approx(moved / (12 * step), abs=1e-9 * d**2.5)


def test_slopes_of_the_loss_are_its_derivatives():
    for a, c in ((0.3, 0.5), (-1.0, 1.5), (2.5, -0.4)):
        _, d_a, d_c = slr.line_gradient(20, 7, 0.2, a, c)
        for slope, axis in ((d_a, 0), (d_c, 1)):
            losses = [slr.line_gradient(20, 7, 0.2, a + m * 1e-3 * (axis == 0), c + m * 1e-3 * (axis == 1))[0]
                      for m in (-2, -1, 1, 2)]
            assert np.dot([1, -8, 8, -1], losses) / 12e-3 == pytest.approx(slope, abs=1e-10)


def test_the_line_meets_the_closed_forms_at_zero_scores():
    for tokens, c in ((1, 0.3), (2, 0.7), (10, -1.2)):
        loss, d_k, d_v = slr.gradient_at_zero_scores(tokens, [0, c, 0, 0], 0.2)
        found = slr.line_gradient(4, tokens, 0.2, 0.0, c)
        assert found == pytest.approx((loss, d_k[0], d_v[1]), abs=5 * EXACT)
    best, c = slr.output_only_minimum(10, 0.1)
    assert slr.line_gradient(50, 10, 0.1, 0.0, c) == pytest.approx((best, -slr.attention_step(50, 10, c, 1.0), 0),
                                                                   abs=5 * EXACT)
    assert best == pytest.approx(0.01 + 0.5 - 0.25 / 9.5, abs=EXACT)


def test_numbers_broadcast():
    loss, d_a, d_c = slr.line_gradient(50, 10, 0.1, [[0.0], [1.0]], [0.1, 0.2, 0.3])
    assert loss.shape == d_a.shape == d_c.shape == (2, 3)
    assert loss[1, 2] == slr.line_gradient(50, 10, 0.1, 1.0, 0.3)[0]


def test_beyond_the_largest_score_there_is_no_number_and_one_token_needs_none():
    assert np.isnan(slr.share_moments(50, 10, [301.0, -np.inf, np.nan])).all()
    assert slr.share_moments(50, 10, 300.0)[0] == pytest.approx(1.0, abs=1e-3)
    assert slr.share_moments(50, 1, 1e9).tolist() == [1, 1, 0, 0, 0, 0]


PLAN = [("O", 1, 5.0, 0.0), ("A", 1, 0.0, 3.0), ("O", 30, 0.02, 0.0), ("AO", 20, 0.03, 0.03)]


def test_a_path_takes_the_steps_of_the_gradient_and_can_be_cut():
    path = slr.line_path(50, 10, 0.1, PLAN)
    assert path.phase_ends == (1, 2, 32, 52) and path.time.tolist() == list(range(53))
    loss, d_a, d_c = slr.line_gradient(50, 10, 0.1, path.a, path.c)
    assert path.loss == pytest.approx(loss, abs=EXACT)
    assert path.share == pytest.approx(slr.share_moments(50, 10, path.a)[0], abs=EXACT)
    rates_a, rates_o = [np.repeat([p[i] if layer in p[0] else 0.0 for p in PLAN], [p[1] for p in PLAN])
                        for i, layer in ((3, "A"), (2, "O"))]
    assert np.diff(path.a) == pytest.approx(-rates_a * d_a[:-1], abs=EXACT)
    assert np.diff(path.c) == pytest.approx(-rates_o * d_c[:-1], abs=EXACT)
    first = slr.line_path(50, 10, 0.1, PLAN[:2])
    second = slr.line_path(50, 10, 0.1, PLAN[2:], start=(first.a[-1], first.c[-1]))
    assert np.array_equal(np.append(first.a[:-1], second.a), path.a)
    assert (path.a[1], path.c[1]) == pytest.approx((0.0, slr.output_step(10, 5.0)), abs=EXACT)
    assert path.a[2] == pytest.approx(slr.attention_step(50, 10, path.c[1], 3.0), rel=1e-13)


def test_a_path_ends_with_the_first_loss_above_the_limit_or_not_a_number():
    path = slr.line_path(50, 10, 0.1, [("O", 50, 30.0, 0.0), ("A", 5, 0.0, 1.0)], loss_limit=1e3)
    assert path.loss[-1] > 1e3 >= path.loss[-2] and path.phase_ends == (len(path.loss) - 1,) * 2
    lost = slr.line_path(50, 10, 0.1, [("O", 1, 5.0, 0.0), ("A", 9, 0.0, 1e4)])
    assert np.isnan(lost.loss[-1]) and np.isfinite(lost.loss[:-1]).all()


def test_joint_descent_on_infinite_data_ends_near_the_noise_but_above_the_oracle():
    path = slr.line_path(50, 10, 0.1, [("AO", 2000, 0.03, 0.03)])
    assert slr.oracle_risk(0.1) < path.loss[-1] < 0.012
    assert path.share[-1] > 0.97 and np.all(np.diff(path.loss) < 0)


def test_samples_follow_the_infinite_data_path():
    d, tokens, noise, contexts = 10, 4, 0.1, 20_000
    plan = [("O", 1, 2.0, 0.0), ("A", 1, 0.0, 2.0), ("AO", 10, 0.05, 0.05)]
    path = slr.line_path(d, tokens, noise, plan)
    ends = []
    for seed in range(8):
        data = sample_tokens(np.random.default_rng(seed), contexts, tokens, *np.eye(2, d), noise)
        k = v = np.zeros(d)
        for layer, steps, rate_o, rate_a in plan:
            run = descend(data, k, v, rate_a * ("A" in layer), rate_o * ("O" in layer), steps)
            k, v = run.k[-1], run.v[-1]
        ends.append([k[0], v[1], run.loss[-1], np.abs(k[1:]).max(), np.abs(np.delete(v, 1)).max()])
    a, c, loss, k_across, v_across = np.transpose(ends)
    for samples, wanted in ((a, path.a[-1]), (c, path.c[-1]), (loss, path.loss[-1])):
        error = samples.std(ddof=1) / np.sqrt(len(samples))
        bias = 2 * d / contexts  # of order d/N: the parts off the line enter by their squares
        assert abs(samples.mean() - wanted) <= STANDARD_ERRORS * error + bias
    assert max(k_across.max(), v_across.max()) < 0.1


def test_gradient_at_zero_scores_is_the_limit_of_samples():
    rng, d = np.random.default_rng(0), 6
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    v, found = rng.normal(size=d), []
    for _ in range(12):
        data = sample_tokens(rng, 20_000, 5, axes[0], axes[1], 0.3)
        found.append(np.concatenate([np.atleast_1d(part) for part in loss_and_gradient(data, np.zeros(d), v)]))
    loss, d_k, d_v = slr.gradient_at_zero_scores(5, v, 0.3, axes[0], axes[1])
    errors = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(np.mean(found, axis=0) - [loss, *d_k, *d_v]) <= STANDARD_ERRORS * errors)


def test_the_oracle_reads_one_token():
    data = sample_tokens(np.random.default_rng(0), 50_000, 1, *np.eye(2, 3), 0.2)
    assert evaluate(data, np.zeros(3), np.eye(3)[1]) == pytest.approx(slr.oracle_risk(0.2), rel=0.05)


@pytest.mark.parametrize(("call", "message"), (
    (lambda: slr.share_moments(1, 10, 0.0), "d must"),
    (lambda: slr.share_moments(50, 0, 0.0), "tokens must"),
    (lambda: slr.line_gradient(50, 10, -1, 0.0, 0.0), "noise must"),
    (lambda: slr.output_step(10, -1.0), "rate_o must"),
    (lambda: slr.attention_step(50, 10, np.nan, 1.0), "c must"),
    (lambda: slr.attention_step(50, 10, 1.0, np.inf), "rate_a must"),
    (lambda: slr.output_only_minimum(0), "tokens must"),
    (lambda: slr.oracle_risk(-0.1), "noise must"),
    (lambda: slr.gradient_at_zero_scores(10, [1.0]), "v must"),
    (lambda: slr.gradient_at_zero_scores(10, [1.0, np.nan]), "v must"),
    (lambda: slr.line_path(50, 10, 0.1, [("B", 1, 1.0, 1.0)]), "layer must"),
    (lambda: slr.line_path(50, 10, 0.1, [("A", -1, 1.0, 1.0)]), "steps must"),
    (lambda: slr.line_path(50, 10, 0.1, [("A", 1, 1.0, -1.0)]), "rate_a must"),
    (lambda: slr.line_path(50, 10, 0.1, [], start=(np.inf, 0.0)), "a must"),
))
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_examples_in_the_documentation_are_true():
    assert doctest.testmod(slr).failed == 0
