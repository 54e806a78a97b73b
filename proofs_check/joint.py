"""Training both layers at once from zero init: three scalars, and why attention lags the output layer."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import sympy
from sympy.polys.fields import field
from sympy.polys.rings import ring

from analytic.gradients.letter import descend
from analytic.population import flow_taylor, population_gradient, population_path

from .claims import claim
from .decide import ROUNDING, agrees, close, exact, holds, identity, positive
from .domain import LETTERS, LONGER, Case, Real
from .gradients import letter
from .letters import Jet, count_moment, exact_gradient, population, share_moment
from .phase_three import by_targets
from .simulator import SAMPLES, populations, runs

SHORT, SERIES_LEFT = 0.01, 1e-6  # a time, and what t^5 and the n^-4 of the extrapolation may leave there, relative
SYMMETRIC = LETTERS.having(ratio=Real(0), beta_target=Real(), beta_other=Real())


@claim(
    "joint.invariant_subspace",
    statement="Where the scores and the output weights are constant on S and off S the gradient is too: descent from "
    "zero init stays there under any plan. With A = n e^g / (n e^g + m - n), Delta = beta_S - beta_o, r = f - y: "
    "dL/dbeta_S = (2/k) E[r A], dL/dbeta_o = (2/(d-k)) E[r (1-A)], dL/dalpha_S = (2/k) Delta E[r A (1-A)] and "
    "dL/dalpha_o = -(2/(d-k)) Delta E[r A (1-A)].",
    latex=r"\partial_{\beta_S}L=\tfrac2k\mathbb E[rA],\ \partial_{\beta_o}L=\tfrac2{d-k}\mathbb E[r(1-A)],\ "
    r"\partial_{\alpha_S}L=\tfrac{2\Delta}k\mathbb E[rA(1-A)]=-\tfrac{d-k}k\partial_{\alpha_o}L",
    domain=SYMMETRIC,
    source="gradients.letter; letters of a class are exchangeable",
)
def invariant_subspace(c):
    """``c.mass`` = E[r A], ``c.rest`` = E[r (1 - A)], ``c.mixed`` = E[r A (1 - A)]."""
    delta = c.beta_target - c.beta_other
    return {
        "beta_target": 2 * c.mass / c.k,
        "beta_other": 2 * c.rest / c.D,
        "alpha_target": 2 * delta * c.mixed / c.k,
        "alpha_other": -2 * delta * c.mixed / c.D,
    }


@invariant_subspace.proof
def _(formula):
    """sums of the letters' slopes over a class, word by word; letters of a class share them equally"""
    c, (A, r) = SYMMETRIC.symbols(), sympy.symbols("A r", real=True)
    claimed = formula(c.having(mass=r * A, rest=r * (1 - A), mixed=r * A * (1 - A)))
    value = c.beta_target * A + c.beta_other * (1 - A)
    for name, share, weight, size in (("target", A, c.beta_target, c.k), ("other", 1 - A, c.beta_other, c.D)):
        # sum over the class of a_j = share of the class; each of its letters has the same mean
        slopes = letter(Case(residual=r, share=share, weight=weight, value=value))
        for layer, slope in slopes.items():
            yield identity(f"dL/d{layer} of a {name} letter", slope / size, claimed[f"{layer}_{name}"])
    n, s = sympy.symbols("n s", positive=True)
    share = count_moment({"j": 1, "rest": s - 1}, {"j": 1}, n)
    yield identity("E[n_j | n letters of the class] = n / size", share, n / s)


def exact_sums(case):
    """E[r A], E[r (1 - A)] and E[r A (1 - A)] of a symmetric exact case, from all words."""
    sums, u = [Fraction(0)] * 3, case.ratio
    for probability, n, r, y in by_targets(case):
        A = n * u / (n * u + r)
        weighted = probability * (case.beta_target * A + case.beta_other * (1 - A) - 1 - y)
        sums = [s + weighted * part for s, part in zip(sums, (A, 1 - A, A * (1 - A)), strict=True)]
    return dict(zip(("mass", "rest", "mixed"), sums, strict=True))


