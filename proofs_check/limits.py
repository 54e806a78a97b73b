"""Limits and the best rates: frozen scores of any kind, large gaps, large alphabets, and what the window implies."""

import math
import random
from fractions import Fraction

import numpy as np
import sympy

from analytic import bounds
from analytic.failures import attention_first_ratio, frozen_attention_minimum
from analytic.gradients.letter import Words, evaluate, loss_and_gradient
from analytic.gradients.letter_twin import attention
from analytic.lengths import Geometric
from analytic.phase_three import output_phase

from . import phase_one, phase_two
from .claims import claim
from .decide import ROUNDING, agrees, below, close, exact, holds, identity, positive
from .domain import LETTERS, LONGER, Case, Domain, ExactLaw, Length, Real, Whole
from .enclosures import BallGeometric, ball, contained, precision
from .letters import exact_loss, population
from .phase_three import FROZEN, by_targets, exact_attention, hessian, minimum, symbolic_attention
from .random_init import attention_first
from .simulator import GRID, SAMPLES, fresh_words
from .symmetries import random_model, random_words

NEAR = 1e-7  # two eigenvalues that tend to the same limit: the root of what is left of rounding
SOLVED = 1e-9  # what a least-squares solution of a matrix of condition up to 1e5 leaves

# ---------------------------------------------------------------- the output layer at any frozen scores


@claim(
    "failure.frozen_scores",
    statement="At any frozen scores, any number of heads and any data, with a the attention shares of all heads in a "
    "row, C = E[a a^T], c = E[a; y = +1] and any solution b of C b = c: the loss is 4 q - 4 c.beta + beta.C beta = "
    "L* + (beta - 2 b).C (beta - 2 b), L* = 4 q - 4 b.C b. Training the output layer alone never gets below L*.",
    latex=r"L(\beta)=4q-4c\cdot\beta+\beta^{\mathsf T}C\beta=L^*+(\beta-2b)^{\mathsf T}C(\beta-2b),\quad "
    r"L^*=4q-4b^{\mathsf T}Cb,\ Cb=c",
    domain=LETTERS.having(heads=Whole(1)),
    source="the loss is a convex quadratic in the output weights",
)
def frozen_scores(c):
    """Factors of C_ij in the excess over L* and in L* - 4 q, for weights ``c.beta`` and solution ``c.b`` at i and j."""
    (first, second), (one, two) = c.beta, c.b
    return {"excess": (first - 2 * one) * (second - 2 * two), "least": -4 * one * two}


@frozen_scores.proof
def _(formula):
    """one word's loss; entry by entry of C; a sum of squares"""
    a, beta, y, other = sympy.symbols("a_i beta_i 1_+ h", real=True)
    word = (a * beta + other - 2 * y) ** 2  # h of this coordinate and of the others; 1_+^2 = 1_+
    expected = 4 * y**2 - 4 * y * (a * beta + other) + (a * beta + other) ** 2
    yield identity("(f - y)^2 = 4 1_+ - 4 1_+ a.beta + (a.beta)^2", word, expected)
    b1, b2, g1, g2 = sympy.symbols("beta_i beta_j b_i b_j", real=True)
    claimed = formula(Case(beta=(b1, b2), b=(g1, g2)))
    # c.beta = sum_ij C_ij b_i beta_j, symmetric in i and j
    quadratic = -2 * (g1 * b2 + g2 * b1) + b1 * b2
    yield identity("the factor of C_ij: loss - 4 q = least + excess", quadratic, claimed["least"] + claimed["excess"])
    v, w = sympy.symbols("v_i v_j", real=True)
    at = {b1: 2 * g1 + v, b2: 2 * g2 + w}
    yield identity("the excess is v.C v with v = beta - 2 b", claimed["excess"].subs(at), v * w)
    share, other_share = sympy.symbols("a_i a_j", real=True)
    square = (share * v + other_share * w) ** 2
    terms = share**2 * v**2 + 2 * share * other_share * v * w + other_share**2 * w**2
    yield identity("v.C v = E[(a.v)^2] >= 0", square, terms)


