"""Finite samples, both steps: the window after O(1x), and the logit gap after A(1x) on the same words again."""

import math
import random
from fractions import Fraction

import numpy as np
import sympy

from analytic import finite_sample
from analytic.finite_sample import bernstein
from analytic.languages import any_of
from analytic.moments import letter_moment
from analytic.one_step import logit_gap
from sim.tasks.letters import LetterTask
from sim.tasks.streams import TRAIN, stream

from . import phase_one
from .claims import claim
from .decide import ROUNDING, below, close, exact, holds, identity, no_oftener, positive, sampled, squares
from .domain import LETTERS, Case, Domain, Length, Real, Whole
from .enclosures import BallGeometric, ball, enclosed
from .finite_sample import DATA_SETS, output_deviation
from .gradients import letter, uniform_attention_gradient
from .letters import population
from .simulator import GRID, SAMPLES, kernel_step, runs
from .uniform_attention import uniform_attention

WINDOW = LETTERS.having(rate_o=Real(0))


def _inside(case):
    ends = phase_one.window(case)
    return ends["low"] < case.rate_o < ends["high"]


IN_WINDOW = "the rate lies in the window of the population"
RATE_IN_WINDOW = WINDOW.where(IN_WINDOW, _inside)


@claim(
    "finite_sample.window",
    statement="After one output step from zero init on N independent words, with a rate inside the window, "
    "beta_s > 1 > beta_o fails with probability at most k e^(-N x_S) + (d-k) e^(-N x_o), "
    "x_S = e_S^2/(2 (v_S + e_S/(3d))), x_o = e_o^2/(2 (v_o + (1 - c_o) e_o/3)), with the margins "
    "e_S = 1/d - 1/(4 rate_o), e_o = 1/(4 rate_o) - c_o, and v_S, v_o, c_o of finite_sample.output_deviation.",
    latex=r"\Pr(\text{not }\hat\beta_s>1>\hat\beta_o)\le k\,e^{-Nx_S}+(d-k)e^{-Nx_o},\quad "
    r"x_S=\frac{e_S^2}{2(v_S+e_S/(3d))},\ x_o=\frac{e_o^2}{2(v_o+(1-c_o)e_o/3)}",
    domain=RATE_IN_WINDOW,
    source="finite_sample.output_deviation; a target's lower tail reaches as far as its mean 1/d",
)
def window(c):
    shares = output_deviation.formula(c.having(words=1, log_term=1))
    per_rate = 1 / (4 * c.rate_o)
    margins = {"target": 1 / c.d - per_rate, "other": per_rate - shares["mean_other"]}
    reach = {"target": 1 / c.d, "other": 1 - shares["mean_other"]}
    exponents = {
        f"exponent_{name}": e**2 / (2 * (shares[f"variance_{name}"] + reach[name] * e / 3))
        for name, e in margins.items()
    }
    return exponents | {f"margin_{name}": e for name, e in margins.items()}


def failure_bound(claimed, case, words):
    """The bound on the probability."""
    target, other = (math.exp(-words * claimed[f"exponent_{name}"]) for name in ("target", "other"))
    return case.k * target + (case.d - case.k) * other


@window.proof
def _(formula):
    """margins of the population step; Bernstein's exponent at them; moments and Bernstein's inequality again"""
    c = WINDOW.symbols()
    claimed, (target, other) = formula(c), phase_one.output_step(c)
    yield identity("beta_S - 1 = 4 rate_o e_S", target - 1, 4 * c.rate_o * claimed["margin_target"], WINDOW)
    yield identity("1 - beta_o = 4 rate_o e_o", 1 - other, 4 * c.rate_o * claimed["margin_other"], WINDOW)
    yield positive("4 rate_o > 0", 4 * c.rate_o, WINDOW)
    # beta_j / (4 rate_o) is a mean of X_j = 1_+ p_j; X_s >= 0 is at most its mean 1/d below it, X_o <= 1
    shares = output_deviation(c.having(words=1, log_term=1))
    e, v, R = sympy.symbols("e v R", positive=True)
    exponent = e**2 / (2 * (v + R * e / 3))  # the exponent proved in finite_sample.output_deviation
    for name, reach in (("target", shares["mean_target"]), ("other", 1 - shares["mean_other"])):
        at = {e: claimed[f"margin_{name}"], v: shares[f"variance_{name}"], R: reach}
        yield identity(f"Bernstein's exponent, {name}", exponent.subs(at), claimed[f"exponent_{name}"], WINDOW)
    for evidence in output_deviation.evidence:
        if evidence.kind == "proved":
            yield from evidence.find(output_deviation.formula)


