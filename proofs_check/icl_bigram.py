"""In-context bigrams: the gradient, its invariances, and what infinite data make of it from zero init.

A context has T + 1 distinct letters x_0, ..., x_T of d; the query is a key x_{l-1}, the target its value x_l. Shares
P = softmax over l of A[query, x_{l-1}], logits z_j = sum_l P_l B_{j, x_l}, loss log sum_j e^{z_j} - z_target.

On the span of I - J/d, states are written so that exact arithmetic can follow them: with whole numbers u and w and a
number x > 0, e^a = u/w, e^{b pi} = x^u and e^{b pi'} = x^w, so pi = u/n, pi' = w/n and b = n log x, n = u + (T - 1) w.
"""

import math
import random
from fractions import Fraction
from functools import cache, reduce
from itertools import permutations
from operator import add

import numpy as np
import sympy

from analytic import icl_bigram as theory
from analytic.gradients import icl_bigram_twin as twin
from analytic.gradients.icl_bigram import Contexts, descend, loss_and_gradient, sample_contexts

from .claims import claim
from .decide import ROUNDING, below, close, exact, holds, identity, positive, sampled
from .domain import Case, Domain, Real, Whole
from .letters import Jet

CONTEXTS = Domain(d=Whole(2), pairs=Whole(1, below="d"))
STATES = CONTEXTS.having(own=Whole(1), other=Whole(1), unit=Real(0))  # u, w, x
SIZES = ((2, 1), (4, 1), (4, 3), (6, 3), (6, 5))  # d and pairs, with few enough contexts for the kernel to see them all
RANDOM_SIZES = ((2, 1, 5), (7, 3, 40), (20, 9, 60))  # d, pairs and sampled contexts
SEEDS, SAMPLE = range(12), 2000  # sampled one-step runs at d = 10, T = 4
DRIFT = 1e-10  # a descent of some 50 steps enlarges rounding


# ---- from first principles -------------------------------------------------------------------------------------------


@cache
def contexts_of(d, pairs):
    """All contexts with every query, equally likely: a list of (letters, place of the query)."""
    return [(x, place) for x in permutations(range(d), pairs + 1) for place in range(pairs)]


@cache
def all_contexts(d, pairs):
    """The same as data of the kernel: its mean over them is the infinite-data value."""
    letters, places = zip(*contexts_of(d, pairs), strict=True)
    return Contexts.from_arrays(letters, places, d)


def centred(d):
    """I - J/d."""
    return np.eye(d) - 1.0 / d


def exact_shares(x, place, weights):
    """P of one context; ``weights`` are e^A, fractions or series."""
    row = [weights[x[place]][key] for key in x[:-1]]
    total = reduce(add, row)
    return [weight / total for weight in row]


def exact_powers(x, place, weights, output, power):
    """e^z of one context; ``power(z)`` is e^z, in the units of ``output``."""
    shares = exact_shares(x, place, weights)
    return [power(sum(p * row[v] for p, v in zip(shares, x[1:], strict=True))) for row in output]


def exact_slopes(x, place, weights, powers, output):
    """Derivatives of one context's loss by all entries it touches: {(query, key): slope}, {(letter, value): slope}.

    ``powers`` are e^{z_j}. Series of first order carry the derivative of each share through the softmax.
    """
    target, total, letters = x[place + 1], sum(powers), range(len(powers))

    def of_logits(slopes):
        return sum(p * slope for p, slope in zip(powers, slopes, strict=True)) / total - slopes[target]

    by_attention, by_output = {}, {}
    for moved in x[:-1]:
        row = [Jet(w, w if key == moved else 0) for key, w in enumerate(weights[x[place]])]  # d e^A / dA = e^A
        shares = [share.coefficients[1] for share in exact_shares(x, place, {x[place]: row})]
        slopes = [sum(s * output[j][v] for s, v in zip(shares, x[1:], strict=True)) for j in letters]
        by_attention[x[place], moved] = of_logits(slopes)
    for share, value in zip(exact_shares(x, place, weights), x[1:], strict=True):
        for letter in letters:
            by_output[letter, value] = of_logits([share if j == letter else 0 for j in letters])
    return by_attention, by_output


def exact_population_gradient(d, pairs, weights, output, power):
    """Mean of `exact_slopes` over all contexts, as two dictionaries."""
    means, everything = ({}, {}), contexts_of(d, pairs)
    probability = Fraction(1, len(everything))
    for x, place in everything:
        powers = exact_powers(x, place, weights, output, power)
        for mean, slopes in zip(means, exact_slopes(x, place, weights, powers, output), strict=True):
            for entry, slope in slopes.items():
                mean[entry] = mean.get(entry, 0) + slope * probability
    return means


def exact_state(c, shift_a=1, shift_b=0):
    """e^A, B and e^z of the state (u, w, x) of an exact case, with J-parts: A moved by log shift_a, B by shift_b.

    B is in units of log x, so that x^z is rational: z is a multiple of n pi and n pi', and the J-part a constant.
    """
    d, n = int(c.d), c.own + (c.pairs - 1) * c.other
    letters = range(d)
    weights = [[shift_a * (c.own if i == j else c.other) for j in letters] for i in letters]
    output = [[n * (i == j) + shift_b for j in letters] for i in letters]
    return weights, output, lambda z: c.unit**z


def exact_odds(c):
    """e^L of every context at the state of an exact case."""
    odds, (weights, output, power) = [], exact_state(c)
    for x, place in contexts_of(int(c.d), int(c.pairs)):
        powers = exact_powers(x, place, weights, output, power)
        odds.append(sum(powers) / powers[x[place + 1]])
    return odds


