"""AND of two letters: first output step, what two heads can do, GD's pattern, and what the rule for f = 0 changes."""

import math
import random
from fractions import Fraction

import numpy as np
import sympy

from analytic.gradients.letter import Words, evaluate, scores
from analytic.languages import all_of
from analytic.lengths import balanced_geometric
from analytic.moments import letter_moment
from sim.runs import run_plan

from .claims import claim
from .decide import ROUNDING, agrees, below, close, exact, holds, identity, positive, sampled
from .domain import Case, Domain, Length, Real, Whole
from .enclosures import enclosed
from .gradients import letter
from .letters import constant, exact_gradient, exact_score, share_moment, words_of_length
from .simulator import SEEDS, WORDS, kernel_step

AND = Domain(d=Whole(3), length=Length(), rate_o=Real(0))
LAWS = ("geometric:0.05", "fixed:7", "uniform:2:30", "poisson:20.5")


def both_occur(case):
    """All words of an exact ``case`` with y = +1 iff the letters 1 and 2 occur: (probability, counts, y)."""
    d = int(case.d)
    return [
        (p * Fraction(number, d**m), counts, 1 if counts[0] and counts[1] else -1)
        for m, p in case.length.probabilities.items()
        for counts, number in words_of_length(d, m).items()
    ]


def both_population(d, longest):
    """Words that are the population of AND for lengths uniform on 1..longest."""
    rows = [
        (counts, number * d ** (longest - m))
        for m in range(1, longest + 1)
        for counts, number in words_of_length(d, m).items()
    ]
    counts = np.repeat([row for row, _ in rows], [number for _, number in rows], axis=0)
    return Words.from_counts(counts, np.where((counts[:, 0] > 0) & (counts[:, 1] > 0), 1, -1).astype(np.int8))


@claim(
    "and.output_step",
    statement="AND of two letters, any length law: P(y = +1) = q = 1 - 2 G(1 - 1/d) + G(1 - 2/d), and one output step "
    "from zero init sets beta to 4 rate_o c_s on both targets, c_s = 1/d - G(1 - 1/d)/(d - 1), and to "
    "4 rate_o (q - 2 c_s)/(d - 2) elsewhere; the targets get more. For geometric lengths 1/2 - q is a positive "
    "multiple of (d-1)(d-2) p^2 + 3 d p - 2, so the classes balance at "
    "p = (-3d + sqrt(9 d^2 + 8 (d-1)(d-2)))/(2 (d-1)(d-2)).",
    latex=r"\beta_S=4\eta_O\Big[\frac1d-\frac{G(1-\frac1d)}{d-1}\Big],\quad \beta_o=\frac{4\eta_O(q-2c_s)}{d-2},\quad "
    r"q=1-2G(1-\tfrac1d)+G(1-\tfrac2d)",
    domain=AND,
    source="1_+ = 1 - 1{no s_1} - 1{no s_2} + 1{neither}; gradients.letter at beta = 0",
)
def output_step(c):
    one, two = (c.length.pgf(1 - i / c.d) for i in (Fraction(1), Fraction(2)))
    positive_words, share = 1 - 2 * one + two, 1 / c.d - one / (c.d - 1)
    return {
        "positive": positive_words,
        "beta_target": 4 * c.rate_o * share,
        "beta_other": 4 * c.rate_o * (positive_words - 2 * share) / (c.d - 2),
        "balance": (c.d - 1) * (c.d - 2) * c.p**2 + 3 * c.d * c.p - 2 if "p" in vars(c) else None,
    }


