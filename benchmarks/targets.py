"""What speed, memory and start-up are to be, and whether the results reach it."""

from collections.abc import Callable
from dataclasses import dataclass

from . import even_pairs, icl_bigram, letter, slr
from .peers import OURS
from .report import Table, number, size_text

RIVALS = {None: "the best peer", "torch": "tidy PyTorch", "torch, first version": "PyTorch as one writes it first"}
AGAINST = {  # times as fast as each of these, on one thread
    letter: {
        "occurrence, N = 12500, d = 50, H = 1": (3, 6, 30),
        "occurrence, N = 200000, d = 200, H = 1": (9, None, None),
        "and, N = 12500, d = 50, H = 4": (1.6, 4, 50),
    },
    even_pairs: {"L_max = 10": (15, 60, 80), "L_max = 16": (100, 300, 250)},
    icl_bigram: {"N = 12500, d = 50, T = 6": (5, 10, 25)},
    slr: {"N = 12500, L = 10, d = 50": (4, 7, 25)},
}
SHARES = {  # percent of the roof that binds, on one thread: of multiply-adds, or of one read of the data
    (letter, "arithmetic_share"): {
        (("train_words", 12_500), ("d", 50), ("heads", 1)): 75,
        (("train_words", 12_500), ("d", 50), ("heads", 4)): 80,
        (("train_words", 200_000), ("d", 200), ("heads", 1)): 70,
    },
    (even_pairs, "arithmetic_share"): {(("max_length", 16),): 70, (("max_length", 20),): 70},
    (icl_bigram, "arithmetic_share"): {(("train_words", 12_500), ("d", 50), ("pairs", 6)): 50},
    (slr, "memory_share"): {(("train_words", 12_500), ("tokens", 10), ("d", 50)): 70},
}
SWEEPS = {"occurrence": 3, "or": 3, "and": 1.6, "even_pairs": 3, "icl_bigram": 3, "slr": 3}  # times, on two threads
TABLE1 = 600  # seconds
NEAR_A_LINE = 20  # percent, the largest deviation of times that are called linear: caches make steps in them
WARM, COLD = 1.5, 6.0  # seconds


@dataclass(frozen=True)
class Target:
    """A number to reach: ``measured`` takes all results and gives it, or None where it was not measured."""

    what: str
    wanted: float
    measured: Callable
    unit: str = "×"
    at_least: bool = True

    def verdict(self, value):
        if value is None:
            return "not measured"
        return "met" if (value >= self.wanted if self.at_least else value <= self.wanted) else "missed"

    def row(self, results):
        value = self.measured(results)
        wanted = f"{'≥' if self.at_least else '≤'} {self.wanted:g}{self.unit}"
        return self.what, wanted, "" if value is None else f"{number(value)}{self.unit}", self.verdict(value)


def _row(results, name, part, matches):
    """The first row of a part of a benchmark's results that matches, or None."""
    return next((row for row in results.get(name, {}).get(part, ()) if matches(row)), None)


def times_as_fast(name, size, peer):
    """How many times as fast as one peer, or as the best one (None), a kernel is."""
    def measured(results):
        found = _row(results, name, "peers", lambda row: size_text(row["size"]) == size)
        rows = found["peers"] if found else []
        rivals = [row for row in rows if row["peer"] == peer or (peer is None and row["peer"] != OURS)]
        return _least([row["times_slower"] for row in rivals])

    return measured


def roof_share(name, size, roof):
    """Percent of a roof that a kernel reaches."""
    def measured(results):
        found = _row(results, name, "scaling", lambda row: size.items() <= row.items())
        return found and 100 * found[roof]

    return measured


def sweep_times(task, threads="2"):
    """How many times as fast as the best set-up of a peer a sweep is."""
    def measured(results):
        found = _row(results, "sweeps", "tasks", lambda row: row["task"] == task)
        seconds = {row["peer"]: row["seconds"] for row in found["peers"]} if found else {}
        ours = seconds.pop(OURS, None)
        return _least([row and row[threads] / ours[threads] for row in seconds.values()])

    return measured


def _least(times):
    """The least of them; None unless every peer is there, since the best may be one that is not installed."""
    return min(times) if times and None not in times else None


def _seconds(kind):
    def measured(results):
        found = _row(results, "start_up", "commands", lambda row: row["command"] == "attnlag run occurrence")
        return found and found[f"{kind}_seconds"]

    return measured


def _table1(results):
    return results.get("table1", {}).get("seconds")


def _memory(results):
    """The largest share of the memory that is allowed, in percent."""
    rows = results.get("cost", {}).get("memory")
    return 100 * max(row["peak"] / row["allowed"] for row in rows) if rows else None


def _deviation(what):
    return lambda results: 100 * results["cost"][what]["largest_deviation"] if "cost" in results else None


def _name(model):
    return model.__name__.rpartition(".")[2]


def _of_roofs():
    for (model, roof), sizes in SHARES.items():
        of = "multiply-adds" if roof == "arithmetic_share" else "one read of the data"
        for size, wanted in sizes.items():
            what = f"{model.TITLE}, {size_text(dict(size))}: of the roof, {of}"
            yield Target(what, wanted, roof_share(_name(model), dict(size), roof), " %")


def _versus():
    for model, sizes in AGAINST.items():
        for size, wanted in sizes.items():
            title, name = f"{model.TITLE}, {size}", _name(model)
            for (peer, text), times in zip(RIVALS.items(), wanted, strict=True):
                if times:
                    yield Target(f"{title}: against {text}", times, times_as_fast(name, size, peer))


TARGETS = (
    *_of_roofs(),
    *_versus(),
    *(Target(f"Sweep of {task.replace('_', ' ')} on two threads: against the best peer", times, sweep_times(task))
      for task, times in SWEEPS.items()),
    Target("All of Table 1 with 50 seeds, on two threads", TABLE1, _table1, " s", False),
    Target("Peak memory of a letter run, of 1.5 times its data and 100 MB", 100, _memory, " %", False),
    Target("Time linear in N d: largest deviation from a line", NEAR_A_LINE, _deviation("size"), " %", False),
    Target("Time linear in steps: largest deviation from a line", NEAR_A_LINE, _deviation("steps"), " %", False),
    Target("`attnlag run occurrence` in a new process, kernels compiled before", WARM, _seconds("warm"), " s", False),
    Target("`attnlag run occurrence` in a new process, nothing compiled", COLD, _seconds("cold"), " s", False),
)  # fmt: skip


def table(results):
    """Every target beside what was measured."""
    rows = [target.row(results) for target in TARGETS]
    met = sum(row[-1] == "met" for row in rows)
    return Table(f"{met} of {len(rows)} targets are met.", ("target", "wanted", "measured", "verdict"), rows)
