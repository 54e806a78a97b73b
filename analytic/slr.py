r"""Single-location regression on infinite data: one-step updates, reference risks, and trajectories from zero init.

A context has L tokens in R^d: X_J ~ N(m, g I) at a random position J, with m = sqrt(d/2) k* and g = 1/2, the others
N(0, I). The target is y = X_J . v* + eps xi, with k* and v* orthonormal. The model is f = sum_l P_l (X_l . v), P the
softmax of X_l . k, its loss E[(f - y)^2] (no 1/2); a step is k - rate_a dL/dk, v - rate_o dL/dv.

Closed forms reach this far. At k = 0 attention is uniform and loss and gradient are polynomials in v, whatever v is.
From zero init k stays on the line of k* and v on that of v* for ever, k = a k* and v = c v*, and then

    L(a, c) = c^2 (g A_2 + B_2) - 2 c g A_1 + g + eps^2,
    A_1 = E[P_J],   A_2 = E[P_J^2],   B_2 = E[sum_{l != J} P_l^2],

where A_1, A_2, B_2 depend on a, L and d only and are one-dimensional integrals, known to about 1e-14. On that line both
cosines jump from 0 to 1 with the first step that moves a layer; what then lags is the share A_1. From random init k and
v have parts off the line as soon as v has: no closed form is known beyond the first step at k = 0.
"""

from dataclasses import dataclass

import numpy as np

from .errors import InputError, choice, rate, real, whole
from .gradients.exponential import exp
from .jit import jit

SPREAD = 0.5  # g, variance of the informative token
REACH = 9.0  # standard deviations beyond which a normal variable is left out: a mass of 2e-19
NODE, STEP = 0.6, 0.2  # largest spacing of the normal variable and of t: errors below 1e-15, see `share_moments`
HIGHEST = 40.0  # e^-e^40 is 0
LARGEST = 300.0  # |a| up to which the sums stay short


def _law(d, tokens, noise):
    return whole("d", d, low=2), whole("tokens", tokens), real("noise", noise, low=0.0)


def gradient_at_zero_scores(tokens, v, noise=0.1, key=None, value=None):
    """Loss and gradient on infinite data at k = 0, for any v: claim `slr.zero_scores`.

    With m = sqrt(d/2) k* and g = 1/2:

        L     = ((m.v)^2 + (g + L - 1) |v|^2) / L^2 - 2 g (v*.v) / L + g + eps^2
        dL/dv = (2/L^2) ((m.v) m + (g + L - 1) v) - (2 g/L) v*
        dL/dk = (2 (L-1)/L^3) ((m.v)^2 m - (1 - g) |v|^2 m + (L - 2 + 2 g) (m.v) v)
                - (2 (L-1)/L^2) g ((v*.v) m + (m.v) v*)

    Parameters
    ----------
    tokens : L, tokens in a context
    v : (d,) output parameter
    noise : eps, standard deviation of the targets' noise
    key, value : (d,) orthonormal k*, v*; the first two unit vectors by default

    Returns
    -------
    loss, d_k, d_v : float, (d,), (d,)

    Examples
    --------
    >>> loss, d_k, d_v = gradient_at_zero_scores(10, [0.0, 0.5, 0.0])
    >>> loss, d_k.round(6).tolist(), d_v.round(6).tolist()
    (0.48375, [-0.057869, 0.0, 0.0], [0.0, -0.005, 0.0])
    """
    v = np.asarray(v, dtype=np.float64)
    if v.ndim != 1 or len(v) < 2 or not np.isfinite(v).all():
        raise InputError(f"v must be at least two finite numbers, not {v.tolist()!r}")
    _, length, noise = _law(len(v), tokens, noise)
    key, value = (np.eye(2, len(v))[i] if given is None else np.asarray(given, dtype=np.float64)
                  for i, given in enumerate((key, value)))
    m = np.sqrt(len(v) / 2) * key
    seen, read, square = m @ v, value @ v, v @ v
    loss = (seen**2 + (SPREAD + length - 1) * square) / length**2 - 2 * SPREAD * read / length + SPREAD + noise**2
    d_v = 2 / length**2 * (seen * m + (SPREAD + length - 1) * v) - 2 * SPREAD / length * value
    cubic = (seen**2 - (1 - SPREAD) * square) * m + (length - 2 + 2 * SPREAD) * seen * v
    d_k = 2 * (length - 1) / length**2 * (cubic / length - SPREAD * (read * m + seen * value))
    return float(loss), d_k, d_v


def output_step(tokens, rate_o):
    """c of v_1 = c v* after O(1x) from zero: 2 rate_o g / L (claim `slr.first_steps`).

    >>> output_step(10, 5.0)
    0.5
    """
    return 2 * rate("rate_o", rate_o) * SPREAD / whole("tokens", tokens)


