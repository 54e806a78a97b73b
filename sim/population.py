"""A plan on infinite data: the population counterpart of `sim.descent`, from zero init."""

import math

from analytic.errors import InputError
from analytic.lengths import parse_law
from analytic.population import population_path

from .descent import BLOW_UP
from .plans import parse_plan


def population(config):
    """The plan of a `RunConfig` on infinite data, from zero init.

    A phase without a count runs to its limit: there is no stopping rule.

    Parameters
    ----------
    config : configuration of occurrence or OR with one head; sample sizes and init are not used

    Returns
    -------
    path : `analytic.population.PopulationPath`, one record an update
    diverged : True iff the loss passed 1e6 max(1, initial loss) or was not finite; the path ends there

    Raises
    ------
    InputError : the task is not an OR of its letters, or has several heads

    Examples
    --------
    >>> from sim.config import resolve
    >>> path, diverged = population(resolve("occurrence", "joint(142x)"))
    >>> path.first_above("attention_gap", 0.9), diverged
    (142, False)
    """
    task = config.make_task()
    if not getattr(task, "is_any", False) or task.heads != 1:
        raise InputError(f"task must be occurrence or or with one head, not {config.task}: {task.describe()}")
    law = parse_law(task.length)
    phases, rates_a, rates_o = [], iter(config.rate_a), iter(config.rate_o)
    for phase, steps in zip(parse_plan(config.plan).phases, config.steps, strict=True):
        rate_a = next(rates_a) if "A" in phase.layers else 0.0
        rate_o = next(rates_o) if "O" in phase.layers else 0.0
        phases.append((phase.layers, steps, rate_o, rate_a))
    initial = 4 * task.positive_probability(law)
    limit = BLOW_UP * max(1.0, initial)
    path = population_path(task.d, task.targets, law, phases, loss_limit=limit)
    return path, not (math.isfinite(path.loss[-1]) and path.loss[-1] <= limit)
