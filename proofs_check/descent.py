"""Phase 3 step by step: gradient descent on the output layer at fixed attention."""

import math
from fractions import Fraction

import numpy as np
import sympy

from analytic.gradients.letter import descend
from analytic.phase_three import output_phase

from .claims import claim
from .decide import ROUNDING, below, close, exact, holds, identity, positive
from .domain import Real, Whole
from .letters import exact_gradient, exact_loss, population
from .phase_three import FROZEN, exact_attention, hessian, minimum, symbolic_attention, symbolic_loss
from .simulator import populations

DESCENT = FROZEN.having(beta_target=Real(), beta_other=Real(), rate=Real(0), steps=Whole(0))


@claim(
    "phase3.descent",
    statement="Gradient descent at fixed scores from beta = (beta_S on S, beta_o elsewhere) stays of that form; its "
    "loss after T steps is L*(g) + e B e^T with e = (beta_S - beta_S*, beta_o - beta_o*) (1 - rate M)^T, "
    "B = [[E[A^2], E[A(1-A)]], [., E[(1-A)^2]]] and M = 2 B diag(1/k, 1/(d-k)); in eigendirections of the Hessian the "
    "excess loss falls by the factor (1 - rate lambda_i)^2 a step, so ceil(ln((L_0 - L*)/tau) / (-2 ln rho)) steps, "
    "rho = max |1 - rate lambda_i|, reach L* + tau.",
    latex=r"L_T-L^*=\tfrac12\sum_i\lambda_ic_i^2(1-\eta\lambda_i)^{2T}\le\rho^{2T}(L_0-L^*)",
    domain=DESCENT,
    source="phase3.minimum, phase3.hessian",
)
def descent(c):
    """One step's map of the distance to the minimum, as rows, and the factor of an eigendirection."""
    H = hessian.formula(c)
    step = [
        [1 - c.rate * H["SS"], -c.rate * H["So"] / c.D],
        [-c.rate * H["So"] / c.k, 1 - c.rate * H["oo"]],
    ]
    return {"step": step, "factor": (1 - c.rate * c.eigenvalue) ** 2 if "eigenvalue" in vars(c) else None}


def excess_after(step, c):
    """L_T - L* after ``c.steps`` steps of the map ``step``, in the numbers of the case."""
    H, best = hessian.formula(c), minimum.formula(c)
    e = [c.beta_target - best["beta_target"], c.beta_other - best["beta_other"]]
    for _ in range(int(c.steps)):
        e = [e[0] * step[0][i] + e[1] * step[1][i] for i in (0, 1)]
    return (e[0] ** 2 * H["SS"] * c.k + 2 * e[0] * e[1] * H["So"] + e[1] ** 2 * H["oo"] * c.D) / 2


@descent.proof
def _(formula):
    """one step of the gradient, the excess loss as a quadratic form, eigendirections, and the number of steps"""
    c = DESCENT.symbols()
    c = c.having(attention=symbolic_attention(), steps=0)
    step, best = formula(c)["step"], minimum.formula(c)
    loss = symbolic_loss(c.attention, c.beta_target, c.beta_other)
    # dL/dbeta_S is the sum over the k letters of S, each moves by its own part
    moved = [
        beta - c.rate * sympy.diff(loss, beta) / size for beta, size in ((c.beta_target, c.k), (c.beta_other, c.D))
    ]
    e = [c.beta_target - best["beta_target"], c.beta_other - best["beta_other"]]
    for i, (beta, name) in enumerate(((moved[0], "beta_target"), (moved[1], "beta_other"))):
        yield identity(f"one step of {name}", beta - best[name], e[0] * step[0][i] + e[1] * step[1][i])
    yield identity("L - L* = e B e^T", loss - best["loss"], excess_after(step, c))

    # eigendirections of a symmetric 2 x 2 Hessian Q diag(l1, l2) Q^T, Q the rotation with half-angle tangent t
    t, x, y, rate = sympy.symbols("t x y rate", real=True)
    eigenvalues = sympy.symbols("lambda_1 lambda_2", positive=True)
    Q = sympy.Matrix([[1 - t**2, -2 * t], [2 * t, 1 - t**2]]) / (1 + t**2)
    H, start = Q * sympy.diag(*eigenvalues) * Q.T, sympy.Matrix([x, y])
    after = start - rate * H * start
    modes = Q.T * start
    factors = [formula(c.having(rate=rate, eigenvalue=value))["factor"] for value in eigenvalues]
    falls = sum(value * mode**2 * factor for value, mode, factor in zip(eigenvalues, modes, factors, strict=True)) / 2
    yield identity("excess loss after a step, mode by mode", (after.T * H * after)[0] / 2, falls)

    # T steps reach tau: rho^(2T) E_0 <= tau iff T (-2 ln rho) >= ln(E_0 / tau)
    decay, ratio, extra = sympy.symbols("-2lnrho ln(E_0/tau) i", positive=True)
    steps = ratio / decay + extra
    yield positive("T >= ln(E_0/tau)/(-2 ln rho): the exponent passes ln(E_0/tau)", steps * decay - ratio)


