"""Which word lengths a trained model decides correctly, with certainty; f = 0 counts as wrong."""

import math
import random
from fractions import Fraction

import numpy as np
import sympy
from scipy import special

from analytic import bounds
from analytic.gradients.letter import Words, descend, evaluate, scores
from analytic.phase_three import output_phase
from analytic.population import population_path
from sim.runs import run_plan

from .claims import claim
from .comparison import WORDS, bounded, compared_frequency, places
from .decide import ROUNDING, agrees, below, close, exact, holds, identity, positive, proportion
from .domain import LETTERS, Case, Domain, Each, Real, Whole, ceiling, positive_part
from .letters import exact_score, population, words_of_length
from .phase_three import FROZEN, exact_attention, minimum, phase_of, symbolic_attention
from .simulator import SAMPLES, fresh_words, kernel_step, populations

CONVERGED = 1e-9  # what 6000 output steps at rate 1 leave
FRACTION = 1 / (1 + sympy.Symbol("v", nonnegative=True))  # any number in (0, 1]


def ceiling_steps(expression, whole, text):
    """``expression`` = ``whole`` where it has the ceiling of whole - 1 + t, 0 < t <= 1: that ceiling is ``whole``."""
    yield positive(f"{text}: 0 < t", FRACTION)
    yield positive(f"{text}: t <= 1", 1 - FRACTION, strict=False)
    found = sympy.sympify(expression).replace(sympy.ceiling, lambda x: 1 if x == FRACTION else sympy.ceiling(x))
    yield identity(text, found, whole)


# ---------------------------------------------------------------- one head, any scores and weights


MARGINS = Domain(d=Whole(2), k=Whole(1, below="d"), least=Real(), lowest=Real(), spread=Real(0))


@claim(
    "certificate.length",
    statement="One head with any scores and weights, w_j = e^alpha_j (beta_j - 1): the lengths at which every word is "
    "decided correctly are exactly 1..M*, with M* = 0 if min_S w <= 0 or max_o w >= 0, else "
    "M* = ceil(min_S w / max_o |w|); the first wrong word is one letter argmin_S w with M* letters argmax_o |w|.",
    latex=r"M^*=\Big\lceil\frac{\min_S w}{\max_{o\notin S}|w_o|}\Big\rceil,\qquad w_j=e^{\alpha_j}(\beta_j-1)",
    domain=MARGINS,
    source="f has the sign of sum_j n_j w_j, which is least at one target letter",
)
def length(c):
    """``c.least`` = min_S w, ``c.lowest`` = min_o w, ``c.lowest + c.spread`` = max_o w."""
    if c.least <= 0 or c.lowest + c.spread >= 0:
        return {"length": 0}
    return {"length": ceiling(c.least / -c.lowest)}


@length.proof
def _(formula):
    """sign of f, words of one letter, and the least word of each length"""
    n, v, beta, rest_values, rest = sympy.symbols("n v beta N Z", positive=True)
    f = (n * v * beta + rest_values) / (n * v + rest) - 1
    linear = (n * v * (beta - 1) + rest_values - rest) / (n * v + rest)
    yield identity("f = sum_j n_j w_j / sum_j n_j e^alpha_j, one letter and the rest", f, linear)

    a, h = sympy.symbols("a h", positive=True)  # min_S w and min_o |w|
    e, fails = sympy.symbols("e x", nonnegative=True)
    bad_target, bad_other = Case(least=-fails, lowest=-h - e, spread=e), Case(least=a, lowest=-h, spread=h + fails)
    yield identity("min_S w <= 0: s^m is wrong, M* = 0", formula(bad_target)["length"], 0)
    yield identity("max_o w >= 0: o^m is wrong, M* = 0", formula(bad_other)["length"], 0)

    b, more = h + e, sympy.Symbol("n'", nonnegative=True)  # b = max_o |w|, n = 1 + n' target letters
    m = sympy.Symbol("m", positive=True)
    worst = a - (m - 1) * b
    surplus = (1 + more) * a - (m - 1 - more) * b - worst
    yield positive("n min_S w - (m - n) b is least at n = 1", surplus, strict=False)

    below, over = sympy.symbols("M-1 i", integer=True, nonnegative=True)
    whole, ratio = 1 + below, below + FRACTION  # M, and a / b = M - 1 + t: any positive number
    at = {a: b * ratio}
    claimed = formula(Case(least=b * ratio, lowest=-b, spread=e))["length"]
    yield from ceiling_steps(claimed, whole, "M* = M for min_S w / b = M - 1 + t")
    yield positive("m <= M*: the worst word is right", worst.subs(at).subs(m, whole - over))
    wrong = -worst.subs(at).subs(m, whole + 1 + over)
    yield positive("m > M*: s o^(m-1) has f <= 0", wrong, strict=False)


