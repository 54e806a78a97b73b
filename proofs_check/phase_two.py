"""Phase 2: one attention step from uniform attention."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import sympy

from analytic import bounds, one_step
from analytic.languages import any_of
from sim.tasks.letters import LetterTask

from . import phase_one
from .claims import claim
from .comparison import bounded, compared, places
from .decide import ROUNDING, agrees, below, close, exact, holds, identity, on_side, positive, sampled
from .domain import LETTERS, LONGER, Case, Domain, Real, Whole
from .enclosures import BallGeometric, BallLaw, ball, contained, enclosed, precision
from .gradients import uniform_attention_gradient
from .letters import constant, exact_gradient, population
from .moments import drive_steps, excess_steps
from .simulator import GRID, SAMPLES, by_class, fresh_words, kernel_step, populations, runs

PHASE_TWO = LETTERS.having(beta_target=Real(), beta_other=Real(), rate_a=Real(0))
NEAR = 1e-6  # how close to the turning point the simulator is tried: far above rounding


@claim(
    "phase2.update",
    statement="One attention step from alpha = 0 and beta = (beta_S on S, beta_o elsewhere) sets alpha_j to "
    "2 rate_a Delta K / k on S and to -2 rate_a Delta K / (d - k) elsewhere, with Delta = beta_S - beta_o, "
    "K = (2 - beta_o) M1 - Delta M2 and, x being the share of target letters, "
    "M1 = E[x(1-x)] = kappa (1 - kappa)(1 - E1), M2 = E[x^2(1-x)], for every length law; the logit gap is "
    "2 rate_a Delta K d / (k (d - k)). After phase 1 the two values of beta are those of phase1.update.",
    latex=r"\alpha_S=\frac{2\eta_A\Delta K}{k},\quad \alpha_o=-\frac{2\eta_A\Delta K}{d-k},\quad "
    r"g=\frac{2\eta_A\Delta K d}{k(d-k)},\quad K=(2-\beta_o)M_1-\Delta M_2",
    domain=PHASE_TWO,
    source="third-order moments of the letter shares",
)
def update(c):
    delta = c.beta_target - c.beta_other
    drive = (2 - c.beta_other) * c.M1 - delta * c.M2
    return {
        "alpha_target": 2 * c.rate_a * delta * drive / c.k,
        "alpha_other": -2 * c.rate_a * delta * drive / c.D,
        "logit_gap": 2 * c.rate_a * delta * drive * c.d / (c.k * c.D),
    }


@update.proof
def _(formula):
    """third-order moments of the letter counts, any d, k and length law"""
    c = PHASE_TWO.symbols()
    claimed = formula(c)
    target, other = (
        -c.rate_a * uniform_attention_gradient(c, inside, c.beta_target, c.beta_other)["alpha"]
        for inside in (True, False)
    )
    yield identity("alpha_S = -rate_a dL/dalpha_S", target, claimed["alpha_target"], PHASE_TWO)
    yield identity("alpha_o = -rate_a dL/dalpha_o", other, claimed["alpha_other"], PHASE_TWO)
    yield identity("logit gap = alpha_S - alpha_o", target - other, claimed["logit_gap"], PHASE_TWO)


@update.instance
def _(formula, case):
    """exact attention step over all words"""
    d, k = int(case.d), int(case.k)
    beta = [[case.beta_target] * k + [case.beta_other] * (d - k)]
    d_alpha, _ = exact_gradient(population(case), constant(d, 1), beta)
    alpha, claimed = [-case.rate_a * slope for slope in d_alpha[0]], formula(case)
    for j, value in enumerate(alpha):
        yield exact(f"alpha_{j + 1}", value, claimed["alpha_target" if j < k else "alpha_other"], case)
    yield exact("logit gap", min(alpha[:k]) - max(alpha[k:]), claimed["logit_gap"], case)


@update.simulation
def _(formula):
    """O(1x) then A(1x) with the kernel on all words, to rounding"""
    for d, k, length, words in populations():
        zero, rate_o, rate_a = np.zeros(d), 0.3 * d, 7.0
        case = after_phase_one(d, k, length, rate_o, rate_a)
        alpha, _ = kernel_step(words, *kernel_step(words, zero, zero, rate_o=rate_o), rate_a=rate_a)
        claimed = formula(case)
        expected = np.where(np.arange(d) < k, claimed["alpha_target"], claimed["alpha_other"])
        yield close("alpha", alpha, expected, ROUNDING, case)
        yield close("logit gap", alpha[:k].min() - alpha[k:].max(), claimed["logit_gap"], ROUNDING, case)


@update.simulation
def _(formula):
    """attention step on sampled words from the beta of phase 1, t-test over seeds"""
    for d, k, length in SAMPLES:
        case = after_phase_one(d, k, length, 0.35 * d, 1.0)
        beta = np.where(np.arange(d) < k, case.beta_target, case.beta_other)
        steps = [kernel_step(words, np.zeros(d), beta, rate_a=case.rate_a)[0] for words in fresh_words(d, k, length)]
        target, other = by_class(np.array(steps), k)
        claimed = formula(case)
        yield sampled("alpha_S", target, claimed["alpha_target"], case)
        yield sampled("alpha_o", other, claimed["alpha_other"], case)
        yield sampled("logit gap", target - other, claimed["logit_gap"], case)


def after_phase_one(d, k, length, rate_o, rate_a):
    """The case whose beta is what one output step from zero init gives."""
    beta = phase_one.update(phase_one.PHASE_ONE.check(d=d, k=k, length=length, rate_o=rate_o))
    return PHASE_TWO.check(d=d, k=k, length=length, rate_a=rate_a, **{name: float(b) for name, b in beta.items()})


@update.simulation
def _(formula):
    """what the product reports, on a grid"""
    for place in GRID:
        rates = {"rate_o": 0.35 * place["d"], "rate_a": 8.0 * place["d"]}
        case, claimed = after_phase_one(**place, **rates), formula(after_phase_one(**place, **rates))
        target, other = one_step.attention_update(case.d, case.k, case.length, **rates)
        cancelled = abs(case.beta_target / (case.beta_target - case.beta_other))  # in Delta, from rounded values
        scale = abs(claimed["logit_gap"]) * cancelled
        yield close("alpha_S", target, claimed["alpha_target"], ROUNDING, case, scale)
        yield close("alpha_o", other, claimed["alpha_other"], ROUNDING, case, scale)


@update.simulation
def _(formula):
    """predicted, population and sampled values on the grid"""
    for place in places():
        claimed = formula(after_phase_one(**place.parameters, rate_o=place.rate_o, rate_a=place.rate_a))
        path = place.path()
        steps, gap = place.steps(), path.logit_gap[2]
        # the mean of alpha stays 0, so the gap fixes both values of the population
        population = {"alpha_target": gap * (place.d - place.k) / place.d, "alpha_other": -gap * place.k / place.d}
        for name, value in population.items():
            yield compared(f"{name} after A(1x)", place, claimed[name], value, steps[name])
        samples = steps["alpha_target"] - steps["alpha_other"]
        yield compared("logit gap after A(1x)", place, claimed["logit_gap"], gap, samples)


update.mutant("sign", alpha_target=lambda c, v: -v, alpha_other=lambda c, v: -v, logit_gap=lambda c, v: -v)
update.mutant("sign off S", alpha_other=lambda c, v: -v)
update.mutant("factor 2", alpha_target=lambda c, v: 2 * v)
update.mutant("d - k for k", alpha_target=lambda c, v: v * c.k / c.D)
update.mutant("k for d - k", alpha_other=lambda c, v: v * c.D / c.k)
update.mutant("d forgotten in the gap", logit_gap=lambda c, v: v / c.d)
update.mutant("sign of Delta M2", alpha_target=lambda c, v: _drive(c, +1, c.E2) / c.k)
update.mutant("E1^2 for E2", alpha_target=lambda c, v: _drive(c, -1, c.E1**2) / c.k)


def _drive(c, sign, inverse_square):
    """2 rate_a Delta K with another sign of Delta M2 or another value for E[1/m^2]."""
    delta, moments = c.beta_target - c.beta_other, replace(c.moments, E2=inverse_square)
    return 2 * c.rate_a * delta * ((2 - c.beta_other) * moments.M1 + sign * delta * moments.M2)


PLAN = LONGER.having(rate_o=Real(0))


@claim(
    "phase2.sign_condition",
    statement="After one output step from zero init with rate_o > 0 the attention step moves attention towards S (its "
    "logit gap is positive) if and only if rate_o < eta_K = (d - k) M1 / (2 [(q - kappa) M1 + (1 - q) M2]); at eta_K "
    "it does not move. Always eta_K > d/2, so beta_S <= 2 suffices, and (d/4, min(d/2, window's end)) has both.",
    latex=r"K>0\iff\eta_O<\eta_K=\frac{(d-k)M_1}{2[(q-\kappa)M_1+(1-q)M_2]},\qquad \eta_K>\tfrac d2",
    domain=PLAN,
    source="phase1.update, phase2.update; q >= kappa and M1 > M2 > 0",
)
def sign_condition(c):
    return {"turning_point": c.D * c.M1 / (2 * (c.excess * c.M1 + c.G * c.M2)), "always_above": c.d / 2}


@sign_condition.proof
def _(formula):
    """K is a positive factor times eta_K - rate_o; signs of the factor and of eta_K - d/2"""
    c = PLAN.symbols()
    claimed = formula(c)
    turning, above = claimed["turning_point"], claimed["always_above"]
    target, other = phase_one.output_step(c)
    step = [uniform_attention_gradient(c, inside, target, other)["alpha"] for inside in (False, True)]
    weighted = c.excess * c.M1 + c.G * c.M2
    factor = 8 * c.d / (c.k * c.D) * (target - other) * weighted / c.D  # times rate_a
    gap = factor * (turning - c.rate_o)
    yield identity("logit gap / rate_a = factor (eta_K - rate_o)", step[0] - step[1], gap, PLAN)
    yield identity("beta_S - beta_o = 4 rate_o G / (d - k)", target - other, 4 * c.rate_o * c.G / c.D, PLAN)
    yield positive("beta_S > beta_o", 4 * c.rate_o * c.G / c.D, PLAN)
    yield from excess_steps()
    yield from drive_steps(c)
    excess = sympy.Symbol("q-kappa", nonnegative=True)
    G, M2, more = sympy.symbols("G M2 M1-M2", positive=True)
    yield positive("(q - kappa) M1 + G M2 > 0 for q >= kappa, M1 > M2 > 0", excess * (M2 + more) + G * M2)

    room = c.d * c.G * (c.M1 - c.M2) / (2 * weighted)
    yield identity("eta_K - d/2 = d G (M1 - M2) / (2 [(q - kappa) M1 + G M2])", turning - above, room, PLAN)
    least = c.d * G * more / (2 * (excess * (M2 + more) + G * M2))
    yield positive("eta_K > d/2", least, PLAN)
    yield identity("beta_S at rate d/2 is 2", target.subs(c.rate_o, c.d / 2), 2, PLAN)


@sign_condition.instance
def _(formula, case):
    """two exact steps over all words at rates around the turning point"""
    claimed, k = formula(case), int(case.k)
    turning = claimed["turning_point"]
    yield holds("eta_K > d/2", turning > claimed["always_above"] == case.d / 2, case, turning_point=turning)
    for rate in (case.rate_o, *(turning * Fraction(n, 100) for n in (99, 100, 101))):
        place = case.having(rate_o=rate)
        beta = [phase_one.exact_output_step(place)]
        d_alpha = exact_gradient(population(case), constant(case.d, 1), beta)[0][0]
        gap = max(d_alpha[k:]) - max(d_alpha[:k])  # min_S alpha - min_o alpha, per unit of rate_a
        agree = (gap > 0) == (rate < turning) and (gap == 0) == (rate == turning)
        yield holds("attention moves towards S iff rate_o < eta_K", agree, place, turning_point=turning, gap=gap)


@sign_condition.simulation
def _(formula):
    """what the product reports, on a grid"""
    for place in GRID:
        case = PLAN.check(**place, rate_o=1.0)
        ratio = bounds.rate_o_turning_point(case.d, case.k, case.length) / formula(case)["turning_point"]
        yield close("analytic.bounds.rate_o_turning_point", ratio, 1, ROUNDING, case)


@sign_condition.simulation
def _(formula):
    """O(1x) then A(1x) with the kernel on all words, at rates 1e-6 on both sides of the turning point"""
    for d, k, length, words in populations():
        turning = float(formula(PLAN.check(d=d, k=k, length=length, rate_o=1.0))["turning_point"])
        for rate, towards in ((turning * (1 - NEAR), True), (turning * (1 + NEAR), False)):
            zero = np.zeros(d)
            alpha, _ = kernel_step(words, *kernel_step(words, zero, zero, rate_o=rate), rate_a=1.0)
            case = PLAN.check(d=d, k=k, length=length, rate_o=rate)
            yield agrees(f"attention moves towards S is {towards}", alpha[0] > alpha[-1], towards, case)


@sign_condition.simulation
def _(formula):
    """sampled runs O(1x)->A(1x) below and above the turning point: t-test of the sign over seeds"""
    for d, k, length in SAMPLES:
        turning = float(formula(PLAN.check(d=d, k=k, length=length, rate_o=1.0))["turning_point"])
        for rate, sign in ((0.5 * turning, 1), (1.5 * turning, -1)):
            case = PLAN.check(d=d, k=k, length=length, rate_o=rate)
            alpha = runs("O(1x)->A(1x)", d, k, length, rate_o=rate, rate_a=1.0).alpha.values[:, 2, 0]
            target, other = by_class(alpha, k)
            yield on_side("sign of the logit gap", sign * (target - other), case)


@sign_condition.enclosure
def _(formula):
    """eta_K > d/2 on boxes of (d, p) for geometric lengths, one and two targets"""
    for k, low in ((1, 3), (2, 4)):
        text = f"eta_K/(d/2) - 1 > 0 for d in [{low}, 12], p in [1/5, 1/2], k = {k}"

        def margin(c, k=k):
            claimed = formula(c.having(k=k, length=BallGeometric(c.p), rate_o=1))
            return claimed["turning_point"] / claimed["always_above"] - 1

        yield enclosed(text, margin, {"d": (low, 12), "p": (Fraction(1, 5), Fraction(1, 2))})
    with precision():
        claimed = formula(Case(d=ball(10), k=1, length=BallLaw({2: 1}), rate_o=1))
    # sharp, and below the window's end 25: words of two letters of ten
    yield contained("eta_K of words of two letters, d = 10", claimed["turning_point"], 9, 9.1)


sign_condition.mutant("q + k/d", turning_point=lambda c, v: c.D * c.M1 / 2 / ((c.q + c.kappa) * c.M1 + c.G * c.M2))
sign_condition.mutant("factor 2", turning_point=lambda c, v: 2 * v)
sign_condition.mutant("q for 1 - q", turning_point=lambda c, v: c.D * c.M1 / (2 * (c.excess * c.M1 + c.q * c.M2)))
sign_condition.mutant("M1 and M2 swapped", turning_point=lambda c, v: c.D * c.M2 / (2 * (c.excess * c.M2 + c.G * c.M1)))
sign_condition.mutant("direction: below d/2", turning_point=lambda c, v: c.d**2 / (4 * v))
sign_condition.mutant("the window's end", turning_point=lambda c, v: c.D / (4 * c.q))
sign_condition.mutant("always above d", always_above=lambda c, v: c.d)


ATTENTION = Domain(d=Whole(2), k=Whole(1, below="d"), ratio=Real(0), eps=Real(0, 1))


@claim(
    "phase2.attention_gap",
    statement="With scores constant on S and off S and e^g the ratio of the two attention weights, the attention gap "
    "(mass of S minus the largest other weight, ideal 1) is (k e^g - 1) / (k e^g + d - k). It is at least 1 - eps if "
    "and only if e^g >= (1 + (1 - eps)(d - k)) / (k eps). For any scores whose logit gap min_S alpha - max_o alpha is "
    "g, with k e^g >= 1, the attention gap is at least that value.",
    latex=r"\sum_S\gamma-\max_{j\notin S}\gamma_j=\frac{ke^g-1}{ke^g+d-k}\ \ge 1-\varepsilon\iff "
    r"e^g\ge\frac{1+(1-\varepsilon)(d-k)}{k\varepsilon}",
    domain=ATTENTION,
    source="softmax over the alphabet",
)
def attention_gap(c):
    """``c.ratio`` = e^g."""
    return {
        "attention_gap": (c.k * c.ratio - 1) / (c.k * c.ratio + c.D),
        "threshold": (1 + (1 - c.eps) * c.D) / (c.k * c.eps),
    }


@attention_gap.proof
def _(formula):
    """softmax of two values; signs for the threshold and for unequal scores"""
    c = ATTENTION.symbols()
    claimed = formula(c)
    other = sympy.Symbol("w", positive=True)  # e^alpha of each letter off S
    total = c.k * c.ratio * other + c.D * other
    gap = (c.k * c.ratio * other - other) / total
    yield identity("softmax with e^alpha = w e^g on S and w off S", gap, claimed["attention_gap"])

    margin = c.k * c.eps / (c.k * c.ratio + c.D)
    step = margin * (c.ratio - claimed["threshold"])
    yield identity("gap - (1 - eps) = k eps / (k e^g + d - k) (e^g - threshold)", gap - (1 - c.eps), step)
    yield positive("the factor is positive", margin, ATTENTION)

    # any scores, in units of the largest weight off S: the mass of S is k e^g + more, the mass off S is d - k - less
    least, more, less, rest = sympy.symbols("ke^g-1 more less rest", nonnegative=True)
    mass, others = 1 + least + more, 1 + rest  # others = d - k - less >= 1
    bound = claimed["attention_gap"].subs(c.ratio, (1 + least) / c.k).subs(c.d, c.k + 1 + rest + less)
    more_gap = (mass - 1) / (mass + others) - bound
    yield positive("gap of any scores - value at the logit gap >= 0", more_gap, strict=False)


@attention_gap.instance
def _(formula, case):
    """exact softmax over the alphabet, at and around the threshold, and with unequal weights"""
    d, k, claimed = int(case.d), int(case.k), formula(case)

    def gap(weights):
        return (sum(weights[:k]) - max(weights[k:])) / sum(weights)

    yield exact("attention gap", gap([case.ratio] * k + [Fraction(1)] * (d - k)), claimed["attention_gap"], case)
    yield holds("the threshold is positive", claimed["threshold"] > 0, case)
    for n in (99, 100, 101):
        ratio = claimed["threshold"] * Fraction(n, 100)
        reached = gap([ratio] * k + [Fraction(1)] * (d - k)) >= 1 - case.eps
        yield holds("gap >= 1 - eps iff e^g >= threshold", reached == (n >= 100), case.having(ratio=ratio))
    if k * case.ratio >= 1:
        uneven = [case.ratio * (1 + Fraction(j, 2)) for j in range(k)] + [Fraction(1, 1 + j) for j in range(d - k)]
        yield holds("gap of unequal weights", gap(uneven) >= claimed["attention_gap"], case.having(weights=uneven))


@attention_gap.simulation
def _(formula):
    """what the product reports, on a grid"""
    for d, k in ((2, 1), (50, 1), (50, 2), (1000, 4)):
        for logit in (-2.0, 0.0, 1.5, 20.0):
            case = ATTENTION.check(d=d, k=k, ratio=math.exp(logit), eps=1 / (2 + logit**2))
            claimed = formula(case)
            threshold = bounds.logit_gap_for_attention(d, k, case.eps)
            yield close("attention_gap", bounds.attention_gap(d, k, logit), claimed["attention_gap"], ROUNDING, case)
            yield close("logit_gap_for_attention", np.exp(threshold) / claimed["threshold"], 1, ROUNDING, case)


@attention_gap.simulation
def _(formula):
    """recorded gaps of O(1x)->A(1x) runs: equal on all words, at least the value at their logit gap on samples"""
    for d, k, _, words in populations():
        zero = np.zeros(d)
        alpha, beta = kernel_step(words, *kernel_step(words, zero, zero, rate_o=0.3 * d), rate_a=40.0)
        gaps = LetterTask("or", any_of(k), d).gaps(alpha[None], beta[None])
        case = ATTENTION.check(d=d, k=k, ratio=float(np.exp(gaps["logit_gap"][0])), eps=0.5)
        yield close("attention gap", gaps["attention_gap"], formula(case)["attention_gap"], ROUNDING, case)
    for d, k, length in SAMPLES:
        run = runs("O(1x)->A(1x)", d, k, length, rate_o=0.35 * d, rate_a=20.0)
        for attention, logit in zip(run.attention_gap.values[:, -1], run.logit_gap.values[:, -1], strict=True):
            case = ATTENTION.check(d=d, k=k, ratio=float(np.exp(logit)), eps=0.5)
            yield below("value at the logit gap", formula(case)["attention_gap"], attention, case)


@attention_gap.simulation
def _(formula):
    """predicted, population and sampled values on the grid; the bound at unequal scores of sampled words"""
    for place in places():
        path, steps = place.path(), place.steps()
        g, samples = path.logit_gap[2], steps["alpha_target"] - steps["alpha_other"]

        def gap_at(g, place=place):
            case = ATTENTION.check(d=place.d, k=place.k, ratio=float(np.exp(g)), eps=0.1)
            return formula(case)["attention_gap"]

        # the gap is curved in g: without its second-order term the mean over seeds is unbiased to third order
        step = 1e-3
        curvature = (gap_at(g + step) - 2 * gap_at(g) + gap_at(g - step)) / step**2
        flat = np.array([gap_at(x) for x in samples]) - curvature / 2 * (samples - g) ** 2
        yield compared("attention gap after A(1x)", place, gap_at(g), path.attention_gap[2], flat)
        alpha = kernel_step(place.words()[0], np.zeros(place.d), place.parameters_after(1)[1], rate_a=place.rate_a)[0]
        weights = np.exp(alpha - alpha.max())
        found = (weights[: place.k].sum() - weights[place.k :].max()) / weights.sum()
        bound = gap_at(alpha[: place.k].min() - alpha[place.k :].max())
        yield bounded("attention gap of unequal scores", place, found, bound, upper=False)


@attention_gap.enclosure
def _(formula):
    """the threshold on boxes of (d, eps): reached 10% above it, not reached 10% below"""
    for k in (1, 3):
        for factor, sign, text in ((Fraction(11, 10), 1, "above"), (Fraction(10, 11), -1, "below")):

            def margin(c, k=k, factor=factor, sign=sign):
                threshold = formula(c.having(k=k, ratio=1))["threshold"]
                gap = formula(c.having(k=k, ratio=threshold * ball(factor)))["attention_gap"]
                return sign * (gap - (1 - c.eps)) / c.eps

            box = {"d": (4, 10), "eps": (Fraction(1, 5), Fraction(1, 2))}
            yield enclosed(f"10% {text} the threshold, d in [4, 10], eps in [1/5, 1/2], k = {k}", margin, box)


attention_gap.mutant("sign of the 1", attention_gap=lambda c, v: (c.k * c.ratio + 1) / (c.k * c.ratio + c.D))
attention_gap.mutant("one letter of S", attention_gap=lambda c, v: (c.ratio - 1) / (c.k * c.ratio + c.D))
attention_gap.mutant("d for d - k", attention_gap=lambda c, v: (c.k * c.ratio - 1) / (c.k * c.ratio + c.d))
attention_gap.mutant("threshold with eps for 1 - eps", threshold=lambda c, v: (1 + c.eps * c.D) / (c.k * c.eps))
attention_gap.mutant("threshold with sign flipped", threshold=lambda c, v: ((1 - c.eps) * c.D - 1) / (c.k * c.eps))
attention_gap.mutant("threshold without k", threshold=lambda c, v: v * c.k)