@window.instance
def _(formula, case):
    """exact margins, variances and reaches over all words"""
    d, k, claimed = int(case.d), int(case.k), formula(case)
    beta = phase_one.exact_output_step(case)
    yield exact("4 rate_o e_S", beta[0] - 1, 4 * case.rate_o * claimed["margin_target"], case)
    yield exact("4 rate_o e_o", 1 - beta[-1], 4 * case.rate_o * claimed["margin_other"], case)
    yield holds("both margins are positive", min(beta[:k]) > 1 > max(beta[k:]), case, beta=beta)
    for name, j, sign in (("target", 0, -1), ("other", d - 1, 1)):
        values = [(p, sign * Fraction(counts[j], sum(counts)) * (y > 0)) for p, counts, y in population(case)]
        mean = sum(p * x for p, x in values)
        variance, reach = sum(p * x**2 for p, x in values) - mean**2, (0 if sign < 0 else 1) - mean
        e = claimed[f"margin_{name}"]
        yield holds("the reach bounds every word", all(x - mean <= reach for _, x in values), case, reach=reach)
        yield exact(f"exponent, {name}", claimed[f"exponent_{name}"], e**2 / (2 * (variance + reach * e / 3)), case)


@window.enclosure
def _(formula):
    """the bound over boxes of rates and words, one target, balanced geometric lengths"""
    for d, words, rates in (
        (50, (2400, 5000), (18, 20)),
        (200, (4500, 6000), (58, 64)),
        (1000, (22000, 25000), (275, 310)),
    ):

        def margin(c, d=d):
            case = Case(d=ball(d), k=1, length=BallGeometric(ball(Fraction(1, d - 1))), rate_o=c.rate_o)
            claimed = formula(case)
            target, other = ((-(c.words * claimed[f"exponent_{name}"])).exp() for name in ("target", "other"))
            return 1 - (target + (d - 1) * other) / ball(Fraction(1, 20))

        text = f"d = {d}: at most 1/20 for N in {list(words)}, rate_o in {list(rates)}"
        yield enclosed(text, margin, {"words": words, "rate_o": rates})


@window.simulation
def _(formula):
    """what the product reports"""
    for place in GRID:
        case = WINDOW.check(**place, rate_o=0.3 * place["d"])
        for words in (100, 10_000):
            bound = failure_bound(formula(case), case, words) if _inside(case) else 1.0
            reported = finite_sample.window_failure(case.d, case.k, case.length, case.rate_o, words)
            yield close("analytic.finite_sample.window_failure", reported, min(bound, 1.0), ROUNDING, case)


@window.simulation
def _(formula):
    """how often the window fails in 400 data sets of the simulator, against the bound"""
    for (d, k, length), words in zip(SAMPLES, (300, 1200, 400, 1500), strict=True):
        rate_o = 0.3 * d
        case = WINDOW.check(d=d, k=k, length=length, rate_o=rate_o)
        bound = failure_bound(formula(case), case, words)
        run = runs("O(1x)", d, k, length, DATA_SETS, rate_o=rate_o, train_words=words, test_words=1)
        beta = run.beta.values[:, 1, 0]
        fails = int(np.sum((beta[:, :k].min(axis=1) <= 1) | (beta[:, k:].max(axis=1) >= 1)))
        yield no_oftener("the window fails", fails, len(DATA_SETS), bound, case.having(words=words))


window.mutant("sign of the margin", exponent_target=lambda c, v: -v)
window.mutant("loss with 1/2: rate_o halved", margin_target=lambda c, v: 1 / c.d - 1 / (2 * c.rate_o))
window.mutant("reach 1/d off S too", exponent_other=lambda c, v: _exponent(c, "other", 1 / c.d))
window.mutant("no reach on S", exponent_target=lambda c, v: _exponent(c, "target", 0))
window.mutant("margin without square", exponent_target=lambda c, v: v / window.formula(c)["margin_target"])
window.mutant("factor 2 in the exponent", exponent_other=lambda c, v: 2 * v)
window.mutant("q/(d-k) for c_o", margin_other=lambda c, v: 1 / (4 * c.rate_o) - c.q / c.D)


def _exponent(c, name, reach):
    """Bernstein's exponent with another reach."""
    variance = output_deviation.formula(c.having(words=1, log_term=1))[f"variance_{name}"]
    e = window.formula(c)[f"margin_{name}"]
    return e**2 / (2 * (variance + reach * e / 3))


# ---------------------------------------------------------------- both steps on the same words


SAME = Domain(d=Whole(3), length=Length(), rate_o=Real(0), words=Whole(1))
MEANS = ("x(1-x)", "px", "p+", "p-")