@length.instance
def _(formula, case):
    """exact scores of all words of up to 6 letters, random weights with the given extremes"""
    rng, d, k = random.Random(str(case)), int(case.d), int(case.k)
    if d - k == 1:
        case = case.having(spread=Fraction(0))
    inside = [case.least] + [case.least + rng.randint(0, 5) for _ in range(k - 1)]
    outside = [case.lowest, case.lowest + case.spread][: d - k]
    outside += [case.lowest + case.spread * Fraction(rng.randint(0, 4), 4) for _ in range(d - k - 2)]
    margins = inside + outside
    weights = [Fraction(rng.randint(1, 6), rng.randint(1, 4)) for _ in margins]
    beta = [1 + w / v for w, v in zip(margins, weights, strict=True)]
    claimed = formula(case)["length"]
    for m in range(1, 7):
        words = words_of_length(d, m)
        right = all(
            (score > 0 if any(counts[:k]) else score < 0)
            for counts in words
            for score in [exact_score(counts, [weights], [beta])]
        )
        place = case.having(w=margins, m=m)
        yield holds("all words of length m right iff m <= M*", right == (m <= claimed), place, claimed=claimed)


@length.simulation
def _(formula):
    """trained models of 3 letters: all words up to M* + 1, with the simulator's scores"""
    run = run_plan("occurrence", "O(1x)->A(1x)->O(30x)", range(12), d=3, rate_o=(1.2, 0.5), rate_a=4.0)
    for seed, alpha, beta in zip(run.seeds, run.alpha.values[:, -1, 0], run.beta.values[:, -1, 0], strict=True):
        w = np.exp(alpha) * (beta - 1)
        case = Case(least=w[0], lowest=w[1:].min(), spread=np.ptp(w[1:]), d=3, k=1, seed=seed)
        claimed = formula(case)["length"]
        for m in {1, *range(claimed - 3, claimed + 2)} - {-3, -2, -1, 0}:
            counts = [(i, j, m - i - j) for i in range(m + 1) for j in range(m + 1 - i)]
            words = Words.from_counts(counts, [1 if i else -1 for i, _, _ in counts])
            right = evaluate(words, alpha, beta)[1] == 1.0
            yield agrees(f"all words of length {m} are right", right, m <= claimed, case.having(claimed=claimed))


@length.simulation
def _(formula):
    """plans on all words: the claimed last right and first wrong word, and what the product reports"""
    for d, k, law, words in populations():
        zero = np.zeros(d)
        _, beta = kernel_step(words, zero, zero, rate_o=0.3 * d)
        alpha, _ = kernel_step(words, zero, beta, rate_a=30.0)
        w = np.exp(alpha) * (beta - 1)
        case = Case(least=w[:k].min(), lowest=w[k:].min(), spread=np.ptp(w[k:]), d=d, k=k, length=law)
        claimed = formula(case)["length"]
        reported = bounds.certified_length(alpha[0] - alpha[-1], beta[0], beta[-1])
        yield agrees("analytic.bounds.certified_length", reported, claimed, case)
        worst = np.zeros((2, d), dtype=int)
        worst[:, 0], worst[:, -1] = 1, (claimed - 1, claimed)
        signs = scores(Words.from_counts(worst, [1, 1]), alpha, beta) > 0
        yield agrees("s o^(M*-1) is accepted, s o^M* is not", signs, [True, False], case)


