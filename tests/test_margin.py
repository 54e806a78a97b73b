"""Hard-margin directions prove themselves: every answer is checked against its certificate, taken apart again."""

import doctest
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from analytic import even_pairs, margin
from analytic.errors import InputError
from analytic.gradients import even_pairs_twin as twin
from analytic.gradients.even_pairs import FAR_SCORES, Strings, descend, scores
from analytic.margin import hard_margin

ROUNDING = 1e-13  # of the largest point: products of tens of terms
AGREED = 1e-9  # relative: how far a margin and its bound may be apart, and two answers to one question


def certify(found, points, labels):
    """Recompute both sides of the duality from the points; whatever passes is optimal, or not separable."""
    signed = np.asarray(labels)[:, None] * np.asarray(points, dtype=float)
    size = np.abs(signed).max()
    assert np.all(found.multipliers > 0) and found.multipliers.sum() == pytest.approx(1, abs=1e-12)
    nearest = found.multipliers @ signed[found.support]
    bound = np.linalg.norm(nearest)  # no direction has a larger margin
    if found.separable:
        least = (signed @ found.direction).min()
        assert np.linalg.norm(found.direction) == pytest.approx(1, abs=1e-14)
        assert least > 0 and found.margin == pytest.approx(least, abs=ROUNDING * size)
        assert bound - least <= AGREED * bound + ROUNDING * size
        assert found.gap == pytest.approx(bound - found.margin, abs=ROUNDING * size)
        touching = signed[found.support] @ found.direction
        assert np.all(touching <= least + 10 * AGREED * bound + 10 * ROUNDING * size)  # complementary slackness
        violation = np.linalg.norm(nearest / bound - found.direction)
        assert found.violation == pytest.approx(violation, abs=1e-14 * size / bound)
        assert found.violation <= 1e-13 * size / bound
    else:
        assert found.direction is None and found.margin == 0.0
        assert found.violation == pytest.approx(bound, abs=ROUNDING * size)
        assert bound <= 1e-12 * size


def test_two_points_on_one_side_are_separated_by_their_bisector():
    found = hard_margin([[1.0, 0.0], [0.0, 1.0]], [1, 1])
    assert found.direction == pytest.approx([math.sqrt(0.5)] * 2, abs=1e-15)
    assert found.margin == pytest.approx(math.sqrt(0.5), abs=1e-15)
    assert found.multipliers == pytest.approx([0.5, 0.5], abs=1e-15) and found.support.tolist() == [0, 1]


def test_a_point_alone_is_its_own_direction():
    found = hard_margin([[3.0, -4.0]], [-1])
    assert found.direction == pytest.approx([-0.6, 0.8], abs=1e-15) and found.margin == pytest.approx(5, abs=1e-14)


@pytest.mark.parametrize("exponent", (-1000, -600, 600, 1020))
@pytest.mark.parametrize("label", (1, -1))
def test_a_unit_of_any_size_changes_no_digit(exponent, label):
    points, labels = np.array([[1.0, 0.5], [-0.25, 1.5], [2.0, 1.0]]), np.array([1, 1, label])
    found, scaled = hard_margin(points, labels), hard_margin(np.ldexp(points, exponent), labels)
    assert scaled.separable == found.separable == (label == 1)
    assert np.array_equal(scaled.multipliers, found.multipliers) and np.array_equal(scaled.support, found.support)
    assert scaled.margin == math.ldexp(found.margin, exponent) and scaled.gap == math.ldexp(found.gap, exponent)


@pytest.mark.parametrize(
    "points, labels",
    [
        ([[1.0, 0.0], [2.0, 0.0]], [1, -1]),
        ([[0.0, 0.0], [1.0, 0.0]], [1, 1]),  # no direction reaches the origin
        ([[1, 1], [1, -1], [-1, 1], [-1, -1]], [1, -1, -1, 1]),  # exclusive or
        ([[1.0], [-1.0]], [1, 1]),
        (np.vstack([np.eye(5), -np.ones((1, 5))]), np.ones(6, dtype=int)),
    ],
)
def test_points_no_direction_separates_come_with_a_witness(points, labels):
    found = hard_margin(points, labels)
    assert not found.separable
    certify(found, points, labels)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n, d", [(30, 2), (200, 5), (2000, 20), (15, 40)])