@claim(
    "finite_sample.same_words",
    statement="Occurrence, O(1x)->A(1x) from zero init on the same N words, 0 <= beta_o < beta_s and Delta = "
    "beta_s - beta_o the population's values. If the sample's beta is within t_S of beta_s and t_o of beta_o, then "
    "(alpha_s - max_o alpha_o)/(2 rate_a) >= Delta K d/(d-1) - dev_s - dev_o - E[x(1-x)] (w Delta + (R+w)(t_S+t_o)) - "
    "max_o {E[p_o x] (w Delta + (R+w)(t_S-t_o)_+) + E[1_+ p_o] (R+w) 2 t_o + E[1_- p_o] (beta_o+t_o) 2 t_o}, with "
    "R = max(2 - beta_o, beta_s - 2), w = max(t_S, t_o), E means of the sample, dev the deviations of the means of "
    "Y_j = -r p_j (beta_j - h) at the population's beta, values of spread at most R Delta/2 and second moment at most "
    "R^2 Delta^2 E[x^2(1-x)^2], R^2 Delta^2 E[p_o^2 x^2]. Bernstein bounds all of them together, 5 d events.",
    latex=r"\frac{\hat\alpha_s-\max_o\hat\alpha_o}{2\eta_A}\ge\frac{\Delta Kd}{d-1}-\delta_s-\delta_o-\hat E[x(1-x)]"
    r"\big(w\Delta+(R+w)(t_S+t_o)\big)-\hat E[p_ox]\big(w\Delta+(R+w)(t_S-t_o)_+\big)-\cdots",
    domain=SAME,
    source="gradients.letter at uniform attention, word by word; finite_sample.output_deviation",
)
def same_words(c):
    """``c.means`` of `MEANS`; ``c.t_target``, ``c.t_other``, ``c.dev_target``, ``c.dev_other`` the deviations;

    ``c.drive`` = K, ``c.beta_target`` and ``c.beta_other`` of the population, ``c.residual`` = R, ``c.widest`` = w and
    ``c.surplus`` = (t_S - t_o)_+; see `extremes`.
    """
    spread, moved = c.beta_target - c.beta_other, c.residual + c.widest
    product = c.widest * spread
    target = c.means["x(1-x)"] * (product + moved * (c.t_target + c.t_other))
    other = (
        c.means["px"] * (product + moved * c.surplus)
        + c.means["p+"] * moved * 2 * c.t_other
        + c.means["p-"] * (c.beta_other + c.t_other) * 2 * c.t_other
    )
    gap = spread * c.drive * c.d / (c.d - 1) - c.dev_target - c.dev_other
    return {
        "reach": c.residual * spread / 2,
        "moved_target": target,
        "moved_other": other,
        "gap": gap - target - other,
        "events": 5 * c.d,
    }


def extremes(c):
    """The case with R, w and (t_S - t_o)_+."""
    return c.having(
        residual=max(2 - c.beta_other, c.beta_target - 2),
        widest=max(c.t_target, c.t_other),
        surplus=max(c.t_target - c.t_other, 0),
    )


def word_value(share, weight, value, positive_word):
    """Y_j of one word: minus half the slope in alpha_j of its loss."""
    return -letter(Case(residual=value - 2 * positive_word, share=share, weight=weight, value=value))["alpha"] / 2


def products_and_sums():
    """Steps that show |u v| <= U V and |u + v| <= U + V for |u| <= U, |v| <= V."""
    U, V = sympy.symbols("U V", positive=True)
    a, b = sympy.symbols("a b", nonnegative=True)
    u, v = U * (1 - a) / (1 + a), V * (1 - b) / (1 + b)  # anything in (-U, U], (-V, V]; -u is covered by the other sign
    for sign in (1, -1):
        yield positive(f"U V {'+-'[sign < 0]} u v >= 0", U * V + sign * u * v, strict=False)
        yield positive(f"U + V {'+-'[sign < 0]} (u + v) >= 0", U + V + sign * (u + v), strict=False)