class Symmetric:
    """pi, pi', the target's and another value's e^z, and softmax(z) - e_target there, from (u, w, x)."""

    def __init__(self, c):
        self.n = c.own + (c.pairs - 1) * c.other
        self.pi, self.rest = c.own / self.n, c.other / self.n
        self.target, self.seen = c.unit**c.own, c.unit**c.other
        self.total = self.target + (c.pairs - 1) * self.seen + c.d - c.pairs
        self.g_target, self.g_seen, self.g_unseen = self.target / self.total - 1, self.seen / self.total, 1 / self.total


def entries(c, layer, g=None):
    """A diagonal and another entry of the population gradient by one layer (by A: per b), from the law of two letters.

    ``g``: softmax(z) - e_target at the target, another value, a letter that is no value. For distinct letters v and j,
    v is the value of a given pair with probability 1/d, and j then that of another given pair with 1/(d - 1), and no
    value with (d - T)/(d - 1); so for keys.
    """
    s, d, pairs = Symmetric(c), c.d, c.pairs
    target, seen, unseen = g or (s.g_target, s.g_seen, s.g_unseen)
    if layer == "output":
        diagonal = (s.pi * target + (pairs - 1) * s.rest * seen) / d
        with_target = (pairs - 1) * seen + (d - pairs) * unseen
        with_seen = target + (pairs - 2) * seen + (d - pairs) * unseen
        return diagonal, (s.pi * with_target + (pairs - 1) * s.rest * with_seen) / (d * (d - 1))
    mean = s.pi * target + (pairs - 1) * s.rest * seen  # sum_m P_m D_m, D_m = g . B[:, x_m] = b g_{x_m}, as sum g = 0
    return s.pi * (target - mean) / d, (pairs - 1) * s.rest * (seen - mean) / (d * (d - 1))


def multiple(diagonal, d):
    """c of a matrix c (I - J/d), from its diagonal."""
    return diagonal * d / (d - 1)


# ---- the gradient ----------------------------------------------------------------------------------------------------


@claim(
    "icl.gradient",
    statement="For any alphabet and any contexts: with shares P, logits z, g = softmax(z) - e_target and "
    "D_l = sum_j g_j B_{j, x_l}, the loss of a context has the slopes P_l g_j by B_{j, x_l} and "
    "P_l (D_l - sum_m P_m D_m) by A_{query, x_{l-1}}, and none by other entries.",
    latex=r"\frac{\partial L}{\partial B_{j,x_l}}=P_l\,g_j,\qquad \frac{\partial L}{\partial A_{q,x_{l-1}}}="
    r"P_l\Big(D_l-\sum_m P_mD_m\Big),\qquad g=\mathrm{softmax}(z)-e_{\rm target},\ D_l=g^\top B_{\cdot,x_l}",
    domain=CONTEXTS,
    source="chain rule through the softmax of the scores and the softmax of the logits",
)
def gradient(c):
    """``c.share`` = P_l, ``c.g`` = g_j, ``c.dot`` = D_l, ``c.mean_dot`` = sum_m P_m D_m."""
    return {"output": c.share * c.g, "attention": c.share * (c.dot - c.mean_dot)}


@gradient.proof
def _(formula):
    """slope of a logit by an entry, slope of the loss by a logit, and their product; all others are two symbols"""
    alpha, weight, others_value = sympy.symbols("alpha B_jl N", real=True)
    z, is_target = sympy.symbols("z delta", real=True)
    rest, others = sympy.symbols("Z R", positive=True)  # sum of the other e^score; of the other e^z
    total = sympy.exp(alpha) + rest
    share, logit = sympy.exp(alpha) / total, (sympy.exp(alpha) * weight + others_value) / total
    g = sympy.exp(z) / (sympy.exp(z) + others) - is_target
    yield identity("dL/dz_j = g_j", sympy.diff(sympy.log(sympy.exp(z) + others) - is_target * z, z), g)
    letter = formula(Case(share=share, g=g, dot=g * weight, mean_dot=g * logit))  # D is a sum over letters j
    yield identity("g_j dz_j/dB_{j, x_l}", g * sympy.diff(logit, weight), letter["output"])
    yield identity("g_j dz_j/dA_{q, x_{l-1}}", g * sympy.diff(logit, alpha), letter["attention"])
    one, two = (Case(share=share, g=0, dot=sympy.Symbol(f"D{i}"), mean_dot=sympy.Symbol(f"M{i}")) for i in (1, 2))
    both = Case(share=share, g=0, dot=one.dot + two.dot, mean_dot=one.mean_dot + two.mean_dot)
    parts = formula(one)["attention"] + formula(two)["attention"]
    yield identity("the slope by A adds up over letters", parts, formula(both)["attention"])


@gradient.instance
def _(formula, case):
    """exact slopes of one context by series arithmetic, at random rational weights, outputs and e^z"""
    rng, d = random.Random(str(case)), int(case.d)
    x = rng.sample(range(d), int(case.pairs) + 1)
    place = rng.randrange(int(case.pairs))
    weights = [[Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in range(d)] for _ in range(d)]
    output = [[Fraction(rng.randint(-9, 9), rng.randint(1, 4)) for _ in range(d)] for _ in range(d)]
    powers = [Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in range(d)]
    where = case.having(letters=x, query=place)
    shares = exact_shares(x, place, weights)
    g = [power / sum(powers) - (j == x[place + 1]) for j, power in enumerate(powers)]
    dots = [sum(g[j] * output[j][value] for j in range(d)) for value in x[1:]]
    mean_dot = sum(share * dot for share, dot in zip(shares, dots, strict=True))
    by_attention, by_output = exact_slopes(x, place, weights, powers, output)
    for share, dot, key, value in zip(shares, dots, x[:-1], x[1:], strict=True):
        claimed = formula(Case(share=share, g=0, dot=dot, mean_dot=mean_dot))["attention"]
        yield exact("by A", by_attention[x[place], key], claimed, where)
        for j in range(d):
            claimed = formula(Case(share=share, g=g[j], dot=dot, mean_dot=mean_dot))["output"]
            yield exact("by B", by_output[j, value], claimed, where)


