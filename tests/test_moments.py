"""Moments of the letter shares: against exact enumeration of all words, 40-digit sums and large samples."""

from fractions import Fraction
from math import prod

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.gradients.letter import sample_words
from analytic.languages import all_of, any_of, parse_language
from analytic.lengths import Custom, Fixed, Geometric, ShiftedPoisson, Table, Uniform, balanced_geometric
from analytic.moments import letter_moment, share_moments
from analytic.shares import ShareLaw, _block, attention_moments

from .brute_force import expectation, label, to_law, words, words_one_by_one

ROUNDING = 1e-14  # absolute, for sums of a few dozen terms at most 1 against exact rationals
MASS_LEFT_OUT = 1e-14  # relative, for sums over words that leave out 2e-18 and add thousands of terms
FAR = 5.0  # z-score at fixed seeds

LANGUAGES = [any_of(1), any_of(2), all_of(2), parse_language("1 & (2 | !3)"), parse_language("!2")]
languages = st.sampled_from(LANGUAGES)
# laws on few lengths whose probabilities are exact in binary
rational_laws = st.sampled_from(
    [
        {1: Fraction(1)},
        {2: Fraction(1)},
        {4: Fraction(1)},
        {1: Fraction(1, 4), 3: Fraction(3, 4)},
        {2: Fraction(1, 2), 3: Fraction(1, 4), 5: Fraction(1, 4)},
    ]
)


def test_counts_with_multiplicity_are_the_same_as_all_words():
    law = {1: Fraction(1, 4), 4: Fraction(3, 4)}
    totals = {}
    for counts, probability in words_one_by_one(3, law):
        totals[counts] = totals.get(counts, 0) + probability
    assert totals == dict(words(3, law)) and sum(totals.values()) == 1


@given(languages, st.integers(3, 4), rational_laws, st.data())
@settings(max_examples=120)
def test_every_letter_moment_matches_all_words(language, d, law, data):
    label_wanted = data.draw(st.sampled_from([None, 1, -1]))
    powers = data.draw(st.dictionaries(st.integers(0, d - 1), st.integers(1, 4), max_size=3))
    if sum(powers.values()) > 4:
        powers = dict(list(powers.items())[:1])

    def term(counts):
        if label_wanted not in (None, label(language, counts)):
            return 0
        return prod((Fraction(counts[j], sum(counts)) ** a for j, a in powers.items()), start=Fraction(1))

    exact = expectation(d, law, term)
    assert letter_moment(language, d, to_law(law), powers, label_wanted) == pytest.approx(float(exact), abs=ROUNDING)


def test_letter_moments_up_to_order_three_with_both_labels_match_all_words():
    language, d, law = any_of(1), 3, {1: Fraction(1, 8), 2: Fraction(3, 8), 4: Fraction(1, 2)}
    cases = [
        {},
        {0: 1},
        {1: 1},
        {0: 2},
        {1: 2},
        {0: 1, 1: 1},
        {1: 1, 2: 1},
        {0: 3},
        {1: 3},
        {0: 2, 1: 1},
        {0: 1, 1: 2},
        {1: 2, 2: 1},
        {0: 1, 1: 1, 2: 1},
    ]
    for powers in cases:
        for wanted in (1, -1):
            exact = sum(
                p * prod(Fraction(n[j], sum(n)) ** a for j, a in powers.items())
                for n, p in words_one_by_one(d, law)
                if label(language, n) == wanted
            )
            assert letter_moment(language, d, to_law(law), powers, wanted) == pytest.approx(float(exact), abs=ROUNDING)


@given(st.integers(1, 3), st.integers(1, 2), rational_laws)
def test_share_moments_match_all_words(k, more, law):
    d, language = k + more, any_of(k)
    m = share_moments(d, k, to_law(law))

    def mean(function):
        def of_share(counts):
            n, r = sum(counts[:k]), sum(counts[k:])
            return function(Fraction(n, n + r), n + r, label(language, counts))

        return float(expectation(d, law, of_share))

    expected = {
        "q": mean(lambda x, m, y: y == 1),
        "excess": mean(lambda x, m, y: (1 - x) * (y == 1)),
        "G": mean(lambda x, m, y: y == -1),
        "G1": mean(lambda x, m, y: Fraction(y == -1, m)),
        "E1": mean(lambda x, m, y: Fraction(1, m)),
        "E2": mean(lambda x, m, y: Fraction(1, m * m)),
        "X1": mean(lambda x, m, y: x),
        "X2": mean(lambda x, m, y: x**2),
        "X3": mean(lambda x, m, y: x**3),
        "M1": mean(lambda x, m, y: x * (1 - x)),
        "M2": mean(lambda x, m, y: x**2 * (1 - x)),
        "M3": mean(lambda x, m, y: x * (1 - x) * (1 - 2 * x)),
    }
    for name, value in expected.items():
        assert getattr(m, name) == pytest.approx(value, abs=ROUNDING), name


