"""Random init: the first output step, and what one attention step makes of random output weights."""

import math
import random
from fractions import Fraction

import numpy as np
import sympy
from scipy import special

from analytic.failures import attention_first_probability, attention_first_ratio
from analytic.languages import any_of
from analytic.one_step import linear_attention_gradient
from analytic.random_init import output_step_covariance, window_failure_bound, window_probability

from . import phase_one
from .claims import claim
from .decide import ROUNDING, close, exact, holds, identity, no_oftener, positive, proportion, sampled
from .domain import LETTERS, TWO_LETTERS, Case, Domain, Length, Real, Whole
from .enclosures import BallGeometric, ball, contained, enclosed, precision
from .letters import constant, exact_gradient, population
from .simulator import SAMPLES, kernel_step, populations
from .uniform_attention import uniform_attention

DRAWS = 20_000
QUADRATURE = 1e-6  # of the 200-point rule that the probability is compared with
INIT = LETTERS.having(rate_o=Real(0), sigma=Real(0))


@claim(
    "random_init.output_step",
    statement="From alpha = 0 and any beta_0 one output step gives beta_1 = beta + (1 - A) beta_0 - B mean(beta_0), "
    "beta the step from zero init, A = 2 rate_o E1/d, B = 2 rate_o (1 - E1)/d. If beta_0 ~ N(0, sigma^2 I) then beta_1 "
    "is Gaussian with variances sigma^2 [(1-A)^2 - 2 (1-A) B/d + B^2/d] and covariances "
    "sigma^2 [-2 (1-A) B/d + B^2/d], and beta_S > 1 > beta_o fails with probability at most "
    "k Phi(-(beta_S-1)/sigma_1) + (d-k) Phi(-(1-beta_o)/sigma_1), sigma_1^2 the variance.",
    latex=r"\beta_1=\beta^\infty+(1-A)\beta_0-B\,\bar\beta_0\mathbf 1,\quad "
    r"\sigma_1^2=\sigma^2\Big[(1-A)^2-\frac{2(1-A)B}d+\frac{B^2}d\Big]",
    domain=INIT,
    source="gradients.uniform_attention is affine in beta for the output layer",
)
def output_step(c):
    A, B = 2 * c.rate_o * c.E1 / c.d, 2 * c.rate_o * (1 - c.E1) / c.d
    common = B**2 / c.d - 2 * (1 - A) * B / c.d
    return {
        "own": 1 - A,
        "mean": -B,
        "variance": c.sigma**2 * ((1 - A) ** 2 + common),
        "covariance": c.sigma**2 * common,
    }


@output_step.proof
def _(formula):
    """the exact gradient at alpha = 0; second moments of a linear map of independent Gaussians"""
    c = INIT.symbols()
    claimed, own, mean = formula(c), *sympy.symbols("b_j mean", real=True)
    for inside, start in zip((True, False), phase_one.output_step(c), strict=True):
        place = {"own": own, "total": own, "mean_own": mean, "mean_total": mean, "product": 0, "mean_others": 0}
        slope = uniform_attention(c.having(inside=inside, **place))["beta"]
        affine = start + claimed["own"] * own + claimed["mean"] * mean
        yield identity(f"beta_1 of a letter {'in' if inside else 'off'} S", own - c.rate_o * slope, affine, INIT)
    # u = own e_j + mean 1/d has u.u = own^2 + 2 own mean/d + mean^2/d, and the same without own^2 for two letters
    x, m = claimed["own"], claimed["mean"]
    others = (c.d - 1) * (m / c.d) ** 2
    yield identity("variance", c.sigma**2 * ((x + m / c.d) ** 2 + others), claimed["variance"])
    two = 2 * (x + m / c.d) * m / c.d + (c.d - 2) * (m / c.d) ** 2
    yield identity("covariance", c.sigma**2 * two, claimed["covariance"])


