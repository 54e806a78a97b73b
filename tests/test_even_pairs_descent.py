"""Gradient descent on even pairs: the update, the bits, the arguments, and the numbers the model is known for."""

import doctest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from analytic.errors import InputError
from analytic.gradients import even_pairs
from analytic.gradients.even_pairs import (
    FAR_SCORES,
    Path,
    Strings,
    attention_gap,
    descend,
    evaluate,
    loss_and_gradient,
    scores,
)

SHORT, LONG = Strings(5), Strings(9)


def start(strings, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=(strings.dimension, strings.dimension)), scale * rng.normal(size=strings.dimension)


def far_start(strings):
    W, u = start(strings)
    W[0, -1] = 2 * FAR_SCORES
    return W, u


STARTS = {"near": start, "far": far_start}
starts = pytest.mark.parametrize("begin", STARTS.values(), ids=STARTS)


def same_bits(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@starts
def test_descent_follows_the_gradient_of_both_layers_at_once(begin):
    path = descend(LONG, *begin(LONG), 2.0, 0.5, 5)  # powers of two: the update rounds once
    for t in range(6):
        loss, d_W, d_u = loss_and_gradient(LONG, path.W[t], path.u[t])
        assert path.loss[t] == loss
        if t < 5:
            assert np.array_equal(path.W[t + 1], path.W[t] - 2.0 * d_W)
            assert np.array_equal(path.u[t + 1], path.u[t] - 0.5 * d_u)
    assert same_bits((path.W[0], path.u[0]), begin(LONG))


@starts
def test_cutting_a_run_into_calls_changes_no_bit(begin):
    whole = descend(LONG, *begin(LONG), 5.0, 5.0, 9)
    first = descend(LONG, *begin(LONG), 5.0, 5.0, 4)
    second = descend(LONG, first.W[-1], first.u[-1], 5.0, 5.0, 5)
    for full, *parts in zip(whole, first, second, strict=True):
        assert np.array_equal(full, np.concatenate([parts[0], parts[1][1:]]))


def test_cutting_a_run_that_leaves_the_range_of_tables_changes_no_bit():
    W, u = start(SHORT)
    W[1, -1] = W[0, -1] + FAR_SCORES - 1e-3  # attention all on the first 1: its score still moves
    W[2:8, -1] = W[-1, -1] = W[1, -1]
    whole = descend(SHORT, W, u, 5.0, 0.0, 8)
    ranges = np.ptp(np.delete(whole.W[:, :, -1], 8, axis=1), axis=1)
    assert ranges.min() < FAR_SCORES < ranges.max()
    for t in range(8):
        piece = descend(SHORT, whole.W[t], whole.u[t], 5.0, 0.0, 1)
        assert same_bits(piece, [part[t : t + 2] for part in whole])


def test_threads_do_not_change_bits():
    runs = [(strings, *begin(strings)) for strings in (SHORT, LONG) for begin in STARTS.values()]
    alone = [descend(*run, 1.0, 0.5, 20) for run in runs]
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(descend, *run, 1.0, 0.5, 20) for run in runs * 4]
        for i, future in enumerate(futures):
            for name, got, want in zip(Path._fields, future.result(), alone[i % len(alone)], strict=True):
                np.testing.assert_array_equal(got, want, err_msg=f"{name} of run {i}")


@starts
def test_rate_zero_freezes_a_layer(begin):
    assert np.ptp(descend(LONG, *begin(LONG), 0, 0.5, 3).W, axis=0).max() == 0
    assert np.ptp(descend(LONG, *begin(LONG), 0.5, 0, 3).u, axis=0).max() == 0


def test_a_frozen_layer_changes_no_bit_of_the_other():
    W, u = start(LONG)
    both = descend(LONG, W, u, 0.5, 0.25, 1)
    assert np.array_equal(descend(LONG, W, u, 0.5, 0, 1).W[1], both.W[1])
    assert np.array_equal(descend(LONG, W, u, 0, 0.25, 1).u[1], both.u[1])


def test_a_small_rate_lowers_the_loss():
    assert np.all(np.diff(descend(LONG, *start(LONG), 0.5, 0.5, 100).loss) < 0)


