"""Single-location regression: gradient, symmetries, one-step facts, and the line that zero init never leaves."""

import itertools
import random
from fractions import Fraction
from functools import cache

import numpy as np
import sympy

from analytic import slr as theory
from analytic.gradients import slr as kernel
from analytic.gradients import slr_twin
from sim.tasks.slr import SingleLocation

from .claims import claim
from .decide import ROUNDING, agrees, close, exact, holds, identity, positive, sampled
from .domain import Case, Domain, Real, Whole

SLR = Domain(tokens=Whole(1), signal=Real(0), spread=Real(0), noise=Real(0))
ANY_V = SLR.having(key=Real(), value=Real(), other=Real())
STEPS = SLR.having(rate_o=Real(0), rate_a=Real(0), c=Real())
ON_LINE = SLR.having(first=Real(0, 1), second=Real(0, 1), others=Real(0, 1), c=Real())

PLACES = ((6, 3, 0.2), (20, 10, 0.1), (8, 2, 0.5), (5, 1, 0.3))  # d, tokens, noise of sampled contexts
SEEDS, CONTEXTS = range(40), 2000
LAW = "One of L tokens, at a random position J, is N(m, g I) with m = signal k*, the others are N(0, I), and "
LAW += "y = X_J . v* + noise xi, k* and v* orthonormal (in the product signal^2 = d/2 and g = spread = 1/2). "


def place(d, tokens, noise, **parameters):
    """The product's case: signal and spread follow from d."""
    return Case(tokens=tokens, signal=float(np.sqrt(d / 2)), spread=theory.SPREAD, noise=noise, **parameters)


def fresh_contexts(d, tokens, noise):
    """Independent training sets of the simulator, one for each of `SEEDS`."""
    task = SingleLocation(d=d, tokens=tokens, noise=noise, train_words=CONTEXTS, test_words=1)
    return (task.data(seed)[0] for seed in SEEDS)


def random_contexts(seed, size):
    """Tokens, targets, k and v without any law."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(size), rng.standard_normal(size[0]), *rng.standard_normal((2, size[2]))


def rationals(rng, *shape):
    """Nested lists of random rationals."""
    if not shape:
        return Fraction(rng.randint(-9, 9), rng.randint(1, 4))
    return [rationals(rng, *shape[1:]) for _ in range(shape[0])]


def exact_slopes(tokens, y, weights, v):
    """Loss of one context and its exact slopes by k and v; the weights stand for e^{X_l . k}.

    Along k_j the weight w_l has the slope w_l X_lj: the quotient rule does the rest.
    """
    coordinates = range(len(v))
    values = [sum(x * w for x, w in zip(token, v, strict=True)) for token in tokens]
    total = sum(weights)
    read = sum(w * u for w, u in zip(weights, values, strict=True))
    residual = read / total - y
    d_k, d_v = [], []
    for j in coordinates:
        moved = [w * token[j] for w, token in zip(weights, tokens, strict=True)]
        up = sum(m * u for m, u in zip(moved, values, strict=True))
        d_k.append(2 * residual * (up * total - read * sum(moved)) / total**2)
        d_v.append(2 * residual * sum(moved) / total)
    return residual**2, d_k, d_v


# ---- the gradient ----------------------------------------------------------------------------------------------------


@claim(
    "gradients.slr",
    statement="For any data, d and number of tokens: with shares P_l = softmax of X_l . k, values u_l = X_l . v, "
    "f = sum_l P_l u_l and residual r = f - y, the loss E[(f - y)^2] has the gradient "
    "dL/dk = 2 E[r sum_l P_l (u_l - f) X_l], dL/dv = 2 E[r sum_l P_l X_l].",
    latex=r"\nabla_kL=2\,\mathbb E\Big[r\sum_lP_l(u_l-f)X_l\Big],\qquad \nabla_vL=2\,\mathbb E\Big[r\sum_lP_lX_l\Big]",
    domain=SLR,
    source="chain rule for the softmax over tokens",
)
def gradient(c):
    """What one token adds in a coordinate: ``c.residual``, ``c.share``, ``c.own`` = u_l, ``c.output``, ``c.entry``."""
    return {
        "k": 2 * c.residual * c.share * (c.own - c.output) * c.entry,
        "v": 2 * c.residual * c.share * c.entry,
    }


@gradient.proof
def _(formula):
    """derivative along one coordinate of k and of v through two tokens, all other tokens as two symbols"""
    k, v, y, rest_value = sympy.symbols("k v y N", real=True)
    rest = sympy.Symbol("Z", positive=True)
    entries, scores, values = (sympy.symbols(f"{name}1:3", real=True) for name in "xsu")
    # coordinate j of two tokens; what the other coordinates add to score and value; the other tokens do not move
    weights = [sympy.exp(s + x * k) for s, x in zip(scores, entries, strict=True)]
    owns = [u + x * v for u, x in zip(values, entries, strict=True)]
    total = sum(weights) + rest
    output = (sum(w * u for w, u in zip(weights, owns, strict=True)) + rest_value) / total
    residual = output - y
    claimed = [
        formula(Case(residual=residual, share=w / total, own=u, output=output, entry=x))
        for w, u, x in zip(weights, owns, entries, strict=True)
    ]
    for layer, symbol in (("k", k), ("v", v)):
        slope = sympy.diff(residual**2, symbol)
        yield identity(f"d/d{layer}_j (f - y)^2", slope, sum(token[layer] for token in claimed))


@gradient.instance
def _(formula, case):
    """exact slopes of one context with random rational tokens and weights e^(X_l . k)"""
    rng, length, d = random.Random(str(case)), int(case.tokens), 3
    tokens, v, y = rationals(rng, length, d), rationals(rng, d), rationals(rng)
    weights = [Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in tokens]
    _, d_k, d_v = exact_slopes(tokens, y, weights, v)
    values = [sum(x * w for x, w in zip(token, v, strict=True)) for token in tokens]
    output = sum(w * u for w, u in zip(weights, values, strict=True)) / sum(weights)
    for j in range(d):
        claimed = [
            formula(Case(residual=output - y, share=w / sum(weights), own=u, output=output, entry=token[j]))
            for w, u, token in zip(weights, values, tokens, strict=True)
        ]
        where = case.having(tokens=tokens, weights=weights, v=v, y=y, coordinate=j + 1)
        yield exact("dL/dk_j", d_k[j], sum(token["k"] for token in claimed), where)
        yield exact("dL/dv_j", d_v[j], sum(token["v"] for token in claimed), where)


def mean_gradient(formula, tokens, targets, k, v):
    """The formula summed over tokens and averaged over contexts."""
    shares, own = slr_twin.attention(tokens, k)[..., None], (tokens @ v)[..., None]
    output = np.sum(shares * own, axis=1, keepdims=True)
    token = Case(residual=output - targets[:, None, None], share=shares, own=own, output=output, entry=tokens)
    return {layer: slope.sum(axis=1).mean(axis=0) for layer, slope in formula(token).items()}


@gradient.simulation
def _(formula):
    """the kernel's gradient, and complex-step derivatives of the loss, on random data"""
    for size in ((7, 1, 2), (40, 3, 5), (30, 10, 9)):
        tokens, targets, k, v = random_contexts(1, size)
        claimed, case = mean_gradient(formula, tokens, targets, k, v), Case(contexts=size[0], tokens=size[1], d=size[2])
        _, *slopes = kernel.loss_and_gradient(kernel.Tokens.from_arrays(tokens, targets), k, v)
        for layer, slope in zip("kv", slopes, strict=True):
            scale = max(1.0, np.abs(slope).max())
            yield close(f"kernel dL/d{layer}", slope, claimed[layer], ROUNDING, case, scale)
            turned = []
            for j in range(size[2]):
                moved = {"k": k.astype(complex), "v": v.astype(complex)}
                moved[layer][j] += 1e-100j
                turned.append(np.mean((slr_twin.outputs(tokens, **moved) - targets) ** 2).imag / 1e-100)
            yield close(f"complex step dL/d{layer}", turned, claimed[layer], ROUNDING, case, scale)


