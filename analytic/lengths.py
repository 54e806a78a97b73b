r"""Laws of the word length m in {1, 2, ...}.

The letters of a word are independent and uniform given its length, so the length enters every population
quantity through a few numbers: the generating function G(z) = E[z^m], its integral G1(z) = E[z^m / m], and
E1 = E[1/m] = G1(1), E2 = E[1/m^2]. They are closed forms where one exists; the finite laws, and E2 of the
Poisson law, are sums of positive terms, accurate to rounding; a `Custom` law is cut where what is left out
of every one of them is below 1e-15.
"""

import math
import re
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import special

from .errors import InputError, choice, real, shown, whole
from .polynomials import derivative, multiply, product, roots_in_unit_interval

LEFT_OUT = 1e-15  # a sum that leaves out more than this is refused
MAX_SUPPORT = 1 << 24  # lengths summed one by one
LONGEST = 2**31 - 1  # letters in a word
FORMS = {
    "geometric": "geometric:P",
    "fixed": "fixed:M",
    "uniform": "uniform:A:B",
    "poisson": "poisson:RATE",
    "table": "table:FILE",
}


def _unit(z):
    """``z`` as a float array in [0, 1]."""
    z = np.asarray(z, dtype=np.float64)
    if not np.all((z >= 0) & (z <= 1)):
        raise InputError(f"z must lie in [0, 1], not {z!r}")
    return z


def _power_sum(z, lengths, weights):
    """sum of weights * z^lengths for every z."""
    z = _unit(z)
    return np.reshape([(weights * value**lengths).sum() for value in z.ravel()], z.shape)


class LengthLaw:
    """A law of the word length; its methods take and return arrays. A subclass gives what the table lists.

    ==========================  =============================================================
    ``text``                    how users write it; ``parse_law(law.text) == law``
    ``pmf(m)``                  P(length = m)
    ``tail(m)``                 P(length > m)
    ``log_tail(m)``             its natural logarithm, also where the tail itself underflows
    ``pgf(z)``                  G(z) = E[z^m], 0 <= z <= 1
    ``pgf_over_m(z)``           G1(z) = E[z^m / m]
    ``pgf_over_power(z, n)``    E[z^m / m^n], n = 0, 1, 2, ...
    ``mean``                    E[m]
    ``mean_inverse``            E1 = E[1/m]
    ``mean_inverse_square``     E2 = E[1/m^2]
    ``sample(rng, size)``       independent lengths, int64
    ==========================  =============================================================
    """

    def log_tail(self, m):
        """Natural logarithm of ``tail(m)`` (-inf where no word is longer)."""
        with np.errstate(divide="ignore"):
            return np.log(self.tail(m))

    def pgf_over_power(self, z, power):
        """E[z^m / m^power]; from power 2 on the sum over ``support()``, a relative error below 1e-15."""
        if power < 2:
            return self.pgf_over_m(z) if power else self.pgf(z)
        lengths, probabilities = self.support()
        return _power_sum(z, lengths, probabilities / lengths.astype(np.float64) ** power)

    @property
    def mean_inverse(self):
        return float(self.pgf_over_m(1.0))

    @cached_property
    def mean_inverse_square(self):
        return float(self.pgf_over_power(1.0, 2))

    def quantile_length(self, delta):
        """Smallest M >= 1 with P(length > M) <= delta, for 0 < delta < 1.

        >>> Geometric(1 / 49).quantile_length(1e-3)
        336
        """
        delta = real("delta", delta, 0, 1, open_low=True, open_high=True)
        high = 1
        while self.tail(high) > delta:
            high *= 2
        low = high // 2  # tail(low) > delta, or low = 0
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.tail(middle) > delta else (low, middle)
        return high

    def support(self, left_out=1e-18):
        """Lengths with positive probability that carry all but ``left_out`` of the mass.

        Returns
        -------
        lengths : (n,) int64, ascending
        probabilities : (n,) their probabilities
        """
        longest = self.quantile_length(left_out)
        if longest > MAX_SUPPORT:
            raise InputError(f"length {self.text} needs sums over {longest} lengths, more than {MAX_SUPPORT}")
        lengths = np.arange(1, longest + 1)
        probabilities = self.pmf(lengths)
        return lengths[probabilities > 0], probabilities[probabilities > 0]


