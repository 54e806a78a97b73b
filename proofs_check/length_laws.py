"""Closed forms of the length laws: generating functions and mean inverses, as solutions of their defining series."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import sympy
from scipy import integrate, special

from analytic.lengths import Geometric, LengthLaw, ShiftedPoisson, Uniform

from .claims import claim
from .decide import ROUNDING, close, holds, identity, positive, sampled
from .domain import Domain, Length, Real, Whole
from .enclosures import ball, contained, precision
from .simulator import SEEDS, WORDS

QUADRATURE = 1e-9  # of the adaptive rule that integrals are compared with
DIGITS = 40  # to which closed forms are evaluated for the exact checks
TAIL = Fraction(1, 10**12)  # mass that the partial sums of the exact checks leave out
LONGEST = 1000  # terms
z = sympy.Symbol("z", positive=True)


class Functions:
    """Logarithm, exponential, dilogarithm and exponential integral in the numbers of ``x``: floats, balls, sympy."""

    def __init__(self, x):
        if isinstance(x, float):
            self.log, self.exp, self.expi, self.gamma = math.log, math.exp, special.expi, np.euler_gamma
            self.li2 = lambda y: special.spence(1 - y)
        elif hasattr(x, "polylog"):
            self.log, self.exp, self.expi = (lambda y: y.log()), (lambda y: y.exp()), (lambda y: y.ei())
            self.li2, self.gamma = (lambda y: y.polylog(2)), type(x).const_euler()
        else:
            self.log, self.exp, self.expi, self.gamma = sympy.log, sympy.exp, sympy.Ei, sympy.EulerGamma
            self.li2 = lambda y: sympy.polylog(2, y)


def number(value):
    """A closed form of an exact case, as a fraction with `DIGITS` digits."""
    return Fraction(str(sympy.sympify(value).evalf(DIGITS)))


def series_steps(claimed, first, ratio, at_zero):
    """Steps that show that ``claimed`` are sum P(m) z^m, sum P(m) z^m/m, sum P(m) z^m/m^2, with their values at 1.

    P(1) = ``first`` and P(m+1)/P(m) = ``ratio`` are checked by the caller; a series without constant term is fixed by
    its derivative: z f' multiplies the coefficient of z^m by m.
    """
    G, G1, G2 = (sympy.expand_func(claimed[name]) for name in ("G", "G1", "G2"))
    yield identity("z G1'(z) = G(z)", sympy.expand_func(z * sympy.diff(G1, z)), G)
    yield identity("z G2'(z) = G1(z)", sympy.expand_func(z * sympy.diff(G2, z)), G1)
    for name, value in at_zero.items():
        yield identity(f"{name}(0) = 0", value, 0)
    yield identity("E1 = G1(1)", claimed["E1"], claimed["G1"].subs(z, 1))
    yield identity("E2 = G2(1)", claimed["E2"], claimed["G2"].subs(z, 1))


def enclosure_by_sums(probability, tail_ratio):
    """Rational (low, high) of sum_m P(m) z^m / m^i for i = 0, 1, 2 at a fraction z, from partial sums."""

    def enclose(point, power):
        total, m, mass = Fraction(0), 0, Fraction(1)
        while abs(mass) > TAIL:
            if (m := m + 1) > LONGEST:
                raise ArithmeticError("the probabilities do not fall: no law")
            p = probability(m)
            total += p * point**m / Fraction(m) ** power
            mass = tail_ratio(m)
        return total, total + mass

    return enclose


GEOMETRIC = Domain(p=Real(0, 1), z=Real(0, 1))


@claim(
    "lengths.geometric",
    statement="For geometric lengths P(m) = p (1-p)^(m-1): G(z) = E[z^m] = p z/(1 - (1-p) z), "
    "G1(z) = E[z^m/m] = -(p/(1-p)) ln(1 - (1-p) z), G2(z) = E[z^m/m^2] = (p/(1-p)) Li2((1-p) z), "
    "E1 = -p ln p/(1-p), E2 = p Li2(1-p)/(1-p).",
    latex=r"G(z)=\frac{pz}{1-(1-p)z},\quad G_1(z)=-\frac p{1-p}\ln(1-(1-p)z),\quad E_1=-\frac{p\ln p}{1-p},\quad "
    r"E_2=\frac{p\,\mathrm{Li}_2(1-p)}{1-p}",
    domain=GEOMETRIC,
    source="geometric series, integrated term by term",
)
def geometric(c):
    f, odds = Functions(c.p), c.p / (1 - c.p)
    left = (1 - c.p) * c.z
    return {
        "G": c.p * c.z / (1 - left),
        "G1": -odds * f.log(1 - left),
        "G2": odds * f.li2(left),
        "E1": -odds * f.log(c.p),
        "E2": odds * f.li2(1 - c.p),
    }


@geometric.proof
def _(formula):
    """recursion of the probabilities; derivatives and values at 0 of the three series"""
    c = GEOMETRIC.symbols()
    odds = sympy.Symbol("w", positive=True)
    claimed = {name: value.subs(c.z, z) for name, value in formula(c).items()}
    yield identity(
        "G(z) = p z + (1-p) z G(z): P(1) = p, P(m+1) = (1-p) P(m)", claimed["G"], c.p * z + (1 - c.p) * z * claimed["G"]
    )
    at_zero = {name: claimed[name].subs(z, 0) for name in ("G", "G1", "G2")}
    yield from series_steps(claimed, c.p, 1 - c.p, at_zero)
    total = claimed["G"].subs(z, 1)
    yield identity("probabilities sum to 1: G(1) = 1", total, 1)
    yield positive("and are positive", (1 / (1 + odds)) * (1 - 1 / (1 + odds)))


@geometric.instance
def _(formula, case):
    """closed forms between rational partial sums and partial sums plus the tail"""
    if case.p < Fraction(1, 8):  # too many terms
        case = case.having(p=case.p + Fraction(1, 8))
    claimed = formula(case)
    enclose = enclosure_by_sums(lambda m: case.p * (1 - case.p) ** (m - 1), lambda m: (1 - case.p) ** m)
    yield from within(claimed, enclose, case)


def within(claimed, enclose, case):
    """Steps: each closed form lies in the enclosure by its partial sums, up to the digits it is known to."""
    for name, point, power in (("G", case.z, 0), ("G1", case.z, 1), ("G2", case.z, 2), ("E1", 1, 1), ("E2", 1, 2)):
        low, high = enclose(Fraction(point), power)
        value = number(claimed[name])
        held = low - TAIL <= value <= high + TAIL
        yield holds(f"{name} in its enclosure", held, case, low=float(low), found=float(value))


@geometric.simulation
def _(formula):
    """what the product computes"""
    for p in (1e-4, 0.02, 0.3, 0.9):
        law = Geometric(p)
        yield from product_values(formula, law, GEOMETRIC, "p", p)


def product_values(formula, law, domain, name, parameter):
    """Steps: the product's numbers of a law against the closed forms at three points."""
    for point in (0.1, 0.5, 0.99):
        case = domain.check(**{name: parameter, "z": point})
        claimed = formula(case)
        found = {
            "G": law.pgf(point),
            "G1": law.pgf_over_m(point),
            "G2": law.pgf_over_power(point, 2),
            "E1": law.mean_inverse,
            "E2": law.mean_inverse_square,
        }
        for key, value in found.items():
            yield close(f"analytic.lengths: {key}", value / claimed[key], 1, CANCELLED, case)


