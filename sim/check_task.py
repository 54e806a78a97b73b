"""Checks of a user's task: gradients against derivatives of its own loss, invariances, determinism, descent.

Every check of `CATALOGUE` is a function of a `_Probe` that returns what it found, in words, or raises `Failed`.

Derivatives come from a complex step, L'(x) v = Im L(x + i h v)/h, exact to rounding, wherever the loss accepts complex
parameters and the result agrees with differences (code such as abs() is not analytic); else from central differences of
order six, at the step width with the smallest error estimate. What is allowed follows from the numbers at hand: a
thousand roundings of the largest slope and the loss, plus ten times the error estimate of the differences.
"""

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analytic.errors import InputError

from .tasks import make_task
from .tasks.user import load_task

SEED = 0
ENTRIES = 60  # of a layer whose derivatives are taken, at most; directions test the rest
DIRECTIONS = 3
STEP = 1e-30  # of the complex step
WIDTHS = (0.2, 0.1, 0.03, 0.01, 0.003, 0.001)  # of differences
ORDER_SIX = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))  # f'(x) = sum c (f(x + j h) - f(x - j h))/h + O(h^6)
ROUNDINGS = 1000 * 2.0**-52
SPREADS = (0.0, 0.1, 1.0, 3.0)  # of random points
EXTREMES = (30.0, 1000.0)
ROUGH = 1e-4  # differences that are no better than this part of the slope decide nothing


class Failed(Exception):
    """A check found a fault; the text says which, in plain words."""


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    passed: bool
    found: str


@dataclass(frozen=True)
class TaskReport:
    """What came out of all checks."""

    task: str
    checks: tuple

    @property
    def failed(self):
        return [check for check in self.checks if not check.passed]

    def to_dict(self):
        return {"task": self.task, "checks": [vars(check) for check in self.checks], "failed": len(self.failed)}

    def __repr__(self):
        width = max(len(check.name) for check in self.checks)
        lines = [f"{'ok    ' if check.passed else 'FAILED'}  {check.name.ljust(width)}  {check.found}"
                 for check in self.checks]
        count = len(self.failed)
        return "\n".join([self.task, "", *lines, "", f"{count} of {len(lines)} checks failed" if count else
                          f"all {len(lines)} checks passed"])


def check_task(path, **settings):
    """Run a user's Python file and every check on the task it defines, and return a `TaskReport`.

    Parameters
    ----------
    path : Python file with a class derived from `sim.Task`
    **settings : the task's own

    Raises
    ------
    InputError : the file fails or defines no task, or a setting is wrong
    """
    probe = _Probe(make_task(load_task(path), **settings))
    checks = []
    for name, check in CATALOGUE.items():
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # of complex numbers that become real ones: compared below
                checks.append(Check(name, True, check(probe)))
        except (Failed, InputError) as error:
            checks.append(Check(name, False, str(error)))
    return TaskReport(f"{probe.task.name}: {probe.task.describe()}", tuple(checks))


class _Probe:
    """A task with data and points to look at it from."""

    def __init__(self, task):
        self.task = task
        self._data = None

    @property
    def data(self):
        """Training and test data of a seed."""
        if self._data is None:
            self._data = self.task.data(SEED)
        return self._data

    def point(self, *use, spread=1.0):
        """Two random parameters with entries of a size."""
        rng = np.random.default_rng([SEED, *use])
        return tuple(spread * rng.standard_normal(shape) for shape in self.task.shapes)

    def points(self):
        """(name, parameters) of ordinary points: zero, random ones of several sizes, and one on the way of training."""
        for number, spread in enumerate(SPREADS):
            yield f"entries of about {spread:g}" if spread else "zero", self.point(number, spread=spread)
        path = self.task.descend(self.data[0], self.point(9, spread=0.1), 0.1, 0.1, 20, math.inf)
        if all(np.isfinite(stack).all() for stack in path):
            yield "after 20 steps", tuple(stack[-1] for stack in path[1:])

    def extremes(self):
        """(name, parameters) where exponentials leave the range of numbers unless care was taken."""
        for size in EXTREMES:
            for layer, name in enumerate(self.task.layers):
                state = list(self.point(layer, spread=0.5))
                state[layer] = np.sign(state[layer]) * size * (1 + np.abs(np.tanh(state[layer])))
                yield f"{name} of {size:g} and more", tuple(state)

    def at(self, state, data=None):
        """(loss, gradients)."""
        return self.task.loss_and_gradient(self.data[0] if data is None else data, *state)

    def loss(self, state):
        """The loss as the user's function returns it: complex at complex parameters, or an error."""
        return self.task.own.loss_and_gradient(self.data[0], *state)[0]


# ---- derivatives -----------------------------------------------------------------------------------------------------


