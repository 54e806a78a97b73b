"""The letter model's kernels against its numpy twin, complex steps, 50-digit arithmetic and exact identities."""

from concurrent.futures import ThreadPoolExecutor

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytic.errors import InputError
from analytic.gradients import letter_twin
from analytic.gradients.letter import FAR_SCORES, Words, descend, evaluate, loss_and_gradient, scores

STEP = 1e-12  # a complex step is exact to rounding; sums of a few hundred terms of size one round to about 1e-14
ROUNDING = 1e-14  # times the sum of the absolute terms that a result adds up
HALF_ULP = 2.0**-53  # times the range of scores: alpha - max alpha is rounded once before the exponential
HEADS = (1, 2, 4)


def random_words(rng, n_words, d, mean):
    counts = rng.poisson(mean, (n_words, d))
    counts[np.arange(n_words), rng.integers(d, size=n_words)] += 1
    return counts, rng.choice([-1, 1], n_words)


def packed(rng):
    return (*random_words(rng, 300, 11, 0.8), "packed")


def wide(rng):
    counts, labels = random_words(rng, 150, 7, 0.8)
    counts[3, 2], counts[140, 0] = 256, 1_000_000
    return counts, labels, "wide"


def sparse(rng):
    return (*random_words(rng, 40, 150, 0.01), "sparse")


def far(rng):
    return (*random_words(rng, 300, 6, 0.3), "packed")


def far_wide(rng):
    counts, labels = random_words(rng, 150, 6, 0.3)
    counts[3, 2] = 300
    return counts, labels, "wide"


def far_sparse(rng):
    return (*random_words(rng, 40, 150, 0.01), "sparse")


PATHS = (packed, wide, sparse, far, far_wide, far_sparse)


def case(path, heads, seed=0):
    """counts, labels, Words, alpha, beta for one path through the kernels."""
    rng = np.random.default_rng([seed, heads])
    counts, labels, name = path(rng)
    words = Words.from_counts(counts, labels)
    assert words.path == name
    alpha = rng.normal(size=(heads, counts.shape[1]))
    if path.__name__.startswith("far"):
        alpha *= 1.5 * FAR_SCORES / np.ptp(alpha)
    return counts, labels, words, alpha, rng.normal(size=alpha.shape)


def absolute_terms(counts, labels, alpha, beta):
    """Sums of |terms| of loss, d_alpha, d_beta, times a factor for the scores: what bounds rounding errors."""
    shares = letter_twin.attention(counts, alpha)
    outputs = np.einsum("hnd,hd->hn", shares, beta)
    size = 1.0 + np.abs(labels) + np.einsum("hnd,hd->n", shares, np.abs(beta))
    mass = 2.0 / len(labels) * np.einsum("n,hnd->hd", size, shares)
    moved = 2.0 / len(labels) * np.einsum("n,hn,hnd->hd", size, np.abs(outputs), shares)
    scale = 1.0 + HALF_ULP / ROUNDING * min(np.ptp(alpha, axis=1).max(), FAR_SCORES)
    return scale * np.mean(size**2), scale * (mass * np.abs(beta) + moved), scale * mass


def assert_same(results, wanted, terms, tolerance):
    for result, want, size in zip(results, wanted, terms, strict=True):
        assert np.all(np.abs(result - want) <= tolerance * size + 1e-300)


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("path", PATHS)
def test_the_gradient_is_the_complex_step_derivative_of_the_loss(path, heads):
    counts, labels, words, alpha, beta = case(path, heads)
    loss, d_alpha, d_beta = loss_and_gradient(words, alpha, beta)
    assert abs(loss - letter_twin.loss_and_gradient(counts, labels, alpha, beta)[0]) <= STEP
    for index in np.ndindex(*alpha.shape):
        step = np.zeros(alpha.shape, dtype=complex)
        step[index] = 1e-30j
        by_alpha = letter_twin.loss_and_gradient(counts, labels, alpha + step, beta)[0].imag / 1e-30
        by_beta = letter_twin.loss_and_gradient(counts, labels, alpha, beta + step)[0].imag / 1e-30
        assert abs(d_alpha[index] - by_alpha) <= STEP
        assert abs(d_beta[index] - by_beta) <= STEP


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("path", PATHS)
def test_the_twin_says_the_same_as_the_kernel(path, heads):
    counts, labels, words, alpha, beta = case(path, heads, seed=1)
    terms = absolute_terms(counts, labels, alpha, beta)
    wanted = letter_twin.loss_and_gradient(counts, labels, alpha, beta)
    assert_same(loss_and_gradient(words, alpha, beta), wanted, terms, ROUNDING)
    f = letter_twin.scores(counts, alpha, beta)
    assert_same([scores(words, alpha, beta)], [f], [1.0 + np.abs(beta).sum()], ROUNDING)
    loss, accuracy = evaluate(words, alpha, beta)
    assert_same([loss], wanted[:1], terms[:1], ROUNDING)
    assert accuracy == np.mean(labels * f > 0)


