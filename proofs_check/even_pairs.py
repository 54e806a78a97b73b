"""Even pairs: the gradient, its invariances, the first steps from zero init, and what attention must see.

A string b_1 ... b_n of any length n = 1..max_length has y = +1 iff b_1 = b_n; f = sum_l P_l u[l, b_l] with
P = softmax over l of W[(l, b_l), (n, b_n)]; the loss is the mean over lengths of the mean over all strings of
ln(1 + e^{-y f}). `miss` stands for 1 / (1 + e^{y f}), so that the slope of a string's loss by f is -y miss.

Proofs use fair signs: with s_l = +1 for symbol 0 and -1 for symbol 1, the signs of a uniform string are independent,
y = s_1 s_n for n >= 2, and a token (l, b) is there with indicator (1 + beta s_l) / 2, beta the sign of b.
"""

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import sympy

from analytic import even_pairs as theory
from analytic.gradients import even_pairs_twin as twin
from analytic.gradients.even_pairs import Strings, attention_gap, descend, evaluate, loss_and_gradient, scores

from .claims import claim
from .decide import ROUNDING, below, close, exact, holds, identity, positive
from .domain import Case, Domain, Real, Whole
from .letters import Jet

STRINGS = Domain(max_length=Whole(1))
ONE_LENGTH = Domain(n=Whole(2), longer=Whole(0))  # the strings of length n among lengths up to n + longer
STEPS = STRINGS.having(rate_o=Real(0))
LENGTHS = (1, 2, 3, 5, 8)  # max_length where the kernel sees all strings
DRIFT = 1e-10  # a descent of some 50 steps enlarges rounding

# ---- from first principles -------------------------------------------------------------------------------------------


def strings(n):
    """All strings of a length."""
    return list(product((0, 1), repeat=n))


def label(string):
    """+1 iff the first and the last symbol agree."""
    return 1 if string[0] == string[-1] else -1


def tokens(string):
    """Index 2 (l - 1) + b_l of every token."""
    return [2 * place + symbol for place, symbol in enumerate(string)]


def exact_output(string, weights, output):
    """f of one string; ``weights`` are e^W, fractions or series."""
    at = tokens(string)
    row = [weights[i][at[-1]] for i in at]
    total = sum(row[1:], row[0])
    value = sum((w * output[i] for w, i in zip(row[1:], at[1:], strict=True)), row[0] * output[at[0]])
    return value / total


def exact_slopes(string, weights, output):
    """Slopes of f of one string by W and u, {(token, last token): slope} and {token: slope}, by series."""
    at, by_score, by_weight = tokens(string), {}, {}
    for i in at:
        moved = [[Jet(w, w if (k, j) == (i, at[-1]) else 0) for j, w in enumerate(row)]  # d e^W / dW = e^W
                 for k, row in enumerate(weights)]
        by_score[i, at[-1]] = exact_output(string, moved, output).coefficients[1]
        lifted = [Jet(u, 1 if k == i else 0) for k, u in enumerate(output)]
        plain = [[Jet(w, 0) for w in row] for row in weights]
        by_weight[i] = exact_output(string, plain, lifted).coefficients[1]
    return by_score, by_weight


def exact_gradient(n, weights, output, slope):
    """Mean over the strings of a length of slope(string) times the slopes of f, as two dictionaries."""
    means = {}, {}
    for string in strings(n):
        for mean, slopes in zip(means, exact_slopes(string, weights, output), strict=True):
            for entry, value in slopes.items():
                mean[entry] = mean.get(entry, 0) + value * slope(string) / 2**n
    return means


def random_state(case, n):
    """Random rational e^W and u for strings of length n, the same for the same case."""
    rng = random.Random(str(case))
    weights = [[Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in range(2 * n)] for _ in range(2 * n)]
    return weights, [Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in range(2 * n)]


def over_signs(expression, *signs):
    """Mean of a polynomial in independent fair signs: even powers are 1, odd ones vanish."""
    expression = sympy.expand(expression)
    for sign in signs:
        terms = sympy.Poly(expression, sign).terms()
        expression = sympy.expand(sum(value for (power,), value in terms if power % 2 == 0))
    return expression


FIRST, MIDDLE, LAST = SIGNS = sympy.symbols("s_1 s_l s_n", real=True)


def mean_at(entry, sign, symbol, last_symbol=None):
    """Mean over strings of n >= 2 symbols of entry(y) at a token and, unless None, a last token.

    ``entry(y)`` is for y = +1 and for y = -1; ``symbol`` and ``last_symbol`` are signs with square 1.
    """
    y = FIRST * LAST
    by_label = (1 + y) / 2 * entry(1) + (1 - y) / 2 * entry(-1)
    there = (1 + symbol * sign) / 2 * (1 if last_symbol is None else (1 + last_symbol * LAST) / 2)
    return over_signs(by_label * there, *SIGNS)


def random_kernel_state(max_length, seed, size=1.0):
    rng = np.random.default_rng([max_length, seed])
    return size * rng.standard_normal((2 * max_length, 2 * max_length)), rng.standard_normal(2 * max_length)


def zero_state(max_length):
    return np.zeros((2 * max_length, 2 * max_length)), np.zeros(2 * max_length)


# ---- the gradient ----------------------------------------------------------------------------------------------------


@claim(
    "even_pairs.gradient",
    statement="A string's loss ln(1 + e^{-y f}) has the slope -y / (1 + e^{y f}) by f, and f the slopes P_l by "
    "u[l, b_l] and P_l (u[l, b_l] - f) by W[(l, b_l), (n, b_n)], and none by other entries.",
    latex=r"\frac{\partial\ell}{\partial f}=\frac{-y}{1+e^{yf}},\quad \frac{\partial f}{\partial u_{l,b_l}}=P_l,\quad "
    r"\frac{\partial f}{\partial W_{(l,b_l),(n,b_n)}}=P_l\,(u_{l,b_l}-f)",
    domain=Domain(n=Whole(1)),
    source="chain rule through the softmax and the logistic loss",
)
def gradient(c):
    """``c.share`` = P_l, ``c.weight`` = u[l, b_l], ``c.value`` = f, ``c.y``, ``c.miss`` = 1 / (1 + e^{y f})."""
    return {"slope": -c.y * c.miss, "output": c.share, "attention": c.share * (c.weight - c.value)}