def test_random_separable_points(n, d, seed):
    rng = np.random.default_rng([n, d, seed])
    points = rng.normal(size=(n, d))
    labels = np.where(points @ rng.normal(size=d) > 0, 1, -1)
    found = hard_margin(points, labels)
    assert found.separable
    certify(found, points, labels)


@pytest.mark.parametrize("n, d", [(60, 2), (400, 10), (3000, 20)])
def test_random_labels_are_not_separable(n, d):
    rng = np.random.default_rng([n, d])
    points, labels = rng.normal(size=(n, d)), rng.choice([-1, 1], n)
    found = hard_margin(points, labels)
    assert not found.separable
    certify(found, points, labels)


@pytest.mark.parametrize("size", (1e-2, 1e-4, 1e-6, 1e-8, 1e-10))
@pytest.mark.parametrize("d", (2, 6, 15))
def test_tiny_margins_are_found(size, d):
    """Points around a circle of large radius at height ``size``: the margin is ``size``, the direction straight up."""
    rng = np.random.default_rng(d)
    flat = rng.normal(size=(20 * d, d - 1))
    flat = np.vstack([flat, -flat])  # their hull holds the origin
    points = np.column_stack([flat, np.full(len(flat), size)])
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    found = hard_margin(points @ turn.T, np.ones(len(points), dtype=int))
    assert found.separable
    certify(found, points @ turn.T, np.ones(len(points)))
    assert found.margin == pytest.approx(size, abs=1e-9 * size + 1e-14)
    assert found.direction == pytest.approx(turn[:, -1], abs=1e-13 / size)


def test_a_margin_lost_in_rounding_is_no_margin():
    found = hard_margin([[1.0, 1e-15], [-1.0, 1e-15]], [1, 1])
    assert not found.separable and found.violation <= 1e-14


@st.composite
def whole_points(draw):
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    entries = st.lists(st.integers(-3, 3), min_size=d, max_size=d)
    points = np.array(draw(st.lists(entries, min_size=n, max_size=n)), dtype=float)
    return points, np.array(draw(st.lists(st.sampled_from([-1, 1]), min_size=n, max_size=n)))


@given(whole_points())
def test_separable_is_what_a_linear_program_says(case):
    points, labels = case
    found = hard_margin(points, labels)
    certify(found, points, labels)
    n, d = points.shape
    # max t with z . w >= t, |w| <= 1 in every entry: for whole points t is 0 or far above rounding
    rows = np.column_stack([-labels[:, None] * points, np.ones(n)])
    program = linprog([0.0] * d + [-1.0], A_ub=rows, b_ub=np.zeros(n), bounds=[(-1, 1)] * d + [(None, 1)])
    assert found.separable == (-program.fun > 1e-7)


@given(whole_points(), st.integers(0, 2**32), st.sampled_from([1e-150, 0.1, 7.0, 1e150]))
def test_order_copies_turns_and_units_do_not_matter(case, seed, unit):
    points, labels = case
    rng = np.random.default_rng(seed)
    found = hard_margin(points, labels)
    order = np.concatenate([rng.permutation(len(points)), rng.integers(len(points), size=3)])
    turn = np.linalg.qr(rng.normal(size=(points.shape[1],) * 2))[0]
    moved = unit * points[order] @ turn.T
    other = hard_margin(moved, labels[order])
    assert other.separable == found.separable
    if found.separable:
        assert other.margin == pytest.approx(unit * found.margin, rel=AGREED)
        assert turn.T @ other.direction == pytest.approx(found.direction, abs=1e-7)


def test_points_of_any_kind_are_taken():
    points, labels = np.array([[2, 0, 1], [0, 1, 5], [5, 5, 5]]), np.array([1, 1, 1])
    wanted = hard_margin(points.astype(float), labels)
    frozen = points.astype(float)
    frozen.flags.writeable = False
    for kind in (points, points.tolist(), np.asfortranarray(points), points.astype(np.float32), frozen):
        assert np.array_equal(hard_margin(kind, labels.tolist()).direction, wanted.direction)


@pytest.mark.parametrize(
    "points, labels, named",
    [
        ([1.0, 2.0], [1, 1], "points"),
        (np.zeros((0, 3)), [], "points"),
        (np.zeros((3, 0)), [1, 1, 1], "points"),
        ([[np.nan]], [1], "points"),
        ([[1j]], [1], "points"),
        ([["a"]], [1], "points"),
        ([[1.0], [2.0]], [1], "labels"),
        ([[1.0], [2.0]], [1, 0], "labels"),
        ([[1.0], [2.0]], [[1], [1]], "labels"),
    ],
)
def test_bad_input_is_refused_by_name(points, labels, named):
    with pytest.raises(InputError, match=f"^{named} must"):
        hard_margin(points, labels)