@dataclass(frozen=True)
class Geometric(LengthLaw):
    """P(m) = p (1-p)^(m-1), 0 < p <= 1; p = 1 means words of one letter.

    G(z) = p z / (1 - (1-p) z), G1(z) = -p ln(1 - (1-p) z) / (1-p), E1 = -p ln p / (1-p), and
    E2 = p Li2(1-p) / (1-p) with the dilogarithm Li2.

    >>> round(Geometric(1 / 49).mean_inverse, 10)
    0.0810795895
    """

    p: float

    def __post_init__(self):
        p = real(f"P of length {FORMS['geometric']}", self.p, 0, 1, open_low=True)
        object.__setattr__(self, "p", p)

    @property
    def text(self):
        return f"geometric:{self.p!r}"

    def pmf(self, m):
        m = np.asarray(m)
        return np.where(m >= 1, self.p * self.tail(m - 1), 0.0)

    def tail(self, m):
        return np.exp(self.log_tail(m))

    def log_tail(self, m):
        m = np.maximum(np.asarray(m), 0)
        if self.p == 1:
            return np.where(m > 0, -np.inf, 0.0)
        return m * np.log1p(-self.p)

    def pgf(self, z):
        z = _unit(z)
        return self.p * z / ((1 - z) + self.p * z)

    def pgf_over_m(self, z):
        z = _unit(z)
        failure = 1 - self.p
        if failure == 0:
            return 1.0 * z
        # the two forms of ln(1 - (1-p) z): each is accurate where the other cancels
        with np.errstate(divide="ignore"):
            log = np.where(failure * z < 0.5, np.log1p(-failure * z), np.log((1 - z) + self.p * z))
        return -self.p * log / failure

    @property
    def mean(self):
        return 1 / self.p

    def pgf_over_power(self, z, power):
        if power != 2 or self.p > 0.5:  # few lengths to sum, and 1 - (1-p) z would lose digits
            return super().pgf_over_power(z, power)
        z = _unit(z)  # Li2(x) = spence(1 - x)
        return self.p * special.spence((1 - z) + self.p * z) / (1 - self.p)

    def sample(self, rng, size):
        return rng.geometric(self.p, size).astype(np.int64)


@dataclass(frozen=True)
class Fixed(LengthLaw):
    """Every word has m letters: G(z) = z^m."""

    m: int

    def __post_init__(self):
        object.__setattr__(self, "m", whole(f"M of length {FORMS['fixed']}", self.m, high=LONGEST))

    @property
    def text(self):
        return f"fixed:{self.m}"

    def pmf(self, m):
        return np.where(np.asarray(m) == self.m, 1.0, 0.0)

    def tail(self, m):
        return np.where(np.asarray(m) < self.m, 1.0, 0.0)

    def pgf(self, z):
        return _unit(z) ** self.m

    def pgf_over_m(self, z):
        return _unit(z) ** self.m / self.m

    @property
    def mean(self):
        return float(self.m)

    def sample(self, rng, size):
        return np.full(size, self.m, dtype=np.int64)

    def support(self, left_out=1e-18):
        return np.array([self.m]), np.array([1.0])


@dataclass(frozen=True)
class ShiftedPoisson(LengthLaw):
    """m - 1 is Poisson with the given rate > 0.

    G(z) = z e^(-rate (1-z)), E1 = (1 - e^-rate) / rate, G1(z) = (e^(-rate (1-z)) - e^-rate) / rate;
    E2 = e^-rate (Ei(rate) - ln rate - gamma) / rate, summed instead (the closed form cancels).
    """

    rate: float

    def __post_init__(self):
        rate = real(f"RATE of length {FORMS['poisson']}", self.rate, 0, 1e7, open_low=True)
        object.__setattr__(self, "rate", rate)

    @property
    def text(self):
        return f"poisson:{self.rate!r}"

    def _log_pmf(self, n):
        """ln P(Poisson = n); for large n from Stirling's remainder, so that nothing large cancels."""
        n = np.asarray(n, dtype=np.float64)
        big = np.maximum(n, 16)
        stirling = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * big**2)) / big**2) / big**2) / big
        away = self.rate - big
        large = big * np.log1p(away / big) - away - stirling - np.log(2 * math.pi * big) / 2
        few = np.minimum(n, 16)
        small = special.xlogy(few, self.rate) - self.rate - special.gammaln(few + 1)
        return np.where(n >= 16, large, small)

    def pmf(self, m):
        m = np.asarray(m)
        return np.where(m >= 1, np.exp(self._log_pmf(np.maximum(m - 1, 0))), 0.0)

    def tail(self, m):
        m = np.asarray(m)
        return np.where(m >= 1, special.gammainc(np.maximum(m, 1), self.rate), 1.0)

    def log_tail(self, m):
        m = np.asarray(m)
        # P(Poisson >= m) = P(Poisson = m) (1 + rate/(m+1) + ...), a hypergeometric series
        beyond = m > self.rate + 1
        far = np.where(beyond, m, self.rate + 2)
        series = self._log_pmf(far) + np.log(special.hyp1f1(1.0, far + 1.0, self.rate))
        return np.where(beyond, series, super().log_tail(np.minimum(m, self.rate + 1)))

    def pgf(self, z):
        z = _unit(z)
        return z * np.exp(-self.rate * (1 - z))

    def pgf_over_m(self, z):
        z = _unit(z)
        return np.exp(-self.rate * (1 - z)) * -np.expm1(-self.rate * z) / self.rate

    @property
    def mean(self):
        return 1 + self.rate

    def sample(self, rng, size):
        return 1 + rng.poisson(self.rate, size).astype(np.int64)