@gradient.proof
def _(formula):
    """derivatives of one string's loss in one token, all others being two symbols"""
    score, weight, others, y, f = sympy.symbols("w u N y f", real=True)
    rest = sympy.Symbol("Z", positive=True)
    total = sympy.exp(score) + rest
    value = (sympy.exp(score) * weight + others) / total
    claimed = formula(Case(share=sympy.exp(score) / total, weight=weight, value=value, y=y,
                           miss=1 / (1 + sympy.exp(y * f))))
    yield identity("dl/df", sympy.diff(sympy.log(1 + sympy.exp(-y * f)), f), claimed["slope"])
    yield identity("df/du", sympy.diff(value, weight), claimed["output"])
    yield identity("df/dW", sympy.diff(value, score), claimed["attention"])


@gradient.instance
def _(formula, case):
    """exact slopes of all strings of a length by series arithmetic, at random rational e^W, u and e^{-y f}"""
    weights, output = random_state(case, int(case.n))
    for string in strings(int(case.n)):
        by_score, by_weight = exact_slopes(string, weights, output)
        at, f, odds = tokens(string), exact_output(string, weights, output), Fraction(len(weights) + 1, 3)
        row = [weights[i][at[-1]] for i in at]
        for i, w in zip(at, row, strict=True):
            claimed = formula(Case(share=w / sum(row), weight=output[i], value=f, y=label(string),
                                   miss=odds / (1 + odds)))
            place = case.having(string=string, token=i)
            yield exact("df/du", by_weight[i], claimed["output"], place)
            yield exact("df/dW", by_score[i, at[-1]], claimed["attention"], place)
            one_plus = Jet(1 + odds, -label(string) * odds)  # 1 + e^{-y f}, and its slope by f
            yield exact("dl/df", one_plus.coefficients[1] / one_plus.coefficients[0], claimed["slope"], place)


def mean_gradient(formula, max_length, W, u):
    """The formula summed over all strings with their weights in the loss: dL/dW and dL/du."""
    d_W, d_u = np.zeros_like(W), np.zeros_like(u)
    for n in range(1, max_length + 1):
        symbols = twin.strings(n)
        at, y = twin.tokens(symbols), twin.labels(symbols)[:, None]
        share = twin.attention(at, W)
        f = (share * u[at]).sum(axis=1, keepdims=True)
        slopes = formula(Case(share=share, weight=u[at], value=f, y=y, miss=1 / (1 + np.exp(y * f))))
        scale = slopes["slope"] / (max_length * 2**n)
        np.add.at(d_u, at, scale * slopes["output"])
        np.add.at(d_W, (at, at[:, -1:]), scale * slopes["attention"])
    return d_W, d_u


@gradient.simulation
def _(formula):
    """complex-step derivative of the loss, and the kernel's gradient, on all strings"""
    for max_length in LENGTHS:
        W, u = random_kernel_state(max_length, 1)
        case, claimed = Case(max_length=max_length), mean_gradient(formula, max_length, W, u)
        _, d_W, d_u = loss_and_gradient(Strings(max_length), W, u)
        yield close("the kernel's dL/dW", d_W, claimed[0], ROUNDING, case)
        yield close("the kernel's dL/du", d_u, claimed[1], ROUNDING, case)
        direction = random_kernel_state(max_length, 2)
        moved = (W + 1e-30j * direction[0], u + 1e-30j * direction[1])
        along = twin.loss_and_gradient(max_length, *moved)[0].imag / 1e-30
        wanted = (claimed[0] * direction[0]).sum() + (claimed[1] * direction[1]).sum()
        yield close("derivative along a random direction", along, wanted, ROUNDING, case)


gradient.mutant("sign of the slope by f", slope=lambda c, v: -v)
gradient.mutant("sign inside the bracket", attention=lambda c, v: c.share * (c.weight + c.value))
gradient.mutant("softmax derivative forgotten", attention=lambda c, v: c.share * c.weight)
gradient.mutant("hit for miss", slope=lambda c, v: -c.y * (1 - c.miss))
gradient.mutant("label forgotten", slope=lambda c, v: -c.miss)
gradient.mutant("share by u times u", output=lambda c, v: c.share * c.weight)


SHIFTED = Domain(n=Whole(1), shift=Real())


@claim(
    "even_pairs.shift_invariance",
    statement="Adding a constant to all scores of one last token, a column of W, changes no f. Hence each column of "
    "dL/dW sums to 0, and gradient descent keeps the sum of every column of W, for any rates and plan.",
    latex=r"f(W+\mathbf 1c^\top,u)=f(W,u),\qquad \sum_i\frac{\partial L}{\partial W_{ij}}=0",
    domain=SHIFTED,
    source="softmax; even_pairs.gradient",
)
def shift_invariance(c):
    """Change of f under the shift, and the sum of a column of slopes."""
    return {"value_change": 0, "sum_of_slopes": 0}


@shift_invariance.proof
def _(formula):
    """one token and two symbols for the others"""
    score, weight, others, shift, y, miss = sympy.symbols("w u N c y p", real=True)
    rest, claimed = sympy.Symbol("Z", positive=True), formula(SHIFTED.symbols())

    def value(moved):
        own, all_else = sympy.exp(score) * sympy.exp(moved), sympy.exp(moved)
        return (own * weight + others * all_else) / (own + rest * all_else)

    yield identity("f under the shift", value(shift) - value(0), claimed["value_change"])
    total, f = sympy.exp(score) + rest, value(0)
    own = gradient(Case(share=sympy.exp(score) / total, weight=weight, value=f, y=y, miss=miss))
    # the others' shares sum to Z / total, their shares times weights to N / total
    rest_sum = others / total - f * rest / total
    yield identity("sum of the slopes", own["slope"] * (own["attention"] + rest_sum), claimed["sum_of_slopes"])


@shift_invariance.instance
def _(formula, case):
    """exact columns over all strings of a length, and f under a shift, at random rational e^W and u"""
    n, claimed = int(case.n), formula(case)
    weights, output = random_state(case, n)
    factor = 1 + abs(case.shift)  # e^c
    moved = [[w * factor for w in row] for row in weights]
    for string in strings(n):
        change = exact_output(string, moved, output) - exact_output(string, weights, output)
        yield exact("f under a shift", change, claimed["value_change"], case.having(string=string))
    d_W, _ = exact_gradient(n, weights, output, lambda string: label(string) * Fraction(2 + sum(string), 7))
    for j in (2 * n - 2, 2 * n - 1):
        column = sum(value for (_, last), value in d_W.items() if last == j)
        yield exact("sum of a column", column, claimed["sum_of_slopes"], case.having(column=j))