@frozen_scores.instance
def _(formula, case):
    """exact least squares at random rational scores, one to three heads; the loss at random weights"""
    heads, d = min(int(case.heads), 3), int(case.d)
    weights, beta = random_model(case, heads)
    C, c, q = sympy.zeros(heads * d), sympy.zeros(heads * d, 1), sympy.Integer(0)
    for p, counts, y in population(case):
        shares = [
            sympy.Rational(n * w) / sympy.Rational(sum(k * v for k, v in zip(counts, row, strict=True)))
            for row in weights
            for n, w in zip(counts, row, strict=True)
        ]
        a = sympy.Matrix(shares)
        C += sympy.Rational(p) * a * a.T
        c += sympy.Rational(p) * a if y > 0 else sympy.zeros(heads * d, 1)
        q += sympy.Rational(p) * int(y > 0)
    b, free = C.gauss_jordan_solve(c)
    b = b.subs({symbol: 0 for symbol in free})
    flat, least, excess = [sympy.Rational(x) for row in beta for x in row], 4 * q, sympy.Integer(0)
    for i in range(heads * d):
        for j in range(heads * d):
            claimed = formula(Case(beta=(flat[i], flat[j]), b=(b[i], b[j])))
            least, excess = least + C[i, j] * claimed["least"], excess + C[i, j] * claimed["excess"]
    found = exact_loss(population(case), weights, beta)
    place = case.having(weights=weights, beta=beta)
    yield holds(
        "loss = L* + excess", sympy.Rational(found) == least + excess, place, found=found, claimed=least + excess
    )
    yield holds("the loss is at least L*", sympy.Rational(found) >= least, place, found=found, least=least)
    best = [[Fraction(str(2 * b[h * d + j])) for j in range(d)] for h in range(heads)]
    at_best = exact_loss(population(case), weights, best)
    yield holds("L* is reached at 2 b", sympy.Rational(at_best) == least, place, found=at_best, least=least)


@frozen_scores.simulation
def _(formula):
    """random data and scores: the product's minimum, the kernel's loss and gradient there and elsewhere"""
    rng = np.random.default_rng(23)
    for d, heads in ((3, 1), (6, 1), (5, 2)):
        counts, labels = random_words(rng, 400, d)
        alpha, beta = rng.standard_normal((2, heads, d))
        a = attention(counts, alpha).transpose(1, 0, 2).reshape(len(labels), heads * d)
        C, c, q = a.T @ a / len(labels), a[labels > 0].sum(axis=0) / len(labels), np.mean(labels > 0)
        least, best = frozen_attention_minimum(C, c, q)
        flat, b = beta.ravel(), best / 2
        claimed = formula(Case(beta=(flat[:, None], flat[None]), b=(b[:, None], b[None])))
        case, words = Case(d=d, heads=heads), Words.from_counts(counts, labels)
        yield close("L*", least, 4 * q + np.sum(C * claimed["least"]), SOLVED, case)
        loss = loss_and_gradient(words, alpha, beta)[0]
        yield close("loss elsewhere", loss, least + np.sum(C * claimed["excess"]), SOLVED, case, scale=loss)
        at_best, _, slope = loss_and_gradient(words, alpha, best.reshape(heads, d))
        yield close("loss at 2 b", at_best, least, SOLVED, case)
        yield close("gradient at 2 b", slope, 0.0, SOLVED, case)


frozen_scores.mutant("sign of L*", least=lambda c, v: -v)
frozen_scores.mutant("beta = b", excess=lambda c, v: (c.beta[0] - c.b[0]) * (c.beta[1] - c.b[1]))
frozen_scores.mutant("factor 2 of L*", least=lambda c, v: v / 2)
frozen_scores.mutant("excess without its square", excess=lambda c, v: v / (c.beta[1] - 2 * c.b[1]))


# ---------------------------------------------------------------- large gaps


@claim(
    "phase3.limit",
    statement="As the logit gap g grows, e^(2g) L*(g) tends to 4 q Var((m - n)/n | +), for every length law with "
    "finitely many lengths: word by word 0 <= (m-n)/n - e^g (1 - A) <= ((m-n)/n)^2 e^-g.",
    latex=r"\lim_{g\to\infty}e^{2g}L^*(g)=4q\,\mathrm{Var}\Big(\frac{m-n}n\,\Big|\,+\Big)",
    domain=FROZEN,
    source="phase3.minimum; A = 1/(1 + ((m-n)/n) e^-g)",
)
def limit(c):
    """``c.positive`` = q, ``c.odds_mean`` and ``c.odds_square`` of (m - n)/n on positive words; the bound per word."""
    return {
        "limit": 4 * c.positive * (c.odds_square - c.odds_mean**2),
        "distance": c.odds**2 / c.ratio if "odds" in vars(c) else None,
    }


