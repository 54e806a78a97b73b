"""Closed forms at the ends of their domains: what is refused, and what holds exactly on a boundary."""

import math
from fractions import Fraction

import numpy as np
import pytest

from analytic.bounds import certified_length, logit_gap_for_attention, logit_gap_for_length
from analytic.errors import InputError
from analytic.languages import MAX_LETTERS, all_of, any_of, parse_language
from analytic.lengths import Custom, Fixed, Geometric, ShiftedPoisson, Table, Uniform
from analytic.moments import letter_moment, share_moments
from analytic.one_step import gradient_at_zero_scores, linear_attention_gradient

# ---- languages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", (any_of, all_of))
@pytest.mark.parametrize("k", (1, 2, 5))
def test_named_languages_are_written_as_they_are_understood(make, k):
    assert parse_language(make(k).text) == make(k)


@pytest.mark.parametrize(("make", "sign"), ((any_of, "|"), (all_of, "&")))
def test_at_most_sixteen_letters(make, sign):
    assert make(MAX_LETTERS).k == MAX_LETTERS == 16
    with pytest.raises(InputError, match="targets must be a whole number from 1 to 16, not 17"):
        make(17)
    assert parse_language(sign.join(map(str, range(1, 17)))).k == 16
    with pytest.raises(InputError, match="names 17 letters, at most 16"):
        parse_language(sign.join(map(str, range(1, 18))))


def test_only_languages_that_hold_for_every_word_are_refused_when_they_name_the_whole_alphabet():
    for text in ("1 & 2", "1 & !2", "!1 | !2", "!(1 | 2) | 1 & 2"):
        parse_language(text).check_alphabet(2)
    with pytest.raises(InputError, match="fewer than d"):
        parse_language("1 | 2").check_alphabet(2)


# ---- one-step updates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", (gradient_at_zero_scores, linear_attention_gradient))
def test_gradients_refuse_other_alphabets_and_single_bad_weights(function):
    with pytest.raises(InputError, match="names letter 7, but d is 5"):
        function(parse_language("7"), 5, Fixed(2), np.zeros(5))
    for bad in (np.nan, np.inf):
        with pytest.raises(InputError, match="beta must be finite"):
            function(any_of(1), 3, Fixed(2), np.array([0.0, bad, 1.0]))


# ---- bounds ----------------------------------------------------------------------------------------------------------


def test_one_bad_attention_gap_of_many_is_refused():
    with pytest.raises(InputError, match="eps must lie in"):
        logit_gap_for_attention(50, 1, np.array([0.1, 1.0]))


@pytest.mark.parametrize("other", (0.5, 1.0, 1.5))
@pytest.mark.parametrize("target", (0.5, 1.0, 1.5))
def test_no_logit_gap_certifies_a_length_at_or_outside_the_edge_of_the_window(target, other):
    gaps = logit_gap_for_length(np.array([1, 2, 10]), target, other)
    if target > 1 > other:
        assert gaps[0] == -math.inf and np.all(certified_length(gaps + 1e-9, target, other) >= (0, 2, 10))
    else:
        assert np.all(gaps == math.inf) and certified_length(50.0, target, other) == 0
        assert logit_gap_for_length(0, target, other) == -math.inf


# ---- alphabets and moments -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "k", "message"),
    [
        (5.0, 1, "d must be a whole number, not 5.0"),
        (True, 1, "d must be a whole number, not True"),
        (5, 1.0, "targets must be a whole number, not 1.0"),
        (5, 0, "targets must be from 1 to d - 1 .*, not 0 with d = 5"),
        (5, -1, "not -1 with d = 5"),
        (5, 5, "not 5 with d = 5"),
        (1, 1, "not 1 with d = 1"),
        (np.array([5, 2, 9]), np.array([[1], [3]]), "not 3 with d = 2"),
        (np.array([5, 9]), np.array([1, 0]), "not 0 with d = 9"),
    ],
)
def test_the_first_alphabet_that_does_not_fit_is_named(d, k, message):
    with pytest.raises(InputError, match=message):
        share_moments(d, k)