length.mutant("one longer", length=lambda c, v: v + 1)
length.mutant("floor for ceil", length=lambda c, v: v if v == 0 else -ceiling(c.least / c.lowest))
length.mutant("inverse ratio", length=lambda c, v: v if v == 0 else ceiling(-c.lowest / c.least))
length.mutant("sign: negative ratio", length=lambda c, v: v if v == 0 else ceiling(c.least / c.lowest))
length.mutant("min_o |w| for max_o |w|", length=lambda c, v: v if v == 0 else ceiling(-c.least / (c.lowest + c.spread)))
length.mutant("sign of max_o w ignored", length=lambda c, v: 0 if c.least <= 0 else ceiling(c.least / abs(c.lowest)))


# ---------------------------------------------------------------- test error of the symmetric model


SYMMETRIC = LETTERS.having(ratio=Real(0), beta_target=Real(1), beta_other=Real(high=1))


@claim(
    "certificate.test_error",
    statement="With e^g the ratio of the attention weights, beta_S > 1 > beta_o and R = e^g (beta_S - 1)/(1 - beta_o): "
    "a positive word is wrong if and only if its share of target letters is at most 1/(1 + R), and negative words are "
    "right. So the test error is P(0 < x <= 1/(1 + R)), and at most P(m > M*) with M* = ceil(R).",
    latex=r"\Pr(yf\le0)=\Pr\Big(0<x\le\frac1{1+R}\Big)\le\Pr(m>M^*),\quad M^*=\lceil R\rceil,\ "
    r"R=\frac{e^g(\beta_S-1)}{1-\beta_o}",
    domain=SYMMETRIC,
    source="f has the sign of n e^g (beta_S - 1) - (m - n)(1 - beta_o)",
)
def test_error(c):
    """``c.ratio`` = e^g."""
    R = c.ratio * (c.beta_target - 1) / (1 - c.beta_other)
    return {"threshold": 1 / (1 + R), "certified_length": ceiling(R)}


@test_error.proof
def _(formula):
    """sign of f as a function of the share; the least length of a wrong word"""
    u, s, t = sympy.symbols("e^g beta_S-1 1-beta_o", positive=True)
    n, r = sympy.symbols("n m-n", nonnegative=True)
    case = Case(ratio=u, beta_target=1 + s, beta_other=1 - t)
    threshold = formula(case)["threshold"]
    total = n * u + r
    f = (n * u * (1 + s) + r * (1 - t)) / total - 1
    factor = t * (n + r) / (threshold * total)
    yield identity("f = factor (x - 1/(1 + R)), x = n/m", f, factor * (n / (n + r) - threshold))
    one = sympy.Symbol("n'", nonnegative=True)
    yield positive("the factor is positive for n >= 1", factor.subs(n, 1 + one))
    yield positive("negative words are right: -f > 0 at n = 0", -f.subs(n, 0))

    below, more = sympy.symbols("M-1 n'", integer=True, nonnegative=True)
    R, whole = below + FRACTION, 1 + below  # any positive number
    claimed = formula(case.having(ratio=R * t / s))
    yield from ceiling_steps(claimed["certified_length"], whole, "M* = M for R = M - 1 + t")
    # x <= 1/(1 + R) means m >= n / threshold, and m is whole: m >= M + 1 as soon as n / threshold > M
    yield positive("a wrong word has m >= n (1 + R) > M*", (1 + more) / claimed["threshold"] - whole)