def mean_gradient(formula, contexts, attention, output):
    """The formula averaged over contexts: two (d, d) arrays."""
    letters, queries, n = contexts.letters.astype(int), contexts.queries.astype(int), np.arange(contexts.n_contexts)
    shares, z = twin.forward(letters, queries, attention, output)
    g = np.exp(z - z.max(axis=1, keepdims=True))
    g /= g.sum(axis=1, keepdims=True)
    g[n, letters[n, queries + 1]] -= 1.0
    dots = np.einsum("nj,nlj->nl", g, output.T[letters[:, 1:]])
    pair = Case(share=shares, g=0.0, dot=dots, mean_dot=np.sum(shares * dots, axis=1, keepdims=True))
    d_attention, d_output = np.zeros((2, contexts.d, contexts.d))
    np.add.at(d_attention, (letters[n, queries][:, None], letters[:, :-1]), formula(pair)["attention"])
    one = Case(share=shares[..., None], g=g[:, None, :], dot=0.0, mean_dot=0.0)
    np.add.at(d_output, letters[:, 1:], formula(one)["output"])
    return d_attention / len(n), d_output.T / len(n)


@gradient.simulation
def _(formula):
    """complex-step derivative of the loss, and the kernel, at random states"""
    rng = np.random.default_rng(1)
    for d, pairs, count in RANDOM_SIZES:
        contexts = sample_contexts(rng, count, d, pairs)
        state, case = rng.normal(size=(2, d, d)), Case(d=d, pairs=pairs)
        claimed = mean_gradient(formula, contexts, *state)
        for name, found, slope in zip("AB", loss_and_gradient(contexts, *state)[1:], claimed, strict=True):
            yield close(f"kernel, by {name}", found, slope, ROUNDING, case)
        direction = rng.normal(size=(2, d, d))
        moved = twin.loss_and_gradient(
            contexts.letters.astype(int), contexts.queries.astype(int), *(state + 1e-100j * direction)
        )
        slope = sum(np.sum(part * along) for part, along in zip(claimed, direction, strict=True))
        yield close("complex step along a random direction", moved[0].imag / 1e-100, slope, ROUNDING, case)


gradient.mutant("sign of the slope by A", attention=lambda c, v: -v)
gradient.mutant("sign of the slope by B", output=lambda c, v: -v)
gradient.mutant("mean of D added", attention=lambda c, v: c.share * (c.dot + c.mean_dot))
gradient.mutant("softmax derivative forgotten", attention=lambda c, v: c.share * c.dot)
gradient.mutant("share forgotten", output=lambda c, v: c.g)
gradient.mutant("factor 2", attention=lambda c, v: 2 * v, output=lambda c, v: 2 * v)


@claim(
    "icl.shift_invariance",
    statement="Adding a constant to a row of A changes no share, and adding one to a column of B changes no "
    "softmax(z): so for any contexts the gradient by A sums to 0 over each row and that by B over each column, and "
    "gradient descent keeps the row means of A and the column means of B at their initial values, under every plan.",
    latex=r"\sum_k\frac{\partial L}{\partial A_{ik}}=0,\qquad \sum_j\frac{\partial L}{\partial B_{jv}}=0,\qquad "
    r"L(A+s\mathbf 1^\top,B+\mathbf 1c^\top)=L(A,B)",
    domain=CONTEXTS,
    source="softmax; icl.gradient",
)
def shift_invariance(c):
    """Sums of the slopes over a row of A and a column of B, and the loss's change under shifts."""
    return {"row_sum": 0, "column_sum": 0, "change": 0}


@shift_invariance.proof
def _(formula):
    """one pair, one letter, and symbols for the rest of any context and alphabet"""
    claimed = formula(None)
    share, dot, rest_dot, g, z, shift = sympy.symbols("P D N g z c", real=True)
    mean = share * dot + rest_dot  # sum_m P_m D_m; the other pairs have the shares 1 - P and the sum N
    pair = gradient(Case(share=share, g=0, dot=dot, mean_dot=mean))["attention"]
    others = rest_dot - (1 - share) * mean
    yield identity("sum over the keys of the slopes by A", pair + others, claimed["row_sum"])
    # the g of the other letters sum to -g
    column = [gradient(Case(share=share, g=one, dot=0, mean_dot=0))["output"] for one in (g, -g)]
    yield identity("sum over the letters of the slopes by B", sum(column), claimed["column_sum"])
    rest = sympy.Symbol("R", positive=True)
    power = sympy.exp(z) / (sympy.exp(z) + rest)
    moved = sympy.exp(z) * sympy.exp(shift) / (sympy.exp(z) * sympy.exp(shift) + rest * sympy.exp(shift))
    yield identity("a softmax under a shift of all its arguments", moved - power, claimed["change"])
    weight, rest_weight = sympy.symbols("B W", real=True)  # z_j = P B_jl + W; every column moves all z_j alike
    logits = share * (weight + shift) + rest_weight - (share * weight + rest_weight) - share * shift
    yield identity("all logits move by P_l c", logits, claimed["change"])


