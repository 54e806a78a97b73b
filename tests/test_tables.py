"""Tables 1 and 5: how a cell is judged, and that every form of a table says the same."""

import csv
import io
import itertools
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim import cli, paper, reproduce, tables
from sim.config import resolve
from sim.descent import train
from sim.paper import Published, std_verdict, verdict
from sim.runs import Runs

SMALL = dict(d=8, train_words=60, test_words=40, steps=5)
ROW = paper.ROWS[0]

reals = st.floats(0, 2, allow_subnormal=False)


# ---- verdicts --------------------------------------------------------------------------------------------------------


def test_tolerance_by_hand():
    assert paper.tolerance(0.0, 50, 0.0) == 0.02
    assert paper.tolerance(0.3, 50, None) == pytest.approx(0.005 + 2 * math.sqrt(2 * 0.09 / 50))
    assert paper.tolerance(0.3, 10, 0.1) == pytest.approx(0.005 + 2 * math.sqrt(0.09 / 10 + 0.01 / 50))
    assert paper.tolerance(None, 1, 0.1) == pytest.approx(0.005 + 2 * math.sqrt(0.01 + 0.01 / 50))
    assert paper.tolerance(None, 1, None) == 0.02


@given(std=reals, n=st.integers(2, 100), paper_std=st.none() | reals)
def test_more_runs_and_less_spread_never_widen_the_tolerance(std, n, paper_std):
    tol = paper.tolerance(std, n, paper_std)
    assert tol >= 0.02
    assert paper.tolerance(std, n + 1, paper_std) <= tol <= paper.tolerance(std + 0.1, n, paper_std)


@pytest.mark.parametrize(("mean", "expected"), [(0.519, "match"), (0.481, "match"), (0.539, "near"), (0.461, "near"),
                                                (0.541, "off"), (0.459, "off")])
def test_match_near_and_off_lie_at_one_and_two_tolerances(mean, expected):
    diff, tol, word = verdict(mean, 0.0, 50, 0, Published(0.5, False, 0.0))
    assert (diff, tol, word) == (pytest.approx(mean - 0.5), 0.02, expected)


@pytest.mark.parametrize(("mean", "expected"), [(9.99e-4, "match"), (1e-3, "off"), (0.015, "off"), (0.0, "match")])
def test_a_bound_matches_below_it_only(mean, expected):
    assert verdict(mean, 0.1, 50, 0, Published(1e-3, True, None)) == (mean - 1e-3, None, expected)


@pytest.mark.parametrize("judge", [lambda *a: verdict(0.5, *a), std_verdict])
@pytest.mark.parametrize("number", [None, Published(0.5, False, 0.0), Published(1.0, True, 0.0, True)])
def test_a_cell_with_diverged_runs_never_matches(judge, number):
    assert judge(0.0, 47, 3, number) == (None, None, "3/50 diverged")


def test_all_runs_diverged():
    assert verdict(None, None, 0, 50, Published(0.5, False, None)) == (None, None, "50/50 diverged")
    assert std_verdict(None, 0, 50, Published(0.5, False, 0.1)) == (None, None, "50/50 diverged")


def test_what_is_not_printed_is_unpublished():
    assert verdict(0.5, 0.1, 50, 0, None) == (None, None, "unpublished")
    assert std_verdict(0.1, 50, 0, None) == std_verdict(0.1, 50, 0, Published(1, False, None)) == (
        None, None, "unpublished")


def test_deviations_are_judged_within_the_sampling_error_of_a_deviation():
    assert paper.std_tolerance(0.1, 50, 0.2) == pytest.approx(0.005 + 2 * math.sqrt((0.01 + 0.04) / 98))
    number = Published(0.5, False, 0.1)
    assert std_verdict(0.1, 50, 0, number)[2] == "match"
    assert std_verdict(0.0, 50, 0, number)[2] == "off"
    assert std_verdict(None, 1, 0, number)[2] == "one run"
    bound = Published(0.5, False, 1e-3, True)
    assert [std_verdict(s, 50, 0, bound)[2] for s in (0.0, 1e-3, 1.01e-3)] == ["match", "match", "off"]