@limit.proof
def _(formula):
    """distance of e^g (1 - A) from (m - n)/n word by word; the limit of the minimum"""
    u, o = sympy.symbols("e^g o", positive=True)
    n, r = sympy.symbols("n m-n", positive=True)
    yield identity("1 - A = o/(e^g + o), o = (m - n)/n", r / (n * u + r), (r / n) / (u + r / n))
    left = o - u * o / (u + o)
    yield identity("o - e^g (1 - A) = o^2/(e^g + o)", left, o**2 / (u + o))
    claimed = formula(Case(ratio=u, odds=o, positive=0, odds_mean=0, odds_square=0))
    yield positive("it lies between 0 ...", left)
    yield positive("... and o^2 e^-g", claimed["distance"] - left, strict=False)
    # so e^2g V -> Var(o), mu -> 1: L* e^2g = 4 q (1-q) (e^2g V)/(V + (1-q) mu^2), with s = e^-g
    s, mean, square = sympy.symbols("s o_1 o_2", positive=True)
    c = FROZEN.symbols()
    attention_moments = symbolic_attention()
    q, V = attention_moments.q, attention_moments.variance
    loss = minimum(c.having(attention=attention_moments))["loss"]
    spread = V + attention_moments.negative * attention_moments.mass**2
    yield identity("L* = 4 q (1-q) V / (V + (1-q) mu^2)", loss, 4 * q * attention_moments.negative * V / spread)
    scaled = loss.subs(V, s**2 * (square - mean**2)).subs(sympy.Symbol("(1-mu)/mu", nonnegative=True), s * mean) / s**2
    at_zero = sympy.limit(sympy.together(scaled), s, 0)
    claimed = formula(Case(ratio=u, positive=q, odds_mean=mean, odds_square=square))
    yield identity("the limit of L* e^2g at V = s^2 Var(o), (1-mu)/mu = s E[o]", at_zero, claimed["limit"])


@limit.instance
def _(formula, case):
    """exact minimum over all words at growing gaps: the distance from the limit falls with e^-g"""
    words = [(p, Fraction(r, n)) for p, n, r, _ in by_targets(case) if n]
    q = sum(p for p, _ in words)
    mean, square = (sum(p * o**i for p, o in words) / q for i in (1, 2))
    largest = max(o for _, o in words)
    for gap in (10**3, 10**5):
        place = case.having(ratio=Fraction(gap), positive=q, odds_mean=mean, odds_square=square)
        claimed = formula(place)["limit"]
        found = minimum(place.having(attention=exact_attention(place)))["loss"] * gap**2
        near = abs(found - claimed) <= 100 * (1 + largest) ** 3 / Fraction(gap)
        yield holds("e^2g L* is near the limit", near, case.having(gap=gap), found=float(found), claimed=float(claimed))
        for o in {o for _, o in words}:
            distance = formula(place.having(odds=o))["distance"]
            left = o - gap * o / (gap + o)
            yield holds("0 <= o - e^g (1 - A) <= o^2 e^-g", 0 <= left <= distance, case.having(odds=o), found=left)


@limit.simulation
def _(formula):
    """the product's minimum at growing gaps"""
    for d, k, length in SAMPLES:
        case = FROZEN.check(d=d, k=k, length=length, ratio=math.exp(30.0))
        phase = output_phase(d, k, case.length, 30.0)
        q, square = phase.moments.q, phase.moments.odds_square
        # E[(m - n)/n | +] from the attention mass itself, at a gap where the difference is below rounding
        mean = phase.moments.rest * case.ratio
        claimed = formula(case.having(positive=q, odds_mean=mean, odds_square=square))["limit"]
        yield close("e^2g L* / limit", phase.minimum * case.ratio**2 / claimed, 1.0, SOLVED, case)


limit.mutant("sign", limit=lambda c, v: -v)
limit.mutant("second moment for variance", limit=lambda c, v: 4 * c.positive * c.odds_square)
limit.mutant("q forgotten", limit=lambda c, v: v / c.positive)
limit.mutant("distance o e^-g", distance=lambda c, v: v and v / c.odds / 2)
limit.mutant("factor 2", limit=lambda c, v: v / 2)


# ---------------------------------------------------------------- rates and steps of phase 3


STEPS = Domain(low=Real(0), spread=Real(0), rate=Real(0))


