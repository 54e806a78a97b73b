"""What a folder holds: every run of it, as labelled arrays over the parameters that differ."""

import math
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from analytic.errors import InputError, choice

from . import store
from .labelled import LabelledArray
from .plans import parse_plan
from .runs import CROSSINGS, Runs
from .sweep import read_plan

PARAMETERS = ("task", "plan", "d", "targets", "heads", "init", "init_scale", "rate_a", "rate_o")  # first among axes
ENDS = ("train_loss", "test_accuracy", "test_loss", "attention_gap", "output_gap", "logit_gap", "lag", *CROSSINGS,
        "steps_made", "certified_length")
LARGEST = 2**28  # entries of an array: two gibibytes


def load(folder):
    """All runs stored in a folder and below it.

    Returns
    -------
    Stored : a list of `Runs`, one a configuration, that gives labelled arrays over all of them

    Raises
    ------
    InputError : the folder does not exist or holds no runs, or a file is of a later format
    DamagedFile : a file is not a complete run

    Examples
    --------
    >>> load("no-such-folder")
    Traceback (most recent call last):
    ...
    analytic.errors.InputError: folder 'no-such-folder' holds no stored runs
    """
    folder, groups = Path(folder), {}
    for path in store.run_files(folder) if folder.is_dir() else ():
        run = store.read(path)
        groups.setdefault(run.config, {})[run.seed] = run
    if not groups:
        raise InputError(f"folder {str(folder)!r} holds no stored runs")
    planned = read_plan(folder)
    order = {config: i for i, config in enumerate(planned.groups)} if planned else {}
    configs = sorted(groups, key=lambda config: order.get(config, len(order)))
    runs = [Runs(config, [run for _, run in sorted(groups[config].items())]) for config in configs]
    return Stored(runs, planned.axes if planned else ())


class Stored(list):
    """A list of `Runs`, one a configuration; prints one line for each.

    Attributes
    ----------
    axes : {parameter: its values}, the parameters that tell the configurations apart. One that follows from those
        before it is left out: with d = 10, 20 as 5 d^2 training words, or rates that were zipped with d
    train_loss, attention_gap, alpha, ... : labelled arrays (*axes, seed, ...) of what the `Runs` have under that
        name, NaN where there is no such run or it had ended
    """

    def __init__(self, runs, first_axes=()):
        super().__init__(runs)
        self._first_axes = tuple(first_axes)

    def __repr__(self):
        from .tables import stored_text

        return stored_text(self)

    def __getattr__(self, name):
        if name.startswith("_") or not self:
            raise AttributeError(name)
        return self._over_axes([getattr(runs, name) for runs in self])

    @cached_property
    def axes(self):
        names = dict.fromkeys([*self._first_axes, *PARAMETERS, *self.parameters])
        found, groups, different = {}, [()] * len(self), len({runs.config for runs in self})
        for name in names:
            values = [parameter(runs.config, name) for runs in self]
            finer = [(*group, value) for group, value in zip(groups, values, strict=True)]
            if len(set(finer)) > len(set(groups)):
                found[name], groups = _in_order(values), finer
            if len(set(groups)) == different:
                break
        return found

    @cached_property
    def parameters(self):
        """Names of all parameters of the runs."""
        return list(dict.fromkeys(name for runs in self for name in _parameters(runs.config)))

    @property
    def seeds(self):
        """All seeds, in order."""
        return sorted({seed for runs in self for seed in runs.seeds})

    def where(self, **labels):
        """The runs whose parameters have the given values, as `parameter` says them.

        Raises
        ------
        InputError : a name is no parameter of these runs, or no run has the value
        """
        kept = list(self)
        for name, label in labels.items():
            self.check_parameter("where", name)
            wanted = _canonical(name, label)
            values = {_canonical(name, parameter(runs.config, name)) for runs in kept}
            if wanted not in values:
                shown = ", ".join(sorted(map(str, values)))
                raise InputError(f"where: no run has {name} {label}; there are {shown}")
            kept = [runs for runs in kept if _canonical(name, parameter(runs.config, name)) == wanted]
        return Stored(kept, self._first_axes)

    def check_parameter(self, argument, name):
        """Return ``name`` if it is a parameter of these runs, or raise `InputError` naming the argument."""
        return choice(argument, name, self.parameters)

    def end(self, name):
        """What the runs ended with: labelled array (*axes, seed), NaN where a run diverged or has no such value.

        Parameters
        ----------
        name : one of ``ENDS``: train_loss, test_accuracy (slr: test_loss), attention_gap, output_gap, logit_gap;
            lag (steps from the output gap's pass of 0.1 to the attention gap's), step_attention_01 and _09 (the
            attention gap's passes of 0.1 and 0.9), steps_made (all of them), certified_length (letter tasks)

        Raises
        ------
        InputError : there is no such value
        """
        choice("value", name, ENDS)
        pieces = []
        for runs in self:
            values = np.array([_nan(end_value(runs, run, name)) for run in runs.runs])
            pieces.append(LabelledArray(name, values, ("seed",), {"seed": np.array(runs.seeds)}))
        return self._over_axes(pieces)

    def table(self, rows, cols, value):
        """What the runs ended with over some parameters: see `sim.pivot.pivot`."""
        from .pivot import pivot

        return pivot(self, rows, cols, value)

    def plot(self, x, y, hue=None, ax=None):
        """What the runs ended with against a parameter, or a map over two: see `sim.plots.plot`."""
        from .plots import plot

        return plot(self, x, y, hue, ax)

    def rows(self):
        """One dictionary a run: parameters that differ (task and plan always), seed, status and ``ENDS``."""
        names = [name for name in dict.fromkeys(["task", "plan", *self.axes, *self.parameters])
                 if name in ("task", "plan") or len({parameter(runs.config, name) for runs in self}) > 1]
        ends = [name for name in ENDS if name != "certified_length"]  # which takes long
        return [
            {name: parameter(runs.config, name) for name in names}
            | {"seed": run.seed, "status": run.status} | {name: end_value(runs, run, name) for name in ends}
            for runs in self for run in runs.runs
        ]

    def to_pandas(self):
        """A ``pandas.DataFrame`` of `rows` (needs pandas)."""
        import pandas

        return pandas.DataFrame(self.rows()).dropna(axis="columns", how="all")

    def to_xarray(self):
        """An ``xarray.Dataset`` of all `end` values over axes and seed (needs xarray)."""
        import xarray

        arrays = [self.end(name) for name in ENDS if name != "certified_length"]
        return xarray.Dataset({array.name: array.to_xarray() for array in arrays if not np.isnan(array.values).all()})

    def _over_axes(self, pieces):
        """Put one labelled array a configuration together, over the axes."""
        first = pieces[0]
        if len({piece.dims for piece in pieces}) > 1:
            raise InputError(f"{first.name} has other dimensions in other tasks; choose one with where(task=...)")
        coords = {dim: _union([piece.coords[dim] for piece in pieces]) for dim in first.dims}
        shape = [len(labels) for labels in (*self.axes.values(), *coords.values())]
        if np.prod(shape, dtype=float) > LARGEST:
            raise InputError(f"{first.name} over {', '.join(self.axes)} has {' x '.join(map(str, shape))} entries; "
                             "choose some runs with where")
        values = np.full(shape, np.nan)
        for runs, piece in zip(self, pieces, strict=True):
            at = [labels.index(parameter(runs.config, name)) for name, labels in self.axes.items()]
            block = np.ix_(*(np.searchsorted(coords[dim], piece.coords[dim]) for dim in first.dims))
            values[tuple(at)][block] = piece.values
        labels = {name: np.array([_plain(label) for label in found]) for name, found in self.axes.items()}
        return LabelledArray(first.name, values, (*self.axes, *first.dims), labels | coords)


