"""Exact rational enumeration over all words of a small alphabet: the slow, obvious way to every expectation."""

import itertools
from fractions import Fraction
from math import factorial, prod

import numpy as np


def compositions(total, parts):
    """All tuples of ``parts`` whole numbers >= 0 with the given sum."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def words(d, law):
    """(counts, probability) of every word, words with equal counts together; ``law`` is {length: Fraction}."""
    for m, probability in law.items():
        for counts in compositions(m, d):
            ways = factorial(m) // prod(map(factorial, counts))
            yield counts, probability * Fraction(ways, d**m)


def words_one_by_one(d, law):
    """The same as `words`, from the words themselves."""
    for m, probability in law.items():
        for word in itertools.product(range(d), repeat=m):
            counts = tuple(word.count(j) for j in range(d))
            yield counts, probability / d**m


def label(language, counts):
    present = [counts[letter] > 0 for letter in language.letters]
    return 1 if language.truth[sum(bit << i for i, bit in enumerate(present))] else -1


def expectation(d, law, function):
    """E[function(counts)] exactly."""
    return sum((probability * function(counts) for counts, probability in words(d, law)), Fraction(0))


def shares(counts, weights):
    """Attention shares n_j e_j / sum n e for one head, e = exp(alpha) given as rationals."""
    masses = [n * w for n, w in zip(counts, weights, strict=True)]
    total = sum(masses)
    return [Fraction(mass) / total for mass in masses]


def loss_and_gradient(language, d, law, weights, beta):
    """Population loss, dL/dalpha and dL/dbeta of H heads; weights = e^alpha and beta are (H, d) rationals."""
    heads = range(len(beta))
    loss, d_alpha, d_beta = Fraction(0), [[Fraction(0)] * d for _ in heads], [[Fraction(0)] * d for _ in heads]
    for counts, probability in words(d, law):
        a = [shares(counts, weights[h]) for h in heads]
        value = [sum(x * b for x, b in zip(a[h], beta[h], strict=True)) for h in heads]
        residual = sum(value) - 1 - label(language, counts)
        loss += probability * residual**2
        for h in heads:
            for j in range(d):
                d_beta[h][j] += 2 * probability * residual * a[h][j]
                d_alpha[h][j] += 2 * probability * residual * a[h][j] * (beta[h][j] - value[h])
    return loss, d_alpha, d_beta


def to_law(law):
    """The `Table` of a rational law whose probabilities are exact in binary."""
    from analytic.lengths import Table

    assert all(Fraction(float(p)) == p for p in law.values())
    return Table(list(law), [float(p) for p in law.values()])


def as_floats(rows):
    return np.array([[float(v) for v in row] for row in rows])
