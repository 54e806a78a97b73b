"""What one run depends on, resolved and frozen; the same dictionary is stored with the result."""

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from functools import cached_property

from analytic.errors import InputError, choice, rate, real, whole

from .plans import parse_plan

INITS = ("random", "zero")
CHUNK = 100  # steps per kernel call, and the span of the stopping rule


@dataclass(frozen=True)
class RunConfig:
    """A resolved run configuration: everything but the seed. Use `resolve` to make one from flags."""

    task: str
    settings: tuple  # of the task, all of them: (name, value) pairs, by name
    plan: str
    init: str
    init_scale: tuple  # standard deviations of the attention's and the output layer's entries
    rate_a: tuple  # eta_A, one per phase that trains attention, in order
    rate_o: tuple  # eta_O, one per phase that trains the output layer
    steps: tuple  # per phase: its count, or the limit of a phase that runs to convergence
    record_every: int  # the test metric is recorded every so many steps and at the ends of phases

    def to_dict(self):
        """Plain JSON values, the task's settings among them."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return json.loads(json.dumps(values | dict(values.pop("settings"))))

    @classmethod
    def from_dict(cls, values):
        """Inverse of `to_dict`."""
        values = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
        own = {field.name for field in dataclasses.fields(cls)}
        settings = tuple(sorted((key, v) for key, v in values.items() if key not in own))
        return cls(settings=settings, **{key: v for key, v in values.items() if key in own})

    def make_task(self):
        """The task the configuration was resolved for."""
        from .tasks import make_task

        return make_task(self.task, **dict(self.settings))

    @cached_property
    def key(self):
        """Sixteen hex digits that name this configuration in a store."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def resolve(task, plan, *, init="random", init_scale=None, rate_a=None, rate_o=None, steps=None, record_every=10,
            **settings):
    """A `RunConfig` with every default filled in, or an `InputError` naming the wrong argument.

    ``settings`` are those of the task: see `sim.tasks.make_task`.
    """
    from .settings import settings_for
    from .tasks import make_task

    parsed = parse_plan(plan)
    model = make_task(task, **settings)
    stored = settings_for(model)
    limit = None if steps is None else whole("steps", steps)
    _check_memory(model)
    return RunConfig(
        task=model.name,
        settings=tuple(sorted(model.settings().items())),
        plan=str(parsed),
        init=choice("init", init, INITS),
        init_scale=_scales(stored.init_scale if init_scale is None else init_scale),
        rate_a=_rates("rate_a", "A", parsed, rate_a, stored),
        rate_o=_rates("rate_o", "O", parsed, rate_o, stored),
        steps=tuple(phase.steps or limit or stored.steps(phase) for phase in parsed.phases),
        record_every=whole("record_every", record_every, high=10**9),
    )


def _rates(name, layer, plan, given, stored):
    """One rate per phase that trains ``layer``: given by the user, else the stored setting."""
    trained = plan.training(layer)
    if given is None:
        return tuple(stored.rate(layer, phase) for _, phase in trained)
    given = tuple(rate(name, value) for value in (given if isinstance(given, (list, tuple)) else (given,)))
    if len(given) != len(trained):
        phases = ", ".join(f"phase {i}: {phase}" for i, phase in trained) or "none"
        raise InputError(f"{name} needs {len(trained)} value(s) for plan {plan} ({phases}), got {len(given)}")
    return given


def _check_memory(task):
    """Refuse what cannot fit: the data, and the parameters at each step of a chunk."""
    parameters = sum(array.nbytes for array in task.initial(0, "zero", (0.0, 0.0)))
    needed = task.nbytes() + CHUNK * parameters
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > present:
        shown = ", ".join(f"{name} {value}" for name, value in task.settings().items() if isinstance(value, int))
        raise InputError(f"{shown} need about {needed / 2**30:.3g} GiB a run; this machine has {present / 2**30:.3g}")


def _scales(given):
    given = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if len(given) not in (1, 2):
        raise InputError(f"init_scale needs one value, or two for attention and output layer, got {len(given)}")
    return tuple(real("init_scale", value, low=0.0) for value in (given * 2)[:2])