@output_step.proof
def _(formula):
    """inclusion and exclusion of the generating function; order of the two values; first-letter analysis for p"""
    c, p = AND.symbols(), sympy.Symbol("p", positive=True)
    claimed = formula(c.having(p=p))

    def without(missing, powers):
        """E[1{the missing targets do not occur} prod of shares]; only missing letters are called targets."""
        sizes = {
            "target" if "s1" in missing else "s1": 1,
            "target2" if "s2" in missing else "s2": 1,
            "o": 1,
            "rest": c.d - 3,
        }
        return share_moment(c, sizes, powers, negative=bool(missing))

    subsets = ((), ("s1",), ("s2",), ("s1", "s2"))
    q = sum((-1) ** len(U) * without(U, {}) for U in subsets)
    yield identity("q", q, claimed["positive"], AND)
    for name, j in (("beta_target", "s1"), ("beta_other", "o")):
        mass = sum((-1) ** len(U) * without(U, {j: 1}) for U in subsets if j not in U)
        yield identity(f"{name} = 4 rate_o E[1_+ p_j]", 4 * c.rate_o * mass, claimed[name], AND)
    word = Case(residual=-2 * sympy.Symbol("1_+"), share=sympy.Symbol("p_j"), weight=0, value=0)
    step = -c.rate_o * letter(word)["beta"]
    yield identity("a word's step is 4 rate_o 1_+ p_j", step, 4 * c.rate_o * sympy.Symbol("1_+") * sympy.Symbol("p_j"))
    one, two = c.length.pgf(1 - 1 / c.d), c.length.pgf(1 - 2 / c.d)
    difference = claimed["beta_target"] - claimed["beta_other"]
    shown = 4 * c.rate_o / (c.d - 2) * (one * (c.d - 2) / (c.d - 1) - two)
    yield identity("beta_S - beta_o = 4 rate_o/(d-2) [G(1-1/d)(d-2)/(d-1) - G(1-2/d)]", difference, shown, AND)
    # (1-1/d)^m (d-2)/(d-1) > (1-2/d)^m as ((d-2)/(d-1))^m < (d-2)/(d-1) for m >= 2, equal at m = 1
    z1, odds = sympy.symbols("(1-1/d)^m w", positive=True)
    ratio, power = 1 / (1 + odds), sympy.Symbol("ratio^(m-1)", positive=True)
    yield identity("((d-1)/d) ((d-2)/(d-1)) = (d-2)/d", (c.d - 1) / c.d * (c.d - 2) / (c.d - 1), (c.d - 2) / c.d)
    yield positive("z ratio - z ratio ratio^(m-1) falls with ratio^(m-1) < 1", z1 * ratio * (1 - 1 / (1 + power)))

    law = {i: p * (1 - i / c.d) / (1 - (1 - p) * (1 - i / c.d)) for i in (sympy.Integer(1), sympy.Integer(2))}
    for i, value in law.items():
        z = 1 - i / c.d
        yield identity(f"G(1 - {i}/d) = z (p + (1-p) G)", value, z * (p + (1 - p) * value))
    balance = sympy.Rational(1, 2) - (1 - 2 * law[1] + law[2])
    room, denominators = claimed["balance"], 2 * (1 + (c.d - 1) * p) * (2 + (c.d - 2) * p)
    yield identity("1/2 - q = balance / (2 (1 + (d-1) p)(2 + (d-2) p))", balance, room / denominators)
    d = 3 + sympy.Symbol("d'", nonnegative=True)
    yield positive("the factor is positive", 1 / denominators.subs(c.d, d))
    root = sympy.Symbol("root", positive=True)
    found = (-3 * c.d + root) / (2 * (c.d - 1) * (c.d - 2))
    square = sympy.expand(sympy.numer(sympy.together(room.subs(p, found))))
    yield identity("the root", square.subs(root**2, 9 * c.d**2 + 8 * (c.d - 1) * (c.d - 2)).expand(), 0)


@output_step.instance
def _(formula, case):
    """exact output step over all words; exact q"""
    claimed, words = formula(case), both_occur(case)
    yield exact("q", sum(p for p, _, y in words if y > 0), claimed["positive"], case)
    _, slopes = exact_gradient(words, constant(case.d, 1), constant(case.d, 0))
    for j, slope in enumerate(slopes[0]):
        yield exact(f"beta_{j + 1}", -case.rate_o * slope, claimed["beta_target" if j < 2 else "beta_other"], case)
    longer = case.length.mean_inverse < 1
    yield holds(
        "targets get more, iff some words have two letters",
        (claimed["beta_target"] > claimed["beta_other"]) == longer,
        case,
    )