def _moved(state, layer, by):
    return tuple(value + by if index == layer else value for index, value in enumerate(state))


def _differences(probe, state, layer, direction):
    """(derivative, error estimate) of order six, at the best of several widths."""
    found = []
    for h in WIDTHS:
        values = [[complex(probe.loss(_moved(state, layer, sign * j * h * direction))).real for sign in (1, -1)]
                  for j, _ in ORDER_SIX]
        slope = sum(c * (up - down) for (up, down), (_, c) in zip(values, ORDER_SIX, strict=True)) / h
        found.append((slope, 4 * 2.0**-52 * np.abs(values).max() / h))
    tries = [(slope, rounding + abs(slope - wider)) for (wider, _), (slope, rounding) in pairwise(found)]
    return min(tries, key=lambda pair: pair[1] if math.isfinite(pair[1]) else math.inf)


def _complex_step(probe, state, layer, direction):
    """The derivative by a complex step, or None where the loss does not take complex parameters."""
    try:
        value = probe.loss(_moved(state, layer, 1j * STEP * direction))
    except Exception:  # whatever the user's code does with complex numbers
        return None
    return float(np.imag(value)) / STEP if np.iscomplexobj(value) and np.isfinite(value) else None


def _derivative(probe, state, layer, direction):
    """(derivative, its error, whether by complex step)."""
    slope, error = _differences(probe, state, layer, direction)
    exact = _complex_step(probe, state, layer, direction)
    if exact is not None and abs(exact - slope) <= 10 * error + ROUNDINGS * (abs(exact) + abs(slope)):
        return exact, 0.0, True
    return slope, 10 * error, False


def _unit(shape, index):
    direction = np.zeros(shape)
    direction[index] = 1.0
    return direction


def _probed(probe, state, layer, use):
    """(index or None, direction) of the derivatives to take: single entries, and random directions."""
    shape = probe.task.shapes[layer]
    rng = np.random.default_rng([SEED, use])
    flat = np.sort(rng.permutation(math.prod(shape))[:ENTRIES])
    for index in map(tuple, np.transpose(np.unravel_index(flat, shape)).tolist()):
        yield index, _unit(shape, index)
    for _ in range(DIRECTIONS):
        yield None, rng.choice([-1.0, 1.0], size=shape)


def _noise(probe, state, gradient, layer):
    """How far the gradient moves when the parameters do by a rounding."""
    rng = np.random.default_rng(SEED)
    nudged = [tuple(value + 2.0**-52 * np.maximum(1, np.abs(value)) * rng.choice([-1, 1], size=value.shape)
                    for value in state) for _ in range(3)]
    return max(np.abs(probe.at(state)[1 + layer] - gradient).max() for state in nudged)


def gradient_of(layer):
    """The check of one layer's gradient at all ordinary points."""

    def check(probe):
        worst, allowed, count, steps = 0.0, 0.0, 0, set()
        for use, (place, state) in enumerate(probe.points()):
            loss, *gradients = probe.at(state)
            gradient = gradients[layer]
            scale = np.abs(gradient).max(initial=0.0) + abs(loss)
            own = 1000 * _noise(probe, state, gradient, layer) + ROUNDINGS * scale
            pairs = []
            for index, direction in _probed(probe, state, layer, use):
                slope, error, by_complex = _derivative(probe, state, layer, direction)
                if error > ROUGH * max(scale, 1e-300):
                    raise Failed(f"at {place} the loss has no clear derivative: differences disagree by {error:.1g}; "
                                 "is it smooth, and the same when called twice?")
                tolerance = error + own * np.abs(direction).sum()
                pairs.append((index, float(np.sum(gradient * direction)), slope, tolerance))
                steps.add(by_complex)
            _compare(probe.task.layers[layer], place, pairs)
            off = max(pairs, key=lambda pair: abs(pair[1] - pair[2]))
            if abs(off[1] - off[2]) >= worst:
                worst, allowed = abs(off[1] - off[2]), off[3]
            count += len(pairs)
        how = " and ".join(["complex steps"] * (True in steps) + ["differences of order six"] * (False in steps))
        return f"within {worst:.1g} of {how}, {count} derivatives (allowed there: {allowed:.1g})"

    return check


def _compare(name, place, pairs):
    """Raise unless every slope is what was claimed; say what the gradient looks like if not."""
    wrong = [pair for pair in pairs if not abs(pair[1] - pair[2]) <= pair[3]]
    if not wrong:
        return
    index, claimed, slope, tolerance = max(wrong, key=lambda pair: (pair[0] is not None, abs(pair[1] - pair[2])))
    where = "along a random direction" if index is None else f"by {name}[{', '.join(map(str, index))}]"
    raise Failed(f"at {place} the gradient {where} is {claimed:.6g}, the loss's derivative {slope:.6g} (allowed: "
                 f"{tolerance:.1g}); {_diagnosis(pairs, len(wrong))}")


