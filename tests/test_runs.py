"""Training: what is recorded, the stopping rule, divergence, and bits that depend on nothing but the seed."""

import numpy as np
import pytest

from analytic.errors import InputError
from analytic.gradients import letter, letter_twin
from sim import descent
from sim.config import resolve
from sim.descent import train
from sim.plans import parse_plan
from sim.runs import run_plan
from sim.tasks import make_task

SMALL = dict(d=8, train_words=200, test_words=100)
ROUNDING = 1e-11  # a few hundred float64 updates of entries of size 1 to 10


def twin_descent(config, seed):
    """The same plan by a plain loop over the numpy twin's gradient: losses and final parameters."""
    task = config.make_task()
    train_words, _ = task.data(seed)
    counts, labels = train_words.counts(), train_words.labels
    alpha, beta = task.initial(seed, config.init, config.init_scale)
    rates_a, rates_o = iter(config.rate_a), iter(config.rate_o)
    losses = []
    for phase, count in zip(parse_plan(config.plan).phases, config.steps, strict=True):
        rate_a = next(rates_a) if "A" in phase.layers else 0.0
        rate_o = next(rates_o) if "O" in phase.layers else 0.0
        for _ in range(count):
            loss, d_alpha, d_beta = letter_twin.loss_and_gradient(counts, labels, alpha, beta)
            losses.append(loss)
            alpha, beta = alpha - rate_a * d_alpha, beta - rate_o * d_beta
    losses.append(letter_twin.loss_and_gradient(counts, labels, alpha, beta)[0])
    return np.array(losses), alpha, beta


