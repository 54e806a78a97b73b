"""Run a plan on a task: full-batch gradient descent, phase by phase, recorded.

Record t is the state after t updates. Train loss and gaps are kept at every step, the test metric every
``record_every`` steps and at the ends of phases, the parameters at the ends of phases (index 0: the init).
Where a task's gaps are costly they are kept at some steps of each phase and at its end, NaN elsewhere.
"""

import math
import threading
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from analytic.errors import InputError

from .config import CHUNK
from .plans import parse_plan

STALLED = 1e-6  # a phase without a count stops when CHUNK steps change the train loss by less than this part of it
BLOW_UP = 1e6  # diverged: train loss non-finite or above BLOW_UP * max(1, initial loss)


class Interrupted(Exception):
    """The run was asked to stop before its end."""


@dataclass
class Run:
    """One finished run of one seed; arrays over steps t = 0..T unless said otherwise.

    Gaps and the two parameters are attributes by their names too: ``run.attention_gap``, ``run.alpha``.
    """

    config: object
    seed: int
    status: str  # "ok" or "diverged"
    diverged: dict | None  # {"step", "phase", "rate_a", "rate_o"}: the update after which the loss blew up
    phase_ends: list  # step at the end of each finished phase
    train_loss: np.ndarray
    gaps: dict  # name: (T + 1, heads)
    record: np.ndarray  # the steps at which the test metric was taken
    test_metric: np.ndarray  # at the steps of ``record``
    parameters: dict  # name of the layer's parameter: (phases finished + 1, *its shape), attention first

    def __getattr__(self, name):
        for group in ("gaps", "parameters"):
            if name in self.__dict__.get(group, ()):
                return self.__dict__[group][name]
        raise AttributeError(f"a run of {self.__dict__.get('config')} has no {name!r}")

    def first_step_above(self, level, gap="attention_gap"):
        """First step at which the gap (largest over heads) exceeds ``level``, or None."""
        above = np.flatnonzero(self.gaps[gap].max(axis=1) > level)
        return int(above[0]) if len(above) else None

    @property
    def at_limit(self):
        """Of each finished phase: did it run to its step limit, its loss still changing? (False with a count.)"""
        spans = np.diff([0, *self.phase_ends]).tolist()
        phases = parse_plan(self.config.plan).phases
        return [phase.steps is None and span == limit
                for phase, span, limit in zip(phases, spans, self.config.steps, strict=False)]

    @property
    def lag(self):
        """Steps by which the attention gap passes 0.1 later than the output gap does; None if one never does."""
        attention, output = self.first_step_above(0.1), self.first_step_above(0.1, "output_gap")
        return None if attention is None or output is None else attention - output


def train(config, seed, should_stop=lambda: False, on_steps=lambda count: None):
    """Train one seed under a `RunConfig` and return its `Run`.

    Parameters
    ----------
    config : resolved configuration
    seed : seeds data and init; the same seed has the same data and init under every plan
    should_stop : asked between chunks of steps; `Interrupted` is raised when it says True
    on_steps : told the number of steps each chunk made

    Raises
    ------
    InputError : the loss at the init is not finite
    """
    task = config.make_task()
    data, test_data = _Data.of(task, seed)
    state = tuple(task.initial(seed, config.init, config.init_scale))
    start = task.descend(data, state, 0.0, 0.0, 0, math.inf)
    initial_loss = float(start[0][0])
    limit = BLOW_UP * max(initial_loss, 1.0)  # in this order: nan if the loss is
    if not math.isfinite(limit):
        raise InputError(f"init_scale {config.init_scale} is too large: the loss at the init is {initial_loss:g}")

    recorder = _Recorder(task, config, test_data)
    recorder.keep(start, 0, 0, ends=True)
    rates_a, rates_o = iter(config.rate_a), iter(config.rate_o)
    ends, kept, step, diverged = [], [state], 0, None
    for number, (phase, count) in enumerate(zip(parse_plan(config.plan).phases, config.steps, strict=True), 1):
        rates = (next(rates_a) if "A" in phase.layers else 0.0, next(rates_o) if "O" in phase.layers else 0.0)
        left = count
        while left:
            if should_stop():
                raise Interrupted
            path = task.descend(data, state, *rates, min(CHUNK, left), limit)
            if (blown := _first_blown(path, limit)) is not None:
                recorder.keep(path, step, count - left, slice(1, blown))
                diverged = {"step": step + blown, "phase": number, "rate_a": rates[0], "rate_o": rates[1]}
                break
            loss, *parameters = path
            state, done = tuple(stack[-1] for stack in parameters), len(loss) - 1
            offset, left = count - left, left - done
            if phase.steps is None and done == CHUNK and abs(loss[0] - loss[-1]) < STALLED * loss[0]:
                left = 0
            recorder.keep(path, step, offset, slice(1, None), ends=not left)
            step += done
            on_steps(done)
        if diverged:
            break
        ends.append(step)
        kept.append(state)
    return Run(
        config=config,
        seed=seed,
        status="diverged" if diverged else "ok",
        diverged=diverged,
        phase_ends=ends,
        parameters={name: np.stack(states) for name, states in zip(task.layers, zip(*kept, strict=True), strict=True)},
        **recorder.arrays(),
    )


