"""End to end: a new process from its start to its first result, with compiled kernels on disk and without.

Cold: numba finds an empty folder and compiles what the command needs. Warm: it finds what the cold run left there. The
time is that of the whole process, imports, data, training and printing included: three seeds of occurrence to the end
of the default plan, few steps of one seed of the other tasks. Each starts in an empty folder, since stored runs would
only be read.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from .report import Table
from .timing import progress, run_apart

TITLE = "From start to first result"
ROOT = Path(__file__).parents[1]
START = [sys.executable, "-c", "from sim.cli import main; raise SystemExit(main())"]
TASKS = ("or", "and", "even_pairs", "icl_bigram", "slr")
COMMANDS = (
    ("--help",),
    ("run", "occurrence"),
    *(("run", task, "--seeds", "0:1", "--plan", "joint(10x)") for task in TASKS),
)
COLD, WARM = 2, 3  # repeats, the warm ones after each cold one; the shortest counts


def attnlag(command, fine=(0,), **environment):
    """Seconds and standard output of a command in a new process and an empty folder."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryDirectory() as folder:
        options = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": path, **environment}, "stderr": subprocess.PIPE}
        start = perf_counter()
        output = run_apart([*START, *command], fine=fine, **options)
        return perf_counter() - start, output


def cold_and_warm(command, cold=COLD, warm=WARM):
    text, first, later = shlex.join(("attnlag", *command)), [], []
    progress(text)
    for _ in range(cold):
        with tempfile.TemporaryDirectory() as cache:
            taken = [attnlag(command, NUMBA_CACHE_DIR=cache)[0] for _ in range(1 + warm)]
        first.append(taken[0])
        later += taken[1:]
    return {"command": text, "cold_seconds": min(first), "warm_seconds": min(later)}


def measure(quick=False):
    if quick:
        return {"commands": [cold_and_warm(command, 1, 1) for command in COMMANDS[:2]]}
    return {"commands": [cold_and_warm(command) for command in COMMANDS]}


def shown(result):
    rows = [(row["command"], f"{row['cold_seconds']:.2f}", f"{row['warm_seconds']:.2f}") for row in result["commands"]]
    return [Table("Seconds of a new process.", ("command", "cold", "warm"), rows)]
