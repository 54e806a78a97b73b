"""What closed forms and population dynamics do at the edge of their domain: texts, shapes, overflow, divergence."""

import math
import re
import warnings
from fractions import Fraction

import numpy as np
import pytest

from analytic.bounds import (
    attention_gap,
    certified_length,
    logit_gap_for_attention,
    logit_gap_for_length,
    rate_a_for_logit_gap,
    smallest_weight_gap,
)
from analytic.errors import InputError, rate, real, shown, whole
from analytic.failures import attention_first_asymptote, attention_only_bound, output_only_loss
from analytic.languages import any_of
from analytic.lengths import Fixed, Uniform
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
from analytic.phase_three import output_phase
from analytic.population import population_flow, population_gradient, population_path
from analytic.random_init import (
    output_step_covariance,
    random_scores_variance,
    window_failure_bound,
    window_probability,
)
from analytic.shares import attention_moments
from analytic.three_phases import theory

JOINT = [("AO", 3, 1.0, 1.0)]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def same(one, other):
    return all(np.array_equal(one[name], other[name], equal_nan=True) for name in other)


# ---- length laws as text ---------------------------------------------------------------------------------------------


def test_theory_takes_a_length_law_as_text_and_several_in_a_list():
    assert same(theory(law="fixed:2"), theory(law=Fixed(2)))
    both = theory(law=["fixed:2", Uniform(1, 9)])
    for i, law in enumerate((Fixed(2), Uniform(1, 9))):
        one = {name: np.asarray(both[name])[..., i] for name in ("q", "logit_gap", "phase3_loss", "certified_length")}
        assert same(one, {name: theory(law=law)[name] for name in one})


def test_every_closed_form_takes_a_length_law_as_text():
    beta = np.arange(5.0)
    for closed_form in (
        lambda law: letter_moment(any_of(1), 5, law, {0: 2}),
        lambda law: gradient_at_zero_scores(any_of(1), 5, law, beta),
        lambda law: linear_attention_gradient(any_of(1), 5, law, beta),
        lambda law: population_path(5, 1, law, JOINT).loss,
    ):
        assert np.array_equal(closed_form("uniform:2:4"), closed_form(Uniform(2, 4)))


@pytest.mark.parametrize("law", (3, [Fixed(2), 3], [None], b"fixed:2"))
def test_what_is_no_length_law_is_refused(law):
    with pytest.raises(InputError, match=r"law must be a length law or a text such as 'geometric:0\.02', not"):
        theory(law=law)


def test_a_text_that_names_no_law_is_refused():
    with pytest.raises(InputError, match="length must be one of"):
        theory(law="fixd:2")


# ---- numbers and shapes ----------------------------------------------------------------------------------------------

ONE_ARRAY = {  # of real numbers, the one under test
    "rate_o": lambda v: theory(rate_o=v),
    "rate_a": lambda v: theory(rate_a=v),
    "logit_gap": lambda v: [f(50, 1, v) for f in (attention_gap, smallest_weight_gap)],
    "eps": lambda v: logit_gap_for_attention(50, 1, v),
    "beta_target": lambda v: population_gradient(50, 1, None, v, 0.0, 0.0),
    "beta_other": lambda v: certified_length(1.0, 2.0, v),
    "length": lambda v: logit_gap_for_length(v, 2.0, 0.5),
    "excess": lambda v: output_phase(50, 1, None, 1.0).steps_to(v, 0.0, 0.0, 1.0),
    "beta": lambda v: gradient_at_zero_scores(any_of(1), 5, Fixed(2), v),
    "times": lambda v: population_flow(50, 1, None, v),
    "start": lambda v: population_path(50, 1, None, JOINT, start=v),
}


NO_NUMBERS = 1 + 0j, "20", True, None, [1j, 2j], [1.0, None], np.array([True]), [Fraction(1), True]


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize("name", ONE_ARRAY)
def test_what_is_no_real_number_is_refused_by_name(name, value):
    with pytest.raises(InputError, match=rf"^{name} must be real numbers, not "):
        ONE_ARRAY[name](value)


