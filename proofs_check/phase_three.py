"""Phase 3: the output layer trained to convergence at fixed attention."""

import math
from fractions import Fraction

import numpy as np
import sympy

from analytic.gradients.letter import descend, loss_and_gradient
from analytic.phase_three import OutputPhase, output_phase
from analytic.population import population_path
from analytic.shares import AttentionMoments, attention_moments

from .claims import claim
from .comparison import bounded, compared, places
from .decide import ROUNDING, below, close, exact, holds, identity, positive, sampled, squares
from .domain import LETTERS, Real
from .enclosures import BallLaw, ball_attention, enclosed
from .letters import count_moment, population
from .simulator import SAMPLES, fresh_words, populations

FROZEN = LETTERS.having(ratio=Real(0))  # e^g: attention weight of a target letter over that of another one


def exact_attention(case):
    """`AttentionMoments` of an exact case, from all words."""
    k, u = int(case.k), case.ratio
    sums = dict.fromkeys(("q", "mass", "square", "odds_square", "target_contrast", "other_contrast"), Fraction(0))
    for probability, counts, y in population(case):
        n, m = sum(counts[:k]), sum(counts)
        total = n * u + m - n
        sums["q"] += probability * (y > 0)
        sums["mass"] += probability * n * u / total
        sums["square"] += probability * (n * u / total) ** 2
        sums["odds_square"] += probability * Fraction(m - n, n) ** 2 if n else 0
        sums["target_contrast"] += probability * n * u**2 / total**2
        sums["other_contrast"] += probability * (m - n) / total**2
    q = sums["q"]
    mass, square, odds_square = (sums[name] / q for name in ("mass", "square", "odds_square"))
    contrasts = sums["target_contrast"], sums["other_contrast"]
    return AttentionMoments(q, 1 - q, mass, 1 - mass, square - mass**2, odds_square, *contrasts)


def symbolic_attention():
    """`AttentionMoments` in symbols: any law of the attention mass A on S; 0 < q < 1, 0 < mu <= 1, Var >= 0."""
    odds, rest = sympy.Symbol("(1-q)/q", positive=True), sympy.Symbol("(1-mu)/mu", nonnegative=True)
    variance, odds_square = sympy.symbols("V B", nonnegative=True)
    target, other = sympy.symbols("T_S T_o", positive=True)
    q, mass = 1 / (1 + odds), 1 / (1 + rest)
    return AttentionMoments(q, 1 - q, mass, 1 - mass, variance, odds_square, target, other)


def phase_of(c):
    """The product's `OutputPhase` of a case, in the numbers of its attention moments."""
    moments = vars(c).get("attention") or attention_moments(c.d, c.k, c.length, math.log(c.ratio))
    return OutputPhase(c.d, c.k, vars(c).get("logit_gap", None), moments)


def symbolic_loss(attention, beta_target, beta_other):
    """E[(f - y)^2] as a mean over A: f - y = beta_o + (beta_S - beta_o) A - 2 on positive words, beta_o on negative."""
    A = sympy.Symbol("A")
    residual = sympy.Poly((beta_other + (beta_target - beta_other) * A - 2) ** 2, A)
    means = 1, attention.mass, attention.variance + attention.mass**2
    positive_words = sum(coefficient * means[power] for (power,), coefficient in residual.terms())
    return attention.q * positive_words + attention.negative * beta_other**2


@claim(
    "phase3.minimum",
    statement="At fixed scores, g apart between S and the other letters, the least loss over all output weights is "
    "L*(g) = 4 q (1 - q) V / (V + (1 - q) mu^2) with A = n e^g / (n e^g + m - n) the attention mass on S, "
    "mu = E[A | +], V = Var(A | +). It is reached at beta_o = L*/(2 (1 - q)), "
    "beta_S = beta_o + 2 (1 - q) mu / (V + (1 - q) mu^2).",
    latex=r"L^*(g)=\frac{4q(1-q)V}{V+(1-q)\mu^2},\quad \beta_o^*=\frac{L^*}{2(1-q)},\quad "
    r"\beta_S^*-\beta_o^*=\frac{2(1-q)\mu}{V+(1-q)\mu^2}",
    domain=FROZEN,
    source="a convex quadratic, invariant under permutations inside S and outside",
)
def minimum(c):
    phase = phase_of(c)
    return {"loss": phase.minimum, "beta_target": phase.beta_target, "beta_other": phase.beta_other}


