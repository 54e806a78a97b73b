"""The kernels of single-location regression against numpy twin, complex steps, 50 digits and exact identities."""

import doctest
from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from analytic.errors import InputError
from analytic.gradients import slr, slr_twin
from analytic.gradients.slr import NEAR, Tokens, descend, evaluate, loss_and_gradient, sample_tokens

STEP = 1e-12  # a complex step is exact to rounding; sums of a few hundred terms of size one round to about 1e-14
ROUNDING = 1e-14  # times the sum of the absolute terms that a result adds up, and the scores' own rounding
HALF_ULP = 2.0**-53

# contexts, tokens, d: one of everything; fewer and more tokens than JAM, multiples of it and not; several blocks and a
# short last one; blocks of one context, larger than BLOCK
SIZES = ((1, 1, 1), (1, 3, 2), (7, 1, 2), (5, 8, 3), (33, 10, 7), (130, 5, 50), (17, 16, 8), (9, 11, 33), (3, 20, 400))


def drawn(size, seed=0, spread=1.0):
    """tokens, targets, k, v with scores of about ``spread``."""
    rng = np.random.default_rng([seed, *size])
    n, _, d = size
    k, v = rng.normal(size=(2, d)) / np.sqrt(d)
    return rng.normal(size=size), rng.normal(size=n), spread * k, v


def is_near(tokens, k):
    return np.linalg.norm(k) * np.linalg.norm(tokens, axis=-1).max() <= NEAR


def absolute_terms(tokens, targets, k, v):
    """Sums of |terms| of loss, d_k, d_v, times a factor for rounding of the scores: what bounds rounding errors."""
    shares, values = slr_twin.attention(tokens, k), tokens @ v
    size = np.sum(shares * (np.abs(tokens) @ np.abs(v)), axis=1, keepdims=True)
    residual = size + np.abs(targets)[:, None]
    pull = 2 / len(targets) * residual * shares
    d_k = np.einsum("nl,nld->d", pull * (np.abs(values) + size), np.abs(tokens))
    d_v = np.einsum("nl,nld->d", pull, np.abs(tokens))
    scale = 1 + HALF_ULP / ROUNDING * 4 * (np.abs(tokens) @ np.abs(k)).max()  # e^s with an error of s
    return scale * np.mean(residual**2), scale * d_k, scale * d_v


def assert_same(results, wanted, terms, tolerance=ROUNDING):
    for result, want, size in zip(results, wanted, terms, strict=True):
        assert np.all(np.abs(result - want) <= tolerance * size + 1e-300)


