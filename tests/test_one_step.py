"""One-step updates: against exact enumeration of all words, samples run through the kernel, and known values."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.gradients.letter import loss_and_gradient, sample_words
from analytic.languages import all_of, any_of, parse_language
from analytic.lengths import Fixed, Geometric, ShiftedPoisson, Uniform, balanced_geometric
from analytic.moments import letter_moment, share_moments
from analytic.one_step import (
    attention_drive,
    attention_update,
    gradient_at_zero_scores,
    linear_attention_gradient,
    logit_gap,
    output_gap,
    output_update,
)

from . import brute_force

ROUNDING = 1e-13  # absolute, against exact rationals of size up to about 10
FAR = 5.5  # z-score at fixed seeds, largest of a few hundred

LAWS = [Geometric(0.2), Geometric(1 / 49), Fixed(1), Fixed(3), Uniform(1, 9), ShiftedPoisson(4.0)]
laws = st.sampled_from([None, *LAWS])
rates = st.floats(0, 1e3)
quarters = st.integers(-12, 12).map(lambda n: Fraction(n, 4))
settings_of_or = st.integers(2, 300).flatmap(lambda d: st.tuples(st.just(d), st.integers(1, min(d - 1, 16))))


@given(
    st.sampled_from([any_of(1), any_of(2), all_of(2), parse_language("1 & (2 | !3)"), parse_language("!2 | 1 & 3")]),
    st.integers(3, 4),
    st.integers(1, 3),
    st.sampled_from([{1: Fraction(1)}, {3: Fraction(1)}, {1: Fraction(1, 4), 2: Fraction(1, 4), 4: Fraction(1, 2)}]),
    st.data(),
)
@settings(max_examples=60)
def test_the_gradient_at_zero_scores_is_exact_for_any_language_and_heads(language, d, heads, law, data):
    beta = [[data.draw(quarters) for _ in range(d)] for _ in range(heads)]
    _, d_alpha, d_beta = brute_force.loss_and_gradient(language, d, law, [[1] * d] * heads, beta)
    value_alpha, value_beta = gradient_at_zero_scores(language, d, brute_force.to_law(law), brute_force.as_floats(beta))
    assert value_alpha == pytest.approx(brute_force.as_floats(d_alpha), abs=ROUNDING)
    assert value_beta == pytest.approx(brute_force.as_floats(d_beta), abs=ROUNDING)
    if heads == 1:
        flat = gradient_at_zero_scores(language, d, brute_force.to_law(law), brute_force.as_floats(beta)[0])
        assert np.array_equal(flat, [value_alpha[0], value_beta[0]])


@given(st.integers(3, 5), st.data())
@settings(max_examples=40)
def test_the_linear_part_is_the_derivative_at_small_weights(d, data):
    language, law = any_of(data.draw(st.integers(1, 2))), data.draw(st.sampled_from(LAWS))
    beta = np.array([float(data.draw(quarters)) for _ in range(d)])
    plus, minus = (gradient_at_zero_scores(language, d, law, sign * beta)[0] for sign in (1, -1))
    assert linear_attention_gradient(language, d, law, beta) == pytest.approx((plus - minus) / 2, abs=ROUNDING)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_the_linear_part_for_occurrence_has_its_textbook_form(law):
    """-4 [beta_j (c_o - e_jj + e_oo) - e_oo Sigma - e_so beta_s], and for the target its own line."""
    d, beta = 7, np.random.default_rng(0).normal(size=7)
    language = any_of(1)

    def positive(powers):
        return letter_moment(language, d, law, powers, label=1)

    c_o, e_oo, e_jj, e_so = positive({1: 1}), positive({1: 1, 2: 1}), positive({1: 2}), positive({0: 1, 1: 1})
    others = beta[1:].sum()
    expected = 4 * (beta * (c_o - e_jj + e_oo) - e_oo * others - e_so * beta[0])
    expected[0] = 4 * (beta[0] * (1 / d - positive({0: 2})) - e_so * others)
    assert -linear_attention_gradient(language, d, law, beta) == pytest.approx(expected, abs=ROUNDING)


@given(settings_of_or, laws, rates)
def test_the_output_step_is_minus_rate_times_the_gradient_at_zero(setting, law, rate_o):
    d, k = setting
    used = law or balanced_geometric(any_of(k), d)
    _, d_beta = gradient_at_zero_scores(any_of(k), d, used, np.zeros(d))
    target, other = output_update(d, k, law, rate_o)
    scale = 1e-12 * (1 + 4 * rate_o / d)
    assert -rate_o * d_beta[:k] == pytest.approx(np.full(k, target), abs=scale)
    assert -rate_o * d_beta[k:] == pytest.approx(np.full(d - k, other), abs=scale)
    assert output_gap(d, k, law, rate_o) == pytest.approx((target - other) / 2, abs=scale)


@given(settings_of_or, laws, rates, rates)
def test_the_attention_step_is_minus_rate_times_the_gradient_after_the_output_step(setting, law, rate_o, rate_a):
    d, k = setting
    used = law or balanced_geometric(any_of(k), d)
    beta = np.where(np.arange(d) < k, *output_update(d, k, law, rate_o))
    d_alpha, _ = gradient_at_zero_scores(any_of(k), d, used, beta)
    target, other = attention_update(d, k, law, rate_o, rate_a)
    scale = 1e-12 * rate_a * (1 + rate_o * 4 / d) ** 2 + 1e-300  # subnormal rates
    assert -rate_a * d_alpha[:k] == pytest.approx(np.full(k, target), abs=scale)
    assert -rate_a * d_alpha[k:] == pytest.approx(np.full(d - k, other), abs=scale)
    assert logit_gap(d, k, law, rate_o, rate_a) == pytest.approx(target - other, abs=scale)


@given(
    st.integers(1, 2),
    st.integers(1, 2),
    st.sampled_from([{2: Fraction(1)}, {1: Fraction(1, 2), 4: Fraction(1, 2)}]),
    st.integers(0, 20).map(lambda n: Fraction(n, 4)),
)
@settings(max_examples=25)
def test_both_steps_match_exact_enumeration(k, more, law, rate_o):
    d, language, table = k + more, any_of(k), brute_force.to_law(law)
    zero = [[Fraction(0)] * d]
    ones = [[1] * d]
    _, no_drive, d_beta = brute_force.loss_and_gradient(language, d, law, ones, zero)
    assert no_drive == zero  # the scores' gradient vanishes at zero init
    beta = [[-rate_o * v for v in d_beta[0]]]
    _, d_alpha, _ = brute_force.loss_and_gradient(language, d, law, ones, beta)
    target, other = output_update(d, k, table, float(rate_o))
    assert (target, other) == pytest.approx((float(beta[0][0]), float(beta[0][-1])), abs=ROUNDING)
    target, other = attention_update(d, k, table, float(rate_o), 1.0)
    assert (target, other) == pytest.approx((-float(d_alpha[0][0]), -float(d_alpha[0][-1])), abs=ROUNDING)


def test_values_of_the_default_setting():
    target, other = output_update(50, 1, None, 20.0)
    assert target == 1.6 and other == pytest.approx(0.783673469, abs=5e-10)
    assert output_gap(50, 1, None, 20.0) == pytest.approx(0.408163265, abs=5e-10)
    assert logit_gap(50, 1, None, 20.0, 300.0) == pytest.approx(10.4265363, abs=5e-8)


@pytest.mark.parametrize(("language", "heads"), [(any_of(1), 1), (any_of(3), 1), (all_of(2), 2)])
def test_a_large_sample_has_these_gradients_on_average(language, heads):
    d, n, batches = 8, 20_000, 20
    law = balanced_geometric(language, d)
    rng = np.random.default_rng(3)
    beta = rng.normal(size=(heads, d)) if heads > 1 else rng.normal(size=d)
    sampled = []
    for _ in range(batches):
        words = sample_words(rng, law.sample(rng, n), d, language)
        _, d_alpha, d_beta = loss_and_gradient(words, np.zeros_like(beta), beta)
        sampled.append([d_alpha, d_beta])
    sampled = np.array(sampled)
    exact = np.array(gradient_at_zero_scores(language, d, law, beta))
    z = (sampled.mean(axis=0) - exact) / (sampled.std(axis=0, ddof=1) / np.sqrt(batches))
    assert np.abs(z).max() < FAR


def test_arguments_broadcast():
    d, rate_o, rate_a = np.array([10, 50]), np.linspace(1, 20, 4)[:, None], 3.0
    target, other = attention_update(d, 1, None, rate_o, rate_a)
    assert target.shape == other.shape == (4, 2)
    assert target[2, 1] == attention_update(50, 1, None, rate_o[2, 0], rate_a)[0]
    assert attention_drive(d, 1, None, rate_o).shape == (4, 2)


def test_words_of_one_letter_never_move_attention():
    assert np.all(attention_drive(50, 1, Fixed(1), np.array([0.0, 5.0, 100.0])) == 0)
    assert share_moments(50, 1, Fixed(1)).excess == 0


def test_bad_rates_and_weights_are_refused():
    for bad in (-1.0, np.nan, np.inf, np.array([1.0, -2.0])):
        with pytest.raises(InputError, match="rate_o must be finite and at least 0"):
            output_update(50, 1, None, bad)
        with pytest.raises(InputError, match="rate_a must be finite and at least 0"):
            logit_gap(50, 1, None, 1.0, bad)
    for bad in (np.zeros(4), np.zeros((2, 4)), np.full(5, np.nan), np.zeros((0, 5))):
        with pytest.raises(InputError, match="beta must"):
            gradient_at_zero_scores(any_of(1), 5, Fixed(2), bad)
