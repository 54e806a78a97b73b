"""Fair timing, and the two roofs no kernel can pass: multiply-adds from registers, and reads of memory.

Traps this avoids: thread pools of one library spin for a while after a call and slow the next contestant, so every
library gets one thread and a pause before its turn; clocks and caches drift, so contestants take turns in one process
and each keeps its shortest time; a busy machine takes the processor away in the middle of a call, so calls of one
thread count processor time; a roof taken elsewhere says nothing, so it takes turns like any contestant; a library that
compiles or allocates on its first call has that call before the clock starts; and a fast wrong answer is no answer, so
whoever calls this compares the results.
"""

import importlib.metadata
import math
import os
import platform
import time

import numpy as np

from analytic.jit import jit

PAUSE = 0.3  # seconds before a contestant's turn
CHAIN, WIDTH = 8, 256  # multiply-adds in a row on one number; numbers


def shortest_times(contestants, rounds=7, repeats=3, clock=time.process_time):
    """Seconds of the shortest call of each ``{name: callable}``; they take turns, after one call each to warm up.

    The default clock is the processor time of all threads together: pass ``time.perf_counter`` to compare threads.
    """
    shortest = dict.fromkeys(contestants, math.inf)
    for call in contestants.values():
        call()
    for _ in range(rounds):
        for name, call in contestants.items():
            time.sleep(PAUSE)
            for _ in range(repeats):
                start = clock()
                call()
                shortest[name] = min(shortest[name], clock() - start)
    return shortest


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
    """A contestant that reads an array once and does next to nothing with it: one thread's memory roof."""

    def __init__(self, nbytes):
        self.numbers = np.ones(nbytes // 8, dtype=np.int64)

    def __call__(self):
        _sum(self.numbers)

    def per_second(self, seconds):
        return self.numbers.nbytes / seconds


@jit
def _sum(numbers):
    total = 0
    for i in range(numbers.size):
        total += numbers[i]
    return total


def machine(libraries):
    """What the numbers were measured on; ``None`` for a library that is not installed."""
    import llvmlite.binding

    versions = {}
    for name in libraries:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    cpu = llvmlite.binding.get_host_cpu_name()
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "versions": versions}


def columns(header, rows):
    """Right-aligned text columns, the first one to the left."""
    table = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for first, *rest in table:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]))
    return "\n".join(lines)
