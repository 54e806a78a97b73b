"""Fair timing.

What misleads, and what is done about it:

- Thread pools spin for a while after a call and slow the next contestant: there is a pause before every turn of a
  library, one thread for each unless threads are what is compared, and a process of its own for each benchmark.
- Clocks and caches drift: contestants take turns in one process, and each keeps its shortest time.
- A busy machine takes the processor away in the middle of a call: one thread is timed by its processor time. Another
  program still takes its share of caches and memory, so the load at the start is kept with the results.
- The first call compiles and allocates: it comes before the clock starts.
- A fast wrong answer is no answer: what the first calls return is compared, and nothing is timed if it differs.
- A roof taken elsewhere, or on other memory, says nothing: it takes turns with the kernel like any contestant, on
  arrays that this process wrote itself, which decides where they lie on machines with several memory nodes (NUMA).
- A BLAS may be held to an older CPU by its environment and lose for that reason alone: those variables are removed.
- Sizes that fit a cache flatter whoever streams through memory: sizes go from a hundredth of the paper's to ten times.
"""

import math
import os
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

PAUSE = 0.3  # seconds before a contestant's turn
TURN = 0.5  # seconds after which a turn ends, whatever is left of its repeats
LONG = 3.0  # seconds of a call that is long enough to count alone


def progress(text):
    """A line for those who wait; results go to standard output."""
    print(f"  {text}", file=sys.stderr, flush=True)


def shortest_times(contestants, rounds=7, repeats=3, clock=time.process_time, check=None, pause=True):
    """Seconds of the shortest call of each ``{name: callable}``; they take turns, after one call each to warm up.

    What the first calls return goes to ``check`` as ``{name: result}``. The default clock is the processor time of all
    threads together: pass ``time.perf_counter`` to compare threads. Without other libraries there need be no ``pause``.
    """
    first = {name: call() for name, call in contestants.items()}
    if check:
        check(first)
    shortest = dict.fromkeys(contestants, math.inf)
    for turn in range(rounds):
        for name, call in contestants.items():
            if turn == 0 or shortest[name] < LONG:
                time.sleep(PAUSE * pause)
                shortest[name] = min(shortest[name], *_turn(call, repeats, clock))
    return shortest


def _turn(call, repeats, clock):
    """Seconds of each call of a turn."""
    taken = []
    while len(taken) < repeats and sum(taken) < TURN:
        start = clock()
        call()
        taken.append(clock() - start)
    return taken


def over_threads(runs):
    """Speed of runs side by side, each on a thread of its own, against one after the other."""
    with ThreadPoolExecutor(len(runs)) as pool:
        contestants = {
            "one": lambda: [run() for run in runs],
            "many": lambda: [future.result() for future in [pool.submit(run) for run in runs]],
        }
        seconds = shortest_times(contestants, clock=time.perf_counter, pause=False)
    return seconds["one"] / seconds["many"]


@contextmanager
def threads(kernels, count):
    """Have modules of kernels that cut large data into parts share them among so many threads."""
    before = [module.THREADS for module in kernels]
    for module in kernels:
        module.THREADS = count
    try:
        yield
    finally:
        for module, old in zip(kernels, before, strict=True):
            module.THREADS = old


def run_apart(command, fine=(0,), **options):
    """Standard output of a process; exit with one line that says why if it fails, and stop it if we are stopped."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            output, errors = process.communicate()
        except KeyboardInterrupt:
            _stop(process)
            raise
    if process.returncode == -signal.SIGINT or process.returncode == 128 + signal.SIGINT:
        raise KeyboardInterrupt
    if process.returncode not in fine:
        how = f"exit code {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
        last = (errors or "").strip().splitlines()[-1:]
        what = shlex.join(command[3:]) or "process"  # what comes after python -c CODE or python -m MODULE
        raise SystemExit(": ".join([f"error: {what} failed ({how})", *last]))
    return output


def _stop(process):
    """Ctrl-C on a terminal reaches all processes; a signal to this one alone has to be passed on."""
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()


def machine():
    """What the numbers were measured on; ``None`` for a library that is not installed."""
    from sim.commands import info

    cpu, versions = info.cpu(), info.versions()
    return {
        "cpu": cpu["name"], "cores": cpu["cores_allowed"], "load": os.getloadavg()[0],
        "features": [name for name, present in cpu["features"].items() if present],
        "versions": {name: versions[name] for name in ("python", "numpy", "scipy", "numba", "jax", "torch")},
    }  # fmt: skip
