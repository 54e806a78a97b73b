"""Planted errors: which are planted, and that a few of each kind are caught and one that is not is told."""

import ast
import re
import subprocess
import sys

import pytest

from tests import mutants

ALL = mutants.every_mutant(2)


def planted(text):
    return {mutant.after for mutant in mutants.Planter("file.py", text).mutants.values()}


def test_changes_by_hand():
    assert planted("def f(c):\n    return 2.0 * c[1:] - 1") == {
        "return (2.0 * c[1:] + 1)", "return (2.0) - 1", "return (c[1:]) - 1", "return (4.0) * c[1:] - 1",
        "return 2.0 * c[(2):] - 1", "return 2.0 * c[1:] - (2)",
    }  # fmt: skip
    assert planted("def f(alpha, beta):\n    return beta[i, j:k] <= alpha") == {
        "return (beta[i, j:k] < alpha)", "return (beta[i, j:k] >= alpha)", "return (alpha)[i, j:k] <= alpha",
        "return beta[i, j:k] <= (beta)", "return (beta[i - 1, j:k]) <= alpha", "return (beta[i, j + 1:k]) <= alpha",
        "return (beta[i, j:k - 1]) <= alpha",
    }  # fmt: skip
    assert planted("for i in range(1, n):\n    total += abs(a)") == {
        "for i in (range(1 + 1, n, 1)):", "for i in (range(1, n - 1, 1)):", "for i in range((2), n):",
        "pass", "total -= abs(a)", "total += (a)",
    }  # fmt: skip
    assert planted("while not a and b or c:\n    break") == {
        "while ((not a and b) and c):", "while (c):", "while (not a and b):", "while (not a or b) or c:",
        "while (b) or c:", "while (not a) or c:", "while (a) and b or c:", "pass",
    }  # fmt: skip


def test_texts_annotations_and_messages_are_left_alone():
    assert planted('def f(a: int = None) -> dict[1]:\n    """2 * 3"""\n    raise E(f"{a + 1}", 1)\nx: int\n') == set()


@pytest.mark.parametrize("mutant", ALL[::40], ids=str)
def test_a_change_leaves_a_program_of_as_many_lines_that_says_something_else(mutant):
    source = (mutants.ROOT / mutant.file).read_bytes()
    changed = source[: mutant.start] + mutant.new + source[mutant.end :]
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    assert changed.count(b"\n") == source.count(b"\n") and len(changed) < len(source) + mutants.FILLER


def test_the_list_is_the_same_on_every_run_and_covers_every_file():
    assert list(map(str, mutants.every_mutant(2))) == list(map(str, ALL))
    assert {mutant.file for mutant in ALL} == set(mutants.TESTS)
    assert any(mutant.compiled for mutant in ALL) and not all(mutant.compiled for mutant in ALL)


@pytest.mark.parametrize("pattern, reason", mutants.EQUIVALENT)
def test_changes_said_to_make_no_difference_exist(pattern, reason):
    assert reason and any(re.search(pattern, str(mutant)) for mutant in ALL)


def run(files, code=""):
    """Try the first change of each of the functions; returns the process and the changes."""
    chosen = [next(m for m in ALL if (m.file, m.where) == place and not m.reason) for place in files]
    patterns = [f"^{re.escape(str(mutant))}$" for mutant in chosen]
    code = f"import sys\nfrom tests import mutants\n{code}\nsys.exit(mutants.main({patterns!r}))"
    return subprocess.run([sys.executable, "-c", code], cwd=mutants.ROOT, capture_output=True, text=True), chosen


def test_one_change_each_of_a_kernel_a_closed_form_and_the_simulator_is_caught():
    places = ("analytic/gradients/letter.py", "_gather"), ("analytic/moments.py", "ShareMoments.M3")
    done, chosen = run([*places, ("sim/plans.py", "Phase.kind")])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3/3     caught (3 failed)" in done.stdout
    for mutant in chosen:
        assert re.search(rf"^failed +{re.escape(str(mutant))} +\[test_.*\]$", done.stdout, re.MULTILINE)


def test_a_change_that_no_test_notices_is_told():
    done, [mutant] = run([("sim/plans.py", "Phase.kind")], "mutants.TESTS['sim/plans.py'] = ['languages']")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "0/1     caught (1 survived)" in done.stdout and f"\nsurvived {mutant}\n" in done.stdout


def test_tests_that_fail_without_the_change_stop_everything():
    done, _ = run([("sim/plans.py", "Phase.kind")], "mutants.TESTS['sim/plans.py'] = ['that_does_not_exist']")
    assert done.returncode == 1 and "on unchanged sources" in done.stderr
