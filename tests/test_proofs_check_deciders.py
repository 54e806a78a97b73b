"""The deciders decide: true statements hold, false ones come with a counterexample, the rest stays open."""

import doctest
import importlib
import random
from fractions import Fraction

import numpy as np
import pytest
import sympy

from proofs_check.decide import FALSE_ALARM, agrees, below, close, exact, identity, on_side, positive, sampled
from proofs_check.domain import LETTERS, Case, ExactLaw, SymbolicLaw, substituted
from proofs_check.letters import (
    Jet,
    exact_gradient,
    exact_loss,
    exact_score,
    expectation,
    population,
    share_moment,
    whole_population,
)

a, b = sympy.symbols("a b", positive=True)
n = sympy.Symbol("n", nonnegative=True)
t = sympy.Symbol("t", real=True)


# --- symbolic ---------------------------------------------------------------------------------------------------------


def test_a_true_identity_is_proved():
    step = identity("binomial", (a + b) ** 3 / (a + b), a**2 + 2 * a * b + b**2)
    assert step.held is True and step.kind == "proved"


def test_a_false_identity_is_refuted_at_a_point_where_the_sides_differ():
    step = identity("wrong", a**2, a * b)
    assert step.held is False
    values = {a: sympy.Rational(step.counterexample["a"]), b: sympy.Rational(step.counterexample["b"])}
    assert (a**2 - a * b).subs(values) == sympy.Rational(step.counterexample["difference"]) != 0


def test_an_identity_beyond_the_normal_form_stays_undecided():
    assert identity("double angle", sympy.sin(2 * t), 2 * sympy.sin(t) * sympy.cos(t)).held is None


def test_an_identity_that_needs_facts_about_laws_is_refuted_by_a_law():
    c = LETTERS.symbols()
    step = identity("E2 is not E1^2", c.E2, c.E1**2, LETTERS)
    assert step.held is False and step.counterexample["length"].startswith("table")


@pytest.mark.parametrize("expression", [a, a + n, 1 + n, a / (1 + n), (a + n) / (b + n), -a / -b])
def test_positive_expressions_are_proved_positive(expression):
    assert positive("sign", expression).held is True


@pytest.mark.parametrize("expression", [-a, a - 100, n - a, 1 / (n - 1000)])
def test_expressions_that_can_be_negative_are_refuted(expression):
    step = positive("sign", expression)
    assert step.held is False and sympy.Rational(step.counterexample["difference"]) <= 0


def test_a_term_that_can_vanish_is_nonnegative_but_not_positive():
    assert positive("sign", n, strict=False).held is True
    assert positive("sign", n).held is not True


def test_a_positive_polynomial_with_mixed_signs_is_not_taken_for_proved():
    assert positive("needs a square", a**2 - 2 * a * b + 2 * b**2).held is None


def test_symbols_of_unknown_sign_prove_nothing():
    assert positive("a real number", t**2 + t + 1).held is None


def test_domain_gives_d_greater_than_k_and_positive_generating_functions():
    c = LETTERS.symbols()
    assert positive("d - k - 1 >= 0", c.d - c.k - 1, LETTERS, strict=False).held is True
    assert positive("G > 0", c.G * (c.d - c.k), LETTERS).held is True
    step = positive("d - k - 1 > 0", c.d - c.k - 1, LETTERS)
    assert step.held is False and int(step.counterexample["d"]) == int(step.counterexample["k"]) + 1


# --- exact ------------------------------------------------------------------------------------------------------------


def test_exact_counterexamples_show_both_sides():
    step = exact("third", Fraction(1, 3), Fraction(1, 4), Case(d=Fraction(3)))
    assert step.held is False and step.counterexample == {"d": "3", "found": "1/3", "claimed": "1/4"}


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize(
    "powers", [{}, {"target": 1}, {"others": 1}, {"target": 2, "others": 1}, {"targets": 1, "others": 2}, {"others": 2}]
)
def test_symbolic_share_moments_equal_sums_over_all_words(powers, negative):
    rng = random.Random(str(powers))
    for _ in range(4):
        case, c = LETTERS.sample(rng), LETTERS.symbols()
        k = int(case.k)
        symbolic = share_moment(c, {"target": 1, "targets": c.k - 1, "others": c.D}, powers, negative)
        total = Fraction(0)
        for probability, counts, y in population(case):
            m = sum(counts)
            share = {"target": counts[0], "targets": sum(counts[1:k]), "others": sum(counts[k:])}
            product = Fraction(1)
            for name, power in powers.items():
                product *= Fraction(share[name], m) ** power
            total += probability * product * (y < 0 or not negative)
        assert substituted(sympy.sympify(symbolic), case) == total


def test_expectation_treats_the_label_as_an_indicator():
    c = LETTERS.symbols()
    share, positive_word = sympy.symbols("p I")
    classes, shares = {"targets": c.k, "others": c.D}, {"targets": share}
    once = expectation(positive_word * share, c, classes, shares, positive_word)
    twice = expectation(positive_word**2 * share, c, classes, shares, positive_word)
    assert sympy.simplify(once - twice) == 0
    assert sympy.simplify(once - c.kappa) == 0  # 1_+ x = x