@minimum.proof
def _(formula):
    """stationary point and remainder as squares, for any law of A; the same point for all d letters"""
    attention, c = symbolic_attention(), FROZEN.symbols()
    claimed = formula(c.having(attention=attention))
    target, other = sympy.symbols("beta_S beta_o", real=True)
    loss = symbolic_loss(attention, target, other)
    yield identity("the product's loss", phase_of(c.having(attention=attention)).loss(target, other), loss)
    at = {target: claimed["beta_target"], other: claimed["beta_other"]}
    for name, beta in (("beta_S", target), ("beta_o", other)):
        yield identity(f"dL/d{name} = 0", sympy.diff(loss, beta).subs(at), 0)
    yield identity("L at that point", loss.subs(at), claimed["loss"])
    x, y = target - at[target], other - at[other]
    mean = y + (x - y) * attention.mass
    parts = ((attention.negative, y), (attention.q, mean), (attention.q * attention.variance, x - y))
    yield from squares("L - L* is a sum of squares", loss - claimed["loss"], parts)

    # every letter on its own: dL/dbeta_j = 2 E[r a_j] is the same for all letters of a class, their sum is that of A
    n1, n2, n3, u, w = sympy.symbols("n_1 n_2 n_3 e^g n_o", positive=True)
    shares = [n * u / ((n1 + n2 + n3) * u + w) for n in (n1, n2, n3)]
    mass = (n1 + n2 + n3) * u / ((n1 + n2 + n3) * u + w)
    yield identity("the shares a_j of S sum to A", sum(shares), mass)
    a1, a2, b1, b2, v1, v2, y, t = sympy.symbols("a_1 a_2 b_1 b_2 v_1 v_2 y t", real=True)
    along = (a1 * (b1 + t * v1) + a2 * (b2 + t * v2) - 1 - y) ** 2
    yield identity("the loss is convex in all weights", sympy.diff(along, t, 2), 2 * (a1 * v1 + a2 * v2) ** 2)


@minimum.instance
def _(formula, case):
    """exact least squares over the weights of all d letters"""
    d, k, u = int(case.d), int(case.k), case.ratio
    second, first, q = sympy.zeros(d, d), sympy.zeros(d, 1), Fraction(0)
    for probability, counts, y in population(case):
        weights = [n * (u if j < k else 1) for j, n in enumerate(counts)]
        shares = sympy.Matrix([sympy.Rational(w) / sympy.Rational(sum(weights)) for w in weights])
        second += sympy.Rational(probability) * shares * shares.T
        if y > 0:
            first += sympy.Rational(probability) * shares
            q += probability
    beta = second.LUsolve(2 * first)  # L = 4 q - 4 c.beta + beta.C beta
    claimed = formula(case.having(attention=exact_attention(case)))
    yield exact("least loss", 4 * q - 2 * Fraction(*(first.dot(beta)).as_numer_denom()), claimed["loss"], case)
    for j in range(d):
        found = Fraction(*beta[j].as_numer_denom())
        yield exact(f"beta_{j + 1}", found, claimed["beta_target" if j < k else "beta_other"], case)


@minimum.simulation
def _(formula):
    """the simulator's loss and gradient at the claimed point, on all words, any logit gap"""
    for d, k, length, words in populations():
        for ratio in (0.4, 1.0, 5.0, 300.0):
            case = FROZEN.check(d=d, k=k, length=length, ratio=ratio)
            claimed = formula(case)
            alpha = np.where(np.arange(d) < k, math.log(ratio), 0.0)
            beta = np.where(np.arange(d) < k, claimed["beta_target"], claimed["beta_other"])
            loss, _, d_beta = loss_and_gradient(words, alpha, beta)
            yield close("loss at the claimed minimum", loss, claimed["loss"], ROUNDING, case)
            yield close("gradient at the claimed minimum", d_beta, 0.0, ROUNDING, case)


