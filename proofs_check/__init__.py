"""Claims of the theory, each with evidence decided by code.

    >>> import proofs_check
    >>> report = proofs_check.prove("phase1.*")
    >>> [result.status for result in report.claims]
    ['proved', 'proved', 'proved']
"""

_PUBLIC = {
    "claims": ("Claim", "Step", "claim"),
    "decide": ("agrees", "below", "close", "exact", "holds", "identity", "on_side", "positive", "sampled", "squares"),
    "domain": ("LETTERS", "LONGER", "Case", "Domain", "Each", "Length", "Real", "Whole"),
    "letters": ("exact_gradient", "exact_loss", "exact_score", "expectation", "population", "share_moment",
                "whole_population"),
    "report": ("Report", "get", "prove"),
    "theorem": ("ThreePhases", "three_phase_plan"),
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = list(_HOME)


def __getattr__(name):  # PEP 562: importing the package loads neither sympy nor numba
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__():
    return sorted({*globals(), *__all__})
