"""Moments of the letter shares and of the label, for every length law."""

from fractions import Fraction

import numpy as np
import sympy

from analytic.languages import any_of
from analytic.lengths import balanced_geometric
from analytic.moments import letter_moment

from .claims import claim
from .decide import ROUNDING, close, exact, holds, identity, positive, sampled
from .domain import LETTERS, LONGER, Domain, ExactLaw, GivenLength, Real, Whole
from .letters import population, share_moment, whole_population
from .simulator import POPULATIONS, SAMPLES, by_class, fresh_words


def excess_steps():
    """Steps that show q >= kappa, equal iff all words have one letter: q - kappa = E[z - z^m], z = 1 - kappa."""
    odds, power = sympy.Symbol("w", positive=True), sympy.Symbol("z^m", positive=True)
    z = 1 / (1 + odds)  # any z in (0, 1)
    yield identity("z - z^m = 0 at m = 1", z - z**1, 0)
    yield positive("z - z^m grows with m, since z^m - z^(m+1) > 0: q >= kappa, equal iff m = 1", power - power * z)


def drive_steps(c):
    """Steps that show M1 > M2 > 0 when some words have two letters or more: M1, M2 are means over the length."""
    m = 2 + sympy.Symbol("m'", integer=True, nonnegative=True)
    longer, one = c.having(length=GivenLength(m)), c.having(length=GivenLength(sympy.Integer(1)))
    E1, E2 = c.length.mean_inverse, c.length.mean_inverse_square
    for name in ("M1", "M2"):
        moment = getattr(c, name)
        affine = moment.subs({E1: 0, E2: 0}) + E1 * sympy.diff(moment, E1) + E2 * sympy.diff(moment, E2)
        yield identity(f"{name} is affine in E1 and E2, so a mean over lengths", moment, affine)
        yield identity(f"{name} of words of one letter is 0", getattr(one, name), 0)
    yield positive("M2 > 0 for m >= 2", longer.M2, LETTERS)
    yield positive("M1 - M2 > 0 for m >= 2", longer.M1 - longer.M2, LETTERS)


def mean_over_words(case, function):
    """E[function(shares, y)] over all words of an exact case."""
    total = Fraction(0)
    for probability, counts, y in population(case):
        total += probability * function([Fraction(n, sum(counts)) for n in counts], y)
    return total


# ---------------------------------------------------------------- the share x of target letters


@claim(
    "moments.target_share",
    statement="The share x of target letters in a word has E[x] = kappa, E[x^2] = kappa^2 (1 - E1) + kappa E1, "
    "E[x^3] = kappa^3 (1 - 3 E1 + 2 E2) + 3 kappa^2 (E1 - E2) + kappa E2, M1 = E[x(1-x)] = kappa (1 - kappa)(1 - E1), "
    "M2 = E[x^2(1-x)] = E[x^2] - E[x^3] and M3 = E[x(1-x)(1-2x)] = M1 - 2 M2; and 0 < M2 < M1 when some words have "
    "two letters or more.",
    latex=r"\mathbb E[x^2]=\kappa^2(1-E_1)+\kappa E_1,\quad "
    r"\mathbb E[x^3]=\kappa^3(1-3E_1+2E_2)+3\kappa^2(E_1-E_2)+\kappa E_2,\quad 0<M_2<M_1",
    domain=LONGER,
    source="factorial moments of the binomial number of target letters",
)
def target_share(c):
    return {name: getattr(c.moments, name) for name in ("X1", "X2", "X3", "M1", "M2", "M3")}


SHARE_POLYNOMIALS = {
    "X1": lambda x: x,
    "X2": lambda x: x**2,
    "X3": lambda x: x**3,
    "M1": lambda x: x * (1 - x),
    "M2": lambda x: x**2 * (1 - x),
    "M3": lambda x: x * (1 - x) * (1 - 2 * x),
}


