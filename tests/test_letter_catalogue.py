"""A catalogue for hand-derived gradients: every entry point, kind of input, domain end, optimum, and differences."""

import doctest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from analytic.errors import InputError
from analytic.gradients import letter, letter_twin
from analytic.gradients.letter import (
    FAR_SCORES,
    FAR_WEIGHTS,
    Words,
    descend,
    evaluate,
    loss_and_gradient,
    sample_words,
    scores,
)
from analytic.languages import any_of
from sim import plans, tasks

ROUNDING = 2e-14  # times the largest output weights: means of terms that are each rounded a few times ...
HALF_ULP = 2.0**-53  # ... and times the range of scores, which alpha - max alpha loses before the exponential
STEP = 2.0**-8  # fourth-order differences are off by h^4 f^(5) / 30, 1e-11 for derivatives of size one,
DIFFERENCE = 1e-10  # and by the rounding of the loss divided by h, 1e-13
CONVERGED = 1e-12  # relative to the terms of a gradient that cancel at the optimum


def drawn(n_words, d, density, largest):
    """counts and labels with that share of positive counts, and a letter in every word."""
    rng = np.random.default_rng([n_words, d])
    counts = rng.integers(1, largest, (n_words, d), endpoint=True) * (rng.random((n_words, d)) < density)
    counts[np.arange(n_words), rng.integers(d, size=n_words)] += 1
    return counts, rng.choice([-1, 1], n_words)


def late_wide():
    counts, labels = drawn(1000, 300, 0.3, 3)
    counts[990, 7] = 70_000
    return counts, labels


FEW = drawn(20, 5, 0.6, 3)[0]
DATA = {  # counts, labels, path through the kernels
    "packed": (*drawn(260, 11, 0.5, 3), "packed"),
    "wide": (*drawn(130, 6, 0.5, 70_000), "wide"),
    "sparse": (*drawn(90, 140, 0.01, 3), "sparse"),
    "one word": (*drawn(1, 7, 0.5, 3), "packed"),
    "one wide word": (*drawn(1, 3, 0.9, 2**31 - 2), "wide"),
    "one word of few letters": (*drawn(1, 80, 0.0, 3), "sparse"),
    "equal words": (np.tile([2, 0, 1, 1], (300, 1)), np.resize([1, -1, 1], 300), "packed"),
    "a full block": (*drawn(128, 5, 0.6, 3), "packed"),
    "a word more than a block": (*drawn(129, 5, 0.6, 3), "packed"),
    "5000 letters": (*drawn(6, 5000, 0.5, 3), "packed"),
    "few of 5000 letters": (*drawn(30, 5000, 0.01, 3), "sparse"),
    "several chunks": (*drawn(1000, 300, 0.3, 3), "packed"),
    "several chunks, the last one wide": (*late_wide(), "wide"),
    "several chunks of lists": (*drawn(300, 2500, 0.005, 3), "sparse"),
    "positive words": (FEW, np.ones(20, dtype=int), "packed"),
    "negative words": (FEW, -np.ones(20, dtype=int), "packed"),
}
data = pytest.mark.parametrize("counts, labels, path", DATA.values(), ids=DATA)
SIZES = {  # range of the scores, largest output weight: both sides of every guard
    "usual": (1.0, 1.0),
    "the farthest near scores": (0.99 * FAR_SCORES, 1.0),
    "far scores": (1.01 * FAR_SCORES, 1.0),
    "scores of a million": (1e6, 1.0),
    "the largest near weights": (1.0, 0.99 * FAR_WEIGHTS),
    "weights beyond": (0.99 * FAR_SCORES, 1.01 * FAR_WEIGHTS),
    "far scores and huge weights": (3000.0, 1e100),
    "the smallest near weights": (0.99 * FAR_SCORES, 1.01 / FAR_WEIGHTS),
    "tiny weights": (100.0, 1e-60),
    "the tiniest weights": (0.99 * FAR_SCORES, 1e-290),
}
sizes = pytest.mark.parametrize("spread, size", SIZES.values(), ids=SIZES)


def parameters(d, heads, spread=1.0, size=1.0):
    """alpha whose range is ``spread`` and beta whose largest entry is ``size`` in every head, up to rounding."""
    rng = np.random.default_rng([d, heads])
    alpha, beta = rng.random((heads, d)), rng.normal(size=(heads, d))
    alpha = spread * (alpha - alpha.min(axis=1, keepdims=True)) / np.ptp(alpha, axis=1)[:, None]
    return alpha, size * beta / np.abs(beta).max(axis=1, keepdims=True)