@gradient.simulation
def _(formula):
    """O(1x)->A(1x) of the simulator from random init, predicted step by step from its own contexts"""
    task = SingleLocation(d=8, tokens=5)
    for seed in range(3):
        data, (k, v) = task.data(seed)[0], task.initial(seed, "random", (0.3, 0.3))
        first = task.descend(data, (k, v), 0.0, 2.0, 1, np.inf)
        second = task.descend(data, (first.k[-1], first.v[-1]), 3.0, 0.0, 1, np.inf)
        contexts, case = (data.tokens, data.targets), Case(d=8, tokens=5, seed=seed)
        yield close("output step", first.v[1], v - 2.0 * mean_gradient(formula, *contexts, k, v)["v"], ROUNDING, case)
        step = 3.0 * mean_gradient(formula, *contexts, k, first.v[1])["k"]
        yield close("attention step", second.k[1], k - step, ROUNDING, case)


gradient.mutant("sign of dL/dk", k=lambda c, v: -v)
gradient.mutant("sign of dL/dv", v=lambda c, v: -v)
gradient.mutant("factor 1/2 in the loss", k=lambda c, v: v / 2, v=lambda c, v: v / 2)
gradient.mutant("sign inside the bracket", k=lambda c, v: 2 * c.residual * c.share * (c.own + c.output) * c.entry)
gradient.mutant("softmax derivative forgotten", k=lambda c, v: 2 * c.residual * c.share * c.own * c.entry)
gradient.mutant("output in place of residual", v=lambda c, v: 2 * c.output * c.share * c.entry)
gradient.mutant("token forgotten", v=lambda c, v: 2 * c.residual * c.share)


@claim(
    "gradients.slr_rotation",
    statement="Rotating all tokens, k and v together changes no score, value or loss, and rotates the gradient with "
    "them; so which orthonormal k* and v* a task has does not matter. It suffices to rotate a plane of two "
    "coordinates, by the angle whose half has the tangent t: such rotations and permutations make all others.",
    latex=r"L(XQ;kQ,vQ)=L(X;k,v),\qquad \nabla L(XQ;kQ,vQ)=\nabla L(X;k,v)\,Q",
    domain=SLR.having(key=Real(), value=Real(), t=Real()),
    source="gradients.slr: tokens enter by X_l . k, X_l . v and, linearly, X_l itself",
)
def rotation(c):
    """The pair (``c.key``, ``c.value``) of coordinates of a token, of k, of v, or of a gradient, after the rotation."""
    size = 1 + c.t**2
    return {
        "key": ((1 - c.t**2) * c.key - 2 * c.t * c.value) / size,
        "value": (2 * c.t * c.key + (1 - c.t**2) * c.value) / size,
    }


def turned(formula, t, pair):
    """A pair of coordinates after the claimed rotation."""
    claimed = formula(Case(key=pair[0], value=pair[1], t=t))
    return claimed["key"], claimed["value"]