@same_words.proof
def _(formula):
    """word by word: the value at the sample's beta, less that at the population's, in four bounded parts"""
    yield from products_and_sums()
    x, p = sympy.symbols("x p_o", positive=True)
    rest = 1 - x - p
    high, low, move_s, move_o, move_r = sympy.symbols("beta_s beta_o eps_s eps_o eps_r", real=True)
    R, t_S, more, gap = sympy.symbols("R t_S |t_S-t_o| Delta", positive=True)
    spread = high - low
    for positive_word, label in ((1, "+"), (0, "-")):
        share = x if positive_word else 0
        others = 1 - share - p
        value = share * high + (1 - share) * low
        e = share * move_s + p * move_o + others * move_r
        residual = value - 2 * positive_word
        before = word_value(p, low, value, positive_word)
        after = word_value(p, low + move_o, value + e, positive_word)
        parts = -p * (e * (low - value) + (residual + e) * (move_o - e))
        yield identity(f"Y_o moves by -p_o [e (beta_o - h) + (r + e)(eps_o - e)], label {label}", after - before, parts)
        yield identity(f"beta_o - h = -Delta x, label {label}", low - value, -spread * share)
        apart = share * (move_o - move_s) + others * (move_o - move_r)
        yield identity(f"eps_o - e, label {label}", sympy.expand(move_o - e), sympy.expand(apart))
    value, e = x * high + (1 - x) * low, x * move_s + p * move_o + rest * move_r
    before, after = word_value(x, high, value, 1), word_value(x, high + move_s, value + e, 1)
    parts = -x * (e * (high - value) + (value - 2 + e) * (move_s - e))
    yield identity("Y_s moves by -x [e (beta_s - h) + (r + e)(eps_s - e)]", after - before, parts)
    yield identity("beta_s - h = Delta (1 - x)", high - value, spread * (1 - x))
    apart = p * (move_s - move_o) + rest * (move_s - move_r)
    yield identity("eps_s - e", sympy.expand(move_s - e), sympy.expand(apart))
    yield identity("Y_s = 0 on words without s", word_value(0, high, low, 0), 0)
    yield identity("Y_o = 0 on words without s", word_value(p, low, low, 0), 0)

    # |e| <= w, |r + e| <= R + w; |eps_s - e| <= (1-x)(t_S + t_o), |eps_o - e| <= x (t_S + t_o) + (1-x) 2 t_o
    top, bottom = sympy.Symbol("1-h/2", nonnegative=True), sympy.Symbol("beta_o", nonnegative=True)
    yield positive("|r| <= R: 2 - h <= 2 - beta_o as h >= beta_o", (2 - bottom) - (2 - (bottom + top)), strict=False)
    over = sympy.Symbol("b", nonnegative=True)
    beta_o, share = 1 / (1 + over), {x: 1 / (1 + sympy.Symbol("1/x-1", nonnegative=True))}
    orders = (("t_S >= t_o", t_S + more, t_S, t_S + more, more), ("t_S < t_o", t_S, t_S + more, t_S + more, 0))
    for text, t_target, t_o, widest, surplus in orders:
        means = {"x(1-x)": x * (1 - x), "px": p * x, "p+": p, "p-": p}
        place = Case(d=sympy.Symbol("d"), means=means, drive=0, dev_target=0, dev_other=0)
        place = place.having(residual=R, widest=widest, surplus=surplus, t_target=t_target, t_other=t_o)
        claimed = formula(place.having(beta_target=beta_o + gap, beta_other=beta_o))
        target = x * (widest * gap * (1 - x) + (R + widest) * (1 - x) * (t_target + t_o))
        yield identity(f"|change of Y_s|, {text}", target, claimed["moved_target"])
        other = p * (widest * gap * x + (R + widest) * (x * (t_target + t_o) + (1 - x) * 2 * t_o))
        negative = p * (beta_o + t_o) * 2 * t_o
        room = claimed["moved_other"] - negative - other
        yield positive(f"|change of Y_o| on positive words, {text}", room.subs(share), strict=False)
        words = {"x(1-x)": 0, "px": 0, "p+": 0, "p-": p}
        negative_word = formula(place.having(beta_target=beta_o + gap, beta_other=beta_o, means=words))
        yield identity(f"|change of Y_o| on negative words, {text}", negative, negative_word["moved_other"])
        yield identity(f"reach, twice R Delta/4, {text}", claimed["reach"], 2 * R * gap / 4)
    yield positive("|r| <= R, below: h - 2 <= beta_s - 2", gap * (1 - share[x]), strict=False)

    # at the population's beta |Y_s| <= R Delta x (1-x), |Y_o| <= R Delta p_o x <= R Delta x (1-x), and x (1-x) <= 1/4
    yield from squares(
        "1/4 - x (1-x) = (1/2 - x)^2", sympy.Rational(1, 4) - x * (1 - x), ((1, sympy.Rational(1, 2) - x),)
    )
    yield identity("Y_s = -r Delta x (1-x)", before, -(value - 2) * spread * x * (1 - x))
    at = word_value(p, low, value, 1)
    yield identity("Y_o = r Delta p_o x", at, (value - 2) * spread * p * x)

    # the population's gap, and the number of events
    c = LETTERS.symbols()
    c = c.having(k=sympy.Integer(1), beta_target=high, beta_other=low)
    means = [-uniform_attention_gradient(c, inside, high, low)["alpha"] / 2 for inside in (True, False)]
    drive = (2 - low) * c.M1 - spread * c.M2
    place = c.having(means=dict.fromkeys(MEANS, 0), drive=drive, t_target=0, t_other=0, dev_target=0, dev_other=0)
    place = place.having(residual=0, widest=0, surplus=0)
    claimed = formula(place)
    yield identity("mean Y_s - mean Y_o of the population", means[0] - means[1], claimed["gap"])
    count = 2 * c.d + c.d + 1 + 2 * (c.d - 1)  # beta; Y_j; x(1-x); p_o x and 1_- p_o. Those of 1_+ p_o are beta's
    yield positive("at most 5 d one-sided events", claimed["events"] - count)


