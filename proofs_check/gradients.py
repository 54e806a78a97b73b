"""The hand-derived gradient of the letter model's loss."""

import random
from fractions import Fraction

import numpy as np
import sympy

from analytic.gradients.letter_twin import attention, scores
from sim.runs import run_plan

from .claims import claim
from .decide import ROUNDING, close, exact, identity
from .domain import LETTERS, Case, Whole
from .letters import exact_gradient, exact_score, expectation, population


@claim(
    "gradients.letter",
    statement="For any alphabet, any number of heads and any data: with a^h_j the attention share of letter j in a "
    "word, v_h = sum_j a^h_j beta^h_j, f = sum_h v_h - 1 and residual r = f - y, the loss E[(f - y)^2] has the "
    "gradient dL/dalpha^h_j = 2 E[r a^h_j (beta^h_j - v_h)], dL/dbeta^h_j = 2 E[r a^h_j].",
    latex=r"\frac{\partial L}{\partial\alpha^h_j}=2\,\mathbb{E}\big[r\,a^h_j(\beta^h_j-v_h)\big],\qquad "
    r"\frac{\partial L}{\partial\beta^h_j}=2\,\mathbb{E}\big[r\,a^h_j\big]",
    domain=LETTERS.having(heads=Whole(1)),
    source="chain rule for the softmax of scores over the positions of a word",
)
def letter(c):
    """The gradient of one word's loss in head h and letter j.

    ``c.residual`` = f - y, ``c.share`` = a^h_j, ``c.weight`` = beta^h_j, ``c.value`` = v_h.
    """
    return {
        "alpha": 2 * c.residual * c.share * (c.weight - c.value),
        "beta": 2 * c.residual * c.share,
    }


@letter.proof
def _(formula):
    """derivative of one word's loss in one letter, with all other letters and heads as three symbols"""
    n = sympy.Symbol("n", integer=True, nonnegative=True)  # how often the letter occurs
    alpha, beta, y, other_heads = sympy.symbols("alpha beta y F", real=True)
    rest, rest_value = sympy.Symbol("Z", positive=True), sympy.Symbol("N", real=True)  # sum_i n_i e^alpha_i (beta_i)
    total = n * sympy.exp(alpha) + rest
    value = (n * sympy.exp(alpha) * beta + rest_value) / total
    residual = value + other_heads - 1 - y
    claimed = formula(Case(residual=residual, share=n * sympy.exp(alpha) / total, weight=beta, value=value))
    yield identity("d/dalpha_j (f - y)^2", sympy.diff(residual**2, alpha), claimed["alpha"])
    yield identity("d/dbeta_j (f - y)^2", sympy.diff(residual**2, beta), claimed["beta"])


@letter.instance
def _(formula, case):
    """exact derivatives by series arithmetic over all words, one to three heads with random rational weights"""
    rng = random.Random(str(case))
    heads, letters = range(min(int(case.heads), 3)), range(int(case.d))
    weights = [[Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in letters] for _ in heads]
    beta = [[Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in letters] for _ in heads]
    h, j = rng.choice(heads), rng.choice(letters)
    place = case.having(heads=len(heads), weights=weights, beta=beta, head=h, letter=j)
    words = population(case)
    claimed = {"alpha": 0, "beta": 0}
    for probability, counts, y in words:
        word = Case(
            residual=exact_score(counts, weights, beta) - y,
            share=counts[j] * weights[h][j] / sum(n * w for n, w in zip(counts, weights[h], strict=True)),
            weight=beta[h][j],
            value=exact_score(counts, [weights[h]], [beta[h]]) + 1,
        )
        claimed = {layer: claimed[layer] + probability * slope for layer, slope in formula(word).items()}
    d_alpha, d_beta = exact_gradient(words, weights, beta)
    yield exact("dL/dalpha_j", d_alpha[h][j], claimed["alpha"], place)
    yield exact("dL/dbeta_j", d_beta[h][j], claimed["beta"], place)


