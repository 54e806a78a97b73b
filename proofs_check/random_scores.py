"""Random scores at the start: what they add to the first output step, to first order and with a rigorous remainder."""

import math
import random
from fractions import Fraction

import numpy as np
import sympy

from analytic.random_init import random_scores_variance

from .claims import claim
from .decide import ROUNDING, below, close, exact, holds, identity, positive
from .domain import LETTERS, Case, Real
from .enclosures import enclosed
from .gradients import letter
from .letters import Jet, expectation, population, share_moment
from .simulator import GRID, kernel_step, populations

SCORES = LETTERS.having(rate_o=Real(0), size=Real(0))


@claim(
    "random_init.random_scores",
    statement="One output step from beta = 0 and any scores alpha sets beta_j to 4 rate_o E[1_+ a_j], and with "
    "s = max |alpha_j|, c_j = E[1_+ p_j], bars for means over all letters and over those off S: "
    "|E[1_+ a_j] - c_j - first| <= 2 s^2 e^(2s) c_j, first = (1 - E1)(alpha_j - bar alpha)/d - "
    "1[j not in S] (G - G1)(alpha_j - bar alpha_o)/(d-k). If alpha ~ N(0, sigma^2 I), the first-order part of beta_j "
    "has variance (4 rate_o sigma)^2 times the sum of its squared coefficients.",
    latex=r"\Big|\mathbb E[1_+a_j]-c_j-\frac{(1-E_1)(\alpha_j-\bar\alpha)}d+1_{j\notin S}\frac{(G-G_1)"
    r"(\alpha_j-\bar\alpha_o)}{d-k}\Big|\le2s^2e^{2s}c_j",
    domain=SCORES,
    source="Taylor's formula for the softmax; second moments of the letter shares",
)
def random_scores(c):
    """``c.own`` = alpha_j, its means ``c.mean`` and ``c.mean_others``; ``c.inside``: j in S; ``c.growth`` = e^(2s)."""
    first = (1 - c.E1) * (c.own - c.mean) / c.d
    if not c.inside:
        first = first - (c.G - c.G1) * (c.own - c.mean_others) / c.D
    share = 1 / c.d if c.inside else c.excess / c.D
    all_letters, others = (1 - c.E1) / c.d, 0 if c.inside else (c.G - c.G1) / c.D
    coefficients = {
        "own": all_letters - others + (0 if c.inside else others / c.D) - all_letters / c.d,
        "inside": -all_letters / c.d,
        "outside": (0 if c.inside else others / c.D) - all_letters / c.d,
    }
    counts = {"own": 1, "inside": c.k - int(c.inside), "outside": c.D - int(not c.inside)}
    variance = sum(counts[name] * a**2 for name, a in coefficients.items())
    return {
        "share": share,
        "first": first,
        "remainder": 2 * c.size**2 * c.growth * share,
        "beta": 4 * c.rate_o * (share + first),
        "variance": (4 * c.rate_o) ** 2 * variance,
    }


