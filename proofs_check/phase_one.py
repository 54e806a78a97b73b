"""Phase 1: one output step from zero init."""

import math
from fractions import Fraction

import numpy as np
import sympy

from analytic import bounds, one_step

from .claims import claim
from .comparison import compared, places
from .decide import ROUNDING, agrees, close, exact, holds, identity, positive, sampled
from .domain import LETTERS, ExactLaw, Real
from .gradients import uniform_attention_gradient
from .letters import constant, exact_gradient, population
from .moments import excess_steps
from .simulator import GRID, SAMPLES, SEEDS, by_class, kernel_step, populations, runs

PHASE_ONE = LETTERS.having(rate_o=Real(0))
EDGE = 1e-9  # how close to an end of the window the simulator is tried: far above rounding
MANY_WORDS = 30_000  # enough for Bernstein's bound to exclude a wrong side in all sampled runs


def output_step(c):
    """beta on S and off S after one output step from zero init, for any length law, from the letter moments."""
    return [-c.rate_o * uniform_attention_gradient(c, target, 0, 0)["beta"] for target in (True, False)]


def exact_output_step(case):
    """beta after one output step from zero init, exactly, by series arithmetic over all words."""
    _, d_beta = exact_gradient(population(case), constant(case.d, 1), constant(case.d, 0))
    return [-case.rate_o * slope for slope in d_beta[0]]


@claim(
    "phase1.update",
    statement="One output step from zero init sets beta_j to 4 rate_o / d for target letters and to "
    "4 rate_o (q - k/d) / (d - k) for the others, for every length law.",
    latex=r"\beta_S=\frac{4\eta_O}{d},\qquad \beta_o=\frac{4\eta_O(q-\kappa)}{d-k}",
    domain=PHASE_ONE,
    source="E[1_+ p_j] = 1/d on S, and the shares of a word sum to 1",
)
def update(c):
    return {"beta_target": 4 * c.rate_o / c.d, "beta_other": 4 * c.rate_o * c.excess / c.D}


@update.proof
def _(formula):
    """moments of the letter counts, any d, k and length law"""
    c = PHASE_ONE.symbols()
    claimed, (beta_target, beta_other) = formula(c), output_step(c)
    yield identity("beta_S = -rate_o dL/dbeta_S", beta_target, claimed["beta_target"], PHASE_ONE)
    yield identity("beta_o = -rate_o dL/dbeta_o", beta_other, claimed["beta_other"], PHASE_ONE)


@update.instance
def _(formula, case):
    """exact output step over all words"""
    claimed = formula(case)
    for j, beta in enumerate(exact_output_step(case)):
        yield exact(f"beta_{j + 1}", beta, claimed["beta_target" if j < case.k else "beta_other"], case)


@update.simulation
def _(formula):
    """one kernel step on all words, to rounding"""
    for d, k, length, words in populations():
        for rate in (0.5, 3.0):
            case = PHASE_ONE.check(d=d, k=k, length=length, rate_o=rate)
            _, beta = kernel_step(words, np.zeros(d), np.zeros(d), rate_o=rate)
            claimed = formula(case)
            expected = np.where(np.arange(d) < k, claimed["beta_target"], claimed["beta_other"])
            yield close("beta", beta, expected, ROUNDING, case, scale=rate)


@update.simulation
def _(formula):
    """output step of sampled runs, t-test over seeds"""
    for d, k, length in SAMPLES:
        case = PHASE_ONE.check(d=d, k=k, length=length, rate_o=0.35 * d)
        claimed = formula(case)
        beta = runs("O(1x)", d, k, length, rate_o=case.rate_o).beta.values[:, 1, 0]
        for samples, name in zip(by_class(beta, k), ("beta_target", "beta_other"), strict=True):
            yield sampled(name, samples, claimed[name], case)


@update.simulation
def _(formula):
    """what the product reports, on a grid"""
    for place in GRID:
        case = PHASE_ONE.check(**place, rate_o=0.35 * place["d"])
        reported = one_step.output_update(case.d, case.k, case.length, case.rate_o)
        yield close("analytic.one_step.output_update", reported, list(formula(case).values()), ROUNDING, case)


@update.simulation
def _(formula):
    """predicted, population and sampled values on the grid"""
    for place in places():
        claimed, path = formula(PHASE_ONE.check(**place.parameters, rate_o=place.rate_o)), place.path()
        for name in ("beta_target", "beta_other"):
            yield compared(f"{name} after O(1x)", place, claimed[name], getattr(path, name)[1], place.steps()[name])


update.mutant("sign of beta on S", beta_target=lambda c, v: -v)
update.mutant("sign of beta off S", beta_other=lambda c, v: -v)
update.mutant("factor 2 from a loss with 1/2", beta_target=lambda c, v: v / 2, beta_other=lambda c, v: v / 2)
update.mutant("q + kappa for q - kappa", beta_other=lambda c, v: 4 * c.rate_o * (c.q + c.kappa) / c.D)
update.mutant("kappa forgotten", beta_other=lambda c, v: 4 * c.rate_o * c.q / c.D)
update.mutant("k for d - k", beta_other=lambda c, v: v * c.D / c.k)
update.mutant("k for d", beta_target=lambda c, v: 4 * c.rate_o / c.k * c.q)