@shift_invariance.instance
def _(formula, case):
    """exact slopes over all contexts at rational weights, outputs and e^z; shares under a shift"""
    rng, d, pairs, claimed = random.Random(str(case)), int(case.d), int(case.pairs), formula(case)
    weights = [[Fraction(rng.randint(1, 9)) for _ in range(d)] for _ in range(d)]
    output = [[Fraction(rng.randint(-9, 9)) for _ in range(d)] for _ in range(d)]
    for x, place in rng.sample(contexts_of(d, pairs), 2):
        where = case.having(letters=x, query=place)
        powers = [Fraction(rng.randint(1, 9)) for _ in range(d)]
        by_attention, by_output = exact_slopes(x, place, weights, powers, output)
        yield exact("row of A", sum(by_attention.values()), claimed["row_sum"], where)
        for value in x[1:]:
            column = sum(by_output[j, value] for j in range(d))
            yield exact("column of B", column, claimed["column_sum"], where)
        scaled = [[7 * weight for weight in row] for row in weights]  # e^{A + log 7}
        change = exact_shares(x, place, scaled)[0] - exact_shares(x, place, weights)[0]
        yield exact("a share under a shift", change, claimed["change"], where)


@shift_invariance.simulation
def _(formula):
    """sums of the kernel's gradients, its loss under shifts, and means along a descent"""
    rng, claimed = np.random.default_rng(2), formula(None)
    for d, pairs, count in RANDOM_SIZES:
        contexts, case = sample_contexts(rng, count, d, pairs), Case(d=d, pairs=pairs)
        attention, output = rng.normal(size=(2, d, d))
        loss, d_attention, d_output = loss_and_gradient(contexts, attention, output)
        yield close("rows of the gradient by A", d_attention.sum(axis=1), claimed["row_sum"], ROUNDING, case)
        yield close("columns of the gradient by B", d_output.sum(axis=0), claimed["column_sum"], ROUNDING, case)
        moved = loss_and_gradient(contexts, attention + rng.normal(size=(d, 1)), output + rng.normal(size=d))
        yield close("loss under shifts", moved[0] - loss, claimed["change"], ROUNDING, case)
        path = descend(contexts, attention, output, 3.0, 2.0, 50)
        means = (path.attention - attention).mean(axis=2), (path.output - output).mean(axis=1)
        yield close("row means of A", means[0], claimed["row_sum"], ROUNDING, case)
        yield close("column means of B", means[1], claimed["column_sum"], ROUNDING, case)


shift_invariance.mutant("sign: rows sum to 1", row_sum=lambda c, v: 1)
shift_invariance.mutant("columns sum to 1", column_sum=lambda c, v: 1)
shift_invariance.mutant("columns sum to -1", column_sum=lambda c, v: -1)
shift_invariance.mutant("the loss moves with the shift", change=lambda c, v: 1)


# ---- infinite data ---------------------------------------------------------------------------------------------------


@claim(
    "icl.closed_span",
    statement="On infinite data the span of I and J is closed: at A = a I + a' J, B = b I + b' J both gradients are "
    "multiples of I - J/d, that is, all diagonal entries are equal, and every other entry is -1/(d - 1) times them. So "
    "from zero init A and B stay multiples of I - J/d under every plan.",
    latex=r"\nabla_A L,\ \nabla_B L\in\mathbb R\,(I-J/d)\quad\text{at}\quad A,B\in\mathrm{span}\{I,J\}",
    domain=STATES,
    source="the law of the contexts is invariant under permutations of the letters, and the commutant of all "
    "permutation matrices is span{I, J}; icl.shift_invariance takes J away",
)
def closed_span(c):
    """Entry off the diagonal over entry on it, and the spread of the entries of either kind."""
    return {"ratio": -1 / (c.d - 1), "spread": 0}


@closed_span.proof
def _(formula):
    """entries from the law of two letters, for any g that sums to 0; a matrix that commutes with two transpositions"""
    c = STATES.symbols()
    claimed = formula(c)
    target, seen = sympy.symbols("g_t g_s", real=True)
    unseen = -(target + (c.pairs - 1) * seen) / (c.d - c.pairs)
    for layer in ("output", "attention"):
        diagonal, off = entries(c, layer, (target, seen, unseen))
        yield identity(f"other entries, {layer}", off, claimed["ratio"] * diagonal, STATES)
    matrix = sympy.Matrix(3, 3, sympy.symbols("m:9"))
    swaps = [sympy.Matrix(3, 3, [int(j == p[i]) for i in range(3) for j in range(3)]) for p in ((1, 0, 2), (0, 2, 1))]
    (solution,) = sympy.linsolve([e for s in swaps for e in s * matrix - matrix * s], list(matrix))
    common = sympy.Matrix(3, 3, solution)
    for i in range(3):
        yield identity("commuting: equal diagonal", common[i, i] - common[0, 0], claimed["spread"])
        for j in set(range(3)) - {i}:
            yield identity("commuting: equal elsewhere", common[i, j] - common[0, 1], claimed["spread"])


@closed_span.instance
def _(formula, case):
    """exact gradient over all contexts, with J-parts in A and B"""
    d, claimed = int(case.d), formula(case)
    weights, output, power = exact_state(case, Fraction(3, 2), 2)
    for name, slopes in zip("AB", exact_population_gradient(d, int(case.pairs), weights, output, power), strict=True):
        first = slopes.get((0, 0), 0)
        for i in range(d):
            yield exact(f"diagonal of {name}", slopes.get((i, i), 0) - first, claimed["spread"], case)
            for j in set(range(d)) - {i}:
                yield exact(f"other entries of {name}", slopes.get((i, j), 0), claimed["ratio"] * first, case)