@test_error.instance
def _(formula, case):
    """exact scores of all words and their probabilities, for several R"""
    d, k = int(case.d), int(case.k)
    for R in (Fraction(1, 2), Fraction(4, 5), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3)):
        place = case.having(ratio=R * (1 - case.beta_other) / (case.beta_target - 1))
        claimed, error = formula(place), Fraction(0)
        weights = [[place.ratio] * k + [Fraction(1)] * (d - k)]
        beta = [[case.beta_target] * k + [case.beta_other] * (d - k)]
        for probability, counts, y in population(case):
            wrong = y * exact_score(counts, weights, beta) <= 0
            error += probability * wrong
            few = 0 < Fraction(sum(counts[:k]), sum(counts)) <= claimed["threshold"]
            yield holds("wrong iff 0 < x <= threshold", wrong == few, place.having(counts=counts), **claimed)
        bound = case.length.tail(claimed["certified_length"])
        yield holds("test error <= P(m > M*)", error <= bound, place, error=error, bound=bound)


@test_error.simulation
def _(formula):
    """O(1x)->A(1x) on all words: accuracy of the simulator and what the product reports"""
    for d, k, law, words in populations():
        zero = np.zeros(d)
        _, beta = kernel_step(words, zero, zero, rate_o=0.3 * d)
        alpha, _ = kernel_step(words, zero, beta, rate_a=1.0)
        gap, weights = alpha[0] - alpha[-1], {"beta_target": beta[0], "beta_other": beta[-1]}
        case = SYMMETRIC.check(d=d, k=k, length=law, ratio=float(np.exp(gap)), **as_floats(weights))
        counts = words.counts()
        share, claimed = counts[:, :k].sum(axis=1) / counts.sum(axis=1), formula(case)
        error = np.mean((share > 0) & (share <= claimed["threshold"]))
        yield close("1 - accuracy", 1 - evaluate(words, alpha, beta)[1], error, ROUNDING, case)
        reported = bounds.error_probability(d, k, case.length, gap, **weights)
        yield close("analytic.bounds.error_probability", reported, error, ROUNDING, case)
        bound = case.length.tail(claimed["certified_length"])
        yield below("test error <= P(m > M*)", error, bound, case)


def as_floats(values):
    """Numpy numbers as the floats a domain checks."""
    return {name: float(value) for name, value in values.items()}


@test_error.simulation
def _(formula):
    """accuracy on sampled words at given parameters: as many are wrong as binomial tails allow"""
    for d, k, law in SAMPLES:
        case = SYMMETRIC.check(d=d, k=k, length=law, ratio=math.pi, beta_target=1.5, beta_other=0.7)
        alpha = np.where(np.arange(d) < k, np.log(case.ratio), 0.0)
        beta = np.where(np.arange(d) < k, case.beta_target, case.beta_other)
        threshold, wrong, total = formula(case)["threshold"], 0, 0
        exact_error = bounds.error_probability(d, k, case.length, np.log(case.ratio), case.beta_target, case.beta_other)
        for words in fresh_words(d, k, law):
            counts = words.counts()
            share = counts[:, :k].sum(axis=1) / counts.sum(axis=1)
            error = 1 - evaluate(words, alpha, beta)[1]
            yield close("1 - accuracy", error, np.mean((share > 0) & (share <= threshold)), ROUNDING, case)
            wrong, total = wrong + round(error * words.n_words), total + words.n_words
        yield proportion("1 - accuracy", wrong, total, float(exact_error), case)