def in_fifty_digits(counts, labels, alpha, beta):
    """Loss and gradients straight from the definition, at 50 digits."""
    n_words, d = counts.shape
    heads = range(len(alpha))
    loss, d_alpha, d_beta = mpmath.mpf(0), mpmath.zeros(len(alpha), d), mpmath.zeros(len(alpha), d)
    for word, y in zip(counts.tolist(), labels.tolist(), strict=True):
        weights = [[n * mpmath.exp(mpmath.mpf(a)) for n, a in zip(word, alpha[h], strict=True)] for h in heads]
        shares = [[w / mpmath.fsum(row) for w in row] for row in weights]
        outputs = [mpmath.fsum(a * mpmath.mpf(b) for a, b in zip(shares[h], beta[h], strict=True)) for h in heads]
        residual = mpmath.fsum(outputs) - 1 - y
        loss += residual**2 / n_words
        for h in heads:
            for j in range(d):
                d_beta[h, j] += 2 * residual * shares[h][j] / n_words
                d_alpha[h, j] += 2 * residual * shares[h][j] * (mpmath.mpf(beta[h, j]) - outputs[h]) / n_words
    return loss, d_alpha, d_beta


@pytest.mark.parametrize("heads", (1, 3))
@pytest.mark.parametrize("path", PATHS)
def test_results_are_exact_to_rounding(path, heads):
    counts, labels, _, alpha, beta = case(path, heads, seed=2)
    counts, labels = counts[:12], labels[:12]
    with mpmath.workdps(50):
        exact = [np.array(x.tolist() if hasattr(x, "tolist") else x, dtype=float)
                 for x in in_fifty_digits(counts, labels, alpha, beta)]
    results = loss_and_gradient(Words.from_counts(counts, labels), alpha, beta)
    assert_same(results, exact, absolute_terms(counts, labels, alpha, beta), ROUNDING)


