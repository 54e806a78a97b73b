"""Polynomials with integer coefficients, lowest power first, and their roots in (0, 1) by exact arithmetic."""

import math
from fractions import Fraction
from itertools import pairwise


def multiply(a, b):
    product = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return product


def product(factors):
    product = [1]
    for factor in factors:
        product = multiply(product, factor)
    return product


def derivative(polynomial):
    return [i * c for i, c in enumerate(polynomial)][1:] or [0]


def roots_in_unit_interval(polynomial):
    """Real roots in (0, 1) of a polynomial with integer coefficients (lowest first).

    A simple root comes as the nearest float, a multiple one, or one of several this near, to within 2^-52.

    Descartes' rule in the Bernstein basis: no sign change means no root, one means exactly one; else halve.
    """
    n = len(polynomial) - 1
    # Bernstein coefficients b_j = sum_i C(j,i)/C(n,i) c_i, times n! to stay whole
    start = [
        sum(math.comb(j, i) * math.factorial(n) // math.comb(n, i) * polynomial[i] for i in range(j + 1))
        for j in range(n + 1)
    ]
    roots, stack = [], [(0, 0, start)]  # the interval [a, a + 1] / 2^depth
    while stack:
        a, depth, bernstein = stack.pop()
        signs = [c > 0 for c in bernstein if c]
        changes = sum(x != y for x, y in pairwise(signs))
        if changes == 0:
            continue
        if (changes == 1 and bernstein[0] and bernstein[-1]) or depth == 52:
            roots.append(_bisect(polynomial, a / 2**depth, (a + 1) / 2**depth))
            continue
        left, right = [bernstein[0] << n], [bernstein[-1] << n]  # de Casteljau, scaled by 2^n
        row = bernstein
        for level in range(1, n + 1):
            row = [x + y for x, y in pairwise(row)]
            left.append(row[0] << (n - level))
            right.append(row[-1] << (n - level))
        if left[-1] == 0:
            roots.append((2 * a + 1) / 2 ** (depth + 1))
        stack += [(2 * a, depth + 1, left), (2 * a + 1, depth + 1, right[::-1])]
    return [p for p in roots if 0 < p < 1]


def _bisect(polynomial, low, high):
    """The float nearest to the root between ``low`` and ``high``, by exact signs."""

    def value(p):
        total = Fraction(0)
        for c in reversed(polynomial):
            total = total * Fraction(p) + c
        return total

    rising = value(low) < 0 or value(high) > 0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if (value(middle) < 0) == rising else (low, middle)
    return low if abs(value(low)) < abs(value(high)) else high