@target_share.proof
def _(formula):
    """derivatives of the generating function of the counts; signs length by length"""
    c = LONGER.symbols()
    claimed, x = formula(c), sympy.Symbol("x")
    for name, polynomial in SHARE_POLYNOMIALS.items():
        mean = sum(
            coefficient * share_moment(c, {"targets": c.k, "others": c.D}, {"targets": power})
            for (power,), coefficient in sympy.Poly(polynomial(x), x).terms()
        )
        yield identity(f"{name} = E[{polynomial(x)}]", mean, claimed[name], LONGER)
    yield from drive_steps(c)


@target_share.instance
def _(formula, case):
    """exact means over all words"""
    k, claimed = int(case.k), formula(case)
    for name, polynomial in SHARE_POLYNOMIALS.items():
        mean = mean_over_words(case, lambda shares, y, polynomial=polynomial: polynomial(sum(shares[:k])))
        yield exact(name, mean, claimed[name], case)
    yield holds("0 < M2 < M1", 0 < claimed["M2"] < claimed["M1"], case)


@target_share.simulation
def _(formula):
    """means over data sets that are the population, to rounding"""
    for d, k, longest in POPULATIONS:
        case = LONGER.check(d=d, k=k, length=f"uniform:1:{longest}")
        counts, _ = whole_population(d, k, longest)
        share, claimed = counts[:, :k].sum(axis=1) / counts.sum(axis=1), formula(case)
        for name, polynomial in SHARE_POLYNOMIALS.items():
            yield close(name, polynomial(share).mean(), claimed[name], ROUNDING, case)


@target_share.simulation
def _(formula):
    """words of the simulator, t-test over seeds"""
    for d, k, length in SAMPLES:
        case = LONGER.check(d=d, k=k, length=length)
        all_counts = [words.counts() for words in fresh_words(d, k, length)]
        shares = [counts[:, :k].sum(axis=1) / counts.sum(axis=1) for counts in all_counts]
        claimed = formula(case)
        for name, polynomial in SHARE_POLYNOMIALS.items():
            yield sampled(name, [polynomial(share).mean() for share in shares], claimed[name], case)


target_share.mutant("sign of E1", X2=lambda c, v: c.kappa**2 * (1 + c.E1) + c.kappa * c.E1)
target_share.mutant("share of a fixed word: E[x]^2", X2=lambda c, v: c.kappa**2)
target_share.mutant("factor 2 for 3", X3=lambda c, v: v - c.kappa**2 * (c.E1 - c.E2))
target_share.mutant("E2 and E1 swapped", X3=lambda c, v: v + c.kappa * (c.E1 - c.E2))
target_share.mutant("1 - kappa forgotten", M1=lambda c, v: c.kappa * (1 - c.E1))
target_share.mutant("index: E[x(1-x)^2] for M2", M2=lambda c, v: c.M1 - c.M2)
target_share.mutant("direction: M2 and M1 swapped", M1=lambda c, v: c.M2, M2=lambda c, v: c.M1)
target_share.mutant("M3 with one M2", M3=lambda c, v: c.M1 - c.M2)


# ---------------------------------------------------------------- single letters


DISTINCT = LETTERS.having(d=Whole(4), k=Whole(1, below="d"))  # room for three different letters and a rest


