"""Exact signs of expressions in e^alpha and beta, alpha and beta being floats.

Enclosures are rationals around correctly rounded exponentials (the decimal module's), narrowed until they decide.
They always do unless the expression is exactly zero, and that can be told: exponentials of distinct rationals are
linearly independent over the rationals (Lindemann and Weierstrass), so a sum vanishes iff the coefficients of each
exponent do.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from itertools import product

import numpy as np


def precisions():
    """Numbers of digits to try, one after the other."""
    digits = 30
    while True:
        yield digits
        digits *= 2


def exponentials(scores, digits):
    """Rational [low, high] around e^(score - largest score): decimal's exp is correctly rounded."""
    context = Context(prec=digits, Emin=-(10**15), Emax=10**15)
    largest = Fraction(float(max(scores)))
    pairs = []
    for score in scores:
        exponent = Fraction(float(score)) - largest  # dyadic: finitely many decimals
        bits = exponent.denominator.bit_length() - 1
        exact = Decimal(exponent.numerator * 5**bits).scaleb(-bits, Context(prec=10**6))
        value = context.exp(exact)
        pairs.append((Fraction(context.next_minus(value)), Fraction(context.next_plus(value))))
    return pairs


def score_sign(alpha, beta, counts):
    """Exact sign of f for a word given by its counts: +1, 0 or -1.

    >>> score_sign([0.0, 0.0], [3.0, 0.0], [1, 2])
    0
    """
    alpha, beta = np.atleast_2d(alpha), np.atleast_2d(beta)
    letters = [j for j, n in enumerate(counts) if n]
    n = [int(counts[j]) for j in letters]
    weights = [[Fraction(float(b)) for b in row[letters]] for row in beta]
    for digits in precisions():
        low = high = Fraction(-1)
        for scores, values in zip(alpha[:, letters], weights, strict=True):
            masses = [
                [times * bound for bound in pair] for times, pair in zip(n, exponentials(scores, digits), strict=True)
            ]
            total = sum(mass[0] for mass in masses), sum(mass[1] for mass in masses)
            bottom = sum(v * mass[v < 0] for v, mass in zip(values, masses, strict=True))
            top = sum(v * mass[v > 0] for v, mass in zip(values, masses, strict=True))
            low += bottom / total[bottom > 0]
            high += top / total[top < 0]
        if low > 0 or high < 0:
            return 1 if low > 0 else -1
        if digits == 60 and len(n) ** len(alpha) <= 10**6 and _vanishes(alpha[:, letters], weights, n):
            return 0
        if digits > 4000:
            raise ArithmeticError(
                "the sign of f is not decided by 4000 digits, and the word has too many letters to expand"
            )


def _vanishes(alpha, weights, n):
    """Whether f = 0: clear denominators and collect equal exponents."""
    coefficients = {}
    for choice in product(range(len(n)), repeat=len(alpha)):
        exponent = sum(Fraction(float(alpha[h, j])) for h, j in enumerate(choice))
        value = sum(weights[h][j] for h, j in enumerate(choice)) - 1
        coefficients[exponent] = coefficients.get(exponent, 0) + math.prod(n[j] for j in choice) * value
    return not any(coefficients.values())


class LetterWeights:
    """w_j = e^{alpha_j} c_j with exact c_j, compared and divided exactly."""

    def __init__(self, alpha, beta):
        self.alpha = alpha
        self.c = [sum(Fraction(float(b)) for b in column) - 1 for column in beta.T]
        with np.errstate(divide="ignore"):
            self.log = alpha + np.log(np.abs([float(c) for c in self.c]))  # only to narrow the candidates

    def bounds(self, terms, digits):
        """Rational [low, high] around e^{-max alpha} sum of times * w_j over ``terms`` {letter: times}."""
        letters = list(terms)
        pairs = exponentials(self.alpha[letters], digits) if letters else []
        values = [self.c[j] * terms[j] for j in letters]
        low = sum((v * pair[v < 0] for v, pair in zip(values, pairs, strict=True)), Fraction(0))
        return low, sum((v * pair[v > 0] for v, pair in zip(values, pairs, strict=True)), Fraction(0))

    def sign(self, terms):
        """Sign of the sum of times * w_j: zero iff the terms cancel for every score by itself."""
        groups = {}
        for j, times in terms.items():
            groups[self.alpha[j]] = groups.get(self.alpha[j], 0) + times * self.c[j]
        if not any(groups.values()):
            return 0
        for digits in precisions():
            low, high = self.bounds(terms, digits)
            if low > 0 or high < 0:
                return 1 if low > 0 else -1

    def largest(self, letters, sign):
        """The letter with the largest sign * w_j."""
        signs = {j: sign * ((self.c[j] > 0) - (self.c[j] < 0)) for j in letters}
        top = max(signs.values())
        letters = [j for j in letters if signs[j] == top]
        if top:
            best = max(top * self.log[j] for j in letters)
            letters = [j for j in letters if top * self.log[j] >= best - 1e-9 * (1 + abs(best))]
        winner = letters[0]
        for j in letters[1:]:
            if j != winner and self.sign({j: sign, winner: -sign}) > 0:
                winner = j
        return winner

    def first_multiple(self, base, letter):
        """Least t >= 0 for which sum(base) + t w_letter has lost the sign of sum(base); w_letter has the other sign."""
        for digits in precisions():
            shift = {**dict.fromkeys(base, 0), letter: 0}  # the same reference score in both
            b, v = self.bounds({**shift, **base}, digits), self.bounds({**shift, letter: 1}, digits)
            b, v = sorted(map(abs, b)), sorted(map(abs, v))
            if v[0] == 0:
                continue
            low, high = math.ceil(b[0] / v[1]), math.ceil(b[1] / v[0])
            if low == high:
                return low
            if high == low + 1:  # is it the sum with t = low that vanishes?
                terms = {**base, letter: base.get(letter, 0) + low}
                return low if self.sign(terms) != self.sign(base) else high