@claim(
    "phase1.output_gap",
    statement="After one output step from zero init with rate_o > 0 the output gap (min_S beta - max_o beta) / 2 is "
    "2 rate_o (1 - q) / (d - k), and it is positive for every length law.",
    latex=r"\tfrac12\big(\min_S\beta-\max_{j\notin S}\beta_j\big)=\frac{2\eta_O(1-q)}{d-k}>0",
    domain=PHASE_ONE,
    source="phase1.update",
)
def output_gap(c):
    return {"output_gap": 2 * c.rate_o * (1 - c.q) / c.D}


@output_gap.proof
def _(formula):
    """moments of the letter counts, and the sign of the gap"""
    c = PHASE_ONE.symbols()
    beta_target, beta_other = output_step(c)
    gap = formula(c)["output_gap"]
    yield identity("(beta_S - beta_o) / 2", (beta_target - beta_other) / 2, gap, PHASE_ONE)
    yield positive("the gap is positive, as 1 - q = E[(1 - kappa)^m] > 0", gap, PHASE_ONE)


@output_gap.instance
def _(formula, case):
    """exact output step over all words"""
    beta, k = exact_output_step(case), int(case.k)
    gap = formula(case)["output_gap"]
    yield exact("output gap", (min(beta[:k]) - max(beta[k:])) / 2, gap, case)
    yield holds("the gap is positive", gap > 0, case, gap=gap)


@output_gap.simulation
def _(formula):
    """what the product reports, on a grid"""
    for place in GRID:
        case = PHASE_ONE.check(**place, rate_o=0.35 * place["d"])
        reported = one_step.output_gap(case.d, case.k, case.length, case.rate_o)
        yield close("analytic.one_step.output_gap", reported, formula(case)["output_gap"], ROUNDING, case)


@output_gap.simulation
def _(formula):
    """one kernel step on all words, to rounding"""
    for d, k, length, words in populations():
        case = PHASE_ONE.check(d=d, k=k, length=length, rate_o=2.0)
        _, beta = kernel_step(words, np.zeros(d), np.zeros(d), rate_o=case.rate_o)
        gap = (beta[:k].min() - beta[k:].max()) / 2
        yield close("output gap", gap, formula(case)["output_gap"], ROUNDING, case)


@output_gap.simulation
def _(formula):
    """output step of sampled runs, means over letters, t-test over seeds"""
    for d, k, length in SAMPLES:
        case = PHASE_ONE.check(d=d, k=k, length=length, rate_o=0.35 * d)
        target, other = by_class(runs("O(1x)", d, k, length, rate_o=case.rate_o).beta.values[:, 1, 0], k)
        yield sampled("output gap", (target - other) / 2, formula(case)["output_gap"], case)


@output_gap.simulation
def _(formula):
    """predicted, population and sampled values on the grid"""
    for place in places():
        claimed = formula(PHASE_ONE.check(**place.parameters, rate_o=place.rate_o))["output_gap"]
        steps = place.steps()
        samples = (steps["beta_target"] - steps["beta_other"]) / 2
        yield compared("output gap after O(1x)", place, claimed, place.path().output_gap[1], samples)


output_gap.mutant("sign", output_gap=lambda c, v: -v)
output_gap.mutant("not halved", output_gap=lambda c, v: 2 * v)
output_gap.mutant("q for 1 - q", output_gap=lambda c, v: 2 * c.rate_o * c.q / c.D)
output_gap.mutant("d for d - k", output_gap=lambda c, v: 2 * c.rate_o * (1 - c.q) / c.d)
output_gap.mutant("k for d - k", output_gap=lambda c, v: 2 * c.rate_o * (1 - c.q) / c.k)


@claim(
    "phase1.window",
    statement="After one output step from zero init, beta_S > 1 > beta_o if and only if "
    "d/4 < rate_o < (d - k) / (4 (q - k/d)); the upper end is infinite when q = k/d (all words have one letter), "
    "and the window is never empty.",
    latex=r"\beta_S>1>\beta_o\iff \frac d4<\eta_O<\frac{d-k}{4(q-\kappa)}",
    domain=PHASE_ONE,
    source="phase1.update; q >= kappa because z^m <= z for 0 < z < 1 <= m",
)
def window(c):
    return {"low": c.d / 4, "high": c.D / (4 * c.excess) if c.excess != 0 else math.inf}