class _Summed(LengthLaw):
    """A law given by ``lengths`` (ascending) and ``probabilities``; every expectation is their sum."""

    @cached_property
    def _above(self):
        """P(length > lengths[i - 1]) for i = 0..n, summed from the far end; index 0 is 1."""
        return np.append(np.cumsum(self.probabilities[::-1])[::-1], 0.0)

    def pmf(self, m):
        m = np.asarray(m)
        i = np.minimum(np.searchsorted(self.lengths, m), len(self.lengths) - 1)
        return np.where(self.lengths[i] == m, self.probabilities[i], 0.0)

    def tail(self, m):
        return np.minimum(self._above[np.searchsorted(self.lengths, m, side="right")], 1.0)

    def pgf(self, z):
        z = _unit(z)
        return np.where(z == 1, 1.0, _power_sum(z, self.lengths, self.probabilities))

    def pgf_over_m(self, z):
        return _power_sum(z, self.lengths, self.probabilities / self.lengths)

    @cached_property
    def mean(self):
        return float((self.probabilities * self.lengths).sum())

    def sample(self, rng, size):
        cumulative = np.cumsum(self.probabilities)
        u = rng.random(size) * cumulative[-1]  # below it: random numbers are at most 1 - 2^-53
        return self.lengths[np.searchsorted(cumulative, u, side="right")]

    def support(self, left_out=1e-18):
        return self.lengths, self.probabilities


@dataclass(frozen=True)
class Uniform(_Summed):
    """Every length in {a, ..., b} equally likely: G(z) = z^a (1 - z^n) / (n (1-z)), n = b - a + 1.

    >>> Uniform(1, 4).mean
    2.5
    """

    a: int
    b: int

    def __post_init__(self):
        a = whole(f"A of length {FORMS['uniform']}", self.a)
        b = whole(f"B of length {FORMS['uniform']}", self.b, a, a + MAX_SUPPORT - 1)
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "b", b)

    @property
    def text(self):
        return f"uniform:{self.a}:{self.b}"

    @cached_property
    def lengths(self):
        return np.arange(self.a, self.b + 1)

    @cached_property
    def probabilities(self):
        return np.full(self.b - self.a + 1, 1 / (self.b - self.a + 1))

    def tail(self, m):
        return np.clip((self.b - np.asarray(m)) / (self.b - self.a + 1), 0.0, 1.0)

    def pgf(self, z):
        z = _unit(z)
        n = self.b - self.a + 1
        distance = np.where(z == 1, 1.0, 1 - z)
        with np.errstate(divide="ignore"):
            power = n * np.log1p(-distance)
        return np.where(z == 1, 1.0, z**self.a * -np.expm1(power) / (n * distance))

    def sample(self, rng, size):
        return rng.integers(self.a, self.b + 1, size)