@output_step.simulation
def _(formula):
    """one kernel step on all words; the product's moments and balanced law"""
    for d, longest in ((3, 6), (4, 5), (6, 4)):
        case = AND.check(d=d, length=f"uniform:1:{longest}", rate_o=2.0)
        claimed = formula(case)
        beta = kernel_step(both_population(d, longest), np.zeros(d), np.zeros(d), rate_o=case.rate_o)[1]
        expected = np.where(np.arange(d) < 2, claimed["beta_target"], claimed["beta_other"])
        yield close("beta", beta, expected, ROUNDING, case)
    for d in (3, 10, 50, 400):
        for length in LAWS:
            case = AND.check(d=d, length=length, rate_o=1.0)
            claimed = formula(case)
            for j, name in ((0, "beta_target"), (2, "beta_other")):
                moment = letter_moment(all_of(2), d, case.length, {j: 1}, 1)
                yield close(f"analytic E[1_+ p_j], {name}", 4 * float(moment), claimed[name], ROUNDING, case)
        p = balanced_geometric(all_of(2), d).p
        case = AND.check(d=d, length=f"geometric:{p!r}", rate_o=1.0).having(p=p)
        yield close("q of analytic.lengths.balanced_geometric", formula(case)["positive"], 0.5, ROUNDING, case)
        yield close("(d-1)(d-2) p^2 + 3 d p - 2", formula(case)["balance"], 0, ROUNDING, case)


@output_step.simulation
def _(formula):
    """output step of sampled runs, t-test over seeds"""
    for d, length in ((8, "geometric:0.1"), (12, "uniform:1:20")):
        case = AND.check(d=d, length=length, rate_o=0.3 * d)
        claimed = formula(case)
        settings = {"init": "zero", "heads": 1, "train_words": WORDS, "test_words": 1}
        run = run_plan("and", "O(1x)", SEEDS, d=d, length=length, rate_o=case.rate_o, **settings)
        beta = run.beta.values[:, 1, 0]
        yield sampled("beta_S", beta[:, :2].mean(axis=1), claimed["beta_target"], case)
        yield sampled("beta_o", beta[:, 2:].mean(axis=1), claimed["beta_other"], case)


output_step.mutant("sign of G", beta_target=lambda c, v: 8 * c.rate_o / c.d - v)
output_step.mutant("OR's label", positive=lambda c, v: 1 - c.length.pgf(1 - 2 / c.d))
output_step.mutant("neither counted once more", positive=lambda c, v: v - 2 * c.length.pgf(1 - 2 / c.d))
output_step.mutant("one c_s", beta_other=lambda c, v: v + c.rate_o / c.d)
output_step.mutant("d for d - 1", beta_target=lambda c, v: 4 * c.rate_o * (1 - c.length.pgf(1 - 1 / c.d)) / c.d)
output_step.mutant("3 p in the balance", balance=lambda c, v: v and v - 3 * (c.d - 1) * c.p)


# ---------------------------------------------------------------- two heads reach zero loss in the limit


TWO_HEADS = Domain(first=Real(1), second=Real(1), third=Real(1))


@claim(
    "and.two_heads",
    statement="Two heads recognise AND of s_1, s_2 with losses as small as one likes, in two ways. (1) Head 1 weighs "
    "s_1 u times the rest, beta = 2 at s_1 and 0 elsewhere; head 2 weighs s_2 v times s_1 and s_1 w times the rest, "
    "beta = -2 at s_1 and 0 elsewhere. (2) Head 1 weighs s_1 v times s_2 and s_2 w times the rest, beta = 1 at s_1, "
    "-1 at s_2, 0 elsewhere, and head 2 the same with s_1 and s_2 exchanged. With e = max(1/u, 1/v, 1/w) every word of "
    "m letters has |f - y| <= 4 (m - 1) e: the loss is at most 16 e^2 E[(m-1)^2], and words shorter than 1 + 1/(4e) "
    "are right.",
    latex=r"|f-y|\le4(m-1)\,\varepsilon,\qquad L\le16\,\varepsilon^2\,\mathbb E[(m-1)^2],\qquad "
    r"\varepsilon=e^{-\min\text{gap}}",
    domain=TWO_HEADS,
    source="word by word: which of s_1, s_2 occur",
)
def two_heads(c):
    """Output weights at (s_1, s_2, others) of both heads in both patterns, and the constant."""
    return {"pattern1": ((2, 0, 0), (-2, 0, 0)), "pattern2": ((1, -1, 0), (-1, 1, 0)), "constant": 4}


def attention_weights(pattern, u, v, w):
    """e^alpha at (s_1, s_2, others) of both heads."""
    return ((u, 1, 1), (w, v * w, 1)) if pattern == "pattern1" else ((v * w, w, 1), (w, v * w, 1))


