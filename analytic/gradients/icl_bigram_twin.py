"""The ICL-bigram model in plain numpy: what `analytic.gradients.icl_bigram` computes, written to be read.

A context is T + 1 distinct letters x_0, ..., x_T: T pairs of a key x_{l-1} and its value x_l. The query is one of the
keys, the target its value. With the attention matrix A and the output matrix B, both d x d, and l = 1..T,

    P = softmax over l of A[query, x_{l-1}],   z = sum_l P_l B[:, x_l],   loss = mean of log sum_j e^{z_j} - z_target.

Columns of B belong to values, rows to the letters whose logits they raise. With g = softmax(z) - e_target,

    d loss / d B[:, x_l]            gathers P_l g / N                               over contexts and pairs,
    d loss / d A[query, x_{l-1}]    gathers P_l (D_l - sum_m P_m D_m) / N,  D_l = g . B[:, x_l].

A and B may be complex: every function is analytic in them, so a complex step gives derivatives.
"""

import numpy as np


def forward(letters, queries, attention, output):
    """Shares P (N, T) and logits z (N, d); ``letters`` (N, T + 1), ``queries`` (N,) positions of the queries."""
    scores = attention[_at(letters, queries)[:, None], letters[:, :-1]]
    powers = np.exp(scores - scores.real.max(axis=1, keepdims=True))
    shares = powers / powers.sum(axis=1, keepdims=True)
    return shares, np.einsum("nl,nlj->nj", shares, output.T[letters[:, 1:]])


def loss_and_gradient(letters, queries, attention, output):
    """Loss and its gradients by ``attention`` and ``output``, both (d, d)."""
    n = np.arange(len(letters))
    keys, values, query, target = letters[:, :-1], letters[:, 1:], _at(letters, queries), _at(letters, queries + 1)
    shares, z = forward(letters, queries, attention, output)
    top = z.real.max(axis=1)
    powers = np.exp(z - top[:, None])
    own = powers[n, target]
    powers[n, target] = 0.0
    rest = powers.sum(axis=1)  # without the target's: where it is tiny, so is the loss, and nothing cancels
    loss = np.mean(top - z[n, target] + np.log1p(rest + (own - 1.0)))
    powers[n, target] = -rest
    g = powers / (own + rest)[:, None] / len(letters)

    d_output = np.zeros(output.shape[::-1], g.dtype)
    np.add.at(d_output, values, shares[:, :, None] * g[:, None, :])
    dots = np.einsum("nj,nlj->nl", g, output.T[values])
    d_attention = np.zeros(attention.shape, g.dtype)
    pulls = shares * (dots - (shares * dots).sum(axis=1, keepdims=True))
    np.add.at(d_attention, (query[:, None], keys), pulls)
    return loss, d_attention, d_output.T


def accuracy(letters, queries, attention, output):
    """Share of contexts whose target has the largest logit, alone."""
    _, z = forward(letters, queries, attention, output)
    n, target = np.arange(len(letters)), _at(letters, queries + 1)
    own = z[n, target]
    z[n, target] = -np.inf
    return float(np.mean(own > z.max(axis=1)))


def _at(letters, positions):
    return letters[np.arange(len(letters)), positions]
