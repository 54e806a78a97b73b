"""The benchmarks compare like with like; their results can be stored and shown; nothing kept is ever lost."""

import doctest
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from benchmarks import (
    __main__,
    cost,
    even_pairs,
    icl_bigram,
    kernels,
    letter,
    page,
    plots,
    population,
    report,
    roofs,
    slr,
    start_up,
    store,
    sweeps,
    table1,
    targets,
    timing,
    two_threads,
)
from benchmarks.peers import OURS, contest, problem
from benchmarks.report import markdown, number, text

ROOT = Path(__file__).parents[1]
SIZES = {  # the model, and sizes small enough for a test
    letter: [{"train_words": 300, "d": 7, "heads": 1}, {"train_words": 300, "d": 7, "heads": 2}],
    even_pairs: [{"max_length": 4}, {"max_length": 5}],
    icl_bigram: [{"train_words": 300, "d": 7, "pairs": 3}, {"train_words": 40, "d": 20, "pairs": 9}],
    slr: [{"train_words": 300, "tokens": 4, "d": 7}, {"train_words": 40, "tokens": 3, "d": 20}],
}
LARGE = {letter: {"train_words": 500, "d": 10, "heads": 1}, slr: {"train_words": 500, "tokens": 4, "d": 10}}
MODELS = [pytest.param(module, id=module.__name__.rpartition(".")[2]) for module in SIZES]
MACHINE = {"cpu": "some", "cores": 2, "load": 0.5, "features": ["fma"], "versions": {"python": "3.11", "torch": None}}
HEAD = {"machine": MACHINE, "quick": False, "date": "2026-01-02", "took": 3.0}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE", 0.0)
    monkeypatch.setattr(kernels, "CALL", 1e6)
    monkeypatch.setattr(kernels, "CONTEST", 1e5)


@pytest.fixture
def small(monkeypatch):
    """All models at small sizes."""
    for module, sizes in SIZES.items():
        model = replace(module.MODEL, scaling=sizes, settings=sizes, large=LARGE.get(module))
        monkeypatch.setattr(module, "MODEL", model)
    for module in (icl_bigram, slr):
        monkeypatch.setattr(module, "SETTINGS", SIZES[module])


@cache
def measured(module):
    """What a kernel's benchmark gives at small sizes, as it comes out of a file; only with the fixture `small`."""
    own = module.measure if module in (even_pairs, icl_bigram, slr) else module.MODEL.measure
    return json.loads(json.dumps({**HEAD, **own()}, allow_nan=False))


def run(*arguments, **options):
    """``python -m benchmarks`` as a process."""
    options = {"capture_output": True, "text": True, "cwd": ROOT, **options}
    return subprocess.run([sys.executable, "-m", "benchmarks", *arguments], **options)


# ---- kernels and peers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODELS)
def test_every_installed_peer_arrives_where_the_kernel_does(module):
    for size in SIZES[module]:
        rows = module.MODEL.against_peers(**size)["peers"]
        assert {row["peer"] for row in rows} == {OURS, *module.PEERS}
        assert all(row["microseconds"] is None or row["microseconds"] > 0 for row in rows)
        assert [row["peer"] for row in rows[:2]] == [OURS, "numpy"] and rows[1]["times_slower"] > 0


@pytest.mark.parametrize("module", MODELS)
def test_a_peer_that_arrives_elsewhere_is_not_timed(module):
    def wrong(data, first, second, steps):
        return module.PEERS["numpy"](data, first, second, steps + 1)

    model = replace(module.MODEL, peers={"wrong": wrong})
    with pytest.raises(SystemExit, match="wrong arrives"):
        model.against_peers(**SIZES[module][0])


def test_a_peer_that_is_not_installed_is_named_and_no_target_is_met_without_it():
    def absent(*problem):
        import no_such_library  # noqa: F401

    peers = {"numpy": letter.PEERS["numpy"], "absent": absent}
    found = replace(letter.MODEL, peers=peers).against_peers(train_words=300, d=7, heads=1)
    assert found["peers"][-1] == {"peer": "absent", "microseconds": None, "times_slower": None}
    size = "N = 300, d = 7, H = 1"
    assert "not installed" in text(kernels.peer_table("", {size: found["peers"]}))
    results = {"letter": {"peers": [found]}}
    assert targets.times_as_fast("letter", size, "numpy")(results) == found["peers"][1]["times_slower"]
    assert targets.times_as_fast("letter", size, None)(results) is None  # the best may be the one that is missing


