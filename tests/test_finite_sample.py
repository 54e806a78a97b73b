"""Finite samples: variances against all words, and the stated coverage by simulation with how loose it is."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.finite_sample import (
    bernstein,
    output_deviations,
    positive_shares,
    sampled_steps,
    window_failure,
    words_for_ordering,
    words_for_window,
)
from analytic.gradients.letter import loss_and_gradient, sample_words
from analytic.languages import any_of
from analytic.lengths import Fixed, Geometric, Uniform, balanced_geometric
from analytic.one_step import logit_gap, output_update

from . import brute_force

ROUNDING = 1e-13


def sampled_betas(d, k, rate_o, n, repeats, seed=0):
    """Output weights after O(1x) on fresh samples, and the words."""
    law, rng = balanced_geometric(any_of(k), d), np.random.default_rng(seed)
    for _ in range(repeats):
        words = sample_words(rng, law.sample(rng, n), d, any_of(k))
        _, _, d_beta = loss_and_gradient(words, np.zeros(d), np.zeros(d))
        yield words, -rate_o * d_beta


@given(
    st.integers(2, 4), st.integers(1, 2), st.sampled_from([{2: Fraction(1)}, {1: Fraction(1, 4), 3: Fraction(3, 4)}])
)
def test_means_and_variances_of_the_positive_shares_match_all_words(d, k, law):
    if k >= d:
        return

    def moment(letter, power):
        return float(
            brute_force.expectation(d, law, lambda n: Fraction(n[letter], sum(n)) ** power if sum(n[:k]) else 0)
        )

    shares = positive_shares(d, k, brute_force.to_law(law))
    assert shares.mean_other == pytest.approx(moment(d - 1, 1), abs=ROUNDING)
    assert shares.variance_target == pytest.approx(moment(0, 2) - moment(0, 1) ** 2, abs=ROUNDING)
    assert shares.variance_other == pytest.approx(moment(d - 1, 2) - moment(d - 1, 1) ** 2, abs=ROUNDING)


def test_bernstein_covers_means_of_bounded_values():
    """Exact tail of a binomial mean against the bound's failure probability."""
    n, p = 200, 0.1
    for log_term in (0.5, 2.0, 5.0):
        edge = n * (p + bernstein(p * (1 - p), 1 - p, n, log_term))
        tail = sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(math.floor(edge) + 1, n + 1))
        assert tail <= math.exp(-log_term)


def test_output_deviations_hold_as_often_as_claimed():
    d, k, rate_o, n, delta, repeats = 10, 2, 4.0, 800, 0.2, 300
    t_target, t_other = output_deviations(d, k, None, rate_o, n, delta)
    target, other = output_update(d, k, None, rate_o)
    misses = np.array(
        [
            [np.abs(beta[:k] - target).max() / t_target, np.abs(beta[k:] - other).max() / t_other]
            for _, beta in sampled_betas(d, k, rate_o, n, repeats)
        ]
    )
    failures = (misses > 1).any(axis=1).mean()
    assert failures <= delta + 4 * math.sqrt(delta * (1 - delta) / repeats)
    assert np.quantile(misses, 0.8, axis=0).min() > 0.25  # loose by less than four times


def test_the_window_fails_less_often_than_claimed():
    d, k, rate_o, n, repeats = 10, 1, 3.4, 60, 400
    bounds = [window_failure(d, k, None, rate_o, n, method) for method in ("bennett", "bernstein", "hoeffding")]
    assert bounds == sorted(bounds)
    failed = np.mean([not (beta[0] > 1 > beta[1:].max()) for _, beta in sampled_betas(d, k, rate_o, n, repeats)])
    assert 0.005 < failed <= bounds[0] + 4 * math.sqrt(failed * (1 - failed) / repeats)


