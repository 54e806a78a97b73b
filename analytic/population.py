r"""Infinite data: exact gradient descent and gradient flow of occurrence and OR from a symmetric start.

From zero init all targets keep one output weight beta_S and one score, all other letters beta_o and another, g
lower: population gradient descent is three scalars, whatever d is. With A the attention mass on S,
Delta = beta_S - beta_o, D = d - k, and r = f - y = beta_S - 2 - Delta (1-A) on positive words, beta_o on negative ones,

    L = E[r^2],    dL/dbeta_S = (2/k) E[r A],    dL/dbeta_o = (2/D) E[r (1-A)]    (per letter),
    dL/dalpha_S = (2/k) Delta E[r A (1-A)],      dL/dalpha_o = -(k/D) dL/dalpha_S.

Expectations are sums over the few hundred points of a `ShareLaw`, exact to about 1e-15. A step with rates
(rate_o, rate_a) is beta - rate_o dL/dbeta, alpha - rate_a dL/dalpha, both layers from the same gradient.
"""

from dataclasses import dataclass

import numpy as np

from .bounds import attention_gap
from .errors import InputError, broadcasting, choice, rate, real, reals, shown, whole
from .jit import jit
from .moments import share_moments
from .shares import share_law

REASSOCIATE = {"reassoc", "contract", "nsz"}  # sums over the points in vector registers


@jit(fastmath=REASSOCIATE)
def _sums(odds, weights, negative, beta_target, beta_other, g):
    """Loss and E[r A], E[r (1-A)], E[r A (1-A)]."""
    e = np.exp(min(max(g, -700.0), 700.0))
    delta = beta_target - beta_other
    square = target = other = mixed = 0.0
    for i in range(len(odds)):
        share = 1 / (odds[i] + e)
        mass, rest = e * share, odds[i] * share
        residual = beta_target - 2 - delta * rest
        weighted = weights[i] * residual
        square += weighted * residual
        target += weighted * mass
        other += weighted * rest
        mixed += weighted * mass * rest
    return square + negative * beta_other**2, target, other + negative * beta_other, mixed


@jit
def _descend(odds, weights, negative, d, k, rate_o, rate_a, states, losses, limit):
    """Fill ``states`` (T+1, 3) and ``losses`` from states[0]; return how many are filled."""
    for t in range(len(states)):
        beta_target, beta_other, g = states[t]
        loss, target, other, mixed = _sums(odds, weights, negative, beta_target, beta_other, g)
        losses[t] = loss if loss < np.inf else np.inf  # sums that overflow can be nan
        if losses[t] > limit:
            return t + 1
        if t == len(states) - 1:
            break
        states[t + 1, 0] = beta_target - rate_o * 2 * target / k
        states[t + 1, 1] = beta_other - rate_o * 2 * other / (d - k)
        states[t + 1, 2] = g - rate_a * 2 * (beta_target - beta_other) * mixed * d / (k * (d - k))
    return len(states)


@dataclass(frozen=True)
class PopulationPath:
    """A trajectory on infinite data; arrays with one entry per record, index 0 the start.

    ``time`` counts updates (gradient flow: time), ``phase_ends`` the index of the last record of each phase.
    ``attention_gap`` is the mass on S minus the largest other weight, ``output_gap`` (beta_S - beta_o)/2,
    ``logit_gap`` alpha_S - alpha_o. ``left_out`` bounds the mass of the words the sums leave out.
    """

    time: np.ndarray
    beta_target: np.ndarray
    beta_other: np.ndarray
    logit_gap: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray
    attention_gap: np.ndarray
    output_gap: np.ndarray
    phase_ends: tuple
    left_out: float

    def first_above(self, name, threshold):
        """First ``time`` at which the array called ``name`` is above ``threshold``, or None."""
        above = np.flatnonzero(getattr(self, name) > threshold)
        return self.time[above[0]].item() if above.size else None


def _setting(d, k, law):
    d, k = whole("d", d, 2), whole("targets", k)
    return d, k, share_moments(d, k, law).law


@np.errstate(over="ignore", invalid="ignore")  # the last state of a path that diverges
def _path(setting, time, states, losses, phase_ends):
    beta_target, beta_other, g = states.T
    shares = share_law(*setting)
    wrong = shares.positive_error(g, beta_target, beta_other) + np.where(beta_other < 1, 0.0, 1 - shares.q)
    accuracy = np.where(np.isfinite(states).all(axis=1), 1 - wrong, np.nan)
    gap = attention_gap(*setting[:2], g)
    output_gap = (beta_target - beta_other) / 2
    return PopulationPath(
        time, beta_target, beta_other, g, losses, accuracy, gap, output_gap, tuple(phase_ends), shares.left_out
    )


