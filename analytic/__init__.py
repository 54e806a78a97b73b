"""The mathematics of the letter model: closed forms, bounds, infinite data, gradients. Arrays in, arrays out.

Names are loaded on first use, so that ``import analytic`` costs nothing; `__all__` lists them.

"""

_HOME = {
    "InputError": "errors",
    "Language": "languages",
    "any_of": "languages",
    "all_of": "languages",
    "parse_language": "languages",
    "LengthLaw": "lengths",
    "Geometric": "lengths",
    "Fixed": "lengths",
    "Uniform": "lengths",
    "ShiftedPoisson": "lengths",
    "Table": "lengths",
    "Custom": "lengths",
    "parse_law": "lengths",
    "balanced_geometric": "lengths",
}

__all__ = list(_HOME)

def __getattr__(name):
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module 'analytic' has no attribute {name!r}")
    value = getattr(import_module(f"analytic.{_HOME[name]}"), name)
    globals()[name] = value
    return value

def __dir__():
    return sorted({*globals(), *__all__})
