"""Domains of claims, machine-checked: which parameters a claim has and what they may be.

One domain serves three kinds of numbers. `Domain.check` turns a user's values into a float case, `Domain.sample`
draws a small exact case (fractions), `Domain.symbols` makes the symbolic case a proof works with. A formula is plain
arithmetic on a `Case`, so the same function gives floats, fractions and sympy expressions.
"""

import math
from fractions import Fraction
from types import SimpleNamespace

import sympy
from sympy.core.function import AppliedUndef

from analytic.errors import InputError, real, whole
from analytic.lengths import LengthLaw, parse_law
from analytic.moments import ShareMoments

SMALL_D, SMALL_M = 4, 4  # sampled instances: at most 4 letters, words of at most 4 letters
REJECTIONS = 1000


class Case(SimpleNamespace):
    """The parameters of one case as attributes, with what follows from d, k and the length law.

    D = d - k, and by name everything in `ShareMoments`: kappa, G, G1, q, excess, E1, E2, X2, X3, M1, M2, M3.
    """

    @property
    def moments(self):
        """`ShareMoments` in this case's numbers."""
        kappa, law = self.k / self.d, self.length
        return ShareMoments(
            d=self.d,
            k=self.k,
            law=law,
            kappa=kappa,
            G=law.pgf(1 - kappa),
            G1=law.pgf_over_m(1 - kappa),
            E1=law.mean_inverse,
            E2=law.mean_inverse_square,
        )

    def __getattr__(self, name):  # of what was not given
        if name == "D":
            return self.d - self.k
        if {"d", "k", "length"} <= set(vars(self)) and not name.startswith("_"):
            return getattr(self.moments, name)
        raise AttributeError(f"case has no {name}, only {', '.join(vars(self))}")

    def having(self, **values):
        """This case with further or other parameters."""
        return Case(**{**vars(self), **values})

    def described(self):
        """The parameters as text, for counterexamples."""
        return {name: str(value) for name, value in vars(self).items()}


class ExactLaw:
    """A length law with finitely many lengths and exact probabilities: {length: Fraction}."""

    def __init__(self, probabilities):
        self.probabilities = dict(probabilities)

    def __repr__(self):
        return "table " + ", ".join(f"{m}: {p}" for m, p in self.probabilities.items())

    def mean_of(self, function):
        """E[function(m)]."""
        return sum(p * function(m) for m, p in self.probabilities.items())

    def tail(self, m):
        return sum(p for length, p in self.probabilities.items() if length > m)

    def pgf(self, z):
        return self.mean_of(lambda m: z**m)

    def pgf_over_m(self, z):
        return self.mean_of(lambda m: z**m / m)

    @property
    def mean_inverse(self):
        return self.mean_of(lambda m: Fraction(1, m))

    @property
    def mean_inverse_square(self):
        return self.mean_of(lambda m: Fraction(1, m * m))


_G, _G1 = (sympy.Function(name, positive=True) for name in ("G", "G_1"))


class SymbolicLaw:
    """Any length law: E1, E2, G(z) and G1(z) are symbols."""

    mean_inverse, mean_inverse_square = sympy.symbols("E_1 E_2", positive=True)

    def __repr__(self):
        return "any"

    def pgf(self, z):
        return _G(sympy.cancel(z))

    def pgf_over_m(self, z):
        return _G1(sympy.cancel(z))


def ceiling(x):
    """Smallest whole number that is at least x."""
    return sympy.ceiling(x) if isinstance(x, sympy.Basic) else math.ceil(x)


def positive_part(x):
    """max(x, 0)."""
    return sympy.Max(x, 0) if isinstance(x, sympy.Basic) else max(x, 0)


class GivenLength:
    """Every word has the length ``m``, a symbol; what holds for each length holds for every law."""

    def __init__(self, m):
        self.mean_inverse, self.mean_inverse_square = 1 / m, 1 / m**2
        self._m = m

    def pgf(self, z):
        return z**self._m

    def pgf_over_m(self, z):
        return z**self._m / self._m


