"""The stored settings (rates, steps, init scales), one set per task, shared by all plans."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

D = 50  # the alphabet size the settings were found at


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
    """Stored settings where they were found for this task at this d; else the general ones.

    In general: one-step eta_O = 0.35 d (inside the window (d/4, ~d/2) of phase 1), eta_A = 8 d, every other rate 1;
    but eta_O = 1/H of a phase to convergence: the Hessian of H heads' weights has no eigenvalue above 2 H.
    """
    table = stored()
    found = table.get(task.name)
    if found and task.d == D and task.language.k == found["targets"] and task.heads == found["heads"]:
        return Settings(found["rates"], found["limits"], tuple(found["init_scale"]))
    general = table["general"]
    one_step = {layer: factor * task.d for layer, factor in general["one_step_over_d"].items()}
    converge = {**general["rates"]["converge"], "O": general["rates"]["converge"]["O"] / task.heads}
    scale = found["init_scale"] if found else general["init_scale"]
    return Settings({"one_step": one_step, "converge": converge, "joint": general["rates"]["joint"]},
                    general["limits"], tuple(scale))