@same_words.instance
def _(formula, case):
    """exact steps on random samples of words: the gap is above the bound made of the sample's own deviations"""
    rng, d = random.Random(str(case)), int(case.d)
    case = case.having(k=Fraction(1))
    everyone = population(case)
    drawn = rng.choices(everyone, [float(p) for p, _, _ in everyone], k=12)
    sample = [(Fraction(1, len(drawn)), counts, y) for _, counts, y in drawn]
    exact_values = phase_one.update(case)
    beta = [exact_values["beta_target"]] + [exact_values["beta_other"]] * (d - 1)
    found = [4 * case.rate_o * average(sample, lambda shares, y, j=j: shares[j] * (y > 0)) for j in range(d)]

    def mean_y(words, weights):
        return [average(words, lambda shares, y, j=j: _exact_word(shares, y, weights, j)) for j in range(d)]

    truth, at_population, at_sample = mean_y(everyone, beta), mean_y(sample, beta), mean_y(sample, found)
    moves = [abs(a - b) for a, b in zip(found, beta, strict=True)]
    c = case.having(
        beta_target=beta[0],
        beta_other=beta[1],
        t_target=moves[0],
        t_other=max(moves[1:]),
        dev_target=truth[0] - at_population[0],
        drive=(2 - beta[1]) * case.M1 - (beta[0] - beta[1]) * case.M2,
    )
    for o in range(1, d):
        means = {
            "x(1-x)": average(sample, lambda shares, y: shares[0] * (1 - shares[0])),
            "px": average(sample, lambda shares, y, o=o: shares[0] * shares[o]),
            "p+": average(sample, lambda shares, y, o=o: shares[o] * (y > 0)),
            "p-": average(sample, lambda shares, y, o=o: shares[o] * (y < 0)),
        }
        claimed = formula(extremes(c.having(means=means, dev_other=at_population[o] - truth[o])))
        gap = at_sample[0] - at_sample[o]
        yield holds("gap of the sample >= bound", gap >= claimed["gap"], case.having(o=o), found=gap, **claimed)
        changes = abs(at_sample[0] - at_population[0]), abs(at_sample[o] - at_population[o])
        yield holds("Y_s moves at most so far", changes[0] <= claimed["moved_target"], case, found=changes[0])
        yield holds("Y_o moves at most so far", changes[1] <= claimed["moved_other"], case, found=changes[1])
    shares = [([Fraction(n, sum(counts)) for n in counts], y) for _, counts, y in everyone]
    most = max(abs(_exact_word(*word, beta, j)) for word in shares for j in range(d))
    yield holds("|Y_j| is at most half the reach", most <= claimed["reach"] / 2, case, found=most, **claimed)


def average(words, function):
    """Mean of function(shares, y) over weighted words."""
    return sum(p * function([Fraction(n, sum(counts)) for n in counts], y) for p, counts, y in words)


def _exact_word(shares, y, weights, j):
    value = sum(p * b for p, b in zip(shares, weights, strict=True))
    return word_value(shares[j], weights[j], value, 1 if y > 0 else 0)


def guarantee(formula, d, law, rate_o, words, delta):
    """The lower bound on the logit gap per unit of rate_a that holds with probability 1 - delta, for N words."""
    case = LETTERS.check(d=d, k=1, length=law)
    beta = {name: float(b) for name, b in phase_one.update(case.having(rate_o=rate_o)).items()}
    log_term = math.log(5 * d / delta)
    shares = output_deviation(case.having(words=words, log_term=log_term))
    moves = {n: 4 * rate_o * (shares[f"step_{n}"] + math.sqrt(shares[f"under_root_{n}"])) for n in ("target", "other")}

    def moment(label=None, **powers):
        return float(letter_moment(any_of(1), d, case.length, {"xp".index(n): a for n, a in powers.items()}, label))

    x_square = moment(x=2) - 2 * moment(x=3) + moment(x=4)
    squares = {"x(1-x)": x_square, "px": moment(p=2, x=2), "p-": moment(-1, p=2)}
    means = {"x(1-x)": moment(x=1) - moment(x=2), "px": moment(p=1, x=1), "p-": moment(-1, p=1)}
    reaches = {"x(1-x)": 0.25, "px": 0.25, "p-": 1.0}
    means = {n: mean + bernstein(squares[n], reaches[n], words, log_term) for n, mean in means.items()}
    means["p+"] = float(shares["mean_other"]) + moves["other"] / (4 * rate_o)
    place = extremes(case.having(**beta, means=means, t_target=moves["target"], t_other=moves["other"]))
    spread = beta["beta_target"] - beta["beta_other"]
    drive = (2 - beta["beta_other"]) * case.M1 - spread * case.M2
    # the second moments are those of Y at |r| = R, the reach is the claim's
    size = place.residual * spread
    reach = formula(place.having(drive=drive, dev_target=0, dev_other=0))["reach"]
    devs = [bernstein(size**2 * squares[name], reach, words, log_term) for name in ("x(1-x)", "px")]
    return 2 * formula(place.having(drive=drive, dev_target=devs[0], dev_other=devs[1]))["gap"]


COVERAGE = ((10, "geometric:0.125", 3000), (15, "fixed:6", 6000), (20, "uniform:1:20", 8000))


@same_words.simulation
def _(formula):
    """what the product reports"""
    for d, length, words in COVERAGE:
        for rate_o in (0.28 * d, 0.35 * d):
            case = SAME.check(d=d, length=length, rate_o=rate_o, words=words)
            bound = guarantee(formula, d, case.length, rate_o, words, 0.05)
            steps = finite_sample.sampled_steps(d, case.length, rate_o, words, 0.05)
            scale = steps.population_logit_gap
            yield close("analytic.finite_sample.sampled_steps", steps.logit_gap, bound, ROUNDING, case, scale)