@closed_span.simulation
def _(formula):
    """joint descent from zero init on all contexts: distance from the span, entry by entry"""
    for d, pairs in SIZES:
        case = STATES.check(d=d, pairs=pairs, own=1, other=1, unit=1.0)
        claimed = formula(case)
        path = descend(all_contexts(d, pairs), np.zeros((d, d)), np.zeros((d, d)), 20.0, 5.0, 50)
        for name, stack in (("A", path.attention), ("B", path.output)):
            diagonal = stack[:, :1, :1] * np.eye(d)
            expected = diagonal + (1 - np.eye(d)) * (claimed["ratio"] * stack[:, :1, :1] + claimed["spread"])
            yield close(f"{name} on the span", stack, expected, DRIFT, case)


closed_span.mutant("sign of the other entries", ratio=lambda c, v: -v)
closed_span.mutant("d for d - 1", ratio=lambda c, v: -1 / c.d)
closed_span.mutant("multiples of I", ratio=lambda c, v: 0)
closed_span.mutant("entries differ", spread=lambda c, v: 1)


@claim(
    "icl.dynamics",
    statement="At A = a (I - J/d), B = b (I - J/d), with pi = e^a/(e^a + T - 1), pi' = 1/(e^a + T - 1) and "
    "S = e^{b pi} + (T - 1) e^{b pi'} + d - T, every context has the loss log S - b pi, and the population gradients "
    "are slope_A b (I - J/d) and slope_B (I - J/d) with "
    "slope_B = -((T - 1) (pi - pi') e^{b pi'} + (d - T) pi)/(S (d - 1)), "
    "slope_A = -pi pi' (T - 1) (T e^{b pi'} + d - T)/(S (d - 1)). That is gradient descent on (a, b) with 1/(d - 1) "
    "times the rates.",
    latex=r"L(a,b)=\ln\!\big(e^{b\pi}+(T-1)e^{b\pi'}+d-T\big)-b\pi,\qquad \nabla_AL=\frac{\partial_aL}{d-1}(I-J/d),"
    r"\quad \nabla_BL=\frac{\partial_bL}{d-1}(I-J/d)",
    domain=STATES,
    source="icl.gradient and icl.closed_span; |I - J/d|^2 = d - 1",
)
def dynamics(c):
    """u = ``own``, w = ``other``, x = ``unit``: pi = u/n, pi' = w/n, e^{b pi} = x^u, e^{b pi'} = x^w, b = n log x."""
    s = Symmetric(c)
    scale = s.total * (c.d - 1)
    return {
        "odds": s.total / s.target,  # e^L
        "slope_b": -((c.pairs - 1) * (s.pi - s.rest) * s.seen + (c.d - c.pairs) * s.pi) / scale,
        "slope_a": -s.pi * s.rest * (c.pairs - 1) * (c.pairs * s.seen + c.d - c.pairs) / scale,  # per b
    }


@dynamics.proof
def _(formula):
    """entries from the law of two letters, and derivatives of the loss by a and b, for any d, T, a and b"""
    c = STATES.symbols()
    s, claimed = Symmetric(c), formula(c)
    for layer, name in (("output", "slope_b"), ("attention", "slope_a")):
        diagonal, _ = entries(c, layer)
        yield identity(f"gradient, {layer}", multiple(diagonal, c.d), claimed[name], STATES)
    pi, rest, b, power = sympy.symbols("pi pi' b E", positive=True)
    loss = sympy.log(sympy.exp(b * pi) + (c.pairs - 1) * sympy.exp(b * rest) + c.d - c.pairs) - b * pi
    values = {sympy.exp(b * pi): s.target, sympy.exp(b * rest): s.seen}
    values_of_shares = {pi: s.pi, rest: s.rest}

    def at_state(expression):
        return expression.subs(values).subs(values_of_shares)

    e_to_the_loss = (sympy.exp(b * pi) + (c.pairs - 1) * sympy.exp(b * rest) + c.d - c.pairs) / sympy.exp(b * pi)
    yield identity("e^L", at_state(e_to_the_loss), claimed["odds"], STATES)
    yield identity("dL/db / (d - 1)", at_state(sympy.diff(loss, b)) / (c.d - 1), claimed["slope_b"], STATES)
    share, other = power / (power + c.pairs - 1), 1 / (power + c.pairs - 1)
    by_a = sum(
        at_state(sympy.diff(loss, symbol)) * (power * sympy.diff(value, power)).subs(power, c.own / c.other)
        for symbol, value in ((pi, share), (rest, other))
    )
    yield identity("dL/da / (b (d - 1))", sympy.cancel(by_a / b) / (c.d - 1), claimed["slope_a"], STATES)


@dynamics.instance
def _(formula, case):
    """exact loss of every context and exact gradient over all of them"""
    d, pairs, claimed = int(case.d), int(case.pairs), formula(case)
    for odds in exact_odds(case):
        yield exact("e^L of a context", odds, claimed["odds"], case)
    weights, output, power = exact_state(case)
    by_attention, by_output = exact_population_gradient(d, pairs, weights, output, power)
    n = Symmetric(case).n
    yield exact("slope by A per b", multiple(by_attention[0, 0], case.d) / n, claimed["slope_a"], case)
    yield exact("slope by B", multiple(by_output[0, 0], case.d), claimed["slope_b"], case)