@dataclass(frozen=True, eq=False)
class Table(_Summed):
    """Any finite law: distinct ``lengths`` >= 1 with their ``probabilities``, whose sum is 1 within 1e-6.

    >>> Table([2, 5], [0.5, 0.5]).text
    'table:2=0.5,5=0.5'
    """

    lengths: np.ndarray
    probabilities: np.ndarray

    def __post_init__(self):
        lengths = np.asarray(self.lengths)
        probabilities = np.asarray(self.probabilities, dtype=np.float64)
        if lengths.ndim != 1 or lengths.shape != probabilities.shape or not lengths.size:
            raise InputError(
                f"length table needs as many probabilities as lengths, at least one, "
                f"not shapes {lengths.shape} and {probabilities.shape}"
            )
        for m in lengths:
            whole("m in the length table", m, 1, 1 << 52)
        for probability in probabilities:
            real("probability in the length table", float(probability), 0, 1)
        order = np.argsort(lengths)
        lengths, probabilities = lengths[order].astype(np.int64), probabilities[order]
        twice = lengths[:-1][np.diff(lengths) == 0]
        if twice.size:
            raise InputError(f"m in the length table must be distinct, not {twice[0]} twice")
        total = math.fsum(probabilities)
        if abs(total - 1) > 1e-6:
            raise InputError(f"probabilities in the length table must sum to 1, not {total!r}")
        if abs(total - 1) > 1e-15:  # so that dividing twice changes nothing
            probabilities = probabilities / total
        keep = probabilities > 0
        object.__setattr__(self, "lengths", lengths[keep])
        object.__setattr__(self, "probabilities", probabilities[keep])

    def __eq__(self, other):
        return isinstance(other, Table) and self.text == other.text

    def __hash__(self):
        return hash(self.text)

    @property
    def text(self):
        pairs = zip(self.lengths.tolist(), self.probabilities.tolist(), strict=True)
        return "table:" + ",".join(f"{m}={probability!r}" for m, probability in pairs)


@dataclass(frozen=True)
class Custom(_Summed):
    """A law given by ``pmf_function(m)``, vectorised over m >= 1, and ``tail_bound(m)`` >= P(length > m).

    Lengths up to a cut-off M are summed, the first power of two with tail_bound(M) <= 1e-17, at most 2^20.
    G1, E1 and E2 then leave out at most tail_bound(M) / M, and G(z) at most z^M tail_bound(M); more than
    1e-15 is an `InputError`. ``tail`` is an upper bound, above the truth by at most tail_bound(M).

    >>> law = Custom(lambda m: 0.5**m, lambda m: 0.5**m, name="halving")
    >>> float(law.pgf(0.5))
    0.3333333333333333
    """

    pmf_function: object
    tail_bound: object
    name: str = "custom"
    lengths: np.ndarray = field(init=False, repr=False, compare=False)
    probabilities: np.ndarray = field(init=False, repr=False, compare=False)
    left_out: float = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        cut = 64
        while self.tail_bound(cut) > 1e-17 and cut < 1 << 20:
            cut *= 2
        left_out = real(f"tail_bound({cut}) of length {self.name}", float(self.tail_bound(cut)), 0, 1)
        lengths = np.arange(1, cut + 1)
        probabilities = np.asarray(self.pmf_function(lengths), dtype=np.float64)
        allowed = np.all((probabilities >= 0) & np.isfinite(probabilities))
        if probabilities.shape != lengths.shape or not allowed:
            raise InputError(f"pmf of length {self.name} must give one finite value >= 0 per length")
        total = probabilities.sum()
        if not total - 1e-9 <= 1 <= total + left_out + 1e-9:
            raise InputError(f"pmf of length {self.name} must sum to 1, not {total!r} with <= {left_out!r} after {cut}")
        self._check(left_out / cut)
        keep = probabilities > 0
        object.__setattr__(self, "lengths", lengths[keep])
        object.__setattr__(self, "probabilities", probabilities[keep])
        object.__setattr__(self, "left_out", left_out)

    def _check(self, error):
        if error > LEFT_OUT:
            raise InputError(f"tail_bound of length {self.name} is too heavy: the sums would leave out {error:.1e}")

    @property
    def text(self):
        return f"custom:{self.name}"

    def tail(self, m):
        m, longest = np.asarray(m), self.lengths[-1]
        beyond = np.reshape([self.tail_bound(int(i)) for i in np.maximum(m, longest).ravel()], m.shape)
        return np.where(m >= longest, beyond, np.minimum(super().tail(m) + self.left_out, 1.0))

    def pgf(self, z):
        z = _unit(z)
        self._check(np.max(np.where(z < 1, z, 0.0), initial=0.0) ** self.lengths[-1] * self.left_out)
        return super().pgf(z)

    @cached_property
    def mean(self):
        cut = int(self.lengths[-1])
        # E[m; m > cut], octave by octave
        beyond = sum(2.0 ** (i + 1) * cut * self.tail_bound(cut << i) for i in range(100))
        mean = float((self.probabilities * self.lengths).sum())
        if beyond > 1e-9 * mean:
            raise InputError(
                f"tail_bound of length {self.name} is too heavy for the mean: {beyond:.1e} may be left out"
            )
        return mean

    def support(self, left_out=1e-18):
        keep = self._above[1:] + self.left_out > left_out
        return self.lengths[: keep.sum() + 1], self.probabilities[: keep.sum() + 1]