def test_values_of_the_default_setting():
    m = share_moments(50)
    assert m.E1 == pytest.approx(0.0810795895, abs=5e-11)
    assert m.X2 == pytest.approx(0.00198915996, abs=5e-12)
    assert m.X3 == pytest.approx(0.000708665909, abs=5e-13)


def test_moments_of_a_sample_agree_with_the_closed_forms():
    language, d, law, n = any_of(2), 12, balanced_geometric(any_of(2), 12), 200_000
    rng = np.random.default_rng(1)
    words = sample_words(rng, law.sample(rng, n), d, language)
    shares = words.counts() / words.counts().sum(axis=1, keepdims=True)
    for powers in ({0: 1}, {5: 2}, {0: 1, 7: 1}, {0: 2, 1: 1}, {3: 1, 4: 1, 5: 1}, {4: 3}):
        for wanted in (None, 1, -1):
            value = np.prod([shares[:, j] ** a for j, a in powers.items()], axis=0)
            if wanted:
                value = value * (words.labels == wanted)
            z = (value.mean() - letter_moment(language, d, law, powers, wanted)) / (value.std() / np.sqrt(n) + 1e-300)
            assert abs(z) < FAR, (powers, wanted)


def test_share_moments_broadcast_over_d_k_and_laws():
    d, k = np.array([5, 20, 50]), np.array([[1], [2]])
    m = share_moments(d, k)
    assert m.X2.shape == (2, 3)
    one = share_moments(50, 2, Geometric(2 / 48))
    for name in ("q", "G1", "E2", "X3", "M2"):
        assert getattr(m, name)[1, 2] == pytest.approx(float(getattr(one, name)), rel=1e-14, abs=0)
    laws = [Fixed(3), Geometric(0.1), Fixed(7)]
    assert share_moments(d, 1, laws).X3[2] == share_moments(50, 1, Fixed(7)).X3


@pytest.mark.parametrize(("d", "k"), [(1, 1), (5, 5), (5, 0), (5.0, 1), ("5", 1), (True, 1)])
def test_impossible_alphabets_are_refused(d, k):
    with pytest.raises(InputError):
        share_moments(d, k)


def test_impossible_moments_are_refused():
    for powers, wanted in (({5: 1}, None), ({0: 0}, None), ({0: 5}, None), ({0: 1}, 2)):
        with pytest.raises(InputError):
            letter_moment(any_of(1), 5, Fixed(2), powers, wanted)


# ---------------------------------------------------------------- the compressed law of the share

SETTINGS = [
    (50, 1, Geometric(1 / 49)),
    (50, 3, Geometric(3 / 47)),
    (5, 4, Uniform(1, 30)),
    (2, 1, Fixed(40)),
    (200, 1, ShiftedPoisson(300.0)),
    (10, 2, Table([1, 2, 500], [0.25, 0.25, 0.5])),
    (7, 2, Geometric(1.0)),
    (100, 99, Table([1, 2, 20000], [0.25, 0.25, 0.5])),
]


def exact_masses(d, k, law):
    """(m, n, P(m, n)) with 30 digits, n >= 1, up to a mass of 1e-22 left out."""
    mp, kappa = mpmath.mp, mpmath.mpf(k) / d
    for m, probability in zip(*law.support(1e-22), strict=True):
        m, probability = int(m), mp.mpf(float(probability))
        mass = probability * (1 - kappa) ** m
        for n in range(1, m + 1):
            mass *= kappa / (1 - kappa) * (m - n + 1) / n
            yield m, n, mass
            if n > m * kappa and mass < mp.mpf(10) ** -26:
                break


