"""The published numbers, the plans behind them, and how ours are judged against them.

Han & Ghoshdastidar, "Training Dynamics of Transformers on Unbounded Inputs: Attention Learning Can Lag
Output Layer Learning", 2026: Table 1 (means over 50 seeds), Table 2 (inits) and Table 5 (standard deviations).
"""

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from .settings import stored

SEEDS = 50
SMALLEST_TOLERANCE = 0.02
ROUNDING = 0.005  # of numbers printed with two decimals
TASKS = ("occurrence", "or", "and", "even_pairs", "icl_bigram", "slr")  # the columns of Table 1


@dataclass(frozen=True)
class Row:
    """A row of Table 1: its label, plan and init; ``published`` is the row's name in the paper's tables, if any."""

    label: str
    plan: str
    init: str = "random"
    published: str | None = None


ROWS = (
    Row("Joint GD", "AO", published="Joint GD"),
    Row("A", "A", published="A"),
    Row("O", "O", published="O"),
    Row("A(1x)->O", "A(1x)->O", published="A(1x)->O"),
    Row("O(1x)->A(1x)", "O(1x)->A(1x)", published="O(1x)->A(1x)"),
    Row("O(1x)->A(1x)->O, random init", "O(1x)->A(1x)->O"),
    Row("O(1x)->A(1x)->O, zero init", "O(1x)->A(1x)->O", init="zero"),
)


@dataclass(frozen=True)
class Published:
    """A printed number and its printed standard deviation, if any; either may be printed as an upper bound."""

    value: float
    is_bound: bool
    std: float | None
    std_is_bound: bool = False


def _read(name):
    with files("sim").joinpath(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def published():
    """{(row, task, "train_loss" | "test_metric"): `Published`} for every number of Table 1."""
    deviations = {(r["plan"], r["task"]): r for r in _read("paper_table5.csv")}
    numbers = {}
    for r in _read("paper_table1.csv"):
        std = deviations.get((r["plan"], r["task"]), {})
        for metric, short, is_bound in (("train_loss", "loss", r["train_loss_is_upper_bound"] == "1"),
                                        ("test_metric", "test", False)):
            printed = std.get(f"{metric}_std")
            numbers[r["plan"], r["task"], metric] = Published(
                float(r[metric]), is_bound, float(printed) if printed else None,
                bool(printed) and std["upper_bound"] in (short, "both"),
            )
    return numbers


@dataclass(frozen=True)
class Init:
    """A printed initialization: the text, and the standard deviation of the entries (None: no text)."""

    printed: str
    scale: float | None
    over_sqrt_d: bool

    def std(self, task):
        return self.scale / math.sqrt(task.d) if self.over_sqrt_d else self.scale


@cache
def initializations():
    """{(task, "zero" | "random"): `Init`} for every line of Table 2."""
    return {(r["task"], r["init"]): Init(r["printed"], float(r["std"]) if r["std"] else None, r["over_sqrt_d"] == "1")
            for r in _read("paper_table2.csv")}


def init_verdict(entries, std):
    """Do entries drawn independently have the printed standard deviation? Within four standard errors of it."""
    if std is None:
        return "unpublished"
    spread = math.sqrt((entries**2).mean())
    return "match" if abs(spread - std) <= 4 * std / math.sqrt(2 * entries.size) else "off"


def tolerance(std, n, paper_std):
    """Largest difference of means that counts as a match: rounding plus two standard errors of both means.

    tol = max(0.02, 0.005 + 2 sqrt(s1^2/n + s2^2/50)), s1 and n ours, s2 the paper's deviation.
    A deviation that is not known (not printed; ours from a single run) is taken to equal the other one.
    """
    s1, s2 = (next((s for s in pair if s is not None), 0.0) for pair in ((std, paper_std), (paper_std, std)))
    return max(SMALLEST_TOLERANCE, ROUNDING + 2 * math.sqrt(s1**2 / n + s2**2 / SEEDS))


def std_tolerance(std, n, paper_std):
    """Largest difference of standard deviations that counts as a match: rounding plus two standard errors of both.

    tol = 0.005 + 2 sqrt(s1^2/(2 (n - 1)) + s2^2/(2 (50 - 1))), from the standard error of s for normal values.
    """
    return ROUNDING + 2 * math.sqrt(std**2 / (2 * (n - 1)) + paper_std**2 / (2 * (SEEDS - 1)))


def verdict(mean, std, n, diverged, number):
    """(difference, tolerance, verdict) of our mean against a `Published` number, or None where it is not printed.

    "match" within the tolerance, "near" within twice of it, else "off"; a bound matches iff our mean is below it;
    a cell with diverged runs never matches ("k/n diverged"); a row without published number is "unpublished".
    """
    if diverged:
        return None, None, f"{diverged}/{n + diverged} diverged"
    if number is None:
        return None, None, "unpublished"
    if number.is_bound:
        return mean - number.value, None, "match" if mean < number.value else "off"
    return _judge(mean - number.value, tolerance(std, n, number.std))


def std_verdict(std, n, diverged, number):
    """The same of our standard deviation against the printed one; a printed bound includes its value here."""
    if diverged:
        return None, None, f"{diverged}/{n + diverged} diverged"
    if number is None or number.std is None:
        return None, None, "unpublished"
    if std is None:
        return None, None, "one run"
    if number.std_is_bound:
        return std - number.std, None, "match" if std <= number.std else "off"
    return _judge(std - number.std, std_tolerance(std, n, number.std))


def _judge(diff, tol):
    return diff, tol, "match" if abs(diff) <= tol else "near" if abs(diff) <= 2 * tol else "off"


def attention_steps(task):
    """Steps behind "A(1x)" in a task's column: for and, Table 1 has many instead of one (we chose how many)."""
    return stored().get(task, {}).get("attention_steps", 1)


def plan_of(row, task):
    """The plan trained for a row of a task."""
    return row.plan.replace("A(1x)", f"A({attention_steps(task)}x)")


def configurations(task, **settings):
    """The `RunConfig` of every row of Table 1 for a task, in order, all with the task's stored settings."""
    from .config import resolve

    return [(row, resolve(task, plan_of(row, task), init=row.init, **settings)) for row in ROWS]
