"""The page on sweeps: its commands, run in order in one folder, print what is shown; its specification is the file."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from .test_readme import assert_same_text, blocks, environment, python_blocks

DOCS = Path(__file__).parents[1] / "docs"
PAGE, SPEC = DOCS / "sweeps.md", "phase-and-lag.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sweeps")
    shutil.copy(DOCS / SPEC, place)
    return place


@pytest.mark.parametrize(("command", "shown", "vary"), list(blocks(PAGE)), ids=lambda value: str(value)[:40])
def test_console_block_prints_what_is_shown(command, shown, vary, folder):
    options = dict(cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)
    done = subprocess.run(command, shell=True, **options)
    assert (done.returncode, done.stderr) == (0, "")
    assert_same_text(done.stdout.rstrip(), shown, vary)


def test_python_blocks_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (code,) = python_blocks(PAGE)
    names = {}
    exec(code, names)
    assert names["joint"].axes == {"d": [10, 20, 50, 100], "rate_a": [1.0, 2.0]}


def test_the_page_shows_the_file_and_links_what_exists():
    text = PAGE.read_text(encoding="utf-8")
    shown = re.search(r"```toml\n(.*?)```", text, re.S)[1]
    assert tomllib.loads(shown) == tomllib.loads((DOCS / SPEC).read_text())
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (DOCS / target).exists(), target