@claim(
    "moments.letters",
    statement="For different letters i, j, l: E[p_i p_j] = (1 - E1)/d^2, E[p_i^2] = (1 - E1)/d^2 + E1/d, "
    "E[p_i p_j p_l] = t3/d^3, E[p_i^2 p_j] = t3/d^3 + t2/d^2, E[p_i^3] = t3/d^3 + 3 t2/d^2 + E2/d, "
    "t2 = E1 - E2, t3 = 1 - 3 E1 + 2 E2; for letters off S on words without a target letter E[1_- p_j] = G/(d-k), "
    "E[1_- p_i p_j] = (G - G1)/(d-k)^2, E[1_- p_j^2] = (G - G1)/(d-k)^2 + G1/(d-k).",
    latex=r"\mathbb E[p_ip_jp_l]=\frac{t_3}{d^3}+\frac{t_2(\delta_{ij}+\delta_{jl}+\delta_{il})}{d^2}"
    r"+\frac{\delta_{ijl}E_2}{d},\quad \mathbb E[1_-p_ip_j]=\frac{G-G_1}{(d-k)^2}+\frac{\delta_{ij}G_1}{d-k}",
    domain=DISTINCT,
    source="factorial moments of the multinomial letter counts",
)
def letters(c):
    t2, t3 = c.E1 - c.E2, 1 - 3 * c.E1 + 2 * c.E2
    pair, triple, negative = (1 - c.E1) / c.d**2, t3 / c.d**3, (c.G - c.G1) / c.D**2
    return {
        "ij": pair,
        "ii": pair + c.E1 / c.d,
        "ijl": triple,
        "iij": triple + t2 / c.d**2,
        "iii": triple + 3 * t2 / c.d**2 + c.E2 / c.d,
        "-j": c.G / c.D,
        "-ij": negative,
        "-jj": negative + c.G1 / c.D,
    }


def _powers(name):
    """{letter: power} of a monomial such as "iij"; a leading "-" stands for 1_-."""
    return {letter: name.count(letter) for letter in "ijl" if letter in name}


@letters.proof
def _(formula):
    """derivatives of the generating function of the counts"""
    c = DISTINCT.symbols()
    for name, claimed in formula(c).items():
        marked = dict.fromkeys("ijl", 1)
        classes = {"targets": c.k, **marked, "rest": c.D - 3} if "-" in name else {**marked, "rest": c.d - 3}
        moment = share_moment(c, classes, _powers(name), negative="-" in name)
        yield identity(f"E[{name}]", moment, claimed, DISTINCT)


@letters.instance
def _(formula, case):
    """exact means over all words"""
    d, k = int(case.d), int(case.k)
    for name, claimed in formula(case).items():
        negative, powers = "-" in name, _powers(name)
        if negative and len(powers) > d - k:
            continue
        places = dict(zip(powers, range(k, d) if negative else range(d), strict=False))

        def monomial(shares, y, places=places, powers=powers, negative=negative):
            product = Fraction(not negative or y < 0)
            for letter, power in powers.items():
                product *= shares[places[letter]] ** power
            return product

        yield exact(f"E[{name}]", mean_over_words(case, monomial), claimed, case)


@letters.simulation
def _(formula):
    """what the product computes with Stirling numbers, on a grid"""
    for d, k, length in SAMPLES:
        case = DISTINCT.check(d=d, k=k, length=length)
        for name, claimed in formula(case).items():
            places = dict(zip("ijl", range(k, d), strict=False))
            powers = {places[letter]: power for letter, power in _powers(name).items()}
            found = letter_moment(any_of(k), d, case.length, powers, label=-1 if "-" in name else None)
            yield close(f"E[{name}]", found, claimed, ROUNDING, case, scale=float(claimed))


letters.mutant("sign of E1", ij=lambda c, v: (1 + c.E1) / c.d**2)
letters.mutant("independent shares", ij=lambda c, v: 1 / c.d**2)
letters.mutant("d for d^2", ii=lambda c, v: v + c.E1 / c.d**2)
letters.mutant("factor 2 for 3", iii=lambda c, v: v - (c.E1 - c.E2) / c.d**2)
letters.mutant("E1 for E2", iii=lambda c, v: v + (c.E1 - c.E2) / c.d)
letters.mutant("t2 forgotten", iij=lambda c, v: (1 - 3 * c.E1 + 2 * c.E2) / c.d**3)
letters.mutant("d for d - k", **{"-j": lambda c, v: c.G / c.d})
letters.mutant("G1 forgotten", **{"-ij": lambda c, v: c.G / c.D**2})