@minimum.simulation
def _(formula):
    """loss of sampled words at the claimed point, t-test over seeds"""
    for d, k, length in SAMPLES:
        case = FROZEN.check(d=d, k=k, length=length, ratio=4.0)
        claimed = formula(case)
        alpha = np.where(np.arange(d) < k, math.log(case.ratio), 0.0)
        beta = np.where(np.arange(d) < k, claimed["beta_target"], claimed["beta_other"])
        losses = [loss_and_gradient(words, alpha, beta)[0] for words in fresh_words(d, k, length)]
        yield sampled("loss at the claimed minimum", losses, float(claimed["loss"]), case)


@minimum.simulation
def _(formula):
    """predicted, population and sampled loss at the minimum on the grid"""
    for place in places():
        g = place.path().logit_gap[2]
        claimed = formula(FROZEN.check(**place.parameters, ratio=float(np.exp(g))))
        start = claimed["beta_target"], claimed["beta_other"], g
        population = population_path(place.d, place.k, place.law, [("O", 0, 0.0, 0.0)], start=start).loss[0]
        inside = np.arange(place.d) < place.k
        beta = np.where(inside, claimed["beta_target"], claimed["beta_other"])
        samples = place.evaluations(np.where(inside, g, 0.0), beta)[0]
        yield compared("least loss after O(1x)->A(1x)", place, claimed["loss"], population, samples)


minimum.mutant("sign of V", loss=lambda c, v: -v)
minimum.mutant("q for 1 - q", loss=lambda c, v: v * phase_of(c).moments.q / phase_of(c).moments.negative)
minimum.mutant("factor 2", loss=lambda c, v: v / 2)
minimum.mutant("mu^2 with factor 1", loss=lambda c, v: _all_words(c))
minimum.mutant("beta_S = 2", beta_target=lambda c, v: 2)
minimum.mutant("beta_o = L*/(1 - q)", beta_other=lambda c, v: 2 * v)
minimum.mutant("beta_S = beta_o", beta_target=lambda c, v: phase_of(c).beta_other)


def _all_words(c):
    m = phase_of(c).moments
    return 4 * m.q * m.negative * m.variance / (m.variance + m.mass**2)


# ---------------------------------------------------------------- bounds on the minimum


@claim(
    "phase3.bounds",
    statement="The least loss at fixed scores satisfies 4 q (1 - q) V <= L*(g) <= 4 q V / mu^2 and "
    "L*(g) <= 4 q E[(1 - A)^2 | +], the loss at beta = 2 on S and 0 elsewhere.",
    latex=r"4q(1-q)V\le L^*(g)\le\min\Big\{\frac{4qV}{\mu^2},\ 4q\,\mathbb E[(1-A)^2\mid+]\Big\}",
    domain=FROZEN,
    source="phase3.minimum; A^2 <= A; beta = 2 1_S is feasible",
)
def minimum_bounds(c):
    phase, m = phase_of(c), phase_of(c).moments
    return {"lower": phase.lower_bound, "upper": phase.bound, "upper_mass": 4 * m.q * m.variance / m.mass**2}


@minimum_bounds.proof
def _(formula):
    """signs of the differences to the minimum"""
    attention, c = symbolic_attention(), FROZEN.symbols()
    c = c.having(attention=attention)
    claimed, loss, m = formula(c), phase_of(c).minimum, attention
    # E[A^2 | +] = V + mu^2 <= E[A | +] <= 1 as 0 <= A <= 1; write V + mu^2 = 1 / (1 + w)
    a, w = sympy.symbols("a w", nonnegative=True)
    yield positive("A - A^2 >= 0 for A = 1/(1 + a)", 1 / (1 + a) - 1 / (1 + a) ** 2, strict=False)
    gap = (1 - m.variance - m.mass**2) + m.q * m.mass**2  # 1 - (V + (1-q) mu^2)
    spread = m.variance + m.negative * m.mass**2
    room = claimed["lower"] * gap / spread
    yield identity("L* - lower = lower (1 - spread) / spread", loss - claimed["lower"], room)
    yield positive("lower >= 0", claimed["lower"], strict=False)
    yield positive("spread > 0", spread)
    yield positive("1 - spread >= 0", (1 - 1 / (1 + w)) + m.q * m.mass**2, strict=False)
    yield positive("4 q V / mu^2 - L* >= 0", claimed["upper_mass"] - loss, strict=False)
    yield identity("upper = L(2, 0)", claimed["upper"], symbolic_loss(m, 2, 0))
    x, y = 2 - phase_of(c).beta_target, -phase_of(c).beta_other
    parts = ((m.negative, y), (m.q, y + (x - y) * m.mass), (m.q * m.variance, x - y))
    yield from squares("L(2, 0) - L*", claimed["upper"] - loss, parts)