@dynamics.simulation
def _(formula):
    """the kernel on all contexts, and what the product reports, at states of either sign"""
    for d, pairs in SIZES:
        for own, other, unit in ((1, 1, 1.0), (3, 1, 1.7), (1, 2, 2.0), (2, 1, 0.6)):
            case = STATES.check(d=d, pairs=pairs, own=own, other=other, unit=unit)
            claimed, a, b = formula(case), math.log(own / other), Symmetric(case).n * math.log(unit)
            loss, d_attention, d_output = loss_and_gradient(all_contexts(d, pairs), a * centred(d), b * centred(d))
            yield close("loss", loss, math.log(claimed["odds"]), ROUNDING, case)
            yield close("gradient by A", d_attention, claimed["slope_a"] * b * centred(d), ROUNDING, case)
            yield close("gradient by B", d_output, claimed["slope_b"] * centred(d), ROUNDING, case)
            reported = theory.symmetric_gradient(d, pairs, a, b)
            wanted = math.log(claimed["odds"]), claimed["slope_a"] * b, claimed["slope_b"]
            yield close("analytic.icl_bigram.symmetric_gradient", reported, wanted, ROUNDING, case)


@dynamics.simulation
def _(formula):
    """plans on all contexts against the recursion of two numbers"""
    for d, pairs in SIZES:
        state, path = (np.zeros((d, d)), np.zeros((d, d))), []
        a = b = 0.0
        for rate_a, rate_o, steps in ((0.0, 10.0, 1), (40.0, 0.0, 1), (0.0, 5.0, 10), (10.0, 5.0, 10)):
            run = descend(all_contexts(d, pairs), *state, rate_a, rate_o, steps)
            state = run.attention[-1], run.output[-1]
            for _ in range(steps):
                n = math.exp(a) + pairs - 1  # w = 1, u = e^a
                claimed = formula(Case(d=d, pairs=pairs, own=math.exp(a), other=1.0, unit=math.exp(b / n)))
                path.append(math.log(claimed["odds"]))
                a, b = a - rate_a * claimed["slope_a"] * b, b - rate_o * claimed["slope_b"]
            case = Case(d=d, pairs=pairs, rate_a=rate_a, rate_o=rate_o)
            yield close("A after a phase", state[0], a * centred(d), DRIFT, case)
            yield close("B after a phase", state[1], b * centred(d), DRIFT, case)
            yield close("losses of a phase", run.loss[:-1], path[-steps:], DRIFT, case)
        plan = [("O", 1, 10.0, 0.0), ("A", 1, 0.0, 40.0), ("O", 10, 5.0, 0.0), ("AO", 10, 5.0, 10.0)]
        reported = theory.population_path(d, pairs, plan)
        yield close("analytic.icl_bigram.population_path", reported.loss[:-1], path, DRIFT, Case(d=d, pairs=pairs))


dynamics.mutant("sign of the slope by A", slope_a=lambda c, v: -v)
dynamics.mutant("sign of the slope by B", slope_b=lambda c, v: -v)
dynamics.mutant("d for d - 1", slope_a=lambda c, v: v * (c.d - 1) / c.d, slope_b=lambda c, v: v * (c.d - 1) / c.d)
dynamics.mutant("rates not divided by d - 1", slope_a=lambda c, v: v * (c.d - 1), slope_b=lambda c, v: v * (c.d - 1))
dynamics.mutant("T for T - 1 in the slope by A", slope_a=lambda c, v: v * c.pairs / (c.pairs - 1 or 2))
dynamics.mutant("x_0 counted as a value", odds=lambda c, v: v - 1 / Symmetric(c).target)
dynamics.mutant("other values forgotten", odds=lambda c, v: v - (c.pairs - 1) * Symmetric(c).seen / Symmetric(c).target)


@claim(
    "icl.output_step",
    statement="On infinite data one output step from B = 0 at A = a (I - J/d) gives "
    "B = rate_o ((pi - 1/d)/(d - 1)) (I - J/d); from zero init rate_o (d - T)/(T d (d - 1)) (I - J/d).",
    latex=r"B_1=\eta_O\,\frac{\pi-1/d}{d-1}\,(I-J/d),\qquad a=0:\ B_1=\eta_O\,\frac{d-T}{Td(d-1)}\,(I-J/d)",
    domain=STATES.having(rate_o=Real(0)),
    source="icl.dynamics at b = 0",
)
def output_step(c):
    pi = c.own / (c.own + (c.pairs - 1) * c.other)
    zero_init = (c.d - c.pairs) / (c.pairs * c.d * (c.d - 1))
    return {"b": c.rate_o * (pi - 1 / c.d) / (c.d - 1), "b_zero_init": c.rate_o * zero_init}


def without_output(c):
    """The state with b = 0."""
    return c.having(unit=c.unit**0)


@output_step.proof
def _(formula):
    """entries of the gradient from the law of two letters"""
    c = output_step.domain.symbols()
    claimed = formula(c)
    diagonal, _ = entries(without_output(c), "output")
    yield identity("b after the step", -c.rate_o * multiple(diagonal, c.d), claimed["b"], output_step.domain)
    start = without_output(c).having(own=sympy.Integer(1), other=sympy.Integer(1))
    diagonal, _ = entries(start, "output")
    yield identity("from zero init", -c.rate_o * multiple(diagonal, c.d), claimed["b_zero_init"], output_step.domain)


@output_step.instance
def _(formula, case):
    """exact output steps over all contexts, all entries of B"""
    d, claimed = int(case.d), formula(case)
    for state, name in ((case, "b"), (case.having(own=Fraction(1), other=Fraction(1)), "b_zero_init")):
        weights, output, power = exact_state(without_output(state))
        _, slopes = exact_population_gradient(d, int(case.pairs), weights, output, power)
        for (i, j), slope in slopes.items():
            yield exact(f"B_{i + 1}{j + 1}", -case.rate_o * slope, claimed[name] * ((i == j) - 1 / case.d), case)