def test_the_loss_of_the_last_state_counts_as_more_steps_of_the_kernel_alone():
    now = [0.0]

    def peer(seconds_a_step, more):
        def made(data, first, second, steps):
            def call():
                now[0] += seconds_a_step * (steps + more)
                return (np.zeros(2),)

            return call

        return made

    rows = contest(peer(2.0, 0.5), {"numpy": peer(6.0, 0)}, (None, None, None), 4, last=0.5, clock=lambda: now[0])
    assert [row["microseconds"] for row in rows] == [2e6, 6e6] and rows[1]["times_slower"] == 3.0


def test_work_is_counted_as_said():
    """By hand: the formulas of the docstrings."""
    assert letter.MODEL.work(train_words=10, d=50, heads=4) == 4 * 10 * 50 * 4
    assert even_pairs.MODEL.work(max_length=3) == 20 * (2 + 4 + 8)
    assert icl_bigram.MODEL.work(train_words=10, d=50, pairs=6) == 10 * (3 * 6 * 50 + 14 * 50)
    assert icl_bigram.multiply_adds(10, 50, 6, layers=1) == 10 * (2 * 6 * 50 + 14 * 50)
    assert slr.MODEL.work(train_words=10, tokens=4, d=50) == 4 * 10 * 4 * 50


def test_sizes_compared_with_peers_are_those_of_the_tasks():
    given = {"occurrence": 1, "or": 1, "and": 4}
    for size in letter.SETTINGS[:3]:
        words, alpha, beta = problem(**size)
        assert (words.n_words, words.d, len(alpha)) == (size["train_words"], size["d"], given[size["task"]])
        assert alpha.shape == beta.shape
    data, W, _ = problem("even_pairs", max_length=5)
    contexts, *_ = problem("icl_bigram", train_words=9, d=7, pairs=3)
    assert W.shape == (10, 10) and data.n_strings == 62
    assert contexts.letters.shape == (9, 4)


@pytest.mark.parametrize("module", MODELS)
def test_everything_measured_of_a_kernel_is_finite_json_and_tables_show_it(module, small):
    result = measured(module)
    row = result["scaling"][0]
    assert row["arithmetic_share"] > 0 and row["multiply_adds"] == module.MODEL.work(**SIZES[module][0])
    shown = "\n".join(map(text, [*module.shown(result)]))
    assert f"{row['arithmetic_share']:.0%}" in shown and number(row["microseconds"], 4) in shown and "numpy" in shown
    assert ("large run" in shown) == (module in LARGE)
    assert ("memory_share" in row) == (module is not even_pairs)
    for part in module.shown(result):
        assert text(part).count("\n") + 2 >= markdown(part).strip().count("\n")


def test_threads_of_kernels_are_set_back_whatever_happens():
    before = slr.slr.THREADS
    with pytest.raises(ZeroDivisionError), timing.threads([slr.slr], before + 1):
        assert slr.slr.THREADS == before + 1
        _ = 1 / 0
    assert slr.slr.THREADS == before


# ---- timing ----------------------------------------------------------------------------------------------------------


def test_contestants_take_turns_after_a_first_call_whose_results_are_compared():
    calls, seen = [], {}
    now = iter(range(1000))
    contestants = {name: lambda name=name: calls.append(name) or name.upper() for name in "ab"}
    found = timing.shortest_times(contestants, rounds=2, repeats=1, clock=lambda: next(now), check=seen.update)
    assert calls == list("ababab") and seen == {"a": "A", "b": "B"}
    assert found == {"a": 1, "b": 1}


