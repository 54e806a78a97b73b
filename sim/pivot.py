"""Tables of stored runs: mean and standard deviation over seeds, by any parameters."""

from dataclasses import dataclass

import numpy as np

from analytic.errors import InputError, choice

from .tables import text_table


@dataclass(frozen=True)
class Cell:
    """What the runs that share some parameters ended with."""

    labels: dict  # parameter: label
    values: list  # of the runs that have the value
    n: int  # runs
    diverged: int

    @property
    def complete(self):
        """Does every run that did not diverge have the value?"""
        return len(self.values) == self.n - self.diverged and self.values

    @property
    def mean(self):
        """None unless all have it: a mean over those that ever cross would look earlier than it is."""
        return float(np.mean(self.values)) if self.complete else None

    @property
    def std(self):
        """Of a sample, ddof = 1; None for one run."""
        with np.errstate(all="ignore"):  # the spread of huge numbers may be infinite or undefined
            return float(np.std(self.values, ddof=1)) if self.complete and len(self.values) > 1 else None

    def to_dict(self):
        return {**self.labels, "mean": self.mean, "std": self.std, "n": self.n, "diverged": self.diverged,
                "undefined": self.n - self.diverged - len(self.values)}

    def __str__(self):
        if self.diverged:
            return f"{self.diverged}/{self.n} diverged"
        if not self.complete:
            return f"{len(self.values)}/{self.n} have it"
        return f"{self.mean:.4g}" + ("" if self.std is None else f" ± {self.std:.2g}")


@dataclass(frozen=True)
class Table:
    """Cells by rows and columns; prints as a table."""

    rows: tuple  # names of parameters
    cols: tuple
    value: str
    cells: list

    @property
    def diverged(self):
        """Number of diverged runs."""
        return sum(cell.diverged for cell in self.cells)

    def to_dict(self):
        return {"rows": self.rows, "cols": self.cols, "value": self.value,
                "cells": [cell.to_dict() for cell in self.cells]}

    def __repr__(self):
        at = {(self._labels(cell, self.rows), self._labels(cell, self.cols)): str(cell) for cell in self.cells}
        rows, cols = (list(dict.fromkeys(keys)) for keys in zip(*at, strict=True))
        header = [*self.rows, *(self._heading(col) for col in cols)]
        body = [[*row, *(at.get((row, col), "-") for col in cols)] for row in rows]
        n = sorted({cell.n for cell in self.cells})
        runs = f"{n[0]}" if len(n) == 1 else f"{n[0]} to {n[-1]}"
        return "\n".join([f"{self.value}, mean ± standard deviation over {runs} runs", "", text_table(header, body)])

    def _heading(self, col):
        return ", ".join(f"{name} {label}" for name, label in zip(self.cols, col, strict=True)) or self.value

    @staticmethod
    def _labels(cell, names):
        return tuple(label_text(cell.labels[name]) for name in names)


def pivot(stored, rows, cols, value):
    """The `Table` of a value over some parameters.

    Parameters
    ----------
    stored : what `sim.load` returns
    rows, cols : name of a parameter, several separated by commas, or (cols) None
    value : see `Stored.end`

    Raises
    ------
    InputError : there is no such parameter or value; or a parameter that is neither in rows nor in cols varies in a
        cell, which would be a mean over different things
    """
    rows, cols = _names(stored, "rows", rows), _names(stored, "cols", cols)
    return Table(rows, cols, value, cells(stored, (*rows, *cols), value))


def cells(stored, names, value):
    """One `Cell` for each combination of labels of the named parameters, in order."""
    from .stored import ENDS, end_value, parameter

    choice("value", value, ENDS)
    groups = {}
    for runs in stored:
        groups.setdefault(tuple(parameter(runs.config, name) for name in names), []).append(runs)
    for group in groups.values():
        varying = [name for name in stored.axes if len({parameter(runs.config, name) for runs in group}) > 1]
        if varying:
            raise InputError(f"{', '.join(names)} leave {', '.join(varying)} open: a mean over different values of it "
                             f"says nothing; show it too, or choose one with where {varying[0]}=...")
    found = []
    for labels in sorted(groups, key=lambda labels: [_rank(stored, name, label) for name, label in
                                                     zip(names, labels, strict=True)]):
        runs = [(group, run) for group in groups[labels] for run in group.runs]
        values = [end_value(group, run, value) for group, run in runs]
        found.append(Cell(dict(zip(names, labels, strict=True)), [v for v in values if v is not None], len(runs),
                          sum(run.diverged is not None for _, run in runs)))
    if not any(cell.values for cell in found) and not any(cell.diverged for cell in found):
        raise InputError(f"value: no run has a {value}")
    return found


def _names(stored, argument, text):
    names = [] if text is None else [name.strip() for name in text.split(",")]
    return tuple(stored.check_parameter(argument, name) for name in names)


def _rank(stored, name, label):
    """Place of a label in its axis; numbers by size, others as they come."""
    if isinstance(label, (int, float)):
        return (0, label)
    order = list(stored.axes.get(name, ()))
    return (1, order.index(label)) if label in order else (2, str(label))


def label_text(label):
    """A label for people: joint for AO, six digits of a number."""
    if label is None:
        return "-"
    if isinstance(label, str):
        return {"AO": "joint"}.get(label, label)
    return f"{label:.6g}"
