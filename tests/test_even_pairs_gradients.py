"""The even-pairs kernel against its numpy twin, complex steps, 50 digits, a plain loop and exact identities."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.gradients import even_pairs_twin as twin
from analytic.gradients.even_pairs import (
    FAR_SCORES,
    FAR_WEIGHTS,
    Strings,
    attention_gap,
    evaluate,
    loss_and_gradient,
    scores,
)

STEP = 1e-12  # a complex step is exact to rounding; sums of a few hundred terms of size one round to about 1e-14
ROUNDING = 1e-14  # times the sum of the absolute terms that a result adds up
HALF_ULP = 2.0**-53  # times the range of scores: W - middle is rounded once before the exponential
SPREADS = {"near": 3.0, "far": 1.5 * FAR_SCORES, "one far column": 2.0}


def case(max_length, spread="near", seed=0):
    """W and u, all columns of W of a range below or above what tables can hold, or one of them above."""
    rng = np.random.default_rng([seed, max_length])
    size = SPREADS[spread]
    W = rng.uniform(-size / 2, size / 2, (2 * max_length, 2 * max_length))
    if spread == "far":
        W[0], W[1] = -size / 2, size / 2
    if spread == "one far column":
        W[0, -1] = 2 * FAR_SCORES
    return W, rng.normal(size=2 * max_length)


def used(max_length):
    """Which entries of W some string asks for: tokens before the last one, and the last one itself."""
    i = np.arange(2 * max_length)
    return (i[:, None] // 2 < i // 2) | (i[:, None] == i)


def ranges(W):
    """Range of the scores in each column."""
    masked = np.where(used(len(W) // 2), W, np.nan)
    return np.nanmax(masked, axis=0) - np.nanmin(masked, axis=0)


def absolute_terms(max_length, W, u):
    """Sums of |terms| of loss, d_W, d_u, times a factor for the scores: what bounds rounding errors."""
    loss, d_W, d_u = 0.0, np.zeros_like(W), np.zeros_like(u)
    for length in range(1, max_length + 1):
        i = twin.tokens(twin.strings(length))
        weight = 1.0 / (max_length * 2**length)
        shares = weight * twin.attention(i, W)
        size = (shares * np.abs(u[i])).sum(axis=1, keepdims=True) / weight
        loss += weight * (1.0 + size).sum()
        np.add.at(d_u, i, shares * (1.0 + size))
        np.add.at(d_W, (i, i[:, -1:]), shares * (np.abs(u[i]) + size) * (1.0 + size))
    scale = 1.0 + HALF_ULP / ROUNDING * min(ranges(W).max(), FAR_SCORES)
    return scale * loss, scale * d_W, scale * d_u


def assert_same(results, wanted, terms, tolerance=ROUNDING):
    for result, want, size in zip(results, wanted, terms, strict=True):
        assert np.all(np.abs(result - want) <= tolerance * size + 1e-300)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("max_length", (1, 2, 3, 4, 7, 8))
def test_the_gradient_is_the_complex_step_derivative_of_the_loss(max_length, spread):
    W, u = case(max_length, spread)
    loss, d_W, d_u = loss_and_gradient(Strings(max_length), W, u)
    assert abs(loss - twin.loss_and_gradient(max_length, W, u)[0]) <= STEP
    for index in np.ndindex(W.shape):
        step = np.zeros(W.shape, dtype=complex)
        step[index] = 1e-30j
        assert abs(d_W[index] - twin.loss_and_gradient(max_length, W + step, u + 0j)[0].imag / 1e-30) <= STEP
    for i in range(len(u)):
        step = np.zeros(u.shape, dtype=complex)
        step[i] = 1e-30j
        assert abs(d_u[i] - twin.loss_and_gradient(max_length, W + 0j, u + step)[0].imag / 1e-30) <= STEP


@pytest.mark.parametrize(
    "max_length, spread", [(n, "near") for n in range(1, 15)] + [(n, s) for n in range(1, 9) for s in SPREADS]
)
def test_the_twin_says_the_same_as_the_kernel(max_length, spread):
    W, u = case(max_length, spread, seed=1)
    strings, f = Strings(max_length), twin.scores(max_length, W, u)
    y = np.concatenate([twin.labels(twin.strings(length)) for length in range(1, max_length + 1)])
    terms = absolute_terms(max_length, W, u)
    wanted = twin.loss_and_gradient(max_length, W, u)
    assert_same(loss_and_gradient(strings, W, u), wanted, terms)
    assert np.abs(scores(strings, W, u) - f).max() <= ROUNDING * np.abs(u).max()
    loss, accuracy = evaluate(strings, W, u)
    assert loss == loss_and_gradient(strings, W, u)[0]
    assert accuracy == np.mean(y * f > 0)


def by_plain_loop(max_length, W, u):
    """Loss, gradients, accuracy and attention gap string by string, straight from the definition."""
    loss, d_W, d_u, right, gap = 0.0, np.zeros_like(W), np.zeros_like(u), [], 0.0
    for length in range(1, max_length + 1):
        for string in itertools.product((0, 1), repeat=length):
            at = [2 * l + b for l, b in enumerate(string)]
            weights = [math.exp(W[i, at[-1]]) for i in at]
            shares = [w / sum(weights) for w in weights]
            f = sum(p * u[i] for p, i in zip(shares, at, strict=True))
            y = 1 if string[0] == string[-1] else -1
            part = 1 / (max_length * 2**length)
            loss += part * math.log(1 + math.exp(-y * f))
            for p, i in zip(shares, at, strict=True):
                d_u[i] -= part * y * p / (1 + math.exp(y * f))
                d_W[i, at[-1]] -= part * y * p * (u[i] - f) / (1 + math.exp(y * f))
            right.append(y * f > 0)
            if length > 1:
                gap += y * (2 * shares[0] - 1) / 2**length / (max_length - 1)
    return loss, d_W, d_u, np.mean(right), gap


@pytest.mark.parametrize("max_length", (1, 2, 3, 4, 5, 6, 7))
def test_a_plain_loop_over_all_strings_says_the_same(max_length):
    W, u = case(max_length, seed=2)
    loss, d_W, d_u, accuracy, gap = by_plain_loop(max_length, W, u)
    strings = Strings(max_length)
    assert_same(loss_and_gradient(strings, W, u), (loss, d_W, d_u), absolute_terms(max_length, W, u))
    assert evaluate(strings, W, u)[1] == accuracy
    assert attention_gap(strings, W) == pytest.approx(gap, abs=ROUNDING)


def in_fifty_digits(max_length, W, u):
    """Loss and gradients straight from the definition, at 50 digits."""
    D = 2 * max_length
    loss, d_W, d_u = mpmath.mpf(0), mpmath.zeros(D, D), mpmath.zeros(D, 1)
    W, u = mpmath.matrix(W.tolist()), mpmath.matrix(u.tolist())
    for length in range(1, max_length + 1):
        for string in itertools.product((0, 1), repeat=length):
            at = [2 * l + b for l, b in enumerate(string)]
            weights = [mpmath.exp(W[i, at[-1]]) for i in at]
            shares = [w / mpmath.fsum(weights) for w in weights]
            f = mpmath.fsum(p * u[i] for p, i in zip(shares, at, strict=True))
            y, part = 1 if string[0] == string[-1] else -1, mpmath.mpf(1) / (max_length * 2**length)
            loss += part * mpmath.log1p(mpmath.exp(-y * f))
            for p, i in zip(shares, at, strict=True):
                d_u[i] -= part * y * p / (1 + mpmath.exp(y * f))
                d_W[i, at[-1]] -= part * y * p * (u[i] - f) / (1 + mpmath.exp(y * f))
    return [np.array(x.tolist() if hasattr(x, "tolist") else x, dtype=float) for x in (loss, d_W, d_u)]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("max_length", (1, 2, 5))
def test_results_are_exact_to_rounding(max_length, spread):
    W, u = case(max_length, spread, seed=3)
    with mpmath.workdps(50):
        loss, d_W, d_u = in_fifty_digits(max_length, W, u)
    assert_same(loss_and_gradient(Strings(max_length), W, u), (loss, d_W, d_u[:, 0]), absolute_terms(max_length, W, u))


def solved(max_length, size):
    """W and u that get every string right, with margins of about ``size``.

    Where y = +1 attention must reach a first token of weight +size, else rest on tokens of weight -size; the last
    token, which decides what to look for, knows its own symbol only: "1 looks at a first 1, 0 at a first 0".
    """
    W, u = np.zeros((2 * max_length, 2 * max_length)), np.full(2 * max_length, -size)
    u[:2] = size
    last = np.arange(2, 2 * max_length)
    W[last % 2, last] = 4.0 + math.log(max_length)  # the first token, if it agrees
    W[1 - last % 2, last] = -4.0 - math.log(max_length)
    return W, u


@pytest.mark.parametrize("size", (3.0, 40.0, 500.0))
@pytest.mark.parametrize("max_length", (1, 3, 6))
def test_tiny_losses_and_their_gradients_keep_their_digits(max_length, size):
    W, u = solved(max_length, size)
    assert evaluate(Strings(max_length), W, u)[1] == 1.0
    with mpmath.workdps(50):
        loss, d_W, d_u = in_fifty_digits(max_length, W, u)
    results = loss_and_gradient(Strings(max_length), W, u)
    relative = 10 * HALF_ULP * (size + 50)  # a margin of this size is rounded before the exponential
    assert abs(results[0] - loss) <= relative * loss and 0 < loss < 0.1
    assert np.all(np.abs(results[2] - d_u[:, 0]) <= relative * np.abs(d_u[:, 0]))
    assert np.all(np.abs(results[1] - d_W) <= relative * np.abs(d_W).max())


@pytest.mark.parametrize("max_length", (1, 2, 5, 9))
def test_margins_of_ten_thousand_are_exact(max_length):
    W, u = solved(max_length, 1e4)
    strings = Strings(max_length)
    loss, d_W, d_u = loss_and_gradient(strings, W, u)
    assert (loss, np.abs(d_W).max(), np.abs(d_u).max()) == (0.0, 0.0, 0.0)
    loss, d_W, d_u = loss_and_gradient(strings, W, -u)  # every string wrong: c = -y, and the loss is |f|
    f = twin.scores(max_length, W, u)
    starts = 2 ** np.arange(1, max_length + 1) - 2
    assert loss == pytest.approx(np.mean(np.add.reduceat(np.abs(f), starts) / (starts + 2)))
    assert_same((loss, d_W, d_u), twin.loss_and_gradient(max_length, W, -u), absolute_terms(max_length, W, -u))
    assert evaluate(strings, W, -u) == (loss, 0.0)


@pytest.mark.parametrize("max_length", (2, 5, 8))
def test_scores_of_ten_thousand_pick_the_best_token_of_each_string(max_length):
    D = 2 * max_length
    W = 1e4 * np.linspace(-1, 1, D)[np.random.default_rng(max_length).permutation(D)][:, None] * np.ones(D)
    u = np.random.default_rng(4).normal(size=D)
    i = [twin.tokens(twin.strings(length)) for length in range(1, max_length + 1)]
    best = np.concatenate([np.take_along_axis(t, W[t, t[:, -1:]].argmax(axis=1, keepdims=True), 1)[:, 0] for t in i])
    assert np.array_equal(scores(Strings(max_length), W, u), u[best])
    results = loss_and_gradient(Strings(max_length), W, u)
    assert_same(results, twin.loss_and_gradient(max_length, W, u), absolute_terms(max_length, W, u))
    assert np.abs(results[1]).max() < 1e-50


EXTREMES = [edge * factor for edge in (1 / FAR_WEIGHTS, FAR_WEIGHTS) for factor in (0.3, 3)]


@pytest.mark.parametrize("size", (1e-60, *EXTREMES, 1e140))
@pytest.mark.parametrize("spread", (0.99 * FAR_SCORES, 1.01 * FAR_SCORES))
@pytest.mark.parametrize("sign", (1.0, -1.0))
def test_no_output_weight_and_no_range_of_scores_overflows(size, spread, sign):
    W, u = case(6)
    W[0], W[1] = -spread / 2, spread / 2
    u *= sign * size
    wanted, terms = twin.loss_and_gradient(6, W, u), absolute_terms(6, W, u)
    results = loss_and_gradient(Strings(6), W, u)
    assert all(np.isfinite(result).all() for result in results)
    assert_same(results, wanted, terms)


@pytest.mark.parametrize("max_length", (2, 6, 9))
def test_both_treatments_of_scores_agree_where_they_meet(max_length):
    W, u = case(max_length)
    W[0], W[1] = 0.0, FAR_SCORES
    W[2:] = np.abs(W[2:])
    beyond = W.copy()
    beyond[1] = np.nextafter(FAR_SCORES, np.inf)
    allowed = absolute_terms(max_length, W, u)
    strings = Strings(max_length)
    assert_same(loss_and_gradient(strings, W, u), loss_and_gradient(strings, beyond, u), allowed)


def counted(max_length, h, g):
    """Loss, gradients and attention gap where W[(l, b), (L, c)] = h[b, c] and u[(l, b)] = g[b]: only counts matter."""
    D = 2 * max_length
    loss, d_W, d_u, right, gap = 0.0, np.zeros((D, D)), np.zeros(D), 0, 0.0
    for length in range(1, max_length + 1):
        part = 1 / (max_length * 2**length)
        for c, first in itertools.product((0, 1), (0, 1)):
            if length == 1 and first != c:
                continue
            y, free = (1 if first == c else -1), max(0, length - 2)
            for ones in range(free + 1):
                times = math.comb(free, ones)
                n = np.array([free - ones, ones])
                if length > 1:
                    n[first] += 1
                n[c] += 1
                e = np.exp(h[:, c])
                z = n @ e
                f = (n * e) @ g / z
                loss += part * times * (np.log1p(np.exp(-abs(f))) + max(-y * f, 0))
                right += times * (y * f > 0)
                pull = -part * times * y / (1 + np.exp(y * f)) * e / z
                turn = pull * (g - f)
                last = 2 * length - 2 + c
                d_u[last] += pull[c]
                d_W[last, last] += turn[c]
                if length > 1:
                    d_u[first] += pull[first]
                    d_W[first, last] += turn[first]
                    gap += times * y * 2 * e[first] / z / 2**length / (max_length - 1)
                for b, share in enumerate((1 - ones / max(free, 1), ones / max(free, 1))):
                    d_u[2 + b : 2 * length - 2 : 2] += share * pull[b]
                    d_W[2 + b : 2 * length - 2 : 2, last] += share * turn[b]
    return loss, d_W, d_u, right / (2 ** (max_length + 1) - 2), gap


@pytest.mark.parametrize("max_length", (3, 12, 21))
def test_weights_that_only_count_symbols_give_sums_over_counts(max_length):
    h, g = np.array([[0.3, -0.4], [-0.9, 0.5]]), np.array([1.7, -1.2])
    W = np.tile(h, (max_length, max_length))
    u = np.tile(g, max_length)
    loss, d_W, d_u, accuracy, gap = counted(max_length, h, g)
    results = loss_and_gradient(Strings(max_length), W, u)
    assert abs(results[0] - loss) <= ROUNDING * 10
    assert np.abs(results[1] - d_W).max() <= ROUNDING and np.abs(results[2] - d_u).max() <= ROUNDING
    assert evaluate(Strings(max_length), W, u) == (results[0], accuracy)
    assert attention_gap(Strings(max_length), W) == pytest.approx(gap, abs=ROUNDING * 10)


@st.composite
def models(draw):
    max_length = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([0.0, 0.1, 3.0, 60.0, 299.0, 350.0, 1e4]))
    size = draw(st.sampled_from([0.0, 1e-200, 1e-29, 1.0, 30.0, 1e4, 1e20, 1e140]))
    D = 2 * max_length
    W = rng.uniform(-spread, spread, (D, D)) + draw(st.sampled_from([0.0, -1e4, 700.0]))
    return max_length, W, size * rng.normal(size=D)


@given(models())
def test_any_small_model_agrees_with_the_twin(model):
    max_length, W, u = model
    terms = absolute_terms(*model)
    results = loss_and_gradient(Strings(max_length), W, u)
    assert_same(results, twin.loss_and_gradient(*model), terms)


@given(models())
def test_each_last_token_only_moves_attention_between_tokens(model):
    max_length, W, u = model
    _, d_W, _ = loss_and_gradient(Strings(max_length), W, u)
    size = absolute_terms(*model)[1].sum(axis=0)
    assert np.all(np.abs(d_W.sum(axis=0)) <= ROUNDING * size + 1e-300)
    assert np.all(d_W[~used(max_length)] == 0)


@given(models(), st.integers(0, 2**32))
def test_entries_no_string_asks_for_do_not_matter(model, seed):
    max_length, W, u = model
    other = np.where(used(max_length), W, np.random.default_rng(seed).uniform(-1e4, 1e4, W.shape))
    strings = Strings(max_length)
    for one, two in zip(loss_and_gradient(strings, W, u), loss_and_gradient(strings, other, u), strict=True):
        assert np.array_equal(one, two)
    assert evaluate(strings, W, u) == evaluate(strings, other, u)
    assert attention_gap(strings, W) == attention_gap(strings, other)


@given(models())
def test_swapping_the_symbols_swaps_the_gradient(model):
    max_length, W, u = model
    swap = np.arange(2 * max_length) ^ 1
    strings, (loss, d_W, d_u) = Strings(max_length), loss_and_gradient(Strings(max_length), W, u)
    terms = absolute_terms(*model)
    swapped = loss_and_gradient(strings, W[swap][:, swap], u[swap])
    assert_same(swapped, (loss, d_W[swap][:, swap], d_u[swap]), (terms[0], terms[1][swap][:, swap], terms[2][swap]))
    assert attention_gap(strings, W[swap][:, swap]) == pytest.approx(attention_gap(strings, W), abs=1e-13)


@given(models(), st.integers(0, 2**32))
def test_positions_in_the_middle_can_be_exchanged(model, seed):
    """Columns of the longest strings: the positions 2, ..., L - 1 of their tokens have no order."""
    max_length, W, u = model
    middle = 1 + np.random.default_rng(seed).permutation(max(0, max_length - 2))
    order = np.concatenate([[0], middle, [max_length - 1]])[:max_length]
    moved = (2 * order[:, None] + np.arange(2)).ravel()
    longest = slice(2 * max_length - 2, None)
    W[:, :-2] = 0.0
    d_W = loss_and_gradient(Strings(max_length), W, u)[1][:, longest]
    permuted = W.copy()
    permuted[:, longest] = W[moved][:, longest]
    size = absolute_terms(*model)[1][:, longest][moved]
    found = loss_and_gradient(Strings(max_length), permuted, u[moved])[1][:, longest]
    assert np.all(np.abs(found - d_W[moved]) <= 2 * ROUNDING * size + 1e-300)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("max_length", (1, 4, 9))
def test_adding_a_constant_to_the_scores_of_a_last_token_changes_nothing(max_length, spread):
    W, u = case(max_length, spread)
    W = np.round(W * 2**20) / 2**20  # so that the shifted scores are exact
    shifts = np.resize([-512.0, 1.0, 2.0**20, 0.0, 77.0], 2 * max_length)
    strings = Strings(max_length)
    wanted = loss_and_gradient(strings, W, u)
    assert_same(loss_and_gradient(strings, W + shifts, u), wanted, absolute_terms(max_length, W, u))
    assert attention_gap(strings, W + shifts) == pytest.approx(attention_gap(strings, W), abs=1e-14)


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("max_length", (2, 3, 5, 9))
def test_the_attention_gap_is_that_of_the_twins_attention(max_length, spread):
    W = np.stack([case(max_length, spread, seed)[0] for seed in range(3)])
    wanted = []
    for state in W:
        parts = []
        for length in range(2, max_length + 1):
            symbols = twin.strings(length)
            first = twin.attention(twin.tokens(symbols), state)[:, 0]
            parts.append(np.mean(twin.labels(symbols) * (2 * first - 1)))
        wanted.append(np.mean(parts))
    assert attention_gap(Strings(max_length), W) == pytest.approx(np.array(wanted), abs=1e-13)
    assert attention_gap(Strings(max_length), W[0]) == attention_gap(Strings(max_length), W)[0]


def test_the_attention_gap_of_single_symbols_and_of_the_ideal():
    assert attention_gap(Strings(1), np.zeros((2, 2))) == 0.0
    W = np.zeros((8, 8))
    last = np.arange(2, 8)
    W[last % 2, last], W[1 - last % 2, last] = 1e3, -1e3
    assert attention_gap(Strings(4), W) == pytest.approx(1.0, abs=1e-15)
    assert attention_gap(Strings(4), -W) == pytest.approx(-1.0, abs=1e-15)
