r"""Eigenvalues of the Hessian in all 2d parameters at a symmetric state, on infinite data.

For OR over k of d letters the loss E[r^2] and the state are invariant under permutations inside S and outside, so the
Hessian 2 E[grad h grad h^T + r Hess h] splits into one block on the symmetric directions (beta_S, beta_o, g; the mean
of alpha is a zero direction) and a 2 x 2 block (beta, alpha) each for the contrasts between targets and between other
letters. With B = 1 - A, Z = n e^g + m - n, contrasts v of unit length have, given m and n, s = E[(sum v_j a_j)^2] =
n e^2g/(k Z^2) inside S and (m - n)/(D Z^2) outside, and with c the value of beta - h:

    inside S:  c = beta_S - h = Delta B;     outside:  c = beta_o - h = -Delta A,
    dd/dbeta^2 = 2 E[s],   dd/dbeta dalpha = 2 E[s c + r (a - s)],   dd/dalpha^2 = 2 E[s c^2 + r c (a - 2 s)],

a = A/k or B/D. Gradient descent with rate eta in both layers is locally unstable where the largest exceeds 2/eta.
"""

from dataclasses import dataclass

import numpy as np

from .errors import whole
from .moments import share_moments
from .shares import share_law


@dataclass(frozen=True)
class Curvature:
    """Hessian eigenvalues; arrays over the states, ascending along the last axis.

    ``symmetric`` is (..., 3); ``targets`` (..., 2), each k - 1 times; ``others`` (..., 2), each d - k - 1 times. And 0,
    once.
    """

    d: int
    k: int
    symmetric: np.ndarray
    targets: np.ndarray
    others: np.ndarray

    @property
    def largest(self):
        """Largest eigenvalue that occurs."""
        blocks = [self.symmetric[..., -1]]
        blocks += [self.targets[..., -1]] if self.k > 1 else []
        blocks += [self.others[..., -1]] if self.d - self.k > 1 else []
        return np.maximum.reduce(blocks)


def curvature(d, k, law, beta_target, beta_other, logit_gap):
    """The `Curvature` of the infinite-data loss at symmetric states; the state's three numbers broadcast.

    >>> start = curvature(50, 1, None, 0.0, 0.0, 0.0)
    >>> print(f"{start.largest:.6f}")
    0.075153
    """
    d, k = whole("d", d, 2), whole("targets", k)
    m = share_moments(d, k, law)
    shares = share_law(d, k, m.law)
    target, other, g = np.broadcast_arrays(
        *(np.asarray(v, dtype=np.float64) for v in (beta_target, beta_other, logit_gap))
    )
    target, other, e = target[..., None], other[..., None], np.exp(np.clip(g, -700, 700))[..., None]
    D, G, G1, last = d - k, float(m.G), float(m.G1), other[..., 0]
    delta, A, B = target - other, e / (shares.odds + e), shares.odds / (shares.odds + e)
    r = target - 2 - delta * B

    def mean(values):
        return values @ shares.weights

    def mean_over_n(values):
        return values @ shares.weights_over_n

    # symmetric block in unit directions: sqrt(k) beta_S, sqrt(D) beta_o, and the unit vector of alpha that moves g
    first = [A, B, delta * A * B]
    second = {(0, 2): A * B, (1, 2): -A * B, (2, 2): delta * A * B * (B - A)}
    unit = [k**-0.5, D**-0.5, (d / (k * D)) ** 0.5]
    block = np.empty((*g.shape, 3, 3))
    for i in range(3):
        for j in range(i, 3):
            value = mean(first[i] * first[j] + r * second.get((i, j), 0)) + (G if i == j == 1 else 0)
            block[..., i, j] = block[..., j, i] = 2 * unit[i] * unit[j] * value

    s, c = A**2, delta * B  # s over n
    targets = _contrasts(
        mean_over_n(s) / k,
        (mean_over_n(s * c) + mean(r * A) - mean_over_n(r * s)) / k,
        (mean_over_n(s * c**2) + mean(r * c * A) - 2 * mean_over_n(r * c * s)) / k,
    )
    s, c = A * B / e, -delta * A
    others = _contrasts(
        (mean_over_n(s) + G1) / D,
        (mean_over_n(s * c) + mean(r * B) - mean_over_n(r * s) + last * (G - G1)) / D,
        (mean_over_n(s * c**2) + mean(r * c * B) - 2 * mean_over_n(r * c * s)) / D,
    )
    return Curvature(d, k, np.linalg.eigvalsh(block), targets, others)


def _contrasts(beta_beta, beta_alpha, alpha_alpha):
    """Eigenvalues of 2 [[bb, ba], [ba, aa]]."""
    rows = np.stack([beta_beta, beta_alpha, beta_alpha, alpha_alpha], axis=-1)
    return np.linalg.eigvalsh(2 * rows.reshape(*rows.shape[:-1], 2, 2))
