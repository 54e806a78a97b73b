"""Many words in parts: same results as the numpy twin, and the same bits for any number of threads and calls."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from analytic.gradients import letter, letter_twin
from analytic.gradients.letter import CACHE, LARGE, ROWS, Words, descend, evaluate, loss_and_gradient, scores

from .test_letter_gradients import PATHS, ROUNDING, STEP, absolute_terms, assert_same, case, packed, same_bits


@pytest.fixture
def in_parts(monkeypatch):
    """Every set of more than one block counts as large, and each block is a part."""
    monkeypatch.setattr(letter, "LARGE", 0)
    monkeypatch.setattr(letter, "PART_BLOCKS", 1)
    monkeypatch.setattr(letter, "THREADS", 2)


def several_blocks(path, heads, last=1):
    """A case of three blocks, the last one of ``last`` words, in the layout of ``path``."""
    counts, labels, words, alpha, beta = case(path, heads)
    rows = np.arange(2 * ROWS + last) % len(counts)
    counts, labels = counts[rows], labels[rows]
    repeated = Words.from_counts(counts, labels)
    assert repeated.path == words.path
    return counts, labels, repeated, alpha, beta


@pytest.mark.parametrize("heads", (1, 3))
@pytest.mark.parametrize("last", (1, 100, ROWS))
@pytest.mark.parametrize("path", PATHS)
def test_parts_give_what_the_twin_gives(in_parts, path, last, heads):
    counts, labels, words, alpha, beta = several_blocks(path, heads, last)
    assert letter._edges(words._layout) == [0, ROWS, 2 * ROWS, 2 * ROWS + last]
    terms = absolute_terms(counts, labels, alpha, beta)
    wanted = letter_twin.loss_and_gradient(counts, labels, alpha, beta)
    assert_same(loss_and_gradient(words, alpha, beta), wanted, terms, ROUNDING)
    f = letter_twin.scores(counts, alpha, beta)
    assert_same([scores(words, alpha, beta)], [f], [1.0 + np.abs(beta).sum()], ROUNDING)
    loss, accuracy = evaluate(words, alpha, beta)
    assert_same([loss], wanted[:1], terms[:1], ROUNDING)
    assert accuracy == np.mean(labels * f > 0)


def test_the_gradient_of_parts_is_the_derivative_by_complex_numbers(in_parts):
    counts, labels, words, alpha, beta = several_blocks(packed, 3)
    _, d_alpha, d_beta = loss_and_gradient(words, alpha, beta)
    for index in np.ndindex(*alpha.shape):
        step = np.zeros(alpha.shape, dtype=complex)
        step[index] = 1e-30j
        by_alpha = letter_twin.loss_and_gradient(counts, labels, alpha + step, beta)[0].imag / 1e-30
        by_beta = letter_twin.loss_and_gradient(counts, labels, alpha, beta + step)[0].imag / 1e-30
        assert abs(d_alpha[index] - by_alpha) <= STEP and abs(d_beta[index] - by_beta) <= STEP


def results(words, alpha, beta):
    run = descend(words, alpha, beta, 1.0, 0.5, 6)
    return [*run, *loss_and_gradient(words, alpha, beta), scores(words, alpha, beta), evaluate(words, alpha, beta)]


@pytest.mark.parametrize("parts", (2, 3))
@pytest.mark.parametrize("path", PATHS)
def test_the_number_of_threads_changes_no_bit(in_parts, monkeypatch, path, parts):
    _, _, words, alpha, beta = several_blocks(path, 2)
    monkeypatch.setattr(letter, "PARTS", parts)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(letter, "THREADS", threads)
        found.append(results(words, alpha, beta))
    assert same_bits(found[0], found[1]) and same_bits(found[0], found[2])


def test_runs_side_by_side_do_not_disturb_each_other(in_parts):
    runs = [several_blocks(path, 2)[2:] for path in PATHS]
    alone = [results(*run) for run in runs]
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(lambda run: results(*run), runs * 2), alone * 2, strict=True):
            assert same_bits(found, wanted)


@pytest.mark.parametrize("path", PATHS)
def test_cutting_a_run_into_calls_changes_no_bit(in_parts, path):
    _, _, words, alpha, beta = several_blocks(path, 2)
    whole = descend(words, alpha, beta, 1.0, 0.5, 6)
    for cut in range(7):
        first = descend(words, alpha, beta, 1.0, 0.5, cut)
        second = descend(words, first.alpha[-1], first.beta[-1], 1.0, 0.5, 6 - cut)
        for full, *pieces in zip(whole, first, second, strict=True):
            assert np.array_equal(full, np.concatenate([pieces[0], pieces[1][1:]]))


def test_a_state_of_a_run_has_the_loss_and_gradient_of_its_own(in_parts):
    _, _, words, alpha, beta = several_blocks(packed, 1)
    path = descend(words, alpha, beta, 0.5, 0.25, 3)  # powers of two: the products are exact
    for t in range(3):
        loss, d_alpha, d_beta = loss_and_gradient(words, path.alpha[t], path.beta[t])
        assert loss == path.loss[t]
        assert np.array_equal(path.alpha[t + 1], path.alpha[t] - 0.5 * d_alpha)
        assert np.array_equal(path.beta[t + 1], path.beta[t] - 0.25 * d_beta)


def test_a_diverging_run_ends_with_the_first_state_beyond_the_limit(in_parts):
    _, _, words, alpha, beta = several_blocks(packed, 1)
    path = descend(words, alpha, beta, 0.0, 100.0, 400, loss_limit=1e6)
    assert len(path.loss) == len(path.alpha) == len(path.beta) < 400
    assert np.all(path.loss[:-1] <= 1e6) and path.loss[-1] > 1e6
    free = descend(words, alpha, beta, 0.0, 1e9, 400)
    assert np.isfinite(free.loss[:-1]).all() and not np.isfinite(free.loss[-1])


def test_parts_depend_on_the_size_alone():
    def edges(n_words, d):
        return letter._edges(Words(letter.Layout(None, 1, None, None, None, None, n_words, n_words, d))._layout)

    assert edges(int(LARGE) // 50 - 1, 50) == []
    assert edges(1000, int(LARGE)) == []  # too few words to share
    for n_words, d in ((int(LARGE) // 50, 50), (200_000, 200), (12_500, 1_000), (256 * ROWS + 1, 5_000)):
        cuts = edges(n_words, d)
        assert cuts[0] == 0 and cuts[-1] == n_words and 3 <= len(cuts) <= letter.PARTS + 1
        assert all(cut % ROWS == 0 for cut in cuts[:-1]) and np.diff(cuts).min() >= (letter.PART_BLOCKS - 1) * ROWS


def test_codes_beyond_the_cache_give_the_mean_over_pieces_of_them():
    rng = np.random.default_rng(0)
    d = 500
    n_words = int(CACHE / (1.6 * d)) // ROWS * ROWS + 1001
    counts, labels = rng.integers(0, 3, (n_words, d), dtype=np.int8), rng.choice([-1, 1], n_words)
    alpha, beta = rng.normal(size=(2, d)), rng.normal(size=(2, d))
    words = Words.from_counts(counts, labels)
    assert words.nbytes > CACHE and letter._edges(words._layout)
    wanted, step = [0.0, 0.0, 0.0], 2_000
    for first in range(0, n_words, step):
        piece = Words.from_counts(counts[first : first + step], labels[first : first + step])
        assert not letter._edges(piece._layout)
        share = piece.n_words / n_words
        wanted = [w + share * g for w, g in zip(wanted, loss_and_gradient(piece, alpha, beta), strict=True)]
    for got, want in zip(loss_and_gradient(words, alpha, beta), wanted, strict=True):
        assert np.abs(got - want).max() <= ROUNDING * np.abs(want).max()