@claim(
    "phase3.best_rate",
    statement="For a Hessian with eigenvalues lambda_1 < lambda_2, chi = lambda_2/lambda_1, the factor "
    "max_i |1 - rate lambda_i| is least at rate 2/(lambda_1 + lambda_2), where it is (chi - 1)/(chi + 1). At rate "
    "1/lambda_2 it is 1 - 1/chi, and ceil((chi/2) ln((L_0 - L*)/tau)) steps reach L* + tau. In phase 3, as g grows, "
    "lambda of the targets tends to 2q/k and that of the others to 2(1-q)/(d-k): chi -> q(d-k)/((1-q)k).",
    latex=r"\min_\eta\max_i|1-\eta\lambda_i|=\frac{\chi-1}{\chi+1},\quad T\le\Big\lceil\frac\chi2\ln\frac{L_0-L^*}\tau"
    r"\Big\rceil,\quad \chi\to\frac{q(d-k)}{(1-q)k}",
    domain=STEPS,
    source="phase3.descent, phase3.hessian; -ln(1 - x) >= x",
)
def best_rate(c):
    """``c.low`` = lambda_1, ``c.low + c.spread`` = lambda_2."""
    high = c.low + c.spread
    return {
        "rate": 2 / (c.low + high),
        "factor": (high - c.low) / (high + c.low),
        "slow_factor": c.spread / high,
        "steps": high / (2 * c.low),  # per unit of ln((L_0 - L*)/tau), at rate 1/lambda_2
    }


def factor_of(rate, low, high):
    return max(abs(1 - rate * low), abs(1 - rate * high))


@best_rate.proof
def _(formula):
    """both factors at the best rate and at any other; the logarithm; the limits of the Hessian's entries"""
    low, spread = sympy.symbols("lambda_1 spread", positive=True)
    claimed, high = formula(Case(low=low, spread=spread)), low + spread
    best, factor = claimed["rate"], claimed["factor"]
    yield identity("1 - rate lambda_1", 1 - best * low, factor)
    yield identity("rate lambda_2 - 1", best * high - 1, factor)
    more = sympy.Symbol("more", positive=True)
    yield positive("a smaller rate: 1 - rate lambda_1 is larger", (1 - best / (1 + more) * low) - factor)
    yield positive("a larger rate: rate lambda_2 - 1 is larger", (best * (1 + more) * high - 1) - factor)
    yield identity("rate 1/lambda_2: 1 - lambda_1/lambda_2", 1 - low / high, claimed["slow_factor"])
    x, odds = sympy.symbols("x w", positive=True)
    gap = -sympy.log(1 - x) - x
    yield identity("-ln(1-x) - x is 0 at x = 0", gap.subs(x, 0), 0)
    yield positive("and grows: its slope is x/(1-x)", sympy.diff(gap, x).subs(x, 1 / (1 + odds)))
    # -2 ln(1 - 1/chi) >= 2/chi: steps of chi/2 ln(...) are enough
    yield identity("chi/2 steps per unit of the logarithm", claimed["steps"] * 2 * low / high, 1)
    c, A = FROZEN.symbols(), symbolic_attention()
    entries = hessian.formula(c.having(attention=A))
    far = {A.variance: 0, sympy.Symbol("(1-mu)/mu", nonnegative=True): 0}  # A = 1 on positive words
    target, mixed, other = (sympy.sympify(entries[name]).subs(far) for name in ("SS", "So", "oo"))
    yield identity("H_So -> 0", mixed, 0)
    yield identity("chi -> q (d-k)/((1-q) k)", target / other, A.q * c.D / (A.negative * c.k))


@best_rate.instance
def _(formula, case):
    """exact factors at the best rate, near it, and at random rates; exact steps of a quadratic"""
    claimed, low, high = formula(case), case.low, case.low + case.spread
    yield exact("factor at the best rate", factor_of(claimed["rate"], low, high), claimed["factor"], case)
    yield exact("factor at 1/lambda_2", factor_of(1 / high, low, high), claimed["slow_factor"], case)
    for rate in (case.rate, *(claimed["rate"] * Fraction(n, 100) for n in (90, 99, 101, 110))):
        worse = factor_of(rate, low, high) > claimed["factor"] or rate == claimed["rate"]
        yield holds("no rate is better", worse, case.having(rate=rate))
    for tau in (Fraction(1, 10), Fraction(1, 1000)):
        steps = math.ceil(float(claimed["steps"]) * math.log(1 / tau))
        yield holds(
            "the steps reach tau", claimed["slow_factor"] ** (2 * steps) <= tau, case.having(tau=tau, steps=steps)
        )


