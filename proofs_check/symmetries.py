"""What no gradient step changes: invariances of the model and the quantities they conserve."""

import random
from fractions import Fraction

import numpy as np
import sympy

from analytic.gradients.letter import Words, descend, loss_and_gradient, scores
from sim.runs import run_plan

from .claims import claim
from .decide import ROUNDING, close, exact, holds, identity
from .domain import LETTERS, Case, Real, Whole
from .gradients import letter
from .letters import exact_gradient, exact_loss, exact_score, population
from .simulator import populations

HEADS = LETTERS.having(heads=Whole(1), shift=Real())


def random_model(case, heads):
    """Random rational weights e^alpha and output weights, as (heads, d) lists, the same for the same case."""
    rng, letters = random.Random(str(case)), range(int(case.d))
    weights = [[Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in letters] for _ in range(heads)]
    return weights, [[Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in letters] for _ in range(heads)]


def random_words(rng, words, d):
    """Counts and labels of random words; the label says whether letter 1 occurs."""
    counts = rng.integers(0, 4, (words, d))
    counts[:, -1] += counts.sum(axis=1) == 0
    return counts, np.where(counts[:, 0] > 0, 1, -1)


@claim(
    "gradients.shift_invariance",
    statement="Adding a constant to the scores of a head changes no attention share, so no score f. Hence the gradient "
    "of each head's scores sums to 0 over the letters, and gradient descent keeps the mean of every head's alpha at "
    "its initial value, for any data, rates and plan.",
    latex=r"f(\alpha+c\mathbf 1,\beta)=f(\alpha,\beta),\qquad \sum_j\frac{\partial L}{\partial\alpha^h_j}=0,\qquad "
    r"\bar\alpha^h(t)=\bar\alpha^h(0)",
    domain=HEADS,
    source="softmax; gradients.letter",
)
def shift_invariance(c):
    """Change of a head's value and of a letter's share under the shift, and the sum of the slopes."""
    return {"value_change": 0, "share_change": 0, "sum_of_slopes": 0}


@shift_invariance.proof
def _(formula):
    """one letter and two symbols for the rest of any alphabet"""
    claimed = formula(HEADS.symbols())
    n = sympy.Symbol("n", integer=True, nonnegative=True)
    alpha, beta, shift, rest_value, residual = sympy.symbols("alpha beta c N r", real=True)
    rest = sympy.Symbol("Z", positive=True)

    def model(moved):
        weight = n * sympy.exp(alpha) * sympy.exp(moved)
        total = weight + rest * sympy.exp(moved)
        return weight / total, (weight * beta + rest_value * sympy.exp(moved)) / total

    (share, value), (moved_share, moved_value) = model(0), model(shift)
    yield identity("value under the shift", moved_value - value, claimed["value_change"])
    yield identity("share under the shift", moved_share - share, claimed["share_change"])
    # sum over the letters: this letter, and the rest, whose shares sum to Z/total and shares times beta to N/total
    word = letter(Case(residual=residual, share=share, weight=beta, value=value))["alpha"]
    total = n * sympy.exp(alpha) + rest
    others = letter(Case(residual=residual, share=1, weight=0, value=value))["alpha"] * rest / total
    others += letter(Case(residual=residual, share=1, weight=1, value=0))["alpha"] * rest_value / total
    yield identity("sum over the letters of dL/dalpha_j", word + others, claimed["sum_of_slopes"])


@shift_invariance.instance
def _(formula, case):
    """exact gradients over all words at random rational weights, and scores under a shift"""
    heads, claimed = min(int(case.heads), 3), formula(case)
    weights, beta = random_model(case, heads)
    factor = 1 + abs(case.shift)  # e^c
    place = case.having(weights=weights, beta=beta)
    d_alpha, _ = exact_gradient(population(case), weights, beta)
    for h in range(heads):
        yield exact(f"sum of the slopes of head {h + 1}", sum(d_alpha[h]), claimed["sum_of_slopes"], place)
        moved = [[w * (factor if g == h else 1) for w in row] for g, row in enumerate(weights)]
        for _, counts, _ in population(case):
            change = exact_score(counts, moved, beta) - exact_score(counts, weights, beta)
            yield exact("value under a shift", change, claimed["value_change"], place.having(counts=counts))
            before, after = (
                counts[0] * w[h][0] / sum(n * v for n, v in zip(counts, w[h], strict=True)) for w in (weights, moved)
            )
            yield exact("share under a shift", after - before, claimed["share_change"], place.having(counts=counts))