def score(counts, weights, beta):
    """f of a word by its counts (s_1, s_2, others)."""
    heads = (
        sum(n * x * b for n, x, b in zip(counts, ws, bs, strict=True))
        / sum(n * x for n, x in zip(counts, ws, strict=True))
        for ws, bs in zip(weights, beta, strict=True)
    )
    return sum(heads) - 1


@two_heads.proof
def _(formula):
    """the four kinds of words, each weight at least 1/e; bounds of both signs"""
    claimed = formula(None)
    e = 1 + sympy.Symbol("1/e-1", nonnegative=True)
    more = sympy.symbols("u' v' w'", nonnegative=True)
    # each ratio is the smallest one (1/e) or more; the bound then has the 1/e of the smallest
    ratios = [e + x for x in more]
    n1, n2, r = (
        1 + sympy.Symbol("n_1'", nonnegative=True),
        1 + sympy.Symbol("n_2'", nonnegative=True),
        sympy.Symbol("r", nonnegative=True),
    )
    for pattern in ("pattern1", "pattern2"):
        weights = attention_weights(pattern, *ratios)
        for counts, y in (((n1, n2, r), 1), ((n1, 0, r), -1), ((0, n2, r), -1), ((0, 0, 1 + r), -1)):
            residual = score(counts, weights, claimed[pattern]) - y
            bound = claimed["constant"] * (sum(counts) - 1) / e
            kind = "".join(name for name, n in zip(("s1", "s2"), counts, strict=False) if n != 0) or "neither"
            for sign in (1, -1):
                text = f"{pattern}, words with {kind}: bound {'+-'[sign < 0]} (f - y) >= 0"
                yield positive(text, bound + sign * residual, strict=False)
    m, small = sympy.symbols("m-1 e", positive=True)
    bound = claimed["constant"] * m * small
    yield identity("the loss: (4 (m-1) e)^2", bound**2, 16 * small**2 * m**2)
    short = sympy.Symbol("short", positive=True)
    yield positive("m - 1 < 1/(4e): |f - y| < 1, so y f > 0", 1 - bound.subs(m, 1 / (4 * small) / (1 + short)))


@two_heads.instance
def _(formula, case):
    """exact scores of all words of up to 5 letters of a 4-letter alphabet"""
    claimed, ratios = formula(case), (case.first, case.second, case.third)
    e = max(1 / ratio for ratio in ratios)
    for pattern in ("pattern1", "pattern2"):
        weights = [(a, b, c, c) for a, b, c in attention_weights(pattern, *ratios)]
        beta = [(*b, b[-1]) for b in claimed[pattern]]
        for m in range(1, 6):
            for counts in words_of_length(4, m):
                y = 1 if counts[0] and counts[1] else -1
                residual = exact_score(counts, weights, beta) - y
                place = case.having(counts=counts, pattern=pattern)
                yield holds(
                    "|f - y| <= 4 (m-1) e", abs(residual) <= claimed["constant"] * (m - 1) * e, place, found=residual
                )


@two_heads.simulation
def _(formula):
    """the kernel's loss and accuracy on all words with growing gaps"""
    for d, longest in ((3, 6), (4, 5), (6, 4)):
        words, m = both_population(d, longest), np.arange(longest)
        for gap in (2.0, 5.0, 10.0, 20.0):
            case = TWO_HEADS.check(**dict.fromkeys(("first", "second", "third"), math.exp(gap)))
            claimed = formula(case)
            for pattern in ("pattern1", "pattern2"):
                weights = np.array(attention_weights(pattern, case.first, case.second, case.third))
                pick = np.minimum(np.arange(d), 2)
                alpha, beta = np.log(weights)[:, pick], np.array(claimed[pattern], float)[:, pick]
                loss, accuracy = evaluate(words, alpha, beta)
                bound = (claimed["constant"] * math.exp(-gap)) ** 2 * np.mean(m**2)
                yield below(f"loss of {pattern}", loss, bound, case.having(d=d))
                if claimed["constant"] * (longest - 1) * math.exp(-gap) < 1:
                    yield agrees(f"accuracy of {pattern}", accuracy, 1.0, case.having(d=d))


