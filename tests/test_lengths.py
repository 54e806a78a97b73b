"""Length laws: closed forms against 40-digit sums and integrals, sampling, text, and what is refused."""

import math
from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.languages import all_of, any_of, parse_language
from analytic.lengths import Custom, Fixed, Geometric, ShiftedPoisson, Table, Uniform, balanced_geometric, parse_law
from analytic.polynomials import derivative, product, roots_in_unit_interval

ROUNDING = 1e-13  # relative: a few hundred units in the last place, for sums of up to thousands of terms
STATED = 1e-15  # what a sum may leave out
QUADRATURE = 1e-25  # mpmath at 40 digits
FAR = 5.0  # a z-score; the fixed seeds below stay under it (chance 6e-7 each)

LAWS = [
    Geometric(1 / 49),
    Geometric(1.0),
    Geometric(1 - 1e-9),
    Geometric(0.3),
    Fixed(1),
    Fixed(17),
    Uniform(1, 1),
    Uniform(3, 40),
    ShiftedPoisson(1e-3),
    ShiftedPoisson(7.5),
    ShiftedPoisson(400.0),
    Table([1, 4, 9], [0.25, 0.5, 0.25]),
    Custom(lambda m: 0.5**m, lambda m: 0.5**m, "halving"),
]
laws = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.text)
points = pytest.mark.parametrize("z", [0.0, 1e-8, 0.3, 0.98, 1 - 1e-9, 1.0])


def precise_masses(law):
    """{m: P(m)} with 40 digits, from the definition, up to a tail below 1e-35."""
    mp = mpmath.mp
    if isinstance(law, Geometric):
        p = mp.mpf(law.p)
        last = 1 if p == 1 else int(-85 / math.log1p(-law.p)) + 2
        return {m: p * (1 - p) ** (m - 1) for m in range(1, last + 1)}
    if isinstance(law, ShiftedPoisson):
        rate = mp.mpf(law.rate)
        low, high = max(0, int(law.rate - 14 * law.rate**0.5)), int(law.rate + 20 * law.rate**0.5 + 40)
        return {n + 1: mp.exp(-rate + n * mp.log(rate) - mp.loggamma(n + 1)) for n in range(low, high)}
    if isinstance(law, Custom):
        return {m: mp.mpf(2) ** -m for m in range(1, 140)}
    return {int(m): mp.mpf(float(law.pmf(m))) for m in law.support()[0]}


def close(value, expected, relative=ROUNDING):
    return abs(value - float(expected)) <= relative * abs(float(expected)) + STATED


@laws
@points
def test_generating_functions_match_forty_digit_sums(law, z):
    with mpmath.workdps(40):
        masses, z40 = precise_masses(law), mpmath.mpf(z)
        for power, value in [(0, law.pgf(z)), (1, law.pgf_over_m(z))] + [(n, law.pgf_over_power(z, n)) for n in (2, 3)]:
            assert close(value, mpmath.fsum(p * z40**m / mpmath.mpf(m) ** power for m, p in masses.items()))


@laws
def test_means_and_probabilities_match_forty_digit_sums(law):
    with mpmath.workdps(40):
        masses = precise_masses(law)
        assert close(law.mean, mpmath.fsum(m * p for m, p in masses.items()))
        assert close(law.mean_inverse, mpmath.fsum(p / m for m, p in masses.items()))
        assert close(law.mean_inverse_square, mpmath.fsum(p / m**2 for m, p in masses.items()))
        for m in (1, 2, 7, 17, 395):
            assert close(law.pmf(m), masses.get(m, 0))
            assert close(law.tail(m), mpmath.fsum(p for n, p in masses.items() if n > m))
    assert law.pmf(0) == 0 and law.tail(0) == 1