@output_step.instance
def _(formula, case):
    """exact output step over all words from random rational output weights"""
    rng, d, k = random.Random(str(case)), int(case.d), int(case.k)
    beta = [[Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in range(d)]]
    claimed, start = formula(case), phase_one.update(case)
    _, slopes = exact_gradient(population(case), constant(d, 1), beta)
    for j, (b, slope) in enumerate(zip(beta[0], slopes[0], strict=True)):
        from_zero = start["beta_target" if j < k else "beta_other"]
        expected = from_zero + claimed["own"] * b + claimed["mean"] * sum(beta[0]) / d
        yield exact(f"beta_{j + 1}", b - case.rate_o * slope, expected, case.having(beta=beta))
    rows = [[claimed["own"] * (i == j) + claimed["mean"] / d for i in range(d)] for j in range(2)]
    for name, (u, v) in {"variance": (rows[0], rows[0]), "covariance": rows}.items():
        product = sum(a * b for a, b in zip(u, v, strict=True))
        yield exact(name, case.sigma**2 * product, claimed[name], case)


@output_step.simulation
def _(formula):
    """one kernel step on all words from Gaussian weights; what the product reports"""
    rng = np.random.default_rng(11)
    for d, k, length, words in populations():
        case = INIT.check(d=d, k=k, length=length, rate_o=0.35 * d, sigma=0.1)
        claimed, start = formula(case), phase_one.update(case)
        from_zero = np.where(np.arange(d) < k, start["beta_target"], start["beta_other"])
        beta = case.sigma * rng.standard_normal(d)
        _, after = kernel_step(words, np.zeros(d), beta, rate_o=case.rate_o)
        expected = from_zero + claimed["own"] * beta + claimed["mean"] * beta.mean()
        yield close("beta_1", after, expected, ROUNDING, case)
        reported = output_step_covariance(d, k, case.length, case.rate_o, case.sigma)
        yield close("analytic covariance", reported, [claimed["variance"], claimed["covariance"]], ROUNDING, case)


@output_step.simulation
def _(formula):
    """Gaussian draws: variances, and how often the window fails against its probability and its union bound"""
    rng = np.random.default_rng(12)
    for d, k, length in SAMPLES:
        case = INIT.check(d=d, k=k, length=length, rate_o=0.3 * d, sigma=0.15)
        claimed, start = formula(case), phase_one.update(case)
        initial = case.sigma * rng.standard_normal((DRAWS, d))
        after = claimed["own"] * initial + claimed["mean"] * initial.mean(axis=1, keepdims=True)
        yield sampled("variance", after[:, 0] ** 2, claimed["variance"], case)
        yield sampled("covariance", after[:, 0] * after[:, 1], claimed["covariance"], case)
        target, other = start["beta_target"] + after[:, :k], start["beta_other"] + after[:, k:]
        fails = int(np.sum((target.min(axis=1) <= 1) | (other.max(axis=1) >= 1)))
        place = (d, k, case.length, case.rate_o, case.sigma)
        yield proportion("the window fails", fails, DRAWS, 1 - window_probability(*place), case)
        sd = math.sqrt(claimed["variance"])
        target_fails, other_fails = special.ndtr([(1 - start["beta_target"]) / sd, (start["beta_other"] - 1) / sd])
        bound = k * target_fails + case.D * other_fails
        yield close("analytic union bound", window_failure_bound(*place), min(bound, 1.0), ROUNDING, case)
        yield no_oftener("failures within the union bound", fails, DRAWS, bound, case)


@output_step.enclosure
def _(formula):
    """P(window) on boxes of (d, rate_o/d) by the union bound, one target, balanced geometric lengths, sigma = 1/10"""
    hundredths = ((2, 31, 34), (10, 30, 36))
    for most, low, high in hundredths:

        def margin(c, most=most):
            case = Case(
                d=c.d, k=1, length=BallGeometric(1 / (c.d - 1)), rate_o=c.rate * c.d, sigma=ball(Fraction(1, 10))
            )
            sd, start = (2 * formula(case)["variance"]).sqrt(), phase_one.update.formula(case)
            target, other = ((x / sd).erfc() / 2 for x in (start["beta_target"] - 1, 1 - start["beta_other"]))
            return 1 - (target + (c.d - 1) * other) / ball(Fraction(most, 100))

        text = f"P(window fails) <= {most}% for d in [45, 55], rate_o/d in [{low}%, {high}%]"
        yield enclosed(text, margin, {"d": (45, 55), "rate": (Fraction(low, 100), Fraction(high, 100))})


output_step.mutant("sign of the mean", mean=lambda c, v: -v)
output_step.mutant("sign of A", own=lambda c, v: 2 - v)
output_step.mutant("E1 for 1 - E1", mean=lambda c, v: -2 * c.rate_o * c.E1 / c.d)
output_step.mutant("loss with 1/2", own=lambda c, v: (1 + v) / 2)
output_step.mutant("independent letters", covariance=lambda c, v: 0)
output_step.mutant("variance without the mean", variance=lambda c, v: c.sigma**2 * (1 - 2 * c.rate_o * c.E1 / c.d) ** 2)


