"""Tasks of a user's own: they run like ours, and `attnlag check-task` finds what is wrong with them."""

import doctest
from pathlib import Path

import numpy as np
import pytest

import sim
from analytic.errors import InputError
from sim import cli
from sim.check_task import check_task
from sim.tasks import user

EXAMPLE = Path(__file__).parents[1] / "docs/examples/majority.py"
CODE = EXAMPLE.read_text(encoding="utf-8")


@pytest.fixture
def variant(tmp_path, monkeypatch):
    """Writes the example with some text replaced."""
    monkeypatch.setattr(user, "_classes", {})

    def write(*changes, name="majority.py"):
        code = CODE
        for old, new in changes:
            assert code.count(old) == 1, old
            code = code.replace(old, new)
        path = tmp_path / name
        path.write_text(code, encoding="utf-8")
        return path

    return write


def failures(path, **settings):
    return {check.name: check.found for check in check_task(path, **settings).failed}


def test_examples_in_docstrings_hold():
    assert doctest.testmod(user).attempted == 2 and doctest.testmod(user).failed == 0


# ---- check-task ------------------------------------------------------------------------------------------------------


def test_the_example_passes_every_check_and_its_gradient_is_exact(capsys):
    assert cli.main(["check-task", str(EXAMPLE), "--set", "d=4"]) == 0
    shown = capsys.readouterr().out
    assert "d 4, longest 15" in shown and "all 13 checks passed" in shown and "complex steps" in shown


