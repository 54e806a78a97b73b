"""How the lag scales: joint training on large alphabets with long words tends to one flow, whatever the law."""

import math
from fractions import Fraction

import numpy as np
import sympy
from scipy.integrate import solve_ivp

from analytic.lag import lag_constant
from analytic.population import population_gradient, population_path

from .claims import claim
from .decide import below, close, holds, identity, positive
from .domain import LETTERS, Case, Real
from .joint import invariant_subspace
from .letters import share_moment
from .phase_three import by_targets
from .simulator import SAMPLES

STATE = LETTERS.having(ratio=Real(1), beta_other=Real(0, 2), spread=Real(0), rate_ratio=Real(0))
INTEGRATED = 1e-6  # of the integration of the limit
SLACK = 0.45  # of ln^2 d: the lag's distance from s* d at the alphabets of the simulation


@claim(
    "joint.lag_limit",
    statement="Joint flow in the time s = rate_o t/d, at u = e^g >= 1, 0 <= beta_o <= 2, Delta >= 0, w = 2 - beta_o, "
    "rho = rate_a/rate_o, e = kappa + E1: beta_S' is within 2 (u (u-1) w + u^2 Delta) e of 2 w u, beta_o' within "
    "(2 kappa/(1-kappa)) (|2q - beta_o| + u (w + Delta)) of 2 (2q - beta_o), and g' within "
    "2 rho Delta (kappa u w + 2 u^2 w e + u^2 Delta e)/(1-kappa) of 2 rho Delta w u. So as kappa and E1 tend to 0 "
    "the flow tends to one that knows neither k, d nor the law but q; the steps until attention appears are compared "
    "with d/rate_o times the s*(q, rho) at which its u is infinite.",
    latex=r"\beta_o'=2(2q-\beta_o),\quad \beta_S'=2(2-\beta_o)u,\quad g'=2\rho\,\Delta(2-\beta_o)u\qquad"
    r"(\kappa,E_1\to0,\ s=\eta_Ot/d)",
    domain=STATE,
    source="joint.invariant_subspace; A = u x/(1 + (u-1) x) is u x up to u (u-1) x^2",
)
def lag_limit(c):
    """Limits of the slopes in s, and their bounds; ``c.spread`` = Delta, ``c.ratio`` = u, ``c.rate_ratio`` = rho."""
    u, w, e = c.ratio, 2 - c.beta_other, c.kappa + c.E1
    rest = 1 - c.kappa
    away = abs(2 * c.q - c.beta_other) if "away" not in vars(c) else c.away
    gap = c.kappa * u * w + 2 * u**2 * w * e + u**2 * c.spread * e
    return {
        "beta_target": 2 * w * u,
        "beta_other": 2 * (2 * c.q - c.beta_other),
        "gap": 2 * c.rate_ratio * c.spread * w * u,
        "beta_target_bound": 2 * (u * (u - 1) * w + u**2 * c.spread) * e,
        "beta_other_bound": 2 * c.kappa / rest * (away + u * (w + c.spread)),
        "gap_bound": 2 * c.rate_ratio * c.spread * gap / rest,
    }


def scaled_slopes(c, mass, rest, mixed):
    """Slopes in s from E[r A], E[r (1 - A)], E[r A (1 - A)] of the symmetric state, for rate_o = 1/d a unit of time."""
    place = c.having(beta_target=c.beta_other + c.spread, mass=mass, rest=rest, mixed=mixed)
    slopes = invariant_subspace.formula(place)
    return {
        "beta_target": -c.d * slopes["beta_target"],
        "beta_other": -c.d * slopes["beta_other"],
        "gap": -c.d * c.rate_ratio * (slopes["alpha_target"] - slopes["alpha_other"]),
    }