@test_error.simulation
def _(formula):
    """predicted, population and sampled values on the grid, and the bound P(m > M*)"""
    for place in places():
        beta = place.parameters_after(1)[1]
        weights = {"beta_target": float(beta[0]), "beta_other": float(beta[-1])}
        if not weights["beta_target"] > 1 > weights["beta_other"]:
            continue
        case = SYMMETRIC.check(**place.parameters, ratio=math.e, **weights)  # attention not far: errors are not rare
        claimed, law, start = formula(case), place.law, (*weights.values(), 1.0)
        path = population_path(place.d, place.k, law, [("O", 0, 0.0, 0.0)], start=start)
        lengths, probabilities = law.support()
        targets = np.floor(lengths * claimed["threshold"] * (1 + ROUNDING))  # n/m <= threshold
        kappa = place.k / place.d
        few = special.bdtr(targets, lengths, kappa) - (1 - kappa) ** lengths
        alpha = np.where(np.arange(place.d) < place.k, 1.0, 0.0)
        error, samples = float(probabilities @ few), 1 - place.evaluations(alpha, beta)[1]
        yield compared_frequency("test error at logit gap 1", place, error, 1 - path.accuracy[0], samples, WORDS)
        yield bounded("test error, by P(m > M*)", place, error, law.tail(claimed["certified_length"]))


test_error.mutant("sign: R negative", threshold=lambda c, v: v / (2 * v - 1))
test_error.mutant("1/R", threshold=lambda c, v: v / (1 - v))
test_error.mutant("R inverted", threshold=lambda c, v: 1 - v)
test_error.mutant("beta_S for beta_S - 1", threshold=lambda c, v: v / (v + c.beta_target * (1 - v)))
test_error.mutant("one longer", certified_length=lambda c, v: v + 1)
test_error.mutant("1 - beta_o forgotten", certified_length=lambda c, v: ceiling(c.ratio * (c.beta_target - 1)))


# ---------------------------------------------------------------- no model decides every length


TWO_LETTERS = Domain(
    heads=Whole(1), ratio=Each("heads", Real(0)), beta_target=Each("heads", Real()), beta_other=Each("heads", Real())
)


@claim(
    "failure.every_model_fails",
    statement="No finite scores and weights, of any number of heads, decide every length: with c = sum_h beta^h_o - 1, "
    "rho_h = e^(alpha^h_s - alpha^h_o), the word o^m is wrong at every length if c >= 0; if c < 0, s o^(m-1) is wrong "
    "at every length m >= 1 + sum_h rho_h (beta^h_s - beta^h_o)_+ / (-c), m >= 2.",
    latex=r"f(o^m)=c,\qquad f(so^{m-1})\le c+\sum_h\frac{\rho_h(\beta^h_s-\beta^h_o)_+}{m-1}\to c",
    domain=TWO_LETTERS,
    source="the attention share of one letter tends to 0 in long words",
)
def every_model_fails(c):
    """``c.ratio`` = rho, ``c.beta_target`` and ``c.beta_other``: one value a head, at s and at o."""
    at_others = sum(c.beta_other) - 1
    heads = zip(c.ratio, c.beta_target, c.beta_other, strict=True)
    pull = sum(rho * positive_part(target - other) for rho, target, other in heads)
    return {"at_others": at_others, "from_length": 1 + pull / -at_others if at_others < 0 else None}


@every_model_fails.proof
def _(formula):
    """value of a head on s o^(m-1), its bound, and the length from which the bound is at most 0"""
    rho, loss, up, down = sympy.symbols("rho -c up down", positive=True)
    beta, n = sympy.Symbol("beta_o", real=True), sympy.Symbol("m-1", positive=True)
    later = sympy.Symbol("i", nonnegative=True)
    value = (rho * (beta + up) + n * beta) / (rho + n)
    yield identity("value of a head on s o^(m-1)", value, beta + rho * up / (rho + n))
    yield positive("rho D/(rho + m - 1) <= rho D/(m - 1) for D >= 0", rho * up / n - rho * up / (rho + n))
    yield positive("rho D/(rho + m - 1) <= 0 for D <= 0", rho * down / (rho + n))

    # two heads, one with beta_s above and one below beta_o; heads add up
    other = sympy.Symbol("b", real=True)
    others = (other, 1 - loss - other)
    heads = Case(ratio=(rho, rho), beta_target=(others[0] + up, others[1] - down), beta_other=others)
    claimed = formula(heads)
    yield identity("f(o^m) = c", -loss, claimed["at_others"])
    bound = -loss + rho * up / (claimed["from_length"] - 1 + later)
    yield positive("c + sum_h rho_h (D_h)_+ / (m - 1) <= 0 from the claimed length on", -bound, strict=False)
    early = -loss + rho * up / (claimed["from_length"] - 1) * (1 + later)
    yield positive("and not before", early, strict=False)