@rotation.proof
def _(formula):
    """products of rotated pairs, and the token's part of the rotated gradient"""
    t, residual, share, own, output = sympy.symbols("t r P u f", real=True)
    token, vector = sympy.symbols("x1:3", real=True), sympy.symbols("k1:3", real=True)
    after = [turned(formula, t, pair) for pair in (token, vector)]
    product = sum(x * k for x, k in zip(*after, strict=True))
    yield identity("X_l . k after the rotation", product, sum(x * k for x, k in zip(token, vector, strict=True)))
    weight = {"residual": residual, "share": share, "own": own, "output": output}
    before = [gradient(Case(entry=x, **weight)) for x in token]
    for layer in "kv":
        claimed = turned(formula, t, [slope[layer] for slope in before])
        for j in range(2):
            slope = gradient(Case(entry=after[0][j], **weight))[layer]
            yield identity(f"dL/d{layer}, coordinate {j + 1}", slope, claimed[j])


@rotation.instance
def _(formula, case):
    """exact loss and slopes of one context before and after"""
    rng, length = random.Random(str(case)), int(case.tokens)
    tokens, v, y = rationals(rng, length, 2), rationals(rng, 2), rationals(rng)
    weights = [Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in tokens]
    loss, *slopes = exact_slopes(tokens, y, weights, v)
    after = [turned(formula, case.t, token) for token in tokens]
    moved_loss, *moved = exact_slopes(after, y, weights, turned(formula, case.t, v))
    where = case.having(tokens=tokens, weights=weights, v=v, y=y)
    yield exact("loss", moved_loss, loss, where)
    for layer, slope, found in zip("kv", slopes, moved, strict=True):
        yield exact(f"dL/d{layer}", tuple(found), turned(formula, case.t, slope), where)


@rotation.simulation
def _(formula):
    """the kernel before and after a rotation of random data, five steps of both layers"""
    for size, t in (((40, 3, 2), 0.4), ((30, 10, 9), -3.0)):
        tokens, targets, k, v = random_contexts(2, size)
        case = Case(contexts=size[0], tokens=size[1], d=size[2], t=t)

        def moved(array, t=t):
            array = array.copy()
            array[..., 0], array[..., 1] = turned(formula, t, (array[..., 0].copy(), array[..., 1].copy()))
            return array

        path = kernel.descend(kernel.Tokens.from_arrays(tokens, targets), k, v, 0.02, 0.02, 5)
        after = kernel.descend(kernel.Tokens.from_arrays(moved(tokens), targets), moved(k), moved(v), 0.02, 0.02, 5)
        yield close("loss", after.loss, path.loss, ROUNDING, case, scale=path.loss.max())
        yield close("k", after.k, moved(path.k), 10 * ROUNDING, case, scale=max(1.0, np.abs(path.k).max()))
        yield close("v", after.v, moved(path.v), 10 * ROUNDING, case, scale=max(1.0, np.abs(path.v).max()))


rotation.mutant("a sine with the other sign", key=lambda c, v: v + 4 * c.t * c.value / (1 + c.t**2))
rotation.mutant("not normalised", key=lambda c, v: v * (1 + c.t**2), value=lambda c, v: v * (1 + c.t**2))
rotation.mutant("one coordinate stays", value=lambda c, v: c.value)
rotation.mutant("a cosine of twice the tangent", value=lambda c, v: v - 3 * c.t**2 * c.value / (1 + c.t**2))


# ---- infinite data at k = 0 ------------------------------------------------------------------------------------------


def expectation(polynomial, normals):
    """The expectation of a polynomial in independent standard normal variables: E[x^n] = (n - 1)!! for even n."""
    return sum(
        coefficient * sympy.prod(sympy.factorial2(n - 1) if n % 2 == 0 else 0 for n in powers if n)
        for powers, coefficient in sympy.Poly(sympy.expand(polynomial), *normals).terms()
    )


@cache
def uniform_attention():
    """Loss and slopes by k and v on infinite data at k = 0, in the symbols of `ANY_V`, by Gaussian moments.

    Three coordinates are enough: k*, v*, and the direction of the rest of v. The tokens are the informative one, one
    of the others, whose slope counts L - 1 times, and the sum of the remaining L - 2, which is N(0, (L - 2) I).
    """
    c = ANY_V.symbols()
    own, one, rest = (sympy.symbols(f"{name}1:4", real=True) for name in "abc")
    noise = sympy.Symbol("xi", real=True)
    normals = (*own, *one, *rest, noise)
    shift = (c.signal, 0, 0)
    informative = [m + sympy.sqrt(c.spread) * x for m, x in zip(shift, own, strict=True)]
    remaining = [sympy.sqrt(c.tokens - 2) * x for x in rest]
    values = [c.key * x + c.value * y + c.other * z for x, y, z in (informative, one, remaining)]
    output = sum(values) / c.tokens
    residual = output - informative[1] - c.noise * noise
    slopes = {"loss": expectation(residual**2, normals)}
    for j, name in enumerate(("key", "value", "other")):
        parts = [
            gradient(Case(residual=residual, share=1 / c.tokens, own=value, output=output, entry=token[j]))
            for token, value in ((informative, values[0]), (one, values[1]))
        ]
        for layer in "kv":
            total = parts[0][layer] + (c.tokens - 1) * parts[1][layer]
            slopes[f"{layer}_{name}"] = expectation(total, normals)
    return slopes


def on_the_line(c):
    """The same at v = c v*."""
    general = ANY_V.symbols()
    at = {general.key: 0, general.value: c, general.other: 0}
    return {name: slope.subs(at) for name, slope in uniform_attention().items()}


