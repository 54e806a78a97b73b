"""Closed forms at the ends of their domains: what is refused, and what holds exactly on a boundary."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest

from analytic.bounds import certified_length, logit_gap_for_attention, logit_gap_for_length, rate_o_turning_point
from analytic.errors import InputError
from analytic.languages import MAX_LETTERS, all_of, any_of, parse_language
from analytic.lengths import Custom, Fixed, Geometric, ShiftedPoisson, Table, Uniform, balanced_geometric
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
        assert letter_moment(any_of(1), 5, Fixed(1), {letter: 4}) == pytest.approx(0.2, rel=1e-15, abs=0)


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
    numbers = geometric.p, fixed.m, poisson.rate, uniform.a, uniform.b
    assert [type(number) for number in numbers] == [float, int, float, int, int]


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
    law = Custom(lambda m: 0.5**m, lambda m: 1e-15 * cut)
    assert law.mean_inverse == pytest.approx(math.log(2), rel=1e-15, abs=0)
    with pytest.raises(InputError, match="too heavy"):
        Custom(lambda m: 0.5**m, lambda m: 1.01e-15 * cut)


def test_at_most_two_to_the_24_lengths_are_summed():
    assert Uniform(5, 2**24 + 4).text == "uniform:5:16777220"
    with pytest.raises(InputError, match="B of length uniform:A:B must be a whole number from 5 to 16777220"):
        Uniform(5, 2**24 + 5)
    with pytest.raises(InputError, match=r"needs sums over \d+ lengths, more than 16777216"):
        Geometric(2e-6).support()  # 21 million of them


def test_results_share_no_memory_with_arguments():
    z = np.array([0.25, 1.0])
    for law in LAWS:
        for result in (law.pgf(z), law.pgf_over_m(z)):
            assert not np.shares_memory(result, z)


@pytest.mark.parametrize("p", (1e-12, 1e-7, 0.3, 0.5, 0.6))
def test_the_mean_inverse_of_very_long_words_keeps_its_digits(p):
    assert Geometric(p).mean_inverse == pytest.approx(-p * math.log(p) / (1 - p), rel=1e-14, abs=0)


def test_rates_of_poisson_lengths_are_positive_and_at_most_ten_million():
    assert ShiftedPoisson(1e7).mean == 1e7 + 1 and ShiftedPoisson(1e-300).mean == 1
    for rate in (0, 1.01e7):
        with pytest.raises(InputError, match=r"^RATE of length poisson:RATE must be a finite number in \(0, 1e\+07\]"):
            ShiftedPoisson(rate)


@pytest.mark.parametrize("rate", (0.5, 7.5, 10.5, 20.0))
def test_the_logarithm_of_a_poisson_tail_is_one_function(rate):
    m = np.arange(1, 40)
    assert ShiftedPoisson(rate).log_tail(m) == pytest.approx(np.log(ShiftedPoisson(rate).tail(m)), rel=1e-11, abs=0)


def test_no_tail_is_above_one():
    law = Table(np.arange(1, 10), np.full(9, 1 / 9))
    assert np.cumsum(law.probabilities[::-1])[-1] > 1  # by rounding
    assert law.tail(0) == 1


class Scripted:
    """A generator of random numbers that are given."""

    def __init__(self, *numbers):
        self.numbers = np.array(numbers)

    def random(self, size):
        return self.numbers


def test_lengths_are_drawn_by_half_open_intervals():
    rng = Scripted(0.0, np.nextafter(0.25, 0), 0.25, np.nextafter(0.75, 0), 0.75, 1 - 2**-53)
    assert Table([2, 5, 9], [0.25, 0.5, 0.25]).sample(rng, 6).tolist() == [2, 2, 5, 5, 9, 9]
    for n in range(1, 100):  # the largest random number does not lead beyond the end, however sums are rounded
        assert Table(np.arange(1, n + 1), np.full(n, 1 / n)).sample(Scripted(1 - 2**-53), 1) == n


# ---- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths, probabilities, message", [
    ([1, 2], [1.0], "as many probabilities as lengths"),
    ([1], [0.5, 0.5], "as many probabilities as lengths"),
    ([1, 2], [1.5, 0.0], r"probability in the length table must be a finite number in \[0, 1\]"),
    ([1, 2], [0.25, 0.25], "must sum to 1, not 0.5"),
    ([1, 2], [0.75, 0.75], "must sum to 1, not 1.5"),
    ([(1 << 52) + 1], [1.0], "m in the length table must be a whole number from 1 to"),
])  # fmt: skip
def test_what_is_no_table_of_lengths_is_refused(lengths, probabilities, message):
    with pytest.raises(InputError, match=message):
        Table(lengths, probabilities)


def test_a_table_may_name_lengths_up_to_two_to_the_52():
    assert Table([1 << 52], [1.0]).mean == 2.0**52


def test_printed_probabilities_are_made_to_sum_to_one_and_zeros_left_out():
    law = Table([3, 1, 2, 7], [0.3333333, 0.1666667, 0.0, 0.4999999])
    assert law.lengths.tolist() == [1, 3, 7]
    assert math.fsum(law.probabilities) == pytest.approx(1, rel=1e-15, abs=0)
    assert law.probabilities * 1666667 / law.probabilities[0] == pytest.approx([1666667, 3333333, 4999999], rel=1e-14)


def test_tables_are_equal_if_they_say_the_same():
    one, same = Table([1, 2], [0.5, 0.5]), Table([2, 1], [0.5, 0.5])
    assert one == same and hash(one) == hash(same)
    assert one != Table([1, 2], [0.25, 0.75]) and one != Table([1, 3], [0.5, 0.5]) and one != "table:1=0.5,2=0.5"


# ---- laws of one's own -----------------------------------------------------------------------------------------------


def halving(m):
    return 0.5**m


def test_a_law_of_ones_own_is_known_by_its_functions_and_name():
    law, same = (Custom(halving, halving, name="halving") for _ in range(2))
    assert law == same and hash(law) == hash(same)
    assert law != Custom(halving, halving, name="another")
    assert re.findall(r"(\w+)=", repr(law)) == ["pmf_function", "tail_bound", "name"]


def test_the_tail_of_a_law_of_ones_own_is_an_upper_bound_and_sharp():
    law, m = Custom(halving, lambda m: np.asarray(1.5 * 0.5**m)), np.arange(0, 200)
    assert law.left_out == 1.5 * 0.5**64
    assert law.tail(m[:64]) == pytest.approx(np.minimum(0.5 ** m[:64] + 0.5**65, 1), rel=1e-15, abs=0)
    assert np.array_equal(law.tail(m[64:]), 1.5 * 0.5 ** m[64:])


def test_a_law_of_ones_own_need_not_have_every_length():
    law = Custom(lambda m: np.where(m % 2, 0.0, 3 * 0.5**m), lambda m: 0.5 ** (m - 2.0))
    lengths, probabilities = law.support()
    assert np.all(lengths % 2 == 0) and np.all(probabilities > 0)
    assert law.mean == pytest.approx(8 / 3, rel=1e-14, abs=0)


def test_the_support_of_a_law_of_ones_own_ends_where_it_leaves_out_a_mass_of_1e_18():
    assert Custom(halving, halving).support()[0].tolist() == list(range(1, 61))  # 2^-60 = 8.7e-19
    assert Custom(halving, halving).support(1e-3)[0].tolist() == list(range(1, 11))


@pytest.mark.parametrize("pmf", (
    lambda m: 0.5,
    lambda m: halving(m)[:-1],
    lambda m: np.where(m == 1, math.nan, halving(m)),
    lambda m: np.where(m == 1, 1.5, np.where(m == 2, -0.5, 0.0)),
))  # fmt: skip
def test_probabilities_of_ones_own_are_one_a_length_and_not_negative(pmf):
    with pytest.raises(InputError, match=r"^pmf of length custom must give one finite value >= 0 per length$"):
        Custom(pmf, halving)


def test_a_tail_of_ones_own_is_a_probability():
    with pytest.raises(InputError, match=r"^tail_bound\(1048576\) of length custom must be a finite number"):
        Custom(halving, lambda m: 1.5)


def test_the_mean_of_a_law_of_ones_own_is_refused_where_its_tail_may_hide_much_of_it():
    assert Custom(halving, lambda m: 1e-12 / m).mean == pytest.approx(2, rel=1e-15, abs=0)
    with pytest.raises(InputError, match="too heavy for the mean"):
        Custom(halving, lambda m: 1e-10 / m).mean  # noqa: B018


# ---- the balanced law, languages, windows ----------------------------------------------------------------------------


def test_of_two_balanced_geometric_laws_the_one_of_shorter_words_is_taken():
    language, d = parse_language("(1 | 2 | 3 | 4) & !(1 & 2 & 3 & 4)"), 20  # rare in short words and in long ones
    law = balanced_geometric(language, d)
    assert language.positive_probability(d, law.pgf) == pytest.approx(0.5, abs=1e-13)
    shorter = [language.positive_probability(d, Geometric(p).pgf) for p in np.linspace(law.p, 1, 100)[1:]]
    longer = [language.positive_probability(d, Geometric(p).pgf) for p in np.geomspace(1e-6, law.p, 200)[:-1]]
    assert max(shorter) < 0.5 and min(longer) < 0.5 < max(longer)


def test_the_balanced_law_is_for_languages_of_the_alphabet():
    with pytest.raises(InputError, match="names letter 3, but d is 2"):
        balanced_geometric(parse_language("3"), 2)


def test_the_turning_point_is_for_one_target_unless_told():
    assert rate_o_turning_point(50) == rate_o_turning_point(50, 1) != rate_o_turning_point(50, 2)


def test_a_ratio_above_a_whole_number_by_a_relative_1e_14_counts_as_that_number():
    assert certified_length(0.0, 1 + 64 * (1 + 0.8e-14), 0.0) == 64
    assert certified_length(0.0, 1 + 64 * (1 + 1.3e-14), 0.0) == 65