def same_bits(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# ---- every entry point agrees with every other -----------------------------------------------------------------------


@pytest.mark.parametrize("heads", (1, 3))
@sizes
@data
def test_every_entry_point_tells_the_same(counts, labels, path, spread, size, heads):
    words = Words.from_counts(counts, labels)
    assert words.path == path
    alpha, beta = parameters(words.d, heads, spread, size)
    f, (loss, accuracy), (same_loss, d_alpha, d_beta) = (
        call(words, alpha, beta) for call in (scores, evaluate, loss_and_gradient)
    )
    steps = descend(words, alpha, beta, 0.25, 2.0, 1)  # powers of two: the update rounds once
    assert loss == same_loss == steps.loss[0]
    assert loss == pytest.approx(np.mean((f - labels) ** 2), rel=ROUNDING)
    assert accuracy == np.mean(labels * f > 0)
    assert same_bits(steps.alpha, (alpha, alpha - 0.25 * d_alpha))
    assert same_bits(steps.beta, (beta, beta - 2.0 * d_beta))
    assert steps.loss[1] == evaluate(words, steps.alpha[1], steps.beta[1])[0]

    allowed = (ROUNDING + HALF_ULP * min(spread, FAR_SCORES)) * heads
    assert np.abs(f - letter_twin.scores(counts, alpha, beta)).max() <= allowed * max(size, 1.0)
    twin_loss, twin_alpha, twin_beta = letter_twin.loss_and_gradient(counts, labels, alpha, beta)
    assert abs(loss - twin_loss) <= 4 * allowed * max(size, 1.0) ** 2
    assert np.abs(d_beta - twin_beta).max() <= 4 * allowed * max(size, 1.0)
    assert np.abs(d_alpha - twin_alpha).max() <= 8 * allowed * max(size, 1.0) * size


@pytest.mark.parametrize("one_sided", (1.0, -1.0))
@pytest.mark.parametrize("at", (0, 5, 10))
def test_one_huge_weight_of_either_sign_overflows_nothing(at, one_sided):
    counts, labels, _ = DATA["packed"]
    alpha, _ = parameters(11, 1, spread=0.99 * FAR_SCORES)
    beta = np.zeros((1, 11))
    beta[0, at] = one_sided * 1e140
    results = loss_and_gradient(Words.from_counts(counts, labels), alpha, beta)
    for result, wanted in zip(results, letter_twin.loss_and_gradient(counts, labels, alpha, beta), strict=True):
        assert np.all(np.isfinite(result)) and np.allclose(result, wanted, rtol=1e-11, atol=0)


# ---- inputs of any kind ----------------------------------------------------------------------------------------------


def kinds(array, types):
    """The same values in other places in memory and in those of the types that can hold them, all read-only."""
    thirds = tuple(slice(1, None, 3) for _ in array.shape)
    spread = np.zeros([3 * n for n in array.shape], dtype=array.dtype)
    spread[thirds] = array
    unaligned = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:].view(array.dtype).reshape(array.shape)
    unaligned[...] = array
    backwards = np.flip(np.ascontiguousarray(np.flip(array)))
    versions = [array.copy(), np.asfortranarray(array), spread[thirds], unaligned, backwards]
    versions += [array.astype(kind) for kind in types if np.abs(array).max() <= np.iinfo(kind).max]
    for version in versions:
        version.flags.writeable = False
    return versions


WHOLE = ("i1", "u1", "i2", ">i2", "u4", "i8", "u8")


@pytest.mark.parametrize("shape", ((7,), (3, 7)))
def test_parameters_may_have_any_type_and_place_in_memory(shape):
    words = Words.from_counts(*drawn(140, 7, 0.5, 3))
    rng = np.random.default_rng(0)
    alpha, beta = rng.integers(0, 9, shape).astype(float), rng.integers(0, 3, shape).astype(float)
    for call in (scores, evaluate, loss_and_gradient, lambda *a: descend(*a, 1.0, 0.5, 3)):
        wanted = call(words, alpha, beta)
        for one in (*kinds(alpha, WHOLE), alpha.tolist(), alpha.astype("f4"), alpha.astype(">f8")):
            assert same_bits(call(words, one, beta), wanted)
        for other in (*kinds(beta, WHOLE), beta.tolist(), beta.astype("f4"), beta.astype(">f8")):
            assert same_bits(call(words, alpha, other), wanted)


