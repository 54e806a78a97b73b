"""Finite samples: how far the first output step can be from its infinite-data value, with stated probability."""

import math

import numpy as np
import sympy

from analytic import finite_sample

from . import phase_one
from .claims import claim
from .decide import ROUNDING, below, close, exact, identity, no_oftener, positive, sampled
from .domain import LETTERS, Real, Whole
from .letters import share_moment
from .moments import mean_over_words
from .simulator import SAMPLES, fresh_words, runs

SAMPLE = LETTERS.having(words=Whole(1), log_term=Real(0))
DATA_SETS = range(400)


@claim(
    "finite_sample.output_deviation",
    statement="After one output step from zero init on N independent words, with probability at least 1 - delta all "
    "letters at once have |beta_j - its infinite-data value| <= 4 rate_o t_j with "
    "t_j = R_j l/(3N) + sqrt((R_j l/(3N))^2 + 2 v_j l/N), l = ln(2d/delta), where 1_+ p_j has variance "
    "v_S = E1 (d-1)/d^2 on S and v_o = (1-E1)/d^2 + E1/d - (G-G1)/(d-k)^2 - G1/(d-k) - c_o^2 elsewhere, means 1/d and "
    "c_o = (q-k/d)/(d-k), and R_j = 1 - mean.",
    latex=r"|\hat\beta_j-\beta_j|\le4\eta_O\Big[\frac{R_j\ell}{3N}+\sqrt{\Big(\frac{R_j\ell}{3N}\Big)^2"
    r"+\frac{2v_j\ell}N}\Big],\quad \ell=\ln\frac{2d}\delta",
    domain=SAMPLE,
    source="Bernstein's inequality for 1_+ p_j in [0, 1], and a union over letters and sides",
)
def output_deviation(c):
    """Variances, means and reaches; (t - step)^2 as ``under_root`` with step = R l/(3N), for S and for the others."""
    other = c.excess / c.D
    variance_other = (1 - c.E1) / c.d**2 + c.E1 / c.d - (c.G - c.G1) / c.D**2 - c.G1 / c.D - other**2
    values = {
        "target": (1 / c.d, c.E1 * (c.d - 1) / c.d**2),
        "other": (other, variance_other),
    }
    return {
        f"{what}_{name}": value
        for name, (mean, variance) in values.items()
        for what, value in {
            "mean": mean,
            "variance": variance,
            "step": (1 - mean) * c.log_term / (3 * c.words),
            "under_root": ((1 - mean) * c.log_term / (3 * c.words)) ** 2 + 2 * variance * c.log_term / c.words,
        }.items()
    }


@output_deviation.proof
def _(formula):
    """exact variances from the letter moments; Bernstein's inequality from the exponential series"""
    c = SAMPLE.symbols()
    claimed = formula(c)
    for name, sizes in (
        ("target", {"target": 1, "targets": c.k - 1, "others": c.D}),
        ("other", {"targets": c.k, "other": 1, "others": c.D - 1}),
    ):
        mean, square = (
            share_moment(c, sizes, {name: power}) - share_moment(c, sizes, {name: power}, negative=True)
            for power in (1, 2)
        )
        yield identity(f"E[1_+ p_j], {name}", mean, claimed[f"mean_{name}"], SAMPLE)
        yield identity(f"Var(1_+ p_j), {name}", square - mean**2, claimed[f"variance_{name}"], SAMPLE)

    # E e^{lX} <= 1 + v (l^2/2)(1 + lR/3 + (lR/3)^2 + ...) for a centred X <= R of variance v, as 2 * 3^(n-2) <= n!
    n, x, v, R, t = sympy.symbols("n x v R t", positive=True)
    yield identity("2 * 3^(n-2) = n! at n = 2", 2, math.factorial(2))
    yield positive("n! grows faster: n + 1 >= 3 for n >= 2", (2 + n) + 1 - 3, strict=False)
    yield identity("x^2/2 (1 + s), s = (x/3)(1 + s), s = (x/3)/(1 - x/3)", 1 + (x / 3) / (1 - x / 3), 1 / (1 - x / 3))
    best = t / (v + R * t / 3)
    exponent = -best * t + best**2 * v / (2 * (1 - best * R / 3))
    yield identity("Chernoff's exponent at its best factor", exponent, -(t**2) / (2 * (v + R * t / 3)))
    yield positive("the factor is below 3/R", 3 / R - best)
    root = sympy.Symbol("root")
    for name in ("target", "other"):
        deviation, R = claimed[f"step_{name}"] + root, 1 - claimed[f"mean_{name}"]
        gap = c.words * deviation**2 - 2 * c.log_term * (claimed[f"variance_{name}"] + R * deviation / 3)
        solved = sympy.expand(gap).subs(root**2, claimed[f"under_root_{name}"])
        yield identity(f"N t^2 = 2 l (v + R t/3), {name}", solved, 0, SAMPLE)
    # the lower side reaches as far as the mean, which is at most 1 - mean
    yield positive("mean 1/d <= 1/2", 1 - 2 * claimed["mean_target"], SAMPLE, strict=False)
    yield identity("mean off S: 1/d - G/(d-k) < 1/d", claimed["mean_other"], 1 / c.d - c.G / c.D, SAMPLE)
    delta = sympy.Symbol("delta", positive=True)
    yield identity("2d events of probability e^-l", 2 * c.d * sympy.exp(-sympy.log(2 * c.d / delta)), delta)