@minimum_bounds.instance
def _(formula, case):
    """exact moments of all words"""
    c = case.having(attention=exact_attention(case))
    claimed, loss = formula(c), phase_of(c).minimum
    between = claimed["lower"] <= loss <= min(claimed["upper"], claimed["upper_mass"])
    yield holds("lower <= L* <= both upper bounds", between, case, loss=loss, **claimed)
    u = case.ratio
    at_two = sum(p * (2 * n * u / (n * u + r) - 1 - y) ** 2 for p, n, r, y in by_targets(case))
    yield exact("upper = loss at beta = 2 1_S", at_two, claimed["upper"], case)


def by_targets(case):
    """(probability, target letters, other letters, y) of all words."""
    k = int(case.k)
    return [(p, sum(counts[:k]), sum(counts[k:]), y) for p, counts, y in population(case)]


@minimum_bounds.simulation
def _(formula):
    """the product's minimum on a grid of logit gaps"""
    for d, k, length in SAMPLES:
        for ratio in (0.5, 1.0, 30.0, 1e4):
            case = FROZEN.check(d=d, k=k, length=length, ratio=ratio)
            claimed, loss = formula(case), output_phase(d, k, case.length, math.log(ratio)).minimum
            yield below("lower <= L*", claimed["lower"], loss, case)
            yield below("L* <= upper", loss, claimed["upper"], case)
            yield below("L* <= 4 q V / mu^2", loss, claimed["upper_mass"], case)


@minimum_bounds.simulation
def _(formula):
    """output training of the simulator on all words: no loss ever below, the last one within the bounds"""
    for d, k, length, words in populations():
        case = FROZEN.check(d=d, k=k, length=length, ratio=6.0)
        claimed, alpha = formula(case), np.where(np.arange(d) < k, math.log(6.0), 0.0)
        loss = descend(words, alpha, np.zeros(d), 0.0, 1.0, 3000).loss
        yield below("lower <= every loss", claimed["lower"], loss, case)
        yield below("last loss <= upper", loss[-1], claimed["upper"], case)


def uniform_words(longest):
    """The length law of the boxes: uniform on 1..longest."""
    return BallLaw({m: Fraction(1, longest) for m in range(1, longest + 1)})


def frozen_box(c, k, longest):
    """The case of a box of (d, g), with its attention moments."""
    c = c.having(k=k, length=uniform_words(longest), ratio=c.g.exp())
    return c.having(attention=ball_attention(c))


@minimum_bounds.enclosure
def _(formula):
    """the sandwich on boxes of (d, g), lengths uniform on 1..3"""
    for k in (1, 2):
        for name, sign in (("lower", -1), ("upper", 1), ("upper_mass", 1)):

            def margin(c, k=k, name=name, sign=sign):
                c = frozen_box(c, k, 3)
                return sign * (formula(c)[name] / phase_of(c).minimum - 1)

            text = f"{name} bound of L*(g) for d in [5, 8], g in [0, 1], k = {k}"
            yield enclosed(text, margin, {"d": (5, 8), "g": (0, 1)})


@minimum_bounds.simulation
def _(formula):
    """slack of the three bounds on the grid"""
    for place in places():
        g = float(place.path().logit_gap[2])
        claimed = formula(FROZEN.check(**place.parameters, ratio=math.exp(g)))
        least = output_phase(place.d, place.k, place.law, g).minimum
        yield bounded("L*(g), by 4 q (1-q) V", place, least, claimed["lower"], upper=False)
        yield bounded("L*(g), by 4 q E[(1-A)^2 | +]", place, least, claimed["upper"])
        yield bounded("L*(g), by 4 q V / mu^2", place, least, claimed["upper_mass"])