@best_rate.simulation
def _(formula):
    """what the product reports: best rate, factor, steps at rate 1/lambda_2, and chi at a large gap"""
    for place in GRID:
        d, k = place["d"], place["k"]
        law = Length().check("length", place["length"], None)
        for g in (0.5, 3.0):
            phase = output_phase(d, k, law, g)
            low, high = (float(x) for x in phase.eigenvalues)
            case = STEPS.check(low=low, spread=high - low, rate=1.0)
            claimed = formula(case)
            yield close("best_rate", phase.best_rate / claimed["rate"], 1, ROUNDING, case)
            yield close(
                "convergence_factor", phase.convergence_factor(claimed["rate"]), claimed["factor"], ROUNDING, case
            )
            excess = float(phase.excess_loss(0.0, 0.0, 1.0, 0))
            needed = phase.exact_steps_to(excess / 100, 0.0, 0.0, 1 / high)
            yield below("steps needed", needed, math.ceil(claimed["steps"] * math.log(100)), case)
        phase = output_phase(d, k, law, 40.0)
        q = float(phase.moments.q)
        limits = sorted((2 * q / k, 2 * (1 - q) / (d - k)))
        yield close("eigenvalues at a large gap", phase.eigenvalues / limits, 1, NEAR, Case(**place))


best_rate.mutant("1/lambda_2", rate=lambda c, v: 1 / (c.low + c.spread))
best_rate.mutant("factor squared", factor=lambda c, v: v**2)
best_rate.mutant("sign: rate negative", rate=lambda c, v: -v)
best_rate.mutant("steps without chi", steps=lambda c, v: v * c.low / (c.low + c.spread))
best_rate.mutant("a quarter of chi", steps=lambda c, v: v / 2)
best_rate.mutant("1/chi", slow_factor=lambda c, v: 1 - v)


# ---------------------------------------------------------------- attention first on large alphabets


LARGE = Domain(d=Whole(3), length=Length()).where(
    "some words have two letters or more", lambda c: c.length.mean_inverse < 1
)


@claim(
    "failure.attention_first_limit",
    statement="The ratio rho of failure.attention_first tends to 1/q as words grow long and alphabets large: "
    "-E1 <= q - 1/rho <= 1/(d-1) + (d/(d-1)) E1/(1 - E1). For balanced geometric lengths (p = 1/(d-1)) "
    "rho = 2 - (2 ln d - 4 ln 2 - 2)/d + O((ln d)^2/d^2).",
    latex=r"-E_1\le q-\frac1\rho\le\frac1{d-1}+\frac d{d-1}\frac{E_1}{1-E_1},\qquad "
    r"\rho=2-\frac{2\ln d-4\ln2-2}d+O\Big(\frac{\ln^2d}{d^2}\Big)",
    domain=LARGE,
    source="failure.attention_first; 0 < G1 <= E1, G1 <= G <= 1",
)
def attention_first_limit(c):
    """Bounds of q - 1/rho; the factor of 1/d in 2 - rho with ``c.log_d`` = ln d, ``c.log_2`` = ln 2."""
    upper = 1 / (c.d - 1) + c.d / (c.d - 1) * c.E1 / (1 - c.E1)
    slope = 2 * c.log_d - 4 * c.log_2 - 2 if "log_d" in vars(c) else None
    return {"lower": -c.E1, "upper": upper, "slope": slope}