def same_bits(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# ---- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", (0.3, 500.0), ids=("near", "far"))
@pytest.mark.parametrize("size", SIZES)
def test_the_gradient_is_the_complex_step_derivative_of_the_loss(size, spread):
    tokens, targets, k, v = drawn(size, spread=spread)
    assert is_near(tokens, k) or spread > 1
    loss, d_k, d_v = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    wanted = slr_twin.loss_and_gradient(tokens, targets, k, v)[0]
    terms = absolute_terms(tokens, targets, k, v)
    allowed = STEP if spread < 1 else ROUNDING * max(np.max(term) for term in terms)
    assert abs(loss - wanted) <= allowed
    for j in range(0, size[2], 1 + size[2] // 50):
        step = np.zeros(size[2], dtype=complex)
        step[j] = 1e-30j
        assert abs(d_k[j] - np.mean((slr_twin.outputs(tokens, k + step, v) - targets) ** 2).imag / 1e-30) <= allowed
        assert abs(d_v[j] - np.mean((slr_twin.outputs(tokens, k, v + step) - targets) ** 2).imag / 1e-30) <= allowed


@pytest.mark.parametrize("spread", (0.0, 1.0, 3000.0))
@pytest.mark.parametrize("size", SIZES)
def test_the_twin_says_the_same_as_the_kernel(size, spread):
    tokens, targets, k, v = drawn(size, 1, spread)
    data, terms = Tokens.from_arrays(tokens, targets), absolute_terms(tokens, targets, k, v)
    wanted = slr_twin.loss_and_gradient(tokens, targets, k, v)
    assert_same(loss_and_gradient(data, k, v), wanted, terms)
    assert_same([evaluate(data, k, v)], wanted[:1], terms[:1])


def in_fifty_digits(tokens, targets, k, v):
    """Loss and gradients straight from the definition."""
    n, _, d = tokens.shape
    loss, d_k, d_v = mpmath.mpf(0), [mpmath.mpf(0)] * d, [mpmath.mpf(0)] * d
    k, v = ([mpmath.mpf(x) for x in vector.tolist()] for vector in (k, v))
    for context, y in zip(tokens.tolist(), targets.tolist(), strict=True):
        weights = [mpmath.exp(mpmath.fdot(x, k)) for x in context]
        shares = [weight / mpmath.fsum(weights) for weight in weights]
        values = [mpmath.fdot(x, v) for x in context]
        f = mpmath.fdot(shares, values)
        residual = f - mpmath.mpf(y)
        loss += residual**2 / n
        for share, value, x in zip(shares, values, context, strict=True):
            for j in range(d):
                d_v[j] += 2 * residual * share * x[j] / n
                d_k[j] += 2 * residual * share * (value - f) * x[j] / n
    return float(loss), np.array(d_k, dtype=float), np.array(d_v, dtype=float)


@pytest.mark.parametrize("spread", (0.3, 1.0, 400.0))
@pytest.mark.parametrize("size", ((1, 1, 1), (5, 3, 2), (11, 10, 6), (6, 16, 11)))
def test_results_are_exact_to_rounding(size, spread):
    tokens, targets, k, v = drawn(size, 2, spread)
    with mpmath.workdps(50):
        exact = in_fifty_digits(tokens, targets, k, v)
    results = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    assert_same(results, exact, absolute_terms(tokens, targets, k, v))
    if spread < 1 and size[0] > 1:
        for result, want in zip(results, exact, strict=True):  # well conditioned: to the last digits of the largest
            assert np.abs(result - want).max() <= ROUNDING * np.abs(want).max()


@st.composite
def models(draw):
    """tokens, targets, k, v of any small size and any spread of scores; entries drawn, so that failures shrink."""
    n, length, d = draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.integers(1, 5))
    numbers = st.floats(-2, 2, width=16)
    tokens = draw(arrays.arrays(np.float64, (n, length, d), elements=numbers))
    targets = draw(arrays.arrays(np.float64, n, elements=numbers))
    k, v = (draw(arrays.arrays(np.float64, d, elements=numbers)) for _ in "kv")
    return tokens, targets, k * draw(st.sampled_from([1.0, 30.0, 1e4])), v * draw(st.sampled_from([1.0, 1e-20, 1e20]))


@given(models())
def test_any_small_model_agrees_with_the_twin(model):
    results = loss_and_gradient(Tokens.from_arrays(*model[:2]), *model[2:])
    assert_same(results, slr_twin.loss_and_gradient(*model), absolute_terms(*model))


def by_brute_force(tokens, targets, k, v):
    """Loss by loops, with nothing shared with kernel or twin but the definition."""
    total = 0.0
    for context, y in zip(tokens, targets, strict=True):
        scores = [sum(a * b for a, b in zip(x, k, strict=True)) for x in context]
        f = sum(sum(a * b for a, b in zip(x, v, strict=True)) / sum(np.exp(np.array(scores) - s))
                for x, s in zip(context, scores, strict=True))  # P_l = 1 / sum_i e^{s_i - s_l}
        total += (f - y) ** 2
    return total / len(targets)


@given(models().filter(lambda model: np.abs(model[2]).max() <= 2 and np.abs(model[3]).max() <= 2))
def test_fourth_order_differences_of_the_loss_are_the_gradient(model):
    tokens, targets, k, v = model
    _, d_k, d_v = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    width = 2.0**-9
    size = (1 + np.abs(targets).max() + np.abs(tokens @ v).max()) ** 2 * (1 + np.abs(tokens).max()) ** 5
    for j in range(k.size):
        step = np.zeros(k.size)
        step[j] = width
        for gradient, direction in ((d_k, (step, 0 * step)), (d_v, (0 * step, step))):
            losses = [by_brute_force(tokens, targets, k + m * direction[0], v + m * direction[1])
                      for m in (-2, -1, 1, 2)]
            slope = np.dot([1, -8, 8, -1], losses) / (12 * width)
            assert abs(slope - gradient[j]) <= 1e-9 * size  # width^4 times a fifth derivative


# ---- invariances -----------------------------------------------------------------------------------------------------


@given(models(), st.randoms(use_true_random=False))
def test_the_order_of_tokens_and_of_contexts_does_not_matter(model, random):
    tokens, targets, k, v = model
    wanted, terms = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v), absolute_terms(*model)
    order = random.sample(range(tokens.shape[1]), tokens.shape[1])
    assert_same(loss_and_gradient(Tokens.from_arrays(tokens[:, order], targets), k, v), wanted, terms)
    order = random.sample(range(len(tokens)), len(tokens))
    assert_same(loss_and_gradient(Tokens.from_arrays(tokens[order], targets[order]), k, v), wanted, terms)


