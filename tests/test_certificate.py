"""Certified lengths: exact at the boundary, against brute force over all counts, and never longer than the truth."""

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytic.bounds import certified_length
from analytic.certificate import certify
from analytic.errors import InputError
from analytic.exact_signs import score_sign
from analytic.label_cubes import label_cubes
from analytic.languages import all_of, any_of, parse_language

from .brute_force import compositions, label

LANGUAGES = [
    any_of(1),
    any_of(2),
    all_of(2),
    parse_language("1 & !2"),
    parse_language("1 | 2 & 3"),
    parse_language("!1"),
]
NEAR_TIE = 1e-11  # floats give the sign of f beyond it


@cache
def all_counts(m, d):
    return np.array(list(compositions(m, d)), dtype=float)


def precise_sign(alpha, beta, counts):
    """Sign of f with 60 digits (0 if below 1e-50: a tie)."""
    with mpmath.workdps(60):
        f = mpmath.mpf(-1)
        for a, b in zip(np.atleast_2d(alpha), np.atleast_2d(beta), strict=True):
            masses = [int(n) * mpmath.exp(mpmath.mpf(float(x))) for n, x in zip(counts, a, strict=True)]
            f += mpmath.fsum(mass * mpmath.mpf(float(x)) for mass, x in zip(masses, b, strict=True)) / mpmath.fsum(
                masses
            )
        return 0 if abs(f) < mpmath.mpf(10) ** -50 else int(mpmath.sign(f))


def first_wrong_length(language, alpha, beta, limit):
    """The least length with a wrong word, over all counts; None if above ``limit``."""
    alpha, beta = np.atleast_2d(alpha), np.atleast_2d(beta)
    for m in range(1, limit + 1):
        counts = all_counts(m, alpha.shape[1])
        masses = counts[:, None, :] * np.exp(alpha - alpha.max(axis=1, keepdims=True))
        f = ((masses * beta).sum(-1) / masses.sum(-1)).sum(-1) - 1
        margin = language.labels(counts[:, language.letters] > 0) * f
        if (margin < -NEAR_TIE).any():
            return m
        for close in counts[np.abs(margin) <= NEAR_TIE]:
            if label(language, close) * precise_sign(alpha, beta, close) <= 0:
                return m
    return None


def check_against_brute_force(language, alpha, beta, limit, certificate):
    d = np.shape(alpha)[-1]
    witness = certificate.witness
    assert len(witness) == d and all(n >= 0 for n in witness) and sum(witness) > certificate.length
    assert label(language, witness) * precise_sign(alpha, beta, witness) <= 0
    assert certificate.sharp == (sum(witness) == certificate.length + 1)
    wrong = first_wrong_length(language, alpha, beta, limit)
    if wrong is None:
        assert sum(witness) > limit
    else:
        assert certificate.length < wrong <= sum(witness)


eighths = st.integers(-24, 24).map(lambda n: n / 8)
quarters = st.integers(-12, 12).map(lambda n: n / 4)
any_float = st.floats(-4, 4)


@given(st.sampled_from(LANGUAGES), st.integers(3, 4), st.data())
@settings(max_examples=150)
def test_one_head_is_sharp_for_any_language(language, d, data):
    if d <= language.letters[-1] + (language.k == d):
        return
    values = data.draw(st.sampled_from([quarters, any_float]))
    alpha = np.array([data.draw(values) for _ in range(d)])
    beta = np.array([data.draw(values) for _ in range(d)])
    if data.draw(st.booleans()):  # a model that is right on many words
        beta = np.where(np.isin(np.arange(d), language.letters[:1]), 1 + abs(beta), 1 - abs(beta) / 4 - 0.0625)
    certificate = certify(language, alpha, beta)
    assert certificate.sharp
    check_against_brute_force(language, alpha, beta, 22 if d == 3 else 12, certificate)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 5), st.integers(-3, 3))