@invariant_subspace.instance
def _(formula, case):
    """exact gradients of all letters over all words"""
    d, k = int(case.d), int(case.k)
    weights = [[case.ratio] * k + [Fraction(1)] * (d - k)]
    beta = [[case.beta_target] * k + [case.beta_other] * (d - k)]
    claimed = formula(case.having(**exact_sums(case)))
    for layer, slopes in zip(("alpha", "beta"), exact_gradient(population(case), weights, beta), strict=True):
        for j, slope in enumerate(slopes[0]):
            yield exact(f"dL/d{layer}_{j + 1}", slope, claimed[f"{layer}_{'target' if j < k else 'other'}"], case)


@invariant_subspace.simulation
def _(formula):
    """joint descent on all words stays constant on the classes and follows the three scalars of the product"""
    for d, k, length, words in populations():
        law = LETTERS.check(d=d, k=k, length=length).length
        path = descend(words, np.zeros(d), np.zeros(d), 4.0, 0.7, 80)
        scalars = population_path(d, k, law, [("AO", 80, 0.7, 4.0)])
        inside, place = np.arange(d) < k, Case(d=d, k=k, length=length)
        expected = np.where(inside, scalars.beta_target[:, None], scalars.beta_other[:, None])
        yield close("output weights along the run", path.beta, expected, ROUNDING, place)
        gap = path.alpha[:, 0] - path.alpha[:, -1]
        yield close("logit gap along the run", gap, scalars.logit_gap, ROUNDING, place, abs(scalars.logit_gap[-1]))
        yield close("loss along the run", path.loss, scalars.loss, ROUNDING, place)
        for t in (5, 80):
            state = {"beta_target": scalars.beta_target[t], "beta_other": scalars.beta_other[t]}
            case = Case(d=d, k=k, length=law, ratio=math.exp(scalars.logit_gap[t]), **state)
            claimed = formula(case.having(**float_sums(words, case)))
            _, *slopes = population_gradient(d, k, law, *state.values(), scalars.logit_gap[t])
            names = ("beta_target", "beta_other", "alpha_target", "alpha_other")
            yield close("analytic population_gradient", slopes, [claimed[name] for name in names], ROUNDING, case)


def float_sums(words, case):
    """E[r A], E[r (1 - A)] and E[r A (1 - A)] over the words of a data set."""
    counts = words.counts()
    n, m = counts[:, : case.k].sum(axis=1), counts.sum(axis=1)
    A = n * case.ratio / (n * case.ratio + m - n)
    r = case.beta_target * A + case.beta_other * (1 - A) - 1 - words.labels
    return {"mass": np.mean(r * A), "rest": np.mean(r * (1 - A)), "mixed": np.mean(r * A * (1 - A))}


invariant_subspace.mutant("sign off S", alpha_other=lambda c, v: -v)
invariant_subspace.mutant("loss with 1/2", beta_target=lambda c, v: v / 2, beta_other=lambda c, v: v / 2)
invariant_subspace.mutant("k for d - k", beta_other=lambda c, v: v * c.D / c.k)
invariant_subspace.mutant("per class, not per letter", alpha_target=lambda c, v: v * c.k * c.d)
invariant_subspace.mutant("beta_S for Delta", alpha_target=lambda c, v: 2 * c.beta_target * c.mixed / c.k)
invariant_subspace.mutant("mass and rest swapped", beta_target=lambda c, v: 2 * c.rest / c.k)


# ---------------------------------------------------------------- the lag


FLOW = LONGER.having(rate_o=Real(0), rate_a=Real(0))


