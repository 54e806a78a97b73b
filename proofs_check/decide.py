"""Deciders: each takes two sides and decides by computation; the `Step` it returns carries the kind it earned."""

import random

import numpy as np
import sympy

from .claims import Step
from .domain import Case, substituted

TRIALS = 40  # instances tried for a counterexample when a symbolic step does not come out
ROUNDING = 1e-12  # of the largest value: float64 sums of up to 1e4 terms, with room
FALSE_ALARM = 1e-6  # probability that a true claim fails one comparison with sampled values


def _draw(symbol, rng):
    """A random rational that the assumptions of ``symbol`` allow."""
    if symbol.is_integer:
        return sympy.Integer(rng.randint(1 if symbol.is_positive else 0, 5))
    low = 1 if symbol.is_positive else 0 if symbol.is_nonnegative else -20
    return sympy.Rational(rng.randint(low, 20), rng.randint(1, 7))


def _counterexample(expression, fails, domain, trials=TRIALS):
    """An instance of ``domain`` (any values where it is silent) at which ``fails(value)``, or None."""
    rng = random.Random(str(sorted(expression.free_symbols, key=str)))
    for _ in range(trials):
        case = domain.sample(rng) if domain else Case()
        value = substituted(expression, case)
        free = {symbol: _draw(symbol, rng) for symbol in sorted(value.free_symbols, key=str)}
        value = _settled(value.subs(free))
        if value is not None and fails(value):
            return case.described() | {str(s): str(v) for s, v in free.items()} | {"difference": str(value)}
    return None


def _settled(value):
    """A number whose sign is beyond doubt: a rational as it is, another to 40 digits unless they all cancel."""
    if value.is_Rational:
        return value
    if not (value.is_number and value.is_finite):
        return None
    digits = value.evalf(40)
    return digits if abs(digits) > 1e-20 else None


def identity(text, left, right, domain=None):
    """left = right: the numerator of left - right, a polynomial in its symbols, expands to 0."""
    difference = sympy.sympify(left) - sympy.sympify(right)
    # a false identity mostly fails at the first point, long before its normal form is known
    if not (witness := _counterexample(difference, lambda value: value != 0, domain, trials=1)):
        numerator, _ = sympy.together(difference).as_numer_denom()
        if sympy.expand(numerator) == 0:
            return Step(text, "proved", True)
        witness = _counterexample(difference, lambda value: value != 0, domain)
    return Step(text, "proved", False if witness else None, counterexample=witness)


def positive(text, expression, domain=None, strict=True):
    """expression > 0 (>= 0 if not ``strict``) for all values its symbols' assumptions (and ``domain``) allow.

    Decided on the coefficients: numerator and denominator are polynomials in symbols assumed positive or nonnegative
    whose coefficients all have one sign; strictly positive when a monomial of positive symbols is among them.
    """
    expression = sympy.sympify(expression)
    shifted = domain.shifted(expression) if domain else expression
    numerator, denominator = sympy.together(shifted).as_numer_denom()
    sign = _sign(numerator, strict)
    if sign and sign == _sign(denominator, True):
        return Step(text, "proved", True)
    witness = _counterexample(expression, (lambda v: v <= 0) if strict else (lambda v: v < 0), domain)
    return Step(text, "proved", False if witness else None, counterexample=witness)


def squares(text, expression, parts):
    """Steps that show expression >= 0: it is sum coefficient * base^2 over ``parts``, coefficients nonnegative."""
    yield identity(text, expression, sum(coefficient * base**2 for coefficient, base in parts))
    for i, (coefficient, _) in enumerate(parts, 1):
        yield positive(f"{text}: coefficient {i} >= 0", coefficient, strict=False)


def _sign(polynomial, strict):
    """+1 or -1 when the coefficients decide the sign, else 0."""
    polynomial = sympy.expand(polynomial)
    symbols = sorted(polynomial.free_symbols, key=str)
    if not all(symbol.is_nonnegative for symbol in symbols):
        return 0
    terms = sympy.Poly(polynomial, *symbols).terms() if symbols else [((), polynomial)]
    for sign in (1, -1):
        one_sign = all((sign * coefficient).is_nonnegative for _, coefficient in terms)
        sure = any(
            (sign * coefficient).is_positive
            and all(symbol.is_positive for symbol, power in zip(symbols, powers, strict=True) if power)
            for powers, coefficient in terms
        )
        if one_sign and (sure or not strict):
            return sign
    return 0


def exact(text, found, claimed, case):
    """Equality of exact numbers on one instance."""
    return holds(text, found == claimed, case, found=found, claimed=claimed)