@shift_invariance.simulation
def _(formula):
    """columns of the kernel's gradient, f under shifts, and sums along a joint run and a plan"""
    claimed = formula(None)
    for max_length in LENGTHS:
        W, u = random_kernel_state(max_length, 3)
        strings_, case = Strings(max_length), Case(max_length=max_length)
        d_W = loss_and_gradient(strings_, W, u)[1]
        yield close("sum of a column", d_W.sum(axis=0), claimed["sum_of_slopes"], ROUNDING, case)
        shifted = scores(strings_, W + np.linspace(-2, 3, 2 * max_length), u) - scores(strings_, W, u)
        yield close("f under a shift", shifted, claimed["value_change"], ROUNDING, case)
        path = descend(strings_, W, u, 5.0, 2.0, 50)
        drift = path.W.sum(axis=1) - W.sum(axis=0)
        yield close("sums of columns along a run", drift, claimed["sum_of_slopes"], DRIFT, case)


shift_invariance.mutant("sign: f moves against the shift", value_change=lambda c, v: -1)
shift_invariance.mutant("f moves with the shift", value_change=lambda c, v: 1)
shift_invariance.mutant("slopes sum to 1", sum_of_slopes=lambda c, v: 1)
shift_invariance.mutant("both move", value_change=lambda c, v: 2, sum_of_slopes=lambda c, v: -2)


# ---- from zero init --------------------------------------------------------------------------------------------------


@claim(
    "even_pairs.attention_first",
    statement="For every W, at u = 0 all f are 0, the loss is ln 2 and dL/dW = 0. So an attention phase before any "
    "output step changes nothing, and from zero init A stays where it is and A(1x)->O is O.",
    latex=r"u=0\ \Longrightarrow\ f=0,\quad L=\ln 2,\quad \frac{\partial L}{\partial W}=0",
    domain=Domain(n=Whole(1)),
    source="even_pairs.gradient",
)
def attention_first(c):
    """f, e^loss and the slope of f by a score."""
    return {"value": 0, "odds": 2, "slope": 0}


@attention_first.proof
def _(formula):
    """u = 0 in one string, with all other tokens as two symbols"""
    share, y, miss = sympy.symbols("P y p", real=True)
    claimed = formula(None)
    rest = sympy.Symbol("Z", positive=True)
    value = (sympy.exp(share) * 0 + rest * 0) / (sympy.exp(share) + rest)
    yield identity("f", value, claimed["value"])
    yield identity("e^loss = 1 + e^{-y f}", 1 + sympy.exp(-y * value), claimed["odds"])
    slopes = gradient(Case(share=share, weight=0, value=value, y=y, miss=miss))
    yield identity("dL/dW", slopes["slope"] * slopes["attention"], claimed["slope"])


@attention_first.instance
def _(formula, case):
    """all strings of a length at random rational e^W"""
    n, claimed = int(case.n), formula(case)
    weights, output = random_state(case, n)[0], [Fraction(0)] * (2 * n)
    for string in strings(n):
        place = case.having(string=string)
        f = exact_output(string, weights, output)
        yield exact("f", f, claimed["value"], place)
        yield exact("e^loss", 1 + (1 if f == 0 else math.nan), claimed["odds"], place)
        for slope in exact_slopes(string, weights, output)[0].values():
            yield exact("df/dW", slope, claimed["slope"], place)


@attention_first.simulation
def _(formula):
    """attention phases of the kernel from u = 0, and A(1x)->O against O from zero init"""
    claimed = formula(None)
    for max_length in LENGTHS:
        W, _ = random_kernel_state(max_length, 4)
        strings_, case, zero = Strings(max_length), Case(max_length=max_length), np.zeros(2 * max_length)
        path = descend(strings_, W, zero, 100.0, 0.0, 20)
        yield close("f", scores(strings_, W, zero), claimed["value"], ROUNDING, case)
        yield close("e^loss", np.exp(path.loss), claimed["odds"], ROUNDING, case)
        yield close("movement of W", path.W - W, claimed["slope"], ROUNDING, case)
        moved = descend(strings_, *zero_state(max_length), 300.0, 0.0, 1)
        ends = [descend(strings_, start, zero, 0.0, 5.0, 50).loss[-1] for start in (moved.W[-1], 0 * W)]
        yield close("A(1x)->O is O", ends[0] - ends[1], claimed["slope"], ROUNDING, case)


attention_first.mutant("sign of the loss", odds=lambda c, v: 1 / Fraction(v))
attention_first.mutant("loss 1 bit for ln 2", odds=lambda c, v: sympy.E if c is None else Fraction(2718, 1000))
attention_first.mutant("f = 1", value=lambda c, v: 1)
attention_first.mutant("attention moves", slope=lambda c, v: 1)


@claim(
    "even_pairs.output_update",
    statement="One output step from zero init sets u to rate_o / (4 max_length) at both tokens of position 1 and "
    "leaves 0 elsewhere: given any one token, the labels of longer strings are balanced, so that only the two strings "
    "of length 1 pull.",
    latex=r"u_1=\frac{\eta_O}{4L_{\max}}\,(E_{1,0}+E_{1,1})",
    domain=STEPS,
    source="even_pairs.gradient with f = 0 and P_l = 1/n; E[s_1 s_n (1 + beta s_l)] = 0 for n >= 2",
)
def output_update(c):
    return {"first": c.rate_o / (4 * c.max_length), "other": 0 * c.rate_o}