# ---------------------------------------------------------------- the label


@claim(
    "moments.label",
    statement="P(y = +1) = q = 1 - G(1 - kappa) with kappa <= q < 1, q = kappa iff all words have one letter, "
    "and E[1_+ p_j] = 1/d for target letters and (q - kappa)/(d - k) for the others.",
    latex=r"q=1-G(1-\kappa)\ge\kappa,\qquad \mathbb E[1_+p_j]=\tfrac1d\ (j\in S),\ "
    r"\tfrac{q-\kappa}{d-k}\ (j\notin S)",
    domain=LETTERS,
    source="a word with a target letter is positive: 1_+ p_j = p_j on S",
)
def label(c):
    return {"positive": 1 - c.G, "target": 1 / c.d, "other": (1 - c.G - c.kappa) / c.D}


@label.proof
def _(formula):
    """generating function of the counts with and without target letters; z^m <= z"""
    c = LETTERS.symbols()
    claimed = formula(c)
    none = share_moment(c, {"targets": c.k, "others": c.D}, {}, negative=True)
    yield identity("P(y = +1) = 1 - P(no target letter)", 1 - none, claimed["positive"], LETTERS)
    yield positive("q < 1: a word of others only has positive probability", 1 - claimed["positive"], LETTERS)
    yield from excess_steps()
    for name, classes in (
        ("target", {"target": 1, "targets": c.k - 1, "others": c.D}),
        ("other", {"targets": c.k, "other": 1, "others": c.D - 1}),
    ):
        mean = share_moment(c, classes, {name: 1}) - share_moment(c, classes, {name: 1}, negative=True)
        yield identity(f"E[1_+ p_j], j a {name} letter", mean, claimed[name], LETTERS)


@label.instance
def _(formula, case):
    """exact means over all words"""
    k, claimed = int(case.k), formula(case)
    yield exact("q", mean_over_words(case, lambda shares, y: Fraction(y > 0)), claimed["positive"], case)
    yield exact("E[1_+ p_s]", mean_over_words(case, lambda shares, y: shares[0] * (y > 0)), claimed["target"], case)
    yield exact("E[1_+ p_o]", mean_over_words(case, lambda shares, y: shares[k] * (y > 0)), claimed["other"], case)
    one_letter = set(case.length.probabilities) == {1}
    yield holds("q >= kappa, equal iff m = 1", (claimed["positive"] == case.kappa) == one_letter, case)
    yield holds("kappa <= q < 1", case.kappa <= claimed["positive"] < 1, case)


@label.simulation
def _(formula):
    """words and labels of the simulator, t-test over seeds"""
    for d, k, length in SAMPLES:
        case = LETTERS.check(d=d, k=k, length=length)
        sets = [(words.counts(), words.labels > 0) for words in fresh_words(d, k, length)]
        claimed = formula(case)
        yield sampled("P(y = +1)", [inside.mean() for _, inside in sets], claimed["positive"], case)
        shares = [(counts / counts.sum(axis=1, keepdims=True))[inside] for counts, inside in sets]
        weighted = np.array([share.sum(axis=0) / len(words) for share, (words, _) in zip(shares, sets, strict=True)])
        target, other = by_class(weighted, k)
        yield sampled("E[1_+ p_s]", target, claimed["target"], case)
        yield sampled("E[1_+ p_o]", other, claimed["other"], case)


label.mutant("sign: q = 1 + G", positive=lambda c, v: 1 + c.G)
label.mutant("q = G", positive=lambda c, v: c.G)
label.mutant("labels independent of the letters", target=lambda c, v: (1 - c.G) / c.d)
label.mutant("k/d for 1/d", target=lambda c, v: c.k / c.d)
label.mutant("q + kappa", other=lambda c, v: (1 - c.G + c.kappa) / c.D)
label.mutant("d for d - k", other=lambda c, v: v * c.D / c.d)


