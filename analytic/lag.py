r"""How long attention lags on large alphabets: the limit of joint gradient flow from zero init as d grows.

Let E1 -> 0 with k and q fixed. In the time s = rate_o t/d, with u = e^g and rho = rate_a/rate_o, the flow tends to

    beta_o' = 2 (2q - beta_o),   Delta' = 2 (2 - beta_o) u - beta_o',   u' = 2 rho Delta (2 - beta_o) u^2,

whatever k and the length law are. u blows up at a finite s*(q, rho): attention appears all at once, at the time
s* d/rate_o, linear in d; at finite d the step at which the attention gap passes a threshold is s* d/rate_o + O(ln^2 d).
"""

import numpy as np

from .errors import real


def lag_constant(q=0.5, rate_ratio=1.0):
    """s*(q, rho), the lag in units of d/rate_o; absolute error below 1e-9.

    Until u = 2 the flow is integrated in s, from there in ln u: 1/u goes to 0 and Delta grows like sqrt(ln u) only.

    >>> round(lag_constant(), 6)
    0.480771
    """
    from scipy.integrate import solve_ivp

    q = real("q", q, 0, 1, open_low=True, open_high=True)
    ratio = real("rate_ratio", rate_ratio, 0, open_low=True)

    def velocity(s, state):  # delta, ln u
        delta, log_u = state
        other = 2 * q * -np.expm1(-2 * s)
        slope = 2 * (2 * q - other)
        u = np.exp(log_u)
        return np.array([2 * (2 - other) * u - slope, 2 * ratio * delta * (2 - other) * u])

    def doubled(s, state):
        return state[1] - np.log(2)

    doubled.terminal = True
    start = solve_ivp(velocity, (0, np.inf), (0.0, 0.0), "DOP853", events=doubled, rtol=1e-12, atol=1e-14)

    def by_log(log_u, state):  # delta, s
        speed = velocity(state[1], (state[0], log_u))
        return np.array([speed[0], 1.0]) / speed[1]

    end = solve_ivp(by_log, (np.log(2), 60), (start.y[0, -1], start.t[-1]), "DOP853", rtol=1e-12, atol=1e-14)
    return float(end.y[1, -1])
