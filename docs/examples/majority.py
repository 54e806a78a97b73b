"""Majority: does letter 1 fill more than half of the word?

    attnlag check-task majority.py
    attnlag run majority.py --plan joint

A word of odd length has independent letters: letter 1 half of the time, else one of the others. The model is that of
the letter tasks, f = sum_j a_j beta_j - 1 with a = softmax attention over the positions, one score alpha_j a letter;
the loss is the mean of (f - y)^2. Here the ideal attention is *uniform*: at alpha = 0 and beta = 2 on letter 1 and 0
elsewhere, f = 2 (share of letter 1) - 1 has the right sign on every word.
"""

import numpy as np

from sim import Task


class Majority(Task):
    d: int = 6
    longest: int = 15  # lengths are the odd numbers up to here
    train_words: int = 400
    test_words: int = 200

    def parameters(self):
        return {"alpha": {"letter": self.d}, "beta": {"letter": self.d}}

    def data(self, seed):
        rng = np.random.default_rng([seed, 0])
        return self.words(rng, self.train_words), self.words(rng, self.test_words)

    def words(self, rng, count):
        """(counts of the letters (count, d), labels)."""
        lengths = 2 * rng.integers((self.longest + 1) // 2, size=count) + 1
        probabilities = [0.5] + [0.5 / (self.d - 1)] * (self.d - 1)
        counts = rng.multinomial(lengths, probabilities)
        return counts, np.where(2 * counts[:, 0] > lengths, 1, -1)

    def shares(self, counts, alpha):
        """Attention on each letter of each word. The largest score of the word is taken off: e^1000 is no number."""
        present = counts > 0
        top = np.where(present, alpha.real, -np.inf).max(axis=1, keepdims=True)
        weights = counts * np.exp(np.where(present, alpha - top, 0))
        return weights / weights.sum(axis=1, keepdims=True)

    def loss_and_gradient(self, data, alpha, beta):
        counts, labels = data
        shares = self.shares(counts, alpha)
        value = shares @ beta
        residual = value - 1 - labels
        pull = 2 / len(labels) * residual
        d_beta = pull @ shares
        d_alpha = beta * d_beta - (pull * value) @ shares
        return np.mean(residual**2), d_alpha, d_beta

    def test(self, data, alpha, beta):
        counts, labels = data
        return np.mean(labels * (self.shares(counts, alpha) @ beta - 1) > 0)

    def gaps(self, alpha, beta):
        gamma = np.exp(alpha - alpha.max())
        gamma /= gamma.sum()
        return {
            "attention_gap": 1 - (gamma.max() - gamma.min()),  # 1 where attention is uniform
            "output_gap": (beta[0] - beta[1:].max()) / 2,
        }

    def ideal(self):
        return np.zeros(self.d), 2.0 * (np.arange(self.d) == 0)

    def invariances(self):
        return {"a constant added to all scores": lambda alpha, beta: (alpha + 3.7, beta)}