@attention_first_limit.proof
def _(formula):
    """signs with G1 <= E1, G1 <= G <= 1; the series in 1/d with ln d as a symbol"""
    d = 2 + sympy.Symbol("d'", nonnegative=True)
    G1, over = sympy.Symbol("G1", positive=True), sympy.Symbol("E1-G1", nonnegative=True)
    # given the length, G = z^m, G1 = z^m/m, E1 = 1/m: G1 <= E1 and G1 <= G, and these are means over the lengths
    x, m = sympy.Symbol("w", nonnegative=True), 1 + sympy.Symbol("m'", nonnegative=True)
    z_power = 1 / (1 + x)
    yield positive("z^m/m <= 1/m", 1 / m - z_power / m, strict=False)
    yield positive("z^m/m <= z^m", z_power - z_power / m, strict=False)
    rest = sympy.Symbol("1-E1", positive=True)
    first, e1 = G1 / (G1 + over + rest), (G1 + over) / (G1 + over + rest)  # 0 < G1 <= E1 < 1
    # G - G1 <= 1 - G1: write G = G1 + (1 - G1) s, 0 <= s <= 1, s = 1/(1 + t)
    t = sympy.Symbol("t", nonnegative=True)
    G = first + (1 - first) / (1 + t)
    inverse = 1 - d / (d - 1) * (G - first) / (1 - e1)
    claimed = formula(Case(d=d, E1=e1))
    difference = (1 - G) - inverse
    yield positive("q - 1/rho >= -E1", difference - claimed["lower"], strict=False)
    yield positive("q - 1/rho <= the upper bound", claimed["upper"] - difference, strict=False)

    small, log_d = sympy.symbols("1/d ln_d", positive=True)
    log_rest = log_d + sympy.log(1 - small)  # ln(d - 1)
    p = small / (1 - small)
    z = 1 - small
    yield identity("G(1 - 1/d) = 1/2 at p = 1/(d-1)", p * z / (1 - (1 - p) * z), sympy.Rational(1, 2))
    yield identity("1 - (1-p)(1 - 1/d) = 2/d", 1 - (1 - p) * z, 2 * small)
    odds = p / (1 - p)  # 1/(d-2)
    G1_balanced, E1_balanced = -odds * (sympy.log(2) - log_d), odds * log_rest
    balanced = Case(d=1 / small, k=1, G=sympy.Rational(1, 2), G1=G1_balanced, E1=E1_balanced)
    ratio = attention_first.formula(balanced)["ratio"]
    series = sympy.series(ratio, small, 0, 2).removeO()
    slope = formula(Case(d=1 / small, E1=E1_balanced, log_d=log_d, log_2=sympy.log(2)))["slope"]
    yield identity("rho to first order in 1/d, ln d as a symbol", sympy.expand(series), sympy.expand(2 - slope * small))


@attention_first_limit.instance
def _(formula, case):
    """exact ratio for random laws"""
    case = case.having(k=Fraction(1))
    claimed, ratio = formula(case), attention_first.formula(case)["ratio"]
    between = claimed["lower"] <= case.q - 1 / ratio <= claimed["upper"]
    yield holds("lower <= q - 1/rho <= upper", between, case, found=case.q - 1 / ratio, **claimed)


@attention_first_limit.simulation
def _(formula):
    """the product's ratio on a grid, and its distance from the series on growing alphabets"""
    for d in (10, 50, 1000):
        for length in ("geometric:0.01", "poisson:40", "uniform:1:60"):
            case = LARGE.check(d=d, length=length).having(k=1)
            claimed, ratio = formula(case), float(attention_first_ratio(d, case.length))
            yield below("q - 1/rho", case.q - 1 / ratio, claimed["upper"], case)
            yield below("1/rho - q", 1 / ratio - case.q, -claimed["lower"], case)
    for d in (10**3, 10**4, 10**5):
        law = Geometric(1 / (d - 1))
        case = LARGE.check(d=d, length=law).having(k=1, log_d=math.log(d), log_2=math.log(2))
        off = abs(float(attention_first_ratio(d, law)) - (2 - formula(case)["slope"] / d))
        yield below("distance from the series", off, 4 * math.log(d) ** 2 / d**2, case)


@attention_first_limit.enclosure
def _(formula):
    """the remainder of the series in balls, d from 100 to 10^6"""
    for d in (10**2, 10**4, 10**6):
        with precision():
            case = Case(d=ball(d), k=1, length=BallGeometric(ball(Fraction(1, d - 1))))
            log_d, log_2 = ball(d).log(), ball(2).log()
            slope = formula(case.having(log_d=log_d, log_2=log_2))["slope"]
            off = (attention_first.formula(case)["ratio"] - (2 - slope / d)) * d**2 / log_d**2
        yield contained(f"(rho - series) d^2/(ln d)^2 at d = {d}", off, -4, 4)


attention_first_limit.mutant("sign of the slope", slope=lambda c, v: v and -v)
attention_first_limit.mutant("2 ln d only", slope=lambda c, v: v and 2 * c.log_d)
attention_first_limit.mutant("upper without 1/(d-1)", upper=lambda c, v: -c.E1)
attention_first_limit.mutant("lower bound 0", lower=lambda c, v: c.E1)
attention_first_limit.mutant("ln d for 2 ln d", slope=lambda c, v: v and v - c.log_d)


# ---------------------------------------------------------------- does the window imply K > 0?