def test_a_diverging_run_ends_with_the_first_state_beyond_the_limit():
    path = descend(SHORT, *start(SHORT), 0.0, 1e9, 400, loss_limit=1e6)
    assert len(path.loss) == len(path.W) == len(path.u) < 400
    assert np.all(path.loss[:-1] <= 1e6) and path.loss[-1] > 1e6
    huge = descend(SHORT, start(SHORT)[0], np.full(10, 1e308), 0.0, 1.0, 400)  # |f| = 1e308: the losses' sum overflows
    assert huge.loss.tolist() == [np.inf]
    joint = descend(SHORT, *start(SHORT), 1e308, 1e308, 400)
    assert np.isfinite(joint.loss[:-1]).all() and (len(joint.loss) == 401 or not np.isfinite(joint.loss[-1]))


def test_no_steps_is_the_loss_of_the_start():
    W, u = start(LONG)
    path = descend(LONG, W, u, 1, 1, 0)
    assert path.loss.tolist() == [loss_and_gradient(LONG, W, u)[0]] and path.W.shape == (1, *W.shape)


# ---- arguments -------------------------------------------------------------------------------------------------------


def test_parameters_of_any_real_kind_and_layout_are_taken_and_left_alone():
    D = SHORT.dimension
    W, u = np.arange(D * D).reshape(D, D) % 5, np.arange(D) % 3 - 1
    wanted = descend(SHORT, W.astype(float), u.astype(float), 1, 1, 2)
    frozen = W.astype(float)
    frozen.flags.writeable = False
    strided = np.zeros((D, 3 * D))[:, ::3]
    strided[:] = W
    unaligned = np.zeros(8 * D * D + 1, dtype=np.uint8)[1:].view(float).reshape(D, D)
    unaligned[:] = W
    swapped = W.astype(np.dtype(float).newbyteorder())
    for kind in (W, W.tolist(), W.astype(np.float32), W.astype(np.int8), np.asfortranarray(W, dtype=float), frozen,
                 strided, strided[::-1][::-1], unaligned, swapped):
        assert same_bits(descend(SHORT, kind, u, 1, 1, 2), wanted)
        assert np.array_equal(kind, W)
        assert attention_gap(SHORT, kind) == attention_gap(SHORT, W)
    for kind in (u.tolist(), u.astype(np.float32), np.repeat(u, 2)[::2]):
        assert same_bits(descend(SHORT, W, kind, 1, 1, 2), wanted)
        assert np.array_equal(scores(SHORT, W, kind), scores(SHORT, W, u))


