"""The command line: real output, one-line errors, exit codes, light start, interruption."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from sim import cli

SMALL = ["--d", "8", "--train-words", "60", "--test-words", "30", "--steps", "20"]
HEAVY = ("numba", "sympy", "scipy", "matplotlib")


def attnlag(*arguments, **options):
    """Run the command in a new process."""
    command = [sys.executable, "-c", "import sys; from sim.cli import main; sys.exit(main())", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def call(capsys, *arguments):
    """Run the command in this process: exit code, output, errors."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["prove", "--help"], ["reproduce", "--help"]])
def test_help_is_light(arguments):
    code = (f"import sys; from sim.cli import main\ntry: main({arguments!r})\n"
            f"except SystemExit as stop: assert not stop.code\n"
            f"loaded = [name for name in {HEAVY!r} if name in sys.modules]; assert not loaded, loaded")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "usage: attnlag" in done.stdout


@pytest.mark.parametrize("package", ["analytic", "sim", "proofs_check"])
def test_no_module_imports_statistics_or_plots_at_top_level(package):
    code = (f"import importlib, pkgutil, sys, {package} as package\n"
            "for m in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
            "    importlib.import_module(m.name)\n"
            "assert 'matplotlib' not in sys.modules and 'scipy.stats' not in sys.modules")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_run_prints_json_of_every_seed(tmp_path, capsys):
    code, out, _ = call(capsys, "run", "occurrence", "--plan", "O(1x)->A(1x)->O", "--seeds", "2:4", "--json",
                        "--out", tmp_path, *SMALL)
    value = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert code == 0
    assert (value["task"], value["plan"], value["d"], value["targets"]) == ("occurrence", "O(1x)->A(1x)->O", 8, 1)
    assert [run["seed"] for run in value["runs"]] == [2, 3]
    assert {"seed", "status", "train_loss", "test_accuracy", "attention_gap", "output_gap", "phase_ends",
            "step_attention_01", "step_attention_09", "file"} <= set(value["runs"][0])
    losses = [run["train_loss"] for run in value["runs"]]
    assert value["mean"]["train_loss"] == pytest.approx(sum(losses) / 2)
    assert all(os.path.exists(run["file"]) for run in value["runs"])


def test_flags_beat_the_config_file(tmp_path, capsys):
    config = tmp_path / "run.toml"
    config.write_text('task = "or"\nplan = "joint"\nd = 9\nsteps = 5\nseeds = "0:1"\nrate_o = [0.5]\n')
    code, out, _ = call(capsys, "run", "--config", config, "--d", "10", "--json", "--out", tmp_path)
    value = json.loads(out)["config"]
    assert (code, value["task"], value["d"], value["steps"], value["rate_o"]) == (0, "or", 10, [5], [0.5])


def test_diverged_runs_are_shown_and_change_the_exit_code(tmp_path, capsys):
    arguments = ["run", "occurrence", "--plan", "O", "--rate-o", "500", "--seeds", "0:2", "--out", tmp_path, *SMALL]
    code, out, _ = call(capsys, *arguments)
    assert code == cli.DIVERGED
    assert out.count("diverged at step") == 2 and "eta_O 500" in out
    code, out, _ = call(capsys, *arguments, "--json")
    value = json.loads(out)
    assert code == cli.DIVERGED
    assert [run["train_loss"] for run in value["runs"]] == [None, None] and value["mean"]["train_loss"] is None


def test_theory_prints_the_closed_forms(capsys):
    code, out, _ = call(capsys, "theory", "--rate-o", "20", "--rate-a", "300", "--json")
    value = json.loads(out)
    assert code == 0 and value["certified_length"] == 93590
    for name, known in dict(q=0.5, E1=0.0810795895, beta_target=1.6, beta_other=0.783673469, output_gap=0.408163265,
                            logit_gap=10.4265363, attention_gap=0.998520372, phase3_loss=1.45613521e-6,
                            output_only_loss=0.748294689, attention_first_probability=0.130564).items():
        assert value[name] == pytest.approx(known, rel=4e-6), name
    assert value["rate_o_window"] == pytest.approx([12.5, 25.5208333])
    code, out, _ = call(capsys, "theory", "or", "--json")
    assert code == 0 and json.loads(out)["attention_first_probability"] is None


@pytest.mark.parametrize("flags", [["--length", "fixed:2"], ["--length", "uniform:1:3"], ["--rate-o", "1e300"],
                                   ["--d", "10000"], ["--rate-a", "0"]])
def test_theory_at_its_edges_is_quiet_strict_json(flags, capsys):
    code, out, err = call(capsys, "theory", *flags, "--json")
    json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert code == 0 and err == ""


def test_population_prints_the_whole_trajectory(capsys):
    code, out, _ = call(capsys, "population", "--steps", "400", "--json")
    value = json.loads(out)
    assert code == 0 and (value["step_attention_01"], value["step_attention_09"]) == (29, 142)
    assert {len(value[name]) for name in ("loss", "accuracy", "attention_gap", "output_gap", "logit_gap")} == {401}
    assert value["loss"][-1] == pytest.approx(9.76217e-4, rel=1e-5)
    code, out, _ = call(capsys, "population", "--plan", "O", "--rate-o", "900")
    assert code == cli.DIVERGED and "diverged at step" in out


