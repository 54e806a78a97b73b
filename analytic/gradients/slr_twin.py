"""Single-location regression in plain numpy: what `analytic.gradients.slr` computes, written to be read.

A context has L tokens X_1, ..., X_L in R^d and a target y. Softmax attention with scores X_l . k picks among the
tokens, and v reads the value off what it picked:

    P_l = e^{X_l . k} / sum_i e^{X_i . k},   f = sum_l P_l (X_l . v),
    loss = mean over contexts of (f - y)^2    (no factor 1/2).

With r = f - y and N contexts,

    d loss / d v = (2/N) sum over contexts of r sum_l P_l X_l,
    d loss / d k = (2/N) sum over contexts of r sum_l P_l (X_l . v - f) X_l.

k and v may be complex: every function is analytic in them, so a complex step gives derivatives.
"""

import numpy as np


def attention(tokens, k):
    """Attention shares P_l of every context, (N, L); ``tokens`` (N, L, d), ``k`` (d,)."""
    scores = tokens @ k
    powers = np.exp(scores - scores.real.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def outputs(tokens, k, v):
    """The model's output f of every context, (N,)."""
    return np.sum(attention(tokens, k) * (tokens @ v), axis=-1)


def loss_and_gradient(tokens, targets, k, v):
    """Loss and its gradients by ``k`` and ``v``."""
    shares, values = attention(tokens, k), tokens @ v
    f = np.sum(shares * values, axis=-1, keepdims=True)
    residual = f - targets[:, None]
    pull = 2.0 / len(targets) * residual * shares
    d_k = np.einsum("nl,nld->d", pull * (values - f), tokens)
    return np.mean(residual**2), d_k, np.einsum("nl,nld->d", pull, tokens)
