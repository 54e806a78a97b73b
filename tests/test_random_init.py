"""The output step from a random start: exact covariance, the window's probability against draws and its union bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytic.bounds import rate_o_window
from analytic.errors import InputError
from analytic.languages import any_of
from analytic.lengths import Fixed, Geometric, ShiftedPoisson, balanced_geometric
from analytic.one_step import gradient_at_zero_scores, output_update
from analytic.random_init import (
    best_rate_o,
    output_step_covariance,
    random_scores_variance,
    window_failure_bound,
    window_probability,
)

FAR = 5.0  # z-score at fixed seeds


@given(
    st.integers(3, 30),
    st.integers(1, 2),
    st.sampled_from([Geometric(0.1), Fixed(3), ShiftedPoisson(4.0)]),
    st.floats(0, 60),
)
def test_the_covariance_is_that_of_the_exact_linear_step(d, k, law, rate_o):
    """beta_1 = beta_0 - rate dL/dbeta(beta_0): its matrix, read off unit vectors."""
    step = np.array([unit - rate_o * gradient_at_zero_scores(any_of(k), d, law, unit)[1] for unit in np.eye(d)])
    matrix = step - (0 - rate_o * gradient_at_zero_scores(any_of(k), d, law, np.zeros(d))[1])
    covariance = 0.3**2 * matrix.T @ matrix
    variance, common = output_step_covariance(d, k, law, rate_o, 0.3)
    expected = np.full((d, d), common) + np.eye(d) * (variance - common)
    assert covariance == pytest.approx(expected, abs=1e-13 * (1 + rate_o) ** 2)


@pytest.mark.parametrize(("rate_o", "sigma"), [(16.0, 0.1), (20.0, 0.1), (18.0, 0.3), (22.0, 0.05)])
def test_the_window_probability_is_the_share_of_draws_inside(rate_o, sigma):
    d, n, rng = 50, 40_000, np.random.default_rng(2)
    start = rng.normal(size=(n, d)) * sigma
    law = balanced_geometric(any_of(1), d)
    variance, common = output_step_covariance(d, 1, law, rate_o, sigma)
    A, B = (2 * rate_o * v / d for v in (law.mean_inverse, 1 - law.mean_inverse))
    beta = (1 - A) * start - B * start.mean(axis=1, keepdims=True)
    target, other = output_update(d, 1, law, rate_o)
    inside = ((beta[:, 0] + target > 1) & (beta[:, 1:].max(axis=1) + other < 1)).mean()
    p = window_probability(d, 1, law, rate_o, sigma)
    assert abs(inside - p) < FAR * math.sqrt(p * (1 - p) / n)
    assert beta.var() == pytest.approx(variance, rel=0.01) and common < 0


@pytest.mark.parametrize("rate_o", [8.0, 9.9, 9.99999, 10.0, 10.5, 13.0])
def test_the_probability_is_right_also_where_the_start_is_forgotten(rate_o):
    """With E1 = 1/2, d = 10 the factor 1 - A vanishes at rate 10 and letters become positively correlated."""
    d, law, sigma, n = 10, Fixed(2), 0.5, 40_000
    start = np.random.default_rng(4).normal(size=(n, d)) * sigma
    A = B = rate_o / d
    beta = (1 - A) * start - B * start.mean(axis=1, keepdims=True)
    target, other = output_update(d, 1, law, rate_o)
    inside = ((beta[:, 0] + target > 1) & (beta[:, 1:].max(axis=1) + other < 1)).mean()
    p = window_probability(d, 1, law, rate_o, sigma)
    assert abs(inside - p) < FAR * math.sqrt(p * (1 - p) / n)


def test_words_of_one_letter_forget_the_start_altogether():
    assert window_probability(5, 3, None, 2.5, 0.5) == 1  # 1 - A = 0 = B
    assert window_probability(5, 3, None, 2.0, 0.5) < 1


@given(st.integers(5, 60), st.integers(1, 3), st.floats(0.27, 0.5), st.floats(0.01, 0.5))
@settings(max_examples=40)
def test_the_union_bound_is_above_the_exact_failure(d, k, times, sigma):
    failure = 1 - window_probability(d, k, None, times * d, sigma)
    assert -1e-9 <= failure <= window_failure_bound(d, k, None, times * d, sigma) + 1e-9


def test_values_of_the_default_setting():
    rates = np.array([16.0, 17.0, 18.0, 20.0, 22.0])
    exact = [1 - window_probability(50, 1, None, rate, 0.1) for rate in rates]
    assert exact == pytest.approx([0.0032, 0.0089, 0.038, 0.391, 0.981], abs=5e-4)
    assert window_failure_bound(50, 1, None, rates, 0.1).shape == (5,)


@pytest.mark.parametrize("sigma", [0.03, 0.1, 0.3])
def test_the_best_rate_is_a_maximum_inside_the_window(sigma):
    rate, probability = best_rate_o(50, 1, None, sigma)
    low, high = rate_o_window(50)
    assert low < rate < high
    assert probability == window_probability(50, 1, None, rate, sigma)
    for other in np.linspace(low, high, 21)[1:-1]:
        assert window_probability(50, 1, None, other, sigma) <= probability + 1e-8


@pytest.mark.parametrize(("d", "k"), [(12, 1), (12, 3)])
def test_random_scores_add_the_stated_variance(d, k):
    """First order in alpha_0: the derivative of E[1_+ a_j], by central differences over every word of length 3."""
    law, rate_o = Fixed(2), 5.0
    words = np.array([[(a == j) + (b == j) for j in range(d)] for a in range(d) for b in range(d)])
    positive = words[:, :k].any(axis=1)

    def step(alpha):
        masses = words * np.exp(alpha)
        return 4 * rate_o * (positive[:, None] * masses / masses.sum(axis=1, keepdims=True)).mean(axis=0)

    h = 1e-5
    jacobian = np.array([(step(h * unit) - step(-h * unit)) / (2 * h) for unit in np.eye(d)])
    variances = (jacobian**2).sum(axis=0) * 0.02**2
    target, other = random_scores_variance(d, k, law, rate_o, 0.02)
    assert variances[:k] == pytest.approx(np.full(k, target), rel=1e-8)
    assert variances[k:] == pytest.approx(np.full(d - k, other), rel=1e-8)


def test_random_scores_make_the_window_less_likely():
    without, with_scores = (window_failure_bound(50, 1, None, 16.0, 0.1, alpha) for alpha in (0.0, 0.1))
    assert without < 0.004 < 0.04 < with_scores < 0.06


def test_impossible_spreads_are_refused():
    for sigma in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match="sigma"):
            window_probability(50, 1, None, 16.0, sigma)
    with pytest.raises(InputError, match="sigma"):
        window_failure_bound(50, 1, None, 16.0, -1.0)
