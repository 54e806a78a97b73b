"""The task of in-context bigrams: settings, data of a seed, gaps, and the numbers that sampled runs reach."""

import json

import numpy as np
import pytest

from analytic.errors import InputError
from analytic.icl_bigram import population_path
from sim.tasks import make_task
from sim.tasks.icl_bigram import IclBigram

TASK = IclBigram()


def test_settings_fill_their_defaults_and_make_the_same_task():
    assert TASK.settings() == {"d": 50, "pairs": 6, "train_words": 12_500, "test_words": 2_500}
    small = IclBigram(d=np.int64(7), pairs=3, test_words=11)
    assert small.settings() == {"d": 7, "pairs": 3, "train_words": 245, "test_words": 11}
    for task in (TASK, small):
        settings = json.loads(json.dumps(task.settings()))
        assert make_task("icl_bigram", **settings) == task == type(task)(**settings)


@pytest.mark.parametrize("wrong", (dict(d=1), dict(d=2.5), dict(pairs=50), dict(pairs=0), dict(train_words=0),
                                   dict(test_words=-1)))
def test_wrong_settings_are_refused_by_name(wrong):
    with pytest.raises(InputError, match=f"^{next(iter(wrong))} must be"):
        IclBigram(**wrong)


def test_the_data_of_a_seed_are_its_own_and_the_same_every_time():
    task = IclBigram(d=12, pairs=4)
    train, test = task.data(3)
    assert (train.n_contexts, test.n_contexts, train.d, train.pairs) == (720, 144, 12, 4)
    assert np.array_equal(train.letters, task.data(3)[0].letters)
    assert not np.array_equal(train.letters[:144], test.letters)
    assert not np.array_equal(train.letters, task.data(4)[0].letters)


def test_about_as_much_memory_as_said():
    assert 0.3 <= sum(data.nbytes for data in TASK.data(0)) / TASK.nbytes() <= 1.5


def test_starts():
    zero = TASK.initial(0, "zero", (0.1, 0.1))
    assert all(part.shape == (50, 50) and not part.any() for part in zero)
    attention, output = TASK.initial(0, "random", (0.1, 0.5))
    assert attention.std() == pytest.approx(0.1, rel=0.1) and output.std() == pytest.approx(0.5, rel=0.1)
    assert np.array_equal(TASK.initial(0, "random", (0.1, 0.1))[0], attention)


def test_gaps_are_one_at_the_ideal_and_look_at_rows_of_a_and_columns_of_b():
    task, stack = IclBigram(d=4, pairs=2), np.zeros((3, 4, 4))
    stack[1] = 50 * np.eye(4)
    stack[2, 0] = [50.0, 0.0, 0.0, 50.0]  # as a row: a tie in row 0; as columns: one right, one wrong, two undecided
    gaps = task.gaps(stack, stack)
    assert {name: values.shape for name, values in gaps.items()} == {"attention_gap": (3, 1), "output_gap": (3, 1)}
    assert gaps["attention_gap"][:, 0] == pytest.approx([0.0, 1.0, 0.0], abs=1e-12)
    assert gaps["output_gap"][:, 0] == pytest.approx([0.0, 1.0, (1 - 1 + 0 + 0) / 4], abs=1e-12)
    turned = task.gaps(np.swapaxes(stack, 1, 2), np.swapaxes(stack, 1, 2))
    assert np.array_equal(turned["attention_gap"], gaps["output_gap"])
    assert np.array_equal(turned["output_gap"], gaps["attention_gap"])


PLANS = {  # phases (rate_a, rate_o, steps), loss and accuracy that sampled runs reach, and the theory's phases
    "O": ([(0.0, 10.0, 300)], 2.83, 0.18, [("O", 300, 10.0, 0.0)]),
    "A": ([(10.0, 0.0, 300)], 3.908, 0.026, [("A", 300, 0.0, 10.0)]),
    "joint": ([(50.0, 50.0, 300)], 3.4e-3, 1.0, [("AO", 300, 50.0, 50.0)]),
    "O(1x)->A(1x)": ([(0.0, 200.0, 1), (1e4, 0.0, 1)], 3.31, 1.0, [("O", 1, 200.0, 0.0), ("A", 1, 0.0, 1e4)]),
}


@pytest.mark.parametrize("plan", PLANS)
def test_sampled_runs_come_near_infinite_data(plan):
    """12500 contexts, 2500 entries of each matrix, a small random init: the loss of infinite data within 2.5%."""
    phases, loss, accuracy, population = PLANS[plan]
    train, test = TASK.data(0)
    state = TASK.initial(0, "random", (0.1, 0.1))
    for phase in phases:
        path = TASK.descend(train, state, *phase, np.inf)
        state = path[1][-1], path[2][-1]
    assert path[0][-1] == pytest.approx(loss, rel=0.02)
    assert path[0][-1] == pytest.approx(population_path(50, 6, population).loss[-1], rel=0.025)
    assert TASK.test(test, state) == pytest.approx(accuracy, abs=0.03)