@pytest.mark.parametrize("name", ("packed", "sparse", "wide"))
def test_counts_and_labels_may_have_any_type_and_place_in_memory(name):
    counts, labels, path = DATA[name]
    wanted = Words.from_counts(counts, labels)
    alpha, beta = parameters(wanted.d, 1)
    gradient = loss_and_gradient(wanted, alpha, beta)
    made = [Words.from_counts(kind, labels) for kind in (*kinds(counts, WHOLE), counts.tolist())]
    made += [Words.from_counts(counts, kind) for kind in (*kinds(labels, ("i1", "i2")), labels.tolist(), 1.0 * labels)]
    for words in made:
        assert words.path == path and np.array_equal(words.counts(), counts)
        assert same_bits(loss_and_gradient(words, alpha, beta), gradient)


def test_counts_and_lengths_may_reach_the_largest_32_bit_number():
    largest = 2**31 - 1
    words = Words.from_counts([[largest, 1], [0, largest]], [1, -1])
    assert words.counts().tolist() == [[largest, 1], [0, largest]]
    assert scores(words, [0.0, 0.0], [3.0, 1.0]) == pytest.approx([2 - 2 / 2**31, 0.0], rel=1e-15)
    drawn = sample_words(np.random.default_rng(0), [largest], 2, any_of(1)).counts()
    assert drawn.sum() == largest and abs(drawn[0, 0] - largest / 2) < 6 * np.sqrt(largest) / 2


@pytest.mark.parametrize("value", (np.nan, np.inf, -np.inf))
@pytest.mark.parametrize("name", ("alpha", "beta"))
def test_one_parameter_that_is_not_finite_is_refused_with_its_place(name, value):
    parameters = {"alpha": np.zeros((2, 3)), "beta": np.ones((2, 3))}
    parameters[name][1, 2] = value
    with pytest.raises(InputError, match=rf"^{name} must be finite, but \[1, 2\] is not$"):
        scores(Words.from_counts([[1, 0, 2]], [1]), **parameters)


def test_one_wrong_label_among_right_ones_is_refused():
    for wrong in (0, 2, -2):
        with pytest.raises(InputError, match="labels must be 3 values"):
            Words.from_counts(np.eye(3, dtype=int), [1, wrong, -1])


@pytest.mark.parametrize(("n_words", "d", "length"), ((1000, 300, 200), (200, 2500, 20), (1000, 300, 13_000)))
def test_words_drawn_in_several_chunks_are_scored_rightly(n_words, d, length):
    words = sample_words(np.random.default_rng(0), np.full(n_words, length), d, any_of(1))
    alpha, beta = parameters(d, 1)
    results = loss_and_gradient(words, alpha, beta)
    wanted = letter_twin.loss_and_gradient(words.counts(), words.labels, alpha, beta)
    for result, twin in zip(results, wanted, strict=True):
        assert np.abs(result - twin).max() <= ROUNDING


def drawn_word_by_word(rng, lengths, d, chunk):
    """The documented way: of each chunk first the letters of short words, then the long words letter after letter."""
    counts = np.zeros((len(lengths), d), dtype=int)
    for first in range(0, len(lengths), chunk):
        rows = range(first, min(first + chunk, len(lengths)))
        short, long = [i for i in rows if lengths[i] <= 40 * d], [i for i in rows if lengths[i] > 40 * d]
        letters = rng.integers(0, d, size=sum(lengths[short]), dtype=np.uint16 if d <= 65_536 else np.uint32)
        for i, word in zip(short, np.split(letters, np.cumsum(lengths[short])[:-1]), strict=True):
            counts[i] = np.bincount(word, minlength=d)
        rest = lengths[long]
        for j in range(d if long else 0):
            counts[long, j] = rng.binomial(rest, 1 / (d - j))
            rest = rest - counts[long, j]
    return counts


@pytest.mark.parametrize(("n_words", "d", "chunk"), ((50, 5, 52_352), (6000, 50, 5120), (300, 3000, 128)))
def test_a_seed_keeps_its_words(n_words, d, chunk):
    lengths = 1 + np.arange(n_words) % 7
    lengths[[0, 30, -1, -20]] = [40 * d + 1, 40 * d + 2, 40 * d + 9, 40 * d]  # the longest short word at the end
    words = sample_words(np.random.default_rng(2), lengths, d, any_of(1))
    assert np.array_equal(words.counts(), drawn_word_by_word(np.random.default_rng(2), lengths, d, chunk))


@pytest.mark.parametrize("d", (65_536, 65_537))
def test_an_alphabet_may_have_more_letters_than_two_bytes_tell(d):
    lengths = np.array([3000, 1, 2000])
    words = sample_words(np.random.default_rng(2), lengths, d, any_of(1))
    counts = words.counts()
    assert words.path == "sparse" and np.array_equal(counts.sum(axis=1), lengths)
    assert np.array_equal(counts, drawn_word_by_word(np.random.default_rng(2), lengths, d, 128))


