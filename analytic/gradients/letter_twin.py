"""The letter model in plain numpy: what `analytic.gradients.letter` computes, written to be read.

A word with n_j copies of letter j is scored by H heads of softmax attention over its positions:

    a^h_j = n_j e^{alpha^h_j} / sum_i n_i e^{alpha^h_i},   o^h = sum_j a^h_j beta^h_j,   f = sum_h o^h - 1,
    loss = mean over words of (f - y)^2    (no factor 1/2).

With r = f - y and N words,

    d loss / d beta^h_j  = (2/N) sum over words of r a^h_j,
    d loss / d alpha^h_j = (2/N) sum over words of r a^h_j (beta^h_j - o^h).

Scores and weights may be complex: every function is analytic in them, so a complex step gives derivatives.
"""

import numpy as np


def attention(counts, alpha):
    """Attention shares a^h_j of every word, (H, N, d); ``counts`` (N, d), ``alpha`` (H, d)."""
    present = counts > 0
    top = np.where(present, alpha.real[:, None, :], -np.inf).max(axis=-1, keepdims=True)
    powers = np.exp(np.where(present, alpha[:, None, :] - top, 0.0))
    weights = counts * powers
    return weights / weights.sum(axis=-1, keepdims=True)


def scores(counts, alpha, beta):
    """The model's output f of every word, (N,); ``alpha`` and ``beta`` are (d,) or (H, d)."""
    shares = attention(counts, np.atleast_2d(alpha))
    return np.einsum("hnd,hd->n", shares, np.atleast_2d(beta)) - 1.0


def loss_and_gradient(counts, labels, alpha, beta):
    """Loss and its gradients by ``alpha`` and ``beta``, which follow the shape of ``alpha``, (d,) or (H, d)."""
    shares = attention(counts, np.atleast_2d(alpha))
    weights = np.atleast_2d(beta)
    outputs = np.einsum("hnd,hd->hn", shares, weights)
    residual = outputs.sum(axis=0) - 1.0 - labels
    d_beta = 2.0 / len(labels) * np.einsum("n,hnd->hd", residual, shares)
    d_alpha = d_beta * weights - 2.0 / len(labels) * np.einsum("n,hn,hnd->hd", residual, outputs, shares)
    return np.mean(residual**2), d_alpha.reshape(np.shape(alpha)), d_beta.reshape(np.shape(beta))
