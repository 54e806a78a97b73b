"""Rigorous enclosures: inequalities over whole boxes of parameters, by ball arithmetic (python-flint, extra ``rigor``).

A ball holds every value that a formula can take while its parameters run through a box, rounding included. The box is
cut in halves until the sign of the margin is beyond doubt on each piece: a certified step covers infinitely many cases,
and what a formula says at a point is never taken for what it says nearby.
"""

from contextlib import contextmanager
from fractions import Fraction
from functools import cached_property
from math import comb

from analytic.shares import AttentionMoments

from .claims import Step
from .domain import Case

BITS = 128  # working precision of the balls
PIECES = 20_000  # pieces of a box that are tried


@contextmanager
def precision(bits=BITS):
    """Work with balls of ``bits`` bits, and put flint's global precision back."""
    import flint

    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield flint
    finally:
        flint.ctx.prec = before


def ball(low, high=None):
    """The ball around [low, high], or around the point ``low``; both exact (whole, fraction or float)."""
    import flint

    def point(x):
        x = Fraction(x)  # exact: whole numbers, fractions, floats
        return flint.arb(flint.fmpq(x.numerator, x.denominator))

    return point(low) if high is None else point(low).union(point(high))


class Slope:
    """A ball over a box with the balls of its partial derivatives: carries them through arithmetic, exactly.

    By the mean value theorem f(x) lies in f(middle) + sum_i slope_i (x_i - middle_i), an enclosure whose excess falls
    with the square of the width of the box, where that of the ball itself falls with the width.
    """

    def __init__(self, value, slopes):
        self.value, self.slopes = value, slopes

    def _function(self, value, derivative):
        return Slope(value, tuple(derivative * s for s in self.slopes))

    def __add__(self, other):
        if isinstance(other, Slope):
            return Slope(self.value + other.value, tuple(a + b for a, b in zip(self.slopes, other.slopes, strict=True)))
        return Slope(self.value + other, self.slopes)

    def __mul__(self, other):
        if isinstance(other, Slope):
            pairs = zip(self.slopes, other.slopes, strict=True)
            return Slope(self.value * other.value, tuple(a * other.value + self.value * b for a, b in pairs))
        return Slope(self.value * other, tuple(a * other for a in self.slopes))

    def __truediv__(self, other):
        return self * (1 / other)

    def __rtruediv__(self, other):
        inverse = 1 / self.value
        return self._function(inverse, -inverse * inverse) * other

    def __pow__(self, n):
        return self._function(self.value**n, n * self.value ** (n - 1)) if n else ball(1)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    __radd__, __rmul__ = __add__, __mul__

    def exp(self):
        return self._function(self.value.exp(), self.value.exp())

    def log(self):
        return self._function(self.value.log(), 1 / self.value)

    def sqrt(self):
        root = self.value.sqrt()
        return self._function(root, 1 / (2 * root))

    def erfc(self):
        return self._function(self.value.erfc(), -2 * (-(self.value**2)).exp() / self.value.pi().sqrt())

    def tanh(self):
        value = self.value.tanh()
        return self._function(value, 1 - value**2)

    def polylog(self, order):
        """Li_2: its derivative is -ln(1 - x)/x."""
        return self._function(self.value.polylog(order), -(1 - self.value).log() / self.value)


def enclosed(text, margin, box, pieces=PIECES):
    """margin(case) > 0 at every point of ``box`` {name: (low, high)}; the case holds a number for every name.

    The slack is the least lower bound of the margin. False with a point at which the margin is surely not positive;
    undecided when ``pieces`` pieces do not settle it.
    """
    start = {name: (Fraction(low), Fraction(high)) for name, (low, high) in box.items()}
    open_, least = [start], float("inf")
    with precision():
        for _ in range(pieces):
            if not open_:
                return Step(text, "certified", True, least)
            piece = open_.pop()
            middle = {name: sum(ends) / 2 for name, ends in piece.items()}
            at_middle = margin(Case(**{name: ball(x) for name, x in middle.items()}))
            if at_middle <= 0:
                shown = {name: str(float(x)) for name, x in middle.items()} | {"margin": str(at_middle)}
                return Step(text, "certified", False, counterexample=shown)
            lowest = _lower_bound(margin, piece, middle, at_middle)
            if lowest > 0:
                least = min(least, lowest)
                continue
            name = max(piece, key=lambda name: (piece[name][1] - piece[name][0]) / (start[name][1] - start[name][0]))
            low, high = piece[name]
            open_ += [{**piece, name: (low, middle[name])}, {**piece, name: (middle[name], high)}]
    return Step(text, "certified", None)