class Whole:
    """A whole number from ``low``, below the parameter named ``below`` if one is given."""

    def __init__(self, low, below=None):
        self.low, self.below = low, below

    def check(self, name, value, case):
        return whole(name, value, self.low, getattr(case, self.below) - 1 if self.below else None)

    def sample(self, rng, case):
        return Fraction(rng.randint(self.low, int(getattr(case, self.below)) - 1 if self.below else SMALL_D))

    def symbol(self, name):
        return sympy.Symbol(name, integer=True, positive=self.low > 0 or None)  # None: not known

    def outside(self, name):
        """(text, parameter just outside) of each limit."""
        yield f"{name} >= {self.low}", _Drawn(lambda rng, case: Fraction(self.low - 1))
        if self.below:
            yield f"{name} < {self.below}", _Drawn(lambda rng, case: getattr(case, self.below) + rng.randint(0, 1))


class Real:
    """A number in the open interval (low, high)."""

    def __init__(self, low=None, high=None):
        self.low, self.high = low, high

    def check(self, name, value, case):
        limits = {"low": self.low, "open_low": True} if self.low is not None else {}
        if self.high is not None:
            limits |= {"high": self.high, "open_high": True}
        return real(name, value, **limits)

    def sample(self, rng, case):
        low = -4 if self.low is None else self.low
        high = low + 8 if self.high is None else self.high
        return Fraction(low) + (high - low) * Fraction(rng.randint(1, 47), 48)

    def symbol(self, name):
        positive = True if self.low is not None and self.low >= 0 else None
        return sympy.Symbol(name, real=True, positive=positive)

    def outside(self, name):
        """(text, parameter outside) of each limit."""
        for sign, limit, relation in ((-1, self.low, ">"), (1, self.high, "<")):
            if limit is not None:
                yield f"{name} {relation} {limit}", _Drawn(_away(limit, sign))


def _away(limit, sign):
    """Draws fractions from ``limit`` on in the direction ``sign``, the limit itself among them."""
    return lambda rng, case: Fraction(limit) + sign * Fraction(rng.randint(0, 47), 12)


class _Drawn:
    """A parameter that is only drawn: one whose limit was taken away."""

    def __init__(self, sample):
        self.sample = sample

    def outside(self, name):
        return ()


class Each:
    """One value for each of as many things as the parameter named ``count`` says."""

    def __init__(self, count, one):
        self.count, self.one = count, one

    def check(self, name, value, case):
        count = getattr(case, self.count)
        if not isinstance(value, list | tuple) or len(value) != count:
            raise InputError(f"{name} must be a list of {count} numbers, one for each of {self.count}, not {value!r}")
        return [self.one.check(name, v, case) for v in value]

    def sample(self, rng, case):
        return [self.one.sample(rng, case) for _ in range(int(getattr(case, self.count)))]

    def outside(self, name):
        for text, outside in self.one.outside(f"each {name}"):
            yield text, Each(self.count, outside)


class Length:
    """A length law, or its text as `analytic.lengths.parse_law` reads it."""

    def check(self, name, value, case):
        law = parse_law(value) if isinstance(value, str) else value
        if not isinstance(law, LengthLaw):
            raise InputError(f"{name} must be a length law or its text, such as 'fixed:10', not {value!r}")
        return law

    def sample(self, rng, case):
        lengths = sorted(rng.sample(range(1, SMALL_M + 1), rng.randint(1, 3)))
        weights = [rng.randint(1, 5) for _ in lengths]
        return ExactLaw({m: Fraction(w, sum(weights)) for m, w in zip(lengths, weights, strict=True)})

    def symbol(self, name):
        return SymbolicLaw()

    def outside(self, name):
        return ()