@laws
def test_inverse_means_are_integrals_of_the_generating_function(law):
    def quadrature(f):  # panels that halve towards both ends, where the logarithm and long words change fast
        nodes, weights = np.polynomial.legendre.leggauss(40)
        left = np.append(0, 2.0 ** np.arange(-50, 0))
        edges = np.concatenate([left, 1 - left[-2::-1]])
        return sum((b - a) / 2 * weights @ f((a + b) / 2 + (b - a) / 2 * nodes) for a, b in pairwise(edges))

    assert law.mean_inverse == pytest.approx(quadrature(lambda z: law.pgf(z) / z), rel=1e-11, abs=0)
    assert law.mean_inverse_square == pytest.approx(quadrature(lambda z: -np.log(z) * law.pgf(z) / z), rel=1e-9)
    for z in (0.2, 0.98):
        assert law.pgf_over_m(z) == pytest.approx(quadrature(lambda u, z=z: law.pgf(u * z) / u), rel=1e-11)


def test_the_closed_form_of_the_poisson_inverse_square_holds():
    with mpmath.workdps(40):
        for rate in (0.5, 7.5, 60.0):
            lam = mpmath.mpf(rate)
            closed = mpmath.exp(-lam) * (mpmath.ei(lam) - mpmath.log(lam) - mpmath.euler) / lam
            assert close(ShiftedPoisson(rate).mean_inverse_square, closed)


def test_values_of_the_default_law():
    law = balanced_geometric(any_of(1), 50)
    assert law == Geometric(1 / 49)
    assert law.mean_inverse == pytest.approx(0.0810795895, abs=5e-11)
    assert law.pgf(0.98) == pytest.approx(0.5, abs=1e-15)


def test_log_tail_goes_on_where_the_tail_underflows():
    assert Geometric(1 / 49).log_tail(93590) / math.log(10) == pytest.approx(-838.08372389, abs=1e-8)
    with mpmath.workdps(30):
        for rate, m in ((7.5, 200), (7.5, 3), (400.0, 3000), (1e-3, 150)):
            exact = mpmath.log(mpmath.gammainc(m, 0, rate, regularized=True))
            assert ShiftedPoisson(rate).log_tail(m) == pytest.approx(float(exact), rel=1e-12)
    assert Fixed(3).log_tail(3) == -math.inf and Geometric(1.0).log_tail(1) == -math.inf
    assert Geometric(0.3).log_tail(0) == 0


@given(st.floats(1e-4, 1), st.floats(1e-12, 0.999))
def test_a_quantile_is_the_smallest_length_that_covers(p, delta):
    for law in (Geometric(p), ShiftedPoisson(1 / p), Uniform(2, 2 + int(1 / p)), Table([2, 5, 90], [0.5, 0.25, 0.25])):
        m = law.quantile_length(delta)
        assert law.tail(m) <= delta and (m == 1 or law.tail(m - 1) > delta)


@laws
def test_the_support_carries_all_but_what_is_stated(law):
    lengths, probabilities = law.support()
    assert np.all(np.diff(lengths) > 0) and np.all(probabilities > 0)
    assert law.tail(lengths[-1]) <= 1e-17
    assert probabilities.sum() == pytest.approx(1, abs=1e-13)


@laws
def test_samples_have_the_law(law):
    n = 20_000
    sample = law.sample(np.random.default_rng(0), n)
    assert sample.dtype == np.int64 and sample.shape == (n,) and sample.min() >= 1
    for value, mean, square in [
        (1 / sample, law.mean_inverse, law.mean_inverse_square),
        (0.9**sample, law.pgf(0.9), law.pgf(0.81)),
    ]:
        spread = math.sqrt(max(square - mean**2, 0) / n)
        assert abs(value.mean() - mean) <= FAR * spread + 1e-12
    for m in np.unique(sample):
        p = float(law.pmf(m))
        if n * p < 25:  # too few for a normal approximation
            continue
        assert abs((sample == m).mean() - p) <= FAR * math.sqrt(p * (1 - p) / n) + 1e-12


@given(st.floats(1e-300, 1), st.integers(1, 10**9), st.integers(0, 10**6), st.floats(1e-300, 1e7))
def test_text_gives_the_same_law_back(p, m, more, rate):
    for law in (Geometric(p), Fixed(m), Uniform(m, m + more), ShiftedPoisson(rate)):
        assert parse_law(law.text) == law