two_heads.mutant("sign of head 2", pattern1=lambda c, v: (v[0], (2, 0, 0)))
two_heads.mutant("beta = 1", pattern1=lambda c, v: ((1, 0, 0), (-1, 0, 0)))
two_heads.mutant("both heads alike", pattern2=lambda c, v: (v[0], v[0]))
two_heads.mutant("constant 1", constant=lambda c, v: 1)
two_heads.mutant("head 1 alone", pattern2=lambda c, v: (v[0], (0, 0, 0)))


# ---------------------------------------------------------------- GD's pattern: a threshold on its gaps


PATTERN = Domain(a=Real(0), b=Real(0), xi=Real(0))


@claim(
    "and.pattern_threshold",
    statement="In the pattern that descent finds (head 1: score gap g_1 of s_1, beta = 2 there; head 2: s_1 above the "
    "rest by g_3, beta = -2 there) a word with n_1 letters s_1, r others and no s_2 has "
    "f = 2 a^2/(a^2 + xi) - 2 b^2/(b^2 + xi) - 1, xi = r/n_1, a = e^(g_1/2), b = e^(g_3/2). For a > b the "
    "largest f is 2 (a-b)/(a+b) - 1 = "
    "2 tanh((g_1 - g_3)/4) - 1, at xi = a b. So all such words of every length are rejected iff g_1 - g_3 < 2 ln 3 "
    "(a < 3b); beyond it the words with r/n_1 near e^((g_1+g_3)/2) are wrong.",
    latex=r"\max_\xi f=2\tanh\frac{g_1-g_3}4-1<0\iff g_1-g_3<2\ln3",
    domain=PATTERN,
    source="and.two_heads, words with s_1 only",
)
def pattern_threshold(c):
    return {"largest": 2 * (c.a - c.b) / (c.a + c.b) - 1, "at": c.a * c.b, "ratio": 3}


def pattern_score(a, b, xi):
    return 2 * a**2 / (a**2 + xi) - 2 * b**2 / (b**2 + xi) - 1


@pattern_threshold.proof
def _(formula):
    """f from the two heads; distance to the largest value as a square; sign of the largest value"""
    a, b, xi, n, r = sympy.symbols("a b xi n_1 r", positive=True)
    claimed = formula(Case(a=a, b=b, xi=xi))
    weights = ((a**2, 1, 1), (b**2, sympy.Symbol("s_2", positive=True), 1))
    f = score((n, 0, r), weights, ((2, 0, 0), (-2, 0, 0)))
    yield identity("f of the two heads", f, pattern_score(a, b, r / n))
    gap = 2 * (a - b) * (xi - claimed["at"]) ** 2 / ((a + b) * (a**2 + xi) * (b**2 + xi))
    yield identity(
        "largest - f = 2 (a-b)(xi - ab)^2/((a+b)(a^2+xi)(b^2+xi))", claimed["largest"] - pattern_score(a, b, xi), gap
    )
    more, less = sympy.symbols("a-b a", positive=True)
    wide = 2 * more / ((2 * b + more) * ((b + more) ** 2 + xi) * (b**2 + xi))
    yield positive("its factor is positive for a > b", wide)
    yield identity("reached at xi = a b", pattern_score(a, b, claimed["at"]), claimed["largest"])
    slope = (a - claimed["ratio"] * b) / (a + b)
    yield identity("largest = (a - 3 b)/(a + b)", claimed["largest"], slope)
    equal_or_less = -pattern_score(1 / (1 + less) * b, b, xi)
    yield positive("a <= b: f <= -1 < 0", equal_or_less)
    g = sympy.Symbol("g", positive=True)  # a/b = e^(g/2), g = g_1 - g_3
    tanh = 2 * sympy.tanh(g / 4).rewrite(sympy.exp) - 1
    yield identity("2 tanh(g/4) - 1", tanh, formula(Case(a=sympy.exp(g / 2), b=1, xi=xi))["largest"])
    yield identity("a = 3 b at g = 2 ln 3", sympy.exp(sympy.log(3)), claimed["ratio"])