@same_words.simulation
def _(formula):
    """the gap of 400 data sets of the simulator against the guarantee: coverage, looseness"""
    for d, length, words in COVERAGE:
        delta, rate_o = 0.05, 0.35 * d
        case = SAME.check(d=d, length=length, rate_o=rate_o, words=words)
        bound = guarantee(formula, d, case.length, rate_o, words, delta)
        population_gap = float(logit_gap(d, 1, case.length, rate_o, 1.0))
        run = runs("O(1x)->A(1x)", d, 1, length, DATA_SETS, rate_o=rate_o, rate_a=1.0, train_words=words, test_words=1)
        alpha = run.alpha.values[:, 2, 0]
        gaps = alpha[:, 0] - alpha[:, 1:].max(axis=1)
        violations = int(np.sum(gaps < bound))
        yield no_oftener("violations", violations, len(DATA_SETS), delta, case)
        # how loose: the guaranteed share of the population's gap against the share that 95% of the data sets reach
        guaranteed, reached = bound / population_gap, np.quantile(gaps, delta) / population_gap
        yield below("guaranteed share of the gap <= share reached", guaranteed, reached, case.having(delta=delta))


same_words.mutant("sign of the change of beta", moved_target=lambda c, v: -v)
same_words.mutant("2 t_o is t_o", moved_other=lambda c, v: v - c.means["p+"] * (c.residual + c.widest) * c.t_other)
same_words.mutant(
    "(t_S - t_o) for (t_S + t_o)",
    moved_target=lambda c, v: v - 2 * c.means["x(1-x)"] * (c.residual + c.widest) * c.t_other,
)
same_words.mutant(
    "negative words forgotten", moved_other=lambda c, v: v - c.means["p-"] * (c.beta_other + c.t_other) * 2 * c.t_other
)
same_words.mutant("d/(d-1) forgotten", gap=lambda c, v: v - (c.beta_target - c.beta_other) * c.drive / (c.d - 1))
same_words.mutant("spread of Y halved", reach=lambda c, v: v / 2)
same_words.mutant("3 d events, as for fresh words", events=lambda c, v: 3 * c.d)
same_words.mutant("change of beta_s forgotten", gap=lambda c, v: v + same_words.formula(c)["moved_target"])


# ---------------------------------------------------------------- the attention step on fresh words


@claim(
    "finite_sample.fresh_words",
    statement="Occurrence, A(1x) at alpha = 0 on N words independent of beta, whose letters lie in beta_s +- t_S "
    "and beta_o +- t_o, Delta' = beta_s - beta_o + t_S + t_o, R = max(2 - beta_o + t_o, beta_s + t_S - 2)"
    " >= |r| on positive words, R- = (beta_o + t_o) 2 t_o: the means P of Y have P_s - P_o = "
    "(2/d)(1-E1)(b_s - b_o) + (2/(d-1))(G-G1)(b_o - mean_o) - (t2/d)(b_s^2 - b_o^2) - (t3/d) mean (b_s - "
    "b_o), concave in b_s, convex in b_o and linear in the mean of the rest, so its minimum over the box "
    "lies at ends (b_o: ends or the vertex). |Y_s| <= R Delta' x (1-x), |Y_o| <= R p_o (Delta' x + 2 t_o "
    "(1-x)) on positive words and R- p_o on negative ones: Bernstein bounds both deviations.",
    latex=r"\frac{\hat\alpha_s-\max_o\hat\alpha_o}{2\eta_A}\ge\min_{\text{box}}(P_s-P_o)-\delta_s-\delta_o,\quad "
    r"|Y_o|\le Rp_o(\Delta'x+2t_o(1-x))\ (+),\ 2t_o(\beta_o+t_o)p_o\ (-)",
    domain=SAME,
    source="gradients.uniform_attention; gradients.letter word by word; finite_sample.output_deviation",
)
def fresh_words(c):
    """P_s - P_o at b_s = ``c.own``, b_o = ``c.other``, ``c.rest`` the mean of the other letters; bounds of one word.

    The word has shares ``c.x`` and ``c.p`` of s and o; ``c.wide`` = Delta', ``c.residual`` = R, ``c.negative`` = R-.
    """
    t2, t3, n = c.E1 - c.E2, 1 - 3 * c.E1 + 2 * c.E2, c.d - 1
    mean_others = (c.other + (n - 1) * c.rest) / n
    mean, apart = (c.own + n * mean_others) / c.d, c.own - c.other
    gap = 2 / c.d * (1 - c.E1) * apart + 2 / n * (c.G - c.G1) * (c.other - mean_others)
    return {
        "gap": gap - t2 / c.d * (c.own**2 - c.other**2) - t3 / c.d * mean * apart,
        "target": c.residual * c.wide * c.x * (1 - c.x),
        "other": c.residual * c.p * (c.wide * c.x + 2 * c.t_other * (1 - c.x)),
        "negative": c.negative * c.p,
        "reach_other": c.residual * (c.wide / 4 + 2 * c.t_other),
        "curvature_own": -2 * t2 / c.d - 2 * t3 / c.d**2,
        "curvature_other": 2 * t2 / c.d + 2 * t3 / (c.d * c.d),
    }


