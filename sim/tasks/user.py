"""Tasks of a user's own, from a Python file.

    attnlag check-task my_task.py
    attnlag run my_task.py --plan joint

Both run the file, and so does `load_task`; nothing else does: a stored run or a specification that names a file never
makes Python of it. The file defines one class derived from `Task`. A stored configuration keeps the hash of the file's
content, so that an edited task has runs of its own.
"""

import hashlib
import math
import re
import sys
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from numbers import Integral
from pathlib import Path
from types import ModuleType

import numpy as np

from analytic.errors import InputError, real, shown, whole

from .. import store
from ..config import RunConfig
from .streams import INIT, stream

_classes = {}  # (file name, hash of its content): class, the last loaded last
_LAYER = re.compile(r"(\w+)\(([\w,]+)\)")


@dataclass(frozen=True)
class Task:
    """What a task of your own derives from: data, a model's loss and gradient in numpy, and what gaps mean for it.

    Annotated class attributes are the task's settings, whole numbers, real ones or text, with their defaults; they are
    given as ``run_plan("my_task.py", ..., d=8)`` and stored. You write `parameters`, `data`, `loss_and_gradient`,
    `test` and `gaps`; the rest may stay as it is. Attention comes first, the output layer second, everywhere.

    Examples
    --------
    >>> class Mean(Task):
    ...     d: int = 3
    ...     def parameters(self):
    ...         return {"a": {"letter": self.d}, "b": {"letter": self.d}}
    >>> Mean(d=4)
    Mean(d=4)
    """

    test_metric = "test_accuracy"  # or "test_loss": what `test` returns
    rate_a = rate_o = 1.0  # rates of phases for which none is given
    steps = 2000  # limit of phases without a count
    init_scale = 0.1  # standard deviation of the random init

    def __init_subclass__(cls):
        super().__init_subclass__()
        dataclass(frozen=True)(cls)

    def parameters(self):
        """{name: {axis: size}} of the two parameters; an axis called ``letter`` counts from 1, the others from 0."""
        raise NotImplementedError

    def data(self, seed):
        """(training data, test data), in any form; the same for the same seed."""
        raise NotImplementedError

    def loss_and_gradient(self, data, attention, output):
        """(loss, its gradient by ``attention``, its gradient by ``output``), without changing any argument."""
        raise NotImplementedError

    def test(self, data, attention, output):
        """The value of ``test_metric`` on test data: a number."""
        raise NotImplementedError

    def gaps(self, attention, output):
        """{"attention_gap": number, "output_gap": number}, each 1 for the ideal model, and more by any names."""
        raise NotImplementedError

    def initial(self, seed, init, scale):
        """The two parameters before training: zeros, or independent N(0, scale^2) entries, a scale each."""
        rng = stream(seed, INIT)
        shapes = [tuple(axes.values()) for axes in self.parameters().values()]
        if init == "zero":
            return tuple(map(np.zeros, shapes))
        return tuple(one * rng.standard_normal(shape) for one, shape in zip(scale, shapes, strict=True))

    def ideal(self):
        """(attention, output) of a model both of whose gaps are 1, or None; for `attnlag check-task`."""
        return None

    def invariances(self):
        """{what it is: function (attention, output) -> (attention, output) that keeps every loss}; may be empty."""
        return {}

    def nbytes(self):
        """About how much memory the data need."""
        return 0.0


def is_file(name):
    """Does a task's name say that it is in a file?"""
    return isinstance(name, str) and name.endswith(".py")


def load_task(path):
    """Run a user's Python file and make its task known under the file's name, which is returned.

    Raises
    ------
    InputError : the file fails, or does not define exactly one class derived from `Task` with defaults
    OSError : the file cannot be read
    """
    path = Path(path)
    content = store.read_bytes(path)
    source = hashlib.sha256(content).hexdigest()[:16]
    key = path.name, source
    cls = _classes.pop(key, None) or _defined(path, content)
    _classes[key] = cls
    return path.name