def test_a_long_call_counts_alone():
    calls, now = [], [0.0]

    def slow():
        calls.append(now[0])
        now[0] += 2 * timing.LONG

    assert timing.shortest_times({"slow": slow}, clock=lambda: now[0]) == {"slow": 2 * timing.LONG}
    assert len(calls) == 2


def test_a_failed_process_is_one_line_with_its_last_words():
    code = "import sys; print('first', file=sys.stderr); sys.exit('no such thing')"
    with pytest.raises(SystemExit, match=r"failed \(exit code 1\): no such thing$") as stopped:
        timing.run_apart([sys.executable, "-c", code], stderr=subprocess.PIPE)
    assert "\n" not in str(stopped.value) and "first" not in str(stopped.value)
    with pytest.raises(SystemExit, match="signal 9"):
        timing.run_apart([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    with pytest.raises(KeyboardInterrupt):
        timing.run_apart([sys.executable, "-c", "raise SystemExit(130)"])
    assert timing.run_apart([sys.executable, "-c", "print(3); raise SystemExit(3)"], fine=(0, 3)) == "3\n"


def test_a_signal_to_one_process_stops_those_it_started(tmp_path):
    child = tmp_path / "child.py"
    child.write_text("import os, time\nprint(os.getpid(), file=open('pid.writing', 'w'), flush=True)\n"
                     "os.rename('pid.writing', 'pid')\ntime.sleep(60)\n")
    code = f"from benchmarks.timing import run_apart; import sys; run_apart([sys.executable, {str(child)!r}])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.DEVNULL,
                          env=environment) as parent:  # fmt: skip
        while not (tmp_path / "pid").exists():
            assert parent.poll() is None
            time.sleep(0.02)
        parent.send_signal(signal.SIGINT)
        assert parent.wait(timeout=30) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


# ---- the other benchmarks --------------------------------------------------------------------------------------------

SWEEPS = {
    "occurrence": {"task": "occurrence", "d": 7, "train_words": 100, "heads": 1},
    "and": {"task": "and", "d": 7, "train_words": 100, "heads": 4},
    "even_pairs": {"max_length": 4},
    "icl_bigram": {"d": 7, "pairs": 3, "train_words": 60},
    "slr": {"d": 5, "tokens": 3, "train_words": 60},
}


@pytest.mark.parametrize("task", SWEEPS)
def test_sweeps_train_every_seed_with_all_set_ups(task, monkeypatch):
    model, _, steps = sweeps.TASKS[task]
    monkeypatch.setitem(sweeps.TASKS, task, (model, SWEEPS[task], steps))
    result = sweeps.against_peers(task, 3)
    ours, *others = result["peers"]
    assert ours["peer"] == OURS and set(ours["seconds"]) == {"1", "2"}
    assert {row["peer"] for row in others} == {*model.PEERS, "jax, vmap over seeds"}
    table, _ = sweeps.shown({"tasks": [result]})
    assert text(table).count("\n") == 1 + len(result["peers"])
    given = sweeps.problems(model, SWEEPS[task], 3)
    assert len({start[0].tobytes() for _, *start in given}) == 3, "seeds have the same start"
    times = {row["peer"]: row["seconds"] and row["seconds"]["2"] for row in others}
    best = None if None in times.values() else min(times.values()) / ours["seconds"]["2"]
    assert targets.sweep_times(task)({"sweeps": {"tasks": [result]}}) == best


def test_a_set_up_that_arrives_elsewhere_is_not_timed(monkeypatch):
    def wrong(data, alpha, beta, steps):
        return letter.numpy_products(data, alpha, beta, steps + 1)

    monkeypatch.setitem(letter.PEERS, "numpy", wrong)
    monkeypatch.setitem(sweeps.TASKS, "or", (letter, SIZES[letter][0], 3))
    with pytest.raises(SystemExit, match="numpy arrives"):
        sweeps.against_peers("or", 2)


def test_one_run_on_two_threads_is_a_contest_of_wall_time(monkeypatch):
    monkeypatch.setattr(two_threads, "SETTINGS", [(letter.MODEL, SIZES[letter][0]), (slr.MODEL, SIZES[slr][0])])
    (table,) = two_threads.shown(two_threads.measure())
    assert table.header[1:] == ("occurrence", "slr")


def test_roofs_add_up_the_threads(monkeypatch):
    for name, value in (("SIZES", (1, 2)), ("CALL_BYTES", 2**20), ("ROUNDS", 1_000)):
        monkeypatch.setattr(roofs, name, value)
    result = roofs.measure()
    assert [row["threads"] for row in result["roofs"]] == [1, 2]
    assert all(rate > 0 for row in result["roofs"] for rate in row["read_bytes_per_second"].values())
    assert "GB/s" in text(*roofs.shown(json.loads(json.dumps(result))))


def test_a_read_reads_all_of_the_array_as_often_as_it_says():
    read = roofs.Read(np.arange(6, dtype=np.int64).reshape(2, 3), times=2)
    assert roofs._sum(read.numbers, read.times) == sum(range(6)) + sum(i ^ 1 for i in range(6))
    assert read.per_second(2.0) == 6 * 8


def test_time_along_a_line_is_linear_and_other_times_are_not():
    xs = np.array([1.0, 2.0, 4.0])
    exact = cost.line(xs, 3.0 + 2.0 * xs)
    assert exact["largest_deviation"] < 1e-12 and exact["slope"] == pytest.approx(2.0)
    assert cost.line(xs, xs**2)["largest_deviation"] > targets.NEAR_A_LINE / 100


def test_every_size_is_timed_and_shown(monkeypatch):
    monkeypatch.setattr(cost, "LARGE", ())
    monkeypatch.setattr(cost, "SIZES", ((100, 8), (200, 4), (200, 8)))  # two with the same N d
    monkeypatch.setattr(cost, "COUNTS", (1, 2))
    result = json.loads(json.dumps(cost.measure()))
    assert result["size"]["x"] == [800, 800, 1600] and len(result["size"]["seconds"]) == 3
    _, size, steps = map(text, cost.shown(result))
    assert size.count("\n800 ") == 2 and steps.count("\n") == 3


def test_memory_is_that_of_the_run_and_not_of_who_started_it():
    ballast = np.ones(40_000_000)  # 320 MB that a child's largest resident size could start from
    row = cost.memory(200_000, 50)
    assert ballast.all() and row["bytes"] / 2 < row["peak"] < 100e6
    assert row["allowed"] == 1.5 * row["bytes"] + 100e6


def test_a_new_process_is_timed_with_an_empty_cache_first(monkeypatch):
    found, clean = [], start_up.run_apart

    def spy(command, env, cwd, **options):
        assert os.listdir(cwd) == [], "runs are stored there, and would only be read"
        found.append(len(os.listdir(env["NUMBA_CACHE_DIR"])))
        Path(env["NUMBA_CACHE_DIR"], f"compiled-{len(found)}").touch()
        return clean([sys.executable, "-c", ""], env=env, **options)

    monkeypatch.setattr(start_up, "run_apart", spy)
    row = start_up.cold_and_warm(("run", "or"), cold=2, warm=2)
    assert found == [0, 1, 2, 0, 1, 2]
    assert row["command"] == "attnlag run or" and 0 < row["warm_seconds"] and 0 < row["cold_seconds"]
    assert "attnlag run or" in text(*start_up.shown({"commands": [row]}))


def test_a_command_that_fails_stops_the_benchmark_with_its_own_words():
    with pytest.raises(SystemExit, match=r"run nosuch failed \(exit code 2\): .*nosuch"):
        start_up.cold_and_warm(("run", "nosuch"), 1, 1)


def test_table_1_is_extended_from_few_seeds_by_what_a_seed_costs(monkeypatch):
    monkeypatch.setattr(table1, "seconds", lambda seeds: 10.0 + 2.0 * seeds)
    quick, full = table1.measure(quick=True), table1.measure()
    assert quick["seconds"] == full["seconds"] == 110.0
    assert "extended from 1 and 3 seeds" in table1.shown(quick)[0] and "110 s, measured" in table1.shown(full)[0]


def test_population_dynamics_start_from_nothing_remembered(monkeypatch):
    name, path = next(iter(population.CASES.items()))
    monkeypatch.setattr(population, "CASES", {name: path})
    result = population.measure()
    assert result["cases"][0]["set_up_milliseconds"] > 0
    assert name in text(*population.shown(result))


def test_the_folder_of_runs_is_read_as_what_it_is(monkeypatch):
    monkeypatch.setattr(store, "RUNS", 12)
    monkeypatch.setattr(store, "CONFIGURATIONS", (4, 12))
    result = json.loads(json.dumps(store.measure()))
    assert [folder["configurations"] for folder in result["folders"]] == [4, 12]
    assert all(folder[name] > 0 for folder in result["folders"] for name in ("list", "status", "load", "resume"))
    assert text(*store.shown(result)).count("\n") == 3


# ---- targets, page and plots -----------------------------------------------------------------------------------------


def rows_of(times):
    return [{"peer": name, "microseconds": 1.0, "times_slower": value} for name, value in times.items()]


def test_verdicts_are_computed_from_results():
    size = {"task": "and", "train_words": 12_500, "d": 50, "heads": 4}
    times = {OURS: 1.0, "numpy": 9.0, "jax": 1.7, "torch": 3.9, "torch, first version": 50.0}
    row = {"size": size, "peers": rows_of(times)}
    results = {
        "letter": {"peers": [row], "scaling": [{"train_words": 12_500, "d": 50, "heads": 4, "arithmetic_share": 0.79}]},
        "table1": {"seconds": 599.0},
        "cost": {"memory": [{"peak": 5.0, "allowed": 10.0}, {"peak": 11.0, "allowed": 10.0}],
                 "size": {"largest_deviation": 0.1}, "steps": {"largest_deviation": 0.3}},
        "start_up": {"commands": [{"command": "attnlag run occurrence", "warm_seconds": 1.6, "cold_seconds": 5.0}]},
    }  # fmt: skip
    found = {row[0]: row[2:] for row in targets.table(results).rows}
    title = "Letters, and, N = 12500, d = 50, H = 4: against"
    assert found[f"{title} the best peer"] == ("1.7×", "met")
    assert found[f"{title} tidy PyTorch"] == ("3.9×", "missed")
    assert found[f"{title} PyTorch as one writes it first"] == ("50×", "met")
    assert found["Letters, N = 12500, d = 50, H = 4: of the roof, multiply-adds"] == ("79 %", "missed")
    assert found["Letters, N = 12500, d = 50, H = 1: of the roof, multiply-adds"] == ("", "not measured")
    others = ("All of", "Peak", "Time", "`attnlag")
    verdicts = [verdict for what, (_, verdict) in found.items() if what.startswith(others)]
    assert verdicts == ["met", "missed", "met", "missed", "missed", "met"]
    assert found["Sweep of slr on two threads: against the best peer"] == ("", "not measured")
    assert targets.table(results).caption == f"5 of {len(found)} targets are met."


def test_every_target_names_a_size_that_is_measured():
    for model, sizes in targets.AGAINST.items():
        assert set(sizes) <= set(map(kernels.size_text, model.SETTINGS))
    for (model, _), sizes in targets.SHARES.items():
        assert all(any(set(size) <= set(row.items()) for row in model.SCALING) for size in sizes)
    assert set(targets.SWEEPS) == set(sweeps.TASKS)


def test_examples_in_docstrings_hold():
    assert doctest.testmod(report).attempted == 1 and doctest.testmod(report).failed == 0


def test_the_page_names_every_benchmark_measured_or_not(small):
    empty = page.markdown_page({})
    for name in __main__.NAMES:
        assert f"`python -m benchmarks {name}`: not measured yet" in empty
    result = measured(even_pairs)
    one = page.markdown_page({"even_pairs": result})
    assert one.count("not measured yet") == len(__main__.NAMES) - 1
    assert number(result["scaling"][0]["microseconds"], 4) in one and "performance-time.png" in one
    assert one.count("some (fma), 2 cores; python 3.11, torch not installed") == 1
    other = {**HEAD, "machine": {**MACHINE, "cpu": "other"}, "seeds": 50, "threads": 2, "seconds": 7.0,
             "measured_seeds": [50]}  # fmt: skip
    two = page.markdown_page({"even_pairs": result, "table1": other})
    assert two.count("on some (fma)") == two.count("on other (fma)") == 1


def test_the_introduction_tells_every_trap():
    traps = re.findall(r"^- ", timing.__doc__, re.M)
    assert len(traps) == 8 and page.markdown_page({}).count("\n- ") >= len(traps)


def test_plots_show_every_size_of_every_kernel_with_units(small):
    from matplotlib.figure import Figure

    results = {"letter": measured(letter), "slr": measured(slr)}
    rows = {name: result["scaling"] for name, result in results.items()}
    for draw, label in ((plots.time, "µs"), (plots.share, "%")):
        ax = Figure().subplots()
        draw(ax, rows)
        assert label in ax.get_ylabel() and ax.get_xlabel() == "multiply-adds of a step"
        points = ax.lines[:2]
        assert [len(line.get_xdata()) for line in points] == [2, 2]
        assert len({line.get_marker() for line in points}) == len({line.get_color() for line in points}) == 2
    assert plots.binding({"arithmetic_share": 0.2, "memory_share": 0.9}) == 0.9
    assert plots.binding({"arithmetic_share": 0.2}) == 0.2
    pictures = plots.draw(results)
    assert set(pictures) == {"time", "share"} and all(png.startswith(b"\x89PNG") for png in pictures.values())
    assert plots.draw({"store": {}}) == {}


def test_the_page_in_the_documentation_is_drawn_from_what_is_kept_beside_it():
    results = page.kept(ROOT / "docs")
    assert (ROOT / "docs" / page.PAGE).read_text(encoding="utf-8") == page.markdown_page(results)
    assert set(results) == set(__main__.NAMES)


# ---- the command -----------------------------------------------------------------------------------------------------

TABLE1 = {**HEAD, "seeds": 50, "threads": 2, "seconds": 7.0, "measured_seeds": [50]}


def test_a_wrong_call_is_a_one_line_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(__main__, "set_environment", lambda threads: None)
    for arguments, words in (
        (["nosuch"], "NAME must be one of roofs, letter"),
        (["leter"], "did you mean 'letter'?"),
        (["letter", "--stored"], "--stored goes with --docs"),
        (["--docs", str(tmp_path / "absent")], "must be a folder that exists"),
        (["--docs", str(tmp_path), "table1", "--stored"], "holds no results of table1"),
        (["--no-such-flag"], "--no-such-flag"),
    ):
        with pytest.raises(SystemExit) as stopped:
            __main__.main(arguments)
        out, errors = capsys.readouterr()
        line = errors if stopped.value.code == 2 else str(stopped.value)
        assert out == "" and line.startswith("error: ") and line.strip().count("\n") == 0 and words in line
    done = run("nosuch")
    assert done.returncode == 2 and done.stderr.startswith("error: NAME must be one of") and done.stdout == ""


def test_stored_results_are_shown_and_drawn_again(tmp_path):
    page.keep(tmp_path, {"table1": TABLE1})
    done = run("--stored", "--docs", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "") and "7 s, measured" in done.stdout
    assert "7 s, measured" in (tmp_path / page.PAGE).read_text()
    done = run("table1", "--stored", "--docs", str(tmp_path), "--json")
    assert json.loads(done.stdout) == TABLE1


@pytest.mark.parametrize("damaged", ('{"table1": {"seco', "[]", "", "\xff"))
def test_a_damaged_file_of_results_is_reported_at_once_and_left_as_it_is(tmp_path, monkeypatch, damaged):
    (tmp_path / page.FILE).write_bytes(damaged.encode("latin-1"))
    monkeypatch.setattr(__main__, "set_environment", lambda threads: None)
    for arguments in ((), ("--stored",), ("table1", "--quick")):
        with pytest.raises(SystemExit, match=r"^error: \S*performance\.json is damaged \(.*\): restore it.*$"):
            __main__.main([*arguments, "--docs", str(tmp_path)])
    assert (tmp_path / page.FILE).read_bytes() == damaged.encode("latin-1")
    assert len(list(tmp_path.iterdir())) == 1


def test_results_of_another_version_are_named(tmp_path):
    for old in ({**HEAD, "seeds": 50}, {"seeds": 50, "threads": 2, "seconds": 7.0, "measured_seeds": [50]}, None, 3):
        page.keep(tmp_path, {"table1": old})
        with pytest.raises(SystemExit, match="error: results of table1 are of another version: measure table1 again"):
            page.renew(tmp_path)
        assert not (tmp_path / page.PAGE).exists()


class Apart:
    """Stands for the processes that measure: the benchmark ``at`` ends otherwise."""

    def __init__(self, at, error):
        self.at, self.error = at, error

    def __call__(self, name, quick):
        if name == self.at:
            raise self.error
        return {**TABLE1, "name": name, "quick": quick}


IN_A_KERNEL = SystemError("returned a result with an exception set")
IN_A_KERNEL.__cause__ = KeyboardInterrupt()
ENDS = (
    (KeyboardInterrupt(), "130"),
    (IN_A_KERNEL, "130"),
    (SystemExit("slr failed"), "slr failed"),
    (OSError(28, "No space left on device"), "error: cannot use"),
    (RuntimeError("two\nlines"), "error: RuntimeError: two lines (ATTNLAG_TRACEBACK=1"),
)


@pytest.mark.parametrize(("error", "code"), ENDS)
def test_what_was_measured_before_an_end_is_kept_and_the_rest_stays(tmp_path, monkeypatch, capfd, error, code):
    before = {"letter": {**TABLE1, "old": 1}, "slr": {**TABLE1, "old": 2}, "store": {**TABLE1, "old": 3}}
    page.keep(tmp_path, before)
    monkeypatch.setattr(__main__, "measure_apart", Apart("slr", error))
    monkeypatch.delenv("ATTNLAG_TRACEBACK", raising=False)
    monkeypatch.setattr(__main__, "set_environment", lambda threads: None)
    with pytest.raises(SystemExit) as stopped:
        __main__.main(["--docs", str(tmp_path)])
    assert str(stopped.value).startswith(code) and stopped.value.code != 0
    assert "Traceback" not in capfd.readouterr().err
    after = page.kept(tmp_path)
    assert after["roofs"]["name"] == "roofs" and after["letter"]["name"] == "letter"
    assert after["slr"] == before["slr"] and after["store"] == before["store"]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a Ctrl-C had turned off


def test_a_file_is_written_in_one_piece(tmp_path, monkeypatch):
    page.keep(tmp_path, {"table1": TABLE1})
    monkeypatch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        page.keep(tmp_path, {"table1": {**TABLE1, "seconds": 8.0}})
    monkeypatch.undo()
    assert page.kept(tmp_path) == {"table1": TABLE1} and len(list(tmp_path.iterdir())) == 1


def test_ctrl_c_stops_a_benchmark_without_a_traceback(tmp_path):
    page.keep(tmp_path, {"table1": TABLE1})
    command = [sys.executable, "-m", "benchmarks", "population", "--docs", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(2):  # when kernels are loaded: a call back from LLVM would lose the exception
            assert "occurrence" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in errors and "interrupted" in errors
    assert page.kept(tmp_path) == {"table1": TABLE1}


def test_everything_runs_apart_with_the_threads_it_may_use(monkeypatch):
    for name in ("OPENBLAS_CORETYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS"):
        monkeypatch.setenv(name, "untouched")  # and set back after the test
    __main__.set_environment(2)
    assert "OPENBLAS_CORETYPE" not in os.environ and os.environ["OMP_NUM_THREADS"] == "2"
    assert "intra_op_parallelism_threads=2" in os.environ["XLA_FLAGS"]
    asked = []
    monkeypatch.setattr(timing, "run_apart", lambda command: asked.append(command) or json.dumps(TABLE1))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert __main__.measure_apart("table1", True) == TABLE1
    assert asked == [[sys.executable, "-m", "benchmarks", "table1", "--json", "--quick"]]
