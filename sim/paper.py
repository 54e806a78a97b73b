"""The published numbers, the plans behind them, and how ours are judged against them.

Han & Ghoshdastidar, "Training Dynamics of Transformers on Unbounded Inputs: Attention Learning Can Lag
Output Layer Learning", 2026: Table 1 (means over 50 seeds) and Table 5 (standard deviations).
"""

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SEEDS = 50
SMALLEST_TOLERANCE = 0.02
TASKS = ("occurrence", "or")  # the columns that can be reproduced


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
    """A printed number: its value, whether it is printed as an upper bound, and its standard deviation if printed."""

    value: float
    is_bound: bool
    std: float | None


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
        for metric, is_bound in (("train_loss", r["train_loss_is_upper_bound"] == "1"), ("test_metric", False)):
            printed = std.get(f"{metric}_std")
            value = Published(float(r[metric]), is_bound, float(printed) if printed else None)
            numbers[r["plan"], r["task"], metric] = value
    return numbers


def tolerance(std, n, paper_std):
    """Largest difference that counts as a match: rounding of the printed value plus two standard errors of both means.

    tol = max(0.02, 0.005 + 2 sqrt(s1^2/n + s2^2/50)), s1 and n ours, s2 the paper's deviation (ours if not printed).
    """
    s2 = std if paper_std is None else paper_std
    return max(SMALLEST_TOLERANCE, 0.005 + 2 * math.sqrt(std**2 / n + s2**2 / SEEDS))


def verdict(mean, std, n, diverged, number):
    """(difference, tolerance, verdict) of our mean against a `Published` number.

    "match" within the tolerance, "near" within twice of it, else "off"; a bound matches iff our mean is below it;
    a cell with diverged runs never matches ("k/n diverged"); a row without published number is "unpublished".
    """
    if diverged:
        return None, None, f"{diverged}/{n + diverged} diverged"
    if number is None:
        return None, None, "unpublished"
    if number.is_bound:
        return mean - number.value, None, "match" if mean < number.value else "off"
    tol = tolerance(std, n, number.std)
    diff = mean - number.value
    return diff, tol, "match" if abs(diff) <= tol else "near" if abs(diff) <= 2 * tol else "off"


def configurations(task, **settings):
    """The `RunConfig` of every row of Table 1 for a task, in order, all with the task's stored settings."""
    from .config import resolve

    return [(row, resolve(task, row.plan, init=row.init, **settings)) for row in ROWS]
