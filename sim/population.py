"""A plan on infinite data, from zero init: the population counterpart of `sim.descent`."""

import math
from dataclasses import dataclass

import numpy as np

from analytic.errors import InputError

from .descent import BLOW_UP
from .plans import parse_plan


@dataclass(frozen=True)
class Trajectory:
    """A plan on infinite data; arrays over steps t = 0..T, index t the state after t updates.

    Attributes
    ----------
    series : {name: array}, each an attribute too: loss, accuracy, attention_gap, output_gap, and numbers that say the
        whole state; NaN where a quantity does not exist (accuracy of slr; even pairs' output gap is left out: NaN)
    phase_ends : step at the end of each phase
    left_out : bound on the mass that the expectations leave out
    """

    series: dict
    phase_ends: tuple
    left_out: float = 0.0

    def __getattr__(self, name):
        if name in self.__dict__.get("series", ()):
            return self.series[name]
        raise AttributeError(f"no {name!r} on infinite data")

    def first_above(self, name, threshold):
        """First step at which a quantity is above ``threshold``, or None."""
        above = np.flatnonzero(self.series[name] > threshold)
        return above[0].item() if above.size else None


def population(config):
    """The plan of a `RunConfig` on infinite data, from zero init.

    A phase without a count runs to its limit: there is no stopping rule.

    Parameters
    ----------
    config : configuration of occurrence or OR with one head, even_pairs, icl_bigram or slr; sample sizes and init are
        not used

    Returns
    -------
    path : `Trajectory`
    diverged : True iff the loss passed 1e6 max(1, initial loss) or was not finite; the path ends there

    Raises
    ------
    InputError : infinite data of the task are not known

    Examples
    --------
    >>> from sim.config import resolve
    >>> path, diverged = population(resolve("occurrence", "joint(142x)"))
    >>> path.first_above("attention_gap", 0.9), diverged
    (142, False)
    >>> population(resolve("icl_bigram", "O(1x)->A(1x)"))[0].accuracy.tolist()
    [0.0, 0.0, 1.0]
    """
    task = config.make_task()
    path_of = PATHS.get(task.name, _letters)
    phases, rates_a, rates_o = [], iter(config.rate_a), iter(config.rate_o)
    for phase, steps in zip(parse_plan(config.plan).phases, config.steps, strict=True):
        rate_a = next(rates_a) if "A" in phase.layers else 0.0
        rate_o = next(rates_o) if "O" in phase.layers else 0.0
        phases.append((phase.layers, steps, rate_o, rate_a))
    start = path_of(task, [], math.inf)
    limit = BLOW_UP * max(1.0, start.loss[0])
    with np.errstate(over="ignore", invalid="ignore"):  # a loss that overflows is reported, not warned of
        path = path_of(task, phases, limit)
    return path, not (math.isfinite(path.loss[-1]) and path.loss[-1] <= limit)


def _letters(task, phases, limit):
    from analytic.lengths import parse_law
    from analytic.population import population_path

    if not getattr(task, "is_any", False) or task.heads != 1:
        known = "occurrence or or with one head, even_pairs, icl_bigram or slr"
        raise InputError(f"task must be {known}, not {task.name}: {task.describe()}")
    path = population_path(task.d, task.targets, parse_law(task.length), phases, loss_limit=limit)
    names = ("loss", "accuracy", "attention_gap", "output_gap", "logit_gap", "beta_target", "beta_other")
    return Trajectory({name: getattr(path, name) for name in names}, path.phase_ends, path.left_out)


def _even_pairs(task, phases, limit):
    """The data are the whole population; symmetric states, up to the first loss above the limit."""
    from analytic.even_pairs import symmetric_path

    path = symmetric_path(task.max_length, 0.0, 0.0, 0)
    pieces, ends = [(path.loss, path.accuracy, path.attention_gap)], []
    for _, steps, rate_o, rate_a in phases:
        path = symmetric_path(task.max_length, rate_a, rate_o, steps, (path.scores, path.weights))
        kept = slice(1, 2 + int(np.argmax(np.append(~(path.loss[1:] <= limit), True))))
        pieces.append((path.loss[kept], path.accuracy[kept], path.attention_gap[kept]))
        ends.append(sum(len(piece[0]) for piece in pieces) - 1)
        if not path.loss[kept][-1] <= limit:
            break
    loss, accuracy, attention_gap = map(np.concatenate, zip(*pieces, strict=True))
    missing = np.full(len(loss), np.nan)
    return Trajectory({"loss": loss, "accuracy": accuracy, "attention_gap": attention_gap, "output_gap": missing},
                      tuple(ends))


def _icl_bigram(task, phases, limit):
    from analytic.icl_bigram import population_path

    path = population_path(task.d, task.pairs, phases, loss_limit=limit)
    names = ("loss", "accuracy", "attention_gap", "output_gap", "a", "b")
    return Trajectory({name: getattr(path, name) for name in names}, path.phase_ends)


def _slr(task, phases, limit):
    """From zero init k = a k* and v = c v*: both cosines are 0, then 1 or -1; share is the attention on the token."""
    from analytic.slr import line_path

    path = line_path(task.d, task.tokens, task.noise, phases, loss_limit=limit)
    return Trajectory({
        "loss": path.loss, "accuracy": np.full(len(path.loss), np.nan), "attention_gap": np.sign(path.a),
        "output_gap": np.sign(path.c), "share": path.share, "a": path.a, "c": path.c,
    }, path.phase_ends)


PATHS = {"even_pairs": _even_pairs, "icl_bigram": _icl_bigram, "slr": _slr}