CANCELLED = 1e-10  # the closed forms in floats lose digits (Poisson's E2 the most)


@geometric.simulation
def _(formula):
    """sampled lengths, t-test over seeds"""
    yield from sampled_lengths(formula, Geometric(0.2), GEOMETRIC.check(p=0.2, z=0.7))


def sampled_lengths(formula, law, case):
    """Steps: means of z^m, 1/m and 1/m^2 over sampled lengths."""
    claimed = formula(case)
    lengths = [law.sample(np.random.default_rng(seed), WORDS).astype(float) for seed in SEEDS]
    for name, function in {
        "G": lambda m: case.z**m,
        "G1": lambda m: case.z**m / m,
        "E1": lambda m: 1 / m,
        "E2": lambda m: 1 / m**2,
    }.items():
        yield sampled(name, [function(m).mean() for m in lengths], claimed[name], case)


def summed(probability, tail, terms):
    """A function (z, i) -> ball of sum P(m) z^m/m^i: ``terms`` terms and the tail's ball."""

    def total(point, power):
        whole = sum(probability(m) * point**m / ball(m) ** power for m in range(1, terms + 1))
        return whole + ball(0).union(tail(terms))

    return total


def sum_steps(formula, case, total, radius=Fraction(1, 10**18)):
    """Certified steps: the closed form minus the series lies within ``radius`` of 0."""
    with precision():
        claimed = formula(case)
    for name, point, power in (("G", case.z, 0), ("G1", case.z, 1), ("G2", case.z, 2), ("E1", 1, 1), ("E2", 1, 2)):
        with precision():
            difference = claimed[name] - total(ball(point) if isinstance(point, int) else point, power)
        yield contained(f"{name} - its series", difference, -radius, radius)