def sign_contexts(case, d):
    """All contexts of the law in which every normal variable is replaced by a sign, ``case.spread`` being a square.

    Signs have the first three moments of normal variables, and loss and slopes at k = 0 are of third degree.
    """
    length, root = int(case.tokens), Fraction(sympy.sqrt(sympy.Rational(case.spread)))
    for signs in itertools.product((-1, 1), repeat=length * d + 1):
        tokens = [[Fraction(sign) for sign in signs[d * l : d * l + d]] for l in range(length)]
        tokens[0] = [root * x + (case.signal if j == 0 else 0) for j, x in enumerate(tokens[0])]
        yield tokens, tokens[0][1] + case.noise * signs[-1]


@claim(
    "slr.zero_scores",
    statement=LAW + "At k = 0 and any v, with m . v = signal v_key, v_key = k* . v, v_value = v* . v: "
    "L = ((m.v)^2 + (g + L - 1)|v|^2)/L^2 - 2 g v_value/L + g + noise^2, "
    "dL/dv = (2/L^2)((m.v) m + (g + L - 1) v) - (2 g/L) v*, dL/dk = (2 (L-1)/L^3)((m.v)^2 m - (1 - g)|v|^2 m + "
    "(L - 2 + 2 g)(m.v) v) - (2 (L-1)/L^2) g (v_value m + (m.v) v*).",
    latex=r"\nabla_vL=\tfrac2{L^2}\big[(m\cdot v)m+(g+L-1)v\big]-\tfrac{2g}Lv^*,\quad "
    r"\nabla_kL=\tfrac{2(L-1)}{L^3}\big[\big((m\cdot v)^2-(1-g)|v|^2\big)m+(L-2+2g)(m\cdot v)v\big]"
    r"-\tfrac{2(L-1)}{L^2}g\big[(v^*\cdot v)m+(m\cdot v)v^*\big]",
    domain=ANY_V,
    source="gradients.slr and Gaussian moments; coordinates orthogonal to k*, v* and v have mean 0 by reflection",
)
def zero_scores(c):
    """v = ``c.key`` k* + ``c.value`` v* + ``c.other`` w with a third unit vector w; the slopes' three coordinates."""
    length, seen = c.tokens, c.signal * c.key
    square, size = c.key**2 + c.value**2 + c.other**2, c.spread + c.tokens - 1
    cubic, mixed = seen**2 - (1 - c.spread) * square, (length - 2 + 2 * c.spread) * seen
    outer = 2 * (length - 1) / length**3
    return {
        "loss": (seen**2 + size * square) / length**2 - 2 * c.spread * c.value / length + c.spread + c.noise**2,
        "v_key": 2 / length**2 * (seen * c.signal + size * c.key),
        "v_value": 2 / length**2 * size * c.value - 2 * c.spread / length,
        "v_other": 2 / length**2 * size * c.other,
        "k_key": outer * (cubic * c.signal + mixed * c.key - length * c.spread * c.value * c.signal),
        "k_value": outer * (mixed * c.value - length * c.spread * seen),
        "k_other": outer * mixed * c.other,
    }


@zero_scores.proof
def _(formula):
    """Gaussian moments, any number of tokens, signal, spread and v"""
    c = ANY_V.symbols()
    claimed = formula(c)
    for name, value in uniform_attention().items():
        yield identity(name, value, claimed[name], ANY_V)


@zero_scores.instance
def _(formula, case):
    """exact means over all contexts of signs, up to two tokens"""
    case = case.having(tokens=min(case.tokens, Fraction(2)), spread=case.spread**2)
    claimed, v = formula(case), (case.key, case.value, case.other)
    losses, slopes_k, slopes_v, count = 0, [0] * 3, [0] * 3, 0
    for tokens, y in sign_contexts(case, 3):
        loss, d_k, d_v = exact_slopes(tokens, y, [1] * len(tokens), v)
        losses, count = losses + loss, count + 1
        slopes_k = [a + b for a, b in zip(slopes_k, d_k, strict=True)]
        slopes_v = [a + b for a, b in zip(slopes_v, d_v, strict=True)]
    yield exact("loss", losses / count, claimed["loss"], case)
    for j, name in enumerate(("key", "value", "other")):
        yield exact(f"dL/dk {name}", slopes_k[j] / count, claimed[f"k_{name}"], case)
        yield exact(f"dL/dv {name}", slopes_v[j] / count, claimed[f"v_{name}"], case)


V = (0.7, -0.4, 0.5)  # coordinates of v at which samples are compared


@zero_scores.simulation
def _(formula):
    """loss and slopes of sampled contexts, t-test over seeds"""
    for d, tokens, noise in PLACES:
        case = place(d, tokens, noise, key=V[0], value=V[1], other=V[2])
        claimed, v, found = formula(case), np.zeros(d), []
        v[:3] = V
        for data in fresh_contexts(d, tokens, noise):
            loss, d_k, d_v = kernel.loss_and_gradient(data, np.zeros(d), v)
            found.append([loss, *d_k[:3], *d_v[:3]])
        names = ["loss", *(f"{layer}_{name}" for layer in "kv" for name in ("key", "value", "other"))]
        for name, samples in zip(names, np.transpose(found), strict=True):
            if tokens > 1 or not name.startswith("k"):
                yield sampled(name, samples, claimed[name], case)