def population_path(d, k, law, phases, start=(0.0, 0.0, 0.0), loss_limit=np.inf):
    """Population gradient descent through a plan.

    Parameters
    ----------
    d, k : alphabet size and number of targets, 1 <= k < d
    law : `LengthLaw`, or None for the balanced geometric law
    phases : list of (layer, steps, rate_o, rate_a), layer "A" (scores), "O" (output weights) or "AO" (both); the
        rate of a layer that is not trained is not used
    start : (beta_S, beta_o, g); zero init by default
    loss_limit : stop after the first loss above it, or too large for a float (inf); the path then ends with that state

    Returns
    -------
    `PopulationPath` with one record per update and one for the start

    Raises
    ------
    InputError : an argument is not of this kind

    Examples
    --------
    >>> path = population_path(50, 1, None, [("AO", 400, 1.0, 1.0)])
    >>> path.first_above("attention_gap", 0.1), path.first_above("attention_gap", 0.9)
    (29, 142)
    >>> print(f"{path.loss[-1]:.5e} {path.attention_gap[-1]:.6f} {path.output_gap[-1]:.6f}")
    9.76217e-04 0.960506 1.031741
    """
    shares = share_law(*(setting := _setting(d, k, law)))
    phases = _phases(phases)
    states = np.empty((1 + sum(steps for steps, _, _ in phases), 3))
    losses = np.empty(len(states))
    states[0] = _start(start)
    limit = np.finfo(np.float64).max if loss_limit == np.inf else real("loss_limit", loss_limit)
    ends, end = [], 0
    for steps, rate_o, rate_a in phases or [(0, 0.0, 0.0)]:
        records = slice(end, end + steps + 1)
        filled = _descend(
            shares.odds,
            shares.weights,
            1 - shares.q,
            *setting[:2],
            rate_o,
            rate_a,
            states[records],
            losses[records],
            limit,
        )
        end += filled - 1
        ends.append(end)
        if losses[end] > limit:
            break
    return _path(setting, np.arange(end + 1), states[: end + 1], losses[: end + 1], ends)


def _start(start):
    """The state to start from, checked."""
    state = reals("start", start)
    if state.shape != (3,) or not np.isfinite(state).all():
        raise InputError(f"start must be three finite numbers (beta_S, beta_o, g), not {shown(start)}")
    return state


def _phases(phases):
    for phase in phases if isinstance(phases, (list, tuple)) else [phases]:
        if not isinstance(phase, (list, tuple)) or len(phase) != 4:
            raise InputError(f"phases must be a list of (layer, steps, rate_o, rate_a), not of {shown(phase)}")
    return [_phase(*phase) for phase in phases]


def _phase(layer, steps, rate_o, rate_a):
    choice("layer", layer, ("A", "O", "AO"))
    rate_o = rate("rate_o", rate_o) if "O" in layer else 0.0
    rate_a = rate("rate_a", rate_a) if "A" in layer else 0.0
    return whole("steps", steps, 0), rate_o, rate_a


@broadcasting
def population_gradient(d, k, law, beta_target, beta_other, logit_gap):
    """Infinite-data loss and gradient at a symmetric state; the state's three numbers broadcast.

    Returns
    -------
    loss, d_beta_target, d_beta_other, d_alpha_target, d_alpha_other : the last four per letter

    Examples
    --------
    >>> [round(float(v), 6) for v in population_gradient(50, 1, None, 0.0, 0.0, 0.0)[:3]]
    [2.0, -0.08, -0.039184]
    """
    setting = d, k, _ = _setting(d, k, law)
    shares = share_law(*setting)
    names = "beta_target", "beta_other", "logit_gap"
    states = np.broadcast_arrays(*map(reals, names, (beta_target, beta_other, logit_gap)))
    sums = [
        _sums(shares.odds, shares.weights, 1 - shares.q, *state) for state in zip(*map(np.ravel, states), strict=True)
    ]
    loss, target, other, mixed = np.reshape(np.transpose(sums), (4, *states[0].shape))
    mixed = 2 * (states[0] - states[1]) * mixed
    return loss, 2 * target / k, 2 * other / (d - k), mixed / k, -mixed / (d - k)


