r"""Moments of the letter shares p_j = n_j / m of a word of m independent uniform letters.

Given the length and that no letter of U occurs, the counts of the other d' = d - |U| letters are multinomial.
With falling factorials, E[n_1^(b1) n_2^(b2) ...] = m^(b1 + b2 + ...) / d'^(b1 + b2 + ...), so every mixed moment

    E[p_1^a1 p_2^a2 ... 1{no letter of U}] = sum over b_i <= a_i of prod S(a_i, b_i) d'^-|b| E[z^m m^(|b|) / m^|a|],

z = 1 - |U|/d, S the Stirling numbers of the second kind, is a combination of E[z^m / m^n], n < |a|. Labels
come from 1{y = +1} = sum_U sign_U 1{no letter of U}.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from .errors import InputError, broadcasting, choice, whole
from .lengths import Geometric, LengthLaw, length_law


@dataclass(frozen=True)
class ShareMoments:
    """What the closed forms for OR (k = 1: occurrence) need; every field broadcasts over d, k and the law.

    x is the share of target letters in the word, kappa = k/d.

    ====================  ===================================================================
    ``d, k, law``         as given, ``law`` the length law or an array of them
    ``q``                 P(y = +1) = 1 - G(1 - kappa)
    ``excess``            q - kappa = P(y = +1) - E[x] >= 0, 0 for words of one letter
    ``G``, ``G1``         G(1 - kappa) = P(y = -1), and E[(1 - kappa)^m / m]
    ``E1``, ``E2``        E[1/m], E[1/m^2]
    ``X1``, ``X2``        E[x] = kappa; E[x^2] = kappa^2 (1 - E1) + kappa E1
    ``X3``                E[x^3] = kappa^3 (1 - 3 E1 + 2 E2) + 3 kappa^2 (E1 - E2) + kappa E2
    ``M1``, ``M2``        E[x (1-x)] = kappa (1 - kappa) (1 - E1); E[x^2 (1-x)] = X2 - X3
    ``M3``                E[x (1-x) (1-2x)] = M1 - 2 M2
    ====================  ===================================================================
    """

    d: np.ndarray
    k: np.ndarray
    law: object
    kappa: np.ndarray
    G: np.ndarray
    G1: np.ndarray
    E1: np.ndarray
    E2: np.ndarray

    @property
    def q(self):
        return 1 - self.G

    @property
    def excess(self):
        return (self.d - self.k) / self.d - self.G

    @property
    def X1(self):
        return self.kappa

    @property
    def X2(self):
        return self.kappa**2 * (1 - self.E1) + self.kappa * self.E1

    @property
    def X3(self):
        third = self.kappa**3 * (1 - 3 * self.E1 + 2 * self.E2)
        return third + 3 * self.kappa**2 * (self.E1 - self.E2) + self.kappa * self.E2

    @property
    def M1(self):
        return self.kappa * (1 - self.kappa) * (1 - self.E1)

    @property
    def M2(self):
        # X2 - X3 = kappa (1 - kappa) (E1 - E2 + kappa (1 - 3 E1 + 2 E2)), without the cancellation
        return self.kappa * (1 - self.kappa) * (self.E1 - self.E2 + self.kappa * (1 - 3 * self.E1 + 2 * self.E2))

    @property
    def M3(self):
        return self.M1 - 2 * self.M2


@broadcasting
def share_moments(d, k=1, law=None):
    """Return the `ShareMoments` of OR over ``k`` of ``d`` letters.

    Parameters
    ----------
    d, k : whole numbers or arrays of them, 1 <= k < d
    law : a `LengthLaw` or a text such as "fixed:5", an array of them, or None for the geometric law that balances
        the labels best (p = k/(d-k), or 1 if k > d/2); broadcasts with d and k

    Examples
    --------
    >>> float(share_moments(50).E1.round(10))
    0.0810795895
    """
    d, k = check_alphabet(d, k)
    if law is None:
        laws = np.frompyfunc(lambda d, k: Geometric(min(k / (d - k), 1.0)), 2, 1)(d, k)
    else:
        laws = np.frompyfunc(length_law, 1, 1)(np.asarray(law, dtype=object))
    if isinstance(laws, LengthLaw):
        z = (d - k) / d
        numbers = laws.pgf(z), laws.pgf_over_m(z), laws.mean_inverse, laws.mean_inverse_square
    else:

        def of_one(d, k, law):
            z = (d - k) / d
            return law.pgf(z), law.pgf_over_m(z), law.mean_inverse, law.mean_inverse_square

        numbers = np.frompyfunc(of_one, 3, 4)(d, k, np.asarray(laws, dtype=object))
    return ShareMoments(d, k, laws, k / d, *(np.asarray(number, dtype=np.float64) for number in numbers))


def check_alphabet(d, k):
    """Return ``d`` and ``k`` as int64 arrays with 1 <= k < d, or raise `InputError`."""
    d, k = np.asarray(d), np.asarray(k)
    for name, values in (("d", d), ("targets", k)):
        if values.dtype.kind not in "iu":
            raise InputError(f"{name} must be a whole number, not {values.tolist()!r}")
    wrong = ~((k >= 1) & (k < d))
    if wrong.any():
        d_bad, k_bad = (np.broadcast_to(values, wrong.shape)[wrong][0] for values in (d, k))
        raise InputError(f"targets must be from 1 to d - 1 (and d at least 2), not {k_bad} with d = {d_bad}")
    return d.astype(np.int64), k.astype(np.int64)


def letter_moment(language, d, law, powers, label=None):
    """E[prod_j p_j^powers[j]], or E[prod_j p_j^powers[j] 1{y = label}].

    Parameters
    ----------
    language : `Language` that gives the label
    d : alphabet size
    law : `LengthLaw`
    powers : {letter (0-based): power >= 1}; {} for the moment 1
    label : None, +1 or -1

    Examples
    --------
    >>> from analytic.languages import any_of
    >>> from analytic.lengths import Fixed
    >>> float(letter_moment(any_of(1), 2, Fixed(2), {0: 1, 1: 1}))  # words ab, ba: 1/4 each
    0.125
    >>> float(letter_moment(any_of(1), 2, Fixed(2), {1: 2}, label=-1))  # the word bb
    0.25
    """
    language.check_alphabet(d)
    law = length_law(law)
    choice("label", label, (None, 1, -1))
    for letter, power in powers.items():
        whole("letter", letter, 0, d - 1)
        whole("power", power, 1, len(_STIRLING_SECOND) - 1)
    if label is None:
        return _moment_without(0, d, law, powers.values())
    position = {letter: i for i, letter in enumerate(language.letters)}
    mask = sum(1 << position[letter] for letter in powers if letter in position)
    positive = sum(
        sign * _moment_without(absent.bit_count(), d, law, powers.values())
        for absent, sign in language.signs.items()
        if not absent & mask
    )
    return positive if label == 1 else _moment_without(0, d, law, powers.values()) - positive


def _moment_without(absent, d, law, powers):
    """E[prod p^power 1{none of ``absent`` other letters}]; see the head of this file."""
    if absent == d:
        return 0.0
    powers = tuple(powers)
    order = sum(powers)
    coefficient = [0.0] * (order + 1)  # of m^j in sum_b prod S(a, b) m^(|b|) / (d - absent)^|b|
    for parts in product(*(range(1, power + 1) for power in powers)):
        weight = math.prod(_STIRLING_SECOND[a][b] for a, b in zip(powers, parts, strict=True))
        for j, falling in enumerate(_falling_factorial(sum(parts))):
            coefficient[j] += weight * falling / (d - absent) ** sum(parts)
    z = 1 - absent / d
    return sum(c * law.pgf_over_power(z, order - j) for j, c in enumerate(coefficient) if c)


# S(n, b), the number of partitions of n things into b blocks; shares up to the power 4 suffice
_STIRLING_SECOND = ((1,), (0, 1), (0, 1, 1), (0, 1, 3, 1), (0, 1, 7, 6, 1))


def _falling_factorial(n):
    """Coefficients of m (m-1) ... (m-n+1), lowest power first."""
    coefficients = [1]
    for i in range(n):
        shifted = [0, *coefficients]
        coefficients = [a - i * b for a, b in zip(shifted, [*coefficients, 0], strict=True)]
    return coefficients