@pytest.mark.parametrize("value, message", [
    (True, "n must be a whole number at least 1, not True"),
    (np.True_, "n must be a whole number at least 1, not np.True_"),
    ("2", "n must be a whole number at least 1, not '2'"),
    (2.0, "n must be a whole number at least 1, not 2.0"),
    (0, "n must be a whole number at least 1, not 0"),
])  # fmt: skip
def test_what_is_no_whole_number_is_refused(value, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        whole("n", value)
    with pytest.raises(InputError, match=r"^n must be a whole number from 1 to 3, not "):
        whole("n", value, high=3)


@pytest.mark.parametrize("bounds, interval", [
    ({}, "(-inf, inf)"),
    ({"low": 0.5}, "[0.5, inf)"),
    ({"high": 0.5}, "(-inf, 0.5]"),
    ({"low": -1, "high": 1, "open_low": True, "open_high": True}, "(-1, 1)"),
])  # fmt: skip
@pytest.mark.parametrize("value", (math.nan, math.inf, -math.inf, 10**400, -(10**400), True, "1", None, 1j))
def test_what_is_no_finite_number_is_refused_with_the_interval(bounds, interval, value):
    with pytest.raises(InputError, match=re.escape(f"x must be a finite number in {interval}, not {value!r}")):
        real("x", value, **bounds)


def test_a_rate_may_be_any_number_from_zero_on():
    assert [rate("rate_o", value) for value in (0, 0.5, Fraction(1, 4))] == [0.0, 0.5, 0.25]
    with pytest.raises(InputError, match=r"^rate_o must be a finite number in \[0, inf\), not -0.1"):
        rate("rate_o", -0.1)


def test_real_numbers_of_every_kind_are_taken():
    for value in (20, np.float32(20), Fraction(20), np.array(20, dtype=np.uint8), [20.0], np.array([Fraction(20)])):
        assert same({"g": np.ravel(theory(rate_o=value)["logit_gap"])}, {"g": np.ravel(theory()["logit_gap"])})
    assert theory(rate_o=10**30)["beta_target"] == 8e28


BROADCASTING = [
    lambda a, b: share_moments(a + 50, b),
    lambda a, b: output_update(50, a, None, b),
    lambda a, b: output_gap(50, a, None, b),
    lambda a, b: attention_drive(50, a, None, b),
    lambda a, b: attention_update(50, a, None, 20.0, b),
    lambda a, b: logit_gap(50, a, None, 20.0, b),
    lambda a, b: attention_gap(50, a, b),
    lambda a, b: smallest_weight_gap(50, a, b),
    lambda a, b: logit_gap_for_attention(50, a, b / 10),
    lambda a, b: rate_a_for_logit_gap(50, a, None, 20.0, b),
    lambda a, b: certified_length(a, b, 0.5),
    lambda a, b: logit_gap_for_length(a, b, 0.5),
    lambda a, b: output_phase(50, a, None, b),
    lambda a, b: attention_moments(50, a, None, b),
    lambda a, b: population_gradient(50, 1, None, a, b, 0.0),
    lambda a, b: output_step_covariance(50, a, None, b, 0.1),
    lambda a, b: random_scores_variance(50, a, None, b, 0.1),
    lambda a, b: window_failure_bound(50, a, None, b, 0.1),
    lambda a, b: theory(50, a, None, b),
]


@pytest.mark.parametrize("closed_form", BROADCASTING)
def test_shapes_that_do_not_broadcast_are_refused_with_their_names(closed_form):
    closed_form(np.array([1, 2]), np.array([[1], [2], [3]]))
    with pytest.raises(InputError, match=r"^arguments must have shapes that broadcast, not \w+ \(2,\), \w+ \(3,\)$"):
        closed_form(np.array([1, 2]), np.array([1, 2, 3]))


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(InputError, match=r"^d must be a number or an array, not \[50, \[60\]\]$"):
        theory(d=[50, [60]])
    with pytest.raises(InputError, match=r"^beta must be a number or an array"):
        attention_only_bound(0.5, [[1.0], [2.0, 3.0]])


def test_a_long_value_is_shown_on_one_line_by_its_ends():
    text = shown(np.arange(10_000.0).tolist())
    assert len(text) == 83 and text.startswith("[0.0, 1.0") and text.endswith("9999.0]") and "..." in text
    assert shown(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"
    assert shown("a" * 81) == repr("a" * 40 + "..." + "a" * 40) and shown("a" * 80) == repr("a" * 80)


# ---- population dynamics ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phases", (None, "AO", ["AO"], 3, [("AO", 3, 1.0)], [("AO", 3, 1.0, 1.0, 1.0)], [3], {}))
def test_phases_that_are_no_list_of_four_things_each_are_refused(phases):
    with pytest.raises(InputError, match=r"^phases must be a list of \(layer, steps, rate_o, rate_a\), not of "):
        population_path(50, 1, None, phases)


@pytest.mark.parametrize("start", (0, (1, 2), (0, 0, 0, 0), (0, math.nan, 0), (0, 0, math.inf), [[0, 0, 0]]))
def test_a_start_that_is_not_three_finite_numbers_is_refused(start):
    for run in (
        lambda: population_path(50, 1, None, JOINT, start=start),
        lambda: population_flow(50, 1, None, [0.0, 1.0], start=start),
    ):
        with pytest.raises(InputError, match=r"^start must be three finite numbers \(beta_S, beta_o, g\), not "):
            run()


@pytest.mark.parametrize("limit", (math.nan, None, "1", -math.inf))
def test_a_loss_limit_that_is_no_number_is_refused(limit):
    with pytest.raises(InputError, match=r"^loss_limit must be"):
        population_path(50, 1, None, JOINT, loss_limit=limit)


@pytest.mark.parametrize("start", ((1e200, 0, 0), (1.7e308, -1.7e308, 0), (0, 1e200, 5)))
def test_a_start_too_large_for_a_loss_ends_at_once_with_an_infinite_one(start):
    path = population_path(50, 1, None, JOINT, start)
    assert path.loss.tolist() == [math.inf] and path.phase_ends == (0,)
    assert 0 <= path.accuracy[0] <= 1


def test_a_path_that_diverges_ends_with_its_first_infinite_loss():
    path = population_path(50, 1, None, [("AO", 300, 1e5, 1e5)])
    assert np.all(np.isfinite(path.loss[:-1])) and path.loss[-1] == math.inf
    assert 10 < len(path.loss) < 300 and path.phase_ends == (len(path.loss) - 1,)


def test_a_path_ends_with_its_first_loss_above_the_limit_in_whatever_phase():
    free = population_path(50, 1, None, [("AO", 30, 60.0, 1.0), ("A", 5, 0.0, 1.0)]).loss
    above = int(np.argmax(free > 100))
    assert 3 < above < 30
    for steps in (above, above + 1, above + 2):
        path = population_path(50, 1, None, [("AO", steps, 60.0, 1.0), ("A", 5, 0.0, 1.0)], loss_limit=100.0)
        assert path.phase_ends == (above,) and np.array_equal(path.loss, free[: above + 1])
    path = population_path(50, 1, None, [("AO", above - 1, 60.0, 1.0), ("A", 5, 0.0, 1.0)], loss_limit=100.0)
    assert path.phase_ends == (above - 1, above + 4)


def test_above_means_above():
    path = population_path(50, 1, None, JOINT)
    assert path.first_above("time", 1) == 2 and path.first_above("time", 3) is None


def test_a_state_that_overflows_has_no_accuracy():
    path = population_path(2, 1, None, [("O", 1, 1.7e308, 0.0)], start=(100.0, 0.0, 0.0))
    assert not np.isfinite(path.beta_target[-1])
    assert path.loss[-1] == math.inf and np.isfinite(path.accuracy[0]) and np.isnan(path.accuracy[-1])


def test_a_flow_that_leaves_the_range_of_floats_is_refused():
    with pytest.raises(InputError, match=r"^start \[1e\+200, 0\.0, 0\.0\] is too large for gradient flow: "):
        population_flow(50, 1, None, [0.0, 1.0], start=(1e200, 0, 0))


@pytest.mark.parametrize("times", ([0.0, math.inf], [0.0, math.nan], [1.0, 0.5], [-1.0], [], 1.0))
def test_times_of_a_flow_ascend_and_end(times):
    with pytest.raises(InputError, match=r"^times must ascend from 0"):
        population_flow(50, 1, None, times)


# ---- the output phase at extreme scores ------------------------------------------------------------------------------


@pytest.mark.parametrize("far", (700.0, 710.0, 750.0, 1e5, math.inf))
def test_the_output_phase_at_extreme_scores_is_its_limit(far):
    # all attention on the targets: two letters to fit, each seen whole; none on them: only words of targets alone count
    phase = output_phase(50, 1, "uniform:1:9", far)
    m = phase.moments
    assert phase.minimum == pytest.approx(0, abs=1e-300)
    assert phase.eigenvalues.tolist() == pytest.approx([2 * m.negative / 49, 2 * m.q], rel=1e-14, abs=0)
    assert (phase.beta_target, phase.beta_other) == pytest.approx((2, 0), abs=1e-14)
    assert phase.exponential_bound == phase.universal_bound == 0
    assert phase.exact_steps_to(1e-9, 0.0, 0.0, phase.best_rate) > 1

    phase = output_phase(50, 1, "uniform:1:9", -far)
    m = phase.moments
    alone = sum(0.02**n for n in range(1, 10)) / 9  # P(words of targets alone)
    wanted = sorted([2 * alone, 2 * (1 - alone) / 49])
    assert phase.eigenvalues.tolist() == pytest.approx(wanted, rel=1e-14, abs=0)
    assert phase.beta_target == pytest.approx(2, rel=1e-13, abs=0)
    assert phase.exponential_bound == phase.universal_bound == math.inf


# ---- the output phase at usual ones ----------------------------------------------------------------------------------


def test_the_bounds_of_the_output_phase_are_those_stated():
    phase = output_phase(50, 2, "uniform:1:9", 3.0)
    m = phase.moments
    assert phase.universal_bound == pytest.approx(24 * 25**2 * math.exp(-6), rel=1e-14, abs=0)
    assert phase.lower_bound == pytest.approx(4 * m.q * m.negative * m.variance, rel=1e-14, abs=0)
    assert phase.largest_stable_rate == pytest.approx(2 / np.linalg.eigvalsh(phase.hessian)[1], rel=1e-13, abs=0)


def test_output_phases_at_several_scores_are_those_at_each():
    g = np.array([-1.0, 0.5, 4.0])
    phases = output_phase(50, 2, None, g)
    for name in ("hessian", "eigenvalues", "minimum", "beta_target", "largest_stable_rate", "best_rate"):
        each = [getattr(output_phase(50, 2, None, one), name) for one in g]
        assert getattr(phases, name) == pytest.approx(np.array(each), rel=1e-14, abs=0)


@pytest.mark.parametrize("start", ((1e6, 0.0), (0.0, 1e6), (0.0, 0.0), (1.9, 0.3)))
@pytest.mark.parametrize("excess", (1e-9, 1e-3))
def test_the_exact_number_of_steps_is_the_first_that_reaches_the_excess(start, excess):
    phase = output_phase(50, 1, None, 3.0)
    steps = phase.exact_steps_to(excess, *start, 1.0)
    reached, before = (phase.excess_loss(*start, 1.0, t) for t in (steps, steps - 1))
    assert reached <= excess < before
    assert phase.steps_to(excess, *start, 1.0) >= steps


def test_few_steps_are_counted_exactly():
    phase = output_phase(50, 1, None, 700.0)
    assert phase.exact_steps_to(1e-3, 0.0, 0.0, 1.0) == 1
    phase = output_phase(50, 1, None, 3.0)
    start = phase.excess_loss(0.0, 0.0, 1.0, 0)
    assert phase.steps_to(start, 0.0, 0.0, 1.0) == phase.exact_steps_to(start, 0.0, 0.0, 1.0) == 0
    assert phase.steps_to(start / 1.5, 0.0, 0.0, 1.0) >= phase.exact_steps_to(start / 1.5, 0.0, 0.0, 1.0) >= 1


# ---- summaries and lower bounds --------------------------------------------------------------------------------------


def test_theory_says_what_the_functions_of_its_parts_say():
    d, k, law, rate_o, rate_a = 40, 2, "uniform:1:60", 14.0, 200.0
    told, m = theory(d, k, law, rate_o, rate_a), share_moments(d, k, law)
    assert (told["q"], told["E1"], told["E2"]) == (m.q, m.E1, m.E2)
    assert (told["beta_target"], told["beta_other"]) == output_update(d, k, law, rate_o)
    g = logit_gap(d, k, law, rate_o, rate_a)
    assert told["logit_gap"] == g and told["output_gap"] == output_gap(d, k, law, rate_o)
    assert told["certified_length"] == certified_length(g, told["beta_target"], told["beta_other"])
    phase = output_phase(d, k, law, g)
    assert (told["phase3_loss"], told["phase3_loss_bound"]) == (phase.minimum, phase.bound)
    assert told["phase3_certified_length"] == certified_length(g, phase.beta_target, phase.beta_other) > 1
    assert np.isnan(told["attention_first_probability"])


def test_the_flow_has_the_loss_of_its_states_and_one_phase():
    flow = population_flow(50, 1, None, [0.0, 5.0, 20.0], start=(0.1, 0.9, 0.3))
    states = flow.beta_target, flow.beta_other, flow.logit_gap
    assert flow.loss == pytest.approx(population_gradient(50, 1, None, *states)[0], rel=1e-13, abs=0)
    assert flow.phase_ends == (2,)


@pytest.mark.parametrize("beta, loss, accuracy", [
    ([0.9, -1.0], 0.3 * 1.1**2, 0.7),  # every word is rejected
    ([1.5, 1.25], 0.3 * 0.5**2 + 0.7 * 1.25**2, 0.3),  # every word is accepted
    ([1.5, 0.5], 0.3 * 0.5**2 + 0.7 * 0.5**2, math.nan),
    ([1.0, -1.0], 0.3, math.nan),  # f may be 0, which is wrong
    ([1.5, 1.0], 0.3 * 0.5**2 + 0.7, math.nan),
    ([[3.0, 2.0], [1.0, -1.0]], 0.7, math.nan),
])  # fmt: skip
def test_what_scores_alone_can_reach(beta, loss, accuracy):
    reached = attention_only_bound(np.float64(0.3), beta)
    assert reached == pytest.approx((loss, accuracy), rel=1e-14, abs=0, nan_ok=True)
    assert [type(value) for value in reached] == [float, float]


def test_output_only_is_for_one_target_unless_told():
    assert output_only_loss(50) == output_only_loss(50, 1) != output_only_loss(50, 2)


def test_the_asymptote_of_attention_first_for_unbalanced_labels():
    power = 1 / 1.5**2
    wanted = 1.5 * math.gamma(1 + power) * (4 * math.pi * math.log(1000)) ** ((power - 1) / 2) * 1000**-power
    assert attention_first_asymptote(1000, 1.5) == pytest.approx(wanted, rel=1e-14, abs=0)


# ---- random starts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d, k", [(5, 1), (5, 3)])
def test_random_scores_add_the_variance_that_every_word_of_three_letters_says(d, k):
    words = np.array([np.bincount(word, minlength=d) for word in np.ndindex(d, d, d)])
    positive = words[:, :k].any(axis=1)
    shares = words / 3
    # d a_j / d alpha_i = a_j (1{i = j} - a_i) at alpha = 0
    jacobian = 4 * 5.0 * (np.diag(positive @ shares) - (shares * positive[:, None]).T @ shares) / len(words)
    variances = 0.1**2 * (jacobian**2).sum(axis=1)
    target, other = random_scores_variance(d, k, Fixed(3), 5.0, 0.1)
    assert variances == pytest.approx([target] * k + [other] * (d - k), rel=1e-12, abs=0)


@pytest.mark.parametrize("rate_o", (2.0, 4.0, 6.0))  # letters correlated negatively, weakly, positively
@pytest.mark.parametrize("k", (1, 2))
def test_the_window_probability_is_that_of_four_gaussian_weights(k, rate_o):
    from scipy.stats import multivariate_normal

    d, law, sigma = 4, "uniform:1:6", 4.0
    target, other = output_update(d, k, law, rate_o)
    variance, common = output_step_covariance(d, k, law, rate_o, sigma)
    sign = np.array([-1.0] * k + [1.0] * (d - k))  # -beta_S < -1 and beta_o < 1
    covariance = np.outer(sign, sign) * (common + (variance - common) * np.eye(d))
    mean = sign * np.where(sign < 0, target, other)
    wanted = multivariate_normal.cdf(sign, mean, covariance, allow_singular=True, rng=0)
    probability = window_probability(d, k, law, rate_o, sigma)
    assert type(probability) is float and probability == pytest.approx(wanted, rel=1e-3)
    assert 1e-3 < probability < 0.2


def test_words_of_one_letter_have_independent_weights():
    probability = window_probability(4, 1, "fixed:1", 3.0, 1.0)  # beta_S = 3, beta_o = 0, deviation |1 - 2 eta/d| = 1/2
    assert type(probability) is float
    at_most_4, at_most_2 = ((1 + math.erf(x / math.sqrt(2))) / 2 for x in (4, 2))
    assert probability == pytest.approx(at_most_4 * at_most_2**3)


def test_a_union_bound_on_a_probability_is_at_most_one():
    assert window_failure_bound(50, 3, None, 0.1, 0.01) == 1  # three targets, each below 1 almost surely