# ---- even pairs ------------------------------------------------------------------------------------------------------


def attention_outputs(max_length, W):
    """sum_l P_l x_l of all strings, and their labels."""
    points, labels = [], []
    for length in range(1, max_length + 1):
        symbols = twin.strings(length)
        rows = np.zeros((len(symbols), 2 * max_length))
        np.put_along_axis(rows, twin.tokens(symbols), twin.attention(twin.tokens(symbols), W), axis=1)
        points.append(rows)
        labels.append(twin.labels(symbols))
    return np.concatenate(points), np.concatenate(labels)


def attentive(max_length, seed, size=2.0, noise=0.5):
    """W that looks at first tokens that agree, with noise: separable if the size beats the noise."""
    rng = np.random.default_rng([max_length, seed])
    W, last = noise * rng.normal(size=(2 * max_length, 2 * max_length)), np.arange(2, 2 * max_length)
    W[last % 2, last] += size
    W[1 - last % 2, last] -= size
    return W


SIZES = [(0.0, 0.1), (0.5, 1.0), (2.0, 0.5), (6.0, 1.0), (0.0, FAR_SCORES), (800.0, 100.0)]


@pytest.mark.parametrize("size, noise", SIZES)
@pytest.mark.parametrize("max_length", (1, 2, 3, 6, 9))
def test_the_strings_structure_gives_what_all_points_give(max_length, size, noise):
    for seed in range(3):
        W = attentive(max_length, seed, size, noise)
        points, labels = attention_outputs(max_length, W)
        found, plain = even_pairs.hard_margin(Strings(max_length), W), hard_margin(points, labels)
        certify(found, points, labels)
        assert found.separable == plain.separable
        if found.separable:
            assert found.margin == pytest.approx(plain.margin, rel=AGREED, abs=1e-13)
            assert found.direction == pytest.approx(plain.direction, abs=1e-7)


@pytest.mark.parametrize("noise", (0.0, 0.3, 5.0, 30.0, 2 * FAR_SCORES, 1e4))
@pytest.mark.parametrize("max_length", (1, 2, 3, 5, 10))
def test_the_worst_string_is_found(max_length, noise):
    signed_labels = np.concatenate([twin.labels(twin.strings(length)) for length in range(1, max_length + 1)])
    for seed in range(10):
        W = attentive(max_length, seed, 1.0, noise)
        u = np.random.default_rng(seed).normal(size=2 * max_length)
        point = np.zeros(2 * max_length)
        place, least = even_pairs._worst(max_length, W, u, point)
        margins = signed_labels * scores(Strings(max_length), W, u)
        assert margins[place] == pytest.approx(margins.min(), abs=1e-13)
        assert least == pytest.approx(margins.min(), abs=1e-13)
        assert point @ u == pytest.approx(least, abs=1e-13)


def test_lengths_far_beyond_listing_are_certified():
    W = attentive(24, 0, 6.0, 0.3)
    found = even_pairs.hard_margin(Strings(24), W)
    assert found.separable and 0 <= found.gap <= AGREED * found.margin + ROUNDING and found.violation < 1e-9
    assert not even_pairs.hard_margin(Strings(24), np.zeros((48, 48))).separable


def test_a_trained_output_layer_turns_towards_the_hard_margin_direction():
    strings, W = Strings(6), attentive(6, 0)
    found = even_pairs.hard_margin(strings, W)
    path = descend(strings, W, np.zeros(12), 0.0, 20.0, 20_000)
    ends = path.u[[10, 100, 1000, 20_000]]
    cosines = ends @ found.direction / np.linalg.norm(ends, axis=1)
    assert np.all(np.diff(cosines) > 0) and cosines[-1] > 0.98


def test_attention_that_does_not_fit_is_refused():
    for W in (np.zeros((4, 4)), np.full((6, 6), np.nan), np.zeros(6)):
        with pytest.raises(InputError, match=r"^W must"):
            even_pairs.hard_margin(Strings(3), W)


def test_the_examples_in_the_docstrings_are_right():
    for module in (margin, even_pairs):
        failed, tried = doctest.testmod(module)
        assert failed == 0 and tried > 2
