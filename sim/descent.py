"""Run a plan on a task: full-batch gradient descent, phase by phase, recorded.

Record t is the state after t updates. Train loss and gaps are kept at every step, the test metric every
``record_every`` steps and at the ends of phases, the parameters at the ends of phases (index 0: the init).
"""

import math
from dataclasses import dataclass

import numpy as np

from analytic.errors import InputError

from .config import CHUNK
from .plans import parse_plan
from .tasks import NAMED, make_task

STALLED = 1e-6  # a phase without a count stops when CHUNK steps change the train loss by less than this part of it
BLOW_UP = 1e6  # diverged: train loss non-finite or above BLOW_UP * max(1, initial loss)


class Interrupted(Exception):
    """The run was asked to stop before its end."""


@dataclass
class Run:
    """One finished run of one seed; arrays over steps t = 0..T unless said otherwise."""

    config: object
    seed: int
    status: str  # "ok" or "diverged"
    diverged: dict | None  # {"step", "phase", "rate_a", "rate_o"}: the update after which the loss blew up
    phase_ends: list  # step at the end of each finished phase
    train_loss: np.ndarray
    attention_gap: np.ndarray  # (T + 1, heads)
    output_gap: np.ndarray  # (T + 1, heads)
    logit_gap: np.ndarray  # (T + 1, heads)
    record: np.ndarray  # the steps at which the test metric was taken
    test_metric: np.ndarray  # at the steps of ``record``
    alpha: np.ndarray  # (phases finished + 1, heads, d)
    beta: np.ndarray  # (phases finished + 1, heads, d)

    def first_step_above(self, level, gap="attention_gap"):
        """First step at which the gap (largest over heads) exceeds ``level``, or None."""
        above = np.flatnonzero(getattr(self, gap).max(axis=1) > level)
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


def task_of(config):
    """The task a configuration was resolved for."""
    targets = config.targets if config.task in NAMED else None
    return make_task(config.task, d=config.d, targets=targets, heads=config.heads)


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
    task = task_of(config)
    words, test_words = task.data(config, seed)
    state = tuple(task.initial(config, seed))
    start = task.descend(words, state, 0.0, 0.0, 0, math.inf)
    limit = BLOW_UP * max(float(start.loss[0]), 1.0)  # in this order: nan if the loss is
    if not math.isfinite(limit):
        raise InputError(f"init_scale {config.init_scale} is too large: the loss at the init is {start.loss[0]:g}")

    recorder = _Recorder(task, config, test_words)
    recorder.keep(start, 0, phase_end=True)
    rates_a, rates_o = iter(config.rate_a), iter(config.rate_o)
    ends, kept, step, diverged = [], [state], 0, None
    for number, (phase, count) in enumerate(zip(parse_plan(config.plan).phases, config.steps, strict=True), 1):
        rates = (next(rates_a) if "A" in phase.layers else 0.0, next(rates_o) if "O" in phase.layers else 0.0)
        left = count
        while left:
            if should_stop():
                raise Interrupted
            path = task.descend(words, state, *rates, min(CHUNK, left), limit)
            if (blown := _first_blown(path, limit)) is not None:
                recorder.keep(path, step, slice(1, blown))
                diverged = {"step": step + blown, "phase": number, "rate_a": rates[0], "rate_o": rates[1]}
                break
            state, done = (path.alpha[-1], path.beta[-1]), len(path.loss) - 1
            left -= done
            if phase.steps is None and done == CHUNK and abs(path.loss[0] - path.loss[-1]) < STALLED * path.loss[0]:
                left = 0
            recorder.keep(path, step, slice(1, None), phase_end=not left)
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
        alpha=np.stack([alpha for alpha, _ in kept]),
        beta=np.stack([beta for _, beta in kept]),
        **recorder.arrays(),
    )


def _first_blown(path, limit):
    """Index of the first state whose loss is above ``limit`` or that is not finite, or None."""
    good = path.loss <= limit
    for parameters in (path.alpha, path.beta):
        good &= np.isfinite(parameters).all(axis=(1, 2))
    return None if good.all() else int(np.argmin(good))


class _Recorder:
    """Collects the records of a run, piece by piece."""

    def __init__(self, task, config, test_words):
        self.task, self.every, self.test_words = task, config.record_every, test_words
        self.loss, self.gaps, self.record, self.metric = [], [], [], []

    def keep(self, path, step, part=slice(None), phase_end=False):
        """Append ``path[part]``, where path[0] is the state after ``step`` updates."""
        steps = step + np.arange(len(path.loss))[part]
        loss, alpha, beta = path.loss[part], path.alpha[part], path.beta[part]
        self.loss.append(loss)
        self.gaps.append(self.task.gaps(alpha, beta))
        for i, t in enumerate(steps):
            if t % self.every == 0 or (phase_end and t == steps[-1]):
                self.record.append(t)
                self.metric.append(self.task.test(self.test_words, (alpha[i], beta[i])))

    def arrays(self):
        """The arrays of a `Run`."""
        gaps = {name: np.concatenate([piece[name] for piece in self.gaps]) for name in self.gaps[0]}
        return {
            "train_loss": np.concatenate(self.loss),
            **gaps,
            "record": np.array(self.record, dtype=np.int64),
            "test_metric": np.array(self.metric),
        }