def _lower_bound(margin, piece, middle, at_middle):
    """The better of the ball's own lower bound and that of the mean value theorem (-inf when neither exists)."""
    balls = {name: ball(*ends) for name, ends in piece.items()}
    units = [tuple(ball(i == j) for i in range(len(balls))) for j in range(len(balls))]
    found = margin(Case(**{name: Slope(b, unit) for (name, b), unit in zip(balls.items(), units, strict=True)}))
    mean = at_middle
    for slope, name in zip(found.slopes, balls, strict=True):
        mean += slope * (balls[name] - ball(middle[name]))
    return max((float(x.lower()) for x in (found.value, mean) if x.is_finite()), default=-float("inf"))


def contained(text, value, low, high):
    """A single value, a ball, lies in [low, high]; the slack is its distance to the nearer end."""
    with precision():
        held = bool(value > ball(low) and value < ball(high))
        shown = None if held else {"value": str(value), "claimed": f"in [{float(low)}, {float(high)}]"}
        outside = value < ball(low) or value > ball(high)
        slack = float(min(value - ball(low), ball(high) - value, key=float)) if held else None
        return Step(text, "certified", True if held else False if outside else None, slack, counterexample=shown)


class BallLaw:
    """A length law with finitely many lengths, {length: probability}; its expectations are balls."""

    def __init__(self, probabilities):
        self.probabilities = {m: ball(p) for m, p in probabilities.items()}

    def mean_of(self, function):
        """E[function(m)]."""
        return sum(p * function(m) for m, p in self.probabilities.items())

    def pgf(self, z):
        return self.mean_of(lambda m: z**m)

    def pgf_over_m(self, z):
        return self.mean_of(lambda m: z**m / m)

    @cached_property
    def mean_inverse(self):
        return self.mean_of(lambda m: 1 / ball(m))

    @cached_property
    def mean_inverse_square(self):
        return self.mean_of(lambda m: 1 / ball(m * m))


class BallGeometric:
    """P(m) = p (1 - p)^(m-1) for a ball p inside (0, 1)."""

    def __init__(self, p):
        self.p = p

    def pgf(self, z):
        return self.p * z / (1 - (1 - self.p) * z)

    def pgf_over_m(self, z):
        return -self.p * (1 - (1 - self.p) * z).log() / (1 - self.p)

    @cached_property
    def mean_inverse(self):
        return -self.p * self.p.log() / (1 - self.p)

    @cached_property
    def mean_inverse_square(self):
        return self.p * (1 - self.p).polylog(2) / (1 - self.p)


def ball_attention(c):
    """`AttentionMoments` in balls: finite `BallLaw` ``c.length``, balls ``c.d`` and ``c.ratio`` = e^g, a whole ``c.k``.

    A = u/(u + o) with u = e^g, o = (m - n)/n. The variance is a mean over pairs of words: nothing cancels in it.
    """
    u, kappa = c.ratio, c.k / c.d
    by_odds, target, other = {}, ball(0), c.length.pgf_over_m(1 - kappa)
    for m, probability in c.length.probabilities.items():
        for n in range(1, m + 1):
            p, r = probability * comb(m, n) * kappa**n * (1 - kappa) ** (m - n), m - n
            by_odds[Fraction(r, n)] = by_odds.get(Fraction(r, n), 0) + p
            target += p * n * u**2 / (n * u + r) ** 2
            other += p * r / (n * u + r) ** 2
    negative = c.length.pgf(1 - kappa)
    words = [(p / (1 - negative), ball(odds), 1 / (u + ball(odds))) for odds, p in by_odds.items()]
    rest = sum(p * odds * share for p, odds, share in words)
    pairs = ((first, second) for i, first in enumerate(words) for second in words[:i])
    variance = sum((p1 * p2 * (u * (o1 - o2) * s1 * s2) ** 2 for (p1, o1, s1), (p2, o2, s2) in pairs), ball(0))
    odds_square = sum(p * odds**2 for p, odds, _ in words)
    return AttentionMoments(1 - negative, negative, 1 - rest, rest, variance, odds_square, target, other)