@output_deviation.instance
def _(formula, case):
    """exact means and variances over all words; Bernstein's defining equation"""
    k, claimed = int(case.k), formula(case)
    for name, j in (("target", 0), ("other", k)):
        mean, square = (
            mean_over_words(case, lambda shares, y, j=j, power=power: shares[j] ** power * (y > 0)) for power in (1, 2)
        )
        yield exact(f"mean, {name}", mean, claimed[f"mean_{name}"], case)
        yield exact(f"variance, {name}", square - mean**2, claimed[f"variance_{name}"], case)
        N, log_term, R = case.words, case.log_term, 1 - mean
        step = R * log_term / (3 * N)
        yield exact(f"step, {name}", step, claimed[f"step_{name}"], case)
        under_root = step**2 + 2 * (square - mean**2) * log_term / N
        yield exact(f"under the root, {name}", under_root, claimed[f"under_root_{name}"], case)


def deviations(claimed, rate_o):
    """4 rate_o t for a target and for another letter."""
    return [4 * rate_o * (claimed[f"step_{n}"] + math.sqrt(claimed[f"under_root_{n}"])) for n in ("target", "other")]


@output_deviation.simulation
def _(formula):
    """what the product reports; variances of sampled words, t-test over seeds"""
    for d, k, length in SAMPLES:
        delta, words = 0.05, 500
        case = SAMPLE.check(d=d, k=k, length=length, words=words, log_term=math.log(2 * d / delta))
        claimed = formula(case)
        reported = finite_sample.output_deviations(d, k, case.length, 2.0, words, delta)
        yield close("analytic output_deviations", reported, deviations(claimed, 2.0), ROUNDING, case)
        for name, j in (("target", 0), ("other", k)):
            squares = []
            for data in fresh_words(d, k, length):
                counts = data.counts()
                share = counts[:, j] / counts.sum(axis=1) * (data.labels > 0)
                squares.append(np.mean((share - claimed[f"mean_{name}"]) ** 2))
            yield sampled(f"variance, {name}", squares, claimed[f"variance_{name}"], case)


@output_deviation.simulation
def _(formula):
    """coverage over 400 data sets of the simulator: violations at most as often as claimed, and how loose"""
    for (d, k, length), words in zip(SAMPLES, (300, 1000, 300, 3000), strict=True):
        delta, rate_o = 0.05, 0.3 * d
        case = SAMPLE.check(d=d, k=k, length=length, words=words, log_term=math.log(2 * d / delta))
        bounds = deviations(formula(case), rate_o)
        run = runs("O(1x)", d, k, length, DATA_SETS, rate_o=rate_o, train_words=words, test_words=1)
        exact_step = phase_one.update(case.having(rate_o=rate_o))
        inside = np.arange(d) < k
        expected = np.where(inside, exact_step["beta_target"], exact_step["beta_other"])
        allowed = np.where(inside, *bounds)
        off = np.abs(run.beta.values[:, 1, 0] - expected)
        violations = int(np.sum((off > allowed).any(axis=1)))
        yield no_oftener("violations", violations, len(DATA_SETS), delta, case)
        # the 1 - delta quantile of the largest ratio says how loose the bound is
        quantile = np.quantile((off / allowed).max(axis=1), 1 - delta)
        yield below("95% quantile of deviation / bound", quantile, 1.0, case)


output_deviation.mutant("sign of G1", variance_other=lambda c, v: v + 2 * c.G1 / c.D)
output_deviation.mutant("variance without mean^2", variance_other=lambda c, v: v + (c.excess / c.D) ** 2)
output_deviation.mutant("labels ignored", variance_other=lambda c, v: c.E1 * (c.d - 1) / c.d**2)
output_deviation.mutant("variance of a letter, not of a share", variance_target=lambda c, v: (c.d - 1) / c.d**2)
output_deviation.mutant("mean q/(d - k)", mean_other=lambda c, v: c.q / c.D)
output_deviation.mutant("R l/N", step_target=lambda c, v: 3 * v)
output_deviation.mutant("factor 2 of v l/N", under_root_other=lambda c, v: (v + c.log_term**2 / (9 * c.words**2)) / 2)