@given(st.dictionaries(st.integers(1, 10**6), st.floats(1e-3, 1), min_size=1, max_size=20))
def test_a_table_keeps_its_text_and_its_total(rows):
    total = sum(rows.values())
    law = Table(list(rows), [weight / total for weight in rows.values()])
    again = parse_law(law.text)
    assert again == law and np.array_equal(again.probabilities, law.probabilities)
    assert math.fsum(law.probabilities) == pytest.approx(1, abs=1e-15)


def test_a_table_is_read_from_a_file(tmp_path):
    file = tmp_path / "law.csv"
    file.write_text("m,prob\n3, 0.25\n\n1,0.75\n")
    assert parse_law(f"table:{file}") == Table([1, 3], [0.75, 0.25])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("geometri:0.5", "did you mean 'geometric'"),
        ("geometric:0", "P of length geometric:P must be a finite number in (0, 1], not 0.0"),
        ("geometric:nan", "must be a finite number in (0, 1], not nan"),
        ("geometric:x", "needs a number after each colon"),
        ("geometric", "must be written geometric:P, not 'geometric'"),
        ("fixed:2.5", "needs a whole number"),
        ("fixed:0", "must be a whole number from 1 to 2147483647, not 0"),
        ("uniform:5:4", "B of length uniform:A:B must be a whole number from 5"),
        ("uniform:5", "must be written uniform:A:B"),
        ("poisson:-1", "RATE of length poisson:RATE"),
        ("table:/no/such/file", "cannot read '/no/such/file'"),
        ("table:1=0.5,1=0.5", "must be distinct, not 1 twice"),
        ("table:1=0.5,2=0.6", "must sum to 1, not 1.1"),
        ("table:1=-0.5,2=1.5", "probability in the length table"),
        ("table:0=1", "m in the length table must be a whole number from 1"),
        ("table:1=a", "row 1: expected m,probability"),
        ("table:", "cannot read ''"),
    ],
)
def test_a_bad_length_is_told_in_one_line(text, told):
    with pytest.raises(InputError) as error:
        parse_law(text)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_bad_rows_of_a_file_are_named(tmp_path):
    file = tmp_path / "law.csv"
    file.write_text("m,prob\n1,0.5\n2;0.5\n")
    with pytest.raises(InputError, match=r"row 3: expected m,probability, not '2;0\.5'"):
        parse_law(f"table:{file}")
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        parse_law(f"table:{file}")
    file.write_text("")
    with pytest.raises(InputError, match="at least one"):
        parse_law(f"table:{file}")


def test_custom_laws_are_checked():
    with pytest.raises(InputError, match="must sum to 1"):
        Custom(lambda m: 0.4**m, lambda m: 0.4**m)
    with pytest.raises(InputError, match="finite value >= 0"):
        Custom(lambda m: np.where(m == 2, np.nan, 0.5**m), lambda m: 0.5**m)
    with pytest.raises(InputError, match="too heavy"):
        Custom(lambda m: 6 / (math.pi * m) ** 2, lambda m: 1 / (m + 1) ** 0.5)


def test_a_heavy_tail_is_summed_as_far_as_it_is_exact_and_refused_beyond():
    law = Custom(lambda m: 1 / (special_zeta(3) * m.astype(float) ** 3), lambda m: 0.5 / max(m, 1) ** 2, "zeta3")
    with mpmath.workdps(30):
        z3 = mpmath.zeta(3)
        assert close(law.mean_inverse, mpmath.zeta(4) / z3)
        assert close(law.mean_inverse_square, mpmath.zeta(5) / z3)
        assert close(law.pgf(0.98), mpmath.polylog(3, mpmath.mpf(0.98)) / z3)
        assert close(law.pgf_over_m(0.98), mpmath.polylog(4, mpmath.mpf(0.98)) / z3)
    assert law.pgf(1.0) == 1
    with pytest.raises(InputError, match="too heavy"):
        law.pgf(1 - 1e-9)
    with pytest.raises(InputError, match="too heavy for the mean"):
        _ = law.mean


def special_zeta(n):
    return float(mpmath.zeta(n))


