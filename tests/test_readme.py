"""The README's console blocks, run in order in an empty folder: every command works and prints what is shown."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
NUMBER = r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])"
SAME = 2e-3  # printed numbers have 4 digits; other CPUs round a step differently, so the last one may move
TINY = 1e-6  # below this a converged loss is mostly rounding and only its size is compared


def blocks(page=README):
    """(command, shown output, whether numbers vary) of every console block; the install commands are left to CI."""
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"(<!-- numbers vary -->\n)?```console\n(.*?)```", text, re.S):
        for part in re.split(r"^\$ ", match.group(2), flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown.rstrip(), bool(match.group(1))


def python_blocks(page=README):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tour")


def environment():
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": "80", "MPLBACKEND": "agg"}


@pytest.mark.parametrize(("command", "shown", "vary"), list(blocks()), ids=lambda value: str(value)[:40])
def test_console_block_prints_what_is_shown(command, shown, vary, folder):
    options = dict(cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)
    done = subprocess.run(command, shell=True, **options)
    assert done.returncode == 0, done.stderr
    assert_same_text(done.stdout.rstrip(), shown, vary)


def assert_same_text(ours, shown, vary=False):
    def words(text):
        return re.sub(r"[\s-]+", " ", re.sub(NUMBER, "#", text))

    assert words(ours) == words(shown)
    if not vary:
        for a, b in zip(re.findall(NUMBER, ours), re.findall(NUMBER, shown), strict=True):
            a, b = float(a), float(b)
            assert a == pytest.approx(b, rel=SAME, abs=SAME * TINY) or max(abs(a), abs(b)) < TINY, (a, b)


def test_the_comparison_notices_a_changed_word_or_number():
    assert_same_text("loss 0.12345  ok", "loss 0.1234 ok")
    for wrong in ("loss 0.1334 ok", "loss 0.1234 diverged", "loss ok"):
        with pytest.raises((AssertionError, ValueError)):
            assert_same_text("loss 0.1234 ok", wrong)


def test_python_blocks_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    code = python_blocks()
    assert code
    for block in code:
        exec(block, names)


def test_every_file_and_picture_the_readme_links_exists():
    for target in re.findall(r"\]\(([^)#:]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / target).exists(), target