@random_scores.proof
def _(formula):
    """second derivative of a share along t alpha, its bound, Taylor's formula; first-order part from the moments"""
    t = sympy.Symbol("t", real=True)
    n, s = sympy.symbols("n s", positive=True)
    own = sympy.Symbol("alpha_j", real=True)
    rest = sympy.Function("Z", positive=True)(t)  # sum over the other letters of n_i e^(t alpha_i)
    total = n * sympy.exp(t * own) + rest
    share = n * sympy.exp(t * own) / total
    mean, square = ((share * own**i + sympy.diff(rest, t, i) / total) for i in (1, 2))
    yield identity("d a_j / dt = a_j (alpha_j - mean)", sympy.diff(share, t), share * (own - mean))
    curved = share * ((own - mean) ** 2 - (square - mean**2))
    yield identity("d^2 a_j / dt^2 = a_j ((alpha_j - mean)^2 - variance)", sympy.diff(share, t, 2), curved)
    # alpha_j, mean in [-s, s], 0 <= variance <= E[alpha^2] <= s^2
    a, b = sympy.symbols("a b", nonnegative=True)
    apart = s * (1 - a) / (1 + a) - s * (1 - b) / (1 + b)
    for sign in (1, -1):
        yield positive(f"2 s {'+-'[sign < 0]} (alpha_j - mean) >= 0", 2 * s + sign * apart, strict=False)
    yield positive("variance <= s^2 <= (2 s)^2", (2 * s) ** 2 - s**2 / (1 + a), strict=False)
    # a_j <= p_j e^(ts) / e^(-ts), as every weight lies between e^(-ts) and e^(ts)
    p, low, high = sympy.symbols("p e^-ts more", positive=True)
    top, spread = low + high, sympy.Symbol("w", nonnegative=True)
    own_weight = low + high / (1 + a)
    others = low + spread  # mean weight of the rest
    most = top / low - own_weight * (p + b) / (p * own_weight + b * others)  # p : b are the shares of j and the rest
    yield positive("a_j / p_j <= e^(2ts)", most, strict=False)
    # Taylor: int_0^1 (1-t) 4 s^2 e^(2ts) dt = e^(2s) - 1 - 2s <= 2 s^2 e^(2s), term by term with x = 2s
    integral = sympy.integrate((1 - t) * 4 * s**2 * sympy.exp(2 * t * s), (t, 0, 1))
    yield identity("int (1-t) 4 s^2 e^(2ts) dt", integral, sympy.exp(2 * s) - 1 - 2 * s)
    i = sympy.Symbol("i", integer=True, nonnegative=True)  # n = i + 2: x^n/n! <= x^n/(2 (n-2)!)
    yield positive("n! >= 2 (n-2)! for n >= 2", (i + 2) * (i + 1) - 2, strict=False)

    c = SCORES.symbols()
    weights = {
        name: sympy.Symbol(f"alpha_{name}", real=True)
        for name in ("target_j", "other_j", "target", "targets", "other", "others")
    }
    positive_word = sympy.Symbol("1_+", nonnegative=True)
    for inside in (True, False):
        j = "target_j" if inside else "other_j"
        sizes = {j: 1, "target": 1, "targets": c.k - 1 - int(inside), "other": 1, "others": c.D - 1 - int(not inside)}
        shares = {name: sympy.Symbol(f"p_{name}", nonnegative=True) for name in sizes}
        mean_of = {
            "mean": sum(sizes[x] * weights[x] for x in sizes) / c.d,
            "mean_others": sum(sizes[x] * weights[x] for x in sizes if x.startswith("other")) / c.D,
        }
        place = c.having(own=weights[j], inside=inside, growth=sympy.exp(2 * c.size), **mean_of)
        claimed = formula(place)
        average = sum(shares[x] * weights[x] for x in sizes)
        linear = expectation(positive_word * shares[j] * (weights[j] - average), c, sizes, shares, positive_word)
        yield identity(f"first-order part, j {'in' if inside else 'off'} S", linear, claimed["first"], LETTERS)
        mass = share_moment(c, sizes, {j: 1}) - share_moment(c, sizes, {j: 1}, negative=True)
        yield identity(f"c_j, j {'in' if inside else 'off'} S", mass, claimed["share"], LETTERS)
        yield identity("remainder", claimed["remainder"], 2 * c.size**2 * sympy.exp(2 * c.size) * mass, LETTERS)
        squares = [sizes[x] * (sympy.diff(linear, weights[x]) / sizes[x]) ** 2 for x in sizes]
        variance = (4 * c.rate_o) ** 2 * sum(squares)
        yield identity(f"variance of the first-order part, {j}", variance, claimed["variance"], LETTERS)
        word = Case(residual=-2 * positive_word, share=sympy.Symbol("a"), weight=0, value=0)
        step = -c.rate_o * letter(word)["beta"]
        yield identity("beta_j = 4 rate_o 1_+ a_j, a word", step, 4 * c.rate_o * positive_word * sympy.Symbol("a"))
        yield identity("beta to first order", claimed["beta"], 4 * c.rate_o * (mass + linear), LETTERS)


def exponential_bounds(x, terms=14):
    """Rational bounds of e^x for a rational |x| <= 1."""
    total = sum(x**n / math.factorial(n) for n in range(terms))
    rest = 2 * abs(x) ** terms / math.factorial(terms)
    return total - rest, total + rest


@random_scores.instance
def _(formula, case):
    """exact series over all words, and enclosures of E[1_+ a_j] by rational bounds of the exponentials"""
    rng, d, k = random.Random(str(case)), int(case.d), int(case.k)
    scores = [Fraction(rng.randint(-6, 6), 24) for _ in range(d)]
    size = max(map(abs, scores))
    words = [(p, counts) for p, counts, y in population(case) if y > 0]
    mean, mean_others = sum(scores) / d, sum(scores[k:]) / (d - k)
    bounds = [exponential_bounds(x) for x in scores]
    for j in range(d):
        place = case.having(own=scores[j], mean=mean, mean_others=mean_others, inside=j < k, size=size)
        claimed = formula(place.having(growth=exponential_bounds(2 * size)[0]))
        series = [Jet(Fraction(0), x).exp() for x in scores]
        share = sum(
            (
                p * (counts[j] * series[j]) / sum(n * e for n, e in zip(counts, series, strict=True) if n)
                for p, counts in words
                if counts[j]
            ),
            Jet(Fraction(0), Fraction(0)),
        )
        yield exact("c_j", share.coefficients[0], claimed["share"], place.having(scores=scores))
        yield exact("first-order part", share.coefficients[1], claimed["first"], place.having(scores=scores))
        low, high = (
            sum(
                p
                * counts[j]
                * bounds[j][own]
                / (
                    counts[j] * bounds[j][own]
                    + sum(n * b[1 - own] for i, (n, b) in enumerate(zip(counts, bounds, strict=True)) if i != j)
                )
                for p, counts in words
                if counts[j]
            )
            for own in (0, 1)
        )
        linear = claimed["share"] + claimed["first"]
        within = linear - claimed["remainder"] <= low and high <= linear + claimed["remainder"]
        yield holds(
            "E[1_+ a_j] within the remainder", within, place.having(scores=scores), low=low, high=high, **claimed
        )
    directions = [[Fraction(i == j) for i in range(d)] for j in range(d)]
    for j in {0, d - 1}:
        parts = [
            formula(
                case.having(own=e[j], mean=Fraction(1, d), mean_others=sum(e[k:]) / (d - k), inside=j < k, growth=1)
            )
            for e in directions
        ]
        total = (4 * case.rate_o) ** 2 * sum(part["first"] ** 2 for part in parts)
        yield exact("variance: sum of squared coefficients", parts[0]["variance"], total, case)