@every_model_fails.instance
def _(formula, case):
    """exact scores of o^m and of s o^(m-1)"""
    claimed = formula(case)
    weights = [[rho, Fraction(1)] for rho in case.ratio]
    beta = [list(pair) for pair in zip(case.beta_target, case.beta_other, strict=True)]
    for m in (1, 2, 5):
        yield exact("f(o^m) = c", exact_score((0, m), weights, beta), claimed["at_others"], case.having(m=m))
    if claimed["from_length"] is not None:
        first = max(2, math.ceil(claimed["from_length"]))
        for m in (first, first + 1, 2 * first, 100 * first):
            score = exact_score((1, m - 1), weights, beta)
            yield holds("f(s o^(m-1)) <= 0", score <= 0, case.having(m=m), score=score, **claimed)


@every_model_fails.simulation
def _(formula):
    """trained models with one, two and four heads: the kernel's scores of o^m and s o^(m-1)"""
    for task, heads in (("occurrence", 1), ("or", 2), ("and", 4)):
        run = run_plan(task, "joint", range(3), d=6, heads=heads, rate_o=0.5, rate_a=0.5, steps=300)
        for seed, alpha, beta in zip(run.seeds, run.alpha.values[:, -1], run.beta.values[:, -1], strict=True):
            ratio = np.exp(alpha[:, 0] - alpha[:, -1])
            case = Case(task=task, seed=seed, ratio=ratio, beta_target=beta[:, 0], beta_other=beta[:, -1])
            claimed = formula(case)
            counts = np.zeros((2, 6), dtype=int)
            counts[0, -1] = 40
            counts[1, 0], counts[1, -1] = 1, math.ceil(claimed["from_length"] or 1)
            found = scores(Words.from_counts(counts, [1, 1]), alpha, beta)
            yield close("f(o^m) = c", found[0], claimed["at_others"], ROUNDING, case)
            yield agrees("some word is wrong", found[0] >= 0 or found[1] <= 0, True, case)


every_model_fails.mutant("sign of c", at_others=lambda c, v: -v)
every_model_fails.mutant("bias forgotten", at_others=lambda c, v: v + 1)
every_model_fails.mutant("half the length", from_length=lambda c, v: v and 1 + (v - 1) / 2)
every_model_fails.mutant("inverse ratio", from_length=lambda c, v: v and 1 + (v - 1) / c.ratio[0] ** 2)
every_model_fails.mutant("always from length 2", from_length=lambda c, v: v and 2)


# ---------------------------------------------------------------- after phase 3


@claim(
    "certificate.after_phase3",
    statement="At the minimum of phase 3, with nu = E[A^2 | +] = V + mu^2: beta_o < 1 iff (2q - 1) nu < q mu^2, "
    "beta_S > 1 iff 2 (1 - q) mu > (1 - 2q) nu + q mu^2, and if both hold the certified length is ceil(R_3) with "
    "R_3 = e^g [2 (1 - q) mu - (1 - 2q) nu - q mu^2] / [(1 - 2q) nu + q mu^2]: phase 3 changes which lengths are safe.",
    latex=r"R_3=e^g\,\frac{2(1-q)\mu-(1-2q)\nu-q\mu^2}{(1-2q)\nu+q\mu^2}",
    domain=FROZEN,
    source="phase3.minimum, certificate.length",
)
def after_phase3(c):
    """Signed margins: beta_o < 1 iff ``other`` > 0, beta_S > 1 iff ``target`` > 0, and R_3."""
    m = phase_of(c).moments
    nu = m.variance + m.mass**2
    other = (1 - 2 * m.q) * nu + m.q * m.mass**2
    target = 2 * m.negative * m.mass - other
    return {"other": other, "target": target, "ratio": c.ratio * target / other if other != 0 else math.inf}


