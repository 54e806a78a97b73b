"""Kill sweeps at random moments and go on: ``python -m tests.kill_sweeps [TIMES]`` (100).

Every process is killed with SIGKILL, at a moment drawn evenly from the time in which it writes. After each kill
every run file must be whole and the same, byte for byte, as in a sweep that nobody disturbed; in the end the folders
must be the same.
"""

import multiprocessing
import random
import sys
import tempfile
import time
from pathlib import Path

from sim.sweep import run_sweep

from .sweeping import files, leftovers, write_spec

RUNS = dict(seeds=12, d=(6, 8))  # 48 runs


def kill_sweeps(times, folder, seed=0):
    """Kill ``times`` sweeps; return how many were killed while files were being written, and what they left behind."""
    context = multiprocessing.get_context("forkserver")  # new processes, but with everything loaded
    context.set_forkserver_preload(["tests.warmed", "sim.sweep"])
    rng, spec = random.Random(seed), write_spec(folder, **RUNS)
    expected, seconds = _undisturbed(context, spec, folder / "undisturbed")
    halfway, left, round_number, killed = 0, 0, 0, 0
    while killed < times:
        out = folder / f"round-{round_number}"
        before, left_before = len(files(out)), len(leftovers(out))
        process = _start(context, spec, out)
        _wait_for_more(process, out, before)
        process.join(rng.uniform(0, seconds))
        if process.is_alive():
            process.kill()
            killed += 1
        process.join()
        found = files(out)
        assert found.items() <= expected.items(), "a killed sweep left a file that is not a whole run"
        halfway += 0 < len(found) < len(expected)
        left += len(leftovers(out)) - left_before
        if process.exitcode == 0:
            assert found == expected, "a resumed sweep is not what an undisturbed one is"
            round_number += 1
    run_sweep(spec, out)
    assert files(out) == expected, "a resumed sweep is not what an undisturbed one is"
    return halfway, left


def _undisturbed(context, spec, out):
    """Files of a sweep that nobody disturbs, and the seconds in which it writes them."""
    process = _start(context, spec, out)
    _wait_for_more(process, out, 0)
    start = time.monotonic()
    process.join()
    assert process.exitcode == 0
    return files(out), time.monotonic() - start


def _wait_for_more(process, out, before):
    """Wait until there are more run files than before, or the process has ended."""
    while process.is_alive() and len(files(out)) <= before:
        time.sleep(0.001)


def _start(context, spec, out):
    process = context.Process(target=run_sweep, args=(str(spec), str(out)), kwargs={"jobs": 2})
    process.start()
    return process


def main():
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with tempfile.TemporaryDirectory() as folder:
        halfway, left = kill_sweeps(times, Path(folder))
    print(f"{times} kills, {halfway} of them with a part of the runs written; every run file was whole, every resumed "
          f"sweep the same as an undisturbed one; {left} temporary files left behind, which later sweeps remove")


if __name__ == "__main__":
    main()