def population_flow(d, k, law, times, rate_o=1.0, rate_a=1.0, start=(0.0, 0.0, 0.0)):
    """Gradient flow beta' = -rate_o dL/dbeta, alpha' = -rate_a dL/dalpha at ``times`` (ascending, from 0).

    The limit of gradient descent with rates rate / n and n steps per unit of time; DOP853 with relative tolerance
    1e-12. Returns a `PopulationPath`. `InputError` if an argument is not of the kind that `population_path` takes, or
    the flow leaves the range of floats.

    >>> flow = population_flow(50, 1, None, [0.0, 0.01])
    >>> print(f"{flow.logit_gap[1] / 0.01**2:.6e}")  # g = g2 t^2 + g3 t^3 + ...
    1.500052e-03
    """
    from scipy.integrate import solve_ivp

    setting = d, k, _ = _setting(d, k, law)
    shares = share_law(*setting)
    rate_o, rate_a = rate("rate_o", rate_o), rate("rate_a", rate_a)
    times, start = reals("times", times), _start(start)
    ascending = times.ndim == 1 and times.size and times[0] >= 0 and np.all(np.diff(times) > 0)
    if not ascending or times[-1] == np.inf:
        raise InputError(f"times must ascend from 0 or later, not {shown(times.tolist())}")

    def velocity(_, state):
        _, target, other, mixed = _sums(shares.odds, shares.weights, 1 - shares.q, *state)
        mixed *= (state[0] - state[1]) * d / (k * (d - k))
        return -2 * np.array([rate_o * target / k, rate_o * other / (d - k), rate_a * mixed])

    span = (0.0, max(times[-1], np.finfo(float).tiny))
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve_ivp(velocity, span, start, "DOP853", times, rtol=1e-12, atol=1e-14)
    if not solution.success:
        raise InputError(f"start {shown(start.tolist())} is too large for gradient flow: {solution.message}")
    states = solution.y.T
    losses = np.array([_sums(shares.odds, shares.weights, 1 - shares.q, *state)[0] for state in states])
    return _path(setting, times, states, losses, (len(times) - 1,))


def flow_taylor(d, k, law, order=4, rate_o=1.0, rate_a=1.0):
    """Taylor coefficients in t of the gradient flow from zero init: (3, order + 1) for beta_S, beta_o, g.

    At every point of the share law A(t) is a power series with A' = A (1-A) g'; the flow's right-hand side gives
    the next coefficient of beta and g. The output gap starts linear (Delta = 4 rate_o (1-q)/D t), the logit gap
    quadratic: g = t^2/2 * 2 rate_a Delta'(0) M1 d/(kD) + O(t^3). That is the lag.

    >>> beta_target, beta_other, g = flow_taylor(50, 1, None)
    >>> print(*(f"{c:.6e}" for c in g[2:]))
    1.500278e-03 -2.266857e-05 1.969286e-06
    """
    setting = d, k, _ = _setting(d, k, law)
    shares = share_law(*setting)
    order = whole("order", order)
    rate_o, rate_a = rate("rate_o", rate_o), rate("rate_a", rate_a)
    beta_target, beta_other, g = states = np.zeros((3, order + 1))
    mass, mixed, residual = np.zeros((3, order + 1, len(shares.odds)))  # A, A (1-A) and r as series at each point
    mass[0] = 1 / (1 + shares.odds)

    def product(a, b, n):
        return sum(a[i] * b[n - i] for i in range(n + 1))

    for n in range(order):
        if n:
            mass[n] = sum(mixed[i] * (n - i) * g[n - i] for i in range(n)) / n
        mixed[n] = mass[n] - product(mass, mass, n)
        delta = beta_target - beta_other
        residual[n] = beta_other[n] + product(delta, mass, n) - (2 if n == 0 else 0)
        target = shares.weights @ product(residual, mass, n)
        other = shares.weights @ residual[n] - target + (1 - shares.q) * beta_other[n]
        push = [shares.weights @ product(residual, mixed, i) for i in range(n + 1)]
        beta_target[n + 1] = -2 * rate_o * target / k / (n + 1)
        beta_other[n + 1] = -2 * rate_o * other / (d - k) / (n + 1)
        g[n + 1] = -2 * rate_a * product(delta, push, n) * d / (k * (d - k)) / (n + 1)
    return states