@output_step.simulation
def _(formula):
    """one kernel step on all contexts, and what the product reports"""
    for d, pairs in SIZES:
        for own, other in ((1, 1), (5, 1), (1, 3)):
            case = output_step.domain.check(d=d, pairs=pairs, own=own, other=other, unit=1.0, rate_o=7.0)
            b, a = formula(case)["b"], math.log(own / other)
            path = descend(all_contexts(d, pairs), a * centred(d), np.zeros((d, d)), 0.0, 7.0, 1)
            yield close("B", path.output[1], b * centred(d), ROUNDING, case)
            yield close("analytic.icl_bigram.output_update", theory.output_update(d, pairs, 7.0, a), b, ROUNDING, case)
        zero_init = formula(case)["b_zero_init"]
        yield close("from zero init", theory.output_update(d, pairs, 7.0), zero_init, ROUNDING, case)


@output_step.simulation
def _(formula):
    """sampled output steps from zero init: two entries of B, t-test over seeds"""
    d, pairs = 10, 4
    case = output_step.domain.check(d=d, pairs=pairs, own=1, other=1, unit=1.0, rate_o=20.0)
    zero, found = np.zeros((d, d)), []
    for seed in SEEDS:
        contexts = sample_contexts(np.random.default_rng([3, seed]), SAMPLE, d, pairs)
        found.append(descend(contexts, zero, zero, 0.0, case.rate_o, 1).output[1, 0, :2])
    for name, samples, centred_entry in zip(("B_11", "B_12"), np.transpose(found), (1 - 1 / d, -1 / d), strict=True):
        yield sampled(name, samples, formula(case)["b_zero_init"] * centred_entry, case)


output_step.mutant("sign", b=lambda c, v: -v, b_zero_init=lambda c, v: -v)
output_step.mutant("letters drawn independently", b_zero_init=lambda c, v: c.rate_o / (c.pairs * c.d))
output_step.mutant("1/d forgotten", b=lambda c, v: v + c.rate_o / (c.d * (c.d - 1)))
output_step.mutant("d for d - 1", b=lambda c, v: v * (c.d - 1) / c.d)
output_step.mutant("T + 1 values", b_zero_init=lambda c, v: v * c.pairs / (c.pairs + 1))
output_step.mutant("pi' for pi", b=lambda c, v: c.rate_o * (Symmetric(c).rest - 1 / c.d) / (c.d - 1))


@claim(
    "icl.attention_step",
    statement="On infinite data one attention step from A = 0 at B = b (I - J/d) gives "
    "A = rate_a b ((T - 1)/(T^2 (d - 1))) (I - J/d), exactly for every b; so from zero init, where b = 0, attention "
    "does not move at all, and A(1x)->O is O.",
    latex=r"A_1=\eta_A\,b\,\frac{T-1}{T^2(d-1)}\,(I-J/d)",
    domain=CONTEXTS.having(unit=Real(0), rate_a=Real(0)),
    source="icl.dynamics at a = 0, where all values have the same logit",
)
def attention_step(c):
    """a after the step per b, and a after it from b = 0."""
    return {"a_per_b": c.rate_a * (c.pairs - 1) / (c.pairs**2 * (c.d - 1)), "a_from_zero": 0}


def without_attention(c, one=1):
    """The state with a = 0."""
    return c.having(own=one, other=one)


@attention_step.proof
def _(formula):
    """entries of the gradient from the law of two letters, at any e^{b/T}"""
    c = attention_step.domain.symbols()
    claimed, state = formula(c), without_attention(c, sympy.Integer(1))
    diagonal, _ = entries(state, "attention")
    found = -c.rate_a * multiple(diagonal, c.d)
    yield identity("a after the step, per b", found, claimed["a_per_b"], attention_step.domain)
    yield identity("a after the step from b = 0", 0 * found, claimed["a_from_zero"], attention_step.domain)


@attention_step.instance
def _(formula, case):
    """exact attention steps over all contexts, all entries of A"""
    d, pairs, claimed = int(case.d), int(case.pairs), formula(case)
    state = without_attention(case, Fraction(1))
    weights, output, power = exact_state(state)
    slopes, _ = exact_population_gradient(d, pairs, weights, output, power)
    n = Symmetric(state).n  # b in units of log x
    for (i, j), slope in slopes.items():
        expected = claimed["a_per_b"] * n * ((i == j) - 1 / case.d)
        yield exact(f"A_{i + 1}{j + 1}", -case.rate_a * slope, expected, case)
    zero = [[0 * value for value in row] for row in output]
    slopes, _ = exact_population_gradient(d, pairs, weights, zero, lambda z: Fraction(1))
    yield exact("A from b = 0", -case.rate_a * slopes[0, 0], claimed["a_from_zero"], case)


@attention_step.simulation
def _(formula):
    """one kernel step on all contexts, and what the product reports"""
    for d, pairs in SIZES:
        for b in (0.5, 6.0, -2.0):
            case = attention_step.domain.check(d=d, pairs=pairs, unit=math.exp(b / pairs), rate_a=9.0)
            claimed, zero = formula(case), np.zeros((d, d))
            path = descend(all_contexts(d, pairs), zero, b * centred(d), 9.0, 0.0, 1)
            yield close("A", path.attention[1], claimed["a_per_b"] * b * centred(d), ROUNDING, case)
            reported = theory.attention_update(d, pairs, 9.0, b)
            yield close("analytic.icl_bigram.attention_update", reported, claimed["a_per_b"] * b, ROUNDING, case)
        still = descend(all_contexts(d, pairs), zero, zero, 9.0, 0.0, 1).attention[1]
        yield close("A from b = 0", still, claimed["a_from_zero"] * centred(d), ROUNDING, case)