def _diagnosis(pairs, wrong):
    """What all the derivatives together suggest."""
    claimed, slopes, allowed = (np.array([pair[i] for pair in pairs]) for i in (1, 2, 3))
    ratio = float(claimed @ slopes / (slopes @ slopes)) if slopes.any() else 0.0
    if np.all(np.abs(claimed - ratio * slopes) <= np.abs(ratio) * allowed + allowed) and ratio:
        return ("every entry has the wrong sign" if abs(ratio + 1) < 1e-6 else
                f"every entry is {ratio:.6g} times what it should be")
    if np.all(np.abs(np.abs(claimed) - np.abs(slopes)) <= allowed):
        return f"{wrong} of {len(pairs)} have the wrong sign"
    return f"{wrong} of {len(pairs)} derivatives are wrong, by no common factor: look at the terms one by one"


# ---- the other checks ------------------------------------------------------------------------------------------------


def _same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def _shapes(probe):
    state = probe.task.initial(SEED, "random", (0.1, 0.1))
    loss, *_ = probe.at(state)
    probe.at(state, probe.data[1])  # test data go through the same function
    if not math.isfinite(loss):
        raise Failed(f"the loss at the init is {loss}")
    if any(value.any() for value in probe.task.initial(SEED, "zero", (0.1, 0.1))):
        raise Failed('initial(seed, "zero", scale) is not zero')
    sizes = ", ".join(f"{name} {shape}" for name, shape in zip(probe.task.layers, probe.task.shapes, strict=True))
    return f"{sizes}; gradients alike"


def _data(probe):
    state = probe.point(1)
    for which, ours, again in zip(("training", "test"), probe.data, probe.task.data(SEED), strict=True):
        if not _same(probe.at(state, ours), probe.at(state, again)):
            raise Failed(f"data({SEED}) twice has different {which} data: take random numbers from a generator that is "
                         "made from the seed")
    other = probe.task.data(SEED + 1)
    return "the same for the same seed" + (
        "; all seeds have the same" if _same(probe.at(state), probe.at(state, other[0])) else "")


def _init(probe):
    scale = (0.1, 0.2)
    first = probe.task.initial(SEED, "random", scale)
    np.random.random()  # noqa: NPY002 (what others draw must not matter)
    if not _same(first, probe.task.initial(SEED, "random", scale)):
        raise Failed("initial() twice has different parameters: take random numbers from a generator that is made from "
                     "the seed")
    if _same(first, probe.task.initial(SEED + 1, "random", scale)):
        raise Failed("the random init is the same for two seeds")
    return "the same for the same seed, different for another"


def _untouched(probe):
    state = probe.point(2)
    before = [value.copy() for value in state]
    first = probe.at(state)
    kept = [np.array(value) for value in first[1:]]
    probe.at(probe.point(3))
    probe.task.test(probe.data[1], state)
    if not _same(first[1:], kept):
        raise Failed("a gradient that was returned changes at the next call: return new arrays")
    if not _same(state, before):
        raise Failed("the parameters are changed")
    if not _same(first, probe.at(state)):
        raise Failed("the same call gives another result the second time: something is kept, or random")
    return "arguments stay as they are, the same call gives the same bits"


def _layouts(probe):
    state = probe.point(4)
    strided = tuple(np.repeat(value[..., None], 2, axis=-1)[..., 0] for value in state)
    fortran = tuple(map(np.asfortranarray, state))
    loss, *gradients = probe.at(state)
    for kind, other in (("with gaps in memory", strided), ("in Fortran order", fortran)):
        theirs = probe.at(other)
        sizes = [abs(loss), *(np.abs(gradient).max() for gradient in gradients)]
        for size, a, b in zip(sizes, (loss, *gradients), theirs, strict=True):
            if not np.all(np.abs(a - b) <= ROUNDINGS * (size + abs(loss))):
                raise Failed(f"parameters {kind} give another result")
    return "any layout of the parameters in memory gives the same"


def _threads(probe):
    states = [probe.point(5, i) for i in range(8)]
    alone = [probe.at(state) for state in states]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(probe.at, states * 4))
    if not all(_same(*pair) for pair in zip(alone * 4, together, strict=True)):
        raise Failed("calls from several threads disturb each other: keep nothing in self or in globals")
    return "calls at the same time from several threads give the same bits"