@pytest.mark.parametrize("spread", (1.0, 200.0))
@pytest.mark.parametrize("size", SIZES[1:])
def test_a_rotation_of_everything_rotates_the_gradient(size, spread):
    tokens, targets, k, v = drawn(size, 3, spread)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(size[2], size[2])))[0]
    loss, d_k, d_v = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    rotated = Tokens.from_arrays(tokens @ rotation, targets)
    results = loss_and_gradient(rotated, k @ rotation, v @ rotation)
    terms = absolute_terms(tokens, targets, k, v)
    allowed = [np.sqrt(size[2]) * np.linalg.norm(term) for term in terms]  # scores of the rotated round differently
    assert_same(results, (loss, d_k @ rotation, d_v @ rotation), allowed)


@pytest.mark.parametrize("size", SIZES)
def test_repeating_every_context_changes_nothing(size):
    tokens, targets, k, v = drawn(size)
    twice = Tokens.from_arrays(np.repeat(tokens, 2, axis=0), np.repeat(targets, 2))
    wanted = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    assert_same(loss_and_gradient(twice, k, v), wanted, absolute_terms(tokens, targets, k, v))


@pytest.mark.parametrize("size", SIZES)
def test_scores_are_relative_and_values_absolute(size):
    # a vector that is added to all tokens of a context moves no share; v shows it in the output
    tokens, targets, k, v = drawn(size)
    shift = np.random.default_rng(1).normal(size=(size[0], 1, size[2]))
    moved = Tokens.from_arrays(tokens + shift, targets + shift[:, 0] @ v)
    wanted = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    terms = absolute_terms(np.abs(tokens) + np.abs(shift), np.abs(targets) + np.abs(shift[:, 0]) @ np.abs(v), k, v)
    loss, d_k, _ = loss_and_gradient(moved, k, v)
    assert_same((loss, d_k), wanted[:2], terms[:2])  # sum_l e_l = 0, so the shift drops out of d_k


@given(models())
def test_turning_v_and_the_targets_round_turns_the_residuals_round(model):
    tokens, targets, k, v = model
    loss, d_k, d_v = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    assert same_bits(loss_and_gradient(Tokens.from_arrays(tokens, -targets), k, -v), (loss, d_k, -d_v))


@given(models())
def test_both_treatments_of_scores_agree(model):
    # NEAR depends on the longest token of all data: one long token in a context of its own sends all the far way
    tokens, targets, k, v = model
    if not is_near(tokens, k):
        return
    extra = np.zeros((1, *tokens.shape[1:]))
    extra[0] = 2 * NEAR / max(np.linalg.norm(k), 1e-3)
    far = Tokens.from_arrays(np.concatenate([tokens, extra]), np.append(targets, extra[0, 0] @ v))
    assert not is_near(far.tokens, k) or np.linalg.norm(k) < 1e-3
    n, terms = len(targets), absolute_terms(*model)
    loss, d_k, d_v = loss_and_gradient(far, k, v)  # all its tokens are equal: no gradient by k, and a residual of 0
    wanted = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    noise = ROUNDING * np.abs(extra).max() ** 3 * (1 + np.abs(v).sum()) ** 2
    for result, want, term in zip((loss, d_k, d_v), wanted, terms, strict=True):
        assert np.all(np.abs(result * (n + 1) / n - want) <= ROUNDING * term + noise)