def mean_letter_gradient(formula, counts, labels, alpha, beta):
    """The formula averaged over words, (heads, d) arrays of dL/dalpha and dL/dbeta."""
    shares = attention(counts, alpha)  # (heads, words, d)
    value = np.einsum("hnd,hd->hn", shares, beta)
    residual = value.sum(axis=0) - 1 - labels
    word = Case(residual=residual[:, None], share=shares, weight=beta[:, None, :], value=value[..., None])
    return {layer: slope.mean(axis=1) for layer, slope in formula(word).items()}


@letter.simulation
def _(formula):
    """complex-step derivative of the loss through the model's scores, one to three heads"""
    rng = np.random.default_rng(1)
    for d, heads, spread in ((2, 1, 1.0), (5, 2, 3.0), (9, 3, 0.1)):
        counts = rng.integers(0, 4, (60, d)) + np.eye(60, d, dtype=int)  # a word has at least one letter
        counts = counts[counts.sum(axis=1) > 0]
        labels = np.where(counts[:, 0] > 0, 1, -1)
        state = {layer: spread * rng.standard_normal((heads, d)) for layer in ("alpha", "beta")}
        claimed = mean_letter_gradient(formula, counts, labels, **state)
        for layer in state:
            slopes = np.empty((heads, d))
            for cell in np.ndindex(heads, d):
                moved = {name: values.astype(complex) for name, values in state.items()}
                moved[layer][cell] += 1e-100j
                slopes[cell] = np.mean((scores(counts, **moved) - labels) ** 2).imag / 1e-100
            case = Case(d=d, heads=heads, layer=layer)
            yield close(f"dL/d{layer}", slopes, claimed[layer], ROUNDING, case, scale=np.abs(slopes).max())


@letter.simulation
def _(formula):
    """O(1x)->A(1x) of the simulator from random init, predicted step by step from its own words"""
    for task, heads in (("occurrence", 1), ("or", 2), ("and", 4)):
        run = run_plan(task, "O(1x)->A(1x)", range(2), d=8, heads=heads, rate_o=2.0, rate_a=3.0)
        for seed, alpha, beta in zip(run.seeds, run.alpha.values, run.beta.values, strict=True):
            words, _ = run.task.data(seed)
            data, case = (words.counts(), words.labels), Case(task=task, d=8, heads=heads, seed=seed)
            output_step = -2.0 * mean_letter_gradient(formula, *data, alpha[0], beta[0])["beta"]
            attention_step = -3.0 * mean_letter_gradient(formula, *data, alpha[1], beta[1])["alpha"]
            yield close("output step", beta[1], beta[0] + output_step, ROUNDING, case)
            yield close("attention step", alpha[2], alpha[1] + attention_step, ROUNDING, case)


letter.mutant("sign of dL/dalpha", alpha=lambda c, v: -v)
letter.mutant("sign of dL/dbeta", beta=lambda c, v: -v)
letter.mutant("sign inside the bracket", alpha=lambda c, v: 2 * c.residual * c.share * (c.weight + c.value))
letter.mutant("factor 1/2 in the loss", alpha=lambda c, v: v / 2, beta=lambda c, v: v / 2)
letter.mutant("softmax derivative forgotten", alpha=lambda c, v: 2 * c.residual * c.share * c.weight)
letter.mutant("value in place of residual", beta=lambda c, v: 2 * c.value * c.share)


def uniform_attention_gradient(case, target, beta_target, beta_other):
    """dL/dalpha_j and dL/dbeta_j, j in S or not, at alpha = 0 and beta constant on S and off S, for any length law.

    At alpha = 0 the attention shares are the letter shares; y = 2 1_+ - 1, so that the residual is h - 2 1_+.
    """
    if target:
        classes, name = {"target": 1, "targets": case.k - 1, "others": case.D}, "target"
    else:
        classes, name = {"targets": case.k, "other": 1, "others": case.D - 1}, "other"
    shares = {c: sympy.Symbol(f"p_{c}", nonnegative=True) for c in classes}
    weights = {c: beta_target if c.startswith("target") else beta_other for c in classes}
    value = sum(share * weights[c] for c, share in shares.items())
    positive = sympy.Symbol("1_+", nonnegative=True)
    word = Case(residual=value - 2 * positive, share=shares[name], weight=weights[name], value=value)
    return {layer: expectation(slope, case, classes, shares, positive) for layer, slope in letter(word).items()}