GEOMETRIC = Domain(d=Whole(2), k=Whole(1, below="d"), p=Real(0, 1))


@claim(
    "moments.balance",
    statement="For geometric lengths P(m) = p (1 - p)^(m-1), q - 1/2 has the sign of k/(d-k) - p: the classes balance "
    "if and only if p = k/(d - k), which is possible for k <= d/2.",
    latex=r"q=\tfrac12\iff p=\frac{k}{d-k}",
    domain=GEOMETRIC,
    source="G(z) = p z / (1 - (1-p) z)",
)
def balance(c):
    z = 1 - c.k / c.d
    return {"negative": c.p * z / (1 - (1 - c.p) * z), "balanced": c.k / c.D}


@balance.proof
def _(formula):
    """first-letter analysis of G, and the sign of G - 1/2"""
    c = GEOMETRIC.symbols()
    claimed, z = formula(c), 1 - c.k / c.d
    negative = claimed["negative"]
    # a word without a target letter: its first letter is none, then it ends (p) or goes on as a new word (1 - p)
    yield identity("P(no target) = z (p + (1 - p) P(no target))", negative, z * (c.p + (1 - c.p) * negative), GEOMETRIC)
    factor = z / (2 * (1 - (1 - c.p) * z))
    surplus = factor * (c.p - claimed["balanced"])
    yield identity("P(no target) - 1/2 = factor (p - k/(d-k))", negative - sympy.Rational(1, 2), surplus, GEOMETRIC)
    yield positive("the factor is positive", factor, GEOMETRIC)
    d_minus_2k = sympy.Symbol("d-2k", nonnegative=True)
    yield positive("k/(d-k) <= 1 for k <= d/2", (1 - claimed["balanced"]).subs(c.d, 2 * c.k + d_minus_2k), strict=False)


@balance.instance
def _(formula, case):
    """q enclosed by all words of up to 6 letters and the mass of longer ones"""
    claimed, longest = formula(case), 6
    law = ExactLaw({m: case.p * (1 - case.p) ** (m - 1) for m in range(1, longest + 1)})
    words = population(case.having(length=law))
    low = sum(probability for probability, _, y in words if y > 0)
    high = low + (1 - case.p) ** longest
    yield holds("q in its enclosure", low <= 1 - claimed["negative"] <= high, case, enclosure=(low, high))
    if low > Fraction(1, 2) or high < Fraction(1, 2):
        more = low > Fraction(1, 2)
        yield holds("q > 1/2 iff p < k/(d-k)", (case.p < claimed["balanced"]) == more, case, enclosure=(low, high))


@balance.simulation
def _(formula):
    """the product's balanced law, and labels of the simulator under it, t-test over seeds"""
    for d, k in ((10, 1), (20, 3), (50, 2)):
        law = balanced_geometric(any_of(k), d)
        case = GEOMETRIC.check(d=d, k=k, p=law.p)
        yield close("analytic.lengths.balanced_geometric", law.p, formula(case)["balanced"], ROUNDING, case)
        yield close("q", law.pgf(1 - k / d), formula(case)["negative"], ROUNDING, case)
        fractions = [(words.labels > 0).mean() for words in fresh_words(d, k, law)]
        yield sampled("q = 1/2", fractions, 1 - formula(case)["negative"], case)


balance.mutant("k/d", balanced=lambda c, v: c.k / c.d)
balance.mutant("sign in the denominator", balanced=lambda c, v: c.k / (c.d + c.k))
balance.mutant("(d-k)/k", balanced=lambda c, v: 1 / v)
balance.mutant("lengths from 0", negative=lambda c, v: c.p / (1 - (1 - c.p) * (1 - c.k / c.d)))
balance.mutant("sign in G", negative=lambda c, v: c.p * (1 - c.k / c.d) / (1 + (1 - c.p) * (1 - c.k / c.d)))
