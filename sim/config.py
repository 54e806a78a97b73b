"""What one run depends on, resolved and frozen; the same dictionary is stored with the result."""

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass

from analytic.errors import InputError, choice, rate, real, whole

from .plans import parse_plan

INITS = ("random", "zero")
CHUNK = 100  # steps per kernel call, and the span of the stopping rule


@dataclass(frozen=True)
class RunConfig:
    """A resolved run configuration: everything but the seed. Use `resolve` to make one from flags."""

    task: str
    plan: str
    d: int
    targets: int
    heads: int
    train_words: int
    test_words: int
    length: str  # law of the training words' length
    test_length: str
    init: str
    init_scale: tuple  # standard deviations of alpha's and beta's entries
    rate_a: tuple  # eta_A, one per phase that trains attention, in order
    rate_o: tuple  # eta_O, one per phase that trains the output layer
    steps: tuple  # per phase: its count, or the limit of a phase that runs to convergence
    record_every: int  # the test metric is recorded every so many steps and at the ends of phases

    def to_dict(self):
        """Plain JSON values."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_dict(cls, values):
        """Inverse of `to_dict`."""
        return cls(**{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})

    @property
    def key(self):
        """Sixteen hex digits that name this configuration in a store."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def resolve(task, plan, *, d=50, targets=None, heads=None, train_words=None, test_words=None, length=None,
            test_length=None, init="random", init_scale=None, rate_a=None, rate_o=None, steps=None, record_every=10):
    """A `RunConfig` with every default filled in, or an `InputError` naming the wrong argument."""
    from .settings import settings_for
    from .tasks import make_task

    parsed = parse_plan(plan)
    model = make_task(task, d=d, targets=targets, heads=heads)
    stored = settings_for(model)
    length = model.length_law(length)
    test_length = length if test_length is None else model.length_law(test_length, name="test_length")
    limit = None if steps is None else whole("steps", steps)
    train_words = whole("train_words", 5 * model.d**2 if train_words is None else train_words)
    test_words = whole("test_words", model.d**2 if test_words is None else test_words)
    _check_memory(model, train_words, test_words)
    return RunConfig(
        task=model.name,
        plan=str(parsed),
        d=model.d,
        targets=model.language.k,
        heads=model.heads,
        train_words=train_words,
        test_words=test_words,
        length=length.text,
        test_length=test_length.text,
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


def _check_memory(model, train_words, test_words):
    """Refuse what cannot fit: about 1.6 bytes a count, and 16 a parameter and step of a chunk of steps."""
    needed = 1.6 * model.d * (train_words + test_words) + 16.0 * CHUNK * model.heads * model.d
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > present:
        raise InputError(
            f"d {model.d}, train_words {train_words}, test_words {test_words} and heads {model.heads} need about "
            f"{needed / 2**30:.3g} GiB a run; this machine has {present / 2**30:.3g}"
        )


def _scales(given):
    given = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    if len(given) not in (1, 2):
        raise InputError(f"init_scale needs one value, or two for alpha and beta, got {len(given)}")
    return tuple(real("init_scale", value, low=0.0) for value in (given * 2)[:2])