@pytest.mark.parametrize("same_words", [True, False])
def test_the_logit_gap_of_samples_is_above_its_guarantee(same_words):
    """With the rates of both phases; the guarantee must hold, and stays within the population value."""
    d, rate_o, n, delta, repeats = 8, 3.0, 8000, 0.1, 100
    steps = sampled_steps(d, None, rate_o, n, delta, same_words)
    gaps, others = [], sampled_betas(d, 1, rate_o, n, repeats, seed=1)
    for words, beta in sampled_betas(d, 1, rate_o, n, repeats):
        second = words if same_words else next(others)[0]
        _, d_alpha, _ = loss_and_gradient(second, np.zeros(d), beta)
        gaps.append(-d_alpha[0] - (-d_alpha[1:]).max())
    gaps = np.array(gaps)
    failures = (gaps < steps.logit_gap).mean()
    assert failures <= delta + 4 * math.sqrt(delta * (1 - delta) / repeats)
    assert 0 < steps.logit_gap < gaps.mean() < steps.population_logit_gap * 1.05
    assert steps.population_logit_gap == pytest.approx(float(logit_gap(d, 1, None, rate_o, 1.0)))


@given(
    st.integers(5, 60),
    st.sampled_from([None, Geometric(0.2), Fixed(5), Uniform(2, 9)]),
    st.floats(0.27, 0.45),
    st.integers(100, 10**7),
)
@settings(max_examples=40)
def test_guarantees_grow_to_the_population_values(d, law, times, n):
    rate_o = times * d
    for same_words in (True, False):
        few, many = (sampled_steps(d, law, rate_o, size, 0.05, same_words) for size in (n, 100 * n))
        assert few.logit_gap <= many.logit_gap <= many.population_logit_gap
        assert few.beta_target[0] < many.beta_target[0] < many.beta_target[1] < few.beta_target[1]
        assert many.certified_length(1e-3) >= few.certified_length(1e-3)
    everything = sampled_steps(d, law, rate_o, 10**14, 0.05)
    assert everything.logit_gap == pytest.approx(everything.population_logit_gap, rel=1e-3)


def test_numbers_of_words_are_least():
    for count, holds in [
        (words_for_window(50, 1, None, 20.0, 0.05), lambda n: window_failure(50, 1, None, 20.0, n) <= 0.05),
        (words_for_ordering(50, None, 20.0, 0.05), lambda n: sampled_steps(50, None, 20.0, n, 0.05).logit_gap > 0),
    ]:
        assert holds(count) and not holds(count - 1)


def test_values_of_the_default_setting():
    numbers = [words_for_window(50, 1, None, 20.0, 0.05, method) for method in ("hoeffding", "bernstein", "bennett")]
    assert numbers == [470973, 2331, 1738]
    assert [words_for_window(50, 1, None, 16.0, 0.05, method) for method in ("bernstein", "bennett")] == [931, 627]
    assert words_for_ordering(50, None, 20.0, 0.05, same_words=False) == 3838
    assert words_for_ordering(50, None, 20.0, 0.05, share=0.5, same_words=False) == 9613
    assert words_for_ordering(50, None, 20.0, 0.05) < 5 * 50**2  # the sample of the experiments is enough


def test_no_number_of_words_helps_outside_the_window():
    assert words_for_window(50, 1, None, 30.0, 0.05) is None
    assert words_for_ordering(50, None, 30.0, 0.05) is None
    assert window_failure(50, 1, None, 12.0, 10**9) == 1
    assert sampled_steps(50, None, 30.0, 10**6, 0.05).certified_length(300.0) == 0


def test_impossible_samples_are_refused():
    for call in (
        lambda: output_deviations(50, 1, None, 20.0, 0, 0.05),
        lambda: output_deviations(50, 1, None, 20.0, 100, 1.0),
        lambda: window_failure(50, 1, None, 0.0, 100),
        lambda: window_failure(50, 1, None, 20.0, 100, "chernoff"),
        lambda: words_for_window(50, 1, None, 20.0, 0.0),
        lambda: words_for_ordering(50, None, 20.0, 0.05, share=1.0),
    ):
        with pytest.raises(InputError):
            call()