# ---- extremes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [size for size in SIZES if size[1] > 1])
def test_scores_of_ten_thousand_pick_the_best_token_of_each_context(size):
    n, length, d = size
    rng = np.random.default_rng(5)
    tokens, targets, v = rng.normal(size=size), rng.normal(size=n), rng.normal(size=d)
    k = np.zeros(d)
    k[0] = 1e4
    tokens[..., 0] = rng.permuted(np.tile(np.linspace(-1, 1, length), (n, 1)), axis=1)  # scores from -1e4 to 1e4
    best = tokens[np.arange(n), tokens[..., 0].argmax(axis=1)]
    loss, d_k, d_v = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    residual = best @ v - targets
    size = (np.abs(best) @ np.abs(v) + np.abs(targets)).max()
    assert abs(loss - np.mean(residual**2)) <= ROUNDING * size**2
    assert np.all(np.abs(d_v - 2 / n * residual @ best) <= 10 * ROUNDING * size * np.abs(tokens).max())
    assert np.all(d_k == 0)  # the others have weights below e^-1000


def test_a_score_beyond_all_floats_gives_no_number_and_no_crash():
    tokens, targets, _, v = drawn((9, 3, 4))
    k = np.full(4, 1e308)
    assert np.isnan(evaluate(Tokens.from_arrays(10 * tokens, targets), k, v))


@pytest.mark.parametrize("far", (False, True))
def test_outputs_may_have_any_size(far):
    tokens, targets, k, v = drawn((33, 10, 7), spread=500.0 if far else 1.0)
    for size in (1e-300, 1e-60, 1e60, 1e140):
        wanted = slr_twin.loss_and_gradient(tokens, targets, k, size * v)
        results = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, size * v)
        assert_same(results, wanted, absolute_terms(tokens, targets, k, size * v))


def test_tokens_too_long_to_be_squared_are_read_rightly():
    tokens, targets, k, v = drawn((5, 3, 4))
    data = Tokens.from_arrays(1e200 * tokens, targets)
    wanted = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, v)
    results = loss_and_gradient(data, 1e-200 * k, 1e-200 * v)
    terms = absolute_terms(tokens, targets, k, v)
    assert_same((results[0], results[1] / 1e200, results[2] / 1e200), wanted, terms)


def test_one_token_leaves_nothing_to_attend_to():
    tokens, targets, k, v = drawn((20, 1, 5))
    data = Tokens.from_arrays(tokens, targets)
    loss, d_k, d_v = loss_and_gradient(data, k, v)
    residual = tokens[:, 0] @ v - targets
    assert loss == pytest.approx(np.mean(residual**2), rel=1e-14)
    assert np.all(d_k == 0) and np.all(descend(data, k, v, 0.5, 0.1, 5).k == k)
    assert d_v == pytest.approx(2 * residual @ tokens[:, 0] / 20, abs=1e-14)


def test_a_context_by_hand():
    # scores (ln 3, 0): shares (3/4, 1/4); values (4, 8): f = 5, y = 2, r = 3
    data = Tokens.from_arrays([[[np.log(3.0), 4.0], [0.0, 8.0]]], [2.0])
    loss, d_k, d_v = loss_and_gradient(data, [1.0, 0.0], [0.0, 1.0])
    assert loss == pytest.approx(9.0, rel=1e-14)
    assert d_v == pytest.approx([6 * 0.75 * np.log(3), 6 * (3 + 2)], rel=1e-14)
    assert d_k == pytest.approx([6 * 0.75 * (4 - 5) * np.log(3), 6 * (0.75 * -1 * 4 + 0.25 * 3 * 8)], rel=1e-14)


def test_at_zero_the_loss_is_the_mean_square_of_the_targets_and_k_feels_nothing():
    tokens, targets, k, _ = drawn((50, 10, 9))
    loss, d_k, d_v = loss_and_gradient(Tokens.from_arrays(tokens, targets), k, np.zeros(9))
    assert loss == pytest.approx(np.mean(targets**2), rel=1e-14)
    assert np.all(d_k == 0) and np.any(d_v != 0)


# ---- descent ---------------------------------------------------------------------------------------------------------

RATES = ((0.05, 0.03), (0.05, 0.0), (0.0, 0.03), (0.0, 0.0))


def stepped(data, k, v, rate_a, rate_o, steps):
    """The same descent by the twin, a list of (loss, k, v)."""
    states = []
    for _ in range(steps + 1):
        loss, d_k, d_v = slr_twin.loss_and_gradient(data.tokens, data.targets, k, v)
        states.append((loss, k, v))
        k, v = k - rate_a * d_k, v - rate_o * d_v
    return [np.array(part) for part in zip(*states, strict=True)]


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("size", SIZES)
def test_descent_takes_the_steps_of_plain_gradient_descent(size, rates):
    tokens, targets, k, v = drawn(size)
    data = Tokens.from_arrays(tokens, targets)
    path = descend(data, k, v, *rates, 6)
    for found, wanted in zip(path, stepped(data, k, v, *rates, 6), strict=True):
        assert np.abs(found - wanted).max() <= 100 * STEP * max(1.0, np.abs(wanted).max())
    assert same_bits((path.k[0], path.v[0]), (k, v))