@pattern_threshold.instance
def _(formula, case):
    """exact scores of words with s_1 and others, near and at the claimed place"""
    claimed, (a, b) = formula(case), (case.a, case.b)
    places = {case.xi, Fraction(claimed["at"]), Fraction(claimed["at"]) * Fraction(9, 10)}
    values = []
    for xi in places:
        counts = (xi.denominator, 0, xi.numerator)
        values.append(exact_score(counts, ((a**2, 1, 1), (b**2, 5, 1)), ((2, 0, 0), (-2, 0, 0))))
        yield exact("f", values[-1], pattern_score(a, b, xi), case.having(counts=counts))
    if a > b:
        yield holds("no f above the largest, which is reached", max(values) == claimed["largest"], case, found=values)
    rejected = a <= b or claimed["largest"] < 0
    yield holds("rejected iff a < 3 b", rejected == (a < claimed["ratio"] * b), case, **claimed)


@pattern_threshold.enclosure
def _(formula):
    """rejection on the box a/b in [1/2, 2.9], all xi up to 1000 b^2, and acceptance beyond a/b = 3.1"""

    def rejected(c):
        return -(2 * c.a**2 / (c.a**2 + c.xi) - 2 / (1 + c.xi) - 1)

    yield enclosed(
        "-f > 0 for a/b in [1/2, 2.9], xi in [0, 1000]",
        rejected,
        {"a": (Fraction(1, 2), Fraction(29, 10)), "xi": (0, 1000)},
    )

    def wrong(c):
        return formula(Case(a=c.a, b=1, xi=0))["largest"]

    yield enclosed("largest f > 0 for a/b in [3.1, 50]", wrong, {"a": (Fraction(31, 10), 50)})

    def reached(c):
        at = formula(Case(a=c.a, b=1, xi=0))["at"]
        return 2 * c.a**2 / (c.a**2 + at) - 2 / (1 + at) - 1

    yield enclosed("f > 0 at the claimed place for a/b in [3.1, 50]", reached, {"a": (Fraction(31, 10), 50)})


@pattern_threshold.simulation
def _(formula):
    """the kernel's scores of words with s_1 and others, over a range of counts"""
    others = np.arange(0, 400)
    for g1, g3 in ((4.0, 2.0), (5.0, 2.9), (4.0, 1.7), (3.0, 3.5), (6.0, 2.0)):
        a, b = math.exp(g1 / 2), math.exp(g3 / 2)
        case = PATTERN.check(a=a, b=b, xi=1.0)
        claimed = formula(case)
        counts = np.zeros((len(others), 4), dtype=int)
        counts[:, 0], counts[:, 3] = 1, others
        alpha = np.array([[g1, 0, 0, 0], [g3, g3 + 4, 0, 0]])
        beta = np.array([[2.0, 0, 0, 0], [-2.0, 0, 0, 0]])
        f = scores(Words.from_counts(counts, -np.ones(len(others), int)), alpha, beta)
        yield close("f", f, pattern_score(a, b, others), ROUNDING, case)
        if a > b:
            yield below("f <= largest", f + 2, np.full(len(f), claimed["largest"] + 2), case)
            place = int(np.argmax(f))
            yield agrees("largest next to xi = a b", abs(place - claimed["at"]) <= 1, True, case)
        yield agrees("all rejected iff g_1 - g_3 < 2 ln 3", bool(np.all(f < 0)), a < claimed["ratio"] * b, case)


pattern_threshold.mutant("sign of the largest", largest=lambda c, v: -v)
pattern_threshold.mutant("threshold ln 3", ratio=lambda c, v: math.sqrt(3))
pattern_threshold.mutant("threshold 2 ln 2", ratio=lambda c, v: 2)
pattern_threshold.mutant("at e^(g_1 - g_3)", at=lambda c, v: c.a / c.b)
pattern_threshold.mutant("tanh(g/2)", largest=lambda c, v: 2 * (c.a**2 - c.b**2) / (c.a**2 + c.b**2) - 1)


# ---------------------------------------------------------------- the rule for f = 0; certificates for several heads


TIES = Domain(low=Real(), rise=Real(0), share=Real(0, 1), n1=Whole(0), n2=Whole(0), others=Whole(0))


