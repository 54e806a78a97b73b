"""Sets of words: packing, sampling, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analytic.errors import InputError
from analytic.gradients.letter import Words, sample_words
from analytic.languages import all_of, any_of, parse_language

FALSE_ALARM = 1e-6  # chance that a right sampler would fail a test, had its seed not been fixed


LARGEST = (1, 255, 256, 65_535, 65_536, 2**31 - 1)


@given(st.integers(1, 300), st.integers(2, 23), st.sampled_from(LARGEST), st.integers(0, 2**32))
def test_counts_come_back_as_they_went_in(n_words, d, largest, seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, largest, (n_words, d), endpoint=True)
    counts[:, 0] = np.maximum(counts[:, 0], 1)
    labels = rng.choice([-1, 1], n_words)
    words = Words.from_counts(counts, labels)
    assert np.array_equal(words.counts(), counts)
    assert np.array_equal(words.labels, labels)
    assert (words.n_words, words.d) == (n_words, d)
    assert words.path == ("packed" if counts.max() <= 255 else "wide")


def test_every_count_of_one_byte_is_exact_at_every_place():
    counts = np.zeros((7 * 256, 7), dtype=int)
    for letter in range(7):
        counts[letter * 256 : (letter + 1) * 256, letter] = np.arange(256)
        counts[letter * 256 : (letter + 1) * 256, (letter + 1) % 7] = np.arange(255, -1, -1)
    words = Words.from_counts(counts, np.ones(len(counts)))
    assert words.path == "packed" and np.array_equal(words.counts(), counts)


def test_few_letters_of_many_are_kept_as_lists():
    rng = np.random.default_rng(0)
    counts = np.zeros((500, 300), dtype=int)
    counts[np.arange(500), rng.integers(300, size=500)] = rng.integers(1, 1000, size=500)
    words = Words.from_counts(counts, np.ones(500, dtype=int))
    assert words.path == "sparse" and words.nbytes < counts.size / 10
    assert np.array_equal(words.counts(), counts)


def test_five_counts_take_eight_bytes():
    words = sample_words(np.random.default_rng(0), np.full(12800, 49), 50, any_of(1))
    assert words.nbytes <= 12800 * 50 * 8 / 5 + 12800


def test_labels_cannot_be_changed():
    words = Words.from_counts([[1, 0]], [1])
    with pytest.raises(ValueError, match="read-only"):
        words.labels[0] = -1


CASES = {  # lengths, d: through every way of drawing and packing
    "short words": (np.arange(1, 400), 11),
    "three hundred letters": (np.full(300, 150), 300),
    "lists": (np.full(300, 20), 3000),
    "long words": (np.full(200, 3000), 7),
    "long words among short ones": (np.where(np.arange(700) == 650, 100_000, 1 + np.arange(700) % 50), 50),
    "a long word after thousands of short ones": (np.where(np.arange(6000) == 5900, 100_000, 20), 50),
    "two letters": (np.arange(1, 200), 2),
}


@pytest.mark.parametrize("lengths, d", CASES.values(), ids=CASES)
def test_sampled_words_have_their_lengths_and_labels(lengths, d):
    language = parse_language("1 & !2")  # and so the labels see two letters
    words = sample_words(np.random.default_rng(1), lengths, d, language)
    counts = words.counts()
    assert counts.min() >= 0 and np.array_equal(counts.sum(axis=1), lengths)
    assert np.array_equal(words.labels, language.labels(counts[:, [0, 1]] > 0))
    assert -1 in words.labels
    assert same_words(words, Words.from_counts(counts, words.labels))


def same_words(one, other):
    same_arrays = np.array_equal(one.counts(), other.counts()) and np.array_equal(one.labels, other.labels)
    return one.path == other.path and same_arrays


@pytest.mark.parametrize("lengths, d", CASES.values(), ids=CASES)
def test_the_generator_alone_decides_the_words(lengths, d):
    one, again, other = (sample_words(np.random.default_rng(seed), lengths, d, any_of(1)) for seed in (1, 1, 2))
    assert same_words(one, again) and not same_words(one, other)


def test_words_are_consecutive_draws():
    lengths = np.random.default_rng(0).geometric(0.2, 1000)
    letters = np.random.default_rng(1).integers(0, 7, size=lengths.sum(), dtype=np.uint16)
    counts = [np.bincount(word, minlength=7) for word in np.split(letters, np.cumsum(lengths)[:-1])]
    assert np.array_equal(sample_words(np.random.default_rng(1), lengths, 7, any_of(1)).counts(), counts)


@pytest.mark.parametrize("length", (3, 200, 201, 5000))  # 200 letters and more than 40 d = 200 are drawn differently
def test_letters_are_uniform_and_independent(length):
    d, n_words = 5, 20_000
    counts = sample_words(np.random.default_rng(3), np.full(n_words, length), d, any_of(1)).counts()
    total = counts.sum(axis=0)
    assert stats.chisquare(total).pvalue > FALSE_ALARM
    for j in range(d):  # each count is Binomial(length, 1/d)
        edges = np.unique(stats.binom.ppf(np.linspace(0, 1, 12)[1:-1], length, 1 / d))
        observed = np.bincount(np.searchsorted(edges, counts[:, j]), minlength=len(edges) + 1)
        expected = n_words * np.diff(stats.binom.cdf([-1, *edges, length], length, 1 / d))
        filled = expected > 0
        assert stats.chisquare(observed[filled], expected[filled]).pvalue > FALSE_ALARM
    correlation = np.corrcoef(counts.T)[np.triu_indices(d, 1)]  # multinomial: -1/(d - 1) between any two letters
    assert np.abs(correlation + 1 / (d - 1)).max() < 5 / np.sqrt(n_words)


def test_a_hundred_words_of_a_million_letters_are_quick_and_exact():
    words = sample_words(np.random.default_rng(5), np.full(100, 10**6), 50, all_of(2))
    assert words.path == "wide" and np.all(words.labels == 1)
    assert np.all(words.counts().sum(axis=1) == 10**6)
    assert np.abs(words.counts() - 20_000).max() < 6 * np.sqrt(20_000)


@pytest.mark.parametrize(
    "counts, labels, named",
    [
        ([[1.0, 2.0]], [1], "counts"),
        ([[True, False]], [1], "counts"),
        ([1, 2], [1], "counts"),
        (np.zeros((0, 3), dtype=int), [], "counts"),
        ([[1], [2]], [1, 1], "counts"),
        ([[1, -1]], [1], "counts"),
        ([[1, 0], [0, 0]], [1, 1], "counts"),
        ([[1, 2**31]], [1], "counts"),
        ([[1, 2**40]], [1], "counts"),
        ([[1, 0]], [0], "labels"),
        ([[1, 0]], [2], "labels"),
        ([[1, 0]], [np.nan], "labels"),
        ([[1, 0]], [1, 1], "labels"),
        ([[1, 0]], [[1]], "labels"),
        ([[1, 0]], 1, "labels"),
    ],
)
def test_counts_and_labels_that_make_no_words_are_refused_by_name(counts, labels, named):
    with pytest.raises(InputError, match=f"^{named} must"):
        Words.from_counts(counts, labels)


@pytest.mark.parametrize(
    "lengths, d, named",
    [([], 5, "lengths"), ([0, 1], 5, "lengths"), ([1.5], 5, "lengths"), ([[1]], 5, "lengths"), (3, 5, "lengths"),
     ([2**31], 5, "lengths"), ([3], 1, "d"), ([3], 2.0, "d")],
)
def test_lengths_and_alphabets_that_make_no_words_are_refused_by_name(lengths, d, named):
    with pytest.raises(InputError, match=f"^{named} must"):
        sample_words(np.random.default_rng(0), lengths, d, any_of(1))


def test_a_language_beyond_the_alphabet_is_refused():
    with pytest.raises(InputError, match="names letter 3, but d is 2"):
        sample_words(np.random.default_rng(0), [1, 2], 2, parse_language("1 & !3"))
