"""A folder of 10,000 runs: seconds to list it, to check all of it, to load it, and to resume its sweep.

The runs have 400 steps. One is trained; the others are the same arrays under their own configuration and seed, each in
a file of its own with its own hashes, as a sweep would have left them.
"""

import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from sim import store
from sim.descent import train
from sim.spec import read_spec
from sim.status import status
from sim.stored import load
from sim.sweep import run_sweep

from .report import Table
from .timing import progress

TITLE = "A folder of 10,000 runs"
RUNS = 10_000
CONFIGURATIONS = (200, RUNS)
SPEC = """
task = "occurrence"
plan = "joint(400x)"
d = 10
train_words = 500
test_words = 100
seeds = {seeds}
grid.rate_o = {{linspace = [0.1, 2.0, {configurations}]}}
"""


def filled(folder, configurations):
    """The path of a specification, and the folder of its sweep, complete."""
    path, out = Path(folder) / "spec.toml", Path(folder) / "runs"
    path.write_text(SPEC.format(seeds=RUNS // configurations, configurations=configurations))
    spec = read_spec(path)
    run = train(next(iter(spec.groups)), 0)
    for config, seed in spec.pairs():
        to = store.run_path(out, config, seed)
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(store.encode(replace(run, config=config, seed=seed)))
    return path, out


def timed(function):
    start = perf_counter()
    result = function()
    return perf_counter() - start, result


def measure_folder(configurations):
    progress(f"configurations: {configurations}")
    with tempfile.TemporaryDirectory() as folder:
        path, out = filled(folder, configurations)
        size = sum(file.stat().st_size for file in store.run_files(out))
        listing, files = timed(lambda: list(store.run_files(out)))
        resuming, swept = timed(lambda: run_sweep(read_spec(path), out))
        checking, state = timed(lambda: status(out))
        loading, stored = timed(lambda: load(out))
        arrays, _ = timed(lambda: (stored.train_loss, stored.end("lag")))
        counts = {len(files), swept.found, state.done, sum(map(len, stored))}
        if counts != {RUNS} or swept.trained:
            raise SystemExit(f"error: the folder was not read as what it is: {counts}")
    return {"configurations": configurations, "bytes": size, "list": listing, "resume": resuming, "status": checking,
            "load": loading, "arrays": arrays}


def measure(quick=False):
    return {"runs": RUNS, "folders": [measure_folder(n) for n in (CONFIGURATIONS[:1] if quick else CONFIGURATIONS)]}


def shown(result):
    rows = [(folder["configurations"], f"{folder['bytes'] / 2**20:.0f}",
             *(f"{folder[name]:.2f}" for name in ("list", "status", "load", "arrays", "resume")))
            for folder in result["folders"]]
    header = ("configurations", "MiB", "list", "status", "load", "arrays", "resume")
    return [Table(f"Seconds for {result['runs']} runs.", header, rows)]