def test_z_outside_the_unit_interval_is_refused():
    for z in (-0.1, 1.1, np.nan):
        with pytest.raises(InputError, match="z must lie in"):
            Geometric(0.5).pgf(z)
    with pytest.raises(InputError, match="delta"):
        Geometric(0.5).quantile_length(0)
    with pytest.raises(InputError, match="needs sums over"):
        Geometric(1e-9).support()


# ---------------------------------------------------------------- roots of polynomials with whole coefficients


def vanishing_at(*roots):
    return product([(-root.numerator, root.denominator) for root in roots])


def test_products_and_derivatives_by_hand():
    assert product([(1, 2), (3, 4), (5,)]) == [15, 50, 40] and product([]) == [1]
    assert derivative([7, 5, 3]) == [5, 6] and derivative([7]) == [0]


distinct_roots = st.lists(st.fractions(-1, 2, max_denominator=1000), min_size=1, max_size=6, unique=True)


@given(distinct_roots, st.sampled_from([(1,), (-3,), (1, 0, 1), (1, -1, 1)]))
@example([Fraction(n, 8) for n in range(9)], (1,))
@example([Fraction(n, 5) for n in range(-1, 6)], (1,))
@example([Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**12)], (1,))
@example([Fraction(1, 10**30), Fraction(1, 2)], (1,))
def test_simple_roots_are_the_nearest_floats_and_no_others(roots, without_roots):
    found = roots_in_unit_interval(product([vanishing_at(*roots), without_roots]))
    assert sorted(found) == sorted(float(root) for root in roots if 0 < root < 1)


def test_the_root_of_a_half_is_rounded_correctly():
    assert roots_in_unit_interval([-1, 0, 2]) == [math.sqrt(0.5)]


@given(st.fractions(0, 1, max_denominator=100).filter(lambda root: 0 < root < 1), st.integers(2, 4))
@example(Fraction(1, 2), 2)
@example(Fraction(1, 2), 3)
def test_a_multiple_root_is_known_to_2_to_the_minus_52(root, times):
    found = roots_in_unit_interval(vanishing_at(*[root] * times, Fraction(-1)))
    assert found and all(abs(Fraction(p) - root) <= Fraction(1, 2**52) for p in found)


def test_roots_that_round_to_zero_or_one_are_left_out():
    near_one = Fraction(10**20 - 1, 10**20)
    assert roots_in_unit_interval(vanishing_at(Fraction(1, 10**400), Fraction(1, 3), near_one)) == [1 / 3]


# ---------------------------------------------------------------- the law that balances the labels


@pytest.mark.parametrize(("k", "d"), [(1, 50), (2, 50), (1, 2), (3, 7), (4, 8), (5, 8), (7, 8), (1, 10_000)])
def test_the_balanced_law_of_or_is_known(k, d):
    assert balanced_geometric(any_of(k), d).p == min(k / (d - k), 1)


def test_the_balanced_law_of_and_solves_its_quadratic():
    d = 50
    root = (-3 * d + math.sqrt(9 * d**2 + 8 * (d - 1) * (d - 2))) / (2 * (d - 1) * (d - 2))
    assert balanced_geometric(all_of(2), d).p == pytest.approx(root, rel=1e-14)


@given(
    st.integers(1, 3).flatmap(
        lambda k: st.tuples(st.lists(st.booleans(), min_size=2**k, max_size=2**k), st.integers(k + 1, 60))
    )
)
def test_no_geometric_law_balances_better_and_none_with_larger_p_as_well(case):
    truth, d = case
    k = len(truth).bit_length() - 1
    if len(set(truth)) == 1:
        return
    terms = [" & ".join(f"{'' if p >> i & 1 else '!'}{i + 1}" for i in range(k)) for p in range(2**k) if truth[p]]
    language = parse_language(" | ".join(terms))
    chosen = balanced_geometric(language, d)

    def miss(p):
        return abs(language.positive_probability(d, Geometric(p).pgf) - 0.5)

    grid = np.append(np.geomspace(1e-6, 1, 400), np.linspace(0.001, 1, 400))
    misses = np.array([miss(p) for p in grid])
    assert miss(chosen.p) <= misses.min() + 1e-12
    assert not np.any((misses <= miss(chosen.p) + 1e-13) & (grid > chosen.p * (1 + 1e-6)))
