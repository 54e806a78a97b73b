"""Claims of the theory, each with evidence decided by code.

    >>> import proofs_check
    >>> report = proofs_check.prove("phase1.*")
    >>> [result.status for result in report.claims]
    ['proved', 'proved', 'proved']
"""

_PUBLIC = {
    "Claim": "claims",
    "Domain": "domain",
    "InputError": "domain",
    "Report": "report",
    "claim": "claims",
    "claims": None,
    "get": "report",
    "prove": "report",
    "three_phase_plan": "theorem",
}

__all__ = list(_PUBLIC)


def __getattr__(name):  # PEP 562: importing the package loads neither sympy nor numba
    from importlib import import_module

    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if _PUBLIC[name] is None:
        return import_module(f"{__name__}.{name}")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
