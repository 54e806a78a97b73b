"""Plans that fail, and why."""

import random
from fractions import Fraction

import numpy as np
import sympy

from analytic.gradients.letter import descend, evaluate

from .claims import claim
from .decide import agrees, close, exact, holds, identity, positive, sampled
from .domain import LETTERS, Case, Whole
from .gradients import letter
from .letters import constant, exact_gradient, exact_loss, exact_score, expectation, population
from .simulator import ROUNDING, SAMPLES, populations, runs

HEADS = LETTERS.having(heads=Whole(1))


@claim(
    "failure.attention_only_zero_init",
    statement="With beta = 0 the gradient of alpha is 0 at every alpha, for any number of heads: attention training "
    "from zero init never moves, every word is rejected, the loss stays 4 q and the accuracy 1 - q.",
    latex=r"\beta=0\ \Rightarrow\ \frac{\partial L}{\partial\alpha}\equiv 0,\quad L=4q,\quad \Pr(yf>0)=1-q",
    domain=HEADS,
    source="gradients.letter with beta = 0",
)
def attention_only_zero_init(c):
    return {"d_alpha": 0, "loss": 4 * c.q, "accuracy": 1 - c.q}


@attention_only_zero_init.proof
def _(formula):
    """the gradient at beta = 0 for any attention shares; the loss and the sign of f = -1"""
    c = HEADS.symbols()
    claimed = formula(c)
    share = sympy.Symbol("a", nonnegative=True)
    positive_word = sympy.Symbol("1_+", nonnegative=True)
    y, f = 2 * positive_word - 1, sympy.Integer(-1)  # every head's value is sum_j a_j 0 = 0
    word = Case(residual=f - y, share=share, weight=0, value=0)
    yield identity("dL/dalpha_j of a word is 0 for every share", letter(word)["alpha"], claimed["d_alpha"], HEADS)

    def mean(polynomial):
        return expectation(polynomial, c, {"targets": c.k, "others": c.D}, {"targets": share}, positive_word)

    yield identity("L = E[(f - y)^2]", mean((f - y) ** 2), claimed["loss"], HEADS)
    yield positive("every word is rejected: -f > 0", -f)
    yield identity("accuracy = P(y = -1)", mean(1 - positive_word), claimed["accuracy"], HEADS)


@attention_only_zero_init.instance
def _(formula, case):
    """exact gradient and loss over all words at random attention weights, one to three heads"""
    rng = random.Random(str(case))
    heads = int(case.heads) % 3 + 1
    weights = [[Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in range(int(case.d))] for _ in range(heads)]
    beta, words, claimed = constant(case.d, 0) * heads, population(case), formula(case)
    place = case.having(heads=heads, weights=weights)
    d_alpha, _ = exact_gradient(words, weights, beta)
    yield holds("dL/dalpha", all(slope == claimed["d_alpha"] for row in d_alpha for slope in row), place, found=d_alpha)
    yield exact("loss", exact_loss(words, weights, beta), claimed["loss"], place)
    right = sum(p for p, counts, y in words if y * exact_score(counts, weights, beta) > 0)
    yield exact("accuracy", right, claimed["accuracy"], place)


@attention_only_zero_init.simulation
def _(formula):
    """20 attention steps on all words: alpha stays exactly 0"""
    for d, k, length, words in populations():
        for heads in (1, 2):
            case = HEADS.check(d=d, k=k, length=length, heads=heads)
            zero, claimed = np.zeros((heads, d)), formula(case)
            path = descend(words, zero, zero, 5.0, 0.0, 20)
            yield agrees("alpha after every step", path.alpha, claimed["d_alpha"], case)
            yield close("loss at every step", path.loss, claimed["loss"], ROUNDING, case)
            yield close("accuracy", evaluate(words, zero, zero)[1], claimed["accuracy"], ROUNDING, case)


@attention_only_zero_init.simulation
def _(formula):
    """attention training of sampled runs from zero init, t-test over seeds"""
    for d, k, length in SAMPLES:
        case = HEADS.check(d=d, k=k, length=length, heads=1)
        run, claimed = runs("A(20x)", d, k, length, rate_a=5.0), formula(case)
        yield agrees("alpha at the end", run.alpha.values, claimed["d_alpha"], case)
        yield sampled("train loss at the end", run.train_loss.values[:, -1], claimed["loss"], case)
        yield sampled("test accuracy at the end", run.test_accuracy.values[:, -1], claimed["accuracy"], case)


attention_only_zero_init.mutant("a gradient that does not vanish", d_alpha=lambda c, v: 4 * c.q / c.d)
attention_only_zero_init.mutant("loss 4 (1 - q)", loss=lambda c, v: 4 * (1 - c.q))
attention_only_zero_init.mutant("loss with 1/2", loss=lambda c, v: v / 2)
attention_only_zero_init.mutant("sign of the loss", loss=lambda c, v: -v)
attention_only_zero_init.mutant("every word accepted", accuracy=lambda c, v: c.q)
