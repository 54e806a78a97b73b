"""exp(x) and log(1 + x), compiled so that loops over them vectorise (numba's own call the C library per value).

With k the whole number nearest to x / ln 2 and r = x - k ln 2, so |r| <= (ln 2)/2:

    e^x = 2^k e^r,    e^r = 1 + r + r^2 q(r) within 2e-17, q of degree 9.

Adding 1.5 2^52 rounds to a whole number, because floats there lie 1 apart, and leaves k in the lowest bits. ln 2 is
cut in two: k times the first part is exact, so r is as good as with twice the digits. 2^k is made of two factors whose
exponents are written into their bits: k may then reach beyond the exponents of a float, and results down to the
smallest positive one come out rounded. Less than one unit in the last place off, and exp(0) = 1.

With 1 + x = 2^k (1 + f), 1 + f between sqrt(1/2) and sqrt(2), and s = f / (2 + f):

    log(1 + x) = k ln 2 + f - s (f - s^2 p(s^2)) + (what rounding 1 + x lost) / (1 + x),    p of degree 6.

Less than one unit off as well, and log1p(x) = x where x is tiny.

Callers in other files get these functions inlined, and their cache on disk does not see edits here.
"""

import math

import numpy as np

from ..jit import jit

LOWEST, HIGHEST = -746.0, 710.0  # e^x is 0 below and infinite above
NORMAL = -709.0  # there k = -1023, the exponent of 0
PER_LN2 = 1.4426950408889634
LN2_FIRST, LN2_REST = 0.6931471804855391, 7.440617110012397e-11  # the first has 32 bits, k at most 11
ROUND = 1.5 * 2.0**52
EXPONENT, BIAS = np.uint64(52), np.uint64(1023)  # the bit at which a float's exponent starts; what is added to it
ROUND_BITS = np.float64(ROUND).view(np.uint64) - np.uint64(2) * BIAS
C2, C3, C4, C5, C6 = (  # of q: close to 1/n!, interpolated where the error of e^r then swings most evenly
    0.5000000000000016,
    0.16666666666666677,
    0.041666666666500526,
    0.008333333333320557,
    0.0013888888950298695,
)
C7, C8, C9, C10, C11 = (
    0.0001984126988849669,
    2.4801486975901924e-05,
    2.7557242067180346e-06,
    2.763222657233778e-07,
    2.5109719945450414e-08,
)


ONE = np.float64(1.0).view(np.uint64)
ROOT_HALF = np.float64(0.7071067811865476).view(np.uint64)
MANTISSA = np.uint64((1 << 52) - 1)
WHOLE = 2.0**52  # a float there holds a whole number in its mantissa
WHOLE_BITS = np.float64(WHOLE).view(np.uint64)
P0, P1, P2, P3 = 0.666666666666667, 0.3999999999989889, 0.28571428626253836, 0.22222211089379496  # about 2/(2n + 3)
P4, P5, P6 = 0.1818289243253687, 0.15331611722055008, 0.14617807153417325


@jit(fastmath={"contract"})  # never "reassoc": it would cancel the rounding by addition
def _reduced(x):
    """e^r, and k + 1.5 2^52, for x = k ln 2 + r."""
    rounded = x * PER_LN2 + ROUND
    k = rounded - ROUND
    r = x - k * LN2_FIRST - k * LN2_REST
    r2 = r * r
    even = C2 + r2 * (C4 + r2 * (C6 + r2 * (C8 + r2 * C10)))
    odd = C3 + r2 * (C5 + r2 * (C7 + r2 * (C9 + r2 * C11)))
    return 1.0 + r * (1.0 + r * (even + r * odd)), rounded


@jit
def exp(x):
    """e^x of a float64; 0 below -745.2, inf above 709.79, nan of nan.

    Examples
    --------
    >>> exp(0.0), exp(1.0), exp(-1000.0)
    (1.0, 2.718281828459045, 0.0)
    """
    x = LOWEST if x < LOWEST else x
    p, rounded = _reduced(HIGHEST if x > HIGHEST else x)
    both = np.float64(rounded).view(np.uint64) - ROUND_BITS
    half = np.uint64(both >> np.uint64(1))
    return p * _power(half) * _power(both - half)


@jit
def exp_inside(x):
    """e^x for x <= 709, or nan: a little faster than `exp`, as it gives 0 already below -709.

    No product underflows on the way to that 0, which would cost some processors several times as long.
    """
    p, rounded = _reduced(NORMAL if x < NORMAL else x)
    return p * _power(np.uint64(np.float64(rounded).view(np.uint64) - ROUND_BITS) - BIAS)


@jit
def _power(k):
    """2^(k - 1023) for k from 1 to 2046, 0 for k = 0."""
    return np.uint64(k << EXPONENT).view(np.float64)


@jit(fastmath={"contract"})
def log1p(x):
    """log(1 + x) of a float64 x >= 0; inf of inf, nan of nan.

    Examples
    --------
    >>> log1p(0.0), log1p(1.0), log1p(1e-300)
    (0.0, 0.6931471805599453, 1e-300)
    """
    u = 1.0 + x
    lost = (x - (u - 1.0)) / u
    bits = np.uint64(np.float64(u).view(np.uint64) + (ONE - ROOT_HALF))
    k = np.uint64((bits >> EXPONENT) | WHOLE_BITS).view(np.float64) - (WHOLE + 1023.0)
    f = np.uint64((bits & MANTISSA) + ROOT_HALF).view(np.float64) - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = P0 + z * (P1 + z * (P2 + z * (P3 + z * (P4 + z * (P5 + z * P6)))))
    y = k * LN2_FIRST + (f - (s * (f - z * p) - (k * LN2_REST + lost)))
    return y if x < math.inf else x