@attention_step.simulation
def _(formula):
    """sampled attention steps: two entries of A, t-test over seeds"""
    d, pairs, b = 10, 4, 2.0
    case = attention_step.domain.check(d=d, pairs=pairs, unit=math.exp(b / pairs), rate_a=300.0)
    found = []
    for seed in SEEDS:
        contexts = sample_contexts(np.random.default_rng([4, seed]), SAMPLE, d, pairs)
        path = descend(contexts, np.zeros((d, d)), b * centred(d), case.rate_a, 0.0, 1)
        found.append(path.attention[1, 0, :2])
    for name, samples, centred_entry in zip(("A_11", "A_12"), np.transpose(found), (1 - 1 / d, -1 / d), strict=True):
        yield sampled(name, samples, formula(case)["a_per_b"] * b * centred_entry, case)


attention_step.mutant("sign", a_per_b=lambda c, v: -v)
attention_step.mutant("T for T - 1", a_per_b=lambda c, v: c.rate_a / (c.pairs * (c.d - 1)))
attention_step.mutant("T for T^2", a_per_b=lambda c, v: v * c.pairs)
attention_step.mutant("d for d - 1", a_per_b=lambda c, v: v * (c.d - 1) / c.d)
attention_step.mutant("attention moves from zero init", a_from_zero=lambda c, v: c.rate_a / c.d)


@claim(
    "icl.output_only",
    statement="At A = 0 (O only and A(1x)->O from zero init on infinite data) every context has e^L = T (1 + excess), "
    "excess = ((d - T)/T) e^{-b/T}: the loss stays above log T, falls strictly with b, and tends to log T as b grows.",
    latex=r"L(0,b)=\ln T+\ln\!\Big(1+\frac{d-T}{T}e^{-b/T}\Big)>\ln T",
    domain=CONTEXTS.having(unit=Real(0)),
    source="icl.dynamics at a = 0, e^{b/T} = unit; icl.attention_step",
)
def output_only(c):
    return {"excess": (c.d - c.pairs) / (c.pairs * c.unit), "limit": c.pairs}


@output_only.proof
def _(formula):
    """e^L from the T equal values, its sign, its derivative, and its limit"""
    c = output_only.domain.symbols()
    claimed = formula(c)
    odds = dynamics(without_attention(c, sympy.Integer(1)))["odds"]
    yield identity("e^L = T (1 + excess)", odds, claimed["limit"] * (1 + claimed["excess"]), output_only.domain)
    yield positive("the excess is positive", claimed["excess"], output_only.domain)
    yield positive("e^L falls with b", -sympy.diff(odds, c.unit), output_only.domain)
    yield identity("the limit of e^L", sympy.limit(odds, c.unit, sympy.oo), claimed["limit"], output_only.domain)


@output_only.instance
def _(formula, case):
    """exact loss of every context, at two values of b"""
    before = None
    for place_case in (case, case.having(unit=2 * case.unit)):
        claimed, found = formula(place_case), exact_odds(without_attention(place_case, Fraction(1)))
        for odds in found:
            yield exact("e^L of a context", odds, claimed["limit"] * (1 + claimed["excess"]), place_case)
        yield holds("e^L above T", min(found) > claimed["limit"], place_case, odds=min(found))
        falls = before is None or max(found) < before
        yield holds("e^L falls with b", falls, place_case, odds=max(found), before=before)
        before = min(found)


@output_only.simulation
def _(formula):
    """output training on all contexts, before and after attention steps, and what the product reports"""
    for d, pairs in SIZES:
        contexts, zero = all_contexts(d, pairs), np.zeros((d, d))
        start = descend(contexts, zero, zero, 50.0, 0.0, 3)
        path = descend(contexts, start.attention[-1], start.output[-1], 0.0, 10.0, 60)
        b = path.output[:, 0, 0] * d / (d - 1)
        case = output_only.domain.check(d=d, pairs=pairs, unit=math.exp(b[-1] / pairs))
        claimed = formula(case.having(unit=np.exp(b / pairs)))
        odds = claimed["limit"] * (1 + claimed["excess"])
        yield close("e^L along the run", np.exp(path.loss), odds, DRIFT, case, scale=d)
        yield below("log T", math.log(claimed["limit"]), path.loss, case)
        least = theory.output_limit(d, pairs)
        yield close("analytic.icl_bigram.output_limit", least, math.log(claimed["limit"]), ROUNDING, case)
        flow, b = theory.output_only_flow(d, pairs, np.array([1.0, 30.0]))
        claimed = formula(case.having(unit=np.exp(b / pairs)))
        odds = claimed["limit"] * (1 + claimed["excess"])
        yield close("analytic.icl_bigram.output_only_flow", np.exp(flow), odds, ROUNDING, case, scale=d)


output_only.mutant("sign of the excess", excess=lambda c, v: -v)
output_only.mutant("d for d - T", excess=lambda c, v: c.d / (c.pairs * c.unit))
output_only.mutant("no limit but 0", limit=lambda c, v: 1)
output_only.mutant("T + 1 values", limit=lambda c, v: c.pairs + 1)
output_only.mutant("loss grows with b", excess=lambda c, v: (c.d - c.pairs) * c.unit / c.pairs)
