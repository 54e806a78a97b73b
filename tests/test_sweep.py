"""Sweeps: what is trained, what is kept, what is refused, and the same bits however the work is shared."""

import json
import signal
import subprocess
import time

import pytest

from analytic.errors import InputError
from sim import cli, load, store
from sim.runs import run_plan
from sim.spec import read_spec
from sim.status import status
from sim.sweep import estimate, read_plan, run_sweep

from .sweeping import SMALL, attnlag, call, command, files, finished, leftovers, write_spec


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """The small sweep, complete: 4 configurations, 3 seeds."""
    return finished(tmp_path_factory.mktemp("complete"))


# ---- the same bits ---------------------------------------------------------------------------------------------------


def test_a_run_of_a_sweep_is_the_run_one_gets_alone(complete, tmp_path):
    runs = run_plan("occurrence", "joint(60x)", [2], d=8, init_scale=0.5, train_words=60, test_words=20, out=tmp_path)
    path = store.run_path(tmp_path, runs.config, 2)
    assert path.read_bytes() == store.run_path(complete, runs.config, 2).read_bytes()


@pytest.mark.parametrize("jobs", [1, 3])
def test_any_number_of_threads_gives_the_same_files(complete, tmp_path, jobs):
    run_sweep(write_spec(tmp_path), tmp_path / "out", jobs=jobs)
    assert files(tmp_path / "out") == files(complete)
    assert (tmp_path / "out" / "sweep.json").read_bytes() == (complete / "sweep.json").read_bytes()


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
def test_shards_in_any_order_give_the_same_files(complete, tmp_path, order):
    path, out = write_spec(tmp_path), tmp_path / "out"
    for done, i in enumerate(order, 1):
        swept = run_sweep(path, out, shard=(i, 3))
        assert (swept.runs, swept.trained, swept.found) == (4, 4, 0)
        assert (status(out).done, status(out).missing) == (4 * done, 12 - 4 * done)
    assert files(out) == files(complete)


def test_shards_and_whole_sweeps_at_the_same_time_end_well(complete, tmp_path):
    path, out = write_spec(tmp_path), tmp_path / "out"
    flags = [["--shard", "1/2"], ["--shard", "2/2"], []]
    processes = [subprocess.Popen(command("sweep", path, "--out", out, *more), stderr=subprocess.PIPE, text=True,
                                  stdout=subprocess.DEVNULL) for more in flags]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (cli.OK, "")
    assert files(out) == files(complete) and not leftovers(out)


def test_the_content_hash_depends_on_the_results_alone(complete, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "versions", lambda: {"machine": "another"})
    path, out = write_spec(tmp_path), tmp_path / "out"
    for i in (2, 1):
        run_sweep(path, out, shard=(i, 2))
    assert files(out) != files(complete)
    assert status(out).content == status(complete).content
    run_sweep(path, tmp_path / "fewer", shard=(1, 2))
    assert status(tmp_path / "fewer").content != status(complete).content


def test_no_file_of_a_sweep_tells_the_time(complete, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 2e9)
    run_sweep(write_spec(tmp_path), tmp_path / "out")
    assert files(tmp_path / "out") == files(complete)


# ---- what is kept, extended, refused ---------------------------------------------------------------------------------


def test_what_is_there_is_not_trained_again(complete, tmp_path, monkeypatch):
    monkeypatch.setattr("sim.pool.train", None)  # training would fail
    swept = run_sweep(write_spec(tmp_path), complete)
    assert (swept.found, swept.trained, swept.failed) == (12, 0, [])


def test_more_seeds_and_more_values_extend_a_sweep(tmp_path):
    out = tmp_path / "out"
    steps = [dict(seeds=2, d=[6]), dict(seeds=3, d=[6]), dict(seeds=3, d=[6, 8])]
    counts = [run_sweep(write_spec(tmp_path, **step), out) for step in steps]
    assert [(swept.found, swept.trained) for swept in counts] == [(0, 4), (4, 2), (6, 6)]
    assert (status(out).planned, status(out).missing) == (12, 0)