@pytest.mark.parametrize("size", SIZES)
def test_a_moving_state_has_the_bits_of_loss_and_gradient(size):
    tokens, targets, k, v = drawn(size)
    data = Tokens.from_arrays(tokens, targets)
    path = descend(data, k, v, 0.05, 0.03, 4)
    for t in range(5):
        loss, d_k, d_v = loss_and_gradient(data, path.k[t], path.v[t])
        assert path.loss[t] == loss == evaluate(data, path.k[t], path.v[t])
        if t < 4:
            assert np.array_equal(path.k[t + 1], path.k[t] - 0.05 * d_k)
            assert np.array_equal(path.v[t + 1], path.v[t] - 0.03 * d_v)


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("size", SIZES)
def test_cutting_a_run_into_calls_changes_no_bit(size, rates):
    tokens, targets, k, v = drawn(size)
    data = Tokens.from_arrays(tokens, targets)
    whole = descend(data, k, v, *rates, 9)
    pieces = [descend(data, k, v, *rates, 0)]
    for steps in (1, 0, 5, 3):
        pieces.append(descend(data, pieces[-1].k[-1], pieces[-1].v[-1], *rates, steps))
    for full, *parts in zip(whole, *pieces, strict=True):
        assert np.array_equal(full, np.concatenate([parts[0], *(part[1:] for part in parts[1:])]))


@pytest.mark.parametrize("size", [size for size in SIZES if size[0] > 1])
def test_output_descent_ends_at_the_least_squares_solution(size):
    tokens, targets, k, v = drawn(size)
    data = Tokens.from_arrays(tokens, targets)
    outputs = np.einsum("nl,nld->nd", slr_twin.attention(tokens, k), tokens)
    curvature = 2 * np.linalg.norm(outputs, 2) ** 2 / len(targets)
    path = descend(data, k, v, 0.0, 1 / curvature, 40_000 if size[2] < 100 else 2000)
    best = np.mean((outputs @ np.linalg.lstsq(outputs, targets)[0] - targets) ** 2)
    assert path.loss[-1] >= best * (1 - 1e-12) - 1e-28 and path.loss.min() >= 0  # the best is 0 for few contexts
    assert np.all(np.diff(path.loss) <= 1e-14 * path.loss[0])
    if size[0] > 2 * size[2]:
        assert path.loss[-1] == pytest.approx(best, rel=1e-9)


def test_output_descent_reaches_zero_loss_where_the_targets_can_be_met_and_never_less():
    tokens, _, k, v = drawn((60, 5, 4))
    targets = slr_twin.outputs(tokens, k, v)
    path = descend(Tokens.from_arrays(tokens, targets), k, 0 * v, 0.0, 0.5, 3000)
    assert 0 <= path.loss[-1] <= 1e-30
    assert np.abs(path.v[-1] - v).max() <= 1e-13


@pytest.mark.parametrize("rates", ((1.0, 50.0), (0.0, 50.0)))
def test_a_run_ends_with_the_first_loss_above_the_limit_or_not_finite(rates):
    tokens, targets, k, v = drawn((40, 10, 5))
    data = Tokens.from_arrays(tokens, targets)
    path = descend(data, k, v, *rates, 2000)
    assert len(path.loss) < 2001 and not np.isfinite(path.loss[-1]) and np.isfinite(path.loss[:-1]).all()
    limited = descend(data, k, v, *rates, 2000, loss_limit=path.loss[3] / 2)
    first = int(np.argmax(path.loss > path.loss[3] / 2))
    assert same_bits(limited, (part[: first + 1] for part in path))
    assert len(descend(data, k, v, *rates, 9, loss_limit=0.0).loss) == 1


def test_a_frozen_layer_does_not_move():
    tokens, targets, k, v = drawn((33, 10, 7))
    data = Tokens.from_arrays(tokens, targets)
    assert np.all(descend(data, k, v, 0.0, 0.1, 5).k == k)
    assert np.all(descend(data, k, v, 0.1, 0.0, 5).v == v)
    still = descend(data, k, v, 0.0, 0.0, 5)
    assert np.all(still.k == k) and np.all(still.v == v) and len(set(still.loss.tolist())) == 1