@window.proof
def _(formula):
    """each inequality is the sign of rate_o minus an end of the window"""
    c = PHASE_ONE.symbols()
    (beta_target, beta_other), ends = output_step(c), formula(c)
    yield identity("beta_S - 1 = (4/d) (rate_o - low)", beta_target - 1, 4 / c.d * (c.rate_o - ends["low"]), PHASE_ONE)
    yield positive("4/d > 0", 4 / c.d, PHASE_ONE)

    yield from excess_steps()
    room = 4 * (c.q - c.kappa) / c.D * (ends["high"] - c.rate_o)
    yield identity("1 - beta_o = 4 (q - kappa) / (d - k) (high - rate_o)", 1 - beta_other, room, PHASE_ONE)
    one_letter = c.having(length=ExactLaw({1: 1}))
    yield identity("words of one letter: beta_o = 0", output_step(one_letter)[1], 0)
    yield identity("words of one letter: 1/high = 0", 1 / formula(one_letter)["high"], 0)

    width = c.d * (1 - c.q) / (4 * (c.q - c.kappa))
    yield identity("high - low = d (1 - q) / (4 (q - kappa))", ends["high"] - ends["low"], width, PHASE_ONE)
    surplus = sympy.Symbol("s", positive=True)  # q - kappa
    yield positive("high > low when q > kappa", c.d * (1 - c.q) / (4 * surplus), PHASE_ONE)


@window.instance
def _(formula, case):
    """exact output steps over all words, with rates inside, outside and at the ends of the window"""
    ends = formula(case)
    edges = [end for end in ends.values() if end != math.inf]
    for rate in (case.rate_o, *(edge * Fraction(n, 100) for edge in edges for n in (99, 100, 101))):
        place = case.having(rate_o=rate)
        beta, k = exact_output_step(place), int(case.k)
        inside = ends["low"] < rate < ends["high"]
        right = all(b > 1 for b in beta[:k]) and all(b < 1 for b in beta[k:])
        yield holds("inside the window iff beta_S > 1 > beta_o", inside == right, place, window=ends, beta=beta)


@window.simulation
def _(formula):
    """what the product reports, on a grid"""
    for place in GRID:
        case = PHASE_ONE.check(**place, rate_o=1.0)
        ratio = np.divide(bounds.rate_o_window(case.d, case.k, case.length), list(formula(case).values()))
        yield close("analytic.bounds.rate_o_window", ratio, 1, ROUNDING, case)


@window.simulation
def _(formula):
    """one kernel step on all words, at rates 1e-9 inside and outside each end"""
    for d, k, length, words in populations():
        place = {"d": d, "k": k, "length": length}
        ends = formula(PHASE_ONE.check(**place, rate_o=1.0))
        for end, inward in ((ends["low"], 1 + EDGE), (ends["high"], 1 - EDGE)):
            for rate, inside in ((float(end * inward), True), (float(end / inward), False)):
                _, beta = kernel_step(words, np.zeros(d), np.zeros(d), rate_o=rate)
                right = beta[:k].min() > 1 > beta[k:].max()
                yield agrees(f"beta_S > 1 > beta_o is {inside}", right, inside, PHASE_ONE.check(**place, rate_o=rate))


@window.simulation
def _(formula):
    """sampled runs at the middle of the window, and below and above it; Bernstein bounds a false alarm"""
    for d, k, length in SAMPLES:
        place = {"d": d, "k": k, "length": length}
        ends = formula(PHASE_ONE.check(**place, rate_o=1.0))
        middle = 2 / (1 / ends["low"] + 1 / ends["high"])  # equal margins of 1/rate
        for rate, inside in ((middle, True), (ends["low"] / 1.5, False), (1.5 * ends["high"], False)):
            case = PHASE_ONE.check(**place, rate_o=float(rate))
            seeds = SEEDS[:8]
            alarm = len(seeds) * _miss(case, MANY_WORDS)
            run = runs("O(1x)", d, k, length, seeds, rate_o=case.rate_o, train_words=MANY_WORDS, test_words=1)
            beta = run.beta.values[:, 1, 0]
            right = (beta[:, :k].min(axis=1) > 1) & (beta[:, k:].max(axis=1) < 1)
            yield agrees(f"beta_S > 1 > beta_o is {inside} in every run", right, inside, case, alarm)


def _miss(case, words):
    """Bernstein's bound on the probability that a sampled beta lies on another side of 1 than its mean.

    beta_j / (4 rate_o) is a mean of X = 1_+ p_j in [0, 1], whose variance is at most E[X].
    """
    means = ((case.k, 1 / case.d), (case.D, (case.q - case.kappa) / case.D))
    threshold = 1 / (4 * case.rate_o)
    return sum(
        letters * math.exp(-words * (mean - threshold) ** 2 / (2 * (mean + abs(mean - threshold) / 3)))
        for letters, mean in means
    )


window.mutant("ends swapped", low=lambda c, v: window.formula(c)["high"], high=lambda c, v: c.d / 4)
window.mutant("lower end d/2", low=lambda c, v: 2 * v)
window.mutant("lower end k/4", low=lambda c, v: c.k / 4)
window.mutant("upper end 1% further", high=lambda c, v: v * 101 / 100)
window.mutant("upper end with q + kappa", high=lambda c, v: c.D / (4 * (c.q + c.kappa)))
window.mutant("upper end with d for d - k", high=lambda c, v: v * c.d / c.D)