def attention_step(d, tokens, c, rate_a):
    """a of k_1 = a k* after A(1x) from k = 0, v = c v* (claim `slr.first_steps`).

    a = 2 rate_a ((L-1)/L^2) c (g + (1 - g) c/L) sqrt(d/2): along k* exactly.

    >>> round(attention_step(50, 10, 0.5, 3.0), 6)
    0.70875
    """
    d, length, _ = _law(d, tokens, 0.0)
    c, rate_a = real("c", c), rate("rate_a", rate_a)
    return 2 * rate_a * (length - 1) / length**2 * c * (SPREAD + (1 - SPREAD) * c / length) * float(np.sqrt(d / 2))


def output_only_minimum(tokens, noise=0.1):
    """Least loss at uniform attention, and the c of its v = c v*: claim `slr.output_only`.

    L = eps^2 + 1/2 - (1/4)/(L - 1/2) at c = L/(2 L - 1), the best that is linear in the tokens.

    >>> loss, c = output_only_minimum(10)
    >>> round(loss, 6), round(c, 6)
    (0.483684, 0.526316)
    """
    _, length, noise = _law(2, tokens, noise)
    ratio = SPREAD / (SPREAD + length - 1)
    return noise**2 + SPREAD * (1 - ratio), ratio * length


def oracle_risk(noise=0.1):
    """Loss of who knows which token is informative, and v*: eps^2.

    >>> round(oracle_risk(0.1), 12)
    0.01
    """
    return real("noise", noise, low=0.0) ** 2


# ---- on the line k = a k*, v = c v* ----------------------------------------------------------------------------------


@jit(fastmath={"reassoc", "contract", "nsz"})
def _token(a, mean, deviation, t, nodes, weights):
    """E[e^{-w}], E[w e^{-w}], E[w^2 e^{-w}] of w = e^{a x - t}, x ~ N(mean, deviation^2), and their slopes in a."""
    none = one = two = 0.0
    none_slope = one_slope = two_slope = 0.0
    for i in range(nodes.size):
        x = mean + deviation * nodes[i]
        w = exp(min(a * x - t, HIGHEST))
        mass = weights[i] * exp(-w)
        none += mass
        one += w * mass
        two += w * w * mass
        none_slope -= x * w * mass
        one_slope += x * (w - w * w) * mass
        two_slope += x * (2.0 * w * w - w * w * w) * mass
    return none, one, two, none_slope, one_slope, two_slope


@jit
def _share_moments(a, others, mean, deviation, out):
    """A_1, A_2, B_2 and their slopes in a, into ``out``."""
    out[:] = 0.0
    if others == 0:
        out[:2] = 1.0
        return
    if not abs(a) <= LARGEST:
        out[:] = np.nan
        return
    spacing = min(NODE, STEP / max(abs(a), 1e-3))
    half = int(np.ceil(REACH / spacing))
    nodes = spacing * np.arange(-half, half + 1)
    weights = spacing / np.sqrt(2 * np.pi) * np.exp(-0.5 * nodes**2)
    reach = REACH * abs(a)
    first = min(a * mean - reach * deviation, -reach) - 4.0
    last = max(a * mean + reach * deviation, reach) + HIGHEST
    for i in range(int(np.ceil((last - first) / STEP)) + 1):
        t = first + STEP * i
        j0, j1, j2, j0_slope, j1_slope, j2_slope = _token(a, mean, deviation, t, nodes, weights)
        o0, _, o2, o0_slope, _, o2_slope = _token(a, 0.0, 1.0, t, nodes, weights)
        rest = STEP * o0 ** (others - 1)
        fall = (others - 1) * STEP * o0 ** (others - 2) * o0_slope if others > 1 and o0 > 0.0 else 0.0
        all_others, all_fall = rest * o0, others * rest * o0_slope
        out[0] += j1 * all_others
        out[1] += j2 * all_others
        out[2] += others * j0 * o2 * rest
        out[3] += j1_slope * all_others + j1 * all_fall
        out[4] += j2_slope * all_others + j2 * all_fall
        out[5] += others * ((j0_slope * o2 + j0 * o2_slope) * rest + j0 * o2 * fall)


def share_moments(d, tokens, a):
    r"""A_1 = E[P_J], A_2 = E[P_J^2], B_2 = E[sum of the other P_l^2] at k = a k*, and their derivatives in a.

    With Z = sum_l e^{a x_l}, x_l = X_l . k*, the integrals 1/Z = \int e^{-t} e^{-Z e^{-t}} dt and
    1/Z^2 = \int e^{-2t} e^{-Z e^{-t}} dt over all t make products of independent tokens of them: with
    w = e^{a x - t}, A_1 = \int E_J[w e^{-w}] E[e^{-w}]^{L-1} dt, and so on. Both the normal variables and t are summed
    on even grids, whose error for functions analytic in a strip of half-width s falls like e^{-2 pi s / spacing}:
    in units of the exponent s is nearly pi/2 and the spacing 0.2. Error about 1e-14.

    Parameters
    ----------
    d, tokens : size of a token, and L
    a : number or array; nan beyond |a| = 300

    Returns
    -------
    (6, ...) array : A_1, A_2, B_2, then their derivatives

    Examples
    --------
    >>> share_moments(50, 10, [0.0, 1.0])[0].round(12).tolist()
    [0.1, 0.894637597173]
    """
    d, length, _ = _law(d, tokens, 0.0)
    a = np.asarray(a, dtype=np.float64)
    out = np.empty((a.size, 6))
    for row, one in zip(out, a.flat, strict=True):
        _share_moments(one, length - 1, np.sqrt(d / 2), np.sqrt(SPREAD), row)
    return out.T.reshape(6, *a.shape)


