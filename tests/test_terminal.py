"""Colours, and the command's first moments."""

import doctest
import os
import pty
import re
import subprocess
import sys

import pytest

from sim import terminal

MAIN = "import sys; from sim.cli import main; sys.exit(main())"
RUN = ["run", "occurrence", "--plan", "O", "--d", "6", "--train-words", "40", "--test-words", "20", "--steps", "20",
       "--rate-o", "500", "--seeds", "1", "--out"]
RED = "\x1b[31mdiverged\x1b[0m"


def on_terminal(folder, **environment):
    """What a run that diverges prints on a terminal."""
    ours, theirs = pty.openpty()
    kept = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.Popen([sys.executable, "-c", MAIN, *RUN, str(folder)], stdout=theirs, stderr=theirs,
                               env={**kept, "TERM": "xterm", **environment})
    os.close(theirs)
    pieces = []
    while True:
        try:
            piece = os.read(ours, 10_000)
        except OSError:  # the other end was closed
            piece = b""
        if not piece:
            break
        pieces.append(piece)
    os.close(ours)
    assert process.wait(timeout=120) == 3
    return b"".join(pieces).decode()


def plain(text):
    return re.sub("\x1b\\[[0-9;]*[A-Za-z]", "", text)


def test_colours_are_for_terminals_only(tmp_path):
    shown = on_terminal(tmp_path)
    assert shown.count(RED) == 1
    command = [sys.executable, "-c", MAIN, *RUN, str(tmp_path)]
    piped = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "\x1b" not in piped.stdout and piped.stdout.strip() in plain(shown).replace("\r\n", "\n")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_who_wants_no_colours_gets_none(environment, tmp_path):
    assert "\x1b[3" not in on_terminal(tmp_path, **environment)


def test_json_has_no_colours():
    value = '{\n "status": "proved",\n "verdict": "off"\n}'
    assert terminal.coloured(value) == value


def test_only_whole_cells_are_coloured():
    line = "match  3/50 diverged  refuted\nthe rows match, near or off"
    assert plain(terminal.coloured(line)) == line
    assert terminal.coloured(line).count("\x1b[31m") == 2 and terminal.coloured(line).endswith("match, near or off")


def test_the_command_answers_to_ctrl_c_before_it_has_loaded_anything():
    code = ("import signal, sys; before = set(sys.modules); import sim.cli; "
            "print(sorted({name.split('.')[0] for name in set(sys.modules) - before}))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert set(eval(done.stdout)) <= {"sim", "importlib", "warnings"}, done.stdout


def test_examples_in_docstrings():
    assert doctest.testmod(terminal).failed == 0