@lag_limit.proof
def _(formula):
    """word by word: distances of A, A (1-A) and their products from u x; means of x and x^2"""
    more, y = sympy.symbols("u-1 (1-x)/x", nonnegative=True)
    w, delta, x = sympy.symbols("w Delta x", positive=True)
    u = 1 + more
    A = (u / (u + y)).subs(y, 1 / x - 1)
    yield identity("A = u x/(1 + (u-1) x)", A, u * x / (1 + more * x))
    share, A = 1 / (1 + y), u / (u + y)
    yield positive("A <= u x", u * share - A, strict=False)
    # beta_S: -r A on positive words = w A - Delta A^2
    found, bound = w * A - delta * A**2, (u * (u - 1) * w + u**2 * delta) * share**2
    for sign in (1, -1):
        text = f"|r A + w u x| <= (u (u-1) w + u^2 Delta) x^2, {sign:+d}"
        yield positive(text, bound + sign * (found - w * u * share), strict=False)
    # beta_o: r (1-A) = -w + A w + Delta A (1-A) on positive words, beta_o = 2 - w on negative ones
    residual = delta * A - w
    drift = residual * (1 - A) + w
    yield identity("r (1 - A) = -w + A (w + Delta (1 - A))", drift, A * (w + delta * (1 - A)))
    yield positive("its last part is >= 0 ...", A * (w + delta * (1 - A)), strict=False)
    yield positive("... and <= u x (w + Delta)", u * share * (w + delta) - drift, strict=False)
    # g: -r A (1-A) = w A (1-A) - Delta A^2 (1-A)
    found, bound = (w * A - delta * A**2) * (1 - A), (2 * u**2 * w + u**2 * delta) * share**2
    for sign in (1, -1):
        text = f"|r A (1-A) + w u x| <= (2 u^2 w + u^2 Delta) x^2, {sign:+d}"
        yield positive(text, bound + sign * (found - w * u * share), strict=False)

    c = STATE.symbols()
    classes = {"targets": c.k, "others": c.D}
    mean, square = (share_moment(c, classes, {"targets": i}) for i in (1, 2))
    yield identity("E[x] = kappa", mean, c.kappa, LETTERS)
    both = c.kappa * (c.kappa + c.E1 - c.kappa * c.E1)
    yield identity("E[x^2] = kappa (kappa + E1 - kappa E1) <= kappa e", square, both, LETTERS)
    yield positive("as kappa E1 >= 0", c.kappa * c.E1, LETTERS)

    # from words to slopes: E[r A] = -w u kappa + R1 etc., |R| at most the word's bound with x^2 -> kappa e
    R1, R2, R3, away = sympy.symbols("R_1 R_2 R_3 away", real=True)
    c = c.having(away=away)
    claimed, w, u = formula(c), 2 - c.beta_other, c.ratio
    mixed = -w * u * c.kappa + R3
    slopes = scaled_slopes(c, -w * u * c.kappa + R1, c.beta_other - 2 * c.q + R2, mixed)
    yield identity("beta_S' - limit", slopes["beta_target"] - claimed["beta_target"], -2 * R1 / c.kappa, LETTERS)
    e, rest = c.kappa + c.E1, 1 - c.kappa
    one = (u * (u - 1) * w + u**2 * c.spread) * c.kappa * e
    yield identity("so its bound is 2 |R_1|/kappa", claimed["beta_target_bound"], 2 * one / c.kappa, LETTERS)
    shown = 2 * c.kappa / rest * (2 * c.q - c.beta_other) - 2 * R2 / rest
    yield identity("beta_o' - limit", slopes["beta_other"] - claimed["beta_other"], shown, LETTERS)
    two = u * c.kappa * (w + c.spread)
    bound = 2 * c.kappa / rest * away + 2 * two / rest
    yield identity("its bound, |R_2| <= u kappa (w + Delta)", claimed["beta_other_bound"], bound, LETTERS)
    shown = 2 * c.rate_ratio * c.spread * (c.kappa * w * u - R3 / c.kappa) / rest
    yield identity("g' - limit", slopes["gap"] - claimed["gap"], shown, LETTERS)
    three = (2 * u**2 * w + u**2 * c.spread) * c.kappa * e
    bound = 2 * c.rate_ratio * c.spread * (c.kappa * w * u + three / c.kappa) / rest
    yield identity("its bound", claimed["gap_bound"], bound, LETTERS)


