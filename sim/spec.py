"""Sweep specifications: a TOML file to the runs it names, checked in full before anything runs.

    plan = "joint"                       parameters of every run: task, plan, seeds, and all that `sim.run_plan` takes
    seeds = "0:5"

    [grid]                               every combination of these
    d = [10, 20, 50]
    init_scale = {geomspace = [0.01, 1, 5]}

    [zip]                                first with first, second with second, ...
    rate_o = [1.0, 2.0]
    rate_a = [2.0, 4.0]

    [[list]]                             one table after the other; each may have axes of its own
    task = "occurrence"
    [[list]]
    task = "or"
    grid.targets = [2, 3]

The runs are all combinations of the points of the grid, of the zip and of the list.
"""

import inspect
import math
import re
import tomllib
from bisect import bisect_left
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product

import numpy as np

from analytic.errors import InputError, real, shown, whole

from . import store
from .config import resolve
from .seeds import parse_seeds
from .tasks import NAMED, setting_names
from .tasks.user import loaded_setting_names

AXES = ("grid", "zip", "list")
SPACES = {"linspace": np.linspace, "geomspace": np.geomspace}
AN_AXIS = "a list of values, {linspace = [from, to, number]} or {geomspace = [from, to, number]}"
DIGITS = 12  # of the points of a space: the same on every machine, whatever its last bit of a logarithm
LARGEST_FILE = 2**20  # bytes
MOST = 10**6  # points, and runs


@dataclass(frozen=True)
class Spec:
    """The runs of a sweep.

    Attributes
    ----------
    groups : {`RunConfig`: list of seeds}, in the order of the specification
    axes : names of the parameters that vary, in that order
    """

    groups: dict
    axes: tuple

    def __len__(self):
        return sum(map(len, self.groups.values()))

    def pairs(self, shard=(1, 1)):
        """(configuration, seed) of shard i of n: all configurations' first seeds, then their second ones, ...

        Runs go to the shards in turn, one place further for each seed, so that every shard gets dear and cheap ones.
        """
        number, count = shard
        by_rank = [(rank, place, config, seed) for place, (config, seeds) in enumerate(self.groups.items())
                   for rank, seed in enumerate(seeds)]
        by_rank.sort(key=lambda entry: entry[:2])
        return [(config, seed) for rank, place, config, seed in by_rank if (rank + place) % count == number - 1]


@dataclass(frozen=True)
class _Given:
    """A value with the place it comes from: keys from the top of the file."""

    value: object
    place: tuple
    varies: bool = False


def read_spec(path, changes=()):
    """The `Spec` in a TOML file, with some keys changed by texts such as "d=50" or "grid.d=[10, 20]".

    Raises
    ------
    InputError : anything is wrong with it, in one line that names the key and the line of the file
    OSError : the file cannot be read
    """
    source = _Source(path, changes)
    points = _points(source, source.table, ())
    source.check_names(points)
    groups, runs = {}, 0
    for point in points:
        seeds = groups.setdefault(source.resolve(point), {})
        runs -= len(seeds)
        seeds.update(dict.fromkeys(point["seeds"].value if "seeds" in point else parse_seeds("0:3")))
        runs += len(seeds)
        if runs > MOST:
            raise InputError(f"{path} names more than {MOST} runs")
    axes = dict.fromkeys(name for point in points for name, given in point.items() if given.varies and name != "seeds")
    return Spec({config: list(seeds) for config, seeds in groups.items()}, tuple(axes))


# ---- points ----------------------------------------------------------------------------------------------------------


def _points(source, table, place):
    """Points ({name: `_Given`}) of a table: its parameters, and all combinations of its axes."""
    fixed = {name: source.given(value, (*place, name)) for name, value in table.items() if name not in AXES}
    parts = [[fixed]]
    for kind, points in (("grid", _grid), ("zip", _zips), ("list", _list)):
        if kind in table:
            parts += points(source, table[kind], (*place, kind))
    if math.prod(map(len, parts)) > MOST:
        source.fail(place or ("grid",), f"more than {MOST} combinations")
    source.check_once(parts)
    return [{name: given for part in parts for name, given in part.items()} for parts in product(*parts)]