@claim(
    "and.ties",
    statement="If f = 0 counted as rejection, two finite heads would decide AND at every length: beta^1 = b at s_1 and "
    "elsewhere, b + D at s_2 (D > 0), beta^2 = 1 - beta^1, weights u = e^alpha of head 1 equal to 1 except 0 < u < 1 "
    "at s_1, all 1 in head 2. Then f = n_1 n_2 D (1 - u)/(Z_1 Z_2), which is positive iff both letters occur, else 0: "
    "certificates, which count f = 0 as wrong, do not accept it.",
    latex=r"f=\frac{n_1n_2\,D(1-u)}{Z_1Z_2}",
    domain=TIES,
    source="the two heads' values with beta^2 = 1 - beta^1",
)
def ties(c):
    first, second = c.n1 * c.share + c.n2 + c.others, c.n1 + c.n2 + c.others
    return {"score": c.n1 * c.n2 * c.rise * (1 - c.share) / (first * second)}


def tied_heads(c):
    """Weights and output weights at (s_1, s_2, others)."""
    beta = (c.low, c.low + c.rise, c.low)
    return ((c.share, 1, 1), (1, 1, 1)), (beta, tuple(1 - b for b in beta))


@ties.proof
def _(formula):
    """the two heads' values; sign"""
    n1, n2, r = sympy.symbols("n_1 n_2 r", nonnegative=True)
    low = sympy.Symbol("b", real=True)
    rise, odds = sympy.symbols("D w", positive=True)
    c = Case(low=low, rise=rise, share=1 / (1 + odds), n1=n1, n2=n2, others=r)
    claimed = formula(c)["score"]
    yield identity("f of the two heads", score((n1, n2, r), *tied_heads(c)), claimed)
    both = {n1: 1 + sympy.Symbol("n_1'", nonnegative=True), n2: 1 + sympy.Symbol("n_2'", nonnegative=True)}
    yield positive("f > 0 if both occur", claimed.subs(both))
    yield identity("f = 0 without s_1", claimed.subs(n1, 0), 0)
    yield identity("f = 0 without s_2", claimed.subs(n2, 0), 0)


@ties.instance
def _(formula, case):
    """exact scores"""
    counts = tuple(int(n) for n in (case.n1, case.n2, case.others))
    if sum(counts):
        found, claimed = exact_score(counts, *tied_heads(case)), formula(case)["score"]
        yield exact("f", found, claimed, case)
        yield holds("f > 0 iff both occur", (claimed > 0) == (counts[0] > 0 < counts[1]), case, found=claimed)


@ties.simulation
def _(formula):
    """the kernel's scores over a grid of counts"""
    case = TIES.check(low=0.3, rise=0.5, share=0.25, n1=1, n2=1, others=1)
    counts = np.array([(i, j, k) for i in range(5) for j in range(5) for k in range(30) if i + j + k])
    weights, beta = tied_heads(case)
    f = scores(Words.from_counts(counts, np.ones(len(counts), int)), np.log(np.array(weights, float)), np.array(beta))
    n1, n2, others = counts.T.astype(float)
    yield close("f", f, formula(case.having(n1=n1, n2=n2, others=others))["score"], ROUNDING, case)


ties.mutant("sign", score=lambda c, v: -v)
ties.mutant("sum for product", score=lambda c, v: v if c.n1 * c.n2 == 0 else v * (c.n1 + c.n2) / (c.n1 * c.n2) / 2)
ties.mutant("u for 1 - u", score=lambda c, v: v * c.share / (1 - c.share))
ties.mutant("one head's Z", score=lambda c, v: v * (c.n1 + c.n2 + c.others))


HEADS = Domain(heads=Whole(1), d=Whole(2))


@claim(
    "certificate.several_heads",
    statement="With H heads, w^h_j = e^(alpha^h_j) and any counts n, f(n) <= 0 if and only if there are numbers t_h "
    "with sum_h t_h = 1 and sum_j n_j w^h_j (beta^h_j - t_h) <= 0 for every head h; f(n) >= 0 likewise with >=. One "
    "such choice is t_h = v_h - f/H, v_h the value of head h. For fixed t these are linear conditions on the counts: "
    "the words a model gets wrong are integer points of H half-spaces.",
    latex=r"f(n)\le0\iff\exists t,\ \sum_ht_h=1:\ \sum_jn_jw^h_j(\beta^h_j-t_h)\le0\ \ \forall h",
    domain=HEADS,
    source="a sum of H numbers is at most 1 iff they lie below H numbers with the sum 1",
)
def several_heads(c):
    """``c.value`` = v_h, ``c.score`` = f, ``c.heads`` = H, ``c.total`` = Z_h: t_h, and the condition's left side."""
    return {"t": c.value - c.score / c.heads, "condition": c.total * c.score / c.heads}


