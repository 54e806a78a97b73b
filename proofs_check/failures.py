"""Plans that fail, and why."""

import random
from fractions import Fraction

import numpy as np
import sympy

from analytic import failures
from analytic.gradients.letter import descend, evaluate
from analytic.population import population_path
from analytic.shares import AttentionMoments
from sim.runs import run_plan

from .claims import claim
from .comparison import compared, places
from .decide import ROUNDING, agrees, below, close, exact, holds, identity, positive, sampled
from .domain import LETTERS, LONGER, Case, Real, Whole, positive_part
from .gradients import letter
from .letters import constant, exact_gradient, exact_loss, exact_score, expectation, population, share_moment
from .phase_three import minimum
from .simulator import SAMPLES, fresh_words, populations, runs

CONVERGED = 1e-9  # excess loss that 2000 output steps leave at d <= 6
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
    heads = min(int(case.heads), 3)
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


# ---------------------------------------------------------------- attention only, any init


FROZEN_WEIGHTS = HEADS.having(highest=Real(), spread=Real(0))


@claim(
    "failure.attention_only",
    statement="Whatever the scores, any number of heads, M (m) being the sum over heads of the largest (smallest) "
    "output weight: the loss is at least q (2 - M)_+^2 + (1 - q) m_+^2, and if M < 1 every word is rejected, so "
    "that the accuracy is exactly 1 - q. Training attention alone never gets below.",
    latex=r"L\ge q\,(2-M)_+^2+(1-q)\,m_+^2,\qquad M<1\Rightarrow\Pr(yf>0)=1-q",
    domain=FROZEN_WEIGHTS,
    source="an attention average lies between the smallest and the largest weight",
)
def attention_only(c):
    """``c.highest`` = M, ``c.highest - c.spread`` = m."""
    lowest = c.highest - c.spread
    loss = c.q * positive_part(2 - c.highest) ** 2 + (1 - c.q) * positive_part(lowest) ** 2
    return {"loss": loss, "accuracy": 1 - c.q}  # the accuracy if M < 1


@attention_only.proof
def _(formula):
    """an average is between its extremes; the residual of each label"""
    a = 1 / (1 + sympy.Symbol("odds", nonnegative=True))  # share of the letters below the largest weight
    top, less, h = sympy.Symbol("b", real=True), sympy.Symbol("less", nonnegative=True), sympy.Symbol("h", real=True)
    yield positive("average <= largest weight", sympy.expand(top - (a * (top - less) + (1 - a) * top)), strict=False)
    yield positive("average >= smallest weight", sympy.expand(a * (top + less) + (1 - a) * top - top), strict=False)

    c, short, over = HEADS.symbols(), *sympy.symbols("2-M m", nonnegative=True)
    residual = h - 1 - 1  # y = +1
    at_most = residual.subs(h, 2 - short - less) ** 2 - short**2
    yield positive("y = +1: (f - y)^2 >= (2 - M)^2 for h <= M <= 2", at_most, strict=False)
    yield positive("y = -1: (f - y)^2 = h^2 >= m^2 for h >= m >= 0", (over + less) ** 2 - over**2, strict=False)
    below = formula(c.having(highest=2 - short, spread=2 - short + less))  # m <= 0 <= M <= 2
    yield identity("bound for m <= 0, M <= 2", below["loss"], c.q * short**2, HEADS)
    above = formula(c.having(highest=2 + over, spread=2 + over - less))  # 0 <= m, M >= 2
    yield identity("bound for m >= 0, M >= 2", above["loss"], (1 - c.q) * less**2, HEADS)
    rejecting = sympy.Symbol("1-M", positive=True)
    yield positive("M < 1: f = h - 1 < 0", -((1 - rejecting - less) - 1))
    yield identity("every word rejected: accuracy = P(y = -1) = G", below["accuracy"], c.G, HEADS)


@attention_only.instance
def _(formula, case):
    """exact loss and accuracy over all words at random attention weights, one to three heads"""
    rng, d = random.Random(str(case)), int(case.d)
    heads = min(int(case.heads), 3)
    split = [Fraction(rng.randint(1, 5)) for _ in range(heads)]
    tops = [case.highest * s / sum(split) for s in split]
    spreads = [case.spread * s / sum(split) for s in split]
    beta = [
        [top, top - spread, *(top - spread * Fraction(rng.randint(0, 4), 4) for _ in range(d - 2))]
        for top, spread in zip(tops, spreads, strict=True)
    ]
    weights = [[Fraction(rng.randint(1, 9), rng.randint(1, 40)) for _ in range(d)] for _ in range(heads)]
    words, claimed = population(case), formula(case)
    place = case.having(weights=weights, beta=beta)
    yield holds("loss >= bound", exact_loss(words, weights, beta) >= claimed["loss"], place, **claimed)
    if case.highest < 1:
        right = sum(p for p, counts, y in words if y * exact_score(counts, weights, beta) > 0)
        yield exact("accuracy", right, claimed["accuracy"], place)


