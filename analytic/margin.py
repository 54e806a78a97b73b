"""Hard-margin direction: the hyperplane through the origin that stays farthest from labelled points.

With signed points z_i = y_i a_i, the largest margin over all directions is, by duality, the distance from the origin to
the convex hull of the signed points:

    max over |w| = 1 of min_i z_i . w   =   min over lambda >= 0, sum lambda = 1, of |sum_i lambda_i z_i|,

and the best direction points to the nearest point of the hull (there is no intercept). Any lambda bounds the margin
from above and any w from below, so the two together certify themselves, and a lambda whose sum vanishes proves that no
direction separates the points.

Few points support the hull. Wolfe's algorithm (Finding the nearest point in a polytope, 1976; nonnegative least squares
on the least-distance problem makes the same moves) keeps independent points with positive lambda, adds the point that
their solution serves worst, moves to the nearest point of the plane through them, and leaves out those whose lambda
would turn negative on the way. The distance shrinks each time, until no point is served worse than the others. Only the
worst points are ever asked for, so that a set of points may also be given by a function that finds them.

In the plane through k points Z, lambda is a multiple of the solution of Z Z^T lambda = 1, and w of the shortest
solution of Z w = 1. From a QR factorisation of Z^T, w then has the same margin on all of them to rounding, however
small it is. (scipy's nnls stops at a gradient of 1e-11, which stands for the square of the margin.)
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from .errors import InputError

TOUCHING = 1e-12  # distances below this part of the largest point are rounding: not separable
AGREED = 1e-10  # of the margin: bounds from both sides closer than this are done, ...
ROUNDING = 1e-15  # ... or than this part of the largest point


@dataclass(frozen=True, eq=False)
class Margin:
    """A hard-margin direction and its certificate, or a proof that there is none.

    Attributes
    ----------
    separable : bool
    direction : (D,) float64 or None
        the unit vector w with the largest min_i y_i a_i . w; None when not separable
    margin : float
        that minimum over all points, evaluated: a lower bound of the largest margin; 0.0 when not separable
    gap : float
        upper bound minus ``margin``, for the upper bound |sum lambda z| of the multipliers
    support : (k,) int64
        which points carry the solution
    multipliers : (k,) float64
        their lambda: positive, sum 1. When not separable they are the witness: sum lambda_i y_i a_i is 0 to rounding
    violation : float
        |sum lambda z / bound - direction|, the bound being |sum lambda z|: 0 when multipliers and direction belong
        together; when not separable, |sum lambda z| itself
    """

    separable: bool
    direction: np.ndarray | None
    margin: float
    gap: float
    support: np.ndarray
    multipliers: np.ndarray
    violation: float


def hard_margin(points, labels):
    """The direction through the origin with the largest margin.

    w* = argmax over |w| = 1 of min_i y_i a_i . w.

    Parameters
    ----------
    points : (n, D)
        the a_i
    labels : (n,) of +1 and -1

    Returns
    -------
    Margin
        ``support`` indexes the points

    Raises
    ------
    InputError
        points are not a finite real matrix, or labels do not match

    Examples
    --------
    >>> found = hard_margin([[2.0, 0.0], [0.0, 1.0], [5.0, 5.0]], [1, 1, 1])
    >>> (found.direction * np.sqrt(5)).round(12), found.support
    (array([1., 2.]), array([0, 1]))
    >>> hard_margin([[1.0, 0.0], [2.0, 0.0]], [1, -1]).separable
    False
    """
    points, labels = np.asarray(points), np.asarray(labels)
    if points.dtype.kind not in "fiu" or points.ndim != 2 or not points.size or not np.isfinite(points).all():
        given = f"{points.dtype} of shape {points.shape}"
        raise InputError(f"points must be finite numbers of shape (n, D), at least one of each, not {given}")
    if labels.shape != points.shape[:1] or not np.isin(labels, (-1, 1)).all():
        raise InputError(f"labels must be {len(points)} values +1 or -1, one a point, not of shape {labels.shape}")
    signed = labels[:, None] * points.astype(np.float64)
    exponent = np.frexp(np.abs(signed).max())[1]  # squares of scaled points neither overflow nor vanish
    signed = np.ldexp(signed, -exponent)

    def worst(direction):
        margins = signed @ direction
        key = int(np.argmin(margins))
        return key, signed[key], float(margins[key])

    found = hard_margin_by(worst, signed.mean(axis=0), float(np.abs(signed).max()))
    lengths = ("margin", "gap") if found.separable else ("margin", "gap", "violation")
    return replace(found, **{name: float(np.ldexp(getattr(found, name), exponent)) for name in lengths})


def hard_margin_by(worst, start, size):
    """The same for points that a function finds.

    Parameters
    ----------
    worst : function
        of a direction w, gives a key (a whole number), the signed point z and the margin z . w of a point for which
        this is least
    start : (D,)
        any direction to begin with
    size : float
        largest entry of any point: what rounding is measured by

    Returns
    -------
    Margin
        ``support`` holds keys
    """
    key, point, margin = worst(np.asarray(start, dtype=float))
    keys, points, multipliers = [key], point[None], np.ones(1)
    bound = float(np.linalg.norm(point))
    direction = point / bound if bound else point
    while bound > TOUCHING * size:
        key, point, margin = worst(direction)
        if bound - margin <= max(AGREED * bound, ROUNDING * size) or key in keys:
            break
        keys, points, multipliers = [*keys, key], np.vstack([points, point]), np.append(multipliers, 0.0)
        while ((target := _of_plane(points, size)[0]) <= 0).any():
            falling = target <= 0
            steps = multipliers[falling] / (multipliers[falling] - target[falling])
            multipliers = multipliers + steps.min() * (target - multipliers)
            multipliers[np.flatnonzero(falling)[steps == steps.min()]] = 0.0
            kept = np.flatnonzero(multipliers > 0)
            keys, points, multipliers = [keys[k] for k in kept], points[kept], multipliers[kept]
        multipliers, direction, bound = _of_plane(points, size)
        if key not in keys:  # it would improve nothing but rounding
            break
    nearest = multipliers @ points
    bound, order = float(np.linalg.norm(nearest)), np.argsort(keys)
    support = np.array(keys)[order], multipliers[order]
    if bound > TOUCHING * size and margin > 0:
        violation = float(np.linalg.norm(nearest / bound - direction))
        return Margin(True, direction, margin, bound - margin, *support, violation)
    return Margin(False, None, 0.0, bound, *support, bound)


def _of_plane(points, size):
    """Of the point nearest to the origin in the plane through some points: lambda, its direction, its distance."""
    if len(points) <= points.shape[1]:
        q, r = np.linalg.qr(points.T)
        if np.abs(np.diag(r)).min() > ROUNDING * size:
            t = solve_triangular(r, np.ones(len(points)), trans="T")  # Q t is the shortest w with z . w = 1
            length = float(np.linalg.norm(t))
            w = q @ t
            return solve_triangular(r, t) / length**2, w / np.linalg.norm(w), 1 / length
    rows = np.vstack([points.T, np.full(len(points), size)])  # the plane holds the origin
    multipliers = np.linalg.lstsq(rows, np.append(np.zeros(points.shape[1]), size))[0]
    nearest = multipliers @ points
    return multipliers, nearest, float(np.linalg.norm(nearest))