def test_two_samples_of_the_same_law_nearly_always_match():
    rng = np.random.default_rng(0)
    ours, theirs = rng.normal(0.5, 0.2, (2, 2000, 50))
    pairs = zip(ours.mean(1), ours.std(1, ddof=1), theirs.mean(1), theirs.std(1, ddof=1), strict=True)
    words = [(verdict(m1, s1, 50, 0, Published(round(m2, 2), False, round(s2, 2)))[2],
              std_verdict(s1, 50, 0, Published(m2, False, round(s2, 2)))[2]) for m1, s1, m2, s2 in pairs]
    for kind in zip(*words, strict=True):
        # two standard errors of the difference: 4.6% by chance, less as rounding has its own allowance
        assert 0.95 <= kind.count("match") / len(kind) < 1


# ---- the published numbers -------------------------------------------------------------------------------------------


def test_published_numbers_by_hand():
    numbers = paper.published()
    assert numbers["Joint GD", "occurrence", "train_loss"] == Published(1e-3, True, 1e-6, True)
    assert numbers["Joint GD", "and", "train_loss"] == Published(0.04, False, 0.06)
    assert numbers["Joint GD", "and", "test_metric"] == Published(0.99, False, 1e-3, True)
    assert numbers["A", "and", "test_metric"] == Published(0.94, False, 0.07)
    assert numbers["O(1x)->A(1x)", "or", "test_metric"] == Published(0.78, False, None)
    assert numbers["O", "slr", "test_metric"] == Published(0.48, False, None)


def test_every_row_names_published_numbers_or_none():
    names = {row for row, _, _ in paper.published()}
    assert {row.published for row in paper.ROWS} == names | {None}


@pytest.mark.parametrize("task", paper.TASKS)
def test_every_row_runs_the_plan_of_its_label(task):
    for row, config in paper.configurations(task):
        plan = row.label.split(",")[0].replace("Joint GD", "AO")
        assert config.plan == plan.replace("A(1x)", f"A({paper.attention_steps(task)}x)")
        assert config.init == ("zero" if "zero" in row.label else "random")


# ---- cells and their forms -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results():
    """(row, runs): three good runs, one of three diverged, a single one, all diverged."""
    good = Runs(resolve("occurrence", "O", **SMALL), [train(resolve("occurrence", "O", **SMALL), s) for s in range(3)])
    wild = resolve("occurrence", "O", **{**SMALL, "rate_o": 1e4})
    lost = [train(wild, seed) for seed in range(3)]
    assert [run.status for run in lost] == ["diverged"] * 3
    return [(ROW, good), (paper.ROWS[1], Runs(good.config, [*good.runs[:2], lost[2]])),
            (paper.ROWS[2], Runs(good.config, good.runs[:1])), (paper.ROWS[3], Runs(wild, lost))]


def test_cells_hold_mean_and_deviation_of_the_last_records(results):
    runs = results[0][1]
    loss, accuracy = tables.table1_cells(results)[:2]
    ends = [run.train_loss[-1] for run in runs.runs]
    assert (loss["mean"], loss["std"]) == (pytest.approx(np.mean(ends)), pytest.approx(np.std(ends, ddof=1)))
    assert accuracy["mean"] == pytest.approx(np.mean([run.test_metric[-1] for run in runs.runs]))
    assert (loss["metric"], accuracy["metric"], loss["n"]) == ("train_loss", "test_accuracy", 3)
    assert tables.table5_cells(results)[0]["std"] == loss["std"]


def test_diverged_runs_are_counted_and_left_out_of_the_mean(results):
    cell = tables.table1_cells(results)[2]
    assert (cell["n"], cell["diverged"], cell["verdict"]) == (2, 1, "1/3 diverged")
    assert cell["mean"] == pytest.approx(np.mean([run.train_loss[-1] for run in results[1][1].runs[:2]]))
    nothing = tables.table1_cells(results)[6]
    assert (nothing["mean"], nothing["std"], nothing["verdict"]) == (None, None, "3/3 diverged")


def test_one_run_has_no_deviation(results):
    assert tables.table1_cells(results)[4]["std"] is None
    line = tables.table1_rows(tables.table1_cells(results))[1][2]
    assert "±" not in line[2] and "nan" not in " ".join(line)


@pytest.mark.parametrize(("make", "columns"), [(tables.table1_cells, tables.TABLE1),
                                               (tables.table5_cells, tables.TABLE5)])