def length_law(law):
    """``law`` if it is a `LengthLaw`, or the one that a text names."""
    if isinstance(law, str):
        return parse_law(law)
    if not isinstance(law, LengthLaw):
        raise InputError(f"law must be a length law or a text such as 'geometric:0.02', not {shown(law)}")
    return law


def parse_law(text):
    """Return the law that ``text`` names: geometric:P, fixed:M, uniform:A:B, poisson:RATE or table:FILE.

    FILE is a CSV of rows ``m,probability`` (a header row is allowed). The law of a table keeps the rows, not
    the file: its ``text`` is ``table:m=probability,...``, which is understood here too. Raises `InputError`.

    >>> parse_law("uniform:2:9")
    Uniform(a=2, b=9)
    """
    name, *arguments = str(text).split(":")
    choice("length", name, tuple(FORMS))
    if name == "table":
        return _read_table(str(text).partition(":")[2])
    if len(arguments) != FORMS[name].count(":"):
        raise InputError(f"length must be written {FORMS[name]}, not {text!r}")
    number, kind = (int, "a whole number") if name in ("fixed", "uniform") else (float, "a number")
    try:
        values = [number(argument) for argument in arguments]
    except ValueError:
        raise InputError(f"length {FORMS[name]} needs {kind} after each colon, not {text!r}") from None
    laws = {"geometric": Geometric, "fixed": Fixed, "uniform": Uniform, "poisson": ShiftedPoisson}
    return laws[name](*values)


def _read_table(source):
    if re.fullmatch(r"\s*\d+=[^=]+(,\s*\d+=[^=]+)*", source):
        rows = [(i + 1, pair.split("=")) for i, pair in enumerate(source.split(","))]
    else:
        try:
            with open(source, encoding="utf-8") as file:
                lines = [(i + 1, line.strip()) for i, line in enumerate(file)]
        except (OSError, ValueError) as error:  # a name with a null character and a file that is not text too
            reason = getattr(error, "strerror", None) or "not a text file"
            raise InputError(f"length table:FILE cannot read {source!r}: {reason}") from None
        rows = [(i, line.split(",")) for i, line in lines if line]
        if rows and len(rows[0][1]) == 2 and all(cell.strip().isidentifier() for cell in rows[0][1]):
            rows = rows[1:]  # a header such as m,prob
    lengths, probabilities = [], []
    for i, cells in rows:
        try:
            m, probability = cells
            lengths.append(int(m))
            probabilities.append(float(probability))
        except ValueError:
            found = ",".join(cells)
            raise InputError(f"length table {source!r}, row {i}: expected m,probability, not {found!r}") from None
    return Table(lengths, probabilities)


def balanced_geometric(language, d):
    """The geometric law for which P(y = +1) is closest to 1/2, with the largest such p.

    For OR and occurrence p = k/(d-k), or 1 if k > d/2. For any language q(p) = sum_U sign_U G_p(1 - |U|/d) is
    a rational function of p, since G_p(1 - i/d) = p (d-i) / (i + p (d-i)). The candidates are the roots of
    q = 1/2 and of q' = 0 in (0, 1), isolated in integer arithmetic, and p = 1. (As p -> 0 every letter
    occurs, and q -> 0 or 1: never the closest.)

    >>> from analytic.languages import any_of
    >>> balanced_geometric(any_of(1), 50) == Geometric(1 / 49)
    True
    """
    language.check_alphabet(d)
    coefficient = [0] * (language.k + 1)
    for mask, sign in language.signs.items():
        coefficient[mask.bit_count()] += sign
    sizes = [i for i in range(1, language.k + 1) if coefficient[i]]
    denominator = product([(i, d - i) for i in sizes])  # lowest power of p first
    numerator = [coefficient[0] * c for c in denominator]
    for i in sizes:
        term = product([(0, coefficient[i] * (d - i))] + [(j, d - j) for j in sizes if j != i])
        numerator = [a + b for a, b in zip(numerator, term, strict=True)]
    half = [2 * a - b for a, b in zip(numerator, denominator, strict=True)]
    first, second = (
        multiply(derivative(numerator), denominator),
        multiply(numerator, derivative(denominator)),
    )
    slope = [a - b for a, b in zip(first, second, strict=True)]
    candidates = roots_in_unit_interval(half) + roots_in_unit_interval(slope) + [1.0]

    def miss(p):
        pgf = Geometric(p).pgf
        return abs(sum(c * pgf(1 - i / d) for i, c in enumerate(coefficient) if c) - 0.5)

    best = min(map(miss, candidates))
    return Geometric(max(p for p in candidates if miss(p) <= best + 1e-14))