def test_certify_a_stored_run_and_given_parameters(tmp_path, capsys):
    code, out, _ = call(capsys, "run", "occurrence", "--seeds", "0:1", "--json", "--out", tmp_path, *SMALL)
    path = json.loads(out)["runs"][0]["file"]
    code, out, _ = call(capsys, "certify", path, "--json")
    value = json.loads(out)
    assert code == 0 and value["sharp"] and value["witness_length"] == value["certified_length"] + 1
    code, out, _ = call(capsys, "certify", path, "--phase", "0")
    assert code == 0 and "wrong word" in out
    np.save(tmp_path / "alpha.npy", np.log([7.0, 1.0, 1.0]))
    np.save(tmp_path / "beta.npy", [2.0, 0.25, 0.5])
    code, out, _ = call(capsys, "certify", "--alpha", tmp_path / "alpha.npy", "--beta", tmp_path / "beta.npy")
    assert code == 0 and "up to 10 letters" in out and "1 2^10" in out
    (tmp_path / "beta.npy").write_bytes(b"not an array")
    code, _, err = call(capsys, "certify", "--alpha", tmp_path / "alpha.npy", "--beta", tmp_path / "beta.npy")
    assert code == cli.USAGE and "beta" in err and err.count("\n") == 1


@pytest.mark.parametrize(("text", "message"), [("tsak = 'or'", "did you mean 'task'"), ("d = = 3", "line 1"),
                                               ("task = 'or'\nd = 'ten'", "d must be"),
                                               ("task = 'or'\nrate_o = ['a', 1]", "rate_o must be"),
                                               ("task = 'or'\nrate_o = 1" + "0" * 400, "rate_o must be"),
                                               ("task = 'or'\nseeds = true", "seeds must be"),
                                               ("task = 'or'\nseeds = {a = 1}", "seeds must be"),
                                               ("task = 'or'\nseeds = 07:32:00", "seeds must be"),
                                               ("d = " + "1" * 5000, "config"), ("x = " + "[" * 10_000, "config")])
def test_bad_config_files_are_one_clear_line(text, message, tmp_path, capsys):
    config = tmp_path / "run.toml"
    config.write_text(text)
    code, _, err = call(capsys, "run", "--config", config, "--out", tmp_path / "out")
    assert code == cli.USAGE and message in err and err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_unwritable_folder_is_one_clear_line(tmp_path, capsys):
    (tmp_path / "file").write_text("not a folder")
    code, _, err = call(capsys, "run", "occurrence", "--out", tmp_path / "file", *SMALL)
    assert code == cli.USAGE and "file" in err and err.count("\n") == 1


def test_a_full_disk_is_one_clear_line_and_loses_nothing(tmp_path, capsys, monkeypatch):
    arguments = ["run", "occurrence", "--seeds", "0:1", "--out", tmp_path, *SMALL]
    assert call(capsys, *arguments)[0] == 0

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    arguments[3] = "0:3"
    code, _, err = call(capsys, *arguments)
    assert code == cli.USAGE and "No space left on device" in err and err.count("\n") == 1
    assert len(list(tmp_path.rglob("*.npz"))) == 1 and not list(tmp_path.rglob(".writing*"))


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr("sim.pool.train", None)  # training would fail otherwise
    for command in (["run", "occurrence"], ["reproduce", "table1"], ["prove"]):
        code, _, err = call(capsys, *command, "--out", tmp_path / "file")
        assert code == cli.USAGE and "file" in err and err.count("\n") == 1


STREAMS = [(">&-", 0), ("2>&-", 0), (">&- 2>&- <&-", 0), ("| true", 0), (">/dev/full", 2)]


@pytest.mark.parametrize(("where", "code"), STREAMS)
def test_closed_and_full_streams(where, code, tmp_path):
    main = "import sys; from sim.cli import main; sys.exit(main())"
    command = f"set -o pipefail; {sys.executable} -c '{main}' run occurrence --out {tmp_path} {' '.join(SMALL)} {where}"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == code and "Exception" not in done.stderr and "Traceback" not in done.stderr
    assert len(list(tmp_path.rglob("*.npz"))) == 3


def test_a_terminal_without_our_letters_still_gets_the_table(tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = attnlag("reproduce", "fig2", "--seeds", "1:2", "--out", tmp_path, env=environment)
    assert done.returncode == 0 and "passes 0.1" in done.stdout


def test_ctrl_c_keeps_finished_runs_and_the_same_command_goes_on(tmp_path):
    arguments = ["run", "occurrence", "--plan", "joint(4000x)", "--seeds", "0:40", "--out", tmp_path / "out",
                 "--d", "20", "--train-words", "4000", "--jobs", "2"]
    command = [sys.executable, "-c", "import sys; from sim.cli import main; sys.exit(main())", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if list(tmp_path.rglob("seed-*.npz")) or process.poll() is not None:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == cli.INTERRUPTED, err
    assert err.count("\n") == 1 and "interrupted" in err
    stored = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    assert 0 < len(stored) < 40 and not list(tmp_path.rglob(".writing*"))
    arguments[5] = f"0:{len(stored)}"
    assert attnlag(*arguments).returncode == 0
    assert all(path.stat().st_mtime_ns == when for path, when in stored.items())


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    command = f"{sys.executable} -c 'import sys; from sim.cli import main; sys.exit(main([\"--help\"]))' | true"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""


@pytest.mark.parametrize("task", ["even_pairs", "slr"])
def test_theory_of_a_first_phase_that_diverges_says_so(task, capsys):
    code, out, err = call(capsys, "theory", task, "--rate-o", "1e10")
    assert code == cli.USAGE and "rate_o 1e+10 is too large" in err and not out


@pytest.mark.parametrize("task", ["even_pairs", "icl_bigram", "slr"])
def test_theory_of_a_second_phase_that_diverges_says_so(task, capsys):
    code, out, err = call(capsys, "theory", task, "--rate-o", "1e308" if task == "icl_bigram" else "1e120")
    assert code == cli.USAGE and " with rate_o 1e+" in err and "diverges in phase 2" in err and not out
