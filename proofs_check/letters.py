"""The letter model from first principles, three ways: symbolic moments, exact enumeration, and whole populations.

None of this uses a formula that is under test: expectations come from the generating function of the letter counts,
exact gradients from truncated power series, populations from the list of all words.
"""

import itertools
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import sympy

_m = sympy.Symbol("m", positive=True)


# --- symbolic -------------------------------------------------------------------------------------------------------


def count_moment(sizes, powers, m=_m):
    """E[prod_c n_c^powers[c]] for the counts of m iid uniform letters grouped into classes of the given sizes.

    The generating function is E[prod_c t_c^{n_c}] = B^m, B = sum_c size_c t_c / total, and a factor n_c comes from
    t_c d/dt_c. With u_c = size_c t_c / (total B), t_c du_e/dt_c = [c = e] u_c - u_e u_c, so that R(u) B^m becomes
    (t_c dR/dt_c + m u_c R) B^m. At the end all t are 1.
    """
    u = {name: sympy.Symbol(f"u_{name}") for name in sizes}
    factor = sympy.Integer(1)
    for name in (name for name, power in powers.items() for _ in range(power)):
        change = sum(sympy.diff(factor, u[e]) * (int(e == name) * u[e] - u[e] * u[name]) for e in sizes)
        factor = sympy.expand(change + m * u[name] * factor)
    total = sum(sizes.values())
    return factor.subs({u[name]: size / total for name, size in sizes.items()})


def share_moment(case, classes, powers, negative=False):
    """E[prod_c p_c^powers[c]], or with ``negative`` E[1{no target letter} prod ...], for any d, k and length law.

    Letters are grouped into ``classes`` {name: number of letters}; p_c is the share of class c in the word. Names
    that start with "target" are in S: words without them have the counts of the other letters, and probability z^m.
    """
    sizes = {name: size for name, size in classes.items() if not (negative and name.startswith("target"))}
    if any(power and name not in sizes for name, power in powers.items()):
        return sympy.Integer(0)
    z, order = sympy.cancel(sum(sizes.values()) / case.d), sum(powers.values())
    return sum(
        coefficient * _length_moment(case.length, order - power, z)
        for (power,), coefficient in sympy.Poly(count_moment(sizes, powers), _m).terms()
        if coefficient
    )


def _length_moment(law, inverse_power, z):
    """E[z^m / m^inverse_power]."""
    if z == 1:
        return (1, law.mean_inverse, law.mean_inverse_square)[inverse_power]
    return (law.pgf, law.pgf_over_m)[inverse_power](z)


def expectation(polynomial, case, classes, shares, positive):
    """E of a polynomial in ``shares`` {class: symbol} and in ``positive``, the indicator of y = +1."""
    total = sympy.Integer(0)
    for (indicator, *powers), coefficient in sympy.Poly(sympy.expand(polynomial), positive, *shares.values()).terms():
        powers = {name: power for name, power in zip(shares, powers, strict=True) if power}
        moment = share_moment(case, classes, powers)
        if indicator:  # 1_+ = 1 - 1_-
            moment -= share_moment(case, classes, powers, negative=True)
        total += coefficient * moment
    return total


# --- exact ----------------------------------------------------------------------------------------------------------


@cache
def words_of_length(d, m):
    """All d^m words by their letter counts: {counts: number of words}."""
    words = itertools.product(range(d), repeat=m)
    return Counter(tuple(word.count(letter) for letter in range(d)) for word in words)


def constant(d, value):
    """The weights e^alpha or beta of one head with the same value at every letter, exact."""
    return [[Fraction(value)] * int(d)]


def population(case):
    """All words of an exact ``case``: a list of (probability, counts, y) with y = +1 iff one of the first k occurs."""
    d, k = int(case.d), int(case.k)
    return [
        (p * Fraction(number, d**m), counts, 1 if any(counts[:k]) else -1)
        for m, p in case.length.probabilities.items()
        for counts, number in words_of_length(d, m).items()
    ]


class Jet:
    """A truncated power series c_0 + c_1 t + ... + c_n t^n: carries derivatives through +, -, * and / exactly."""

    def __init__(self, *coefficients):
        self.coefficients = coefficients

    def __add__(self, other):
        if isinstance(other, Jet):
            return Jet(*(a + b for a, b in zip(self.coefficients, other.coefficients, strict=True)))
        first, *rest = self.coefficients
        return Jet(first + other, *rest)

    def __mul__(self, other):
        a = self.coefficients
        if not isinstance(other, Jet):
            return Jet(*(x * other for x in a))
        b = other.coefficients
        return Jet(*(sum(a[i] * b[n - i] for i in range(n + 1)) for n in range(len(a))))

    def __truediv__(self, other):
        if not isinstance(other, Jet):
            return Jet(*(x / other for x in self.coefficients))
        b, quotient = other.coefficients, []
        for n, a in enumerate(self.coefficients):
            quotient.append((a - sum(quotient[i] * b[n - i] for i in range(n))) / b[0])
        return Jet(*quotient)

    def __rtruediv__(self, other):
        return Jet(other, *(0 * x for x in self.coefficients[1:])) / self

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def exp(self):
        """e^self for a series without constant term: E' = self' E."""
        a, result = self.coefficients, [Fraction(1)]
        for n in range(1, len(a)):
            result.append(sum(i * a[i] * result[n - i] for i in range(1, n + 1)) / n)
        return Jet(*result)


def exact_score(counts, weights, beta):
    """f = sum over heads of sum_j n_j w_j beta_j / sum_j n_j w_j - 1, w = e^alpha: (heads, d) nested lists."""
    heads = (
        sum((n * w * b for n, w, b in zip(counts, ws, bs, strict=True) if n), 0)
        / sum((n * w for n, w in zip(counts, ws, strict=True) if n), 0)
        for ws, bs in zip(weights, beta, strict=True)
    )
    return sum(heads, 0) - 1


def exact_loss(words, weights, beta):
    """E[(f - y)^2] over `population` words."""
    total = 0
    for probability, counts, y in words:
        residual = exact_score(counts, weights, beta) - y
        total = residual * residual * probability + total
    return total


def exact_gradient(words, weights, beta):
    """dL/dalpha and dL/dbeta by series of first order, as (heads, d) lists: d w / d alpha = w for w = e^alpha."""

    def slope(values, head, letter, step, build):
        varied = [list(row) for row in values]
        varied[head][letter] = Jet(values[head][letter], step)
        return exact_loss(words, *build(varied)).coefficients[1]

    cells = [[(h, j) for j in range(len(row))] for h, row in enumerate(beta)]
    d_alpha = [[slope(weights, h, j, weights[h][j], lambda w: (w, beta)) for h, j in row] for row in cells]
    d_beta = [[slope(beta, h, j, Fraction(1), lambda b: (weights, b)) for h, j in row] for row in cells]
    return d_alpha, d_beta


# --- float ----------------------------------------------------------------------------------------------------------


def whole_population(d, k, longest):
    """Counts and labels of a data set that *is* the population for lengths uniform on 1..longest.

    Every word of length m stands in it d^(longest - m) times, so each length has the same weight.
    """
    rows = [
        (counts, number * d ** (longest - m))
        for m in range(1, longest + 1)
        for counts, number in words_of_length(d, m).items()
    ]
    counts = np.repeat([row for row, _ in rows], [number for _, number in rows], axis=0)
    return counts, np.where(counts[:, :k].any(axis=1), 1, -1).astype(np.int8)