def test_csv_gives_every_value_back(results, make, columns):
    cells = make(results)
    read = list(csv.DictReader(io.StringIO(tables.cells_csv(cells, columns))))
    assert tuple(read[0]) == columns and len(read) == len(cells) == 8
    for line, cell in zip(read, cells, strict=True):
        for name in columns:
            value = cell[name]
            parsed = None if line[name] == "" else type(value)(line[name])
            assert parsed == value, name
    assert "nan" not in tables.cells_csv(cells, columns)


def test_design_columns():
    assert ",".join(tables.TABLE1) == "plan,task,metric,mean,std,n,diverged,paper,paper_std,is_bound,diff,tol,verdict"


def test_cells_are_json(results):
    json.dumps(tables.table1_cells(results) + tables.table5_cells(results), allow_nan=False)


AWKWARD = st.text(st.sampled_from("a1 |\\&%$#_{}~^<>-→±≤*"), max_size=12)


def unescaped(text, mark):
    """Positions of ``mark`` that no backslash of its own escapes."""
    return [m.start() for m in re.finditer(r"(?:\\.|[^\\])", text) if m.group() == mark]


@given(rows=st.lists(st.lists(AWKWARD, min_size=3, max_size=3), min_size=1, max_size=4))
def test_no_cell_breaks_a_markdown_table(rows):
    for line in tables.markdown_table(["a", "b", "c"], rows).splitlines():
        assert len(unescaped(line, "|")) == 4


@given(rows=st.lists(st.lists(AWKWARD, min_size=3, max_size=3), min_size=1, max_size=4))
def test_no_cell_breaks_a_latex_table(rows):
    body = tables.latex_table(["a", "b", "c"], rows, "caption").split("\\midrule\n")[1].split("\\bottomrule")[0]
    lines = body.splitlines()
    assert len(lines) == len(rows)
    for line in lines:
        assert line.endswith(r" \\")
        line = line.removesuffix(r" \\")
        assert len(unescaped(line, "&")) == 2
        assert not any(unescaped(line, mark) for mark in "%#_~")
        assert len(unescaped(line, "$")) % 2 == 0
        outside = re.sub(r"(?<!\\)\$.*?\$", "", line)  # ^, < and > are printed right in mathematics only
        assert not set("^<>|→±≤") & set(outside)
        depth = itertools.accumulate(+1 if m == "{" else -1
                                     for m in re.findall(r"\\.|[{}]", line) if m in ("{", "}"))
        depth = list(depth)
        assert all(level >= 0 for level in depth) and (not depth or depth[-1] == 0)


@pytest.mark.parametrize(("text", "expected"), [
    ("O(1x)->A(1x)", r"O(1x)$\to$A(1x)"), ("0.1 ± 2.5e-07", r"0.1 $\pm$ 2.5$\cdot 10^{-7}$"),
    ("1e+06", r"1$\cdot 10^{6}$"),
    ("< 0.001", r"$<$ 0.001"), ("-0.02", r"$-$0.02"), ("-", "-"), ("a_b", r"a\_b"), ("1 | 2", r"1 $|$ 2"),
])
def test_latex_by_hand(text, expected):
    assert tables._latex(text) == expected


def test_text_columns_are_aligned():
    text = tables.text_table(["a", "bb"], [["wide cell", "x"], ["y", "±"]])
    assert text.splitlines() == ["a          bb", "---------  --", "wide cell  x", "y          ±"]


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_tables(monkeypatch):
    """The reproduction with small data sets, few steps and the same rows."""
    def configurations(task):
        small = {"max_length": 3, "steps": 5} if task == "even_pairs" else SMALL
        return [(row, resolve(task, paper.plan_of(row, task), init=row.init, **small)) for row in paper.ROWS]

    monkeypatch.setattr(paper, "configurations", configurations)