def holds(text, condition, case, **shown):
    """A condition decided in exact arithmetic on one instance; ``shown`` values go into the counterexample."""
    witness = None if condition else case.described() | {name: str(value) for name, value in shown.items()}
    return Step(text, "enumerated", bool(condition), counterexample=witness)


def close(text, found, claimed, tolerance, case=None, scale=1.0):
    """Agreement up to rounding: max |found - claimed| / scale <= tolerance."""
    deviation = float(np.max(np.abs(np.asarray(found) - claimed) / scale))
    held = deviation <= tolerance  # False for nan
    witness = None if held else _shown(case, found, claimed)
    return Step(text, "simulated", held, deviation if np.isfinite(deviation) else None, tolerance, witness)


def agrees(text, found, claimed, case=None, alarm=0.0):
    """The simulator decides a yes-or-no question as claimed, in every run.

    ``alarm`` bounds the probability that a true claim fails; the step is undecided when it exceeds `FALSE_ALARM`.
    """
    held = bool(np.all(np.asarray(found) == claimed)) if alarm <= FALSE_ALARM else None
    return Step(text, "simulated", held, counterexample=_shown(case, found, claimed) if held is False else None)


def below(text, found, bound, case=None):
    """found <= bound, up to rounding; the slack is (bound - found) / |bound|, the smallest one: 0 is tight."""
    found, bound = np.asarray(found, dtype=float), np.asarray(bound, dtype=float)
    slack = float(np.min((bound - found) / np.abs(bound)))
    held = slack >= -ROUNDING  # False for nan
    witness = None if held else _shown(case, found, bound)
    return Step(text, "simulated", held, slack if np.isfinite(slack) else None, None, witness)


def sampled(text, samples, claimed, case=None):
    """The mean of independent ``samples`` is ``claimed``, by Student's t within its 1 - `FALSE_ALARM` quantile."""
    statistic, limit = student(samples, claimed)
    held = bool(abs(statistic) <= limit)
    witness = None if held else _shown(case, np.mean(samples), claimed)
    slack = float(abs(statistic)) if np.isfinite(statistic) else None
    return Step(text, "simulated", held, slack, limit, witness)


def proportion(text, count, trials, probability, case=None):
    """``count`` of ``trials`` independent events agrees with ``probability``: both binomial tails above the alarm."""
    from scipy.special import bdtr, bdtrc

    error = np.sqrt(max(probability * (1 - probability), 1 / trials) / trials)
    held = bool(min(bdtr(count, trials, probability), bdtrc(count - 1, trials, probability)) >= FALSE_ALARM / 2)
    deviation = float(abs(count / trials - probability))
    witness = None if held else _shown(case, count / trials, probability)
    return Step(text, "simulated", held, deviation / float(error), _normal_limit(), witness)


def no_oftener(text, count, trials, probability, case=None):
    """An event with at most ``probability`` happened ``count`` times: its upper binomial tail is above the alarm.

    The slack is 1 - frequency / probability: how loose the bound is.
    """
    from scipy.special import bdtrc

    held = count == 0 or probability >= 1 or bool(bdtrc(count - 1, trials, probability) >= FALSE_ALARM)
    witness = None if held else _shown(case, count / trials, probability)
    return Step(text, "simulated", held, 1 - count / trials / float(probability), None, witness)


def _normal_limit():
    """How many standard errors a normal value exceeds with probability `FALSE_ALARM`, on either side."""
    from scipy.special import ndtri

    return float(-ndtri(FALSE_ALARM / 2))


def on_side(text, samples, case=None):
    """The mean of independent ``samples`` is positive: Student's t above its quantile; undecided when too small."""
    statistic, limit = student(samples, 0.0)
    held = True if statistic > limit else False if statistic < -limit else None
    witness = _shown(case, np.mean(samples), "> 0") if held is False else None
    return Step(text, "simulated", held, counterexample=witness)


def student(samples, mean):
    """Student's t of ``samples`` against ``mean``, and its two-sided 1 - `FALSE_ALARM` quantile."""
    from scipy.special import stdtrit

    samples = np.asarray(samples, dtype=float)
    difference, error = samples.mean() - mean, samples.std(ddof=1) / np.sqrt(samples.size)
    statistic = difference / error if error else np.copysign(np.inf, difference) if difference else 0.0
    return statistic, float(stdtrit(samples.size - 1, 1 - FALSE_ALARM / 2))


def _shown(case, found, claimed):
    """A counterexample from the simulator: where, what it gave, and what the claim said."""
    place = case.described() if case else {}
    return place | {"found": _brief(found), "claimed": _brief(claimed)}


def _brief(values):
    return np.array2string(np.asarray(values), threshold=8, edgeitems=3)