minimum_bounds.mutant("direction of the lower bound", lower=lambda c, v: phase_of(c).bound)
minimum_bounds.mutant("direction of the upper bound", upper=lambda c, v: phase_of(c).lower_bound)
minimum_bounds.mutant("lower bound 4 q V", lower=lambda c, v: v / phase_of(c).moments.negative)
minimum_bounds.mutant("upper bound halved", upper=lambda c, v: v / 2)
minimum_bounds.mutant("upper with V only", upper=lambda c, v: 4 * phase_of(c).moments.q * phase_of(c).moments.variance)
minimum_bounds.mutant("mu for 1/mu", upper_mass=lambda c, v: v * phase_of(c).moments.mass**4)


@claim(
    "phase3.exponential_bound",
    statement="The loss at beta = 2 on S and 0 elsewhere, hence L*(g), falls like e^(-2g): 4 q E[(1 - A)^2 | +] <= "
    "4 q E[((m - n)/n)^2 | +] e^(-2g) <= 24 (d/k)^2 e^(-2g) for every length law, n the number of target letters.",
    latex=r"4q\,\mathbb E[(1-A)^2|+]\le 4q\,\mathbb E\Big[\Big(\frac{m-n}n\Big)^2\Big|+\Big]e^{-2g}\le "
    r"24\Big(\frac dk\Big)^2e^{-2g}",
    domain=FROZEN,
    source="1/n^2 <= 6/((n+1)(n+2)), whose binomial mean is at most 6/((m+1)(m+2) kappa^2)",
)
def exponential_bound(c):
    """``c.ratio`` = e^g."""
    m = phase_of(c).moments
    return {"law": 4 * m.q * m.odds_square / c.ratio**2, "universal": 24 * (c.d / c.k) ** 2 / c.ratio**2}


@exponential_bound.proof
def _(formula):
    """word by word, then the binomial mean of 6/((n+1)(n+2))"""
    c = FROZEN.symbols().having(attention=symbolic_attention())
    claimed, u = formula(c), c.ratio
    n, r = 1 + sympy.Symbol("n'", nonnegative=True), sympy.Symbol("r", nonnegative=True)
    rest = r / (n * u + r)
    yield positive("1 - A <= ((m - n)/n) e^-g", r / n / u - rest, strict=False)
    law = 4 * c.attention.q * c.attention.odds_square / u**2
    yield identity("so 4 q E[(1-A)^2|+] <= 4 q E[((m-n)/n)^2|+] e^-2g", law, claimed["law"])

    yield positive("6/((n+1)(n+2)) - 1/n^2 >= 0 for n >= 1", 6 / ((n + 1) * (n + 2)) - 1 / n**2, strict=False)
    i, m = sympy.symbols("n m", integer=True, nonnegative=True)
    shift = sympy.binomial(m, i) / ((i + 1) * (i + 2)) * (m + 1) * (m + 2) / sympy.binomial(m + 2, i + 2)
    shift = sympy.gammasimp(shift.rewrite(sympy.gamma))
    # so that the binomial mean of 1/((n+1)(n+2)) is P(Bin(m+2) >= 2) / ((m+1)(m+2) kappa^2)
    yield identity("C(m,n) / ((n+1)(n+2)) = C(m+2,n+2) / ((m+1)(m+2))", shift, 1)
    yield positive("(m - n)^2 <= m^2 <= (m+1)(m+2)", (m + 1) * (m + 2) - m**2, strict=False)
    # 4 q E[((m-n)/n)^2 | +] = 4 E[((m-n)/n)^2; n >= 1] <= 4 * 6 E[m^2 / ((m+1)(m+2) kappa^2)] <= 24/kappa^2
    yield identity("4 * 6 / kappa^2 e^-2g", 24 / c.kappa**2 / u**2, claimed["universal"], FROZEN)


@exponential_bound.instance
def _(formula, case):
    """exact moments of all words"""
    c = case.having(attention=exact_attention(case))
    claimed, upper = formula(c), phase_of(c).bound
    yield holds("4 q E[(1-A)^2|+] <= law bound", upper <= claimed["law"], case, found=upper, **claimed)
    yield holds("law bound <= universal bound", claimed["law"] <= claimed["universal"], case, **claimed)
    law = 4 * sum(p * Fraction(r, n) ** 2 for p, n, r, y in by_targets(case) if n) / case.ratio**2
    yield exact("law bound", law, claimed["law"], case)