@zero_scores.simulation
def _(formula):
    """what the product reports, in rotated coordinates"""
    rng = np.random.default_rng(7)
    for d, tokens, noise in PLACES:
        axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
        case = place(d, tokens, noise, key=V[0], value=V[1], other=V[2])
        claimed = formula(case)
        loss, d_k, d_v = theory.gradient_at_zero_scores(tokens, np.array(V) @ axes[:3], noise, axes[0], axes[1])
        yield close("loss", loss, claimed["loss"], ROUNDING, case)
        for layer, slope in (("k", d_k), ("v", d_v)):
            expected = np.zeros(d)
            expected[:3] = [claimed[f"{layer}_{name}"] for name in ("key", "value", "other")]
            yield close(f"dL/d{layer}", axes @ slope, expected, ROUNDING, case, scale=max(1.0, np.abs(slope).max()))


zero_scores.mutant("sign of dL/dk", k_key=lambda c, v: -v)
zero_scores.mutant("sign of the pull to v*", v_value=lambda c, v: v + 4 * c.spread / c.tokens)
zero_scores.mutant("L for L - 1", v_other=lambda c, v: v + 2 * c.other / c.tokens**2)
zero_scores.mutant("g for 1 - g", k_key=lambda c, v: v + 2 * (c.tokens - 1) / c.tokens**3 * (1 - 2 * c.spread)
                   * (c.key**2 + c.value**2 + c.other**2) * c.signal)
zero_scores.mutant("g forgotten beside v*", k_value=lambda c, v: v - 2 * (c.tokens - 1) / c.tokens**2 * c.signal * c.key
                   * (1 - c.spread))
zero_scores.mutant("L - 2 for L - 2 + 2 g", k_other=lambda c, v: 2 * (c.tokens - 1) / c.tokens**3 * (c.tokens - 2)
                   * c.signal * c.key * c.other)
zero_scores.mutant("signal not squared", v_key=lambda c, v: v + 2 / c.tokens**2 * (c.signal - c.signal**2) * c.key)
zero_scores.mutant("noise forgotten", loss=lambda c, v: v - c.noise**2)
zero_scores.mutant("cross term not doubled", loss=lambda c, v: v + c.spread * c.value / c.tokens)


@claim(
    "slr.first_steps",
    statement=LAW + "O(1x) from zero gives v_1 = (2 rate_o g/L) v*; A(1x) from k = 0 and v = c v* gives "
    "k_1 = 2 rate_a ((L-1)/L^2) c (g + (1 - g) c/L) m, exactly along k*.",
    latex=r"v_1=\frac{2\eta_Og}Lv^*,\qquad k_1=2\eta_A\frac{L-1}{L^2}\,c\Big[g+(1-g)\frac cL\Big]m",
    domain=STEPS,
    source="slr.zero_scores at v = 0 and at v = c v*",
)
def first_steps(c):
    """Coordinates of v_1 along v* and of k_1 along k*, and all their other coordinates."""
    pull = c.spread + (1 - c.spread) * c.c / c.tokens
    return {
        "v": 2 * c.rate_o * c.spread / c.tokens,
        "k": 2 * c.rate_a * (c.tokens - 1) / c.tokens**2 * c.c * pull * c.signal,
        "rest": 0,
    }


@first_steps.proof
def _(formula):
    """Gaussian moments, any number of tokens"""
    c = STEPS.symbols()
    claimed, output, attention = formula(c), on_the_line(0), on_the_line(c.c)
    yield identity("v_1 along v*", -c.rate_o * output["v_value"], claimed["v"], STEPS)
    yield identity("k_1 along k*", -c.rate_a * attention["k_key"], claimed["k"], STEPS)
    for name in ("v_key", "v_other", "k_key", "k_value", "k_other"):
        yield identity(f"output step: {name}", output[name], claimed["rest"], STEPS)
    for name in ("k_value", "k_other"):
        yield identity(f"attention step: {name}", attention[name], claimed["rest"], STEPS)


@first_steps.instance
def _(formula, case):
    """exact steps over all contexts of signs, up to two tokens"""
    case = case.having(tokens=min(case.tokens, Fraction(2)), spread=case.spread**2)
    claimed, contexts = formula(case), list(sign_contexts(case, 3))
    step_v, step_k = [0] * 3, [0] * 3
    for tokens, y in contexts:
        weights = [1] * len(tokens)
        d_v, d_k = exact_slopes(tokens, y, weights, [0, 0, 0])[2], exact_slopes(tokens, y, weights, [0, case.c, 0])[1]
        step_v = [step - case.rate_o * slope for step, slope in zip(step_v, d_v, strict=True)]
        step_k = [step - case.rate_a * slope for step, slope in zip(step_k, d_k, strict=True)]
    yield exact("v_1", [x / len(contexts) for x in step_v], [claimed["rest"], claimed["v"], claimed["rest"]], case)
    yield exact("k_1", [x / len(contexts) for x in step_k], [claimed["k"], claimed["rest"], claimed["rest"]], case)


@first_steps.simulation
def _(formula):
    """steps of the kernel on sampled contexts, t-test over seeds"""
    for d, tokens, noise in PLACES[:3]:
        case = place(d, tokens, noise, rate_o=5.0, rate_a=3.0, c=0.4)
        claimed, outputs, attentions = formula(case), [], []
        for data in fresh_contexts(d, tokens, noise):
            zero, start = np.zeros(d), np.eye(d)[1] * case.c
            outputs.append(kernel.descend(data, zero, zero, 0.0, case.rate_o, 1).v[1])
            attentions.append(kernel.descend(data, zero, start, case.rate_a, 0.0, 1).k[1])
        for name, samples, axis in (("v", np.array(outputs), 1), ("k", np.array(attentions), 0)):
            yield sampled(f"{name}_1 along its axis", samples[:, axis], claimed[name], case)
            yield sampled(f"{name}_1 across", np.delete(samples, axis, axis=1).mean(axis=1), claimed["rest"], case)