@pytest.mark.parametrize(
    ("task", "plan", "more"),
    [
        ("occurrence", "O(3x)->A(2x)->AO(40x)", dict(rate_o=[2, 0.5], rate_a=[5, 0.7])),
        ("or", "A(10x)->O(10x)->A(10x)", dict(rate_o=[0.5], rate_a=[1, 2])),
        ("or", "joint(50x)", dict(init="zero")),
        ("and", "joint(50x)", dict(heads=3)),
        ("1 & (2 | !3)", "O(5x)->A(5x)", dict(heads=2, length="fixed:4")),
    ],
)
def test_a_plan_is_the_plain_loop_it_says(task, plan, more):
    config = resolve(task, plan, **SMALL, **more)
    losses, alpha, beta = twin_descent(config, seed=5)
    run = train(config, seed=5)
    np.testing.assert_allclose(run.train_loss, losses, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(run.alpha[-1], alpha, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(run.beta[-1], beta, rtol=ROUNDING, atol=ROUNDING)


def test_same_data_and_init_under_every_plan():
    runs = [run_plan("occurrence", plan, [7], steps=3, **SMALL) for plan in ("A", "O", "joint", "O(1x)->A(1x)->O")]
    assert len({float(r.train_loss[0, 0]) for r in runs}) == 1
    assert len({r.alpha.values[0, 0].tobytes() for r in runs}) == 1


def test_seeds_give_different_data_and_init():
    runs = run_plan("occurrence", "joint", range(4), steps=2, **SMALL)
    assert len(set(runs.train_loss[:, 0])) == 4
    assert len({row.tobytes() for row in runs.alpha.values[:, 0]}) == 4


@pytest.mark.parametrize("jobs", [1, 3])
def test_same_bits_for_any_number_of_threads(jobs):
    runs = run_plan("or", "O(1x)->AO", range(6), jobs=jobs, steps=130, **SMALL)
    alone = [train(runs.config, seed) for seed in runs.seeds]
    for run, other in zip(runs.runs, alone, strict=True):
        assert run.train_loss.tobytes() == other.train_loss.tobytes()
        assert run.alpha.tobytes() == other.alpha.tobytes()


def test_same_bits_for_any_chunk(monkeypatch):
    config = resolve("occurrence", "O(1x)->AO(250x)", **SMALL)
    whole = train(config, 1)
    monkeypatch.setattr(descent, "CHUNK", 17)
    cut = train(config, 1)
    assert whole.train_loss.tobytes() == cut.train_loss.tobytes()
    assert whole.beta.tobytes() == cut.beta.tobytes()
    assert np.array_equal(whole.record, cut.record)


def test_records_are_states_after_t_updates():
    config = resolve("occurrence", "O(1x)->A(1x)->O", steps=25, record_every=10, **SMALL)
    run = train(config, 2)
    assert run.phase_ends == [1, 2, 27]
    assert len(run.train_loss) == len(run.attention_gap) == 28
    assert run.record.tolist() == [0, 1, 2, 10, 20, 27]
    words, test = config.make_task().data(2)
    for index, step in enumerate([0, *run.phase_ends]):
        assert run.train_loss[step] == letter.evaluate(words, run.alpha[index], run.beta[index])[0]
    assert run.test_metric[-1] == letter.evaluate(test, run.alpha[-1], run.beta[-1])[1]
    gaps = config.make_task().gaps(run.alpha[1:2], run.beta[1:2])
    assert gaps["output_gap"][0] == run.output_gap[1]


def test_a_phase_without_a_count_stops_when_the_loss_stops_falling():
    run = train(resolve("occurrence", "O->A(3x)", rate_o=0.0, rate_a=1.0, steps=1000, **SMALL), 0)
    assert run.phase_ends == [100, 103]  # frozen: the first 100 steps lower nothing


def test_a_rising_loss_is_not_taken_for_a_converged_one():
    # eta_O a little above 2 / lambda_max: the loss grows slowly and never stops changing
    config = resolve("occurrence", "O", rate_o=1.0, steps=300, **SMALL)
    limit = 2 / np.linalg.eigvalsh(_output_hessian(config, 0)).max()
    run = train(resolve("occurrence", "O", rate_o=1.002 * limit, steps=1500, **SMALL), 0)
    assert run.train_loss[-1] > run.train_loss.min() and run.phase_ends == [1500] and run.at_limit == [True]


def test_a_phase_that_converged_is_not_at_its_limit():
    assert train(resolve("occurrence", "O->A(3x)", rate_o=0.0, rate_a=1.0, **SMALL), 0).at_limit == [False, False]


def test_a_phase_with_a_count_runs_it_whole():
    run = train(resolve("occurrence", "O(150x)", rate_o=0.0, **SMALL), 0)
    assert run.phase_ends == [150]


def test_a_diverging_run_stops_alone_and_is_named():
    # the top eigenvalue of the output layer's Hessian is below 2, so a rate of 60 blows up for every seed
    runs = run_plan("occurrence", "A(2x)->O", range(2), rate_a=1.0, rate_o=200.0, steps=500, **SMALL)
    assert runs.status == ["diverged"] * 2
    for run in runs.runs:
        assert run.phase_ends == [2]
        assert run.diverged["phase"] == 2 and run.diverged["rate_o"] == 200.0
        assert run.diverged["step"] == len(run.train_loss)  # the state that blew up is not kept
        assert np.isfinite(run.train_loss).all()
        assert run.train_loss.max() <= 1e6 * max(1, run.train_loss[0])
    text = repr(runs)
    assert f"diverged at step {runs.runs[0].diverged['step']} (phase 2: eta_A 0, eta_O 200)" in text
    row = runs.to_dict()["runs"][0]
    assert row["train_loss"] is None and row["test_accuracy"] is None


def test_a_run_whose_scores_overflow_has_diverged_at_that_step():
    run = train(resolve("occurrence", "O(1x)->A(1x)->O(5x)", rate_o=[20, 1], rate_a=1.7e308, **SMALL), 0)
    assert run.status == "diverged" and run.diverged["step"] == 2 and len(run.train_loss) == 2


def test_one_init_scale_serves_both_layers():
    assert resolve("occurrence", "O", init_scale=0.3, **SMALL).init_scale == (0.3, 0.3)
    assert resolve("occurrence", "O", init_scale=(0.3,), **SMALL).init_scale == (0.3, 0.3)


def test_numpy_numbers_are_numbers(tmp_path):
    runs = run_plan("and", "O(1x)", np.arange(2), d=np.int64(5), heads=np.int32(2), train_words=20, test_words=5,
                    out=tmp_path)
    assert (runs.task.d, runs.task.heads) == (5, 2)


def test_a_diverging_run_does_not_stop_the_others():
    config = dict(steps=300, **SMALL)
    limit = 2 / np.linalg.eigvalsh(_output_hessian(resolve("occurrence", "O", rate_o=1.0, **config), 0)).max()
    other = 2 / np.linalg.eigvalsh(_output_hessian(resolve("occurrence", "O", rate_o=1.0, **config), 1)).max()
    between = (limit + other) / 2
    status = run_plan("occurrence", "O(40000x)", [0, 1], rate_o=between, **SMALL).status
    assert sorted(status) == ["diverged", "ok"]


def _output_hessian(config, seed):
    task = config.make_task()
    words, _ = task.data(seed)
    alpha, _ = task.initial(seed, config.init, config.init_scale)
    weights = words.counts() * np.exp(alpha[0])
    share = weights / weights.sum(axis=1, keepdims=True)
    return 2 * share.T @ share / len(share)


@pytest.mark.parametrize(("given", "seeds"), [(2, [0, 1]), ("3:5", [3, 4]), ("4,7", [4, 7]), (range(2, 4), [2, 3])])
def test_seeds_mean_the_same_in_python_and_on_the_command_line(given, seeds):
    assert run_plan("occurrence", "O(1x)", given, **SMALL).seeds == seeds


def test_zero_rate_freezes_a_layer():
    run = train(resolve("occurrence", "joint(20x)", rate_a=0.0, rate_o=1.0, **SMALL), 0)
    assert np.array_equal(run.alpha[0], run.alpha[1])
    assert not np.array_equal(run.beta[0], run.beta[1])


def test_identical_heads_stay_identical():
    run = train(resolve("and", "joint(100x)", init="zero", heads=4, **SMALL), 0)
    assert (run.beta[-1] == run.beta[-1][0]).all() and (run.alpha[-1] == run.alpha[-1][0]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(d=1), "d must be a whole number at least 2, not 1"),
        (dict(d=2.5), "d must be"),
        (dict(d=True), "d must be"),
        (dict(d=8, targets=2), "targets of occurrence is 1"),
        (dict(heads=0), "heads must be"),
        (dict(rate_o=-1.0), "rate_o must be a finite number"),
        (dict(rate_o=float("nan")), "rate_o must be a finite number"),
        (dict(rate_o=float("inf")), "rate_o must be a finite number"),
        (dict(rate_o=[1, 2, 3]), r"rate_o needs 2 value\(s\) for plan O\(1x\)->A\(1x\)->O \(phase 1: O\(1x\), phase 3"),
        (dict(rate_a=[]), "rate_a needs 1"),
        (dict(steps=0), "steps must be"),
        (dict(train_words=0), "train_words must be"),
        (dict(init="ones"), "init must be one of random, zero"),
        (dict(init_scale=-1), "init_scale must be"),
        (dict(init_scale=1e200), "init_scale .* is too large"),
        (dict(init_scale=[0.1, 1e152]), "init_scale .* is too large"),
        (dict(length="geometric:2"), "length"),
        (dict(test_length="fixed"), "test_length"),
        (dict(record_every=0), "record_every"),
        (dict(seeds=[]), "names no seed"),
        (dict(seeds=None), "seeds must be N"),
        (dict(seeds=0), "names no seed"),
        (dict(seeds="0:2000000"), "seeds must be at most"),
        (dict(seeds=[1, 1]), "same seed twice"),
        (dict(seeds=[-1]), "seeds must be"),
        (dict(jobs=0), "jobs must be"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    given = {**dict(d=8, train_words=20, test_words=10, steps=2, seeds=[0]), **arguments}
    with pytest.raises(InputError, match=message) as error:
        run_plan("occurrence", "O(1x)->A(1x)->O", **given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("task", "message"), [("occurence", "did you mean 'occurrence'"), ("", "task must be"),
                                               ("1 & 9", "names letter 9, but d is 8"), (None, "task must be")])
def test_bad_tasks_are_named(task, message):
    with pytest.raises(InputError, match=message):
        make_task(task, d=8)


def test_all_letters_as_targets_is_refused():
    with pytest.raises(InputError, match="targets must be fewer than d"):
        make_task("or", d=3, targets=3)


def test_labelled_arrays_know_their_axes():
    runs = run_plan("occurrence", "O(1x)->A(1x)", [4, 9], **SMALL)
    assert runs.train_loss.dims == ("seed", "step") and runs.alpha.dims == ("seed", "phase_end", "head", "letter")
    assert float(runs.train_loss.sel(seed=9, step=2)) == runs.runs[1].train_loss[2]
    assert runs.train_loss.mean("seed").dims == ("step",)
    with pytest.raises(InputError, match="no seed 5"):
        runs.train_loss.sel(seed=5)
    with pytest.raises(InputError, match="no dimension 'sed'"):
        runs.train_loss.mean("sed")


def test_numpy_takes_labelled_arrays_as_arrays():
    loss = run_plan("occurrence", "joint(3x)", [4, 9], **SMALL).train_loss
    for function in (np.mean, np.std, np.max, np.sum, np.median):
        assert function(loss) == function(loss.values)
        assert np.array_equal(function(loss, axis=0), function(loss.values, axis=0))
    assert np.std(loss, ddof=1) == np.std(loss.values, ddof=1)


@pytest.mark.parametrize("module", ["by_length", "figures", "labelled", "plans", "population", "runs", "seeds", "store",
                                    "tasks"])
def test_examples_in_the_documentation_are_true(module, tmp_path, monkeypatch):
    import doctest
    import importlib

    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(f"sim.{module}"))
    assert found.attempted and not found.failed