@after_phase3.proof
def _(formula):
    """margins of the minimum's weights"""
    c = FROZEN.symbols().having(attention=symbolic_attention())
    claimed, best, m = formula(c), minimum(c), c.attention
    spread = m.variance + m.negative * m.mass**2
    yield identity("1 - beta_o = other / (V + (1 - q) mu^2)", 1 - best["beta_other"], claimed["other"] / spread)
    yield identity("beta_S - 1 = target / (V + (1 - q) mu^2)", best["beta_target"] - 1, claimed["target"] / spread)
    yield positive("V + (1 - q) mu^2 > 0", spread)
    ratio = c.ratio * (best["beta_target"] - 1) / (1 - best["beta_other"])
    yield identity("R_3 = e^g (beta_S - 1)/(1 - beta_o)", ratio, claimed["ratio"])
    half = {sympy.Symbol("(1-q)/q", positive=True): 1}
    yield identity("balanced classes: R_3 = e^g (2/mu - 1)", claimed["ratio"].subs(half), c.ratio * (2 / m.mass - 1))


@after_phase3.instance
def _(formula, case):
    """exact minimum over all words, and exact scores of the last right and the first wrong word"""
    c = case.having(attention=exact_attention(case))
    claimed, best = formula(c), minimum(c)
    yield holds("beta_o < 1 iff other > 0", (best["beta_other"] < 1) == (claimed["other"] > 0), case, **claimed)
    yield holds("beta_S > 1 iff target > 0", (best["beta_target"] > 1) == (claimed["target"] > 0), case, **claimed)
    if claimed["other"] > 0 and claimed["target"] > 0:
        weights, beta = [[case.ratio, Fraction(1)]], [[best["beta_target"], best["beta_other"]]]
        longest = ceiling(claimed["ratio"])
        for m, right in ((longest, True), (longest + 1, False)):
            accepted = exact_score((1, m - 1), weights, beta) > 0
            yield holds(f"s o^(m-1) is accepted: {right}", accepted == right, case.having(m=m), **claimed)


@after_phase3.simulation
def _(formula):
    """output training on all words to the end: weights, certified length, and what the product reports"""
    for d, k, length, words in populations():
        case = FROZEN.check(d=d, k=k, length=length, ratio=25.0)
        claimed, inside = formula(case), np.arange(d) < k
        alpha = np.where(inside, math.log(25.0), 0.0)
        beta = descend(words, alpha, np.zeros(d), 0.0, 1.0, 6000).beta[-1]
        phase = output_phase(d, k, case.length, math.log(25.0))
        for found in ((beta[0], beta[-1]), (phase.beta_target, phase.beta_other)):
            ratio = case.ratio * (found[0] - 1) / (1 - found[1])
            yield close("R_3", ratio / claimed["ratio"], 1.0, CONVERGED, case)


after_phase3.mutant("sign of mu^2", other=lambda c, v: v - 2 * phase_of(c).moments.q * phase_of(c).moments.mass ** 2)
after_phase3.mutant("phase 2's ratio kept", ratio=lambda c, v: c.ratio)
after_phase3.mutant("inverse ratio", ratio=lambda c, v: c.ratio**2 / v if v else 1)
after_phase3.mutant("factor 2 of mu", target=lambda c, v: v - phase_of(c).moments.negative * phase_of(c).moments.mass)
after_phase3.mutant("1 - q for q in other", other=lambda c, v: v + phase_of(c).moments.q)
after_phase3.mutant("e^g forgotten", ratio=lambda c, v: v / c.ratio)


# ---------------------------------------------------------------- one head and AND


TARGETS = Domain(k=Whole(2), weights=Each("k", Real(0)), margins=Each("k", Real()))