@first_steps.simulation
def _(formula):
    """what the product reports"""
    for d, tokens, noise in PLACES:
        case = place(d, tokens, noise, rate_o=5.0, rate_a=3.0, c=0.4)
        claimed = formula(case)
        yield close("output_step", theory.output_step(tokens, case.rate_o), claimed["v"], ROUNDING, case)
        step = theory.attention_step(d, tokens, case.c, case.rate_a)
        yield close("attention_step", step, claimed["k"], ROUNDING, case)


first_steps.mutant("sign of v_1", v=lambda c, v: -v)
first_steps.mutant("sign of k_1", k=lambda c, v: -v)
first_steps.mutant("factor 1/2 in the loss", v=lambda c, v: v / 2, k=lambda c, v: v / 2)
first_steps.mutant("L for L - 1", k=lambda c, v: v + 2 * c.rate_a / c.tokens**2 * c.c * c.signal
                   * (c.spread + (1 - c.spread) * c.c / c.tokens))
first_steps.mutant("second order in c forgotten", k=lambda c, v: 2 * c.rate_a * (c.tokens - 1) / c.tokens**2 * c.c
                   * c.spread * c.signal)
first_steps.mutant("a part across", rest=lambda c, v: c.rate_o * c.spread / c.tokens)


@claim(
    "slr.output_only",
    statement=LAW + "With k = 0 frozen the least loss is noise^2 + g - g^2/(g + L - 1), at v = g L/(g + L - 1) v* and "
    "nowhere else; for g = 1/2 that is noise^2 + 1/2 - (1/4)/(L - 1/2) at L/(2 L - 1) v*.",
    latex=r"\min_vL(0,v)=\varepsilon^2+g-\frac{g^2}{g+L-1}\quad\text{at}\quad v=\frac{gL}{g+L-1}\,v^*",
    domain=ANY_V,
    source="slr.zero_scores: complete the squares",
)
def output_only(c):
    """The least loss, and the coordinate along v* of its v."""
    size = c.spread + c.tokens - 1
    return {"loss": c.noise**2 + c.spread - c.spread**2 / size, "c": c.spread * c.tokens / size}


@output_only.proof
def _(formula):
    """the loss minus its minimum as a sum of squares with positive coefficients"""
    c = ANY_V.symbols()
    claimed, loss = formula(c), uniform_attention()["loss"]
    size = (c.spread + c.tokens - 1) / c.tokens**2
    across = (size + c.signal**2 / c.tokens**2) * c.key**2 + size * c.other**2
    excess = size * (c.value - claimed["c"]) ** 2 + across
    yield identity("L - min = squares of v_key, v_value - c, v_other", loss - claimed["loss"], excess, ANY_V)
    yield positive("their coefficients are positive: (g + L - 1)/L^2", size, ANY_V)
    half = c.having(spread=sympy.Rational(1, 2))
    product = c.noise**2 + sympy.Rational(1, 2) - 1 / (4 * c.tokens - 2)
    yield identity("g = 1/2", formula(half)["loss"], product)
    yield identity("g = 1/2: c", formula(half)["c"], c.tokens / (2 * c.tokens - 1))


@output_only.instance
def _(formula, case):
    """exact losses over all contexts of signs: there, and at four places around"""
    case = case.having(tokens=min(case.tokens, Fraction(3)), spread=case.spread**2)
    claimed, contexts = formula(case), list(sign_contexts(case, 2))

    def loss(v):
        return sum(exact_slopes(tokens, y, [1] * len(tokens), v)[0] for tokens, y in contexts) / len(contexts)

    best = loss([0, claimed["c"]])
    yield exact("loss at the minimum", best, claimed["loss"], case)
    for step in ([1, 0], [-1, 0], [0, 1], [0, -1]):
        place = [Fraction(step[0], 100), claimed["c"] + Fraction(step[1], 100)]
        yield holds("a larger loss around", loss(place) > best, case, place=place)


@output_only.simulation
def _(formula):
    """loss and slope of sampled contexts at the minimum, t-test over seeds"""
    for d, tokens, noise in PLACES:
        case = place(d, tokens, noise, key=0.0, value=0.0, other=0.0)
        claimed = formula(case)
        at = claimed["c"] * np.eye(d)[1]
        found = [kernel.loss_and_gradient(data, np.zeros(d), at) for data in fresh_contexts(d, tokens, noise)]
        yield sampled("loss", [loss for loss, _, _ in found], claimed["loss"], case)
        yield sampled("slope along v*", [d_v[1] for _, _, d_v in found], 0.0, case)


@output_only.simulation
def _(formula):
    """what the product reports"""
    for d, tokens, noise in PLACES:
        case = place(d, tokens, noise, key=0.0, value=0.0, other=0.0)
        reported = theory.output_only_minimum(tokens, noise)
        yield close("output_only_minimum", reported, list(formula(case).values()), ROUNDING, case)


output_only.mutant("L for L - 1", loss=lambda c, v: c.noise**2 + c.spread - c.spread**2 / (c.spread + c.tokens))
output_only.mutant("g for g^2", loss=lambda c, v: c.noise**2 + c.spread - c.spread / (c.spread + c.tokens - 1))
output_only.mutant("noise not squared", loss=lambda c, v: v + c.noise - c.noise**2)
output_only.mutant("1% lower", loss=lambda c, v: v - c.spread / 100)
output_only.mutant("v* itself", c=lambda c, v: v + 1)
output_only.mutant("L forgotten", c=lambda c, v: v / c.tokens if c.tokens != 1 else v + 1)