# ---------------------------------------------------------------- attention first


FIRST = Domain(d=Whole(2), length=Length()).where(TWO_LETTERS, lambda case: case.length.mean_inverse < 1)


@claim(
    "failure.attention_first",
    statement="Occurrence, alpha = 0, one attention step: to first order in beta, alpha_s - alpha_j is a positive "
    "multiple of rho beta_s - beta_j - (rho - 1) mean_o(beta), 1/rho = 1 - (d/(d-1)) (G - G1)/(1 - E1). So from small "
    "beta ~ N(0, sigma^2 I) the target gets the largest score iff rho beta_s > max_o (beta_j + (rho - 1) mean_o), with "
    "probability Int phi(t) Phi(rho' t)^(d-1) dt, rho'^2 = (d rho^2 - 1)/(d - 1): attention first is luck.",
    latex=r"\Pr=\int\varphi(t)\,\Phi(\rho't)^{d-1}dt,\quad \rho'^2=\frac{d\rho^2-1}{d-1},\quad "
    r"\frac1\rho=1-\frac d{d-1}\frac{G-G_1}{1-E_1}",
    domain=FIRST,
    source="gradients.uniform_attention, the part linear in beta",
)
def attention_first(c):
    """rho, rho'^2, and the factor of alpha_s - alpha_j per unit of rate_a."""
    inverse = 1 - c.d / (c.d - 1) * (c.G - c.G1) / (1 - c.E1)
    return {
        "ratio": 1 / inverse,
        "slope_square": (c.d / inverse**2 - 1) / (c.d - 1),
        "factor": 4 * (1 - c.E1) * inverse / c.d,
    }


@attention_first.proof
def _(formula):
    """linear part of the exact gradient; variances and covariances of the others' side"""
    c = FIRST.symbols().having(k=sympy.Integer(1))
    claimed, scale = formula(c), sympy.Symbol("t")
    own, other, rest = sympy.symbols("beta_s beta_j mean_o", real=True)
    mean = (own + (c.d - 1) * rest) / c.d
    step = {}
    for name, weight, inside in (("s", own, True), ("j", other, False)):
        # beta scaled by t: the derivative at t = 0 is the linear part; mean(B b) is quadratic
        place = {"own": scale * weight, "total": scale * weight, "mean_own": scale * mean, "mean_total": scale * mean}
        place |= {"product": scale**2 * sympy.Symbol("square"), "mean_others": scale * rest, "inside": inside}
        step[name] = -sympy.diff(uniform_attention(c.having(**place))["alpha"], scale).subs(scale, 0)
    side = claimed["ratio"] * own - other - (claimed["ratio"] - 1) * rest
    yield identity("alpha_s - alpha_j", step["s"] - step["j"], claimed["factor"] * side, FIRST)
    # (G - G1) / (1 - E1) is a mean of z^m weighted by 1 - 1/m >= 0: at most z^2 < z = (d-1)/d, so that 1/rho > 0
    d, m = 2 + sympy.Symbol("d'", nonnegative=True), 2 + sympy.Symbol("m'", nonnegative=True)
    z, power = (d - 1) / d, sympy.Symbol("z^m", positive=True)
    yield positive("z^m (1 - 1/m) falls behind z^2 (1 - 1/m): z^m - z^(m+1) > 0", power * (1 - z) * (1 - 1 / m))
    yield positive("1/rho >= 1 - (d/(d-1)) z^2 > 0", 1 - d / (d - 1) * z**2)

    # the others' side X_j = beta_j + (rho-1) mean_o: covariance c0 for j != i, variance 1 + c0 (sigma = 1)
    rho, n = claimed["ratio"], c.d - 1
    common = 2 * (rho - 1) / n + (rho - 1) ** 2 / n
    yield identity("covariance (rho^2 - 1)/(d - 1)", common, (rho**2 - 1) / n, FIRST)
    # X_j = Z_j + sqrt(c0) W: rho beta_s - sqrt(c0) W has variance rho^2 + c0 = rho'^2
    yield identity("rho'^2 = rho^2 + (rho^2 - 1)/(d - 1)", rho**2 + common, claimed["slope_square"], FIRST)