@descent.instance
def _(formula, case):
    """exact gradient descent on the weights of all letters"""
    d, k, u = int(case.d), int(case.k), case.ratio
    case = case.having(steps=min(int(case.steps), 3), attention=exact_attention(case))
    words, weights = population(case), [[u] * k + [Fraction(1)] * (d - k)]
    beta = [[case.beta_target] * k + [case.beta_other] * (d - k)]
    for _ in range(case.steps):
        _, d_beta = exact_gradient(words, weights, beta)
        beta = [[b - case.rate * slope for b, slope in zip(beta[0], d_beta[0], strict=True)]]
    claimed = minimum.formula(case)["loss"] + excess_after(formula(case)["step"], case)
    yield exact("loss after the steps", exact_loss(words, weights, beta), claimed, case)
    constant = len(set(beta[0][:k])) == len(set(beta[0][k:])) == 1
    yield holds("beta stays constant on the classes", constant, case, beta=beta)


@descent.simulation
def _(formula):
    """the simulator's descent on all words, and what the product reports: trajectory, steps to an excess loss"""
    for d, k, length, words in populations():
        for rate in (0.3, 1.0):
            start = {"beta_target": 0.5, "beta_other": -1.0}
            case = DESCENT.check(d=d, k=k, length=length, ratio=9.0, rate=rate, steps=40, **start)
            alpha = np.where(np.arange(d) < k, math.log(9.0), 0.0)
            path = descend(words, alpha, np.where(np.arange(d) < k, 0.5, -1.0), 0.0, rate, 40)
            phase, step = output_phase(d, k, case.length, math.log(9.0)), formula(case)["step"]
            claimed = [excess_after(step, case.having(steps=steps)) for steps in range(41)]
            yield close("loss after each step", path.loss, claimed + phase.minimum, ROUNDING, case)
            reported = phase.excess_loss(0.5, -1.0, rate, np.arange(41))
            yield close("analytic excess_loss", reported, claimed, ROUNDING, case)
            for i, value in enumerate(phase.eigenvalues):
                factor = formula(case.having(eigenvalue=value))["factor"]
                yield close(f"factor of mode {i + 1}", factor, (1 - rate * value) ** 2, ROUNDING, case)
            tau = float(claimed[0]) / 50
            enough, needed = phase.steps_to(tau, 0.5, -1.0, rate), phase.exact_steps_to(tau, 0.5, -1.0, rate)
            yield below("steps needed <= steps claimed", needed, enough, case)


def _variant(c, **changes):
    """The step map of a case with other values."""
    return descent.formula(c.having(**changes))["step"]


descent.mutant("sign: ascent", step=lambda c, v: _variant(c, rate=-c.rate))
descent.mutant("loss with 1/2", step=lambda c, v: _variant(c, rate=c.rate / 2))
descent.mutant("d for k", step=lambda c, v: [v[0], [v[1][0] * c.k / c.d, v[1][1]]])
descent.mutant("factor without square", factor=lambda c, v: v and 1 - c.rate * c.eigenvalue)
descent.mutant("sign in the factor", factor=lambda c, v: v and (1 + c.rate * c.eigenvalue) ** 2)
descent.mutant("mixed entry dropped", step=lambda c, v: [[v[0][0], 0], [0, v[1][1]]])