# ---- the line --------------------------------------------------------------------------------------------------------


@claim(
    "slr.line",
    statement=LAW + "If k lies on the line of k* and v on that of v*, so do both gradients on infinite data; hence "
    "from zero init k and v stay on these lines for ever, whatever the plan and the rates. Reflecting the tokens along "
    "v* turns f, y and r round and leaves the shares; reflecting them along a third direction leaves all of these: the "
    "slopes listed with parity -1 are odd, so that their mean is 0.",
    latex=r"k\in\mathbb Rk^*,\ v\in\mathbb Rv^*\ \Rightarrow\ \nabla_kL\in\mathbb Rk^*,\ \nabla_vL\in\mathbb Rv^*",
    domain=SLR.having(a=Real(), c=Real()),
    source="gradients.slr; the law of the tokens is invariant under both reflections",
)
def line(c):
    """What multiplies the slope of a context under the reflection along v* (first word: the layer) or a third axis."""
    return {"k_key": 1, "k_value": -1, "k_other": -1, "v_key": -1, "v_value": 1, "v_other": -1}


def reflected(values, along):
    """(key, value, other) coordinates, or numbers that follow the second, under the reflection of one of them."""
    return [-x if j == along else x for j, x in enumerate(values)]


@line.proof
def _(formula):
    """one token beside any number of others, under both reflections"""
    parity = formula(None)
    token = sympy.symbols("x1:4", real=True)
    weight, rest = sympy.symbols("p Z", positive=True)  # they depend on the coordinates along k* only
    c, rest_value, y = sympy.symbols("c N y", real=True)  # N: weighted sum of the others' coordinates along v*

    def slopes(token, rest_value, y):
        output = c * (weight * token[1] + rest_value) / (weight + rest)
        own = {"residual": output - y, "share": weight / (weight + rest), "own": c * token[1], "output": output}
        parts = [gradient(Case(entry=x, **own)) for x in token]
        return {
            f"{layer}_{name}": part[layer]
            for layer in "kv"
            for name, part in zip(("key", "value", "other"), parts, strict=True)
        }

    before = slopes(token, rest_value, y)
    along_value, along_other = slopes(reflected(token, 1), -rest_value, -y), slopes(reflected(token, 2), rest_value, y)
    for name, slope in before.items():
        after = along_other if name.endswith("other") else along_value
        yield identity(f"slope of {name} under the reflection", after[name], parity[name] * slope)


@line.instance
def _(formula, case):
    """exact means over contexts of random rationals and all their reflections vanish where the parity is -1"""
    rng, length = random.Random(str(case)), int(case.tokens)
    tokens, y = rationals(rng, length, 3), rationals(rng)
    weights = [Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in tokens]
    means = {name: 0 for name in formula(case)}
    for value_sign, other_sign in itertools.product((1, -1), repeat=2):
        image = [[row[0], value_sign * row[1], other_sign * row[2]] for row in tokens]
        _, d_k, d_v = exact_slopes(image, value_sign * y, weights, [0, case.c, 0])
        for layer, slopes in (("k", d_k), ("v", d_v)):
            for name, slope in zip(("key", "value", "other"), slopes, strict=True):
                means[f"{layer}_{name}"] += slope / 4
    _, d_k, d_v = exact_slopes(tokens, y, weights, [0, case.c, 0])
    own = dict(zip(means, (*d_k, *d_v), strict=True))
    for name, parity in formula(case).items():
        where = case.having(tokens=tokens, weights=weights, y=y, slope=name)
        yield exact(f"mean slope of {name}", means[name], own[name] * (1 + parity) / 2, where)


@line.simulation
def _(formula):
    """twenty joint steps of the kernel from zero on sampled contexts with all their reflections stay on the lines"""
    for d, tokens, noise in PLACES[:3]:
        task = SingleLocation(d=d, tokens=tokens, noise=noise, train_words=200, test_words=1)
        data = task.data(0)[0]
        images, targets = [], []
        for value_sign, other_sign in itertools.product((1, -1), repeat=2):
            signs = np.full(d, other_sign)
            signs[:2] = 1, value_sign
            images.append(signs * data.tokens)
            targets.append(value_sign * data.targets)
        symmetric = kernel.Tokens.from_arrays(np.concatenate(images), np.concatenate(targets))
        path = kernel.descend(symmetric, np.zeros(d), np.zeros(d), 0.05, 0.05, 20)
        case, parity = place(d, tokens, noise), formula(None)
        for layer, states in (("k", path.k), ("v", path.v)):
            for axis, name in enumerate(("key", "value")):
                moved = np.abs(states[-1, axis]) > 1e-4
                yield agrees(f"{layer} moves along {name}", moved, parity[f"{layer}_{name}"] == 1, case)
            moved = np.abs(states[:, 2:]).max() > ROUNDING
            yield agrees(f"{layer} moves across", moved, parity[f"{layer}_other"] == 1, case)


for _name in ("k_value", "k_other", "v_key", "v_other"):
    line.mutant(f"{_name} is even", **{_name: lambda c, v: 1})
line.mutant("k stays at 0", k_key=lambda c, v: -1)
line.mutant("v stays at 0", v_value=lambda c, v: -1)