@attention_first.instance
def _(formula, case):
    """exact attention steps over all words from random weights and from their negatives: the odd part is linear"""
    rng, d = random.Random(str(case)), int(case.d)
    case = case.having(k=Fraction(1))
    beta = [Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in range(d)]
    words, ones, claimed = population(case), constant(d, 1), formula(case)
    steps = [exact_gradient(words, ones, [[sign * b for b in beta]])[0][0] for sign in (1, -1)]
    linear = [(minus - plus) / 2 for plus, minus in zip(*steps, strict=True)]  # of alpha, per unit of rate_a
    rho, rest = claimed["ratio"], sum(beta[1:]) / (d - 1)
    for j in range(1, d):
        side = rho * beta[0] - beta[j] - (rho - 1) * rest
        yield exact("alpha_s - alpha_j", linear[0] - linear[j], claimed["factor"] * side, case.having(beta=beta))
    covariance = (rho**2 - 1) / (d - 1)
    yield exact("rho'^2", rho**2 + covariance, claimed["slope_square"], case)
    yield holds("the factor is positive", claimed["factor"] > 0, case)


@attention_first.simulation
def _(formula):
    """what the product reports; how often the target wins in Gaussian draws through the product's linear gradient"""
    rng = np.random.default_rng(13)
    for d, length in ((5, "uniform:1:8"), (12, "poisson:6"), (50, "geometric:0.0204081632653")):
        case = FIRST.check(d=d, length=length).having(k=1)
        claimed = formula(case)
        ratio = attention_first_ratio(d, case.length)
        yield close("analytic.failures.attention_first_ratio", ratio, claimed["ratio"], ROUNDING, case)
        slope = math.sqrt(claimed["slope_square"])
        t, weights = np.polynomial.hermite_e.hermegauss(200)
        probability = weights @ special.ndtr(slope * t) ** (d - 1) / math.sqrt(2 * math.pi)
        reported = float(attention_first_probability(d, case.length))
        yield close("analytic.failures.attention_first_probability", reported, probability, QUADRATURE, case)
        beta = rng.standard_normal((DRAWS, d))
        scores = -linear_attention_gradient(any_of(1), d, case.length, beta)
        wins = int(np.sum(scores.argmax(axis=1) == 0))
        yield proportion("the target gets the largest score", wins, DRAWS, reported, case)
        wins = int(np.sum(wins_by_ratio(beta, claimed["ratio"])))
        yield proportion("the target wins through rho", wins, DRAWS, reported, case)


def wins_by_ratio(beta, rho):
    """rho beta_s > max over the others of beta_j + (rho - 1) mean_o, by row."""
    others = beta[:, 1:]
    return rho * beta[:, 0] > others.max(axis=1) + (rho - 1) * others.mean(axis=1)


@attention_first.enclosure
def _(formula):
    """the probability by a rigorous integral, balanced geometric lengths: luck, and ever less likely"""
    for d, low, high in ((50, "0.13", "0.131"), (200, "0.086", "0.087"), (1000, "0.054", "0.055")):
        with precision() as flint:
            case = Case(d=ball(d), k=1, length=BallGeometric(ball(Fraction(1, d - 1))))
            root = formula(case)["slope_square"].sqrt()

            def density(t, _, root=root, d=d):
                Phi = (-root * t / flint.acb(2).sqrt()).erfc() / 2
                return (-t * t / 2).exp() / (2 * flint.acb.pi()).sqrt() * Phi ** (d - 1)

            whole = flint.acb.integral(density, -12, 12).real + ball(0, Fraction(1, 10**30))  # P(|t| > 12) < 1e-30
        yield contained(f"the probability at d = {d}", whole, Fraction(low), Fraction(high))


attention_first.mutant("sign of the label term", ratio=lambda c, v: v / (2 * v - 1))
attention_first.mutant("rho = 1/q", ratio=lambda c, v: 1 / (1 - c.G))
attention_first.mutant("G1 forgotten", ratio=lambda c, v: 1 / (1 - c.d / (c.d - 1) * c.G / (1 - c.E1)))
attention_first.mutant("rho for rho'", slope_square=lambda c, v: attention_first.formula(c)["ratio"] ** 2)
attention_first.mutant("d for d - 1", slope_square=lambda c, v: v * (c.d - 1) / c.d)
attention_first.mutant("sign of the factor", factor=lambda c, v: -v)