@exponential_bound.simulation
def _(formula):
    """what the product reports, on a grid up to large gaps; the limit of e^2g times the loss at (2, 0)"""
    for d, k, length in SAMPLES:
        for g in (0.0, 2.0, 10.0):
            case = FROZEN.check(d=d, k=k, length=length, ratio=math.exp(g))
            claimed, phase = formula(case), output_phase(d, k, case.length, g)
            yield close("exponential_bound", phase.exponential_bound / claimed["law"], 1, ROUNDING, case)
            yield close("universal_bound", phase.universal_bound / claimed["universal"], 1, ROUNDING, case)
            yield below("L(2, 0) <= law bound", phase.bound, claimed["law"], case)
            yield below("law bound <= universal bound", claimed["law"], claimed["universal"], case)
        limit = output_phase(d, k, case.length, 40.0)
        yield close("L(2, 0) / law bound -> 1", limit.bound / limit.exponential_bound, 1, ROUNDING, case)


@exponential_bound.enclosure
def _(formula):
    """L*(g) and the loss at beta = 2 1_S against both bounds on boxes of (d, g), lengths uniform on 1..4"""
    for k in (1, 2):

        def universal(c, k=k):
            c = frozen_box(c, k, 4)
            return 1 - phase_of(c).minimum / formula(c)["universal"]

        def law(c, k=k):
            c = frozen_box(c, k, 4)
            return 1 - phase_of(c).bound / formula(c)["law"]

        text = f"for d in [4, 60], g in [0, 14], k = {k}"
        yield enclosed(f"L*(g) < 24 (d/k)^2 e^-2g {text}", universal, {"d": (4, 60), "g": (0, 14)})
        text = f"for d in [4, 20], g in [0, 1], k = {k}"
        yield enclosed(f"L(2, 0) < 4 q E[((m-n)/n)^2 | +] e^-2g {text}", law, {"d": (4, 20), "g": (0, 1)})


@exponential_bound.simulation
def _(formula):
    """slack of both bounds on the grid"""
    for place in places():
        g = float(place.path().logit_gap[2])
        claimed = formula(FROZEN.check(**place.parameters, ratio=math.exp(g)))
        phase = output_phase(place.d, place.k, place.law, g)
        yield bounded("L*(g), by 4 q E[((m-n)/n)^2 | +] e^-2g", place, phase.minimum, claimed["law"])
        yield bounded("L*(g), by 24 (d/k)^2 e^-2g", place, phase.minimum, claimed["universal"])


exponential_bound.mutant("sign of g", law=lambda c, v: v * c.ratio**4)
exponential_bound.mutant("e^-3g", law=lambda c, v: v / c.ratio)
exponential_bound.mutant("one factor (m-n)/n", law=lambda c, v: v / 4)
exponential_bound.mutant("constant 24 tightened to 1", universal=lambda c, v: v / 24)
exponential_bound.mutant("k for d/k", universal=lambda c, v: v * c.k**4 / c.d**2 / 24)
exponential_bound.mutant("d/k without square", universal=lambda c, v: v * c.k / c.d)


# ---------------------------------------------------------------- gradient descent at fixed attention


@claim(
    "phase3.hessian",
    statement="At fixed scores the loss is quadratic in beta with Hessian 2 E[a a^T]. On beta = (beta_S on S, beta_o "
    "elsewhere) it acts with the entries H_SS = 2 E[A^2]/k, H_oo = 2 E[(1-A)^2]/(d-k), H_So = 2 E[A(1-A)] (over k or "
    "d-k, or their geometric mean in scaled coordinates); contrasts inside S and outside are eigenvectors with "
    "(2/k) E[n e^2g / Z^2] <= H_SS and (2/(d-k)) E[(m-n)/Z^2] <= H_oo, Z = n e^g + m - n. All eigenvalues are below 2, "
    "so gradient descent converges for every rate up to 1.",
    latex=r"H_{SS}=\tfrac2k\mathbb E[A^2],\ H_{oo}=\tfrac2{d-k}\mathbb E[(1-A)^2],\ "
    r"\lambda_S=\tfrac2k\mathbb E\Big[\frac{ne^{2g}}{Z^2}\Big],\ "
    r"\lambda_o=\tfrac2{d-k}\mathbb E\Big[\frac{m-n}{Z^2}\Big],\quad \lambda_{\max}<2",
    domain=FROZEN,
    source="letters of a class are exchangeable; A + (1 - A) = 1",
)
def hessian(c):
    phase, m = phase_of(c), phase_of(c).moments
    mixed = m.q * (m.mass * m.rest - m.variance)
    return {
        "SS": 2 * m.q * (m.variance + m.mass**2) / c.k,
        "So": 2 * mixed,
        "oo": 2 * (m.q * (m.variance + m.rest**2) + m.negative) / c.D,
        "target_contrast": phase.target_eigenvalue,
        "other_contrast": phase.other_eigenvalue,
        "below": 2,
    }


