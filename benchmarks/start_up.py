"""End to end: a new process from its start to its first result, with compiled kernels on disk and without.

Cold: numba finds an empty folder and compiles what the command needs. Warm: it finds what the cold run left there. The
time is that of the whole process, imports, data and printing included.
"""

import os
import subprocess
import sys
import tempfile
from time import perf_counter

from .report import Table
from .timing import progress, run_apart

TITLE = "From start to first result"
START = [sys.executable, "-c", "from sim.cli import main; raise SystemExit(main())"]
TASKS = ("occurrence", "or", "and", "even_pairs", "icl_bigram", "slr")
COMMANDS = (("--help",), *(("run", task) for task in TASKS))
COLD, WARM = 2, 3  # repeats, the warm ones after each cold one; the shortest counts


def seconds(command, cache):
    """Of one process, with compiled kernels in the folder ``cache``."""
    start = perf_counter()
    run_apart([*START, *command], env={**os.environ, "NUMBA_CACHE_DIR": cache}, stderr=subprocess.PIPE)
    return perf_counter() - start


def cold_and_warm(command, cold=COLD, warm=WARM):
    text, first, later = " ".join(("attnlag", *command)), [], []
    progress(text)
    for _ in range(cold):
        with tempfile.TemporaryDirectory() as cache:
            first.append(seconds(command, cache))
            later += [seconds(command, cache) for _ in range(warm)]
    return {"command": text, "cold_seconds": min(first), "warm_seconds": min(later)}


def measure(quick=False):
    if quick:
        return {"commands": [cold_and_warm(command, 1, 1) for command in COMMANDS[:2]]}
    return {"commands": [cold_and_warm(command) for command in COMMANDS]}


def shown(result):
    rows = [(row["command"], f"{row['cold_seconds']:.2f}", f"{row['warm_seconds']:.2f}") for row in result["commands"]]
    return [Table("Seconds of a new process.", ("command", "cold", "warm"), rows)]
