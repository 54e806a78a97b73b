"""The even-pairs task as the simulator runs it."""

import numpy as np
import pytest

from analytic import even_pairs
from analytic.errors import InputError
from analytic.gradients.even_pairs import Strings, attention_gap, evaluate
from sim.runs import run_plan
from sim.tasks import make_task
from sim.tasks.even_pairs import EvenPairs

TASK = EvenPairs(max_length=4)


def test_settings_make_the_task_again():
    assert TASK.settings() == {"max_length": 4} and EvenPairs(**TASK.settings()) == TASK
    assert make_task("even_pairs", max_length=4) == TASK and make_task("even_pairs") == EvenPairs(10)
    with pytest.raises(InputError, match=r"^max_length must"):
        EvenPairs(max_length=0)


def test_training_and_testing_see_all_strings():
    assert TASK.data(0) == TASK.data(1) == (Strings(4), Strings(4))


def test_a_seed_makes_the_same_start_and_zero_is_zero():
    W, u = TASK.initial(3, "random", (0.1, 2.0))
    again = TASK.initial(3, "random", (0.1, 2.0))
    assert np.array_equal(W, again[0]) and np.array_equal(u, again[1])
    assert W.shape == (8, 8) and u.shape == (8,) and not np.array_equal(W, TASK.initial(4, "random", (0.1, 2.0))[0])
    assert 0.05 < W.std() < 0.2 and 1.0 < u.std() < 4.0
    assert all(not array.any() for array in TASK.initial(3, "zero", (0.1, 2.0)))


def test_gaps_are_one_at_the_ideal_and_missing_where_nothing_separates():
    W = np.zeros((3, 8, 8))
    last = np.arange(2, 8)
    W[1:, last % 2, last], W[1:, 1 - last % 2, last] = 1e3, -1e3
    found = even_pairs.hard_margin(Strings(4), W[1])
    u = np.stack([found.direction, 1e200 * found.direction, np.zeros(8)])
    gaps = TASK.gaps(W, u)
    assert gaps["attention_gap"] == pytest.approx(np.array([[0.0], [1.0], [1.0]]), abs=1e-12)
    assert np.isnan(gaps["output_gap"][0, 0])
    assert gaps["output_gap"][1:] == pytest.approx(np.array([[1.0], [0.0]]), abs=1e-12)
    turned = TASK.gaps(W[1:2], -u[:1])["output_gap"]
    assert turned == pytest.approx(np.array([[-1.0]]), abs=1e-12)


def test_a_plan_runs_and_records_what_the_model_gives():
    runs = run_plan("even_pairs", "O(1x)->A(1x)->O", range(2), max_length=4, rate_o=(16.0, 2.0), rate_a=60.0, steps=30)
    strings = Strings(4)
    for seed in range(2):
        ends = [0, *runs.runs[seed].phase_ends]
        for phase, step in enumerate(ends):
            W, u = runs.W.values[seed, phase], runs.u.values[seed, phase]
            loss, accuracy = evaluate(strings, W, u)
            assert runs.train_loss.values[seed, step] == loss
            assert runs.attention_gap.values[seed, step] == attention_gap(strings, W)
            found = even_pairs.hard_margin(strings, W)
            cosine = u @ found.direction / np.linalg.norm(u) if found.separable else np.nan
            assert runs.output_gap.values[seed, step] == pytest.approx(cosine, abs=1e-12, nan_ok=True)
        assert runs.test_accuracy.values[seed, -1] == accuracy


def test_gaps_are_taken_at_no_more_than_sixty_steps_of_a_paper_run():
    offsets = np.array(TASK.gap_offsets)
    assert np.all(np.diff(offsets) > 0) and offsets[0] == 0
    for phases in ((600,), (1, 1, 2000), (1000, 1000, 1000)):
        assert sum((offsets <= steps).sum() + 1 for steps in phases) <= 63


def test_the_task_says_what_it_is():
    assert TASK.describe() == "all 30 strings of at most 4 symbols" and TASK.facts() == {"max_length": 4}
    assert 1e6 < TASK.nbytes() < EvenPairs(24).nbytes() < 1e7