@pytest.mark.parametrize(("d", "k", "law"), SETTINGS[2:], ids=str)
@pytest.mark.parametrize("g", [-3.0, 0.0, 2.5, 10.0, 40.0])
def test_attention_moments_match_thirty_digit_sums(d, k, law, g):
    value = attention_moments(d, k, law, g)
    with mpmath.workdps(30):
        e = mpmath.exp(mpmath.mpf(g))
        rows = [(p, (m - n) / (n * e + m - n), m, n, n * e + m - n) for m, n, p in exact_masses(d, k, law)]
        q = mpmath.fsum(p for p, *_ in rows)
        rest = mpmath.fsum(p * b for p, b, *_ in rows) / q
        exact = {
            "q": q,
            "rest": rest,
            "variance": mpmath.fsum(p * (b - rest) ** 2 for p, b, *_ in rows) / q,
            "odds_square": mpmath.fsum(p * mpmath.mpf(m - n) ** 2 / n**2 for p, _, m, n, _ in rows) / q,
            "target_contrast": mpmath.fsum(p * n * e**2 / z**2 for p, _, _, n, z in rows),
        }
        negative = mpmath.fsum(
            mpmath.mpf(float(p)) * (1 - mpmath.mpf(k) / d) ** int(m) / int(m)
            for m, p in zip(*law.support(), strict=True)
        )
        exact["other_contrast"] = negative + mpmath.fsum(p * (m - n) / z**2 for p, _, m, n, z in rows)
    for name, wanted in exact.items():
        assert getattr(value, name) == pytest.approx(float(wanted), rel=20 * MASS_LEFT_OUT, abs=1e-300), name


@pytest.mark.parametrize(("d", "k", "law"), SETTINGS, ids=str)
def test_the_compressed_law_has_the_exact_moments(d, k, law):
    shares, m = ShareLaw(d, k, law), share_moments(d, k, law)
    x = 1 / (1 + shares.odds)
    assert shares.q == pytest.approx(float(m.q), rel=MASS_LEFT_OUT, abs=0)
    for power, name in ((1, "X1"), (2, "X2"), (3, "X3")):
        assert shares.weights @ x**power == pytest.approx(float(getattr(m, name)), rel=2 * MASS_LEFT_OUT, abs=0)
    assert shares.left_out == 2e-18


def test_lengths_far_apart_take_no_more_memory_than_they_have_letters():
    low = high = np.array([1, 10**6 - 1, 10**6])
    assert _block(low, high, 3) == (1, 10**6 - 1, 10**6)
    assert _block(low, high, 1) == (0, 1, 1)


def test_what_a_custom_law_leaves_out_is_left_out_of_its_shares():
    law = Custom(lambda m: 0.5**m, lambda m: 1e-12 / m)
    assert ShareLaw(5, 1, law).left_out == 1e-18 + law.left_out > 2e-18


@pytest.mark.parametrize(("d", "k", "law"), SETTINGS, ids=str)
@pytest.mark.parametrize("g", [-3.0, 0.0, 10.0])
def test_a_model_that_accepts_every_word_with_a_target_has_no_error_and_one_that_accepts_none_all(d, k, law, g):
    shares = ShareLaw(d, k, law)
    assert shares.positive_error(g, [2.0, 2.0, 1.5], [2.0, 1.5, 2.0]).tolist() == [0, 0, 0]
    for other in (0.0, 1.0):  # at 1 the targets alone decide
        assert shares.positive_error(g, 0.0, other) == pytest.approx(shares.q, rel=MASS_LEFT_OUT, abs=0)


@given(st.integers(2, 6), st.data())
@settings(max_examples=40)
def test_the_error_of_every_symmetric_model_matches_all_words(d, data):
    k = data.draw(st.integers(1, d - 1))
    law = data.draw(rational_laws)
    # scores and weights for which the sign of f is exact in floats: e^g a power of two
    log2_ratio = data.draw(st.integers(-3, 3))
    target, other = (data.draw(st.sampled_from([-1.0, 0.5, 1.0, 1.25, 2.0])) for _ in range(2))

    def wrong(counts):
        n, r = sum(counts[:k]), sum(counts[k:])
        return n > 0 and n * Fraction(2) ** log2_ratio * Fraction(target - 1) + r * Fraction(other - 1) <= 0

    exact = expectation(d, law, wrong)
    g = np.log(2.0) * log2_ratio
    value = ShareLaw(d, k, to_law(law)).positive_error(g, target, other)
    near = any(0 < abs(n * 2.0**log2_ratio * (target - 1) + r * (other - 1)) < 1e-9 for n in range(6) for r in range(6))
    assert not near
    ties = expectation(
        d,
        law,
        lambda c: (
            sum(c[:k]) > 0
            and sum(c[:k]) * Fraction(2) ** log2_ratio * Fraction(target - 1) + sum(c[k:]) * Fraction(other - 1) == 0
        ),
    )
    if log2_ratio == 0 or ties == 0:  # exp(g) is exact only at g = 0, so ties may go either way elsewhere
        assert value == pytest.approx(float(exact), abs=ROUNDING)
    else:
        assert float(exact - ties) - ROUNDING <= value <= float(exact) + ROUNDING