@output_update.proof
def _(formula):
    """means over fair signs: any length n >= 2, any token; and length 1"""
    c = STEPS.symbols()
    claimed, n = formula(c), sympy.Symbol("n", integer=True, positive=True)
    symbol = sympy.Symbol("beta", real=True)

    def entry(y):
        slopes = gradient(Case(share=1 / n, weight=0, value=0, y=y, miss=sympy.Rational(1, 2)))
        return slopes["slope"] * slopes["output"]

    for name, sign in (("first", FIRST), ("middle", MIDDLE), ("last", LAST)):
        yield identity(f"length n >= 2, {name} token", mean_at(entry, sign, symbol), 0)
    alone = gradient(Case(share=1, weight=0, value=0, y=1, miss=sympy.Rational(1, 2)))
    pull = alone["slope"] * alone["output"] / 2  # each of the two strings of length 1
    yield identity("length 1", -c.rate_o * pull / c.max_length, claimed["first"], STEPS)
    elsewhere = -c.rate_o * mean_at(entry, MIDDLE, symbol) / c.max_length
    yield identity("other positions", elsewhere, claimed["other"], STEPS)


@output_update.instance
def _(formula, case):
    """exact output step over all strings"""
    size, claimed = int(case.max_length), formula(case)
    ones, zeros = [[Fraction(1)] * (2 * size)] * (2 * size), [Fraction(0)] * (2 * size)
    total = dict.fromkeys(range(2 * size), Fraction(0))
    for n in range(1, size + 1):
        for i, value in exact_gradient(n, ones, zeros, lambda s: Fraction(-label(s), 2))[1].items():
            total[i] += value / size
    for i, value in total.items():
        yield exact("u", -case.rate_o * value, claimed["first" if i < 2 else "other"], case.having(token=i))


@output_update.simulation
def _(formula):
    """one kernel step on all strings, and what the product reports"""
    for max_length in LENGTHS:
        case = STEPS.check(max_length=max_length, rate_o=7.0)
        claimed = formula(case)
        u = descend(Strings(max_length), *zero_state(max_length), 1.0, case.rate_o, 1).u[-1]
        expected = np.where(np.arange(2 * max_length) < 2, claimed["first"], claimed["other"])
        yield close("u", u, expected, ROUNDING, case)
        reported = theory.output_update(max_length, case.rate_o)
        yield close("analytic.even_pairs.output_update", reported, claimed["first"], ROUNDING, case)


output_update.mutant("sign", first=lambda c, v: -v)
output_update.mutant("factor 1/2 forgotten", first=lambda c, v: 2 * v)
output_update.mutant("mean over strings of all lengths", first=lambda c, v: v * c.max_length / 3)
output_update.mutant("other tokens move", other=lambda c, v: c.rate_o / (8 * c.max_length))
output_update.mutant("L_max forgotten", first=lambda c, v: c.rate_o / 2)


AFTER_OUTPUT = ONE_LENGTH.having(weight=Real(), miss=Real(0, 1))


@claim(
    "even_pairs.attention_gradient",
    statement="At W = 0 and u = c at the two tokens of position 1 and 0 elsewhere, every string of length n has "
    "f = c/n. With miss = 1 / (1 + e^{c/n}), skew = 1 - 2 miss and scale = -c / (max_length n), n >= 2, the column of "
    "a last token (n, b) of dL/dW is scale (1 - 1/n) miss / 4 at (1, b), -scale (1 - 1/n) (1 - miss) / 4 at "
    "(1, 1 - b), scale skew / (8 n) at the tokens of the positions between, scale skew / (4 n) at (n, b), "
    "and 0 elsewhere.",
    latex=r"\frac{\partial L}{\partial W}=-\frac{c}{L_{\max}n}\Big[\tfrac{n-1}{4n}\sigma(-\tfrac cn),\ "
    r"-\tfrac{n-1}{4n}\sigma(\tfrac cn),\ \tfrac{\tanh(c/2n)}{8n},\ \tfrac{\tanh(c/2n)}{4n}\Big]",
    domain=AFTER_OUTPUT,
    source="even_pairs.gradient with P_l = 1/n and f = c/n; means over fair signs",
)
def attention_gradient(c):
    """``c.weight`` = c; ``c.miss`` is 1 / (1 + e^{c/n}) (the identity holds for any number in its place)."""
    scale, skew = -c.weight / ((c.n + c.longer) * c.n), 1 - 2 * c.miss
    return {
        "agree": scale * (1 - 1 / c.n) * c.miss / 4,
        "disagree": -scale * (1 - 1 / c.n) * (1 - c.miss) / 4,
        "middle": scale * skew / (8 * c.n),
        "last": scale * skew / (4 * c.n),
    }


def column_after_output(c):
    """The four entries, from means over fair signs."""

    def entry(weight):
        def of_label(y):
            miss = c.miss if y == 1 else 1 - c.miss  # 1 / (1 + e^{y c/n})
            slopes = gradient(Case(share=1 / c.n, weight=weight, value=c.weight / c.n, y=y, miss=miss))
            return slopes["slope"] * slopes["attention"] / (c.n + c.longer)

        return of_label

    one, symbol = sympy.Integer(1), sympy.Symbol("beta", real=True)
    return {
        "agree": mean_at(entry(c.weight), FIRST, one, one),
        "disagree": mean_at(entry(c.weight), FIRST, -one, one),
        "middle": mean_at(entry(0), MIDDLE, symbol, one),
        "last": mean_at(entry(0), LAST, one),
    }


@attention_gradient.proof
def _(formula):
    """means over fair signs, for any n >= 2, c and miss"""
    c = AFTER_OUTPUT.symbols()
    claimed = formula(c)
    for name, value in column_after_output(c).items():
        yield identity(name, value, claimed[name])


def after_output(n, weight):
    """e^W and u of the claim for strings of length n."""
    return [[Fraction(1)] * (2 * n)] * (2 * n), [weight, weight] + [Fraction(0)] * (2 * n - 2)


def kind(i, j):
    """Which entry of a column the token i is for the last token j."""
    if i < 2:
        return "agree" if i == j % 2 else "disagree"
    return "last" if i == j else "middle"


@attention_gradient.instance
def _(formula, case):
    """exact gradients over all strings of a length"""
    n, claimed = int(case.n), formula(case)
    weights, output = after_output(n, case.weight)
    by_score, _ = exact_gradient(n, weights, output, lambda s: -case.miss if label(s) == 1 else 1 - case.miss)
    for (i, j), value in by_score.items():
        place = case.having(token=i, last=j)
        yield exact(kind(i, j), value / (case.n + case.longer), claimed[kind(i, j)], place)