@fresh_words.proof
def _(formula):
    """the means from gradients.uniform_attention; second derivatives and their signs; words in bounded parts"""
    yield from products_and_sums()
    own, other, rest = sympy.symbols("b_s b_o rest", real=True)
    c = LETTERS.symbols()
    c = c.having(k=sympy.Integer(1))
    zero = dict.fromkeys(("x", "p", "residual", "wide", "negative", "t_other"), 0)
    claimed = formula(c.having(own=own, other=other, rest=rest, **zero))
    n = c.d - 1
    mean_others = (other + (n - 1) * rest) / n
    mean = (own + n * mean_others) / c.d
    slopes = []
    for weight, inside in ((own, True), (other, False)):
        # the mean of the squares is common to both and drops out
        place = {"own": weight, "total": weight, "mean_own": mean, "mean_total": mean, "mean_others": mean_others}
        place |= {"product": sympy.Symbol("mean_square"), "inside": inside}
        slopes.append(-uniform_attention(c.having(**place))["alpha"] / 2)
    yield identity("P_s - P_o", slopes[0] - slopes[1], claimed["gap"], LETTERS)
    yield identity("curvature in b_s", sympy.diff(claimed["gap"], own, 2), claimed["curvature_own"], LETTERS)
    yield identity("curvature in b_o", sympy.diff(claimed["gap"], other, 2), claimed["curvature_other"], LETTERS)
    yield identity("linear in the rest", sympy.diff(claimed["gap"], rest, 2), 0)
    m = 1 + sympy.Symbol("m'", integer=True, nonnegative=True)
    yield positive("t2 = E[(m-1)/m^2] >= 0", 1 / m - 1 / m**2, strict=False)
    yield identity("t3 = E[(m-1)(m-2)/m^2]", 1 - 3 / m + 2 / m**2, (m - 1) * (m - 2) / m**2)
    over = sympy.Symbol("m''", integer=True, nonnegative=True)
    for first in (1, 2):  # (m-1)(m-2) >= 0 at m = 1 and for m >= 2
        yield positive(f"t3 >= 0 from m = {first}", _third(m, first, over), strict=False)

    x, p, R, wide, t_o, neg = sympy.symbols("x p_o R Delta' t_o R-", positive=True)
    s, o, i = sympy.symbols("beta_s beta_o beta_i", real=True)
    value = x * s + p * o + (1 - x - p) * i
    spread = sympy.expand(s - value)
    yield identity("beta_s - h", spread, sympy.expand(p * (s - o) + (1 - x - p) * (s - i)))
    yield identity("beta_o - h", sympy.expand(o - value), sympy.expand(x * (o - s) + (1 - x - p) * (o - i)))
    words = Case(d=c.d, E1=0, E2=0, G=0, G1=0, own=0, other=0, rest=0, x=x, p=p, residual=R, wide=wide)
    claimed = formula(words.having(t_other=t_o, negative=neg))
    yield identity("|Y_s| <= x R (1-x) Delta'", claimed["target"], x * R * (1 - x) * wide)
    share = {x: 1 / (1 + sympy.Symbol("1/x-1", nonnegative=True))}
    room = claimed["other"] - p * R * (x * wide + (1 - x - p) * 2 * t_o)
    yield positive("|Y_o| <= p_o R (x Delta' + (1-x-p_o) 2 t_o), positive words", room.subs(share), strict=False)
    yield identity("|Y_o| <= p_o (beta_o + t_o) 2 t_o, negative words", claimed["negative"], p * neg)
    half = sympy.Rational(1, 2)
    most = claimed["other"].subs(p, 1 - x)  # p_o <= 1 - x
    left = claimed["reach_other"] - most
    parts = ((R * wide, half - x), (2 * R * t_o * x * (2 - x), sympy.Integer(1)))
    yield identity("(1-x)^2 = 1 - x (2 - x)", (1 - x) ** 2, 1 - x * (2 - x))
    yield identity("reach - |Y_o| as squares", left, sum(a * b**2 for a, b in parts))
    for number, (factor, _) in enumerate(parts, 1):
        yield positive(f"its coefficient {number} >= 0", factor.subs(share), strict=False)


def _third(m, first, over):
    """(m-1)(m-2)/m^2 at m = 1, or for m = 2 + over."""
    value = (m - 1) * (m - 2) / m**2
    (symbol,) = m.free_symbols
    return value.subs(symbol, 0) if first == 1 else value.subs(symbol, 1 + over)