def test_runs_side_by_side_do_not_disturb_each_other():
    runs = [(Tokens.from_arrays(*drawn((200, 10, 9), seed)[:2]), *drawn((200, 10, 9), seed)[2:]) for seed in range(8)]
    alone = [descend(*run, 0.05, 0.05, 50) for run in runs]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda run: descend(*run, 0.05, 0.05, 50), runs))
    assert all(same_bits(one, other) for one, other in zip(alone, together, strict=True))


# ---- many contexts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rates", RATES)
@pytest.mark.parametrize("size", ((130, 5, 50), (33, 10, 7), (3, 20, 400)))
def test_parts_and_threads(size, rates, monkeypatch):
    tokens, targets, k, v = drawn(size)
    data = Tokens.from_arrays(tokens, targets)
    in_one = descend(data, k, v, *rates, 4)
    monkeypatch.setattr(slr, "LARGE", 0)
    paths = []
    for threads in (1, 2, 3, 64):
        monkeypatch.setattr(slr, "THREADS", threads)
        paths.append(descend(data, k, v, *rates, 4))
        assert same_bits(paths[-1], paths[0])
        assert rates[0] == 0 or paths[-1].loss[2] == loss_and_gradient(data, paths[-1].k[2], paths[-1].v[2])[0]
    for found, wanted in zip(paths[0], in_one, strict=True):
        assert np.abs(found - wanted).max() <= 10 * STEP * max(1.0, np.abs(wanted).max())


def test_large_data_are_cut_into_parts_and_small_are_not():
    small = Tokens.from_arrays(np.ones((10, 10, 50)), np.ones(10))
    assert len(slr._edges(small._layout)) == 2
    n = int(slr.LARGE) // 500 + 1
    large = Tokens.from_arrays(np.broadcast_to(np.ones(50), (n, 10, 50)), np.full(n, 3.0))
    edges = slr._edges(large._layout)
    assert len(edges) == slr.PARTS + 1 and edges[-1] * large._layout.contexts >= n > (edges[-1] - 1) * 4
    loss, d_k, d_v = loss_and_gradient(large, np.zeros(50), np.full(50, 0.02))
    assert loss == pytest.approx(4.0, rel=1e-13)
    assert np.abs(d_k).max() <= 1e-13 and d_v == pytest.approx(np.full(50, -4.0), rel=1e-13)


# ---- inputs ----------------------------------------------------------------------------------------------------------


def kinds(array):
    """The same numbers in other places in memory, read-only, and in types that hold them."""
    thirds = tuple(slice(1, None, 3) for _ in array.shape)
    spread = np.zeros([3 * n for n in array.shape])
    spread[thirds] = array
    unaligned = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:].view(array.dtype).reshape(array.shape)
    unaligned[...] = array
    versions = [array.copy(), np.asfortranarray(array), spread[thirds], unaligned, np.flip(np.flip(array).copy())]
    versions += [array.astype(kind) for kind in ("f4", ">f8", "i1", ">i4", "i8")]
    for version in versions:
        version.flags.writeable = False
    return [*versions, array.tolist()]


def test_inputs_may_have_any_type_and_place_in_memory():
    rng = np.random.default_rng(0)
    tokens, targets, k, v = (rng.integers(-3, 4, shape).astype(float) for shape in ((21, 5, 3), 21, 3, 3))
    data = Tokens.from_arrays(tokens, targets)
    wanted = loss_and_gradient(data, k, v)
    for kind in kinds(tokens):
        assert same_bits(loss_and_gradient(Tokens.from_arrays(kind, targets), k, v), wanted)
    for kind in kinds(targets):
        assert same_bits(loss_and_gradient(Tokens.from_arrays(tokens, kind), k, v), wanted)
    for one, other in zip(kinds(k), kinds(v), strict=True):
        assert same_bits(loss_and_gradient(data, one, other), wanted)
        assert same_bits(descend(data, one, other, 0.01, 0.01, 3), descend(data, k, v, 0.01, 0.01, 3))
        assert evaluate(data, one, other) == wanted[0]