@claim(
    "phase2.window_implies_sign",
    statement="The window of phase 1 implies that attention moves towards S if and only if "
    "(q - kappa) M1 >= (1 - q) M2: then its upper end is at most eta_K. It need not: with words of two letters and "
    "k < d/3 rates between eta_K and the window's end move attention away.",
    latex=r"\frac{d-k}{4(q-\kappa)}\le\eta_K\iff(q-\kappa)M_1\ge(1-q)M_2",
    domain=LONGER,
    source="phase1.window, phase2.sign_condition",
)
def window_implies_sign(c):
    """The window's end is at most eta_K iff this is nonnegative; for words of two letters, its factor of d - 3k."""
    return {
        "margin": c.excess * c.M1 - c.G * c.M2,
        "two_letters": c.kappa * (1 - c.kappa) ** 2 * (3 * c.kappa - 1) / 4,
    }


@window_implies_sign.proof
def _(formula):
    """difference of the reciprocals; words of two letters"""
    c = LONGER.symbols()
    claimed = formula(c)
    end = phase_one.window(c.having(rate_o=sympy.Symbol("rate")))["high"]
    turning = phase_two.sign_condition(c)["turning_point"]
    difference = 2 * claimed["margin"] / (c.D * c.M1)
    yield identity("1/end - 1/eta_K = 2 margin / ((d-k) M1)", 1 / end - 1 / turning, difference, LONGER)
    yield positive("its factor is positive for M1 > 0", 2 / (c.D * sympy.Symbol("M1", positive=True)), LONGER)
    two = c.having(length=ExactLaw({2: sympy.Integer(1)}))
    yield identity("M1 of words of two letters", two.M1, c.kappa * (1 - c.kappa) / 2)
    yield identity("margin of words of two letters", formula(two)["margin"], claimed["two_letters"])
    more = sympy.Symbol("more", positive=True)
    negative = -claimed["two_letters"].subs(c.d, 3 * c.k + more)
    yield positive("negative for d > 3k", negative.subs(c.k, 1 + sympy.Symbol("k'", nonnegative=True)))


@window_implies_sign.instance
def _(formula, case):
    """exact ends of the window and turning points"""
    claimed = formula(case)
    end = phase_one.window(case.having(rate_o=Fraction(1)))["high"]
    turning = phase_two.sign_condition(case)["turning_point"]
    yield holds("end <= eta_K iff margin >= 0", (end <= turning) == (claimed["margin"] >= 0), case, **claimed)
    two = case.having(length=ExactLaw({2: Fraction(1)}))
    yield exact("margin of words of two letters", formula(two)["margin"], claimed["two_letters"], case)


@window_implies_sign.simulation
def _(formula):
    """the product's window and turning point on the grid; two-letter words just below the window's end"""
    for place in GRID:
        case = LONGER.check(**place)
        end = float(bounds.rate_o_window(case.d, case.k, case.length)[1])
        turning = float(bounds.rate_o_turning_point(case.d, case.k, case.length))
        yield agrees("end <= eta_K iff margin >= 0", end <= turning, formula(case)["margin"] >= 0, case)
    for d, k in ((10, 1), (10, 3), (10, 4), (12, 5)):
        case = LONGER.check(d=d, k=k, length="fixed:2")
        claimed = formula(case)
        yield close("margin", claimed["margin"], claimed["two_letters"], ROUNDING, case)
        gap = phase_two.after_phase_one(
            d, k, "fixed:2", 0.999 * float(phase_one.window(case.having(rate_o=1))["high"]), 1.0
        )
        moves_away = phase_two.update(gap)["logit_gap"] < 0
        yield agrees("attention moves away below the window's end iff d > 3k", moves_away, d > 3 * k, case)


window_implies_sign.mutant("sign", margin=lambda c, v: -v)
window_implies_sign.mutant("M1 and M2 swapped", margin=lambda c, v: c.excess * c.M2 - c.G * c.M1)
window_implies_sign.mutant("q for 1 - q", margin=lambda c, v: c.excess * c.M1 - c.q * c.M2)
window_implies_sign.mutant("d/2 for d/3", two_letters=lambda c, v: c.kappa * (1 - c.kappa) ** 2 * (2 * c.kappa - 1) / 4)


# ---------------------------------------------------------------- the trained loss of phase 3 on a sample


