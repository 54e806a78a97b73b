"""What is wrong with an argument, in one line that names it."""

import functools
import inspect
import math
import numbers

import numpy as np


class InputError(ValueError):
    """An argument the user gave is not allowed; the message names it, its value and what is allowed."""


def shown(value, longest=80):
    """``repr`` of a text or another value, shortened in its middle to fit a line."""
    if isinstance(value, str):
        return repr(_shortened(value, longest))
    return _shortened(" ".join(repr(value).split()), longest)


def _shortened(text, longest):
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}...{text[-half:]}"


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


def reals(name, values):
    """Return ``values`` as a float64 array, or raise `InputError` unless they are real numbers (nan is one)."""
    array = _array(name, values)
    if array.dtype.kind not in "fiu" and not all(_is_real(value) for value in array.flat):
        raise InputError(f"{name} must be real numbers, not {shown(values)}")
    return array.astype(np.float64)


def _is_real(value):
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def broadcasting(function):
    """Have a function refuse arguments whose shapes do not broadcast, in one line that names them."""
    names = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args, **named):
        arguments = {**dict(zip(names, args, strict=False)), **named}
        shapes = {name: _array(name, value).shape for name, value in arguments.items()}
        try:
            np.broadcast_shapes(*shapes.values())
        except ValueError:
            arrays = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
            raise InputError(f"arguments must have shapes that broadcast, not {arrays}") from None
        return function(*args, **named)

    return checked


def _array(name, values):
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths
        raise InputError(f"{name} must be a number or an array, not {shown(values)}") from None


def rate(name, value):
    """Return a step size: finite and not negative (0 freezes the layer)."""
    return real(name, value, low=0.0)


def choice(name, value, allowed):
    """Return ``value`` if it is one of ``allowed``; the error names the nearest valid one."""
    if value not in allowed:
        hint = did_you_mean(value, allowed)
        raise InputError(f"{name} must be one of {', '.join(map(str, allowed))}, not {value!r}{hint}")
    return value


def did_you_mean(value, allowed):
    """The end of a message that names the nearest allowed name, if one is near; upper and lower case are alike.

    >>> did_you_mean("OCCURENCE", ["or", "occurrence"]), did_you_mean("x", ["or"])
    ("; did you mean 'occurrence'?", '')
    """
    from difflib import get_close_matches

    names = {str(name).lower(): str(name) for name in allowed}
    near = [names[name] for name in get_close_matches(str(value).lower(), names, n=1)]
    return f"; did you mean {near[0] if near[0].startswith('-') else repr(near[0])}?" if near else ""
