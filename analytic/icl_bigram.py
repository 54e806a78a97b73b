r"""In-context bigrams on infinite data, in closed form from zero init: two scalars, whatever d is.

The law of the contexts does not change when letters are renamed. So from zero init A and B stay on the span of the
identity I and the all-ones matrix J, where J moves no prediction and the gradient has none: A = a (I - J/d),
B = b (I - J/d). With T pairs in a context, every context then has the same loss. With

    pi = e^a / (e^a + T - 1)    the share of the query's own pair,    pi' = 1 / (e^a + T - 1)    of each other pair,

    L(a, b) = log(e^{b pi} + (T - 1) e^{b pi'} + d - T) - b pi,

and a step on the matrices is a step on (a, b) with 1/(d - 1) times the rates, because |I - J/d|^2 = d - 1.
"""

import math
from dataclasses import dataclass

import numpy as np

from .errors import InputError, choice, rate, real, whole
from .gradients.exponential import exp
from .jit import jit


def _size(d, pairs):
    d = whole("d", d, low=2)
    return d, whole("pairs", pairs, high=d - 1)


@jit
def _shares(pairs, a):
    """pi and pi'."""
    top = max(a, 0.0) if pairs > 1 else a
    own, other = math.exp(a - top), math.exp(-top) if pairs > 1 else 0.0
    total = own + (pairs - 1) * other
    return own / total, other / total


@jit
def _slopes(d, pairs, a, b):
    """L, dL/da, dL/db. All exponentials are relative to the target's, or to the largest: nothing cancels."""
    own, other = _shares(pairs, a)
    seen, unseen = b * (other - own), -b * own  # logits of another value and of a letter that is none
    top = max(0.0, seen, unseen)
    target = math.exp(-top)
    seen, unseen = (pairs - 1) * math.exp(seen - top), (d - pairs) * math.exp(unseen - top)
    total = target + seen + unseen
    loss = top + math.log1p(seen + unseen + (target - 1.0))
    slope_a = -b * own * other * (pairs * seen + (pairs - 1) * unseen) / total
    return loss, slope_a, (seen * (other - own) - unseen * own) / total


@jit
def _descend(d, pairs, rate_o, rate_a, states, losses, limit):
    """Fill ``states`` (steps + 1, 2) and ``losses`` from states[0]; return how many are filled."""
    for t in range(len(states)):
        a, b = states[t]
        losses[t], slope_a, slope_b = _slopes(d, pairs, a, b)
        if t == len(states) - 1 or not losses[t] <= limit:
            return t + 1
        states[t + 1, 0] = a - rate_a * slope_a / (d - 1)
        states[t + 1, 1] = b - rate_o * slope_b / (d - 1)
    return 0


def symmetric_gradient(d, pairs, a, b):
    """Infinite-data loss at A = a (I - J/d), B = b (I - J/d), and the multiples of I - J/d that are its gradients.

    With s = sum_j e^{z_j - z_target} over the T - 1 other values, u over the d - T letters that are no value, and
    S = 1 + s + u:

        L = log S,    dL/dA = -(b pi pi' (T s + (T - 1) u) / S) (I - J/d) / (d - 1),
        dL/dB = -((s (pi - pi') + u pi) / S) (I - J/d) / (d - 1).

    Parameters
    ----------
    d, pairs : letters in the alphabet, and pairs T in a context, 1 <= T < d
    a, b : numbers or arrays, which broadcast

    Returns
    -------
    loss : in nats
    slope_a, slope_b : dL/dA = slope_a (I - J/d), dL/dB = slope_b (I - J/d)

    Raises
    ------
    InputError : d or pairs is out of range

    Examples
    --------
    >>> loss, slope_a, slope_b = symmetric_gradient(50, 6, 0.0, 0.0)
    >>> print(f"{loss:.4f} {slope_a:.4f} {slope_b:.6f}")
    3.9120 -0.0000 -0.002993
    """
    d, pairs = _size(d, pairs)
    states = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    values = [_slopes(d, pairs, *state) for state in zip(*map(np.ravel, states), strict=True)]
    loss, slope_a, slope_b = np.reshape(np.transpose(values), (3, *states[0].shape))
    return loss[()], slope_a[()] / (d - 1), slope_b[()] / (d - 1)


