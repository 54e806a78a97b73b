"""What is wrong with an argument, in one line that names it."""

import math
import numbers

import numpy as np


class InputError(ValueError):
    """An argument the user gave is not allowed; the message names it, its value and what is allowed."""


def shown(text, longest=80):
    """``repr`` of a text, shortened in its middle to fit a line."""
    half = longest // 2
    return repr(text if len(text) <= longest else f"{text[:half]}...{text[-half:]}")


def whole(name, value, low=1, high=None):
    """Return ``value`` as an int in [low, high], or raise `InputError` naming ``name``."""
    ok = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not ok or value < low or (high is not None and value > high):
        allowed = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name} must be a whole number {allowed}, not {value!r}")
    return int(value)


def real(name, value, low=-math.inf, high=math.inf, open_low=False, open_high=False):
    """Return ``value`` as a finite float in the interval, or raise `InputError` naming ``name``."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and _is_finite(value)
    if ok:
        ok = (value > low if open_low else value >= low) and (value < high if open_high else value <= high)
    if not ok:
        left = "(" if open_low or low == -math.inf else "["
        right = ")" if open_high or high == math.inf else "]"
        raise InputError(f"{name} must be a finite number in {left}{low:g}, {high:g}{right}, not {value!r}")
    return float(value)


def _is_finite(value):
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond the largest float
        return False


def rate(name, value):
    """Return a step size: finite and not negative (0 freezes the layer)."""
    return real(name, value, low=0.0)


def choice(name, value, allowed):
    """Return ``value`` if it is one of ``allowed``; the error names the nearest valid one."""
    if value not in allowed:
        from difflib import get_close_matches

        near = get_close_matches(str(value), [str(a) for a in allowed], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"{name} must be one of {', '.join(map(str, allowed))}, not {value!r}{hint}")
    return value