@several_heads.proof
def _(formula):
    """the choice satisfies all conditions with the sign of f; conversely the values add up"""
    Z, H = sympy.symbols("Z H", positive=True)
    v, others, N, t = sympy.symbols("v_h V N t", real=True)
    f = v + others - 1  # this head and the sum of the other H - 1 values
    claimed = formula(Case(value=v, score=f, heads=H, total=Z))
    yield identity("sum_j n_j w_j (beta_j - t) = Z (v - t)", (N - t * Z).subs(N, Z * v), Z * (v - t))
    yield identity("the condition at t_h", Z * (v - claimed["t"]), claimed["condition"])
    yield positive("has the sign of f", claimed["condition"].subs(others, 1 - v + sympy.Symbol("f", positive=True)))
    rest = formula(Case(value=others / (H - 1), score=f, heads=H, total=Z))["t"]  # mean of the others' t
    yield identity("sum_h t_h = 1", claimed["t"] + (H - 1) * rest, 1)
    gap, more = sympy.symbols("t-v T-V", nonnegative=True)
    yield positive("conversely v_h <= t_h for all h: f <= 0", -((t - gap) + ((1 - t) - more) - 1), strict=False)
    yield positive("and v_h <= t_h is the condition: Z (t - v) >= 0", Z * gap, strict=False)


@several_heads.instance
def _(formula, case):
    """exact values of random heads at all words of up to 4 letters"""
    rng, d, H = random.Random(str(case)), int(case.d), int(case.heads)
    weights = [[Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in range(d)] for _ in range(H)]
    beta = [[Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in range(d)] for _ in range(H)]
    for m in range(1, 5):
        for counts in words_of_length(d, m):
            f, found, total = exact_score(counts, weights, beta), [], Fraction(0)
            for ws, bs in zip(weights, beta, strict=True):
                Z = sum(n * w for n, w in zip(counts, ws, strict=True))
                v = exact_score(counts, [ws], [bs]) + 1
                claimed = formula(Case(value=v, score=f, heads=case.heads, total=Z))
                left = sum(n * w * (b - claimed["t"]) for n, w, b in zip(counts, ws, bs, strict=True))
                yield exact("condition", left, claimed["condition"], case.having(counts=counts))
                found.append((left > 0) == (f > 0) and (left < 0) == (f < 0))
                total += claimed["t"]
            yield exact("sum_h t_h", total, Fraction(1), case.having(counts=counts))
            yield holds("conditions have the sign of f", all(found), case.having(counts=counts), f=f)


@several_heads.simulation
def _(formula):
    """trained models with two and four heads: the kernel's scores and each head's condition"""
    for heads in (2, 4):
        run = run_plan("and", "joint", range(2), d=6, heads=heads, rate_o=0.5, rate_a=0.5, steps=200)
        for seed, alpha, beta in zip(run.seeds, run.alpha.values[:, -1], run.beta.values[:, -1], strict=True):
            counts = np.random.default_rng(seed).integers(0, 4, (50, 6)) + np.eye(50, 6, dtype=int)
            counts[:, -1] += counts.sum(axis=1) == 0
            words = Words.from_counts(counts, np.ones(50, int))
            f, total = scores(words, alpha, beta), 0
            for h in range(heads):
                Z = counts @ np.exp(alpha[h])
                v = scores(words, alpha[h], beta[h]) + 1
                claimed = formula(Case(value=v, score=f, heads=heads, total=Z))
                left = (counts * np.exp(alpha[h])) @ beta[h] - claimed["t"] * Z
                yield close("condition / Z", left / Z, claimed["condition"] / Z, ROUNDING, Case(seed=seed, heads=heads))
                total = total + claimed["t"]
            yield close("sum_h t_h", total, 1.0, ROUNDING, Case(seed=seed, heads=heads))


several_heads.mutant("sign of f", t=lambda c, v: c.value + c.score / c.heads)
several_heads.mutant("sign of the condition", condition=lambda c, v: -v)
several_heads.mutant("f, not f/H", t=lambda c, v: c.value - c.score)
several_heads.mutant("Z forgotten", condition=lambda c, v: v / c.total)