def test_tokens_in_order_are_not_copied_and_nothing_is_written_to_them():
    tokens, targets, k, v = drawn((33, 10, 7))
    kept = tokens.copy(), targets.copy(), k.copy(), v.copy()
    data = Tokens.from_arrays(tokens, targets)
    assert np.shares_memory(data.tokens, tokens) and tokens.flags.writeable
    assert data.nbytes <= tokens.nbytes + 40_000
    for array in (data.tokens, data.targets):
        assert not array.flags.writeable
    path = descend(data, k, v, 0.1, 0.1, 3)
    descend(data, k, v, 0.0, 0.1, 3)
    assert same_bits(kept, (tokens, targets, k, v))
    assert same_bits((data.n, data.length, data.d), (33, 10, 7))
    assert same_bits((data.tokens, data.targets), (tokens, targets))
    path.k[...] = path.v[...] = 7.0
    assert same_bits(kept[2:], (k, v))


# the last have full blocks of 2000, 1000, 664 contexts, and behind them less than is read of a token at once
@pytest.mark.parametrize("size", (*SIZES, (2000, 1, 1), (2001, 1, 1), (2003, 1, 2), (1329, 1, 3)))
def test_what_lies_behind_the_last_token_in_memory_is_not_used(size):
    tokens, targets, k, v = drawn(size)
    room = np.full(tokens.size + 100, np.nan)
    room[: tokens.size] = tokens.reshape(-1)
    data = Tokens.from_arrays(room[: tokens.size].reshape(size), targets)
    wanted = Tokens.from_arrays(tokens, targets)
    results = loss_and_gradient(data, k, v)
    assert np.isfinite(results[0]) and same_bits(results, loss_and_gradient(wanted, k, v))
    assert_same(results, slr_twin.loss_and_gradient(tokens, targets, k, v), absolute_terms(tokens, targets, k, v))
    assert same_bits(descend(data, k, v, 0, 1, 2), descend(wanted, k, v, 0, 1, 2))


BAD = (
    ({"tokens": np.ones((3, 2))}, "tokens"),
    ({"tokens": np.ones((0, 2, 2))}, "tokens"),
    ({"tokens": np.ones((3, 0, 2))}, "tokens"),
    ({"tokens": np.ones((3, 2, 2), dtype=complex)}, "tokens"),
    ({"tokens": np.ones((3, 2, 2), dtype=bool)}, "tokens"),
    ({"tokens": "abc"}, "tokens"),
    ({"tokens": np.full((3, 2, 2), np.nan)}, r"tokens must be finite, but \[0, 0, 0\] is not"),
    ({"tokens": np.where(np.arange(12).reshape(3, 2, 2) == 7, np.inf, 0)}, r"tokens must be finite, but \[1, 1, 1\]"),
    ({"targets": np.ones(4)}, "targets"),
    ({"targets": np.ones((3, 1))}, "targets"),
    ({"targets": [1, np.inf, 2]}, r"targets must be finite, but \[1\] is not"),
    ({"k": np.ones(3)}, "k must"),
    ({"k": np.ones((1, 2))}, "k must"),
    ({"k": [np.nan, 1]}, "k must be finite"),
    ({"v": 1.0}, "v must"),
    ({"v": ["a", "b"]}, "v must"),
    ({"v": [1, -np.inf]}, "v must be finite"),
    ({"rate_a": -1.0}, "rate_a"),
    ({"rate_o": np.inf}, "rate_o"),
    ({"rate_o": np.nan}, "rate_o"),
    ({"steps": -1}, "steps"),
    ({"steps": 1.5}, "steps"),
    ({"loss_limit": np.nan}, "loss_limit"),
)


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_input_is_named(changes, message):
    given_ = {"tokens": np.ones((3, 2, 2)), "targets": np.ones(3), "k": np.ones(2), "v": np.ones(2),
              "rate_a": 1.0, "rate_o": 1.0, "steps": 1} | changes
    with pytest.raises(InputError, match=message):
        descend(Tokens.from_arrays(given_.pop("tokens"), given_.pop("targets")), **given_)


def test_data_must_be_made_by_the_class():
    for call in (evaluate, loss_and_gradient):
        with pytest.raises(InputError, match="data must be made by"):
            call(np.ones((3, 2, 2)), np.ones(2), np.ones(2))


# ---- sampling --------------------------------------------------------------------------------------------------------

