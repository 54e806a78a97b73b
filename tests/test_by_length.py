"""Accuracy against the length of the word: exact on its own words, and no proof for all words of a length."""

import numpy as np
import pytest

from analytic.certificate import certify
from analytic.errors import InputError
from analytic.gradients import letter, letter_twin
from sim import figures
from sim.by_length import LONGEST, words_of_length
from sim.descent import train
from sim.runs import Runs, run_plan

SMALL = dict(d=8, train_words=300, test_words=60)
LENGTHS = [1, 2, 7, 40, 1000]


@pytest.fixture(scope="module")
def runs():
    return run_plan("1 & !2", "O(1x)->A(1x)->O", range(3), heads=2, steps=40, **SMALL)


@pytest.mark.parametrize(("phase_end", "index"), [(0, 0), (2, 2), (-1, 3), (3, 3), (-4, 0)])
def test_it_is_the_share_of_right_words(runs, phase_end, index):
    accuracy = runs.accuracy_by_length(LENGTHS, words=200, phase_end=phase_end)
    assert accuracy.dims == ("seed", "length") and accuracy.coords["length"].tolist() == LENGTHS
    for run in runs.runs:
        for length in LENGTHS:
            words = words_of_length(runs.task, length, 200, run.seed)
            f = letter_twin.scores(words.counts(), run.alpha[index], run.beta[index])
            right = np.mean(words.labels * f > 0)
            assert float(accuracy.sel(seed=run.seed, length=length)) == right


def test_words_have_exactly_that_length_and_the_right_label(runs):
    for length in (1, 3, 500):
        words = words_of_length(runs.task, length, 50, seed=4)
        counts = words.counts()
        assert (counts.sum(axis=1) == length).all() and len(counts) == 50
        assert np.array_equal(words.labels, np.where((counts[:, 0] > 0) & (counts[:, 1] == 0), 1, -1))


def test_letters_are_uniform_at_any_length(runs):
    for length in (2, 3000):
        counts = words_of_length(runs.task, length, 4000, seed=0).counts()
        expected, spread = length / 8, np.sqrt(length * 7 / 64)
        assert np.abs(counts.mean(axis=0) - expected).max() < 5 * spread / np.sqrt(4000)
        assert counts.std(axis=0) == pytest.approx(spread, rel=5 / np.sqrt(2 * 4000))


def test_words_depend_on_seed_and_length_alone(runs):
    alone = runs.accuracy_by_length([7]).values[:, 0]
    assert np.array_equal(runs.accuracy_by_length([40, 7, 1]).sel(length=7).values, alone)
    other = run_plan("1 & !2", "joint(3x)", [1], heads=2, **SMALL)
    first, second = (words_of_length(r.task, 7, 20, 1).counts() for r in (runs, other))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, words_of_length(runs.task, 7, 20, 2).counts())


def test_fresh_words_are_not_the_training_words(runs):
    fixed = run_plan("1 & !2", "joint(3x)", [1], heads=2, length="fixed:7", **SMALL)
    train_words, test_words = fixed.task.data(1)
    fresh = words_of_length(fixed.task, 7, 60, 1).counts()
    for used in (train_words, test_words):
        assert not np.array_equal(used.counts()[:60], fresh)


def test_words_can_have_a_million_letters(runs):
    words = words_of_length(runs.task, LONGEST, 300, seed=0)
    assert (words.counts().sum(axis=1) == LONGEST).all()
    assert runs.accuracy_by_length([LONGEST], words=300).shape == (3, 1)


def test_random_words_do_not_show_what_the_certificate_does():
    """Beyond the certified length some word fails, though random words of any length are right."""
    runs = run_plan("occurrence", "joint", [0], steps=1500, **SMALL)
    run, language = runs.runs[0], runs.task.language
    certificate = certify(language, run.alpha[-1], run.beta[-1])
    lengths = [1, certificate.length, certificate.length + 1, 50 * certificate.length]
    assert (runs.accuracy_by_length(lengths, words=300).values == 1).all()
    witness = np.array(certificate.witness)
    # the witness, and longer words with more of its most frequent letter, are decided wrongly
    for extra in (0, 1, certificate.length):
        word = witness + extra * np.eye(8, dtype=int)[witness.argmax()]
        label = language.labels(word[[*language.letters]] > 0)
        words = letter.Words.from_counts([word], [label])
        assert letter.evaluate(words, run.alpha[-1], run.beta[-1])[1] == 0


def test_a_run_that_diverged_has_no_accuracy_afterwards():
    runs = run_plan("occurrence", "A(2x)->O", [0], rate_o=1e4, steps=200, **SMALL)
    assert runs.diverged == 1
    assert np.isnan(runs.accuracy_by_length([3]).values).all()
    assert np.isfinite(runs.accuracy_by_length([3], phase_end=1).values).all()


@pytest.mark.parametrize(("arguments", "message"), [
    (dict(lengths=[0]), "lengths must be"), (dict(lengths=[LONGEST + 1]), "lengths must be"),
    (dict(lengths=[2.5]), "lengths must be"), (dict(lengths=[3], words=0), "words must be"),
    (dict(lengths=[3], phase_end=4), "phase_end must be"), (dict(lengths=[3], phase_end=-5), "phase_end must be"),
])
def test_bad_arguments_are_named(runs, arguments, message):
    with pytest.raises(InputError, match=message):
        runs.accuracy_by_length(**arguments)


def test_one_length_is_a_list_of_one(runs):
    assert runs.accuracy_by_length(5).shape == (3, 1)


def test_its_plot_shows_mean_and_axes(runs):
    from matplotlib.figure import Figure

    accuracy = runs.accuracy_by_length(LENGTHS)
    ax = Figure().subplots()
    assert figures.plot_accuracy_by_length(accuracy, ax) is ax
    line = ax.get_lines()[0]
    assert line.get_xdata().tolist() == LENGTHS
    np.testing.assert_array_equal(line.get_ydata(), accuracy.values.mean(axis=0))
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("letters in the word", "accuracy", "log")


def test_a_stored_run_gives_the_same(tmp_path):
    from sim.store import read, save

    runs = run_plan("or", "joint(30x)", [0], **SMALL)
    again = Runs(runs.config, [read(save(tmp_path, train(runs.config, 0)))])
    assert np.array_equal(runs.accuracy_by_length(LENGTHS).values, again.accuracy_by_length(LENGTHS).values)