def output_update(d, pairs, rate_o, a=0.0):
    """b after one output step from B = 0: B_1 = b (I - J/d), b = rate_o (pi - 1/d)/(d - 1), for A = a (I - J/d).

    From zero init, where pi = 1/T, b = rate_o (d - T)/(T d (d - 1)).

    Parameters
    ----------
    d, pairs : letters in the alphabet, and pairs T in a context, 1 <= T < d
    rate_o : step size of B, >= 0; it multiplies the gradient of the mean loss
    a : A is a (I - J/d)

    Raises
    ------
    InputError : an argument is out of range. Claim icl.output_step.

    Examples
    --------
    >>> round(output_update(50, 6, 200.0), 6)
    0.598639
    """
    d, pairs = _size(d, pairs)
    own, _ = _shares(pairs, real("a", a))
    return rate("rate_o", rate_o) * (own - 1 / d) / (d - 1)


def attention_update(d, pairs, rate_a, b):
    """a after one attention step from A = 0 at B = b (I - J/d): a = rate_a b (T - 1)/(T^2 (d - 1)), for every b.

    The loss at a = 0 gives all values the same logit, so b enters only as the factor of the logits' derivative.

    Parameters
    ----------
    d, pairs : letters in the alphabet, and pairs T in a context, 1 <= T < d
    rate_a : step size of A, >= 0; it multiplies the gradient of the mean loss
    b : B is b (I - J/d); after one output step from zero, `output_update`

    Raises
    ------
    InputError : an argument is out of range. Claim icl.attention_step.

    Examples
    --------
    >>> round(attention_update(50, 6, 1e4, output_update(50, 6, 200.0)), 5)
    16.96824
    """
    d, pairs = _size(d, pairs)
    return rate("rate_a", rate_a) * real("b", b) * (pairs - 1) / (pairs**2 * (d - 1))


def gap(d, multiple):
    """Gap of A (or of B) at a multiple a of I - J/d: softmax(row)_diagonal - softmax(row)_other.

    (e^a - 1)/(e^a + d - 1): 0 at a = 0, and 1 in the limit.

    >>> [round(float(g), 4) for g in gap(50, [0.0, 1.0, 16.97])]
    [0.0, 0.0332, 1.0]
    """
    d, a = whole("d", d, low=2), np.asarray(multiple, dtype=np.float64)
    low, size = np.exp(-np.abs(a)), -np.expm1(-np.abs(a))
    return np.where(a > 0, size / (1 + (d - 1) * low), 0.0 - size / (low + d - 1))[()]


def output_limit(d, pairs, a=0.0):
    """The least loss that training B alone can reach from zero init, A = a (I - J/d) frozen.

    0 for a > 0 (or T = 1): the target's share is the largest, and b grows without end. log T for a = 0: attention
    cannot tell the T values apart. For a < 0 the other values win; the convex L(a, .) has its minimum at a finite b.

    Raises
    ------
    InputError : an argument is out of range. Claim icl.output_only.

    Examples
    --------
    >>> round(output_limit(50, 6), 6), output_limit(50, 6, 1.0), round(output_limit(50, 6, -1.0), 6)
    (1.791759, 0.0, 3.667824)
    """
    d, pairs = _size(d, pairs)
    a = real("a", a)
    if a > 0 or pairs == 1:
        return 0.0
    if a == 0:
        return math.log(pairs)
    if output_update(d, pairs, 1.0, a) == 0:  # pi = 1/d: b = 0 is the minimum
        return math.log(d)
    from scipy.optimize import brentq

    sign = math.copysign(1.0, output_update(d, pairs, 1.0, a))
    end = sign
    while sign * _slopes(d, pairs, a, end)[2] < 0:
        end *= 2
    return _slopes(d, pairs, a, brentq(lambda b: _slopes(d, pairs, a, b)[2], 0.0, end, xtol=1e-12))[0]


def output_only_flow(d, pairs, time):
    """Loss and b of gradient flow on B alone from zero init, at ``time`` = rate_o times steps, in closed form.

    With u = b/T and r = T/(d - T), r e^u + u = r + time/(T^2 (d - 1)), which a Wright omega function solves, and
    L = log(T e^u + d - T) - u, which falls to log T like T^2 (d - 1)/time.

    Parameters
    ----------
    d, pairs : letters in the alphabet, and pairs T in a context, 1 <= T < d
    time : number or array, >= 0

    Returns
    -------
    loss, b

    Raises
    ------
    InputError : an argument is out of range

    Examples
    --------
    >>> loss, b = output_only_flow(50, 6, 3000.0)
    >>> print(f"{loss:.4f} {b:.4f}")
    2.8737 7.9461
    """
    from scipy.special import wrightomega

    d, pairs = _size(d, pairs)
    time = np.asarray(time, dtype=np.float64)
    if not (np.isfinite(time) & (time >= 0)).all():
        raise InputError(f"time must be finite and at least 0, not {time.tolist()!r}")
    ratio = pairs / (d - pairs)
    right = ratio + time / (pairs**2 * (d - 1))
    u = right - wrightomega(right + math.log(ratio))
    return (math.log(pairs) + np.log1p(np.exp(-u) / ratio))[()], (pairs * u)[()]