@attention_gradient.simulation
def _(formula):
    """the kernel's gradient on all strings, and what the product reports"""
    for max_length in LENGTHS:
        for weight in (0.3, -2.0, 9.0):
            W, u = zero_state(max_length)
            u[:2] = weight
            expected = expected_matrix(
                max_length, lambda n, w=weight, m=max_length: formula(float_case(n, m, w))
            )
            case = Case(max_length=max_length, weight=weight)
            yield close("dL/dW", loss_and_gradient(Strings(max_length), W, u)[1], expected, ROUNDING, case)
            reported = theory.attention_gradient(max_length, weight)
            yield close("analytic.even_pairs.attention_gradient", reported, expected, ROUNDING, case)


def float_case(n, max_length, weight, **more):
    miss = 1 / (1 + math.exp(weight / n))
    return AFTER_OUTPUT.check(n=n, longer=max_length - n, weight=weight, miss=miss).having(**more)


def expected_matrix(max_length, column):
    """A (D, D) matrix from the four entries ``column(n)`` of each length."""
    matrix = np.zeros((2 * max_length, 2 * max_length))
    for n in range(2, max_length + 1):
        entries = column(n)
        for j in (2 * n - 2, 2 * n - 1):
            for i in (*range(2 * n - 2), j):
                matrix[i, j] = entries[kind(i, j)]
    return matrix


attention_gradient.mutant("sign", agree=lambda c, v: -v, disagree=lambda c, v: -v)
attention_gradient.mutant("sign of the middle", middle=lambda c, v: -v)
attention_gradient.mutant("hit for miss", agree=lambda c, v: v / c.miss * (1 - c.miss))
attention_gradient.mutant("1 for 1 - 1/n", agree=lambda c, v: v * c.n / (c.n - 1))
attention_gradient.mutant("last token like a middle one", last=lambda c, v: v / 2)
attention_gradient.mutant("n for L_max", disagree=lambda c, v: v * (c.n + c.longer) / (c.n + c.longer + 1))


TWO_STEPS = ONE_LENGTH.having(rate_o=Real(0), rate_a=Real(0), miss=Real(0, 1))


@claim(
    "even_pairs.attention_opens",
    statement="O(1x)->A(1x) from zero init, rates > 0, gives every last token (n, b), n >= 2, a positive score for "
    "(1, b) and a negative one for (1, 1 - b), and their difference is rate_a rate_o (n - 1) / (16 n^2 max_length^2), "
    "whatever the size of the output step. So attention on the first token is larger where y = +1.",
    latex=r"W_{(1,b),(n,b)}>0>W_{(1,1-b),(n,b)},\qquad W_{(1,b),(n,b)}-W_{(1,1-b),(n,b)}="
    r"\frac{\eta_A\eta_O(n-1)}{16n^2L_{\max}^2}",
    domain=TWO_STEPS,
    source="even_pairs.output_update, even_pairs.attention_gradient; miss + (1 - miss) = 1",
)
def attention_opens(c):
    longest = c.n + c.longer
    common = c.rate_a * c.rate_o * (c.n - 1) / (16 * c.n**2 * longest**2)
    return {"agree": common * c.miss, "disagree": -common * (1 - c.miss), "difference": common}


def two_steps(c):
    """Scores of the first tokens after both steps, from the claims of each."""
    weight = output_update(c.having(max_length=c.n + c.longer))["first"]
    return {name: -c.rate_a * v for name, v in attention_gradient(c.having(weight=weight)).items()}


@attention_opens.proof
def _(formula):
    """the two steps, and the signs"""
    c = TWO_STEPS.symbols()
    claimed = formula(c)
    weight = output_update(c.having(max_length=c.n + c.longer))["first"]
    column = column_after_output(c.having(weight=weight))
    for name in ("agree", "disagree"):
        yield identity(name, -c.rate_a * column[name], claimed[name])
    yield identity("difference", -c.rate_a * (column["agree"] - column["disagree"]), claimed["difference"])
    odds, above = sympy.symbols("x m", positive=True)  # miss = 1 / (1 + x), n = 2 + m
    signs = {c.miss: 1 / (1 + odds), c.n: 1 + above, c.longer: sympy.Symbol("r", nonnegative=True)}
    yield positive("agree > 0", claimed["agree"].subs(signs))
    yield positive("disagree < 0", -claimed["disagree"].subs(signs))


@attention_opens.instance
def _(formula, case):
    """both exact steps over all strings of a length"""
    n, claimed = int(case.n), formula(case)
    weights, output = after_output(n, case.rate_o / (4 * (case.n + case.longer)))
    by_score, _ = exact_gradient(n, weights, output, lambda s: -case.miss if label(s) == 1 else 1 - case.miss)
    for j in (2 * n - 2, 2 * n - 1):
        found = [-case.rate_a * by_score.get((i, j), 0) / (case.n + case.longer) for i in (j % 2, 1 - j % 2)]
        yield exact("agree", found[0], claimed["agree"], case)
        yield exact("disagree", found[1], claimed["disagree"], case)
        yield exact("difference", found[0] - found[1], claimed["difference"], case)
        yield holds("signs", found[0] > 0 > found[1], case, found=found)


@attention_opens.simulation
def _(formula):
    """two steps of the kernel; the attention gap opens; what the product reports"""
    for max_length in LENGTHS[1:]:
        strings_, (W, u) = Strings(max_length), zero_state(max_length)
        rate_o, rate_a = 9.0 * max_length, 30.0 * max_length
        u = descend(strings_, W, u, 0.0, rate_o, 1).u[-1]
        W = descend(strings_, W, u, rate_a, 0.0, 1).W[-1]
        for n in range(2, max_length + 1):
            miss = 1 / (1 + math.exp(u[0] / n))
            case = TWO_STEPS.check(n=n, longer=max_length - n, rate_o=rate_o, rate_a=rate_a, miss=miss)
            claimed, j = formula(case), 2 * n - 2
            yield close("agree", W[0, j], claimed["agree"], ROUNDING, case, scale=rate_a)
            yield close("disagree", W[1, j], claimed["disagree"], ROUNDING, case, scale=rate_a)
            yield close("difference", W[0, j] - W[1, j], claimed["difference"], ROUNDING, case, scale=rate_a)
        reported = theory.attention_update(max_length, rate_o, rate_a)
        case = Case(max_length=max_length, rate_o=rate_o, rate_a=rate_a)
        yield close("analytic.even_pairs.attention_update", reported, W, ROUNDING, case, scale=rate_a)
        yield below("0 < attention gap", 0.0, attention_gap(strings_, W), case)