def test_a_fixed_parameter_may_become_an_axis(tmp_path):
    out = tmp_path / "out"
    run_sweep(write_spec(tmp_path, seeds=1, d=[6]), out)
    grown = SMALL.replace('plan = "joint(60x)"', "").format(seeds=1, d=[6]) + 'plan = ["joint(60x)", "O(1x)"]\n'
    assert run_sweep(write_spec(tmp_path, grown), out).found == 2


@pytest.mark.parametrize(("change", "difference"), [
    ("d=6", "d is 6, there 6, 8"),
    ("grid.d=[6, 9]", "d is 6, 9, there 6, 8"),
    ("seeds=2", "d 6, init_scale 0.1 lacks seeds 2, which are there"),
    ("plan=O(1x)", "plan is O(1x), there AO(60x)"),
    ("rate_a=2.5", "rate_a is 2.5, there 1.0"),
    ("train_words=61", "train_words is 61, there 60"),
])
def test_a_changed_specification_is_refused_with_the_difference(complete, tmp_path, change, difference, capsys):
    before = files(complete), (complete / "sweep.json").read_bytes()
    code, out, err = call(capsys, "sweep", write_spec(tmp_path), "--out", complete, "--set", change)
    assert (code, out, err.count("\n")) == (cli.USAGE, "", 1)
    assert difference in err and "holds another sweep" in err
    assert (files(complete), (complete / "sweep.json").read_bytes()) == before


def test_a_changed_default_is_a_difference_too(complete, tmp_path, monkeypatch):
    spec = write_spec(tmp_path)
    monkeypatch.setattr("sim.settings.Settings.rate", lambda *_: 0.25)
    with pytest.raises(InputError, match=r"rate_a is 0\.25, there 1\.0; rate_o is 0\.25, there 1\.0"):
        run_sweep(spec, complete)


def test_the_plan_in_the_folder_is_the_specification(complete, tmp_path):
    assert read_plan(complete) == read_spec(write_spec(tmp_path))
    assert read_plan(tmp_path) is None


# ---- what goes wrong in a run ----------------------------------------------------------------------------------------


def test_a_diverging_seed_costs_nothing_else(tmp_path, capsys):
    spec = write_spec(tmp_path, SMALL.format(seeds=2, d=[8]) + "rate_o = [1.0, 900.0]\n")
    code, out, _ = call(capsys, "sweep", spec, "--out", tmp_path / "out")
    assert code == cli.DIVERGED and "8 of 8 runs" in out and "4 diverged" in out
    code, out, _ = call(capsys, "status", tmp_path / "out", "--json")
    value = json.loads(out)
    assert (code, value["done"], value["missing"], len(value["diverged"])) == (cli.DIVERGED, 8, 0, 4)
    code, out, _ = call(capsys, "table", tmp_path / "out", "--rows", "rate_o", "--cols", "init_scale", "--value",
                        "train_loss")
    assert code == cli.DIVERGED and out.count("2/2 diverged") == 2


def test_a_run_that_cannot_be_trained_costs_nothing_else(tmp_path, capsys):
    text = SMALL.format(seeds=2, d=[8]).replace("init_scale = [0.1, 0.5]", "init_scale = [0.1, 1e200]")
    code, out, err = call(capsys, "sweep", write_spec(tmp_path, text), "--out", tmp_path / "out", "--json")
    value = json.loads(out)
    assert (code, err, value["trained"]) == (cli.DIVERGED, "", 2)
    assert [run["seed"] for run in value["failed"]] == [0, 1] and "is too large" in value["failed"][0]["reason"]
    assert (status(tmp_path / "out").done, status(tmp_path / "out").missing) == (2, 2)