ATTENTION, OUTPUT, EXTREME = "gradient of attention", "gradient of output", "extreme parameters"
FAULTS = {
    "a wrong sign": (("d_beta - (pull * value)", "d_beta + (pull * value)"), {ATTENTION: "wrong", EXTREME: "alpha"}),
    "the whole gradient turned round": (("residual**2), d_alpha, d_beta", "residual**2), d_alpha, -d_beta"),
                                        {OUTPUT: "every entry has the wrong sign"}),
    "a factor": (("pull = 2 /", "pull = 1 /"), {OUTPUT: "every entry is 0.5 times", ATTENTION: "0.5 times"}),
    "one entry": (("d_beta = pull @ shares", "d_beta = pull @ shares\n        d_beta[2] = 0"),
                  {OUTPUT: "by beta[2] is 0"}),
    "overflow": (("top = np.where(present, alpha.real, -np.inf).max(axis=1, keepdims=True)", "top = 0"),
                 {EXTREME: "the loss is nan: take the largest exponent off"}),
    "data without a seed": (("default_rng([seed, 0])", "default_rng()"), {"data": "made from the seed"}),
    "data that depend on earlier calls": (
        ("rng = np.random.default_rng([seed, 0])", "self.__dict__['n'] = self.__dict__.get('n', 0) + 1; "
         "rng = np.random.default_rng([seed, self.n])"), {"data": "different training data"}),
    "data changed by training": (("shares = self.shares(counts, alpha)\n        value", "counts[:, 0] += 1\n        "
                                  "shares = self.shares(counts, alpha)\n        value"),
                                 {"loss and gradient": "another result the second time"}),
    "parameters changed": (("pull = 2 /", "alpha -= 1\n        pull = 2 /"), {"shapes": "read-only"}),
    "a shared buffer": (("d_beta = pull @ shares", "d_beta = np.matmul(pull, shares, out=self.__dict__.setdefault("
                         "'buffer', np.empty(self.d)) if not np.iscomplexobj(pull) else None)"),
                        {"loss and gradient": "changes at the next call"}),
    "a gap that is not 1 at the ideal": (("beta[1:].max()) / 2", "beta[1:].max())"), {"gaps": "is 2 at the ideal"}),
    "a gap that is missing": (('"output_gap"', '"lead"'), {"gaps": "must have an output_gap"}),
    "a false invariance": (("lambda alpha, beta: (alpha + 3.7, beta)", "lambda alpha, beta: (alpha, beta + 3.7)"),
                           {"invariances": "changes the loss at zero"}),
    "an accuracy in per cent": (("return np.mean(labels *", "return 100 * np.mean(labels *"),
                                {"test metric": "must be in [0, 1]"}),
    "an error": (("pull = 2 /", "pull = 2 / np.zeros(3) @"), {"shapes": "loss_and_gradient() failed (line "}),
    "a gradient of another shape": (("residual**2), d_alpha, d_beta", "residual**2), d_alpha[:2], d_beta"),
                                    {"shapes": "(2,) and (6,), not (6,) and (6,)"}),
    "a jump": (("np.mean(residual**2)", "np.mean(np.round(residual**2, 2))"), {OUTPUT: "no clear derivative"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_and_named(variant, fault):
    change, wanted = FAULTS[fault]
    found = failures(variant(change))
    for check, words in wanted.items():
        assert words in found.get(check, "passed"), found


def test_a_loss_that_takes_no_complex_numbers_is_checked_by_differences(variant):
    start = "counts, labels = data\n        shares"
    real = "alpha, beta = map(np.array, (alpha, beta), (float, float))"
    real = (start, start.replace("shares", f"{real}\n        shares"))
    report = check_task(variant(real))
    assert not report.failed and "differences of order six" in repr(report)
    assert ATTENTION in failures(variant(real, FAULTS["a wrong sign"][0]))


def test_a_loss_that_complex_steps_would_misjudge_is_checked_by_differences(variant):
    line = "residual = value - 1 - labels"
    path = variant((line, f"{line}\n        squares = np.abs(residual) ** 2"),
                   ("np.mean(residual**2), d", "np.mean(squares), d"))  # right, but not analytic
    report = check_task(path)
    assert not report.failed and "differences" in repr(report)


def test_the_exit_code_is_1_and_json_says_the_same(variant, capsys):
    path = variant(FAULTS["a wrong sign"][0])
    assert cli.main(["check-task", str(path), "--json"]) == 1
    assert '"failed": 2' in capsys.readouterr().out


# ---- running ---------------------------------------------------------------------------------------------------------


def test_a_task_from_a_file_runs_like_ours_and_same_bits_in_pieces(variant, tmp_path):
    path = variant()
    runs = sim.run_plan(str(path), "O(1x)->A(1x)->joint(150x)", seeds=2, d=4, rate_o=(1, 0.5), out=tmp_path / "out")
    assert runs.beta.dims == ("seed", "phase_end", "letter") and runs.beta.coords["letter"].tolist() == [1, 2, 3, 4]
    assert runs.train_loss.shape == (2, 153) and runs.status == ["ok", "ok"]
    task = runs.task
    train, _ = task.data(1)
    state = task.initial(1, "random", (0.1, 0.1))
    for rates, steps in (((0, 1), 1), ((1, 0), 1), ((1, 0.5), 75), ((1, 0.5), 75)):
        state = [stack[-1] for stack in task.descend(train, state, *rates, steps, np.inf)[1:]]
    assert np.array_equal(runs.beta.sel(seed=1).values[-1], state[1])
    again = sim.run_plan(str(path), "O(1x)->A(1x)->joint(150x)", seeds=2, d=4, rate_o=(1, 0.5), out=tmp_path / "out")
    assert np.array_equal(again.alpha, runs.alpha)


def test_an_edited_file_has_runs_of_its_own(variant, tmp_path):
    first = sim.run_plan(str(variant()), "O(3x)", seeds=1, out=tmp_path / "out")
    second = sim.run_plan(str(variant(("0.5] + [0.5", "0.4] + [0.6"))), "O(3x)", seeds=1, out=tmp_path / "out")
    assert first.config.key != second.config.key
    assert not np.array_equal(first.train_loss, second.train_loss)
    assert first.task != second.task and first.config.make_task() == first.task
    assert len(list((tmp_path / "out").rglob("*.npz"))) == 2


def test_reading_stored_runs_runs_no_python_and_says_so_when_training_is_asked_for(variant, tmp_path, capsys):
    marker = tmp_path / "ran"
    count = f"with open({str(marker)!r}, 'a') as file:\n    file.write('.')\n"
    path = variant(("import numpy as np\n", f"import numpy as np\n{count}"))
    runs = sim.run_plan(str(path), "joint(5x)", seeds=2, out=tmp_path / "out")
    assert marker.read_text() == "."
    user._classes.clear()  # as in a new process
    stored = sim.load(tmp_path / "out")
    [group] = stored
    assert group.task.test_metric == "test_accuracy" and np.array_equal(group.beta, runs.beta)
    for command in (["status"], ["table", "--rows", "d", "--cols", "plan", "--value", "output_gap"]):
        assert cli.main([command[0], str(tmp_path / "out"), *command[1:]]) == 0
    assert "majority.py" in repr(group)
    with pytest.raises(InputError, match=r"not loaded.*attnlag run majority.py"):
        group.config.make_task().data(0)
    with pytest.raises(InputError, match="nobody has loaded"):
        sim.make_task("majority.py")
    assert marker.read_text() == "."


def test_a_specification_runs_no_python_but_the_command_line_may(variant, tmp_path, capsys, monkeypatch):
    path = variant()
    monkeypatch.chdir(tmp_path)
    spec = tmp_path / "sweep.toml"
    spec.write_text('task = "majority.py"\nplan = "joint(4x)"\nseeds = 1\n[grid]\nlongest = [3, 5]\n')
    assert cli.main(["sweep", str(spec), "--out", "out"]) == 2
    assert "longest" in capsys.readouterr().err
    assert cli.main(["sweep", str(spec), "--task-file", str(path), "--out", "out", "--quiet"]) == 0
    assert len(list(tmp_path.glob("out/runs/**/*.npz"))) == 2


def test_the_command_line_trains_it_with_settings_of_its_own(variant, tmp_path, capsys):
    arguments = ["run", str(variant()), "--plan", "joint(5x)", "--seeds", "1", "--set", "longest=5", "--d", "3"]
    assert cli.main([*arguments, "--out", str(tmp_path / "out")]) == 0
    assert "d 3, longest 5" in capsys.readouterr().out


@pytest.mark.parametrize(("change", "words"), (
    (("class Majority(Task)", "class Majority"), "one class derived from sim.Task, not 0"),
    (("d: int = 6", "d: int"), "failed|needs a default"),
    (("d: int = 6", "d: list = None"), "setting d needs a default"),
    (("longest: int", "steps: int"), "steps is a name that every run has"),
    (('{"alpha": {"letter": self.d}, "beta"', '{"alpha": {"letter": 0}, "beta"'), "letter must be a whole number"),
    (("import numpy as np\n", "import numpy as np\n1 / 0\n"), r"majority.py failed \(line 13\): ZeroDivisionError"),
    (("import numpy as np\n", "import numpy as np\nif\n"), "SyntaxError"),
    (("import numpy as np\n", "import numpy as np\nraise SystemExit(0)\n"), "SystemExit"),
))
def test_a_file_that_defines_no_task_is_refused_in_one_line(variant, change, words):
    with pytest.raises(InputError, match=words) as error:
        sim.make_task(sim.load_task(variant(change)))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("setting", ({"d": 2.5}, {"d": "x"}, {"heads": 2}, {"longest": True}))
def test_a_wrong_setting_is_named(variant, setting):
    with pytest.raises(InputError, match=next(iter(setting))):
        sim.run_plan(str(variant()), "joint(2x)", seeds=1, **setting)


def test_a_file_that_is_not_there_is_one_line(tmp_path, capsys):
    assert cli.main(["check-task", str(tmp_path / "none.py")]) == 2
    error = capsys.readouterr().err
    assert "none.py" in error and error.count("\n") == 1
