"""The stored settings (rates, steps, init scales), one set per task, shared by all plans."""

import math
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from .tasks import MODELS, make_task

D = 50  # the alphabet size of the paper's letter tasks
UNITS = {  # (eta_A, eta_O) of single steps that make the same difference at every size, from the first updates
    "even_pairs": lambda task: (task.max_length, task.max_length),
    "icl_bigram": lambda task: (task.pairs * task.d, task.pairs * task.d),
    "slr": lambda task: (task.tokens / task.d, task.tokens),
}


@dataclass(frozen=True)
class Settings:
    """Rates by kind of phase and layer, steps of phases without a count, and init scales (alpha, beta)."""

    rates: dict  # {"one_step": {"A": .., "O": ..}, "converge": {...}, "joint": {...}}
    limits: dict  # {"converge": .., "joint": ..}
    init_scale: tuple = (0.1, 0.1)

    def rate(self, layer, phase):
        return self.rates[phase.kind][layer]

    def steps(self, phase):
        return self.limits[phase.kind]


@cache
def stored():
    """The settings file as a dictionary by task name."""
    return tomllib.loads(files("sim").joinpath("settings.toml").read_text(encoding="utf-8"))


def settings_for(task):
    """Stored settings where they were found for this task at this size; else general ones. A user's task has its own.

    Letters in general: one-step eta_O = 0.35 d (inside the window (d/4, ~d/2) of phase 1), eta_A = 8 d, every other
    rate 1; but eta_O = 1/H of a phase to convergence: the Hessian of H heads' weights has no eigenvalue above 2 H.
    The other tasks have their stored settings at every size, with rates of single steps in proportion to ``UNITS``.
    """
    if task.name.endswith(".py"):
        return _own(task.own)
    found = stored().get(task.name)
    if found and found["at"].items() <= task.settings().items():
        return Settings(found["rates"], found["limits"], _init_scale(found, task))
    if task.name in MODELS:
        units = zip("AO", UNITS[task.name](task), UNITS[task.name](make_task(task.name, **found["at"])), strict=True)
        one_step = {layer: found["rates"]["one_step"][layer] * here / there for layer, here, there in units}
        return Settings(found["rates"] | {"one_step": one_step}, found["limits"], _init_scale(found, task))
    general = stored()["general"]
    one_step = {layer: factor * task.d for layer, factor in general["one_step_over_d"].items()}
    converge = {**general["rates"]["converge"], "O": general["rates"]["converge"]["O"] / task.heads}
    scale = found["init_scale"] if found else general["init_scale"]
    return Settings({"one_step": one_step, "converge": converge, "joint": general["rates"]["joint"]},
                    general["limits"], tuple(scale))


def _own(task):
    """What a `sim.Task` says: the same rates and limit for all phases."""
    kinds = ("one_step", "converge", "joint")
    return Settings({kind: {"A": task.rate_a, "O": task.rate_o} for kind in kinds},
                    {kind: task.steps for kind in kinds}, (task.init_scale, task.init_scale))


def _init_scale(found, task):
    """Standard deviations of the entries; in high dimension some tasks want vectors of a given length."""
    shrink = math.sqrt(task.d) if found.get("init_over_sqrt_d") else 1.0
    return tuple(scale / shrink for scale in found["init_scale"])