def test_lengths_may_have_any_type_and_place_in_memory():
    lengths = np.random.default_rng(0).geometric(0.1, 150)
    wanted = sample_words(np.random.default_rng(1), lengths, 9, any_of(1)).counts()
    for kind in (*kinds(lengths, WHOLE), lengths.tolist()):
        assert np.array_equal(sample_words(np.random.default_rng(1), kind, 9, any_of(1)).counts(), wanted)


@data
def test_results_share_no_memory_with_inputs_or_other_results(counts, labels, path):
    given_counts, given_labels = counts.copy(), labels.astype(np.int8)
    words = Words.from_counts(given_counts, given_labels)
    alpha, beta = parameters(words.d, 2)
    taken = alpha.copy(), beta.copy()
    first = [scores(words, alpha, beta), *loss_and_gradient(words, alpha, beta)[1:],
             *descend(words, alpha, beta, 1, 1, 2), words.counts()]
    kept = [array.copy() for array in first]
    second = [scores(words, alpha, beta), *loss_and_gradient(words, alpha, beta)[1:],
              *descend(words, alpha, beta, 1, 1, 2), words.counts()]
    every = [given_counts, given_labels, alpha, beta, *first, *second]
    for i, one in enumerate(every):
        for other in every[:i]:
            assert not np.shares_memory(one, other)
    assert same_bits(taken, (alpha, beta))
    for array in every:
        array[...] = 7  # all of them are the caller's to write to
    assert same_bits(kept, [scores(words, *taken), *loss_and_gradient(words, *taken)[1:],
                            *descend(words, *taken, 1, 1, 2), words.counts()])


# ---- gradients by other means ----------------------------------------------------------------------------------------

bounded = {"elements": st.floats(-2, 2, width=16), "fill": st.nothing()}


@st.composite
def models(draw, max_heads=3):
    """counts, labels, alpha, beta: every entry drawn, so that failures shrink."""
    n_words, d, heads = draw(st.integers(1, 4)), draw(st.integers(2, 4)), draw(st.integers(1, max_heads))
    counts = draw(arrays.arrays(np.int64, (n_words, d), elements=st.sampled_from([0, 1, 2, 3, 255, 256, 70_000])))
    counts[:, draw(st.integers(0, d - 1))] += 1
    labels = draw(arrays.arrays(np.int64, n_words, elements=st.sampled_from([-1, 1])))
    alpha, beta = (draw(arrays.arrays(np.float64, (heads, d), **bounded)) for _ in "ab")
    return counts, labels, alpha, beta


@given(models())
def test_fourth_order_differences_of_the_loss_are_the_gradient(model):
    counts, labels, *state = model
    words = Words.from_counts(counts, labels)
    _, *gradients = loss_and_gradient(words, *state)
    size = 1 + np.abs(state[1]).sum() ** 2
    for layer, gradient in enumerate(gradients):
        for index in np.ndindex(*gradient.shape):
            losses = []
            for steps in (-2, -1, 1, 2):
                moved = [array.copy() for array in state]
                moved[layer][index] += steps * STEP
                losses.append(evaluate(words, *moved)[0])
            slope = np.dot([1, -8, 8, -1], losses) / (12 * STEP)
            assert abs(slope - gradient[index]) <= DIFFERENCE * size


@given(models(), st.floats(-3, 3), st.floats(-3, 3))
def test_outputs_and_gradients_are_linear_in_the_output_weights(model, first, second):
    counts, labels, alpha, beta = model
    words, other = Words.from_counts(counts, labels), np.roll(beta, 1)
    combined = scores(words, alpha, first * beta + second * other) + 1
    parts = first * (scores(words, alpha, beta) + 1) + second * (scores(words, alpha, other) + 1)
    assert np.abs(combined - parts).max() <= 100 * ROUNDING
    d_beta = [loss_and_gradient(words, alpha, b)[2] for b in (beta, other, 0.25 * beta + 0.75 * other)]
    assert np.abs(0.25 * d_beta[0] + 0.75 * d_beta[1] - d_beta[2]).max() <= 100 * ROUNDING


@given(models())
def test_weights_that_are_equal_are_the_output(model):
    counts, labels, alpha, beta = model
    level = beta[:, :1] + 0 * beta  # shares sum to one
    words = Words.from_counts(counts, labels)
    assert np.abs(scores(words, alpha, level) - (level[:, 0].sum() - 1)).max() <= ROUNDING
    assert np.abs(loss_and_gradient(words, alpha, level)[1]).max() <= 10 * ROUNDING  # nothing to attend to