def line_gradient(d, tokens, noise, a, c):
    """Infinite-data loss at k = a k*, v = c v*, and its derivatives in a and c: claims `slr.line`, `slr.line_loss`.

    ``a`` and ``c`` broadcast. On the line dL/dk = (dL/da) k* and dL/dv = (dL/dc) v*.

    Returns
    -------
    loss, d_a, d_c : arrays

    Examples
    --------
    >>> [round(float(part), 6) for part in line_gradient(50, 10, 0.1, 0.70875, 0.5)]
    [0.212393, -0.253128, -0.448381]
    """
    _, _, noise = _law(d, tokens, noise)
    a, c = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(c, dtype=np.float64))
    return _on_line(share_moments(d, tokens, a), c, noise)


def _on_line(moments, c, noise):
    first, second, others, first_slope, second_slope, others_slope = moments
    square, slope = SPREAD * second + others, SPREAD * second_slope + others_slope
    loss = c**2 * square - 2 * c * SPREAD * first + SPREAD + noise**2
    return loss, c**2 * slope - 2 * c * SPREAD * first_slope, 2 * c * square - 2 * SPREAD * first


def best_output(d, tokens, noise, a):
    """Least loss over all v at k = a k*, and its c: what an output phase tends to (claim `slr.line_loss`).

    c = g A_1 / (g A_2 + B_2) and L = g + eps^2 - c g A_1.

    >>> loss, c = best_output(50, 10, 0.1, 0.70875)
    >>> round(loss, 6), round(c, 6)
    (0.041241, 1.263421)
    """
    _, _, noise = _law(d, tokens, noise)
    first, second, others = share_moments(d, tokens, real("a", a))[:3]
    c = float(SPREAD * first / (SPREAD * second + others))
    return float(SPREAD + noise**2 - c * SPREAD * first), c


@dataclass(frozen=True)
class LinePath:
    """A trajectory on infinite data; arrays with one entry per record, index 0 the start.

    k = ``a`` k* and v = ``c`` v* after ``time`` updates; ``share`` is E[P_J], the attention on the informative token;
    ``phase_ends`` the index of the last record of each phase.
    """

    time: np.ndarray
    a: np.ndarray
    c: np.ndarray
    loss: np.ndarray
    share: np.ndarray
    phase_ends: tuple


def line_path(d, tokens, noise, phases, start=(0.0, 0.0), loss_limit=np.inf):
    """Gradient descent on infinite data through a plan, from k = a k*, v = c v* (zero init by default).

    Parameters
    ----------
    d, tokens, noise : size of a token, L, and eps
    phases : list of (layer, steps, rate_o, rate_a), layer "A" (k), "O" (v) or "AO" (both); the rate of a layer that
        is not trained is not used
    start : (a, c)
    loss_limit : stop after the first loss above it, or not a number; the path then ends with that state

    Returns
    -------
    `LinePath` with one record per update and one for the start

    Examples
    --------
    >>> path = line_path(50, 10, 0.1, [("O", 1, 5.0, 0.0), ("A", 1, 0.0, 3.0), ("O", 100, 0.02, 0.0)])
    >>> path.loss[[0, 1, 2, -1]].round(4).tolist()
    [0.51, 0.4838, 0.2124, 0.0573]
    """
    d, length, noise = _law(d, tokens, noise)
    a, c = (real(name, value) for name, value in zip(("a", "c"), start, strict=True))
    plan = []
    for layer, steps, rate_o, rate_a in phases:
        choice("layer", layer, ("A", "O", "AO"))
        rate_o = rate("rate_o", rate_o) if "O" in layer else 0.0
        rate_a = rate("rate_a", rate_a) if "A" in layer else 0.0
        plan.append((whole("steps", steps, low=0), rate_o, rate_a))
    states, ends = [], []

    def record():
        moments = share_moments(d, length, a) if not states or a != states[-1][0] else states[-1][-1]
        loss, d_a, d_c = _on_line(moments, c, noise)
        states.append((a, c, loss, moments[0], moments))
        return d_a, d_c

    d_a, d_c = record()
    for steps, rate_o, rate_a in plan:
        for _ in range(steps):
            if not states[-1][2] <= loss_limit:
                break
            a, c = a - rate_a * d_a, c - rate_o * d_c
            d_a, d_c = record()
        ends.append(len(states) - 1)
    columns = (np.array(column, dtype=np.float64) for column in zip(*(state[:4] for state in states), strict=True))
    return LinePath(np.arange(len(states)), *columns, tuple(ends))