def _extreme(probe):
    for place, state in probe.extremes():
        loss, *gradients = probe.at(state)
        if not math.isfinite(loss):
            raise Failed(f"at {place} the loss is {loss}: take the largest exponent off before exp()")
        for name, gradient in zip(probe.task.layers, gradients, strict=True):
            if not np.isfinite(gradient).all():
                raise Failed(f"at {place} the gradient by {name} is not finite")
    for place, state in list(probe.extremes())[:2]:  # farther out, the slopes drown in the loss
        loss, *gradients = probe.at(state)
        for layer, gradient in enumerate(gradients):
            own = 1000 * _noise(probe, state, gradient, layer) + ROUNDINGS * (abs(loss) + np.abs(gradient).max())
            pairs = []
            for index, direction in _probed(probe, state, layer, 77):
                slope, error, _ = _derivative(probe, state, layer, direction)
                pairs.append((index, float(np.sum(gradient * direction)), slope,
                              error + own * np.abs(direction).sum()))
            _compare(probe.task.layers[layer], place, pairs)
    return f"finite with entries of {EXTREMES[-1]:g} and more, right at {EXTREMES[0]:g}"


def _descent(probe):
    start = tuple(0.1 * value for value in probe.point(6))
    rates, data, before = (0.05, 0.03), probe.data[0], probe.at(start)
    whole = probe.task.descend(data, start, *rates, 12, math.inf)
    first = probe.task.descend(data, start, *rates, 5, math.inf)
    rest = probe.task.descend(data, tuple(stack[-1] for stack in first[1:]), *rates, 7, math.inf)
    if not _same(whole, [np.concatenate([a, b[1:]]) for a, b in zip(first, rest, strict=True)]):
        raise Failed("12 steps and 5 + 7 steps end in different bits: the loss depends on earlier calls")
    if not _same(before, probe.at(start)):
        raise Failed("training changes the data")
    for layer, name in enumerate(probe.task.layers):
        frozen = [0.0 if index == layer else rate for index, rate in enumerate(rates)]
        path = probe.task.descend(data, start, *frozen, 5, math.inf)
        if not np.all(path[1 + layer] == start[layer]):
            raise Failed(f"{name} moves at rate 0")
    return "12 steps are 5 + 7 steps bit for bit, rate 0 freezes a layer, the data stay as they are"


def _metric(probe):
    values = [probe.task.test(probe.data[1], state) for _, state in probe.points()]
    again = [probe.task.test(probe.data[1], state) for _, state in probe.points()]
    if not np.array_equal(values, again):
        raise Failed("test() twice gives different numbers")
    if not np.isfinite(values).all():
        raise Failed("test() is not finite")
    if "accuracy" in probe.task.test_metric and not all(0 <= value <= 1 for value in values):
        raise Failed(f"an accuracy must be in [0, 1], not {max(values, key=abs):g}")
    return f"{probe.task.test_metric} from {min(values):.3g} to {max(values):.3g} at the points looked at"


def _gaps(probe):
    stack = [np.stack(values) for values in zip(*(state for _, state in probe.points()), strict=True)]
    gaps = probe.task.gaps(*stack)
    for name, values in gaps.items():
        if not np.isfinite(values).all():
            raise Failed(f"{name} is not finite at {list(probe.points())[int(np.argmin(np.isfinite(values)))][0]}")
    if (ideal := probe.task.own.ideal()) is None:
        return f"{', '.join(gaps)}; no ideal() to be 1 at"
    at = probe.task.gaps(*(np.asarray(value, dtype=np.float64)[None] for value in ideal))
    for name in ("attention_gap", "output_gap"):
        if not abs(at[name].item() - 1) <= 1e-6:
            raise Failed(f"{name} is {at[name].item():.6g} at the ideal, not 1")
    return f"{', '.join(gaps)}; 1 at the ideal"


def _invariances(probe):
    declared = probe.task.own.invariances()
    worst = 0.0
    for name, change in declared.items():
        for place, state in probe.points():
            moved = tuple(np.asarray(value, dtype=np.float64) for value in change(*state))
            loss, other = probe.at(state)[0], probe.at(moved)[0]
            size = 1 + max(np.abs(value).max() for value in (*state, *moved))
            off = abs(loss - other)
            if not off <= ROUNDINGS * size * (1 + abs(loss)):
                raise Failed(f"{name} changes the loss at {place} from {loss:.9g} to {other:.9g}")
            worst = max(worst, off)
    return f"{', '.join(declared)}: the loss moves by {worst:.1g}" if declared else "none declared"


CATALOGUE = {
    "shapes": _shapes,
    "data": _data,
    "init": _init,
    "loss and gradient": _untouched,
    "memory layout": _layouts,
    "threads": _threads,
    "gradient of attention": gradient_of(0),
    "gradient of output": gradient_of(1),
    "extreme parameters": _extreme,
    "descent": _descent,
    "test metric": _metric,
    "gaps": _gaps,
    "invariances": _invariances,
}