@dataclass(frozen=True)
class BigramPath:
    """A trajectory on infinite data from zero init; arrays over steps, index 0 the start.

    A = a (I - J/d) and B = b (I - J/d); ``phase_ends`` are the steps at the ends of phases. Accuracy is 0 or 1: by
    symmetry all contexts are right, or none (an equal largest logit counts as wrong).
    """

    a: np.ndarray
    b: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray
    attention_gap: np.ndarray
    output_gap: np.ndarray
    phase_ends: tuple


def population_path(d, pairs, phases, start=(0.0, 0.0), loss_limit=math.inf):
    """Gradient descent through a plan on infinite data: exact, two numbers a step.

    a <- a - rate_a L_a/(d - 1),  b <- b - rate_o L_b/(d - 1), both from the same state.

    Parameters
    ----------
    d, pairs : letters in the alphabet, and pairs T in a context, 1 <= T < d
    phases : list of (layer, steps, rate_o, rate_a), layer "A", "O" or "AO"; the rate of a layer that is not trained
        is not used
    start : (a, b); zero init by default
    loss_limit : stop after the first loss above it, or not finite

    Returns
    -------
    BigramPath

    Raises
    ------
    InputError : an argument is out of range. Claim icl.dynamics.

    Examples
    --------
    >>> path = population_path(50, 6, [("O", 1, 200.0, 0.0), ("A", 1, 0.0, 1e4)])
    >>> print(f"{path.loss[-1]:.4f}", path.accuracy.tolist())
    3.3296 [0.0, 0.0, 1.0]
    """
    d, pairs = _size(d, pairs)
    checked = []
    for layer, steps, rate_o, rate_a in phases:
        choice("layer", layer, ("A", "O", "AO"))
        rate_o = rate("rate_o", rate_o) if "O" in layer else 0.0
        checked.append((whole("steps", steps, low=0), rate_o, rate("rate_a", rate_a) if "A" in layer else 0.0))
    states = np.empty((1 + sum(steps for steps, _, _ in checked), 2))
    losses, ends, end = np.empty(len(states)), [], 0
    states[0] = [real(name, value) for name, value in zip("ab", start, strict=True)]
    for steps, rate_o, rate_a in checked or [(0, 0.0, 0.0)]:
        records = slice(end, end + steps + 1)
        filled = _descend(d, pairs, rate_o, rate_a, states[records], losses[records], loss_limit)
        end += filled - 1
        ends.append(end)
        if filled <= steps:
            break
    (a, b), loss = states[: end + 1].T, losses[: end + 1]
    right = (b > 0) & ((a > 0) | (pairs == 1))
    return BigramPath(a, b, loss, right.astype(np.float64), gap(d, a), gap(d, b), tuple(ends))


def diagonal_gap(matrices):
    """Mean over rows of softmax(row)_diagonal - max of softmax(row) elsewhere, of each matrix of a stack.

    Parameters
    ----------
    matrices : (T, d, d), d >= 2

    Returns
    -------
    gaps : (T,)

    Examples
    --------
    >>> diagonal_gap([np.zeros((3, 3)), 100.0 * np.eye(3)]).tolist()
    [0.0, 1.0]
    """
    matrices = np.ascontiguousarray(matrices, dtype=np.float64)
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or matrices.shape[1] < 2:
        raise InputError(f"matrices must be a stack of square ones of at least 2 rows, not of shape {matrices.shape}")
    gaps = np.empty(len(matrices))
    _diagonal_gaps(matrices, gaps)
    return gaps


@jit(fastmath={"contract", "reassoc", "nsz"})
def _diagonal_gaps(matrices, gaps):
    d = matrices.shape[1]
    for t in range(len(matrices)):
        total = 0.0
        for a in range(d):
            row = matrices[t, a]
            other = -math.inf
            for j in range(d):
                if j != a:
                    other = max(other, row[j])
            top, powers = max(other, row[a]), 0.0
            for j in range(d):
                powers += exp(row[j] - top)
            total += (math.exp(row[a] - top) - math.exp(other - top)) / powers
        gaps[t] = total / d