@claim(
    "joint.lag",
    statement="Along gradient flow from zero init the output gap is linear and the logit gap quadratic in t at first: "
    "Delta = 4 rate_o (1 - q)/(d - k) t + O(t^2), g = 8 rate_o rate_a (1 - q) M1 d / (k (d - k)^2) t^2 + O(t^3), "
    "both leading coefficients positive when some words have two letters or more. The coefficients up to t^4 are those "
    "of the recursion in X_i = E[x^i], M1, M2 and M3.",
    latex=r"\Delta(t)=\frac{4\eta_O(1-q)}{d-k}t+O(t^2),\qquad g(t)=\frac{8\eta_O\eta_A(1-q)M_1d}{k(d-k)^2}t^2+O(t^3)",
    domain=FLOW,
    source="joint.invariant_subspace; dA/dg = A (1 - A)",
)
def lag(c):
    """Taylor coefficients of beta_S, beta_o (t^1 to t^4) and g (t^2 to t^4)."""
    a, b, e = c.rate_o / c.k, c.rate_o / c.D, c.rate_a * c.d / (c.k * c.D)
    M1, M2, M3, X2 = c.M1, c.M2, c.M3, c.X2
    S1, B1 = 4 * c.rate_o / c.d, 4 * b * (c.q - c.kappa)
    D1 = S1 - B1
    g2 = 2 * e * D1 * M1
    S2, B2 = -a * (B1 * c.kappa + D1 * X2), -b * (B1 * (1 - c.kappa) + D1 * M1)
    D2 = S2 - B2
    g3 = 2 * e * (2 * D2 * M1 - D1 * (B1 * M1 + D1 * M2)) / 3
    S3 = -2 * a * (B2 * c.kappa + D2 * X2 - 2 * M1 * g2) / 3
    B3 = -2 * b * (B2 * (1 - c.kappa) + D2 * M1 + 2 * M1 * g2) / 3
    D3 = S3 - B3
    mixed = B3 * c.kappa + D3 * X2 + 2 * D1 * g2 * M2 + B1 * g2 * M1 - 2 * g3 * M1
    S4 = -a * mixed / 2
    B4 = -b * (B3 + D3 * c.kappa + D1 * g2 * M1 - mixed) / 2
    g4 = e * (2 * D3 * M1 - D2 * (B1 * M1 + D1 * M2) - D1 * (B2 * M1 + D2 * M2 - 2 * M3 * g2)) / 2
    return {
        "beta_target": [S1, S2, S3, S4],
        "beta_other": [B1, B2, B3, B4],
        "logit_gap": [0, g2, g3, g4],
    }


def flow_series(c, moments, order):
    """Coefficients of t^0..t^order of beta_S, beta_o and g along the flow, in the numbers of the case.

    ``moments`` are q = P(+) and E[x^i], i >= 1, elements of a field. A(t) starts at x and obeys A' = A (1 - A) g'. On
    positive words r = beta_o + Delta A - 2, on negative ones A = 0 and r = beta_o.
    """
    zero = moments[0] - moments[0]
    _, x = ring("x", c.k.field.to_domain())

    def mean(polynomial):  # over positive words
        return sum((w * moments[power] for (power,), w in polynomial.terms()), zero)

    def product(a, b, n):
        return sum(a[i] * b[n - i] for i in range(n + 1))

    target, other, gap, mass, mixed, residual, push = [zero], [zero], [zero], [x], [], [], []
    for n in range(order):
        if n:
            mass.append(sum(mixed[i] * (n - i) * gap[n - i] for i in range(n)) * (1 / (zero + n)))
        mixed.append(mass[n] - product(mass, mass, n))
        delta = [s - o for s, o in zip(target, other, strict=True)]
        residual.append(product(mass, delta, n) + other[n] - (2 if n == 0 else 0))
        on_target = mean(product(residual, mass, n))
        rest = mean(residual[n]) - on_target + (1 - moments[0]) * other[n]
        push.append(mean(product(residual, mixed, n)))
        # the product Delta E[r A (1-A)] of two series in place of that of two numbers
        state = c.having(beta_target=1, beta_other=0, mass=on_target, rest=rest, mixed=product(delta, push, n))
        slopes = invariant_subspace(state)
        target.append(-c.rate_o * slopes["beta_target"] / (n + 1))
        other.append(-c.rate_o * slopes["beta_other"] / (n + 1))
        gap.append(-c.rate_a * (slopes["alpha_target"] - slopes["alpha_other"]) / (n + 1))
    return {"beta_target": target, "beta_other": other, "logit_gap": gap}