@geometric.enclosure
def _(formula):
    """closed forms against the series with the rest of the tail, in balls, at three rates"""
    for p in (Fraction(1, 3), Fraction(1, 10), Fraction(1, 49)):
        with precision():
            q = ball(1 - p)
            case = GEOMETRIC.symbols().having(p=ball(p), z=ball(Fraction(9, 10)))
            terms = math.ceil(45 / float(p))
            total = summed(lambda m, p=p, q=q: ball(p) * q ** (m - 1), lambda m, q=q: q**m, terms)
        yield from sum_steps(formula, case, total)


geometric.mutant("sign of E1", E1=lambda c, v: -v)
geometric.mutant("lengths from 0", G=lambda c, v: v / c.z)
geometric.mutant("sign in the logarithm", G1=lambda c, v: -c.p / (1 - c.p) * Functions(c.p).log(1 + (1 - c.p) * c.z))
geometric.mutant("Li2(p)", E2=lambda c, v: c.p / (1 - c.p) * Functions(c.p).li2(c.p))
geometric.mutant("p for p/(1-p)", E1=lambda c, v: v * (1 - c.p))
geometric.mutant("G1 for G2", G2=lambda c, v: -c.p / (1 - c.p) * Functions(c.p).log(1 - (1 - c.p) * c.z))


POISSON = Domain(rate=Real(0), z=Real(0, 1))


@claim(
    "lengths.poisson",
    statement="If m - 1 is Poisson with rate t: G(z) = z e^(-t (1-z)), G1(z) = (e^(-t (1-z)) - e^-t)/t, "
    "G2(z) = e^-t (Ei(t z) - ln(t z) - gamma)/t, E1 = (1 - e^-t)/t, E2 = e^-t (Ei(t) - ln t - gamma)/t.",
    latex=r"G(z)=ze^{-\lambda(1-z)},\quad G_1(z)=\frac{e^{-\lambda(1-z)}-e^{-\lambda}}\lambda,\quad "
    r"E_1=\frac{1-e^{-\lambda}}\lambda,\quad E_2=\frac{e^{-\lambda}(\mathrm{Ei}(\lambda)-\ln\lambda-\gamma)}\lambda",
    domain=POISSON,
    source="exponential series, integrated term by term",
)
def poisson(c):
    f = Functions(c.rate)
    none = f.exp(-c.rate)

    def second(x):
        return none * (f.expi(x) - f.log(x) - f.gamma) / c.rate

    return {
        "G": c.z * f.exp(-c.rate * (1 - c.z)),
        "G1": (f.exp(-c.rate * (1 - c.z)) - none) / c.rate,
        "G2": second(c.rate * c.z),
        "E1": (1 - none) / c.rate,
        "E2": second(c.rate),
    }


@poisson.proof
def _(formula):
    """recursion of the probabilities as a differential equation; derivatives and values at 0 of the three series"""
    c = POISSON.symbols()
    claimed = {name: value.subs(c.z, z) for name, value in formula(c).items()}
    H = claimed["G"] / z  # sum P(m) z^(m-1)
    yield identity("H' = t H: m P(m+1) = t P(m)", sympy.diff(H, z), c.rate * H)
    yield identity("H(0) = P(1) = e^-t", H.subs(z, 0), sympy.exp(-c.rate))
    yield identity("probabilities sum to 1: G(1) = 1", claimed["G"].subs(z, 1), 1)
    x = sympy.Symbol("x", positive=True)
    start = sympy.limit(sympy.Ei(x) - sympy.log(x) - sympy.EulerGamma, x, 0)
    second = claimed["G2"].subs(z, x / c.rate)
    yield identity(
        "G2 is a multiple of Ei(x) - ln x - gamma",
        second * c.rate * sympy.exp(c.rate),
        sympy.Ei(x) - sympy.log(x) - sympy.EulerGamma,
    )
    at_zero = {"G": claimed["G"].subs(z, 0), "G1": claimed["G1"].subs(z, 0), "Ei(x) - ln x - gamma, so G2": start}
    yield from series_steps(claimed, sympy.exp(-c.rate), None, at_zero)


