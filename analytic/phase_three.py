r"""Phase 3: the output layer trained to convergence while the attention scores stay at a logit gap g.

For OR over k of d letters (k = 1: occurrence), infinite data, the symmetric model. With A the attention mass on
S, mu = E[A | +], V = Var(A | +), q = P(y = +1), the loss is a quadratic in (beta_S, beta_o); everything is computed
from 1 - A, so that nothing cancels at large g. Arguments broadcast; law = None is the geometric law that
balances the labels best. Step sizes multiply the gradient of the loss E[(f - y)^2], which has no 1/2.
"""

from dataclasses import dataclass

import numpy as np

from .errors import InputError, broadcasting, reals, shown
from .shares import AttentionMoments, attention_moments


@dataclass(frozen=True)
class OutputPhase:
    """The loss as a function of (beta_S, beta_o) at a fixed logit gap; build it with `output_phase`.

    Attributes
    ----------
    d, k, logit_gap : the setting
    moments : `AttentionMoments`
    """

    d: np.ndarray
    k: np.ndarray
    logit_gap: np.ndarray
    moments: AttentionMoments

    @property
    def _spread(self):
        """nu - q mu^2 = V + (1-q) mu^2, nu = E[A^2 | +]."""
        m = self.moments
        return m.variance + m.negative * m.mass**2

    @property
    def minimum(self):
        """L*(g) = 4 q (1-q) V / (V + (1-q) mu^2), the least loss over beta."""
        m = self.moments
        return 4 * m.q * m.negative * m.variance / self._spread

    @property
    def beta_other(self):
        """beta_o at the minimum: 2 q V / (V + (1-q) mu^2) = L*/(2 (1-q))."""
        return 2 * self.moments.q * self.moments.variance / self._spread

    @property
    def beta_target(self):
        """beta_S at the minimum: beta_o + 2 (1-q) mu / (V + (1-q) mu^2)."""
        m = self.moments
        return self.beta_other + 2 * m.negative * m.mass / self._spread

    @property
    def bound(self):
        """4 q E[(1-A)^2 | +], the loss at beta = (2, 0): an upper bound on the minimum."""
        m = self.moments
        return 4 * m.q * (m.variance + m.rest**2)

    @property
    def lower_bound(self):
        """4 q (1-q) V, a lower bound on the minimum."""
        m = self.moments
        return 4 * m.q * m.negative * m.variance

    @property
    def exponential_bound(self):
        """4 q E[((m-n)/n)^2 | +] e^{-2g}, an upper bound on ``bound``: the minimum falls like e^{-2g}."""
        m = self.moments
        with np.errstate(over="ignore"):
            return 4 * m.q * m.odds_square * np.exp(-2 * self.logit_gap)

    @property
    def universal_bound(self):
        """24 (d/k)^2 e^{-2g}, an upper bound on ``exponential_bound`` for every length law.

        Since E[((m-n)/n)^2; n >= 1 | m] <= 6/kappa^2: 1/n^2 <= 6/((n+1)(n+2)), whose mean is at most
        6/((m+1)(m+2) kappa^2).
        """
        with np.errstate(over="ignore"):
            return 24 * (self.d / self.k) ** 2 * np.exp(-2 * self.logit_gap)

    @property
    def hessian(self):
        """(..., 2, 2) Hessian on the symmetric subspace in the coordinates (sqrt(k) beta_S, sqrt(D) beta_o).

        2 [[E[A^2]/k, E[A(1-A)]/sqrt(kD)], [., E[(1-A)^2]/D]]. The trace is at most 2.
        """
        m, other = self.moments, self.d - self.k
        target_target = m.q * (m.variance + m.mass**2) / self.k
        target_other = m.q * (m.rest * m.mass - m.variance) / np.sqrt(self.k * other)
        other_other = (m.q * (m.variance + m.rest**2) + m.negative) / other
        rows = np.stack(np.broadcast_arrays(target_target, target_other, target_other, other_other), axis=-1)
        return 2 * rows.reshape(*rows.shape[:-1], 2, 2)

    @property
    def _decomposition(self):
        """Eigenvalues (ascending) and eigenvectors of the Hessian, by one Jacobi rotation: small ones stay exact."""
        h = self.hessian
        a, b, c = h[..., 0, 0], h[..., 0, 1], h[..., 1, 1]
        # tan of the rotation angle, |t| <= 1: eigenvalues a - t b and c + t b
        with np.errstate(over="ignore"):  # theta is inf where b is tiny
            theta = (c - a) / np.where(b == 0, 1, 2 * b)
        t = np.where(b == 0, 0.0, np.where(theta >= 0, 1.0, -1.0) / (np.abs(theta) + np.hypot(theta, 1)))
        cosine = 1 / np.sqrt(t**2 + 1)
        first, second = a - t * b, c + t * b
        vectors = np.stack([np.stack([cosine, -t * cosine], -1), np.stack([t * cosine, cosine], -1)], -2)
        order = np.where((first <= second)[..., None], [0, 1], [1, 0])
        values = np.take_along_axis(np.stack([first, second], -1), order, -1)
        return values, np.take_along_axis(vectors, order[..., None], -2)  # rows are eigenvectors

    @property
    def eigenvalues(self):
        """(..., 2) Hessian eigenvalues lambda_1 <= lambda_2 < 2 on the symmetric subspace."""
        return self._decomposition[0]

    @property
    def target_eigenvalue(self):
        """(2/k) E[n e^2g / Z^2]: contrasts between targets (multiplicity k - 1), at most lambda_2."""
        return 2 * self.moments.target_contrast / self.k

    @property
    def other_eigenvalue(self):
        """(2/D) E[(m - n) / Z^2]: contrasts between other letters (multiplicity D - 1), at most lambda_2."""
        return 2 * self.moments.other_contrast / (self.d - self.k)

    @property
    def largest_stable_rate(self):
        """Gradient descent on beta converges for 0 < rate < 2/lambda_2; every rate <= 1 is below it."""
        return 2 / self.eigenvalues[..., 1]

    def loss(self, beta_target, beta_other):
        """E[(f - y)^2] = (1-q) beta_o^2 + q [(beta_S - 2 - Delta (1-mu))^2 + Delta^2 V], Delta = beta_S - beta_o.

        On positive words f - y = beta_S - 2 - Delta (1-A), on negative ones beta_o.
        """
        m = self.moments
        delta = np.asarray(beta_target) - beta_other
        mean = np.asarray(beta_target) - 2 - delta * m.rest
        return m.negative * np.asarray(beta_other) ** 2 + m.q * (mean**2 + delta**2 * m.variance)

    def convergence_factor(self, rate):
        """rho = max |1 - rate lambda_i|: the excess loss falls at least by rho^2 a step."""
        return np.abs(1 - np.asarray(rate)[..., None] * self.eigenvalues).max(-1)

    @property
    def best_rate(self):
        """2/(lambda_1 + lambda_2), the rate with the least rho = (chi - 1)/(chi + 1), chi = lambda_2/lambda_1."""
        return 2 / self.eigenvalues.sum(-1)

    def excess_loss(self, beta_target, beta_other, rate, steps):
        """Exact L_T - L* = sum_i lambda_i c_i^2 (1 - rate lambda_i)^{2T}/2 after T = ``steps`` updates.

        c: the coordinates of (sqrt(k) (beta_S - beta_S*), sqrt(D) (beta_o - beta_o*)) along the eigenvectors, at
        the start.
        """
        values, vectors = self._decomposition
        target = np.sqrt(self.k) * (beta_target - self.beta_target)
        other = np.sqrt(self.d - self.k) * (beta_other - self.beta_other)
        c = vectors[..., 0] * target[..., None] + vectors[..., 1] * other[..., None]
        power = np.abs(1 - np.asarray(rate)[..., None] * values) ** (2 * np.asarray(steps)[..., None])
        return (values * c**2 * power).sum(-1) / 2

    def steps_to(self, excess, beta_target, beta_other, rate):
        """T_3 = ceil(ln((L_2 - L*)/excess) / (-2 ln rho)) steps suffice for L <= L* + excess; inf if rho >= 1.

        L_2 is the loss at (beta_S, beta_o). `exact_steps_to` is the number it bounds.
        """
        ratio = self.excess_loss(beta_target, beta_other, rate, 0) / check_positive("excess", excess)
        rho = self.convergence_factor(rate)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.ceil(np.log(ratio) / (-2 * np.log(rho)))
        return np.where(ratio <= 1, 0.0, np.where(rho < 1, np.where(rho == 0, 1.0, steps), np.inf))

    def exact_steps_to(self, excess, beta_target, beta_other, rate):
        """Least T with L_T <= L* + excess from (beta_S, beta_o), by bisection over the exact trajectory (scalars)."""
        high = self.steps_to(excess, beta_target, beta_other, rate)
        if not np.isfinite(high):
            return np.inf
        low, high = -1, int(high)
        while high - low > 1:
            middle = (low + high) // 2
            if self.excess_loss(beta_target, beta_other, rate, middle) <= excess:
                high = middle
            else:
                low = middle
        return high


def check_positive(name, values):
    """Return ``values`` as a float array of finite values > 0, or raise `InputError`."""
    values = reals(name, values)
    if not np.all(np.isfinite(values) & (values > 0)):
        raise InputError(f"{name} must be finite and positive, not {shown(values.tolist())}")
    return values


@broadcasting
def output_phase(d, k, law, logit_gap):
    """Return the `OutputPhase` of d letters, k targets, a length law and a logit gap g; all broadcast.

    >>> phase = output_phase(50, 1, None, 10.426536271459)
    >>> print(f"{phase.minimum:.9g} {phase.bound:.6g}")
    1.45613521e-06 4.36941e-06
    """
    moments = attention_moments(d, k, law, logit_gap)
    return OutputPhase(np.asarray(d), np.asarray(k), reals("logit_gap", logit_gap), moments)
