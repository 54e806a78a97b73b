"""In-context bigrams on infinite data: closed forms against all contexts, the matrix kernel, and known limits."""

import doctest
import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from analytic import icl_bigram as theory
from analytic.errors import InputError
from analytic.gradients.icl_bigram import Contexts, descend, evaluate, loss_and_gradient

ROUNDING = 1e-13  # kernel sums over thousands of contexts, per entry of size one
SIZES = ((2, 1), (3, 2), (4, 1), (5, 3), (6, 3))  # letters and pairs with few enough contexts to list them all
PLANS = (
    [("AO", 40, 3.0, 5.0)],
    [("O", 1, 20.0, 0.0), ("A", 1, 0.0, 300.0), ("O", 30, 5.0, 0.0)],
    [("A", 5, 0.0, 10.0), ("O", 20, 10.0, 0.0)],
    [("O", 30, 10.0, 0.0), ("AO", 20, 1.0, 2.0)],
)
sizes = pytest.mark.parametrize("d, pairs", SIZES)


def all_contexts(d, pairs):
    """Every context with every query once: the infinite data."""
    letters = [x for x in permutations(range(d), pairs + 1) for _ in range(pairs)]
    return Contexts.from_arrays(letters, list(range(pairs)) * (len(letters) // pairs), d)


def centred(d):
    return np.eye(d) - 1.0 / d


@sizes
@pytest.mark.parametrize("a, b", ((0.0, 0.0), (0.0, 1.3), (0.7, 0.0), (2.0, 3.0), (-1.5, 2.5), (1.0, -2.0), (9.0, 30)))
def test_loss_and_gradient_are_those_of_all_contexts(d, pairs, a, b):
    loss, d_attention, d_output = loss_and_gradient(all_contexts(d, pairs), a * centred(d), b * centred(d))
    wanted, slope_a, slope_b = theory.symmetric_gradient(d, pairs, a, b)
    assert loss == pytest.approx(wanted, rel=ROUNDING, abs=0)
    assert np.abs(d_attention - slope_a * centred(d)).max() <= ROUNDING
    assert np.abs(d_output - slope_b * centred(d)).max() <= ROUNDING


@sizes
@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
def test_the_two_numbers_follow_the_matrices_through_any_plan(d, pairs, plan):
    contexts, state = all_contexts(d, pairs), (np.zeros((d, d)), np.zeros((d, d)))
    path = theory.population_path(d, pairs, plan)
    losses, start = [], 0
    for (layer, steps, rate_o, rate_a), end in zip(plan, path.phase_ends, strict=True):
        rates = rate_a if "A" in layer else 0.0, rate_o if "O" in layer else 0.0
        run = descend(contexts, *state, *rates, steps)
        state = run.attention[-1], run.output[-1]
        losses[start:] = run.loss
        start = end
        assert np.abs(state[0] - path.a[end] * centred(d)).max() <= 1e-10  # rounding grows with every step
        assert np.abs(state[1] - path.b[end] * centred(d)).max() <= 1e-10
        # An exact tie is one only up to rounding in the kernel, so where the theory says wrong, look at the margin.
        if path.accuracy[end]:
            assert evaluate(contexts, *state)[1] == 1.0
        else:
            assert path.b[end] <= 0 or path.a[end] <= 0
        assert theory.diagonal_gap([state[0]])[0] == pytest.approx(path.attention_gap[end], abs=1e-10)
        assert theory.diagonal_gap([state[1].T])[0] == pytest.approx(path.output_gap[end], abs=1e-10)
    assert np.abs(np.array(losses) - path.loss).max() <= 1e-10


@sizes
@pytest.mark.parametrize("a", (0.0, 1.0, -2.0))
def test_one_step_of_either_layer(d, pairs, a):
    contexts, zero = all_contexts(d, pairs), np.zeros((d, d))
    b = theory.output_update(d, pairs, 3.0, a)
    stepped = descend(contexts, a * centred(d), zero, 0.0, 3.0, 1).output[-1]
    assert np.abs(stepped - b * centred(d)).max() <= ROUNDING
    for b in (0.3, 4.0, -1.0):
        stepped = descend(contexts, zero, b * centred(d), 7.0, 0.0, 1).attention[-1]
        assert np.abs(stepped - theory.attention_update(d, pairs, 7.0, b) * centred(d)).max() <= ROUNDING


def test_numbers_of_the_default_size():
    """50 letters, 6 pairs: what sampled runs of 12500 contexts come close to."""
    def end(*plan):
        return theory.population_path(50, 6, plan).loss[-1]

    assert theory.output_update(50, 6, 1.0) == pytest.approx(44 / (6 * 50 * 49), rel=1e-15)
    assert end(("O", 300, 10.0, 0.0)) == pytest.approx(2.8733751305541486, rel=1e-13)
    assert end(("O", 1, 200.0, 0.0), ("A", 1, 0.0, 1e4)) == pytest.approx(3.3296, abs=5e-5)
    assert end(("AO", 300, 50.0, 50.0)) == pytest.approx(3.445e-3, abs=5e-7)
    assert end(("A", 300, 0.0, 1e4)) == pytest.approx(math.log(50), rel=1e-15)


def test_attention_first_is_output_only_from_zero_init():
    after = theory.population_path(50, 6, [("A", 3, 0.0, 1e4), ("O", 50, 10.0, 0.0)])
    only = theory.population_path(50, 6, [("O", 50, 10.0, 0.0)])
    assert np.array_equal(after.loss[3:], only.loss) and not after.accuracy.any()


@given(st.integers(2, 60), st.data())
def test_slopes_are_derivatives_and_nothing_overflows(d, data):
    pairs = data.draw(st.integers(1, d - 1))
    a, b = data.draw(st.floats(-1e4, 1e4)), data.draw(st.floats(-1e6, 1e6))
    loss, slope_a, slope_b = theory.symmetric_gradient(d, pairs, a, b)
    assert 0 <= loss < math.inf and math.isfinite(slope_a) and math.isfinite(slope_b)
    a, b, h = a / 2e3, b / 1e5, 1e-4
    _, slope_a, slope_b = theory.symmetric_gradient(d, pairs, a, b)
    by_a = difference(lambda x: theory.symmetric_gradient(d, pairs, x, b)[0], a, h)
    by_b = difference(lambda x: theory.symmetric_gradient(d, pairs, a, x)[0], b, h)
    assert slope_a * (d - 1) == pytest.approx(by_a, abs=1e-9) and slope_b * (d - 1) == pytest.approx(by_b, abs=1e-9)


def difference(function, x, h):
    """Derivative to fourth order; 1e-9 is what rounding leaves at this h."""
    return (8 * (function(x + h) - function(x - h)) - function(x + 2 * h) + function(x - 2 * h)) / (12 * h)


def test_arguments_broadcast():
    loss, slope_a, slope_b = theory.symmetric_gradient(7, 3, [[0.0], [1.0]], [0.0, 1.0, 2.0])
    assert loss.shape == slope_a.shape == slope_b.shape == (2, 3)
    assert (loss[1, 2], slope_a[1, 2], slope_b[1, 2]) == theory.symmetric_gradient(7, 3, 1.0, 2.0)


def test_tiny_losses_keep_their_digits():
    loss, _, slope_b = theory.symmetric_gradient(50, 6, 1e3, 690.0)
    assert loss == pytest.approx(49 * math.exp(-690), rel=1e-13, abs=0)
    assert slope_b == pytest.approx(-math.exp(-690), rel=1e-13, abs=0)


# ---- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d, pairs", ((50, 6), (3, 2), (7, 6), (10, 2)))
@pytest.mark.parametrize("a", (0.0, 0.5, -0.3, -1.0, -5.0, -40.0))
def test_the_least_loss_of_output_training(d, pairs, a):
    def loss(b):
        return theory.symmetric_gradient(d, pairs, a, b)[0]

    least = theory.output_limit(d, pairs, a)
    if a >= 0:
        assert least == (0.0 if a else math.log(pairs))
        assert loss(400.0 * pairs / (1 - math.exp(-a) if a else 1)) == pytest.approx(least, abs=1e-12)
    else:
        assert least == pytest.approx(minimize_scalar(loss, bounds=(-500, 500), method="bounded").fun, abs=1e-9)


def test_the_least_loss_where_the_output_has_nothing_to_learn():
    d, pairs = 10, 4
    a = math.log((pairs - 1) / (d - 1))  # the query's own pair has the share 1/d
    assert theory.output_limit(d, pairs, a) == pytest.approx(math.log(d), rel=1e-12)
    assert theory.output_limit(d, 1, -3.0) == 0.0


@pytest.mark.parametrize("d, pairs", ((50, 6), (3, 2), (7, 6), (10, 1)))
def test_the_flow_is_the_limit_of_short_steps(d, pairs):
    """Euler steps of length h are off by O(h): halving h halves the difference."""
    loss, b = theory.output_only_flow(d, pairs, [0.0, 300.0])
    assert loss[0] == pytest.approx(math.log(d), rel=1e-15) and abs(b[0]) <= 1e-13
    off = [theory.population_path(d, pairs, [("O", n, 300.0 / n, 0.0)]).loss[-1] - loss[1] for n in (20_000, 40_000)]
    assert abs(off[0]) <= 1e-3 and off[1] == pytest.approx(off[0] / 2, rel=1e-2)


def test_output_training_falls_to_log_t_like_one_over_time():
    loss, _ = theory.output_only_flow(50, 6, 1e9)
    assert (loss - math.log(6)) * 1e9 == pytest.approx(36 * 49, rel=1e-3)


# ---- gaps and inputs -------------------------------------------------------------------------------------------------


def plain_gap(matrix):
    e = np.exp(matrix - matrix.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    own = np.diag(e).copy()
    np.fill_diagonal(e, -1.0)
    return np.mean(own - e.max(axis=1))


@pytest.mark.parametrize("d", (2, 3, 50, 71))
@pytest.mark.parametrize("size", (1e-3, 1.0, 30.0, 1e5))
def test_gaps_follow_their_definition(d, size):
    stack = size * np.random.default_rng(d).normal(size=(4, d, d)) + size * np.eye(d)
    assert theory.diagonal_gap(stack) == pytest.approx([plain_gap(m) for m in stack], abs=1e-14)
    assert theory.diagonal_gap(np.asfortranarray(stack)).tolist() == theory.diagonal_gap(stack).tolist()


@pytest.mark.parametrize("d", (2, 50))
def test_the_gap_of_a_multiple_of_the_identity(d):
    multiples = np.array([-800.0, -3.0, 0.0, 1e-9, 1.0, 30.0, 800.0])
    wanted = theory.diagonal_gap(multiples[:, None, None] * centred(d))
    assert theory.gap(d, multiples) == pytest.approx(wanted, abs=1e-14)
    assert theory.gap(d, 1e-9) == pytest.approx(1e-9 / d, rel=1e-8)


@pytest.mark.parametrize("call, message", (
    (lambda: theory.output_update(1, 1, 1.0), "d must be"),
    (lambda: theory.output_update(5, 5, 1.0), "pairs must be"),
    (lambda: theory.output_update(5, 2, -1.0), "rate_o must be"),
    (lambda: theory.output_update(5, 2, 1.0, math.nan), "a must be"),
    (lambda: theory.attention_update(5, 2, math.inf, 1.0), "rate_a must be"),
    (lambda: theory.attention_update(5, 2, 1.0, math.nan), "b must be"),
    (lambda: theory.symmetric_gradient(5, 0, 0.0, 0.0), "pairs must be"),
    (lambda: theory.output_limit(5, 2, math.inf), "a must be"),
    (lambda: theory.output_only_flow(5, 2, [-1.0]), "time must be"),
    (lambda: theory.population_path(5, 2, [("B", 1, 1.0, 1.0)]), "layer must be"),
    (lambda: theory.population_path(5, 2, [("A", -1, 1.0, 1.0)]), "steps must be"),
    (lambda: theory.population_path(5, 2, [("A", 1, 1.0, -1.0)]), "rate_a must be"),
    (lambda: theory.population_path(5, 2, [], start=(math.nan, 0.0)), "a must be"),
    (lambda: theory.diagonal_gap(np.zeros((3, 2))), "matrices must be"),
))
def test_wrong_arguments_are_refused_by_name(call, message):
    with pytest.raises(InputError, match=f"^{message}"):
        call()


def test_a_path_ends_at_the_loss_limit_and_no_phase_is_the_start():
    path = theory.population_path(10, 3, [("O", 5, 1e4, 0.0), ("O", 5, 1.0, 0.0)], start=(-1.0, 0.0), loss_limit=5.0)
    assert path.loss[-1] > 5.0 >= path.loss[:-1].max() and len(path.phase_ends) == 1
    assert theory.population_path(10, 3, []).loss.tolist() == [pytest.approx(math.log(10))]


def test_examples_in_the_documentation_are_true():
    assert doctest.testmod(theory).failed == 0