@poisson.instance
def _(formula, case):
    """closed forms between partial sums and partial sums plus the tail, e^-t to 40 digits"""
    claimed, none, t = formula(case), number(sympy.exp(-sympy.Rational(case.rate))), case.rate
    terms, sums = [none], [none]
    while len(terms) < 80:
        terms.append(terms[-1] * t / len(terms))
        sums.append(sums[-1] + terms[-1])
    enclose = enclosure_by_sums(lambda m: terms[m - 1], lambda m: max(1 - sums[m - 1], 0))
    yield from within(claimed, enclose, case)


@poisson.simulation
def _(formula):
    """what the product computes"""
    for rate in (0.5, 3.0, 12.0):
        yield from product_values(formula, ShiftedPoisson(rate), POISSON, "rate", rate)


@poisson.simulation
def _(formula):
    """sampled lengths, t-test over seeds"""
    yield from sampled_lengths(formula, ShiftedPoisson(3.0), POISSON.check(rate=3.0, z=0.7))


@poisson.enclosure
def _(formula):
    """closed forms against the series with the rest of the tail, in balls, at three rates"""
    for rate in (Fraction(1, 2), Fraction(5), Fraction(20)):
        with precision():
            t = ball(rate)
            case = POISSON.symbols().having(rate=t, z=ball(Fraction(9, 10)))

            def probability(m, t=t):
                return (-t).exp() * t ** (m - 1) / ball(m).gamma()

            # P(m > M) <= P(M+1) / (1 - t/(M+1))
            total = summed(probability, lambda M, t=t, p=probability: p(M + 1) / (1 - t / (M + 1)), 120)
        yield from sum_steps(formula, case, total)


poisson.mutant("sign of the rate", G=lambda c, v: c.z * Functions(c.rate).exp(c.rate * (1 - c.z)))
poisson.mutant("not shifted", G=lambda c, v: v / c.z)
poisson.mutant("e^-t forgotten", G1=lambda c, v: Functions(c.rate).exp(-c.rate * (1 - c.z)) / c.rate)
poisson.mutant(
    "sign of gamma", E2=lambda c, v: v + 2 * Functions(c.rate).gamma * Functions(c.rate).exp(-c.rate) / c.rate
)
poisson.mutant("1/t for E1", E1=lambda c, v: 1 / c.rate)
poisson.mutant("E1^2 for E2", E2=lambda c, v: ((1 - Functions(c.rate).exp(-c.rate)) / c.rate) ** 2)


# ---------------------------------------------------------------- any law, and the uniform law


ANY = Domain(m=Whole(1), length=Length(), a=Whole(1), n=Whole(1), z=Real(0, 1))


@claim(
    "lengths.integrals",
    statement="For every length law E[z^m/m] is the integral of G(t)/t over (0, z), E1 that over (0, 1), and E2 that "
    "of ln(1/t) G(t)/t over (0, 1). For lengths uniform on a..a+n-1, G(z) = z^a (1 - z^n)/(n (1-z)).",
    latex=r"E\Big[\frac{z^m}m\Big]=\int_0^z\frac{G(t)}t\,dt,\quad E_1=\int_0^1\frac{G(t)}t\,dt,\quad "
    r"E_2=\int_0^1\ln\frac1t\,\frac{G(t)}t\,dt,\quad G_{a..b}(z)=\frac{z^a(1-z^n)}{n(1-z)}",
    domain=ANY,
    source="each length on its own: integrals of t^(m-1)",
)
def integrals(c):
    """Integrals of t^(m-1) over (0, z), and of ln(1/t) t^(m-1) over (0, 1), for words of m letters; the uniform G."""
    return {
        "G1": c.z**c.m / c.m,
        "E1": 1 / c.m,
        "E2": 1 / c.m**2,
        "uniform": c.z**c.a * (1 - c.z**c.n) / (c.n * (1 - c.z)),
    }