@pytest.mark.parametrize(
    "W, u, named",
    [
        (np.zeros((9, 9)), np.zeros(10), "W"),
        (np.zeros((10, 9)), np.zeros(10), "W"),
        (np.zeros(100), np.zeros(10), "W"),
        (np.zeros((1, 10, 10)), np.zeros(10), "W"),
        (0.0, np.zeros(10), "W"),
        (np.zeros((10, 10), dtype=complex), np.zeros(10), "W"),
        (np.zeros((10, 10), dtype=bool), np.zeros(10), "W"),
        (np.full((10, 10), np.nan), np.zeros(10), "W"),
        (np.zeros((10, 10)), np.zeros(12), "u"),
        (np.zeros((10, 10)), np.zeros((10, 1)), "u"),
        (np.zeros((10, 10)), ["x"] * 10, "u"),
        (np.zeros((10, 10)), np.full(10, np.inf), "u"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_by_name(W, u, named):
    for call in (scores, evaluate, loss_and_gradient, lambda *args: descend(*args, 1, 1, 1)):
        with pytest.raises(InputError, match=f"^{named} must"):
            call(SHORT, W, u)


@pytest.mark.parametrize(
    "W", (np.zeros((4, 4)), np.zeros((2, 3, 10, 10)), np.full((2, 10, 10), np.nan), np.zeros((2, 10, 9)))
)
def test_attention_that_does_not_fit_is_refused(W):
    with pytest.raises(InputError, match=r"^W must"):
        attention_gap(SHORT, W)


@pytest.mark.parametrize(
    "changed",
    [{"rate_a": -1.0}, {"rate_a": np.nan}, {"rate_o": np.inf}, {"rate_o": "1"}, {"steps": -1}, {"steps": 1.5},
     {"loss_limit": np.nan}, {"loss_limit": -1.0}],
)
def test_rates_steps_and_limits_out_of_range_are_refused_by_name(changed):
    with pytest.raises(InputError, match=f"^{next(iter(changed))} must"):
        descend(SHORT, *start(SHORT), **{"rate_a": 1.0, "rate_o": 1.0, "steps": 1, **changed})


@pytest.mark.parametrize("max_length", (0, 25, -1, 2.0, "3", True, None))
def test_lengths_out_of_range_are_refused(max_length):
    with pytest.raises(InputError, match=r"^max_length must"):
        Strings(max_length)


def test_strings_are_made_first_and_cannot_change():
    with pytest.raises(InputError, match=r"^strings must"):
        scores(2, np.zeros((4, 4)), np.zeros(4))
    with pytest.raises(AttributeError):
        SHORT.max_length = 6
    assert Strings(np.int64(3)) == Strings(3) and Strings(24).n_strings == 2**25 - 2


def test_the_examples_in_the_docstrings_are_right():
    failed, tried = doctest.testmod(even_pairs)
    assert failed == 0 and tried > 8


# ---- what the model is known for -------------------------------------------------------------------------------------

PAPER, SEEDS = Strings(10), range(12)


def small_start(seed):
    return start(PAPER, seed, scale=0.1)


def test_output_alone_learns_little_more_than_the_shortest_strings():
    ends = [descend(PAPER, *small_start(seed), 0.0, 1.0, 600) for seed in SEEDS]
    assert 0.625 < np.mean([path.loss[-1] for path in ends]) < 0.638
    assert np.mean([evaluate(PAPER, path.W[-1], path.u[-1])[1] for path in ends]) == pytest.approx(0.5, abs=0.05)


def test_attention_alone_learns_nothing():
    ends = [descend(PAPER, *small_start(seed), 1.0, 0.0, 100) for seed in SEEDS]
    assert np.mean([path.loss[-1] for path in ends]) == pytest.approx(0.694, abs=0.003)


@pytest.mark.parametrize("seed", range(3))
def test_both_layers_at_once_solve_it(seed):
    path = descend(PAPER, *small_start(seed), 5.0, 5.0, 600)
    assert path.loss[-1] == pytest.approx(0.0041, abs=1e-4)
    assert evaluate(PAPER, path.W[-1], path.u[-1])[1] == 1.0
    gaps = attention_gap(PAPER, path.W[200::200])
    assert np.all(np.diff(gaps) > 0) and gaps[-1] == pytest.approx(0.79, abs=0.01)


def test_one_attention_step_first_does_not_help():
    ends = []
    for seed in SEEDS:
        W, u = small_start(seed)
        W = descend(PAPER, W, u, 300.0, 0.0, 1).W[-1]
        ends.append(descend(PAPER, W, u, 0.0, 5.0, 600).loss[-1])
    assert np.mean(ends) == pytest.approx(0.6255, abs=0.015)  # two standard errors


def test_three_phases_solve_it():
    states = []
    for seed in SEEDS:
        W, u = small_start(seed)
        u = descend(PAPER, W, u, 0.0, 95.0, 1).u[-1]
        W = descend(PAPER, W, u, 300.0, 0.0, 1).W[-1]
        states.append((W, u))
    losses, accuracies = np.transpose([evaluate(PAPER, *state) for state in states])
    assert losses.mean() == pytest.approx(0.520, abs=0.004) and accuracies.mean() == pytest.approx(0.501, abs=0.002)
    paths = [descend(PAPER, *state, 0.0, 5.0, 400) for state in states]
    assert np.mean([path.loss[-1] for path in paths]) == pytest.approx(0.088, abs=0.003)
    assert all(evaluate(PAPER, path.W[-1], path.u[-1])[1] == 1.0 for path in paths)