def test_the_largest_number_of_targets_is_one_less_than_the_letters():
    assert share_moments(5, 4).kappa == 0.8
    assert share_moments(np.array([2, 3]), np.array([1, 2])).d.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("powers", "label", "message"),
    [
        ({5: 1}, None, "letter must be a whole number from 0 to 4"),
        ({-1: 1}, None, "letter must be a whole number from 0 to 4"),
        ({0: 0}, None, "power must be a whole number from 1 to 4"),
        ({0: 5}, None, "power must be a whole number from 1 to 4"),
        ({0: 1}, 0, "label must be one of None, 1, -1"),
    ],
)
def test_moments_that_do_not_exist_are_refused_by_name(powers, label, message):
    with pytest.raises(InputError, match=message):
        letter_moment(any_of(1), 5, Fixed(2), powers, label)


def test_moments_refuse_a_language_of_other_letters():
    with pytest.raises(InputError, match="names letter 7, but d is 5"):
        letter_moment(parse_language("7"), 5, Fixed(2), {0: 1})


def test_moments_reach_from_the_first_letter_to_the_last_and_to_the_fourth_power():
    for letter in (0, 4):
        assert letter_moment(any_of(1), 5, Fixed(1), {letter: 4}) == pytest.approx(0.2, rel=1e-15)


# ---- length laws -----------------------------------------------------------------------------------------------------

LAWS = [
    Geometric(0.02), Geometric(0.7), Geometric(1.0), Fixed(3), ShiftedPoisson(2.5), Uniform(2, 5),
    Table([1, 3], [0.5, 0.5]), Custom(lambda m: 0.5**m, lambda m: 0.5**m),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
def test_expectations_are_plain_numbers(law):
    for value in (law.mean, law.mean_inverse, law.mean_inverse_square):
        assert type(value) is float


def test_parameters_of_any_kind_of_number_are_kept_as_plain_ones():
    geometric, fixed = Geometric(np.float32(0.5)), Fixed(np.int64(3))
    poisson, uniform = ShiftedPoisson(Fraction(5, 2)), Uniform(np.uint8(2), np.int16(5))
    texts = [law.text for law in (geometric, fixed, poisson, uniform)]
    assert texts == ["geometric:0.5", "fixed:3", "poisson:2.5", "uniform:2:5"]


def test_a_support_ends_where_it_leaves_out_a_mass_of_1e_18():
    for law in (Geometric(1 / 49), ShiftedPoisson(2.5)):
        lengths, _ = law.support()
        assert law.tail(lengths[-1]) <= 1e-18 < law.tail(lengths[-1] - 1)
        assert law.tail(law.support(1e-3)[0][-1]) <= 1e-3 < law.tail(law.support(1e-3)[0][-1] - 1)


def test_a_support_may_have_as_many_lengths_as_are_allowed(monkeypatch):
    longest = Geometric(1 / 49).quantile_length(1e-18)
    monkeypatch.setattr("analytic.lengths.MAX_SUPPORT", longest)
    assert len(Geometric(1 / 49).support()[0]) == longest
    monkeypatch.setattr("analytic.lengths.MAX_SUPPORT", longest - 1)
    with pytest.raises(InputError, match=f"needs sums over {longest} lengths"):
        Geometric(1 / 49).support()


@pytest.mark.parametrize("delta", (0, 1, -0.1, 1.5, math.nan, True, "0.1"))
def test_no_quantile_length_for_impossible_probabilities(delta):
    with pytest.raises(InputError, match=r"delta must be a finite number in \(0, 1\)"):
        Geometric(0.5).quantile_length(delta)


def test_a_custom_law_may_leave_out_1e_15_of_a_sum_and_no_more():
    cut = 2**20  # where a bound that never falls stops the search
    law = Custom(lambda m: 0.5**m, lambda m: 0.99e-15 * cut)
    assert law.mean_inverse == pytest.approx(math.log(2), rel=1e-15)
    with pytest.raises(InputError, match="too heavy"):
        Custom(lambda m: 0.5**m, lambda m: 1.01e-15 * cut)


def test_at_most_two_to_the_24_lengths_are_summed():
    assert Uniform(5, 2**24 + 4).text == "uniform:5:16777220"
    with pytest.raises(InputError, match="B of length uniform:A:B must be a whole number from 5 to 16777220"):
        Uniform(5, 2**24 + 5)
    with pytest.raises(InputError, match=r"needs sums over \d+ lengths, more than 16777216"):
        Geometric(2e-6).support()  # 21 million of them
