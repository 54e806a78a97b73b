"""What the tests of sweeps share: a small specification, and ways to look at a folder."""

import subprocess
import sys

from sim import cli
from sim.spec import read_spec
from sim.sweep import run_sweep

SMALL = """
task = "occurrence"
plan = "joint(60x)"
train_words = 60
test_words = 20
seeds = {seeds}

[grid]
d = {d}
init_scale = [0.1, 0.5]
"""


def write_spec(folder, text=None, *, seeds=3, d=(6, 8)):
    """The path of a specification: of ``text``, or of 2 x len(d) x seeds small runs."""
    path = folder / "spec.toml"
    path.write_text(SMALL.format(seeds=seeds, d=list(d)) if text is None else text)
    return path


def finished(folder, **options):
    """A folder with the small sweep, complete."""
    out = folder / "finished"
    run_sweep(read_spec(write_spec(folder, **options)), out)
    return out


def files(folder):
    """{path below the folder: bytes} of all run files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("seed-*.npz"))}


def leftovers(folder):
    return list(folder.rglob(".writing*"))


def command(*arguments):
    """The command line of a new process."""
    return [sys.executable, "-c", "import sys; from sim.cli import main; sys.exit(main())", *map(str, arguments)]


def attnlag(*arguments, **options):
    """Run the command in a new process."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=120, **options)


def call(capsys, *arguments):
    """Run the command in this process: exit code, output, errors."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err