@hessian.proof
def _(formula):
    """entries from the moments of A; contrasts from multinomial counts inside a class; all eigenvalues below 2"""
    attention, c = symbolic_attention(), FROZEN.symbols()
    c = c.having(attention=attention)
    claimed = formula(c)
    A = sympy.Symbol("A")
    means = 1, attention.mass, attention.variance + attention.mass**2

    def mean(polynomial, at_negative):  # A = 0 on negative words
        terms = sympy.Poly(polynomial, A).terms()
        return attention.q * sum(w * means[power] for (power,), w in terms) + attention.negative * at_negative

    yield identity("H_SS = 2 E[A^2]/k", 2 * mean(A**2, 0) / c.k, claimed["SS"])
    yield identity("H_So = 2 E[A (1 - A)]", 2 * mean(A * (1 - A), 0), claimed["So"])
    yield identity("H_oo = 2 E[(1 - A)^2]/(d - k)", 2 * mean((1 - A) ** 2, 1) / c.D, claimed["oo"])

    # two letters of a class of s letters that occurs n times: e_i - e_j is an eigenvector, E[n_i^2 - n_i n_j | n] = n/s
    n, s = sympy.symbols("n s", positive=True)
    sizes = {"i": 1, "j": 1, "rest": s - 2}
    contrast = count_moment(sizes, {"i": 2}, n) - count_moment(sizes, {"i": 1, "j": 1}, n)
    yield identity("E[n_i^2 - n_i n_j | n] = n/s", contrast, n / s)
    inside, outside = 2 * attention.target_contrast / c.k, 2 * attention.other_contrast / c.D
    yield identity("contrasts in S: 2 E[e^2g n/(k Z^2)]", inside, claimed["target_contrast"])
    yield identity("contrasts off S: 2 E[(m-n)/((d-k) Z^2)]", outside, claimed["other_contrast"])
    n = 1 + sympy.Symbol("n'", nonnegative=True)
    yield positive("n <= n^2, so that a contrast is at most the entry of its class", n**2 - n, strict=False)

    # both classes: 2 - H positive definite, with E[A^2], E[(1-A)^2] > 0 and E[A(1-A)] >= 0 adding up (mixed twice) to 1
    x, z = sympy.symbols("x z", positive=True)
    w, k_more, d_more = sympy.symbols("w k' D'", nonnegative=True)
    whole = x + z + 2 * w
    diagonal = claimed["below"] * (1 + k_more) - 2 * x / whole, claimed["below"] * (1 + d_more) - 2 * z / whole
    yield positive("k (2 - H_SS) > 0", diagonal[0])
    yield positive("k (d - k) det(2 - H) > 0", diagonal[0] * diagonal[1] - (2 * w / whole) ** 2)


@hessian.instance
def _(formula, case):
    """exact second moments of the shares of all letters; exact positive definiteness of 2 - H"""
    d, k, u = int(case.d), int(case.k), case.ratio
    H = [[Fraction(0)] * d for _ in range(d)]
    for probability, counts, _ in population(case):
        weights = [n * (u if j < k else 1) for j, n in enumerate(counts)]
        total = sum(weights)
        for i, j in np.ndindex(d, d):
            H[i][j] += 2 * probability * weights[i] * weights[j] / total**2
    claimed = formula(case.having(attention=exact_attention(case)))
    yield exact("H_SS", sum(H[0][:k]), claimed["SS"], case)
    yield exact("H_oo", sum(H[k][k:]), claimed["oo"], case)
    yield exact("H_So", sum(H[0][k:]) * case.k, claimed["So"], case)
    if k > 1:
        yield exact("contrast in S", H[0][0] - H[0][1], claimed["target_contrast"], case)
    if d - k > 1:
        yield exact("contrast off S", H[k][k] - H[k][k + 1], claimed["other_contrast"], case)
    left = claimed["below"] * sympy.eye(d) - sympy.Matrix(d, d, lambda i, j: sympy.Rational(H[i][j]))
    yield holds("all eigenvalues below 2", left.is_positive_definite, case)
    ordered = claimed["target_contrast"] <= claimed["SS"] and claimed["other_contrast"] <= claimed["oo"]
    yield holds("contrasts are at most the entries of their class", ordered, case)