def test_table1_and_table5_share_their_runs(small_tables, tmp_path, monkeypatch, capsys):
    assert cli.main(["reproduce", "table1", "--seeds", "2", "--out", str(tmp_path)]) in (cli.OK, cli.DIVERGED)
    first = capsys.readouterr().out
    monkeypatch.setattr("sim.pool.train", None)  # training would fail
    assert cli.main(["reproduce", "table5", "--seeds", "2", "--out", str(tmp_path)]) in (cli.OK, cli.DIVERGED)
    assert "Table 1" in first and "Table 5" in capsys.readouterr().out
    for name, columns in (("table1", tables.TABLE1), ("table5", tables.TABLE5)):
        with open(tmp_path / f"{name}.csv", newline="") as file:
            lines = list(csv.DictReader(file))
        assert len(lines) == 2 * len(paper.ROWS) * len(paper.TASKS) and tuple(lines[0]) == columns
        assert (tmp_path / f"{name}.md").read_text().count("| ---") == 2 + 4 * 2
        assert r"\bottomrule" in (tmp_path / f"{name}.tex").read_text()


def test_the_plan_trained_is_told_where_it_is_not_the_label(small_tables, tmp_path):
    made = reproduce.table1(seeds=[0], out=tmp_path)
    assert made.values["plans"]["or"]["A(1x)->O"] == "A(1x)->O"
    for task in paper.TASKS:
        steps = paper.attention_steps(task)
        assert made.values["plans"][task]["O(1x)->A(1x)"] == f"O(1x)->A({steps}x)"
        assert (f"A(1x) stands for A({steps}x)" in repr(made)) == (steps > 1)


def test_a_table_of_few_seeds_says_what_its_verdicts_are_worth(small_tables, tmp_path, monkeypatch):
    few = "verdicts are meant for 50 seeds, not for 2"
    assert few in repr(reproduce.table1(("or",), seeds=2, out=tmp_path)) and few in (tmp_path / "table1.md").read_text()
    monkeypatch.setattr(paper, "SEEDS", 2)
    assert "verdicts are meant" not in repr(reproduce.table1(("or",), seeds=2, out=tmp_path))


def test_no_threads_are_refused_whatever_is_made(capsys):
    assert cli.main(["reproduce", "table2", "--jobs", "0"]) == cli.USAGE
    assert "jobs must be a whole number at least 1" in capsys.readouterr().err


def test_all_tables_and_figures_come_from_one_set_of_runs(small_tables, tmp_path, monkeypatch, capsys):
    assert cli.main(["reproduce", "all", "--seeds", "2", "--out", str(tmp_path)]) in (cli.OK, cli.DIVERGED)
    names = [f"table{i}.{end}" for i in (1, 2, 5) for end in ("csv", "md", "tex")]
    names += [f"fig{i}.{end}" for i in range(1, 6) for end in ("csv", "png", "pdf")]
    assert {path.name for path in tmp_path.iterdir()} == {"runs", *names}
    printed = capsys.readouterr().out
    assert all(f"wrote {tmp_path / name}" in printed for name in names)
    before = {name: (tmp_path / name).read_bytes() for name in names}
    monkeypatch.setattr("sim.pool.train", None)  # training would fail
    assert cli.main(["reproduce", "all", "--seeds", "2", "--out", str(tmp_path), "--json"]) in (cli.OK, cli.DIVERGED)
    assert set(json.loads(capsys.readouterr().out)) == set(reproduce.MAKERS)
    assert {name: (tmp_path / name).read_bytes() for name in names} == before


def test_the_inits_are_those_of_table_2(tmp_path):
    cells = {(c["task"], c["init"]): c for c in reproduce.table2(seeds=20, out=tmp_path).values["cells"]}
    assert len(cells) == 2 * len(paper.TASKS)
    for (task, init), cell in cells.items():
        assert cell["verdict"] == ("unpublished" if (task, init) == ("and", "random") else "match")
        assert (cell["std_attention"] == cell["std_output"] == 0) == (init == "zero")
    assert cells["slr", "random"]["paper_std"] == pytest.approx(0.1 / math.sqrt(50))


def test_another_spread_is_not_the_printed_one():
    entries = np.random.default_rng(0).normal(0, 0.1, 5000)
    assert paper.init_verdict(entries, 0.1) == "match"
    assert paper.init_verdict(1.05 * entries, 0.1) == "off"  # five standard errors
    assert paper.init_verdict(0 * entries, 0.1) == "off" and paper.init_verdict(0 * entries, 0.0) == "match"


def test_tasks_are_chosen_by_name(small_tables, tmp_path):
    made = reproduce.table1(("or",), seeds=[0], out=tmp_path)
    assert {cell["task"] for cell in made.values["cells"]} == {"or"}