@lag.proof
def _(formula):
    """the flow as power series in t at every share x, averaged with E[x^i]; signs of the leading coefficients"""
    c = FLOW.symbols()
    shares = {"targets": c.k, "others": c.D}
    for i, name in enumerate(("X1", "X2", "X3"), 1):
        yield identity(f"{name} = E[x^{i}]", share_moment(c, shares, {"targets": i}), getattr(c, name), FLOW)
    X1, X2, X3 = sympy.symbols("X1 X2 X3")
    moments = {"M1": X1 - X2, "M2": X2 - X3, "M3": X1 - 3 * X2 + 2 * X3}
    for name, moment in moments.items():
        yield identity(f"{name} from X1, X2, X3", getattr(c, name), moment.subs({X1: c.X1, X2: c.X2, X3: c.X3}), FLOW)

    # the series for any q and moments of x, in a field of rational functions, where equal elements are identical
    _, k, rate_o, rate_a, q, *X = field("k rate_o rate_a q X1:9", sympy.QQ)
    free = {"M1": X[0] - X[1], "M2": X[1] - X[2], "M3": X[0] - 3 * X[1] + 2 * X[2], "X2": X[1], "q": q, "kappa": X[0]}
    case = Case(k=k, d=k / X[0], rate_o=rate_o, rate_a=rate_a, **free)
    claimed = formula(case)
    for name, series in flow_series(case, (q, *X), 4).items():
        for n in range(1, 5):
            difference = series[n] - claimed[name][n - 1]
            yield identity(f"{name}: coefficient of t^{n}", difference.as_expr(), 0)
    claimed = formula(c)
    yield positive("Delta'(0) > 0", 4 * c.rate_o * c.G / c.D, FLOW)
    yield identity("Delta'(0)", claimed["beta_target"][0] - claimed["beta_other"][0], 4 * c.rate_o * c.G / c.D, FLOW)
    spread = sympy.Symbol("M1", positive=True)  # M1 > 0 when some words have two letters or more: moments.target_share
    leading = 8 * c.rate_o * c.rate_a * c.G * c.d / (c.k * c.D**2)
    yield identity("g''(0)/2 as stated", claimed["logit_gap"][1], leading * c.M1, FLOW)
    yield positive("g''(0) > 0", leading * spread, FLOW)


@lag.instance
def _(formula, case):
    """power series of the flow of all letters' parameters, exact, from all words"""
    d, k, order, claimed = int(case.d), int(case.k), 4, formula(case)
    words = population(case)
    alpha, beta = [[[Fraction(0)] * (order + 1) for _ in range(d)] for _ in range(2)]
    for n in range(order):
        slopes = flow_slopes(words, [Jet(*series) for series in alpha], [Jet(*series) for series in beta])
        for layer, series, rate in (("alpha", alpha, case.rate_a), ("beta", beta, case.rate_o)):
            for j in range(d):
                series[j][n + 1] = -rate * slopes[layer][j].coefficients[n] / (n + 1)
    for j in range(d):
        name = "beta_target" if j < k else "beta_other"
        yield exact(f"series of beta_{j + 1}", beta[j][1:], claimed[name], case)
    gap = [target - other for target, other in zip(alpha[0][1:], alpha[-1][1:], strict=True)]
    yield exact("series of the logit gap", gap, claimed["logit_gap"], case)
    yield holds("leading coefficients are positive", beta[0][1] > beta[-1][1] and gap[1] > 0, case)