def test_one_head_is_exact_where_the_boundary_is_a_tie(target, other, shift, scale):
    """w_s = target, w_o = -other up to a common factor: s o^t is a tie iff t = target/other, and a tie is wrong."""
    alpha = np.full(4, scale * 0.7)
    unit = 2.0**-shift
    beta = [1 + target * unit, 1 - other * unit, 1 - other * unit, 1 - other * unit / 2]
    certificate = certify(any_of(1), alpha, beta)
    assert certificate.length == -(-target // other)
    assert certificate.witness[0] == 1 and sum(certificate.witness[1:3]) == certificate.length


@pytest.mark.parametrize("ratio", [1, 7, 93_590, 10**9, 10**15, 10**22])
def test_the_last_digit_decides_at_the_boundary(ratio):
    """At beta_s - 1 = ratio (1 - beta_o) exactly M* = ratio; with the least more attention on s one more is safe."""
    beta = np.array([1 + ratio * 2.0**-40, 1 - 2.0**-40])
    exact = (Fraction(float(beta[0])) - 1) * 2**40  # what the floats hold
    least = 2.0**-60
    for more in (0.0, least, -least):
        with mpmath.workdps(60):
            length = int(mpmath.ceil(mpmath.mpf(exact.numerator) / exact.denominator * mpmath.exp(more)))
        assert certify(any_of(1), [more, 0.0], beta).length == length
        assert more <= 0 or length > exact


def test_the_value_after_two_phases():
    target, other = 1.6, 0.78367346938775506
    g = 10.426536271459
    certificate = certify(any_of(1), np.where(np.arange(50) == 0, g, 0.0), np.where(np.arange(50) == 0, target, other))
    assert certificate.length == 93590 == certified_length(g, target, other)
    assert certificate.sharp and certificate.witness_text == "1 2^93590"


@given(st.floats(-2, 30), st.floats(1.001, 4), st.floats(-1, 0.999), st.integers(1, 3))
def test_symmetric_models_have_the_closed_form_length(g, target, other, k):
    inside = np.arange(k + 2) < k
    length = certify(any_of(k), np.where(inside, g, 0.0), np.where(inside, target, other)).length
    assert length == pytest.approx(float(certified_length(g, target, other)), rel=1e-12, abs=1)


def test_zero_is_said_where_it_is_the_truth():
    for beta in ([1.0, 0.5, 0.5], [2.0, 1.0, 0.5], [2.0, 1.5, 0.5], [0.5, 0.5, 0.5]):
        certificate = certify(any_of(1), [1.0, 0.0, 0.0], beta)
        assert certificate.length == 0 and sum(certificate.witness) == 1
    assert certify(all_of(2), [0.0, 0.0, 0.0], [2.0, 2.0, 0.0]).length == 0  # one head never recognises AND


def test_huge_lengths_are_whole_numbers():
    certificate = certify(any_of(1), [700.0, 0.0], [2.0, 0.0])
    with mpmath.workdps(400):
        assert certificate.length == int(mpmath.ceil(mpmath.exp(700)))


@given(st.integers(0, 10**9), st.sampled_from(LANGUAGES), st.integers(2, 3), st.integers(3, 4))
@settings(max_examples=60)
def test_several_heads_agree_with_brute_force(seed, language, heads, d):
    if d <= language.letters[-1] or language.k == d:
        return
    rng = np.random.default_rng(seed)
    alpha = rng.normal(size=(heads, d)) * rng.choice([0.5, 2])
    beta = rng.normal(size=(heads, d)) * 0.1
    if language == all_of(2):  # both heads that two-head solutions need, with noise
        strength = rng.uniform(1, 3)
        alpha[0, 0] += strength
        alpha[1, :2] += [strength, 2 * strength]
        beta[:2, 0] += [2, -2]
    elif rng.random() < 0.7:
        beta[:, : language.k] += 2 / heads
        alpha[:, : language.k] += rng.uniform(1, 3)
    certificate = certify(language, alpha, beta, nodes=300)
    check_against_brute_force(language, alpha, beta, 22 if d == 3 else 12, certificate)


def test_identical_heads_are_one_head():
    rng = np.random.default_rng(0)
    alpha, beta = rng.normal(size=5), np.array([1.75, 0.25, 0.5, 0.125, 0.5])
    parts = np.stack([beta / 4, beta / 2, beta / 4])
    assert certify(any_of(1), np.tile(alpha, (3, 1)), parts) == certify(any_of(1), alpha, beta)


def test_the_search_agrees_with_the_exact_formula_when_heads_nearly_coincide():
    alpha = np.array([2.0, 0.0, 0.5, 0.25])
    beta = np.array([1.75, 0.25, 0.5, 0.125])
    single = certify(any_of(1), alpha, beta)
    double = certify(any_of(1), np.stack([alpha, alpha + 3]), np.stack([beta / 2, beta / 2]))  # shifted: the same heads
    assert (double.length, double.sharp) == (single.length, True)


@pytest.mark.parametrize(("strength", "length"), [(3, 17), (6, 400), (8, 2977)])
def test_two_heads_that_solve_and_are_certified_sharply(strength, length):
    """Head 1: s1 first, beta 2; head 2: s2 over s1 over the rest, beta -2 at s1."""
    alpha, beta = np.zeros((2, 50)), np.zeros((2, 50))
    alpha[0, 0], alpha[1, 0], alpha[1, 1] = strength, strength, 2 * strength
    beta[:, 0] = 2, -2
    certificate = certify(all_of(2), alpha, beta)
    assert certificate.sharp and certificate.length == length
    # the same from one-letter families: s1 s2 o^r and s1^n o^r, by their quadratics
    e = math.exp(strength)

    def f(n1, n2, rest):
        return 2 * n1 * e / (n1 * e + n2 + rest) - 2 * n1 * e / (n1 * e + n2 * e * e + rest) - 1

    shortest = next(r for r in range(10**6) if f(1, 1, r) <= 0) + 2
    assert length <= shortest - 1 and any(f(1, n2, length + 1 - 1 - n2) <= 0 for n2 in range(1, 4))


def test_an_unfinished_search_says_so_and_stays_below_the_truth():
    rng = np.random.default_rng(3)
    alpha, beta = rng.normal(size=(3, 20)), rng.normal(size=(3, 20)) * 0.05
    alpha[0, 0] += 5
    beta[0, 0] += 2
    few, many = certify(any_of(1), alpha, beta, nodes=1), certify(any_of(1), alpha, beta)
    assert few.length <= many.length < sum(many.witness) <= sum(few.witness)
    assert many.sharp


@given(st.lists(st.booleans(), min_size=8, max_size=8))
def test_label_cubes_cover_each_label_and_nothing_else(truth):
    if len(set(truth)) == 1:
        return
    terms = [" & ".join(f"{'' if p >> i & 1 else '!'}{i + 1}" for i in range(3)) for p in range(8) if truth[p]]
    language = parse_language(" | ".join(terms))
    for y in (1, -1):
        covered = {
            p
            for p in range(8)
            for present, absent in label_cubes(language, y)
            if all(p >> i & 1 for i in present) and not any(p >> i & 1 for i in absent)
        }
        assert covered == {p for p in range(8) if language.truth[p] == (y > 0)}


def test_label_cubes_of_or_and_and_are_as_few_as_can_be():
    assert len(label_cubes(any_of(5), 1)) == 5 and len(label_cubes(any_of(5), -1)) == 1
    assert len(label_cubes(all_of(5), 1)) == 1 and len(label_cubes(all_of(5), -1)) == 5


@given(st.integers(1, 3), st.lists(st.integers(0, 5), min_size=3, max_size=3), st.data())
@settings(max_examples=60)
def test_signs_are_exact_also_for_ties(heads, counts, data):
    if not any(counts):
        return
    alpha = np.array([[data.draw(quarters) for _ in counts] for _ in range(heads)])
    beta = np.array([[data.draw(eighths) for _ in counts] for _ in range(heads)])
    assert score_sign(alpha, beta, counts) == precise_sign(alpha, beta, counts)


def test_a_tie_of_two_heads_is_seen():
    # head 1 and head 2 attend alike up to the exchange of two letters: f(1, 1) = 1/2 + 1/2 - 1 = 0 for any score
    alpha, beta = [[0.3, 0.0], [0.0, 0.3]], [[1.0, 0.0], [1.0, 0.0]]
    assert score_sign(alpha, beta, [1, 1]) == 0
    assert score_sign(alpha, beta, [2, 1]) == 1


def test_bad_models_are_refused():
    with pytest.raises(InputError, match="same shape"):
        certify(any_of(1), np.zeros(3), np.zeros(4))
    with pytest.raises(InputError, match="finite"):
        certify(any_of(1), [0.0, np.inf], [0.0, 0.0])
    with pytest.raises(InputError, match="targets must be fewer"):
        certify(any_of(2), np.zeros(2), np.zeros(2))
    with pytest.raises(InputError, match="at most 600"):
        certify(any_of(1), [[0.0, 700.0], [0.0, 0.0]], np.zeros((2, 2)))
    with pytest.raises(InputError, match="nodes"):
        certify(any_of(1), np.eye(2), np.zeros((2, 2)), nodes=0)