@st.composite
def models(draw):
    n_words, d, heads = draw(st.integers(1, 5)), draw(st.integers(2, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    counts = rng.integers(0, draw(st.sampled_from([1, 3, 300, 100_000, 2**31 - 2])), (n_words, d), endpoint=True)
    counts[:, draw(st.integers(0, d - 1))] += 1
    spread = draw(st.sampled_from([0.1, 3.0, 60.0, 90.0, 1e4]))
    alpha = rng.uniform(-spread, spread, (heads, d))
    return counts, rng.choice([-1, 1], n_words), alpha, rng.normal(size=(heads, d)) * draw(st.sampled_from([1, 1e20]))


@given(models())
def test_any_small_model_agrees_with_the_twin(model):
    counts, labels, alpha, beta = model
    results = loss_and_gradient(Words.from_counts(counts, labels), alpha, beta)
    wanted = letter_twin.loss_and_gradient(counts, labels, alpha, beta)
    assert_same(results, wanted, absolute_terms(*model), ROUNDING)


@given(models())
def test_each_head_only_moves_attention_between_letters(model):
    counts, labels, alpha, beta = model
    _, d_alpha, _ = loss_and_gradient(Words.from_counts(counts, labels), alpha, beta)
    size = absolute_terms(*model)[1].sum(axis=1)
    assert np.all(np.abs(d_alpha.sum(axis=1)) <= ROUNDING * size)  # sum_j d loss / d alpha_j = 0


@given(models(), st.randoms(use_true_random=False))
def test_renaming_letters_renames_the_gradient(model, random):
    counts, labels, alpha, beta = model
    order = random.sample(range(alpha.shape[1]), alpha.shape[1])
    loss, *gradients = loss_and_gradient(Words.from_counts(counts, labels), alpha, beta)
    renamed = loss_and_gradient(Words.from_counts(counts[:, order], labels), alpha[:, order], beta[:, order])
    terms = absolute_terms(*model)
    assert_same(renamed, [loss, *(g[:, order] for g in gradients)], [terms[0], terms[1][:, order], terms[2][:, order]],
                ROUNDING)


@pytest.mark.parametrize("shift", ((-512.0, -512.0), (1.0, -1.0), (2.0**20, 0.0), (-1024.0, 2048.0)))
@pytest.mark.parametrize("path", PATHS)
def test_adding_a_constant_to_the_scores_of_a_head_changes_nothing(path, shift):
    counts, labels, words, alpha, beta = case(path, 2)
    alpha = np.round(alpha * 2**20) / 2**20  # so that the shifted scores are exact
    shifted = loss_and_gradient(words, alpha + np.array(shift)[:, None], beta)
    assert_same(shifted, loss_and_gradient(words, alpha, beta), absolute_terms(counts, labels, alpha, beta), ROUNDING)


@pytest.mark.parametrize("path", PATHS)
def test_repeating_every_word_changes_nothing(path):
    counts, labels, words, alpha, beta = case(path, 2)
    twice = Words.from_counts(np.repeat(counts, 2, axis=0), np.repeat(labels, 2))
    terms = absolute_terms(counts, labels, alpha, beta)
    assert_same(loss_and_gradient(twice, alpha, beta), loss_and_gradient(words, alpha, beta), terms, ROUNDING)


@pytest.mark.parametrize("far_head", (0, 1))
@pytest.mark.parametrize("path", (far, far_wide))
def test_one_head_may_have_far_scores_beside_one_with_near_ones(path, far_head):
    counts, labels, words, alpha, beta = case(path, 2)
    alpha[far_head] = np.linspace(0.0, 1.95 * FAR_SCORES, len(alpha[0]))
    alpha[1 - far_head] = np.linspace(0.95, 1.0, len(alpha[0])) * FAR_SCORES
    wanted = letter_twin.loss_and_gradient(counts, labels, alpha, beta)
    assert_same(loss_and_gradient(words, alpha, beta), wanted, absolute_terms(counts, labels, alpha, beta), ROUNDING)


@pytest.mark.parametrize("path", (packed, wide, sparse))
def test_both_treatments_of_scores_agree_where_they_meet(path):
    counts, labels, words, alpha, beta = case(path, 2)
    alpha[:, :2] = 0.0, FAR_SCORES
    alpha[:, 2:] = np.clip(alpha[:, 2:], 0, FAR_SCORES)
    near, beyond = alpha.copy(), alpha.copy()
    beyond[:, 1] = np.nextafter(FAR_SCORES, np.inf)
    allowed = [FAR_SCORES * ROUNDING * size for size in absolute_terms(counts, labels, alpha, beta)]
    assert_same(loss_and_gradient(words, near, beta), loss_and_gradient(words, beyond, beta), allowed, 1.0)


@pytest.mark.parametrize("path", (packed, wide, sparse))
def test_scores_of_ten_thousand_pick_the_best_letter_of_each_word(path):
    counts, labels, words, alpha, beta = case(path, 1)
    alpha = 1e4 * np.linspace(-1, 1, alpha.size)[np.random.default_rng(3).permutation(alpha.size)]
    best = np.where(counts > 0, alpha, -np.inf).argmax(axis=1)
    f = scores(words, alpha, beta[0])
    assert np.array_equal(f, beta[0, best] - 1.0)
    loss, d_alpha, d_beta = loss_and_gradient(words, alpha, beta[0])
    assert abs(loss - np.mean((f - labels) ** 2)) <= ROUNDING * loss
    assert np.abs(d_alpha).max() < 1e-50
    wanted = np.bincount(best, 2 * (f - labels), minlength=alpha.size) / len(labels)
    assert np.all(np.abs(d_beta - wanted) <= 1e-13)


@pytest.mark.parametrize("size", (1e-60, 1e29, 1e60, 1e140))
@pytest.mark.parametrize("path", (packed, wide, sparse))
def test_output_weights_of_any_size_do_not_overflow(path, size):
    counts, labels, words, alpha, beta = case(path, 2)
    alpha *= 0.95 * FAR_SCORES / np.ptp(alpha)
    beta *= size
    wanted = letter_twin.loss_and_gradient(counts, labels, alpha, beta)
    assert_same(loss_and_gradient(words, alpha, beta), wanted, absolute_terms(counts, labels, alpha, beta), ROUNDING)


def test_one_letter_words_show_the_output_weight():
    labels = np.array([1, -1, 1])
    words = Words.from_counts(np.diag([1, 5, 1_000_000]), labels)
    beta = np.array([0.3, -2.0, 1.7])
    assert scores(words, [3.0, -1.0, 0.5], beta) == pytest.approx(beta - 1, abs=1e-15)
    loss, d_alpha, d_beta = loss_and_gradient(words, [3.0, -1.0, 0.5], beta)
    assert loss == pytest.approx(np.mean((beta - 1 - labels) ** 2), rel=ROUNDING)
    assert np.abs(d_alpha).max() <= 1e-15  # attention has nowhere else to go
    assert d_beta == pytest.approx(2 / 3 * (beta - 1 - labels), rel=ROUNDING)


def test_equal_words_count_as_one():
    words = Words.from_counts(np.tile([1, 2, 0], (1000, 1)), np.ones(1000, dtype=int))
    one = Words.from_counts([[1, 2, 0]], [1])
    alpha, beta = np.array([0.3, -0.2, 9.0]), np.array([0.1, 0.7, -3.0])
    for many, single in zip(loss_and_gradient(words, alpha, beta), loss_and_gradient(one, alpha, beta), strict=True):
        assert np.all(np.abs(many - single) <= 1000 * 2.0**-53 * 10)  # equal terms may all round the same way


def test_two_letters_five_thousand_letters_and_words_of_a_million_letters():
    rng = np.random.default_rng(7)
    two, many, long = rng.integers(1, 4, (1, 2)), rng.integers(0, 2, (40, 5000)), rng.multinomial(10**6, [0.1] * 10, 50)
    for counts in (two, many, long):
        labels = rng.choice([-1, 1], len(counts))
        alpha, beta = rng.normal(size=(2, counts.shape[1])), rng.normal(size=(2, counts.shape[1]))
        results = loss_and_gradient(Words.from_counts(counts, labels), alpha, beta)
        wanted = letter_twin.loss_and_gradient(counts, labels, alpha, beta)
        assert_same(results, wanted, absolute_terms(counts, labels, alpha, beta), ROUNDING)


def test_at_zero_every_output_is_minus_one_and_the_loss_four_times_the_share_of_positives():
    _, labels, words, alpha, _ = case(packed, 1)
    loss, d_alpha, _ = loss_and_gradient(words, 0 * alpha, 0 * alpha)
    assert loss == pytest.approx(4 * np.mean(labels == 1), rel=ROUNDING)
    assert np.all(d_alpha == 0)
    assert evaluate(words, 0 * alpha, 0 * alpha)[1] == np.mean(labels == -1)


def test_an_output_of_zero_is_wrong():
    words = Words.from_counts([[1, 1], [1, 1]], [1, -1])
    assert evaluate(words, [0.0, 0.0], [2.0, 0.0]) == (1.0, 0.0)


# ---- descent ---------------------------------------------------------------------------------------------------------


def same_bits(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("heads", (1, 2))
@pytest.mark.parametrize("path", PATHS)
def test_descent_follows_the_gradient_of_both_layers_at_once(path, heads):
    _, _, words, alpha, beta = case(path, heads)
    path = descend(words, alpha, beta, 0.7, 0.3, 5)
    for t in range(6):
        loss, d_alpha, d_beta = loss_and_gradient(words, path.alpha[t], path.beta[t])
        assert path.loss[t] == loss
        if t < 5:
            assert np.allclose(path.alpha[t + 1], path.alpha[t] - 0.7 * d_alpha, rtol=1e-15, atol=1e-15)
            assert np.allclose(path.beta[t + 1], path.beta[t] - 0.3 * d_beta, rtol=1e-15, atol=1e-15)
    assert same_bits((path.alpha[0], path.beta[0]), (alpha, beta))


@pytest.mark.parametrize("path", PATHS)
def test_cutting_a_run_into_calls_changes_no_bit(path):
    _, _, words, alpha, beta = case(path, 2)
    whole = descend(words, alpha, beta, 1.0, 0.5, 9)
    first = descend(words, alpha, beta, 1.0, 0.5, 4)
    second = descend(words, first.alpha[-1], first.beta[-1], 1.0, 0.5, 5)
    for full, *parts in zip(whole, first, second, strict=True):
        assert np.array_equal(full, np.concatenate([parts[0], parts[1][1:]]))


def test_cutting_a_run_that_leaves_the_safe_range_of_scores_changes_no_bit():
    counts, labels, words, alpha, beta = case(packed, 1)
    alpha[0, 0] = alpha.max() - FAR_SCORES + 0.5  # the others still compete
    whole = descend(words, alpha, beta, 0.5, 0.0, 8)
    ranges = np.ptp(whole.alpha, axis=2)
    assert ranges.min() < FAR_SCORES < ranges.max()
    pieces = [descend(words, whole.alpha[t], whole.beta[t], 0.5, 0.0, 1) for t in range(8)]
    for t, piece in enumerate(pieces):
        assert same_bits(piece, [part[t : t + 2] for part in whole])
        assert_same(loss_and_gradient(words, whole.alpha[t], beta),
                    letter_twin.loss_and_gradient(counts, labels, whole.alpha[t], beta),
                    absolute_terms(counts, labels, whole.alpha[t], beta), ROUNDING)


def test_threads_do_not_change_bits():
    runs = [case(path, 2) for path in PATHS]
    alone = [descend(words, alpha, beta, 1.0, 0.5, 20) for _, _, words, alpha, beta in runs]
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(descend, words, alpha, beta, 1.0, 0.5, 20) for _, _, words, alpha, beta in runs * 4]
        for i, future in enumerate(futures):
            assert same_bits(future.result(), alone[i % len(alone)])


def test_rate_zero_freezes_a_layer():
    _, _, words, alpha, beta = case(packed, 2)
    assert np.ptp(descend(words, alpha, beta, 0, 0.5, 3).alpha, axis=0).max() == 0
    assert np.ptp(descend(words, alpha, beta, 0.5, 0, 3).beta, axis=0).max() == 0


def test_one_head_is_the_same_as_a_row_of_one_head():
    _, _, words, alpha, beta = case(packed, 1)
    flat, row = descend(words, alpha[0], beta[0], 1, 1, 3), descend(words, alpha, beta, 1, 1, 3)
    assert flat.alpha.shape == (4, alpha.shape[1]) and row.alpha.shape == (4, *alpha.shape)
    assert same_bits((flat.loss, flat.alpha, flat.beta), (row.loss, row.alpha[:, 0], row.beta[:, 0]))


def test_a_small_rate_lowers_the_loss():
    _, _, words, alpha, beta = case(packed, 2)
    assert np.all(np.diff(descend(words, alpha, beta, 0.1, 0.1, 50).loss) < 0)


def test_a_run_may_be_stopped_by_a_loss_limit_as_low_as_zero():
    _, _, words, alpha, beta = case(packed, 1)
    for limit in (0, 0.5):
        assert len(descend(words, alpha, beta, 0.0, 1.0, 5, loss_limit=limit).loss) == 1


def test_a_diverging_run_ends_with_the_first_state_beyond_the_limit():
    _, _, words, alpha, beta = case(packed, 1)
    path = descend(words, alpha, beta, 0.0, 100.0, 400, loss_limit=1e6)
    assert len(path.loss) == len(path.alpha) == len(path.beta) < 400
    assert np.all(path.loss[:-1] <= 1e6) and path.loss[-1] > 1e6
    free = descend(words, alpha, beta, 0.0, 1e9, 400)
    assert np.isfinite(free.loss[:-1]).all() and not np.isfinite(free.loss[-1])
    joint = descend(words, alpha, beta, 1e9, 1e9, 400)
    assert np.isfinite(joint.loss[:-1]).all() and (len(joint.loss) == 401 or not np.isfinite(joint.loss[-1]))


def test_no_steps_is_the_loss_of_the_start():
    _, _, words, alpha, beta = case(packed, 1)
    path = descend(words, alpha, beta, 1, 1, 0)
    assert path.loss.tolist() == [loss_and_gradient(words, alpha, beta)[0]] and path.alpha.shape == (1, *alpha.shape)


# ---- arguments -------------------------------------------------------------------------------------------------------


def test_parameters_of_any_real_kind_and_layout_are_taken_and_left_alone():
    words = case(packed, 2)[2]
    d = words.d
    alpha, beta = np.arange(2 * d).reshape(2, d) % 5, np.arange(2 * d).reshape(2, d) % 3 - 1
    wanted = descend(words, alpha.astype(float), beta.astype(float), 1, 1, 2)
    frozen = alpha.astype(float)
    frozen.flags.writeable = False
    strided = np.zeros((2, 2 * d))[:, ::2]
    strided[:] = alpha
    by_column = np.asfortranarray(alpha, dtype=float)
    for kind in (alpha, alpha.tolist(), alpha.astype(np.float32), by_column, frozen, strided):
        assert same_bits(descend(words, kind, beta, 1, 1, 2), wanted)
        assert np.array_equal(kind, alpha)


@pytest.mark.parametrize(
    "alpha, beta, named",
    [
        (np.zeros(10), np.zeros(10), "alpha"),
        (np.zeros(12), np.zeros(12), "alpha"),
        (np.zeros((11, 2)), np.zeros((11, 2)), "alpha"),
        (np.zeros((0, 11)), np.zeros((0, 11)), "alpha"),
        (np.zeros((1, 1, 11)), np.zeros((1, 1, 11)), "alpha"),
        (0.0, 0.0, "alpha"),
        (np.zeros(11), np.zeros((2, 11)), "beta"),
        (np.zeros((2, 11)), np.zeros((1, 11)), "beta"),
        (np.zeros(11), np.zeros((1, 11)), "beta"),
        (np.zeros(11), np.zeros(11, dtype=complex), "beta"),
        (np.zeros(11), ["x"] * 11, "beta"),
        (np.zeros(11, dtype=bool), np.zeros(11), "alpha"),
        (np.full(11, np.nan), np.zeros(11), "alpha"),
        (np.zeros(11), np.full(11, np.inf), "beta"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_by_name(alpha, beta, named):
    words = case(packed, 1)[2]
    for call in (scores, evaluate, loss_and_gradient, lambda *args: descend(*args, 1, 1, 1)):
        with pytest.raises(InputError, match=f"^{named} must"):
            call(words, alpha, beta)


@pytest.mark.parametrize(
    "changed",
    [{"rate_a": -1.0}, {"rate_a": np.nan}, {"rate_o": np.inf}, {"rate_o": "1"}, {"steps": -1}, {"steps": 1.5},
     {"loss_limit": np.nan}, {"loss_limit": -1.0}],
)
def test_rates_steps_and_limits_out_of_range_are_refused_by_name(changed):
    _, _, words, alpha, beta = case(packed, 1)
    with pytest.raises(InputError, match=f"^{next(iter(changed))} must"):
        descend(words, alpha, beta, **{"rate_a": 1.0, "rate_o": 1.0, "steps": 1, **changed})


def test_counts_must_be_packed_first():
    with pytest.raises(InputError, match=r"^words must"):
        scores(np.ones((2, 3), dtype=int), np.zeros(3), np.zeros(3))
