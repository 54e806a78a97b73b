"""Every bad input of every command: one clear line that names the argument, the right exit code, nothing written."""

import argparse
import os
import shutil
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from sim import cli

from .sweeping import call, finished, write_spec

LONG = "9" * 5000
DIGITS = "9" * 27
OVER = ["--out", "a-file"]  # a folder that is none
TABLE = ["table", "stored", "--rows", "d", "--cols", "init_scale", "--value", "lag"]
PLOT = ["plot", "stored", "--x", "d", "--y", "lag", "--hue", "init_scale"]
MAJORITY = Path(__file__).parents[1] / "docs" / "examples" / "majority.py"
SWEEP = ["sweep", "spec.toml", "--out", "new"]
CERTIFY = ["certify", "--alpha", "alpha.npy", "--beta", "beta.npy"]


def occurrence(*flags):
    return ["run", "occurrence", *flags]


# command, argument that is wrong, command line, what must be said; exit code if not 2
BAD = [
    (None, None, ["rnu"], "did you mean 'run'"),
    (None, None, [], "COMMAND"),
    (None, None, occurrence("--plna", "O"), "did you mean --plan"),
    (None, None, occurrence(""), "unrecognized arguments"),
    (None, None, occurrence("--foo=a\nb"), "unrecognized arguments"),
    (None, None, ["sweep", "spec.toml", "--sahrd", "1/2"], "did you mean --shard"),
    (None, None, ["Run", "or"], "did you mean 'run'"),
    (None, None, ["info", "--jsno"], "did you mean --json?"),
    # ---- run
    ("run", "task", ["run"], "task is missing"),
    ("run", "task", ["run", "occurence"], "did you mean 'occurrence'"),
    ("run", "task", ["run", "OR"], "did you mean 'or'"),
    ("run", "task", ["run", "1 & (2 |"], "the end at character 9"),
    ("run", "task", ["run", "(" * 10_000], "nested too deeply"),
    ("run", "task", ["run", "!" * 10_000 + "1"], "nested too deeply"),
    ("run", "task", ["run", "1" * 5000], "expected a letter"),
    ("run", "task", ["run", "!(1|2)", "--d", "2"], "the same label"),
    ("run", "task", ["run", "1 & 9", "--d", "8"], "names letter 9, but d is 8"),
    ("run", "plan", occurrence("--plan", "O->"), "the end at character 4"),
    ("run", "plan", occurrence("--plan", ""), "the end at character 1"),
    ("run", "plan", occurrence("--plan", "O->jiont"), "expected A, O, AO or joint; did you mean 'joint'?"),
    ("run", "plan", occurrence("--plan", "o(1x)"), "did you mean 'O'?"),
    ("run", "plan", occurrence("--plan", f"A({LONG}x)"), "number of steps"),
    ("run", "seeds", occurrence("--seeds", "5:5"), "names no seed"),
    ("run", "seeds", occurrence("--seeds", "x"), "seeds must be"),
    ("run", "seeds", occurrence("--seeds", ""), "seeds must be"),
    ("run", "seeds", occurrence("--seeds", "0:" + DIGITS), "seeds must be at most"),
    ("run", "seeds", occurrence("--seeds", "999999999999"), "seeds must be at most"),
    ("run", "d", occurrence("--d", "1"), "d must be a whole number at least 2, not 1"),
    ("run", "d", occurrence("--d", "1000000"), "GiB"),
    ("run", "targets", ["run", "or", "--d", "4", "--targets", "4"], "targets must be fewer"),
    ("run", "targets", ["run", "or", "--targets", "0"], "targets must be"),
    ("run", "heads", occurrence("--heads", "0"), "heads must be"),
    ("run", "heads", occurrence("--heads", "1000000000"), "GiB"),
    ("run", "length", occurrence("--length", "geometrc:0.1"), "length"),
    ("run", "length", occurrence("--length", "geometric:0"), "length"),
    ("run", "length", occurrence("--length", "fixed:99999999999999999999"), "length"),
    ("run", "length", occurrence("--length", "table:\0"), "length"),
    ("run", "length", occurrence("--length", "table:no-such-file"), "length table:FILE cannot read"),
    ("run", "test_length", occurrence("--test-length", "fixed"), "test_length must be"),
    ("run", "train_words", occurrence("--train-words", "0"), "train_words must be"),
    ("run", "train_words", occurrence("--train-words", "99999999999"), "GiB"),
    ("run", "test_words", occurrence("--test-words", "-1"), "test_words must be"),
    ("run", "max_length", ["run", "even_pairs", "--max-length", "0"], "max_length must be"),
    ("run", "max_length", occurrence("--max-length", "5"), "max_length is not a setting of task occurrence"),
    ("run", "pairs", ["run", "icl_bigram", "--pairs", "0"], "pairs must be"),
    ("run", "tokens", ["run", "slr", "--tokens", "0"], "tokens must be"),
    ("run", "noise", ["run", "slr", "--noise", "-1"], "noise must be"),
    ("run", "noise", ["run", "slr", "--noise", "nan"], "noise must be"),
    ("run", "init", occurrence("--init", "ones"), "init must be one of random, zero"),
    ("run", "init_scale", occurrence("--init-scale", "1,2,3"), "init_scale"),
    ("run", "init_scale", occurrence("--init-scale", "-1"), "init_scale"),
    ("run", "init_scale", occurrence("--init-scale", "x"), "init_scale must be a number"),
    ("run", "rate_a", occurrence("--rate-a", "-1"), "rate_a must be"),
    ("run", "rate_o", occurrence("--rate-o", "nan,1"), "rate_o must be"),
    ("run", "rate_o", occurrence("--rate-o", "inf,1"), "rate_o must be"),
    ("run", "rate_o", occurrence("--rate-o", "1"), "rate_o needs 2"),
    ("run", "rate_o", occurrence("--rate-o", "a"), "rate_o must be a number"),
    ("run", "steps", occurrence("--steps", "0"), "steps must be"),
    ("run", "record_every", occurrence("--record-every", "1" + "0" * 23), "record_every"),
    ("run", "config", occurrence("--config", "no-such-file.toml"), "no-such-file.toml"),
    ("run", "config", occurrence("--config", "alpha.npy"), "config alpha.npy"),
    ("run", "out", occurrence(*OVER), "a-file"),
    ("run", "jobs", occurrence("--jobs", "0"), "jobs must be"),
    ("run", "task", ["run", "no-such-file.py"], "no-such-file.py"),
    ("run", "task", ["run", "own.py"], "own.py must define one class derived from sim.Task"),
    ("run", "set", occurrence("--set", "x"), "set"),
    # ---- check-task
    ("check-task", "file", ["check-task"], "FILE"),
    ("check-task", "file", ["check-task", "no-such-file.py"], "no-such-file.py"),
    ("check-task", "file", ["check-task", "stored"], "stored is not a regular file"),
    ("check-task", "file", ["check-task", "own.py"], "own.py must define one class derived from sim.Task"),
    ("check-task", "set", ["check-task", "own.py", "--set", "x"], "set"),
    # ---- reproduce, draw, calibrate
    ("reproduce", "what", ["reproduce", "table9"], "invalid choice"),
    ("reproduce", "what", ["reproduce"], "the following arguments are required"),
    ("reproduce", "tasks", ["reproduce", "table1", "--tasks", "occurence"], "did you mean 'occurrence'"),
    ("reproduce", "tasks", ["reproduce", "table1", "--tasks", ","], "tasks is empty"),
    ("reproduce", "tasks", ["reproduce", "fig2", "--tasks", "or"], "tasks goes with"),
    ("reproduce", "seeds", ["reproduce", "table1", "--seeds", ""], "seeds must be"),
    ("reproduce", "seeds", ["reproduce", "table1", "--quick", "--seeds", "5"], "not both"),
    ("reproduce", "out", ["reproduce", "table1", "--tasks", "or", *OVER], "a-file"),
    ("reproduce", "jobs", ["reproduce", "table1", "--jobs", "0"], "jobs must be"),
    ("draw", "name", ["draw", "lga"], "invalid choice"),
    ("draw", "seeds", ["draw", "lag", "--seeds", "5:5"], "names no seed"),
    ("draw", "out", ["draw", "steps", "--quick", *OVER], "a-file"),
    ("draw", "jobs", ["draw", "lag", "--jobs", "-1"], "jobs must be"),
    ("calibrate", "task", ["calibrate", "occurence"], "did you mean 'occurrence'"),
    ("calibrate", "seeds", ["calibrate", "or", "--seeds", "1,1"], "the same seed twice"),
    ("calibrate", "jobs", ["calibrate", "or", "--jobs", "0"], "jobs must be"),
    # ---- theory, population
    *((name, *row) for name in ("theory", "population") for row in (
        ("task", [name, "and"], "task must be"),
        ("d", [name, "--d", "1"], "d must be"),
        ("targets", [name, "or", "--targets", "0"], "targets must be"),
        ("length", [name, "--length", "fixed:0"], "length"),
        ("max_length", [name, "even_pairs", "--max-length", "0"], "max_length must be"),
        ("pairs", [name, "icl_bigram", "--pairs", "0"], "pairs must be"),
        ("tokens", [name, "slr", "--tokens", "0"], "tokens must be"),
        ("noise", [name, "slr", "--noise", "inf"], "noise must be"),
        ("rate_o", [name, "--rate-o", "-1"], "rate_o"),
        ("rate_a", [name, "--rate-a", "x"], "rate_a must be"),
    )),
    ("theory", "rate_o", ["theory", "--rate-o", "1,2"], "rate_o needs 1"),
    ("population", "plan", ["population", "--plan", "A(0x)"], "'0' at character 3"),
    ("population", "steps", ["population", "--steps", "0"], "steps must be"),
    # ---- certify
    ("certify", "run_file", ["certify"], "run_file or alpha and beta"),
    ("certify", "run_file", ["certify", "no-such-run.npz"], "no-such-run.npz"),
    ("certify", "run_file", ["certify", "a-file"], "a-file: not a complete run file", cli.DIVERGED),
    ("certify", "run_file", ["certify", "stored"], "stored is not a regular file"),
    ("certify", "phase", ["certify", "run.npz", "--phase", "9"], "phase must be a whole number from 0 to 1"),
    ("certify", "phase", [*CERTIFY, "--phase", "0"], "phase goes with a stored run"),
    ("certify", "alpha", ["certify", "--alpha", "alpha.npy"], "give both files"),
    ("certify", "alpha", ["certify", "--alpha", "no-such.npy", "--beta", "no-such.npy"], "no-such.npy"),
    ("certify", "beta", ["certify", "--alpha", "alpha.npy", "--beta", "a-file"], "beta a-file is not a .npy file"),
    ("certify", "task", [*CERTIFY, "--task", "occurence"], "did you mean 'occurrence'"),
    ("certify", "task", ["certify", "run.npz", "--task", "or"], "a stored run has its own"),
    ("certify", "targets", [*CERTIFY, "--task", "or", "--targets", "0"], "targets must be"),
    # ---- prove, report
    ("prove", "pattern", ["prove", "phase1.upate"], "phase1.update"),
    ("prove", "file", ["prove", "--file", "no-such-file.py"], "no-such-file.py"),
    ("prove", "out", ["prove", *OVER], "a-file"),
    ("report", "folder", ["report", "no-such-folder"], "no-such-folder"),
    ("report", "folder", ["report", "a-file"], "a-file"),
    ("report", "out", ["report", "stored", "--out", "a-file/page.html"], "a-file"),
    # ---- sweep
    ("sweep", "spec", ["sweep"], "SPEC"),
    ("sweep", "spec", ["sweep", "no-such-file.toml"], "no-such-file.toml"),
    ("sweep", "spec", ["sweep", "stored"], "stored is not a regular file"),
    ("sweep", "spec", ["sweep", "alpha.npy"], "alpha.npy"),
    ("sweep", "spec", ["sweep", "a-file", "--out", "new"], "a-file: Expected '='"),
    ("sweep", "set", [*SWEEP, "--set", "d"], "set must be NAME=VALUE"),
    ("sweep", "set", [*SWEEP, "--set", "dd=5"], "did you mean d?"),
    ("sweep", "set", [*SWEEP, "--set", "d=1"], "--set 'd=1': d must be a whole number at least 2"),
    *(("sweep", "shard", [*SWEEP, "--shard", text], "shard") for text in
      ("", "1", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3", f"1/{LONG}")),
    ("sweep", "scheduler", [*SWEEP, "--scheduler", "here"], "scheduler must be an address"),
    ("sweep", "scheduler", [*SWEEP, "--scheduler", "tcp://h:1", "--jobs", "2"], "jobs is for the threads"),
    ("sweep", "task_file", [*SWEEP, "--task-file", "no-such-file.py"], "no-such-file.py"),
    ("sweep", "task_file", [*SWEEP, "--task-file", "own.py"], "own.py must define one class derived from sim.Task"),
    ("sweep", "task_file", [*SWEEP, "--set", "task=own.py"], "task own.py is a Python file that nobody has loaded"),
    ("sweep", "task_file", ["sweep", "majority.toml", "--task-file", MAJORITY, "--scheduler", "tcp://h:1"],
     "its workers do not run majority.py"),
    ("sweep", "out", ["sweep", "spec.toml", *OVER], "a-file"),
    ("sweep", "out", ["sweep", "spec.toml", "--out", "stored", "--set", "d=7"], "holds another sweep; here d is 7"),
    ("sweep", "jobs", [*SWEEP, "--jobs", "0"], "jobs must be"),
    ("sweep", "jobs", [*SWEEP, "--dry-run", "--jobs", "0"], "jobs must be"),
    # ---- status, table, plot
    *((name, "folder", [name, folder, *more], folder) for folder in ("no-such-folder", "a-file", "a-file/x")
      for name, more in (("status", []), ("table", TABLE[2:]), ("plot", PLOT[2:]))),
    ("table", "folder", ["table", "empty", *TABLE[2:]], "'empty' holds no stored runs"),
    ("table", "rows", ["table", "stored", "--value", "lag"], "--rows"),
    ("table", "rows", ["table", "stored", "--rows", "dd", "--value", "lag"], "rows must be one of"),
    ("table", "rows", ["table", "stored", "--rows", "", "--value", "lag"], "rows must be one of"),
    ("table", "rows", ["table", "stored", "--rows", "d", "--value", "lag"], "leave init_scale open"),
    ("table", "cols", ["table", "stored", "--rows", "d", "--cols", "init", "--value", "lag"], "leave init_scale open"),
    ("table", "cols", ["table", "stored", "--rows", "d", "--cols", "int_scale", "--value", "lag"], "'init_scale'"),
    ("table", "value", ["table", "stored", "--rows", "d"], "--value"),
    ("table", "value", [*TABLE[:-1], "trainloss"], "did you mean 'train_loss'"),
    ("table", "value", [*TABLE[:-1], "test_loss"], "no run has a test_loss"),
    ("plot", "x", [*PLOT[:3], "dd", *PLOT[4:]], "x must be one of"),
    ("plot", "y", [*PLOT[:5], "lagg"], "did you mean 'lag'"),
    ("plot", "y", ["plot", "stored", "--x", "d", "--y", "init_scale"], "hue must be a value such as train_loss"),
    ("plot", "hue", [*PLOT[:-1], "initscale"], "did you mean 'init_scale'"),
    ("plot", "hue", PLOT[:-2], "leave init_scale open"),
    *((command[0], "where", [*command, "--where", text], said) for command in (TABLE, PLOT) for text, said in (
        ("d", "where must be NAME=LABEL"), ("=6", "where must be NAME=LABEL"), ("dd=6", "where must be one of"),
        ("d=7", "no run has d 7; there are 6, 8"), ("d=", "where must be NAME=LABEL"), ("plan=O->", "character 4"))),
    ("plot", "out", [*PLOT, *OVER], "a-file"),
    *(("plot", "name", [*PLOT, "--name", name], "name must be a file name") for name in ("../x", "a/b", "", ".")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the command lines name: a text file, a sweep, one of its runs, parameters, a folder with nothing in it."""
    import numpy as np

    place = tmp_path_factory.mktemp("bad")
    finished(place).rename(place / "stored")
    write_spec(place)
    shutil.copy(next((place / "stored").rglob("seed-*.npz")), place / "run.npz")
    (place / "a-file").write_text("not a folder, not a run\n")
    (place / "own.py").write_text("x = 1\n")
    (place / "majority.toml").write_text('task = "majority.py"\nplan = "O(1x)"\n')
    (place / "empty").mkdir()
    np.save(place / "alpha.npy", np.zeros(3))
    np.save(place / "beta.npy", np.array([2.0, 0.0, 0.0]))
    return place


def contents(folder):
    return {path: path.is_file() and path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("row", BAD, ids=lambda row: " ".join(map(str, row[2]))[:60])
def test_bad_input_is_one_clear_line(row, folder, capsys, monkeypatch):
    arguments, said, *expected = row[2:]
    monkeypatch.chdir(folder)
    before = contents(folder)
    code, out, err = call(capsys, *arguments)
    assert (code, out) == (*(expected or [cli.USAGE]), "")
    assert said in err and err.count("\n") == 1 and "Traceback" not in err and "internal error" not in err
    assert contents(folder) == before


def commands():
    """{name of a command: its arguments}."""
    found = {}
    for entry in entry_points(group="attnlag.commands"):
        parser = argparse.ArgumentParser(add_help=False)
        entry.load().arguments(parser)
        found[entry.name] = parser._actions
    return found


def test_every_argument_of_every_command_has_a_bad_value_here():
    wanted = {(name, action.dest) for name, actions in commands().items() for action in actions if action.nargs != 0}
    assert wanted == {tuple(row[:2]) for row in BAD if row[0]}


NUMBERS = [(name, action.option_strings[0]) for name, actions in sorted(commands().items()) for action in actions
           if action.type is not None]


@pytest.mark.parametrize("value", ["", "x", "1.5.1", "0x10", LONG])
@pytest.mark.parametrize(("command", "flag"), NUMBERS)
def test_what_is_no_number_is_one_clear_line(command, flag, value, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    given = {"sweep": ["spec.toml"], "reproduce": ["table1"], "draw": ["lag"], "calibrate": ["or"],
             "run": ["occurrence"]}.get(command, [])
    code, out, err = call(capsys, command, *given, flag, value)
    assert (code, out, err.count("\n")) == (cli.USAGE, "", 1)
    assert flag in err or flag.lstrip("-").replace("-", "_") in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_no_command_waits_for_a_fifo_in_place_of_a_file(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    for arguments in (["sweep", "fifo"], ["certify", "fifo"], ["status", "fifo"], ["table", "fifo", *TABLE[2:]]):
        code, _, err = call(capsys, *arguments)
        assert code == cli.USAGE and "fifo" in err and err.count("\n") == 1