@claim(
    "slr.line_loss",
    statement=LAW + "On the line k = a k*, v = c v*, with A_1 = E[P_J], A_2 = E[P_J^2] and B_2 the expected sum of the "
    "other shares' squares, all functions of a: L = c^2 (g A_2 + B_2) - 2 c g A_1 + g + noise^2 and "
    "dL/dc = 2 c (g A_2 + B_2) - 2 g A_1.",
    latex=r"L(a,c)=c^2\,(gA_2+B_2)-2c\,gA_1+g+\varepsilon^2",
    domain=ON_LINE,
    source="shares depend on coordinates along k*, values on those along v*, which are independent",
)
def line_loss(c):
    """Loss and its slope in c; ``c.first`` = A_1, ``c.second`` = A_2, ``c.others`` = B_2."""
    square = c.spread * c.second + c.others
    return {
        "loss": c.c**2 * square - 2 * c.c * c.spread * c.first + c.spread + c.noise**2,
        "d_c": 2 * c.c * square - 2 * c.spread * c.first,
    }


@line_loss.proof
def _(formula):
    """expectation over the coordinates along v* at given shares, which is linear in A_1, A_2 and B_2"""
    c = ON_LINE.symbols()
    share = sympy.Symbol("P", real=True)  # of the informative token
    others = sympy.Symbol("B", positive=True)  # sum of the other squared shares
    normals = sympy.symbols("a b xi", real=True)
    own = sympy.sqrt(c.spread) * normals[0]
    output = c.c * (share * own + sympy.sqrt(others) * normals[1])  # independent normals: their variances add up
    loss = expectation((output - own - c.noise * normals[2]) ** 2, normals)
    averaged = sympy.expand(loss).subs({share**2: c.second, others: c.others}).subs(share, c.first)
    claimed = formula(c)
    yield identity("loss", averaged, claimed["loss"])
    yield identity("dL/dc", sympy.diff(averaged, c.c), claimed["d_c"])


@line_loss.instance
def _(formula, case):
    """exact means over all signs of the coordinates along v* at random rational shares"""
    rng, length = random.Random(str(case)), int(case.tokens)
    weights = [Fraction(rng.randint(1, 9), rng.randint(1, 4)) for _ in range(length)]
    shares = [w / sum(weights) for w in weights]
    others = sum((p**2 for p in shares[1:]), Fraction(0))
    case = case.having(spread=case.spread**2, first=shares[0], second=shares[0] ** 2, others=others)
    claimed, losses, slopes, count = formula(case), 0, 0, 0
    for tokens, y in sign_contexts(case.having(signal=0), 2):
        loss, _, d_v = exact_slopes(tokens, y, weights, [0, case.c])
        losses, slopes, count = losses + loss, slopes + d_v[1], count + 1
    yield exact("loss", losses / count, claimed["loss"], case)
    yield exact("dL/dc", slopes / count, claimed["d_c"], case)


@line_loss.simulation
def _(formula):
    """loss and slopes of sampled contexts against the integrals of the product, t-test over seeds"""
    for (d, tokens, noise), (a, c) in zip(PLACES, ((0.5, 0.6), (-0.3, 1.2), (2.0, 0.9), (1.0, 0.5)), strict=True):
        first, second, others = theory.share_moments(d, tokens, a)[:3]
        case = place(d, tokens, noise, a=a, c=c, first=first, second=second, others=others)
        claimed, (_, d_a, _) = formula(case), theory.line_gradient(d, tokens, noise, a, c)
        k, v = a * np.eye(d)[0], c * np.eye(d)[1]
        found = [kernel.loss_and_gradient(data, k, v) for data in fresh_contexts(d, tokens, noise)]
        yield sampled("loss", [loss for loss, _, _ in found], claimed["loss"], case)
        yield sampled("dL/dc", [d_v[1] for _, _, d_v in found], claimed["d_c"], case)
        if tokens > 1:
            yield sampled("dL/da", [d_k[0] for _, d_k, _ in found], float(d_a), case)


@line_loss.simulation
def _(formula):
    """what the product reports; two tokens, where the share is a logistic function of one normal variable"""
    for (d, _, noise), a in itertools.product(PLACES, (0.3, 1.5, -0.7)):
        nodes = np.arange(-900, 901) / 100.0  # the difference of both scores is a N(signal, 1 + spread)
        weights = 0.01 / np.sqrt(2 * np.pi) * np.exp(-0.5 * nodes**2)
        share = 1 / (1 + np.exp(-a * (np.sqrt(d / 2) + np.sqrt(1 + theory.SPREAD) * nodes)))
        moments = {"first": weights @ share, "second": weights @ share**2, "others": weights @ (1 - share) ** 2}
        case = place(d, 2, noise, c=0.8, **moments)
        loss, _, d_c = theory.line_gradient(d, 2, noise, a, 0.8)
        yield close("line_gradient", [loss, d_c], list(formula(case).values()), ROUNDING, case.having(a=a))


line_loss.mutant("sign of the cross term", loss=lambda c, v: v + 4 * c.c * c.spread * c.first)
line_loss.mutant("others forgotten", loss=lambda c, v: v - c.c**2 * c.others)
line_loss.mutant("g forgotten", d_c=lambda c, v: 2 * c.c * (c.second + c.others) - 2 * c.spread * c.first)
line_loss.mutant("A_1^2 for A_2", loss=lambda c, v: v + c.c**2 * c.spread * (c.first**2 - c.second))
line_loss.mutant("not doubled", d_c=lambda c, v: v / 2)
line_loss.mutant("noise forgotten", loss=lambda c, v: v - c.noise**2)
