"""Infinite data: milliseconds of the set-up of every task, and of 400 joint steps.

The set-up is what a first call with no step takes, with nothing remembered from calls before it, and all compiled.
"""

import functools
import math
import pkgutil
from importlib import import_module
from time import perf_counter

import analytic
from analytic import icl_bigram
from analytic.even_pairs import symmetric_path
from analytic.population import population_path
from analytic.slr import line_path

from .report import Table
from .timing import progress

TITLE = "Population dynamics"
STEPS, REPEATS = 400, 3


def _letters(d):
    return lambda steps: population_path(d, 1, None, [("AO", steps, 1.0, 1.0)])


def _even_pairs(max_length):
    return lambda steps: symmetric_path(max_length, 1.0, 1.0, steps)


def _icl_bigram(d, pairs):
    return lambda steps: icl_bigram.population_path(d, pairs, [("AO", steps, 5.0, 5.0)])


def _slr(d, tokens):
    return lambda steps: line_path(d, tokens, 0.1, [("AO", steps, 0.01, 0.01)])


CASES = {
    **{f"occurrence, d = {d}": _letters(d) for d in (50, 1_000, 10_000)},
    **{f"even pairs, L_max = {length}": _even_pairs(length) for length in (10, 16, 100)},
    **{f"ICL-bigram, d = {d}, T = {pairs}": _icl_bigram(d, pairs) for d, pairs in ((50, 6), (1_000, 20))},
    **{f"SLR, d = {d}, L = {tokens}": _slr(d, tokens) for d, tokens in ((50, 10), (200, 20))},
}


def forget():
    """Empty every cache of results in `analytic`."""
    for found in pkgutil.iter_modules(analytic.__path__, "analytic."):
        for value in vars(import_module(found.name)).values():
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()


def case(name, path):
    progress(name)
    path(1)  # compiled
    set_up = steps = math.inf
    for _ in range(REPEATS):
        forget()
        start = perf_counter()
        path(0)
        ready = perf_counter()
        path(STEPS)
        set_up, steps = min(set_up, ready - start), min(steps, perf_counter() - ready)
    return {"case": name, "set_up_milliseconds": 1e3 * set_up, "steps_milliseconds": 1e3 * steps}


def measure(quick=False):
    cases = [case(name, path) for name, path in CASES.items() if not (quick and "10000" in name)]
    return {"steps": STEPS, "cases": cases}


def shown(result):
    rows = [(row["case"], f"{row['set_up_milliseconds']:.2f}", f"{row['steps_milliseconds']:.2f}")
            for row in result["cases"]]
    return [Table("Milliseconds.", ("infinite data", "set-up", f"{result['steps']} steps"), rows)]