@fresh_words.instance
def _(formula, case):
    """exact means over all words at random weights in a box; each word's values; the minimum over the box"""
    rng, d = random.Random(str(case)), int(case.d)
    case = case.having(k=Fraction(1))
    centre = [Fraction(3, 2)] + [Fraction(1, 2)] * (d - 1)
    t_target, t_other = Fraction(rng.randint(1, 6), 12), Fraction(rng.randint(1, 6), 12)
    beta = [b + (t_other if j else t_target) * Fraction(rng.randint(-6, 6), 6) for j, b in enumerate(centre)]
    words = [(p, [Fraction(n, sum(counts)) for n in counts], y) for p, counts, y in population(case)]
    means = [sum(p * _exact_word(shares, y, beta, j) for p, shares, y in words) for j in range(d)]
    box = {"residual": max(2 - centre[1] + t_other, centre[0] + t_target - 2), "t_other": t_other}
    box |= {"wide": centre[0] - centre[1] + t_target + t_other, "negative": (centre[1] + t_other) * 2 * t_other}
    for o in range(1, d):
        rest = [beta[j] for j in range(1, d) if j != o]
        place = case.having(own=beta[0], other=beta[o], rest=sum(rest) / len(rest), **box)
        yield exact("P_s - P_o", means[0] - means[o], formula(place.having(x=0, p=0))["gap"], case.having(beta=beta))
        ends = [
            formula(place.having(x=0, p=0, own=a, rest=r))["gap"]
            for a in (centre[0] - t_target, centre[0] + t_target)
            for r in (centre[1] - t_other, centre[1] + t_other)
        ]
        yield holds("the ends in b_s and rest are below", min(ends) <= means[0] - means[o], case.having(beta=beta))
        for _, shares, y in words:
            claimed = formula(place.having(x=shares[0], p=shares[o]))
            first, second = (abs(_exact_word(shares, y, beta, j)) for j in (0, o))
            yield holds("|Y_s|", first <= claimed["target"], case.having(shares=shares), found=first, **claimed)
            bound = claimed["other" if y > 0 else "negative"]
            yield holds("|Y_o|", second <= bound, case.having(shares=shares), found=second, **claimed)
            reach = max(claimed["reach_other"], box["negative"])
            yield holds("reach of Y_o", bound <= reach, case.having(shares=shares), **claimed)


@fresh_words.simulation
def _(formula):
    """400 fresh samples of the simulator at the population's beta: gap against the guarantee, and its mean"""
    for d, length, words in ((10, "geometric:0.125", 2000), (20, "uniform:1:20", 4000)):
        rate_o, delta = 0.35 * d, 0.05
        case = SAME.check(d=d, length=length, rate_o=rate_o, words=words).having(k=1)
        beta = {name: float(b) for name, b in phase_one.update(case).items()}
        weights = np.where(np.arange(d) < 1, beta["beta_target"], beta["beta_other"])
        zero = dict.fromkeys(("x", "p", "residual", "wide", "negative", "t_other"), 0.0)
        place = case.having(own=beta["beta_target"], other=beta["beta_other"], rest=beta["beta_other"], **zero)
        predicted = formula(place)["gap"]
        bound = finite_sample.sampled_steps(d, case.length, rate_o, words, delta, same_words=False).logit_gap / 2
        steps = [kernel_step(data, np.zeros(d), weights, rate_a=0.5)[0] for data in fresh_sets(d, length, words)]
        alpha = np.array(steps)
        yield sampled(
            "mean of (alpha_s - alpha_o)/(2 rate_a)", alpha[:, 0] - alpha[:, 1:].mean(axis=1), predicted, case
        )
        gaps = alpha[:, 0] - alpha[:, 1:].max(axis=1)
        yield no_oftener("violations", int(np.sum(gaps < bound)), len(gaps), delta, case)
        yield below("guaranteed gap <= 5% quantile of the samples", bound, np.quantile(gaps, delta), case)


def fresh_sets(d, length, words):
    """Independent training sets of ``words`` words, one for each of `DATA_SETS`."""
    task = LetterTask("or", any_of(1), d)
    law = task.length_law(length)
    return (task.words(law, words, stream(seed, TRAIN)) for seed in DATA_SETS)


fresh_words.mutant("sign of the label term", gap=lambda c, v: v - 4 / (c.d - 1) * (c.G - c.G1) * (c.other - _others(c)))
fresh_words.mutant("t2 forgotten", gap=lambda c, v: v + (c.E1 - c.E2) / c.d * (c.own**2 - c.other**2))
fresh_words.mutant("convex in b_s", curvature_own=lambda c, v: -v)
fresh_words.mutant("t_o for 2 t_o", other=lambda c, v: v - c.residual * c.p * c.t_other * (1 - c.x))
fresh_words.mutant("x for x (1-x)", target=lambda c, v: v * c.x)
fresh_words.mutant("reach without t_o", reach_other=lambda c, v: c.residual * c.wide / 4)


def _others(c):
    return (c.other + (c.d - 2) * c.rest) / (c.d - 1)