@integrals.proof
def _(formula):
    """antiderivatives with their ends; the uniform law by one more length"""
    m, t = sympy.symbols("m t", positive=True)
    c = ANY.symbols().having(m=m, z=z)
    claimed = formula(c)
    first, second = t**m / m, t**m * (1 / m - sympy.log(t)) / m
    yield identity("d/dt t^m/m = t^(m-1)", sympy.expand(sympy.diff(first, t) * t), sympy.expand(t**m))
    derivative = sympy.expand(sympy.simplify(sympy.diff(second, t) * t / t**m))
    yield identity("d/dt t^m (1/m - ln t)/m = ln(1/t) t^(m-1)", derivative, -sympy.log(t))
    yield identity("both vanish at 0: t^m -> 0, t^m ln t -> 0", sympy.limit(t * sympy.log(t), t, 0), 0)
    yield identity("G1", first.subs(t, z), claimed["G1"])
    yield identity("E1", first.subs(t, 1), claimed["E1"])
    yield identity("E2", second.subs(t, 1), claimed["E2"])
    a, n = sympy.symbols("a n", positive=True, integer=True)
    uniform = [size * formula(c.having(a=a, n=size))["uniform"] for size in (sympy.Integer(1), n, n + 1)]
    yield identity("one length: G = z^a", uniform[0], z**a)
    yield identity(
        "one more length adds z^(a+n)", sympy.expand(uniform[2] - uniform[1] - z ** (a + n), power_exp=True), 0
    )


@cache
def exact_integrals(m, z):
    """Integrals of t^(m-1) over (0, z) and over (0, 1), and of ln(1/t) t^(m-1) over (0, 1)."""
    t = sympy.Symbol("t", positive=True)
    power, end = t ** (m - 1), sympy.Rational(z)
    values = (sympy.integrate(f, (t, 0, b)) for f, b in ((power, end), (power, 1), (-sympy.log(t) * power, 1)))
    return [Fraction(*value.as_numer_denom()) for value in values]


@integrals.instance
def _(formula, case):
    """exact integrals, length by length, summed over the lengths of random laws; the uniform law's sum"""
    for i, name in enumerate(("G1", "E1", "E2")):
        value = case.length.mean_of(lambda m, i=i: exact_integrals(m, case.z)[i])
        claimed = case.length.mean_of(lambda m, name=name: formula(case.having(m=Fraction(m)))[name])
        yield holds(name, value == claimed, case, found=value, claimed=claimed)
    lengths = range(int(case.a), int(case.a + case.n))
    mean = sum(case.z**m for m in lengths) / case.n
    yield holds("uniform", mean == formula(case)["uniform"], case, found=mean)


@integrals.simulation
def _(formula):
    """the product's laws, their numbers against numerical integrals of their generating functions"""
    for text in ("geometric:0.05", "poisson:4.5", "uniform:2:30", "fixed:7"):
        law: LengthLaw = Length().check("length", text, None)
        lengths, probabilities = law.support()
        case = ANY.symbols().having(z=0.8, a=1, n=1)

        def mean(name, lengths=lengths, probabilities=probabilities, case=case):
            return sum(p * formula(case.having(m=int(m)))[name] for m, p in zip(lengths, probabilities, strict=True))

        def over(t, law=law):
            return float(law.pgf(t)) / t

        for name, value in (
            ("G1", integrate.quad(over, 0, 0.8)[0]),
            ("E1", integrate.quad(over, 0, 1)[0]),
            ("E2", integrate.quad(lambda t, over=over: -np.log(t) * over(t), 0, 1)[0]),
        ):
            yield close(f"integral for {name}", value, mean(name), QUADRATURE, case)
        yield close("analytic mean_inverse", law.mean_inverse, mean("E1"), ROUNDING, case)
        yield close("analytic pgf_over_m", law.pgf_over_m(0.8), mean("G1"), ROUNDING, case)
    for a, b in ((1, 4), (3, 30)):
        place = case.having(a=a, n=b - a + 1)
        claimed = formula(place.having(m=1))["uniform"]
        yield close("analytic uniform pgf", Uniform(a, b).pgf(0.8), claimed, ROUNDING, place)


integrals.mutant("sign of ln", E2=lambda c, v: -v)
integrals.mutant("E1 for E2", E2=lambda c, v: 1 / c.m)
integrals.mutant("z^(m+1)", G1=lambda c, v: v * c.z)
integrals.mutant("1/(m+1)", E1=lambda c, v: 1 / (c.m + 1))
integrals.mutant("uniform from 0", uniform=lambda c, v: v / c.z)
integrals.mutant("one length less", uniform=lambda c, v: c.z**c.a * (1 - c.z ** (c.n - 1)) / (c.n * (1 - c.z)))
