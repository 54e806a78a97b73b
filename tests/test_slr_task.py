"""The task of single-location regression: settings, data, starts, gaps, and the numbers known of its plans."""

import json

import numpy as np
import pytest

from analytic.errors import InputError
from sim.tasks import make_task
from sim.tasks.slr import SingleLocation

SEEDS = range(6)
STANDARD_ERRORS = 5.0


def test_settings_are_plain_and_make_the_same_task_again():
    task = SingleLocation()
    assert task.settings() == {"d": 50, "tokens": 10, "noise": 0.1, "train_words": 12_500, "test_words": 2500}
    for one in (task, SingleLocation(d=3, tokens=2, noise=0, train_words=7, test_words=np.int64(9))):
        assert SingleLocation(**json.loads(json.dumps(one.settings()))) == one
        assert make_task("slr", **one.settings()) == one
    assert SingleLocation(d=4).train_words == 80 and SingleLocation(d=4).test_words == 16
    assert "tokens 10" in task.describe() and task.facts()["noise"] == 0.1


@pytest.mark.parametrize("wrong", (
    {"d": 1}, {"d": 2.0}, {"tokens": 0}, {"noise": -1}, {"noise": float("nan")}, {"train_words": 0},
    {"test_words": 1.5},
))
def test_wrong_settings_are_named(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        SingleLocation(**wrong)


def test_a_seed_has_its_data_and_train_and_test_are_independent():
    task = SingleLocation(d=6, tokens=3)
    (train, test), (again, _), (other, _) = task.data(1), task.data(1), task.data(2)
    assert (train.n, test.n, train.length, train.d) == (180, 36, 3, 6)
    assert np.array_equal(train.tokens, again.tokens) and np.array_equal(train.targets, again.targets)
    assert not np.intersect1d(train.tokens, other.tokens).size and not np.intersect1d(train.tokens, test.tokens).size


def test_memory_is_foreseen():
    task = SingleLocation(d=20)
    assert sum(data.nbytes for data in task.data(0)) == pytest.approx(task.nbytes(), rel=0.05)


def test_starts():
    task = SingleLocation(d=400)
    assert all(np.array_equal(one, np.zeros(400)) for one in task.initial(0, "zero", (1.0, 1.0)))
    k, v = task.initial(0, "random", (0.5, 2.0))
    assert k.std() == pytest.approx(0.5, rel=0.2) and v.std() == pytest.approx(2.0, rel=0.2)
    assert abs(np.corrcoef(k, v)[0, 1]) < 0.3
    again, _ = task.initial(0, "random", (1.0, 1.0))
    assert np.array_equal(again, 2 * k)


def test_gaps_are_cosines_with_the_true_directions():
    task = SingleLocation(d=3)
    k = np.array([[2.0, 0.0, 0.0], [-1e-200, 0.0, 1e-200], [0.0, 0.0, 0.0], [1e200, 1e200, 0.0]])
    gaps = task.gaps(k, np.roll(k, 1, axis=1))
    expected = np.array([[1.0], [-np.sqrt(0.5)], [0.0], [np.sqrt(0.5)]])
    assert gaps["attention_gap"] == pytest.approx(expected, abs=1e-15) and gaps["attention_gap"].shape == (4, 1)
    assert gaps["output_gap"] == pytest.approx(expected, abs=1e-15)


def ends(plan, init, seeds=SEEDS):
    """Train loss, test loss and gaps at the end of a plan [(rate_a, rate_o, steps)] at the paper's size, by seed."""
    task = SingleLocation()
    rows = []
    for seed in seeds:
        train, test = task.data(seed)
        state = task.initial(seed, init, (0.1 / np.sqrt(50),) * 2)
        for rate_a, rate_o, steps in plan:
            path = task.descend(train, state, rate_a, rate_o, steps, np.inf)
            state = path.k[-1], path.v[-1]
        gaps = task.gaps(path.k[-1:], path.v[-1:])
        rows.append([path.loss[-1], task.test(test, state), gaps["attention_gap"].item(), gaps["output_gap"].item()])
    return np.array(rows).T


def assert_mean(values, expected, rounding=0.0):
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - expected) <= STANDARD_ERRORS * error + rounding


def test_output_only_ends_near_the_best_that_uniform_attention_allows():
    train, test, _, output = ends([(0.0, 2.0, 400)], "zero")
    best = 0.01 + 0.5 - 0.25 / 9.5
    assert_mean(train, best * (1 - 50 / 12_500))  # d parameters are fitted to 5 d^2 contexts
    assert_mean(test, best * (1 + 50 / 12_500))
    assert output.min() > 0.95


def test_attention_only_stays_at_the_loss_of_the_start():
    train, test, _, _ = ends([(1.0, 0.0, 20)], "random")
    assert_mean(train, 0.51, rounding=0.01)
    assert_mean(test, 0.51, rounding=0.01)


def test_one_output_step_and_one_attention_step_find_the_token():
    train, test, attention, output = ends([(0.0, 5.0, 1), (3.0, 0.0, 1)], "zero")
    assert 0.2 < train.mean() < 0.35 and abs(train.mean() - test.mean()) < 0.02  # 0.28 in the paper
    assert attention.min() > 0.98 and output.min() > 0.9


def test_joint_descent_approaches_the_noise():
    train, test, attention, output = ends([(0.03, 0.03, 600)], "random", range(2))
    assert 0.01 < train.mean() < 0.016 and train.mean() < test.mean() < 0.017
    assert attention.min() > 0.98 and output.min() > 0.98