@hessian.simulation
def _(formula):
    """differences of the simulator's gradient on all words; eigenvalues the product reports; descent at rate 1"""
    for d, k, length, words in populations():
        for ratio in (0.3, 1.0, 40.0):
            case, inside = FROZEN.check(d=d, k=k, length=length, ratio=ratio), np.arange(d) < k
            claimed, alpha = formula(case), np.where(inside, math.log(ratio), 0.0)
            at_zero = loss_and_gradient(words, alpha, np.zeros(d))[2]
            for direction, eigenvalue in contrasts(d, k, claimed):
                change = loss_and_gradient(words, alpha, direction)[2] - at_zero
                yield close("contrast is an eigenvector", change, eigenvalue * direction, ROUNDING, case)
            change = loss_and_gradient(words, alpha, inside * 1.0)[2] - at_zero
            expected = np.where(inside, claimed["SS"], claimed["So"] / case.D)
            yield close("H on the indicator of S", change, expected, ROUNDING, case)
            entries = [[claimed["SS"], claimed["So"] / np.sqrt(k * case.D)], [0, claimed["oo"]]]
            eigenvalues = output_phase(d, k, case.length, math.log(ratio)).eigenvalues
            yield close("analytic eigenvalues", eigenvalues, np.linalg.eigvalsh(entries, "U"), ROUNDING, case)
            loss = descend(words, alpha, np.linspace(-3, 3, d), 0.0, 1.0, 50).loss
            yield below("loss never rises at rate 1", loss[1:], loss[:-1], case)


def contrasts(d, k, claimed):
    """(direction, claimed eigenvalue) of one contrast inside S and one outside, where there are two letters."""
    if k > 1:
        yield np.eye(d)[0] - np.eye(d)[1], claimed["target_contrast"]
    if d - k > 1:
        yield np.eye(d)[k] - np.eye(d)[k + 1], claimed["other_contrast"]


@hessian.enclosure
def _(formula):
    """2 - H is positive definite on boxes of (d, g), so that every rate up to 1 is safe; lengths uniform on 1..4"""
    for k in (1, 2):

        def left(c, k=k):
            c = frozen_box(c, k, 4)
            claimed = formula(c)
            return c, claimed, [float(claimed["below"]) - claimed[name] for name in ("SS", "oo")]

        def determinant(c, left=left):
            c, claimed, (SS, oo) = left(c)
            return SS * oo - claimed["So"] ** 2 / (c.k * c.D)

        for name, margin in (
            ("2 - H_SS", lambda c, left=left: left(c)[2][0]),
            ("2 - H_oo", lambda c, left=left: left(c)[2][1]),
            ("det(2 - H)", determinant),
        ):
            text = f"{name} > 0 for d in [4, 60], g in [-2, 12], k = {k}"
            yield enclosed(text, margin, {"d": (4, 60), "g": (-2, 12)})


hessian.mutant("sign of H_So", So=lambda c, v: -v)
hessian.mutant("loss with 1/2", SS=lambda c, v: v / 2, oo=lambda c, v: v / 2)
hessian.mutant("negative words forgotten", oo=lambda c, v: v - 2 * phase_of(c).moments.negative / c.D)
hessian.mutant("variance only", SS=lambda c, v: 2 * phase_of(c).moments.q * phase_of(c).moments.variance / c.k)
hessian.mutant("d for k in a contrast", target_contrast=lambda c, v: v * c.k / c.d)
hessian.mutant("k for d - k in a contrast", other_contrast=lambda c, v: v * c.D / c.k)
hessian.mutant("all eigenvalues below 1/2", below=lambda c, v: Fraction(1, 2))
