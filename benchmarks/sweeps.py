"""50 seeds of each of the six tasks, on one thread and on two: ours against every set-up of the peers.

All train the data and the starts of the simulator, jointly, a few steps; times are extended in proportion to 400 steps.
What is compared is training alone: making the data is not counted for anyone, and no peer pays for compiling. Two
threads share the seeds. JAX has two set-ups: a compiled scan for one seed after another, and the same scan vectorised
over each thread's share of the seeds (vmap), so that their data are one array. The others are loops over seeds.
"""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from . import even_pairs, icl_bigram, letter, slr
from .kernels import STEPS
from .peers import OURS, check, installed, jax_arrays, jax_descent
from .report import Table, number
from .timing import progress, shortest_times, threads

TITLE = "Sweeps of 50 seeds"
SEEDS, THREADS = 50, (1, 2)
TASKS = {  # model, size, steps
    "occurrence": (letter, letter.SETTINGS[0], 20),
    "or": (letter, letter.SETTINGS[1], 20),
    "and": (letter, letter.SETTINGS[2], 6),
    "even_pairs": (even_pairs, even_pairs.SETTINGS[0], 20),
    "icl_bigram": (icl_bigram, icl_bigram.SETTINGS[0], 4),
    "slr": (slr, slr.SETTINGS[0], 10),  # so that few of them find the tokens out of the cache
}


def problems(model, size, seeds):
    """Data and start of every seed; what all have in common is there once."""
    given = [model.MODEL.problem(seed, **size) for seed in range(seeds)]
    if model is even_pairs:  # every seed has the same strings
        given = [(given[0][0], *start) for _, *start in given]
    return given


def together(ends):
    """The last parameters of several seeds as two arrays."""
    return tuple(np.stack(parts) for parts in zip(*ends, strict=True))


def each_seed(peer, problems, steps):
    """A call that trains one seed after another on the threads of a pool."""
    runs = [peer(*problem, steps) for problem in problems]
    return lambda pool: together(pool.map(lambda run: run(), runs))


def jax_each_seed(model, problems, steps):
    """The same with one compiled descent for all seeds."""
    import jax

    inputs = []
    for data, *start in problems:
        loss, arrays = model.jax_loss(data)
        inputs.append((jax_arrays(start), jax_arrays(arrays)))
    descent = jax.jit(jax_descent(loss, model.RATE, steps))
    return lambda pool: together(pool.map(lambda pair: _numpy(descent(*pair)), inputs))


def jax_all_seeds(model, problems, steps):
    """A call that trains each thread's share of the seeds at once."""
    import jax

    same, share, inputs = len({id(data) for data, *_ in problems}) == 1, -(-len(problems) // max(THREADS)), []
    for first in range(0, len(problems), share):
        group = problems[first : first + share]
        losses, arrays = zip(*(model.jax_loss(data) for data, *_ in (group[:1] if same else group)), strict=True)
        start = jax_arrays(map(np.stack, zip(*(start for _, *start in group), strict=True)))
        inputs.append((start, jax_arrays(arrays[0] if same else map(np.stack, zip(*arrays, strict=True)))))
    batch = jax.vmap(jax_descent(losses[0], model.RATE, steps), in_axes=(0, None if same else 0))
    descent = jax.jit(batch)

    def run(pool):
        ends = pool.map(lambda pair: _numpy(descent(*pair)), inputs)
        return tuple(np.concatenate(parts) for parts in zip(*ends, strict=True))

    return run


def _numpy(arrays):
    return tuple(np.asarray(array) for array in arrays)


def contestants(model, given, steps):
    """Calls of a pool, by name, and the names of those whose library is not installed."""
    loops = {OURS: model.kernel, **{name: peer for name, peer in model.PEERS.items() if name != "jax"}}
    return installed({
        **{name: lambda peer=peer: each_seed(peer, given, steps) for name, peer in loops.items()},
        "jax": lambda: jax_each_seed(model, given, steps),
        "jax, vmap over seeds": lambda: jax_all_seeds(model, given, steps),
    })  # fmt: skip


def against_peers(task, seeds):
    """Seconds of all seeds for STEPS steps, by contestant and number of threads; all must arrive at the same place."""
    model, size, steps = TASKS[task]
    made, missing = contestants(model, problems(model, size, seeds), steps)
    last = model.MODEL.last(**size)  # our kernels give the loss of the last state too
    rows = {name: {"peer": name, "seconds": {}} for name in made}
    for count in THREADS:
        progress(f"{task}, {seeds} seeds, threads: {count}")
        with ThreadPoolExecutor(count) as pool:
            calls = {name: lambda run=run: run(pool) for name, run in made.items()}
            for name, taken in shortest_times(calls, rounds=2, repeats=1, clock=perf_counter, check=check).items():
                more = last * (name == OURS)
                rows[name]["seconds"][str(count)] = taken * (STEPS + more) / (steps + more)
    return {
        "task": task, "seeds": seeds, "steps": STEPS,
        "peers": [*rows.values(), *({"peer": name, "seconds": None} for name in missing)],
    }  # fmt: skip


def measure(quick=False):
    with threads([letter.letter, slr.slr], 1):
        return {"tasks": [against_peers(task, 4 if quick else SEEDS) for task in TASKS]}


def shown(result):
    """A table for each number of threads: what tasks take, down the peers."""
    first = result["tasks"][0]
    found = {task["task"]: {row["peer"]: row["seconds"] for row in task["peers"]} for task in result["tasks"]}
    names = [row["peer"] for row in first["peers"]]
    tables = []
    for count in map(str, THREADS):
        rows = [(name, *(_cell(task, name, count) for task in found.values())) for name in names]
        caption = (f"{first['seeds']} seeds, {first['steps']} steps, on {count} thread{'s' * (count != '1')}: "
                   "seconds (times ours).")  # fmt: skip
        tables.append(Table(caption, ("", *found), rows))
    return tables


def _cell(task, name, count):
    seconds = task[name]
    return f"{number(seconds[count])} ({number(seconds[count] / task[OURS][count])})" if seconds else "not installed"