@given(models())
def test_other_labels_turn_the_outputs_round(model):
    # f -> -2 - f and y -> -y give residuals 2 - ... : beta -> 2/H - beta turns f + 1 into 1 - f, the residual's sign
    counts, labels, alpha, beta = model
    mirrored = 2.0 / len(beta) - beta
    loss, d_alpha, d_beta = loss_and_gradient(Words.from_counts(counts, labels), alpha, beta)
    other, e_alpha, e_beta = loss_and_gradient(Words.from_counts(counts, -labels), alpha, mirrored)
    assert other == pytest.approx(loss, rel=1e-12, abs=1e-12)
    assert np.abs(e_beta + d_beta).max() <= 100 * ROUNDING  # d beta = -d mirrored
    assert np.abs(e_alpha - d_alpha).max() <= 1000 * ROUNDING


# ---- optima ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", (1, 2))
@pytest.mark.parametrize("name", ("packed", "sparse", "wide"))
def test_the_gradient_vanishes_at_the_best_output_weights(name, heads):
    counts, labels, _ = DATA[name]
    words = Words.from_counts(counts, labels)
    alpha, _ = parameters(words.d, heads)
    shares = letter_twin.attention(counts, alpha).transpose(1, 0, 2).reshape(len(counts), -1)
    beta = np.linalg.lstsq(shares, labels + 1.0)[0].reshape(heads, -1)
    loss, _, d_beta = loss_and_gradient(words, alpha, beta)
    assert np.abs(d_beta).max() <= CONVERGED * max(1.0, np.abs(beta).max())
    rng = np.random.default_rng(0)
    assert all(evaluate(words, alpha, beta + 0.01 * rng.normal(size=beta.shape))[0] > loss for _ in range(3))


def test_both_gradients_are_zero_and_stay_so_where_the_loss_is_zero():
    # words of one letter each: beta = y + 1 is exact, and descent does not move
    words = Words.from_counts(np.diag([3, 1, 400, 2]), [1, -1, -1, 1])
    alpha, beta = np.array([0.3, -2.0, 5.0, 0.0]), np.array([2.0, 0.0, 0.0, 2.0])
    loss, d_alpha, d_beta = loss_and_gradient(words, alpha, beta)
    assert loss <= ROUNDING**2 and np.abs([d_alpha, d_beta]).max() <= ROUNDING
    path = descend(words, alpha, beta, 1.0, 1.0, 5)
    assert path.loss.max() <= ROUNDING**2
    assert np.abs(path.alpha - alpha).max() <= 5 * ROUNDING and np.abs(path.beta - beta).max() <= 5 * ROUNDING
    assert evaluate(words, alpha, beta)[1] == 1.0


@pytest.mark.parametrize("y", (-1, 1))
@pytest.mark.parametrize("name", ("packed", "sparse", "wide"))
def test_labels_of_one_kind_are_fitted_by_equal_weights(name, y):
    counts = DATA[name][0]
    words = Words.from_counts(counts, np.full(len(counts), y))
    alpha, _ = parameters(words.d, 2)
    loss, d_alpha, d_beta = loss_and_gradient(words, alpha, np.full(alpha.shape, (y + 1) / 2))
    assert loss <= ROUNDING**2 and np.abs([d_alpha, d_beta]).max() <= ROUNDING
    assert evaluate(words, alpha, np.full(alpha.shape, (y + 1) / 2))[1] == 1.0


# ---- by hand ---------------------------------------------------------------------------------------------------------


def test_two_words_by_hand():
    # word 1 has letters 1 1 2, word 2 has 2; e^alpha = (3, 1): shares (6/7, 1/7) and (0, 1); beta = (7, 14)
    words = Words.from_counts([[2, 1], [0, 1]], [1, -1])
    alpha, beta = [np.log(3.0), 0.0], [7.0, 14.0]
    # f = 6 + 2 - 1 = 7 and 13: residuals 6 and 14
    assert scores(words, alpha, beta) == pytest.approx([7.0, 13.0], rel=ROUNDING)
    loss, d_alpha, d_beta = loss_and_gradient(words, alpha, beta)
    assert loss == pytest.approx((36 + 196) / 2, rel=ROUNDING)
    assert d_beta == pytest.approx([36 / 7, 6 / 7 + 14], rel=ROUNDING)
    assert d_alpha == pytest.approx([36 / 7 * (7 - 8), 6 / 7 * (14 - 8)], rel=1e-13)
    assert evaluate(words, alpha, beta)[1] == 0.5


@pytest.mark.parametrize("module", (letter, letter_twin, plans, tasks), ids=lambda module: module.__name__)
def test_examples_in_the_documentation_are_true(module):
    assert doctest.testmod(module).failed == 0