class _Data:
    """The data of the last few seeds, made once for all plans: threads that need the same wait for it."""

    KEPT = 2  # a thread each on machines like ours; who comes later makes them anew
    LARGE = 2**30  # bytes that are not kept

    def __init__(self, task, seed):
        self.make, self.lock, self.data = partial(task.data, seed), threading.Lock(), None

    @classmethod
    def of(cls, task, seed):
        return task.data(seed) if task.nbytes() > cls.LARGE else cls.kept(task, seed).get()

    @staticmethod
    @lru_cache(KEPT)
    def kept(task, seed):
        return _Data(task, seed)

    def get(self):
        with self.lock:
            self.data = self.data or self.make()
        return self.data


def _first_blown(path, limit):
    """Index of the first state whose loss is above ``limit`` or that is not finite, or None."""
    loss, *parameters = path
    good = loss <= limit
    for stack in parameters:
        good &= np.isfinite(stack).reshape(len(stack), -1).all(axis=1)
    return None if good.all() else int(np.argmin(good))


class _Recorder:
    """Collects the records of a run, piece by piece."""

    def __init__(self, task, config, test_data):
        self.task, self.every, self.test_data = task, config.record_every, test_data
        self.loss, self.gaps, self.record, self.metric, self.known = [], [], [], [], {}

    def keep(self, path, step, offset, part=slice(None), ends=False):
        """Append ``path[part]``: path[0] is the state after ``step`` updates, ``offset`` of them in this phase.

        ``ends``: the last state ends a phase.
        """
        numbers = np.arange(len(path[0]))[part]
        loss, attention, output = (stack[part] for stack in path)
        self.loss.append(loss)
        self.gaps.append(self.taken(attention, output, offset + numbers, ends))
        for i, t in enumerate(step + numbers):
            if t % self.every == 0 or (ends and i == len(numbers) - 1):
                self.record.append(t)
                self.metric.append(self.task.test(self.test_data, (attention[i], output[i])))

    def taken(self, attention, output, offsets, ends):
        """The gaps of some states of a phase: of all, or of those whose turn it is, NaN for the others."""
        if self.task.gap_offsets is None or not self.known:  # the init's are always taken
            self.known = self.task.gaps(attention, output)
            return self.known
        due = np.isin(offsets, self.task.gap_offsets)
        due[len(due) - 1 :] |= ends
        gaps = {name: np.full((len(due), *values.shape[1:]), np.nan) for name, values in self.known.items()}
        if due.any():
            for name, values in self.task.gaps(attention[due], output[due]).items():
                gaps[name][due] = values
        return gaps

    def arrays(self):
        """The arrays of a `Run`."""
        return {
            "train_loss": np.concatenate(self.loss),
            "gaps": {name: np.concatenate([piece[name] for piece in self.gaps]) for name in self.gaps[0]},
            "record": np.array(self.record, dtype=np.int64),
            "test_metric": np.array(self.metric),
        }