def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(tmp_path):
    text = SMALL.replace("joint(60x)", "joint(4000x)").format(seeds=20, d=[20]).replace("words = 60", "words = 3000")
    path, out = write_spec(tmp_path, text), tmp_path / "out"
    process = subprocess.Popen(command("sweep", path, "--out", out), stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if files(out) or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == cli.INTERRUPTED and err.count("\n") == 1 and "the same command goes on" in err
    kept = files(out)
    assert 0 < len(kept) < 40 and not leftovers(out)
    done = attnlag("sweep", path, "--out", out, "--set", "plan=joint(4000x)", "--shard", "1/20", "--json")
    value = json.loads(done.stdout)
    assert done.returncode == 0 and value["runs"] == 2 and value["found"] == len(
        [1 for config, seed in read_spec(path).pairs((1, 20)) if str(store.run_path("", config, seed)) in kept])
    assert kept.items() <= files(out).items()


def test_progress_goes_to_a_terminal_only(tmp_path):
    done = attnlag("sweep", write_spec(tmp_path), "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.count("\n") == 1


# ---- a dry run -------------------------------------------------------------------------------------------------------


def test_a_dry_run_counts_and_writes_nothing(tmp_path, capsys):
    spec, out = write_spec(tmp_path), tmp_path / "out"
    code, text, _ = call(capsys, "sweep", spec, "--out", out, "--dry-run")
    assert code == 0 and "12 runs of 4 configurations, 0 of them found" in text and not out.exists()
    run_sweep(spec, out, shard=(1, 2))
    before = files(out)
    _, text, _ = call(capsys, "sweep", spec, "--out", out, "--dry-run", "--json")
    value = json.loads(text)
    assert (value["runs"], value["found"], value["configurations"]) == (12, 6, 4)
    assert value["seconds"] > 0 and files(out) == before


def test_the_disk_a_dry_run_names_is_what_the_runs_take(complete, tmp_path):
    size = estimate(read_spec(write_spec(tmp_path)), tmp_path / "none").bytes
    assert size == pytest.approx(sum(map(len, files(complete).values())), rel=0.02)


def test_a_dry_run_knows_that_phases_may_end_sooner(tmp_path):
    text = SMALL.replace("joint(60x)", "O(1x)->A").format(seeds=1, d=[6])
    found = estimate(read_spec(write_spec(tmp_path, text)), tmp_path / "none")
    assert found.at_most and "at most about" in repr(found)


def test_time_is_that_before_the_first_step_and_that_of_all_steps(tmp_path, monkeypatch):
    def short_run(config, seed):
        steps = sum(config.steps)
        assert steps <= 24
        return steps, 2.0 + 0.5 * steps, 1000

    monkeypatch.setattr("sim.sweep._short_run", short_run)
    monkeypatch.setattr("sim.sweep.train", lambda config, seed: None)
    spec = read_spec(write_spec(tmp_path, seeds=5, d=[6]), ["plan=joint(1000x)"])
    assert estimate(spec, tmp_path / "none").seconds == pytest.approx(10 * (2 + 500))


def test_a_few_dear_runs_are_not_lost_among_many_cheap_ones(tmp_path, monkeypatch):
    def short_run(config, seed):
        steps = sum(config.steps)
        return steps, steps * config.make_task().nbytes(), 1000

    monkeypatch.setattr("sim.sweep._short_run", short_run)
    monkeypatch.setattr("sim.sweep.train", lambda config, seed: None)
    text = 'task = "or"\nplan = "joint(500x)"\nseeds = 3\ngrid.d = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 200]\n'
    spec = read_spec(write_spec(tmp_path, text))
    exact = sum(3 * 500 * config.make_task().nbytes() for config in spec.groups)
    assert estimate(spec, tmp_path / "none").seconds == pytest.approx(exact, rel=0.05)


# ---- examples --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", ["plots", "status", "stored", "sweep"])
def test_examples_in_the_documentation_are_true(module, tmp_path, monkeypatch):
    import doctest
    import importlib

    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(f"sim.{module}"))
    assert found.attempted and not found.failed


def test_what_is_loaded_is_what_was_trained(complete):
    stored = load(complete)
    assert stored.axes == {"d": [6, 8], "init_scale": [0.1, 0.5]} and stored.seeds == [0, 1, 2]
    assert sum(map(len, stored)) == 12
