"""The gradient at uniform attention (scores 0), for any output weights: what a first attention step sees."""

from fractions import Fraction

import numpy as np
import sympy

from analytic.gradients.letter import loss_and_gradient
from analytic.languages import any_of
from analytic.one_step import gradient_at_zero_scores

from .claims import claim
from .decide import ROUNDING, close, exact, identity, sampled
from .domain import LETTERS, Case, Whole
from .gradients import letter
from .letters import constant, exact_gradient, expectation, population
from .simulator import SAMPLES, fresh_words, populations
from .symmetries import random_model

HEADS = LETTERS.having(heads=Whole(1))


@claim(
    "gradients.uniform_attention",
    statement="At scores 0 and any output weights of any number of heads, with b = beta^h, B = sum_h beta^h, bars for "
    "means over letters, bar b_o the mean off S, t2 = E1 - E2, t3 = 1 - 3 E1 + 2 E2: dL/dalpha^h_j = "
    "(2 t2/d) [B_j b_j + b_j bar B - B_j bar b - bar(B b)] + (2 t3/d) bar B (b_j - bar b) - (4/d)(1 - E1)(b_j - bar b) "
    "+ 1[j not in S] (4/(d-k))(G - G1)(b_j - bar b_o) and dL/dbeta^h_j = (2/d)(E1 B_j + (1 - E1) bar B) - 4/d + "
    "1[j not in S] 4 G/(d-k).",
    latex=r"\tfrac12\partial_{\alpha_j}L=\tfrac{t_2}d[B_jb_j+b_j\bar B-B_j\bar b-\overline{Bb}]"
    r"+\tfrac{t_3}d\bar B(b_j-\bar b)-\tfrac2d(1-E_1)(b_j-\bar b)+1_{j\notin S}\tfrac{2(G-G_1)}{d-k}(b_j-\bar b_o)",
    domain=HEADS,
    source="third-order moments of the letter shares",
)
def uniform_attention(c):
    """Letter j of head h: ``c.own`` = b_j, ``c.total`` = B_j, their means, ``c.product`` the mean of B b."""
    t2, t3 = c.E1 - c.E2, 1 - 3 * c.E1 + 2 * c.E2
    mixed = c.total * c.own + c.own * c.mean_total - c.total * c.mean_own - c.product
    centred = c.own - c.mean_own
    alpha = 2 * (t2 * mixed + t3 * c.mean_total * centred - 2 * (1 - c.E1) * centred) / c.d
    beta = 2 * (c.E1 * c.total + (1 - c.E1) * c.mean_total) / c.d - 4 / c.d
    if c.inside:
        return {"alpha": alpha, "beta": beta}
    return {"alpha": alpha + 4 * (c.G - c.G1) * (c.own - c.mean_others) / c.D, "beta": beta + 4 * c.G / c.D}


def means(own, total, sizes, others):
    """The means of the formula, from values by class and class sizes; ``others`` are the classes off S."""

    def mean(values, classes):
        return sum(sizes[c] * values[c] for c in classes) / sum(sizes[c] for c in classes)

    product = {c: own[c] * total[c] for c in sizes}
    return {
        "mean_own": mean(own, sizes),
        "mean_total": mean(total, sizes),
        "product": mean(product, sizes),
        "mean_others": mean(own, others),
    }


@uniform_attention.proof
def _(formula):
    """moments of the letter counts; j, one more target, one more other letter, and the rests of both classes"""
    # the gradient is quadratic in the weights, its coefficients depend only on which letters coincide and lie in S:
    # two single letters beside j and two classes have every such pattern
    c = HEADS.symbols()
    positive = sympy.Symbol("1_+", nonnegative=True)
    for inside in (True, False):
        sizes = {"target": 1, "targets": c.k - 1, "other": 1, "others": c.D - 1}
        sizes["target_j" if inside else "other_j"] = 1
        sizes["targets" if inside else "others"] -= 1
        shares, own, total = (
            {name: sympy.Symbol(f"{letter}_{name}") for name in sizes} for letter in ("p", "b", "B")
        )
        j = "target_j" if inside else "other_j"
        value = sum(own[name] * share for name, share in shares.items())
        residual = sum(total[name] * share for name, share in shares.items()) - 2 * positive
        word = Case(residual=residual, share=shares[j], weight=own[j], value=value)
        others = [name for name in sizes if name.startswith("other")]
        place = c.having(own=own[j], total=total[j], inside=inside, **means(own, total, sizes, others))
        claimed = formula(place)
        for layer, slope in letter(word).items():
            found = expectation(slope, c, sizes, shares, positive)
            yield identity(f"dL/d{layer}_j, j {'in' if inside else 'off'} S", found, claimed[layer], LETTERS)


