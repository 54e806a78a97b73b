"""The even-pairs model in plain numpy: what `analytic.gradients.even_pairs` computes, written to be read.

The data are all binary strings b_1 ... b_L of every length L = 1..L_max; y = +1 iff the first and the last symbol
agree. The token with symbol b at position l (from 1) is one-hot in D = 2 L_max dimensions, at index 2 (l - 1) + b. One
head of softmax attention asks with the last token, and a linear layer reads its output:

    s_l = W[x_l, x_L],   P = softmax(s),   f = sum_l P_l u[x_l]    (x_l is the index of the token at position l),
    loss = mean over L = 1..L_max of the mean over the 2^L strings of ln(1 + e^{-y f}).

With c = -y / (1 + e^{y f}), the derivative of a string's loss by f, and the means as above,

    d loss / d u[i]    = mean of c sum_l P_l [x_l = i],
    d loss / d W[i, j] = mean of c sum_l P_l (u[x_l] - f) [x_l = i] [x_L = j].

W and u may be complex: every function is analytic in them, so a complex step gives derivatives.
"""

import numpy as np


def strings(length):
    """All binary strings of a length, (2^length, length), in the order of the numbers they write, b_1 first."""
    return np.arange(2**length)[:, None] >> np.arange(length - 1, -1, -1) & 1


def labels(symbols):
    """+1 where the first and the last symbol agree, else -1."""
    return np.where(symbols[:, 0] == symbols[:, -1], 1, -1)


def tokens(symbols):
    """Index 2 (l - 1) + b_l of every token."""
    return 2 * np.arange(symbols.shape[1]) + symbols


def attention(indices, W):
    """Attention P of strings given by their token indices, of the same shape."""
    scores = W[indices, indices[:, -1:]]
    powers = np.exp(scores - scores.real.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def logistic(margins):
    """ln(1 + e^{-m}) and minus its derivative, 1 / (1 + e^m), for any size of m."""
    positive = margins.real > 0
    decay = np.exp(np.where(positive, -margins, margins))
    return np.log1p(decay) - np.where(positive, 0.0, margins), np.where(positive, decay, 1.0) / (1.0 + decay)


def scores(max_length, W, u):
    """The model's output f of all strings, in order of length."""
    indices = [tokens(strings(length)) for length in range(1, max_length + 1)]
    return np.concatenate([(attention(i, W) * u[i]).sum(axis=1) for i in indices])


def loss_and_gradient(max_length, W, u):
    """Loss and its gradients by ``W`` (D, D) and ``u`` (D,), D = 2 ``max_length``."""
    loss, d_W, d_u = 0.0, np.zeros_like(W), np.zeros_like(u)
    for length in range(1, max_length + 1):
        symbols = strings(length)
        y, i = labels(symbols), tokens(symbols)
        weight = 1.0 / (max_length * 2**length)
        shares = attention(i, W)
        f = (shares * u[i]).sum(axis=1)
        losses, misses = logistic(y * f)
        loss += weight * losses.sum()
        c = -weight * y * misses
        pulls = c[:, None] * shares
        np.add.at(d_u, i, pulls)
        np.add.at(d_W, (i, i[:, -1:]), pulls * (u[i] - f[:, None]))
    return loss, d_W, d_u