@claim(
    "finite_sample.phase3",
    statement="On any data labelled by OR of k letters and for any scores with min_S alpha - max_o alpha >= g, phase 3 "
    "run to the end has train loss at most 4 mean[1_+ ((m - n)/n)^2] e^(-2g), n the number of target letters: the loss "
    "at beta = 2 on S and 0 elsewhere, word by word.",
    latex=r"\min_\beta\hat L\le4\,\hat{\mathbb E}\Big[1_+\Big(\frac{m-n}n\Big)^2\Big]e^{-2g}",
    domain=FROZEN,
    source="1 - A <= ((m - n)/n) e^-g for any scores with that gap; failure.frozen_scores",
)
def sampled_phase3(c):
    """The bound of a positive word with ``c.targets`` = n and ``c.others`` = m - n."""
    return {"word": 4 * (c.others / c.targets) ** 2 / c.ratio**2}


@sampled_phase3.proof
def _(formula):
    """one word with two kinds of target and two of other letters, all weights on their side of the gap"""
    n1, r1 = 1 + sympy.Symbol("n'", nonnegative=True), sympy.Symbol("r", nonnegative=True)
    n2, r2 = sympy.symbols("n_2 r_2", nonnegative=True)
    u, least = sympy.symbols("e^g w", positive=True)  # w the smallest target weight; others at most w/u
    more, t = sympy.Symbol("more", nonnegative=True), sympy.symbols("t s", nonnegative=True)
    weights = least, least + more, least / u / (1 + t[0]), least / u / (1 + t[1])
    target = n1 * weights[0] + n2 * weights[1]
    other = r1 * weights[2] + r2 * weights[3]
    rest = other / (target + other)  # 1 - A
    n, r = n1 + n2, r1 + r2
    claimed = formula(Case(targets=n, others=r, ratio=u))["word"]
    yield positive("1 - A <= ((m-n)/n) e^-g", r / n / u - rest, strict=False)
    yield identity("its square, times 4", 4 * (r / n / u) ** 2, claimed)
    A = sympy.Symbol("A")
    yield identity("beta = 2 1_S, positive word: (f - y)^2 = 4 (1-A)^2", (2 * A - 1 - 1) ** 2, 4 * (1 - A) ** 2)
    yield identity("negative word: f - y = 0", 0 - 1 + 1, 0)


@sampled_phase3.instance
def _(formula, case):
    """exact losses at beta = 2 1_S over all words at random weights with that gap"""
    rng, d, k = random.Random(str(case)), int(case.d), int(case.k)
    weights = [[case.ratio + Fraction(rng.randint(0, 4), 2) for _ in range(k)]]
    weights[0] += [Fraction(rng.randint(1, 4), 4) for _ in range(d - k)]
    beta = [[Fraction(2)] * k + [Fraction(0)] * (d - k)]
    bound = sum(
        p * formula(case.having(targets=Fraction(n), others=Fraction(r)))["word"]
        for p, n, r, _ in by_targets(case)
        if n
    )
    found = exact_loss(population(case), weights, beta)
    yield holds("loss at 2 1_S <= bound", found <= bound, case.having(weights=weights), found=found, bound=bound)


@sampled_phase3.simulation
def _(formula):
    """sampled words at random scores: the kernel's loss at 2 1_S, and the least loss, against the bound"""
    rng = np.random.default_rng(31)
    for d, k, length in SAMPLES:
        for g in (0.0, 3.0):
            words = next(iter(fresh_words(d, k, length)))
            alpha = np.where(np.arange(d) < k, g + rng.random(d), -rng.random(d))
            gap = alpha[:k].min() - alpha[k:].max()
            case = FROZEN.check(d=d, k=k, length=length, ratio=float(np.exp(gap)))
            counts = words.counts()
            n = counts[:, :k].sum(axis=1)
            inside = n > 0
            r = counts[inside, k:].sum(axis=1)
            bound = formula(case.having(targets=n[inside], others=r))["word"].sum() / len(n)
            loss = evaluate(words, alpha, np.where(np.arange(d) < k, 2.0, 0.0))[0]
            yield below("loss at 2 1_S", loss, bound, case)
            a = attention(counts, alpha[None])[0]
            C, c = a.T @ a / len(n), a[inside].sum(axis=0) / len(n)
            yield below("least loss", frozen_attention_minimum(C, c, inside.mean())[0], bound, case)


sampled_phase3.mutant("sign of g", word=lambda c, v: v * c.ratio**4)
sampled_phase3.mutant("e^-3g", word=lambda c, v: v / c.ratio)
sampled_phase3.mutant("factor 4", word=lambda c, v: v / 4)
sampled_phase3.mutant("without the square", word=lambda c, v: v * c.targets / (c.others + c.targets))