def _grid(source, table, place):
    """One part an axis."""
    return [[{name: given} for given in values] for name, values in _axes(source, table, place).items()]


def _zips(source, tables, place):
    """One part a group of axes that go together; [[zip]] makes several groups."""
    several = isinstance(tables, list)
    groups = enumerate(tables) if several else [(None, tables)]
    return [_zip(source, table, place if index is None else (*place, index)) for index, table in groups]


def _zip(source, table, place):
    axes = _axes(source, table, place)
    if len({len(values) for values in axes.values()}) > 1:
        lengths = ", ".join(f"{name} has {len(values)}" for name, values in axes.items())
        source.fail(place, f"the axes of zip must be equally long: {lengths}")
    return [dict(zip(axes, values, strict=True)) for values in zip(*axes.values(), strict=True)]


def _list(source, tables, place):
    """One part: the points of one table after the other."""
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        source.fail(place, "list must be one or more tables, each under [[list]]")
    points = []
    for index, table in enumerate(tables):
        found = _points(source, table, (*place, index))
        points += [{name: _Given(given.value, given.place, True) for name, given in point.items()} for point in found]
    return [points]


def _axes(source, table, place):
    """{name: values, each `_Given`} of a table of axes."""
    if not isinstance(table, dict) or not table:
        kind = next(key for key in reversed(place) if key in AXES)
        source.fail(place, f"{kind} must be a table of one or more axes such as d = [10, 20]")
    return {name: [_Given(value, (*place, name), True) for value in _axis(source, values, (*place, name))]
            for name, values in table.items()}


def _axis(source, values, place):
    """The values of one axis."""
    name = place[-1]
    if name == "seeds" and "grid" in place:
        return [[seed] for seed in source.seeds(values, place)]
    if isinstance(values, dict):
        values = _space(source, values, place)
    if not isinstance(values, list):
        source.fail(place, f"{name} must be {AN_AXIS}, not {shown(str(values))}")
    if not values:
        source.fail(place, f"{name} is an empty axis")
    if len(set(map(repr, values))) < len(values):
        twice = next(value for index, value in enumerate(values) if repr(value) in map(repr, values[:index]))
        source.fail(place, f"{name} has the value {twice!r} twice")
    return [source.seeds([value], place) for value in values] if name == "seeds" else values


def _space(source, table, place):
    """{linspace = [from, to, number]}, both ends included, or the same with geomspace: equal ratios."""
    (kind, arguments), *more = table.items() or [("", None)]
    if more or kind not in SPACES or not isinstance(arguments, list) or len(arguments) != 3:
        source.fail(place, f"{place[-1]} must be {AN_AXIS}, not {shown(str(table))}")
    with source.at(place):
        low = 0.0 if kind == "geomspace" else -math.inf
        ends = [real(f"{place[-1]}: {kind}", end, low, open_low=kind == "geomspace") for end in arguments[:2]]
        number = whole(f"{place[-1]}: number of points", arguments[2], 2, MOST)
    values = [float(f"{value:.{DIGITS}g}") for value in SPACES[kind](*ends, number).tolist()]
    whole_ends = all(isinstance(end, int) for end in arguments[:2])
    return [int(value) if whole_ends and value.is_integer() else value for value in values]


# ---- the file --------------------------------------------------------------------------------------------------------