@claim(
    "failure.and_one_head",
    statement="One head never recognises AND of k >= 2 letters: with a_j the attention shares of the word "
    "s_1 s_2 ... s_k, f(s_1 ... s_k) = sum_j a_j f(s_j), so if all words s_j of one target letter are rejected (f < 0) "
    "then so is the word of all targets. The same holds for words s_j^m and (s_1 ... s_k)^m.",
    latex=r"f(s_1\cdots s_k)=\sum_ja_jf(s_j),\qquad a_j=\frac{e^{\alpha_j}}{\sum_ie^{\alpha_i}}",
    domain=TARGETS,
    source="f is an average of its values on single letters",
)
def and_one_head(c):
    """``c.weights`` = e^alpha and ``c.margins`` = beta - 1 = f(s_j) of the targets."""
    total = sum(c.weights)
    return {"score": sum(w * f for w, f in zip(c.weights, c.margins, strict=True)) / total}


@and_one_head.proof
def _(formula):
    """score of the word of all targets, one letter against the rest, and its sign"""
    w, rest, m = sympy.symbols("w Z m", positive=True)
    beta, rest_value = sympy.symbols("beta N", real=True)
    # m copies of each letter; the rest of the targets have the weight Z and the value N
    f = (m * w * beta + m * rest_value) / (m * w + m * rest) - 1
    claimed = formula(Case(weights=[w, rest], margins=[beta - 1, rest_value / rest - 1]))["score"]
    yield identity("f((s_1 ... s_k)^m)", f, claimed)
    yield identity("f(s_j^m) = beta_j - 1", (m * w * beta) / (m * w) - 1, beta - 1)
    a, b, v = sympy.symbols("a b v", positive=True)
    yield positive("all f(s_j) < 0: the average is < 0", -formula(Case(weights=[w, v], margins=[-a, -b]))["score"])


@and_one_head.instance
def _(formula, case):
    """exact scores of the words of one letter and of all targets"""
    k, m = int(case.k), 3
    weights, beta = [list(case.weights)], [[1 + margin for margin in case.margins]]
    claimed = formula(case)["score"]
    together = exact_score((1,) * k, weights, beta)
    yield exact("f(s_1 ... s_k)", together, claimed, case)
    yield exact("f((s_1 ... s_k)^m)", exact_score((m,) * k, weights, beta), claimed, case)
    alone = [exact_score(tuple(m * (i == j) for i in range(k)), weights, beta) for j in range(k)]
    yield holds("some word is wrong", together <= 0 or any(score >= 0 for score in alone), case, alone=alone)


@and_one_head.simulation
def _(formula):
    """AND trained with one head: the kernel's scores of these words; accuracy below 1"""
    for k in (2, 3):
        expression = " & ".join(str(j + 1) for j in range(k))
        run = run_plan(expression, "joint", range(3), d=8, heads=1, rate_o=0.3, rate_a=1.0, steps=300)
        counts = np.vstack([np.eye(k, 8, dtype=int), np.arange(8) < k])
        for seed, alpha, beta in zip(run.seeds, run.alpha.values[:, -1, 0], run.beta.values[:, -1, 0], strict=True):
            *alone, together = scores(Words.from_counts(counts, [1] * (k + 1)), alpha, beta)
            case = Case(task=expression, seed=seed, weights=np.exp(alpha[:k]), margins=np.array(alone))
            yield close("f(s_1 ... s_k)", together, formula(case)["score"], ROUNDING, case)
            yield agrees("some word is wrong", together <= 0 or max(alone) >= 0, True, case)


and_one_head.mutant("sign", score=lambda c, v: -v)
and_one_head.mutant("equal shares", score=lambda c, v: sum(c.margins) / len(c.margins))
and_one_head.mutant("sum for average", score=lambda c, v: v * sum(c.weights))
and_one_head.mutant("largest letter decides", score=lambda c, v: c.margins[0])