def claimed_step(formula, case, alpha):
    """Arrays over the letters: beta to first order, and how far from it the step can be."""
    size, k = float(np.abs(alpha).max()), case.k
    place = case.having(size=size, growth=math.exp(2 * size), mean=alpha.mean(), mean_others=alpha[k:].mean())
    values = [formula(place.having(own=a, inside=j < k)) for j, a in enumerate(alpha)]
    remainder = 4 * case.rate_o * np.array([v["remainder"] for v in values])
    return np.array([v["beta"] for v in values]), remainder


@random_scores.simulation
def _(formula):
    """output steps of the kernel on all words from Gaussian scores of several sizes, against the bound"""
    rng = np.random.default_rng(17)
    for d, k, length, words in populations():
        for sigma in (0.003, 0.03, 0.1, 0.5):
            alpha = sigma * rng.standard_normal(d)
            case = SCORES.check(d=d, k=k, length=length, rate_o=0.3 * d, size=sigma)
            beta, remainder = claimed_step(formula, case, alpha)
            found = kernel_step(words, alpha, np.zeros(d), rate_o=case.rate_o)[1]
            yield below("|beta_j - first order| <= remainder", np.abs(found - beta), remainder, case)


@random_scores.simulation
def _(formula):
    """the variances that the product reports, on a grid"""
    for place in GRID:
        case = SCORES.check(**place, rate_o=0.35 * place["d"], size=1.0)
        reported = random_scores_variance(case.d, case.k, case.length, case.rate_o, 1.0)
        for inside, value in zip((True, False), reported, strict=True):
            claimed = formula(case.having(own=0, mean=0, mean_others=0, inside=inside, growth=1))["variance"]
            yield close(f"variance, j {'in' if inside else 'off'} S", value / claimed, 1, ROUNDING, case)


@random_scores.enclosure
def _(formula):
    """the remainder's bound against Taylor's integral e^(2s) - 1 - 2s, sizes s in [1/100, 3]"""

    def margin(c):
        place = Case(d=50, k=1, size=c.s, growth=(2 * c.s).exp(), rate_o=1, own=0, mean=0, inside=True, E1=0, G=0, G1=0)
        claimed = formula(place)
        return 1 - ((2 * c.s).exp() - 1 - 2 * c.s) * claimed["share"] / claimed["remainder"]

    yield enclosed("2 s^2 e^(2s) > e^(2s) - 1 - 2 s", margin, {"s": (Fraction(1, 100), 3)})


random_scores.mutant("sign of the mean", first=lambda c, v: v + 2 * (1 - c.E1) * c.mean / c.d)
random_scores.mutant("sign of the label term", first=lambda c, v: v + _label(c))
random_scores.mutant("G1 forgotten", first=lambda c, v: v - int(not c.inside) * c.G1 * (c.own - c.mean_others) / c.D)
random_scores.mutant("E1 for 1 - E1", first=lambda c, v: v + (2 * c.E1 - 1) * (c.own - c.mean) / c.d)
random_scores.mutant("remainder of third order", remainder=lambda c, v: v * c.size)
random_scores.mutant("remainder with s^2/2", remainder=lambda c, v: v / 4)
random_scores.mutant("variance of the own score alone", variance=lambda c, v: _own_alone(c))
random_scores.mutant("loss with 1/2", beta=lambda c, v: v / 2)


def _label(c):
    return 0 if c.inside else 2 * (c.G - c.G1) * (c.own - c.mean_others) / c.D


def _own_alone(c):
    slope = (1 - c.E1) / c.d - (0 if c.inside else (c.G - c.G1) / c.D)
    return (4 * c.rate_o * slope) ** 2
