"""The exponential function, compiled so that loops over it vectorise (numba's own calls the C library per value).

With k the whole number nearest to x / ln 2 and r = x - k ln 2, so |r| <= (ln 2)/2:

    e^x = 2^k e^r,    e^r = 1 + r + r^2 q(r) within 2e-17, q of degree 9.

Adding 1.5 2^52 rounds to a whole number, because floats there lie 1 apart, and leaves k in the lowest bits. ln 2 is
cut in two: k times the first part is exact, so r is as good as with twice the digits. 2^k is made of two factors whose
exponents are written into their bits: k may then reach beyond the exponents of a float, and results down to the
smallest positive one come out rounded. At most 0.9 units in the last place off, and exp(0) = 1.

Callers in other files get this function inlined, and their cache on disk does not see edits here.
"""

import numpy as np

from ..jit import jit

LOWEST, HIGHEST = -746.0, 710.0  # the result is 0 below and infinite above
PER_LN2 = 1.4426950408889634
LN2_FIRST, LN2_REST = 0.6931471804855391, 7.440617110012397e-11  # the first has 32 bits, k at most 11
ROUND = 1.5 * 2.0**52
EXPONENT = np.uint64(52)  # the bit at which the exponent of a float starts; it is stored plus 1023
ROUND_BITS = np.float64(ROUND).view(np.uint64) - np.uint64(2 * 1023)
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


@jit(fastmath={"contract"})  # never "reassoc": it would cancel the rounding by addition
def exp(x):
    """e^x of a float64; 0 below -745.2, inf above 709.79, nan of nan.

    Examples
    --------
    >>> exp(0.0), exp(1.0), exp(-1000.0)
    (1.0, 2.718281828459045, 0.0)
    """
    x = LOWEST if x < LOWEST else x
    x = HIGHEST if x > HIGHEST else x
    rounded = x * PER_LN2 + ROUND
    k = rounded - ROUND
    r = x - k * LN2_FIRST - k * LN2_REST
    q = C9 + r * (C10 + r * C11)
    q = C6 + r * (C7 + r * (C8 + r * q))
    q = C3 + r * (C4 + r * (C5 + r * q))
    p = 1.0 + r * (1.0 + r * (C2 + r * q))
    both = np.float64(rounded).view(np.uint64) - ROUND_BITS
    half = np.uint64(both >> np.uint64(1))
    return p * _power(half) * _power(both - half)


@jit
def _power(k):
    """2^(k - 1023), for k from 1 to 2046."""
    return np.uint64(k << EXPONENT).view(np.float64)
