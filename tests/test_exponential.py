"""The compiled exp and log1p: right to the last place, at every size of argument, and vectorised."""

import math
import re
import struct

import mpmath
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.gradients.exponential import exp, exp_inside, log1p
from analytic.jit import jit

ULPS = 0.95  # 1/2 for the last rounding, 1/4 for that of r, the rest for the polynomial
SUBNORMAL_ULPS = 1.0  # a subnormal result is rounded twice
SMALLEST_NORMAL = 2.0**-1022


@jit
def exp_of_all(x, y):
    for i in range(x.size):
        y[i] = exp(x[i])


@jit(fastmath=True)
def exp_of_all_in_a_careless_loop(x, y):
    for i in range(x.size):
        y[i] = exp(x[i])


def values(x):
    y = np.empty_like(x)
    exp_of_all(x, y)
    return y


def compiled_again(function):
    """LLVM's code of a loop; of what comes from a cache it is not known."""
    fresh = numba.njit(error_model="numpy")(function.py_func)
    fresh(np.zeros(8), np.zeros(8))
    (code,) = fresh.inspect_llvm().values()
    return code


def error_in_ulps(x):
    y = float(exp(x))
    with mpmath.workdps(40):
        return float(abs(mpmath.exp(mpmath.mpf(x)) - mpmath.mpf(y)) / mpmath.mpf(math.ulp(y)))


def test_it_is_right_to_within_one_unit_in_the_last_place():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.uniform(-708, 709.7, 2000), rng.uniform(-1, 1, 2000), rng.normal(size=500) * 1e-9])
    assert max(map(error_in_ulps, points)) <= ULPS


def test_it_is_right_where_k_changes():
    """r is largest half-way between multiples of ln 2."""
    halves = (np.arange(-1020, 1023) + 0.5) * math.log(2)
    points = np.concatenate([halves, np.nextafter(halves, -np.inf), np.nextafter(halves, np.inf)])
    assert max(map(error_in_ulps, points)) <= ULPS


@given(st.floats(-745.0, 709.78))
def test_it_is_right_at_every_finite_result(x):
    assert error_in_ulps(x) <= (ULPS if exp(x) >= SMALLEST_NORMAL else SUBNORMAL_ULPS)


@given(st.binary(min_size=8, max_size=8))
def test_any_bits_give_what_the_library_gives(bits):
    x = struct.unpack("d", bits)[0]
    with np.errstate(over="ignore"):
        expected = float(np.exp(x))
    assert exp(x) == pytest.approx(expected, rel=4e-16, abs=5e-324, nan_ok=True)


@pytest.mark.parametrize("x, expected", [
    (0.0, 1.0), (-0.0, 1.0), (5e-324, 1.0), (math.inf, math.inf), (-math.inf, 0.0),
    (709.782712893384, 1.797693134862273e308), (709.79, math.inf), (710.5, math.inf), (1e308, math.inf),
    (-745.13, 5e-324), (-745.2, 0.0), (-746.5, 0.0), (-1e4, 0.0), (-1e308, 0.0), (-708.4, 2.21712e-308),
])
def test_ends_of_the_range(x, expected):
    assert exp(x) == pytest.approx(expected, rel=1e-4, abs=0.0)
    assert values(np.full(64, x)).tolist() == [exp(x)] * 64


def test_nan_stays_nan():
    assert math.isnan(exp(math.nan))
    assert np.isnan(values(np.full(64, math.nan))).all()


def test_results_never_fall_and_are_never_negative():
    x = np.linspace(-760.0, 720.0, 400_001)
    y = values(x)
    assert (np.diff(y[np.isfinite(y)]) >= 0).all() and (y >= 0).all()


def test_one_value_and_a_loop_give_the_same_bits_even_where_the_caller_allows_reordering():
    x = np.random.default_rng(1).uniform(-750.0, 712.0, 1003)
    careless = np.empty_like(x)
    exp_of_all_in_a_careless_loop(x, careless)
    assert values(x).tobytes() == np.array([exp(v) for v in x]).tobytes() == careless.tobytes()


def test_a_loop_over_it_in_another_file_is_vectorised():
    code = compiled_again(exp_of_all)
    assert re.search(r"fmul contract <\d+ x double>", code)
    assert "@exp(" not in code and "llvm.exp" not in code


@given(st.floats(-708.0, 709.0))
def test_the_faster_version_agrees_where_the_result_is_a_normal_number(x):
    assert exp_inside(x) == exp(x)


@pytest.mark.parametrize("x", [-709.0, -709.1, -745.0, -1e4, -1e308, -math.inf])
def test_the_faster_version_gives_zero_below(x):
    assert exp_inside(x) == 0.0 and math.isnan(exp_inside(math.nan))


# ---- log1p -----------------------------------------------------------------------------------------------------------


@jit
def log1p_of_all(x, y):
    for i in range(x.size):
        y[i] = log1p(x[i])


def log_error_in_ulps(x):
    y = float(log1p(x))
    with mpmath.workdps(340 if x < 1e-20 else 40):
        return float(abs(mpmath.log1p(mpmath.mpf(x)) - mpmath.mpf(y)) / mpmath.mpf(math.ulp(y)))


@given(st.floats(0.0, 1.7e308))
def test_log1p_is_right_at_every_positive_argument(x):
    assert log_error_in_ulps(x) <= ULPS


def test_log1p_is_right_where_it_changes_formula():
    rng = np.random.default_rng(2)
    powers = 2.0 ** np.arange(1, 80)[:, None] * np.array([[1.0, math.sqrt(0.5), math.sqrt(2.0)]]) - 1.0
    points = np.concatenate([powers.ravel(), rng.uniform(0, 3, 2000), 10.0 ** rng.uniform(-18, 18, 2000)])
    assert max(map(log_error_in_ulps, points)) <= ULPS


def test_log1p_of_tiny_arguments_and_at_the_ends():
    tiny = [0.0, 5e-324, 1e-300, 1e-17]
    assert [log1p(x) for x in tiny] == tiny
    assert log1p(math.inf) == math.inf and math.isnan(log1p(math.nan))


def test_a_loop_over_log1p_is_vectorised_and_has_the_same_bits():
    x = 10.0 ** np.random.default_rng(3).uniform(-20, 20, 1003)
    y = np.empty_like(x)
    log1p_of_all(x, y)
    assert y.tolist() == [log1p(v) for v in x]
    code = compiled_again(log1p_of_all)
    assert re.search(r"fdiv contract <\d+ x double>", code) and "@log" not in code and "llvm.log" not in code