class Domain:
    """Parameters by name, each `Whole`, `Real` or `Length`; later ones may refer to earlier ones.

    >>> Domain(d=Whole(2), k=Whole(1, below="d")).check(d=3, k=3)
    Traceback (most recent call last):
    analytic.errors.InputError: k must be a whole number from 1 to 2, not 3
    """

    def __init__(self, **parameters):
        self.parameters = parameters
        self.hypotheses = {}

    def having(self, **parameters):
        """This domain with further parameters."""
        domain = Domain(**{**self.parameters, **parameters})
        domain.hypotheses = dict(self.hypotheses)
        return domain

    def where(self, text, holds):
        """This domain with a hypothesis, a test of the case."""
        domain = self.having()
        domain.hypotheses[text] = holds
        return domain

    def without(self, text):
        """The complement of one hypothesis, the others kept: where the claim must fail if the hypothesis is needed."""
        domain = self.having()
        holds = domain.hypotheses.pop(text)
        return domain.where(f"not: {text}", lambda case: not holds(case))

    def beyond(self):
        """(text of a limit, this domain with values outside that limit alone), for every limit of a parameter."""
        for name, parameter in self.parameters.items():
            for text, outside in parameter.outside(name):
                yield text, self.having(**{name: outside})

    def check(self, **values):
        """The case of a user's values, or `InputError`."""
        if set(values) != set(self.parameters):
            raise InputError(f"parameters must be {', '.join(self.parameters)}, not {', '.join(values) or 'none'}")
        case = Case()
        for name, parameter in self.parameters.items():
            setattr(case, name, parameter.check(name, values[name], case))
        for text, holds in self.hypotheses.items():
            if not holds(case):
                shown = ", ".join(f"{name} = {value}" for name, value in case.described().items())
                raise InputError(f"the claim needs: {text}; not so for {shown}")
        return case

    def sample(self, rng):
        """A small exact case."""
        for _ in range(REJECTIONS):
            case = Case()
            for name, parameter in self.parameters.items():
                setattr(case, name, parameter.sample(rng, case))
            if all(holds(case) for holds in self.hypotheses.values()):
                return case
        raise ValueError(f"no sampled case satisfies {' and '.join(self.hypotheses)}")

    def symbols(self):
        """The symbolic case."""
        return Case(**{name: parameter.symbol(name) for name, parameter in self.parameters.items()})

    def shifted(self, expression):
        """``expression`` of the symbolic case in nonnegative symbols.

        Whole parameters start at 0, a number in (0, 1) becomes 1 / (1 + odds), values of G are free and positive.
        """
        case, moved = self.symbols(), {}
        for name, parameter in self.parameters.items():
            if isinstance(parameter, Real) and parameter.low is not None and parameter.high is not None:
                odds = sympy.Symbol(f"{name}'", positive=True)
                moved[getattr(case, name)] = parameter.low + (parameter.high - parameter.low) / (1 + odds)
            if isinstance(parameter, Whole):
                moved[getattr(case, name)] = parameter.low + sympy.Symbol(f"{name}'", nonnegative=True)
                if parameter.below:
                    over = 1 + sympy.Symbol(f"{parameter.below}'", nonnegative=True)
                    moved[getattr(case, parameter.below)] = moved[getattr(case, name)] + over
        laws = {law: sympy.Symbol(law.func.__name__, positive=True) for law in expression.atoms(AppliedUndef)}
        return expression.subs(laws).subs(moved)


def substituted(expression, case):
    """``expression`` of a symbolic case with the values of an exact ``case`` in place."""
    values = {name: sympy.Rational(value) for name, value in vars(case).items() if isinstance(value, Fraction | int)}
    expression = expression.subs({s: values[s.name] for s in expression.free_symbols if s.name in values})
    if hasattr(case, "length"):
        law, symbol = case.length, SymbolicLaw
        expression = expression.subs(
            {symbol.mean_inverse: law.mean_inverse, symbol.mean_inverse_square: law.mean_inverse_square}
        )
        expression = expression.replace(_G, law.pgf).replace(_G1, law.pgf_over_m)
    return expression


LETTERS = Domain(d=Whole(2), k=Whole(1, below="d"), length=Length())  # OR of the first k of d letters
TWO_LETTERS = "some words have two letters or more"
LONGER = LETTERS.where(TWO_LETTERS, lambda case: case.E1 < 1)