@lag_limit.instance
def _(formula, case):
    """exact slopes over all words"""
    claimed, u = formula(case), case.ratio
    sums = dict.fromkeys(("mass", "rest", "mixed"), Fraction(0))
    for p, n, r, y in by_targets(case):
        A = n * u / (n * u + r)
        residual = case.beta_other + case.spread * A - (1 + y)
        for name, factor in (("mass", A), ("rest", 1 - A), ("mixed", A * (1 - A))):
            sums[name] += p * residual * factor
    for name, slope in scaled_slopes(case, **sums).items():
        off = abs(slope - claimed[name])
        yield holds(f"{name}' within its bound", off <= claimed[f"{name}_bound"], case, found=slope, off=off, **claimed)


@lag_limit.simulation
def _(formula):
    """slopes of the product's population gradient within the bounds, on a grid of states"""
    for d, k, length in (*SAMPLES, (2000, 1, "geometric:0.0005"), (5000, 3, "poisson:1500")):
        for u, other, spread in ((1.0, 0.1, 0.1), (1.5, 0.7, 0.6), (3.0, 0.2, 1.5)):
            case = STATE.check(
                d=d, k=k, length=length, ratio=u + 1e-12, beta_other=other, spread=spread, rate_ratio=1.5
            )
            g = math.log(case.ratio)
            _, *slopes, up, down = population_gradient(d, k, case.length, other + spread, other, g)
            found = {"beta_target": -d * slopes[0], "beta_other": -d * slopes[1], "gap": -d * 1.5 * (up - down)}
            claimed = formula(case)
            for name, slope in found.items():
                yield below(f"{name}' within its bound", abs(slope - claimed[name]), claimed[f"{name}_bound"], case)


@lag_limit.simulation
def _(formula):
    """steps of joint descent until the attention gap passes 1/10, against the limit's constant, on growing alphabets"""
    for d, length in ((500, None), (2000, None), (2000, "fixed:1386")):
        law = LETTERS.check(d=d, k=1, length=length or f"geometric:{1 / (d - 1)!r}").length
        path = population_path(d, 1, law, [("AO", 2 * d, 1.0, 1.0)])
        lag, q = path.first_above("attention_gap", 0.1), float(1 - law.pgf(1 - 1 / d))
        constant = limit_lag(formula, q)
        yield close("analytic.lag.lag_constant", lag_constant(q, 1.0), constant, INTEGRATED, Case(d=d, length=law))
        off = abs(lag - d * constant)
        yield below("|T - s* d| <= 0.45 ln^2 d", off, SLACK * math.log(d) ** 2, Case(d=d, length=law))


def limit_lag(formula, q):
    """s*: when u of the claimed flow is infinite. In s until u = 2, from there in ln u."""

    def slopes(_, state):  # Delta, beta_o, ln u, s
        delta, other, log_u, _ = state
        case = Case(q=q, kappa=0.0, E1=0.0, ratio=math.exp(log_u), beta_other=other, spread=delta, rate_ratio=1.0)
        claimed = formula(case)
        return np.array([claimed["beta_target"] - claimed["beta_other"], claimed["beta_other"], claimed["gap"], 1.0])

    def doubled(_, state):
        return state[2] - math.log(2)

    doubled.terminal = True
    start = solve_ivp(slopes, (0, 10), np.zeros(4), events=doubled, rtol=1e-8, atol=1e-10).y[:, -1]
    if start[2] < math.log(2) * (1 - 1e-6):
        return math.inf  # a flow without a lag
    end = solve_ivp(lambda x, y: slopes(x, y) / slopes(x, y)[2], (start[2], 60), start, rtol=1e-8, atol=1e-10)
    return float(end.y[3, -1])


lag_limit.mutant("sign of beta_o'", beta_other=lambda c, v: -v)
lag_limit.mutant("q for 2q", beta_other=lambda c, v: v - 2 * c.q)
lag_limit.mutant("no u in beta_S'", beta_target=lambda c, v: v / c.ratio)
lag_limit.mutant("u^2 in g'", gap=lambda c, v: v * c.ratio)
lag_limit.mutant("bound without E1", beta_target_bound=lambda c, v: v * c.kappa / (c.kappa + c.E1))
lag_limit.mutant("bound of second order", gap_bound=lambda c, v: v * (c.kappa + c.E1) / 2)
