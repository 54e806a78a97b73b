"""Closed forms of even pairs against the kernel, which sees every string."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic import even_pairs
from analytic.errors import InputError
from analytic.gradients.even_pairs import Strings, attention_gap, descend, evaluate, loss_and_gradient

ROUNDING = 1e-14  # sums of up to 2^10 terms of size one
LENGTHS = (1, 2, 3, 5, 10)


def zero(max_length):
    return np.zeros((2 * max_length, 2 * max_length)), np.zeros(2 * max_length)


@pytest.mark.parametrize("max_length", LENGTHS)
def test_one_output_step_moves_the_first_position_only(max_length):
    W, u = zero(max_length)
    path = descend(Strings(max_length), W, u, 3.0, 7.0, 1)
    assert not path.W[1].any()  # dL/dW = 0 where u = 0
    u[:2] = even_pairs.output_update(max_length, 7.0)
    assert path.u[1] == pytest.approx(u, abs=ROUNDING) and u[0] == pytest.approx(7 / (4 * max_length))


@pytest.mark.parametrize("c", (0.0, 1e-3, 1.0, 40.0, -2.0, 1e4, -1e4))
@pytest.mark.parametrize("max_length", LENGTHS)
def test_the_attention_gradient_after_an_output_step(max_length, c):
    W, u = zero(max_length)
    u[:2] = c
    d_W = loss_and_gradient(Strings(max_length), W, u)[1]
    assert np.abs(even_pairs.attention_gradient(max_length, c) - d_W).max() <= ROUNDING * max(1.0, abs(c))


@pytest.mark.parametrize("max_length", LENGTHS)
def test_two_steps_from_zero_init(max_length):
    strings, (W, u) = Strings(max_length), zero(max_length)
    u = descend(strings, W, u, 0.0, 95.0, 1).u[1]
    W = descend(strings, W, u, 300.0, 0.0, 1).W[1]
    assert even_pairs.attention_update(max_length, 95.0, 300.0) == pytest.approx(W, abs=300 * ROUNDING)


@pytest.mark.parametrize("max_length", (2, 4, 6))
def test_no_output_layer_beats_the_output_only_loss_and_long_training_approaches_it(max_length):
    strings, (W, u) = Strings(max_length), zero(max_length)
    infimum = even_pairs.output_only_loss(max_length)
    rng = np.random.default_rng(max_length)
    for size in (0.1, 1.0, 10.0, 1e3):
        for _ in range(20):
            assert evaluate(strings, W, size * rng.normal(size=u.shape))[0] > infimum
    u[:2], u[2:4] = 200.0, -200.0  # sums of v_l that vanish for every L >= 2
    assert evaluate(strings, W, u)[0] == pytest.approx(infimum, abs=1e-12)
    losses = descend(strings, W, rng.normal(size=u.shape), 0.0, 10.0, 20_000).loss
    assert infimum < losses[-1] < infimum + 1e-3


@st.composite
def symmetric_states(draw):
    max_length = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread, size = draw(st.sampled_from([0.0, 1.0, 20.0, 800.0])), draw(st.sampled_from([0.0, 1.0, 10.0, 1e4]))
    return spread * rng.normal(size=(max_length, max_length + 1)), size * rng.normal(size=max_length)


@given(symmetric_states(), st.sampled_from([0.0, 0.5]), st.sampled_from([0.0, 0.25]))
def test_symmetric_states_stay_symmetric_and_move_as_all_strings_do(start, rate_a, rate_o):
    strings = Strings(len(start[1]))
    W, u = even_pairs.expand(*start)
    short = even_pairs.symmetric_path(len(start[1]), rate_a, rate_o, 1, start)
    path = descend(strings, W, u, rate_a, rate_o, 1)
    allowed = (ROUNDING + 2.0**-53 * min(np.ptp(start[0]), 600)) * (1.0 + np.abs(start[1]).max()) ** 2
    assert np.abs(short.loss - path.loss).max() <= 10 * allowed
    for short_array, array in zip(even_pairs.expand(short.scores, short.weights), (path.W[1], path.u[1]), strict=True):
        assert np.abs(short_array - array).max() <= 10 * allowed
    assert np.abs(short.attention_gap - attention_gap(strings, path.W)).max() <= 1e-12


@pytest.mark.parametrize("max_length", LENGTHS)
def test_a_long_joint_run_from_zero_init(max_length):
    strings = Strings(max_length)
    short = even_pairs.symmetric_path(max_length, 5.0, 5.0, 300)
    path = descend(strings, *zero(max_length), 5.0, 5.0, 300)
    assert np.abs(short.loss - path.loss).max() <= 1e-10
    W, u = even_pairs.expand(short.scores, short.weights)
    assert np.abs(W - path.W[-1]).max() <= 1e-9 and np.abs(u - path.u[-1]).max() <= 1e-9
    accuracies = [evaluate(strings, *state)[1] for state in zip(path.W[1:], path.u[1:], strict=True)]
    assert short.accuracy[1:] == pytest.approx(np.array(accuracies), abs=1e-15)
    assert short.accuracy[0] == 0.0 and short.loss[0] == pytest.approx(math.log(2), abs=1e-15)


def test_lengths_far_beyond_listing():
    """At L_max = 200 one step of each layer changes the loss as the closed forms say."""
    path = even_pairs.symmetric_path(200, 0.0, 800.0, 1)
    assert path.weights[0] == pytest.approx(even_pairs.output_update(200, 800.0), abs=1e-15)
    assert not path.weights[1:].any()
    lengths = np.arange(2, 201)
    balanced = (np.log1p(np.exp(-1 / lengths)) + np.log1p(np.exp(1 / lengths))) / 2
    assert path.loss[1] == pytest.approx((math.log1p(math.exp(-1)) + balanced.sum()) / 200, abs=1e-14)
    assert path.accuracy[1] == pytest.approx(0.5, abs=1e-15)
    after = even_pairs.symmetric_path(200, 1e4, 0.0, 1, (path.scores, path.weights))
    W, _ = even_pairs.expand(after.scores, after.weights)
    assert W == pytest.approx(even_pairs.attention_update(200, 800.0, 1e4), abs=1e-12)


def test_pieces_of_a_run_make_the_run():
    whole = even_pairs.symmetric_path(6, 2.0, 3.0, 9)
    first = even_pairs.symmetric_path(6, 2.0, 3.0, 4)
    second = even_pairs.symmetric_path(6, 2.0, 3.0, 5, (first.scores, first.weights))
    assert np.array_equal(whole.loss, np.concatenate([first.loss, second.loss[1:]]))
    assert np.array_equal(whole.scores, second.scores) and np.array_equal(whole.weights, second.weights)
    assert first.scores.any()  # a start is not overwritten


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: even_pairs.output_update(0, 1.0), "max_length"),
        (lambda: even_pairs.output_update(3, -1.0), "rate_o"),
        (lambda: even_pairs.attention_gradient(3, math.nan), "c"),
        (lambda: even_pairs.attention_update(3, 1.0, math.inf), "rate_a"),
        (lambda: even_pairs.output_only_loss(1.5), "max_length"),
        (lambda: even_pairs.symmetric_path(3, 1.0, 1.0, -1), "steps"),
        (lambda: even_pairs.symmetric_path(3, 1.0, "1", 1), "rate_o"),
        (lambda: even_pairs.symmetric_path(2001, 1.0, 1.0, 1), "max_length"),
        (lambda: even_pairs.symmetric_path(3, 1.0, 1.0, 1, (np.zeros((3, 3)), np.zeros(3))), "start"),
        (lambda: even_pairs.symmetric_path(2, 1.0, 1.0, 1, (np.full((2, 3), np.nan), np.zeros(2))), "start"),
        (lambda: even_pairs.expand(np.zeros((2, 2)), np.zeros(2)), "start"),
    ],
)
def test_bad_arguments_are_refused_by_name(call, named):
    with pytest.raises(InputError, match=f"^{named} must"):
        call()