class _Source:
    """The text a specification comes from: knows the lines of its keys."""

    def __init__(self, path, changes):
        self.path, self.changed = path, {}
        data = store.read_bytes(path)
        if len(data) > LARGEST_FILE:
            raise InputError(f"{path} has more than {LARGEST_FILE} bytes: not a sweep's specification")
        try:
            self.text = data.decode()
            self.table = tomllib.loads(self.text)
        except (ValueError, RecursionError) as error:  # faults of TOML, text encoding, endless digits, endless nesting
            last = data.count(b"\n") + 1
            raise InputError(f"{path}: {error}".replace("at end of document", f"at the end, line {last}")) from None
        for change in changes:
            self._change(change)

    def _change(self, change):
        """Apply one KEY=VALUE: a parameter of every run, or an axis grid.NAME."""
        key, equals, text = change.partition("=")
        place = tuple(key.strip().split("."))
        if not equals or not all(place) or len(place) > 2 or (len(place) == 2 and place[0] != "grid"):
            raise InputError(f"set must be NAME=VALUE or grid.NAME=[VALUE, ...], not {shown(change)}")
        name = place[-1]
        for kind in ("grid", "zip"):  # the new value replaces an axis of that name
            axes = self.table.get(kind)
            if isinstance(axes, dict) and name in axes:
                del axes[name]
                if not axes:
                    del self.table[kind]
        self.table.pop(name, None)
        table = self.table.setdefault("grid", {}) if len(place) == 2 else self.table
        if not isinstance(table, dict):
            self.fail(("grid",), "grid must be a table of one or more axes such as d = [10, 20]")
        table[name] = toml_value(text.strip())
        self.changed[place] = change

    def given(self, value, place):
        return _Given(self.seeds(value, place) if place[-1] == "seeds" else value, place)

    def seeds(self, value, place):
        with self.at(place):
            return parse_seeds(value)

    def resolve(self, point):
        """The configuration of a point."""
        values = {name: given.value for name, given in point.items() if name != "seeds"}
        for name in ("task", "plan"):
            if name not in values:
                raise InputError(f"{self.path}: {name} is missing")
        try:
            return resolve(**values)
        except InputError as error:
            named = [word for word in re.findall(r"\w+", str(error)) if word in values]
            self.fail(point[named[0]].place if named else (), str(error))

    def check_names(self, points):
        """Refuse names that no run has."""
        checked = set()
        for point in points:
            for name, given in point.items():
                if name not in checked and name not in _names():
                    near = get_close_matches(name, _names(), n=1)
                    hint = f"; did you mean {near[0]}?" if near else f", which are {', '.join(_names())}"
                    self.fail(given.place, f"{shown(name)} is not a parameter of a run{hint}")
                checked.add(name)

    def check_once(self, parts):
        """Refuse a parameter that two parts give."""
        seen = {}
        for part in parts:
            here = {name: given for point in part for name, given in point.items()}
            for name, given in here.items():
                if name in seen:
                    self.fail(given.place, f"{name} is given twice: here and {self.where(seen[name].place)}")
            seen |= here

    @contextmanager
    def at(self, place):
        """Within it an `InputError` gets the line of a key."""
        try:
            yield
        except InputError as error:
            self.fail(place, str(error))

    def fail(self, place, message):
        raise InputError(f"{self.path} {self.where(place)}: {message}" if place else f"{self.path}: {message}")

    def where(self, place):
        """ "line 7", or the change that a key comes from."""
        for n in range(len(place), 0, -1):
            if place[:n] in self.changed:
                return f"--set {shown(self.changed[place[:n]])}"
        return f"line {self.line(place)}"

    def line(self, place):
        """The line at which the statement begins that sets a key.

        TOML's readers do not tell. The first lines of a file are TOML themselves if they end with a statement; the
        key comes with the first such part that has it.
        """
        name = [key for key in place if isinstance(key, str)][-1]
        lines, start, candidates = self.text.splitlines(), 0, []
        for end in range(1, len(lines) + 1):
            statement = "\n".join(lines[start:end])
            if _parsed(statement) is not None:
                if name in statement:
                    candidates.append((start, end))
                start = end
        first = bisect_left(candidates, True, key=lambda part: _holds("\n".join(lines[: part[1]]), place))
        return candidates[first][0] + 1 if first < len(candidates) else 1


def _parsed(text):
    try:
        return tomllib.loads(text)
    except ValueError:
        return None


def _holds(text, place):
    """Does a text set the key?"""
    found = _parsed(text)
    try:
        for key in place:
            found = found[key]
        return True
    except (KeyError, IndexError, TypeError):
        return False


def toml_value(text):
    """A value as TOML writes it; anything else is taken as text: 50, [1, 2], "joint" and joint."""
    try:
        table = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return table["value"] if len(table) == 1 else text


def _names():
    """Names of all parameters, of any task."""
    own = [name for name, parameter in inspect.signature(resolve).parameters.items()
           if parameter.kind is not parameter.VAR_KEYWORD]
    ours = [name for task in NAMED for name in setting_names(task)]
    return tuple(dict.fromkeys([*own, "seeds", *ours, *loaded_setting_names()]))