attention_opens.mutant("sign", agree=lambda c, v: -v, disagree=lambda c, v: -v, difference=lambda c, v: -v)
attention_opens.mutant("halves swapped", agree=lambda c, v: v / c.miss * (1 - c.miss))
attention_opens.mutant("factor 2", difference=lambda c, v: 2 * v)
attention_opens.mutant("n for n - 1", difference=lambda c, v: v * c.n / (c.n - 1))
attention_opens.mutant("L_max once", difference=lambda c, v: v * (c.n + c.longer))


@claim(
    "even_pairs.first_accuracy",
    statement="From zero init, after O(1x) and after O(1x)->A(1x) with rates > 0, every f is positive: exactly the "
    "even strings are right, 2^max_length of 2^(max_length + 1) - 2.",
    latex=r"f>0,\qquad \text{accuracy}=\frac{2^{L_{\max}}}{2^{L_{\max}+1}-2}",
    domain=STRINGS,
    source="f = c P_1 with c > 0; a length n >= 2 has 2^(n-1) even strings, length 1 has 2",
)
def first_accuracy(c):
    return {"right": 2**c.max_length, "wrong": 2**c.max_length - 2}


@first_accuracy.proof
def _(formula):
    """induction on max_length, and the sign of f"""
    c = STRINGS.symbols()
    claimed, n = formula(c), c.max_length
    single, more = (formula(Case(max_length=size)) for size in (sympy.Integer(1), n + 1))
    yield identity("max_length = 1: both strings are even", single["right"], 2)
    yield identity("max_length = 1: and none is odd", single["wrong"], 0)
    for name in claimed:
        yield identity(f"length n + 1 adds 2^n strings {name}", sympy.expand(more[name] - claimed[name]), 2**n)
    weight, own, rest = sympy.symbols("c e Z", positive=True)
    yield positive("f = c P_1 > 0", weight * own / (own + rest))


@first_accuracy.instance
def _(formula, case):
    """count over all strings at random rational attention and u > 0 at position 1 only"""
    size, claimed, right, all_ = int(case.max_length), formula(case), 0, 0
    weights, _ = random_state(case, size)
    _, output = after_output(size, Fraction(3, 2))
    for n in range(1, size + 1):
        for string in strings(n):
            right += label(string) * exact_output(string, weights, output) > 0
            all_ += 1
    yield exact("right strings", right, claimed["right"], case)
    yield exact("wrong strings", all_ - right, claimed["wrong"], case)


@first_accuracy.simulation
def _(formula):
    """the kernel after one and after two steps"""
    for max_length in LENGTHS:
        case, (W, u) = STRINGS.check(max_length=max_length), zero_state(max_length)
        claimed, strings_ = formula(case), Strings(max_length)
        u = descend(strings_, W, u, 0.0, 9.0 * max_length, 1).u[-1]
        for W_t in (W, descend(strings_, W, u, 30.0 * max_length, 0.0, 1).W[-1]):
            accuracy = evaluate(strings_, W_t, u)[1]
            right, wrong = accuracy * strings_.n_strings, (1 - accuracy) * strings_.n_strings
            yield close("right strings", right, claimed["right"], ROUNDING, case, scale=2**max_length)
            yield close("wrong strings", wrong, claimed["wrong"], ROUNDING, case, scale=2**max_length)


first_accuracy.mutant("sign of f: the odd strings", right=lambda c, v: v - 2, wrong=lambda c, v: v + 2)
first_accuracy.mutant("length 1 has one even string", right=lambda c, v: v - 1, wrong=lambda c, v: v + 1)
first_accuracy.mutant("all right", right=lambda c, v: 2 * v - 2, wrong=lambda c, v: 0)
first_accuracy.mutant("2^(L - 1)", right=lambda c, v: v / 2)


# ---- what attention must see -----------------------------------------------------------------------------------------


POSITIONS = STRINGS.having(unit=Real(0))


@claim(
    "even_pairs.positions_only",
    statement="If attention depends on positions only (W = 0, say), then f(00) + f(11) = f(01) + f(10) for the four "
    "strings that differ in their first and last symbol: no u separates the strings of any length n >= 2, every length "
    "n >= 2 loses at least ln 2, and the loss is above (1 - 1/max_length) ln 2 for every u. At W = 0 this is the "
    "infimum, approached as u_1 = t, u_2 = -t (both symbols), t -> infinity.",
    latex=r"P_l=P_l(n)\ \Longrightarrow\ \sum_{b_1,b_n}y f=0,\qquad L>\Big(1-\frac1{L_{\max}}\Big)\ln2",
    domain=POSITIONS,
    source="f is a sum over positions; (ln(1+e^{-a}) + ... )/4 >= ln(1 + e^{-(a+b+c+d)/4}) since ln cosh >= 0",
)
def positions_only(c):
    """Sum of y f over the four strings, a length's least loss and the infimum, both in units of ln 2."""
    return {"balance": 0, "length": 1, "infimum": 1 - 1 / c.max_length}


@positions_only.proof
def _(formula):
    """four strings with any other positions, the tangent of the loss at 0, and the limit"""
    c = POSITIONS.symbols()
    claimed = formula(c)
    first, last, middle = sympy.symbols("P_1 P_n M", real=True)  # shares; what the positions between add to f
    u = {(place, b): sympy.Symbol(f"u_{place}{b}", real=True) for place in "1n" for b in (0, 1)}
    balance = sum(
        (1 if b == e else -1) * (first * u["1", b] + middle + last * u["n", e]) for b in (0, 1) for e in (0, 1)
    )
    yield identity("sum of y f", balance, claimed["balance"])
    # With x = e^{m/2}: ln(1 + e^{-m}) = ln 2 - m/2 + ln((x + 1/x) / 2), and the m of the four strings sum to 0.
    x = sympy.Symbol("x", positive=True)
    powers = 2 ** claimed["length"] / x * (x + 1 / x) / 2  # e to the right side, with length in place of ln 2
    yield identity("1 + e^{-m} = e^(ln 2 - m/2) (x + 1/x) / 2", 1 + 1 / x**2, powers)
    yield identity("(x + 1/x) / 2 - 1", (x + 1 / x) / 2 - 1, (x - 1) ** 2 / (2 * x))
    gap = sympy.Symbol("g", nonnegative=True)
    yield positive("(x - 1)^2 / (2 x) >= 0", gap**2 / (2 * x), strict=False)
    yield positive("length 1: ln(1 + e^{-f}) > 0, as e^{-f} > 0", x)
    t = sympy.Symbol("t", positive=True)
    loss = (sympy.log(1 + sympy.exp(-t)) + (c.max_length - 1) * sympy.log(2)) / c.max_length
    limit = sympy.limit(sympy.log(1 + sympy.exp(-t)), t, sympy.oo)
    yield identity("limit of ln(1 + e^{-t})", limit, 0)
    in_the_limit = loss.subs(sympy.log(1 + sympy.exp(-t)), limit)
    yield identity("limit of the loss", in_the_limit / sympy.log(2), claimed["infimum"])