def test_series_arithmetic_gives_the_derivatives_of_rational_functions():
    x = Jet(Fraction(3), Fraction(1), Fraction(0), Fraction(0))
    f = (2 * x * x - x + 1) / (5 + x) + 1 / x - x / 2
    symbol = sympy.Symbol("x")
    g = (2 * symbol**2 - symbol + 1) / (symbol + 5) + 1 / symbol - symbol / 2
    for n, coefficient in enumerate(f.coefficients):
        assert sympy.Rational(coefficient) == sympy.diff(g, symbol, n).subs(symbol, 3) / sympy.factorial(n)


def test_exponential_of_a_series():
    t = Jet(Fraction(0), Fraction(2), Fraction(1))
    assert t.exp().coefficients == (1, 2, 3)  # e^(2t + t^2) = 1 + 2t + (4/2 + 1) t^2 + ...


def test_exact_gradient_equals_exact_differences_of_the_quadratic_loss_in_beta():
    words = population(Case(d=3, k=1, length=ExactLaw({1: Fraction(1, 3), 3: Fraction(2, 3)})))
    weights, beta = [[Fraction(1), Fraction(2), Fraction(1, 3)]], [[Fraction(1), Fraction(-1), Fraction(1, 2)]]
    _, d_beta = exact_gradient(words, weights, beta)
    for j in range(3):
        up, down = ([[b + (i == j) * s for i, b in enumerate(beta[0])]] for s in (1, -1))
        assert d_beta[0][j] == (exact_loss(words, weights, up) - exact_loss(words, weights, down)) / 2


def test_exact_score_counts_positions():
    assert exact_score((2, 1), [[Fraction(1), Fraction(3)]], [[Fraction(5), Fraction(0)]]) == Fraction(10, 5) - 1


def test_whole_population_gives_every_length_the_same_weight():
    counts, labels = whole_population(3, 1, 4)
    lengths = counts.sum(axis=1)
    assert len(counts) == 4 * 3**4
    assert [int((lengths == m).sum()) for m in (1, 2, 3, 4)] == [3**4] * 4
    law = ExactLaw({m: Fraction(1, 4) for m in (1, 2, 3, 4)})
    assert Fraction(int((labels > 0).sum()), len(labels)) == 1 - law.pgf(Fraction(2, 3))


def test_symbolic_laws_are_told_apart_only_by_their_arguments():
    law, other, z = SymbolicLaw(), SymbolicLaw(), sympy.Symbol("z")
    assert law.pgf(1 - z) == other.pgf((1 - z**2) / (1 + z))


# --- simulated --------------------------------------------------------------------------------------------------------


def test_rounding_comparisons_measure_the_largest_deviation():
    step = close("values", np.array([1.0, 2.0 + 1e-14]), np.array([1.0, 2.0]), 1e-12)
    assert step.held is True and 0.9e-14 < step.slack < 1.2e-14
    assert close("values", [1.0, 2.1], [1.0, 2.0], 1e-12, Case(d=3)).counterexample["d"] == "3"


def test_a_value_that_is_not_a_number_never_agrees():
    step = close("nan", np.nan, 1.0, 1e-12)
    assert step.held is False and step.slack is None
    assert below("nan", np.nan, 1.0).held is False


def test_bounds_are_one_sided():
    assert below("bound", [1.0, 0.5], 2.0).slack == 0.5
    assert below("bound", 2.0, 1.0, Case(d=3)).counterexample["d"] == "3"


def test_sampled_means_are_accepted_at_the_mean_and_refused_ten_errors_away():
    samples = np.random.default_rng(0).standard_normal(40)
    assert sampled("mean", samples, 0.0).held is True
    step = sampled("mean", samples, 10 / np.sqrt(40))
    assert step.held is False and step.slack > step.tolerance


def test_samples_without_spread_must_agree_exactly():
    assert sampled("constant", np.zeros(5), 0.0).held is True
    assert sampled("constant", np.zeros(5), 1e-9).held is False


def test_the_side_of_zero_is_decided_only_when_it_is_clear():
    samples = np.random.default_rng(0).standard_normal(40)
    assert on_side("unclear", samples).held is None
    assert on_side("above", samples + 5).held is True
    assert on_side("below", samples - 5).held is False


def test_false_alarms_of_sampled_comparisons_are_as_rare_as_stated():
    # Student's t is exact for normal samples: P(|t| > limit) = FALSE_ALARM, checked at the stated quantile
    from scipy.special import stdtr

    limit = sampled("mean", np.arange(12.0), 5.5).tolerance
    assert 2 * stdtr(11, -limit) == pytest.approx(FALSE_ALARM, rel=1e-6)


def test_an_answer_that_sampling_may_get_wrong_is_left_undecided():
    assert agrees("sure", [True, True], True).held is True
    assert agrees("wrong", [True, False], True).held is False
    assert agrees("too few words", [True, True], True, alarm=10 * FALSE_ALARM).held is None


@pytest.mark.parametrize("module", ["claims", "domain", "report", "theorem"])
def test_examples_in_docstrings_hold(module):
    failed, tried = doctest.testmod(importlib.import_module(f"proofs_check.{module}"))
    assert tried > 0 and failed == 0