KEY, VALUE = np.eye(2, 6)
MANY = 20_000
DEVIATIONS = 6.0  # of a mean of MANY values: a false alarm in 1e9


def test_sampled_contexts_have_the_law_they_should():
    data = sample_tokens(np.random.default_rng(0), MANY, 4, KEY, VALUE, 0.3)
    tokens, targets = data.tokens, data.targets
    # the informative token is the only one whose value is the target but for the noise: find it by least squares
    moments = np.mean(tokens**2, axis=(0, 1))
    mean_of_key_square = (3 + 0.5 + 3) / 4  # others 1, informative d/2 + 1/2
    assert moments[0] == pytest.approx(mean_of_key_square, abs=DEVIATIONS * 5 / np.sqrt(MANY))
    assert moments[1:] == pytest.approx((3 + 0.5) / 4, abs=DEVIATIONS * 1.5 / np.sqrt(4 * MANY))
    assert np.mean(targets**2) == pytest.approx(0.5 + 0.09, abs=DEVIATIONS / np.sqrt(MANY))
    # E[y X_l . v*] = 1/(2 L) at every position, E[y X_l . other] = 0, E[y^2 X_l . k*] = sqrt(d/2) (1/2 + eps^2) / L
    means = np.einsum("n,nld->ld", targets, tokens) / MANY
    assert means[:, 1] == pytest.approx(1 / 8, abs=DEVIATIONS / np.sqrt(MANY))
    assert np.delete(means, 1, axis=1) == pytest.approx(0, abs=DEVIATIONS * 1.5 / np.sqrt(MANY))
    weighted = np.einsum("n,nld->ld", targets**2, tokens) / MANY
    assert weighted[:, 0] == pytest.approx(np.sqrt(3) * 0.59 / 4, abs=DEVIATIONS * 2 / np.sqrt(MANY))


def test_without_noise_the_target_is_read_off_one_token_and_every_position_comes_up():
    data = sample_tokens(np.random.default_rng(3), 2000, 5, KEY, VALUE, 0.0)
    hits = np.abs(data.tokens[..., 1] - data.targets[:, None]) < 1e-12
    assert np.all(hits.sum(axis=1) == 1)
    assert np.all(np.abs(hits.mean(axis=0) - 0.2) <= DEVIATIONS * 0.4 / np.sqrt(2000))
    informative = data.tokens[hits]
    assert np.mean(informative, axis=0) == pytest.approx(np.sqrt(3) * KEY, abs=DEVIATIONS * np.sqrt(0.5 / 2000))
    assert np.var(informative, axis=0) == pytest.approx(0.5, abs=DEVIATIONS * 0.5 * np.sqrt(2 / 2000))


def test_a_seed_keeps_its_contexts_and_the_directions_only_move_them():
    one, other = (sample_tokens(np.random.default_rng(4), 50, 3, KEY, VALUE, 0.1) for _ in range(2))
    assert same_bits((one.tokens, one.targets), (other.tokens, other.targets))
    turned = sample_tokens(np.random.default_rng(4), 50, 3, -KEY, VALUE, 0.1)
    moved = np.any(one.tokens != turned.tokens, axis=2)
    assert np.all(moved.sum(axis=1) == 1) and np.array_equal(one.targets, turned.targets)
    assert one.tokens[moved] - turned.tokens[moved] == pytest.approx(2 * np.sqrt(3) * np.tile(KEY, (50, 1)), abs=1e-14)


@pytest.mark.parametrize(("changes", "message"), (
    ({"n": 0}, "n must"), ({"length": 0}, "length must"), ({"length": 2.0}, "length must"),
    ({"noise": -0.1}, "noise must"), ({"noise": np.nan}, "noise must"),
    ({"key": 2 * KEY}, "orthonormal"), ({"value": KEY}, "orthonormal"), ({"key": KEY[:5]}, "value must"),
    ({"value": [np.nan] * 6}, "value must be finite"),
))
def test_bad_laws_are_refused(changes, message):
    law = {"n": 5, "length": 3, "key": KEY, "value": VALUE, "noise": 0.1} | changes
    with pytest.raises(InputError, match=message):
        sample_tokens(np.random.default_rng(0), **law)


@pytest.mark.parametrize("module", (slr, slr_twin), ids=lambda module: module.__name__)
def test_examples_in_the_documentation_are_true(module):
    assert doctest.testmod(module).failed == 0