def parameter(config, name):
    """A parameter of a configuration: a number or text; of several phases or layers a text such as "18, 0.5".

    Examples
    --------
    >>> from sim.config import resolve
    >>> config = resolve("occurrence", "O(1x)->A(1x)->O", rate_o=[18, 0.5], rate_a=300)
    >>> parameter(config, "rate_o"), parameter(config, "rate_a"), parameter(config, "init_scale")
    ('18, 0.5', 300.0, 0.1)
    """
    value = _parameters(config).get(name)
    if isinstance(value, list):
        value = value[0] if len(set(value)) == 1 else ", ".join(f"{entry:.12g}" for entry in value)
    return value


@lru_cache(maxsize=100_000)
def _parameters(config):
    return config.to_dict()


def end_value(runs, run, name):
    """What one of the ``runs`` ended with: a number, or None where it diverged or there is no such value."""
    if run.diverged:
        return None
    if name == "lag":
        return run.lag
    if name in CROSSINGS:
        return run.first_step_above(CROSSINGS[name])
    if name == "steps_made":
        return len(run.train_loss) - 1
    if name == "certified_length":
        return _certified_length(runs.task, run)
    if name in run.gaps:
        return _number(run.gaps[name][-1].max())
    series = {"train_loss": run.train_loss, runs.task.test_metric: run.test_metric}.get(name)
    return None if series is None else _number(series[-1])


def _certified_length(task, run):
    from analytic.certificate import certify

    if not hasattr(task, "language"):
        return None
    attention, output = (run.parameters[name][-1] for name in task.layers)
    try:
        return float(certify(task.language, attention, output).length)
    except OverflowError:
        return math.inf


def _number(value):
    return None if math.isnan(value) else float(value)


def _nan(value):
    return math.nan if value is None else value


def _plain(label):
    """A label for an axis: NaN where a task has no such parameter."""
    return math.nan if label is None else label


def _in_order(values):
    """The different values: numbers by size, others as they come."""
    found = list(dict.fromkeys(values))
    return sorted(found) if all(isinstance(value, (int, float)) for value in found) else found


def _canonical(name, label):
    """A text that two ways of writing one label share."""
    if name == "plan":
        return str(parse_plan(label))
    text = str(label).replace(" ", "")
    try:
        return f"{float(text):.12g}"
    except ValueError:
        return text


def _union(coordinates):
    return np.unique(np.concatenate(coordinates))