def flow_slopes(words, alpha, beta):
    """dL/dalpha and dL/dbeta of all letters as series in t, from the gradient of each word."""
    weights, slopes = [series.exp() for series in alpha], {"alpha": [0] * len(alpha), "beta": [0] * len(alpha)}
    for probability, counts, y in words:
        parts = [n * w for n, w in zip(counts, weights, strict=True)]
        shares = [part / sum(parts) for part in parts]
        value = sum(share * b for share, b in zip(shares, beta, strict=True))
        for j, share in enumerate(shares):
            word = letter(Case(residual=value - 1 - y, share=share, weight=beta[j], value=value))
            for layer in slopes:
                slopes[layer][j] = probability * word[layer] + slopes[layer][j]
    return slopes


@lag.simulation
def _(formula):
    """series the product reports; joint descent of the kernel on all words at small steps, extrapolated to the flow"""
    for d, k, length, words in populations():
        case = FLOW.check(d=d, k=k, length=length, rate_o=1.0, rate_a=1.5)
        claimed = formula(case)
        reported = flow_taylor(d, k, case.length, 4, case.rate_o, case.rate_a)
        for name, series in zip(claimed, reported, strict=True):
            yield close(f"analytic flow_taylor of {name}", series[1:], claimed[name], ROUNDING, case)
        # n steps of size t/n differ from the flow by c_1/n + c_2/n^2 + ...: three Richardson levels remove n^-1..n^-3
        t = SHORT
        levels = [descend(words, np.zeros(d), np.zeros(d), 1.5 * t / n, t / n, n) for n in (40, 80, 160, 320)]
        gaps = [path.alpha[-1, 0] - path.alpha[-1, -1] for path in levels]
        weights = [path.beta[-1, 0] for path in levels]
        for name, values in (("logit_gap", gaps), ("beta_target", weights)):
            for level in (1, 2, 3):
                values = [(2**level * fine - coarse) / (2**level - 1) for coarse, fine in pairwise(values)]
            series = sum(float(coefficient) * t**n for n, coefficient in enumerate(claimed[name], 1))
            yield close(f"{name} at t = {t}", values[0], series, SERIES_LEFT, case, scale=abs(series))


@lag.simulation
def _(formula):
    """sampled joint runs with one target: the output gap passes 0.1 before the attention gap does, in every run"""
    for d, k, length in (sample for sample in SAMPLES if sample[1] == 1):
        run = runs("joint", d, k, length, rate_o=0.5, rate_a=0.5, steps=40 * d)
        first = [np.argmax(gap.values > 0.1, axis=1) for gap in (run.output_gap, run.attention_gap)]
        place = Case(d=d, k=k, length=length)
        yield agrees("attention gap passes 0.1 at some step", first[1] > 0, True, place)
        yield agrees("output gap passes 0.1 earlier", first[0] < first[1], True, place)


lag.mutant("sign of g2", logit_gap=lambda c, v: [v[0], -v[1], *v[2:]])
lag.mutant("g linear in t", logit_gap=lambda c, v: [v[1], *v[1:]])
lag.mutant("q for 1 - q", beta_target=lambda c, v: [4 * c.rate_o * c.q / c.d, *v[1:]])
lag.mutant("factor 2 of g2", logit_gap=lambda c, v: [v[0], v[1] / 2, *v[2:]])
lag.mutant("M2 for M1 in g2", logit_gap=lambda c, v: [v[0], v[1] * c.M2 / c.M1, *v[2:]])
lag.mutant("sign of g3", logit_gap=lambda c, v: [*v[:2], -v[2], v[3]])
lag.mutant("g4 halved", logit_gap=lambda c, v: [*v[:3], v[3] / 2])
lag.mutant("beta_S at t^4", beta_target=lambda c, v: [*v[:3], 2 * v[3]])