def _defined(path, content):
    """The class that a file defines; the bytes that were hashed are run."""
    module = ModuleType(f"attnlag_task_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    with calling(path.name):
        exec(compile(content, str(path), "exec"), module.__dict__)
    found = [value for value in vars(module).values()
             if isinstance(value, type) and issubclass(value, Task) and value.__module__ == module.__name__]
    if len(found) != 1:
        names = ", ".join(cls.__name__ for cls in found) or "none"
        raise InputError(f"{path.name} must define one class derived from sim.Task, not {len(found)} ({names})")
    taken = {*(field.name for field in fields(RunConfig)), "source", "model", "seeds", "jobs", "progress", "out"}
    for field in fields(found[0]):
        if field.name in taken:
            raise InputError(f"{path.name}: {field.name} is a name that every run has and cannot be a setting")
        if field.default is MISSING or type(field.default) not in (int, float, str):
            raise InputError(f"{path.name}: setting {field.name} needs a default that is a number or text")
    return found[0]


@contextmanager
def calling(name):
    """Say which part of a user's task failed, and at which of its lines."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit) as error:
        line, trace = "", error.__traceback__
        while trace:
            if Path(trace.tb_frame.f_code.co_filename).name == name.split()[0]:
                line = f" (line {trace.tb_lineno})"
            trace = trace.tb_next
        raise InputError(f"{name} failed{line}: {type(error).__name__}: {error}") from error


def make_own(name, source=None, model=None, **settings):
    """The task in the file of that name: as loaded, or else what can be read of its stored runs.

    ``source`` and ``model`` come from a stored configuration: hash of the file, names of parameters and metric.
    """
    name = Path(name).name
    keys = [key for key in _classes if key[0] == name and source in (None, key[1])]
    if keys:
        return _made(name, keys[-1][1], _classes[keys[-1]], settings)
    if source is None or model is None:
        raise InputError(f"task {name} is a Python file that nobody has loaded: attnlag run and sim.load_task run it")
    return StoredTask(name, str(source), str(model), tuple(sorted(settings.items())))


def loaded_setting_names():
    """Names of the settings of all loaded tasks."""
    return [field.name for cls in _classes.values() for field in fields(cls)]


def _made(name, source, cls, settings):
    own = {field.name: field.default for field in fields(cls)}
    for key in settings:
        if key not in own:
            raise InputError(f"{key} is not a setting of task {name}, whose settings are {', '.join(own) or 'none'}")
    given = {key: _like(own[key], key, value) for key, value in settings.items()}
    with calling(f"{name} ({cls.__name__})"):
        return LoadedTask(name, source, cls(**given))


def _like(default, name, value):
    """A setting of the default's type."""
    if isinstance(default, float):
        return real(name, value)
    kind, called = (Integral, "a whole number") if isinstance(default, int) else (str, "text")
    if not isinstance(value, kind) or isinstance(value, bool):
        raise InputError(f"{name} must be {called}, not {shown(value)}")
    return type(default)(value)


def _model(layers, metric):
    return " ".join(f"{name}({','.join(axes)})" for name, axes in layers.items()) + f" {metric}"


@dataclass(frozen=True)
class LoadedTask:
    """A user's task with the interface of `sim.tasks`: full-batch descent, gaps of many states, errors that say where.

    ``own`` is the user's object; methods that fail do so as `InputError` with the file's line.
    """

    name: str
    source: str
    own: Task

    heads = 1
    gap_offsets = None

    def __post_init__(self):
        with calling(f"{self.name} parameters()"):
            layers = {name: tuple(axes) for name, axes in self.own.parameters().items()}
            shapes = tuple(tuple(whole(axis, size) for axis, size in axes.items())
                           for axes in self.own.parameters().values())
        if len(layers) != 2 or not all(_LAYER.fullmatch(f"{name}({','.join(axes)})") for name, axes in layers.items()):
            raise InputError(f"{self.name}: parameters() must name two parameters and their axes, not {shown(layers)}")
        for field, value in {"layers": tuple(layers), "axes": tuple(layers.values()), "shapes": shapes,
                             "test_metric": self.own.test_metric}.items():
            object.__setattr__(self, field, value)

    def settings(self):
        """All settings, the file's hash and the names of what is stored among them."""
        layers = dict(zip(self.layers, self.axes, strict=True))
        return {**self.facts(), "source": self.source, "model": _model(layers, self.test_metric)}

    def facts(self):
        """The user's own settings."""
        return {field.name: getattr(self.own, field.name) for field in fields(self.own)}

    def describe(self):
        """The same for people."""
        return _described(self.facts(), self.source)

    def nbytes(self):
        return float(self.own.nbytes())

    def data(self, seed):
        with calling(f"{self.name} data({seed})"):
            train, test = self.own.data(seed)
        return train, test

    def initial(self, seed, init, scale):
        with calling(f"{self.name} initial()"):
            state = tuple(np.array(value, dtype=np.float64) for value in self.own.initial(seed, init, scale))
        if tuple(value.shape for value in state) != self.shapes:
            found = " and ".join(str(value.shape) for value in state)
            raise InputError(f"{self.name}: initial() has the shapes {found}, parameters() says "
                             f"{' and '.join(map(str, self.shapes))}")
        return state

    def loss_and_gradient(self, data, attention, output):
        """(float, array, array), shapes checked."""
        with calling(f"{self.name} loss_and_gradient()"), np.errstate(all="ignore"):
            loss, *slopes = self.own.loss_and_gradient(data, _locked(attention), _locked(output))
            loss, slopes = float(loss), [np.asarray(slope, dtype=np.float64) for slope in slopes]
        if tuple(slope.shape for slope in slopes) != self.shapes:
            found = " and ".join(str(slope.shape) for slope in slopes)
            raise InputError(f"{self.name}: loss_and_gradient() has gradients of the shapes {found}, not "
                             f"{' and '.join(map(str, self.shapes))}")
        return loss, *slopes

    def descend(self, train, parameters, rate_a, rate_o, steps, loss_limit):
        """Full-batch gradient descent, both layers updated at once from the same gradient; a rate of 0 freezes.

        Returns (loss, attention, output) of the states after t = 0..steps updates, up to the first whose loss is not
        finite or above ``loss_limit``. The bits do not depend on how a run is cut into calls.
        """
        state, path = tuple(parameters), []
        for _ in range(steps + 1):
            loss, *slopes = self.loss_and_gradient(train, *state)
            path.append((loss, *state))
            if not loss <= loss_limit or not math.isfinite(loss):
                break
            state = tuple(value - rate * slope if rate else value
                          for value, rate, slope in zip(state, (rate_a, rate_o), slopes, strict=True))
        return tuple(map(np.stack, zip(*path, strict=True)))

    def test(self, test, parameters):
        with calling(f"{self.name} test()"), np.errstate(all="ignore"):
            return float(self.own.test(test, *map(_locked, parameters)))

    def gaps(self, attention, output):
        """{name: (T, 1)} of parameters (T, ...)."""
        with calling(f"{self.name} gaps()"), np.errstate(all="ignore"):
            rows = [self.own.gaps(*map(_locked, state)) for state in zip(attention, output, strict=True)]
            found = {name: np.array([[float(row[name])] for row in rows]) for name in rows[0]}
        for name in ("attention_gap", "output_gap"):
            if name not in found:
                raise InputError(f"{self.name}: gaps() must have an {name}, not only {', '.join(found)}")
        return found


@dataclass(frozen=True)
class StoredTask:
    """What the stored runs of a file that is not loaded say of its task: enough to read them, not to train."""

    name: str
    source: str
    model: str
    given: tuple

    heads = 1
    gap_offsets = None

    def __post_init__(self):
        *layers, metric = self.model.split() or [""]
        found = [_LAYER.fullmatch(layer) for layer in layers]
        if len(found) != 2 or not all(found):
            raise InputError(f"model must name two parameters and a metric, not {shown(self.model)}")
        object.__setattr__(self, "layers", tuple(match[1] for match in found))
        object.__setattr__(self, "axes", tuple(tuple(match[2].split(",")) for match in found))
        object.__setattr__(self, "test_metric", metric)

    def settings(self):
        return {**dict(self.given), "source": self.source, "model": self.model}

    def facts(self):
        return dict(self.given)

    def describe(self):
        return _described(self.facts(), self.source)

    def nbytes(self):
        return 0.0

    def __getattr__(self, name):
        if name in ("own", "data", "initial", "descend", "test", "gaps"):
            raise InputError(f"{self.name} (content {self.source}) is not loaded: its stored runs can be read, but to "
                             f"train, name the file as it was: attnlag run {self.name}, or sim.load_task")
        raise AttributeError(name)


def _locked(array):
    """The array, for those who may only read it."""
    view = array.view()
    view.flags.writeable = False
    return view


def _described(facts, source):
    return ", ".join([*(f"{name} {value}" for name, value in facts.items()), f"content {source}"])