@shift_invariance.simulation
def _(formula):
    """sums of slopes and scores under shifts in the kernel; means of alpha along runs of several plans"""
    rng = np.random.default_rng(5)
    for d, heads in ((2, 1), (7, 2), (30, 4)):
        counts, labels = random_words(rng, 200, d)
        words = Words.from_counts(counts, labels)
        alpha, beta = rng.standard_normal((2, heads, d))
        case, claimed = Case(d=d, heads=heads), formula(None)
        d_alpha = loss_and_gradient(words, alpha, beta)[1]
        yield close("sum of slopes", d_alpha.sum(axis=1), claimed["sum_of_slopes"], ROUNDING, case)
        moved = scores(words, alpha + rng.standard_normal((heads, 1)), beta)
        yield close("scores under a shift", moved - scores(words, alpha, beta), claimed["value_change"], ROUNDING, case)
    for task, plan, rates in (
        ("occurrence", "joint", {"rate_a": 1.0, "rate_o": 1.0}),
        ("or", "O(1x)->A(40x)->O(5x)", {"rate_a": 2.0, "rate_o": (3.0, 0.5)}),
        ("and", "joint", {"rate_a": 1.0, "rate_o": 0.3}),
    ):
        run = run_plan(task, plan, range(2), d=10, steps=200, **rates)
        means = run.alpha.values.mean(axis=-1)
        case = Case(task=task, plan=plan)
        yield close("mean of alpha", means - means[:, :1], formula(None)["sum_of_slopes"], ROUNDING, case)


shift_invariance.mutant("slopes sum to the value", sum_of_slopes=lambda c, v: 1)
shift_invariance.mutant("sign: value moves with the shift", value_change=lambda c, v: 1)
shift_invariance.mutant("the share moves with the shift", share_change=lambda c, v: -1)
shift_invariance.mutant("everything scales", value_change=lambda c, v: 2, share_change=lambda c, v: 2)


IDENTICAL = LETTERS.having(heads=Whole(2), rate_a=Real(0), rate_o=Real(0))


@claim(
    "gradients.identical_heads",
    statement="Heads that start equal stay equal, and H equal heads with output weights beta and rates eta_A, eta_O "
    "are one head with output weights H beta and rates eta_A / H, H eta_O: extra heads with equal init add nothing.",
    latex=r"H\text{ heads }(\alpha,\beta;\eta_A,\eta_O)\ \equiv\ \text{one head }(\alpha,H\beta;\eta_A/H,H\eta_O)",
    domain=IDENTICAL,
    source="gradients.letter depends on a head only through its own share, weight and value",
)
def identical_heads(c):
    """The rates of the one head."""
    return {"rate_a": c.rate_a / c.heads, "rate_o": c.rate_o * c.heads}


@identical_heads.proof
def _(formula):
    """one step of both models from the same state"""
    c = IDENTICAL.symbols()
    claimed = formula(c)
    share, weight, value, y = sympy.symbols("a beta v y", real=True)
    residual = c.heads * value - 1 - y  # of both models
    many = letter(Case(residual=residual, share=share, weight=weight, value=value))
    one = letter(Case(residual=residual, share=share, weight=c.heads * weight, value=c.heads * value))
    yield identity("scores move equally", c.rate_a * many["alpha"], claimed["rate_a"] * one["alpha"])
    yield identity("H times the output weights", c.heads * c.rate_o * many["beta"], claimed["rate_o"] * one["beta"])


@identical_heads.instance
def _(formula, case):
    """one exact output step and the exact scores' slopes over all words, for equal heads and for one head"""
    heads, claimed = int(case.heads), formula(case)
    (weights, beta), words = random_model(case, 1), population(case)
    many = exact_gradient(words, weights * heads, beta * heads)
    one = exact_gradient(words, weights, [[heads * b for b in beta[0]]])
    same = all(row == layer[0] for layer in many for row in layer)
    yield holds("equal heads have equal gradients", same, case)
    for j in range(int(case.d)):
        yield exact("score step", case.rate_a * many[0][0][j], claimed["rate_a"] * one[0][0][j], case)
        yield exact("output step", heads * case.rate_o * many[1][0][j], claimed["rate_o"] * one[1][0][j], case)
    loss = exact_loss(words, weights, [[heads * b for b in beta[0]]])
    yield exact("loss", exact_loss(words, weights * heads, beta * heads), loss, case)


@identical_heads.simulation
def _(formula):
    """joint descent of four equal heads and of one head, on all words"""
    for d, k, length, words in populations():
        case = IDENTICAL.check(d=d, k=k, length=length, heads=4, rate_a=2.0, rate_o=0.05)
        claimed, start = formula(case), np.linspace(-0.2, 0.3, d)
        many = descend(words, np.tile(start, (4, 1)), np.tile(start, (4, 1)), case.rate_a, case.rate_o, 50)
        one = descend(words, start, 4 * start, claimed["rate_a"], claimed["rate_o"], 50)
        yield close("heads stay equal", many.alpha - many.alpha[:, :1], 0.0, ROUNDING, case)
        yield close("loss", many.loss, one.loss, ROUNDING, case)
        yield close("scores", many.alpha[:, 0], one.alpha, ROUNDING, case)


identical_heads.mutant("same rates", rate_a=lambda c, v: c.rate_a, rate_o=lambda c, v: c.rate_o)
identical_heads.mutant("H eta_A", rate_a=lambda c, v: c.rate_a * c.heads)
identical_heads.mutant("eta_O / H", rate_o=lambda c, v: c.rate_o / c.heads)
identical_heads.mutant("sign of eta_A", rate_a=lambda c, v: -v)
identical_heads.mutant("H^2 eta_O", rate_o=lambda c, v: v * c.heads)