@attention_only.simulation
def _(formula):
    """attention training of sampled runs from random init, at each run's own class balance"""
    for heads, scale in ((1, 0.1), (3, 0.2), (1, 3.0)):
        run = run_plan("or", "A(60x)", range(8), d=12, targets=2, heads=heads, rate_a=20.0, init_scale=(0.1, scale))
        for seed, loss, beta, accuracy in zip(
            run.seeds, run.train_loss.values, run.beta.values[:, 0], run.test_accuracy.values, strict=True
        ):
            highest, spread = beta.max(axis=1).sum(), np.ptp(beta, axis=1).sum()
            train, test = (np.mean(words.labels > 0) for words in run.task.data(seed))
            case = Case(q=train, highest=highest, spread=spread, heads=heads, seed=seed)
            yield below("bound <= loss at every step", formula(case)["loss"], loss, case)
            if highest < 1:
                claimed = formula(case.having(q=test))["accuracy"]
                yield close("test accuracy at every record", accuracy, claimed, ROUNDING, case)


attention_only.mutant("sign: 2 + M", loss=lambda c, v: c.q * positive_part(2 + c.highest) ** 2)
attention_only.mutant("m for M", loss=lambda c, v: c.q * positive_part(2 - c.highest + c.spread) ** 2)
attention_only.mutant("q and 1 - q swapped", loss=lambda c, v: v + (1 - 2 * c.q) * positive_part(2 - c.highest) ** 2)
attention_only.mutant("M for 2 - M", loss=lambda c, v: c.q * positive_part(c.highest) ** 2)
attention_only.mutant("every word accepted", accuracy=lambda c, v: c.q)


# ---------------------------------------------------------------- output only


@claim(
    "failure.output_only",
    statement="With uniform attention (scores 0) the least loss over all output weights is "
    "L*(0) = 4 (1 - q)(q E[x^2] - kappa^2) / (kappa (1 - kappa) E1), at beta_o = 2 - 2 (1 - q) E[x^2] / "
    "(kappa (1 - kappa) E1) and beta_S = beta_o + 2 (1 - q)/((1 - kappa) E1). It is positive when some words have "
    "two letters or more: output training from zero init never gets below, and A(1x)->O from zero init equals it step "
    "for step.",
    latex=r"L^*(0)=\frac{4(1-q)(q\,\mathbb E[x^2]-\kappa^2)}{\kappa(1-\kappa)E_1}>0",
    domain=LONGER,
    source="phase3.minimum with A = x; the gradient of alpha vanishes at beta = 0",
)
def output_only(c):
    moments = c.moments
    scale = c.kappa * (1 - c.kappa) * c.E1
    other = 2 - 2 * (1 - c.q) * moments.X2 / scale
    return {
        "loss": 4 * (1 - c.q) * (c.q * moments.X2 - c.kappa**2) / scale,
        "beta_target": other + 2 * (1 - c.q) / ((1 - c.kappa) * c.E1),
        "beta_other": other,
    }


@output_only.proof
def _(formula):
    """moments of the share of target letters in phase3.minimum; the share is not constant on positive words"""
    c = LONGER.symbols()
    claimed, classes = formula(c), {"targets": c.k, "others": c.D}
    X1, X2 = (share_moment(c, classes, {"targets": power}) for power in (1, 2))  # x = 0 on negative words
    mass, square = X1 / c.q, X2 / c.q
    attention = AttentionMoments(c.q, c.G, mass, 1 - mass, square - mass**2, None, None, None)
    best = minimum(c.having(attention=attention))
    for name in claimed:
        yield identity(f"{name} of phase3.minimum with A = x", best[name], claimed[name], LONGER)
    # q E[x^2] - kappa^2 = q E[(x - mean)^2; +] >= that of the words s o^(m-1) and s^m, whose shares 1/m and 1 differ
    mean, m = sympy.Symbol("mean", real=True), 2 + sympy.Symbol("m'", nonnegative=True)
    two = (1 / m - mean) ** 2 + (1 - mean) ** 2
    least = (1 - 1 / m) ** 2 / 2
    completed = 2 * (mean - (1 + 1 / m) / 2) ** 2 + least
    yield identity("(1/m - c)^2 + (1 - c)^2 = 2 (c - (1 + 1/m)/2)^2 + (1 - 1/m)^2 / 2", two, completed)
    yield positive("so x varies on positive words of m >= 2 letters", least)
    word = Case(residual=sympy.Symbol("r"), share=sympy.Symbol("a"), weight=0, value=0)
    yield identity("A(1x) at beta = 0 does not move alpha", letter(word)["alpha"], 0)


