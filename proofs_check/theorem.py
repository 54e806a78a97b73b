"""The three-phase theorem, assembled: rates and steps for given accuracies, and a run that confirms them."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import sympy

from analytic import bounds
from analytic.failures import output_only_loss
from analytic.gradients.letter import evaluate
from analytic.phase_three import output_phase
from analytic.population import population_path

from . import certificates, descent, failures, phase_one, phase_three, phase_two
from .claims import claim
from .decide import ROUNDING, agrees, below, close, exact, holds, identity, positive
from .domain import LONGER, Case, Real, Whole
from .letters import constant, exact_gradient, exact_score, population
from .simulator import kernel_step, populations

ACCURACY = LONGER.having(eps=Real(0, 1), delta=Real(0, 1), tau=Real(0))
THEOREM = LONGER.having(eps=Real(0, 1), covered=Whole(1))
ABOVE = 1e-9  # how far above its thresholds e^g is chosen, relative, so that rounding cannot miss them


@claim(
    "theorem.three_phases",
    statement="OR of k < d letters, any length law with some words of two letters or more, zero init, infinite data; "
    "eps, delta in (0, 1), tau > 0, M_delta the smallest M with P(m > M) <= delta. Take "
    "rate_o = 1/(2 (1/d + (q-k/d)/(d-k))), rate_a such that e^g >= (1 + (1-eps)(d-k))/(k eps) and e^g >= M_delta, and "
    "rate 1 for T = ceil(ln((L_2 - L*)/tau) / (-2 ln rho)) steps of phase 3. Then O(1x) ends with beta_S > 1 > beta_o, "
    "equally far from 1; A(1x) ends with attention gap >= 1 - eps, every word up to length M* = ceil(e^g) >= M_delta "
    "right, and test error <= delta; O(Tx) ends with loss <= L*(g) + tau, L*(g) <= 24 (d/k)^2 e^(-2g). Attention only, "
    "output only and A(1x)->O keep losses above positive constants, and no finite model decides every length.",
    latex=r"\text{gap}\ge1-\varepsilon,\quad\Pr(yf\le0)\le\Pr(m>M^*)\le\delta,\quad "
    r"L\le L^*(g)+\tau\le24\Big(\frac dk\Big)^2e^{-2g}+\tau",
    domain=THEOREM,
    source="phase1.window, phase2.*, certificate.*, phase3.*, failure.*",
)
def three_phases(c):
    """The rate of phase 1, and the thresholds of e^g for the attention gap and for ``c.covered`` = M_delta."""
    return {
        "rate_o": 1 / (2 * (1 / c.d + c.excess / c.D)),
        "attention_threshold": (1 + (1 - c.eps) * c.D) / (c.k * c.eps),
        "length_threshold": c.covered,
    }


LEMMAS = (
    phase_one.window,
    phase_two.update,
    phase_two.sign_condition,
    phase_two.attention_gap,
    certificates.length,
    certificates.test_error,
    phase_three.minimum,
    phase_three.minimum_bounds,
    phase_three.exponential_bound,
    phase_three.hessian,
    descent.descent,
    failures.attention_only_zero_init,
    failures.output_only,
    certificates.every_model_fails,
)


@three_phases.proof
def _(formula):
    """the chosen rates satisfy the hypotheses of the lemmas; the lemmas, decided again"""
    c = THEOREM.symbols()
    claimed = formula(c)
    rate = claimed["rate_o"]
    ends = phase_one.window(c)
    mean = (1 / ends["low"] + 1 / ends["high"]) / 2
    yield identity("1/rate_o is half way between 1/low and 1/high of the window", 1 / rate, mean, THEOREM)
    below_turning = 2 * c.excess / c.D
    yield identity("1/rate_o - 1/(d/2) = 2 (q - kappa)/(d - k)", 1 / rate - 2 / c.d, below_turning, THEOREM)
    surplus = sympy.Symbol("q-kappa", nonnegative=True)
    yield positive("so rate_o <= d/2 < eta_K: K > 0", 2 * surplus / c.D, THEOREM, strict=False)
    yield identity("eta_K > d/2", phase_two.sign_condition(c)["always_above"], c.d / 2, THEOREM)
    target, other = phase_one.output_step(c.having(rate_o=rate))
    yield identity("beta_S - 1 = 1 - beta_o, so that R = e^g", target - 1, 1 - other, THEOREM)
    threshold = phase_two.attention_gap(c.having(ratio=sympy.Integer(1)))["threshold"]
    yield identity("threshold of the attention gap", claimed["attention_threshold"], threshold, THEOREM)
    extra = sympy.Symbol("extra", nonnegative=True)
    safe = claimed["length_threshold"] + extra - c.covered  # M* = ceil(R) >= R = e^g
    yield positive("e^g >= length threshold: M* >= M_delta", safe, THEOREM, strict=False)
    for lemma in LEMMAS:
        for evidence in lemma.evidence:
            if evidence.kind == "proved":
                yield from evidence.find(lemma.formula)


@three_phases.instance
def _(formula, case):
    """exact steps over all words, e^g at its thresholds: direction, gap, words up to M_delta, test error"""
    d, k, claimed = int(case.d), int(case.k), formula(case)
    beta = [phase_one.exact_output_step(case.having(rate_o=claimed["rate_o"]))]
    words = population(case)
    yield holds("beta_S > 1 > beta_o", min(beta[0][:k]) > 1 > max(beta[0][k:]), case, beta=beta)
    d_alpha = exact_gradient(words, constant(d, 1), beta)[0][0]
    yield holds("the attention step moves towards S", max(d_alpha[:k]) < min(d_alpha[k:]), case)
    ratio = max(claimed["attention_threshold"], claimed["length_threshold"])
    weights = [ratio] * k + [Fraction(1)] * (d - k)
    gap = (sum(weights[:k]) - max(weights[k:])) / sum(weights)
    yield holds("attention gap >= 1 - eps", gap >= 1 - case.eps, case, gap=gap, **claimed)
    error = Fraction(0)
    for probability, counts, y in words:
        right = y * exact_score(counts, [weights], beta) > 0
        error += probability * (not right)
        if sum(counts) <= case.covered:
            yield holds("words up to M_delta are right", right, case.having(counts=counts), **claimed)
    yield holds("test error <= P(m > M_delta)", error <= case.length.tail(case.covered), case, error=error)
    worst = (1, *[0] * (d - 2), int(case.covered) - 1) if d > 1 else (1,)
    if case.covered > 1:
        accepted = exact_score(worst, [weights], beta) > 0
        yield holds("s o^(M_delta - 1) is accepted", accepted, case.having(counts=worst), **claimed)
    yield exact("beta_S - 1 = 1 - beta_o", beta[0][0] - 1, 1 - beta[0][-1], case)


@dataclass(frozen=True)
class ThreePhases:
    """Rates and steps of O(1x)->A(1x)->O(Tx) and what the theorem promises for them; see `three_phase_plan`."""

    d: int
    k: int
    length: object
    eps: float
    delta: float
    tau: float
    rate_o: float
    rate_a: float
    rate_phase3: float
    steps_phase3: int
    logit_gap: float
    certified_length: int
    loss: float
    output_only_loss: float

    @property
    def plan(self):
        """The plan as text, for `sim.run_plan` with rate_o = (rate_o, rate_phase3)."""
        return f"O(1x)->A(1x)->O({self.steps_phase3}x)"

    def confirm(self):
        """Run the plan on infinite data: {what: (promised, observed)} with observed at most / at least promised."""
        last = ("O", self.steps_phase3, self.rate_phase3, 0.0)
        phases = [("O", 1, self.rate_o, 0.0), ("A", 1, 0.0, self.rate_a), last]
        path = population_path(self.d, self.k, self.length, phases)
        length = bounds.certified_length(path.logit_gap[2], path.beta_target[2], path.beta_other[2])
        return {
            "window": (1.0, (float(path.beta_target[1]), float(path.beta_other[1]))),
            "attention_gap": (1 - self.eps, float(path.attention_gap[2])),
            "certified_length": (self.certified_length, float(length)),
            "test_error": (self.delta, float(1 - path.accuracy[2])),
            "loss": (self.loss, float(path.loss[-1])),
        }


def three_phase_plan(d, k=1, length="geometric:0.05", eps=0.05, delta=1e-3, tau=1e-3):
    """Rates and steps that satisfy the theorem for given accuracies.

    Parameters
    ----------
    d, k : alphabet size and number of targets, 1 <= k < d
    length : a length law or its text; some words must have two letters or more
    eps : attention gap at least 1 - eps after phase 2
    delta : test error at most delta after phase 2
    tau : loss at most tau above the least one, L*(g), after phase 3

    Returns
    -------
    ThreePhases; its ``confirm()`` runs the plan on infinite data

    Raises
    ------
    InputError : an argument is outside the theorem's domain

    Examples
    --------
    >>> plan = three_phase_plan(50, 1, "geometric:0.02", eps=0.01, delta=1e-3, tau=1e-3)
    >>> plan.plan, round(plan.rate_o, 3)
    ('O(1x)->A(1x)->O(150x)', 16.723)
    >>> promised, observed = plan.confirm()["test_error"]
    >>> observed <= promised
    True
    """
    c = ACCURACY.check(d=d, k=k, length=length, eps=eps, delta=delta, tau=tau)
    values = three_phases(c.having(covered=c.length.quantile_length(delta)))
    ratio = max(values["attention_threshold"], values["length_threshold"]) * (1 + ABOVE)
    rate_o, g = float(values["rate_o"]), math.log(ratio)
    beta = {name: float(b) for name, b in phase_one.update(c.having(rate_o=rate_o)).items()}
    phase = output_phase(d, k, c.length, g)
    return ThreePhases(
        **vars(c),
        rate_o=rate_o,
        rate_a=float(bounds.rate_a_for_logit_gap(d, k, c.length, rate_o, g)),
        rate_phase3=1.0,
        steps_phase3=int(phase.steps_to(tau, **beta, rate=1.0)),
        logit_gap=g,
        certified_length=math.ceil(ratio * (1 - ABOVE)),
        loss=float(phase.minimum) + tau,
        output_only_loss=float(output_only_loss(d, k, c.length)),
    )


@three_phases.simulation
def _(formula):
    """the plan on infinite data, for several problems and accuracies"""
    for d, k, length in CONFIRMED:
        for eps, delta, tau in ((0.1, 0.05, 0.01), (0.01, 1e-3, 1e-3), (0.5, 1e-6, 1e-4)):
            case = Case(d=d, k=k, length=length, eps=eps, delta=delta, tau=tau)
            plan = three_phase_plan(d, k, length, eps, delta, tau)
            # a variant of the claim chooses other rates; what it promises stays
            chosen = formula(plan_case(plan))
            g = math.log(max(chosen["attention_threshold"], chosen["length_threshold"]) * (1 + ABOVE))
            rate_a = float(bounds.rate_a_for_logit_gap(d, k, plan.length, chosen["rate_o"], g))
            seen = replace(plan, rate_o=float(chosen["rate_o"]), rate_a=rate_a).confirm()
            _, (target, other) = seen["window"]
            yield agrees("beta_S > 1 > beta_o", target > 1 > other, True, case)
            yield close("equal margins", target - 1, 1 - other, ROUNDING, case)
            for name in ("certified_length", "attention_gap"):
                yield below(f"{name} promised <= observed", *seen[name], case)
            for name in ("test_error", "loss"):
                yield below(f"{name} observed <= promised", *reversed(seen[name]), case)


CONFIRMED = (
    (5, 1, "geometric:0.3"),
    (20, 3, "uniform:1:12"),
    (50, 1, "geometric:0.0204081632653"),
    (50, 2, "poisson:20"),
    (30, 1, "fixed:2"),
    (40, 2, "fixed:7"),
)


def plan_case(plan):
    """The exact-theorem case of a plan: M_delta in place of delta."""
    covered = plan.length.quantile_length(plan.delta)
    return Case(d=plan.d, k=plan.k, length=plan.length, eps=plan.eps, covered=covered)


@three_phases.simulation
def _(formula):
    """the plan with the kernel on all words: accuracy 1 up to M_delta = the longest word"""
    for d, k, length, words in populations():
        case = THEOREM.check(d=d, k=k, length=length, eps=0.2, covered=int(words.counts().sum(axis=1).max()))
        chosen, zero = formula(case), np.zeros(d)
        ratio = max(chosen["attention_threshold"], chosen["length_threshold"]) * (1 + ABOVE)
        rate_o = float(chosen["rate_o"])
        rate_a = float(bounds.rate_a_for_logit_gap(d, k, case.length, rate_o, math.log(ratio)))
        _, beta = kernel_step(words, zero, zero, rate_o=rate_o)
        alpha, _ = kernel_step(words, zero, beta, rate_a=rate_a)
        yield close("accuracy after phase 2", evaluate(words, alpha, beta)[1], 1.0, ROUNDING, case)


three_phases.mutant("sign of q - kappa", rate_o=lambda c, v: 1 / (2 * (1 / c.d - c.excess / c.D)))
three_phases.mutant("rate d/4", rate_o=lambda c, v: c.d / 4)
three_phases.mutant("rate d/2", rate_o=lambda c, v: c.d / 2)
three_phases.mutant("eps for 1 - eps", attention_threshold=lambda c, v: (1 + c.eps * c.D) / (c.k * c.eps))
three_phases.mutant("attention threshold halved", attention_threshold=lambda c, v: v / 2)
three_phases.mutant("length threshold is ln M", length_threshold=lambda c, v: 1)
three_phases.mutant("length threshold M/2", length_threshold=lambda c, v: v / 2)