def claimed_gradient(formula, case, beta):
    """The formula for every head and letter, as ((heads, d), (heads, d)) lists; ``beta`` rows are heads."""
    letters, k = range(int(case.d)), int(case.k)
    total = dict(enumerate(sum(column) for column in zip(*beta, strict=True)))
    d_alpha, d_beta = [], []
    for row in beta:
        own = dict(enumerate(row))
        averages = means(own, total, dict.fromkeys(letters, 1), letters[k:])
        slopes = [formula(case.having(own=own[j], total=total[j], inside=j < k, **averages)) for j in letters]
        d_alpha.append([slope["alpha"] for slope in slopes])
        d_beta.append([slope["beta"] for slope in slopes])
    return d_alpha, d_beta


@uniform_attention.instance
def _(formula, case):
    """exact gradients over all words at random rational output weights, one to three heads"""
    heads = min(int(case.heads), 3)
    _, beta = random_model(case, heads)
    beta = [[Fraction(b) for b in row] for row in beta]
    found = exact_gradient(population(case), constant(case.d, 1) * heads, beta)
    for layer, slopes, claimed in zip(("alpha", "beta"), found, claimed_gradient(formula, case, beta), strict=True):
        yield exact(f"dL/d{layer}", slopes, claimed, case.having(beta=beta))


@uniform_attention.simulation
def _(formula):
    """the kernel's gradient on all words, and what the product reports, at random output weights"""
    rng = np.random.default_rng(7)
    for d, k, length, words in populations():
        for heads in (1, 2):
            case, beta = HEADS.check(d=d, k=k, length=length, heads=heads), rng.standard_normal((heads, d))
            _, *found = loss_and_gradient(words, np.zeros((heads, d)), beta)
            reported = gradient_at_zero_scores(any_of(k), d, case.length, beta)
            for layer, slopes, report, claimed in zip(
                ("alpha", "beta"), found, reported, claimed_gradient(formula, case, beta.tolist()), strict=True
            ):
                yield close(f"dL/d{layer}", slopes, np.array(claimed), ROUNDING, case)
                yield close(f"analytic dL/d{layer}", report, np.array(claimed), ROUNDING, case)


@uniform_attention.simulation
def _(formula):
    """sampled words at random output weights, first target and first other letter, t-test over seeds"""
    for d, k, length in SAMPLES:
        case, beta = HEADS.check(d=d, k=k, length=length, heads=1), np.linspace(-1, 1, d)[None]
        d_alpha, d_beta = claimed_gradient(formula, case, beta.tolist())
        found = [loss_and_gradient(words, np.zeros((1, d)), beta)[1:] for words in fresh_words(d, k, length)]
        for j in (0, k):
            yield sampled("dL/dalpha_j", [alpha[0, j] for alpha, _ in found], d_alpha[0][j], case)
            yield sampled("dL/dbeta_j", [slope[0, j] for _, slope in found], d_beta[0][j], case)


uniform_attention.mutant("sign of alpha's", alpha=lambda c, v: -v)
uniform_attention.mutant("3 E2 in t3", alpha=lambda c, v: v + 2 * c.E2 * c.mean_total * (c.own - c.mean_own) / c.d)
uniform_attention.mutant("t2 without bar(B b)", alpha=lambda c, v: v + 2 * (c.E1 - c.E2) * c.product / c.d)
uniform_attention.mutant("own for total", beta=lambda c, v: v + 2 * c.E1 * (c.own - c.mean_own) / c.d)
uniform_attention.mutant("bar b for bar b_o", alpha=lambda c, v: v + (1 - c.inside) * (c.mean_others - c.mean_own))
uniform_attention.mutant("G1 forgotten", alpha=lambda c, v: v + (1 - c.inside) * c.G1 * (c.own - c.mean_others))
uniform_attention.mutant("factor 2 of the label term", beta=lambda c, v: v + 2 / c.d)