@positions_only.instance
def _(formula, case):
    """all strings at random attention by positions; products of 1 + e^{-y f} where e^f is rational"""
    size, claimed, rng = int(case.max_length), formula(case), random.Random(str(case))
    for n in range(2, size + 1):
        row = [Fraction(rng.randint(1, 9)) for _ in range(n)]
        weights = [[row[min(i // 2, n - 1)]] * (2 * n) for i in range(2 * n)]
        _, output = random_state(case, n)
        balance = {}
        for string in strings(n):
            f = exact_output(string, weights, output)
            balance[string[1:-1]] = balance.get(string[1:-1], 0) + label(string) * f
        for middle, total in balance.items():
            yield exact("sum of y f", total, claimed["balance"], case.having(middle=middle))
        powers = [rng.randint(-3, 3) for _ in range(2 * n)]  # uniform attention, u = n ln(unit) powers: e^f = unit^k
        odds = Fraction(1)
        for string in strings(n):
            odds *= 1 + case.unit ** (-label(string) * sum(powers[i] for i in tokens(string)))
        least = Fraction(2) ** (2**n * claimed["length"])
        yield holds("a length loses at least ln 2", odds >= least, case.having(n=n), powers=powers)
        at_zero = Fraction(2) ** (2**n)  # f = 0: u_1 = t, u_2 = -t at uniform attention
        yield exact("and ln 2 at f = 0", at_zero, least, case.having(n=n))
    lost = sum(1 for n in range(2, size + 1))  # lengths at f = 0; length 1 loses ln(1 + e^{-t})
    yield exact("infimum", Fraction(lost, size), claimed["infimum"], case)


@positions_only.simulation
def _(formula):
    """the kernel at random u and long output phases, the hard margin, and the approach to the infimum"""
    for max_length in LENGTHS[1:]:
        strings_, case = Strings(max_length), POSITIONS.check(max_length=max_length, unit=1.0)
        claimed = formula(case)
        infimum = claimed["infimum"] * math.log(2)
        reported = theory.output_only_loss(max_length)
        yield close("analytic.even_pairs.output_only_loss", reported, infimum, ROUNDING, case)
        rng = np.random.default_rng(max_length)
        W = np.repeat(rng.standard_normal((max_length, max_length)), 2, axis=0).repeat(2, axis=1)
        trained = descend(strings_, W, rng.standard_normal(2 * max_length), 0.0, 2.0, 500)
        yield below("infimum <= loss of trained outputs", infimum, trained.loss, case)
        f = scores(strings_, W, trained.u[-1])
        for n in range(2, max_length + 1):
            symbols = twin.strings(n)
            balance = (twin.labels(symbols) * f[2**n - 2 : 2 ** (n + 1) - 2]).reshape(2, -1, 2).sum(axis=(0, 2))
            yield close("sum of y f", balance, claimed["balance"], ROUNDING, case, scale=np.abs(f).max())
        witness = theory.hard_margin(strings_, W)
        yield close("the hull of the signed points holds 0", witness.violation, claimed["balance"], ROUNDING, case)
        u = np.zeros(2 * max_length)
        u[:2], u[2:4] = 60.0, -60.0
        loss = evaluate(strings_, zero_state(max_length)[0], u)[0]
        yield close("loss at t = 60", loss, infimum, ROUNDING, case)


positions_only.mutant("sign: infimum above ln 2", infimum=lambda c, v: 2 - v, length=lambda c, v: -v)
positions_only.mutant("infimum ln 2", infimum=lambda c, v: 1)
positions_only.mutant("infimum 0", infimum=lambda c, v: 0)
positions_only.mutant("a length loses 2 ln 2", length=lambda c, v: 2)
positions_only.mutant("the four do not balance", balance=lambda c, v: 1)
positions_only.mutant("two lengths solved", infimum=lambda c, v: 1 - 2 / c.max_length)


# ---- symmetric states ------------------------------------------------------------------------------------------------

SYMMETRIC = ONE_LENGTH.having(miss_even=Real(0, 1), miss_odd=Real(0, 1), share_even=Real(0, 1), share_odd=Real(0, 1),
                              weight=Real(), value_even=Real(), value_odd=Real())  # fmt: skip


@claim(
    "even_pairs.symmetric_states",
    statement="If u[l, b] = v_l, W[(1, b), (n, c)] depends on n and on whether b = c, and W[(l, b), (n, c)] on l and n "
    "only (1 < l <= n), then f depends on the length and the label only, and so do dL/du and dL/dW: such states, zero "
    "init among them, stay such for ever under any plan. Per string length n >= 2, with misses, shares P_l and values "
    "f of the even and of the odd strings, the slopes are -miss_even P_1 (v_1 - f)/4 (b = c), "
    "+miss_odd P_1 (v_1 - f)/4 (b != c), those of both labels halved for 1 < l < n, both for l = n, and "
    "(miss_odd P_l - miss_even P_l)/4 by u[l, b], all divided by max_length.",
    latex=r"u_{l,b}=v_l,\ W_{(1,b),(n,c)}=S^{[b=c]}_n,\ W_{(l,b),(n,c)}=S_{n,l}\ "
    r"\text{ is invariant under gradient descent}",
    domain=SYMMETRIC,
    source="even_pairs.gradient; means over fair signs",
)
def symmetric_states(c):
    """Slopes at a token of weight ``c.weight``, whose share is ``c.share_even`` or ``c.share_odd``."""
    even = -c.miss_even * c.share_even * (c.weight - c.value_even) / (c.n + c.longer)
    odd = c.miss_odd * c.share_odd * (c.weight - c.value_odd) / (c.n + c.longer)
    return {
        "agree": even / 4,
        "disagree": odd / 4,
        "middle": (even + odd) / 8,
        "last": (even + odd) / 4,
        "output": (c.miss_odd * c.share_odd - c.miss_even * c.share_even) / (4 * (c.n + c.longer)),
    }


@symmetric_states.proof
def _(formula):
    """means over fair signs, for any n, shares, values and misses; no slope depends on the symbol"""
    c = SYMMETRIC.symbols()
    claimed = formula(c)
    symbol, last = sympy.symbols("beta gamma", real=True)

    def entry(layer):
        def of_label(y):
            share, value, miss = (
                (c.share_even, c.value_even, c.miss_even) if y == 1 else (c.share_odd, c.value_odd, c.miss_odd)
            )
            slopes = gradient(Case(share=share, weight=c.weight, value=value, y=y, miss=miss))
            return slopes["slope"] * slopes[layer] / (c.n + c.longer)

        return of_label

    square = {symbol**2: 1, last**2: 1}
    for name, relation in (("agree", symbol), ("disagree", -symbol)):
        found = mean_at(entry("attention"), FIRST, symbol, relation)
        yield identity(f"{name}, either symbol", sympy.expand(found).subs(square), claimed[name])
    found = mean_at(entry("attention"), MIDDLE, symbol, last)
    yield identity("middle, any symbols", sympy.expand(found).subs(square), claimed["middle"])
    found = mean_at(entry("attention"), LAST, symbol)
    yield identity("last, either symbol", sympy.expand(found).subs(square), claimed["last"])
    for name, sign in (("first", FIRST), ("middle", MIDDLE), ("last", LAST)):
        found = mean_at(entry("output"), sign, symbol)
        yield identity(f"output, {name} token, either symbol", sympy.expand(found).subs(square), claimed["output"])


@symmetric_states.instance
def _(formula, case):
    """exact gradients over all strings of a length at random symmetric e^W and u"""
    n, rng = int(case.n), random.Random(str(case))
    own, other, *rest = (Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in range(n + 1))
    v = [Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in range(n)]
    weights = [[(own if i == j % 2 else other) if i < 2 else rest[i // 2 - 1] for j in range(2 * n)]
               for i in range(2 * n)]
    output = [v[i // 2] for i in range(2 * n)]
    slopes = {1: -case.miss_even, -1: case.miss_odd}
    by_score, by_weight = exact_gradient(n, weights, output, lambda s: slopes[label(s)])
    rows = {1: [own, *rest], -1: [other, *rest]}
    values = {y: sum(w * x for w, x in zip(row, v, strict=True)) / sum(row) for y, row in rows.items()}
    for string in strings(n):
        f = exact_output(string, weights, output)
        yield exact("f by length and label", f, values[label(string)], case.having(string=string))

    def claimed(i):
        share = {y: row[i // 2] / sum(row) for y, row in rows.items()}
        return formula(case.having(share_even=share[1], share_odd=share[-1], weight=output[i],
                                   value_even=values[1], value_odd=values[-1]))

    for (i, j), value in by_score.items():
        found, name = value / (case.n + case.longer), kind(i, j)
        yield exact(name, found, claimed(i)[name], case.having(token=i, last=j))
    for i, value in by_weight.items():
        yield exact("output", value / (case.n + case.longer), claimed(i)["output"], case.having(token=i))


@symmetric_states.simulation
def _(formula):
    """the kernel's gradient at symmetric states, and the product's short descents against the kernel's"""
    for max_length in LENGTHS:
        rng, strings_ = np.random.default_rng(max_length), Strings(max_length)
        start = rng.standard_normal((max_length, max_length + 1)), rng.standard_normal(max_length)
        W, u = theory.expand(*start)
        case, (_, d_W, d_u) = Case(max_length=max_length), loss_and_gradient(strings_, W, u)
        columns, by_weight = {}, np.zeros(max_length)
        by_weight[0] = -1 / (1 + math.exp(u[0])) / (2 * max_length)  # length 1
        for n in range(2, max_length + 1):
            row, v = start[0][n - 1], start[1][:n]
            shares = [np.exp([row[odd], *row[2 : n + 1]]) for odd in (0, 1)]
            shares = [share / share.sum() for share in shares]
            f = [share @ v for share in shares]
            misses = 1 / (1 + np.exp([f[0], -f[1]]))
            entries = formula(Case(n=n, longer=max_length - n, miss_even=misses[0], miss_odd=misses[1], weight=v,
                                   share_even=shares[0], share_odd=shares[1], value_even=f[0], value_odd=f[1]))
            by_weight[:n] += entries["output"]
            columns[n] = entries
        expected = np.zeros_like(W)
        for n, entries in columns.items():
            for j in (2 * n - 2, 2 * n - 1):
                for i in (*range(2 * n - 2), j):
                    expected[i, j] = entries[kind(i, j)][i // 2]
        yield close("dL/dW", d_W, expected, ROUNDING, case)
        yield close("dL/du", d_u, np.repeat(by_weight, 2), ROUNDING, case)
        short = theory.symmetric_path(max_length, 3.0, 2.0, 50)
        path = descend(strings_, *zero_state(max_length), 3.0, 2.0, 50)
        W, u = theory.expand(short.scores, short.weights)
        yield close("analytic.even_pairs.symmetric_path: W", W, path.W[-1], DRIFT, case)
        yield close("analytic.even_pairs.symmetric_path: u", u, path.u[-1], DRIFT, case)
        yield close("analytic.even_pairs.symmetric_path: loss", short.loss, path.loss, DRIFT, case)


symmetric_states.mutant("sign of the scores' slopes", agree=lambda c, v: -v, middle=lambda c, v: -v)
symmetric_states.mutant("sign of the odd strings", disagree=lambda c, v: -v)
symmetric_states.mutant("middle like the last", middle=lambda c, v: 2 * v)
symmetric_states.mutant("last like the middle", last=lambda c, v: v / 2)
symmetric_states.mutant("output not halved by symbol", output=lambda c, v: 2 * v)
symmetric_states.mutant("labels swapped", output=lambda c, v: -v)
