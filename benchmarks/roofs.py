"""The two roofs no kernel can pass, for one thread and for two: multiply-adds from registers, and reads of memory.

Multiply-adds are vector instructions that do not wait for each other. A read goes once through an array and adds it up;
how fast that is depends on the cache that holds the array. The kernels are held against roofs measured in turns with
them; those here show what kind of machine it is.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from analytic.jit import jit

from .report import Table
from .timing import progress, shortest_times

TITLE = "Roofs of the machine"
CHAIN, WIDTH = 8, 256  # multiply-adds in a row on one number; numbers
ROUNDS = 500_000  # of all of them in a call
SIZES = (16, 512, 8_192, 262_144)  # KiB of an array that is read
THREADS = (1, 2)
CALL_BYTES = 2**31  # a call reads about so many: it takes long against the start of its threads


class MultiplyAdds:
    """A contestant that does nothing but independent vector multiply-adds: one thread's arithmetic roof."""

    def __init__(self, rounds=10_000):
        self.numbers, self.rounds = np.ones(WIDTH), rounds

    def __call__(self):
        _multiply_adds(self.numbers, self.rounds, 0.5, 0.25)

    def per_second(self, seconds):
        return self.rounds * WIDTH * CHAIN / seconds


@jit(fastmath={"contract"})
def _multiply_adds(numbers, rounds, factor, term):
    for _ in range(rounds):
        for i in range(WIDTH):
            x = numbers[i]
            for _ in range(CHAIN):
                x = x * factor + term
            numbers[i] = x


class Read:
    """A contestant that reads an array and does next to nothing with it: one thread's memory roof."""

    def __init__(self, array, times=1):
        self.numbers, self.times = array.reshape(-1).view(np.int64), times

    def __call__(self):
        _sum(self.numbers, self.times)

    def per_second(self, seconds):
        return self.numbers.nbytes * self.times / seconds


def read_bytes(nbytes, times=1):
    """A read of a new array of so many bytes."""
    return Read(np.ones(max(1, nbytes // 8), dtype=np.int64), times)


@jit
def _sum(numbers, times):
    total = 0
    for turn in range(times):
        for i in range(numbers.size):
            total += numbers[i] ^ turn  # not the same sum again, which would be taken only once
    return total


def _all_at_once(contestants):
    """One contestant that is several, each on a thread of its own."""
    def run():
        with ThreadPoolExecutor(len(contestants)) as pool:
            list(pool.map(lambda contestant: contestant(), contestants))

    return run


def on_threads(count):
    """Both roofs when so many threads work at once."""
    progress(f"{count} threads")
    sets = {"arithmetic": [MultiplyAdds(ROUNDS) for _ in range(count)]}
    for size in SIZES:
        nbytes = 1024 * size
        sets[size] = [read_bytes(nbytes, max(1, CALL_BYTES // nbytes)) for _ in range(count)]
    calls = {name: _all_at_once(contestants) for name, contestants in sets.items()}
    seconds = shortest_times(calls, clock=time.perf_counter, pause=False)
    rates = {name: sum(one.per_second(seconds[name]) for one in made) for name, made in sets.items()}
    return {
        "threads": count, "multiply_adds_per_second": rates["arithmetic"],
        "read_bytes_per_second": {str(size): rates[size] for size in SIZES},
    }  # fmt: skip


def measure(quick=False):
    return {"roofs": [on_threads(count) for count in THREADS]}


def _memory(size):
    return f"{size} KiB" if size < 1024 else f"{size // 1024} MiB"


def shown(result):
    first, *_ = result["roofs"]
    header = ("threads", "multiply-adds, G/s",
              *(f"read {_memory(int(size))}, GB/s" for size in first["read_bytes_per_second"]))  # fmt: skip
    rows = [
        (row["threads"], f"{row['multiply_adds_per_second'] / 1e9:.1f}",
         *(f"{rate / 1e9:.0f}" for rate in row["read_bytes_per_second"].values()))
        for row in result["roofs"]
    ]  # fmt: skip
    return [Table("All threads together; each reads an array of its own, of the size named.", header, rows)]