@output_only.instance
def _(formula, case):
    """exact output steps over all words never get below, least squares reaches it; A(1x)->O(2x) = O(2x)"""
    d, k, claimed = int(case.d), int(case.k), formula(case)
    words, ones = population(case), constant(case.d, 1)
    best = [[claimed["beta_target"]] * k + [claimed["beta_other"]] * (d - k)]
    yield exact("loss at the claimed weights", exact_loss(words, ones, best), claimed["loss"], case)
    d_alpha, beta = exact_gradient(words, ones, constant(d, 0))[0], constant(d, 0)
    yield holds("A(1x) from zero init does not move alpha", all(slope == 0 for slope in d_alpha[0]), case)
    yield holds("the loss is positive", claimed["loss"] > 0, case)
    _, slopes = exact_gradient(words, ones, best)
    yield holds("gradient at the claimed weights is 0", all(slope == 0 for slope in slopes[0]), case, found=slopes)
    for step in range(2):
        _, slopes = exact_gradient(words, ones, beta)
        beta = [[b - slope for b, slope in zip(beta[0], slopes[0], strict=True)]]
        above = exact_loss(words, ones, beta) >= claimed["loss"]
        yield holds("output steps stay above", above, case.having(step=step), **claimed)


@output_only.simulation
def _(formula):
    """output training on all words converges to it from above; what the product reports"""
    for d, k, length, words in populations():
        case = LONGER.check(d=d, k=k, length=length)
        claimed, zero = formula(case), np.zeros(d)
        path = descend(words, zero, zero, 0.0, 1.0, 2000)
        yield below("claimed <= loss at every step", claimed["loss"], path.loss, case)
        yield close("loss in the end", path.loss[-1], claimed["loss"], CONVERGED, case)
        reported = (failures.output_only_loss(d, k, case.length), *failures.output_only_weights(d, k, case.length))
        yield close("analytic.failures", reported, list(claimed.values()), ROUNDING, case)


@output_only.simulation
def _(formula):
    """loss of sampled words at the claimed weights, t-test over seeds; A(1x)->O equals O bit for bit"""
    for d, k, length in SAMPLES:
        case = LONGER.check(d=d, k=k, length=length)
        claimed = formula(case)
        beta = np.where(np.arange(d) < k, claimed["beta_target"], claimed["beta_other"])
        losses = [evaluate(words, np.zeros(d), beta)[0] for words in fresh_words(d, k, length)]
        yield sampled("loss at the claimed weights", losses, claimed["loss"], case)
        alone = runs("O(30x)", d, k, length, rate_o=1.0).train_loss.values
        after = runs("A(1x)->O(30x)", d, k, length, rate_a=50.0, rate_o=1.0).train_loss.values
        yield agrees("losses of A(1x)->O(30x) and O(30x)", after[:, 1:], alone, case)


@output_only.simulation
def _(formula):
    """predicted, population and sampled least loss at uniform attention on the grid"""
    for place in places():
        claimed = formula(LONGER.check(**place.parameters))
        start = claimed["beta_target"], claimed["beta_other"], 0.0
        population = population_path(place.d, place.k, place.law, [("O", 0, 0.0, 0.0)], start=start).loss[0]
        beta = np.where(np.arange(place.d) < place.k, claimed["beta_target"], claimed["beta_other"])
        samples = place.evaluations(np.zeros(place.d), beta)[0]
        yield compared("least loss of output only", place, claimed["loss"], population, samples)


output_only.mutant("sign of kappa^2", loss=lambda c, v: v + 8 * c.G * c.kappa / ((1 - c.kappa) * c.E1))
output_only.mutant("factor 2", loss=lambda c, v: v / 2)
output_only.mutant("q for 1 - q", loss=lambda c, v: v * c.q / c.G)
output_only.mutant("E1 forgotten", loss=lambda c, v: v * c.E1)
output_only.mutant("beta = 2 on S", beta_target=lambda c, v: 2)
output_only.mutant("sign of beta_o", beta_other=lambda c, v: -v)
