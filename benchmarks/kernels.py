"""What is measured of every model: its kernel against the machine's roofs, against its peers, and on two threads."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import numpy as np

from .peers import contest, peer_table, problem
from .report import Table, number, size_text, symbol
from .roofs import MultiplyAdds
from .timing import over_threads, progress, shortest_times, threads

THREADS = 2
CALL = 1e8  # multiply-adds that make a call short, but long against what a call costs by itself
CONTEST = 2e8  # the same for contests, where peers take up to a hundred times as long
MEASURED = ("multiply_adds", "microseconds", "arithmetic_share", "multiply_adds_per_second", "bytes", "memory_share",
            "read_bytes_per_second")  # in the row of a size, beside the size
STEPS = 400  # of a run to which the cost of its data is compared


@dataclass(frozen=True)
class Model:
    """A model to measure: sizes are settings of the simulator's task, whose name they may give too.

    kernel     (data, first, second, steps) -> a call that gives the last parameters
    work       (**size) -> multiply-adds of one step
    last       (**size) -> what the loss of the last state costs, in steps
    memory     data -> a contestant that reads what a step has to read; None where that is next to nothing
    module     where the kernel lives
    large      a size at which the kernel cuts its data into parts for several threads; None if it never does
    """

    task: str
    kernel: Callable
    peers: dict
    work: Callable
    last: Callable
    scaling: list
    settings: list
    module: ModuleType
    memory: Callable | None = None
    arithmetic: Callable = MultiplyAdds
    large: dict | None = None

    def problem(self, seed=0, **size):
        return problem(**{"task": self.task, **size}, seed=seed)

    def steps(self, work=CALL, low=2, high=500, **size):
        """As many steps as make that much work."""
        return int(np.clip(work / self.work(**size), low, high))

    def against_roofs(self, **size):
        """Time of one step, and its share of each roof."""
        data, *start = self.problem(**size)
        steps = self.steps(**size)
        return self.timed(size, data, self.kernel(data, *start, steps), steps + self.last(**size), self.work(**size))

    def timed(self, size, data, run, steps, work):
        """The same for any run of so many steps, each so much work."""
        progress(size_text(size))
        contestants = {"step": run, "arithmetic": self.arithmetic()}
        if self.memory:
            contestants["memory"] = self.memory(data)
        seconds = shortest_times(contestants, rounds=10, repeats=5, pause=False)
        step, peak = seconds["step"] / steps, contestants["arithmetic"].per_second(seconds["arithmetic"])
        row = {**size, "multiply_adds": work, "microseconds": 1e6 * step, "arithmetic_share": work / step / peak,
               "multiply_adds_per_second": peak}  # fmt: skip
        if self.memory:
            nbytes, read = contestants["memory"].numbers.nbytes, contestants["memory"].per_second(seconds["memory"])
            row |= {"bytes": nbytes, "memory_share": nbytes / step / read, "read_bytes_per_second": read}
        return row

    def against_peers(self, clock=time.process_time, **size):
        """Time of one step of every peer, in turns with the kernel; all must arrive at the same parameters."""
        progress(f"{size_text(size)} against peers")
        steps = self.steps(CONTEST, low=4, high=50, **size)
        rows = contest(self.kernel, self.peers, self.problem(**size), steps, self.last(**size), clock)
        return {"size": size, "peers": rows}

    def over_threads(self):
        """Speed of two runs on two threads against one after the other, and of one large run cut into parts."""
        progress(f"{THREADS} threads")
        size = self.settings[0]
        runs = [self.kernel(*self.problem(seed=seed, **size), self.steps(**size)) for seed in range(THREADS)]
        return {"threads": THREADS, "two_runs": over_threads(runs), "large_run": self.large and self.large_run()}

    def large_run(self):
        run = self.kernel(*self.problem(**self.large), steps=4)

        def with_threads(count):
            with threads([self.module], count):
                return run()

        contestants = {count: lambda count=count: with_threads(count) for count in (1, THREADS)}
        seconds = shortest_times(contestants, clock=time.perf_counter, pause=False)
        return seconds[1] / seconds[THREADS]

    def data_cost(self):
        """Milliseconds to make the data of a run, and as a share of STEPS steps on them."""
        size = self.settings[0]
        steps = self.steps(**size)
        run = self.kernel(*self.problem(**size), steps)
        seconds = shortest_times({"data": lambda: self.problem(**size), "run": run}, rounds=3, pause=False)
        return {"milliseconds": 1e3 * seconds["data"], "share_of_run": seconds["data"] / seconds["run"] * steps / STEPS}

    def measure(self, quick=False):
        settings = self.settings[:1] if quick else self.settings
        with threads([self.module] if self.large else [], 1):  # as every peer
            return {
                "scaling": [self.against_roofs(**size) for size in (settings if quick else self.scaling)],
                "peers": [self.against_peers(**size) for size in settings],
                "threads": self.over_threads(),
                "data": self.data_cost(),
            }

    def shown(self, result):
        """Tables and text."""
        contests = {size_text(row["size"]): row["peers"] for row in result["peers"]}
        cores, data = result["threads"], result["data"]
        large = f"; one large run cut into parts {cores['large_run']:.2f} times" if cores["large_run"] else ""
        return [
            roof_table(result["scaling"]),
            peer_table("One run on one thread, in turns.", contests),
            f"{cores['threads']} threads: as many runs, one on each, {cores['two_runs']:.2f} times as fast as one "
            f"after the other{large}.",
            f"Making the data of {size_text(self.settings[0])}: {data['milliseconds']:.2f} ms, "
            f"{data['share_of_run']:.1%} of {STEPS} steps.",
        ]


def roof_table(rows):
    """Time of a step and its shares of the roofs, by size."""
    names = [name for name in rows[0] if name not in MEASURED]
    reads = "memory_share" in rows[0]
    header = (*map(symbol, names), "µs a step", "of arithmetic roof", *(["of read roof"] if reads else []),
              "roof, G/s", *(["read roof, GB/s"] if reads else []))  # fmt: skip
    cells = [
        (*(row[name] for name in names), number(row["microseconds"], 4), f"{row['arithmetic_share']:.0%}",
         *([f"{row['memory_share']:.0%}"] if reads else []), f"{row['multiply_adds_per_second'] / 1e9:.1f}",
         *([f"{row['read_bytes_per_second'] / 1e9:.0f}"] if reads else []))
        for row in rows
    ]  # fmt: skip
    return Table("One step on one thread, and its share of each roof measured in turns with it.", header, cells)
